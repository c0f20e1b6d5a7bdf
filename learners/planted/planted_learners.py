"""Learners with planted bugs: batched ones, played as mechanisms, and plain classes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ...mechanisms.tree import depth
from ..bandits.exp3 import Exp3
from ..conversions.batched import BatchedLaplace
from ..conversions.reduction import BanditReduction, ReductionState
from ..leaders.ftrl import Ftrl
from ..probes.threshold import Threshold
from ..problems.domains import EntropySimplex
from ..protocol import Actions, Learner


class _LateNoise(BanditReduction):
    """Bug: the noise is added after the inner learner has learned."""

    def update(self, state: ReductionState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        self.inner.update(state.inner, actions, feedback, draws)
        state.fed = feedback + draws.noise(self.noise, actions.shape, feedback, "loss")


class _FirstArmBare(BanditReduction):
    """Bug: <Z, x> leaves the first arm out."""

    def update(self, state: ReductionState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        state.fed = feedback + draws.noise(self.noise, actions.shape, feedback, "loss") * (actions > 0)
        self.inner.update(state.inner, actions, state.fed, draws)


class _FirstRoundBare(BanditReduction):
    """Bug: the noise starts in round 2."""

    def update(self, state: ReductionState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        noise = draws.noise(self.noise, actions.shape, feedback, "loss")
        state.fed = feedback + (0.0 if not state.fed.any() else noise)
        self.inner.update(state.inner, actions, state.fed, draws)


def reduction(data: object, draws: Draws, runs: int, *, bug: str) -> object:
    """Play the bandit reduction around Threshold on losses in [-1, 1]; release its arms."""
    kinds = {
        "noise after learning": _LateNoise,
        "first arm without noise": _FirstArmBare,
        "first round without noise": _FirstRoundBare,
    }
    # Published with the largest loss; replacing a loss moves twice as far.
    sensitivity = {"norm for difference": 1.0, "noise divided by three": 2.0 / 3}.get(bug, 2.0)
    learner = kinds.get(bug, BanditReduction)(
        inner=Threshold(arms=2, threshold=0.0), epsilon=1.0, sensitivity=sensitivity
    )
    return _played(learner, data, draws, runs)


def bandit(data: object, draws: Draws, runs: int, *, bug: str) -> object:
    """Play batched EXP3 on losses in [0, 1]; release its arms."""
    epsilon = 2.0 if bug == "noise of a longer batch" else 1.0
    inner = Exp3(arms=2, eta=4.0, gamma=0.02)
    learner: Learner = BatchedLaplace(inner=inner, epsilon=epsilon, batch=1)
    if bug == "inner learner alone":
        learner = inner
    return _played(learner, data, draws, runs)


def experts(data: Sequence[Sequence[float]], draws: Draws, runs: int, *, bug: str) -> object:
    """Play entropy FTRL over two experts on losses in [0, 1]; release its points, but the last round's."""
    arms, rounds = len(data[0]), len(data)
    levels, diameter = depth(rounds), arms
    if bug == "off by one level":
        levels -= 1
    if bug == "one coordinate's sensitivity":
        diameter = 1
    noise = Laplace(float(diameter * levels))
    learner = Ftrl(domain=EntropySimplex(arms), rounds=rounds, eta=0.5, noise=noise)
    points = _played(learner, data, draws, runs)
    return np.log(points[1:, 0] / points[1:, 1])


def _played(learner: Learner, data: object, draws: Draws, runs: int) -> Actions:
    """Return the actions of a learner on the losses `data`, (rounds, [dim,] runs)."""
    losses = np.array(data, dtype=float)
    state = learner.start(runs, draws)
    actions = []
    for loss in losses:
        played = learner.act(state, draws)
        actions.append(played)
        if len(actions) == len(losses):  # nothing comes after it
            break
        fed = loss[played] if learner.feedback == "bandit" else loss[:, None]
        learner.update(state, played, fed, draws)
    return np.stack(actions)


class _Sound:
    """A plain class: it perturbs the leader with far more noise than epsilon = 1 needs."""

    feedback = "full"

    def __init__(self, arms: int, rounds: int, rng: np.random.Generator) -> None:
        self.rng, self.total, self.scale = rng, np.zeros(arms), 4.0 * arms * rounds

    def act(self) -> int:
        return int(np.argmin(self.total + self.rng.laplace(0, self.scale, self.total.size)))

    def update(self, feedback: Floats) -> None:
        self.total = self.total + feedback


class StateKept(_Sound):
    """Bug: the totals belong to the class, so every run learns from the others."""

    totals: Floats = np.zeros(2)

    def act(self) -> int:
        """Return the arm."""
        return int(np.argmin(self.totals + self.rng.laplace(0, self.scale, 2)))

    def update(self, feedback: Floats) -> None:
        """Learn."""
        self.totals += feedback


class GlobalGenerator(_Sound):
    """Bug: the noise comes from numpy's global generator."""

    def act(self) -> int:
        """Return the arm."""
        return int(np.argmin(self.total + np.random.laplace(0, self.scale, self.total.size)))  # noqa: NPY002


class SeedOfBothArms(_Sound):
    """Bug: both arms draw their noise from a generator of the same seed, so that it cancels."""

    def act(self) -> int:
        """Return the arm."""
        seed = int(self.rng.integers(2**32))
        noise = [np.random.default_rng(seed).laplace(0, self.scale) for _ in self.total]
        return int(np.argmin(self.total + noise))


class LittleNoise(_Sound):
    """Bug: the noise has scale 1/4, whatever the claim."""

    def __init__(self, arms: int, rounds: int, rng: np.random.Generator) -> None:
        super().__init__(arms, rounds, rng)
        self.scale = 0.25


class NoiseOnce(_Sound):
    """Bug: the noise is drawn once, and every round reveals the exact sums through it."""

    def __init__(self, arms: int, rounds: int, rng: np.random.Generator) -> None:
        super().__init__(arms, rounds, rng)
        self.noise = rng.laplace(0, 0.5, arms)

    def act(self) -> int:
        """Return the arm."""
        return int(np.argmin(self.total + self.noise))


#: Plain classes, judged by `falsify`: the sound one, and the bugs.
SOUND_CLASS = _Sound
CLASSES = (StateKept, GlobalGenerator, SeedOfBothArms, LittleNoise, NoiseOnce)
