"""Renyi divergences of two coins: what an event shows of two worlds.

References
----------
.. [1] T. van Erven, P. Harremoes. Renyi divergence and Kullback-Leibler divergence. IEEE Trans. Inf. Theory 60, 2014.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

_Floats = NDArray[np.float64]

#: Orders that are closer to 1 are taken for it: the divergence there is a little smaller.
NEAR_ONE = 1e-6


def bernoulli_divergence(order: ArrayLike, p: ArrayLike, q: ArrayLike) -> _Floats:
    """Return the Renyi divergence (nats) of a coin of probability p from one of q; the arguments broadcast [1]_.

    ``ln(p^a q^(1-a) + (1-p)^a (1-q)^(1-a)) / (a - 1)`` for orders a > 1, and ``p ln(p/q) + (1-p) ln((1-p)/(1-q))``
    at a = 1, and a little above, where rounding would be divided by a - 1: there it is from below. Infinite where q
    excludes what p allows.
    """
    a, p, q = (np.asarray(x, dtype=np.float64) for x in (order, p, q))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        terms = [np.where(x > 0, a * np.log(x) + (1 - a) * np.log(y), -np.inf) for x, y in ((p, q), (1 - p, 1 - q))]
        of_order = np.logaddexp(*terms) / (a - 1)
    of_order_one = special.rel_entr(p, q) + special.rel_entr(1 - p, 1 - q)
    divergence: _Floats = np.maximum(np.where(a > 1 + NEAR_ONE, of_order, of_order_one), 0.0)
    return divergence


def either_way(order: ArrayLike, p: ArrayLike, q: ArrayLike) -> _Floats:
    """Return the larger divergence of two coins: neighbours are so in either order."""
    return np.maximum(bernoulli_divergence(order, p, q), bernoulli_divergence(order, q, p))
