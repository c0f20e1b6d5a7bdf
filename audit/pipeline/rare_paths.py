"""Rare branches that show the input: stretched noise makes them common, and audits of it find leads.

With its noise stretched ninefold a sound target is more private, while a branch of probability 5e-6 is taken in a
fifth of the runs. An audit of the stretched target that falsifies the claim is a lead. It stands where its event is
never seen in ordinary runs on the other input, and where stretching one call site alone tells its probability: each
run is weighted by its likelihood ratio. A lead certifies nothing: its event is counted in ordinary runs, or reported.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import all_ours
from ...learners.protocol import LearnerError
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.faults import Fault
from ...mechanisms.numerics import fewest
from ..attacks.protocol import FittedAttack
from ..encoding.features import Outputs
from ..encoding.places import as_text
from ..execution.execution import seed_beyond
from ..play.learner_mechanism import LearnerMechanism
from ..play.mechanism_runs import outputs_of
from ..statistics.certificates import certify_claim
from ..statistics.events import UNUSED, Counts, Event
from ..verdicts.rare import Rare
from .frame import Audit, Certified, Choice, all_runs
from .mechanism_stages import MechanismAudit
from .power_test import PowerTest, place_words, planted

#: What noise is divided by.
STRETCHED = 1 / 9
#: Runs of one stretched target: a share of the audit's, up to so many; and the share of all of them together.
SHARE, MAX_RUNS, TOTAL_SHARE = 1 / 8, 4_000, 1 / 2
#: Runs that have to share a value for the event to be narrowed to it, and to estimate its probability.
SHARED = 5
#: Runs that show a rare event: from so many a site's estimate will do, and so many certify it or none do.
CLEAR, MAX_HITS = 100, 4_000
#: The seeds of stretched audits are the audit's own plus this and what follows it; the part of the key of other runs.
SEED_SHIFT, PART = 2_600_000, 9


@dataclass(frozen=True)
class RareOutputs:
    """A fitted attack that names runs as another one does, where their output is one of some values.

    Attributes
    ----------
    attack, event
        The other attack, and its event.
    side : int
        Which runs of the event: 1 for those that are named left, -1 for right.
    values : frozenset of str
        Texts of outputs; empty where any will do.
    """

    attack: FittedAttack[Any]
    event: Event
    side: int
    values: frozenset[str] = frozenset()
    name: str = "rare outputs"
    exact: bool = False
    wording: str = ""

    def score(self, outputs: Outputs) -> Floats:
        """Return the side for runs that are named, and 0 for others."""
        return self.side * self.named(outputs).astype(float)

    def named(self, outputs: Outputs) -> NDArray[np.bool_]:
        """Return which runs are named."""
        is_named: NDArray[np.bool_] = self.event.sides(self.attack.score(outputs)) == self.side
        if self.values:
            is_named &= np.array([text in self.values for text in _texts(outputs)])
        return is_named

    @property
    def one_sided(self) -> Event:
        """The event of these scores."""
        return Event(UNUSED, 0.5, "joint") if self.side > 0 else Event(-0.5, UNUSED, "joint")


def can_be_rare(audit: Audit) -> bool:
    """Tell whether rare branches are looked for: in runs of a user's code, each on a generator of its own."""
    target = audit.target
    if not isinstance(audit, MechanismAudit) or audit.unseeded or all_ours(target):
        return False
    run_by_run = not getattr(target, "batched", False) or isinstance(target, LearnerMechanism)
    return run_by_run and planted(target, Fault(STRETCHED)) is not None


@dataclass(frozen=True)
class Look:
    """The search for leads on a pair of inputs, in the pilot of an audit."""

    audit: MechanismAudit
    choice: Choice

    def led(self, n_counted: int) -> tuple[Choice, Rare | None]:
        """Return what to certify in so many runs, and the lead that stands; without one what was chosen."""
        for number, fault in enumerate(self.faults()):
            rare = self.lead(number, fault)
            if rare is not None:
                attack, certified = rare
                if certified.runs is not None and certified.runs <= n_counted:
                    event = attack.one_sided
                    return replace(self.choice, attack=attack, event=event, in_words="", alike=False), certified
                return self.choice, certified
        return self.choice, None

    @property
    def runs(self) -> int:
        """Runs of each stretched target."""
        return min(MAX_RUNS, int(SHARE * self.audit.budget.runs))

    def faults(self) -> Iterator[Fault]:
        """Yield the stretched noises: of all draws, then of each call site, where that is another one."""
        test = PowerTest(self.audit, self.audit.target, self.choice.pair, 1.0)
        max_faults = int(TOTAL_SHARE * self.audit.budget.runs / max(1, self.runs))
        outputs_seen = [test.shown(Fault(1.0), 64)]
        for fault in [Fault(STRETCHED), *(Fault(STRETCHED, site=place) for place in test.places)][:max_faults]:
            outputs = test.shown(fault, 64)
            if outputs is not None and outputs not in outputs_seen:
                outputs_seen.append(outputs)
                yield fault

    def lead(self, number: int, fault: Fault) -> tuple[RareOutputs, Rare] | None:
        """Return the lead that an audit with stretched noise finds, if one stands."""
        audit = self.audit
        target = planted(audit.target, fault)
        test = replace(
            audit.of(target),
            budget=replace(
                audit.budget, runs=self.runs, seed=seed_beyond(audit.budget.seed, SEED_SHIFT + number), stop="budget"
            ),
            execution=replace(audit.execution, progress=False, cluster=None, memory=None),
        )
        try:
            certified = all_runs(test, [self.choice.pair])
        except (LearnerError, ValueError):  # it cannot cope with the noise, or the runs are too few
            return None
        if certified.certificate.lower <= audit.claim.measure.level:
            return None
        for side in (1, -1):
            attack = self._narrowed(target, certified, side)
            rare = None if attack is None else self._measured(attack, fault)
            if attack is not None and rare is not None:
                return attack, rare
        return None

    def _narrowed(self, target: Any, certified: Certified, side: int) -> RareOutputs | None:
        """Return the event of a lead on one side, narrowed to shared values; None where ordinary runs show it too."""
        attack = RareOutputs(certified.choice.attack, certified.choice.event, side)
        outputs = self._outputs(target, side, self.runs)
        texts = [
            text for text, is_named in zip(_texts(outputs), attack.named(outputs).tolist(), strict=True) if is_named
        ]
        if len(texts) < SHARED:
            return None
        values = frozenset(text for text, count in Counter(texts).items() if count >= SHARED)
        attack = replace(attack, values=values)
        ordinary = self._outputs(self.audit.target, -side, MAX_RUNS)
        return None if attack.named(ordinary).any() else attack

    def _measured(self, attack: RareOutputs, fault: Fault) -> Rare | None:
        """Return how likely the event is by its own noise, and the line that draws; None where no line tells it."""
        places = PowerTest(self.audit, self.audit.target, self.choice.pair, 1.0).places
        best: tuple[int, float, str] | None = None
        for place in places if fault.site is None else [fault.site]:
            weights = list[float]()
            target = planted(self.audit.target, Fault(STRETCHED, site=place, weights=weights))
            is_named = attack.named(self._outputs(target, attack.side, self.runs))
            hits = int(is_named.sum())
            if hits >= SHARED and len(weights) == is_named.size and (best is None or hits > best[0]):
                best = hits, float(np.exp(np.array(weights)[is_named]).sum() / is_named.size), place
            if hits >= CLEAR:
                break
        delta = self.audit.claim.delta
        if best is None or not best[1] > delta:  # nan too
            return None
        _, probability, place = best
        needed_runs = self._runs_needed(attack, probability)
        return Rare(probability, place_words(place), needed_runs, "left" if attack.side > 0 else "right")

    def _outputs(self, target: Any, side: int, runs: int) -> Outputs:
        """Return outputs of fresh runs on one input."""
        pair = self.choice.inputs
        draws = Draws(seed_beyond(self.audit.budget.seed, SEED_SHIFT), Stage.SEARCH, self.choice.index, PART, side + 1)
        if getattr(target, "in_step", False):
            return outputs_of(target, (pair.left, pair.right), draws, runs, np.full(runs, side > 0))
        return outputs_of(target, pair.left if side > 0 else pair.right, draws, runs)

    def _runs_needed(self, attack: RareOutputs, probability: float) -> int | None:
        """Return how many counted runs certify an event of a probability on one input and never on the other."""
        certifies = partial(_certifies, self.audit, attack, probability)
        if not certifies(MAX_HITS):
            return None
        return int(2 * fewest(certifies, 1, MAX_HITS) / probability)


def _certifies(audit: Audit, attack: RareOutputs, probability: float, hits: int) -> bool:
    """Return whether the claim is falsified by so many runs that show the event, in as many as that takes."""
    half = int(hits / probability)
    counts = Counts(2 * half, half, left_upper=hits) if attack.side > 0 else Counts(2 * half, half, right_lower=hits)
    certificate = certify_claim(audit.claim.measure, attack.one_sided, counts, alpha=audit.budget.alpha)
    return bool(certificate.lower > audit.claim.measure.level)


def _texts(outputs: Outputs) -> Sequence[str]:
    """Return a text for each output, the same for equal ones."""
    if isinstance(outputs, np.ndarray):
        return [str(column) for column in np.atleast_2d(outputs).T.tolist()]
    return [as_text([output]) for output in outputs]
