"""Planted bugs: sound learners and mechanisms, each beside versions of it with one known fault.

Everything here is a batched mechanism `f(data, draws, runs) -> outputs`, so that the same black-box audit judges all:
what a learner releases on the losses `data`, or a mechanism's answer to `data`. `bug` names the fault, "" is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..learners.batched import BatchedLaplace
from ..learners.domains import EntropySimplex
from ..learners.exp3 import Exp3
from ..learners.ftrl import Ftrl
from ..learners.reduction import BanditReduction
from ..learners.threshold import Threshold
from ..mechanisms.draws import Draws, Floats
from ..mechanisms.noise import Gaussian, L2Laplace, Laplace
from ..mechanisms.tree import Tree, depth

Data = Any
Play = Callable[..., Any]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A sound thing with its claim and its worst known pair, and the bugs that can be planted in it.

    Attributes
    ----------
    name : str
    play : callable
        `play(data, draws, runs, bug=...)`.
    left, right : JSON
        Neighbouring inputs.
    delta : float
        Of the claim; its epsilon is 1.
    bugs : mapping
        From the bug's name to what it does.
    """

    name: str
    play: Play
    left: Data
    right: Data
    bugs: dict[str, str]
    delta: float = 0.0


@dataclass(frozen=True)
class Planted:
    """A subject with one bug, as the black-box audit calls it."""

    play: Play
    bug: str = ""
    batched: bool = True

    def __call__(self, data: Data, draws: Draws, runs: int) -> Any:
        """Return the outputs of a block of runs."""
        return self.play(data, draws, runs, bug=self.bug)


def counting(data: Data, draws: Draws, runs: int, *, bug: str) -> Floats:
    """Release a sum of sensitivity 1 with Laplace(1) noise."""
    exact = float(sum(data))
    if bug == "noise halved":
        return exact + Laplace(0.5).sample((runs,), draws)
    if bug == "noise variance for scale":  # variance 1 instead of scale 1
        return exact + Laplace(1 / math.sqrt(2)).sample((runs,), draws)
    if bug == "sign lost":
        return exact + np.abs(Laplace(1.0).sample((runs,), draws))
    if bug == "noise clipped":
        return exact + np.clip(Laplace(1.0).sample((runs,), draws), -2, 2)
    if bug == "noise rounded":  # the fraction of the sum shows through
        return exact / 2 + np.round(Laplace(0.5).sample((runs,), draws))
    if bug == "uniform noise":
        return exact + (draws.uniform((runs,)) - 0.5) * math.sqrt(24)
    if bug == "noise dropped at times":
        noise = Laplace(1.0).sample((runs,), draws)
        return exact + np.where(draws.uniform((runs,)) < 0.05, 0.0, noise)
    return exact + Laplace(1.0).sample((runs,), draws)


def gaussian(data: Data, draws: Draws, runs: int, *, bug: str) -> Floats:
    """Release a vector sum of L2 sensitivity 1 with the classic Gaussian noise at delta = 0.01."""
    exact = np.array(data, dtype=float)[:, None]
    sigma = math.sqrt(2 * math.log(1.25 / 0.01))
    if bug == "constant forgotten":
        sigma = 1.0
    if bug == "noise shared by the coordinates":
        return exact + Gaussian(sigma).sample((1, runs), draws)
    if bug == "noise over root dim":
        sigma /= len(data) ** 0.5
    return exact + Gaussian(sigma).sample((len(data), runs), draws)


def ball(data: Data, draws: Draws, runs: int, *, bug: str) -> Floats:
    """Release a vector of the unit ball with noise of density exp(-|n|_2 / scale); two of them are 2 apart."""
    exact = np.array(data, dtype=float)[:, None]
    dim = len(data)
    if bug == "norm for difference":
        return exact + L2Laplace(1.0, dim).sample((dim, runs), draws)
    if bug == "radius without dimension":
        direction = draws.normal((dim, runs))
        direction /= np.sqrt(np.square(direction).sum(axis=0))
        return exact + direction * -np.log1p(-draws.uniform((runs,))) * 1.0
    if bug == "coordinates alone":  # Laplace noise for the L2 norm
        return exact + Laplace(2.0 / dim).sample((dim, runs), draws)
    return exact + L2Laplace(2.0, dim).sample((dim, runs), draws)


def prefix_sums(data: Data, draws: Draws, runs: int, *, bug: str) -> Floats:
    """Release the first T - 1 noisy prefix sums of a tree over T values in [0, 1]; a value is in depth(T) nodes."""
    horizon = len(data)
    scale = float(depth(horizon))
    if bug == "off by one level":
        scale -= 1
    if bug == "natural logarithm":
        scale = math.log(horizon)
    if bug == "not composed":
        scale = 1.0
    noise = Laplace(scale)
    tree = Tree(noise, horizon, padding=False)
    state = tree.start(1, runs)
    fixed = noise.sample((1, runs), draws)
    released = []
    for t, value in enumerate(data[: None if bug == "root released too" else -1], start=1):
        values = np.full((1, 1), float(value))
        before = state.total.copy()
        tree.add(state, values, draws)
        out = state.noisy.copy()
        if bug == "leaves without noise" and t % 2:
            out = state.total + (state.noisy - state.total if t > 1 else 0) * (t > 1)
        if bug == "node reused":  # every node of the tree shares one draw
            out = state.total + fixed * t.bit_count()
        if bug == "fresh noise on a prefix":  # every prefix sum is released again, as if it were one count
            out = state.total + Laplace(1.0).sample((1, runs), draws)
        if bug == "padding returned":  # the noise of the last prefix comes out with the next one
            out = np.concatenate([out, before])[-1:] if t > 2 else out
        released.append(out[0])
    return np.stack(released)


def batches(data: Data, draws: Draws, runs: int, *, bug: str) -> Floats:
    """Release the noisy batch means of one arm's losses in [0, 1], three rounds a batch."""
    batch = 3
    losses = np.array(data, dtype=float)
    if bug != "loss not clipped":
        losses = np.clip(losses, 0, 1)
    means = losses.reshape(-1, batch).mean(axis=1)
    noise = BatchedLaplace(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=batch).noise
    if bug == "noise halved":
        noise = Laplace(noise.scale / 2)
    if bug == "divided twice":
        noise = Laplace(noise.scale / batch)
    if bug == "sum for mean":
        means = means * batch
    fresh = [noise.sample((runs,), draws) for _ in means]
    if bug == "noise reused":
        fresh = [fresh[0]] * len(means)
    if bug == "missing in one batch":
        fresh[0] = np.zeros(runs)
    if bug == "seed shared by the rounds":
        fresh = [noise.sample((runs,), Draws(*draws.key)) for _ in means]
    if bug == "only where positive":  # a mean of 0 looks harmless
        fresh = [f if mean > 0 else 0 * f for f, mean in zip(fresh, means, strict=True)]
    if bug == "antithetic":  # each second noise takes the first one back
        fresh = [fresh[i // 2 * 2] * (-1) ** i for i in range(len(fresh))]
    return np.stack([mean + f for mean, f in zip(means, fresh, strict=True)])


class _LateNoise(BanditReduction):
    """Bug: the noise is added after the inner learner has learned."""

    def update(self, state: Any, actions: Any, feedback: Floats, draws: Draws) -> None:
        self.inner.update(state.inner, actions, feedback, draws)
        state.fed = feedback + self.noise.sample(actions.shape, draws)


class _FirstArmBare(BanditReduction):
    """Bug: <Z, x> leaves the first arm out."""

    def update(self, state: Any, actions: Any, feedback: Floats, draws: Draws) -> None:
        state.fed = feedback + self.noise.sample(actions.shape, draws) * (actions > 0)
        self.inner.update(state.inner, actions, state.fed, draws)


class _FirstRoundBare(BanditReduction):
    """Bug: the noise starts in round 2."""

    def update(self, state: Any, actions: Any, feedback: Floats, draws: Draws) -> None:
        noise = self.noise.sample(actions.shape, draws)
        state.fed = feedback + (0.0 if not state.fed.any() else noise)
        self.inner.update(state.inner, actions, state.fed, draws)


def reduction(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
    """Play the bandit reduction around Threshold on losses in [-1, 1]; release its arms."""
    kinds = {
        "noise after learning": _LateNoise,
        "first arm without noise": _FirstArmBare,
        "first round without noise": _FirstRoundBare,
    }
    # Published with the largest loss; replacing a loss moves twice as far.
    sensitivity = {"norm for difference": 1.0, "epsilon squared": 2.0 / 3}.get(bug, 2.0)
    learner = kinds.get(bug, BanditReduction)(
        inner=Threshold(arms=2, threshold=0.0), epsilon=1.0, sensitivity=sensitivity
    )
    return _played(learner, data, draws, runs)


def bandit(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
    """Play batched EXP3 on losses in [0, 1]; release its arms."""
    epsilon = 2.0 if bug == "noise of a longer batch" else 1.0
    inner = Exp3(arms=2, eta=4.0, gamma=0.02)
    learner: Any = BatchedLaplace(inner=inner, epsilon=epsilon, batch=1)
    if bug == "inner learner alone":
        learner = inner
    return _played(learner, data, draws, runs)


def experts(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
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


def _played(learner: Any, data: Data, draws: Draws, runs: int) -> Any:
    """Return the actions of a learner on the losses `data`, (rounds, [dim,] runs)."""
    losses = np.array(data, dtype=float)
    state = learner.start(runs, draws)
    actions = []
    for loss in losses:
        played = learner.act(state, draws)
        actions.append(played)
        told = loss[played] if learner.feedback == "bandit" else loss[:, None]
        learner.update(state, played, told, draws)
    return np.stack(actions)


def response(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
    """Report one of four categories: the true one with probability e / (e + 3), else any other."""
    keep = math.e / (math.e + 3)
    if bug == "two categories assumed":
        keep = math.e / (math.e + 1)
    if bug == "keep or any":  # fine by itself, but with the keep probability of keep-or-other for epsilon 2
        keep = math.e**2 / (math.e**2 + 3)
    kept = draws.uniform((runs,)) < keep
    other = (data + 1 + np.floor(draws.uniform((runs,)) * 3)) % 4
    return np.where(kept, float(data), other)


def choosing(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
    """Choose the largest of several counts by the exponential mechanism, exp(u / 2)."""
    utility = np.array(data, dtype=float)
    law = np.exp(utility / (1.0 if bug == "factor 2 forgotten" else 2.0))
    if bug == "base 10":
        law = 10.0 ** (utility / 2)
    steps = np.cumsum(law / law.sum())
    return np.minimum(np.searchsorted(steps, draws.uniform((runs,)), side="right"), utility.size - 1).astype(float)


def noisy_max(data: Data, draws: Draws, runs: int, *, bug: str) -> Any:
    """Report the place of the largest of several counts, Laplace(2) noise on each."""
    exact = np.array(data, dtype=float)[:, None]
    noisy = exact + Laplace(2.0).sample((exact.size, runs), draws)
    if bug == "noise shared":
        noisy = exact + Laplace(2.0).sample((1, runs), draws)
    if bug == "value released too":
        return np.stack([noisy.argmax(axis=0).astype(float), noisy.max(axis=0)])
    return noisy.argmax(axis=0).astype(float)


SUBJECTS = (
    Subject(
        name="Laplace count",
        play=counting,
        left=[1],
        right=[0],
        bugs={
            "noise halved": "half the scale",
            "noise variance for scale": "variance 1 taken for scale 1",
            "sign lost": "only positive noise",
            "noise clipped": "noise cut at two scales",
            "noise rounded": "noise rounded, the sum not",
            "uniform noise": "uniform noise of the same variance",
            "noise dropped at times": "no noise in one run of twenty",
        },
    ),
    Subject(
        name="Gaussian vector",
        play=gaussian,
        left=[1 / 3] * 9,
        right=[0.0] * 9,
        delta=0.01,
        bugs={
            "constant forgotten": "sigma without sqrt(2 ln(1.25 / delta))",
            "noise over root dim": "noise divided by sqrt(dim)",
        },
    ),
    Subject(
        name="L2 ball",
        play=ball,
        left=[1.0, 0.0, 0.0],
        right=[-1.0, 0.0, 0.0],
        bugs={
            "norm for difference": "the largest norm instead of the largest difference",
            "radius without dimension": "the radius drawn as if in one dimension",
            "coordinates alone": "Laplace noise of too small a scale on each coordinate",
        },
    ),
    Subject(
        name="tree of prefix sums",
        play=prefix_sums,
        left=[1, 0, 0, 0, 0, 0, 0, 0],
        right=[0, 0, 0, 0, 0, 0, 0, 0],
        bugs={
            "off by one level": "noise for one level less",
            "natural logarithm": "ln T instead of log2 T",
            "not composed": "noise as if a value were in one node",
            "leaves without noise": "no noise at the first leaf",
            "node reused": "one draw of noise for all nodes",
            "fresh noise on a prefix": "each prefix sum treated as one count",
            "padding returned": "the previous exact sum comes out a round later",
        },
    ),
    Subject(
        name="tree of two values",
        play=prefix_sums,
        left=[1, 0],
        right=[0, 0],
        bugs={"root released too": "the last prefix sum is released, which is one more node"},
    ),
    Subject(
        name="batch means",
        play=batches,
        left=[3.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        right=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        bugs={
            "noise halved": "half the scale",
            "divided twice": "the noise divided by the batch twice",
            "sum for mean": "the batch's sum with the noise of its mean",
            "noise reused": "the same draw in every batch",
            "missing in one batch": "no noise in the first batch",
            "seed shared by the rounds": "a generator of the same seed in every batch",
            "only where positive": "no noise on a mean of 0",
            "antithetic": "every second draw is the first one, negated",
            "loss not clipped": "a loss of 3 where 1 is the largest",
        },
    ),
    Subject(
        name="bandit reduction",
        play=reduction,
        left=[[1, 1], [0, 0]],
        right=[[-1, -1], [0, 0]],
        bugs={
            "norm for difference": "noise for the largest loss, not for the largest difference",
            "epsilon squared": "a third of the noise",
            "noise after learning": "the inner learner sees the exact loss",
            "first arm without noise": "<Z, x> leaves the first arm out",
            "first round without noise": "the noise starts in round 2",
        },
    ),
    Subject(
        name="batched EXP3",
        play=bandit,
        left=[[1, 1], [0, 0], [0, 0], [0, 0]],
        right=[[0, 0], [0, 0], [0, 0], [0, 0]],
        bugs={
            "noise of a longer batch": "scaled as if an arm were held twice as long",
            "inner learner alone": "EXP3 is taken to be private by itself",
        },
    ),
    Subject(
        name="FTRL over experts",
        play=experts,
        left=[[1, 0], [0, 0]],
        right=[[0, 1], [0, 0]],
        bugs={
            "one coordinate's sensitivity": "sensitivity 1 for two coordinates",
            "off by one level": "noise for one level less",
        },
    ),
    Subject(
        name="randomised response",
        play=response,
        left=0,
        right=1,
        bugs={
            "two categories assumed": "the probability for two categories, with four",
            "keep or any": "the probability for epsilon 2",
        },
    ),
    Subject(
        name="exponential mechanism",
        play=choosing,
        left=[1, 0, 0, 0],
        right=[0, 1, 1, 1],
        bugs={"factor 2 forgotten": "exp(u) instead of exp(u / 2)", "base 10": "10^(u / 2) instead of exp(u / 2)"},
    ),
    Subject(
        name="report noisy max",
        play=noisy_max,
        left=[0, 0, 2],
        right=[1, 1, 1],
        bugs={"noise shared": "one draw of noise for all candidates"},
    ),
    Subject(
        name="report noisy max of five",
        play=noisy_max,
        left=[2, 2, 2, 2, 2],
        right=[1, 1, 1, 1, 1],
        bugs={"value released too": "the noisy value comes out with its place"},
    ),
)


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
        return int(np.argmin(self.totals + self.rng.laplace(0, 1.0, 2)))

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


def planted(subject: Subject, bug: str) -> Planted:
    """Return a subject with one bug, or sound where `bug` is empty."""
    if bug and bug not in subject.bugs:
        raise ValueError(f"bug must be one of {', '.join(subject.bugs)}, got {bug!r}")
    return Planted(subject.play, bug)
