"""Shrink: the smallest horizon, the fewest arms and the simplest losses that still falsify, certified afresh.

As in property-based testing, a witness is worth more the smaller it is. Every step is judged by the exact epsilon
where there is one, else by a trial audit; the last pair is then certified on runs that nothing before has seen.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import numpy as np

from ..learners.losses import LOSS_SETS, Linear, Quadratic
from ..learners.protocol import Learner, LearnerError
from ..mechanisms.claim import Claim
from .alphabets import alphabet_of
from .exact import NotExactError, exact_epsilon
from .exact_search import RANKING_DELTA, find_exactly
from .falsify import falsify
from .pairs import Pair
from .power import detectable_epsilon
from .sequences import COARSE
from .tasks import Task
from .verdict import Result, Verdict

#: The seed of the last certificate is the audit's own plus this; trials use later ones. No stream is drawn twice.
FRESH = 1_000_000
#: Runs of a trial audit where no exact epsilon tells, at most a quarter of the last certificate's; trials in all; and
#: rounds times runs of all trials, so that long horizons do not take hours.
TRIAL_RUNS, TRIALS, WORK = 20_000, 40, 6_000_000
#: Evaluations of an exact epsilon.
EXACT = 400
#: Runs of the last certificate.
CERTIFIED_RUNS = 200_000
#: Horizons tried from below; beyond them the horizon is bisected.
HORIZONS = (1, 2, 3, 4, 6, 8, 12, 16)

#: From a pair, whose rounds and arms it sets, to the learner and the claim.
Build = Callable[[Pair], tuple[Learner, Claim]]


@dataclass(frozen=True)
class Shrunk:
    """The smallest witness found, certified afresh.

    Attributes
    ----------
    pair : Pair
    arms : int
    epsilon_lower, claimed : float
        The new certificate, and the claim that it falsifies.
    seed, runs : int
        Of the new certificate.
    trials : int
        Pairs that were tried.
    replay : str
        The command that repeats the certificate.
    """

    pair: Pair
    arms: int
    epsilon_lower: float
    claimed: float
    seed: int
    runs: int
    trials: int
    replay: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        return {
            "rounds": self.pair.rounds,
            "arms": self.arms,
            "pair": self.pair.to_json(),
            "epsilon_lower": self.epsilon_lower,
            "claimed": self.claimed,
            "seed": self.seed,
            "runs": self.runs,
            "replay": self.replay,
        }

    def __str__(self) -> str:
        data = self.pair.to_json()
        left, right = (_row(data[side], self.pair.t0) for side in ("left", "right"))
        size = f"{_count(self.pair.rounds, 'round')}, {_count(self.arms, 'arm')}"
        lines = [
            f"shrunk to {size}: epsilon at least {self.epsilon_lower:.4g}, claimed {self.claimed:g}",
            f"  left   {left}",
            f"  right  {right}",
        ]
        return "\n".join([*lines, f"  {self.replay}"] if self.replay else lines)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _row(losses: list[Any], t0: int) -> str:
    """Return the losses in words, the differing one between stars, equal neighbours counted."""
    words = [f"*{_shown(loss)}*" if t == t0 else _shown(loss) for t, loss in enumerate(losses)]
    groups = [(word, len(list(same))) for word, same in groupby(words)]
    return "  ".join(
        word if count < 4 else f"{word} x {count}" for word, count in groups for _ in range(count if count < 4 else 1)
    )


def _shown(loss: Any) -> str:
    if isinstance(loss, float):
        return f"{loss:.6g}"
    if isinstance(loss, list):
        return "(" + ", ".join(_shown(x) for x in loss) + ")"
    if isinstance(loss, dict):
        fields = (f"{k} {_shown(v)}" for k, v in loss.items() if k != "loss")
        return f"{loss['loss']}[{', '.join(fields)}]"
    return str(loss)


def shrink_task(task: Task, result: Result) -> Shrunk | None:
    """Shrink the witness of a falsified task; None if it was not falsified, or nothing smaller certifies.

    Parameters
    ----------
    task : Task
        The audit.
    result : Result
        Its outcome. Nothing of it but the pair is used, and no run of it again.
    """
    if result.verdict is not Verdict.FALSIFIED or not isinstance(result.pair, Pair):
        return None

    def build(pair: Pair) -> tuple[Learner, Claim]:
        prepared = _smaller(task, pair).prepare()
        return prepared.learner, prepared.claim

    runs = min(task.runs, CERTIFIED_RUNS)
    found = shrink(build, result.pair, runs=runs, seed=task.seed, confidence=task.confidence, fast=task.fast)
    if found is None:
        return None
    again = replace(_smaller(task, found.pair), runs=found.runs, seed=found.seed, pair=None)
    text = json.dumps(_plain(found.pair), separators=(",", ":"))
    return replace(found, replay=f"{again.command()} --pair {shlex.quote(text)}")


def _smaller(task: Task, pair: Pair) -> Task:
    arms = pair.arms if pair.arms is not None else task.arms
    return replace(task, rounds=pair.rounds, arms=arms, pair=pair)


def _plain(pair: Pair) -> dict[str, Any]:
    return {side: losses for side, losses in pair.to_json().items() if side != "round"}


def shrink(
    build: Build,
    pair: Pair,
    *,
    runs: int = CERTIFIED_RUNS,
    seed: int = 0,
    confidence: float = 0.99,
    fast: bool = False,
) -> Shrunk | None:
    """Return the smallest pair found on which the claim is still falsified; None if no smaller one certifies.

    Parameters
    ----------
    build : callable
        From a pair to the learner and the claim for its rounds and arms. It may raise ValueError or LearnerError
        where there is no such learner.
    pair : Pair
        The witness.
    runs : int
        Of the new certificate.
    seed : int
        Of the audit that found the witness.
    confidence : float
        1 - alpha of the new certificate.
    fast : bool
        Play on compiled kernels where the learner has one.
    """
    judge = _Judge(build, runs, seed, 1 - confidence, fast)
    judge.use(pair)
    best = _fewer_arms(judge, pair)
    best = _fewer_rounds(judge, best)
    best = _simpler_losses(judge, best)
    best = _fewer_rounds(judge, best)
    learner, claim = build(best)
    fresh = seed + FRESH
    result = falsify(
        learner, claim, pair=best, arms=learner.arms, runs=runs, seed=fresh, confidence=confidence, fast=fast
    )
    if result.verdict is not Verdict.FALSIFIED:
        return None
    return Shrunk(best, learner.arms, result.epsilon_lower, claim.epsilon, fresh, runs, judge.trials)


@dataclass
class _Judge:
    """Tells whether a pair still falsifies: by exact epsilon beyond what the runs detect, else by a trial audit."""

    build: Build
    runs: int
    seed: int
    alpha: float
    fast: bool = False
    trials: int = 0
    work: int = 0
    exactly: bool = True
    known: dict[str, bool] = field(default_factory=dict)

    def use(self, pair: Pair) -> None:
        """Decide how to judge: by exact epsilon only if it falsifies the witness itself."""
        try:
            self.exactly = self._exact(*self.build(pair), pair)
        except (NotExactError, ValueError, LearnerError):
            self.exactly = False

    @property
    def spent(self) -> bool:
        """Whether nothing more may be tried."""
        return self.trials >= (EXACT if self.exactly else TRIALS) or self.work >= WORK

    def __call__(self, pair: Pair) -> bool:
        """Judge a pair once; False where there is no learner for it, or no trial is left."""
        key = repr(pair.to_json())
        if key not in self.known:
            if self.spent:
                return False
            try:
                learner, claim = self.build(pair)
                pair.check(claim)
                if pair.arms not in (None, learner.arms):
                    raise ValueError(f"the pair has {pair.arms} arms, but the learner has {learner.arms}")
                self.trials += 1
                self.known[key] = (self._exact if self.exactly else self._trial)(learner, claim, pair)
            except (ValueError, LearnerError):  # no such learner, or NotExactError
                self.known[key] = False
        return self.known[key]

    def _exact(self, learner: Learner, claim: Claim, pair: Pair) -> bool:
        delta = max(claim.delta, RANKING_DELTA)
        true = exact_epsilon(learner, pair, surface=claim.surface, deltas=(delta,), cells=COARSE)[delta]
        return true > detectable_epsilon(claim.epsilon, self.runs // 4, delta=claim.delta, alpha=self.alpha)

    def _trial(self, learner: Learner, claim: Claim, pair: Pair) -> bool:
        seed = self.seed + FRESH + self.trials
        runs = min(self.runs // 4, TRIAL_RUNS)
        self.work += runs * pair.rounds
        budget: dict[str, Any] = {"runs": runs, "seed": seed, "confidence": 1 - self.alpha, "fast": self.fast}
        result = falsify(learner, claim, pair=pair, arms=learner.arms, **budget)
        return result.verdict is Verdict.FALSIFIED

    def searched(self, rounds: int, arms: int, like: Pair) -> Iterator[Pair]:
        """Yield the worst pair that an exact search finds at this size."""
        if not self.exactly:
            return
        try:
            learner, claim = self.build(_cut(like, rounds, 0, range(arms)))
            found = find_exactly(learner, claim, alphabet_of(learner, claim), rounds)
        except (ValueError, LearnerError):
            return
        if found is not None:
            yield found


def _fewer_arms(judge: _Judge, pair: Pair) -> Pair:
    """Return the pair on the fewest arms: the first ones, or those that an exact search fills anew."""
    if pair.arms is None:
        return pair
    for arms in range(1, pair.arms):
        for smaller in (*_cuts(pair, pair.rounds, arms), *judge.searched(pair.rounds, arms, pair)):
            if judge(smaller):
                return smaller
    return pair


def _fewer_rounds(judge: _Judge, pair: Pair) -> Pair:
    """Return the pair at the smallest horizon."""
    failed = 0
    for rounds in (t for t in HORIZONS if t < pair.rounds):
        shorter = _at(judge, pair, rounds)
        if shorter is not None:
            pair = shorter
            break
        failed = rounds
    while pair.rounds - failed > 1:  # bisect between the longest that failed and the shortest that did not
        middle = (failed + pair.rounds) // 2
        shorter = _at(judge, pair, middle)
        if shorter is None:
            failed = middle
        else:
            pair = shorter
    return pair


def _at(judge: _Judge, pair: Pair, rounds: int) -> Pair | None:
    for shorter in (*_cuts(pair, rounds, pair.arms), *judge.searched(rounds, pair.arms or 1, pair)):
        if judge(shorter):
            return shorter
    return None


def _cuts(pair: Pair, rounds: int, arms: int | None) -> Iterator[Pair]:
    """Yield windows of the pair around its differing round, and subsets of its arms."""
    columns: list[range | None] = [None]
    if arms is not None and pair.arms is not None and arms < pair.arms:
        columns = [range(arms), range(pair.arms - arms, pair.arms)]
    for chosen in columns:
        for start in sorted({0, pair.t0, max(0, pair.t0 - rounds // 2)}, reverse=True):
            if start + rounds <= pair.rounds and start <= pair.t0 < start + rounds:
                try:
                    yield _cut(pair, rounds, start, chosen)
                except ValueError:  # the worlds agree on what is left
                    continue


def _cut(pair: Pair, rounds: int, start: int, columns: range | None) -> Pair:
    worlds: list[Any] = [world[start : start + rounds] for world in (pair.left, pair.right)]
    if columns is not None and pair.arms is not None:
        worlds = [world[:, list(columns)] for world in worlds]
    return Pair(*worlds)


def _simpler_losses(judge: _Judge, pair: Pair) -> Pair:
    """Return the pair with the most zeros and the roundest values."""
    changed = True
    while changed:
        changed = False
        for simpler in _simplifications(judge, pair):
            if judge.spent:
                return pair
            if _cost(simpler) < _cost(pair) and judge(simpler):
                pair, changed = simpler, True
                break
    return pair


def _simplifications(judge: _Judge, pair: Pair) -> Iterator[Pair]:
    """Yield simpler pairs, the boldest first: all other rounds 0, then stretches, rounds, and single entries."""
    nothing = _nothing(pair)
    rounds, t0 = pair.rounds, pair.t0
    stretches = [range(rounds), range(t0 + 1, rounds), range(t0), *(range(t, rounds) for t in range(t0 + 2, rounds))]
    for stretch in (*stretches, *(range(t, t + 1) for t in range(rounds))):
        worlds = [
            [nothing if t in stretch and t != t0 else loss for t, loss in enumerate(world)]
            for world in (pair.left, pair.right)
        ]
        if any(t != t0 for t in stretch):
            yield Pair(*worlds)
    if pair.arms is None:
        return
    _, claim = judge.build(pair)
    losses = LOSS_SETS[claim.losses]
    for t in range(rounds):
        for arm in range(pair.arms):
            for value in (0.0, losses.high, losses.low, (losses.low + losses.high) / 2):
                for sides in ((0, 1),) if t != t0 else ((0, 1), (0,), (1,)):
                    arrays = [np.array(pair.left), np.array(pair.right)]
                    for side in sides:
                        arrays[side][t, arm] = value
                    if not np.array_equal(arrays[0], arrays[1]):
                        yield Pair(arrays[0], arrays[1])


def _nothing(pair: Pair) -> Any:
    if pair.arms is not None:
        return np.zeros(pair.arms)
    first: Any = pair.left[0]
    example = getattr(first, "below", first)
    if isinstance(example, Quadratic):  # as convex as the others
        return Quadratic(curvature=example.curvature, centre=(0.0,) * len(example.centre))
    return Linear(slope=(0.0,) * len(getattr(example, "slope", (0.0,))))


def _cost(pair: Pair) -> tuple[int, int, float]:
    """Return what a reader pays: losses that are not 0, then distinct ones, then values that are not round."""
    if pair.arms is None:
        worlds = [list(pair.left), list(pair.right)]
        zero = _nothing(pair)
        return (
            sum(loss != zero for world in worlds for loss in world),
            len({str(x) for world in worlds for x in world}),
            0.0,
        )
    values = np.concatenate([np.ravel(np.asarray(world)) for world in (pair.left, pair.right)])
    rounded = np.isin(values, (0.0, 1.0, -1.0, 0.5))
    half = np.abs(values) == 0.5
    return int(np.count_nonzero(values)), len(np.unique(values)), float((~rounded).sum() + 0.5 * half.sum())
