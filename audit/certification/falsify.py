"""From a claim to a verdict: search, pilot, certification."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ...learners.abilities import has_release, inherited, is_ours
from ...learners.blame import blaming
from ...learners.protocol import publishes
from ...learners.scalar import as_learner, weaker_learner
from ...mechanisms.claim import Claim
from ...mechanisms.weakening import NoiseParameter
from ..assumptions.conformance import check_fresh
from ..assumptions.declared_laws import as_watched, check_kernel
from ..play.cluster import Cluster
from ..play.execution import HERE, Budget, Execution, Memory
from ..play.kernels import engine_of
from ..play.pairs import Pair, check_pair
from ..search.loss_choices import linear_alphabet
from ..search.pair_search import candidates
from .anytime import check_measure, until_falsified
from .anytime_learners import AnytimeLearner
from .blind_spot_search import Asked, Weaken, weakening, with_blind_spot
from .frame import FEWEST_RUNS, all_runs, conclude
from .stages import LearnerAudit
from .verdict import Result


def falsify(
    learner: object,
    claim: Claim,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Pair] | None = None,
    runs: int = 100_000,
    seed: int = 0,
    confidence: float = 0.99,
    jobs: int = 1,
    progress: bool = False,
    memory: Memory | None = None,
    cluster: Cluster | None = None,
    stop: str = "budget",
    fast: bool = False,
    weaken: Asked = None,
) -> Result:
    """Try to falsify a privacy claim about a learner.

    Parameters
    ----------
    learner : Learner, or a user's class
        A batched learner, or a class with `act` and `update` that is built as `cls(arms, rounds, rng)`.
    claim : Claim
        What is promised.
    rounds : int, optional
        The horizon; that of the pair if one is given.
    arms : int, optional
        For a user's class; a batched learner knows its own.
    pair : Pair, optional
        The two worlds. By default the worst of the standard families is searched.
    pairs : iterable of Pair, optional
        The pairs to search instead of the standard families.
    runs : int
        All runs of the audit, both worlds and the pilot included.
    seed : int
        Non-negative.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    jobs : int
        Processes. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr.
    memory : Memory, optional
        Finished blocks of the same audit are taken from it, and new ones kept in it. It does not change the result.
    cluster : Cluster, optional
        Computes the blocks of certification, instead of processes here. It does not change the result.
    stop : {"budget", "early"}
        When to stop: after all the runs, or as soon as the claim is falsified. An early audit is anytime-valid, and
        learns its attack on the way; if nothing is wrong its bound is looser than that of a full budget.
    fast : bool
        Play on compiled kernels where the learner has one (it needs Numba). They draw other numbers than NumPy does,
        so the counts differ; the result names its engine.
    weaken : bool, str or callable, optional
        Measure the blind spot of an audit that survives, on the learner with its noise divided by factors up to 100:
        the parameter that sets the noise, `"epsilon"` to be multiplied by the factor or `"1/scale"` to be divided;
        True where the learner is made of this package's parts, whose noise is known; or a function from the factor to
        the weaker learner.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For parameters outside their range, or a pair outside the claim's loss set.
    LearnerError
        If the learner misbehaves.

    Examples
    --------
    Noise of scale 1/2 for each batch of one loss, where epsilon = 1 needs scale 1:

    >>> from overclaim.learners import BatchedLaplace, Threshold
    >>> learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    >>> result = falsify(learner, Claim(epsilon=1.0), rounds=2, runs=20_000)
    >>> result.verdict, round(result.epsilon_lower, 2)
    (<Verdict.FALSIFIED: 'FALSIFIED'>, 1.45)
    """
    return audit_learner(
        learner,
        claim,
        Budget(runs, seed, confidence, stop),
        Execution(jobs, progress, memory, cluster, fast),
        rounds=rounds,
        arms=arms,
        pair=pair,
        pairs=pairs,
        weaken=weaken,
    )


@blaming
def audit_learner(
    learner: object,
    claim: Claim,
    budget: Budget,
    execution: Execution = HERE,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Pair] | None = None,
    weaken: Asked = None,
) -> Result:
    """As `falsify`, whose keywords a budget and an execution hold."""
    began = time.perf_counter()
    rounds = _check_rounds(rounds, pair)
    runs, seed = budget.of_at_least(FEWEST_RUNS).runs, budget.seed
    built = as_learner(learner, arms=_arms(learner, arms, pair), rounds=rounds)
    options = _check_pairs(built, claim, rounds, runs, pair, pairs)
    how = weakening(weaken, built, _by_parameter(learner, weaken, built.arms, rounds))
    engine = engine_of(built, options, fast=execution.fast)
    check_fresh(built, options[0], seed)
    rows = None if options[0].arms is None else linear_alphabet(claim, built.arms).rows
    if engine == "numba" and not is_ours(built):
        check_kernel(built, options, seed, surface=claim.surface)
    built = as_watched(built, options[0], seed, rows=rows, surface=claim.surface)

    audit = LearnerAudit(
        learner=built,
        claim=claim,
        budget=budget,
        execution=execution,
        engine=engine,
        searched=pair is None and pairs is None,
    )
    if budget.stop == "early":
        check_measure(claim)
        certified = until_falsified(AnytimeLearner(audit), options)
    else:
        certified = all_runs(audit, options)
    return with_blind_spot(audit, conclude(audit, certified, began), how)


def _by_parameter(learner: object, weaken: object, arms: int, rounds: int) -> Weaken | None:
    """Return what changes the parameter that a text names."""
    if not isinstance(weaken, str) or not weaken:
        return None
    return partial(weaker_learner, learner, NoiseParameter.parse(weaken), arms=arms, rounds=rounds)


def _check_rounds(rounds: int | None, pair: Pair | None) -> int:
    if rounds is None:
        if pair is None:
            raise ValueError("rounds must be given where no pair is")
        return pair.rounds
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds!r}")
    if pair is not None and pair.rounds != rounds:
        raise ValueError(f"the pair has {pair.rounds} rounds, but rounds = {rounds} was asked for")
    return rounds


def _arms(learner: object, arms: int | None, pair: Pair | None) -> int:
    """Return the number of arms: as asked for, else the learner's, else the pair's, else 2."""
    if arms is not None:
        if arms < 1:
            raise ValueError(f"arms must be at least 1, got {arms!r}")
        return arms
    own = getattr(learner, "arms", None)
    return own if isinstance(own, int) else (pair.arms if pair is not None else None) or 2


def _check_pairs(
    learner: Any, claim: Claim, rounds: int, runs: int, pair: Pair | None, pairs: Iterable[Pair] | None
) -> Sequence[Pair]:
    if pair is not None:
        options: Sequence[Pair] = [pair]
    else:
        options = list(pairs) if pairs is not None else candidates(learner, claim, rounds=rounds, runs=runs)
    if not options:
        raise ValueError("there is no pair to audit on")
    if claim.surface != "actions" and not has_release(learner):
        nothing = f"{type(learner).__name__} releases nothing noisy{inherited(learner)}"
        raise ValueError(f"{nothing}: audit the surface 'actions'")
    if claim.surface == "publication" and not publishes(learner):
        raise ValueError(f"{type(learner).__name__} publishes nothing: audit the surface 'release' or 'actions'")
    for option in options:
        check_pair(option, claim, learner)
    return options
