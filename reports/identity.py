"""What identifies a claim across records, and which claims of two records are the same one."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, cast

from .record_types import ClaimRecord
from .sanitise import is_mechanism

if TYPE_CHECKING:
    from ..mechanisms.measures.measure import MeasureJson

#: The game of a claim: claims of other games are never taken for each other.
_GAME = ("name", "calibration", "surface", "neighbours", "losses", "rounds", "arms")
#: In a claim's own measure: what it promises, the less the better. The rest of a measure says in what it is stated.
LEVELS = ("epsilon", "mu", "rho")


def game(claim: ClaimRecord) -> str:
    """Return the target of a claim and what is played, as text."""
    return _text([*(claim.get(name) for name in _GAME), is_mechanism(claim), claim.get("parameters") or {}])


def measure(claim: ClaimRecord) -> MeasureJson:
    """Return how a claim counts privacy, with its kind; epsilon and delta where the record says nothing else."""
    stated = dict(claim.get("measure") or claim["claimed"])
    if not stated.keys() - {"kind", "epsilon", "delta"}:
        stated = {"delta": 0.0, **stated, "kind": "approximate"}
    return cast("MeasureJson", {"kind": None, **stated})


def details(claim: ClaimRecord) -> dict[str, object]:
    """Return what else identifies a claim and its audit, what matters most first."""
    pair = (claim.get("pair") or {}) if _is_given(claim) else {}
    stated = measure(claim)
    words = (claim.get("replay") or "").split()
    return {
        "left": pair.get("left"),
        "right": pair.get("right"),
        "inputs": claim.get("inputs"),
        "bits": bool(claim.get("bits", "--bits" in words)),
        **{name: value for name, value in stated.items() if name not in LEVELS},
        **{name: value for name, value in stated.items() if name in LEVELS},
        "stop": claim.get("stop"),
        "confidence": claim.get("confidence"),
        "budget": claim.get("budget"),
        "seed": claim.get("seed"),
        "engine": claim.get("engine", "numpy"),
    }


def _is_given(claim: ClaimRecord) -> bool:
    """Tell whether the two worlds were the user's, and not found by a search; older records say it in their replay."""
    words = (claim.get("replay") or "").split()
    return bool(claim.get("pair_given", "--left" in words or "--pair" in words))


def why_another(new: ClaimRecord, old: ClaimRecord) -> str | None:
    """Return what makes two claims of one game another question, in words; None if nothing does."""
    now, then = measure(new), measure(old)
    if now["kind"] != then["kind"]:
        return f"measure changed ({now['kind']}, was {then['kind']})"
    ours, theirs = details(new), details(old)
    asked = ["left", "right", "inputs", "bits", *(name for name in {**then, **now} if name not in LEVELS)]
    changed = [name for name in asked if ours.get(name) != theirs.get(name)]
    if not changed:
        return None
    return f"{' and '.join(changed)} changed{_from_to(changed, ours, theirs)}"


def _from_to(changed: Sequence[str], ours: Mapping[str, object], theirs: Mapping[str, object]) -> str:
    """Return the two values, where one short thing changed."""
    if len(changed) > 1:
        return ""
    now, then = (_text(side.get(changed[0])) for side in (ours, theirs))
    return f" ({now}, was {then})" if len(now) + len(then) < 60 else ""


def matched(
    new: Sequence[ClaimRecord], old: Sequence[ClaimRecord]
) -> tuple[list[tuple[ClaimRecord, ClaimRecord | None]], list[ClaimRecord]]:
    """Return every new claim with the old one that it continues, if any, and the old ones that none continues.

    Claims of one game are matched by all their details where that can be; those left over by the most of them, what
    matters most first. The order of the claims decides only between equal ones.
    """
    before: dict[str, list[int]] = defaultdict(list)
    for j, claim in enumerate(old):
        before[game(claim)].append(j)
    ours, theirs = [details(claim) for claim in new], [details(claim) for claim in old]
    alike = sorted(
        (_difference(ours[i], theirs[j]), i, j) for i, claim in enumerate(new) for j in before.get(game(claim), ())
    )
    partner: dict[int, int] = {}
    taken: set[int] = set()
    for _, i, j in alike:
        if i not in partner and j not in taken:
            partner[i] = j
            taken.add(j)
    pairs = [(claim, old[partner[i]] if i in partner else None) for i, claim in enumerate(new)]
    return pairs, [claim for j, claim in enumerate(old) if j not in taken]


def _difference(a: Mapping[str, object], b: Mapping[str, object]) -> tuple[bool, ...]:
    """Return in which details two claims differ: those that are equal in what matters most come first."""
    return tuple(_text(a.get(name)) != _text(b.get(name)) for name in {**a, **b})


def _text(value: object) -> str:
    return json.dumps(value, sort_keys=True, default=repr)
