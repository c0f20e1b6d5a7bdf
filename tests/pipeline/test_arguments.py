"""Arguments of the Python API: NumPy's numbers count as Python's do, and what is none is not blamed on the target."""

import warnings

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim.audit.assumptions.conformance import check_learner
from overclaim.audit.execution.cluster import Cluster
from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism
from overclaim.audit.play.pairs import Pair
from overclaim.audit.regret.check_regret import check_regret
from overclaim.audit.spaces.neighbours import neighbours
from overclaim.learners import BatchedLaplace
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.protocol import LearnerError
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.one_shot.classic import LaplaceMechanism

CLAIM = Claim(epsilon=1.0)


class Coin:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.arms, self.rng = arms, rng

    def act(self):
        return int(self.rng.integers(self.arms))

    def update(self, loss):
        pass


def count(data, rng):
    return len(data) + rng.laplace(scale=0.5)


@pytest.mark.few("budget")
@pytest.mark.parametrize("stop", ["budget", "early"])
def test_small_integers_and_floats_of_numpy_say_what_pythons_do(stop):
    """They overflow in sums, and the overflow was said to be the learner's."""
    ours = {"runs": 400, "seed": 5, "confidence": float(np.float32(0.99)), "jobs": 1}
    numpys = {"runs": np.int16(400), "seed": np.uint8(5), "confidence": np.float32(0.99), "jobs": np.int8(1)}
    plain = falsify(Coin, CLAIM, rounds=3, arms=2, stop=stop, **ours)
    assert str(falsify(Coin, CLAIM, rounds=np.int8(3), arms=np.int8(2), stop=stop, **numpys)) == str(plain)
    plain = falsify_mechanism(count, CLAIM, left=[1], right=[], stop=stop, **ours)
    assert str(falsify_mechanism(count, CLAIM, left=[1], right=[], stop=stop, **numpys)) == str(plain)


@pytest.mark.slow(reason="two searches and two measurements")
def test_a_seed_of_numpys_draws_inputs_and_its_sizes_measure_regret():
    inputs = neighbours(st.lists(st.integers(0, 3), min_size=1, max_size=3), "add-remove")
    plain, again = (falsify_mechanism(count, CLAIM, inputs=inputs, runs=400, seed=seed) for seed in (3, np.int64(3)))
    assert str(again) == str(plain)
    sizes = {"rounds": np.int8(100), "arms": np.int8(2), "runs": np.int8(100)}
    assert check_regret(Coin, 90.0, **sizes).regret.mean == check_regret(Coin, 90.0, rounds=100, runs=100).regret.mean


def test_a_parameter_of_half_the_digits_warns_of_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Exp3(arms=2, eta=np.float32(0.5), gamma=0.1).eta == 0.5


WRONG = [
    ({"pair": ([[1, 0]], [[0, 1]])}, "a pair must be a Pair of losses"),
    ({"pairs": [([[1, 0]], [[0, 1]])]}, "a pair must be a Pair of losses"),
    ({"pairs": Pair([[1, 0]], [[0, 1]])}, "pairs must be pairs of losses"),
    ({"cluster": "tcp://localhost:8786"}, "cluster must be a Cluster"),
    ({"memory": {}}, "memory must be a Memory"),
]


@pytest.mark.parametrize(("given", "message"), WRONG)
def test_what_is_none_is_not_the_targets_fault(given, message):
    with pytest.raises(ValueError, match=message):
        falsify(Coin, CLAIM, rounds=1, runs=400, **given)


def test_nor_elsewhere():
    with pytest.raises(ValueError, match="pairs must be pairs of inputs"):
        falsify_mechanism(count, CLAIM, pairs=5)
    with pytest.raises(ValueError, match=r"losses must have shape \(rounds, 2\), for 2 arms, got \(8, 3\)"):
        check_learner(Coin, losses=np.ones((8, 3)))
    with pytest.raises(ValueError, match=r"must be tcp://HOST:PORT, got 5"):
        Cluster(5)


class Wide:
    """A batched learner of its own arms."""

    feedback = "full"

    def __init__(self, arms):
        self.arms = arms

    def start(self, runs, draws):
        return np.zeros(runs)

    def act(self, state, draws):
        return (draws.uniform(state.size) * int(self.arms)).astype(np.intp)

    def update(self, state, actions, losses, draws):
        state += losses[0]


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", [np.int8, np.int16])
@pytest.mark.parametrize(
    "make",
    [
        lambda kind: Exp3(arms=kind(100), eta=np.float16(0.1)),
        lambda kind: BatchedLaplace(Exp3(arms=kind(100), eta=0.1), epsilon=np.float16(1.0), batch=kind(2)),
        lambda kind: Wide(kind(100)),
    ],
    ids=["ours", "inner", "theirs"],
)
def test_a_learner_may_have_arms_of_numpys_smallest_kinds(make, kind):
    """Products with them overflowed; and they were not seen to be a number: regret played two arms."""
    told, meant = make(kind), make(int)
    pair = Pair(np.eye(100)[:3], np.eye(100)[[1, 1, 2]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        results = [falsify(one, CLAIM, pair=pair, runs=200) for one in (told, meant)]
        assert str(results[0]) == str(results[1])
        words = []
        for one in (told, meant):
            with pytest.raises(LearnerError, match="the mean is") as error:
                check_regret(one, 1.0, rounds=16, runs=20)
            words.append(str(error.value))
        assert words[0] == words[1]
    assert isinstance(told.arms, kind)  # what is the user's stays as it is
    with pytest.raises(ValueError, match=r"arms must be those of the learner, 100, got 3$"):
        falsify(told, CLAIM, rounds=4, arms=3, runs=400)


def test_arms_that_would_overflow_and_cannot_be_changed_are_named():
    class Fixed(Wide):
        arms = property(lambda self: np.int16(3))

        def __init__(self):
            pass

    with pytest.raises(LearnerError, match=r"^Fixed.arms must be an int, not int16, got 3$"):
        as_learner(Fixed(), arms=2, rounds=2)


def test_a_mechanism_of_ours_computes_with_pythons_numbers():
    """At this epsilon float16 has no scale of the noise, 1 / epsilon."""
    told, meant = (LaplaceMechanism(epsilon=kind(2e-6)) for kind in (np.float16, lambda x: float(np.float16(x))))
    both = [falsify_mechanism(one, CLAIM, left=[0.0], right=[1.0], runs=400) for one in (told, meant)]
    assert str(both[0]) == str(both[1])
