"""The extreme losses of a learner of convex losses: a search composes pairs of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from .losses import Adaptive, Family


@dataclass(frozen=True)
class ExtremeLosses:
    """What a learner of convex losses says by its method `extremes`.

    Attributes
    ----------
    opposed : tuple of (up, down)
        Losses of one round that are as unlike as the learner allows; the first are the most extreme.
    flat : Family
        The loss that says least.
    adaptive : tuple of Adaptive
        Losses that other rounds may hold too.
    """

    opposed: tuple[tuple[Family, Family], ...]
    flat: Family
    adaptive: tuple[Adaptive, ...] = ()


@runtime_checkable
class HasExtremes(Protocol):
    """A learner that says which convex losses are its extreme ones."""

    def extremes(self) -> ExtremeLosses:
        """Return them."""
