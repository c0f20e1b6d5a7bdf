"""Audit a training by canaries of ours: coins decide which are in its data, and its scores tell whether they show.

Each training has coins of its own, and a canary touches one training: then the counts of several add up, as if all
canaries had shared one.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import at_play, blaming, name_of, raised
from ...learners.checks import check_whole
from ...learners.protocol import LearnerError
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Draws, Stage
from ..encoding.objects import plain
from ..execution.execution import HERE, Budget, Execution
from ..execution.workers import in_parallel
from ..play.unseeded import OnGlobals
from ..statistics.canary_scores import CanaryScores, ceiling, needed
from ..statistics.canary_words import INDEPENDENT, ONE_RUN, Design, ScoresJson, needed_words
from ..statistics.score_certificates import score_certificate
from ..verdicts.verdict import Result
from .score_audit import check_scored, concluded

Training = Callable[[NDArray[np.bool_], np.random.Generator], object]
_Floats = NDArray[np.float64]


@blaming
def audit_training(
    training: Training,
    claim: Claim,
    budget: Budget,
    execution: Execution = HERE,
    *,
    canaries: int,
    trainings: int = 1,
    global_random: bool = False,
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
    global_random : bool
        Whether it draws from `np.random`, `random` or unseeded generators: they draw from the training's own then.

    Raises
    ------
    ValueError
        For numbers below 1.
    LearnerError
        If a training raises, or does not return a score for each canary.
    """
    check_scored(claim)
    began = time.perf_counter()
    canaries, trainings = check_whole("canaries", canaries), check_whole("trainings", trainings)
    if budget.stop != "budget":
        raise ValueError("trainings are audited when all have ended: stop must be budget")
    training = OnGlobals(training) if global_random else training
    scores = _scores(training, budget.seed, execution, canaries, trainings)
    coins = [_coins(budget.seed, i, canaries) for i in range(trainings)]
    design: Design = ONE_RUN if canaries > 1 else INDEPENDENT
    all_of = np.concatenate(scores), np.concatenate(coins)
    found = CanaryScores.of(design, *all_of, seed=budget.seed, trainings=trainings)
    return concluded(found, claim, budget, began, attack="the training's scores")


def too_few_words(claim: Claim, budget: Budget, canaries: int, trainings: int) -> str:
    """Return how many canaries even a perfect attack needs, where so many are too few; nothing where they are enough.

    It is known before any training.
    """
    many, measure, alpha = canaries * trainings, claim.measure, budget.alpha
    design: Design = ONE_RUN if canaries > 1 else INDEPENDENT
    if ceiling(CanaryScores.of_order(design, np.arange(many) < many // 2), measure, alpha=alpha) > measure.level:
        return ""
    limit = score_certificate(design, measure).limit
    known: ScoresJson = {"needed": needed(design, measure, alpha=alpha, beyond=many), "limit": limit}
    return f"{many:,} canaries are too few to test this claim: {needed_words(known)}"


def _coins(seed: int, index: int, canaries: int) -> NDArray[np.bool_]:
    """Return which canaries are in the data of a training."""
    return Draws(seed, Stage.CERTIFY, index).labels(canaries)


def _scores(training: Training, seed: int, execution: Execution, canaries: int, trainings: int) -> list[_Floats]:
    """Return the scores of each training: of those that the memory knows, and of others that are run now."""
    memory, known = execution.memory, {}
    for i in range(trainings):
        kept = None if memory is None else memory.recall_stage(_stage(i))
        if isinstance(kept, bytes) and len(kept) == 8 * canaries:
            known[i] = np.frombuffer(kept)
    missing = [i for i in range(trainings) if i not in known]
    run = partial(_run, training, seed, canaries, trainings)
    label = "trainings" if execution.progress else None
    done = in_parallel(run, missing, jobs=execution.jobs, alike=True, progress=label, cluster=execution.cluster)
    for i, scores in zip(missing, done, strict=True):
        known[i] = scores
        if memory is not None:
            memory.keep_stage(_stage(i), scores.tobytes())
    return [known[i] for i in range(trainings)]


def _stage(index: int) -> str:
    return f"training/{index}"


def _run(training: Training, seed: int, canaries: int, trainings: int, index: int) -> _Floats:
    """Return the scores of one training."""
    name, coins = name_of(training), _coins(seed, index, canaries)
    where = f" in training {index + 1} of {trainings}" if trainings > 1 else ""
    try:
        with at_play(training)():
            returned = training(coins, Draws(seed, Stage.CERTIFY, index).generator)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, TypeError) and not _takes(training):
            raise LearnerError(f"{name} cannot be called as training(included, rng): {error}") from None
        raise raised(name, error, where) from error
    return _checked(returned, name, canaries, where)


def _checked(returned: Any, name: str, canaries: int, where: str) -> _Floats:
    """Return the scores that a training returned; raise LearnerError for what is none."""
    try:
        scores = np.array(plain(returned) if hasattr(returned, "detach") else returned, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        got = " ".join(repr(returned).split())
        raise LearnerError(f"{name} must return a number for each canary, got {got:.80}{where}") from None
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
