"""Whose abilities are whose: a subclass, a part or an object that plays otherwise is not judged by its parent's."""

import importlib
import pickle
import pkgutil
import sys
from dataclasses import dataclass

import numpy as np
import pytest

from overclaim import Claim, Pair, falsify, learners, mechanisms
from overclaim.audit.attacks.learner_attacks import applicable
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.learners import (
    BatchedLaplace,
    Doubling,
    Exp3,
    ExpertAdvice,
    Ftpl,
    Ftrl,
    MiniBatch,
    Threshold,
)
from overclaim.learners.abilities import (
    batch_of,
    has_grid_law,
    has_inner,
    has_noiseless_law,
    has_probabilities,
    has_release,
    is_ours,
    knows_releases,
    owns,
    select,
)
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.planted import planted_learners
from overclaim.learners.problems.advice import graded_advice
from overclaim.learners.problems.domains import EntropySimplex, Simplex
from overclaim.learners.protocol import HasProbabilities
from overclaim.learners.written import in_our_rooms, is_written
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.tree import Tree
from overclaim.mechanisms.view import ACTIONS, VIEWS

PAIR = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
PROBE = Threshold(arms=2, threshold=0.5)
EXP3 = Exp3(arms=2, eta=0.5, gamma=0.1)


class Safe(BatchedLaplace):
    """It learns from zeros: 0-DP, though its parent's noise is too small for the claim."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, np.zeros_like(feedback), draws)


class Leaky(BatchedLaplace):
    """No noise at all."""

    def update(self, state, actions, feedback, draws):
        self.inner.update(state.inner, actions, feedback, draws)


class Deaf(Threshold):
    def update(self, state, actions, feedback, draws):
        pass


def made(kind=BatchedLaplace, inner=PROBE):
    return kind(inner, epsilon=2.0, batch=1)


def replaced():
    learner = made()
    object.__setattr__(learner, "update", lambda *args: Leaky.update(learner, *args))
    return learner


def changed():
    learner = made()
    object.__setattr__(learner, "__class__", Leaky)
    return learner


def lying():
    names = {"__module__": BatchedLaplace.__module__, "__qualname__": "BatchedLaplace", "update": Leaky.update}
    return made(type("BatchedLaplace", (BatchedLaplace,), names))


class Proxy:
    """Says that it is a BatchedLaplace, and passes on whatever it is asked for."""

    def __init__(self):
        self._learner = made()

    __class__ = BatchedLaplace

    def __getattr__(self, name):
        return getattr(self._learner, name)

    def update(self, state, actions, feedback, draws):
        self._learner.inner.update(state.inner, actions, feedback, draws)


OTHERS = [made(Leaky), made(Safe), made(inner=Deaf(arms=2, threshold=0.5)), replaced(), changed(), lying(), Proxy()]
NAMES = ["leaky", "safe", "inner", "replaced", "class set", "lying", "proxy"]


@pytest.mark.parametrize("learner", OTHERS, ids=NAMES)
def test_what_plays_otherwise_has_no_ability_of_what_it_comes_from(learner):
    assert not is_ours(learner)
    assert not has_grid_law(learner)
    assert not has_inner(learner)
    with pytest.raises(NotExactError):
        exact_epsilon(learner, PAIR)
    assert not any(recipe.exact for recipe in applicable(learner, PAIR, ACTIONS))


def test_the_verdict_is_about_the_subclass():
    how = {"rounds": 2, "runs": 20_000}
    assert falsify(made(Safe), Claim(epsilon=1.0), **how).epsilon_lower == 0
    assert falsify(made(Leaky), Claim(epsilon=1.0), **how).epsilon_lower > 7
    assert falsify(made(inner=Deaf(arms=2, threshold=0.5)), Claim(epsilon=1.0), **how).epsilon_lower == 0
    assert falsify(replaced(), Claim(epsilon=1.0), **how).epsilon_lower > 7


def test_a_release_that_is_inherited_beside_another_update_is_refused():
    assert has_release(made())
    assert knows_releases(made())
    with pytest.raises(ValueError, match=r"Leaky releases nothing noisy of its own \(it inherits release"):
        falsify(made(Leaky), Claim(epsilon=1.0, surface="release"), rounds=2, runs=1000)
    advised = ExpertAdvice(made(Leaky), advice=graded_advice(2, 2))
    assert not has_release(advised)


def test_abilities_of_ours_are_their_own():
    assert is_ours(made())
    assert has_inner(made())
    assert has_grid_law(made())
    assert batch_of(BatchedLaplace(EXP3, epsilon=1.0, batch=4)) == 4
    assert has_noiseless_law(MiniBatch(EXP3, batch=2))
    for entry in entries().values():
        learner = entry.build(entry.setting(rounds=8))
        assert is_ours(learner) or isinstance(learner, Doubling), entry  # which holds a function


def test_every_class_of_ours_is_as_it_is_written():
    for room in (learners, mechanisms):
        for package in pkgutil.walk_packages(room.__path__, f"{room.__name__}."):
            module = importlib.import_module(package.name)
            for kind in vars(module).values():
                if isinstance(kind, type) and kind.__module__ == package.name and in_our_rooms(kind):
                    assert is_written(kind), kind


@pytest.mark.parametrize(("named", "written"), [(None, True), ("queue", False), ("builtins", False)])
def test_a_base_is_not_believed_to_be_of_the_module_that_it_names(monkeypatch, named, written):
    """A user's file may be called as one of Python's."""
    base = type("Base", (Exp3,), {"__module__": named, "act": lambda self, state, draws: 0}) if named else Exp3
    kind = type("Mine", (base,), {"__module__": Exp3.__module__})
    monkeypatch.setattr(sys.modules[Exp3.__module__], "Mine", kind, raising=False)
    assert is_written(kind) == written


def test_pickling_changes_nothing():
    """Python then adds a name to the class."""
    learner = Renamed(arms=2, eta=0.5)
    for one in (made(), learner):
        assert pickle.loads(pickle.dumps(one)) == one
    assert is_ours(made())
    assert owns(learner, "probabilities")


class Renamed(Exp3):
    """Overrides nothing."""

    def bound(self):
        return 1.0


class Own(Exp3):
    """Says its own probabilities beside its own update."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, 2 * feedback, draws)

    def probabilities(self, state):
        return super().probabilities(state)


class Below(Own):
    def act(self, state, draws):
        return super().act(state, draws)


class Hooked(Own):
    def __getattribute__(self, name):
        return super().__getattribute__(name)


def test_an_ability_belongs_to_the_class_that_defines_it_and_to_no_override_below():
    how = {"arms": 2, "eta": 0.5, "gamma": 0.1}
    assert owns(Renamed(**how), "probabilities", "line_step")
    assert not is_ours(Renamed(**how))
    assert has_probabilities(Own(**how))
    assert not owns(Own(**how), "line_step")
    assert not has_probabilities(Below(**how))
    assert not has_probabilities(Hooked(**how))
    assert not has_probabilities(MiniBatch(Below(**how), batch=2))
    assert not has_noiseless_law(MiniBatch(Below(**how), batch=2))
    assert has_probabilities(MiniBatch(Own(**how), batch=2))
    given = Own(**how)
    object.__setattr__(given, "act", lambda state, draws: np.zeros(1, dtype=int))
    assert not has_probabilities(given)
    object.__setattr__(given, "probabilities", lambda state: np.ones((2, 1)) / 2)
    assert has_probabilities(given)  # put into the object beside its other act
    assert not owns(type("Explicit", (HasProbabilities,), {})(), "probabilities")


class Stated:
    scale = 2.0

    def release(self, state):
        return self.scale


def test_a_number_that_a_subclass_sets_anew_is_no_method_overridden():
    """What the ability reads is the subclass's: one with another scale was told that it overrides methods."""
    assert owns(type("Louder", (Stated,), {"scale": 4.0})(), "release")
    assert not owns(type("Computed", (Stated,), {"scale": property(lambda self: 4.0)})(), "release")
    assert not owns(type("Other", (Stated,), {"scale": 4.0, "__getattribute__": object.__getattribute__})(), "release")


def test_an_arm_is_not_held_because_the_parent_held_it():
    class Restless(BatchedLaplace):
        def act(self, state, draws):
            return self.inner.act(state.inner, draws)

    assert batch_of(Restless(EXP3, epsilon=1.0, batch=4)) == 1
    assert batch_of(made(Leaky)) == 1


class Silent(Laplace):
    def sample(self, shape, draws):
        return np.zeros(shape)


class Snapping(EntropySimplex):
    def prox(self, linear):
        return np.round(super().prox(linear))


@pytest.mark.parametrize(
    "learner",
    [
        Ftrl(domain=EntropySimplex(2), rounds=4, eta=0.5, noise=Silent(4.0)),
        Ftrl(domain=Snapping(2), rounds=4, eta=0.5, noise=Laplace(4.0)),
        Ftpl(domain=type("Other", (Simplex,), {"minimise": lambda self, x: 0})(2), rounds=4, noise=Gaussian(1.0)),
    ],
    ids=["noise", "domain", "oracle"],
)
def test_a_part_that_is_not_ours_ends_closed_forms(learner):
    assert not is_ours(learner)
    for surface in ("actions", "release"):
        with pytest.raises(NotExactError):
            exact_epsilon(
                learner, Pair(np.eye(2), np.eye(2)[::-1] * [[1], [1]] * 0 + [[0, 1], [0, 1]]), view=VIEWS[surface]
            )


@pytest.mark.parametrize(
    ("owner", "name", "learner"),
    [
        (BatchedLaplace, "update", made()),
        (Threshold, "act", made()),
        (Laplace, "sample", made()),
        (Tree, "add", Ftrl(domain=EntropySimplex(2), rounds=4, eta=0.5, noise=Laplace(4.0))),
        (importlib.import_module("overclaim.learners.weights").WeightsState, "shift_at", made(inner=EXP3)),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.parametrize("early", [False, True])
def test_a_class_that_was_patched_is_not_ours(owner, name, learner, early, monkeypatch):
    """Before the first look at it, and after."""
    if early:
        importlib.import_module("overclaim.learners.written")._attributes.cache_clear()
    else:
        assert is_ours(learner)
    with monkeypatch.context() as patch:
        patch.setattr(owner, name, lambda *args: None)
        assert not is_ours(learner)
    assert is_ours(learner)


def test_planted_faults_do_not_inherit_abilities():
    learner = planted_learners._LateNoise(PROBE, epsilon=1.0)
    assert not is_ours(learner)
    assert not owns(learner, "release_means")
    assert not has_inner(learner)


@dataclass
class Inner:
    sums: np.ndarray


@dataclass
class Outer:
    inner: Inner
    table: np.ndarray
    t: int


def test_states_are_selected_at_every_depth():
    state = Outer(Inner(np.arange(4.0)), np.arange(8.0).reshape(2, 4), 3)
    chosen = select(state, np.array([3, 3, 0]))
    np.testing.assert_array_equal(chosen.inner.sums, [3, 3, 0])
    np.testing.assert_array_equal(chosen.table, [[3, 3, 0], [7, 7, 4]])
    assert chosen.t == 3
    chosen.inner.sums += 1
    np.testing.assert_array_equal(state.inner.sums, np.arange(4.0))
