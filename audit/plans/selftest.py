"""The self-test: whether this audit catches the bugs that it should, and leaves sound things alone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial

from ...learners.entry import Setting
from ...learners.protocol import LearnerError
from ...learners.scalar import as_learner
from ...mechanisms.claim import Claim
from ..execution.execution import IN_PROCESS, Budget, Execution, seed_beyond
from ..execution.workers import in_parallel
from ..pipeline.audited import audited
from ..pipeline.given import Given
from ..play.data import DataPair
from ..play.pairs import Pair
from ..regret.check_regret import audit_own_bound
from ..regret.verdicts import VIOLATED
from ..statistics.digits import at_least, within
from ..traces.summary import place_of_fault
from ..verdicts.verdict import Result, Verdict
from .catalogues import PlantedLearner, PlantedSubject, self_test
from .targets import source_place

#: Budgets, tried until one catches; they share the error evenly.
BUDGETS = (1_000, 4_000, 20_000, 60_000)
#: The chance that one sound thing is called broken, over all its budgets.
ALPHA = 1e-4
#: A plain class runs in a Python loop, so its last budget is smaller.
CLASS_BUDGETS = (500, 2_000, 6_000)
#: The horizon at which faults of regret are looked for, and the runs of each loss sequence.
HORIZON, REGRET_RUNS = 256, 100
#: The worlds of the plain classes.
PAIR = Pair([[1, 0], [0, 0], [0, 0], [0, 0]], [[0, 1], [0, 0], [0, 0], [0, 0]])
#: The place of the first learner whose regret is audited.
_REGRET = 1_000


@dataclass(frozen=True)
class SelfTestResult:
    """What became of one planted bug, or of the sound original.

    Attributes
    ----------
    subject, bug, what : str
        Where, which, and what it does; `bug` is empty for the original.
    outcome : str
        "CAUGHT" or "MISSED" for a bug, "FALSE ALARM" or "QUIET" for an original.
    runs : int
        Used in all.
    how : str
        The bound with its attack, or the rule of the conformance suite that was broken.
    seconds : float
    traced : str
        Of a bug: what traces find in two runs, a bypass, a lost track or the call with its place; or nothing.
    """

    subject: str
    bug: str
    what: str
    outcome: str
    runs: int
    how: str
    seconds: float
    traced: str = ""

    @property
    def good(self) -> bool:
        """Whether the audit did its duty."""
        return self.outcome in ("CAUGHT", "QUIET")


def selftest(execution: Execution = IN_PROCESS, *, seed: int = 0, sound: bool = True) -> list[SelfTestResult]:
    """Audit every planted bug and, unless `sound` is false, every sound original; but what a memory holds."""
    items, memory = [item for item in _items() if sound or item[1]], execution.memory
    recalled = {item: memory.recall_stage(repr(item)) if memory is not None else None for item in items}
    results = {item: SelfTestResult(**json.loads(text)) for item, text in recalled.items() if text is not None}
    missing = [item for item in items if item not in results]
    looked = in_parallel(
        partial(_look, seed=seed), missing, jobs=execution.jobs, progress="bugs" if execution.progress else None
    )
    for item, result in zip(missing, looked, strict=True):
        results[item] = result
        if memory is not None:
            memory.keep_stage(repr(item), json.dumps(asdict(result)).encode())
    return [results[item] for item in items]


def _items() -> list[tuple[int, str]]:
    """Return (subject, bug) by the subject's place; the plain classes are the subject -1, learners come last."""
    planted = self_test()
    items = [(i, bug) for i, subject in enumerate(planted.mechanisms()) for bug in ("", *subject.bugs)]
    items += [(-1, "")] + [(-1, learner_class.__name__) for learner_class in planted.classes()[1:]]
    learning = enumerate(planted.learners(), start=_REGRET)
    return items + [(i, bug) for i, learner in learning for bug in ("", *learner.faults)]


def _look(item: tuple[int, str], *, seed: int) -> SelfTestResult:
    index, bug = item
    start = time.perf_counter()
    if index >= _REGRET:
        learner = self_test().learners()[index - _REGRET]
        name, fault = learner.name, learner.faults[bug][0] if bug else ""
        caught, runs, evidence = _audit_regret(learner, bug, seed)
    elif index < 0:
        learner_class = _class_of(bug)
        fault = (learner_class.__doc__ or "").removeprefix("Bug: ").rstrip(".") if bug else ""
        caught, runs, evidence = _audit_class(learner_class, seed)
        name = "plain class"
    else:
        subject = self_test().mechanisms()[index]
        fault, name = subject.bugs.get(bug, ""), subject.name
        caught, runs, evidence = _audit_mechanism(subject, bug, seed)
    outcome = ("CAUGHT" if caught else "MISSED") if bug else ("FALSE ALARM" if caught else "QUIET")
    traced = _traced(index, bug) if bug and index < _REGRET else ""
    return SelfTestResult(name, bug, fault, outcome, runs, evidence, round(time.perf_counter() - start, 3), traced)


def _class_of(bug: str) -> type:
    """Return the plain class with a bug; the sound one where the name is empty."""
    sound, *broken = self_test().classes()
    return next((learner_class for learner_class in broken if learner_class.__name__ == bug), sound)


def _traced(index: int, bug: str) -> str:
    """Return what traces say of a bug."""
    if index < 0:
        learner_class = _class_of(bug)
        code: object = learner_class
        text = place_of_fault(as_learner(learner_class, arms=2, rounds=PAIR.rounds), PAIR, Claim(epsilon=1.0))
    else:
        subject = self_test().mechanisms()[index]
        pair, code = DataPair(subject.left, subject.right), subject.play
        text = place_of_fault(self_test().planted(subject, bug), pair, Claim(epsilon=1.0, delta=subject.delta))
    source = source_place(code) if text.startswith(("BYPASS", "NOT BOUNDED")) and ".py:" not in text else None
    return text if source is None else f"{text}; it is written at {source['file']}:{source['line']}"


def _audit_mechanism(subject: PlantedSubject, bug: str, seed: int) -> tuple[bool, int, str]:
    claim = Claim(epsilon=1.0, delta=subject.delta)
    mechanism, confidence = self_test().planted(subject, bug), 1 - ALPHA / len(BUDGETS)

    def tried(runs: int, i: int) -> Result:
        budget = Budget(runs, seed_beyond(seed, i), confidence)
        return audited(mechanism, claim, budget, inputs=Given(left=subject.left, right=subject.right))

    return _first_caught(BUDGETS, tried)


def _audit_class(learner_class: type, seed: int) -> tuple[bool, int, str]:
    claim, confidence = Claim(epsilon=1.0), 1 - ALPHA / len(CLASS_BUDGETS)
    return _first_caught(
        CLASS_BUDGETS,
        lambda runs, i: audited(
            learner_class, claim, Budget(runs, seed_beyond(seed, i), confidence), inputs=Given(pair=PAIR)
        ),
    )


def _audit_regret(learner: PlantedLearner, fault: str, seed: int) -> tuple[bool, int, str]:
    setting, bound = Setting(rounds=HORIZON, losses=learner.losses), learner.bound(HORIZON)
    audited = audit_own_bound(learner.planted(fault, HORIZON), bound, setting, Budget(REGRET_RUNS, seed, 1 - ALPHA))
    low, high = within(*audited.regret.interval)
    evidence = f"regret of {low} to {high} on {audited.sequence} losses, bound {bound:.4g}"
    return audited.bound_verdict == VIOLATED, REGRET_RUNS * len(audited.means), evidence


def _first_caught(budgets: tuple[int, ...], audit: Callable[[int, int], Result]) -> tuple[bool, int, str]:
    """Return whether some budget caught it, the runs used until then, and how."""
    total_runs, evidence = 0, ""
    for i, runs in enumerate(budgets):
        try:
            result = audit(runs, i)
        except LearnerError as error:
            return True, total_runs, f"conformance: {error}"
        total_runs += runs
        evidence = f"epsilon at least {at_least(result.epsilon_lower, '.3g')}, {result.attack}"
        if result.verdict is Verdict.FALSIFIED:
            return True, total_runs, evidence
    return False, total_runs, evidence
