"""EXP3, and EXP2 over arms: exponential weights on importance-weighted losses, with uniform exploration."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import expit

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.parameters import check_positive
from ..checks import check_arms, check_fraction
from ..protocol import Arms, FeedbackKind
from ..sampling import LEAST, smallest_type
from ..weights import WeightsState


@dataclass(frozen=True, kw_only=True)
class Exp3:
    """Exponential weights over arms, mixed with the uniform distribution.

    `p = (1 - gamma) q + gamma / K`, `q` proportional to `exp(-eta * sum of estimates)`; the played arm's estimate is
    its fed loss over its probability, the others' is 0. Auer, Cesa-Bianchi, Freund & Schapire 2002; Asi, Raman &
    Talwar 2025, Algorithm 3. Over arms, EXP2 with uniform exploration (Agarwal & Singh 2017, Algorithm 5) is the same
    algorithm.

    **Claim**: none of its own. Without noise it leaks without bound (Asi, Raman & Talwar 2025, Appendix G.1).

    Parameters
    ----------
    arms : int
        K, at least 1.
    eta : float
        Learning rate, positive.
    gamma : float
        Exploration, in [0, 1].

    Examples
    --------
    The first arm was played at probability 1/2 and lost 1, so its estimate is 2 and its weight falls to exp(-1):

    >>> import numpy as np
    >>> from overclaim.mechanisms import Draws
    >>> learner = Exp3(arms=2, eta=0.5)
    >>> state = learner.start(1, Draws(0))
    >>> learner.update(state, np.array([0]), np.array([1.0]), Draws(0))
    >>> learner.probabilities(state).round(3).tolist()
    [[0.269], [0.731]]
    """

    arms: int
    eta: float
    gamma: float = 0.0
    feedback: FeedbackKind = "bandit"
    #: Whether every arm always has a positive probability, though perhaps one that no double holds.
    plays_every_arm: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_positive("eta", self.eta)
        check_fraction("gamma", self.gamma)

    def start(self, runs: int, draws: Draws) -> WeightsState:
        """Return equal weights for every run."""
        return WeightsState.fresh(self.arms, runs)

    def probabilities(self, state: WeightsState) -> Floats:
        """Return p, (arms, runs)."""
        p: Floats = state.weights * ((1 - self.gamma) / state.total)
        p += self.gamma / self.arms
        return p

    def act(self, state: WeightsState, draws: Draws) -> Arms:
        """Draw an arm from p by inverse distribution function: one uniform a run."""
        u = draws.uniform(state.total.shape)
        if self.gamma == 1:
            return (u * self.arms).astype(np.intp)
        explores = np.flatnonzero(u < self.gamma)  # there u is uniform on [0, gamma), elsewhere on [gamma, 1)
        explored = u[explores] / self.gamma  # below 1, also in floating point
        explored *= self.arms
        u -= self.gamma
        u *= state.total  # the weights need no normalising
        u *= 1 / (1 - self.gamma)
        arms = np.zeros(u.shape, dtype=smallest_type(self.arms))
        for weight in state.weights[:-1]:
            u -= weight
            arms += u >= 0
        arms[explores] = explored
        return arms.astype(np.intp)

    def probability_at(self, state: WeightsState, places: Arms) -> Floats:
        """Return p of the arm whose entries lie at `places` of the state's arrays, (runs,)."""
        played = state.weights_at(places)
        played /= state.total
        played *= 1 - self.gamma
        played += self.gamma / self.arms
        return played

    def update(self, state: WeightsState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Subtract eta times the importance-weighted loss from the played arm's log-weight."""
        places = state.places(actions)
        played = self.probability_at(state, places)
        if self.gamma == 0:
            np.maximum(played, LEAST, out=played)
        change = feedback / played
        change *= -self.eta
        state.shift_at(places, change)

    def line_probabilities(self, x: Floats) -> Floats:
        """Two arms: the state is the log-weight of arm 0 minus that of arm 1."""
        q = expit(np.stack([x, -x]))
        p: Floats = (1 - self.gamma) * q + self.gamma / 2
        return p

    def line_step(self, x: Floats, arm: int) -> tuple[Floats, Floats]:
        """Return (x, -eta / p_0) after arm 0 and (x, eta / p_1) after arm 1."""
        sign = -1.0 if arm == 0 else 1.0
        return x, sign * self.eta / self.line_probabilities(x)[arm]
