"""A user's own bound on regret: `check_regret`, beside `check_learner`."""

from __future__ import annotations

import math
import reprlib
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from ...errors import must_be, must_be_one_of
from ...learners.blame import name_of
from ...learners.checks import check_whole
from ...learners.entry import RegretClaim, Setting
from ...learners.problems.losses import LOSS_SETS
from ...learners.protocol import LearnerError
from ...learners.scalar import arms_of
from ..execution.execution import IN_PROCESS, Budget, Execution
from ..statistics.digits import at_least, confidence_text, within
from .measurement import BUDGET, EXACT
from .regret_audit import RegretAudit, RegretRequest, audit_regret
from .verdicts import HOLDS, VACUOUS, VIOLATED, YOURS

#: The horizons, as powers of two, between which a bound's growth in the end is told.
_GROWTH_POWERS = (59, 60)
#: Seconds of processor time that a bound may take at any horizon.
_MAX_SECONDS = 0.25


class OpenBoundError(AssertionError):
    """Raised by `check_regret` where a bound is neither violated nor known to hold."""


def own_claim(bound: float | Callable[[int], float], rounds: int) -> RegretClaim:
    """Return a user's bound as a claim: a function of T, or a number for one horizon.

    Where a function has no number of at least 0 at another horizon than `rounds`, it says nothing there.

    Raises
    ------
    ValueError
        If it is neither, or a function that has no such number at `rounds`, or takes ever longer at longer ones.
    """
    if not callable(bound):
        number = _number(bound)
        if number is None:
            raise must_be("a bound on regret", "a number of at least 0 or a function of T", bound)
        return RegretClaim(bound=lambda setting, _: number, exponent=0.0, source=YOURS)

    def at(t: int) -> float:
        try:
            value, problem = bound(t), ""
        except Exception as error:
            value, problem = None, f"it raised {type(error).__name__}: {error}"
        number = _number(value)
        if number is None and t == rounds:
            problem = problem or f"got {reprlib.repr(value)}"
            raise ValueError(f"a bound on regret must have a number of at least 0 at T = {t}: {problem}")
        return math.inf if number is None else number

    _check_quick(at, rounds)
    return RegretClaim(bound=lambda setting, _: at(setting.rounds), exponent=_exponent(at), source=YOURS)


def _check_quick(bound: Callable[[int], float], rounds: int) -> None:
    """Raise ValueError for a bound that takes ever longer, as a sum over the rounds: the last horizon has no end."""
    first, t = math.inf, rounds
    while t <= 2 ** _GROWTH_POWERS[-1]:
        start = time.process_time()
        bound(t)
        took = time.process_time() - start
        if took > max(_MAX_SECONDS, 10 * first):
            message = f"a bound on regret must be a formula, for it is asked at T = 2^{_GROWTH_POWERS[-1]} too"
            raise ValueError(f"{message}: at T = {t:,} it took {took:.2g} s, and at T = {rounds:,} {first:.2g} s")
        first, t = (took if t == rounds else first), 2 * t


def _number(value: object) -> float | None:
    """Return a number of at least 0 as a float, infinity where it is too large for one; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.integer | np.floating):
        return None
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    return number if number >= 0 else None


def _exponent(bound: Callable[[int], float]) -> float:
    """Return how a bound grows in the end, 0 where it is not told: constants bend it at short horizons."""
    low, high = (bound(2**power) for power in _GROWTH_POWERS)
    return math.log2(high / low) if 0 < low <= high < math.inf else 0.0


def audit_own_bound(
    target: object,
    bound: float | Callable[[int], float],
    setting: Setting,
    budget: Budget = BUDGET,
    execution: Execution = IN_PROCESS,
    *,
    parameters: Mapping[str, object] | None = None,
    search: bool = False,
) -> RegretAudit:
    """Return the regret beside a user's bound; of a number nothing is said beyond its horizon.

    Nor of the growth of a function that is not positive and finite at all horizons.
    """
    claim, horizons = own_claim(bound, setting.rounds), None if callable(bound) else ()
    request = RegretRequest(
        target, setting, parameters=parameters or {}, claim=claim, search=search, horizons=horizons
    )
    audit = audit_regret(request, budget, execution)
    if callable(bound) and audit.bound_slope is not None:
        return audit
    return replace(
        audit,
        exponent=None,
        bound_slope=None,
        binds_from=audit.binds_from if callable(bound) else None,
        growth_verdict=None,
        growth_lower=None,
        growth_upper=None,
    )


def check_regret(
    learner: object,
    bound: float | Callable[[int], float],
    *,
    rounds: int = 256,
    arms: int | None = None,
    losses: str = "unit",
    parameters: Mapping[str, object] | None = None,
    runs: int = 2000,
    seed: int = 0,
    confidence: float = 0.99,
    search: bool = False,
    jobs: int = 1,
) -> RegretAudit:
    """Raise unless a learner's expected regret keeps a bound on every adversarial loss sequence that is played.

    Parameters
    ----------
    learner : class, or learner
        A class with `act()` and `update(feedback)`, built as `Class(arms, rounds, rng, **parameters)`, or a learner of
        the batched protocol.
    bound : float, or callable
        On the expected regret against the best fixed action, in units of the losses, for losses that are fixed in
        advance. A function of T is judged on its growth too, where it is positive and finite at all horizons: against
        its slope over them or in the end, whichever is steeper; the horizons are T and its halves, from T = 32 on. It
        is a formula, and no sum over the rounds: it is asked at T = 2^60 too.
    rounds, arms, losses
        T, the arms, by default those of a learner of the batched protocol or 2, and the loss set: "unit" is [0, 1].
    runs, seed, confidence
        Runs for each loss sequence; the error of the verdict, over all sequences, is at most 1 - confidence. A plain
        class plays them on the three worst sequences of a pilot, and a tenth of them on the others.
    search : bool
        Whether to search for a worse sequence first.

    Returns
    -------
    RegretAudit
        Its `bound_verdict` is HOLDS: on every sequence that was played. Its `growth_verdict` need not be: that may be
        UNDECIDED, or VACUOUS where the bound says something at too few of the horizons.

    Raises
    ------
    LearnerError
        If the bound, or its growth, is violated, or the learner misbehaves.
    OpenBoundError
        An AssertionError: if the bound is VACUOUS, as nothing could exceed it in so few rounds, or UNDECIDED, as an
        interval straddles it.
    ValueError
        For arguments outside their range.

    Examples
    --------
    >>> from overclaim.learners import Exp3
    >>> check_regret(Exp3(arms=2, eta=0.1, gamma=0.1), 60.0, runs=200).bound_verdict
    'HOLDS'
    """
    rounds, arms = check_whole("rounds", rounds), check_whole("arms", arms_of(learner, arms))
    if losses not in LOSS_SETS:
        raise must_be_one_of("losses", LOSS_SETS, losses)
    setting = Setting(rounds=rounds, arms=arms, losses=losses)
    budget = Budget(runs=runs, seed=seed, confidence=confidence)
    audit = audit_own_bound(learner, bound, setting, budget, Execution(jobs), parameters=parameters, search=search)
    horizon = f"{rounds} round{'s' * (rounds != 1)}"
    if audit.bound_verdict == VIOLATED:
        raise LearnerError(
            f"the expected regret of {name_of(learner)} exceeds the bound of {audit.bound:.4g} in {horizon}: "
            f"{_measured(audit)}"
        )
    if audit.growth_verdict == VIOLATED:
        slope = at_least(audit.growth_lower, ".3g")
        raise LearnerError(
            f"the regret of {name_of(learner)} grows as T^{slope} at least, the bound as "
            f"T^{audit.bound_slope:.3g} over the same horizons"
        )
    if audit.bound_verdict != HOLDS:
        number = "infinity" if audit.bound is None else f"{audit.bound:.4g}"
        raise OpenBoundError(
            f"the bound of {number} on the expected regret of {name_of(learner)} is {audit.bound_verdict} in "
            f"{horizon}: {_why_open(audit)}"
        )
    return audit


def _measured(audit: RegretAudit) -> str:
    low, high = within(*audit.regret.interval)
    return (
        f"on {audit.sequence!r} losses the mean is {audit.regret.mean:.4g}, the interval {low} to {high} "
        f"({confidence_text(audit.regret.confidence)} confidence, {audit.regret.runs} runs)"
    )


def _why_open(audit: RegretAudit) -> str:
    """Return why nothing is known of a bound, and what may help."""
    if audit.bound_verdict == VACUOUS:
        horizon = f", it says something from T = {audit.binds_from:,} on" if audit.binds_from else ""
        return f"no learner could exceed it on these losses{horizon}"
    help_ = "more runs may decide" if audit.regret.interval_method in EXACT else "no largest regret is known here"
    return f"{_measured(audit)}; {help_}"
