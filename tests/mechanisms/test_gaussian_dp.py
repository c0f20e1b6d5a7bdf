"""The closed forms of the Gaussian pair against their oracle and against each other."""

import json
from pathlib import Path

import pytest

from overclaim.mechanisms.measures import gaussian_dp

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
        assert gaussian_dp.gaussian_delta(mu, epsilon) == pytest.approx(delta, rel=1e-8)
    else:
        assert gaussian_dp.gaussian_delta(mu, 0.0) <= delta


def test_limits():
    assert gaussian_dp.gaussian_epsilon(0.1, 0.5) == 0.0
    assert gaussian_dp.gaussian_delta(0.1, 50.0) == 0.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gaussian_dp.gaussian_delta(0.0, 1.0), "mu must be positive.*0.0"),
        (lambda: gaussian_dp.gaussian_delta(1.0, -1.0), "epsilon must be non-negative.*-1.0"),
        (lambda: gaussian_dp.gaussian_epsilon(1.0, 0.0), "delta must be in"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("mu", [1e6, 1.01e6, 1e9, 1e150, 1e200, 1e308])
def test_gaussian_epsilon_of_huge_means(mu):
    """Tails cannot be subtracted there: the root was not found. It is mu (mu / 2 + 2.33) at a delta of .01."""
    assert gaussian_dp.gaussian_epsilon(mu, 0.01) == pytest.approx(mu * (mu / 2 + 2.3263478740408408), rel=1e-10)


@pytest.mark.parametrize("epsilon", [0.999e12, 1.001e12, 1e18, 1e300])
def test_gaussian_mu_of_huge_epsilons(epsilon):
    """Of more than 1e17 no mean up to e^20 is too large: the root was not found."""
    mu = gaussian_dp.gaussian_mu(epsilon, 0.01)
    assert gaussian_dp.gaussian_epsilon(mu, 0.01) == pytest.approx(epsilon, rel=1e-10)
