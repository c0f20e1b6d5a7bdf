"""Laws of the learners: what must hold on every path, what must hold in law, and slow twins by definition.

Each law is also shown a learner that breaks it.
"""

import math
from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from overclaim.audit.assumptions.conformance import check_learner
from overclaim.learners import BanditReduction, BatchedLaplace, Exp3, Ftrl, LearnerError, MiniBatch, Threshold
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace
from overclaim.tests.support.exp3_twin import Exp3Twin

LAW = settings(derandomize=True, deadline=None, database=None, max_examples=60)
arms_counts = st.integers(1, 5)
etas = st.floats(0.01, 3.0)
gammas = st.floats(0.01, 1.0)


@st.composite
def games(draw, low=-5.0, high=5.0, rounds=12):
    """An EXP3 learner with mixing, and what it is fed: noisy losses may be negative and large."""
    learner = Exp3(arms=draw(arms_counts), eta=draw(etas), gamma=draw(gammas))
    feed = draw(st.lists(st.floats(low, high), min_size=1, max_size=rounds))
    return learner, feed, Draws(draw(st.integers(0, 2**32)))


def path(learner, feed, draws, runs=7):
    """Play on a fixed feed; return weights q (T, arms, runs) before each round, and the estimates y, by definition."""
    state = learner.start(runs, draws)
    q, y = [], []
    for loss in feed:
        p = learner.probabilities(state)
        q.append(state.weights / state.weights.sum(axis=0))
        actions = learner.act(state, draws)
        played = np.arange(learner.arms)[:, None] == actions
        y.append(np.where(played, loss / p, 0.0))
        learner.update(state, actions, np.full(runs, loss), draws)
    return np.array(q), np.array(y)


def potential_gap(learner, q, y):
    """How far -sum ln <q, exp(-eta y)> / eta exceeds sum y(i) + ln N / eta, at worst: never, by telescoping."""
    exponents = -learner.eta * y
    peak = exponents.max(axis=1, keepdims=True)
    logs = peak[:, 0] + np.log((q * np.exp(exponents - peak)).sum(axis=1))
    spent = -logs.sum(axis=0) / learner.eta
    return (spent - y.sum(axis=0) - math.log(learner.arms) / learner.eta).max() / (1 + np.abs(y).sum())


@given(games())
@LAW
def test_the_potential_bounds_every_path(game):
    learner, feed, draws = game
    assert potential_gap(learner, *path(learner, feed, draws)) <= 1e-9


@given(games(low=-0.5, high=0.5))
@LAW
def test_the_second_order_bound_on_every_path_with_small_steps(game):
    learner, feed, draws = game
    small = replace(learner, eta=min(learner.eta, 2 * learner.gamma / learner.arms))  # eta |y| <= 1
    q, y = path(small, feed, draws)
    assert small.eta * np.abs(y).max() <= 1 + 1e-9
    regret = (q * y).sum(axis=(0, 1)) - y.sum(axis=0)
    bound = math.log(small.arms) / small.eta + small.eta * (q * y**2).sum(axis=(0, 1))
    assert (regret <= bound + 1e-9).all()


@dataclass(frozen=True, kw_only=True)
class WrongSign(Exp3):
    """Adds the losses to the log-weights."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, -feedback, draws)


@dataclass(frozen=True, kw_only=True)
class Unmixed(Exp3):
    """Weights the loss by q, not by the p it was drawn from."""

    def probability_at(self, state, places):
        return state.weights_at(places) / state.total


@dataclass(frozen=True, kw_only=True)
class Sinking(Exp3):
    """Mixes with the uniform law but forgets to divide gamma by K."""

    def probabilities(self, state):
        return state.weights / state.total * (1 - self.gamma) + self.gamma * (np.arange(self.arms)[:, None] == 0)


def test_a_wrong_sign_breaks_the_potential():
    q, y = path(WrongSign(arms=2, eta=1.0, gamma=0.5), [1.0] * 8, Draws(0))
    assert potential_gap(Exp3(arms=2, eta=1.0), q, y) > 0.01


@given(games(low=-1e4, high=1e4))
@LAW
def test_exploration_has_its_share_whatever_happened(game):
    learner, feed, draws = game
    state = learner.start(5, draws)
    for loss in feed:
        learner.update(state, learner.act(state, draws), np.full(5, loss), draws)
        p = learner.probabilities(state)
        assert np.isfinite(p).all()
        assert p.min() >= learner.gamma / learner.arms
        assert p.sum(axis=0) == pytest.approx(1)
        arms = learner.act(state, draws)
        assert np.allclose(learner.probability_at(state, state.places(arms)), p[arms, np.arange(5)], rtol=1e-12)


def test_a_lost_share_is_seen():
    learner = Sinking(arms=3, eta=3.0, gamma=0.3)
    state = learner.start(1, Draws(0))
    for _ in range(20):
        learner.update(state, np.array([1]), np.array([1.0]), Draws(0))
    assert learner.probabilities(state)[1:].min() < 0.1


def mean_estimates(learner, feed, losses):
    """The exact mean of the estimates of all losses, by playing each arm once from one state."""
    draws = Draws(0)
    k = learner.arms
    state = learner.start(k, draws)
    for t, loss in enumerate(feed):  # all runs alike
        learner.update(state, np.full(k, t % k), np.full(k, loss), draws)
    p = learner.probabilities(state)[:, 0]
    before = state.log_weights.copy()
    learner.update(state, np.arange(k), losses, draws)
    return (p * (before - state.log_weights) / learner.eta).sum(axis=1)


@given(games(), st.integers(0, 1000))
@LAW
def test_importance_weighting_is_unbiased(game, seed):
    learner, feed, _ = game
    losses = np.random.default_rng(seed).uniform(-1, 1, learner.arms)
    scale = 1 + np.abs(feed).sum() * learner.arms / learner.gamma
    assert np.allclose(mean_estimates(learner, feed, losses), losses, rtol=0, atol=1e-10 * scale)


def test_weighting_by_another_law_is_biased():
    losses = np.array([0.2, 0.9, 0.4])
    means = mean_estimates(Unmixed(arms=3, eta=1.0, gamma=0.4), [1.0, 0.0], losses)
    assert np.abs(means - losses).max() > 0.05


def played(learner, losses, draws, runs):
    state = learner.start(runs, draws)
    actions = []
    for loss in losses:
        actions.append(learner.act(state, draws).copy())
        learner.update(state, actions[-1], loss.take(actions[-1]), draws)
    return np.array(actions)


def holds_arms(actions, batch):
    return all(np.array_equal(row, actions[t - t % batch]) for t, row in enumerate(actions))


@given(st.integers(1, 6), st.integers(1, 20), st.booleans(), st.integers(0, 2**32))
@LAW
def test_the_arm_is_held_within_a_batch(batch, rounds, private, seed):
    inner = Exp3(arms=3, eta=1.0, gamma=0.5)
    learner = BatchedLaplace(inner=inner, epsilon=1.0, batch=batch) if private else MiniBatch(inner=inner, batch=batch)
    losses = np.random.default_rng(seed).random((rounds, 3))
    actions = played(learner, losses, Draws(seed), 90)
    assert holds_arms(actions, batch)
    if rounds > batch:
        assert not holds_arms(actions, rounds)  # 90 runs: all hold on with probability below 1e-15


@dataclass(frozen=True, kw_only=True)
class Restless(MiniBatch):
    """Draws a new arm in every round of the batch."""

    def act(self, state, draws):
        state.held = self.inner.act(state.inner, draws)
        return state.held


def test_an_arm_that_is_not_held_is_seen():
    learner = Restless(inner=Exp3(arms=3, eta=1.0, gamma=0.5), batch=3)
    assert not holds_arms(played(learner, np.ones((6, 3)), Draws(0), 30), 3)


@pytest.mark.parametrize(("batch", "rounds"), [(1, 5), (2, 6), (3, 7)])
def test_the_batch_mean_is_fed_once_and_the_rest_is_not_learned_from(batch, rounds):
    """With the Threshold probe inside, the next arm shows what was fed: arm 1 iff the mean exceeds 1/2."""
    losses = np.random.default_rng(4).random((rounds, 2))
    for learner in [
        MiniBatch(inner=Threshold(arms=2, threshold=0.5), batch=batch),
        BatchedLaplace(inner=Threshold(arms=2, threshold=0.5), epsilon=math.inf, batch=batch),
    ]:
        actions = played(learner, losses, Draws(0), 1)[:, 0]
        arm = 0
        for start in range(0, rounds, batch):
            assert (actions[start : start + batch] == arm).all()
            arm = int(losses[start : start + batch, arm].mean() > 0.5)


@dataclass(frozen=True, kw_only=True)
class Skewed(BanditReduction):
    """Its noise has a mean."""

    @property
    def noise(self):
        return Shifted(1.0 / self.epsilon)


class Shifted(Laplace):
    def sample(self, shape, draws):
        return super().sample(shape, draws) + 0.1


@dataclass(frozen=True, kw_only=True)
class Peeking(BanditReduction):
    """Plays the arm after the noise was drawn, and looks: 0 iff its noise will be positive."""

    def act(self, state, draws):
        state.peek = self.noise.sample(state.fed.shape, draws)
        return (state.peek <= 0).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state.fed = state.peek + feedback


def noisy_minus_true(learner, *, comparator, runs=20_000, rounds=8, seed=0):
    """Lemma 4.3: sum <Z_t, x_t> - <Z_t, x*> of every run; Z_t of arms that are not played is drawn apart."""
    draws = Draws(seed)
    losses = np.random.default_rng(seed).uniform(-1, 1, (rounds, 2))
    unseen = np.random.default_rng(seed + 1)
    state = learner.start(runs, draws)
    total = np.zeros(runs)
    for loss in losses:
        actions = learner.act(state, draws)
        true = loss.take(actions)
        learner.update(state, actions, true, draws)
        noise = state.fed - true
        total += noise - np.where(actions == comparator, noise, unseen.laplace(scale=1.0, size=runs))
    return total


def mean_is_zero(sample):
    """Accept unless the z statistic has a two-sided p-value below 1e-6."""
    z = sample.mean() / (sample.std(ddof=1) / math.sqrt(sample.size))
    return 2 * stats.norm.sf(abs(z)) >= 1e-6


@pytest.mark.parametrize("comparator", [0, 1])
def test_noisy_regret_is_true_regret_in_mean(comparator):
    """Seed 0, 20 000 runs, false alarm 1e-6."""
    inner = Exp3(arms=2, eta=0.5, gamma=0.1)
    assert mean_is_zero(noisy_minus_true(BanditReduction(inner=inner, epsilon=1.0), comparator=comparator))
    assert not mean_is_zero(noisy_minus_true(Skewed(inner=inner, epsilon=1.0), comparator=comparator))
    assert not mean_is_zero(noisy_minus_true(Peeking(inner=inner, epsilon=1.0), comparator=comparator))


class Ones:
    """A law whose every draw is 1: sums of it count draws."""

    def sample(self, shape, draws):
        return np.ones(shape)


@given(st.integers(1, 70), st.integers(1, 3))
@LAW
def test_every_prefix_that_ftrl_uses_carries_as_many_draws(rounds, arms):
    learner = Ftrl(domain=EntropySimplex(arms), rounds=rounds, eta=0.3, noise=Ones())
    state = learner.start(2, Draws(0))
    losses = np.random.default_rng(rounds).random((rounds, arms))
    for t, loss in enumerate(losses):
        noise = learner.tree.pad(state, Draws(0)) - losses[:t].sum(axis=0)[:, None]
        assert np.allclose(noise, math.ceil(math.log2(rounds)))
        learner.update(state, learner.act(state, Draws(0)), loss[:, None], Draws(0))


@given(st.integers(1, 5), st.floats(0.01, 5.0), st.integers(0, 2**32))
@LAW
def test_ftrl_without_noise_is_softmax_of_the_losses(arms, eta, seed):
    losses = np.random.default_rng(seed).uniform(-3, 3, (9, arms))
    learner = Ftrl(domain=EntropySimplex(arms), rounds=9, eta=eta, noise=Laplace(0.0))
    state = learner.start(2, Draws(0))
    for t, loss in enumerate(losses):
        x = learner.act(state, Draws(0))
        weights = np.exp(-eta * losses[:t].sum(axis=0))
        assert np.allclose(x, (weights / weights.sum())[:, None], rtol=1e-9)
        learner.update(state, x, loss[:, None], Draws(0))


class BatchedTwin:
    """The batched conversion by its definition; `batch=1` is the bandit reduction, infinite epsilon the mini-batch."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng, batch=1, epsilon=1.0, scale=1.0):
        self.inner = Exp3Twin(arms, rounds, rng)
        self.rng, self.batch, self.epsilon, self.scale = rng, batch, epsilon, scale
        self.losses = []

    def act(self):
        if not self.losses:
            self.arm = self.inner.act()
        return self.arm

    def update(self, loss):
        self.losses.append(loss)
        if len(self.losses) == self.batch:
            noise = self.rng.laplace(scale=self.scale / (self.batch * self.epsilon))
            self.inner.update(sum(self.losses) / self.batch + noise)
            self.losses = []


class Column:
    """The numbers that one run of a batched learner draws."""

    def __init__(self, numbers):
        self.numbers = iter(numbers)

    def random(self):
        return next(self.numbers)


@given(games(low=0.0, high=1.0), st.integers(0, 2**32))
@LAW
def test_exp3_plays_as_its_twin_on_the_same_uniforms(game, seed):
    learner, _, draws = game
    losses = np.random.default_rng(seed).random((10, learner.arms))
    runs = 6
    uniforms = Draws(draws.key[0])
    columns = np.array([uniforms.uniform((runs,)) for _ in losses]).T
    actions = played(learner, losses, draws, runs)
    for run in range(runs):
        twin = Exp3Twin(learner.arms, 10, Column(columns[run]), eta=learner.eta, gamma=learner.gamma)
        for t, loss in enumerate(losses):
            assert twin.act() == actions[t, run]
            twin.update(loss[twin.arm])


INNER = Exp3(arms=2, eta=0.5, gamma=0.1)
TWINS = [
    (INNER, Exp3Twin, {}),
    (BanditReduction(inner=INNER, epsilon=1.0), BatchedTwin, {}),
    (BatchedLaplace(inner=INNER, epsilon=0.5, batch=2), BatchedTwin, {"batch": 2, "epsilon": 0.5}),
    (MiniBatch(inner=INNER, batch=2), BatchedTwin, {"batch": 2, "epsilon": math.inf}),
]


LATER = [
    pytest.param(*twin, marks=pytest.mark.slow, id=name)
    for twin, name in ((TWINS[1], "reduction"), (TWINS[3], "mini-batch"))
]


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("learner", "cls", "parameters"),
    [pytest.param(*TWINS[0], id="exp3"), pytest.param(*TWINS[2], id="batched"), *LATER],
)
def test_learners_have_the_law_of_their_twins(learner, cls, parameters):
    """Chi-square over the last six actions, 8192 runs each, false alarm 1e-6."""
    check_learner(learner, twin=lambda arms, rounds: as_learner(cls, arms=arms, rounds=rounds, **parameters))


@pytest.mark.few(1)
@pytest.mark.parametrize(("batch", "scale"), [(1, 1.0), (2, 4.0)])
def test_another_batch_or_another_noise_is_told_apart(batch, scale):
    def twin(arms, rounds):
        return as_learner(BatchedTwin, arms=arms, rounds=rounds, batch=batch, scale=scale)

    learner = BatchedLaplace(inner=replace(INNER, eta=0.5), epsilon=1.0, batch=2)
    with pytest.raises(LearnerError, match="play by different laws"):
        check_learner(learner, twin=twin)
