"""Attacks on points: against quadrature, closed forms and fair coins."""

import math

import numpy as np
import pytest
from scipy.integrate import quad

from overclaim import Claim, Pair
from overclaim.audit.attacks.learner_attacks import Boosted, Trained, applicable
from overclaim.audit.play.transcripts import play
from overclaim.learners import Ftrl
from overclaim.learners.laws import Neighbours
from overclaim.learners.leaders.ftpl import Ftpl
from overclaim.learners.leaders.leader_ratios import upper_tail, whitened
from overclaim.learners.problems.domains import Ball, Cube, EntropySimplex, Simplex
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.noise import Gaussian, Laplace, laplace_sum_density
from overclaim.mechanisms.view import ACTIONS

ROUNDS = 4
LEFT = np.zeros((ROUNDS, 2))
LEFT[0] = 0.5, 0.5
RIGHT = LEFT.copy()
RIGHT[0] = -0.5, -0.5
PAIR = Pair(LEFT, RIGHT)


def cube(eta, scale=1.0):
    return Ftrl(domain=Cube(2), rounds=ROUNDS, eta=eta, noise=Laplace(scale))


def transcripts(learner, pair=PAIR, runs=20_000):
    return play(learner, pair, Draws(3, Stage.TRAIN), runs)


COORDINATES, POINTS = "inverted coordinates", "inverted points"
PREFIXES, SHIFTED = "inverted prefix sums", "inverted prefix sums up to a shift"
SIGNS, WHITENED = "sign sequences", "whitened prefix sums"


def declared(learner, pair, name):
    """Return the score of this name that a learner declares."""
    return next(score for score in learner.score(pair.left, pair.right, pair.t0) if score.name == name)


def calibrated(scores, left):
    """Among runs of score s, the left world's share is sigmoid(s): the mark of a likelihood ratio.

    Seeded; each of ten bins may be off by five standard errors, a false alarm of 6e-6 in all.
    """
    order = np.argsort(scores)
    for part in np.array_split(order, 10):
        share = 1 / (1 + np.exp(-scores[part]))
        error = math.sqrt(max(float(np.sum(share * (1 - share))), 1.0)) / len(part)
        assert abs(left[part].mean() - share.mean()) < 5 * error


@pytest.mark.parametrize("draws", [1, 2, 3, 5])
def test_density_and_tail_of_laplace_sums(draws):
    x = np.array([-3.0, -0.4, 0.0, 1.7, 6.0])
    for value, tail in zip(x, upper_tail(x, draws), strict=True):
        # The density beyond 60 is below 1e-20.
        mass = quad(lambda y: float(laplace_sum_density(np.array(y), draws)), value, 60, points=[0.0], limit=200)[0]
        assert tail == pytest.approx(mass, abs=1e-9)
    sums = Draws(0).uniform((draws, 200_000))
    sums = Laplace(1.0).sample(sums.shape, Draws(1)).sum(axis=0)
    # Five standard errors of 2e5 draws.
    assert np.mean(sums > 1.7) == pytest.approx(float(upper_tail(np.array([1.7]), draws)[0]), abs=5.6e-3)


@pytest.mark.few(1)
@pytest.mark.parametrize("eta", [0.02, 1.0, 3.0])
def test_coordinates_of_the_cube_are_likelihood_ratios(eta):
    learner = cube(eta)
    played = transcripts(learner)
    calibrated(declared(learner, PAIR, COORDINATES).prepare()(played.actions), played.left)


def test_points_inside_the_ball_are_likelihood_ratios():
    learner = Ftrl(domain=Ball(2), rounds=ROUNDS, eta=0.01, noise=Laplace(1.0))
    played = transcripts(learner)
    calibrated(declared(learner, PAIR, POINTS).prepare()(played.actions), played.left)


def test_interior_coordinates_of_two_rounds_in_closed_form():
    pair = Pair(LEFT[:2], RIGHT[:2])
    learner = Ftrl(domain=Cube(2), rounds=2, eta=1e-3, noise=Laplace(1.0))
    played = transcripts(learner, pair, 500)
    y = learner.invert(played.actions[1:])[0]
    expected = (np.abs(y + 0.5) - np.abs(y - 0.5)).sum(axis=0)
    assert declared(learner, pair, COORDINATES).prepare()(played.actions) == pytest.approx(expected, abs=1e-6)


def test_signs_are_likelihood_ratios_and_whitening_comes_close():
    learner = Ftpl(domain=Cube(2), rounds=ROUNDS, noise=Gaussian(1.5))
    played = transcripts(learner)
    exact = declared(learner, PAIR, SIGNS).prepare()(played.actions)
    calibrated(exact, played.left)
    linear = whitened(Neighbours(PAIR.left, PAIR.right, 0), ROUNDS).prepare()(played.actions)
    assert np.corrcoef(exact, linear)[0, 1] > 0.99


def test_whitened_sums_of_a_gaussian_tree_are_the_likelihood_ratio():
    learner = Ftrl(domain=Ball(2), rounds=ROUNDS, eta=1e-3, noise=Gaussian(1.0))
    played = transcripts(learner)
    scores = declared(learner, PAIR, WHITENED).prepare()(played.actions)
    # sum of Delta Sigma^-1 y is the log ratio for worlds at plus and minus half of Delta.
    calibrated(scores, played.left)


@pytest.mark.parametrize("domain", [Ball(2), Simplex(2)])
def test_whitened_directions_tell_the_worlds_apart(domain):
    learner = Ftpl(domain=domain, rounds=ROUNDS, noise=Gaussian(1.0))
    pair = Pair(LEFT, RIGHT) if isinstance(domain, Ball) else Pair(LEFT * [2, -2], RIGHT * [2, -2])
    played = transcripts(learner, pair)
    scores = declared(learner, pair, WHITENED).prepare()(played.actions)
    assert scores[played.left].mean() - scores[~played.left].mean() > 0.3 * scores.std()


def test_shifted_softmax_of_two_rounds_is_a_likelihood_ratio():
    left, right = np.zeros((2, 3)), np.zeros((2, 3))
    left[0], right[0] = (1, 1, -1), (-1, -1, 1)
    learner = Ftrl(domain=EntropySimplex(3), rounds=2, eta=0.1, noise=Laplace(2.0))
    pair = Pair(left, right)
    played = transcripts(learner, pair)
    calibrated(declared(learner, pair, SHIFTED).prepare()(played.actions), played.left)


def opposed(arms, rounds, t0):
    """Return losses of nothing but in round t0, where half of the arms lose 1 and half win it, or the other way."""
    left = np.zeros((rounds, arms))
    left[t0] = np.where(np.arange(arms) % 2, -1.0, 1.0)
    return Pair(left, -left)


@pytest.mark.few(1)
@pytest.mark.parametrize(("domain", "attack"), [(EntropySimplex(2), PREFIXES), (Cube(1), COORDINATES)])
def test_ratios_of_many_rounds_are_more_than_a_product_of_densities_can_hold(domain, attack):
    learner = Ftrl(domain=domain, rounds=1024, eta=1e-3, noise=Laplace(4.0))
    pair = opposed(domain.dim, 1024, 512)
    played = transcripts(learner, pair, 300)
    scores = declared(learner, pair, attack).prepare()(played.actions)
    calibrated(scores, played.left)
    of_softmax = isinstance(domain, EntropySimplex)
    linear = whitened(
        Neighbours(pair.left, pair.right, 512), 1024, invert=learner.invert, centred=of_softmax
    ).prepare()
    assert np.corrcoef(scores, linear(played.actions))[0, 1] > 0.8


def test_whitening_of_a_softmax_tells_what_powers_of_two_do_not_hold():
    # Round 9 of 16: no prefix sum at a power of two has it. The worlds differ in the arm that `invert` has at 0.
    learner = Ftrl(domain=EntropySimplex(3), rounds=16, eta=0.1, noise=Laplace(1.0))
    left = np.zeros((16, 3))
    left[8, 0] = 2.0
    pair = Pair(left, -left)
    played = transcripts(learner, pair)
    assert WHITENED in [attack.name for attack in applicable(learner, pair, ACTIONS)]
    scores = declared(learner, pair, WHITENED).prepare()(played.actions)
    assert scores[played.left].mean() - scores[~played.left].mean() > 0.3 * scores.std()
    calibrated(scores, played.left)
    assert declared(learner, pair, WHITENED).calibrated


def test_which_attacks_apply():
    assert [attack.name for attack in applicable(cube(0.1), PAIR, ACTIONS)] == [COORDINATES]
    ball = Ftrl(domain=Ball(2), rounds=ROUNDS, eta=0.1, noise=Laplace(1.0))
    assert {POINTS, Trained.name, Boosted.name} <= {attack.name for attack in applicable(ball, PAIR, ACTIONS)}
    signs = Ftpl(domain=Cube(2), rounds=ROUNDS, noise=Gaussian(1.0))
    assert [attack.name for attack in applicable(signs, PAIR, ACTIONS)] == [SIGNS]
    assert Claim(epsilon=1.0).surface == "actions"


def test_boosting_learns_points_and_small_pilots_fall_back():
    learner = Ftrl(domain=Ball(2), rounds=ROUNDS, eta=0.5, noise=Laplace(1.0))
    played = transcripts(learner, runs=12_000)
    boosted = Boosted.fit(learner, PAIR, played[:6000])
    scores = boosted.score(played[6000:])
    left = played.left[6000:]
    assert np.mean((scores > 0) == left) > 0.6  # a coin is right half of the time
    assert isinstance(Boosted.fit(learner, PAIR, played[:500]), Trained)
