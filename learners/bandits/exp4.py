"""EXP4: exponential weights over experts who advise on arms; plain, and private in batches."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...errors import must_be
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ...mechanisms.parameters import check_positive
from ...mechanisms.privacy_loss import PrivacyLoss
from ...mechanisms.view import ACTIONS, View
from ..checks import check_batch, check_epsilon, check_fraction
from ..laws import Law, Losses, Neighbours, NotEnumerableError
from ..paths import Paths, by_arm, of_action
from ..problems.advice import Advice, observed
from ..protocol import Arms, FeedbackKind
from ..sampling import LEAST, draw_arm, of_arm, stretches
from .exp4_law import law_of_arms


def expert_weights(losses: Floats, eta: float) -> Floats:
    """Return q proportional to exp(-eta * losses), (experts, runs)."""
    q: Floats = losses.min(axis=0) - losses
    q *= eta
    np.exp(q, out=q)
    q /= q.sum(axis=0)
    return q


def mixture(q: Floats, advice: Floats, gamma: float) -> Floats:
    """Return the law of the next arm, (arms, runs): the experts' mean advice under q, and gamma of the uniform."""
    # einsum sums each run by itself in a fixed order, which a threaded matrix product does not promise.
    p = np.empty((advice.shape[1], q.shape[1]))
    for runs in stretches(q.shape):
        experts = advice if advice.ndim == 2 else advice[..., runs]
        np.einsum("jk,jr->kr" if advice.ndim == 2 else "jkr,jr->kr", experts, q[:, runs], out=p[:, runs])
    p *= 1 - gamma
    p += gamma / advice.shape[1]
    return p


def expert_losses(advice: Floats, p: Floats, arms: Arms, loss: Floats) -> Floats:
    """Return every expert's importance-weighted loss, advice(arm) * loss / p(arm): (experts, runs)."""
    estimates = advice.take(arms, axis=1) if advice.ndim == 2 else advice[:, arms, np.arange(arms.size)]
    estimates *= loss / np.maximum(of_arm(p, arms), LEAST)
    return estimates


@dataclass
class Exp4State:
    """The experts' estimated losses, the law of the next arm if it was asked for, and the round from 0."""

    losses: Floats  # (experts, runs)
    p: Floats | None
    rounds: int
    seen: Floats | None = None  # (experts, arms, runs): the round's advice, where it was observed


@dataclass(frozen=True, kw_only=True)
class Exp4:
    """Exponential weights over experts on importance-weighted losses, with uniform exploration over arms.

    `p = (1 - gamma) sum_j q_j mu^j + gamma / K`, `q` proportional to `exp(-eta * sum of estimates)`; after arm I with
    loss y, expert j's estimate is `mu^j(I) y / p(I)`. Auer et al. 2002. With K experts who each name one arm it is
    EXP3.

    **Claim**: none of its own. Inside `BatchedLaplace` with batch = 1 it is Asi, Raman & Talwar 2025, Algorithm 6,
    which is epsilon-locally private (Theorem 9).

    Parameters
    ----------
    advice : Advice
        The experts' distributions over arms.
    eta : float
        Learning rate, positive.
    gamma : float
        Exploration, in [0, 1].
    """

    advice: Advice
    eta: float
    gamma: float = 0.0
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_fraction("gamma", self.gamma)

    @property
    def arms(self) -> int:
        """K."""
        return self.advice.arms

    def start(self, runs: int, draws: Draws) -> Exp4State:
        """Return equal weights."""
        return Exp4State(np.zeros((self.advice.experts, runs)), None, 0)

    def probabilities(self, state: Exp4State) -> Floats:
        """Return p, (arms, runs)."""
        if state.p is None:
            q = expert_weights(state.losses, self.eta)
            state.p = mixture(q, self._advice(state), self.gamma)
        return state.p

    def observe(self, state: Exp4State, context: object, runs: NDArray[np.bool_]) -> None:
        """Take the round's advice from a context, (experts, arms)."""
        state.seen, state.p = observed(state.seen, context, self.advice, runs), None

    def _advice(self, state: Exp4State) -> Floats:
        return self.advice.at(state.rounds) if state.seen is None else state.seen

    def act(self, state: Exp4State, draws: Draws) -> Arms:
        """Draw an arm from p: one uniform a run."""
        return draw_arm(self.probabilities(state), draws)

    def update(self, state: Exp4State, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add every expert's importance-weighted loss."""
        p = self.probabilities(state)
        state.losses += expert_losses(self._advice(state), p, actions, feedback)
        state.p = state.seen = None
        state.rounds += 1


@dataclass(frozen=True, kw_only=True)
class SteadyExp4(Exp4):
    """EXP4 whose advice is the same in every round.

    With two arms its state is one real number, however many experts: the estimated loss of arm 1 minus that of arm 0,
    times eta. So its exact law is known.

    **Claim**, parameters: as `Exp4`.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.advice.steady:
            raise ValueError("the advice must be the same in every round: an array (experts, arms)")

    def line_probabilities(self, x: Floats) -> Floats:
        """Two arms: expert j has weight exp(mu^j(0) x), up to a common factor."""
        first = self.advice.table[:, :1]
        if len(first) == 2:  # exact in the tails, where a mixture of two cancels
            gap = float(first[0, 0] - first[1, 0])
            q = np.stack([expit(gap * x), expit(-gap * x)])
        else:
            q = expert_weights(-first * x, 1.0)
        return mixture(q, self.advice.table, self.gamma)

    def line_step(self, x: Floats, arm: int) -> tuple[Floats, Floats]:
        """Return (x, -eta / p_0) after arm 0 and (x, eta / p_1) after arm 1."""
        sign = -1.0 if arm == 0 else 1.0
        return x, sign * self.eta / self.line_probabilities(x)[arm]


@dataclass
class BatchedExp4State:
    """The noisy losses so far, the batch so far, and what the last round released."""

    losses: Floats  # (experts, runs): the sum of all releases
    q: Floats  # (experts, runs)
    p: Floats | None  # (arms, runs): the law of the next arm if it was asked for
    total: Floats  # (experts, runs): the batch's importance-weighted losses
    rounds: int
    fed: Floats | None


@dataclass(frozen=True, kw_only=True)
class BatchedExp4:
    """EXP4 with weights fixed for `tau` rounds, then moved by noisy batch means of every expert's estimated loss.

    Asi, Raman & Talwar 2025, Algorithm 2.

    **Claim** (Theorem 10): (epsilon, delta)-DP, losses in [0, 1], one round's loss replaced. Given the actions and the
    earlier releases, one round moves an expert's batch mean by at most `sensitivity * K / (gamma tau)`; the noise on
    each of the N means is Laplace of scale `c sensitivity K sqrt(N ln(1 / delta)) / (gamma tau epsilon)`, which for
    c = 3 advanced composition over experts turns into the claim, with room to spare, while
    `epsilon <= 9 ln(1 / delta)`. That c is 3 is our choice, the paper's is unknown to us. The noisy means of all
    experts with the actions are the release.

    Parameters
    ----------
    advice : Advice
        The experts' distributions over arms.
    eta : float
        Learning rate, positive.
    gamma : float
        Exploration, in (0, 1].
    tau : int
        Rounds in a batch. Every round draws its own arm.
    epsilon, delta : float
        In nats, positive, inf for no noise; and in (0, 1).
    sensitivity : float
        The largest difference of two losses of an arm: 1 on [0, 1].
    constant : float
        c, positive.
    """

    advice: Advice
    eta: float
    gamma: float
    tau: int
    epsilon: float
    delta: float
    sensitivity: float = 1.0
    constant: float = 3.0
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_positive("eta", self.eta)
        check_positive("gamma", self.gamma)
        check_fraction("gamma", self.gamma)
        check_batch(self.tau)
        check_epsilon(self.epsilon)
        check_positive("sensitivity", self.sensitivity)
        check_positive("constant", self.constant)
        if not 0 < self.delta < 1:
            raise must_be("delta", "in (0, 1) for batched EXP4, whose noise grows with ln(1 / delta)", self.delta)

    @property
    def arms(self) -> int:
        """K."""
        return self.advice.arms

    @property
    def noise(self) -> Laplace:
        """The law of the noise on one expert's batch mean."""
        if math.isinf(self.epsilon):
            return Laplace(0.0)
        spread = math.sqrt(self.advice.experts * math.log(1 / self.delta))
        size = self.constant * self.sensitivity * self.arms
        return Laplace(size * spread / (self.gamma * self.tau * self.epsilon))

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what the means depend: within the first batch an arm's probability is no function of the past."""
        return by_arm(self.arms) if of_action(left, right) and t0 < self.tau else None

    def start(self, runs: int, draws: Draws) -> BatchedExp4State:
        """Return equal weights."""
        shape = (self.advice.experts, runs)
        return BatchedExp4State(np.zeros(shape), np.full(shape, 1 / shape[0]), None, np.zeros(shape), 0, None)

    def next_arm(self, state: BatchedExp4State) -> Floats:
        """Return the law of the next arm given the releases, (arms, runs).

        It is not called `probabilities`: the state has noise of its own, so products of these are no likelihood of
        the actions.
        """
        if state.p is None or not self.advice.steady:
            state.p = mixture(state.q, self.advice.at(state.rounds), self.gamma)
        return state.p

    def act(self, state: BatchedExp4State, draws: Draws) -> Arms:
        """Draw an arm: one uniform a run."""
        return draw_arm(self.next_arm(state), draws)

    def update(self, state: BatchedExp4State, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add to the batch; at its end release the noisy means and move the weights."""
        p = self.next_arm(state)
        state.total += expert_losses(self.advice.at(state.rounds), p, actions, feedback)
        state.rounds += 1
        state.fed = None
        if state.rounds % self.tau:
            return
        means = state.total / self.tau
        state.fed = draws.noise(self.noise, means.shape, means, "experts' batch means")
        state.fed += means
        state.losses += state.fed
        state.total[:] = 0
        state.q, state.p = expert_weights(state.losses, self.eta), None

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy batch means with the actions, where the first batch differs; None for actions.

        Later batches add nothing: given what was released before them, they have one law.
        """
        if not view.channel:
            return None
        pair = Neighbours(left, right, t0)
        if t0 >= self.tau or not pair.linear:
            raise NotEnumerableError("batched EXP4's release is exact where the first batch differs")
        if self.tau > view.updates(pair.rounds):
            return PrivacyLoss.of_laplace([])  # the release reaches no action
        advice = self.advice.at(t0)
        equal = np.full((self.advice.experts, 1), 1 / self.advice.experts)
        p = mixture(equal, advice, self.gamma)[:, 0]
        shifts = advice * pair.difference / (p * self.tau * self.noise.scale)  # (experts, arms), in scales
        return law_of_arms(p, shifts.T)

    def release(self, state: BatchedExp4State) -> Floats | None:
        """Return the noisy batch means at the end of a batch, (experts, runs)."""
        return state.fed

    def release_means(self, actions: Arms, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the batch means, (releases, experts, runs), by replay.

        A mean depends on the batch's arms and on their probabilities, which are functions of the earlier releases.
        """
        means = np.zeros_like(releases)
        losses = np.zeros(releases.shape[1:])
        for b, released in enumerate(releases):
            q = expert_weights(losses, self.eta)
            for t in range(b * self.tau, (b + 1) * self.tau):
                advice = self.advice.at(t)
                means[b] += expert_losses(advice, mixture(q, advice, self.gamma), actions[t], feedback[t])
            losses += released
        means /= self.tau
        return means
