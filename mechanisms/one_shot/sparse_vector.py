"""The sparse vector technique: six published variants, four of them broken, and two relatives.

Answers are above (1), below (0), or not given after the limit of `limit` answers above (-1).

References
----------
.. [1] M. Lyu, D. Su, N. Li. Understanding the sparse vector technique for differential privacy. VLDB 2017.
.. [2] Y. Wang, Z. Ding, G. Wang, D. Kifer, D. Zhang. Proving differential privacy with shadow execution. PLDI 2019.
.. [3] B. Bichsel, S. Steffen, I. Bogunovic, M. Vechev. DP-Sniper. S&P 2021.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ..draws import Draws, Floats
from ..noise import Laplace
from ..parameters import check_count, check_finite
from .classic import Data, OneShot, Outputs, column

#: Where an answer is a number: "below the threshold" and "no answer any more".
NO_ANSWER, STOPPED = np.nan, -np.inf


@dataclass(frozen=True)
class SparseVector1(OneShot):
    """Noise on the threshold once and on every query, both halves of epsilon; stop after `limit` answers above.

    Lyu, Su & Li 2017, Algorithm 1.

    **Claim**: epsilon where every answer differs by at most 1.

    Parameters
    ----------
    epsilon : float
    limit : int
        c, the number of answers above, positive.
    threshold : float
        T, finite.
    """

    limit: int = 1
    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("limit", self.limit)
        check_finite("threshold", self.threshold)

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 2 / self.epsilon, 4 * self.limit / self.epsilon

    def compare(self, data: Data, draws: Draws, runs: int) -> tuple[NDArray[np.bool_], Floats]:
        """Return which noisy answers reach the noisy threshold, and the noisy answers: (dim, runs)."""
        law = Laplace(self.scales[0])
        threshold = draws.noise(law, (runs,), self.threshold, "threshold") + self.threshold
        noisy = self.laplace(self.scales[1], data, draws, runs) + column(data)
        return noisy >= threshold, noisy

    def stopped(self, is_above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return where `limit` answers above came before, (dim, runs)."""
        stopped, before = np.empty(is_above.shape, dtype=np.bool_), np.zeros(is_above.shape[1], dtype=np.int32)
        for answers, row in zip(is_above, stopped, strict=True):
            np.greater_equal(before, self.limit, out=row)
            before += answers
        return stopped

    def released(self, numbers: Floats, is_above: NDArray[np.bool_]) -> Floats:
        """Return the numbers of answers above, `BELOW` or `STOPPED` in place of others, (dim, runs)."""
        kind = np.maximum(~is_above, self.stopped(is_above).view(np.uint8) * np.uint8(2))
        released: Floats = numbers + np.array([-0.0, NO_ANSWER, STOPPED]).take(kind)  # -0 leaves every number as it is
        return released

    def __call__(self, data: Data, draws: Draws, runs: int) -> Outputs:
        """Return the answers, (dim, runs)."""
        exceeds, _ = self.compare(data, draws, runs)
        return exceeds.view(np.int8) | -self.stopped(exceeds).view(np.int8)  # all bits of -1 are 1


class SparseVector2(SparseVector1):
    """The threshold's noise is drawn again after every answer above: Algorithm 2, the textbook's.

    **Claim**: epsilon where every answer differs by at most 1.
    """

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 2 * self.limit / self.epsilon, 4 * self.limit / self.epsilon

    def compare(self, data: Data, draws: Draws, runs: int) -> tuple[NDArray[np.bool_], Floats]:
        """Return which noisy answers reach the noisy threshold of their time, and the noisy answers."""
        law = Laplace(self.scales[0])
        noisy = self.laplace(self.scales[1], data, draws, runs) + column(data)
        exceeds = np.empty(noisy.shape, dtype=np.bool_)

        def fresh() -> Floats:
            threshold: Floats = draws.noise(law, (runs,), self.threshold, "threshold") + self.threshold
            return threshold

        threshold = fresh()
        for i, answer in enumerate(noisy):
            exceeds[i] = answer >= threshold
            np.copyto(threshold, fresh(), where=exceeds[i])
        return exceeds, noisy


class SparseVector3ReleasesValue(SparseVector1):
    """Broken: answers above are released with the very noise that was compared: Algorithm 3, infinite."""

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 2 / self.epsilon, 2 * self.limit / self.epsilon

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the noisy numbers above, `BELOW` or `STOPPED`, (dim, runs)."""
        exceeds, noisy = self.compare(data, draws, runs)
        return self.released(noisy, exceeds)


class SparseVector4UnscaledNoise(SparseVector1):
    """Broken: a query's noise grows neither with the limit nor with the two sides: Algorithm 4."""

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 4 / self.epsilon, 4 / (3 * self.epsilon)


class SparseVector5NoQueryNoise(SparseVector1):
    """Broken: the queries have no noise and there is no limit: Algorithm 5, infinite."""

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 2 / self.epsilon, 0.0

    def stopped(self, is_above: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Never stop."""
        return np.zeros(is_above.shape, dtype=np.bool_)


class SparseVector6NoLimit(SparseVector5NoQueryNoise):
    """Broken: there is no limit on the answers above: Algorithm 6, grows with the number of queries."""

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 2 / self.epsilon, 2 / self.epsilon


@dataclass(frozen=True)
class NumericalSparseVector(SparseVector1):
    """Answers above are released with fresh noise; a third of epsilon each [2]_.

    **Claim**: epsilon where every answer differs by at most 1.
    """

    limit: int = 2

    @property
    def scales(self) -> tuple[float, float]:
        """The scales of the threshold's noise and of a query's."""
        return 3 / self.epsilon, 6 * self.limit / self.epsilon

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the freshly noisy numbers above, `BELOW` or `STOPPED`, (dim, runs)."""
        exceeds, _ = self.compare(data, draws, runs)
        numbers = self.laplace(3 * self.limit / self.epsilon, data, draws, runs) + column(data)
        return self.released(numbers, exceeds)


@dataclass(frozen=True)
class SparseVector34Parallel(OneShot):
    """Broken: variants 3 and 4, both broken, on the same data [3]_."""

    limit: int = 2
    threshold: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_count("limit", self.limit)
        check_finite("threshold", self.threshold)

    def __call__(self, data: Data, draws: Draws, runs: int) -> Floats:
        """Return the answers of both, (2 dim, runs)."""
        kinds = (SparseVector3ReleasesValue, SparseVector4UnscaledNoise)
        return np.concatenate([kind(self.epsilon, self.limit, self.threshold)(data, draws, runs) for kind in kinds])
