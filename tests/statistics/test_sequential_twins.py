"""The gambler against twins written from the definitions: her wealth, her boundary, her event, her crossing law."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import special, stats

from overclaim.audit.statistics import sequential
from overclaim.audit.statistics.events import UNUSED, Counts, Event
from overclaim.audit.statistics.graded_bets import GRADES, GradedBets, Stakes
from overclaim.audit.statistics.sequential import (
    AnytimeBets,
    Bets,
    ceiling_epsilon,
    choose_growing_event,
    detectable_epsilon,
    log_e_value,
)
from overclaim.tests.support.crossing import crossing_law


def all_of_one(right, wrong, runs, grade):
    """Return the counts of guesses that all had stakes of one grade, or none."""
    tally = np.zeros((2, GRADES), dtype=int)
    if grade:
        tally[:, grade - 1] = right, wrong
    return Counts(runs, runs // 2, left_upper=right, right_upper=wrong, tally=tuple(tally.ravel().tolist()))


COUNTS = [(0, 0, 0), (3, 0, 5), (5, 2, 7), (40, 7, 90), (2, 9, 30)]


@pytest.mark.parametrize("claimed", [0.0, 1.0, 4.0])
@pytest.mark.parametrize("delta", [0.0, 1e-6, 0.25, 0.9])
def test_nobody_begins_rich(claimed, delta):
    """The planted bug: stakes whose weights add up to more than 1. Stakes that the claim forbids are lost at once."""
    bets = Bets(claimed, delta)
    assert bets._stakes()[1].sum() == pytest.approx(1.0, abs=1e-12)
    assert -0.05 < float(bets.log_wealth(0, 0, 0, claimed)) <= 1e-12


@pytest.mark.parametrize("claimed", [0.0, 1.0])
@pytest.mark.parametrize("delta", [1e-3, 0.25])
@pytest.mark.parametrize("epsilon", [0.0, 1.0, 2.5, 800.0])
def test_wealth_with_delta_is_the_mean_over_the_stakes(claimed, delta, epsilon):
    near = [(0.8 / 64, (k + 0.5) / 64 / (math.exp(claimed) + delta)) for k in range(64)]
    far = [(0.2 / 96, 10 ** (-8 + 8 * k / 95) / (1 + delta)) for k in range(96)]
    bets = Bets(claimed, delta)
    largest = bets._stakes()[0].max()
    if delta == 0.25:
        assert largest * (1 + delta) == 1.0  # a stake that epsilon = 0 just forbids
    for right, wrong, runs in COUNTS:
        wealth = 0.0
        for weight, stake in near + far:
            lost = stake * (math.exp(min(epsilon, 700)) + delta)
            if lost < 1 - 1e-12:
                rest = runs - right - wrong
                wealth += (
                    weight * (1 + stake * (1 - delta)) ** right * (1 - stake * delta) ** rest * (1 - lost) ** wrong
                )
        ours = float(bets.log_wealth(right, wrong, runs, epsilon))
        assert ours == pytest.approx(math.log(wealth), rel=1e-9, abs=1e-10) if wealth else ours == -math.inf


def test_wealth_without_delta_is_the_closed_form():
    """Whose stakes suit every epsilon: fixed ones, placed for the claim, would be another gambler."""
    for right, wrong, runs in COUNTS:
        assert float(Bets(1.0, 0.0).log_wealth(right, wrong, runs, 2.0)) == float(log_e_value(right, wrong, 2.0))


@pytest.mark.parametrize("delta", [0.0, 0.02])
def test_the_wealth_of_all_gamblers_is_their_mean_and_is_never_overstated(delta):
    """Four fifths of it in grades; whatever rounding does, less is said than there is."""
    for right, wrong, runs in COUNTS:
        counts = all_of_one(right, wrong, runs, 3)
        in_grades = float(GradedBets(1.0, delta).log_wealth(*counts.tallies, runs, 0.7))
        by_guesses = float(Bets(1.0, delta).log_wealth(right, wrong, runs, 0.7))
        mean = math.log(0.8 * math.exp(in_grades) + 0.2 * math.exp(by_guesses))
        assert 0 < mean - AnytimeBets(1.0, delta).log_wealth_of(counts, 0.7) < 1.2e-8


@pytest.mark.few(3)
@pytest.mark.parametrize("delta", [0.0, 0.02])
@pytest.mark.parametrize(("claimed", "alpha"), [(0.0, 0.7), (0.0, 0.05), (1.0, 0.3)])
@pytest.mark.parametrize("grade", [0, 1, 7])
def test_the_boundary_is_the_fewest_that_reject(claimed, alpha, delta, grade):
    bets, idle = AnytimeBets(claimed, delta), 3
    for guesses in range(25):
        runs = guesses + idle
        logs = [bets.log_wealth_of(all_of_one(k, guesses - k, runs, grade), claimed) for k in range(guesses + 1)]
        rich = [log >= -math.log(alpha) for log in logs]
        expected = rich.index(True) if any(rich) else guesses + 1
        assert bets.boundary(guesses, runs, alpha, grade) == expected
    table = bets.boundary([24.0, 3.0], 27, alpha, grade)
    assert table.dtype == np.int64
    assert table[0] == expected
    assert bets.boundary(0, 0, alpha, grade) == 1


@pytest.mark.parametrize("delta", [0.0, 1e-3])
@pytest.mark.parametrize(("right", "wrong", "runs"), [(300, 200, 520), (420, 80, 520), (500, 0, 520)])
def test_the_bound_is_where_the_wealth_crosses(right, wrong, runs, delta):
    bets, goal = AnytimeBets(0.1, delta), math.log(20)
    counts = all_of_one(right, wrong, runs, 4)
    bound = bets.epsilon_lower(counts, 0.05)
    assert bound > 0
    assert bets.log_wealth_of(counts, bound * (1 - 1e-9)) >= goal
    assert bets.log_wealth_of(counts, bound * (1 + 1e-6)) < goal


@pytest.mark.few(2)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.3])
def test_no_bound_is_above_that_of_an_attack_which_is_always_right(delta):
    bets = AnytimeBets(0.1, delta)
    for runs in (6, 10, 11, 30, 520):
        best = bets.epsilon_lower(all_of_one(runs, 0, runs, 1), 0.05)
        assert ceiling_epsilon(0.1, runs, delta=delta, alpha=0.05) == best
        assert best >= max(bets.epsilon_lower(all_of_one(runs - k, k, runs, 1), 0.05) for k in (1, 2, 3))


def test_the_closed_form_takes_integers_and_scalars():
    """All right: the mean of (u + (1 - u)/pi)^c over u is (pi^-(c+1) - 1) / ((c+1) (1/pi - 1))."""
    for epsilon in (0, 1.5):
        pi = special.expit(epsilon)
        expected = math.log((pi**-8 - 1) / (8 * (1 / pi - 1)))
        assert float(log_e_value(7, 0, epsilon)) == pytest.approx(expected, rel=1e-12)
    # Far below chance the tail underflows and the series takes over, for scalars too: the means of u^w, and of
    # u + (1 - u)/pi times that.
    assert float(log_e_value(0, 3000, 2)) == pytest.approx(-math.log(3001), rel=1e-13)
    for w, epsilon in ((3000, 2.0), (400, 5.0)):
        expected = math.log(1 / (w + 2) + (1 / (w + 1) - 1 / (w + 2)) / special.expit(epsilon))
        assert log_e_value([1], [w], [epsilon])[0] == pytest.approx(expected, rel=1e-13)
    assert float(log_e_value(3, 2, 1e308)) == pytest.approx(-math.log(3), rel=1e-13)  # without a warning


def power_of(true, claimed, runs, delta, alpha):
    """The mean over 33 equally likely numbers of guesses of the exact chance to pass the boundary."""
    bets = AnytimeBets(claimed, delta)
    right, wrong = (1 + delta) / 2, (1 - delta) / 2 * math.exp(-true)
    total = 0.0
    for k in range(33):
        guesses = int(stats.binom.ppf((k + 0.5) / 33, runs, right + wrong))
        needed = int(bets.boundary(guesses, runs, alpha, int(Stakes.of_log_odds(claimed).of(math.log(right / wrong)))))
        total += 1 - (stats.binom.cdf(needed - 1, guesses, right / (right + wrong)) if needed else 0.0)
    return total / 33


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("claimed", "runs", "delta"), [(1.0, 2000, 0.0), (0.5, 60, 0.05), (0.0, 400, 0.01), (2.0, 90, 0)]
)
def test_the_detectable_epsilon_is_the_edge_of_the_power(claimed, runs, delta):
    edge = detectable_epsilon(claimed, runs, delta=delta, alpha=0.05)
    assert power_of(edge, claimed, runs, delta, 0.05) >= 0.9
    assert power_of(edge - 1e-4, claimed, runs, delta, 0.05) < 0.9
    assert detectable_epsilon(claimed, runs, delta=delta, alpha=0.05, power=0.5) < edge
    assert detectable_epsilon(2.0, 90, delta=0.0, alpha=0.05) > 4


def twin_growth(right, wrong, epsilon, delta):
    """The largest of 24 stakes' mean log growth; where all lose, a number far below 0."""
    largest, best = 1 / (math.exp(epsilon) + delta), -math.inf
    for k in range(24):
        stake = (k + 0.5) / 24 * largest
        rest = max(1 - right - wrong, 0.0)
        growth = right * math.log(1 + stake * (1 - delta)) + wrong * math.log(1 - stake / largest)
        best = max(best, growth + rest * math.log(1 - stake * delta))
    return best if best > 0 else right - wrong * math.exp(epsilon) - delta - 1000


@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 6.0])
def test_growth_against_its_twin(epsilon, delta):
    rates = np.array([[0.9, 0.02], [0.5, 0.3], [0.3, 0.0], [0.0, 0.4], [0.2, 0.2], [0.7, 0.1]])
    growths = sequential._growth(rates[:, 0], rates[:, 1], epsilon, delta)
    np.testing.assert_allclose(growths, [twin_growth(*rate, epsilon, delta) for rate in rates], rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize("seen", [None, 40])
@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (0.7, 0.05), (5.0, 0.3)])
@pytest.mark.parametrize("seed", range(4))
def test_the_growing_event_is_the_best_pair_of_thresholds(seed, epsilon, delta, seen):
    rng = np.random.default_rng(seed)
    scores = np.array([*rng.integers(0, 7, size=14), math.nan, math.inf])
    left, right = rng.dirichlet(np.full(16, 0.4)) / 2, rng.dirichlet(np.full(16, 0.4)) / 2
    worth, sides = {}, [*np.unique(scores[~np.isnan(scores)]), UNUSED]
    for upper in sides:
        for lower in sides:
            if lower >= upper or (math.isnan(lower) and math.isnan(upper)):
                continue
            above, below = scores >= upper, scores <= lower
            good = left[above].sum() + right[below].sum()
            bad = right[above].sum() + left[below].sum() + (1 / seen if seen else 0)
            worth[Event(lower, upper, "guess")] = twin_growth(good, bad, epsilon, delta)
    event = choose_growing_event(scores, left, right, epsilon=epsilon, delta=delta, seen=seen)
    assert worth[event] == pytest.approx(max(worth.values()), rel=1e-12)


@pytest.mark.parametrize("rare", [False, True])
def test_among_many_scores_the_best_threshold_is_found(rare):
    """2000 scores of which only 60 ever happen; or 60 rare ones beside an atom of nearly all the mass."""
    size, first, weight = (60, 0, 1e-6) if rare else (2000, 1000, 1.0)
    scores = np.arange(float(size))
    for edge in [*range(1, 29), *range(32, 60)]:
        left, right = np.zeros(size), np.zeros(size)
        side = np.arange(60) < edge
        left[first : first + 60], right[first : first + 60] = np.where(side, 0.1, 0.9), np.where(side, 0.9, 0.1)
        left, right = weight * left, weight * right
        if rare:
            left[30] = right[30] = 1.0
        left, right = left / (left + right).sum(), right / (left + right).sum()
        event = choose_growing_event(scores[::-1], left[::-1], right[::-1], epsilon=0.5, delta=0.0, seen=None)
        if not rare:
            assert (event.lower, event.upper) == (first + edge - 1, first + edge)
        else:  # the atom tells nothing, so only the side away from it is named
            assert (event.upper if edge > 30 else event.lower) == (edge if edge > 30 else edge - 1)


def test_scores_may_be_any_real_numbers():
    laws = [Fraction(1, 2), None, 0], [0.0, 0.0, Fraction(1, 2)]
    event = choose_growing_event([Fraction(7, 2), None, 1], *laws, epsilon=1.0, delta=0.0, seen=None)
    assert event == Event(1.0, 3.5, "guess")


@pytest.mark.parametrize("pi", [0.0, 0.4, 0.9, 1.0])
def test_the_crossing_law_by_all_paths(pi):
    bets, looks, alpha = AnytimeBets(0.2, 0.0), 60, 0.2
    alive, expected = {0: 1.0}, np.zeros(looks)
    for t in range(looks):
        moved = {}
        for c, mass in alive.items():
            for step, chance in ((1, pi), (0, 1 - pi)):
                moved[c + step] = moved.get(c + step, 0.0) + mass * chance
        needed = int(bets.boundary(t + 1, t + 1, alpha, 3))
        expected[t] = sum(mass for c, mass in moved.items() if c >= needed)
        alive = {c: mass for c, mass in moved.items() if c < needed}
    np.testing.assert_allclose(crossing_law(bets, pi, looks, alpha, 3), expected, atol=1e-14)
    assert (expected.sum() > 0) == (pi > 0)
