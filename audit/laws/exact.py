"""Exact epsilon at small horizons: from the laws of the released transcript in both worlds, with no sampling."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from ...errors import reworded
from ...learners.abilities import NotEnumerableError, has_grid_law, is_ours
from ...learners.bandits.exp4 import BatchedExp4
from ...learners.blame import name_of
from ...learners.leaders.ftpl import Ftpl
from ...learners.leaders.ftrl import Ftrl
from ...learners.leaders.pftal import BanditPftal, Pftal
from ...learners.leaders.private_bandit import PrivateBandit
from ...learners.protocol import HasInner, HasProbabilities, HasRelease, Learner, publishes
from ...mechanisms.draws import Floats
from ...mechanisms.measures.gaussian_dp import gaussian_epsilon
from ...mechanisms.noise import Gaussian, L2Laplace, Laplace, scale_of
from ...mechanisms.privacy_loss import PrivacyLoss
from ...mechanisms.tree import nodes_holding
from ...mechanisms.view import ACTIONS, View
from ..play.pairs import Pair
from . import bandit_law, exp4_law, ftpl_law, ftrl_law, pftal_law
from .sequences import FINE, log_sequence_laws

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
    kept = p > 0
    p, q = p[kept], q[kept]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
        mass, other = np.cumsum(p[order]), np.cumsum(q[order])
        said = mass > delta  # below that delta explains everything
        return float(np.max(np.log(mass[said] - delta) - np.log(other[said]), initial=-math.inf))


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
    check_exact(learner, view)
    if view.channel:
        updates = view.updates(pair.rounds)
        mu = release_mu(learner, pair, updates)
        if mu == 0:
            return dict.fromkeys(deltas, 0.0)
        if mu is not None:
            return {d: gaussian_epsilon(mu, d) if d else math.inf for d in deltas}
        mus = bandit_law.release_mus(learner, pair, updates) if isinstance(learner, PrivateBandit) else None
        if mus is not None:
            return {d: bandit_law.epsilon_of_either(mus, d) for d in deltas}
        losses = release_loss(learner, pair, updates)
        return _from_loss(losses, deltas)
    if isinstance(learner, Ftrl):
        law = ftrl_law.privacy_loss(learner, pair, fine=cells >= FINE)
        if law is None:
            raise NotExactError(
                "FTRL is exact with entropy over two arms, up to 4 rounds, differing in round 1, unless noise is tiny"
            )
        # At delta = 0 it is the supremum that ever larger prefix sums approach.
        epsilons = _from_loss(law, tuple(d for d in deltas if d))
        return {d: epsilons[d] if d else ftrl_law.supremum(learner, pair) for d in deltas}
    try:
        epsilons = _from_sequences(learner, pair, deltas, cells)
        again = (
            _from_sequences(learner, pair, deltas, cells // 2) if cells >= FINE and has_grid_law(learner) else epsilons
        )
    except NotEnumerableError as error:
        raise reworded(error, str(error), NotExactError) from None
    if any(epsilons[d] != again[d] and abs(epsilons[d] - again[d]) > CONVERGED for d in deltas):
        raise NotExactError(f"the grid is too coarse here, with {getattr(learner, 'noise', None)}")
    return epsilons


def check_exact(learner: Learner, view: View) -> None:
    """Raise NotExactError for a learner whose output in a view has no closed form here."""
    if not is_ours(learner) and (bool(view.channel) or isinstance(learner, Ftrl)):
        raise NotExactError(f"the law of {name_of(learner)}'s output has no closed form here")
    if view.last and not publishes(learner):
        raise NotExactError(f"{name_of(learner)} publishes nothing")


def _from_loss(losses: PrivacyLoss, deltas: tuple[float, ...]) -> dict[float, float]:
    try:
        return {d: losses.epsilon(d) for d in deltas}
    except ValueError as error:  # a delta below the resolution
        raise reworded(error, str(error), NotExactError) from None


def _from_sequences(learner: Learner, pair: Pair, deltas: tuple[float, ...], cells: int) -> dict[float, float]:
    log_p, log_q = log_sequence_laws(learner, pair, cells=cells)
    p, q = np.exp(log_p), np.exp(log_q)
    return {d: epsilon_from_laws(p, q, d) if d else _largest_ratio(log_p, log_q) for d in deltas}


def release_mu(learner: Learner, pair: Pair, updates: int) -> float | None:
    """Return the mu of Gaussian DP that a Gaussian release has on a pair; None where that is not known."""
    if isinstance(learner, Ftpl) and isinstance(pair.left, np.ndarray):
        return ftpl_law.release_mu(learner, pair, updates)
    if isinstance(learner, HasInner) and isinstance(learner.noise, Gaussian) and learner.noise.sigma > 0:
        shift = _arm_shift(learner, pair)
        return None if shift is None else shift / learner.noise.sigma
    return None


def _arm_shift(learner: HasInner, pair: Pair) -> float | None:
    """Return by how much the worlds move a noisy scalar, whatever the arm; None where that depends on more."""
    if not isinstance(learner.inner, HasProbabilities):  # points, not arms
        return None
    if learner.batch * (pair.t0 // learner.batch + 1) > pair.rounds - 1:
        return 0.0  # the last release reaches no action
    difference = _difference(pair)
    if not np.allclose(difference, difference[0]):
        raise NotExactError("exact releases of a bandit need losses that differ equally for all arms")
    return float(difference[0]) / learner.batch


def _difference(pair: Pair) -> Floats:
    """Return by how much the losses of the differing round differ, arm by arm."""
    if not isinstance(pair.left, np.ndarray) or not isinstance(pair.right, np.ndarray):
        raise NotExactError("exact releases need linear losses")
    difference: Floats = np.abs(pair.left[pair.t0] - pair.right[pair.t0])
    return difference


def release_loss(learner: Learner, pair: Pair, updates: int) -> PrivacyLoss:
    """Return the privacy loss of what a Laplace release shows of the first `updates` rounds, in closed form."""
    if not isinstance(learner, HasRelease) or (
        not isinstance(learner.noise, Gaussian) and scale_of(learner.noise) == 0
    ):
        raise NotExactError(f"{name_of(learner)} releases nothing noisy")
    if not isinstance(learner.noise, Laplace) and not (isinstance(learner.noise, L2Laplace) and learner.arms == 1):
        noise = type(learner.noise).__name__
        raise NotExactError(f"exact releases of {name_of(learner)} need Laplace noise, got {noise}")
    if isinstance(learner, BatchedExp4):
        losses = exp4_law.release_loss(learner, pair)
        if losses is None:
            raise NotExactError("batched EXP4's release is exact where the first batch differs")
        return losses
    if isinstance(learner, Pftal | BanditPftal):
        losses = pftal_law.release_loss(learner, pair, updates)
        if losses is None:
            raise NotExactError("PFTAL's release is exact in one dimension")
        return losses
    if pair.t0 == updates:
        return PrivacyLoss.of_laplace([])  # the last release reaches no action
    difference, scale = _difference(pair), learner.noise.scale
    shift = _arm_shift(learner, pair) if isinstance(learner, HasInner) else None
    if shift is not None:
        return PrivacyLoss.of_laplace([shift / scale] if shift else [])
    if not isinstance(learner, Ftrl):
        raise NotExactError(f"the release of {name_of(learner)} has no closed form here")
    nodes = nodes_holding(pair.t0, updates)
    return PrivacyLoss.of_laplace([float(d) / scale for d in difference for _ in nodes])
