"""What a learner may know of its own law on two neighbouring loss sequences, which an audit then need not estimate.

`law(left, right, t0, view, fine)` is the exact law of what a view shows, `score(left, right, t0)` are log-likelihood
ratios of its actions. `left` and `right` are the losses of both inputs, which differ in round t0 (from 0) alone. An
audit believes what is the learner's own (`abilities.declares`). A law decides exact values: one that is not ours must
be of outcomes, which are held against play. A wrong score costs power alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

import numpy as np
from numpy.typing import NDArray

from ..mechanisms.draws import Floats
from ..mechanisms.measures.gaussian_dp import gaussian_delta, gaussian_epsilon
from ..mechanisms.noise import Gaussian, L2Laplace, Laplace
from ..mechanisms.numerics import bisect
from ..mechanisms.privacy_loss import PrivacyLoss
from ..mechanisms.view import ACTIONS, View
from .problems.losses import Adaptive, Loss
from .protocol import Actions

#: The losses of all rounds: an array (rounds, arms) where all are linear, else one loss a round.
Losses = Sequence[Loss | Adaptive] | NDArray[np.float64]


class NotEnumerableError(ValueError):
    """The law of this learner is not computable here."""


@dataclass(frozen=True)
class Neighbours:
    """Two loss sequences that differ in one round."""

    left: Losses
    right: Losses
    t0: int

    @property
    def rounds(self) -> int:
        """T."""
        return len(self.left)

    @property
    def linear(self) -> bool:
        """Whether the losses are vectors."""
        return isinstance(self.left, np.ndarray) and isinstance(self.right, np.ndarray)

    @property
    def difference(self) -> Floats:
        """By how much the losses of the differing round differ, arm by arm.

        Raises
        ------
        NotEnumerableError
            If they are not linear.
        """
        if not self.linear:
            raise NotEnumerableError("exact releases need linear losses")
        difference: Floats = np.abs(np.asarray(self.left[self.t0]) - np.asarray(self.right[self.t0]))
        return difference


@dataclass(frozen=True)
class OutcomeLaw:
    """The probabilities of all outcomes under both inputs.

    Attributes
    ----------
    laws : callable
        Computes both, arrays (outcomes,). Outcomes that are sequences of arms are read as numbers in base `arms`, the
        first arm most significant.
    exact : bool
        Whether no outcome is left out; else the law ranks pairs and gives no exact value.
    """

    laws: Callable[[], tuple[Floats, Floats]]
    exact: bool = True


@dataclass(frozen=True)
class GaussianLaw:
    """The law of mu-Gaussian releases, of which one is made, each as often, and which one is seen."""

    mus: tuple[float, ...]

    def epsilon(self, delta: float) -> float:
        """Return the exact epsilon: an event may exceed the mean of what it may in each release."""
        if max(self.mus) == 0:
            return 0.0
        if delta == 0:
            return math.inf
        if len(self.mus) == 1:
            return gaussian_epsilon(self.mus[0], delta)

        def exceeds(epsilon: float) -> bool:
            return sum(gaussian_delta(mu, epsilon) for mu in self.mus if mu > 0) / len(self.mus) > delta

        if not exceeds(0.0):
            return 0.0
        high = 1.0
        while exceeds(high):
            high *= 2
        return bisect(exceeds, 0.0, high)[1]


Law = OutcomeLaw | PrivacyLoss | GaussianLaw


def law_of_shifts(noise: object, shifts: Sequence[float]) -> PrivacyLoss | GaussianLaw:
    """Return the law of independent noise of one distribution, each draw of it shifted by so much.

    Raises
    ------
    NotEnumerableError
        For noise that is neither Laplace nor Gaussian.
    """
    if isinstance(noise, Gaussian) and noise.sigma > 0:
        return GaussianLaw((math.sqrt(math.fsum(shift * shift for shift in shifts)) / noise.sigma,))
    if isinstance(noise, Laplace) or (isinstance(noise, L2Laplace) and noise.dim == 1):
        return PrivacyLoss.of_laplace([shift / noise.scale for shift in shifts])
    raise NotEnumerableError(f"exact releases need Laplace or Gaussian noise, got {type(noise).__name__}")


@dataclass(frozen=True)
class Score:
    """A score of actions, larger where the left input explains them better.

    Attributes
    ----------
    name : str
        In the record.
    prepare : callable
        Computes what all transcripts share, and returns the function from actions, (rounds, [dim,] runs), to scores,
        (runs,). Scores are rounded: the last bits of a float can tell the inputs apart, a leak of the arithmetic.
    exact : bool
        Whether it is the exact log-likelihood ratio.
    calibrated : bool
        Whether its log loss judges it where it is not exact.
    wording : str
        What an exact score is computed from, in the words of a report.
    """

    name: str
    prepare: Callable[[], Callable[[Actions], Floats]]
    exact: bool = False
    calibrated: bool = False
    wording: str = ""


class HasLaw(Protocol):
    """Ability: the exact law of what a view shows."""

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law, None where the view has none; `fine=False` allows errors of 1e-3, which rank pairs.

        Raises
        ------
        NotEnumerableError
            If it is not known here, with the reason.
        """


class HasScore(Protocol):
    """Ability: scores of the actions, of which an audit uses an exact one alone and compares others on pilot runs."""

    def score(self, left: Losses, right: Losses, t0: int) -> tuple[Score, ...]:
        """Return the scores; none where there are none on these losses."""


def values_at(loss: object, points: Floats) -> Floats:
    """Return the losses of fixed points (dim, points): of a vector, or a convex function."""
    if hasattr(loss, "value"):
        return np.asarray(loss.value(points), dtype=np.float64)
    return np.asarray(cast(Floats, loss) @ points, dtype=np.float64)
