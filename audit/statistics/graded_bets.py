"""Graded bets against a claim: the clearer a run says its world, the more is staked on that.

A score is what an attack says of a run. A step function of it, fixed before the run, names a world and a grade g in
[0, 1]: the share of the largest stake. With labels that are fair coins, a gambler who stakes the share lambda of her
wealth wins lambda (g - delta) of it where she named the right world, loses lambda (g e^epsilon + delta) where she
named the wrong one, and pays lambda delta where g = 0. For a function f of what is released with values in [0, 1]
(epsilon, delta)-DP says ``E_P f <= e^epsilon E_Q f + delta``, and the same with the worlds exchanged: that is the
definition for events, ``f = 1_S`` [1]_, summed over the events ``f > t`` of all t in [0, 1] (layer cake). With f the
grade where she names the left world, and 0 elsewhere, and h that where she names the right one, her mean gain is

    lambda / 2 (E_P f - e^epsilon E_Q f + E_Q h - e^epsilon E_P h) - lambda delta <= 0,

given all earlier runs, from which f and h may be learned. She never loses more than she has where lambda is at most
``1 / (e^epsilon + delta)``: so her wealth is a nonnegative supermartingale from 1, and so is a mixture of gamblers.
By Ville's inequality [2]_ it ever reaches 1 / alpha with probability at most alpha.

Which grades make her rich fastest is Kelly's question [3]_: without delta, where r is the probability of the named
world given what was released, she stakes ``lambda g = (r - (1 - r) e^epsilon) e^-epsilon``.

References
----------
.. [1] C. Dwork, A. Roth. The algorithmic foundations of differential privacy. 2014, Definition 2.4.
.. [2] J. Ville. Etude critique de la notion de collectif. 1939.
.. [3] J. Kelly. A new interpretation of information rate. Bell System Technical Journal 35, 1956.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from .bounds.variational import transferred

_Floats = NDArray[np.float64]

#: The grades, by their number from 1: a stake that is off by a fifth costs a twenty-fifth of the growth.
SIZES = 2.0 ** (-np.arange(12) / 2)
GRADES = SIZES.size
#: The gamblers: their shares of the largest stake, and the part of all wealth that each has at first. One trusts the
#: grades, but for what makes her rich against slightly larger claims too; others think that they say too much.
_TRUSTING = 0.96
_SHARES = np.concatenate([[_TRUSTING], (np.arange(24) + 0.5) / 24, np.geomspace(1e-4, 1e-2, 8)])
_WEIGHTS = np.repeat([0.5, 0.45 / 24, 0.05 / 8], [1, 24, 8])


def e_to(epsilon: float) -> float:
    """Return e^epsilon, and from 700 on what it is there: it stays finite."""
    return math.exp(min(epsilon, 700.0))


@dataclass(frozen=True)
class Stakes:
    """What is staked on a run of some score.

    Parameters
    ----------
    edges : tuple of float
        Thresholds, ascending.
    grades : tuple of int
        For scores below all edges, and from each edge on: the number of a grade, from 1, the largest, to `GRADES`; it
        is negative where the right world is named, and 0 where nothing is staked. A score of nan has no stake.
    """

    edges: tuple[float, ...]
    grades: tuple[int, ...]

    def __post_init__(self) -> None:
        if len(self.grades) != len(self.edges) + 1 or any(abs(grade) > GRADES for grade in self.grades):
            raise ValueError(f"grades must be {len(self.edges) + 1} numbers from -{GRADES} to {GRADES}")

    @classmethod
    def of_cells(cls, edges: ArrayLike, log_odds: ArrayLike, epsilon: float) -> Stakes:
        """Return the best ones where scores from one edge to the next have these log odds of the left world."""
        odds = np.asarray(log_odds, dtype=np.float64)
        edge = special.expit(np.abs(odds)) - special.expit(-np.abs(odds)) * e_to(epsilon)
        with np.errstate(divide="ignore"):
            number = np.floor(-2 * np.log2(np.maximum(edge, 0.0)) + 1.5)
        grades = np.where((edge > 0) & (number <= GRADES), np.sign(odds) * np.minimum(number, GRADES), 0)
        # Neighbours of one grade are one step.
        new = np.flatnonzero(np.diff(grades))
        step_edges = np.asarray(edges, dtype=np.float64)[new]
        return cls(tuple(step_edges.tolist()), tuple(grades[np.append(0, new + 1)].astype(int).tolist()))

    @classmethod
    def of_log_odds(cls, epsilon: float) -> Stakes:
        """Return the best ones where the score itself is the log odds of the left world."""
        min_sizes = 2.0 ** (-np.arange(GRADES) / 2 - 0.25)
        claimed = e_to(epsilon)
        ends = np.log((min_sizes + claimed) / (1 - min_sizes))
        numbers = range(1, GRADES + 1)
        return cls((*(-ends).tolist(), *ends[::-1].tolist()), (*(-n for n in numbers), 0, *reversed(numbers)))

    def of(self, scores: ArrayLike) -> NDArray[np.int8]:
        """Return the grade of each score, negative where the right world is named."""
        values = np.asarray(scores, dtype=np.float64)
        steps = np.searchsorted(self.edges, values, side="right")
        return np.where(np.isnan(values), 0, np.asarray(self.grades)[steps]).astype(np.int8)

    def transferred(self, scores: _Floats, new_scores: _Floats) -> Stakes:
        """Return the stakes on other scores of the same runs, with about as many of them in each step."""
        return Stakes(transferred(self.edges, scores, new_scores), self.grades)


def by_grade(grades: NDArray[np.int8], left: NDArray[np.bool_]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return which runs were named rightly, and which wrongly, by grade: (runs, grades), 0 or 1."""
    numbers = np.arange(1, GRADES + 1)
    signed = np.where(left, grades, -grades)[:, None]
    return (signed == numbers).astype(np.int64), (signed == -numbers).astype(np.int64)


@dataclass(frozen=True)
class GradedBets:
    """Gamblers against the claims of one delta, whose stakes are fixed for `claimed`.

    A stake that a larger epsilon does not allow counts as lost there, so that their wealth falls in epsilon.

    Parameters
    ----------
    claimed, delta : float
        The claim that the audit is about.
    """

    claimed: float
    delta: float

    def log_wealth(self, n_right: ArrayLike, n_wrong: ArrayLike, runs: ArrayLike, epsilon: float) -> _Floats:
        """Return the log wealth against `epsilon`.

        Parameters
        ----------
        n_right, n_wrong : int array (..., grades)
            Of the runs so far, how many were named rightly and wrongly, by grade.
        runs : int array (...,)
            How many there were.
        """
        c, w, n = np.asarray(n_right), np.asarray(n_wrong), np.asarray(runs)
        stakes = _SHARES[:, None] / (e_to(self.claimed) + self.delta)
        against = e_to(epsilon)
        allowed = stakes[:, 0] * (against + self.delta) < 1
        risk = np.where(allowed[:, None], stakes * (SIZES * against + self.delta), 0.0)
        log = c @ np.log1p(stakes * (SIZES - self.delta)).T + w @ np.log1p(-risk).T
        log = log + (n - c.sum(axis=-1) - w.sum(axis=-1))[..., None] * np.log1p(-stakes[:, 0] * self.delta)
        if not allowed.any():
            return np.full(log.shape[:-1], -np.inf)
        total: _Floats = special.logsumexp(log[..., allowed], axis=-1, b=_WEIGHTS[allowed])
        return total
