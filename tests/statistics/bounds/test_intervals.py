"""Every interval against its oracle, its definition, and the laws it obeys."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from overclaim.audit.statistics.bounds import binomial_bounds, intervals, joint_bound
from overclaim.tests.support.refusals import refusals

ROWS = json.loads((Path(__file__).parents[2] / "data" / "statistics.json").read_text())["rows"]
TWO_SAMPLE = [row for row in ROWS if row["type"] == "cp_two_sample"]
GUESS_GAME = [row for row in ROWS if row["type"] == "guess_game"]
LAW = settings(derandomize=True, deadline=None, database=None, max_examples=60)


@st.composite
def counts(draw, most=400):
    n = draw(st.integers(1, most))
    return draw(st.integers(0, n)), n


alphas = st.sampled_from([0.2, 0.05, 0.01, 1e-6])
deltas = st.sampled_from([0.0, 1e-5, 0.01, 0.2])


def close(got, expected):
    assert got == pytest.approx(float(expected), rel=1e-8, abs=0.0)


def test_the_oracle_has_all_of_its_rows():
    assert (len(TWO_SAMPLE), len(GUESS_GAME)) == (45, 10)


@pytest.mark.parametrize("row", TWO_SAMPLE)
def test_two_intervals_agree_with_the_oracle(row):
    game = row["k_p"], row["n_p"], row["k_q"], row["n_q"]
    close(binomial_bounds.clopper_pearson_lower(*game[:2], row["alpha_p"]), row["p_lower"])
    close(binomial_bounds.clopper_pearson_upper(*game[2:], row["alpha_q"]), row["q_upper"])
    for delta, expected in row["eps_lower"].items():
        close(intervals.epsilon_two_interval(*game, delta=float(delta), alpha=row["alpha"]), expected)
    for delta, expected in row["eps_lower_complement"].items():
        got = intervals.epsilon_two_interval_complement(*game, delta=float(delta), alpha=row["alpha"])
        close(got, expected)


@pytest.mark.parametrize("row", GUESS_GAME)
def test_guess_game_agrees_with_the_oracle(row):
    game = row["n_correct"], row["n_guess"], row["n_runs"]
    close(intervals.epsilon_guess(*game, delta=row["delta"], alpha=row["alpha"]), row["eps_lower"])
    if row["delta"] == 0:
        close(binomial_bounds.clopper_pearson_lower(*game[:2], row["alpha"]), row["pi_lower"])


@given(counts(), alphas)
@LAW
def test_clopper_pearson_inverts_the_binomial_tail(pair, alpha):
    k, n = pair
    lower, upper = (
        binomial_bounds.clopper_pearson_lower(k, n, alpha),
        binomial_bounds.clopper_pearson_upper(k, n, alpha),
    )
    if k > 0:
        assert stats.binom.sf(k - 1, n, lower) == pytest.approx(alpha, rel=1e-7)
    if k < n:
        assert stats.binom.cdf(k, n, upper) == pytest.approx(alpha, rel=1e-7)
    # A success is the other side's failure.
    assert lower == pytest.approx(1 - binomial_bounds.clopper_pearson_upper(n - k, n, alpha), abs=1e-12)


@pytest.mark.parametrize("n", [1, 7, 10**9])
def test_clopper_pearson_at_no_and_at_every_success(n):
    assert binomial_bounds.clopper_pearson_lower(0, n, 0.05) == 0.0
    assert binomial_bounds.clopper_pearson_upper(n, n, 0.05) == 1.0
    assert binomial_bounds.clopper_pearson_lower(n, n, 0.05) == pytest.approx(0.05 ** (1 / n), rel=1e-12)
    assert binomial_bounds.clopper_pearson_upper(0, n, 0.05) == pytest.approx(-math.expm1(math.log(0.05) / n))


@pytest.mark.parametrize("alpha", [1e-17, 1e-60, 1e-100])
def test_tiny_alpha_is_exact_where_the_naive_complement_is_not(alpha):
    """The planted bug ``beta.ppf(1 - alpha)``: 1 - alpha rounds to 1, and the bound to 1."""
    k, n = 3, 10**6
    upper = binomial_bounds.clopper_pearson_upper(k, n, alpha)
    # The Poisson limit is a second opinion with an error of order upper.
    assert upper == pytest.approx(special.gammainccinv(k + 1, alpha) / n, rel=1e-3)
    naive = stats.beta.ppf(1 - alpha, k + 1, n - k)
    assert naive == 1.0
    assert naive > 1000 * upper


def test_counts_beyond_32_bits():
    big = 60_000 * 60_000
    got = intervals.epsilon_guess(np.array([big * 3 // 4]), np.array([big]), np.array([big]))
    assert got[0] == pytest.approx(math.log(3), abs=1e-4)
    assert binomial_bounds.clopper_pearson_lower(np.int32(60_000), np.int32(60_000), 0.05) > 0.9999


@given(counts(), counts(), deltas, alphas)
@LAW
def test_two_interval_bounds_are_the_definition(pair_p, pair_q, delta, alpha):
    p = binomial_bounds.clopper_pearson_lower(*pair_p, alpha / 2)
    q = binomial_bounds.clopper_pearson_upper(*pair_q, alpha / 2)
    expected = max(0.0, math.log((p - delta) / q)) if p > delta else 0.0
    got = intervals.epsilon_two_interval(*pair_p, *pair_q, delta=delta, alpha=alpha)
    assert got == pytest.approx(expected, abs=1e-9)
    other = max(0.0, math.log((1 - q - delta) / (1 - p))) if 1 - q > delta else 0.0
    got = intervals.epsilon_two_interval_complement(*pair_p, *pair_q, delta=delta, alpha=alpha)
    assert got == pytest.approx(other, abs=1e-9)


@given(counts(60), counts(60), deltas, st.sampled_from([0.2, 0.05, 0.01]))
@settings(LAW, max_examples=30)
def test_more_evidence_never_lowers_a_bound(pair_p, pair_q, delta, alpha):
    (k_p, n_p), (k_q, n_q) = pair_p, pair_q
    more, fewer = min(k_p + 1, n_p), max(k_q - 1, 0)
    for bound in (intervals.epsilon_two_interval, joint_bound.epsilon_joint):
        base = bound(k_p, n_p, k_q, n_q, delta=delta, alpha=alpha)
        assert base >= 0
        assert bound(more, n_p, k_q, n_q, delta=delta, alpha=alpha) >= base - 1e-9
        assert bound(k_p, n_p, fewer, n_q, delta=delta, alpha=alpha) >= base - 1e-9
        assert bound(k_p, n_p, k_q, n_q, delta=delta, alpha=min(0.5, 2 * alpha)) >= base - 1e-9
        assert bound(k_p, n_p, k_q, n_q, delta=delta + 0.05, alpha=alpha) <= base + 1e-9


@given(counts(), deltas, alphas, st.integers(0, 100))
@LAW
def test_guess_bound_grows_with_right_guesses_only(pair, delta, alpha, abstained):
    right, guesses = pair
    runs = guesses + abstained
    base = intervals.epsilon_guess(right, guesses, runs, delta=delta, alpha=alpha)
    assert base >= 0
    assert intervals.epsilon_guess(min(right + 1, guesses), guesses, runs, delta=delta, alpha=alpha) >= base
    assert intervals.epsilon_guess(right, guesses + 1, runs + 1, delta=delta, alpha=alpha) <= base + 1e-12
    assert intervals.epsilon_guess(right, guesses, runs, delta=delta, alpha=alpha / 2) <= base
    assert intervals.epsilon_guess(right, guesses, runs, delta=min(0.9, delta + 0.01), alpha=alpha) <= base
    if delta == 0:  # abstentions cost nothing
        assert intervals.epsilon_guess(right, guesses, guesses, alpha=alpha) == base
        p = binomial_bounds.clopper_pearson_lower(right, guesses, alpha)
        assert base == pytest.approx(max(0.0, special.logit(p)), abs=1e-9)


@pytest.mark.parametrize("delta", [0.0, 0.01])
@pytest.mark.parametrize(
    "function", [intervals.epsilon_two_interval, intervals.epsilon_two_interval_complement, joint_bound.epsilon_joint]
)
def test_broadcasting_equals_scalar_calls(function, delta):
    k_p, k_q, n_p = np.arange(0, 31, 10)[:, None], np.array([0, 3, 30]), 30
    alpha = np.array([0.05, 0.01, 0.2])
    table = function(k_p, n_p, k_q, 30, delta=delta, alpha=alpha)
    assert table.shape == (4, 3)
    for i, j in np.ndindex(table.shape):
        one = function(int(k_p[i, 0]), n_p, int(k_q[j]), 30, delta=delta, alpha=float(alpha[j]))
        assert isinstance(one, float)
        assert one == pytest.approx(table[i, j], rel=1e-12)


def test_broadcasting_of_the_guess_game():
    table = intervals.epsilon_guess(np.arange(11)[:, None], 10, np.array([10, 50]), delta=0.01)
    assert table.shape == (11, 2)
    assert table[9, 1] == intervals.epsilon_guess(9, 10, 50, delta=0.01)
    assert joint_bound.epsilon_joint(np.zeros((0, 3), dtype=int), 5, 1, 5).shape == (0, 3)


def test_no_evidence_gives_zero():
    assert intervals.epsilon_guess(0, 0, 10) == 0.0
    assert intervals.epsilon_guess(0, 0, 10, delta=0.1) == 0.0
    assert intervals.epsilon_guess(5, 10, 10) == 0.0
    assert joint_bound.epsilon_joint(0, 10, 0, 10) == 0.0
    assert joint_bound.epsilon_joint(10, 10, 10, 10) == 0.0
    assert joint_bound.epsilon_joint(3, 10, 3, 10) == 0.0
    # Much evidence, but not at this alpha: the very first epsilon is not rejected.
    for game in ((9, 10, 2, 10), (4, 5, 150_000, 10**6)):
        assert joint_bound.epsilon_joint(*game, alpha=1e-6) == pytest.approx(0.0, abs=1e-6)
        assert joint_bound.epsilon_joint(*game, alpha=0.05) > 0.3


def test_a_guess_rate_near_the_smallest_float_gives_zero():
    """Delta over its lower bound overflows, without a warning: delta explains every guess."""
    assert intervals.epsilon_guess(1, 1, 10**15, delta=0.5, alpha=1e-300) == 0.0


@pytest.mark.parametrize(
    ("n", "two", "joint", "guess"),
    [
        (10**3, 0.812, 0.878, 0.898),
        (10**4, 0.940, 0.962, 0.969),
        (10**5, 0.981, 0.988, 0.990),
        (10**6, 0.994, 0.996, 0.997),
    ],
)
def test_median_bounds_at_laplace_one(n, two, joint, guess):
    """The bounds at the typical counts of a Laplace mechanism with epsilon 1, n runs per world."""
    k_p, k_q = n // 2, round(n * 0.5 * math.exp(-1))
    assert intervals.epsilon_two_interval(k_p, n, k_q, n) == pytest.approx(two, abs=0.012)
    assert joint_bound.epsilon_joint(k_p, n, k_q, n) == pytest.approx(joint, abs=0.006)
    assert intervals.epsilon_guess(2 * k_p, 2 * (k_p + k_q), 2 * n) == pytest.approx(guess, abs=0.004)


def test_joint_against_a_slow_twin():
    """The bound re-derived from its definition, on a dense grid of the box and a plain search."""
    k_p, n_p, k_q, n_q, delta, alpha = 60, 100, 12, 80, 0.02, 0.05
    g = alpha / 1000
    p_box = binomial_bounds.clopper_pearson_lower(k_p, n_p, g / 2)
    q_box = binomial_bounds.clopper_pearson_upper(k_q, n_q, g / 2)

    def rejected(epsilon):
        q = np.linspace((p_box - delta) * math.exp(-epsilon), q_box, 5001)
        q = q[math.exp(epsilon) * q + delta < 1]
        p = math.exp(epsilon) * q + delta
        score_p = -special.ndtri(stats.binom.sf(k_p - 1, n_p, p))
        score_q = -special.ndtri(stats.binom.cdf(k_q, n_q, q))
        s_p, s_q = np.sqrt(p * (1 - p) / n_p) / (p - delta), np.sqrt(q * (1 - q) / n_q) / q
        total = (s_p * score_p + s_q * score_q) / np.sqrt(s_p**2 + s_q**2)
        return total.min() > -special.ndtri(alpha - g)

    grid = np.linspace(0.6, 1.2, 301)
    slow = next(epsilon for epsilon in grid if not rejected(epsilon))
    fast = joint_bound.epsilon_joint(k_p, n_p, k_q, n_q, delta=delta, alpha=alpha)
    assert fast == pytest.approx(slow, abs=3e-3)


@pytest.mark.parametrize(
    "game", [(90, 100, 10**5, 10**6), (9 * 10**5, 10**6, 10, 100), (10**5, 2 * 10**5, 3, 2 * 10**5)]
)
def test_joint_beats_two_intervals_also_when_one_world_is_known_far_better(game):
    joint, two = joint_bound.epsilon_joint(*game), intervals.epsilon_two_interval(*game)
    assert two < joint < math.log(game[0] / game[1] * game[3] / game[2])


test_bad_input_is_named = refusals(
    (lambda: binomial_bounds.clopper_pearson_lower(-1, 5, 0.05), "k must be a non-negative.*-1"),
    (lambda: binomial_bounds.clopper_pearson_upper(2.5, 5, 0.05), "k must be .*integer.*2.5"),
    (lambda: binomial_bounds.clopper_pearson_lower(math.nan, 5, 0.05), "k must be .*nan"),
    (lambda: binomial_bounds.clopper_pearson_lower("3", 5, 0.05), "k must be .*'3'"),
    (lambda: binomial_bounds.clopper_pearson_lower(0, 0, 0.05), "n must be at least 1, got 0"),
    (lambda: binomial_bounds.clopper_pearson_lower([1, 6], 5, 0.05), "k must be at most n, got k=6 and n=5"),
    (lambda: binomial_bounds.clopper_pearson_lower(1, 5, 0.0), r"alpha must be in \(0, 1\), got 0.0"),
    (lambda: binomial_bounds.clopper_pearson_lower(1, 5, math.nan), r"alpha must be in \(0, 1\), got nan"),
    (lambda: joint_bound.epsilon_joint(1, 5, 6, 5), "k_q must be at most n_q"),
    (lambda: joint_bound.epsilon_joint(1, 5, 1, 5, alpha=1.0), "alpha must be in"),
    (lambda: intervals.epsilon_two_interval(1, 5, 1, 5, delta=1.0), r"delta must be in \[0, 1\).*1.0"),
    (lambda: intervals.epsilon_guess(3, 2, 5), "right must be at most guesses"),
    (lambda: intervals.epsilon_guess(3, 6, 5), "guesses must be at most runs"),
    (lambda: intervals.epsilon_guess(0, 0, 0), "runs must be at least 1"),
    (lambda: intervals.epsilon_guess(1, 2, 5, delta=-0.1), "delta must be in .*-0.1"),
)
