"""Mechanisms with planted bugs: `bug` names the fault, "" is none."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Gaussian, L2Laplace, Laplace
from ...mechanisms.tree import Tree, depth
from ..conversions.batched import BatchedLaplace
from ..probes.threshold import Threshold


def counting(data: Sequence[float], draws: Draws, runs: int, *, bug: str) -> object:
    """Release a sum of sensitivity 1 with Laplace(1) noise."""
    exact = float(sum(data))
    if bug == "noise halved":
        return exact + draws.noise(Laplace(0.5), (runs,), exact)
    if bug == "noise variance for scale":  # variance 1 instead of scale 1
        return exact + draws.noise(Laplace(1 / math.sqrt(2)), (runs,), exact)
    if bug == "sign lost":
        return exact + np.abs(draws.noise(Laplace(1.0), (runs,), exact))
    if bug == "noise clipped":
        return exact + np.clip(draws.noise(Laplace(1.0), (runs,), exact), -2, 2)
    if bug == "noise rounded":  # the fraction of the sum shows through
        return exact / 2 + np.round(draws.noise(Laplace(0.5), (runs,), exact / 2))
    if bug == "uniform noise":
        return exact + (draws.uniform((runs,)) - 0.5) * math.sqrt(24)
    if bug == "noise dropped at times":
        noise = draws.noise(Laplace(1.0), (runs,), exact)
        return exact + np.where(draws.uniform((runs,)) < 0.05, 0.0, noise)
    return exact + draws.noise(Laplace(1.0), (runs,), exact)


def gaussian(data: Sequence[float], draws: Draws, runs: int, *, bug: str) -> object:
    """Release a vector sum of L2 sensitivity 1 with the classic Gaussian noise at delta = 0.01."""
    exact = np.array(data, dtype=float)[:, None]
    sigma = math.sqrt(2 * math.log(1.25 / 0.01))
    if bug == "constant forgotten":
        sigma = 1.0
    if bug == "noise over root dim":
        sigma /= len(data) ** 0.5
    return exact + draws.noise(Gaussian(sigma), (len(data), runs), exact)


def ball(data: Sequence[float], draws: Draws, runs: int, *, bug: str) -> object:
    """Release a vector of the unit ball with noise of density exp(-|n|_2 / scale); two of them are 2 apart."""
    exact = np.array(data, dtype=float)[:, None]
    dim = len(data)
    if bug == "norm for difference":
        return exact + draws.noise(L2Laplace(1.0, dim), (dim, runs), exact)
    if bug == "radius without dimension":
        direction = draws.normal((dim, runs))
        direction /= np.sqrt(np.square(direction).sum(axis=0))
        return exact + direction * -np.log1p(-draws.uniform((runs,))) * 2.0
    if bug == "coordinates alone":  # Laplace noise for the L2 norm
        return exact + draws.noise(Laplace(2.0 / dim), (dim, runs), exact)
    return exact + draws.noise(L2Laplace(2.0, dim), (dim, runs), exact)


def prefix_sums(data: Sequence[float], draws: Draws, runs: int, *, bug: str) -> object:
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
            out = state.total + draws.noise(Laplace(1.0), (1, runs), state.total)
        if bug == "padding returned":  # the noise of the last prefix comes out with the next one
            out = np.concatenate([out, before])[-1:] if t > 2 else out
        released.append(out[0])
    return np.stack(released)


def batches(data: object, draws: Draws, runs: int, *, bug: str) -> object:
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
    noisy_means = [draws.noise(noise, (runs,), mean) for mean in means]
    if bug == "noise reused":
        noisy_means = [noisy_means[0]] * len(means)
    if bug == "missing in one batch":
        noisy_means[0] = np.zeros(runs)
    if bug == "seed shared by the rounds":
        noisy_means = [noise.sample((runs,), Draws(*draws.key)) for _ in means]
    if bug == "only where positive":  # a mean of 0 looks harmless
        noisy_means = [f if mean > 0 else 0 * f for f, mean in zip(noisy_means, means, strict=True)]
    if bug == "antithetic":  # each second noise takes the first one back
        noisy_means = [noisy_means[i // 2 * 2] * (-1) ** i for i in range(len(noisy_means))]
    return np.stack([mean + f for mean, f in zip(means, noisy_means, strict=True)])


def response(data: int, draws: Draws, runs: int, *, bug: str) -> object:
    """Report one of four categories: the true one with probability e / (e + 3), else any other."""
    keep = math.e / (math.e + 3)
    if bug == "two categories assumed":
        keep = math.e / (math.e + 1)
    if bug == "keep or any":  # fine by itself, but with the keep probability of keep-or-other for epsilon 2
        keep = math.e**2 / (math.e**2 + 3)
    law = np.full(4, (1 - keep) / 3)
    law[data] = keep

    def sample(draws: Draws) -> Floats:
        truthful = draws.uniform((runs,)) < keep
        other = (data + 1 + np.floor(draws.uniform((runs,)) * 3)) % 4
        return np.where(truthful, float(data), other)

    return draws.outcome(lambda: law, sample)


def choosing(data: object, draws: Draws, runs: int, *, bug: str) -> object:
    """Choose the largest of several counts by the exponential mechanism, exp(u / 2)."""
    utility = np.array(data, dtype=float)
    law = np.exp(utility / (1.0 if bug == "factor 2 forgotten" else 2.0))
    if bug == "base 10":
        law = 10.0 ** (utility / 2)
    steps = np.cumsum(law / law.sum())

    def sample(draws: Draws) -> Floats:
        return np.minimum(np.searchsorted(steps, draws.uniform((runs,)), side="right"), utility.size - 1).astype(float)

    return draws.outcome(lambda: law / law.sum(), sample)


def noisy_max(data: object, draws: Draws, runs: int, *, bug: str) -> object:
    """Report the place of the largest of several counts, Laplace(2) noise on each."""
    exact = np.array(data, dtype=float)[:, None]
    noisy = exact + draws.noise(Laplace(2.0), (exact.size, runs), exact)
    if bug == "noise shared":
        noisy = exact + Laplace(2.0).sample((1, runs), draws)
    if bug == "value released too":
        return np.stack([noisy.argmax(axis=0).astype(float), noisy.max(axis=0)])
    return noisy.argmax(axis=0).astype(float)
