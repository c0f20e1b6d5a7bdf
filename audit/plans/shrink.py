"""Shrink: the smallest horizon, the fewest arms and the simplest losses that still falsify, certified afresh.

Every step is judged by the exact epsilon where there is one, else by a trial audit (`verdicts.shrinking`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from ...learners.problems.losses import TOLERANCE
from ...learners.protocol import Learner, LearnerError
from ...mechanisms.claim import Claim
from ..execution.execution import IN_PROCESS, Budget, Execution, seed_beyond
from ..laws.exact import NotExactError, exact_epsilon
from ..laws.sequences import COARSE
from ..pipeline.audited import audited
from ..pipeline.given import Given
from ..play.pairs import Pair, World, check_pair, radius_of
from ..record_types import ShrunkJson
from ..search.exact_search import RANKING_DELTA, find_exactly
from ..spaces.loss_choices import alphabet_of
from ..spaces.simplify import cost, largest, simplifications
from ..statistics.bounds.power import detectable_epsilon
from ..verdicts.shrinking import (
    CERTIFICATES,
    CERTIFIED_RUNS,
    PART,
    SEED_SHIFT,
    TRIAL_ALPHA,
    TRIAL_RUNS,
    certified_in_turn,
    certified_of,
    simplified,
)
from ..verdicts.verdict import Result, Verdict
from ..verdicts.witness import ShrunkWitness
from .tasks import Prepared, Task

#: Trial audits in all, and rounds times runs of all of them, so that long horizons do not take hours.
TRIALS, WORK = 40, 6_000_000
#: Evaluations of an exact epsilon.
EXACT = 400
BUDGET = Budget(CERTIFIED_RUNS)
#: Horizons tried from below; beyond them the horizon is bisected.
HORIZONS = (1, 2, 3, 4, 6, 8, 12, 16)

#: From a pair, whose rounds and arms it sets, to the learner and the claim.
Build = Callable[[Pair], tuple[Learner, Claim]]


def shrink_task(task: Task, result: Result, execution: Execution = IN_PROCESS) -> ShrunkWitness | None:
    """Shrink the witness of a falsified task; None if it was not falsified, or is that of a mechanism.

    Where nothing smaller certifies, the audit's own witness is returned with its own certificate.

    Parameters
    ----------
    task : Task
        The audit.
    result : Result
        Its outcome. No run of it is used again.
    execution : Execution
        What was judged before is taken from its memory, and kept in it.
    """
    pair = result.pair
    if result.verdict is not Verdict.FALSIFIED or not isinstance(pair, Pair):
        return None

    def build(pair: Pair) -> tuple[Learner, Claim]:
        prepared = _smaller(task, pair).prepare()
        return prepared.target, prepared.claim

    budget = replace(task.budget, runs=min(task.budget.runs, CERTIFIED_RUNS), stop="budget")
    shrunk = shrink(build, pair, budget, Execution(memory=execution.memory))
    if shrunk is None:
        learner, task_budget = build(pair)[0], task.budget
        return ShrunkWitness(
            pair=pair,
            arms=learner.arms,
            **certified_of(result),
            seed=task_budget.seed,
            runs=task_budget.runs,
            trials=0,
            confidence=task_budget.confidence,
            replay=task.command(),
            fresh=False,
        )
    certified = Budget(shrunk.runs, shrunk.seed, shrunk.confidence)
    return replace(shrunk, replay=replace(_smaller(task, shrunk.pair), budget=certified).command())


def smallest_inputs(prepared: Prepared, result: Result) -> ShrunkJson | None:
    """Return the smallest inputs that an audit certified, in the record's form; None where it did not shrink any."""
    shrunk, task = result.shrunk, prepared.task
    if shrunk is None:
        return None
    if not shrunk.fresh:  # searched and certified as in the audit
        return {**shrunk.to_json(), "replay": task.command()}
    pair = shrunk.pair.to_json()
    audit = replace(
        task,
        left=pair["left"],
        right=pair["right"],
        input_schema=None,  # no search
        call_limit=None,
        # A learner is built for its horizon, and a shorter sequence is the beginning of a game.
        rounds=prepared.rounds if prepared.of_sequences else task.rounds,
        # Of two inputs that are given a relation is asked where their claim is about one: of rounds, or a library's.
        neighbours=task.neighbours if prepared.of_sequences or prepared.relation else None,
        budget=Budget(shrunk.runs, shrunk.seed, shrunk.confidence),
    )
    return {**shrunk.to_json(), "replay": audit.command()}


def _smaller(task: Task, pair: Pair) -> Task:
    arms = pair.arms if pair.arms is not None else task.arms
    return replace(task, rounds=pair.rounds, arms=arms, pair=pair)


def shrink(
    build: Build,
    pair: Pair,
    budget: Budget = BUDGET,
    execution: Execution = IN_PROCESS,
) -> ShrunkWitness | None:
    """Return the smallest pair found on which the claim is still falsified; None if no smaller one certifies.

    Parameters
    ----------
    build : callable
        From a pair to the learner and the claim for its rounds and arms. It may raise ValueError or LearnerError
        where there is no such learner.
    pair : Pair
        The witness.
    budget : Budget
        The runs of a new certificate, the seed of the audit that found the witness, and the confidence, whose error
        is shared by the certificates that are tried.
    execution : Execution
        The memory of what was judged before.
    """
    judge = _Judge(build, budget.runs, budget.seed, budget.alpha / CERTIFICATES, execution)
    judge.use(pair)
    best = _fewer_arms(judge, pair)
    best = _fewer_rounds(judge, best)
    best = _simpler_losses(judge, best)
    _fewer_rounds(judge, best)

    def certify(smaller: Pair, share: Budget, stage: str) -> Result:
        learner, claim = build(smaller)
        return audited(learner, claim, share, execution.inside(stage), Given(pair=smaller, arms=learner.arms))

    shrunk = certified_in_turn(judge.accepted, certify, budget, EXACT)
    if shrunk is None:
        return None
    smallest, certified, result = shrunk
    return ShrunkWitness(
        pair=smallest,
        arms=build(smallest)[0].arms,
        **certified_of(result),
        seed=certified.seed,
        runs=certified.runs,
        trials=judge.trials,
        confidence=certified.confidence,
    )


@dataclass
class _Judge:
    """Tells whether a pair still falsifies: by exact epsilon beyond what the runs detect, else by a trial audit."""

    build: Build
    runs: int
    seed: int
    alpha: float
    execution: Execution
    trials: int = 0
    work: int = 0
    exactly: bool = True
    known: dict[str, bool] = field(default_factory=dict)
    accepted: list[Pair] = field(default_factory=list)
    bound: float = 0.0  # of the witness's values

    def use(self, pair: Pair) -> None:
        """Decide how to judge: by exact epsilon only if it falsifies the witness itself."""
        self.bound = self.size(self.build(pair)[0], pair)
        try:
            learner, claim = self.build(pair)
            self.exactly = claim.measure.is_epsilon and self._exact(learner, claim, pair)
        except (NotExactError, ValueError, LearnerError):
            self.exactly = False

    @property
    def spent(self) -> bool:
        """Whether nothing more may be tried."""
        return self.trials >= (EXACT if self.exactly else TRIALS) or self.work >= WORK

    def __call__(self, pair: Pair) -> bool:
        """Judge a pair once; False where there is no learner for it, or no trial is left."""
        key = pair.key
        if key not in self.known:
            if self.spent:
                return False
            try:
                learner, claim = self.build(pair)
                check_pair(pair, claim, learner)
                if learner.feedback == "bandit" and self.size(learner, pair) > self.bound * (1 + TOLERANCE):
                    raise ValueError("the values of the losses are larger than the witness's")
                self.trials += 1
                self.work += 0 if self.exactly else self._runs * pair.rounds
                judge = partial(self._exact if self.exactly else self._trial, learner, claim, pair)
                stage = f"shrink/{self.trials}"
                memory = self.execution.memory
                self.known[key] = judge() if memory is None else memory.once(stage, lambda: bool(judge()))
            except (ValueError, LearnerError):  # no such learner, or NotExactError
                self.known[key] = False
            if self.known[key]:
                self.accepted.append(pair)
        return self.known[key]

    @staticmethod
    def size(learner: Learner, pair: Pair) -> float:
        """Return the largest value of the pair's convex losses on the learner's domain."""
        return largest(pair, radius_of(learner))

    @property
    def _runs(self) -> int:
        """The runs of a trial."""
        return min(self.runs // PART, TRIAL_RUNS)

    def _exact(self, learner: Learner, claim: Claim, pair: Pair) -> bool:
        delta = max(claim.delta, RANKING_DELTA)
        true = exact_epsilon(learner, pair, view=claim.view, deltas=(delta,), cells=COARSE)[delta]
        return true > detectable_epsilon(claim.epsilon, self.runs // PART, delta=claim.delta, alpha=self.alpha)

    def _trial(self, learner: Learner, claim: Claim, pair: Pair) -> bool:
        seed = seed_beyond(self.seed, SEED_SHIFT + self.trials)
        budget, execution = Budget(self._runs, seed, 1 - TRIAL_ALPHA), Execution()
        result = audited(learner, claim, budget, execution, Given(pair=pair, arms=learner.arms, trial=True))
        return result.verdict is Verdict.FALSIFIED

    def searched(self, rounds: int, arms: int, like: Pair) -> Iterator[Pair]:
        """Yield the worst pair that an exact search finds at this size."""
        if not self.exactly:
            return
        try:
            learner, claim = self.build(_cut(like, rounds, 0, range(arms)))
            pair = find_exactly(learner, claim, alphabet_of(learner, claim), rounds)
        except (ValueError, LearnerError):
            return
        if pair is not None:
            yield pair


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
    for kept_columns in columns:
        for start in sorted({0, pair.t0, max(0, pair.t0 - rounds // 2)}, reverse=True):
            if start + rounds <= pair.rounds and start <= pair.t0 < start + rounds:
                try:
                    yield _cut(pair, rounds, start, kept_columns)
                except ValueError:  # the worlds agree on what is left
                    continue


def _cut(pair: Pair, rounds: int, start: int, columns: range | None) -> Pair:
    worlds: list[World] = [world[start : start + rounds] for world in (pair.left, pair.right)]
    if columns is not None and pair.arms is not None:
        worlds = [np.asarray(world)[:, list(columns)] for world in worlds]
    return Pair(*worlds)


def _simpler_losses(judge: _Judge, pair: Pair) -> Pair:
    """Return the pair with the most zeros and the shortest numbers."""

    def simpler(pair: Pair) -> Iterator[Pair]:
        _, claim = judge.build(pair)
        return (candidate for candidate in simplifications(claim, pair) if cost(candidate) < cost(pair))

    return simplified(pair, simpler, judge)
