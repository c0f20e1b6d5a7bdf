"""EXP4, its private versions and expert advice: twins on the same draws, laws, inequalities on every path."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from overclaim.audit.laws.sequences import index_of, sequence_laws
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners.abilities import on_a_line
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.bandits.exp4 import BatchedExp4, Exp4, SteadyExp4, expert_losses, expert_weights, mixture
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.learners.conversions.expert_advice import ExpertAdvice
from overclaim.learners.problems.advice import Advice, graded_advice
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.view import RELEASE
from overclaim.tests.support.refusals import refusals
from overclaim.tests.support.tapes import Tape

#: Every statistical test here accuses a right implementation with at most this probability.
FALSE_ALARM = 1e-6
ROUNDS, EXPERTS, ARMS = 14, 4, 3


def random_advice(seed, *shape):
    return Advice(np.random.default_rng(seed).dirichlet(np.ones(shape[-1]), size=shape[:-1]))


def random_pair(seed, rounds=ROUNDS, arms=ARMS):
    losses = np.random.default_rng(seed).random((rounds, arms))
    other = losses.copy()
    other[0] = 1 - losses[0]
    return Pair(losses, other)


def worlds_of(pair, left):
    return [(pair.left if side else pair.right).tolist() for side in left]


def laplace(u, scale):
    u = float(u) + 2.0**-54 - 0.5
    return math.copysign(scale * math.log(2 * abs(u)), u) if scale else 0.0


def choose(p, u):
    arm = 0
    while arm < len(p) - 1 and u >= sum(p[: arm + 1]):
        arm += 1
    return arm


def softmax(losses, eta):
    weights = [math.exp(-eta * (value - min(losses))) for value in losses]
    return [w / sum(weights) for w in weights]


def mix(q, advice, gamma):
    return [
        (1 - gamma) * sum(w * row[a] for w, row in zip(q, advice, strict=True)) + gamma / ARMS for a in range(ARMS)
    ]


def naive_exp4(uniforms, losses, advice, eta, gamma, scale):
    """Algorithm 6, one run, as printed."""
    estimates, played = [0.0] * EXPERTS, []
    for t, loss in enumerate(losses):
        p = mix(softmax(estimates, eta), advice[t], gamma)
        arm = choose(p, float(next(uniforms)))
        played.append(arm)
        if t < len(losses) - 1:
            y = loss[arm] + (laplace(next(uniforms), scale) if scale else 0.0)
            for j in range(EXPERTS):
                estimates[j] += advice[t][j][arm] * y / p[arm]
    return played


def naive_batched_exp4(uniforms, losses, advice, eta, gamma, tau, scale):
    """Algorithm 2, one run, as printed: the actions and the released means."""
    estimates, batch, played, released = [0.0] * EXPERTS, [0.0] * EXPERTS, [], []
    for t, loss in enumerate(losses):
        p = mix(softmax(estimates, eta), advice[t], gamma)
        arm = choose(p, float(next(uniforms)))
        played.append(arm)
        for j in range(EXPERTS):
            batch[j] += advice[t][j][arm] * loss[arm] / p[arm]
        if (t + 1) % tau == 0 and t < len(losses) - 1:
            u = next(uniforms) if scale else [0.0] * EXPERTS
            released.append([batch[j] / tau + laplace(u[j], scale) for j in range(EXPERTS)])
            estimates = [a + b for a, b in zip(estimates, released[-1], strict=True)]
            batch = [0.0] * EXPERTS
    return played, released


def naive_advised_exp3(uniforms, losses, advice, eta, gamma, tau, scale):
    """Algorithm 5 around Algorithm 1 around EXP3 over experts, one run."""
    estimates, played = [0.0] * EXPERTS, []
    for start in range(0, len(losses), tau):
        p = [(1 - gamma) * w + gamma / EXPERTS for w in softmax(estimates, eta)]
        u = float(next(uniforms))  # below gamma it explores
        q = softmax(estimates, eta)
        expert = int(u / gamma * EXPERTS) if u < gamma else choose(q, (u - gamma) / (1 - gamma))
        total = 0.0
        for t in range(start, min(start + tau, len(losses))):
            arm = choose(advice[t][expert], float(next(uniforms)))
            played.append(arm)
            total += losses[t][arm]
        if start + tau < len(losses):
            estimates[expert] += (total / tau + laplace(next(uniforms), scale)) / p[expert]
    return played


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_locally_private_exp4_equals_its_twin_on_the_same_draws(epsilon):
    advice, pair, draws = random_advice(1, ROUNDS, EXPERTS, ARMS), random_pair(2), Tape(3)
    learner = BatchedLaplace(inner=Exp4(advice=advice, eta=0.8, gamma=0.1), epsilon=epsilon, batch=1)
    seen = play(learner, pair, draws, 30)
    for run, losses in enumerate(worlds_of(pair, seen.left)):
        twin = naive_exp4(draws.of_run(run), losses, advice.table.tolist(), 0.8, 0.1, 1 / epsilon)
        assert seen.actions[:, run].tolist() == twin


@pytest.mark.parametrize(("epsilon", "tau"), [(1.0, 3), (400.0, 2), (400.0, 1), (math.inf, 4)])
def test_batched_exp4_equals_its_twin_on_the_same_draws(epsilon, tau):
    advice, pair, draws = random_advice(4, ROUNDS, EXPERTS, ARMS), random_pair(5), Tape(6)
    learner = BatchedExp4(advice=advice, eta=0.8, gamma=0.1, tau=tau, epsilon=epsilon, delta=0.01)
    scale = 0.0 if epsilon == math.inf else 3 * ARMS * math.sqrt(EXPERTS * math.log(100)) / (0.1 * tau * epsilon)
    assert learner.noise.scale == pytest.approx(scale)
    seen = play(learner, pair, draws, 30, view=RELEASE)
    for run, losses in enumerate(worlds_of(pair, seen.left)):
        played, released = naive_batched_exp4(
            draws.of_run(run), losses, advice.table.tolist(), 0.8, 0.1, tau, learner.noise.scale
        )
        assert seen.actions[:, run].tolist() == played
        np.testing.assert_allclose(seen.releases[..., run], released, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("tau", [1, 3])
def test_expert_advice_equals_its_twin_on_the_same_draws(tau):
    advice, pair, draws = random_advice(7, ROUNDS, EXPERTS, ARMS), random_pair(8), Tape(9)
    inner = BatchedLaplace(inner=Exp3(arms=EXPERTS, eta=0.8, gamma=0.1), epsilon=5.0, batch=tau)
    seen = play(ExpertAdvice(inner=inner, advice=advice), pair, draws, 30)
    for run, losses in enumerate(worlds_of(pair, seen.left)):
        twin = naive_advised_exp3(draws.of_run(run), losses, advice.table.tolist(), 0.8, 0.1, tau, 1 / (5.0 * tau))
        assert seen.actions[:, run].tolist() == twin


def test_experts_who_each_name_one_arm_make_exp3():
    draws, rng = Draws(0), np.random.default_rng(0)
    learners = [Exp4(advice=Advice(np.eye(3)), eta=0.5, gamma=0.1), Exp3(arms=3, eta=0.5, gamma=0.1)]
    states = [learner.start(20, draws) for learner in learners]
    for _ in range(30):
        actions, fed = rng.integers(3, size=20), rng.normal(size=20)
        for learner, state in zip(learners, states, strict=True):
            learner.update(state, actions, fed, draws)
        laws = [learner.probabilities(state) for learner, state in zip(learners, states, strict=True)]
        np.testing.assert_allclose(*laws, rtol=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("experts", [2, 4])
def test_grid_law_of_steady_exp4_is_the_law_of_the_plays(experts):
    """Chi-square over the 16 sequences in each world: seed 10, 200,000 runs."""
    inner = SteadyExp4(advice=random_advice(11, experts, 2), eta=2.0, gamma=0.05)
    learner = BatchedLaplace(inner=inner, epsilon=1.0, batch=1)
    assert on_a_line(inner)
    pair = Pair(np.ones((4, 2)), [[0, 0], [1, 1], [1, 1], [1, 1]])
    seen = play(learner, pair, Draws(10), 200_000)
    for law, world in zip(sequence_laws(learner, pair), (seen.left, ~seen.left), strict=True):
        counts = np.bincount(index_of(seen.actions[:, world], 2, 1), minlength=16)
        assert stats.chisquare(counts, law / law.sum() * counts.sum()).pvalue > FALSE_ALARM


RELEASING = {
    "batched-exp4": BatchedExp4(
        advice=graded_advice(4, 2), eta=0.5, gamma=0.2, tau=2, epsilon=300.0, delta=0.01, sensitivity=2.0
    ),
    "varying": BatchedExp4(advice=random_advice(12, 9, 3, 2), eta=0.5, gamma=0.2, tau=3, epsilon=300.0, delta=0.01),
    "advised": ExpertAdvice(
        inner=BatchedLaplace(inner=Exp3(arms=3, eta=0.5, gamma=0.2), epsilon=1.0, batch=2),
        advice=random_advice(13, 3, 2),
    ),
}


@pytest.mark.parametrize("name", RELEASING)
def test_release_minus_mean_is_the_noise(name):
    """Kolmogorov-Smirnov: seed 14, 20,000 runs; the mean in each run's own world."""
    learner, pair = RELEASING[name], random_pair(15, 9, 2)
    seen = play(learner, pair, Draws(14), 20_000, view=RELEASE)
    feedback = [pair.feedback(t, seen.actions[t], "bandit", seen.left) for t in range(8)]
    noise = seen.releases - learner.release_means(seen.actions, seen.releases, feedback)
    scale = learner.noise.scale
    for part in noise.reshape(-1, 20_000):
        assert stats.kstest(part, "laplace", args=(0, scale)).pvalue > FALSE_ALARM
    assert abs(np.corrcoef(noise.reshape(-1, 20_000)) - np.eye(noise.size // 20_000)).max() < 0.05


unit = st.floats(0, 1)


@settings(deadline=None, max_examples=60)
@given(
    losses=arrays(float, (3, 1), elements=st.floats(-50, 50)),
    loss=arrays(float, 4, elements=unit),
    seed=st.integers(0, 99),
    gamma=st.floats(0.01, 1),
)
def test_importance_weighting_is_unbiased_and_bounded(losses, loss, seed, gamma):
    advice = random_advice(seed, 3, 4).table
    p = mixture(expert_weights(losses, 0.3), advice, gamma)
    assert p.sum() == pytest.approx(1)
    assert (p >= gamma / 4 - 1e-15).all()
    columns = np.repeat(p, 4, axis=1)
    estimates = expert_losses(advice, columns, np.arange(4), loss)  # one run per arm
    np.testing.assert_allclose((estimates * p[:, 0]).sum(axis=1), advice @ loss, atol=1e-12)
    assert (estimates <= 4 / gamma + 1e-9).all()


def test_the_law_of_many_arms_is_the_same_in_all_company():
    """To the bit, for steady advice and advice of every run: more runs are mixed some after the other."""
    rng = np.random.default_rng(5410)
    q, steady = rng.dirichlet(np.ones(40), size=3500).T, rng.dirichlet(np.ones(3), size=40)
    own = rng.dirichlet(np.ones(3), size=(3500, 40)).transpose(1, 2, 0)
    for advice in (steady, own):
        p = mixture(q, advice, 0.1)
        for run in (0, 1637, 1638, 3276, 3499):
            alone = advice if advice is steady else advice[..., run : run + 1]
            np.testing.assert_array_equal(p[:, run : run + 1], mixture(q[:, run : run + 1], alone, 0.1))


@settings(deadline=None, max_examples=60)
@given(
    y=arrays(float, st.tuples(st.integers(1, 20), st.integers(2, 6)), elements=st.floats(-1, 1)),
    eta=st.floats(0.01, 1),
)
def test_exponential_weights_inequalities_hold_on_every_path(y, eta):
    experts = y.shape[1]
    total, mixed, linear, square = np.zeros((experts, 1)), 0.0, 0.0, 0.0
    for loss in y:
        q = expert_weights(total, eta)[:, 0]
        mixed -= math.log(q @ np.exp(-eta * loss)) / eta
        linear += q @ loss
        square += q @ loss**2
        total[:, 0] += loss
    slack = math.log(experts) / eta
    best = total.min()
    assert mixed <= best + slack + 1e-9
    assert linear - best <= slack + eta * square + 1e-9  # all eta |y| <= 1


def test_one_round_moves_a_batch_mean_by_at_most_the_sensitivity():
    rng = np.random.default_rng(16)
    learner = RELEASING["varying"]
    actions, releases = rng.integers(2, size=(9, 500)), rng.normal(size=(2, 3, 500)) * 5
    fed = [rng.random(500) for _ in range(8)]
    other = [*fed]
    other[4] = 1 - np.round(fed[4])
    moved = learner.release_means(actions, releases, fed) - learner.release_means(actions, releases, other)
    assert not moved[0].any()
    assert 0 < np.abs(moved[1]).max() <= learner.arms / (learner.gamma * learner.tau)


def test_law_of_the_next_arm_changes_between_batches_only():
    learner, draws = RELEASING["batched-exp4"], Draws(17)
    state = learner.start(50, draws)
    laws = []
    for _ in range(6):
        laws.append(learner.next_arm(state).copy())
        learner.update(state, learner.act(state, draws), np.full(50, 0.7), draws)
    assert (laws[0] == laws[1]).all()
    assert (laws[2] == laws[3]).all()
    assert not np.isclose(laws[1], laws[2]).all()
    assert all((law >= 0.1 - 1e-12).all() for law in laws)


def test_expert_advice_around_a_plain_bandit_releases_nothing():
    learner, draws = ExpertAdvice(inner=Exp3(arms=2, eta=0.5), advice=graded_advice(2, 3)), Draws(0)
    state = learner.start(5, draws)
    learner.update(state, learner.act(state, draws), np.zeros(5), draws)
    assert learner.release(state) is None
    assert learner.noise.scale == 0


test_bad_input_is_named = refusals(
    (lambda: Advice([[0.5, 0.4]]), "advice of expert 1 must sum to 1, got sum 0.9"),
    (lambda: Advice([[[1, 0], [0, 1]], [[1, 0], [1, 1]]]), "advice of expert 2 in round 2 must sum to 1, got sum 2"),
    (lambda: Advice([[1.5, -0.5]]), r"advice of expert 1 must have no negative entry, got \[1.5, -0.5\]"),
    (lambda: Advice([1.0]), r"advice must have shape .* got \(1,\)"),
    (lambda: random_advice(0, 2, 3, 2).at(2), "advice covers 2 rounds, asked for round 3"),
    (lambda: graded_advice(0, 2), "experts must be an integer of at least 1, got 0"),
    (lambda: SteadyExp4(advice=random_advice(0, 2, 3, 2), eta=1.0), "same in every round"),
    (lambda: ExpertAdvice(inner=Exp3(arms=2, eta=1.0), advice=graded_advice(3, 2)), "per expert: 3, got 2"),
    (
        lambda: BatchedExp4(advice=graded_advice(2, 2), eta=1.0, gamma=0.1, tau=1, epsilon=1.0, delta=0.0),
        "delta must be in .* got 0.0",
    ),
    (
        lambda: BatchedExp4(advice=graded_advice(2, 2), eta=1.0, gamma=0.0, tau=1, epsilon=1.0, delta=0.1),
        "gamma must be positive",
    ),
)


@pytest.mark.parametrize(("experts", "arms"), [(1, 1), (2, 3), (7, 3), (8, 2)])
def test_graded_advice_is_advice_of_distinct_experts(experts, arms):
    table = graded_advice(experts, arms).table
    assert len({tuple(row) for row in table.tolist()}) == (experts if arms > 1 else 1)


@pytest.mark.parametrize("loss", [0.0, 1.0])
@pytest.mark.parametrize("learner", [Exp3(arms=2, eta=1.0), Exp4(advice=Advice(np.eye(2)), eta=1.0)])
def test_an_arm_that_is_clamped_without_any_probability_is_no_fault(learner, loss):
    """A replay of the other world's actions divided by 0, with warnings: without exploration weights vanish."""
    draws = Draws(0)
    state = learner.start(1, draws)
    for fed in (400.0, loss, loss):
        learner.update(state, np.array([0]), np.array([fed]), draws)
    assert learner.probabilities(state).tolist() == [[0.0], [1.0]]
