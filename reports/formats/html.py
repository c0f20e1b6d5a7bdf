"""The report: one self-contained page, rendered from the record alone.

Records of older versions lack keys; whatever is missing is left out. Every value is escaped by the template, and
characters that could reorder or hide text are made visible first.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from itertools import count
from typing import Any, cast

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ...audit.execution.workers import in_parallel
from ...audit.record_types import ClaimRecord, CountsJson, RegretJson, RunRecord
from ...audit.regret.verdicts import TOLERANCE, growth_words, promised_growth
from ...audit.statistics.canary_words import canaries_words, is_half
from ...audit.statistics.certificates import translation_words
from ...audit.statistics.digits import at_least, at_most, compact
from ...audit.statistics.events import Counts, Event, certify
from ...audit.statistics.measure_words import beside, claimed_words, is_epsilon
from ...audit.statistics.multiplicity import holm
from ...mechanisms.claim import NEIGHBOURS
from ...mechanisms.measures.kinds import KINDS
from ..headline import beside_words, headline_words
from ..reading import (
    HELD_OUT,
    INCLUDED,
    bound_words,
    by_holm,
    by_what_law,
    certified,
    exact_level,
    exact_words,
    filled,
    is_mechanism,
    is_open,
    is_unexpected,
    legible,
    legible_claim,
    level,
    lower,
    measure_of,
    missing_words,
    reason_text,
    reason_words,
    remark_lines,
    symbol,
    with_relation,
)
from ..status import status_of
from ..upper_words import bounded_words, bypass_text, trace_lines
from ..witness import witness
from . import figures, price_figures, ruler
from .drawing import available
from .event_words import coin_words, event_words, guess_shares, named_rates
from .first_screen import assumed, first_screen, needed
from .sentences import attack, beyond_lines, power, survives_lines
from .terminal import number

#: What the template reads by name.
View = dict[str, Any]
VERDICTS = {"FALSIFIED": "falsified", "BYPASS": "bypass", "SURVIVED": "survived", "UNDERPOWERED": "underpowered"}
#: Claims whose figures are drawn: falsified ones, the worst first, then canaries.
MAX_FIGURES = 40
#: What a line of a trace begins with that is its cause.
_CAUSE = "cause: "
LOSSES = {
    "unit": "losses in [0, 1]",
    "symmetric": "losses in [-1, 1]",
    "l1-ball": "losses in the L1 ball",
    "l2-ball": "losses in the L2 ball",
    "lipschitz": "Lipschitz convex losses",
}


def render(record: RunRecord, *, jobs: int = 1) -> str:
    """Return the HTML page of a record, its figures drawn by so many processes; every value is escaped."""
    return environment().get_template("report.html").render(view(record, jobs=jobs))


def card(claim: ClaimRecord) -> str:
    """Return one claim's card as a part of another page: its style sheet reaches nothing else there."""
    templates = environment()
    assert templates.loader is not None
    style, *_ = templates.loader.get_source(templates, "report.css")
    entry = shown_claim(claim)
    page = {"c": entry, "claims": [entry], "alpha": 1 - entry["confidence"], "status": status_of({"claims": [claim]})}
    return templates.get_template("notebook.html").render(page, style=Markup(style.replace(":root", "&")))


def shown_claim(claim: ClaimRecord) -> View:
    """Return what a card shows of a claim that stands alone."""
    defaults: View = {"together": False, "mends": None, "figures": []}
    return _claim(legible_claim(claim), 1, ruler.setting(claim)) | defaults


@cache
def environment(*packages: str) -> Environment:
    """Return what compiles our templates, and those of other packages: once, as that takes as long as to fill them."""
    templates = Environment(
        loader=ChoiceLoader(list(map(PackageLoader, (*packages, __package__ or "overclaim.reports.formats")))),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals["words"] = VERDICTS
    templates.filters.update(number=number, grouped=grouped, share=share)
    templates.filters.update(share_at_least=share_at_least, share_at_most=share_at_most)
    templates.filters.update(at_least=at_least, at_most=at_most)
    return templates


def grouped(value: object) -> str:
    """Return an integer with commas between its thousands, or a dash."""
    return f"{value:,}" if isinstance(value, int) else "-"


def share(value: float) -> str:
    """Return a probability in per cent: three digits, as many decimals as they need."""
    return f"{100 * value:.{_digits(value)}g}%"


def share_at_least(value: float) -> str:
    """Return a share as `share` does, but rounded down: a confidence is no larger than it is."""
    return f"{at_least(100 * value, f'.{_digits(value)}g')}%"


def share_at_most(value: float) -> str:
    """Return a share as `share` does, but rounded up: an error is no smaller than it is."""
    return f"{at_most(100 * value, f'.{_digits(value)}g')}%"


def _digits(value: float) -> int:
    digits = 3 if value <= 0.9 or value >= 1 else 2 - math.floor(math.log10(1 - value))  # never 100 % for less
    return max(3, digits)


def view(record: RunRecord, *, jobs: int = 1) -> View:
    """Return what the template shows."""
    record = legible(record)
    alpha = record["alpha"]
    claims = list(map(_claim, record["claims"], count(1), ruler.settings(record["claims"])))
    falsified = [c for c in claims if c["verdict"] == "FALSIFIED"]
    worst = sorted(falsified, key=lambda c: -c["bound"] / c["level"])
    drawable = [*worst, *(c for c in claims if c["scores"] and c not in worst)][:MAX_FIGURES]
    for claim in claims:
        claim |= {"figures": [], "mends": _mends(claim, claims)}
    regret = _with_figures(drawable, record.get("regret") or (), jobs)
    planned = (record.get("ledger_of_tests") or {}).get("planned") or len(claims) + len(record["errors"])
    tests = holm([_p_value(c, alpha / max(1, planned)) for c in claims], alpha, planned=planned)
    for claim, test in zip(claims, tests, strict=True):
        claim["test"], claim["together"] = test, test.rejected and claim["verdict"] == "FALSIFIED"
    tally = {verdict: sum(c["verdict"] == verdict for c in claims) for verdict in VERDICTS}
    return {
        "record": record,
        "first": first_screen(record, claims, planned),
        "alpha": alpha,
        "claims": claims,
        "groups": _groups(claims),
        "falsified": falsified,
        "tally": tally,
        "headline": headline_words(record) if any(c.get("standing") for c in claims) else "",
        "beside": beside_words(record["claims"]),
        "unexpected": [c for c in claims if c["unexpected"]],
        "status": status_of(record),
        "leaks": [(c["name"], text) for c in claims if (text := bypass_text(cast(ClaimRecord, c)))],
        "together": sum(c["together"] for c in falsified),
        "comparable": all(c["p_value"] is not None or c["counts"]["table"] for c in falsified),
        "family_error": min(1.0, sum(1 - c["confidence"] for c in claims)),
        "findings": record["findings"],
        "ticks": [(t, 100 * t / ruler.END) for t in ruler.TICKS],
        "guarantees": _guarantees(falsified),
        "utility": [{**u, "witness": _facts(u.get("witness", "-"))} for u in record.get("utility") or ()],
        "prices": _figures(price_figures.of_papers(record.get("regret") or ())),
        "regret_not_measured": record.get("regret_not_measured") or (),
        "regret": regret,
        "tolerance": TOLERANCE,
        "selftest": record.get("selftest") or [],
        "undrawn": bool(falsified or record.get("regret")) and not available(),
        "errors": record["errors"],
        "skipped": record["skipped"],
        "versions": record.get("versions") or {},
        "horizons": _span(c["rounds"] for c in claims if not c["mechanism"]),
        "views": sorted({"the scores" if c["scores"] else c["surface"] for c in claims}),
        "caught": [c for c in claims if c["expected"] == "falsified"],
    }


def _claim(claim: ClaimRecord, index: int, setting: str) -> View:
    fields = filled(claim)
    left = (claim.get("pair") or {}).get("left")
    fields["rounds"] = fields["rounds"] or (len(left) if isinstance(left, list) else None) or None
    before = ruler.baseline_of(claim)
    sides = (INCLUDED, HELD_OUT) if fields["scores"] else ("left", "right")
    traced = trace_lines(fields)
    return {
        **fields,
        **_sentences(fields),
        "index": index,
        "setting": setting,
        "marks": ruler.row(fields),
        "mark": ruler.mark(fields),
        "unexpected": is_unexpected(fields),
        "baseline": before,
        "change": "" if before is None else f"{lower(fields) - before:+.3g} since the baseline",
        "bound": lower(fields),
        "certified": certified(fields),
        "level": level(fields),
        "symbol": symbol(fields),
        "beside": "" if is_epsilon(measure_of(fields)) else beside(measure_of(fields)),
        "is_epsilon": is_epsilon(measure_of(fields)),
        "translated": translation_words(fields["translation"]) if fields["translation"] else "",
        "sides": sides,
        "counts": _counts(claim.get("counts") or {}, sides),
        "witness": witness(claim),
        "shrunken": shrunk if (shrunk := claim.get("shrunk")) and shrunk.get("fresh", True) else None,
        "shrunken_bound": _shrunken_bound(fields),
        "event_words": event_words(fields),
        "coin": coin_words(claim.get("event") or {}),
        "allowed": guess_shares(fields),
        "named": named_rates(fields),
        "statement": statement(fields),
        "exact": exact_words(fields, infinite="∞"),
        "by_what_law": by_what_law(fields),
        "by_holm": by_holm(fields),
        "found": bound_words(fields),
        "bounded": bounded_words(fields),
        "causes": [line.removeprefix(_CAUSE) for line in traced if line.startswith(_CAUSE)],
        "needed": needed(fields),
        "traced": [line for line in traced if not line.startswith(_CAUSE)],
        "canaries": canaries_words(fields["design"], scores) if (scores := fields["scores"]) else "",
        "half": bool(scores and is_half(fields["design"], scores)),
        "missing": missing_words(fields),
        "remarks": [*survives_lines(fields), *beyond_lines(fields), *remark_lines(fields)],
    }


def _sentences(claim: ClaimRecord) -> View:
    """Return what a card says of a claim's attack, power and assumptions, and of why it is UNDERPOWERED."""
    return {
        "why": reason_words(claim),
        "why_short": reason_text(claim),
        "mechanism": is_mechanism(claim),
        "power": power(claim),
        "attack_text": attack(claim),
        "assumed": assumed(cast(View, claim)),
    }


def statement(claim: ClaimRecord) -> str:
    """Return a claim in words."""
    measure = measure_of(claim)
    promise = f"({claim['claimed']['epsilon']:.4g}, {claim['claimed']['delta']:.3g})-DP"
    if measure.get("kind") not in (None, "approximate"):
        promise = f"{KINDS[str(measure['kind'])].name}, {claimed_words(measure)}"
    if is_mechanism(claim):
        return with_relation(promise, claim)
    losses = LOSSES.get(claim["losses"], claim["losses"])
    standard = claim["neighbours"] in NEIGHBOURS or not claim.get("relation")
    neighbours = f"{claim['neighbours']} neighbours" if standard else str(claim["relation"])
    return promise + (f" on {losses}" if losses else "") + f", {neighbours}"


def _groups(claims: Sequence[View]) -> list[tuple[str, list[View]]]:
    groups: dict[str, list[View]] = {}
    for claim in claims:
        groups.setdefault(claim["name"].rpartition("/")[0], []).append(claim)
    return list(groups.items())


def _with_figures(claims: Sequence[View], entries: Sequence[RegretJson], jobs: int) -> list[View]:
    """Draw the figures of claims, which are changed, and return the measurements of regret with theirs."""
    regret = [_regret(entry) for entry in entries]
    items: list[figures.Drawing] = [(cast(ClaimRecord, claim), None, f"c{claim['index']}") for claim in claims]
    items += [(None, entry, f"r{index}") for index, entry in enumerate(entries)]
    pictures = in_parallel(figures.drawn, items, jobs=jobs, equal_costs=True, progress="figures")
    for row, drawings in zip([*claims, *regret], pictures, strict=True):
        row["figures"] = _figures(drawings)
    return regret


def _figures(pictures: Sequence[figures.Figure]) -> list[View]:
    return [{"title": f.title, "svg": Markup(f.svg), "caption": f.caption} for f in pictures]


def _counts(counts: CountsJson, sides: tuple[str, str]) -> View:
    """Return right and wrong guesses, and the table by input, or kind of canary, where the record has it."""
    fields: View = {
        "runs": counts.get("runs"),
        "right": counts.get("right"),
        "guesses": counts.get("guesses"),
    }
    fields["wrong"] = None if None in (fields["right"], fields["guesses"]) else fields["guesses"] - fields["right"]
    fields["table"] = []
    if "left_upper" in counts:
        left, right = counts["runs_left"], counts["runs"] - counts["runs_left"]
        for side, runs, found_left, found_right in (
            (sides[0], left, counts["left_upper"], counts["left_lower"]),
            (sides[1], right, counts["right_upper"], counts["right_lower"]),
        ):
            fields["table"].append((side, runs, found_left, runs - found_left - found_right, found_right))
    return fields


def _shrunken_bound(claim: ClaimRecord) -> str:
    shrunk: Mapping[str, Any] = claim.get("shrunk") or {}
    bound = shrunk.get("lower") if shrunk.get("measure") else shrunk.get("epsilon_lower")
    return "" if bound is None else f"{symbol(claim)} ≥ {at_least(bound, claim=level(claim))}"


def _p_value(claim: View, level: float) -> float:
    """Return the p-value of a claim; where the record has none, the level if the counts reject at it, else 1."""
    if claim["p_value"] is not None:
        return float(claim["p_value"])
    if not claim["is_epsilon"]:
        return 1.0
    table = claim["counts"]["table"]
    if not table or not 0 < level < 1 or claim["method"] not in ("guess", "joint"):
        return 1.0
    (_, left, a, _, b), (_, right, c, _, d) = table
    if claim["method"] == "joint" and bool(a + c) == bool(b + d):  # it names one world
        return 1.0
    event = Event(-math.inf if b + d else math.nan, math.inf if a + c else math.nan, claim["method"])
    bound = certify(event, Counts(left + right, left, a, c, b, d), delta=claim["claimed"]["delta"], alpha=level)
    return level if bound.epsilon_lower > claim["claimed"]["epsilon"] else 1.0


def _facts(witness: object) -> str:
    """Return a witness of a false statement about regret: named numbers, or words."""
    if not isinstance(witness, Mapping):
        return str(witness)
    return ", ".join(f"{name} {compact(value)}" for name, value in witness.items())


def _mends(claim: View, claims: Sequence[View]) -> View | None:
    """Return how to mend a falsified claim, and which cases of this report tried it.

    A claim of the factor-2 kind is false because its noise is scaled to one loss, and replacing it moves twice as far.
    """
    if claim["verdict"] != "FALSIFIED" or claim["calibration"] != "as_published":
        return None
    attempts = []
    for key, target, text in (
        ("calibration", "corrected", "with the corrected noise"),
        ("neighbours", "zero-out", "under the zero-out relation"),
        ("losses", "unit", "with losses in [0, 1]"),
    ):
        siblings = [c for c in claims if claim[key] != target == c[key] and _comparable(claim, c, key)]
        if siblings:
            closest = min(
                siblings,
                key=lambda c: (len(_parameters(claim).keys() - _parameters(c).keys()), len(_differences(claim, c))),
            )
            attempts += [{"text": ", ".join([text, *_differences(claim, closest)]), "claim": closest}]
    ratio = _true(claim) / claim["level"]
    factor_two = claim["neighbours"] == "replace" and claim["losses"] not in ("unit", "") and ratio <= 2.05
    advice = "Add twice the noise, " + ("or take losses from [0, 1], " if claim["losses"] == "symmetric" else "")
    mends = {"repair": claim["repair"], "factor_two": factor_two, "ways": advice, "tried": attempts}
    return mends if any((attempts, factor_two, claim["repair"])) else None


def _comparable(claim: View, other: View, key: str) -> bool:
    """Return whether another claim of the record tells what `key` alone changes, whatever the horizon.

    The corrected noise has parameters of its own; all else would be another noise.
    """
    agrees = all(c == key or claim[c] == other[c] for c in ("name", "surface", "calibration", "neighbours", "losses"))
    noise = key == "calibration" or _parameters(claim) == _parameters(other)
    return agrees and noise and measure_of(cast(ClaimRecord, claim)) == measure_of(cast(ClaimRecord, other))


def _parameters(claim: View) -> View:
    return {
        name: value for name, value in (claim.get("parameters") or {}).items() if name not in ("calibration", "losses")
    }


def _differences(claim: View, other: View) -> list[str]:
    """Return what another claim has that this one has not, as `T = 8`."""
    base, its = ({"T": c["rounds"], "N": c.get("arms"), **_parameters(c)} for c in (claim, other))
    return [f"{name} = {value}" for name, value in its.items() if base.get(name) != value]


def _guarantees(falsified: Sequence[View]) -> list[View]:
    """Return the published statements that are false, each with its worst case.

    What the paper says for other losses, or does not say at all, is no published guarantee.
    """
    worst: dict[str, View] = {}
    for claim in falsified:
        published = claim["published"] and claim["calibration"] == "as_published" and claim["source"]
        if not published or claim["source"].startswith("none"):
            continue
        current = worst.get(claim["source"])
        if current is None or _true(claim) / claim["level"] > _true(current) / current["level"]:
            worst[claim["source"]] = claim
    return list(worst.values())


def _true(claim: View) -> float:
    return exact_level(cast(ClaimRecord, claim)) or float(claim["bound"])


_REGRET: View = dict.fromkeys(
    (
        "mean_regret",
        "interval",
        *("bound", "bound_slope", "exponent", "slope", "slope_lower", "slope_upper"),
        *("verdict", "bound_verdict", "growth_verdict", "binds_from"),
        *("horizons", "rounds", "runs", "confidence", "interval_method"),
    )
)
#: How a verdict on regret is painted: as the verdict on privacy that says as much.
_PAINTED = {"VIOLATED": "FALSIFIED", "HOLDS": "SURVIVED"}


def _regret(entry: RegretJson) -> View:
    fields: View = {**_REGRET, "name": "", "sequence": "", "source": "", **entry}
    fields["interval"] = [round(end, 6) for end in fields["interval"] or ()]  # 7e-12 is 0
    fields["bound_verdict"] = fields["bound_verdict"] or fields["verdict"]
    growth = str(fields["growth_verdict"])
    against = promised_growth(fields["exponent"] or 0.0, fields["bound_slope"])[1]
    text = growth_words(growth, fields["binds_from"], against, fields["horizons"] or ())
    fields["growth_words"] = text.replace(growth, growth.lower())
    fields["is_open"] = is_open(entry)
    fields["painted"] = _PAINTED.get(fields["bound_verdict"], "UNDERPOWERED")
    return fields


def _span(values: Iterable[int | None]) -> str:
    numbers = sorted({v for v in values if v})
    return "" if not numbers else f"{numbers[0]}" if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
