"""The figures of a report: what is drawn of a claim's evidence and of a measurement of regret, and said in words."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from ...audit.record_types import SIDES, ClaimRecord, EventRecord, EvidenceJson, RegretJson
from ...audit.statistics.digits import at_least
from ...audit.statistics.measure_words import is_epsilon, unit_of
from ...learners.blame import extra_or_reason
from ...mechanisms.measures.stated import measure_from_json
from ..reading import exact_level, level, lower, measure_of
from .drawing import GREEN, INK, LEFT, RED, RIGHT, available, draw, inline, matplotlib_library, per_cent
from .roc import TITLE as ROC
from .roc import roc

if TYPE_CHECKING:
    from .drawing import Axes

#: Steps of a claimed trade-off curve.
CURVE = 64


@dataclass(frozen=True)
class Figure:
    """One drawn figure: its name, inline SVG, what it shows in words, and how to read it."""

    title: str
    svg: str
    alternative: str
    caption: str


#: A claim, or else a measurement of regret, and the prefix of its names.
Drawing = tuple["ClaimRecord | None", "RegretJson | None", str]


def of_claim(claim: ClaimRecord, prefix: str) -> list[Figure]:
    """Return the figures of a claim's evidence that its record has the data for.

    Parameters
    ----------
    claim : mapping
        A claim of a record.
    prefix : str
        Letters and digits that no other claim of the page has: names inside an SVG are global to the page.
    """
    evidence: EvidenceJson = (claim.get("evidence") or {}) if available() else {}
    unit, by_round = unit_of(measure_of(claim)), evidence.get("by_round")
    able: list[tuple[str, Callable[[ClaimRecord, EvidenceJson], tuple[str, str, str]], object]] = [
        ("Trade-off curve", tradeoff, (evidence.get("tradeoff") or {}).get("false_positive")),
        ("Privacy profile", _profile, (evidence.get("profile") or {}).get("epsilon")),
        ("Scores by input", _histogram, (evidence.get("scores") or {}).get("left")),
        ("Leakage by round", _by_round, len(by_round["rounds"]) > 2 if by_round else False),
        (f"Certified {unit} against runs", _growth, (evidence.get("growth") or {}).get("runs")),
    ]
    figures = []
    for number, (title, of_evidence, data) in enumerate(able):
        if data:
            figures.append(figure(title, f"{prefix}{number}", partial(of_evidence, claim, evidence)))
    if claim.get("scores") and available():
        figures.append(figure(ROC, f"{prefix}roc", partial(roc, claim)))
    return figures


def figure(title: str, prefix: str, painted: Callable[[], tuple[str, str, str]]) -> Figure:
    """Return a figure of an SVG, what it shows and its caption; where it cannot be drawn the caption says why."""

    def drawn() -> Figure:
        svg, alternative, caption = painted()
        return Figure(title, inline(svg, prefix, title, alternative), alternative, caption)

    result, missing = extra_or_reason("figure", drawn)
    return result or Figure(title, "", "", str(missing[0]))


def of_regret(entry: RegretJson, prefix: str) -> list[Figure]:
    """Return the growth curve of a regret audit, and the price of privacy where it was measured."""
    figures = []
    for title, key, xs, ys in (
        ("Regret against T", "regrets", entry.get("horizons"), entry.get("regrets")),
        ("The price of privacy", "price", entry.get("epsilons"), entry.get("price")),
    ):
        points = [(x, y) for x, y in zip(xs or (), ys or (), strict=False) if x > 0 and y is not None and y > 0]
        if len(points) > 1 and available():
            painted = partial(_power_law, entry, points, of_horizon=key == "regrets")
            figures.append(figure(title, f"{prefix}{key}", painted))
    return figures


def drawn(item: Drawing) -> list[Figure]:
    """Return the figures of a claim, or of a measurement of regret."""
    claim, entry, prefix = item
    return of_claim(claim, prefix) if claim is not None else of_regret(entry, prefix) if entry is not None else []


def count_text(value: float, _: object = None) -> str:
    """Return 10k for 10000: the ticks of an axis that counts."""
    for size, unit in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _shape(values: Sequence[float | None]) -> list[float]:
    return [0.0 if v is None else v for v in values]


def _claimed(claim: ClaimRecord) -> tuple[float, float]:
    return claim["claimed"]["epsilon"], claim["claimed"].get("delta") or 0.0


def _limit(claim: ClaimRecord) -> tuple[list[float], list[float]]:
    """Return the boundary of the errors that a claim allows, in whatever measure."""
    measure = measure_of(claim)
    if measure.get("kind") in (None, "approximate"):
        return _region(*_claimed(claim))
    # Equal steps of an angle: dense towards both ends, where such curves are steep.
    x = [(1 - math.cos(math.pi * i / CURVE)) / 2 for i in range(CURVE + 1)]
    return x, [1 - p for p in measure_from_json(measure).allowed(x).tolist()]


def _region(epsilon: float, delta: float) -> tuple[list[float], list[float]]:
    """Return the boundary of the errors that an (epsilon, delta)-DP learner allows."""
    odds = math.exp(-epsilon)
    corner = (1 - delta) / (1 + math.exp(epsilon))
    x = [0.0, corner, 1 - delta]
    return x, [1 - delta, odds * (1 - delta - corner), 0.0]


def tradeoff(claim: ClaimRecord, evidence: EvidenceJson) -> tuple[str, str, str]:
    """Return the SVG of a trade-off curve, what it shows, and how to read it."""
    curve = evidence["tradeoff"]
    fpr, fnr = curve["false_positive"], curve["false_negative"]
    edge_x, edge_y = _limit(claim)

    def paint(axes: Axes) -> None:
        axes.fill([*edge_x, 0.0], [*edge_y, 0.0], facecolor=RED, alpha=0.13, linewidth=0)
        axes.plot(edge_x, edge_y, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
        # The band joins the boxes of the two intervals: low ends to low ends, high ends to high ends.
        xs = curve["false_positive_low"] + curve["false_positive_high"][::-1]
        ys = curve["false_negative_low"] + curve["false_negative_high"][::-1]
        axes.fill(xs, ys, facecolor=LEFT, alpha=0.25, linewidth=0)
        axes.plot([1.0, *fpr, 0.0], [0.0, *fnr, 1.0], color=LEFT)
        if len(fpr) <= 12:
            axes.plot(fpr, fnr, color=LEFT, marker="o", markersize=3.5, linewidth=0)
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(matplotlib_library().ticker.FixedLocator([0, 0.25, 0.5, 0.75, 1]))
            axis.set_major_formatter(per_cent)
        axes.text(0.97, 0.95, "measured", color=LEFT, ha="right", va="top", transform=axes.transAxes)
        axes.text(0.97, 0.86, "limit of the claim", color=RED, ha="right", va="top", transform=axes.transAxes)

    nearest = min(zip(fpr, fnr, strict=True), key=lambda point: point[0] + point[1])
    alternative = (
        f"of all thresholds the smallest sum of errors has {nearest[0]:.1%} false positives and {nearest[1]:.1%} "
        f"false negatives; the claim allows no sum below {min(map(sum, zip(edge_x, edge_y, strict=True))):.1%}"
    )
    caption = (
        f"Two errors of guessing the input, at every threshold. A target that keeps the claim stays above the shaded "
        f"region. Band: pointwise {1 - evidence['alpha']:.2%} Clopper-Pearson."
    )
    return draw(paint, "false positives", "false negatives"), alternative, _trim(caption)


def _trim(text: str) -> str:
    return text.replace(".00%", "%")


def _profile(claim: ClaimRecord, evidence: EvidenceJson) -> tuple[str, str, str]:
    profile = evidence["profile"]
    epsilon, delta = _claimed(claim)
    x, estimate, lower = profile["epsilon"], _shape(profile["estimate"]), _shape(profile["lower"])
    curve = profile.get("exact") or {"epsilon": (), "delta": ()}
    exact = [(e, d) for e, d in zip(curve["epsilon"], curve["delta"], strict=True) if e and e <= x[-1]]
    points = measure_of(claim).get("points") or [[epsilon, delta]]

    def paint(axes: Axes) -> None:
        axes.fill_between(x, lower, color=LEFT, alpha=0.18, linewidth=0)
        axes.plot(x, lower, color=LEFT, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.plot(x, estimate, color=LEFT)
        axes.axvline(epsilon, ymax=0.72, color=RED, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.plot(*zip(*points, strict=True), color=RED, marker="o", markersize=5, clip_on=False, linewidth=0)
        if exact:
            e, d = zip(*exact, strict=True)
            axes.plot(e, d, color=INK, marker="D", markersize=4, markerfacecolor="none", linewidth=0)
        axes.set_xlim(0, x[-1] or 1)
        top = max([*estimate, *(d for _, d in exact), *(d for _, d in points), 1e-6])
        axes.set_ylim(0, 1.08 * top)
        axes.text(0.97, 0.95, "measured", color=LEFT, ha="right", va="top", transform=axes.transAxes)
        axes.text(0.97, 0.86, "the claim", color=RED, ha="right", va="top", transform=axes.transAxes)
        if exact:
            axes.text(0.97, 0.77, "exact", color=INK, ha="right", va="top", transform=axes.transAxes)

    nearest = min(range(len(x)), key=lambda i: abs(x[i] - epsilon))
    of_epsilon = is_epsilon(measure_of(claim))  # of another claim it is an epsilon that it implies
    place, verb = ("the claimed epsilon of", "allows") if of_epsilon else ("epsilon", "allows at most")
    alternative = (
        f"delta falls from {estimate[0]:.3g} at epsilon 0 to {estimate[nearest]:.3g} near {place} "
        f"{epsilon:.3g}, where the claim {verb} {delta:.3g}; it is at least {at_least(lower[nearest], '.3g')} there"
    )
    caption = "The delta that is needed at each epsilon. Dashed: lower bound of the measured one, point by point."
    return draw(paint, "epsilon", "delta"), alternative, caption


def _histogram(claim: ClaimRecord, evidence: EvidenceJson) -> tuple[str, str, str]:
    scores = evidence["scores"]
    ends = {"left": scores["left_infinite"], "right": scores["right_infinite"]}
    totals = {side: max(1, sum(scores[side]) + sum(ends[side])) for side in SIDES}
    share = {side: [n / totals[side] for n in scores[side]] for side in SIDES}
    event: EventRecord = claim.get("event") or {}

    def paint(axes: Axes) -> None:
        if "values" in scores:
            values = scores["values"]
            gaps = [b - a for a, b in itertools.pairwise(values)]
            width = 0.4 * (min(gaps) if gaps else 1.0)
            span = (values[-1] - values[0]) or 1.0
            width = max(width, span / 120)
            for side, colour, shift in (("left", LEFT, -0.5), ("right", RIGHT, 0.5)):
                axes.bar([v + shift * width for v in values], share[side], width=width, color=colour)
        else:
            edges = scores["edges"]
            for side, colour in (("left", LEFT), ("right", RIGHT)):
                axes.stairs(share[side], edges, fill=True, facecolor=colour, alpha=0.2, linewidth=0)
                axes.stairs(share[side], edges, edgecolor=colour, linewidth=1.5)
        low, high = axes.get_xlim()
        for threshold in (event.get("lower"), event.get("upper")):
            if threshold is not None and low <= threshold <= high:
                axes.axvline(threshold, ymax=0.86, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        axes.yaxis.set_major_formatter(per_cent)
        axes.set_ylim(0, 1.3 * max([*share["left"], *share["right"], 1e-9]))
        axes.text(0.03, 0.97, "right input", color=RIGHT, ha="left", va="top", transform=axes.transAxes)
        axes.text(0.97, 0.97, "left input", color=LEFT, ha="right", va="top", transform=axes.transAxes)

    infinite = sum(scores["left_infinite"]) + sum(scores["right_infinite"])
    overlap = sum(min(a, b) for a, b in zip(share["left"], share["right"], strict=True))
    alternative = (
        f"the scores of {totals['left']} runs on the left input and {totals['right']} on the right one overlap in "
        f"{overlap:.0%} of their mass"
    )
    caption = "The attack's score of fresh runs, by the input they were played on. Dashed: the certified thresholds."
    if infinite:
        caption += f" {infinite} runs with infinite scores, impossible on one input, are not drawn."
    return draw(paint, "score, evidence for the left input", "share of runs"), alternative, caption


def _by_round(claim: ClaimRecord, evidence: EvidenceJson) -> tuple[str, str, str]:
    leak = evidence["by_round"]
    epsilon, _ = _claimed(claim)
    rounds, values = leak["rounds"], _shape(leak["epsilon"])
    exact = leak.get("kind") == "exact"

    def paint(axes: Axes) -> None:
        axes.axhline(epsilon, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
        axes.plot(rounds, values, color=LEFT, marker="o", markersize=3.5)
        if rounds[-1] > 50:
            axes.set_xscale("log")
            axes.xaxis.set_major_formatter(count_text)
            axes.xaxis.set_minor_locator(matplotlib_library().ticker.NullLocator())
        else:
            axes.xaxis.set_major_locator(matplotlib_library().ticker.MaxNLocator(6, integer=True))
        axes.set_ylim(0, 1.4 * max([*values, epsilon]))
        axes.text(0.03, 0.95, "exact" if exact else "at least", color=LEFT, va="top", transform=axes.transAxes)
        axes.text(0.35, 0.95, "claim", color=RED, va="top", transform=axes.transAxes)

    middle = len(values) // 2
    text = f"exactly {values[-1]:.3g}" if exact else f"at least {at_least(values[-1], '.3g')}"
    alternative = f"{text} after all {rounds[-1]} rounds, {at_least(values[middle], '.3g')} after {rounds[middle]}"

    caption = (
        "Epsilon of the first rounds alone, exact on this pair."
        if exact
        else "Epsilon of the first rounds alone: a lower bound for each prefix, on the evidence's runs. An estimate, "
        "not the certificate."
    )
    return draw(paint, "rounds seen", "epsilon"), alternative, caption


def _growth(claim: ClaimRecord, evidence: EvidenceJson) -> tuple[str, str, str]:
    growth = evidence["growth"]
    claimed, unit = level(claim), unit_of(measure_of(claim))
    exact, decides = exact_level(claim), growth.get("decides")
    runs, bounds = list(growth["runs"]), _shape(growth["bound"])
    total = (claim.get("counts") or {}).get("runs")
    if total and claim.get("epsilon_lower") is not None and total != runs[-1]:
        runs.append(total)
        bounds.append(lower(claim))

    def paint(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.axhline(claimed, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
        if exact is not None:
            axes.axhline(exact, color=GREEN, linewidth=1.2, linestyle=(0, (1, 1.5)))
        axes.plot(runs, bounds, color=LEFT, marker="o", markersize=2.5)
        axes.plot(runs[-1:], bounds[-1:], color=LEFT, marker="o", markersize=5.5)
        if decides:
            axes.axvline(decides, ymax=0.86, color=INK, linewidth=1.0, linestyle=(0, (4, 2)))
        low = min([*runs, decides] if decides else runs)
        high = max([*runs, decides] if decides else runs)
        axes.set_xlim(low / 1.3, high * 1.5)
        axes.set_ylim(0, 1.4 * max([*bounds, claimed, exact or 0.0]))
        axes.xaxis.set_major_formatter(count_text)
        axes.xaxis.set_minor_locator(matplotlib_library().ticker.NullLocator())
        axes.text(0.03, 0.97, "certified", color=LEFT, va="top", transform=axes.transAxes)
        axes.text(0.35, 0.97, "claim", color=RED, va="top", transform=axes.transAxes)
        if exact is not None:
            axes.text(0.97, 0.97, "exact", color=GREEN, ha="right", va="top", transform=axes.transAxes)

    first, last = (at_least(bounds[i], ".3g") for i in (0, -1))
    alternative = f"the bound grows from {first} at {runs[0]} runs to {last} at {runs[-1]}"
    caption = "The bound that fewer runs would have given. Only the last point is the certificate."
    if decides:
        often = "runs would decide the claim nine times in ten"
        alternative += f"; with a perfect attack {decides} {often}"
        caption += f" Dashed upright: with a perfect attack, {decides:,} {often}."
    return draw(paint, "certification runs", unit), alternative, caption


def _power_law(entry: RegretJson, points: Sequence[tuple[float, float]], *, of_horizon: bool) -> tuple[str, str, str]:
    xs, ys = ([float(v) for v in side] for side in zip(*points, strict=True))
    exponent, slope, bound = entry.get("exponent"), entry.get("slope"), entry.get("bound")

    def paint(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.plot(xs, ys, color=LEFT, marker="o", markersize=3.5)
        top = max(ys)
        if of_horizon and exponent is not None:
            # The promised growth, through the first point: only its steepness is claimed.
            promised = [ys[0] * (x / xs[0]) ** exponent for x in xs]
            axes.plot(xs, promised, color=RED, linewidth=1.2, linestyle=(0, (4, 2)))
            top = max(top, *promised)
        if of_horizon and bound:
            axes.plot([entry.get("rounds") or xs[-1]], [bound], color=RED, marker="v", markersize=5, linewidth=0)
            top = max(top, bound)
        axes.set_ylim(min(ys) / 1.5, top * 3)
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(count_text)
            axis.set_minor_locator(matplotlib_library().ticker.NullLocator())
        axes.text(0.03, 0.96, "measured", color=LEFT, va="top", transform=axes.transAxes)
        if of_horizon and (exponent is not None or bound):
            axes.text(0.35, 0.96, "promised", color=RED, va="top", transform=axes.transAxes)

    name = "T" if of_horizon else "epsilon"
    alternative = f"mean regret {ys[0]:.3g} at {name} {xs[0]:g}, {ys[-1]:.3g} at {name} {xs[-1]:g}"
    if of_horizon and slope is not None:
        alternative += f"; fitted exponent {slope:.2f}"
    caption = (
        "Mean regret on the worst sequence, both axes logarithmic. Dashed: the promised growth through the first "
        "point; triangle: the printed bound."
        if of_horizon
        else "Mean regret at a fixed horizon for each epsilon that the noise is calibrated to."
    )
    return draw(paint, "rounds T" if of_horizon else "epsilon", "mean regret"), alternative, caption
