"""The intervals against slow twins at large nuisance shares, where every share of alpha shows, and their messages."""

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy import special, stats

from overclaim.audit.statistics.bounds import binomial_bounds, intervals, joint_bound

TWO_SAMPLES = (intervals.epsilon_two_interval, intervals.epsilon_two_interval_complement, joint_bound.epsilon_joint)
GAMES = [
    (60, 100, 12, 80),
    (9, 10, 2, 10),
    (20, 20, 5, 20),
    (7, 30, 0, 25),
    (900, 1000, 5, 50),
    (45, 50, 100, 1000),
    (12, 12, 0, 12),
    (2, 40, 0, 400),
    (9, 10, 2000, 10_000),
    (4, 5, 150_000, 10**6),
]


def twin_lower(k, n, alpha):
    return stats.beta.ppf(alpha, k, n - k + 1) if k else 0.0


def twin_upper(k, n, alpha):
    return stats.beta.isf(alpha, k + 1, n - k) if k < n else 1.0


def twin_guess(right, guesses, runs, delta, alpha, share):
    """The guess game written out: the nuisance rate takes its share of alpha only if there is a delta."""
    if guesses == 0:
        return 0.0
    spent = share * alpha if delta else 0.0
    excess = delta / twin_lower(guesses, runs, spent) if delta else 0.0
    top = twin_lower(right, guesses, alpha - spent) - excess
    return max(0.0, math.log(top / twin_upper(guesses - right, guesses, alpha - spent))) if top > 0 else 0.0


@pytest.mark.parametrize("share", [1e-3, 0.5])
def test_the_guess_game_is_its_definition(share, monkeypatch):
    monkeypatch.setattr(intervals, "NUISANCE_SHARE", share)
    right, guesses, runs = np.array([0, 0, 1, 1, 40, 50, 390, 400]), np.array([0, 1, 1, 2, 50, 50, 400, 400]), 500
    deltas = np.array([0.0, 1e-6, 1e-3, 0.02, 0.3])[:, None]
    table = intervals.epsilon_guess(right, guesses, runs, delta=deltas, alpha=0.7)
    expected = [
        [twin_guess(*game, runs, delta, 0.7, share) for game in zip(right, guesses, strict=True)]
        for delta in deltas[:, 0]
    ]
    np.testing.assert_allclose(table, expected, rtol=1e-9, atol=1e-12)
    assert np.count_nonzero(table) >= 18
    assert table[0, 2] > 0


def log_tail(k, n, x, direction):
    """The logarithm of a far binomial tail from its own terms, largest first."""
    terms = stats.binom.logpmf(k + direction * np.arange(min(k if direction < 0 else n - k, 400) + 1), n, x)
    return special.logsumexp(terms)


def normal_score(k, n, p):
    """Return the normal quantile of P(Bin(n, p) >= k), from whichever tail still has digits."""
    score = np.where(
        p * n < k, stats.norm.ppf(stats.binom.sf(k - 1, n, p)), stats.norm.isf(stats.binom.cdf(k - 1, n, p))
    )
    for i in np.flatnonzero(np.isinf(score) & (p > 0) & (p < 1)):
        low = p[i] * n < k
        score[i] = (
            special.ndtri_exp(log_tail(k, n, p[i], 1)) if low else -special.ndtri_exp(log_tail(k - 1, n, p[i], -1))
        )
    return score


@cache  # all mutants of a run of benchmarks/robustness/mutation.py share it
def twin_joint(game, delta, alpha, share):
    """The joint bound from its definition, on a dense grid that also covers the stretch where p is 1."""
    k_p, n_p, k_q, n_q = game
    p_low, q_high = twin_lower(k_p, n_p, share * alpha / 2), twin_upper(k_q, n_q, share * alpha / 2)

    def rejected(epsilon):
        start = max(0.0, (p_low - delta) * math.exp(-epsilon))
        if start > q_high:
            return True
        q = np.sin(np.linspace(math.asin(math.sqrt(start)), math.asin(math.sqrt(q_high)), 1501)[1:]) ** 2
        p = np.minimum(math.exp(epsilon) * q + delta, 1.0)
        with np.errstate(all="ignore"):
            score_p = -normal_score(k_p, n_p, p) if k_p else np.full(q.shape, -np.inf)
            score_q = -normal_score(n_q - k_q, n_q, 1 - q) if k_q < n_q else np.full(q.shape, -np.inf)
            s_p, s_q = np.sqrt(p * (1 - p) / n_p) / (math.exp(epsilon) * q), np.sqrt(q * (1 - q) / n_q) / q
            one = np.where(s_p > 0, s_p * score_p, 0.0) + np.where(s_q > 0, s_q * score_q, 0.0)
            return np.min(one / np.hypot(s_p, s_q)) > stats.norm.isf(alpha - share * alpha)

    ladder = np.linspace(0, 12, 31)
    if not rejected(0.0):
        return 0.0
    high = next(step for step in ladder if not rejected(step))
    low = high - ladder[1]
    for _ in range(16):
        middle = (low + high) / 2
        low, high = (middle, high) if rejected(middle) else (low, middle)
    return low


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="a twin in loops")
@pytest.mark.parametrize("delta", [0.0, 0.1])
@pytest.mark.parametrize("share", [1e-3, 0.6])
def test_the_joint_bound_is_its_definition(share, delta, monkeypatch):
    """Also with the nuisance share so large that the box cuts and alpha is nearly halved."""
    monkeypatch.setattr(joint_bound, "NUISANCE_SHARE", share)
    expected = [twin_joint(game, delta, 0.3, share) for game in GAMES]
    assert np.count_nonzero(expected) >= 6
    bound = joint_bound.epsilon_joint(*np.transpose(GAMES), delta=delta, alpha=0.3)
    np.testing.assert_allclose(bound, expected, rtol=2e-3, atol=1e-4)
    # What is proved lies below; the twin's grid may be too high by 1e-6.
    assert (bound <= np.array(expected) + 2e-6).all()
    # With finer places it is the grid, both around few coarse places and around many.
    for coarse, fine in ((9, 201), (301, 5)):
        monkeypatch.setattr(joint_bound, "_COARSE", np.linspace(0.0, 1.0, coarse))
        monkeypatch.setattr(joint_bound, "_FINE", np.linspace(-1.0, 1.0, fine))
        np.testing.assert_allclose(
            joint_bound.epsilon_joint(*np.transpose(GAMES), delta=delta, alpha=0.3, margins=()),
            expected,
            rtol=1e-4,
            atol=1e-4,
        )


def test_a_bound_where_the_box_ends(monkeypatch):
    """Where nine tenths of alpha are the box's, its least p decides; with another share of that it is .12 lower."""
    monkeypatch.setattr(joint_bound, "NUISANCE_SHARE", 0.9)
    game = (4, 8, 14, 264)
    assert joint_bound.epsilon_joint(*game, alpha=0.05) == pytest.approx(twin_joint(game, 0.0, 0.05, 0.9), rel=2e-3)


def test_a_bound_just_above_where_everything_is_rejected(monkeypatch):
    """In the first twelfth of the search's bracket, where a wrong sign at its end would raise the bound."""
    monkeypatch.setattr(joint_bound, "NUISANCE_SHARE", 0.9)
    game = (20, 20, 5, 20)
    floor = math.log(twin_lower(*game[:2], 0.0225) / twin_upper(*game[2:], 0.0225))
    expected = twin_joint(game, 0.0, 0.05, 0.9)
    assert floor < expected < floor + 0.03
    assert joint_bound.epsilon_joint(*game, alpha=0.05) == pytest.approx(expected, rel=2e-3)


def score_p(k, n, x):
    columns = (np.asarray([value], dtype=float) for value in (k, n - k + 1, n, k, x))
    return joint_bound._score(special.betainc, special.betaincc, *columns)[0]


def score_q(k, n, x):
    columns = (np.asarray([value], dtype=float) for value in (k + 1, n - k, n, k, x))
    return joint_bound._score(special.betaincc, special.betainc, *columns)[0]


@pytest.mark.parametrize(
    ("k", "n", "x", "rel"),
    [
        (1, 10, 0.3, 1e-9),
        (9, 10, 0.3, 1e-9),
        (10, 10, 0.3, 1e-9),
        (300, 1000, 0.2, 1e-9),
        (600, 1000, 0.9, 1e-9),  # a tail next to 1: its digits are in the opposite tail
        (200, 1000, 0.5, 1e-9),
        (9000, 10_000, 0.1, 1e-2),  # both tails underflow: the deviance root
        (1000, 10_000, 0.9, 1e-2),
    ],
)
def test_scores_at_every_scale(k, n, x, rel):
    if k > n * x:  # P(K >= k) is the small one, or k - 1 the small other
        expected_p, expected_q = -special.ndtri_exp(log_tail(k, n, x, 1)), special.ndtri_exp(log_tail(k + 1, n, x, 1))
    else:
        expected_p, expected_q = (
            special.ndtri_exp(log_tail(k - 1, n, x, -1)),
            -special.ndtri_exp(log_tail(k, n, x, -1)),
        )
    assert score_p(k, n, x) == pytest.approx(expected_p, rel=rel)
    if k < n:
        assert score_q(k, n, x) == pytest.approx(expected_q, rel=rel)


def test_scores_where_the_count_says_nothing_or_everything():
    assert score_p(0, 10, 0.3) == -math.inf
    assert score_q(10, 10, 0.3) == -math.inf
    assert (score_p(3, 10, 0.0), score_p(3, 10, 1.0)) == (math.inf, -math.inf)
    assert (score_q(3, 10, 0.0), score_q(3, 10, 1.0)) == (-math.inf, math.inf)
    # What is sure at the null point and happened says nothing either.
    assert score_p(10, 10, 1.0) == -math.inf
    assert score_q(0, 10, 0.0) == -math.inf


def test_null_points_at_the_edge_of_the_square():
    """Where one world is sure, the other speaks alone; where both are, nothing is rejected."""
    data = tuple(np.asarray([[value]], dtype=float) for value in (8, 10, 3, 10, 0.2))
    one, none = np.array([[0.9]]), np.array([[0.0]])
    alone = joint_bound._stouffer(data, one, np.array([[0.0]]))[0, 0]  # p = min(1, q + delta)
    assert alone == pytest.approx(score_q(3, 10, 0.9), rel=1e-12)
    alone = joint_bound._stouffer(data, none, np.array([[1.0]]))[0, 0]  # p = delta
    assert alone == pytest.approx(score_p(8, 10, 0.2), rel=1e-12)
    pure = (*data[:4], np.array([[0.0]]))
    assert joint_bound._stouffer(pure, none, np.array([[1.0]]))[0, 0] == -math.inf


def test_many_different_rows_are_solved_in_parts(monkeypatch):
    monkeypatch.setattr(joint_bound, "_CHUNK", 8)
    k_p = np.arange(600, 1800, 60)
    table = joint_bound.epsilon_joint(k_p, 2000, 300, 2000, alpha=0.1)
    assert table.shape == (20,)
    for place in (0, 7, 8, 9, 16, 19):
        assert table[place] == pytest.approx(
            joint_bound.epsilon_joint(k_p[place], 2000, 300, 2000, alpha=0.1), rel=1e-9
        )


def test_the_search_takes_fewer_steps_than_bisection(monkeypatch):
    """Bisection of a twelfth of the bracket down to 1e-7 would look 20 times and more at each of these games."""
    looks, smallest_score = [], joint_bound._smallest_score

    def counted(*game):
        looks.append(game)
        return smallest_score(*game)

    monkeypatch.setattr(joint_bound, "_smallest_score", counted)
    games = [*GAMES, (5000, 10_000, 1840, 10_000), (500_000, 10**6, 184_000, 10**6), (90, 100, 10**5, 10**6)]
    for game in games:
        joint_bound.epsilon_joint(*game)
    assert len(looks) <= 16 * len(games)


@pytest.mark.parametrize("edge", [0.31, 0.9, 1.3])
def test_the_search_bisects_where_scores_have_no_slope(edge, monkeypatch):
    """A score that falls onto the quantile itself: the secant points at the end of the bracket, for ever."""
    quantile = -special.ndtri(0.05 * (1 - intervals.NUISANCE_SHARE))
    monkeypatch.setattr(
        joint_bound, "_smallest_score", lambda data, box, epsilon: quantile + np.where(epsilon[:, 0] < edge, 5.0, 0.0)
    )
    # The proof is of the true scores.
    assert joint_bound.epsilon_joint(60, 100, 12, 80, margins=()) == pytest.approx(edge, abs=1e-6)


def test_alpha_and_delta_may_be_any_real_numbers():
    bound = joint_bound.epsilon_joint(45, 50, 5, 50, delta=Fraction(1, 4), alpha=Fraction(1, 20))
    assert bound == joint_bound.epsilon_joint(45, 50, 5, 50, delta=0.25, alpha=0.05)


def message_of(call):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        call()
    return str(error.value)


@pytest.mark.parametrize("bound", TWO_SAMPLES)
def test_messages_of_two_samples_name_their_argument(bound):
    assert message_of(lambda: bound(6, 5, 1, 5)) == "k_p must be at most n_p, got k_p=6 and n_p=5"
    assert message_of(lambda: bound(1, 5, 6, 5)) == "k_q must be at most n_q, got k_q=6 and n_q=5"
    assert message_of(lambda: bound(0, 0, 1, 5)) == "n_p must be at least 1, got 0"
    assert message_of(lambda: bound(1, 5, 0, 0)) == "n_q must be at least 1, got 0"
    assert message_of(lambda: bound(1, "a", 1, 1)) == "n_p must be a non-negative integer count, got 'a'"
    assert message_of(lambda: bound(1, 5, 1, 5, alpha=[0.5, 0.0])) == "alpha must be in (0, 1), got 0.0"
    assert message_of(lambda: bound(1, 5, 1, 5, delta=[0.5, 1.0])) == "delta must be in [0, 1), got 1.0"


@pytest.mark.parametrize("bound", [binomial_bounds.clopper_pearson_lower, binomial_bounds.clopper_pearson_upper])
def test_messages_of_one_sample_name_their_argument(bound):
    assert message_of(lambda: bound(6, [7, 5, 4], 0.1)) == "k must be at most n, got k=6 and n=5"
    assert message_of(lambda: bound(0, [1, 0], 0.1)) == "n must be at least 1, got 0"
    assert message_of(lambda: bound("", 1, 0.1)) == "k must be a non-negative integer count, got ''"
    assert message_of(lambda: bound([0, 0.5], 1, 0.1)) == (
        "k must be a non-negative integer count below 2^53, got 0.5"
    )
    assert message_of(lambda: bound(0, 2.0**53, 0.1)) == (
        "n must be a non-negative integer count below 2^53, got 9007199254740992.0"
    )
    assert bound(0, 2.0**53 - 1, 0.1) < 1e-15


def test_messages_of_the_guess_game_name_their_argument():
    bound = intervals.epsilon_guess
    assert message_of(lambda: bound(3, 2, 5)) == "right must be at most guesses, got right=3 and guesses=2"
    assert message_of(lambda: bound(3, 6, 5)) == "guesses must be at most runs, got guesses=6 and runs=5"
    assert message_of(lambda: bound(0, 0, 0)) == "runs must be at least 1, got 0"
    assert message_of(lambda: bound(-1, 0, 1)) == ("right must be a non-negative integer count below 2^53, got -1")


def test_defaults_are_a_pure_claim_at_five_percent():
    game = (45, 50, 5, 50)
    for bound in TWO_SAMPLES:
        assert bound(*game) == bound(*game, delta=0.0, alpha=0.05) > 0
    assert intervals.epsilon_guess(45, 50, 60) == intervals.epsilon_guess(45, 50, 60, delta=0.0, alpha=0.05) > 0
