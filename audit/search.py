"""Search: which pair of neighbouring loss sequences to audit on.

Where exact laws can be computed the search computes them: for the standard families first, then for the winner with
single rounds changed. Elsewhere families are compared by what a few runs promise, and the winner is mutated. Nothing
here certifies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..learners.ftrl import Ftrl
from ..learners.losses import LOSS_SETS, Linear, Quadratic, Switch
from ..learners.pftal import BanditPftal, Pftal
from ..learners.private_bandit import PrivateBandit
from ..learners.protocol import Learner
from ..mechanisms.claim import Claim
from ..mechanisms.draws import Draws, Floats, Purpose, Stage
from .attacks import ClippedRatio
from .exact import NotExactError, exact_epsilon
from .pairs import Alphabet, Pair, first_round, linear_alphabet
from .sequences import COARSE, NotEnumerableError, batch_of, decisions, has_noiseless_law, sequence_laws

#: Pairs are ranked at this delta at least: the largest ratio alone picks outcomes of probability 1e-23.
RANKING_DELTA = 1e-3
#: Runs of an audit, where the caller does not say, and the standard errors of doubt.
PLANNED, DOUBT = 200_000, 2.33
#: Cells of the grid while searching: epsilon is off by less than 1e-3.
CELLS = COARSE // 2
#: Exact values computed in one search, fewer where each is a sum over many sequences.
MOST_EXACT, FEWEST_EXACT, SEQUENCES = 240, 40, 2**14
#: An improvement of an exact epsilon that counts.
STEP = 1e-4
#: Rounds up to which PFTAL's ends are enumerated, and the probability of anything else that is left out.
MOST_CLIPPED, MISSING = 10, 1e-2
#: The grid of a sum beyond an end: epsilon is off by less than 1e-3.
CLIPPED_POINTS = 128
#: Beyond so many rounds a few families must do: every run of every pair takes its time.
LONG = 256
#: Mutants of the best pair that compete in one round of `climb`, and the least runs that each gets.
MUTANTS, LEAST = 6, 60

#: From a pair, its index and a number of runs to what the runs promise, and the runs played.
Trial = Callable[[Pair, int, int], tuple[float, int]]


# ----------------------------------------------------------------------------------------------------
# What pairs are made of
# ----------------------------------------------------------------------------------------------------


def alphabet_of(learner: Learner, claim: Claim) -> Alphabet:
    """Return the losses to search over: convex ones where the learner takes them, else vectors."""
    if claim.losses == "lipschitz" and isinstance(learner, Pftal | BanditPftal | PrivateBandit):
        return _convex_alphabet(learner, claim)
    return linear_alphabet(claim, learner.arms)


def _convex_alphabet(learner: Pftal | BanditPftal | PrivateBandit, claim: Claim) -> Alphabet:
    """Return extreme 1-Lipschitz losses: linear ones, and quadratic where the learner needs strong convexity.

    Full information sees gradients, so centres lie as far outside the domain as the Lipschitz bound allows; the
    gradients are then nearly ±1. A bandit sees values: a slope that is 0 at an end of the domain, and flat bowls.
    """
    p = learner.arms
    nothing = Linear(slope=(0.0,) * p)
    flat: Any = nothing
    directions = [np.full(p, p**-0.5), *([np.eye(p)[0]] if p > 1 else [])]
    ups_downs: list[tuple[Any, Any]] = []
    up: Any
    down: Any
    if isinstance(learner, PrivateBandit):
        for end in (0.0, 1.0, -1.0):
            up, down = (Linear(slope=tuple(s * np.eye(p)[0]), offset=s * end) for s in (1.0, -1.0))
            ups_downs.append((up, down))
    elif isinstance(learner, BanditPftal):
        highest = 1.0 - learner.curvature * learner.domain.outer_radius**2 / 2
        up, down, flat = (
            Quadratic(curvature=learner.curvature, centre=(0.0,) * p, offset=offset) for offset in (highest, -1.0, 0.0)
        )
        ups_downs.append((up, down))
    else:
        ups_downs += [_steep(learner, slope) for slope in directions]
        if isinstance(ups_downs[0][0], Quadratic):
            flat = Quadratic(curvature=learner.curvature, centre=(0.0,) * p)
    up, down = ups_downs[0]
    rows: list[Any] = [flat, *(loss for both in ups_downs for loss in both)]
    patterns = [(down, up), (up, down), (down, down), (up, up), (flat, flat)]
    if isinstance(learner, Pftal):  # Theorem 3 holds against adversaries that see the actions
        switches = (Switch(below=down, above=up), Switch(below=up, above=down))
        rows += switches
        patterns += [(s, s) for s in switches]
    if claim.neighbours == "zero-out":
        differing = [(loss, nothing) for both in ups_downs for loss in both]
    else:
        differing = ups_downs
    return Alphabet(tuple(differing), tuple(patterns), (flat, up), tuple(rows))


def _steep(learner: Pftal, slope: Any) -> tuple[Any, Any]:
    """Return the losses with the steepest gradients along and against `slope` that the learner's class allows."""
    h, radius = learner.curvature, learner.domain.outer_radius
    if learner.regulariser or h * radius > 1:  # the regulariser makes linear losses strongly convex
        return Linear(slope=tuple(slope)), Linear(slope=tuple(-slope))
    up, down = (Quadratic.steep(tuple(s * slope), curvature=h, radius=radius) for s in (1.0, -1.0))
    return up, down


# ----------------------------------------------------------------------------------------------------
# Families
# ----------------------------------------------------------------------------------------------------


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
    return [*first, *_later(learner, alphabet, rounds)]


def _later(learner: Learner, alphabet: Alphabet, rounds: int) -> Iterator[Pair]:
    """Yield pairs whose round lies later, and for noiseless learners those that freeze what they amplified."""
    batch = batch_of(learner)
    if has_noiseless_law(learner):
        yield from _freezing(learner, alphabet, rounds)
    t0 = batch * (decisions(rounds, batch) // 2)
    if not 0 < t0 < rounds - 1:
        return
    for differing in alphabet.differing[:2]:
        for before in (alphabet.patterns[0], alphabet.patterns[-1]):
            for after in alphabet.patterns[:2]:
                yield alphabet.pair(rounds, t0, batch, differing, alphabet.mates[0], before, after)


def _freezing(learner: Learner, alphabet: Alphabet, rounds: int) -> Iterator[Pair]:
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
            pair = alphabet.pair(rounds, 0, batch, differing, alphabet.mates[0], *[alphabet.patterns[0]] * 2)
            worlds = [np.array(world) for world in (pair.left, pair.right)]
            for world in worlds:
                world[until:] = zero
            yield Pair(*worlds)


# ----------------------------------------------------------------------------------------------------
# By exact epsilon
# ----------------------------------------------------------------------------------------------------


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
    both = np.maximum(p, q) / 2, np.minimum(p, q) / 2
    for one, other, n in ((p, q, runs / 2), (q, p, runs / 2), (*both, runs)):
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.nan_to_num(np.log(one) - np.log(other), nan=-np.inf, posinf=np.inf, neginf=-np.inf)
        order = np.argsort(-ratio, kind="stable")
        mass, false = np.cumsum(one[order]), np.cumsum(other[order])
        low = mass - DOUBT * np.sqrt(mass / n) - delta
        high = false + DOUBT * np.sqrt(false / n) + DOUBT**2 / n
        with np.errstate(divide="ignore", invalid="ignore"):
            bound = np.log(np.maximum(low, 0.0)) - np.log(high)
        best = max(best, float(bound.max()))
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
    known: dict[str, float | None] = field(default_factory=dict)

    def __call__(self, pair: Pair) -> float | None:
        """Return what a pair promises; None where no exact method covers it, or the budget is spent."""
        key = repr(pair.to_json())
        if key not in self.known:
            if self.left <= 0:
                return None
            self.known[key] = found = self._compute(pair)
            self.left -= found is not None
        return self.known[key]

    def _compute(self, pair: Pair) -> float | None:
        surface, delta = self.claim.surface, self.delta
        if surface == "actions" and isinstance(self.learner, Pftal):
            laws = clipped_laws(self.learner, pair)
            return None if laws is None else expected_bound(*laws, self.claim.delta, self.runs)
        try:
            if surface == "actions" and not isinstance(self.learner, Ftrl):
                return expected_bound(*sequence_laws(self.learner, pair, cells=CELLS), self.claim.delta, self.runs)
            return exact_epsilon(self.learner, pair, surface=surface, deltas=(delta,), cells=CELLS)[delta]
        except (NotExactError, NotEnumerableError):
            return None

    def best(self, pairs: Sequence[Pair]) -> tuple[Pair, float] | None:
        """Return the first of the worst pairs."""
        values = [(pair, value) for pair in pairs if (value := self(pair)) is not None]
        return max(values, key=lambda found: round(found[1], 6)) if values else None


def clipped_laws(learner: Pftal, pair: Pair, *, points: int = CLIPPED_POINTS) -> tuple[Floats, Floats] | None:
    """Return the laws of one-dimensional PFTAL's actions where nearly all lie at the ends of its interval, else None.

    With losses of small curvature an action inside the interval has a probability of the order of the curvature; the
    laws are what remains, made to sum to 1.

    Parameters
    ----------
    points : int
        Of the grid of a sum beyond an end.
    """
    if not ClippedRatio.applies(learner, pair, "actions") or pair.rounds > MOST_CLIPPED:
        return None
    law: Any = ClippedRatio(learner, pair).likelihood
    law.points = points
    signs = np.indices((2,) * (pair.rounds - 1)).reshape(pair.rounds - 1, -1) * 2.0 - 1.0
    first = learner.project(np.zeros((1, signs.shape[1])))
    actions = np.concatenate([first[None], signs[:, None] * learner.domain.outer_radius])
    law._observe(learner.centres(actions))
    nothing = np.zeros((1, signs.shape[1]))
    laws = []
    for world in (law.pair.left, law.pair.right):
        sums = law._cumulative(actions, world)
        powers = [1 << k for k in range(pair.rounds.bit_length()) if 1 << k < pair.rounds]
        laws.append(np.prod([law._message(t, nothing, sums)[0] for t in powers], axis=0))
    if min(law.sum() for law in laws) < 1 - MISSING:
        return None
    return laws[0] / laws[0].sum(), laws[1] / laws[1].sum()


def find_exactly(
    learner: Learner, claim: Claim, alphabet: Alphabet, rounds: int, *, runs: int = PLANNED
) -> Pair | None:
    """Return the pair that promises most by exact laws; None if there are none for any family.

    The family that differs in the first round wins a suffix and an extreme; then later rounds, prefixes and
    freezing are tried with these; then single rounds and single entries are changed while epsilon grows.
    """
    batch = batch_of(learner)
    sequences = float(learner.arms) ** decisions(rounds, batch)
    budget = int(max(FEWEST_EXACT, min(MOST_EXACT, SEQUENCES / max(sequences, 1.0))))
    oracle = _Oracle(learner, claim, max(claim.delta, RANKING_DELTA), runs, budget)
    first = first_round(alphabet, rounds, batch)
    found = oracle.best(first)
    if found is None:
        return None
    values = [value for pair in first if (value := oracle(pair)) is not None]
    flat = len(alphabet.patterns) * (len(alphabet.mates) if batch > 1 else 1)
    groups = [values[i : i + flat] for i in range(0, len(values), flat)]
    if rounds == 1 or all(max(group) - min(group) < STEP for group in groups):
        return found[0]  # what the other rounds hold changes nothing
    later = [*_freezing(learner, alphabet, rounds)] if has_noiseless_law(learner) else []
    for t0 in range(batch, rounds - 1, batch):
        for before in alphabet.patterns:
            winner = _moved(found[0], alphabet, t0, batch, before)
            later.append(winner)
    found = oracle.best([found[0], *later]) or found
    return _ascend(oracle, alphabet, claim, *found)[0]


def _moved(pair: Pair, alphabet: Alphabet, t0: int, batch: int, before: tuple[Any, Any]) -> Pair:
    """Return the pair with its differing round and its suffix moved to t0, behind a prefix."""
    shift = t0 - pair.t0
    prefix = [before[t % 2] for t in range(t0)]
    worlds = [[*prefix, *list(world)[pair.t0 : pair.rounds - shift]] for world in (pair.left, pair.right)]
    return Pair(*worlds)


def _ascend(oracle: _Oracle, alphabet: Alphabet, claim: Claim, pair: Pair, value: float) -> tuple[Pair, float]:
    """Change one round, or one entry, at a time while epsilon grows."""
    grew = True
    while grew and oracle.left > 0:
        grew = False
        for t in (*range(pair.t0, pair.rounds), *range(pair.t0)):
            for changed in changes(pair, t, alphabet, claim):
                new = oracle(changed)
                if new is not None and new > value + STEP:
                    pair, value, grew = changed, new, True
    return pair, value


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


def rank_exactly(
    learner: Learner, claim: Claim, pairs: Sequence[Pair], *, delta: float | None = None
) -> list[Pair] | None:
    """Return the pairs in the order of their exact epsilon, worst first; None if there is no exact method."""
    delta = max(claim.delta, RANKING_DELTA) if delta is None else delta
    try:
        epsilons = [
            exact_epsilon(learner, pair, surface=claim.surface, deltas=(delta,), cells=COARSE)[delta] for pair in pairs
        ]
    except NotExactError:
        return None
    order = np.argsort([-round(e, 6) for e in epsilons], kind="stable")
    return [pairs[i] for i in order]


def worst_exactly(
    learner: Learner, claim: Claim, rounds: int, pairs: Sequence[Pair] | None, deltas: Sequence[float]
) -> tuple[dict[float, float], Pair]:
    """Return the exact epsilon at each delta on the worst pair, and that pair.

    Parameters
    ----------
    pairs : sequence of Pair, optional
        The pairs to compare; by default the standard families: an extreme first round, then a constant or alternating
        suffix. They are compared at the largest of `deltas`, where rare outcomes count least.

    Raises
    ------
    NotExactError
        If no exact method covers the learner.
    ValueError
        If a pair lies outside the claim's loss set.
    """
    if pairs is None:
        pairs = first_round(alphabet_of(learner, claim), rounds, batch_of(learner))
    for pair in pairs:
        if pair.arms is not None and pair.arms != learner.arms:
            raise ValueError(f"the pair has {pair.arms} arms, but the learner has {learner.arms}")
        pair.check(claim)
    ranked = rank_exactly(learner, claim, pairs, delta=max(deltas))
    worst = pairs[0] if ranked is None else ranked[0]
    return exact_epsilon(learner, worst, surface=claim.surface, deltas=deltas), worst


# ----------------------------------------------------------------------------------------------------
# By runs
# ----------------------------------------------------------------------------------------------------


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
        return _moved(pair, alphabet, t0, batch, alphabet.patterns[generator.integers(len(alphabet.patterns))])
