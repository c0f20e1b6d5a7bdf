"""The batched conversion of Asi, Raman & Talwar: hold an arm, average its losses, add noise once."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Laplace
from ...mechanisms.parameters import check_positive
from ..checks import check_batch, check_epsilon
from ..next_arm import next_arm
from ..paths import Paths, by_arm, of_action
from ..protocol import Arms, FeedbackKind, HasContexts, Learner


@dataclass
class BatchedState:
    """The inner state, the held arm, and the batch so far."""

    inner: object
    held: Arms
    rounds: int  # played in the current batch
    total: Floats  # (runs,): losses of the current batch
    fed: Floats | None  # (runs,): what the last round released


@dataclass(frozen=True, kw_only=True)
class _Batched:
    """Hold the inner learner's arm for `batch` rounds and feed it the mean loss, plus noise if there is any."""

    inner: Learner = field(kw_only=False)
    batch: int
    feedback: FeedbackKind = "bandit"

    @property
    def arms(self) -> int:
        """The number of arms."""
        return self.inner.arms

    @property
    def noise(self) -> Laplace:
        """The law of the noise on the batch mean: none."""
        return Laplace(0.0)

    def start(self, runs: int, draws: Draws) -> BatchedState:
        """Return the inner learner's fresh state."""
        check_batch(self.batch)
        arms = np.zeros(runs, dtype=np.intp)
        return BatchedState(self.inner.start(runs, draws), arms, 0, np.zeros(runs), None)

    def observe(self, state: BatchedState, context: object, runs: NDArray[np.bool_]) -> None:
        """Show the inner learner the context of the round in which it is asked."""
        if state.rounds == 0:
            cast(HasContexts, self.inner).observe(state.inner, context, runs)

    def act(self, state: BatchedState, draws: Draws) -> Arms:
        """Ask the inner learner at the start of a batch; hold its arm within."""
        if state.rounds == 0:
            state.held = self.inner.act(state.inner, draws)
        return state.held

    def update(self, state: BatchedState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add to the batch; at its end feed the inner learner the mean plus noise."""
        state.rounds += 1
        state.held = actions  # an attack may have clamped them
        state.fed = None
        if self.batch > 1:
            state.total += feedback
            if state.rounds < self.batch:
                return
            feedback = state.total / self.batch
            state.total[:] = 0
        state.fed = draws.noise(self.noise, actions.shape, feedback, "batch mean")
        state.fed += feedback
        state.rounds = 0
        self.inner.update(state.inner, actions, state.fed, draws)

    def next_arm(self, state: BatchedState) -> Floats | None:
        """Return what the inner learner says of its next arm, (arms, runs); None within a batch."""
        return None if state.rounds else next_arm(self.inner, state.inner)

    def release(self, state: BatchedState) -> Floats | None:
        """Return the noisy batch mean at the end of a batch, (runs,)."""
        return state.fed

    def release_means(self, actions: Arms, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the mean losses of the batches, (releases, runs)."""
        rows = [np.broadcast_to(f, releases.shape[1:]) for f in feedback[: len(releases) * self.batch]]
        means: Floats = np.stack(rows).reshape(len(releases), self.batch, -1).mean(axis=1)
        return means


@dataclass(frozen=True, kw_only=True)
class BatchedLaplace(_Batched):
    """Feed the inner bandit learner batch means with Laplace(sensitivity / (batch * epsilon)) noise.

    Asi, Raman & Talwar 2025, Algorithm 1.

    **Claim** (Lemma 3): epsilon-DP for every inner learner, losses in [0, 1], one round's loss replaced. Tight. The
    noisy means with the actions are the release.

    Parameters
    ----------
    inner : Learner
        A bandit learner over arms.
    epsilon : float
        In nats, positive; inf for no noise.
    batch : int
        tau, the rounds that an arm is held. Rounds after the last full batch are played but not learned from.
    sensitivity : float
        The largest difference of two losses of an arm: 1 on [0, 1].
    """

    epsilon: float
    sensitivity: float = 1.0

    def __post_init__(self) -> None:
        check_batch(self.batch)
        check_epsilon(self.epsilon)
        check_positive("sensitivity", self.sensitivity)

    @property
    def noise(self) -> Laplace:
        """The law of the noise on the batch mean."""
        return Laplace(0.0 if math.isinf(self.epsilon) else self.sensitivity / (self.batch * self.epsilon))

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a batch mean depends: it moves by the loss of the arm that was played."""
        return by_arm(self.arms) if of_action(left, right) else None


@dataclass(frozen=True, kw_only=True)
class MiniBatch(_Batched):
    """Feed the inner bandit learner batch means without noise.

    Our reading of the mini-batch loop of Tossou & Dimitrakakis 2017 (*choice*: their batch details are not in the
    texts we have).

    **Claim**: with EXP3 inside and batches of about T^(1/3), O(sqrt(ln T))-DP, through their Theorem 3.3, which
    Asi, Raman & Talwar 2025, Appendix G.1, explain cannot be verified.

    Parameters
    ----------
    inner : Learner
        A bandit learner over arms.
    batch : int
        The rounds that an arm is held.
    """

    def __post_init__(self) -> None:
        check_batch(self.batch)

    def probabilities(self, state: BatchedState) -> Floats:
        """Return the law of the next arm, (arms, runs): certain within a batch."""
        if state.rounds:
            certain: Floats = (np.arange(self.arms)[:, None] == state.held).astype(float)
            return certain
        return self.inner.probabilities(state.inner)  # type: ignore[attr-defined,no-any-return]
