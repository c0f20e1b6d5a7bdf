"""Search: which pair of neighbouring loss sequences to audit on.

Where exact laws can be computed the search computes them. Elsewhere families are compared by what a few runs promise,
and an optimiser proposes more. Nothing here certifies.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ...learners.abilities import batch_of
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ..play.pairs import Pair
from ..spaces.families import first_round, later, unlike
from ..spaces.loss_choices import alphabet_of
from ..spaces.pair_space import PairSpace
from .exact_search import PLANNED, find_exactly
from .proposals import Proposals
from .race import Heat, halving, race

#: Beyond so many rounds few families are tried: a run of each pair takes time in proportion to the rounds.
LONG = 256
#: Shares of the runs for the families and for what is proposed beside them; the rest is for the final. Without
#: proposals it has as much as they would.
FAMILIES, PROPOSED = 0.3, 0.4
#: Proposals, at most and at least; the runs that each gets at least; and the pairs of the final.
MAX_TRIALS, MIN_TRIALS, MIN_RUNS, FINALISTS = 100, 4, 60, 4
#: From a pair, its index, a number of fresh runs, and how many of its last ones judge it too, to what all of these
#: promise, and the runs played.
Trial = Callable[[Pair, int, int, int], tuple[float, int]]


def candidates(learner: Learner, claim: Claim, *, rounds: int, runs: int = PLANNED) -> list[Pair]:
    """Return the pairs to audit on: the one that an exact search finds, or else the families to compare by runs.

    Parameters
    ----------
    runs : int
        Planned for the certificate: a pair whose worst event is too rare for them is no use.
    """
    alphabet = alphabet_of(learner, claim)
    worst = find_exactly(learner, claim, alphabet, rounds, runs=runs)
    if worst is not None:
        return [worst]
    if rounds > LONG:
        small_alphabet = replace(
            alphabet,
            differing=alphabet.differing[:2],
            patterns=alphabet.patterns[:2],
            others_in_batch=alphabet.others_in_batch[:1],
        )
        return unlike(first_round(small_alphabet, rounds, batch_of(learner)))
    first = first_round(alphabet, rounds, batch_of(learner))
    return unlike([*first, *later(learner, alphabet, rounds)])


def climb(
    options: Sequence[Pair],
    trial: Trial,
    budget: int,
    *,
    space: PairSpace | None = None,
    runs_per_pair: int = MIN_RUNS,
    seed: int = 0,
    awaited: Sequence[int] = (),
) -> tuple[Pair, int, int]:
    """Return the pair that wins, its index, and the runs spent.

    Families compete by successive halving. Then a tree-structured Parzen estimator (optuna), which knows what they
    promised, proposes pairs from a space, one after the other. Since the best of many noisy values is too good, the
    best proposals and the best family compete once more, on fresh runs. Every pair has an index of its own, so that no
    stream of random numbers serves two.

    Parameters
    ----------
    options : sequence of Pair
        The families.
    trial : callable
        `trial(pair, index, runs, before)` plays fresh runs at the search stage and returns what they and the last
        `before` runs of the pair promise together, and how many it played.
    budget : int
        Runs in all.
    space : PairSpace, optional
        Where pairs are proposed from. None where the pairs are the user's own: then they only compete.
    runs_per_pair : int
        Runs for each proposal, at least; they are not used where the budget is too small for a few.
    seed : int
        Of the proposals.
    awaited : sequence of int
        Which options only compete in the final: they are known for what so few runs of a family do not show.
    """
    families = [option for option in enumerate(options) if option[0] not in awaited]
    last = [(index, options[index]) for index in awaited]
    trials = min(MAX_TRIALS, int(PROPOSED * budget) // runs_per_pair)
    if space is None or len(options) == 1 or trials < MIN_TRIALS:
        best, runs_spent, _ = raced(families, trial, int((1 - PROPOSED * bool(last)) * budget))
        (index, pair), n_runs, _ = raced([best, *last], trial, budget - runs_spent)
        return pair, index, runs_spent + n_runs
    best, runs_spent, promises = raced(families, trial, int(FAMILIES * budget))
    proposals = Proposals(space, seed)
    for index, pair in families:
        proposals.know(pair, promises[index])
    improved: list[tuple[int, Pair]] = []
    runs_per_pair = int(PROPOSED * budget) // trials
    for _ in range(trials):
        proposed = proposals.next()
        if proposed is None:
            break
        index = len(options) + len(improved)
        promises[index], n_runs = trial(proposed, index, runs_per_pair, 0)
        proposals.tell(promises[index])
        improved.append((index, proposed))
        runs_spent += n_runs
    improved.sort(key=lambda index_and_pair: -promises[index_and_pair[0]])
    (index, pair), n_runs, _ = raced(
        [best, *last, *improved[: max(1, FINALISTS - 1 - len(last))]], trial, budget - runs_spent
    )
    return pair, index, runs_spent + n_runs


def raced(
    entrants: Sequence[tuple[int, Pair]], trial: Trial, budget: int
) -> tuple[tuple[int, Pair], int, dict[int, float]]:
    """Return the winner of successive halving, the runs spent, and what each pair promised last, by its index.

    All runs that a pair has had in it judge the pair: those of the last stage alone are the fewer, the more pairs
    there were. No run from before it does: who comes from many proposals was the luckiest on these.
    """
    runs_spent, before, promises = 0, 0, dict[int, float]()

    def judge(survivors: Sequence[tuple[int, Pair]], heat: Heat) -> list[float]:
        nonlocal runs_spent, before
        runs_per_pair = max(10, heat.runs // len(survivors))
        for index, pair in survivors:
            promises[index], n_runs = trial(pair, index, runs_per_pair, before)
            runs_spent += n_runs
        before += runs_per_pair
        return [promises[index] for index, _ in survivors]

    return race(entrants, halving(len(entrants), budget), judge)[0], runs_spent, promises
