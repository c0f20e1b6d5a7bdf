"""The ruler: one line per claim, in multiples of what is claimed, so that every claim stands at the same mark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape

from ...audit.record_types import ClaimRecord
from ...audit.statistics.digits import at_least, at_most
from ...audit.statistics.measure_words import is_epsilon, unit_of
from ...audit.verdicts.blind_spot import words as blind_words
from ...mechanisms.measures.kinds import KINDS
from ...mechanisms.measures.measure import number_text
from ...mechanisms.view import VIEWS
from ..identity import measure as counted
from ..identity import same_unit
from ..identity import settings as told
from ..reading import (
    by_holm,
    certified,
    exact_level,
    is_mechanism,
    kind_words,
    level,
    lower,
    measure_of,
    relation_words,
    verdict_of,
)
from ..upper_words import binding, binding_where

#: The right end, in multiples of the claim; what lies beyond is drawn as an arrow.
END = 2.5
TICKS = (0.0, 0.5, 1.0, 1.5, 2.0, 2.5)
#: What a verdict is called beside its colour: colour alone says nothing to many readers.
MARKS = {"FALSIFIED": "✗", "BYPASS": "✗", "SURVIVED": "✓", "UNDERPOWERED": "?"}


@dataclass(frozen=True)
class Row:
    """The positions of one claim's marks, in per cent of the axis; None where there is nothing to mark.

    `beyond` tells that the certified bound lies past the right end.
    """

    certified: float
    claim: float
    exact: float | None
    upper: float | None  # what traces bound epsilon by
    detectable: float | None
    caught: float | None  # the blind spot: the smallest factor of too little noise that was caught
    baseline: float | None
    beyond: bool
    alternative: str


def row(claim: ClaimRecord) -> Row:
    """Return the marks of a claim of a record."""
    claimed, bound, measure = level(claim), lower(claim), measure_of(claim)
    upper = binding(claim)
    exact, detectable, before = exact_level(claim), claim.get("detectable_epsilon"), baseline_of(claim)

    def at(value: float | None) -> float | None:
        return None if value is None else round(100 * min(max(value / claimed, 0.0), END) / END, 2)

    spot = claim.get("blind_spot")
    caught = spot["factor"] if spot else None
    reason = f" ({claim['reason']})" if claim.get("reason") else ""
    parts = [f"{verdict_of(claim)}{reason}: {unit_of(measure)} claimed {claimed:.4g}"]
    parts += [f"certified at least {certified(claim)}" if bound > 0 else "nothing certified"]
    parts += [f"at most {at_most(upper)} {binding_where(claim)}"] if upper is not None else []
    parts += [f"exact {exact:.4g} on this pair"] if exact is not None else []
    parts += [f"at best detectable from {detectable:.4g}"] if detectable is not None else []
    parts += [f"baseline {at_least(before)}"] if before is not None else []
    return Row(
        certified=at(bound) or 0.0,
        claim=100 / END,
        exact=at(exact),
        upper=at(upper),
        detectable=at(detectable),
        caught=None if caught is None else at(caught * claimed),
        baseline=at(before),
        beyond=bound / claimed > END,
        alternative=", ".join(parts) + (f"; {blind_words(spot)}" if spot else ""),
    )


def mark(claim: ClaimRecord) -> str:
    """Return the mark of a verdict beside its colour."""
    return MARKS[verdict_of(claim)]


def baseline_of(claim: ClaimRecord) -> float | None:
    """Return the bound that the baseline's record certified for this claim, if the record knows it.

    One in another measure is none: it is a number of another kind.
    """
    before = claim.get("baseline")
    if isinstance(before, Mapping):
        recorded = before.get("measure")
        if isinstance(recorded, Mapping) and not same_unit(counted(claim), recorded):
            return None
        value = before.get("epsilon_lower") if before.get("lower") is None else before["lower"]
    else:
        value = before
    return float(value) if isinstance(value, (int, float)) else None


def setting(claim: ClaimRecord) -> str:
    """Return what tells a claim from its siblings, in a few words."""
    measure = measure_of(claim)
    kind = KINDS.get(str(measure.get("kind")))
    seeds = "with fresh seeds" if claim.get("reseed") else ""
    delta = "" if is_epsilon(measure) else "total variation" if kind is None else kind.short
    if measure.get("delta") and is_epsilon(measure):
        delta = f"δ\u00a0=\u00a0{number_text(measure['delta'])}"
    elif measure.get("order"):
        delta = f"Rényi DP of order {number_text(measure['order'])}"
    if is_mechanism(claim):
        relation = str(claim["neighbours"]) if relation_words(claim) else ""
        return ", ".join(word for word in (kind_words(claim), relation, delta, seeds) if word)
    view = VIEWS.get(claim.get("surface") or "actions")
    parts = [
        {"as_published": "as published", None: ""}.get(claim.get("calibration"), str(claim.get("calibration"))),
        {"unit": "losses in [0,\u00a01]", "symmetric": "losses in [-1,\u00a01]"}.get(
            claim.get("losses", ""), str(claim.get("losses") or "")
        ),
        f"{view.seen if view else claim['surface']} seen",
        "" if claim.get("neighbours", "replace") == "replace" else str(claim["neighbours"]),
        f"T\u00a0=\u00a0{claim['rounds']}" if claim.get("rounds") else "",
        delta,
        seeds,
    ]
    return ", ".join(word for word in parts if word)


def settings(claims: Sequence[ClaimRecord]) -> list[str]:
    """Return the settings of a record's claims, with what tells two of one target apart that are else alike."""
    return told(claims, [setting(claim) for claim in claims])


_WIDTH, _LABEL, _AXIS, _STEP, _TOP = 860, 356, 390, 38, 46
_STYLE = """
text{font:13px system-ui,-apple-system,'Segoe UI',sans-serif;fill:#1c2430}
.s{font-size:11px;fill:#566070}.g{stroke:#c9d0d9}.c{stroke:#1c2430;stroke-width:2}
.FALSIFIED,.BYPASS{fill:#b3261e}.SURVIVED{fill:#566070}.UNDERPOWERED{fill:#7a5200}
.e{fill:#fff;stroke:#1c2430;stroke-width:1.5}.u{fill:none;stroke:#1c2430;stroke-width:1.5}.p{fill:#fff}
@media (prefers-color-scheme:dark){text{fill:#e6eaf0}.s{fill:#a3adba}.g{stroke:#3a4350}.c{stroke:#e6eaf0}
.FALSIFIED,.BYPASS{fill:#ff8f85}.SURVIVED{fill:#a3adba}.UNDERPOWERED{fill:#f0c064}.e{fill:#12161c;stroke:#e6eaf0}.u{stroke:#e6eaf0}.p{fill:#12161c}}
"""


def picture(claims: Sequence[ClaimRecord], *, title: str = "The ruler of an audit") -> str:
    """Return the ruler of some claims as an SVG file of its own, dark and light."""
    height = _TOP + _STEP * len(claims) + 34
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" width="{_WIDTH}" height="{height}" '
        f'role="img" aria-label="{escape(title)}"><title>{escape(title)}</title><style>{_STYLE}</style>'
        f'<rect class="p" width="{_WIDTH}" height="{height}" rx="8"/>'
    ]
    bottom = height - 30
    for tick in TICKS:
        x = _LABEL + _AXIS * tick / END
        name = "claim" if tick == 1 else f"{tick:g}×"
        parts.append(f'<line class="g" x1="{x:g}" x2="{x:g}" y1="{_TOP - 12}" y2="{bottom}"/>')
        parts.append(f'<text class="s" x="{x:g}" y="{_TOP - 20}" text-anchor="middle">{name}</text>')
    for number, claim in enumerate(claims):
        parts.extend(_lines(claim, _TOP + _STEP * number))
    confidence = at_least(100 * min((claim["confidence"] for claim in claims), default=0.0))
    parts.append(
        f'<text class="s" x="16" y="{height - 10}">bar: certified with {confidence}% confidence; line: claim; '
        "diamond: exact for the audited inputs; bracket: upper bound from traces</text></svg>"
    )
    return "\n".join(parts) + "\n"


def _lines(claim: ClaimRecord, top: int) -> Iterable[str]:
    marks, verdict = row(claim), verdict_of(claim)
    middle = top + _STEP / 2 - 3
    yield f"<g><title>{escape(claim['name'])}: {escape(marks.alternative)}</title>"
    yield f'<text x="16" y="{middle:g}">{escape(claim["name"].rpartition("/")[2])}</text>'
    yield f'<text class="s" x="16" y="{middle + 13:g}">{escape(setting(claim))}</text>'
    scale = _AXIS / 100
    width = marks.certified * scale
    yield f'<rect class="{verdict}" x="{_LABEL}" y="{middle - 5:g}" width="{width:g}" height="10" rx="2"/>'
    x = _LABEL + marks.claim * scale
    yield f'<line class="c" x1="{x:g}" x2="{x:g}" y1="{middle - 12:g}" y2="{middle + 12:g}"/>'
    if marks.beyond:
        end = _LABEL + _AXIS
        yield f'<path class="{verdict}" d="M{end - 1} {middle - 9:g}l12 9l-12 9z"/>'
    if marks.exact is not None:
        yield f'<path class="e" d="M{_LABEL + marks.exact * scale:g} {middle - 6:g}l6 6l-6 6l-6 -6z"/>'
    if marks.upper is not None:
        yield f'<path class="u" d="M{_LABEL + marks.upper * scale + 5:g} {middle - 8:g}h-5v16h5"/>'
    bound = f"> {at_least(level(claim), '.3g')}" if by_holm(claim) else f"≥ {certified(claim)}"
    value = f"{mark(claim)} {bound}"
    yield f'<text class="{verdict}" x="{_WIDTH - 16}" y="{middle + 5:g}" text-anchor="end">{value}</text></g>'
