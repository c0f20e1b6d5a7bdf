"""The Gaussian bandit reduction, EXP2 over the hypercube, SCRiBLe over ball and simplex: twins, laws, planted bugs."""

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.signal import fftconvolve
from scipy.stats import norm

from overclaim import Claim, Pair, falsify
from overclaim.audit.assumptions.conformance import check_learner
from overclaim.audit.attacks.counts import PointCounts
from overclaim.audit.laws.exact import exact_epsilon
from overclaim.audit.play.transcripts import play
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.catalogue import agarwal_singh_bandits
from overclaim.learners.catalogue.bounds import agarwal_singh as agarwal_singh_bounds
from overclaim.learners.conversions.reduction import BanditReduction, GaussianReduction
from overclaim.learners.entry import Setting
from overclaim.learners.probes.threshold import Threshold
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.gaussian_dp import gaussian_epsilon
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.view import RELEASE

ENTRIES = {entry.name.split("/")[1]: entry for entry in agarwal_singh_bandits.ENTRIES}
WORLDS = Pair([[1.0, 1.0], [0.0, 0.0]], [[-1.0, -1.0], [0.0, 0.0]])


def setting(**changes):
    return Setting(**{"rounds": 2, "delta": 0.01, "epsilon": 2.0, "losses": "symmetric", **changes})


class SlowReduction:
    """Version 1's loop, one run at a time, around EXP2 over two arms with uniform exploration."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng, self.weights, self.sigma, self.eta, self.gamma = rng, np.ones(arms), 0.7, 0.4, 0.2

    def act(self):
        q = self.weights / self.weights.sum()
        self.p = (1 - self.gamma) * q + self.gamma / q.size
        self.arm = int(self.rng.choice(q.size, p=self.p))
        return self.arm

    def update(self, feedback):
        z = self.rng.normal(0.0, self.sigma)
        self.weights[self.arm] *= math.exp(-self.eta * (feedback + z) / self.p[self.arm])


def test_gaussian_reduction_is_the_pseudocode():
    """The comparison of laws accuses a true twin with probability 1e-6."""
    learner = GaussianReduction(Exp3(arms=2, eta=0.4, gamma=0.2), noise=Gaussian(0.7))
    done = check_learner(learner, twin=SlowReduction, twin_runs=2048)
    assert "twin" in done.checked


def test_published_and_corrected_noise():
    assert agarwal_singh_bandits.gaussian_noise(setting()).sigma == pytest.approx(math.log(100) / 2)
    assert agarwal_singh_bandits.gaussian_noise(setting(epsilon=math.inf)).sigma == 0
    corrected = agarwal_singh_bandits.gaussian_noise(setting(calibration="corrected"))
    assert gaussian_epsilon(2 / corrected.sigma, 0.01) == pytest.approx(2.0, abs=1e-6)
    with pytest.raises(ValueError, match="delta must be in"):
        agarwal_singh_bandits.gaussian_noise(setting(delta=0.0))


def test_exact_epsilon_of_the_gaussian_threshold():
    learner = ENTRIES["gaussian-threshold"].build(setting())
    sigma, c = learner.noise.sigma, learner.inner.threshold
    above = [norm.sf((c - loss) / sigma) for loss in (1.0, -1.0)]
    ways = [math.log((above[0] - 0.01) / above[1]), math.log((1 - above[1] - 0.01) / (1 - above[0]))]
    assert exact_epsilon(learner, WORLDS, deltas=(0.01,))[0.01] == pytest.approx(max(ways), abs=1e-4)
    release = exact_epsilon(learner, WORLDS, view=RELEASE, deltas=(0.01,))[0.01]
    assert release == pytest.approx(gaussian_epsilon(2 / sigma, 0.01))


def test_exact_epsilon_of_gaussian_exp2_by_quadrature():
    """Two rounds: the second arm's law is an integral over one normal draw."""
    learner = GaussianReduction(Exp3(arms=2, eta=0.5, gamma=0.1), noise=Gaussian(1.3))

    def same_arm(loss):
        def law(y):  # arm 0 was played, with probability 1/2
            return 0.9 / (1 + math.exp(0.5 * y / 0.5)) + 0.05

        return quad(lambda y: law(y) * norm.pdf((y - loss) / 1.3) / 1.3, -15, 15)[0]

    p, q = same_arm(1.0), same_arm(-1.0)
    expected = max(math.log(q / p), math.log((1 - p) / (1 - q)))
    assert exact_epsilon(learner, WORLDS, deltas=(0.0,))[0.0] == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    "point", [[0.7], [0.9, 0.0], [1.0, -1.0], [0.8, 0.3], [0.5, 0.4999], [1.0, 1.0, -1.0]], ids=str
)
def test_log_density_of_noise_at_a_point(point):
    """Differences of log densities against the numerical convolution of Laplace laws."""
    learner = BanditReduction(Threshold(arms=2, threshold=0.0), epsilon=1.0)
    x = np.linspace(-60, 60, 24_001)
    density = None
    for scale in np.abs(point)[np.abs(point) > 0]:
        law = np.exp(-np.abs(x) / scale) / (2 * scale)
        density = law if density is None else fftconvolve(density, law, "same") * (x[1] - x[0])
    z = np.array([0.0, 0.5, -1.5, 4.0])
    expected = np.log(np.interp(z, x, density))
    got = learner.release_log_density(z[None], np.repeat(np.array(point)[:, None], z.size, axis=1)[None])
    np.testing.assert_allclose(got - got[0], expected - expected[0], atol=2e-3)


def test_gaussian_noise_at_a_point_has_the_points_length():
    learner = GaussianReduction(Threshold(arms=2, threshold=0.0), noise=Gaussian(2.0))
    z, points = np.array([[1.0, -3.0]]), np.array([[[0.6, 0.6], [0.8, 0.8]]]) * 1.5
    expected = norm.logpdf(z[0], scale=3.0)
    got = learner.release_log_density(z, points)
    assert got[1] - got[0] == pytest.approx(expected[1] - expected[0])


def test_point_counts_are_those_of_the_sequences():
    learner = ENTRIES["reduction-exp2-hypercube"].build(setting(delta=0.0, losses="l1-ball"), eta=1.0, gamma=0.1)
    pair = Pair([[1.0, 0.0], [1.0, 0.0]], [[-1.0, 0.0], [1.0, 0.0]])
    train, other = (play(learner, pair, Draws(seed), 4000) for seed in (0, 1))
    counts = PointCounts(train)
    assert counts.known.size == 16
    same = (train.actions[:, :, None] == other.actions[..., None, :1]).all(axis=(0, 1))[0]
    left, right = (int((same & world).sum()) for world in (train.left, ~train.left))
    assert counts.score(other)[0] == pytest.approx(math.log(left + 0.5) - math.log(right + 0.5), abs=1e-6)
    unseen = replace(other, actions=other.actions * 0.5)
    np.testing.assert_array_equal(counts.score(unseen), 0.0)
    with pytest.raises(ValueError, match="16 sequences in 100 runs"):
        PointCounts(play(learner, pair, Draws(0), 100))


class VarianceForDeviation(GaussianReduction):
    """Bug: the root of sigma is taken for sigma."""

    release, release_means = GaussianReduction.release, GaussianReduction.release_means  # what it says it releases

    def update(self, state, actions, feedback, draws):
        wrong = Gaussian(math.sqrt(self.noise.sigma))
        state.fed = feedback + wrong.sample(actions.shape, draws)
        self.inner.update(state.inner, actions, state.fed, draws)


class MeanOfCoordinates(BanditReduction):
    """Bug: the noise is the mean of the coordinates' <Z, x>, not their sum."""

    def update(self, state, actions, feedback, draws):
        noise = Laplace(self.noise.scale).sample(actions.shape, draws)
        state.fed = feedback + (noise * actions).mean(axis=0)
        self.inner.update(state.inner, actions, state.fed, draws)


def bug(learner, kind):
    return kind(**{name: getattr(learner, name) for name in learner.__dataclass_fields__})


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "kind", "case"),
    [
        ("gaussian-threshold", VarianceForDeviation, 0),
        ("gaussian-exp2", VarianceForDeviation, 1),
        ("reduction-exp2-hypercube", MeanOfCoordinates, 4),
        ("reduction-scrible-ball", MeanOfCoordinates, 3),
        ("reduction-scrible-simplex", MeanOfCoordinates, 3),
    ],
)
def test_the_audit_of_the_row_catches_a_planted_bug(name, kind, case):
    """The sound learner is falsified with probability 1e-6 at most."""
    entry = ENTRIES[name]
    case = entry.cases[case]
    chosen = entry.setting(
        rounds=case.rounds or entry.rounds,
        arms=case.arms or entry.arms,
        epsilon=case.epsilon,
        delta=entry.delta if case.delta is None else case.delta,
        calibration=case.calibration,
    )
    learner = entry.build(chosen, **case.parameters)
    claim = Claim(epsilon=case.epsilon, delta=chosen.delta, losses=entry.losses, surface=case.surface)
    pair = Pair([[1.0] * 2] * chosen.rounds, [[-1.0] * 2] + [[1.0] * 2] * (chosen.rounds - 1))
    pair = pair if case.pair is None else Pair(*case.pair)
    how = {"rounds": chosen.rounds, "pair": pair, "runs": 40_000, "confidence": 1 - 1e-6}
    assert falsify(learner, claim, **how).verdict.value != "FALSIFIED"
    assert falsify(bug(learner, kind), claim, **how).verdict.value == "FALSIFIED"


def test_regret_bounds_are_the_proofs():
    """By hand, with N = 2, T = 16 and epsilon = 1; the ball's M is 1 and nu 1, the simplex' nu 2."""
    one = dict(rounds=16, delta=0.0, epsilon=1.0)
    exp2 = agarwal_singh_bandits.reduction_exp2(setting(**one), eta=0.1, gamma=0.2)
    log = math.log(32)
    expected = math.log(2) / 0.1 + 2 * 0.1 * 16 * 2 * (1 + log**2) + 2 * 16 * 0.2 + 1
    assert agarwal_singh_bounds.exp2_bound(setting(**one), exp2) == pytest.approx(expected)
    for name, nu in (("ball", 1), ("simplex", 2)):
        game = setting(**one, losses="l1-ball")
        build, bound = (
            getattr(module, f"{kind}scrible_{name}{end}")
            for module, kind, end in ((agarwal_singh_bandits, "reduction_", ""), (agarwal_singh_bounds, "", "_bound"))
        )
        expected = 2 * 0.1 * 16 * 4 * 3 + nu * math.log(16) / 0.1 + 8 * math.sqrt(2) * log + 2 + 1
        assert bound(game, build(game, eta=0.1)) == pytest.approx(expected)
