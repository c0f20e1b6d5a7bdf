"""Renyi and zero-concentrated differential privacy: divergences of one order, and of all of them.

References
----------
.. [2] M. Bun, T. Steinke. Concentrated differential privacy. TCC 2016.
.. [3] I. Mironov. Renyi differential privacy. CSF 2017.
.. [4] C. Canonne, G. Kamath, T. Steinke. The discrete Gaussian for differential privacy. NeurIPS 2020, Proposition 12.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .divergences import either_way
from .measure import Floats, Measure, directed, number_text, pair_of, require_level

#: Orders, less 1, at which a divergence is looked at before and after its largest share of the order is bracketed; 0
#: is the limit, the Kullback-Leibler divergence.
_ORDERS = np.concatenate([[0.0], np.geomspace(1e-4, 1e4, 64)])
_FINER = np.linspace(-1.0, 1.0, 33)


def _approximate(order: ArrayLike, epsilon: ArrayLike, delta: float) -> Floats:
    """Return the epsilon that Renyi DP of an order implies at a delta above 0."""
    a = np.asarray(order, dtype=np.float64)
    epsilons: Floats = np.maximum(epsilon + np.log1p(-1 / a) - (np.log(delta) + np.log(a)) / (a - 1), 0.0)
    return epsilons


@dataclass(frozen=True)
class RDP(Measure):
    """Renyi differential privacy: the divergence of the given order is at most epsilon, both ways [3]_.

    Parameters
    ----------
    order : float
        Finite, above 1.
    epsilon : float
        In nats, positive and finite.

    Examples
    --------
    >>> round(float(RDP(2.0, 1.0).needed(0.75, 0.25)), 4)  # the divergence of order 2 of two coins
    0.8473
    """

    kind: ClassVar[str] = "rdp"
    order: float
    epsilon: float

    def __post_init__(self) -> None:
        require_level("order", self.order, 1.0)
        require_level("epsilon", self.epsilon)
        super().__post_init__()

    @classmethod
    def of_plan(cls, value: object) -> RDP:
        """Return the measure of [order, epsilon]."""
        return cls(*pair_of("rdp", "[order, epsilon]", value))

    def as_options(self) -> list[str]:
        """Return the option that makes this claim."""
        return ["--rdp", f"{number_text(self.order)}:{number_text(self.epsilon)}"]

    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return the divergence of the two coins, the larger of both ways."""
        return directed(p, q, either_way(self.order, p, q))

    def approximate(self, delta: float) -> float:
        """Return ``epsilon + ln((a-1)/a) - (ln delta + ln a)/(a-1)`` [4]_."""
        return float(_approximate(self.order, self.epsilon, delta)) if delta > 0 else math.inf


@dataclass(frozen=True)
class ZCDP(Measure):
    """Zero-concentrated differential privacy: the divergence of every order a > 1 is at most rho a, both ways [2]_.

    Parameters
    ----------
    rho : float
        Positive and finite.

    Examples
    --------
    >>> round(ZCDP(0.5).approximate(1e-5), 2)  # the epsilon that it implies
    4.73
    """

    kind: ClassVar[str] = "zcdp"
    rho: float

    def __post_init__(self) -> None:
        require_level("rho", self.rho)
        super().__post_init__()

    def needed(self, p: ArrayLike, q: ArrayLike) -> Floats:
        """Return the largest divergence of the coins by its order, to about 1e-4 of itself from below."""
        p, q = (np.asarray(x, dtype=np.float64)[..., None] for x in np.broadcast_arrays(p, q))

        def share(orders: Floats) -> Floats:
            return either_way(orders, p, q) / orders

        coarse = share(1 + _ORDERS)
        place = np.argmax(np.nan_to_num(coarse, nan=-1.0), axis=-1)[..., None]
        finer = 1 + _ORDERS[np.maximum(place, 1)] * (_ORDERS[2] / _ORDERS[1]) ** _FINER
        best = np.maximum(coarse.max(axis=-1), share(finer).max(axis=-1))
        return directed(p[..., 0], q[..., 0], best)

    def approximate(self, delta: float) -> float:
        """Return the least epsilon that Renyi DP of some order gives at a delta, to about 1e-3 from above [4]_."""
        if delta <= 0:
            return math.inf
        # A small rho has its least beyond the usual orders: without the terms in ln a it is at this distance from 1.
        max_order = max(1.0, math.sqrt(-math.log(delta) / self.rho)) if delta < 1 else 1.0
        coarse = 1 + np.append(_ORDERS[1:], max_order * _ORDERS[1:])
        place = np.argmin(_approximate(coarse, self.rho * coarse, delta))
        finer = 1 + (coarse[place] - 1) * (_ORDERS[2] / _ORDERS[1]) ** _FINER
        return float(np.min(_approximate(finer, self.rho * finer, delta)))
