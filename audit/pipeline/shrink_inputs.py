"""Shrink the data: the fewest records and the simplest values that still falsify, certified afresh."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from functools import partial

from ..execution.execution import Budget, seed_beyond
from ..play.data import DataPair
from ..play.mechanism_runs import RefusedInputError
from ..spaces.candidates import Candidate, Space
from ..verdicts.shrinking import (
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
from ..verdicts.witness import ShrunkInputs
from .frame import FEWEST_RUNS, all_runs, conclude
from .mechanism_stages import MechanismAudit

#: The most trials.
TRIALS = 14


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
    budget, judge = audit.budget, _Judge(audit)
    simplified(space.candidate_of(pair.left, pair.right), space.simpler, judge)
    fewer = replace(budget, runs=min(budget.runs, CERTIFIED_RUNS))
    shrunk = certified_in_turn(judge.accepted, partial(_audited, audit), fewer, TRIALS)
    smallest, certified, result = shrunk or (None, budget, falsified)
    return ShrunkInputs(
        pair=pair if smallest is None else DataPair(smallest.left, smallest.right),
        **certified_of(result),
        seed=certified.seed,
        runs=certified.runs,
        trials=judge.trials,
        confidence=certified.confidence,
        fresh=shrunk is not None,
    )


@dataclass
class _Judge:
    """Judges candidates by trial audits."""

    audit: MechanismAudit
    trials: int = 0
    accepted: list[Candidate] = field(default_factory=list)

    @property
    def spent(self) -> bool:
        """Whether nothing more may be tried."""
        return self.trials == TRIALS

    def __call__(self, candidate: Candidate) -> bool:
        """Return whether a trial audit falsifies the claim on a candidate."""
        self.trials += 1
        audit, budget, stage = self.audit, self.audit.budget, f"shrink {self.trials}"
        runs = max(FEWEST_RUNS, min(budget.runs // PART, TRIAL_RUNS))
        share = Budget(runs, seed_beyond(budget.seed, SEED_SHIFT + self.trials), 1 - TRIAL_ALPHA)

        def judged() -> bool:
            result = _audited(audit, candidate, share, stage)
            return result is not None and result.verdict is Verdict.FALSIFIED

        if falsifies := bool(audit.once(stage, judged)):
            self.accepted.append(candidate)
        return falsifies


def _audited(audit: MechanismAudit, candidate: Candidate, budget: Budget, stage: str) -> Result | None:
    """Return an audit on a pair with a budget of its own; None where the mechanism raises on it."""
    execution = replace(audit.execution.inside(stage), progress=False, cluster=None)
    # A call that takes too long ends an attempt as a whole: none certifies without its slow runs.
    limited = replace(audit, mechanism=audit.limited, budget=budget, execution=execution, index=0, spent=0)
    start = time.perf_counter()
    try:
        return conclude(limited, all_runs(limited, [DataPair(candidate.left, candidate.right)]), start)
    except RefusedInputError:
        return None
