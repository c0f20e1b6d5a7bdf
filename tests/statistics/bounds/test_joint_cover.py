"""The joint bound rounds towards validity: below it every null point is rejected, also between places of a search."""

import numpy as np
import pytest
from scipy import special

from overclaim.audit.statistics.bounds import binomial_bounds, intervals, joint_bound, joint_cover
from overclaim.audit.statistics.bounds.joint_cover import COARSE, MARGINS, covered

GAMES = [
    (5000, 10_000, 700, 10_000, 0.0, 0.01),
    (90, 100, 12, 80, 0.0, 0.05),
    (1900, 1919, 1, 1852, 0.0, 0.01),
    (9000, 10_000, 100, 10_000, 1e-3, 0.01),
    (10_000, 10_000, 0, 10_000, 0.0, 0.01),
    (17, 20, 0, 20, 0.1, 0.3),
    (3, 10, 0, 10, 0.0, 0.3),
    (13, 20, 1, 30, 0.3, 0.3),  # the box holds q = 0
]
#: The search between their points takes longest.
LARGE = (GAMES[0], GAMES[3])


def problem(game):
    k_p, n_p, k_q, n_q, delta, alpha = (np.array([[float(value)]]) for value in game)
    g = intervals.NUISANCE_SHARE * alpha
    box = binomial_bounds.lower_bound(k_p, n_p, g / 2), binomial_bounds.upper_bound(k_q, n_q, g / 2)
    floor = binomial_bounds.log_ratio(box[0] - delta, box[1])
    return (k_p, n_p, k_q, n_q, delta), box, -special.ndtri(alpha - g), floor


def smallest(game, epsilon, points):
    """The smallest score over so many null points of one epsilon, spread evenly."""
    data, box, _, _ = problem(game)
    start = np.maximum(box[0] - data[4], 1e-12) * np.exp(-epsilon)
    stop = np.minimum(box[1], (1 - data[4]) * np.exp(-epsilon))
    q = np.sin(np.linspace(np.arcsin(np.sqrt(start[0, 0])), np.arcsin(np.sqrt(stop[0, 0])), points))[None] ** 2
    return float(joint_bound._stouffer(data, np.clip(q, start, stop), np.array([[epsilon]])).min())


def bound(game, **more):
    return float(joint_bound.epsilon_joint(*game[:4], delta=game[4], alpha=game[5], **more))


@pytest.mark.few(1)
@pytest.mark.parametrize("game", GAMES, ids=str)
def test_every_null_point_below_the_bound_is_rejected(game):
    """48 epsilons, half of them close to the bound, with 1500 points each."""
    _, _, quantile, floor = problem(game)
    top = bound(game)
    assert top > floor[0, 0]
    for epsilon in top - (top - floor[0, 0]) * np.concatenate(
        [np.linspace(0, 1, 25)[1:], np.geomspace(1e-6, 0.1, 24)]
    ):
        assert smallest(game, epsilon, 1500) > quantile[0, 0]
    assert smallest(game, top, 30_000) > quantile[0, 0]


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_a_level_says_the_same_as_the_whole_search(game):
    """Also where it lies within 1e-6 of the bound, on both sides."""
    searched = bound(game, margins=())
    for level in (0.0, *(searched + np.array([-1.0, -1e-3, -1e-6, 1e-6, 1e-3, 1.0]))):
        assert (bound(game, margins=(), level=level) > level) == (searched > level)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_a_level_is_answered_in_few_looks(game, monkeypatch):
    """The whole search takes 11 looks and more: one says that a level is not rejected, few that a smaller one is."""
    looks, smallest_score = [], joint_bound._smallest_score

    def counted(*problem):
        looks.append(problem)
        return smallest_score(*problem)

    monkeypatch.setattr(joint_bound, "_smallest_score", counted)
    searched = bound(game, margins=())
    assert len(looks) > 10
    floor = problem(game)[3][0, 0]  # below it all is rejected, whatever is looked at
    for away, most in ((1.0, 1), (1e-6, 1), (-1e-2, 4), (floor - searched - 0.1, 1)):
        looks.clear()
        bound(game, margins=(), level=searched + away)
        assert len(looks) <= most


def test_a_level_is_asked_of_each_row():
    rows = np.transpose(GAMES)
    together = joint_bound.epsilon_joint(*rows[:4], delta=rows[4], alpha=rows[5], margins=(), level=1.5)
    alone = [bound(game, margins=(), level=1.5) for game in GAMES]
    assert (together > 1.5).tolist() == [one > 1.5 for one in alone]
    assert 0 < np.count_nonzero(together > 1.5) < len(GAMES)


@pytest.mark.parametrize("game", GAMES)
def test_one_look_at_an_epsilon_says_on_which_side_of_it_the_bound_is(game):
    searched = bound(game, margins=())
    assert joint_bound.rejected(*game[:4], epsilon=searched - 1e-4, delta=game[4], alpha=game[5])
    assert not joint_bound.rejected(*game[:4], epsilon=searched + 1e-4, delta=game[4], alpha=game[5])


@pytest.mark.parametrize("share", [1e-3, 0.6])
def test_one_look_at_many_games_at_once(share, monkeypatch):
    """Also where the box takes most of alpha, so that every share of it shows."""
    monkeypatch.setattr(joint_bound, "NUISANCE_SHARE", share)
    game = np.transpose([(13, 13, 2, 6), (8, 8, 16, 36), (3, 4, 0, 28), (36, 36, 0, 32), (90, 100, 12, 80)])
    searched = joint_bound.epsilon_joint(*game, delta=0.01, alpha=0.05, margins=())
    assert (searched > 0.1).all()
    for away, expected in ((-1e-4, True), (1e-4, False)):
        told = joint_bound.rejected(*game, epsilon=searched + away, delta=0.01, alpha=0.05)
        assert told.tolist() == [expected] * 5


def test_one_look_just_below_epsilon_0():
    """A choice among events looks 1e-6 below the least worth, which may be 0; the least q would be above 1 there."""
    assert joint_bound.rejected(10**9, 10**9, 0, 10**9, epsilon=-1e-6, delta=0.0, alpha=0.01)


@pytest.mark.parametrize("game", GAMES, ids=str)
def test_what_is_given_up_for_the_proof_is_the_first_margin(game):
    """Of the bracket: some four standard errors, from where the box has no null point to where no score is above 0."""
    k_p, n_p, k_q, n_q, delta, _ = game
    halves = binomial_bounds.lower_bound(k_p, n_p, 0.5), binomial_bounds.upper_bound(k_q, n_q, 0.5)
    width = float(binomial_bounds.log_ratio(halves[0] - delta, halves[1])) - problem(game)[3][0, 0]
    searched = bound(game, margins=())
    assert searched - bound(game) == pytest.approx(MARGINS[0] * width, rel=1e-6)
    assert searched - bound(game, margins=COARSE) == pytest.approx(COARSE[0] * width, rel=1e-6)


@pytest.mark.slow(reason="a bound by a coarse search and by a fine one")
def test_a_coarse_search_is_caught(monkeypatch):
    """Planted: three places in all. The search finds too much, and the proof takes it back."""
    monkeypatch.setattr(joint_bound, "_COARSE", np.linspace(0.0, 1.0, 2))
    monkeypatch.setattr(joint_bound, "_FINE", np.zeros(1))
    caught = 0
    for game in GAMES[1:4]:
        quantile = problem(game)[2][0, 0]
        caught += smallest(game, bound(game, margins=()) - 1e-9, 30_000) < quantile
        assert smallest(game, bound(game), 30_000) > quantile
    assert caught > 0


def cells(rng, many):
    """Random problems, each with a cell of epsilons and q near its bound, of any size."""
    n_p, n_q = np.exp(rng.uniform(np.log(5), np.log(1e6), (2, many, 1))).astype(int).astype(float)
    epsilon, delta = rng.exponential(1.0, (many, 1)), rng.choice([0.0, 0.01, 0.3], (many, 1))
    q = rng.uniform(0, 1, (many, 1)) ** 3 * (1 - delta) * np.exp(-epsilon)
    data = (rng.binomial(n_p.astype(int), np.minimum(np.exp(epsilon) * q + delta, 1)), n_p,
            rng.binomial(n_q.astype(int), q), n_q, delta)  # fmt: skip
    sizes = np.exp(rng.uniform(np.log(1e-4), np.log(3.0), (2, many, 1)))
    ends = epsilon, epsilon + sizes[0] / np.sqrt(n_p * np.maximum(q, 1 / n_p))
    last = np.minimum(q + sizes[1] * np.sqrt(np.maximum(q, 1 / n_q) / n_q), (1 - delta) * np.exp(-ends[0]))
    return tuple(np.asarray(column, dtype=float) for column in data), (q, np.maximum(q, last)), ends


def overrated(data, q, ends, rng):
    """In how many cells some point has a smaller sum than the bound of the cell."""
    bounds = joint_cover._least_sum(data, q, ends, (joint_bound._score_p, joint_bound._score_q))
    wrong = np.zeros(bounds.shape, dtype=bool)
    for _ in range(40):
        inner, outer, edge = rng.random((2, *bounds.shape)), rng.integers(0, 2, (2, *bounds.shape)), rng.random(2)
        along, across = np.where(edge[:, None, None] < 0.3, outer, inner)
        epsilon, x = ends[0] + (ends[1] - ends[0]) * along, q[0] + (q[1] - q[0]) * across
        inside = np.exp(epsilon) * x + data[4] <= 1
        sums = joint_bound._stouffer(data, x, epsilon)
        wrong |= inside & (sums < bounds - 1e-9 * np.maximum(1, np.abs(bounds)))
    return int(wrong.sum())


def test_no_point_of_a_cell_has_a_smaller_sum_than_its_bound(monkeypatch):
    """2000 random cells, 40 points of each. Planted: slopes a fifth too large, weights of one corner alone."""
    problems = cells(np.random.default_rng(0), 2000)
    assert overrated(*problems, np.random.default_rng(1)) == 0
    with monkeypatch.context() as patch:
        slope = joint_cover._slope
        patch.setattr(joint_cover, "_slope", lambda *about: 1.2 * slope(*about))
        assert overrated(*problems, np.random.default_rng(1)) > 20
    between = joint_cover._least_between
    monkeypatch.setattr(joint_cover, "_least_between", lambda a, b, one, other: between(a, b, one, one))
    assert overrated(*problems, np.random.default_rng(1)) > 20


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "game", [pytest.param(game, marks=pytest.mark.slow) if game in LARGE else game for game in GAMES], ids=str
)
def test_what_is_not_rejected_is_not_proved(game):
    data, box, quantile, floor = problem(game)
    scores = joint_bound._score_p, joint_bound._score_q
    above = np.array([[bound(game) + 2e-3]])
    assert not covered(data, box, quantile, (floor, above), scores)[0]
    assert not covered(data, box, quantile, (above - 1e-3, above), scores)[0]
