"""The power of an audit that survived: faults are planted in the target's own noise, and the audit is made again.

The inputs stay, attacks and events are chosen anew. Each test has an error of its own, alpha divided by the number of
tests, and its runs are drawn from a seed that nothing else uses: no run of a faulty target enters the certificate of
the target. What is found is a statement about this audit, mutation testing of a privacy claim.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from ...learners.protocol import LearnerError
from ...learners.scalar import Scalar
from ...mechanisms.faults import KINDS, NEARER, REUSED, Fault
from ..execution.execution import seed_beyond
from ..execution.provenance import named_from_here
from ..play.faulty import FaultyLearner, FaultyMechanism
from ..play.learner_mechanism import LearnerMechanism
from ..play.unseeded import Unseeded
from ..verdicts.blind_spot import MISSING, BlindSpot, Site
from .frame import FIRST_PAIRED, Audit, all_runs

#: The factors that noise is divided by, below the one that decides.
FACTORS = (1.1, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0)
#: The share of the audit's runs: of the first test of each kind, of the second one of the best, of a bisected factor.
FIRST_SHARE, SECOND_SHARE, BISECTED_SHARE = 1 / 8, 1 / 2, 1 / 4
#: A test has as many runs as the audit where that has no more than these.
MIN_RUNS = 2_000
#: Call sites of draws that are tested, the runs of each, and those that find them.
MAX_SITES, SITE_RUNS, FINDING_RUNS = 6, 1_000, 64
#: The seeds of the tests are the audit's own plus this and what follows it.
SEED_SHIFT = 2_500_000


def planted(target: Any, fault: Fault) -> Any:
    """Return a target with a fault in its noise; None where its random numbers are not the audit's."""
    if isinstance(target, Unseeded):
        return None
    if isinstance(target, Scalar):
        return None if target.os_random else replace(target, fault=fault)
    if isinstance(target, LearnerMechanism):
        learner = planted(target.learner, fault)
        return None if learner is None else replace(target, learner=learner)
    return FaultyLearner(target, fault) if hasattr(target, "start") else FaultyMechanism(target, fault)


@dataclass(frozen=True)
class PowerTest:
    """The tests of one audit.

    Attributes
    ----------
    audit : Audit
    target
        What it audits.
    pair : Pair or DataPair
        The inputs that it certified.
    limit : float
        The factor that has to be caught.
    """

    audit: Audit
    target: Any
    pair: Any
    limit: float

    def measure(self) -> BlindSpot | None:
        """Return what the audit catches; None where no fault changes what its target shows."""
        if not self.kinds:
            return None
        caught, bounds, kind = None, dict[float, float](), self.kinds[0]
        bound_of_kind = {kind: self.bound(Fault(self.limit, kind), FIRST_SHARE) for kind in self.kinds[:1]}
        for kind in self.kinds[1:]:
            if max(bound_of_kind.values()) > self.level:
                break
            bound_of_kind[kind] = self.bound(Fault(self.limit, kind), FIRST_SHARE)
        kind = max(bound_of_kind, key=bound_of_kind.__getitem__)
        bounds[self.limit] = bound_of_kind[kind]
        if bound_of_kind[kind] <= self.level:
            bounds[self.limit] = self.bound(Fault(self.limit, kind), SECOND_SHARE)
        smaller_factors = [factor for factor in FACTORS if factor < self.limit]
        if bounds[self.limit] > self.level:
            caught, low, high = self.limit, -1, len(smaller_factors)
            while high - low > 1:
                middle = (low + high) // 2
                bounds[smaller_factors[middle]] = bound = self.bound(
                    Fault(smaller_factors[middle], kind), BISECTED_SHARE
                )
                low, high = (low, middle) if bound > self.level else (middle, high)
            caught = smaller_factors[high] if high < len(smaller_factors) else caught
        else:  # weak noise may hide what weaker noise shows, as the runner-up of a noisy maximum
            for factor in smaller_factors[: -1 - self.bisected : -1]:
                bounds[factor] = self.bound(Fault(factor, kind), BISECTED_SHARE)
                if bounds[factor] > self.level:
                    caught = factor
                    break
        alpha = self.audit.budget.alpha / self.tests
        spot = BlindSpot(caught, tuple(sorted(bounds.items())), None, alpha, kind=kind, limit=self.limit)
        return replace(spot, sites=tuple(self.sites()))

    @property
    def level(self) -> float:
        """What is claimed."""
        return self.audit.claim.measure.level

    @cached_property
    def places(self) -> list[str]:
        """The call sites of the target's draws, the first ones."""
        call_places: list[str] = []
        self.shown(Fault(1.0, places=call_places), FINDING_RUNS)
        return list(dict.fromkeys(call_places))[:MAX_SITES]

    @cached_property
    def kinds(self) -> list[str]:
        """The kinds of faults that change what the target shows, each in another way."""
        before, outputs = self.shown(Fault(1.0), FIRST_PAIRED), list[object]()
        kinds = list[str]()
        for kind in KINDS if before is not None else ():
            after = self.shown(Fault(self.limit, kind), FIRST_PAIRED)
            if after is not None and after != before and after not in outputs:
                kinds.append(kind)
                outputs.append(after)
        return kinds

    @cached_property
    def tests(self) -> int:
        """The most tests that share the error: of kinds, the best of them, a bisection's, and two of each site."""
        return len(self.kinds) + 1 + self.bisected + 2 * len(self.places)

    @property
    def bisected(self) -> int:
        """The most tests of smaller factors."""
        return math.ceil(math.log2(1 + sum(factor < self.limit for factor in FACTORS)))

    def shown(self, fault: Fault, runs: int) -> object:
        """Return what some runs of a faulty target show of the left input; None where they raise."""
        target = planted(self.target, fault)
        if target is None:
            return None
        try:
            return self.audit.of(target).shown_of_left(self.pair, runs)
        except LearnerError:
            return None

    def bound(self, fault: Fault, share: float, runs: int = 0) -> float:
        """Return what is certified about a faulty target; 0 where it raises."""
        budget, number = self.audit.budget, self._number(fault, share)
        runs = runs or max(min(budget.runs, MIN_RUNS), int(share * budget.runs))
        tests, seed = budget.tests * self.tests, seed_beyond(budget.seed, SEED_SHIFT + number)
        test = replace(
            self.audit.of(planted(self.target, fault)),
            budget=replace(budget, runs=runs, seed=seed, tests=tests, stop="budget"),
            execution=replace(self.audit.execution, progress=False, cluster=None).inside(f"fault {number}"),
        )
        return float(test.once("bound", partial(_bound, test, self.pair)))

    def _number(self, fault: Fault, share: float) -> int:
        """Return a number of its own for each test: it keys the random numbers."""
        if fault.site is not None:
            return 1_000 + 2 * self.places.index(fault.site) + (fault.kind == REUSED)
        place = FACTORS.index(fault.factor) if fault.factor in FACTORS else len(FACTORS)
        shares = (FIRST_SHARE, SECOND_SHARE, BISECTED_SHARE)
        return 100 * KINDS.index(fault.kind) + 20 * shares.index(share) + place

    def sites(self) -> Sequence[Site]:
        """Return what is caught of each call site alone: a draw that is missing, or has the first one's numbers."""
        sites = list[Site]()
        for place in self.places:
            for kind, fault in ((MISSING, Fault(math.inf, NEARER, place)), (REUSED, Fault(1.0, REUSED, place))):
                before, after = (self.shown(planted, FINDING_RUNS) for planted in (Fault(1.0), fault))
                if after is None or after == before:
                    continue
                caught = self.bound(fault, 0.0, min(SITE_RUNS, self.audit.budget.runs)) > self.level
                sites.append(Site(kind, place_words(place), caught))
        return sites


def place_words(place: str) -> str:
    """Return FILE:LINE without the folders of this machine."""
    file, _, line = place.rpartition(":")
    return f"{named_from_here(Path(file))}:{line}"


def _bound(audit: Audit, pair: object) -> float:
    try:
        return all_runs(audit, [pair]).certificate.lower
    except LearnerError:  # it cannot cope with the fault
        return 0.0
