"""The exact privacy loss of batched EXP4's release, against a slow twin by numerical integration and against play."""

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.play.pairs import Pair
from overclaim.learners.bandits.exp4 import BatchedExp4
from overclaim.learners.problems.advice import Advice
from overclaim.mechanisms.view import RELEASE

SURE = Advice([[1.0, 0.0], [0.0, 1.0]])
MIXED = Advice([[1.0, 0.0], [0.25, 0.75]])


def learner(advice, *, gamma=0.5, tau=1, epsilon=40.0):
    return BatchedExp4(advice=advice, eta=1.0, gamma=gamma, tau=tau, epsilon=epsilon, delta=0.01)


def first_differs(rounds, change=(1.0, 1.0)):
    rest = [[0.0, 0.0]] * (rounds - 1)
    return Pair([list(change), *rest], [[0.0, 0.0], *rest])


def slow_delta(exp4, change, epsilon):
    """The hockey-stick divergence, one arm after another, by a grid over both experts' noise."""
    mean_advice = exp4.advice.at(0).mean(axis=0)
    p = (1 - exp4.gamma) * mean_advice + exp4.gamma / 2
    scale = exp4.noise.scale
    total = 0.0
    for arm in range(2):
        shifts = [exp4.advice.at(0)[i, arm] * change[arm] / (p[arm] * exp4.tau) for i in range(2)]
        law = stats.laplace(scale=scale)
        cells = []
        for shift in shifts:
            edges = np.concatenate([[-np.inf], np.linspace(-12 * scale, 12 * scale, 801), [np.inf]])
            cells.append((np.diff(law.cdf(edges - shift)), np.diff(law.cdf(edges))))
        left, right = (np.outer(cells[0][w], cells[1][w]) for w in (0, 1))
        total += p[arm] * float(np.maximum(left - math.exp(epsilon) * right, 0).sum())
    return total


@pytest.mark.parametrize(("advice", "gamma", "tau"), [(SURE, 1.0, 1), (SURE, 0.5, 2), (MIXED, 0.5, 1)])
@pytest.mark.parametrize("change", [(1.0, 1.0), (1.0, 0.25)])
def test_the_loss_is_that_of_a_slow_twin(advice, gamma, tau, change):
    exp4 = learner(advice, gamma=gamma, tau=tau)
    pair = first_differs(tau + 1, change)
    loss = exp4.law(pair.left, pair.right, pair.t0, RELEASE)
    for epsilon in (0.2, 1.0, 2.5):
        assert loss.delta(epsilon) == pytest.approx(slow_delta(exp4, change, epsilon), abs=4e-3)
    assert loss.left.sum() == pytest.approx(1.0, abs=1e-9)
    assert loss.right.sum() == pytest.approx(1.0, abs=1e-9)


def test_at_delta_zero_it_is_the_worst_arm():
    """One expert is moved by 1 / p = 2 where its arm is played; nobody else is."""
    exp4 = learner(SURE)
    epsilon = exact_epsilon(exp4, first_differs(2), view=RELEASE, deltas=(0.0,))[0.0]
    assert epsilon == pytest.approx(2 / exp4.noise.scale, rel=1e-3)


def test_what_reaches_no_action_shows_nothing_and_later_batches_are_not_covered():
    exp4 = learner(SURE, tau=2)
    assert exact_epsilon(exp4, first_differs(2), view=RELEASE, deltas=(0.01,)) == {0.01: 0.0}
    rows = [[0.0, 0.0]] * 6
    later = Pair([*rows[:3], [1.0, 1.0], *rows[4:]], rows)
    with pytest.raises(NotExactError, match="where the first batch differs"):
        exact_epsilon(exp4, later, view=RELEASE)


def test_more_exploration_than_needed_hides_more():
    """The noise grows with 1 / gamma, but an arm of the first batch is played with probability 1/2 whatever gamma."""
    epsilons = [
        exact_epsilon(learner(SURE, gamma=g), first_differs(2), view=RELEASE, deltas=(0.0,))[0.0]
        for g in (1.0, 0.5, 0.25)
    ]
    for more, less in itertools.pairwise(epsilons):
        assert less == pytest.approx(more / 2, rel=1e-3)
