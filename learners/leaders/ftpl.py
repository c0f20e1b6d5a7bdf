"""Private follow-the-perturbed-leader: Gaussian noisy prefix sums from a tree, then linear minimisation."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from ...errors import must_be, must_be_one_of
from ...mechanisms.draws import Draws
from ...mechanisms.measures.gaussian_dp import gaussian_mu
from ...mechanisms.noise import Gaussian, deviation_of, scale_of
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import TreeState
from ...mechanisms.view import ACTIONS, View
from ..checks import check_delta, check_epsilon
from ..laws import Law, Losses, Neighbours, OutcomeLaw, Score
from ..problems.domains import Cube, Minimiser, Simplex
from ..protocol import Actions, PlayKind
from .ftpl_law import MAX_ROUNDS, sequence_laws
from .leader import Leader
from .leader_ratios import sign_ratio, whitened

Logarithm = Callable[[float], float]
Reading = TypeVar("Reading")


@dataclass(frozen=True, kw_only=True)
class Ftpl(Leader):
    """Play `x_t = argmin <L~_{t-1}, x>`, L~ the padded tree's noisy prefix sum of losses.

    Agarwal & Singh 2017, Algorithm 3 with Algorithm 2. Over the simplex the actions are arms.

    **Claim**: with Gaussian noise of `published_sigma` on every node, (epsilon, delta)-DP (Theorem A.1), one round's
    loss replaced; Theorem 3.5 calls the actions epsilon-DP, which is false. The noisy prefix sums before padding
    are the release: mu-Gaussian DP with mu = sqrt(ceil(log2 T)) * (L2 diameter of the losses) / sigma.

    Parameters
    ----------
    domain : Minimiser
        The set of points with its linear minimiser.
    rounds : int
        T, the horizon.
    noise : Noise
        The law of one node's noise.
    """

    domain: Minimiser

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.domain.dim

    def act(self, state: TreeState, draws: Draws) -> Actions:
        """Return the minimiser at the noisy prefix sum."""
        return self.domain.minimise(self.tree.pad(state, draws))

    @property
    def plays(self) -> PlayKind:
        """Arms over the simplex."""
        return "arms" if isinstance(self.domain, Simplex) else "points"

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy prefix sums; of two arms with Gaussian noise, that of all sequences."""
        if view.channel:
            return super().law(left, right, t0, view, fine=fine)
        pair = Neighbours(left, right, t0)
        of_two_arms = isinstance(self.domain, Simplex) and self.arms == 2 and pair.linear
        enumerable = of_two_arms and 2 <= pair.rounds <= min(MAX_ROUNDS, self.rounds)
        if not (enumerable and isinstance(self.noise, Gaussian) and self.noise.sigma > 0):
            return None
        losses = np.asarray(left), np.asarray(right)
        return OutcomeLaw(partial(sequence_laws, *losses, self.noise.sigma, self.rounds))

    def score(self, left: Losses, right: Losses, t0: int) -> tuple[Score, ...]:
        """Return the likelihood ratio of the cube's signs, or the linear statistic of the noisy prefix sums."""
        pair, deviation = Neighbours(left, right, t0), deviation_of(self.noise)
        if not pair.linear or pair.rounds < 2 or max(deviation, scale_of(self.noise)) <= 0:
            return ()
        if isinstance(self.domain, Cube) and deviation > 0 and pair.rounds <= min(MAX_ROUNDS, self.rounds):
            return (sign_ratio(pair, deviation, self.rounds),)
        return (whitened(pair, self.rounds),)


#: How a "log" is read that the papers print without its base.
LOGARITHMS: dict[str, Logarithm] = {"2": math.log2, "e": math.log, "10": math.log10}
#: How "log" is read in the papers' sigma: the levels of the tree are counted in base 2, and so log T, but the base of
#: the outer logarithm of log T / delta is not printed. The others are one base throughout.
BASES: dict[str, tuple[Logarithm, Logarithm]] = {
    "mixed": (math.log2, math.log),
    **{base: (log, log) for base, log in LOGARITHMS.items()},
}


def regret_sigma(*, rounds: int, dim: int, norm: float, base: str = "mixed") -> float:
    """Return ||Y||_2 sqrt(T / (sqrt(N) log T)), the noise that low regret wants (Theorem 3.5).

    Raises
    ------
    ValueError
        For fewer than two rounds, where log T = 0, and for a base of another name.
    """
    _check_horizon(rounds)
    log, _ = read_in(base, BASES)
    return norm * math.sqrt(rounds / (math.sqrt(dim) * log(rounds)))


def least_sigma(*, rounds: int, size: float, epsilon: float, delta: float, base: str = "mixed") -> float:
    """Return `size` log T log(log T / delta) / epsilon: Theorem A.1 for ||Y||_2, Theorem 3.5's for sqrt(N).

    Parameters
    ----------
    rounds : int
        T, at least 2.
    size : float
        What one round adds, in L2 norm.
    epsilon : float
        In nats; inf for no noise at all.
    delta : float
        In (0, 1).
    base : str
        How the logarithms are read: a name in `BASES`.
    """
    _check_horizon(rounds)
    check_epsilon(epsilon)
    check_delta(delta)
    log, outer = read_in(base, BASES)
    # Theorem A.1 bounds sigma^2, so the sign of the outer logarithm, where log T is below delta, does not matter.
    return 0.0 if math.isinf(epsilon) else size / epsilon * log(rounds) * abs(outer(log(rounds) / delta))


def published_sigma(*, rounds: int, dim: int, norm: float, epsilon: float, delta: float, base: str = "mixed") -> float:
    """Return sigma of Theorem 3.5: the larger of `regret_sigma` and `least_sigma` for sqrt(N); 0 at epsilon = inf.

    Parameters
    ----------
    dim : int
        N.
    norm : float
        ||Y||_2, the largest L2 norm of a loss.
    rounds, epsilon, delta, base
        As in `least_sigma`.
    """
    private = least_sigma(rounds=rounds, size=math.sqrt(dim), epsilon=epsilon, delta=delta, base=base)
    regret = regret_sigma(rounds=rounds, dim=dim, norm=norm, base=base)
    return 0.0 if math.isinf(epsilon) else max(regret, private)


def read_in(base: str, readings: Mapping[str, Reading]) -> Reading:
    """Return how logarithms are read in a base; raise ValueError for one that is none of these readings."""
    if base not in readings:
        raise must_be_one_of("base", readings, base)
    return readings[base]


def gaussian_sigma(*, sensitivity: float, epsilon: float, delta: float) -> float:
    """Return the least sigma of Gaussian noise that is (epsilon, delta)-DP for an L2 sensitivity; 0 at epsilon = inf.

    Balle & Wang 2018, Theorem 8: delta = Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu) for
    mu = sensitivity / sigma.
    """
    check_positive("sensitivity", sensitivity)
    check_epsilon(epsilon)
    check_delta(delta)
    if math.isinf(epsilon):
        return 0.0

    return sensitivity / gaussian_mu(epsilon, delta)


def _check_horizon(rounds: int) -> None:
    if rounds < 2:
        raise must_be("rounds", "at least 2 for follow-the-perturbed-leader (log T = 0)", rounds)
