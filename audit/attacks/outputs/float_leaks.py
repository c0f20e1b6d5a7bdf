"""Bit-level attacks: what the floating-point pattern of an output tells beyond its value.

References
----------
.. [1] I. Mironov. On significance of the least significant bits for differential privacy. CCS 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ....mechanisms.draws import Floats
from ....mechanisms.noise import Laplace
from ...encoding.features import Columns, LabelledColumns, Outputs
from ..protocol import Scorer
from .learned import OutputAttack, nothing

#: Where there is no lowest bit: zero, infinities and nan.
NO_BIT = 1100.0
#: Half the width, in grid points, of the window in which a preimage is looked for.
_NEIGHBOURHOOD = 4


def lowest_bit(x: Floats) -> Floats:
    """Return e for numbers that are an odd multiple of 2**e: the finest bit that the output shows.

    Noise in (-2, -1) is a multiple of 2**-52, so 1 plus such noise is one too, however close to 0 it comes; noise that
    is itself close to 0 has much finer bits.
    """
    with np.errstate(invalid="ignore"):
        mantissa, exponent = np.frexp(x)
        integer = np.where(np.isfinite(x), mantissa, 0.0) * 2.0**53
    digits = integer.astype(np.int64)
    low = digits & -digits  # a power of two: exact as a float
    with np.errstate(divide="ignore"):
        place = np.log2(low.astype(np.float64)) + exponent - 53
    return np.where(digits == 0, NO_BIT, place)


@dataclass(frozen=True)
class BitColumns:
    """An encoder that adds, for every column, its lowest bit."""

    encoder: Callable[[Outputs], Floats]

    def __call__(self, outputs: Outputs) -> Floats:
        """Return (2 columns, runs)."""
        columns = self.encoder(outputs)
        return np.concatenate([columns, lowest_bit(columns)])


def preimages(released: Floats, value: float, noise: Laplace) -> NDArray[np.int64]:
    """Return how many points of the sampler's grid release exactly this number from this value.

    `Laplace.sample` turns the odd multiples u of 2**-53 in (0, 1) into scale * log(u) with a sign. Around the u that
    the released number suggests, every neighbour is sent through the same arithmetic and compared bit by bit.

    Parameters
    ----------
    released : array (runs,)
    value : float
        The noiseless answer in the world that is tested.
    noise : Laplace
        The law whose sampler is attacked.
    """
    guess = released - value
    u = np.exp(-np.abs(guess) / noise.scale)
    grid = np.floor(u * 2.0**52)  # u = (2 grid + 1) 2**-53
    counts = np.zeros(released.shape, dtype=np.int64)
    # A last-place error of `guess` moves u by u ulp(guess) / scale: widen the window where that is more than a few.
    for step in range(-_NEIGHBOURHOOD, _NEIGHBOURHOOD + 1):
        place = grid + step
        in_range = (place >= 0) & (place < 2.0**52)
        candidate = (2 * np.where(in_range, place, 0.0) + 1) * 2.0**-53
        sent = np.copysign(np.log(candidate) * noise.scale, guess)
        counts += in_range & (sent + value == released)
    return counts


@runtime_checkable
class HasSampler(Protocol):
    """Ability: a mechanism that releases one number, a known mean plus a draw of `Laplace.sample`."""

    @property
    def noise(self) -> Laplace:
        """The law of the noise."""

    def mean(self, data: object) -> float:
        """Return the noiseless number."""


@dataclass(frozen=True)
class PreimageRatio:
    """The log ratio of the preimages of released numbers in the two worlds, of a known Laplace sampler.

    Where only one world has any, it is infinite: the other could not have released this number.
    """

    noise: Laplace
    left: float
    right: float

    def __call__(self, released: Floats) -> Floats:
        """Return the score, (runs,)."""
        counts = [preimages(released, value, self.noise) for value in (self.left, self.right)]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio: Floats = np.log(counts[0]) - np.log(counts[1])
        return ratio


class Preimages(OutputAttack):
    """Score the numbers that a known Laplace sampler releases by their preimages."""

    name = "preimages of the sampler"

    @staticmethod
    def applies(mechanism: object) -> bool:
        """Tell whether a mechanism says what its sampler is and what that is added to."""
        return isinstance(mechanism, HasSampler)

    def fit(self, mechanism: Any, pair: Any, train: LabelledColumns) -> Scorer[Columns]:
        """Learn nothing: the sampler is known. The released number is the first column."""
        ratio = PreimageRatio(mechanism.noise, mechanism.mean(pair.left), mechanism.mean(pair.right))
        return Scorer(self.name, lambda view: ratio(view.columns[0]))

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Learn nothing: see `fit`."""
        return nothing
