"""Figures of docs/findings.md that no audit certifies: each computed here again."""

import itertools
import math

import numpy as np
import pytest

from overclaim.benchmarks.catalogue import corners


@pytest.mark.parametrize(("base", "epsilon"), [("2", 1.289), ("e", 2.661), ("10", 2.696)])
def test_one_late_action_of_theorem_3_5_with_the_draws_of_its_base(base, epsilon):
    found, log_probability = corners.late_action(2**19, 1.0, 0.01, base)
    assert round(found, 3) == epsilon
    assert log_probability < -160_000


def test_theorem_3_5_is_false_as_epsilon_and_delta_on_wide_losses():
    """Its sigma does not grow with Y where the first term of the maximum is larger; Theorem A.1's does."""
    exact = {base: [round(corners.epsilon_of_wide_losses(claim, base), 3) for claim in (0.5, 1.0)] for base in "2e"}
    assert exact == {"2": [1.385, 1.385], "e": [1.142, 1.142]}
    assert round(corners.epsilon_of_wide_losses(0.5, "10"), 3) == 0.743


@pytest.mark.slow(reason="20,000 runs one by one")
def test_wide_losses_are_certified():
    assert corners.wide_losses()[-1]["epsilon"] == pytest.approx(1.36, abs=0.005)


def one_dimension(convex, slope, *, strength, radius, first=0.0):
    """Return E sum g^(w_t) - g^(w*) and the right side of (26), at p = 1, T = 2 on [-1, 1] with xi = radius.

    The terms of g^ and g~ that are alike, f^ among them, drop out of both sides.
    """
    left = right = 0.0
    for u in itertools.product((-1, 1), repeat=2):
        points, estimates = [first], []
        for t in range(2):
            estimates.append(convex(points[t] + radius * u[t]) * u[t] / radius)
            step = sum(estimates) / (strength * (t + 1))
            points.append(float(np.clip(np.mean(points) - step, radius - 1, 1 - radius)))
        played = points[:2]
        best = np.mean(played) - sum(map(slope, played)) / (2 * strength)
        best = float(np.clip(best, radius - 1, 1 - radius))
        for point, estimate in zip(played, estimates, strict=True):
            proxy = slope(point) * (point - best) - strength / 2 * (best - point) ** 2
            left += proxy / 4
            right += (estimate * (point - best) - strength / 2 * (best - point) ** 2) / 4
    return left, right


def test_equation_26_of_smith_and_thakurta_does_not_hold_for_a_best_point_that_moves():
    square = {"convex": lambda w: w**2, "slope": lambda w: 2 * w}
    assert one_dimension(**square, strength=1.0, radius=0.5) == pytest.approx((0.4375, 0.3125))
    # Where the best point does not move, it holds: g^ is then f^ itself.
    assert len(set(np.round(one_dimension(**square, strength=2.0, radius=0.5), 12))) == 1


@pytest.mark.parametrize(("base", "bound", "exact"), [("2", 0.75, 0.281), ("e", 1.082, 0.424), ("10", 2.491, 1.142)])
def test_lemma_7_where_a_point_leaves_the_domain(base, bound, exact):
    """The law by enumeration: mixtures over the coin u of Laplace noise on two levels, far below all means."""
    assert corners.factor_of_lemma_7(16, 2, 0.5, base) == pytest.approx(bound, abs=5e-4)
    assert corners.sums_of_lemma_7(16, 2, base) == pytest.approx(exact, abs=5e-4)
    scale, zeta, zeros = math.sqrt(16) * corners.LOGARITHMS[base](16), 0.5, np.linspace(-0.5, 0.5, 101)
    ratios = []
    for x, z, other in itertools.product((-0.5, 0.0, 0.5), zeros, zeros):
        left = sum(math.exp(2 * u * (x + zeta * u - z) / zeta / scale) for u in (1, -1))
        right = sum(math.exp(-2 * u * (x + zeta * u - other) / zeta / scale) for u in (1, -1))
        ratios.append(math.log(left / right))
    assert max(ratios) == pytest.approx(corners.sums_of_lemma_7(16, 2, base), abs=1e-9)


def test_all_sums_of_lemma_7_with_a_first_point_at_the_end():
    assert round(corners.sums_of_lemma_7(4, 2, "2"), 3) == 1.232
