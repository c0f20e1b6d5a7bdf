"""Bandits of river on rewards with local noise: nobody's claim but ours, that what learns from noise keeps its privacy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..claim import Claim
from .entry import Library, LibraryEntry, Mechanism

LIBRARY = Library(name="river", distribution="river", version="0.26.1", module="river")
_OURS = (
    "Each reward in [0, 1] gets Laplace noise of scale 1 before the bandit sees it: what it learns is (1, 0)-private."
)


def noisy_rewards(data: Any, rng: Any) -> list[float]:
    """Return rewards in [0, 1] with Laplace noise of scale 1, each by itself."""
    return [float(reward + rng.laplace()) for reward in data]


def rewards(st: Any) -> Any:
    """Return the strategy of a few rewards."""
    return st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), min_size=2, max_size=4)


def _policy(name: str, **options: Any) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("river.bandit"), name)

        def mechanism(data: Any, rng: Any) -> Any:
            policy, arms = kind(seed=int(rng.integers(2**31)), **options), [0, 1]
            for i, reward in enumerate(noisy_rewards(data, rng)):
                policy.update(arms[i % 2], reward)
            return [policy.pull(arms), *(float(policy._rewards[arm].get()) for arm in arms)]

        return mechanism

    return build


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        library=LIBRARY,
        what=f"{name}-local-noise",
        claim=Claim(epsilon=1.0),
        quotation=_OURS,
        where="overclaim.mechanisms.libraries.river",
        strategy=rewards,
        build=_policy(name, **options),
        relations=("replace",),
        ours=True,
    )
    for name, options in (("EpsilonGreedy", {"epsilon": 0.1}), ("UCB", {"delta": 1.0}))
)
