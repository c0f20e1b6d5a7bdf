"""What a user's learner keeps between runs, wherever it is, is refused before an audit; what is constant is not."""

import itertools
import random
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

from overclaim import Claim, Verdict, falsify
from overclaim.audit.assumptions.shared_state import check_unshared, shared_state
from overclaim.learners import BatchedLaplace, Exp3, LearnerError

LOG = []
COUNT = 0
TABLE = {"rate": 0.5, "arms": [0, 1]}
TICKS = itertools.count()
DICE = random.Random(0)


class Fair:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.arms, self.rng, self.last = arms, rng, 0.0

    def act(self):
        return int(self.rng.integers(self.arms))

    def update(self, feedback):
        self.last = feedback * TABLE["rate"]


class Memory(Fair):
    memory = []  # noqa: RUF012

    def update(self, feedback):
        self.memory.append(feedback)


class Tally(Fair):
    plays = {}  # noqa: RUF012

    def act(self):
        arm = super().act()
        self.plays[arm] = self.plays.get(arm, 0) + 1
        return arm


class Attribute(Fair):
    best = None

    def update(self, feedback):
        type(self).best = feedback + 0.5


class Helper:
    total = np.zeros(2)

    @staticmethod
    def note(feedback):
        Helper.total[0] += feedback


class Helped(Fair):
    def update(self, feedback):
        Helper.note(feedback)


class Logging(Fair):
    def update(self, feedback):
        remember(feedback)


def remember(feedback):
    LOG.append(feedback)


class Counting(Fair):
    def act(self):
        global COUNT
        COUNT += 1
        return super().act()


class Default(Fair):
    def update(self, feedback, past={}):  # noqa: B006
        past[len(past)] = feedback


def enclosing():
    calls = 0

    class Enclosed(Fair):
        def act(self):
            nonlocal calls
            calls += 1
            return super().act()

    return Enclosed


class Ticking(Fair):
    def act(self):
        next(TICKS)
        return super().act()


class Dicing(Fair):
    def update(self, feedback):
        DICE.random()


class Functional(Fair):
    def update(self, feedback):
        remember_here.last = feedback + 0.5


def remember_here():
    return None


class Holder:
    def __init__(self):
        self.inside = {"past": [0.0]}


class Deep(Fair):
    holder = Holder()

    def update(self, feedback):
        self.holder.inside["past"][0] += feedback + 1


@dataclass(frozen=True)
class Recipe:
    """A batched learner whose recipe, which all runs share, remembers."""

    arms: int = 2
    feedback: str = "bandit"
    past: list = field(default_factory=list)

    def start(self, runs, draws):
        return {"runs": runs}

    def act(self, state, draws):
        return (draws.uniform(state["runs"]) < 0.5).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        self.past.append(1)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (Memory, "Memory.memory"),
        (Tally, "Tally.plays"),
        (Attribute, "Attribute.best"),
        (Helped, "Helper.total"),
        (Logging, "the global LOG"),
        (Counting, "the global COUNT"),
        (Default, "a default argument of Default.update"),
        (enclosing(), "calls, which .*Enclosed.act encloses,"),
        (Ticking, "the global TICKS"),
        (Dicing, "the global DICE"),
        (Functional, "remember_here.last"),
        (Deep, "Deep.holder"),
        (Recipe(), "its attribute past"),
        (BatchedLaplace(Recipe(), epsilon=1.0, batch=1), "its attribute past"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_changes_beside_a_run_is_refused(learner, name):
    with pytest.raises(LearnerError, match=f"keeps state between runs: {name} changed while it played"):
        falsify(learner, Claim(epsilon=1.0), rounds=3, runs=2000)


class Caching(Fair):
    """What is filled in once, constants, and a cache of a pure function are no state."""

    size = 3

    @cached_property
    def half(self):
        return self.arms / 2

    def act(self):
        return int(self.rng.random() * slowly(self.half)) if TABLE["arms"] else 0


@lru_cache
def slowly(x):
    return 2 * x


class Lazy(Fair):
    table = None

    def act(self):
        if Lazy.table is None:
            Lazy.table = np.arange(2.0)
        return super().act()


@pytest.mark.few(1)
@pytest.mark.parametrize("learner", [Fair, Caching, Lazy], ids=lambda kind: kind.__name__)
def test_what_does_not_change_is_let_be(learner):
    falsify(learner, Claim(epsilon=1.0), rounds=3, runs=2000)


def test_ours_have_nothing_to_look_at():
    assert shared_state(Exp3(arms=2, eta=0.5)) == {}


def test_installed_code_is_not_followed_but_its_values_are():
    class Sorted(Fair):
        generator = np.random.default_rng(0)

        def act(self):
            return int(np.argmin(self.rng.random(self.arms)))

    from overclaim.learners.scalar import Scalar

    learner = Scalar(Sorted, 2, 3)
    before = shared_state(learner)
    assert not any("numpy" in name for name in before)
    check_unshared(learner, before)
    Sorted.generator.random()
    with pytest.raises(LearnerError, match=r"Sorted\.generator changed"):
        check_unshared(learner, before)


ONCE, FIRST_SEEN = None, {}


class DrawnIntoAGlobal(Fair):
    def act(self):
        global ONCE
        if ONCE is None:
            ONCE = self.rng.laplace(size=2)
        return int(np.argmin(ONCE))


class DrawnIntoAClass(Fair):
    def act(self):
        if not hasattr(DrawnIntoAClass, "noise"):
            DrawnIntoAClass.noise = self.rng.laplace(size=2)
        return int(np.argmin(self.noise))


class DrawnInPlace(Fair):
    noise = np.zeros(2)

    def act(self):
        if not self.noise.any():
            self.noise[:] = self.rng.laplace(size=2)
        return int(np.argmin(self.noise))


def _enclosing():
    drawn = []

    class DrawnIntoAClosure(Fair):
        def act(self):
            if not drawn:
                drawn.append(self.rng.laplace(size=2))
            return int(np.argmin(drawn[0]))

    return DrawnIntoAClosure


@dataclass(frozen=True)
class DrawnIntoItself:
    arms: int = 2
    feedback: str = "bandit"
    noise: dict = field(default_factory=dict)

    def start(self, runs, draws):
        if not self.noise:
            self.noise["once"] = draws.uniform(2)
        return runs

    def act(self, state, draws):
        return np.full(state, np.argmin(self.noise["once"]))

    def update(self, state, actions, feedback, draws):
        pass


@pytest.mark.parametrize(
    ("learner", "name"),
    [
        (DrawnIntoAGlobal, "the global ONCE"),
        (DrawnIntoAClass, r"DrawnIntoAClass\.noise"),
        (DrawnInPlace, r"DrawnInPlace\.noise"),
        (_enclosing(), "drawn, which .* encloses,"),
        (DrawnIntoItself(), "its attribute noise"),
    ],
)
def test_what_is_drawn_once_for_all_runs_is_refused(learner, name):
    """All runs then hung on one draw, and the certified bound was of that draw."""
    with pytest.raises(LearnerError, match=rf"draws once for all runs: {name} was filled in by the first of them"):
        falsify(learner, Claim(epsilon=1.0), rounds=8, arms=2, runs=4000)


class Memoising(Fair):
    def act(self):
        arm = super().act()
        FIRST_SEEN.setdefault(arm, arm / 3)
        return arm


class FillsElsewhereToo(Fair):
    ready = False
    book = SimpleNamespace(filled=False)

    def act(self):
        if not FillsElsewhereToo.ready:
            if self.book.filled:
                raise RuntimeError("filled already")
            self.book.filled = FillsElsewhereToo.ready = True
        return super().act()


@pytest.mark.few(1)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("learner", [Memoising, FillsElsewhereToo])
def test_a_table_in_the_order_it_was_asked_for_is_let_be(learner, seed):
    result = falsify(learner, Claim(epsilon=1.0), rounds=8, arms=2, runs=4000, seed=seed)
    assert result.verdict is not Verdict.FALSIFIED
