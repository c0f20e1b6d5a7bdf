"""Search by exact laws: the standard families first, then the winner with single rounds changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ...learners.abilities import batch_of, decisions, has_noiseless_law
from ...learners.blame import blaming
from ...learners.laws import NotEnumerableError, OutcomeLaw
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded
from ..execution.progress import steps
from ..laws.exact import NotExactError, exact_epsilon, law_of
from ..laws.sequences import COARSE, sequence_laws
from ..play.pairs import Pair, check_pair
from ..spaces.families import first_round, freezing, standard_pairs
from ..spaces.loss_choices import Alphabet
from ..spaces.pair_space import changes, moved
from ..statistics.chooser import Evidence, choose_event

#: Pairs are ranked at this delta at least: the largest ratio alone picks outcomes of probability 1e-23.
RANKING_DELTA = 1e-3
#: The error at which what pairs promise in other measures than epsilon is compared.
RANKING_ALPHA = 0.01
#: Runs of an audit, where the caller does not say, and the standard errors of doubt.
PLANNED, STANDARD_ERRORS = 200_000, 2.33
#: Cells of the grid while searching: epsilon is off by less than 1e-3.
CELLS = COARSE // 2
#: Exact values computed in one search, fewer where each is a sum over many sequences.
MAX_EXACT, MIN_EXACT, SEQUENCES = 240, 40, 2**14
#: An improvement of an exact epsilon that counts.
STEP = 1e-4


def expected_bound(p: Floats, q: Floats, delta: float, runs: int) -> float:
    """Return about what a perfect attack certifies: ln((P - delta) / Q) with the doubt of `runs` runs, at its best.

    Parameters
    ----------
    p, q : arrays (outcomes,)
        Probabilities of the same outcomes in the two worlds.
    delta : float
    runs : int
        Of both worlds together.
    """
    best = 0.0
    # Events towards either world, in its own runs; and guesses both ways, in all runs.
    guesses = np.maximum(p, q) / 2, np.minimum(p, q) / 2
    for numerator, denominator, n in ((p, q, runs / 2), (q, p, runs / 2), (*guesses, runs)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.log(numerator) - np.log(denominator), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        order = np.argsort(-ratio, kind="stable")
        mass, false = np.cumsum(numerator[order]), np.cumsum(denominator[order])
        low = mass - STANDARD_ERRORS * np.sqrt(mass / n) - delta
        high = false + STANDARD_ERRORS * np.sqrt(false / n) + STANDARD_ERRORS**2 / n
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.log(np.maximum(low, 0.0)) - np.log(high)
        best = max(best, float(bound.max(initial=0.0)))
    return best


@dataclass
class _Oracle:
    """What exact laws promise of pairs, each computed once, as often as the budget allows.

    Where sequences are enumerated this is the bound to expect from the planned runs, else epsilon at a delta that
    leaves rare outcomes out.
    """

    learner: Learner
    claim: Claim
    delta: float
    runs: int
    left: int
    promises: dict[str, float | None] = field(default_factory=dict)

    def __call__(self, pair: Pair) -> float | None:
        """Return what a pair promises, rounded; None where no exact method covers it, or the budget is spent."""
        key = pair.key
        if key not in self.promises:
            if self.left <= 0:
                return None
            epsilon = self._compute(pair)
            self.promises[key] = None if epsilon is None else float(rounded(epsilon))
            self.left -= epsilon is not None
        return self.promises[key]

    def _compute(self, pair: Pair) -> float | None:
        view = self.claim.view
        if pair.shows_nothing(view):
            return 0.0
        try:
            law = law_of(self.learner, pair, view, fine=False)
            if law is None:
                return self._promise(*sequence_laws(self.learner, pair, cells=CELLS))
            return self._promise(*law.laws()) if isinstance(law, OutcomeLaw) else law.epsilon(self.delta)
        except (NotExactError, NotEnumerableError):
            return None

    def _promise(self, p: Floats, q: Floats) -> float:
        """Return the bound to expect of two laws, in the unit of the claim's measure."""
        if self.claim.measure.is_epsilon:
            return expected_bound(p, q, self.claim.delta, self.runs)
        possible = (p > 0) | (q > 0)
        with np.errstate(divide="ignore"):
            scores = np.log(p[possible]) - np.log(q[possible])
        laws = Evidence(laws=(scores, p[possible], q[possible]))
        return choose_event(laws, self.claim.measure, alpha=RANKING_ALPHA, runs=self.runs)[1]

    def best(self, pairs: Sequence[Pair]) -> tuple[Pair, float] | None:
        """Return the first of the worst pairs."""
        values = [(pair, value) for pair in pairs if (value := self(pair)) is not None]
        return max(values, key=lambda pair_and_epsilon: round(pair_and_epsilon[1], 6)) if values else None


def find_exactly(
    learner: Learner, claim: Claim, alphabet: Alphabet, rounds: int, *, runs: int = PLANNED
) -> Pair | None:
    """Return the pair that promises most by exact laws; None if there are none for any family.

    The family that differs in the first round wins a suffix and an extreme; then later rounds, prefixes and
    freezing are tried with these; then single rounds and single entries are changed while epsilon grows.
    """
    batch = batch_of(learner)
    sequences = learner.arms ** decisions(rounds, batch)  # more than any float holds over long horizons
    budget = max(MIN_EXACT, min(MAX_EXACT, SEQUENCES // max(sequences, 1)))
    oracle = _Oracle(learner, claim, max(claim.delta, RANKING_DELTA), runs, budget)
    first = first_round(alphabet, rounds, batch)
    worst = oracle.best(first)
    if worst is None:
        return None
    values = [value for pair in first if (value := oracle(pair)) is not None]
    flat = len(alphabet.patterns) * (len(alphabet.others_in_batch) if batch > 1 else 1)
    groups = [values[i : i + flat] for i in range(0, len(values), flat)]
    if rounds == 1 or all(max(group) - min(group) < STEP for group in groups):
        return worst[0]  # what the other rounds hold changes nothing
    candidates = [*freezing(learner, alphabet, rounds)] if has_noiseless_law(learner) else []
    for t0 in range(batch, rounds - 1, batch):
        candidates += [moved(worst[0], t0, before) for before in alphabet.patterns]
    worst = oracle.best([worst[0], *candidates]) or worst
    return _ascend(oracle, alphabet, claim, *worst)


def _ascend(oracle: _Oracle, alphabet: Alphabet, claim: Claim, pair: Pair, value: float) -> Pair:
    """Change one round, or one entry, at a time while epsilon grows."""
    grew = True
    while grew and oracle.left > 0:
        grew = False
        for t in (*range(pair.t0, pair.rounds), *range(pair.t0)):
            for variant in changes(pair, t, alphabet, claim):
                new = oracle(variant)
                if new is not None and new > value + STEP:
                    pair, value, grew = variant, new, True
    return pair


def worst_of(learner: Learner, claim: Claim, pairs: Sequence[Pair]) -> int | None:
    """Return which pair's exact epsilon is largest; None if there is no exact method for one of them."""
    delta = max(claim.delta, RANKING_DELTA)
    try:
        epsilons = [
            exact_epsilon(learner, pair, view=claim.view, deltas=(delta,), cells=COARSE)[delta] for pair in pairs
        ]
    except NotExactError:
        return None
    return int(np.argmax(rounded(epsilons, 6)))


@blaming
def worst_exactly(
    learner: Learner, claim: Claim, rounds: int, pairs: Sequence[Pair] | None, deltas: Sequence[float]
) -> tuple[dict[float, float], Pair, list[str]]:
    """Return the exact epsilon at each delta on the worst pair, that pair, and why others have no exact value.

    Parameters
    ----------
    pairs : sequence of Pair, optional
        The pairs to compare; by default the standard families: an extreme first round, then a constant or alternating
        suffix. They are compared at the largest of `deltas` at which any has an epsilon: rare outcomes count least
        there.

    Raises
    ------
    NotExactError
        If no exact method covers the learner on any pair, or on the worst one.
    ValueError
        If a pair lies outside the claim's loss set.
    """
    if pairs is None:
        pairs = standard_pairs(learner, claim, rounds)
    for pair in pairs:
        check_pair(pair, claim, learner)
    values: dict[int, dict[float, float]] = {}
    missing: list[NotExactError] = []
    for i, pair in enumerate(steps(pairs, f"exact values of {len(pairs)} pairs of inputs")):
        try:
            values[i] = exact_epsilon(learner, pair, view=claim.view, deltas=deltas, cells=COARSE)
        except NotExactError as error:
            missing.append(error)
    if not values:
        raise missing[0]
    for delta in sorted(deltas, reverse=True):
        epsilons = rounded([epsilon[delta] for epsilon in values.values()], 6)
        if epsilons.max() > 0:
            break
    worst = pairs[list(values)[int(np.argmax(epsilons))]]
    whys = [str(error) for error in missing]
    return exact_epsilon(learner, worst, view=claim.view, deltas=deltas), worst, whys
