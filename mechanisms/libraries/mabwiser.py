"""Bandits of mabwiser on rewards with local noise: nobody's claim but ours."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..library_entry import Library, LibraryEntry, Mechanism, quietly
from .local_noise import local_noise, noisy_rewards

LIBRARY = Library(name="mabwiser", distribution="mabwiser", version="2.7.4", module="mabwiser")


def _policy(name: str, **options: object) -> Callable[[float], Mechanism]:
    def build(factor: float) -> Mechanism:
        mab = LIBRARY.load("mabwiser.mab")

        def mechanism(data: Sequence[float], rng: np.random.Generator) -> object:
            policy = getattr(mab.LearningPolicy, name)(**options)
            bandit = mab.MAB(arms=[0, 1], learning_policy=policy, seed=int(rng.integers(2**31)))
            bandit.fit([i % 2 for i in range(len(data))], noisy_rewards(data, rng, factor))
            return [float(value) for _, value in sorted(bandit.predict_expectations().items())]

        return quietly(mechanism)

    return build


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    local_noise(LIBRARY, name, _policy(name, **options))
    for name, options in (("EpsilonGreedy", {"epsilon": 0.1}), ("UCB1", {"alpha": 1.0}))
)
