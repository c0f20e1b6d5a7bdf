"""Bandits on rewards with local noise: nobody's claim but ours, that what learns from noise keeps its privacy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

import numpy as np

from ..claim import Claim
from ..library_entry import Library, LibraryEntry, Mechanism

_OWN_MODULES = (
    "Each reward in [0, 1] gets Laplace noise of scale 1 before the bandit sees it: what it learns is (1, 0)-private."
)


def noisy_rewards(data: Sequence[float], rng: np.random.Generator, factor: float) -> list[float]:
    """Return rewards in [0, 1] with Laplace noise of scale 1, each by itself, or of a smaller scale by a factor."""
    return [float(reward + rng.laplace(scale=1 / factor)) for reward in data]


def _rewards(st: ModuleType) -> object:
    """Return the strategy of a few rewards."""
    return st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), min_size=2, max_size=4)


def local_noise(package: Library, name: str, build: Callable[[float], Mechanism]) -> LibraryEntry:
    """Return the entry of a bandit of a library behind local noise."""
    return LibraryEntry(
        package=package,
        what=f"{name}-local-noise",
        claim=Claim(epsilon=1.0),
        quotation=_OWN_MODULES,
        where=f"overclaim.mechanisms.libraries.{package.name}",
        strategy=_rewards,
        build=build,
        relations=("replace",),
        ours=True,
    )
