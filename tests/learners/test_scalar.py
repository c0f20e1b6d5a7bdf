"""A user's plain class: what it is given, and one clear line for everything it can do wrong."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.errors import WHERE, notes_of
from overclaim.learners import BatchedLaplace, Exp3, LearnerError, Threshold
from overclaim.learners.scalar import Scalar, as_learner, is_mechanism
from overclaim.mechanisms.draws import Draws

ROUNDS = 4
PAIR = Pair([[0.0, 0.5]] * ROUNDS, [[1.0, 0.5]] + [[0.0, 0.5]] * (ROUNDS - 1))


class Fair:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng, bias=0.5):
        self.arms, self.rounds, self.rng, self.bias = arms, rounds, rng, bias
        self.told = []

    def act(self):
        return int(self.rng.random() < self.bias)

    def update(self, feedback):
        self.told.append(feedback)


def playing(cls, runs=5, **parameters):
    return play(as_learner(cls, arms=2, rounds=ROUNDS, **parameters), PAIR, Draws(3), runs).actions


def with_method(name, function, base=Fair):
    return type("Mine", (base,), {name: function})


def test_a_run_plays_the_same_alone_as_in_a_crowd():
    crowd, few = playing(Fair, runs=64), playing(Fair, runs=3)
    assert np.array_equal(crowd[:, :3], few)
    assert len({tuple(run) for run in crowd.T}) > 8  # but no two runs share a generator


def test_every_key_has_its_own_streams():
    keys = [{"seed": 1}, {"stage": 1}, {"pair": 1}, {"part": 1}, {"block": 1}]
    learner = Scalar(Fair, 2, 20)
    pair = Pair(np.zeros((20, 2)), np.eye(20)[:, :2] * [1.0, 0.0])
    blocks = [play(learner, pair, Draws(**{"seed": 0, **key}), 4).actions for key in [{}, *keys]]
    assert len({block.tobytes() for block in blocks}) == len(blocks)


def test_the_streams_are_no_prefix_of_the_shared_generator():
    draws = Draws(3)
    own = Scalar(Fair, 2, ROUNDS).start(1, draws).objects[0].rng.random(4)
    assert not np.intersect1d(own, Draws(3).uniform(64)).size


def test_bandit_feedback_is_the_loss_of_the_played_arm_as_a_float():
    learner = Scalar(Fair, 2, ROUNDS)
    draws = Draws(0)
    state = learner.start(6, draws)
    actions = learner.act(state, draws)
    learner.update(state, actions, PAIR.feedback(0, actions, "bandit", True), draws)
    assert [o.told for o in state.objects] == [[[0.0, 0.5][a]] for a in actions]
    assert all(type(o.told[0]) is float for o in state.objects)


def test_full_feedback_is_a_copy_of_the_loss_vector():
    def spoil(self, feedback):
        assert feedback.shape == (2,)
        feedback += 100

    spoiler = type("Spoiler", (Fair,), {"feedback": "full", "update": spoil})
    playing(spoiler)
    assert PAIR.left.max() == 0.5
    state = (learner := Scalar(with_method("x", None), 2, ROUNDS)).start(3, Draws(0))
    losses = np.arange(6.0).reshape(2, 3)
    learner.update(state, learner.act(state, Draws(0)), losses, Draws(0))
    assert [o.told[0].tolist() for o in state.objects] == losses.T.tolist()


@pytest.mark.parametrize("arm", [1, np.int8(1), np.uint64(1), np.array(1)[()]])
def test_integers_of_every_kind_are_arms(arm):
    assert (playing(with_method("act", lambda self: arm)) == 1).all()


@pytest.mark.parametrize(
    ("arm", "told"),
    [
        (2, r"must return an arm in 0\.\.1, got 2"),
        (-1, r"must return an arm in 0\.\.1, got -1"),
        (10**30, r"must return an arm in 0\.\.1, got 1000"),
        (True, "must return an integer arm, got bool True"),
        (np.True_, "must return an integer arm, got bool"),
        (1.0, r"must return an integer arm, got float 1\.0"),
        (None, "must return an integer arm, got NoneType None"),
        (np.array([1]), r"must return an integer arm, got ndarray array\(\[1\]\)"),
    ],
)
def test_anything_else_is_no_arm(arm, told):
    with pytest.raises(LearnerError, match=rf"^Mine\.act {told}.*\nwhere: round 1, run 0$"):
        playing(with_method("act", lambda self: arm))


def late(self):
    if len(self.told) == 2:
        raise ZeroDivisionError("first line\nsecond line")
    return 0


#: The line that raises.
LATE = f"{Path(__file__).relative_to(Path.cwd())}:{late.__code__.co_firstlineno + 2}"


def test_a_raise_names_round_and_run_on_one_line_and_keeps_its_cause():
    with pytest.raises(LearnerError) as caught:
        playing(with_method("act", late))
    assert str(caught.value) == "Mine.act raised ZeroDivisionError: first line second line"
    assert notes_of(caught.value, WHERE) == [f"{LATE} in late(); round 3, run 0"]
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


def test_the_run_that_raises_is_named():
    def update(self, feedback):
        if feedback == 0.5:
            raise RuntimeError

    actions = playing(Fair, runs=50)
    first = int(np.flatnonzero(actions[0] == 1)[0])
    with pytest.raises(
        LearnerError, match=rf"^Mine\.update raised RuntimeError\nwhere: .* in update\(\); round 1, run {first}\n"
    ):
        playing(with_method("update", update), runs=50)


def test_a_raise_in_the_constructor_and_an_exit_are_caught():
    def broken(self, arms, rounds, rng):
        raise KeyError("x")

    def leave(self):
        raise SystemExit(3)

    with pytest.raises(
        LearnerError, match=r"^Mine\.__init__ raised KeyError: 'x'\nwhere: .* in broken\(\); before round 1, run 0\n"
    ):
        playing(with_method("__init__", broken))
    with pytest.raises(
        LearnerError, match=r"^Mine\.act raised SystemExit: 3\nwhere: .* in leave\(\); round 1, run 0$"
    ):
        playing(with_method("act", leave))


def test_missing_methods_and_unknown_feedback_are_refused_at_once():
    with pytest.raises(LearnerError, match="Mine must have act, update; it has no update"):
        as_learner(with_method("update", None), arms=2, rounds=2)
    with pytest.raises(LearnerError, match=r"Mine\.feedback must be one of 'bandit', 'full'; got 'partial'"):
        as_learner(with_method("feedback", "partial"), arms=2, rounds=2)
    naked = type("Naked", (), {"act": Fair.act, "update": Fair.update})
    read = "it is read from the class, before an object is made"
    with pytest.raises(LearnerError, match=rf"Naked\.feedback must be .* got none: {read}$"):
        as_learner(naked, arms=2, rounds=2)
    # What an object alone would say; a property's own words are an address.
    with pytest.raises(LearnerError, match=rf"Mine\.feedback must be .* got property: {read}$"):
        as_learner(with_method("feedback", property(lambda self: "bandit")), arms=2, rounds=2)
    with pytest.raises(LearnerError, match=rf"Mine\.feedback must be .* got ndarray: {read}$"):
        as_learner(with_method("feedback", np.array(["full", "full"])), arms=2, rounds=2)


@pytest.mark.parametrize("method", ["act", "update", "observe"])
def test_methods_whose_call_would_run_nothing_are_refused(method):
    """A coroutine of `update` was made and thrown away each round: the learner learned nothing, and survived."""

    async def coroutine(self, *given):
        return 0

    async def asynchronous(self, *given):
        yield 0

    def generator(self, *given):
        yield 0

    for idle, word in ((coroutine, "async def"), (asynchronous, "async def"), (generator, "yield")):
        with pytest.raises(LearnerError, match=rf"Mine\.{method} must be a plain method: with '{word}'"):
            as_learner(with_method(method, idle), arms=2, rounds=2)


def test_what_makes_or_is_the_object_of_one_run_is_told_to_be_the_class():
    def factory(arms, rounds, rng):
        return Fair(arms, rounds, rng)

    for given in (Fair(2, 2, None), lambda: Fair, lambda arms, rounds: Fair(arms, rounds, None)):
        with pytest.raises(LearnerError, match=r"it has no start\nhint: of a plain class give the class itself"):
            as_learner(given, arms=2, rounds=2)
    with pytest.raises(LearnerError, match=r"factory takes rng, so .* object of one run\nhint: give its class"):
        as_learner(factory, arms=2, rounds=2)


@pytest.mark.parametrize("made", [Fair, Exp3])
def test_a_partial_of_a_learner_is_told_to_be_the_class(made):
    """On the command line it was "a mechanism: it needs two inputs"."""
    assert not is_mechanism(partial(made, eta=1.0))
    derived = "or a class derived from it that has them as defaults"  # `falsify` takes no parameters
    with pytest.raises(LearnerError, match=f"{made.__name__} is no learner\nhint: give .* itself, .*{derived}"):
        as_learner(partial(made, eta=1.0), arms=2, rounds=2)
    assert is_mechanism(partial(lambda data, rng, scale: data, scale=1.0))


@pytest.mark.parametrize("object_", [3, "Exp3", None, object(), np, lambda arms: 4])
def test_what_is_no_learner_is_refused(object_):
    with pytest.raises(LearnerError, match="must have start, act, update"):
        as_learner(object_, arms=2, rounds=2)


@pytest.mark.parametrize(
    ("constructor", "lacking"),
    [
        (lambda self: None, "arms, rng, rounds"),
        (lambda self, k, n, generator: None, "arms, rng, rounds"),
        (lambda self, arms, rounds: None, "rng"),
    ],
)
def test_another_constructor_is_told_the_expected_one(constructor, lacking):
    with pytest.raises(LearnerError, match=rf"must be __init__\(self, arms, rounds, rng\): it takes no {lacking}\n"):
        as_learner(with_method("__init__", constructor), arms=2, rounds=2)


def test_parameters_reach_the_constructor_and_unknown_ones_are_named():
    assert (playing(Fair, bias=1.0) == 1).all()
    with pytest.raises(ValueError, match="Fair takes no parameter 'bais'\nhint: did you mean bias"):
        as_learner(Fair, arms=2, rounds=2, bais=1.0)

    def needs(self, arms, rounds, rng, eta):
        raise AssertionError

    with pytest.raises(
        ValueError, match=r"^Mine needs a value for eta\nhint: give `set=eta=\.\.\.`, or a default in the code$"
    ):
        as_learner(with_method("__init__", needs), arms=2, rounds=2)


def test_a_constructor_may_take_anything():
    def anything(self, **given):
        Fair.__init__(self, **given)

    assert np.array_equal(playing(with_method("__init__", anything), bias=0.2), playing(Fair, bias=0.2))


def test_a_built_learner_is_returned_as_it_is():
    learner = Threshold(arms=2, threshold=1.0)
    assert as_learner(learner, arms=5, rounds=9) is learner
    with pytest.raises(ValueError, match="Threshold is built already and takes no eta"):
        as_learner(learner, arms=2, rounds=2, eta=1.0)


def test_a_batched_class_is_given_what_it_takes():
    assert as_learner(Exp3, arms=3, rounds=9, eta=0.5) == Exp3(arms=3, eta=0.5)
    with pytest.raises(ValueError, match="Exp3 needs a value for eta"):
        as_learner(Exp3, arms=3, rounds=9)
    with pytest.raises(ValueError, match="Exp3 takes no parameter 'etta'\nhint: did you mean eta"):
        as_learner(Exp3, arms=3, rounds=9, etta=1.0)
    with pytest.raises(ValueError, match="eta must be positive"):  # its own check, unchanged
        as_learner(Exp3, arms=3, rounds=9, eta=-1.0)


def test_a_function_may_build_the_learner():
    def private(arms, rounds, *, epsilon=1.0):
        return BatchedLaplace(inner=Exp3(arms=arms, eta=0.5), epsilon=epsilon, batch=rounds // 4)

    assert as_learner(private, arms=3, rounds=8, epsilon=2.0) == private(3, 8, epsilon=2.0)

    def broken(arms):
        raise KeyError(arms)

    with pytest.raises(LearnerError, match=r"^broken raised KeyError: 3 when built\nwhere: .* in broken\(\)$"):
        as_learner(broken, arms=3, rounds=8)


def test_a_plain_dataclass_works():
    @dataclass
    class Constant:
        arms: int
        rounds: int
        rng: np.random.Generator
        arm: int = 0
        feedback = "bandit"

        def act(self):
            return self.arm

        def update(self, feedback):
            pass

    assert (playing(Constant, arm=1) == 1).all()


def test_a_plain_class_works_inside_a_wrapper_and_refuses_clamped_actions():
    wrapped = BatchedLaplace(inner=Scalar(Fair, 2, ROUNDS), epsilon=1.0, batch=2)
    actions = play(wrapped, PAIR, Draws(0), 16).actions
    assert np.array_equal(actions[0], actions[1])
    learner = Scalar(Fair, 2, ROUNDS)
    state = learner.start(3, Draws(0))
    played = learner.act(state, Draws(0))
    with pytest.raises(ValueError, match="cannot be clamped"):
        learner.update(state, 1 - played, np.zeros(3), Draws(0))


@pytest.mark.parametrize(("arms", "rounds"), [(0, 2), (2, 0), (2.5, 2)])
def test_the_game_is_checked(arms, rounds):
    with pytest.raises(ValueError, match="must be an integer of at least 1"):
        Scalar(Fair, arms, rounds)
