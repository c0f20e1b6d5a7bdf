"""The outcome of scores of canaries in at most eight lines for a terminal: line 1 is the answer."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from ...audit.statistics.canary_words import INDEPENDENT, ScoresJson, canaries_words, is_half, needed_words
from ...audit.statistics.digits import at_least, at_most
from ...audit.statistics.measure_words import beside, claimed_words, unit_of
from ...audit.verdicts.blind_spot import TOO_FEW
from ..reading import answer_words, level, lower, measure_of, reason_of
from ..record_types import ClaimRecord
from ..sanitise import visible, visible_line
from .event_words import named_rates
from .terminal import verdict_word

#: Columns of the labels and of a line; lines of one label and of all, at most.
_LABEL, _WIDTH, _LINES, _MOST = 12, 120, 2, 8
#: What has one line where those are too few, and what is left out where they still are.
_SHORTENED, _LEFT_OUT = ("Claimed by", "Evidence", "Assumes"), ("Claimed by", "Next")


def score_lines(claim: ClaimRecord, *, quiet: bool = False) -> str:
    """Return what scores of canaries came to; line 1 alone if `quiet`."""
    claim = visible(claim)
    scores: ScoresJson = claim["scores"] or {}
    head = f"{verdict_word(claim['verdict'])}  {visible_line(claim['name'])}: claimed {_claimed(claim)}"
    head += _answer(claim)
    if quiet:
        return head
    canaries = _canaries(claim["design"], scores)
    rows = [("Claimed by", claim["note"]), ("Evidence", _evidence(claim)), ("Canaries", canaries)]
    rows += [("Assumes", "; ".join(scores["assumes"])), *_ending(claim, scores)]
    lines = _filled(rows, {})
    shortened = dict.fromkeys(_SHORTENED, 1)
    for most in (shortened, shortened | dict.fromkeys(_LEFT_OUT, 0)):
        lines = lines if len(lines) + 2 <= _MOST else _filled(rows, most)
    return "\n".join([head, *lines, f"{'Reproduce':<{_LABEL}}{visible_line(claim['replay'])}"])


def _filled(rows: Sequence[tuple[str, str]], most: Mapping[str, int]) -> list[str]:
    """Return labels with their texts, each in two lines at most, or in as many as `most` says."""
    lines: list[str] = []
    for label, text in rows:
        whole, limit = f"{label:<{_LABEL}}{visible_line(text)}", most.get(label, _LINES)
        indented: dict[str, Any] = {"subsequent_indent": " " * _LABEL, "placeholder": " ..."}
        lines += textwrap.wrap(whole, _WIDTH, max_lines=limit, **indented) if text and limit else []
    return lines


def _claimed(claim: ClaimRecord) -> str:
    return visible_line(claimed_words(measure_of(claim)))


def _answer(claim: ClaimRecord) -> str:
    """Return the bound, or why it is none, as line 1 says it."""
    if words := answer_words(claim):
        return words
    measure, bound = measure_of(claim), lower(claim)
    certified = f"{at_least(bound, '.2f', level(claim))}{beside(measure)}"
    unit = "the multiple of the profile" if measure.get("kind") == "profile" else unit_of(measure)
    return f"; {unit} is at least {certified} ({100 * claim['confidence']:.10g}% confidence)"


def _evidence(claim: ClaimRecord) -> str:
    """Return the rates at the threshold that shows most, and what the claim allows there."""
    rates = named_rates(claim)
    if rates is None:
        return ""
    here, there, most = (float(str(rates[name])) for name in ("here", "there", "most"))
    sampling = " (within sampling error)" if here > most and claim["verdict"] != "FALSIFIED" else ""
    return (
        f'the attack finds "{rates["name"]}" with true-positive rate {_rate(here)} at false-positive rate '
        f"{_rate(there)}; {_claimed(claim)} allows {_rate(most)}{sampling}"
    )


def _rate(share: float) -> str:
    """Return a share in per cent: one decimal, two digits of a small one, and never 100% of less."""
    if 0 < share < 0.001 or 0.999 < share < 1:
        return f"{at_most(100 * share, '.2g' if share < 0.5 else '.6g')}%"
    return f"{share:.1%}"


def _canaries(design: str | None, scores: ScoresJson) -> str:
    words = f"{canaries_words(design, scores)}, {scores['inserted']:,} of them included"
    return words + "; each canary has a coin of its own: a random half is not that" * is_half(design, scores)


def _ending(claim: ClaimRecord, scores: ScoresJson) -> list[tuple[str, str]]:
    """Return what a verdict means, and what to do next."""
    rows = []
    if claim["verdict"] == "SURVIVED":
        rows.append(("Meaning", "no violation was found; this is not a proof of privacy"))
    if reason_of(claim) == TOO_FEW:
        rows.append(("Meaning", f"{needed_words(scores)}; here are {scores['canaries']:,}"))
    elif claim["verdict"] == "UNDERPOWERED":
        rows.append(("Meaning", "all scores are equal: the attack tells nothing apart"))
    if scores.get("reversed"):
        rows.append(("Next", "try -score: a higher score means included, and here the lower side tells more"))
    elif reason_of(claim) == TOO_FEW and scores.get("needed") is not None:
        more = "use more trainings" if claim["design"] == INDEPENDENT else "use more canaries, or several trainings"
        rows.append(("Next", f"{more}: their scores are audited together"))
    return rows
