"""The random changes that the search over pairs made before it had an optimiser, to compare with."""

from dataclasses import dataclass

import numpy as np

from overclaim.audit.play.pairs import Pair
from overclaim.audit.search.pair_search import raced
from overclaim.audit.spaces.loss_choices import Alphabet, alphabet_of
from overclaim.audit.spaces.pair_space import changes, moved
from overclaim.learners.abilities import batch_of
from overclaim.learners.protocol import Learner
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Purpose, Stage

#: Changed pairs of the best one that compete in one round, and the least runs that each gets.
CHANGED, LEAST = 6, 60


def halve_and_change(options, trial, budget, changes):
    """Return the pair that wins, its index, and the runs spent: successive halving, then changes of the winner."""
    alive = list(enumerate(options))
    families = budget // 2
    best, spent, _ = raced(alive, trial, families)
    number = len(options)
    each_round = max((budget - families) // 3, 2 * LEAST * CHANGED)
    while spent + each_round <= budget:
        changed = changes(best[1], CHANGED, number)
        if not changed:
            break
        alive = [best, *enumerate(changed, start=number)]
        number += len(changed)
        winner, used, _ = raced(alive, trial, each_round)
        spent += used
        best = winner
    return best[1], best[0], spent


@dataclass(frozen=True)
class RandomChanges:
    """Random changes of a pair: one round, a whole stretch of rounds, or the place of the differing one."""

    learner: Learner
    claim: Claim
    seed: int

    def __call__(self, pair: Pair, count: int, number: int) -> list[Pair]:
        """Return `count` distinct changed pairs.

        Parameters
        ----------
        number : int
            Of the first changed_pair: with the seed, the key of the random choices.
        """
        alphabet = alphabet_of(self.learner, self.claim)
        generator = Draws(self.seed, Stage.SEARCH, number).stream(Purpose.ADVERSARY)
        changed_pairs: dict[str, Pair] = {}
        for _ in range(8 * count):
            changed_pair = self._changed_pair(pair, alphabet, generator)
            if changed_pair is not None and changed_pair.key != pair.key:
                changed_pairs.setdefault(changed_pair.key, changed_pair)
            if len(changed_pairs) == count:
                break
        return list(changed_pairs.values())

    def _changed_pair(self, pair: Pair, alphabet: Alphabet, generator: np.random.Generator) -> Pair | None:
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
        return moved(pair, t0, alphabet.patterns[generator.integers(len(alphabet.patterns))])
