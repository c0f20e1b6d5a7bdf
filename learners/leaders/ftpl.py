"""Private follow-the-perturbed-leader: Gaussian noisy prefix sums from a tree, then linear minimisation."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ...mechanisms.draws import Draws
from ...mechanisms.gaussian_dp import gaussian_mu
from ...mechanisms.philox import LANES
from ...mechanisms.tree import TreeState
from ..checks import check_delta, check_epsilon, check_positive
from ..problems.domains import Linear, Simplex
from ..protocol import Actions, Kernel
from .leader import Leader


@dataclass(frozen=True, kw_only=True)
class Ftpl(Leader):
    """Play `x_t = argmin <L~_{t-1}, x>`, L~ the padded tree's noisy prefix sum of losses.

    Agarwal & Singh 2017, Algorithm 3 with Algorithm 2. Over the simplex the actions are arms.

    **Claim**: with Gaussian noise of `published_sigma` on every node, (epsilon, delta)-DP (Theorem A.1), one round's
    loss replaced; Theorem 3.5 calls it epsilon-DP, which no Gaussian release is. The noisy prefix sums before padding
    are the release: mu-Gaussian DP with mu = sqrt(ceil(log2 T)) * (L2 diameter of the losses) / sigma.

    Parameters
    ----------
    domain : Linear
        The set of points with its linear minimiser.
    rounds : int
        T, the horizon.
    noise : Noise
        The law of one node's noise.
    """

    domain: Linear

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.domain.dim

    def act(self, state: TreeState, draws: Draws) -> Actions:
        """Return the minimiser at the noisy prefix sum."""
        return self.domain.minimise(self.tree.pad(state, draws))

    def kernel(self, width: int = LANES) -> Kernel | None:
        """Return the kernel, where the domain and the noise have blocks."""
        return self._kernel(
            getattr(self.domain, "minimise_block", None), 1.0, points=not isinstance(self.domain, Simplex), width=width
        )


def regret_sigma(*, rounds: int, dim: int, norm: float) -> float:
    """Return ||Y||_2 sqrt(T / (sqrt(N) log2 T)), the noise that low regret wants (Theorem 3.5).

    Raises
    ------
    ValueError
        For fewer than two rounds, where log2 T = 0.
    """
    _check_horizon(rounds)
    return norm * math.sqrt(rounds / (math.sqrt(dim) * math.log2(rounds)))


def published_sigma(*, rounds: int, dim: int, norm: float, epsilon: float, delta: float) -> float:
    """Return sigma of Theorem 3.5: the larger of `regret_sigma` and sqrt(N) log2(T) ln(log2(T) / delta) / epsilon.

    Parameters
    ----------
    rounds, dim : int
        T, at least 2, and N.
    norm : float
        ||Y||_2, the largest L2 norm of a loss.
    epsilon : float
        In nats; inf for no noise at all.
    delta : float
        In (0, 1).
    """
    check_epsilon(epsilon)
    check_delta(delta)
    regret = regret_sigma(rounds=rounds, dim=dim, norm=norm)
    if math.isinf(epsilon):
        return 0.0
    levels = math.log2(rounds)
    return max(regret, math.sqrt(dim) / epsilon * levels * math.log(levels / delta))


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
        raise ValueError(f"rounds must be at least 2 for follow-the-perturbed-leader (log T = 0), got {rounds!r}")
