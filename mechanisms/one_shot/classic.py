"""One-shot mechanisms of the literature and their broken twins: noisy values, histograms, maxima, prefix sums.

Every one is called as `mechanism(data, draws, runs)` with a list of query answers and returns the outputs of `runs`
independent runs, the runs on the last axis. They compute in real arithmetic as far as double precision goes; what its
low-order bits leak is the subject of `discrete` and of the bit-level attack.

References
----------
.. [1] Z. Ding, Y. Wang, G. Wang, D. Zhang, D. Kifer. Detecting violations of differential privacy. CCS 2018.
.. [2] V. Balcer, S. Vadhan. Differential privacy on finite computers. ITCS 2018.
.. [3] Y. Wang, Z. Ding, G. Wang, D. Kifer, D. Zhang. Proving differential privacy with shadow execution. PLDI 2019.
.. [4] B. Bichsel, S. Steffen, I. Bogunovic, M. Vechev. DP-Sniper: black-box discovery of differential privacy
   violations using classifiers. S&P 2021.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ..draws import Draws, Floats
from ..noise import Exponential, Laplace
from ..parameters import check_positive
from ..weakening import NoNoiseError

Data = Sequence[float]
Outputs = NDArray[Any]


def column(data: Data) -> Floats:
    """Return the query answers as (dim, 1)."""
    return np.asarray(data, dtype=np.float64).reshape(-1, 1)


@dataclass(frozen=True)
class OneShot:
    """What these mechanisms share: the epsilon that sets their noise.

    Parameters
    ----------
    epsilon : float
        In nats, positive and finite.
    """

    epsilon: float = 1.0
    batched: ClassVar[bool] = True
    #: Inputs of noise calls are functions of the data: no output enters one.
    constant_inputs: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)

    def laplace(self, scale: float, data: Data, draws: Draws, runs: int) -> Floats:
        """Return independent Laplace noise for every answer, (dim, runs)."""
        noise: Floats = draws.noise(Laplace(scale), (len(data), runs), column(data), "answers")
        return noise


@dataclass(frozen=True)
class LaplaceMechanism(OneShot):
    """Release one number with Laplace noise of scale 1 / epsilon.

    **Claim**: epsilon for inputs that differ by at most 1.
    """

    scale_factor: ClassVar[float] = 1.0

    @property
    def noise(self) -> Laplace:
        """The law of the noise."""
        return Laplace(self.scale_factor / self.epsilon)

    def mean(self, data: Data) -> float:
        """Return the noiseless number."""
        return float(data[0])

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (runs,)."""
        released: Floats = draws.noise(self.noise, (runs,), self.mean(data), "number") + self.mean(data)
        return released


class LaplaceHalfScale(LaplaceMechanism):
    """Broken: the noise has half the scale, so the mechanism is 2 epsilon-DP and no better."""

    scale_factor = 0.5


@dataclass(frozen=True)
class LaplaceParallel(OneShot):
    """Release one number 20 times, each time at epsilon / 20 [4]_.

    **Claim**: epsilon for inputs that differ by at most 1.
    """

    copies: ClassVar[int] = 20

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers, (copies, runs)."""
        value = float(data[0])
        noisy: Floats = draws.noise(Laplace(self.copies / self.epsilon), (self.copies, runs), value, "copies") + value
        return noisy


@dataclass(frozen=True)
class TruncatedGeometric(OneShot):
    """Release a count in 0..n with truncated geometric noise, exact in integers [2]_ (GeoSample, Algorithm 4.8).

    **Claim**: ln(1 + 2^-k) with k = ceil(ln(2 / epsilon)), for counts that differ by at most 1.
    """

    n: ClassVar[int] = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.cumulative(0)[1] >= 2**62:
            raise ValueError(f"epsilon is too small for 64-bit integers, got {self.epsilon!r}")

    @property
    def k(self) -> int:
        """The number of bits of the base."""
        return max(1, math.ceil(math.log(2 / self.epsilon)))

    @property
    def claimed(self) -> float:
        """The epsilon that Theorem 4.7 states."""
        return math.log1p(2.0**-self.k)

    def weakened(self, factor: float) -> TruncatedGeometric:
        """Raise NoNoiseError: the noise changes by powers of two, and not at all from an epsilon of 2 / e on."""
        raise NoNoiseError("truncated geometric noise cannot be divided: its base is a power of two")

    def cumulative(self, count: int) -> tuple[list[int], int]:
        """Return F(0), ..., F(n) of the released count, and their common denominator."""
        base, n = 2**self.k, self.n
        d = (2 * base + 1) * (base + 1) ** (n - 1)
        lower_part = [base ** (count - z) * (base + 1) ** (n - (count - z)) for z in range(count)]
        upper_part = [d - base ** (z - count + 1) * (base + 1) ** (n - 1 - (z - count)) for z in range(count, n)]
        return [*lower_part, *upper_part, d], d

    def __call__(self, data: Data, draws: Draws, runs: int) -> NDArray[np.int64]:
        """Return the noisy counts, (runs,)."""
        count = int(data[0])
        if not 0 <= count <= self.n:
            raise must_be("the count", f"in 0..{self.n}", data[0])
        law, d = self.cumulative(count)

        def sample(draws: Draws) -> NDArray[np.int64]:
            return np.searchsorted(np.array(law), draws.generator.integers(1, d + 1, runs)).astype(np.int64)

        return draws.outcome(lambda: np.diff([cumulative / d for cumulative in (0, *law)]), sample, "count")


@dataclass(frozen=True)
class NoisyHistogram1(OneShot):
    """Release every cell with Laplace noise of scale 1 / epsilon [1]_ (Algorithm 9).

    **Claim**: epsilon where one cell differs by at most 1.
    """

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy cells, (dim, runs)."""
        return self.laplace(1 / self.epsilon, data, draws, runs) + column(data)


class NoisyHistogram2WrongScale(NoisyHistogram1):
    """Broken: the scale is epsilon, not 1 / epsilon [1]_ (Algorithm 10), so the true value is 1 / epsilon."""

    def weakened(self, factor: float) -> NoisyHistogram2WrongScale:
        """Return the same with its noise divided by a factor: a smaller epsilon."""
        return NoisyHistogram2WrongScale(self.epsilon / factor)

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy cells, (dim, runs)."""
        return self.laplace(self.epsilon, data, draws, runs) + column(data)


@dataclass(frozen=True)
class NoisyMax1(OneShot):
    """Report the index of the largest answer with Laplace noise of scale 2 / epsilon [1]_ (Algorithm 5).

    **Claim**: epsilon where every answer differs by at most 1.
    """

    def noisy(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy answers, (dim, runs)."""
        return self.laplace(2 / self.epsilon, data, draws, runs) + column(data)

    def __call__(self, data: Data, draws: Draws, runs: int) -> Outputs:
        """Return the indices, (runs,)."""
        indices: Outputs = np.argmax(self.noisy(data, draws, runs), axis=0)
        return indices


class NoisyMax2(NoisyMax1):
    """Report the index of the largest answer with exponential noise of scale 2 / epsilon [1]_ (Algorithm 6).

    **Claim**: epsilon where every answer differs by at most 1.
    """

    def noisy(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy answers, (dim, runs)."""
        law = Exponential(2 / self.epsilon)
        released: Floats = draws.noise(law, (len(data), runs), column(data), "answers") + column(data)
        return released


class NoisyMax3ReleasesValue(NoisyMax1):
    """Broken: the noisy maximum itself is released, not its index [1]_ (Algorithm 7): dim * epsilon / 2."""

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy maxima, (runs,)."""
        largest: Floats = self.noisy(data, draws, runs).max(axis=0)
        return largest


class NoisyMax4ReleasesValue(NoisyMax2):
    """Broken: the noisy maximum itself is released [1]_ (Algorithm 8); one-sided noise makes that infinite."""

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy maxima, (runs,)."""
        largest: Floats = self.noisy(data, draws, runs).max(axis=0)
        return largest


@dataclass(frozen=True)
class PrefixSum(OneShot):
    """Release every prefix sum of the answers, each with Laplace noise of scale 1 / epsilon [3]_.

    **Claim**: epsilon where one answer differs by at most 1; dim * epsilon where every answer may, which is the
    relation that DP-Sniper [4]_ audits it under.
    """

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy prefix sums, (dim, runs)."""
        return np.cumsum(self.laplace(1 / self.epsilon, data, draws, runs) + column(data), axis=0)
