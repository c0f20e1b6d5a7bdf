"""Changes of a pair that the exact search tries: single rounds and entries, and the differing round's place."""

from __future__ import annotations

from collections.abc import Iterator

from ...learners.problems.losses import LOSS_SETS
from ...mechanisms.claim import Claim
from ..play.pairs import Pair, same_loss
from .loss_choices import Alphabet


def changes(pair: Pair, t: int, alphabet: Alphabet, claim: Claim) -> Iterator[Pair]:
    """Yield the pairs that differ from this one in round t: other losses of the alphabet, and other single entries."""
    worlds = [list(pair.left), list(pair.right)]

    def put(left: object, right: object) -> Iterator[Pair]:
        old = worlds[0][t], worlds[1][t]
        if not (same_loss(left, old[0]) and same_loss(right, old[1])) and (t != pair.t0 or not same_loss(left, right)):
            yield Pair(*([*world[:t], new, *world[t + 1 :]] for world, new in zip(worlds, (left, right), strict=True)))

    if t == pair.t0:
        for left, right in alphabet.differing:
            yield from put(left, right)
            if claim.neighbours == "replace":
                yield from put(right, left)
    else:
        for row in alphabet.rows:
            yield from put(row, row)
    if not alphabet.box or (t == pair.t0 and claim.neighbours != "replace"):
        return
    losses = LOSS_SETS[claim.losses]
    for arm in range(len(worlds[0][t])):
        for value in (losses.low, losses.high, (losses.low + losses.high) / 2):
            if t != pair.t0:
                row = worlds[0][t].copy()
                row[arm] = value
                yield from put(row, row)
                continue
            for side in (0, 1):
                both = [worlds[0][t].copy(), worlds[1][t].copy()]
                both[side][arm] = value
                yield from put(*both)


def moved(pair: Pair, t0: int, before: tuple[object, object]) -> Pair:
    """Return the pair with its differing round and its suffix moved to t0, behind a prefix."""
    shift = t0 - pair.t0
    prefix = [before[t % 2] for t in range(t0)]
    worlds = [[*prefix, *list(world)[pair.t0 : pair.rounds - shift]] for world in (pair.left, pair.right)]
    return Pair(*worlds)
