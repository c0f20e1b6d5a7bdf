"""The closed forms of the Gaussian pair against their oracle and against each other."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import special

from overclaim.mechanisms.measures import gaussian_dp
from overclaim.tests.support.refusals import refusals

ROWS = json.loads((Path(__file__).parents[1] / "data" / "statistics.json").read_text())["rows"]
FORMS = {
    "gauss_delta": (lambda row: gaussian_dp.gaussian_delta(row["mu"], row["eps"]), "delta", 13),
    "gauss_eps": (lambda row: gaussian_dp.gaussian_epsilon(row["mu"], row["delta"]), "eps", 14),
}


@pytest.mark.parametrize("form", FORMS)
def test_closed_forms_agree_with_the_oracle(form):
    function, answer, number = FORMS[form]
    rows = [row for row in ROWS if row["type"] == form]
    assert len(rows) == number
    for row in rows:
        assert function(row) == pytest.approx(float(row[answer]), rel=1e-8, abs=0.0), row


@pytest.mark.parametrize("mu", [0.01, 0.5, 3.0, 20.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-5, 0.003])
def test_gaussian_epsilon_inverts_delta(mu, delta):
    epsilon = gaussian_dp.gaussian_epsilon(mu, delta)
    if epsilon > 0:
        assert gaussian_dp.gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-8, abs=0.0)
    else:
        assert gaussian_dp.gaussian_delta(mu, 0.0) <= delta


def test_limits():
    assert gaussian_dp.gaussian_epsilon(0.1, 0.5) == 0.0
    assert gaussian_dp.gaussian_delta(0.1, 50.0) == 0.0


test_bad_input_is_named = refusals(
    (lambda: gaussian_dp.gaussian_delta(0.0, 1.0), "mu must be positive.*0.0"),
    (lambda: gaussian_dp.gaussian_delta(1.0, -1.0), "epsilon must be non-negative.*-1.0"),
    (lambda: gaussian_dp.gaussian_epsilon(1.0, 0.0), "delta must be in"),
)


@pytest.mark.parametrize("mu", [1e6, 1.01e6, 1e9, 1e150, 1e200, 1e308])
def test_gaussian_epsilon_of_huge_means(mu):
    """Tails cannot be subtracted there: the root was not found. It is mu (mu / 2 + 2.33) at a delta of .01."""
    assert gaussian_dp.gaussian_epsilon(mu, 0.01) == pytest.approx(mu * (mu / 2 + 2.3263478740408408), rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.999e12, 1.001e12, 1e18, 1e300])
def test_gaussian_mu_of_huge_epsilons(epsilon):
    """Of more than 1e17 no mean up to e^20 is too large: the root was not found."""
    mu = gaussian_dp.gaussian_mu(epsilon, 0.01)
    assert gaussian_dp.gaussian_epsilon(mu, 0.01) == pytest.approx(epsilon, rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.0, 1e-12, 1e-6, 1e-3])
@pytest.mark.parametrize("delta", [1e-310, 1e-300, 1e-17, 1e-16, 1e-12])
def test_gaussian_mu_of_tiny_deltas(epsilon, delta):
    """Two tails nearly equal were subtracted: the mean of (0, 1e-16) was 11 % too large."""
    mu = gaussian_dp.gaussian_mu(epsilon, delta)
    if epsilon:
        shifts = mu * np.array([-0.5, 0.0, 0.5]) - epsilon / mu
        hazards = math.sqrt(2 / math.pi) / special.erfcx(-shifts / math.sqrt(2))
        share = float(np.array([1, 4, 1]) / 6 @ (shifts + hazards)) * mu  # Simpson's rule, of the same integral
        assert math.log(-math.expm1(-share)) + special.log_ndtr(shifts[2]) == pytest.approx(
            math.log(delta), rel=1e-9, abs=0.0
        )
    else:
        assert mu == pytest.approx(delta * math.sqrt(2 * math.pi), rel=1e-9, abs=0.0)


def test_gaussian_delta_of_tiny_means():
    assert gaussian_dp.gaussian_delta(1e-12, 0.0) == pytest.approx(1e-12 / math.sqrt(2 * math.pi), rel=1e-12, abs=0.0)
    # To 50 digits, by another program.
    assert gaussian_dp.gaussian_delta(1e-12, 1e-12) == pytest.approx(8.33154705877279544e-14, rel=1e-12, abs=0.0)
    assert gaussian_dp.gaussian_mu(1e-12, 1e-16) == pytest.approx(math.exp(-28.7501634400011749), rel=1e-10, abs=0.0)
