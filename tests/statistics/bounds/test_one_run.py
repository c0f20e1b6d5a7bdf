"""Bounds from one run: their oracle, its laws, and its error on exactly private randomised response."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

from overclaim.audit.statistics.bounds import intervals, one_run
from overclaim.tests.support.refusals import refusals

ROWS = json.loads((Path(__file__).parents[2] / "data" / "statistics.json").read_text())["rows"]


def test_p_values_agree_with_the_oracle():
    rows = [row for row in ROWS if row["type"] == "one_run_pvalue"]
    assert len(rows) == 4
    for row in rows:
        got = one_run.one_run_p_value(row["v"], row["r"], row["m"], row["eps"], row["delta"])
        assert got == pytest.approx(float(row["pvalue"]), rel=1e-8), row


def test_without_delta_the_bound_is_that_of_the_guess_game():
    got = one_run.epsilon_one_run(60, 68, 100)
    assert got == pytest.approx(float(intervals.epsilon_guess(60, 68, 68)), abs=1e-9)


def test_delta_and_canaries_lower_the_bound():
    bounds = [one_run.epsilon_one_run(60, 68, 100, delta=delta) for delta in (0.0, 1e-5, 1e-4, 1e-3)]
    assert bounds == sorted(bounds, reverse=True)
    assert one_run.epsilon_one_run(60, 68, 1000, delta=1e-4) < one_run.epsilon_one_run(60, 68, 100, delta=1e-4)
    assert one_run.epsilon_one_run(30, 68, 100) == 0.0
    assert one_run.epsilon_one_run(0, 5, 5, delta=0.1) == 0.0
    assert one_run.epsilon_one_run(50, 50, 50, delta=0.0) > 2.5


@pytest.mark.parametrize("delta", [0.0, 0.002])
def test_error_on_randomised_response(delta):
    """20,000 runs of 100 canaries, each revealed with probability delta, else answered with odds e : 1.

    False-alarm probability at most 1e-6.
    """
    rng, epsilon, canaries, runs, alpha = np.random.default_rng(20), 1.0, 100, 20_000, 0.05
    right = rng.binomial(canaries, delta + (1 - delta) * special.expit(epsilon), size=runs)
    bound = {v: one_run.epsilon_one_run(int(v), canaries, canaries, delta=delta) for v in np.unique(right)}
    errors = sum(bound[v] > epsilon for v in right)
    assert errors <= stats.binom.isf(1e-6, runs, alpha)


test_bad_input_is_named = refusals(
    (lambda: one_run.one_run_p_value(3, 2, 5, 1.0, 0.0), "correct <= guesses <= canaries.*correct=3"),
    (lambda: one_run.one_run_p_value(1, 2, 1, 1.0, 0.0), "canaries=1"),
    (lambda: one_run.one_run_p_value(-1, 2, 5, 1.0, 0.0), "correct must be .*-1"),
    (lambda: one_run.one_run_p_value(1, 2, 5, -1.0, 0.0), "epsilon must be .*-1.0"),
    (lambda: one_run.one_run_p_value(1, 2, 5, 1.0, 1.0), "delta must be in"),
    (lambda: one_run.epsilon_one_run(1, 2, 5, alpha=0.0), "alpha must be in"),
)
