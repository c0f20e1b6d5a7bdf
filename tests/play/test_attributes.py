"""Objects as outputs, and calls that take too long."""

import time
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import sparse

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.play.attributes import WithAttributes
from overclaim.audit.play.call_limit import Limited, SlowCallError
from overclaim.learners.protocol import LearnerError
from overclaim.testing import neighbours

ONE = Claim(epsilon=1.0)


class Inner:
    def __init__(self, value):
        self.value_ = value


class Model:
    """As scikit-learn's: parameters, and what was learned."""

    def __init__(self, coef, rng):
        self.rng, self.scale = rng, 2.0
        self.coef_ = np.array([coef, 0.5])
        self.tree_ = Inner(coef)
        self._hidden = object()


def fit(data, rng):
    return Model(data + rng.laplace(scale=0.2), rng)


def test_a_fitted_model_is_released_as_what_it_has_learned():
    read = WithAttributes(fit, "fitted")(1, np.random.default_rng(0))
    assert set(read) == {"coef_", "tree_"}
    assert read["tree_"] == {"value_": pytest.approx(read["coef_"][0])}
    assert set(WithAttributes(fit, ["scale"])(1, np.random.default_rng(0))) == {"scale"}
    result = falsify_mechanism(fit, ONE, left=1, right=0, runs=2000, attributes=["coef_"])
    assert result.verdict is Verdict.FALSIFIED
    assert "coef_[0]" in result.event_in_words


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("all", "the output.rng cannot be read, Generator: name attributes that hold numbers, texts or arrays"),
        (["nothing"], "the output, Model, has no attribute 'nothing'"),
        (["tree_"], "the output.tree_ cannot be read, Inner"),
    ],
)
def test_what_cannot_be_read_is_named(asked, message):
    with pytest.raises(LearnerError, match=message) as raised:
        falsify_mechanism(fit, ONE, left=1, right=0, runs=100, attributes=asked)
    assert "raised" not in str(raised.value)  # the mechanism did not


@pytest.mark.parametrize("asked", ["coef_", [], ["not a name"], 3])
def test_what_is_no_name_is_bad_input(asked):
    with pytest.raises(ValueError, match="attributes must be fitted, all, or names of attributes, got"):
        falsify_mechanism(fit, ONE, left=1, right=0, runs=100, attributes=asked)


@pytest.mark.parametrize("asked", [["__class__"], ["coef_", "__dict__"]])
def test_attributes_of_python_are_bad_input(asked):
    with pytest.raises(ValueError, match=f"outputs, none of Python's own, got '{asked[-1]}'"):
        falsify_mechanism(fit, ONE, left=1, right=0, runs=100, attributes=asked)


def test_named_tuples_and_sparse_matrices_are_read():
    """The mechanism was said to have raised a TypeError, and the matrix to be unreadable."""
    steps = namedtuple("Steps", "first last")

    def fit_both(data, rng):
        model = Model(data, rng)
        model.path_, model.sparse_ = [steps(1, 2.5)], sparse.csr_matrix([[0.0, data]])
        return model

    for asked in ("fitted", ["path_", "sparse_"]):
        read = WithAttributes(fit_both, asked)(1, np.random.default_rng(0))
        assert read["path_"] == [(1, 2.5)]
        assert read["sparse_"].toarray().tolist() == [[0.0, 1.0]]


def test_a_number_has_no_attributes():
    with pytest.raises(LearnerError, match="the output is no object with attributes: 3"):
        WithAttributes(lambda data, rng: 3, "all")(0, None)


def burns(data, rng):
    """Slow on what is large: it never ends by itself."""
    while max(data) > 0.5:
        pass
    return sum(data) + rng.laplace(scale=0.2)


@pytest.mark.slow(reason="it waits for a limit")
def test_inputs_on_which_a_call_takes_too_long_are_left_out_and_counted():
    inputs = neighbours(st.lists(st.floats(0, 1), min_size=1, max_size=2))
    result = falsify_mechanism(burns, ONE, inputs=inputs, runs=2000, call_limit=0.01)
    assert result.searched.slow > 0
    assert max(result.pair.left + result.pair.right) <= 0.5
    assert result.verdict is Verdict.FALSIFIED
    assert result.shrunk is None or max(result.shrunk.pair.left + result.shrunk.pair.right) <= 0.5


def test_a_call_that_swallows_the_interruption_is_judged_when_it_ends():
    def stubborn():
        until = time.process_time() + 0.05
        while time.process_time() < until:
            try:
                sum(range(1000))
            except BaseException:
                continue

    with pytest.raises(SlowCallError):
        Limited(stubborn, 0.01)()
    assert Limited(lambda: 7, 0.5)() == 7
    assert Limited(lambda: 7, 1e300)() == 7


@pytest.mark.parametrize("limit", [0, -1.0, float("nan"), float("inf"), "1", True])
def test_a_limit_is_positive_and_finite(limit):
    with pytest.raises(ValueError, match="call_limit must be above 0"):
        falsify_mechanism(burns, ONE, inputs=neighbours(st.lists(st.just(1))), runs=100, call_limit=limit)


def test_a_limit_is_for_a_search():
    with pytest.raises(ValueError, match="call_limit is for searched inputs"):
        falsify_mechanism(burns, ONE, left=[0.1], right=[0.2], runs=100, call_limit=1.0)
