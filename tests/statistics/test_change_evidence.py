"""Evidence over changes, against a slow twin that bets run by run, and by enumerating every outcome."""

import itertools
import math

import numpy as np
import pytest
from scipy import special, stats

from overclaim.audit.statistics.change_evidence import (
    CHANGES,
    ERROR,
    STAKES,
    Evidence,
    Guesses,
    Limits,
    Line,
    accepted_line,
    claimed_line,
    evidence_of,
    log_e_value,
    p_value_of_growth,
)
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP

RIGHT, WRONG, NONE = range(3)


def bet(line, outcomes):
    """Return the wealth of each stake after these outcomes, bet by bet."""
    wealth = []
    for share in STAKES:
        stake = share / (math.exp(line.epsilon) + line.delta)
        money = 1.0
        for outcome in outcomes:
            gain = {RIGHT: 1.0, WRONG: -math.exp(line.epsilon), NONE: 0.0}[outcome] - line.delta
            money *= 1 + stake * gain
        wealth.append(money)
    return np.array(wealth)


def guesses(outcomes):
    return Guesses(outcomes.count(RIGHT), outcomes.count(WRONG), len(outcomes))


@pytest.mark.parametrize("line", [Line(1.0), Line(0.5, 0.1), Line(-0.7), Line(3.0, 1e-5)])
def test_growth_is_that_of_a_twin_that_bets_run_by_run(line):
    for outcomes in itertools.product((RIGHT, WRONG, NONE), repeat=4):
        np.testing.assert_allclose(np.exp(line.log_growth(guesses(outcomes))), bet(line, outcomes), rtol=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "delta", "wrong"), [(1.0, 0.0, 0.2), (0.5, 0.1, 0.3), (-0.7, 0.0, 0.6), (2.0, 1e-3, 0.1)]
)
def test_growth_is_one_on_average_where_the_hypothesis_is_exactly_tight(epsilon, delta, wrong):
    """Summed over all outcomes of three runs; a law beyond the line grows."""
    line = Line(epsilon, delta)
    for excess, grows in ((0.0, False), (0.02, True)):
        right = math.exp(epsilon) * wrong + delta + excess
        chances = {RIGHT: right, WRONG: wrong, NONE: 1 - right - wrong}
        mean = sum(
            math.prod(chances[one] for one in outcomes) * np.exp(line.log_growth(guesses(outcomes)))
            for outcomes in itertools.product(chances, repeat=3)
        )
        assert (mean > 1 + 1e-9).all() == grows
        assert grows or np.allclose(mean, 1, rtol=1e-12)


def enumerate_histories(line, chances, changes, limits):
    """Yield the probability of each history of one run a change, and its evidence after each change."""
    for outcomes in itertools.product(chances, repeat=changes):
        growths = [line.log_growth(guesses((one,)))[None] for one in outcomes]
        paths = [evidence_of(growths[: n + 1], 1, limits) for n in range(changes)]
        yield math.prod(chances[one] for one in outcomes), paths


def test_evidence_grows_by_at_most_one_a_change_and_is_large_no_more_often_than_that_allows():
    """The supermartingale R - n, and P(max R >= c) <= n / c, over all 3^4 histories: exact, and not far from it."""
    line, limits = Line(0.5), Limits(10**6)
    chances = {RIGHT: 0.3 * math.exp(0.5), WRONG: 0.3, NONE: 0.7 - 0.3 * math.exp(0.5)}
    known = [*enumerate_histories(line, chances, 4, limits)]
    assert sum(chance for chance, _ in known) == pytest.approx(1)
    for n in range(4):
        mean = sum(chance * math.exp(paths[n].log_mean()) for chance, paths in known)
        assert mean == pytest.approx(n + 1, rel=1e-9)  # exactly tight: R - n is a martingale
    for c in (2, 4, 6):
        above = sum(chance for chance, paths in known if max(p.log_mean() for p in paths) >= math.log(c))
        assert 0 < above <= 4 / c


def test_evidence_by_hand():
    growth = np.log(np.array([[2.0] * 8, [0.5] * 8]))
    evidence = Evidence.none(2).after(growth)
    assert math.exp(evidence.log_mean()) == pytest.approx((2 + 0.5) / 2)
    evidence = evidence.after(growth)  # (1 + 2) 2 and (1 + 0.5) 0.5
    assert math.exp(evidence.log_mean()) == pytest.approx((6 + 0.75) / 2)
    assert math.exp(evidence.log_mean([0])) == pytest.approx(3)
    kept = evidence.after(np.array([[np.nan] * 8, [0.0] * 8]))  # what was not counted stays
    np.testing.assert_allclose(np.exp(kept.log_r), [[6.0] * 8, [1.75] * 8])


def test_limits_share_the_error_and_a_red_change_starts_the_next_in_doubt():
    assert math.exp(Limits(1).log_red) == pytest.approx(CHANGES / ERROR)
    assert math.exp(Limits(20, bounded=True).log_red) == pytest.approx(2 * 20 * CHANGES / ERROR)
    limits = Limits(3)
    red = Evidence.none(1).after(np.full((1, 8), 50.0))
    assert red.log_mean() > limits.log_red
    assert red.started(limits).log_mean() == pytest.approx(limits.log_doubt)
    below = Evidence.none(1).after(np.full((1, 8), 3.0))
    assert below.started(limits) is below


@pytest.mark.parametrize("runs", [300, 3000])
def test_chance_makes_a_tight_claim_red_no_more_often_than_promised(runs):
    """Of 300 histories of 200 changes, with a limit that allows 5 %; a false alarm has a probability below 1e-6."""
    rng, line = np.random.default_rng(5), Line(1.0)
    wrong = 0.25
    log_red = math.log(CHANGES / 0.05)
    evidence, red = Evidence(np.full((300, STAKES.size), -np.inf)), np.zeros(300, dtype=bool)
    for _ in range(CHANGES):
        right = rng.binomial(runs, wrong * math.e, 300)
        bad = rng.binomial(runs - right, wrong / (1 - wrong * math.e))
        evidence = evidence.after(line.log_growth(Guesses(right[:, None], bad[:, None], runs)))
        red |= special.logsumexp(evidence.log_r, axis=1) - math.log(STAKES.size) >= log_red
    assert red.sum() <= 300 * 0.05 + 5 * math.sqrt(300 * 0.05)


def test_an_accepted_line_bounds_the_odds_by_clopper_and_pearson():
    claimed = Line(2.0)
    line = accepted_line(claimed, Guesses(700, 300, 2000), 0.01)
    share = stats.beta.ppf(0.99, 701, 300)
    assert line.epsilon == pytest.approx(math.log(share / (1 - share)), rel=1e-9)
    assert accepted_line(claimed, Guesses(950, 50, 2000), 0.01) is claimed  # it allows less
    assert accepted_line(claimed, Guesses(0, 0, 2000), 0.01) is claimed
    with_delta = accepted_line(Line(2.0, 0.05), Guesses(700, 300, 2000), 0.01)
    upper, lower = stats.beta.ppf(1 - 0.005, 701, 1300), stats.beta.ppf(0.005, 300, 1701)
    assert with_delta.epsilon == pytest.approx(math.log((upper - 0.05) / lower), rel=1e-9)


@pytest.mark.parametrize("measure", [GDP(1.0), Profile([(0.5, 0.1), (1.0, 0.02)])])
def test_the_line_of_another_measure_is_one_that_it_allows(measure):
    """No event that the measure allows is beyond the line; and one that it just allows is near it."""
    line = claimed_line(measure, Guesses(300, 80, 1000), 0.0)
    q = np.linspace(0, 1, 2001)
    above = measure.allowed(q) - (math.exp(line.epsilon) * q + line.delta)
    assert above.max() <= 1e-9
    assert above[160] > -0.02


def test_the_line_of_an_epsilon_is_its_own_moved_by_the_share_of_left_runs():
    assert claimed_line(ApproxDP(1.0, 1e-5), Guesses(1, 1, 2), math.log(3)) == Line(1.0 + math.log(3), 1e-5)


def test_an_e_value_from_a_p_value_has_mean_at_most_one():
    p = (np.arange(200_000) + 0.5) / 200_000
    values = np.exp([log_e_value(one) for one in p])
    assert 0.9 < values.mean() <= 1
    assert (np.diff(values) <= 1e-12).all()
    assert log_e_value(1.0) == pytest.approx(math.log(0.5))
    assert log_e_value(1e-100) == pytest.approx(100 * math.log(10) - 2 * math.log(100 * math.log(10)), rel=1e-9)


def test_a_growth_of_scores_is_tested_by_the_binomial_tail():
    line = Line(math.log(3))
    assert p_value_of_growth(line, Guesses(80, 20, 500)) == pytest.approx(stats.binom.sf(79, 100, 0.75), rel=1e-9)
    assert p_value_of_growth(line, Guesses(0, 0, 500)) == 1.0
