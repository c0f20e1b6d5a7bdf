"""A measurement of regret for a terminal: whether a bound holds, on which losses, and how regret grows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ...audit.regret.growth import DOUBLINGS
from ...audit.regret.verdicts import HOLDS, UNDECIDED, VACUOUS, VIOLATED, growth_words, promised_growth, regret_verdict
from ...audit.statistics.digits import at_least, confidence_text, within
from ..sanitise import visible, visible_line
from .layout import COMMAND, Row, details, labelled
from .terminal import colour, number

if TYPE_CHECKING:
    from ...audit.record_types import AdaptiveJson, RegretJson

#: The verdict on privacy that says as much as one on regret: it has its colour.
_LIKE = {VIOLATED: "FALSIFIED", UNDECIDED: "UNDERPOWERED", VACUOUS: "UNDERPOWERED"}
#: Where no bound is known.
MEASURED = "MEASURED"
BY_SEARCH, BY_USER = "found by search", "given"


def regret_lines(target: str, audit: RegretJson, *, quiet: bool = False, verbose: bool = False) -> str:
    """Return a measurement in at most eight lines; line 1 alone if `quiet`, and all details too if `verbose`."""
    audit = visible(audit)
    verdict = VIOLATED if audit.get("verdict") == VIOLATED else audit.get("bound_verdict") or MEASURED
    word = click.style(verdict, fg=colour(_LIKE.get(str(verdict), "")), bold=True)
    head = f"{word}  {visible_line(target)}: {_mean(audit)}"
    if quiet:
        return head
    rows: list[Row] = [
        ("Losses", _losses(audit)),
        ("Bound", _source(audit)),
        ("Growth", _growth(audit)),
        ("Meaning", _meaning(str(verdict), audit)),
        ("Next", _next(str(verdict), audit)),
        (COMMAND, audit.get("command") or ""),
    ]
    text = labelled(head, rows)
    return "\n".join([text, *details(_details(audit))]) if verbose else text


def _mean(audit: RegretJson) -> str:
    """Return the mean regret with its interval, and the bound that it is held against."""
    rounds, (low, high) = audit["rounds"] or 0, audit["interval"] or (None, None)
    low_high = within(low, high, ".3g")
    confidence = confidence_text(audit["confidence"])
    text = f"mean regret {audit['mean_regret']:.3g} in {rounds:,} round{'s' * (rounds != 1)}"
    text += f" ({confidence} interval {' to '.join(low_high)})"
    text += f"; bound {number(audit['bound'])}" if audit.get("bound") is not None else ""
    if audit.get("growth_verdict") == VIOLATED:
        claimed, kind = promised_growth(audit["exponent"] or 0.0, audit.get("bound_slope"))
        text += f"; growth exponent at least {at_least(audit.get('growth_lower'), '.2g')}, {kind} {number(claimed)}"
    return text


def _losses(audit: RegretJson) -> str:
    """Return the losses of the verdict, and whether a search found worse ones."""
    means, sequence = audit.get("by_sequence") or {}, audit["sequence"]
    listed = max((mean for name, mean in means.items() if name != BY_SEARCH), default=None)
    if sequence == BY_USER:
        return "as given"
    if sequence == BY_SEARCH:
        return f"{_blocks(audit)}, found by the search; the worst of those listed has {number(listed)}"
    text = f'"{sequence}", the worst of those played'
    return text + (f"; the search found none worse ({means[BY_SEARCH]:.3g})" if BY_SEARCH in means else "")


def _blocks(audit: RegretJson) -> str:
    return ", ".join(f"{count:,} x {loss}" for count, loss in audit.get("found") or ())


def _source(audit: RegretJson) -> str:
    """Return whose bound it is, and from which horizon on a learner can violate it."""
    if not audit.get("source"):
        return ""
    binds = audit.get("binds_from")
    if audit.get("bound_verdict") != VACUOUS:
        return str(audit["source"])
    none = "no largest regret is known" if audit.get("largest") is None else "not at any T up to 2^60"
    return f"{audit['source']}; informative {f'from T = {binds:,} on' if binds is not None else f'never: {none}'}"


def _growth(audit: RegretJson) -> str:
    """Return the fitted exponent with its interval, beside what is claimed and the verdict on it."""
    horizons = audit["horizons"]
    if audit["slope"] is None:
        if len(horizons) < 2:
            rounds = 2**DOUBLINGS
            return f"no exponent: it needs T = {rounds} or more, and a learner that plays T / {rounds} rounds"
        return f"no exponent: fewer than three of the horizons show any regret, T = {horizons}"
    low, high = within(audit.get("slope_lower"), audit.get("slope_upper"), ".2g")
    fitted = f"exponent {audit['slope']:.2g} ({low} to {high}) for T = {horizons[0]:,} to {horizons[-1]:,}"
    verdict = audit.get("growth_verdict")
    if not verdict:
        return fitted
    text = "not tested" if verdict == VACUOUS else str(verdict).lower()
    return f"{text}: {fitted}; claimed {number(audit['exponent'])}"


def _meaning(verdict: str, audit: RegretJson) -> str:
    """Return what a verdict means: nothing behind VIOLATED, which says it all."""
    binds = audit.get("binds_from")
    suffix = f" below T = {binds:,}" if binds is not None else ""
    return {
        HOLDS: "other losses may cost more; this is not a proof",
        UNDECIDED: "the interval has the bound inside it: more runs may decide",
        VACUOUS: f"not tested: no learner can exceed this bound{suffix}",
        MEASURED: "no bound is known of this target; other losses may cost more",
    }.get(verdict, "")


def _next(verdict: str, audit: RegretJson) -> str:
    """Return what to try next: a longer game, or a search for worse losses."""
    binds = audit.get("binds_from")
    if verdict == VACUOUS:
        return f"--rounds {binds}" if binds is not None and binds < 10**6 else ""
    searched = BY_SEARCH in (audit.get("by_sequence") or {}) or audit["sequence"] == BY_USER
    return "" if searched or verdict == VIOLATED else "--search looks for losses that cost more"


def _details(audit: RegretJson) -> list[Row]:
    """Return what `-v` adds."""
    horizons = zip(audit["horizons"], audit.get("regrets") or (), strict=False)
    certified = list(within(audit.get("growth_lower"), audit.get("growth_upper"), ".3g"))
    slope, binds = audit.get("bound_slope"), audit.get("binds_from")
    against = promised_growth(audit.get("exponent") or 0.0, slope)[1]
    verdict = growth_words(audit.get("growth_verdict"), binds, against, audit["horizons"])
    method = f"{audit['interval_method']}, {audit['runs']:,} runs of each sequence"
    means = sorted((audit.get("by_sequence") or {}).items(), key=lambda item: -item[1])
    return [
        ("Horizons", "; ".join(f"T = {t:,}: {regret:.3g}" for t, regret in horizons)),
        ("Certified", "" if certified == ["-", "-"] else f"growth {' to '.join(certified)}"),
        ("Growth", verdict if audit.get("growth_verdict") else ""),
        ("Own slope", "" if slope is None else f"{slope:.3g}, of the bound itself at these horizons"),
        ("Informative", "" if binds is None else f"from T = {binds:,} on; below, no learner can exceed the bound"),
        ("Interval", method + (", expected losses" if audit.get("expected_losses") else "")),
        ("Sequences", "; ".join(f"{name} {mean:.3g}" for name, mean in means)),
        ("Found", _blocks(audit)),
        (COMMAND, audit.get("replay") or ""),
        *(("Adversary", _adversary(row)) for row in audit.get("adaptive") or ()),
    ]


def _adversary(row: AdaptiveJson) -> str:
    low, high = within(row["interval"][0], row["interval"][1], ".3g")
    mean = f"one that {row['adversary']}: mean regret {row['mean_regret']:.3g} ({low} to {high})"
    return f"{mean}; no verdict rests on it"


def bound_line(row: RegretJson) -> str:
    """Return what a measurement of regret says of its bound, and of a growth that is violated."""
    name, sequence = (visible_line(row.get(field) or "unnamed") for field in ("name", "sequence"))
    growing = row.get("growth_verdict") == "VIOLATED"
    verdict = (growing and row.get("bound_verdict")) or row.get("verdict")  # the row's is the worse of the two
    line = (
        f"regret of {name}: {regret_verdict(verdict)}: mean {number(row.get('mean_regret'))}, "
        f"bound {number(row.get('bound'))}, T = {row.get('rounds')}, {sequence} losses"
    )
    if growing:
        claimed, kind = promised_growth(row.get("exponent") or 0.0, row.get("bound_slope"))
        line += f"; VIOLATED: growth exponent at least {at_least(row.get('growth_lower'))}, claimed {number(claimed)}"
        line += f" ({kind})" if claimed != row.get("exponent") else ""
    return line
