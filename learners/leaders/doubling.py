"""The doubling conversion: a learner of known horizon, run for ever."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Gaussian, Laplace, Noise, deviation_of, scale_of
from ...mechanisms.weakening import weakened
from ..checks import check_whole
from ..protocol import Actions, FeedbackKind, HasRelease, PlayKind, State


@dataclass
class DoublingState:
    """The running learner, its own state, its horizon and its rounds left, and what the last round released."""

    learner: HasRelease
    inner: State
    horizon: int
    left: int
    released: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class Doubling:
    """Run a learner of known horizon for ever: afresh for `first` rounds, then for twice as many, and so on.

    **Claim**: that of the learner, because a round belongs to one of the runs only (the paper allows a factor log T).
    What a run's learner releases, over its noise's scale, is the release; not at the end of a run, where it reaches no
    action.

    Parameters
    ----------
    build : callable
        From a horizon to its learner, which must release something.
    first : int
        The first horizon.
    """

    build: Callable[[int], HasRelease]
    first: int = 4
    plays: ClassVar[PlayKind] = "points"

    def __post_init__(self) -> None:
        check_whole("first", self.first)

    @property
    def feedback(self) -> FeedbackKind:
        """The learner's."""
        return self.build(self.first).feedback

    @property
    def arms(self) -> int:
        """The learner's."""
        return self.build(self.first).arms

    @property
    def noise(self) -> Laplace | Gaussian:
        """The law of the noise in what is released: the learner's at scale 1; none where that has none."""
        law = getattr(self.build(self.first), "noise", Laplace(0.0))
        unit = 1.0 if _size(law) > 0 else 0.0
        return Gaussian(unit) if isinstance(law, Gaussian) else Laplace(unit)

    @property
    def oracle(self) -> object:
        """The learner's domain, which regret is measured against."""
        return self.build(self.first).oracle  # type: ignore[attr-defined]

    @property
    def zeta(self) -> float | None:
        """How far a learner that smooths its points plays out of its domain: farthest in the first, shortest run."""
        return getattr(self.build(self.first), "zeta", None)

    @property
    def loss_class(self) -> object:
        """The losses that the learner's theorem is about."""
        return getattr(self.build(self.first), "loss_class", None)

    def weakened(self, factor: float) -> Doubling:
        """Return the same with the noise of every run divided by a factor."""
        return replace(self, build=partial(_build_weaker, self.build, factor))

    def start(self, runs: int, draws: Draws) -> DoublingState:
        """Return the state of the first run."""
        learner = self.build(self.first)
        return DoublingState(learner, learner.start(runs, draws), self.first, self.first)

    def act(self, state: DoublingState, draws: Draws) -> Actions:
        """Return the running learner's action."""
        return state.learner.act(state.inner, draws)

    def update(self, state: DoublingState, actions: Actions, feedback: Floats, draws: Draws) -> None:
        """Teach the running learner; at its horizon start one for twice the rounds in its place."""
        state.left -= 1
        state.released = None
        if state.left:  # at its end it has nothing to play any more
            state.learner.update(state.inner, actions, feedback, draws)
            released = state.learner.release(state.inner)
            state.released = None if released is None else released / (_size(state.learner.noise) or 1.0)
            return
        state.horizon *= 2
        state.left = state.horizon
        state.learner = self.build(state.horizon)
        state.inner = state.learner.start(actions.shape[-1], draws)

    def release(self, state: DoublingState) -> Floats | None:
        """Return what the running learner released, over its noise's scale."""
        return state.released

    def release_means(self, actions: Actions, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the noiseless value of every release, run by run."""
        means, horizon, begin, count_done = [], self.first, 0, 0
        while count_done < len(releases):
            learner = self.build(horizon)
            scale = _size(learner.noise) or 1.0
            rounds = min(horizon - 1, len(feedback) - begin)
            count = rounds // getattr(learner, "batch", 1)
            run_releases = releases[count_done : count_done + count] * scale
            end = begin + horizon
            if count:
                means.append(learner.release_means(actions[begin:end], run_releases, feedback[begin:end]) / scale)
            begin, count_done, horizon = end, count_done + count, 2 * horizon
        return np.concatenate(means)


def _size(noise: Noise) -> float:
    return scale_of(noise) or deviation_of(noise)


def _build_weaker(build: Callable[[int], HasRelease], factor: float, horizon: int) -> HasRelease:
    return weakened(build(horizon), factor)
