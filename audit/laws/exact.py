"""Exact epsilon at small horizons: from the laws of the released transcript in both worlds, with no sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ...errors import reworded
from ...learners.abilities import declares, has_grid_law, is_noisy, is_ours
from ...learners.blame import name_of
from ...learners.laws import Law, Neighbours, NotEnumerableError, OutcomeLaw, law_of_shifts
from ...learners.protocol import HasInner, HasProbabilities, HasRelease, Learner, publishes
from ...mechanisms.draws import Floats
from ...mechanisms.view import ACTIONS, View
from ..play.pairs import Pair
from .sequences import FINE, declared_law, log_sequence_laws

#: The deltas that `exact` prints.
DELTAS = (0.0, 1e-3, 1e-2)


#: The most by which two grids of a noisy state, one twice as fine, may differ.
CONVERGED = 1e-3


class NotExactError(ValueError):
    """No exact method covers this learner, pair and view."""


def epsilon_from_laws(p: Floats, q: Floats, delta: float = 0.0) -> float:
    """Return the smallest epsilon >= 0 with p(S) <= e^epsilon q(S) + delta for every event S, both ways.

    Parameters
    ----------
    p, q : arrays (outcomes,)
        Probabilities of the same outcomes in the two worlds.
    delta : float
        In [0, 1).

    Notes
    -----
    The worst event is a set of outcomes of largest ratio, so epsilon is the largest ln((P - delta) / Q) over the
    prefixes of the outcomes sorted by ratio. It is inf where an outcome of mass above delta is impossible in the
    other world.
    """
    if delta == 0:
        with np.errstate(divide="ignore"):
            return _largest_ratio(np.log(p), np.log(q))
    return max(0.0, _one_way(p, q, delta), _one_way(q, p, delta))


def _largest_ratio(log_p: Floats, log_q: Floats) -> float:
    """Return the same at delta = 0, from logarithms: probabilities that no double holds decide as well."""
    possible = (log_p > -math.inf) | (log_q > -math.inf)
    return float(np.max(np.abs(log_p[possible] - log_q[possible]), initial=0.0))


def _one_way(p: Floats, q: Floats, delta: float) -> float:
    possible = p > 0
    p, q = p[possible], q[possible]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
        mass, other = np.cumsum(p[order]), np.cumsum(q[order])
        exceeds = mass > delta  # below that delta explains everything
        return float(np.max(np.log(mass[exceeds] - delta) - np.log(other[exceeds]), initial=-math.inf))


def exact_epsilon(
    learner: Learner, pair: Pair, *, view: View = ACTIONS, deltas: Iterable[float] = DELTAS, cells: int = FINE
) -> dict[float, float]:
    """Return the exact epsilon of a learner between the two worlds of a pair, for each delta.

    Parameters
    ----------
    view : View
        What the adversary sees.
    deltas : iterable of float
        In [0, 1).
    cells : int
        Of the grid of a noisy state, where there is one.

    Returns
    -------
    dict
        delta to epsilon (nats). At delta = 0 it may be a supremum that no event attains.

    Raises
    ------
    NotExactError
        If no exact method covers the case: sequences of arms up to 4096 with a known law, two-armed noisy
        reductions on the grid, entropy FTRL with two experts up to T = 4, Laplace or Gaussian releases, and of any
        learner worlds that differ in the last round alone.

    Notes
    -----
    At delta = 0 nothing is left out: ends of supports are added up, and where a possible outcome is too unlikely for
    double precision there is no exact value. Grids are fixed; halving their step moves the values of the catalogue's
    learners by less than 1e-4 (tested), and where it moves one by more than 1e-3 there is none either.

    Examples
    --------
    >>> from overclaim.learners import BanditReduction, Threshold
    >>> learner = BanditReduction(Threshold(arms=2, threshold=1.0), epsilon=1.0, sensitivity=1.0)
    >>> pair = Pair([[1.0, 1.0], [0.0, 0.0]], [[-1.0, -1.0], [0.0, 0.0]])
    >>> round(exact_epsilon(learner, pair, deltas=(0.0,))[0.0], 4)
    2.0
    """
    deltas = tuple(deltas)
    if pair.shows_nothing(view):
        return dict.fromkeys(deltas, 0.0)
    law = law_of(learner, pair, view, fine=cells >= FINE)
    if law is not None and not isinstance(law, OutcomeLaw):
        try:
            return {delta: law.epsilon(delta) for delta in deltas}
        except ValueError as error:  # a delta below the resolution
            raise reworded(error, str(error), NotExactError) from None
    try:
        epsilons = _from_sequences(learner, pair, deltas, cells)
        coarser = (
            _from_sequences(learner, pair, deltas, cells // 2) if cells >= FINE and has_grid_law(learner) else epsilons
        )
    except NotEnumerableError as error:
        raise reworded(error, str(error), NotExactError) from None
    if any(epsilons[d] != coarser[d] and abs(epsilons[d] - coarser[d]) > CONVERGED for d in deltas):
        raise NotExactError(f"the grid is too coarse here, with {getattr(learner, 'noise', None)}")
    return epsilons


def _from_sequences(learner: Learner, pair: Pair, deltas: tuple[float, ...], cells: int) -> dict[float, float]:
    log_p, log_q = log_sequence_laws(learner, pair, cells=cells)
    p, q = np.exp(log_p), np.exp(log_q)
    return {d: epsilon_from_laws(p, q, d) if d else _largest_ratio(log_p, log_q) for d in deltas}


def law_of(learner: Learner, pair: Pair, view: View, *, fine: bool = True) -> Law | None:
    """Return the law of what a view shows of a pair; None of actions whose sequences must be enumerated.

    One of outcomes may leave some out, and ranks pairs then.

    Parameters
    ----------
    fine : bool
        Whether errors of 1e-3 are too large.

    Raises
    ------
    NotExactError
        If a view has no exact law.
    """
    try:
        return (_release_law if view.channel else declared_law)(learner, pair, view, fine=fine)
    except NotEnumerableError as error:
        raise reworded(error, str(error), NotExactError) from None


def _release_law(learner: Learner, pair: Pair, view: View, *, fine: bool) -> Law:
    """Return the law of what is released: the learner's own, or that of a noisy scalar that all arms move alike."""
    name = name_of(learner)
    if not (is_ours(learner) or declares(learner, "law")):
        raise NotExactError(f"the law of {name}'s output has no closed form here")
    if view.last and not publishes(learner):
        raise NotExactError(f"{name} publishes nothing")
    if not isinstance(learner, HasRelease) or not is_noisy(learner.noise):
        raise NotExactError(f"{name} releases nothing noisy")
    law = declared_law(learner, pair, view, fine=fine)
    if law is not None:
        return law
    # Points, unlike arms, are not all moved alike.
    if not isinstance(learner, HasInner) or not isinstance(learner.inner, HasProbabilities):
        raise NotExactError(f"the release of {name} has no closed form here")
    if learner.batch * (pair.t0 // learner.batch + 1) > pair.rounds - 1:
        return law_of_shifts(learner.noise, [])  # the last release reaches no action
    difference = Neighbours(pair.left, pair.right, pair.t0).difference
    if not np.allclose(difference, difference[0]):
        raise NotExactError("exact releases of a bandit need losses that differ equally for all arms")
    return law_of_shifts(learner.noise, [float(difference[0]) / learner.batch])
