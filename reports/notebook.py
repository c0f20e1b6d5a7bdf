"""What a notebook shows of a `Result`: the card of a report, and plots. Both come from the result alone."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from ..audit.play.pairs import Pair
from ..audit.statistics.bounds.binomial_bounds import clopper_pearson_lower, clopper_pearson_upper
from ..errors import hinted, must_be_one_of
from ..mechanisms.relations.relation import neighbours_words
from .extras import Extras, translated
from .formats import figures, html, ruler
from .formats.drawing import available, standalone
from .formats.roc import TITLE as ROC
from .formats.roc import roc
from .reading import legible_claim
from .record import result_fields, rounded
from .sanitise import finite

if TYPE_CHECKING:
    from ..audit.record_types import ClaimRecord, EvidenceJson, TradeoffJson
    from ..audit.verdicts.verdict import Result

#: The plots of a result.
Kind = Literal["ruler", "roc", "tradeoff"]


@dataclass(frozen=True)
class Plot:
    """A picture that notebooks show: its SVG, and what it shows in words."""

    svg: str = field(repr=False)
    alternative: str

    def _repr_svg_(self) -> str:
        return self.svg

    def __str__(self) -> str:
        return self.alternative


def result_card(result: Result) -> str:
    """Return the card of a result as HTML that needs nothing else."""
    return html.card(record_of(result))


def result_plot(result: Result, kind: Kind | None = None) -> Plot:
    """Return a plot of a result: by default the ROC curve of scores of canaries, and the ruler of other audits.

    Raises
    ------
    ValueError
        If the kind is unknown, if the audit has no such plot, or if matplotlib is missing.
    """
    kind = kind or ("ruler" if result.canaries is None else "roc")
    if kind not in get_args(Kind):
        raise must_be_one_of("kind", get_args(Kind), kind)
    record = legible_claim(record_of(result))
    if kind == "ruler":
        return Plot(ruler.picture([record], title=(caption := ruler.row(record).alternative)), caption)
    if kind == "roc" and result.canaries is None:
        raise ValueError("kind must be ruler or tradeoff, got 'roc': only scores of canaries have a ROC curve")
    if not available():
        raise hinted(ValueError(f"kind {kind!r} needs matplotlib"), "pip install 'overclaim[figures]'")
    if kind == "roc":
        return _drawn(ROC, lambda: roc(record))
    evidence: EvidenceJson = {"alpha": rounded(result.certificate.alpha), "tradeoff": tradeoff_of(result)}
    return _drawn("Trade-off curve", lambda: figures.tradeoff(record, evidence))


def _drawn(title: str, painted: Callable[[], tuple[str, str, str]]) -> Plot:
    svg, alternative, _ = painted()
    return Plot(standalone(svg, title, alternative), alternative)


def record_of(result: Result) -> ClaimRecord:
    """Return the record of a claim, as far as its result alone tells it: no target, no replay, no traces."""
    claim, pair, canaries = result.claim, result.pair, result.canaries
    extras = Extras(list(result.missing))
    of_learner = isinstance(pair, Pair)
    record: ClaimRecord = {
        "name": "a learner" if of_learner else "a mechanism" if canaries is None else "a training",
        "surface": claim.surface,
        "neighbours": claim.neighbours,
        "relation": neighbours_words(claim.neighbours) if of_learner else None,
        "losses": claim.losses if of_learner else "",
        "rounds": pair.rounds if isinstance(pair, Pair) else None,
        "mechanism": not of_learner,
        **result_fields(result),
        "translation": extras.written("event in all measures", lambda: translated(result)),
        "exact_level": None if result.exact is None else finite(result.exact),
    }
    if canaries is not None:
        record |= {"design": canaries.design, "scores": canaries.to_json()}
    return extras.noted(record)


def tradeoff_of(result: Result) -> TradeoffJson:
    """Return both errors of the event's two thresholds, with their intervals, between those of constant guesses."""
    counts, alpha = result.certificate.counts, result.certificate.alpha
    left, right = counts.runs_left, counts.runs - counts.runs_left
    event = ((counts.right_upper, left - counts.left_upper), (right - counts.right_lower, counts.left_lower))
    # Of two thresholds with one rate of false positives the curve passes the one that misses more first.
    errors = sorted({(0, left), (right, 0), *event}, key=lambda error: (error[0], -error[1])) if left and right else []
    false, missed = ([error[side] for error in errors] for side in (0, 1))

    def share(times: list[int], runs: int) -> tuple[list[float], list[float], list[float]]:
        low, high = clopper_pearson_lower(times, runs, alpha), clopper_pearson_upper(times, runs, alpha)
        return [time / runs for time in times], np.asarray(low).tolist(), np.asarray(high).tolist()

    x, x_low, x_high = share(false, right)
    y, y_low, y_high = share(missed, left)
    return {
        "false_positive": x,
        "false_positive_low": x_low,
        "false_positive_high": x_high,
        "false_negative": y,
        "false_negative_low": y_low,
        "false_negative_high": y_high,
    }
