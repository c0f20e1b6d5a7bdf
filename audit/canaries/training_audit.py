"""Audit a training by canaries of ours: coins decide which are in its data, and its scores tell whether they show.

Each training has coins of its own, and a canary touches one training: then the counts of several add up, as if all
canaries had shared one. That holds of trainings that leave nothing behind for each other, which is checked as it is of
mechanisms.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import at_play, blaming, extra_or_reason, name_of, raised
from ...learners.checks import check_whole
from ...learners.protocol import LearnerError
from ...learners.scalar import state_cures
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Draws, Stage
from ...mechanisms.faults import NEARER, Fault
from ..assumptions.blocks import DRAWN_BLOCKS, LearnerBlock, draws_of
from ..assumptions.independence import check_nothing_kept, state_error
from ..encoding.objects import plain
from ..execution.execution import IN_PROCESS, Budget, Execution, seed_beyond
from ..execution.workers import in_parallel
from ..play.faulty import FaultyMechanism
from ..play.unseeded import OnGlobals
from ..record_types import Design, ScoresJson
from ..statistics.canary_scores import CanaryScores, certified, needed, refuted
from ..statistics.canary_words import INDEPENDENT, ONE_RUN, needed_words
from ..statistics.score_certificates import score_certificate
from ..verdicts.blind_spot import LARGEST, BlindSpot
from ..verdicts.verdict import Result
from .score_audit import check_scored, concluded

Training = Callable[[NDArray[np.bool_], np.random.Generator], object]
_Floats = NDArray[np.float64]
#: The scores of a training, and the next number of its generator.
_Played = tuple[_Floats, float]
#: Blocks of other draws: a training may take minutes, and noise that it keeps differs on any of them.
OTHER_DRAWS = DRAWN_BLOCKS[:2]
SEED_CURE = "seed other generators from rng; what cannot be seeded brings its scores: `overclaim scores FILE`"
#: The stage that says that all trainings were checked.
_CHECKED = "training/checked"
#: The seed of the power test is the audit's own plus this.
FRESH = 2_500_000


@blaming
def audit_training(
    training: Training,
    claim: Claim,
    budget: Budget,
    execution: Execution = IN_PROCESS,
    *,
    canaries: int,
    trainings: int = 1,
    global_random: bool | str = False,
    power: float | None = LARGEST,
) -> Result:
    """Run trainings with canaries and audit their scores: in the one-run design, or of one canary as independent.

    Parameters
    ----------
    training : callable
        ``training(included, rng) -> scores``: trains on the data and on those of `canaries` canaries that the bool
        array `included` says, with the NumPy generator as its only randomness; returns a score for each canary,
        larger where it takes it for included. The attack is part of it, and must not look at `included`.
    canaries, trainings : int
        Canaries of each training, and trainings.
    global_random : bool or "fresh seeds"
        Whether it draws from `np.random`, `random` or unseeded generators: they draw from the training's own then.
    power : float or None
        By how much its noise is divided in as many trainings again, where it survives; None: they are not run.

    Raises
    ------
    ValueError
        For numbers below 1.
    LearnerError
        If a training raises, does not return a score for each canary, keeps state, or draws from elsewhere: the last
        training and the first are run again, and must give the same.
    """
    check_scored(claim)
    start = time.perf_counter()
    canaries, trainings = check_whole("canaries", canaries), check_whole("trainings", trainings)
    if budget.stop != "budget":
        raise ValueError("trainings are audited when all have ended: stop must be budget")
    target = _Target(
        OnGlobals(training, global_random) if global_random else training, budget.seed, canaries, trainings
    )
    canary_scores = target.with_coins(_scores(target, execution))
    result = concluded(canary_scores, claim, budget, start, attack="the training's scores")
    result = replace(result, power=power or LARGEST)
    if power is None or result.final:
        return result
    spot, missing = extra_or_reason("power test", partial(_blind_spot, target, claim, budget, execution, power))
    return replace(result, blind_spot=spot, missing=(*result.missing, *missing))


def _blind_spot(target: _Target, claim: Claim, budget: Budget, execution: Execution, power: float) -> BlindSpot | None:
    """Return whether as many trainings with weaker noise are caught; None where their noise is not the audit's."""
    target = replace(target, seed=seed_beyond(target.seed, FRESH))
    label = "power test" if execution.progress else None
    task = partial(_train_faulty, target, power)
    trainings = list(in_parallel(task, range(target.trainings), jobs=execution.jobs, equal_costs=True, progress=label))
    if not any(faulty for _, faulty in trainings):
        return None
    canary_scores = target.with_coins([scores for scores, _ in trainings])
    bound = certified(canary_scores, claim.measure, alpha=budget.alpha).lower
    caught = power if bound > claim.measure.level else None
    return BlindSpot(caught, ((power, bound),), None, budget.alpha, kind=NEARER, limit=power)


def _train_faulty(target: _Target, power: float, index: int) -> tuple[_Floats, bool]:
    """Return the scores of a training with weaker noise, and whether any of its draws was."""
    fault = Fault(power, places=[])
    scores, _ = replace(target, training=FaultyMechanism(target.training, fault)).train(index)
    return scores, bool(fault.places)


def too_few_words(claim: Claim, budget: Budget, canaries: int, trainings: int) -> str:
    """Return how many canaries even a perfect attack needs, where so many are too few; nothing where they are enough.

    It is known before any training.
    """
    count, measure, alpha = canaries * trainings, claim.measure, budget.alpha
    design: Design = ONE_RUN if canaries > 1 else INDEPENDENT
    perfect = CanaryScores.of_order(design, np.arange(count) < count // 2, seed=budget.seed)
    if refuted(perfect, measure, alpha=alpha):
        return ""
    limit = score_certificate(design, measure).limit
    score_facts: ScoresJson = {
        "needed": needed(design, measure, alpha=alpha, seed=budget.seed, excluded_size=count),
        "limit": limit,
    }
    return f"{count:,} canaries are too few to test this claim: {needed_words(score_facts)}"


@dataclass(frozen=True)
class _Target:
    """A training with what each of its trainings is run on."""

    training: Training
    seed: int
    canaries: int
    trainings: int

    def draws(self, index: int) -> Draws:
        """Return the draws of a training of the audit: its coins, and its generator."""
        return Draws(self.seed, Stage.CERTIFY, index)

    def with_coins(self, scores: Sequence[_Floats]) -> CanaryScores:
        """Return the scores of all trainings with the coins of their canaries."""
        coins = [self.draws(i).labels(self.canaries) for i in range(self.trainings)]
        design: Design = ONE_RUN if self.canaries > 1 else INDEPENDENT
        columns = np.concatenate(scores), np.concatenate(coins)
        return CanaryScores.of(design, *columns, seed=self.seed, trainings=self.trainings)

    def run(self, draws: Draws, where: str = "") -> _Played:
        """Return the scores of one training, and the next number of its generator: whether as much was drawn."""
        name = name_of(self.training)
        try:
            with at_play(self.training)():
                returned = self.training(draws.labels(self.canaries), draws.generator)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, TypeError) and not _takes(self.training):
                raise LearnerError(f"{name} cannot be called as training(included, rng): {error}") from None
            raise raised(name, error, where) from error
        return _checked(returned, name, self.canaries, where), draws.generator.random()

    def train(self, index: int) -> _Played:
        """Return what a training of the audit gives."""
        return self.run(self.draws(index), f" in training {index + 1} of {self.trainings}" * (self.trainings > 1))

    def check_first(self) -> _Played:
        """Return what the first training gives; raise LearnerError if it fills in what later ones would share."""
        first: list[_Played] = []

        def play(block: int, _: int | None) -> bytes:
            is_first = block == LearnerBlock.UNWATCHED
            played = self.train(0) if is_first else self.run(draws_of(self.seed, block))
            if is_first and not first:
                first.append(played)
            return _bytes_of(played)

        check_nothing_kept(self.training, play, blocks=OTHER_DRAWS)
        return first[0]

    def check_again(self, played: dict[int, _Played]) -> None:
        """Raise LearnerError unless the last training and the first give the same again, whatever ran between."""
        for index in sorted({0, self.trainings - 1}, reverse=True):
            scores, following = self.train(index)
            if scores.tobytes() != played[index][0].tobytes() or following != played[index][1]:
                raise state_error("training", *state_cures(self.training), SEED_CURE)


def _bytes_of(played: _Played) -> bytes:
    return played[0].tobytes() + np.float64(played[1]).tobytes()


def _scores(target: _Target, execution: Execution) -> list[_Floats]:
    """Return the scores of each training: of those that the memory has, and of others that are run now."""
    memory, played = execution.memory, dict[int, _Played]()
    for i in range(target.trainings):
        stored = None if memory is None else memory.recall_stage(_stage(i))
        if isinstance(stored, bytes) and len(stored) == 8 * (target.canaries + 1):
            numbers = np.frombuffer(stored)
            played[i] = numbers[:-1], float(numbers[-1])

    def keep(index: int, result: _Played) -> None:
        played[index] = result
        if memory is not None:
            memory.keep_stage(_stage(index), _bytes_of(result))

    if memory is None or memory.recall_stage(_CHECKED) is None:
        first = target.check_first()
        if 0 not in played:
            keep(0, first)
    missing = [i for i in range(target.trainings) if i not in played]
    label = "trainings" if execution.progress else None
    results = in_parallel(
        target.train, missing, jobs=execution.jobs, equal_costs=True, progress=label, cluster=execution.cluster
    )
    for i, result in zip(missing, results, strict=True):
        keep(i, result)
    if memory is None or memory.recall_stage(_CHECKED) is None:
        target.check_again(played)
        if memory is not None:
            memory.keep_stage(_CHECKED, b"1")
    return [played[i][0] for i in range(target.trainings)]


def _stage(index: int) -> str:
    return f"training/{index}"


def _checked(returned: Any, name: str, canaries: int, where: str) -> _Floats:
    """Return the scores that a training returned; raise LearnerError for what is none."""
    try:
        scores = np.array(plain(returned) if hasattr(returned, "detach") else returned, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        value_text = " ".join(repr(returned).split())
        raise LearnerError(f"{name} must return a number for each canary, got {value_text:.80}{where}") from None
    if scores.shape != (canaries,):
        raise LearnerError(f"{name} must return {canaries:,} scores, one for each canary, got {scores.shape}{where}")
    if np.isnan(scores).any():
        raise LearnerError(f"{name} must return numbers: score {int(np.argmax(np.isnan(scores))) + 1} is nan{where}")
    return scores


def is_training(target: object) -> bool:
    """Tell whether a target is a training, by its first parameter."""
    if not inspect.isfunction(target):
        return False
    return next(iter(inspect.signature(target).parameters), "") == "included"


def _takes(training: Training) -> bool:
    try:
        inspect.signature(training).bind(None, None)
    except TypeError:
        return False
    except ValueError:  # of a C extension: it is not told
        return True
    return True
