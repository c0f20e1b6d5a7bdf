"""RAPPOR: randomised response on the bits of a Bloom filter.

References
----------
.. [1] U. Erlingsson, V. Pihur, A. Korolova. RAPPOR. CCS 2014.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ..draws import Draws
from ..parameters import check_count, is_finite

_MASK = 0xFFFFFFFF


def murmur3(text: str, seed: int) -> int:
    """Return the 32-bit MurmurHash3 of the text as a signed integer, the hash of the published experiments."""
    data = text.encode()

    def rotated(x: int, bits: int) -> int:
        return (x << bits | x >> (32 - bits)) & _MASK

    def mixed(block: int) -> int:
        return rotated(block * 0xCC9E2D51 & _MASK, 15) * 0x1B873593 & _MASK

    h = seed & _MASK
    n_block_bytes = len(data) // 4 * 4
    for i in range(0, n_block_bytes, 4):
        h = rotated(h ^ mixed(int.from_bytes(data[i : i + 4], "little")), 13)
        h = (h * 5 + 0xE6546B64) & _MASK
    h ^= mixed(int.from_bytes(data[n_block_bytes:], "little"))
    h ^= len(data)
    h = (h ^ h >> 16) * 0x85EBCA6B & _MASK
    h = (h ^ h >> 13) * 0xC2B2AE35 & _MASK
    h ^= h >> 16
    return h - 2**32 if h >= 2**31 else h


@dataclass(frozen=True)
class OneTimeRappor:
    """The permanent randomised response: each bit of the Bloom filter is replaced by a fair one with probability f.

    **Claim**: 2 hashes ln((1 - f/2) / (f/2)) between any two values.

    Parameters
    ----------
    hashes, size : int
        The Bloom filter's hash functions and bits, positive.
    f : float
        In (0, 1].
    """

    hashes: int = 4
    size: int = 20
    f: float = 0.95
    batched: ClassVar[bool] = True
    #: Inputs of noise calls are functions of the data: no output enters one.
    constant_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("hashes", self.hashes)
        check_count("size", self.size)
        if not is_finite(self.f) or not 0 < self.f <= 1:
            raise must_be("f", "in (0, 1]", self.f)

    @property
    def claimed(self) -> float:
        """The epsilon that the paper states (Theorem 1)."""
        return 2 * self.hashes * math.log((1 - self.f / 2) / (self.f / 2))

    def weakened(self, factor: float) -> Self:
        """Return the same with f, the probability that a permanent bit is replaced, divided by a factor."""
        return replace(self, f=self.f / factor)

    def rates(self) -> tuple[float, float]:
        """Return the probability of a released one where the filter has 0, and where it has 1."""
        return self.f / 2, 1 - self.f / 2

    def filter(self, value: object) -> NDArray[np.bool_]:
        """Return the Bloom filter of a value, (size,)."""
        bits = np.zeros(self.size, dtype=np.bool_)
        bits[[murmur3(str(value), seed) % self.size for seed in range(self.hashes)]] = True
        return bits

    def __call__(self, data: Sequence[object], draws: Draws, runs: int) -> NDArray[np.int8]:
        """Return the released bits, (size, runs)."""
        rate = np.where(self.filter(data[0]), *reversed(self.rates()))

        def sample(draws: Draws) -> NDArray[np.int8]:
            return (draws.uniform((self.size, runs)) < rate[:, None]).astype(np.int8)

        return draws.outcome(lambda: np.stack([1 - rate, rate]), sample, "bits")


@dataclass(frozen=True)
class Rappor(OneTimeRappor):
    """The permanent, then the instantaneous randomised response, released once.

    **Claim**: hashes ln(q' (1 - p') / (p' (1 - q'))), with p' and q' the rates of a released one.

    Parameters
    ----------
    hashes, size, f
        As for `OneTimeRappor`.
    p, q : float
        The rates of a released one where the permanent bit is 0, and where it is 1: 0 <= p < q <= 1.
    """

    f: float = 0.75
    p: float = 0.45
    q: float = 0.55

    def __post_init__(self) -> None:
        super().__post_init__()
        if not is_finite(self.p) or not is_finite(self.q) or not 0 <= self.p < self.q <= 1:
            raise ValueError(f"p and q must be rates with 0 <= p < q <= 1, got {self.p!r} and {self.q!r}")
        low, high = self.rates()
        if low == 0 or high == 1:
            probabilities = f"{self.f!r}, {self.p!r} and {self.q!r}"
            raise ValueError(f"f, p and q must leave a released bit in doubt, got {probabilities}")

    @property
    def claimed(self) -> float:
        """The epsilon that the paper states for one report (Theorem 2)."""
        low, high = self.rates()
        return self.hashes * math.log(high * (1 - low) / (low * (1 - high)))

    def rates(self) -> tuple[float, float]:
        """Return the probability of a released one where the filter has 0, and where it has 1."""
        low, high = self.f / 2, 1 - self.f / 2
        return low * self.q + (1 - low) * self.p, high * self.q + (1 - high) * self.p
