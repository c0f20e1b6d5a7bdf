"""Loss families: gradients against finite differences, constants against sampling, adaptive losses, JSON."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from overclaim.learners.problems import losses
from overclaim.learners.problems.losses import Absolute, Linear, Quadratic, Switch
from overclaim.tests.support.refusals import refusals

numbers = st.floats(-3, 3)
vectors = st.tuples(numbers, numbers)
families = st.one_of(
    st.builds(Linear, slope=vectors, offset=numbers),
    st.builds(Quadratic, curvature=st.floats(0.01, 3), centre=vectors, offset=numbers),
    st.builds(Absolute, slope=vectors, level=numbers, offset=numbers),
)


def points(radius, runs=200, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(2, runs))
    return radius * x / np.sqrt(np.square(x).sum(axis=0)) * np.sqrt(rng.random(runs))


@given(families)
def test_gradients_are_finite_differences(loss):
    x, h = points(1.5), 1e-6
    kink = np.abs(np.array(loss.slope) @ x - loss.level) < 1e-4 if isinstance(loss, Absolute) else np.zeros(200, bool)
    for i in range(2):
        step = h * np.eye(2)[:, i : i + 1]
        slope = (loss.value(x + step) - loss.value(x - step)) / (2 * h)
        np.testing.assert_allclose(loss.gradient(x)[i][~kink], slope[~kink], atol=1e-6)


@given(families)
def test_constants_bound_the_ball(loss):
    x = points(1.5)
    assert np.abs(loss.value(x)).max() <= loss.bound(1.5) + 1e-9
    assert np.sqrt(np.square(loss.gradient(x)).sum(axis=0)).max() <= loss.lipschitz(1.5) + 1e-9


@given(families, vectors, vectors)
def test_gradients_are_subgradients(loss, a, b):
    x, y = np.array([a]).T, np.array([b]).T
    assert loss.value(y)[0] >= loss.value(x)[0] + (loss.gradient(x)[:, 0] @ (y - x)[:, 0]) - 1e-9


@given(families)
def test_json_round_trip(loss):
    assert losses.from_json(json.loads(json.dumps(loss.to_json()))) == loss
    switch = Switch(below=loss, above=Linear(slope=(1.0, 0.0)), lag=1)
    assert losses.from_json(json.loads(json.dumps(switch.to_json()))) == switch


def test_steep_is_as_steep_as_asked():
    loss = Quadratic.steep((0.6, -0.8), curvature=0.1, radius=2.0)
    assert loss.lipschitz(2.0) == pytest.approx(1.0)
    zero = np.zeros((2, 1))
    np.testing.assert_allclose(loss.gradient(zero)[:, 0], [0.48, -0.64])
    assert loss.value(zero)[0] == pytest.approx(0.0)
    losses.check_lipschitz(loss, 2.0)
    with pytest.raises(ValueError, match="1-Lipschitz on radius 3"):
        losses.check_lipschitz(loss, 3.0)
    with pytest.raises(ValueError, match="1-Lipschitz"):
        losses.check_lipschitz(Switch(below=Linear(slope=(0.0, 0.0)), above=loss), 3.0)


def test_linear_loss_of_arms():
    loss, arms = Linear(slope=(0.1, 0.7), offset=0.1), np.array([0, 1, 1])
    np.testing.assert_allclose(losses.feedback(loss, arms, "bandit"), [0.2, 0.8, 0.8])
    np.testing.assert_allclose(losses.feedback(loss, arms, "full")[:, 0], [0.2, 0.8])


def test_switch_follows_each_run_and_its_lag():
    low, high = Linear(slope=(1.0,)), Linear(slope=(-1.0,))
    first, second = np.array([[-1.0, 1.0, 1.0]]), np.array([[1.0, -1.0, 1.0]])
    now = losses.resolve(Switch(below=low, above=high), [first, second])
    np.testing.assert_array_equal(now.value(second), [-1.0, -1.0, -1.0])
    np.testing.assert_array_equal(now.gradient(second)[0], [-1.0, 1.0, -1.0])
    before = losses.resolve(Switch(below=low, above=high, lag=1), [first, second])
    np.testing.assert_array_equal(before.gradient(second)[0], [1.0, -1.0, -1.0])
    nothing = losses.resolve(Switch(below=low, above=high, lag=1), [first])
    np.testing.assert_array_equal(nothing.gradient(first)[0], [1.0, 1.0, 1.0])
    vector = np.array([1.0, 2.0])
    assert losses.resolve(vector, [first]) is vector


FLAT = {"loss": "linear", "slope": [0.0]}
SWITCH = {"loss": "switch", "below": FLAT, "above": FLAT}


test_bad_input_is_named = refusals(
    (lambda: Quadratic(curvature=0.0, centre=(0.0,)), "curvature must be positive"),
    (lambda: Linear(slope=()), "slope must be a non-empty"),
    (lambda: Linear(slope=(float("nan"),)), "slope must be .* finite"),
    (lambda: Absolute(slope=(1.0,), level=float("inf")), "level must be finite"),
    (lambda: Quadratic.steep((0.1,), curvature=1.0, radius=1.0), "slope must have norm at least 1"),
    (lambda: Switch(below=Linear(slope=(1.0,)), above=Linear(slope=(1.0,)), lag=-1), "lag must be"),
    (lambda: losses.from_json({"loss": "cubic"}), "must be one of linear"),
    (lambda: losses.from_json({"loss": "linear", "tilt": 1}), "a linear loss has other fields"),
    (lambda: losses.from_json(3), "a loss must be a list"),
    (lambda: losses.from_json({"loss": "switch", "above": FLAT}), "below of a switch must be a loss"),
    (lambda: losses.from_json({"loss": "switch", "below": [1.0], "above": FLAT}), r"below .* got \[1.0\]"),
    (lambda: losses.from_json({"loss": "switch", "below": FLAT, "above": SWITCH}), r"above .* 'switch'"),
)
