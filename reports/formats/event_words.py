"""What an event finds in a run, and how often, in words and in shares of the runs."""

from __future__ import annotations

import math
from collections.abc import Mapping

from ...audit.record_types import ClaimRecord
from ...audit.statistics.measure_words import is_epsilon
from ...mechanisms.measures.stated import measure_from_json
from ..reading import HELD_OUT, INCLUDED, measure_of, named_world


def coin_words(event: Mapping[str, object]) -> str:
    """Return what draws the hidden bit of a run, in words."""
    share = event.get("share", 0.5)
    return "a fair coin" if share == 0.5 else f"a coin that chooses “left” with probability {share:g}"


def event_words(claim: ClaimRecord) -> str:
    """Return the separating event in words."""
    event, counts = claim["event"], claim.get("counts") or {}
    if not event:
        return ""
    # Only the thresholds of exact attacks are likelihoods; the event of another one is said of its score.
    reads = claim.get("attack_reads", "")
    subject = reads or ("a canary’s score" if claim["scores"] else f"the score of the {claim['attack'] or 'attack'}")
    left, right = (INCLUDED, HELD_OUT) if claim["scores"] else ("left", "right")
    sides = []
    for key, threshold, names, other, hits in (
        ("upper", event.get("upper"), left, right, counts.get("left_upper", 0) + counts.get("right_upper", 0)),
        ("lower", event.get("lower"), right, left, counts.get("left_lower", 0) + counts.get("right_lower", 0)),
    ):
        if threshold is None:
            if hits:
                sides.append(f"“{names}” when that is impossible on the {other} input")
        elif reads:
            factor = math.exp(min(threshold if key == "upper" else -threshold, 700.0))
            sides.append(f"“{names}” when that is at least {factor:.4g} times likelier on the {names} input")
        else:
            sides.append(f"“{names}” when it is at {'least' if key == 'upper' else 'most'} {threshold:.4g}")
    if not sides:
        return ""
    suffix = f" The event in words: {claim['event_in_words']}." if claim.get("event_in_words") else ""
    # An audit that stops early learns as it goes: what it guessed by before is not kept.
    attack = "In the last runs the attack" if claim["method"] == "anytime" else "The attack"
    return f"{attack} looks at {subject}, finds " + " and ".join(sides) + f", and makes no guess otherwise.{suffix}"


def named_rates(claim: ClaimRecord) -> dict[str, object] | None:
    """Return the rates of a one-sided event on the input that it finds and on the other, and the most allowed."""
    world, claimed = named_world(claim), claim["claimed"]
    if world is None or not world.runs or not world.other_runs:
        return None
    rate, other_rate = world.hits / world.runs, world.misses / world.other_runs
    if claim["method"] == "variational":  # it is not this event that is certified
        return None
    limit = min(1.0, math.exp(min(claimed["epsilon"], 700.0)) * other_rate + claimed["delta"])
    if not is_epsilon(measure_of(claim)):
        limit = float(measure_from_json(measure_of(claim)).allowed(other_rate))
    return {"name": world.name, "other": world.other, "here": rate, "there": other_rate, "most": limit}


def guess_shares(claim: ClaimRecord) -> dict[str, float] | None:
    """Return the share of right guesses, and the largest that a learner which keeps the claim could reach."""
    counts, epsilon, delta = claim.get("counts") or {}, claim["claimed"]["epsilon"], claim["claimed"]["delta"]
    if claim["method"] not in ("guess", "anytime") or not counts.get("guesses") or not counts.get("runs"):
        return None
    odds = math.exp(-epsilon)
    excess = delta * counts["runs"] / counts["guesses"]
    return {"seen": counts["right"] / counts["guesses"], "most": min(1.0, (1 + excess * odds) / (1 + odds))}
