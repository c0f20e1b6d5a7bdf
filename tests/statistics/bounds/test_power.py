"""Power: the published figures, the definition, and a simulation."""

import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.bounds import binomial_bounds, intervals, power
from overclaim.audit.statistics.events import Counts, Event, certify
from overclaim.audit.verdicts.verdict import Verdict, decide
from overclaim.mechanisms.claim import Claim
from overclaim.tests.support.refusals import refusals


@pytest.mark.parametrize(
    ("per_world", "expected", "within"),
    [(100, 1.70, 0.01), (10**3, 1.188, 2e-3), (10**4, 1.057, 1e-3), (10**5, 1.018, 5e-4), (10**6, 1.006, 5e-4)],
)
def test_detectable_epsilon_at_claim_one(per_world, expected, within):
    assert power.detectable_epsilon(1.0, 2 * per_world) == pytest.approx(expected, abs=within)


@pytest.mark.parametrize("delta", [0.0, 0.01])
def test_power_agrees_with_simulated_certificates(delta):
    """20,000 certificates; five standard errors, plus .01 for the averaging over guess counts.

    The false-alarm probability is below 1e-6.
    """
    rng, claimed, true, runs, trials = np.random.default_rng(5), 1.0, 1.15, 1500, 20_000
    right, wrong = (1 + delta) / 2, (1 - delta) / 2 * math.exp(-true)
    draws = rng.multinomial(runs, [right, wrong, 1 - right - wrong], size=trials)
    bounds = intervals.epsilon_guess(draws[:, 0], draws[:, 0] + draws[:, 1], runs, delta=delta)
    expected = power.falsification_power(claimed, true, runs, delta=delta)
    assert 0.2 < expected < 0.95
    assert np.mean(bounds > claimed) == pytest.approx(expected, abs=5 * math.sqrt(0.25 / trials) + 0.01)


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize("claimed", [0.0, 0.5, 4.0])
def test_detectable_is_the_edge_of_the_power(claimed, delta):
    edge = power.detectable_epsilon(claimed, 20_000, delta=delta, power=0.8)
    assert power.falsification_power(claimed, edge + 1e-6, 20_000, delta=delta) >= 0.8 - 0.01
    assert power.falsification_power(claimed, edge - 0.01, 20_000, delta=delta) < 0.8


def test_a_true_claim_is_falsified_at_most_with_probability_alpha():
    for runs in (10, 57, 1000, 10**6):
        for delta in (0.0, 0.05):
            assert power.falsification_power(1.0, 1.0, runs, delta=delta, alpha=0.05) <= 0.05


def test_more_runs_detect_less_and_a_stricter_alpha_more():
    edges = [power.detectable_epsilon(1.0, runs) for runs in (500, 2000, 8000, 32_000)]
    assert edges == sorted(edges, reverse=True)
    assert power.detectable_epsilon(1.0, 2000, alpha=0.01) > power.detectable_epsilon(1.0, 2000)
    assert power.detectable_epsilon(1.0, 2000, delta=0.01) > power.detectable_epsilon(1.0, 2000)
    assert power.detectable_epsilon(1.0, 2000, power=0.99) > power.detectable_epsilon(1.0, 2000)


def test_undetectable_claims_are_infinite():
    assert power.detectable_epsilon(1.0, 1) == math.inf
    assert power.detectable_epsilon(8.0, 1000) == math.inf
    # And they are beyond what even a perfect attack could certify with half of the runs.
    assert power.ceiling_epsilon(400) < 8.0


def test_nothing_refutes_a_claim_whose_odds_underflow():
    """Also where no run has a guess, so that delta explains any of them."""
    assert power.falsification_power(800.0, math.inf, 1, delta=0.1) == 0.0
    assert power.falsification_power(800.0, math.inf, 100) == 0.0


def test_ceiling_is_all_guesses_right():
    assert power.ceiling_epsilon(1000) == pytest.approx(-math.log(0.05 ** (-1 / 1000) - 1))
    assert power.ceiling_epsilon(1000, alpha=0.01) < power.ceiling_epsilon(1000)
    assert power.ceiling_epsilon(1000, delta=0.1) < power.ceiling_epsilon(1000)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("runs", "delta", "alpha"), [(40, 0.6, 0.01), (20, 0.3, 0.01), (100, 0.9, 0.1), (40, 0.3, 1e-4)]
)
def test_ceiling_is_no_less_than_what_an_event_of_one_world_certifies(runs, delta, alpha):
    """It happens in every run of that world, and in none of the other: no score is better."""
    event = Event(math.nan, 0.0, "joint")
    counts = [Counts(runs, left, left_upper=left) for left in range(runs // 10, runs - runs // 10 + 1)]
    most = max(certify(event, one, delta=delta, alpha=alpha).epsilon_lower for one in counts)
    assert 0 < most <= power.ceiling_epsilon(runs, delta=delta, alpha=alpha)
    halves = certify(event, Counts(runs, runs // 2, left_upper=runs // 2), delta=delta, alpha=alpha).epsilon_lower
    assert decide(Claim(epsilon=halves / 2, delta=delta), 0.0, runs, alpha) is Verdict.SURVIVED


@pytest.mark.few(3)
@pytest.mark.parametrize(("claimed", "true"), [(1.0, 1.188), (1.0, 2.0), (0.0, 0.5), (2.0, 2.02)])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_required_runs_inverts_detectable(claimed, true, delta):
    runs = power.required_runs(claimed, true, delta=delta)
    assert power.falsification_power(claimed, true, runs, delta=delta) >= 0.9
    assert power.falsification_power(claimed, true, runs - 1, delta=delta) < 0.9
    # The sawtooth of a discrete test is the slack.
    assert power.detectable_epsilon(claimed, runs, delta=delta) == pytest.approx(true, rel=0.02)


@pytest.mark.few(2)
@pytest.mark.parametrize("share", [1e-3, 0.5])
@pytest.mark.parametrize(("claimed", "true", "delta"), [(1.0, 1.6, 0.05), (0.0, 0.0, 0.2), (0.5, 1.2, 0.0)])
def test_the_power_is_its_definition(claimed, true, delta, share, monkeypatch):
    """A twin that enumerates every count of right guesses, also where the guess rate takes half of alpha."""
    monkeypatch.setattr(intervals, "NUISANCE_SHARE", share)
    runs, alpha, caught = 120, 0.1, 0.0
    right, wrong = (1 + delta) / 2, (1 - delta) / 2 * math.exp(-true)
    for k in range(65):
        guesses = int(stats.binom.ppf((k + 0.5) / 65, runs, right + wrong))
        spent = share * alpha if delta else 0.0
        excess = delta / binomial_bounds.clopper_pearson_lower(guesses, runs, spent) if delta else 0.0
        allowed = min(1.0, (math.exp(claimed) + excess) / (1 + math.exp(claimed)))
        for count in range(guesses + 1):
            if stats.binom.sf(count - 1, guesses, allowed) <= alpha - spent:
                caught += stats.binom.pmf(count, guesses, right / (right + wrong))
    chance = power.falsification_power(claimed, true, runs, delta=delta, alpha=alpha)
    assert chance == pytest.approx(caught / 65, rel=1e-9)


def test_a_gross_violation_is_found_far_beyond_the_claim():
    edge = power.detectable_epsilon(2.0, 90)
    assert edge > 4  # the search widens more than once
    assert power.falsification_power(2.0, edge, 90) >= 0.9 - 1e-9
    assert power.falsification_power(2.0, edge - 1e-3, 90) < 0.9


@pytest.mark.parametrize(("alpha", "claimed", "true"), [(0.001, 0.0, 3.0), (0.3, 0.0, math.inf), (0.05, 0.1, 6.0)])
def test_required_runs_at_any_alpha(alpha, claimed, true):
    runs = power.required_runs(claimed, true, alpha=alpha)
    assert type(runs) is int
    assert power.falsification_power(claimed, true, runs, alpha=alpha) >= 0.9
    assert runs == 1 or power.falsification_power(claimed, true, runs - 1, alpha=alpha) < 0.9


def test_one_run_may_be_enough():
    assert power.required_runs(0.0, math.inf, alpha=0.6, power=0.4) == 1


def test_most_runs_are_asked_about_only_where_few_do_not_suffice(monkeypatch):
    """One look at 2^50 of them takes ten times as long as the search."""
    asked, real = [], power.falsification_power
    monkeypatch.setattr(
        power,
        "falsification_power",
        lambda claimed, true, runs, **how: asked.append(runs) or real(claimed, true, runs, **how),
    )
    alpha = 0.0102  # nobody else's: what was asked before is remembered
    assert power.required_runs(1.0, 2.0, alpha=alpha) < max(asked) < 1000
    with pytest.raises(ValueError, match="more than 2\\^50 runs"):
        power.required_runs(1.0, 1.0 + 1e-9, alpha=alpha)
    assert max(asked) == 2**50


test_bad_input_is_named = refusals(
    (lambda: power.detectable_epsilon(-1.0, 10), "claimed must be .*-1.0"),
    (lambda: power.detectable_epsilon(math.inf, 10), "claimed must be .*inf"),
    (lambda: power.detectable_epsilon(1.0, 0), "runs must be at least 1 and at most 2.50, got 0"),
    (lambda: power.detectable_epsilon(1.0, 10, power=1.0), "power must be in"),
    (lambda: power.detectable_epsilon(1.0, 10, alpha=2.0), "alpha must be in .*2.0"),
    (lambda: power.detectable_epsilon(1.0, 10, delta=-1.0), "delta must be in"),
    (lambda: power.falsification_power(1.0, -1.0, 10), "true must be .*-1.0"),
    (lambda: power.required_runs(1.0, 1.0), "true must exceed claimed=1.0"),
    (lambda: power.ceiling_epsilon(0), "runs must be at least 1"),
    (lambda: power.detectable_epsilon(1.0, 10, power=0.0), r"power must be in \(0, 1\), got 0.0"),
    (lambda: power.detectable_epsilon(1.0, 10, alpha=0.0), r"alpha must be in \(0, 1\), got 0.0"),
    (lambda: power.detectable_epsilon(1.0, 10, alpha=1.0), r"alpha must be in \(0, 1\), got 1.0"),
    (lambda: power.detectable_epsilon(1.0, 10, delta=1.0), r"delta must be in \[0, 1\), got 1.0"),
    (lambda: power.required_runs(1.0, 2.0, delta=1.0), "delta must be in"),
    (lambda: power.required_runs(1.0, 2.0, alpha=1.5), r"alpha must be in \(0, 1\), got 1.5"),
    (lambda: power.required_runs(1.0, 2.0, power=1.5), r"power must be in \(0, 1\), got 1.5"),
    (
        lambda: power.required_runs(1.0, 1.0 + 1e-9),
        r"^more than 2\^50 runs are needed to tell true=1.000000001 from claimed=1.0$",
    ),
)
