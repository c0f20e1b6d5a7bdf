"""What a learner is. Everything else in this room is an instance of this page.

A learner is a *recipe*, never a used object: `start` returns fresh state, so no run can leak into another. All runs of
a block advance together, and the runs are the **last axis** of every array.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.draws import Draws, Floats
from ..mechanisms.noise import Gaussian, Laplace, Noise

#: Played arms, (runs,) integers; or played points, (dim, runs) floats.
Actions = NDArray[Any]
Arms = NDArray[np.intp]
#: What a learner keeps of its runs: each has a type of its own, which is nobody else's business.
State = Any

#: "bandit": `update` gets the loss of the played action, (runs,).
#: "full": `update` gets the loss vector, or the gradient at the played point: (dim, runs), or (dim, 1) when all runs
#: share it.
FeedbackKind = Literal["bandit", "full"]

#: What a learner plays, by its attribute `plays`: arms where it has none, points, or the points of a finite set.
PlayKind = Literal["arms", "points", "finite points"]


class LearnerError(Exception):
    """The learner under audit misbehaved: it raised, played a non-arm, or kept state between runs."""


class LossError(ValueError):
    """A loss is no number, or outside of its set: the fault of who chose it, not of the learner that is told it."""


class Learner(Protocol):
    """The batched protocol of every learner."""

    @property
    def feedback(self) -> FeedbackKind:
        """What `update` is told."""

    @property
    def arms(self) -> int:
        """The number of arms, experts or coordinates: the length of a loss vector."""

    def start(self, runs: int, draws: Draws) -> State:
        """Return fresh state for `runs` independent runs."""

    def act(self, state: State, draws: Draws) -> Actions:
        """Return the next action of every run."""

    def update(self, state: State, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Learn from the round's feedback, in place. `actions` are those played, which an attack may clamp."""


@runtime_checkable
class HasProbabilities(Learner, Protocol):
    """Ability: the law of the next arm given the state.

    A learner whose state is a function of its past actions and feedback (no noise of its own) and that has this
    ability is attacked with its exact likelihood ratio.
    """

    def probabilities(self, state: State) -> Floats:
        """Return the probabilities of the next arm, (arms, runs)."""


@runtime_checkable
class HasRelease(Learner, Protocol):
    """Ability: the noisy quantities whose privacy the proof composes, each a known mean plus `noise`.

    Means are functions of the losses and of what was released before, so the log-likelihood ratio of a release is
    the sum of the log density ratios of `noise`.

    A learner whose paper publishes them, also those of the last round, which no action uses, says so by an attribute
    `publishes` that is true.
    """

    @property
    def noise(self) -> Noise:
        """The law of the noise on each release."""

    def release(self, state: State) -> Floats | None:
        """Return what the last `update` released, (runs,) or (dim, runs); None if it released nothing."""

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the noiseless value of every release under the given world.

        Parameters
        ----------
        actions : array (rounds, [dim,] runs)
            What was played.
        releases : array (releases, [dim,] runs)
            What was released.
        feedback : list of arrays
            What `update` would have been told in that world, round by round.
        """


def publishes(learner: object) -> bool:
    """Tell whether all noisy quantities of a learner are published, also those of the last round."""
    return isinstance(learner, HasRelease) and bool(getattr(learner, "publishes", False))


@runtime_checkable
class HasContexts(Learner, Protocol):
    """Ability: to observe a context before it acts, such as the advice of experts or what is known of a visitor."""

    def observe(self, state: State, context: object, runs: NDArray[np.bool_]) -> None:
        """Take note of the round's context in some of the runs, (runs,): the worlds may have different ones."""


@runtime_checkable
class HasInner(Learner, Protocol):
    """Ability: a bandit wrapper that feeds its inner learner one noisy scalar per batch of rounds."""

    @property
    def inner(self) -> Learner:
        """The wrapped learner."""

    @property
    def noise(self) -> Laplace | Gaussian:
        """The law of the noise on the batch's mean loss."""

    @property
    def batch(self) -> int:
        """The number of rounds an arm is held."""


@runtime_checkable
class OnALine(Protocol):
    """Ability of a two-armed bandit learner whose state is one real number x, moved affinely by the fed loss.

    From x, after `arm` with fed loss y, the next state is `offset(x, arm) + slope(x, arm) * y`. The state starts at
    0. This is what the grid filter integrates exactly.
    """

    def line_probabilities(self, x: Floats) -> Floats:
        """Return the probabilities of the two arms at states x, (2, len(x))."""

    def line_step(self, x: Floats, arm: int) -> tuple[Floats, Floats]:
        """Return (offset, slope) of the affine step at states x, each (len(x),)."""
