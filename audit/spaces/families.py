"""Families of pairs: an extreme first round, a later one, and suffixes that freeze what was amplified."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ...learners.abilities import batch_of, decisions, has_noiseless_law
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ..play.pairs import Pair
from .loss_choices import Alphabet, alphabet_of


def first_round(alphabet: Alphabet, rounds: int, batch: int) -> list[Pair]:
    """Return the pairs of an alphabet that differ in the first round, then hold a constant or alternating suffix.

    The first round's loss reaches the most nodes of a tree and the most later updates. For a learner that holds an arm
    for `batch` rounds, the rest of the first batch has losses of its own.
    """
    batch_losses = alphabet.others_in_batch if batch > 1 else alphabet.others_in_batch[:1]
    suffixes = alphabet.patterns if rounds > 1 else alphabet.patterns[:1]
    return [
        alphabet.pair(rounds, 0, batch, differing, in_batch, suffix, suffix)
        for differing in alphabet.differing
        for in_batch in batch_losses
        for suffix in suffixes
    ]


def standard_pairs(learner: Learner, claim: Claim, rounds: int) -> list[Pair]:
    """Return the pairs of `first_round` for a learner's claim, each once."""
    return unlike(first_round(alphabet_of(learner, claim), rounds, batch_of(learner)))


def unlike(pairs: Iterable[Pair]) -> list[Pair]:
    """Return the pairs without those that an earlier one equals: in short games, patterns of rounds are the same."""
    return list({pair.key: pair for pair in pairs}.values())


def later(learner: Learner, alphabet: Alphabet, rounds: int) -> Iterator[Pair]:
    """Yield pairs whose round lies later, and for noiseless learners those that freeze what they amplified."""
    batch = batch_of(learner)
    if has_noiseless_law(learner):
        yield from freezing(learner, alphabet, rounds)
    t0 = batch * (decisions(rounds, batch) // 2)
    if not 0 < t0 < rounds - 1:
        return
    for differing in alphabet.differing[:2]:
        for before in (alphabet.patterns[0], alphabet.patterns[-1]):
            for after in alphabet.patterns[:2]:
                yield alphabet.pair(rounds, t0, batch, differing, alphabet.others_in_batch[0], before, after)


def freezing(learner: Learner, alphabet: Alphabet, rounds: int) -> Iterator[Pair]:
    """Yield pairs that amplify the difference for a while, then show the same law in all rounds that are left.

    A loss of 0 leaves the weights of an importance-weighted learner as they are.
    """
    batch = batch_of(learner)
    zero = next((row for row in alphabet.rows if isinstance(row, np.ndarray) and not row.any()), None)
    if zero is None:
        return
    for differing in alphabet.differing[:2]:
        for until in sorted({batch * (decisions(rounds, batch) * k // 4) for k in (1, 2, 3)}):
            if not 1 < until < rounds:
                continue
            pair = alphabet.pair(rounds, 0, batch, differing, alphabet.others_in_batch[0], *[alphabet.patterns[0]] * 2)
            worlds = [np.array(world) for world in (pair.left, pair.right)]
            for world in worlds:
                world[until:] = zero
            yield Pair(*worlds)
