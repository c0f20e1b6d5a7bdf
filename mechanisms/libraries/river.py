"""Bandits of river on rewards with local noise: nobody's claim but ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..library_entry import Library, LibraryEntry, Mechanism
from .local_noise import local_noise, noisy_rewards

LIBRARY = Library(name="river", distribution="river", version="0.26.1", module="river")


def _policy(name: str, **options: object) -> Callable[[float], Mechanism]:
    def build(factor: float) -> Mechanism:
        kind = getattr(LIBRARY.load("river.bandit"), name)

        def mechanism(data: Sequence[float], rng: np.random.Generator) -> object:
            policy, arms = kind(seed=int(rng.integers(2**31)), **options), [0, 1]
            for i, reward in enumerate(noisy_rewards(data, rng, factor)):
                policy.update(arms[i % 2], reward)
            return [policy.pull(arms), *(float(policy._rewards[arm].get()) for arm in arms)]

        return mechanism

    return build


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    local_noise(LIBRARY, name, _policy(name, **options))
    for name, options in (("EpsilonGreedy", {"epsilon": 0.1}), ("UCB", {"delta": 1.0}))
)
