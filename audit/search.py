"""Search: which pair of neighbouring loss sequences to audit on.

Where exact laws can be computed the search computes them. Elsewhere families are compared by what a few runs promise,
and the winner is mutated. Nothing here certifies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..learners.protocol import Learner
from ..mechanisms.claim import Claim
from .alphabets import alphabet_of
from .exact_search import PLANNED, find_exactly
from .families import first_round, later
from .mutations import Mutations
from .pairs import Pair
from .sequences import batch_of

#: Beyond so many rounds a few families must do: every run of every pair takes its time.
LONG = 256
#: Mutants of the best pair that compete in one round of `climb`, and the least runs that each gets.
MUTANTS, LEAST = 6, 60
#: From a pair, its index and a number of runs to what the runs promise, and the runs played.
Trial = Callable[[Pair, int, int], tuple[float, int]]


def candidates(learner: Learner, claim: Claim, *, rounds: int, runs: int = PLANNED) -> list[Pair]:
    """Return the pairs to audit on: the one that an exact search finds, or else the families to compare by runs.

    Parameters
    ----------
    runs : int
        Planned for the certificate: a pair whose worst event is too rare for them is no use.
    """
    alphabet = alphabet_of(learner, claim)
    found = find_exactly(learner, claim, alphabet, rounds, runs=runs)
    if found is not None:
        return [found]
    if rounds > LONG:
        few = replace(
            alphabet, differing=alphabet.differing[:2], patterns=alphabet.patterns[:2], mates=alphabet.mates[:1]
        )
        return first_round(few, rounds, batch_of(learner))
    first = first_round(alphabet, rounds, batch_of(learner))
    return [*first, *later(learner, alphabet, rounds)]


def climb(
    options: Sequence[Pair],
    trial: Trial,
    budget: int,
    *,
    mutate: Mutations | None = None,
) -> tuple[Pair, int, int]:
    """Return the pair that wins, its index, and the runs spent: successive halving, then mutation of the winner.

    A round of `climb` halves mutants of the best pair together with it on new runs of the same budget, until half of
    the runs that mutation may use are spent without success. Mutants get indices of their own, so that no stream of
    random numbers serves two pairs.

    Parameters
    ----------
    options : sequence of Pair
        The families.
    trial : callable
        `trial(pair, index, runs)` plays runs at the search stage and returns what they promise, and the runs played.
    budget : int
        Runs in all.
    mutate : Mutations, optional
        None where the pairs are the user's own.
    """
    alive = list(enumerate(options))
    families = budget if mutate is None else budget // 2
    best, spent = _halve(alive, trial, families)
    if mutate is None or len(options) == 1:
        return best[1], best[0], spent
    number = len(options)
    each_round = max((budget - families) // 3, 2 * LEAST * MUTANTS)
    while spent + each_round <= budget:
        mutants = mutate(best[1], MUTANTS, number)
        if not mutants:
            break
        alive = [best, *enumerate(mutants, start=number)]
        number += len(mutants)
        winner, used = _halve(alive, trial, each_round)
        spent += used
        best = winner
    return best[1], best[0], spent


def _halve(alive: list[tuple[int, Pair]], trial: Trial, budget: int) -> tuple[tuple[int, Pair], int]:
    """Return the winner of successive halving, and the runs spent."""
    stages = max(1, (len(alive) - 1).bit_length())
    spent = 0
    while len(alive) > 1:
        each = max(10, budget // stages // len(alive))
        worth = {}
        for index, pair in alive:
            worth[index], used = trial(pair, index, each)
            spent += used
        alive = sorted(alive, key=lambda one: -worth[one[0]])[: len(alive) // 2]
    return alive[0], spent
