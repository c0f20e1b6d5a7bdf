"""Mutations of a pair that a search tries: single rounds and entries, stretches, and the differing round's place."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learners.losses import LOSS_SETS
from ..learners.protocol import Learner
from ..mechanisms.claim import Claim
from ..mechanisms.draws import Draws, Purpose, Stage
from .alphabets import Alphabet, alphabet_of
from .pairs import Pair
from .sequences import batch_of


def changes(pair: Pair, t: int, alphabet: Alphabet, claim: Claim) -> Iterator[Pair]:
    """Yield the pairs that differ from this one in round t: other losses of the alphabet, and other single entries."""
    worlds = [list(pair.left), list(pair.right)]

    def put(left: Any, right: Any) -> Iterator[Pair]:
        old = worlds[0][t], worlds[1][t]
        if not (_equal(left, old[0]) and _equal(right, old[1])) and (t != pair.t0 or not _equal(left, right)):
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


def _equal(a: Any, b: Any) -> bool:
    return bool(np.array_equal(a, b)) if isinstance(a, np.ndarray) else bool(a == b)


def moved(pair: Pair, alphabet: Alphabet, t0: int, batch: int, before: tuple[Any, Any]) -> Pair:
    """Return the pair with its differing round and its suffix moved to t0, behind a prefix."""
    shift = t0 - pair.t0
    prefix = [before[t % 2] for t in range(t0)]
    worlds = [[*prefix, *list(world)[pair.t0 : pair.rounds - shift]] for world in (pair.left, pair.right)]
    return Pair(*worlds)


@dataclass(frozen=True)
class Mutations:
    """Random changes of a pair: one round, a whole stretch of rounds, or the place of the differing one."""

    learner: Learner
    claim: Claim
    seed: int

    def __call__(self, pair: Pair, count: int, number: int) -> list[Pair]:
        """Return `count` distinct mutants.

        Parameters
        ----------
        number : int
            Of the first mutant: with the seed, the key of the random choices.
        """
        alphabet = alphabet_of(self.learner, self.claim)
        generator = Draws(self.seed, Stage.SEARCH, number).stream(Purpose.ADVERSARY)
        found: dict[str, Pair] = {}
        for _ in range(8 * count):
            mutant = self._mutant(pair, alphabet, generator)
            if mutant is not None and repr(mutant.to_json()) != repr(pair.to_json()):
                found.setdefault(repr(mutant.to_json()), mutant)
            if len(found) == count:
                break
        return list(found.values())

    def _mutant(self, pair: Pair, alphabet: Alphabet, generator: np.random.Generator) -> Pair | None:
        kind, rounds, batch = generator.integers(3), pair.rounds, batch_of(self.learner)
        if kind == 0:  # one round
            options = list(changes(pair, int(generator.integers(rounds)), alphabet, self.claim))
            return options[generator.integers(len(options))] if options else None
        if kind == 1 and rounds > 2:  # a stretch behind the differing round, or before it
            start, end = sorted(int(t) for t in generator.integers(rounds + 1, size=2))
            row = alphabet.rows[generator.integers(len(alphabet.rows))]
            worlds = [
                [row if start <= t < end and t != pair.t0 else loss for t, loss in enumerate(world)]
                for world in (pair.left, pair.right)
            ]
            return Pair(*worlds)
        starts = range(0, rounds - 1, batch)
        if not starts:
            return None
        t0 = int(starts[generator.integers(len(starts))])
        if t0 <= pair.t0:
            shift = pair.t0 - t0
            worlds = [
                [*list(world)[:t0], *list(world)[pair.t0 :], *[world[-1]] * shift] for world in (pair.left, pair.right)
            ]
            return Pair(*worlds) if pair.t0 < rounds - 1 else None
        return moved(pair, alphabet, t0, batch, alphabet.patterns[generator.integers(len(alphabet.patterns))])
