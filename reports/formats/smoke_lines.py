"""The test of a single run for a terminal: the answer, its evidence, and the audit that measures it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, cast

from ...audit.statistics.digits import at_most
from ...audit.statistics.measure_words import claimed_words
from ...audit.verdicts.blind_spot import NOT_SEEN, NOTHING
from ..record_types import SmokeRecord
from ..sanitise import visible_line
from .layout import labelled
from .sentences import SAMPLING, bound_text, confidence_words, shares
from .terminal import verdict_word

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import MeasureJson


def smoke_lines(smoke: SmokeRecord, *, quiet: bool = False) -> str:
    """Return the outcome of a one-run test; line 1 alone if `quiet`."""
    claimed = claimed_words(cast("MeasureJson", smoke["claimed"]))
    name = visible_line(smoke["name"])
    head = f"{verdict_word(smoke['verdict'])}  {name}: claimed {claimed}{_answer(smoke)}"
    if quiet:
        return head
    no_proof = "not a proof of privacy: a learner that adds many losses up survives one run, whatever its epsilon"
    rows = [
        ("Evidence", _evidence(smoke, claimed)),
        ("Meaning", "" if smoke["verdict"] == "FALSIFIED" else no_proof),
        ("Next", f"overclaim check {name} --epsilon {smoke['claimed']['epsilon']:.10g} measures it with many runs"),
    ]
    return labelled(head, rows)


def _evidence(smoke: SmokeRecord, claimed: str) -> str:
    """Return how many guesses of the hidden bits are right, and what the claim allows."""
    where = f"in one run of {smoke['rounds']:,} rounds"
    if not smoke["guesses"]:
        return f"the attack made no guess {where}"
    seen, delta = smoke["right"] / smoke["guesses"], smoke["claimed"]["delta"]
    most = None if delta else 1 / (1 + math.exp(-smoke["claimed"]["epsilon"]))
    text, allowed = shares(seen, most)
    words = f"{text} of {smoke['guesses']:,} guesses are right {where}"
    if most is not None:
        words += f"; {claimed} allows {allowed}" + SAMPLING * (seen > most and smoke["verdict"] != "FALSIFIED")
    return f"{words} (p-value {at_most(smoke['p_value'], '.3g')})"


def _answer(smoke: SmokeRecord) -> str:
    """Return the bound, or why there is none, as line 1 says it."""
    if smoke["verdict"] == "UNDERPOWERED" and smoke.get("reason") != NOT_SEEN:
        return f"; one run of {smoke['rounds']:,} rounds is too little to test it"
    if smoke["epsilon_lower"] <= 0:
        return f"; {NOTHING}"
    bound = bound_text(smoke["epsilon_lower"], smoke["claimed"]["epsilon"])
    return f"; epsilon is at least {bound} ({confidence_words(smoke['confidence'])})"
