"""Arguments of the Python API: NumPy's numbers count as Python's do, and what is none is not blamed on the target."""

import warnings

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim.audit.assumptions.conformance import check_learner
from overclaim.audit.blackbox.falsify import falsify_mechanism
from overclaim.audit.blackbox.learners import falsify
from overclaim.audit.inputs.neighbours import neighbours
from overclaim.audit.play.cluster import Cluster
from overclaim.audit.play.pairs import Pair
from overclaim.audit.regret.check_regret import check_regret
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.mechanisms.claim import Claim

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


@pytest.mark.parametrize("stop", ["budget", "early"])
def test_small_integers_and_floats_of_numpy_say_what_pythons_do(stop):
    """They overflow in sums, and the overflow was said to be the learner's."""
    ours = {"runs": 400, "seed": 5, "confidence": float(np.float32(0.99)), "jobs": 1}
    numpys = {"runs": np.int16(400), "seed": np.uint8(5), "confidence": np.float32(0.99), "jobs": np.int8(1)}
    plain = falsify(Coin, CLAIM, rounds=3, arms=2, stop=stop, **ours)
    assert str(falsify(Coin, CLAIM, rounds=np.int8(3), arms=np.int8(2), stop=stop, **numpys)) == str(plain)
    plain = falsify_mechanism(count, CLAIM, left=[1], right=[], stop=stop, **ours)
    assert str(falsify_mechanism(count, CLAIM, left=[1], right=[], stop=stop, **numpys)) == str(plain)


def test_a_seed_of_numpys_draws_inputs_and_its_sizes_measure_regret():
    inputs = neighbours(st.lists(st.integers(0, 3), min_size=1, max_size=3), "add-remove")
    plain, again = (falsify_mechanism(count, CLAIM, inputs=inputs, runs=400, seed=seed) for seed in (3, np.int64(3)))
    assert str(again) == str(plain)
    sizes = {"rounds": np.int8(100), "arms": np.int8(2), "runs": np.int8(100)}
    assert (
        check_regret(Coin, 100.0, **sizes).regret.mean == check_regret(Coin, 100.0, rounds=100, runs=100).regret.mean
    )


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
