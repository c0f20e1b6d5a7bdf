"""Bandit PFTAL on regularised losses, against adaptive adversaries, and over experts: twins, domains, planted bugs."""

import math
from dataclasses import replace

import numpy as np
import pytest

from overclaim import Claim, Pair, falsify
from overclaim.audit.laws.exact import exact_epsilon
from overclaim.learners.catalogue import smith_thakurta_bandits
from overclaim.learners.entry import Setting
from overclaim.learners.problems.centred_simplex import CentredSimplex
from overclaim.learners.problems.domains import ProbabilitySimplex
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import L2Laplace
from overclaim.mechanisms.view import RELEASE

ENTRIES = {entry.name.split("/")[1]: entry for entry in smith_thakurta_bandits.ENTRIES}


def setting(rounds=5, **changes):
    return Setting(rounds=rounds, **{"arms": 1, "losses": "lipschitz", **changes})


@pytest.mark.parametrize("dim", [1, 2, 4])
def test_centred_simplex_is_the_simplex(dim):
    body, rng = CentredSimplex(dim), np.random.default_rng(0)
    np.testing.assert_allclose(body.basis.T @ body.basis, np.eye(dim), atol=1e-12)
    np.testing.assert_allclose(body.basis.sum(axis=0), 0.0, atol=1e-12)
    x = rng.normal(size=(dim, 50))
    nearest = ProbabilitySimplex(dim + 1).project(1 / (dim + 1) + body.basis @ x)
    np.testing.assert_allclose(body.probabilities(body.project(x)), nearest, atol=1e-12)
    least = body.probabilities(body.minimise(x))
    np.testing.assert_allclose(
        np.sort(least, axis=0), np.sort(np.eye(dim + 1)[:, :1] * np.ones(50), axis=0), atol=1e-12
    )
    assert (np.sum(body.basis @ x * least, axis=0) <= (body.basis @ x).min(axis=0) + 1e-12).all()
    small = rng.normal(size=(dim, 500))
    small *= body.inner_radius / np.sqrt(np.square(small).sum(axis=0))
    np.testing.assert_allclose(body.project(small), small, atol=1e-12)
    assert np.sqrt(np.square(body.minimise(x)).sum(axis=0)) == pytest.approx(body.outer_radius)
    faces = -body.minimise(np.eye(dim)) / dim * (1 + 1e-6)  # opposite a vertex, just beyond the face
    assert (np.abs(body.project(faces) - faces).max(axis=0) > 0).all()


def slow_bandit(learner, losses, draws):
    """Algorithm 3 for one run on f + H / 2 ||w||^2, without noise: the minimiser by projected gradient steps."""
    h, domain, xi = learner.curvature, learner.domain, learner.beta / learner.domain.inner_radius
    centres, total, played = [np.zeros((learner.arms, 1))], np.zeros((learner.arms, 1)), []
    for t, f in enumerate(losses):
        w = centres[-1]
        if t:
            for _ in range(4000):
                slope = total + h * sum(w - c for c in centres)
                w = (1 - xi) * domain.project((w - slope / (4 * h * t)) / (1 - xi))
            centres.append(w)
        u = draws.uniform((1, 1))
        x = w + learner.beta * np.where(u < 0.5, -1.0, 1.0)
        cost = f.value(x) + h / 2 * np.square(x).sum(axis=0)
        total = total + learner.arms / learner.beta * cost * (x - w) / learner.beta
        played.append(x[:, 0])
    return np.array(played)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["pftal-bandit-lipschitz", "pftal-bandit-experts"])
def test_without_noise_it_is_the_pseudocode(name):
    learner = ENTRIES[name].build(setting(6, epsilon=math.inf))
    losses = [Linear(slope=(s,), offset=0.1 * t) for t, s in enumerate([0.7, -0.7, 0.3, -0.2, 0.7, 0.1])]
    draws = Draws(3)
    state, got = learner.start(1, draws), []
    for f in losses:
        x = learner.act(state, draws)
        got.append(x[:, 0].copy())
        learner.update(state, x, f.value(x), draws)
    np.testing.assert_allclose(np.array(got), slow_bandit(learner, losses, Draws(3)), atol=1e-6)


def test_published_parameters():
    learner = ENTRIES["pftal-bandit-lipschitz"].build(setting(16, epsilon=2.0))
    assert (learner.curvature, learner.regulariser, learner.beta) == (0.5, 0.5, 0.5)
    assert learner.noise.scale == pytest.approx((1 + 0.5 / 2) / 0.5 * 5 / 2)
    corrected = ENTRIES["pftal-bandit-lipschitz"].build(setting(16, calibration="corrected"))
    assert corrected.noise.scale == pytest.approx(2 / 0.5 * 4)
    assert ENTRIES["pftal-bandit-adaptive"].build(setting(4)).beta == pytest.approx(4**-0.25)
    experts = ENTRIES["pftal-experts"].build(setting(4, arms=2, losses="symmetric"))
    h = math.sqrt(2 * 2**2.5 / 4)
    assert (experts.curvature, experts.noise.scale) == (pytest.approx(h), pytest.approx((math.sqrt(2) + h) * 3))
    short = ENTRIES["pftal-experts"].build(setting(4, arms=2, losses="l2-ball"))  # of losses that are 1-Lipschitz
    assert short.noise.scale == pytest.approx((1 + h) * 3)


def test_exact_release_at_theorem_17():
    """Five rounds, three nodes: 2 B / beta on each, for noise of (B + H r^2 / 2) / beta * 4."""
    learner = ENTRIES["pftal-bandit-lipschitz"].build(setting(), radius=0.68)
    pair = Pair(*smith_thakurta_bandits.flat_pair(5))
    expected = 3 * 2 / (4 * (1 + 5**-0.25 * 0.68**2 / 2))
    epsilon = exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0]
    assert epsilon == pytest.approx(expected, abs=1e-4)
    assert epsilon > 1.29


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("name", "case"),
    [
        ("pftal-bandit-lipschitz", 2),
        ("pftal-bandit-experts", 1),
        ("pftal-bandit-adaptive", 3),
        ("pftal-bandit-adaptive", 4),
    ],
)
def test_the_audit_of_the_row_catches_a_planted_bug(name, case):
    """Bug: the noise of a node pays for one level. The sound learner is falsified with probability 1e-6 at most."""
    entry = ENTRIES[name]
    case = entry.cases[case]
    chosen = entry.setting(
        rounds=case.rounds or entry.rounds, arms=case.arms or entry.arms, calibration=case.calibration
    )
    learner = entry.build(chosen, **case.parameters)
    claim = Claim(epsilon=1.0, losses="lipschitz", surface=case.surface)
    how = {"pair": Pair(*case.pair), "runs": 20_000, "confidence": 1 - 1e-6}
    assert falsify(learner, claim, **how).verdict.value != "FALSIFIED"
    bug = replace(learner, noise=L2Laplace(learner.noise.scale / 3, learner.arms))
    assert falsify(bug, claim, **how).verdict.value == "FALSIFIED"
