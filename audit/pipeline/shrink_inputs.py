"""Shrink the data: the fewest records and the simplest values that still falsify, certified afresh.

As for loss sequences (`plans.shrink`), every step is judged by a trial audit that must falsify with little doubt:
among many trials some are lucky. The last pair is then certified on runs that nothing before has seen; if it fails,
larger ones of those that were accepted. At most `CERTIFICATES` pairs are certified, each at alpha / `CERTIFICATES`, so
that the one which is shown is wrong with probability at most alpha.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from ..execution.execution import Budget, seed_beyond
from ..play.mechanism_runs import DataPair, RefusedInputError
from ..spaces.candidates import Candidate, Space
from .frame import FEWEST_RUNS, all_runs, conclude
from .mechanism_stages import MechanismAudit
from .verdict import Result, Verdict
from .witness import ShrunkInputs

#: The seed of the first certificate is the audit's own plus this; trials and other certificates use later ones. No
#: stream is drawn twice.
FRESH = 1_000_000
#: The most pairs that are certified.
CERTIFICATES = 3
#: The doubt of a trial: it must falsify with this alpha, so that a pair which passes by luck is still a good one.
TRIAL_ALPHA = 1e-6
#: A trial has this part of the runs, and there are at most so many.
PART, TRIALS = 4, 14
#: The most runs of a trial and of a certificate.
TRIAL_RUNS, CERTIFIED_RUNS = 20_000, 200_000

Thing = TypeVar("Thing")


def to_certify(accepted: Sequence[Thing]) -> list[Thing]:
    """Return what to certify in turn: the last that was accepted, and a half and a quarter of the way to it."""
    places = dict.fromkeys(len(accepted) * share // 4 for share in (4, 2, 1))
    return [accepted[place - 1] for place in places if place > 0][:CERTIFICATES]


def certified_in_turn(
    accepted: Sequence[Thing],
    audited: Callable[[Thing, Budget, str], Result | None],
    budget: Budget,
    most_trials: int,
) -> tuple[Thing, Budget, Result] | None:
    """Return the first of those `to_certify` that falsifies on fresh runs, the budget and the audit; None if none.

    They share the error of `budget`, whose seed is that of the audit that found the witness. `audited` is told the
    name of a stage too.
    """
    for i, smaller in enumerate(to_certify(accepted)):
        seed = seed_beyond(budget.seed, FRESH + (i and most_trials + i))  # beyond those of the trials
        fresh = Budget(budget.runs, seed, 1 - budget.alpha / CERTIFICATES)
        result = audited(smaller, fresh, f"shrunk {i}")
        if result is not None and result.verdict is Verdict.FALSIFIED:
            return smaller, fresh, result
    return None


def shrink_inputs(audit: MechanismAudit, space: Space, falsified: Result) -> ShrunkInputs:
    """Return the smallest inputs found on which the claim is still falsified.

    Where no smaller ones certify they are the audit's own with its own certificate: of a weak violation a trial, which
    has fewer runs, may show none.

    Parameters
    ----------
    audit : MechanismAudit
        The audit that falsified it.
    space : Space
        Where its pairs come from.
    falsified : Result
        What it found.
    """
    pair = falsified.inputs
    budget, accepted, trials = audit.budget, list[Candidate](), 0
    candidate = space.candidate_of(pair.left, pair.right)
    runs = max(FEWEST_RUNS, min(budget.runs // PART, TRIAL_RUNS))
    while trials < TRIALS:
        for simpler in space.simpler(candidate):
            if trials == TRIALS:
                break
            trials += 1
            fresh = Budget(runs, seed_beyond(budget.seed, FRESH + trials), 1 - TRIAL_ALPHA)
            if _falsifies(audit, simpler, fresh, f"shrink {trials}"):
                accepted.append(candidate := simpler)
                break
        else:
            break
    fewer = replace(budget, runs=min(budget.runs, CERTIFIED_RUNS))
    found = certified_in_turn(accepted, partial(_audited, audit), fewer, TRIALS)
    smallest, certified, result = found or (None, budget, falsified)
    return ShrunkInputs(
        pair=pair if smallest is None else DataPair(smallest.left, smallest.right),
        **certified_of(result),
        seed=certified.seed,
        runs=certified.runs,
        trials=trials,
        confidence=certified.confidence,
        fresh=found is not None,
    )


def certified_of(result: Result) -> dict[str, Any]:
    """Return what a shrunk witness says of a certificate: the bound and the claim, in their own measure too."""
    measure = result.claim.measure
    own: dict[str, Any] = {} if measure.is_epsilon else {"lower": result.lower, "measure": measure.to_json()}
    return {"epsilon_lower": result.epsilon_lower, "claimed": result.claim.epsilon, **own}


def _falsifies(audit: MechanismAudit, candidate: Candidate, budget: Budget, stage: str) -> bool:
    def judged() -> bool:
        result = _audited(audit, candidate, budget, stage)
        return result is not None and result.verdict is Verdict.FALSIFIED

    return bool(audit.once(stage, judged))


def _audited(audit: MechanismAudit, candidate: Candidate, budget: Budget, stage: str) -> Result | None:
    """Return an audit on a pair with a budget of its own; None where the mechanism raises on it."""
    execution = replace(audit.execution.inside(stage), progress=False, cluster=None)
    # A call that takes too long ends an attempt as a whole: none certifies without its slow runs.
    fresh = replace(audit, mechanism=audit.limited, budget=budget, execution=execution, index=0, spent=0)
    began = time.perf_counter()
    try:
        return conclude(fresh, all_runs(fresh, [DataPair(candidate.left, candidate.right)]), began)
    except RefusedInputError:
        return None
