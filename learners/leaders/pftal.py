"""Private follow-the-approximate-leader: projections of noisy gradient sums, full information and bandit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Gaussian, L2Laplace, Noise, scale_of
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import Tree, TreeState, nodes_holding
from ...mechanisms.view import ACTIONS, View
from ..checks import check_rounds
from ..laws import Law, Losses, Neighbours, NotEnumerableError, OutcomeLaw, Score, law_of_shifts
from ..paths import CONSTANT, Paths, Summands, slope_between
from ..problems.domains import Projection, signs
from ..problems.extremes import ExtremeLosses
from ..problems.loss_classes import ConvexClass
from ..problems.losses import Family, Linear, Quadratic, Switch
from ..protocol import FeedbackKind, PlayKind
from .pftal_law import ActionLikelihood, clipped_laws, gap

#: Where there is no exact law of a release.
IN_ONE_DIMENSION = "PFTAL's release is exact in one dimension, where the gradients' difference is known"


def sphere(dim: int, runs: int, draws: Draws) -> Floats:
    """Return uniform points of the unit sphere, (dim, runs)."""
    if dim == 1:
        return signs(draws.uniform((1, runs)) < 0.5)
    u = draws.normal((dim, runs))
    u /= np.sqrt(np.square(u).sum(axis=0))
    return u


class _OnePoint(Protocol):
    """A learner that estimates gradients from the loss at one point."""

    @property
    def noise(self) -> Noise:
        """The law of one node's noise."""

    @property
    def arms(self) -> int:
        """The number of coordinates."""


def of_one_point(learner: _OnePoint, left: object, right: object, *, centred: bool) -> Paths | None:
    """Return on what the estimate (n / zeta) f(x) u depends: on nothing where f - f' is constant.

    Parameters
    ----------
    centred : bool
        Whether the centre of x is known: then u alone decides.
    """
    slope = slope_between(left, right)
    if (isinstance(learner.noise, Gaussian | L2Laplace) or learner.arms == 1) and slope == 0:
        return CONSTANT  # |f - f'| is the same everywhere, and |u| = 1
    if learner.arms == 1 and centred and slope is not None:
        return Paths("the differing round's point takes two values; both were played", both=True)
    return None


@dataclass
class PftalState:
    """The counter, and the sum of the past centres: O(dim log T) numbers per run.

    Attributes
    ----------
    tree : TreeState
    total : array (dim, runs)
        w_1 + ... + w_t.
    centre : array (dim, runs)
        The point last chosen.
    direction : array (dim, runs), or None
        The last exploration direction, bandit only.
    """

    tree: TreeState
    total: Floats
    centre: Floats
    direction: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class _Leader:
    """What both versions share: the tree without padding, and the projected step from the centres' mean."""

    domain: Projection
    rounds: int
    curvature: float
    noise: Noise
    regulariser: float = 0.0
    plays: ClassVar[PlayKind] = "points"
    #: The noisy gradient sums v_1, ..., v_T are called private, whole.
    publishes: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        check_positive("curvature", self.curvature)
        if not self.regulariser >= 0:
            raise must_be("regulariser", "at least 0", self.regulariser)

    @property
    def loss_class(self) -> ConvexClass:
        """The losses that theorems are about: as strongly convex as `curvature` says, or any with a regulariser."""
        return ConvexClass(self.domain, 0.0 if self.regulariser else self.curvature)

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.domain.dim

    @property
    def feedback(self) -> FeedbackKind:
        """What `update` is told."""
        raise NotImplementedError

    @property
    def tree(self) -> Tree:
        """The counter of gradient sums."""
        return Tree(self.noise, self.rounds, padding=False)

    @property
    def shrinkage(self) -> float:
        """Centres lie in this multiple of the domain."""
        return 1.0

    def start(self, runs: int, draws: Draws) -> PftalState:
        """Return an empty counter; the first centre is the domain's point nearest to 0."""
        tree = self.tree.start(self.arms, runs)
        return PftalState(tree, np.zeros((self.arms, runs)), self.project(np.zeros((self.arms, runs))))

    def project(self, x: Floats) -> Floats:
        """Return the projection onto the shrunken domain."""
        return self.shrinkage * self.domain.project(x / self.shrinkage)

    def step(self, mean: Floats, noisy: Floats, t: int) -> Floats:
        """Return w_{t+1} from the mean of w_1..w_t and the noisy gradient sum after round t.

        argmin <v, w> + (H / 2) sum ||w - w_s||^2 is the projection of mean(w) - v / (H t).
        """
        return self.project(mean - noisy / (self.curvature * t))

    def invert(self, actions: Floats) -> Floats:
        """Return the noisy gradient sums after rounds 1..T-1 behind actions (T, dim, runs); nan at the boundary.

        An interior w_{t+1} reveals `v_t = H t (mean(w_1..w_t) - w_{t+1})`.
        """
        w = self.centres(actions)
        t = np.arange(1, len(w))[:, None, None]
        means = w[:-1].cumsum(axis=0) / t
        inverse: Floats = self.curvature * t * (means - w[1:])
        interior = np.stack([self._interior(x) for x in w[1:]]) if len(w) > 1 else np.zeros((0, w.shape[-1]), bool)
        return np.where(interior[:, None, :], inverse, np.nan)

    def _interior(self, w: Floats) -> NDArray[np.bool_]:
        """Tell which centres lie inside: those that a step outwards from 0 leaves in the domain."""
        scaled = w * (1 + 1e-9)
        distance: Floats = np.abs(self.project(scaled) - scaled).max(axis=0)
        return distance <= 1e-12 * self.domain.outer_radius

    def centres(self, actions: Floats) -> Floats:
        """Return the points w_t behind actions (rounds, dim, runs)."""
        raise NotImplementedError

    @property
    def _has_known_centres(self) -> bool:
        """Whether a noisy leader's centres can be read off its actions: in one dimension."""
        return self.arms == 1 and scale_of(self.noise) > 0

    def _points_around(self, centres: Floats) -> tuple[Floats, float]:
        """Return the points at which losses are seen, and by what their values are divided."""
        return centres, 1.0

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy sums where the inputs' gap is known; None for actions.

        It is known where round 1 differs, at the first points; or where the losses' gradients (for a bandit, the
        losses) differ by a constant. Every released node that holds the round is one variable shifted by the gap.
        """
        if not view.channel:
            return None
        if self.arms != 1:
            raise NotEnumerableError(IN_ONE_DIMENSION)
        grid = np.zeros((1, 1)) if t0 == 0 else np.linspace(-1, 1, 9)[None] * self.domain.outer_radius
        points, divisor = self._points_around(self.project(grid))
        shift = gap(Neighbours(left, right, t0), points, self.feedback)
        if shift is None:
            raise NotEnumerableError(IN_ONE_DIMENSION)
        nodes = nodes_holding(t0, view.updates(len(left)))
        return law_of_shifts(self.noise, [shift / divisor] * len(nodes))

    def score(self, left: Losses, right: Losses, t0: int) -> tuple[Score, ...]:
        """Return the likelihood ratio of clipped actions, read as bounds on the noisy gradient sums."""
        if len(left) < 2 or not self._has_known_centres:
            return ()
        prepare = partial(ActionLikelihood, self, Neighbours(left, right, t0))
        wording = "the noisy gradient sums that the actions reveal, or bound where they are clipped"
        return (Score("inverted gradient sums", prepare, exact=True, wording=wording),)

    def fed(self, actions: Floats, feedback: list[Floats]) -> list[Floats]:
        """Return what each round adds to the counter."""
        raise NotImplementedError

    def release(self, state: PftalState) -> Floats:
        """Return the noisy gradient sum, (dim, runs)."""
        return state.tree.noisy.copy()


@dataclass(frozen=True, kw_only=True)
class Pftal(_Leader):
    """Play `w_{t+1} = Proj_C(mean(w_1..w_t) - v_t / (H t))`, v_t the noisy sum of gradients at the played points.

    Smith & Thakurta 2013, Algorithm 1 with Algorithm 2. Works against adaptive adversaries.

    **Claim** (Theorem 3): epsilon-DP with node noise of density proportional to `exp(-||n||_2 epsilon / (L (m + 1)))`,
    m = ceil(lg T), one round's loss replaced. The proof bounds the change of a gradient by L where replace-one allows
    2 L; a round reaches m released nodes, so the truth is `2 m / (m + 1) * epsilon`. The noisy sums are the release.

    Parameters
    ----------
    domain : Projection
        C.
    rounds : int
        T, the horizon.
    curvature : float
        H, the losses' strong convexity.
    noise : Noise
        The law of one node's noise.
    regulariser : float
        Adds `regulariser / 2 * ||w||^2` to every loss (Appendix C, for Lipschitz losses: set it and `curvature` to H).
    """

    feedback: FeedbackKind = "full"
    #: What a node adds up, at the played points.
    summands: ClassVar[Summands] = "gradients"

    def act(self, state: PftalState, draws: Draws) -> Floats:
        """Return the next point, (dim, runs)."""
        t = state.tree.t
        if t:
            state.centre = self.step(state.total / t, state.tree.noisy, t)
        return state.centre

    def update(self, state: PftalState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the gradient at the played point to the counter."""
        state.total += actions
        self.tree.add(state.tree, self._regularised(actions, feedback), draws)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a node's inputs depend: a node is a sum of gradients at points that both inputs share."""
        return None if slope_between(left, right) is None else CONSTANT

    def extremes(self) -> ExtremeLosses:
        """Return the 1-Lipschitz losses with the steepest gradients, and a valley: its gradient rises with the point.

        Gradients alone are seen, so centres lie as far outside the domain as the Lipschitz bound allows; the gradients
        are then nearly ±1. The valley is one convex loss, as |w|, that nobody adapts.
        """
        p, h = self.arms, self.curvature
        slopes = [np.full(p, p**-0.5), *([np.eye(p)[0]] if p > 1 else [])]
        nothing = (0.0,) * p
        if self.regulariser:  # it makes linear losses strongly convex
            opposed: list[tuple[Family, Family]] = [(Linear(slope=tuple(x)), Linear(slope=tuple(-x))) for x in slopes]
            flat: Family = Linear(slope=nothing)
        else:
            radius = self.domain.outer_radius
            steep = [[Quadratic.steep(tuple(s * x), curvature=h, radius=radius) for s in (1.0, -1.0)] for x in slopes]
            opposed, flat = [(rising, falling) for rising, falling in steep], Quadratic(curvature=h, centre=nothing)
        rising, falling = opposed[0]
        return ExtremeLosses(tuple(opposed), flat, (Switch(below=falling, above=rising),))

    def _regularised(self, actions: Floats, feedback: Floats) -> Floats:
        return feedback + self.regulariser * actions if self.regulariser else feedback

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the noisy sums; of actions, where nearly all are clipped, one that ranks pairs."""
        if view.channel:
            return super().law(left, right, t0, view, fine=fine)
        if not self._has_known_centres:
            return None
        return OutcomeLaw(partial(clipped_laws, self, Neighbours(left, right, t0)), exact=False)

    def centres(self, actions: Floats) -> Floats:
        """Return the actions themselves."""
        return actions

    def fed(self, actions: Floats, feedback: list[Floats]) -> list[Floats]:
        """Return what each round adds to the counter: gradients at the played points."""
        return [self._regularised(w, g) for w, g in zip(actions, feedback, strict=False)]

    def release_means(self, actions: Floats, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy gradient sums given the earlier ones."""
        return self.tree.means(releases, self.fed(actions, feedback))


@dataclass(frozen=True, kw_only=True)
class BanditPftal(_Leader):
    """Play `x_t = w_t + beta u_t`, u_t uniform on the sphere, and feed `(p / beta) f_t(x_t) u_t` as the gradient.

    Smith & Thakurta 2013, Algorithm 3. The centres w_t stay in (1 - xi) C, xi = beta / r, r the radius of the largest
    ball around 0 in C, so that what is played lies in C.

    **Claim** (Theorem 5): epsilon-DP with Algorithm 2's noise for mu = p B / beta, |f| <= B, one round's loss
    replaced. Replace-one needs 2 p B / beta; the truth is `2 m / (m + 1) * epsilon`.

    Parameters
    ----------
    domain, rounds, curvature, noise
        As in `Pftal`.
    beta : float
        The sampling radius, less than r: p / T^(1/3) oblivious, p / T^(1/4) adaptive (Theorem 6).
    bound : float
        B, the largest |f| on the domain, without the regulariser.
    regulariser : float
        Adds `regulariser / 2 * ||w||^2` to every loss (Appendix E.3).
    """

    beta: float
    bound: float = 1.0
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("beta", self.beta)
        if self.beta >= self.domain.inner_radius:
            raise ValueError(
                f"beta must be less than the domain's inner radius {self.domain.inner_radius:g}, got {self.beta:g};"
                " a longer horizon or a larger domain allows it"
            )
        check_positive("bound", self.bound)
        widest = 0.0 if self.regulariser else self.curvature * self.domain.inner_radius**2 / 4
        if self.bound < widest:
            raise must_be(
                "bound",
                f"at least {widest:g}, curvature radius^2 / 4: no loss so strongly convex is smaller",
                self.bound,
            )

    @property
    def loss_class(self) -> ConvexClass:
        """As in `Pftal`; of values within the bound."""
        return replace(super().loss_class, bound=self.bound)

    @property
    def shrinkage(self) -> float:
        """1 - xi."""
        return 1.0 - self.beta / self.domain.inner_radius

    @property
    def _has_known_centres(self) -> bool:
        return super()._has_known_centres and 2 * self.beta > self.domain.inner_radius

    def _points_around(self, centres: Floats) -> tuple[Floats, float]:
        return np.concatenate([centres - self.beta, centres + self.beta], axis=1), self.beta

    def act(self, state: PftalState, draws: Draws) -> Floats:
        """Return the centre plus exploration, (dim, runs)."""
        t = state.tree.t
        if t:
            state.centre = self.step(state.total / t, state.tree.noisy, t)
        state.direction = sphere(self.arms, state.centre.shape[1], draws)
        return state.centre + self.beta * state.direction

    def update(self, state: PftalState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the one-point gradient estimate to the counter; the direction is read off the played action."""
        state.total += state.centre
        self.tree.add(state.tree, self._estimate(state.centre, actions, feedback), draws)

    def extremes(self) -> ExtremeLosses:
        """Return flat bowls at either end of the values, or constants where no loss need be strongly convex."""
        centre, h = (0.0,) * self.arms, self.curvature
        if self.regulariser:
            highest_loss, lowest_loss = (Linear(slope=centre, offset=offset) for offset in (self.bound, -self.bound))
            return ExtremeLosses(((highest_loss, lowest_loss),), Linear(slope=centre))
        highest, lowest = self.bound - h * self.domain.outer_radius**2 / 2, -self.bound
        high, low, flat = (
            Quadratic(curvature=h, centre=centre, offset=offset) for offset in (highest, lowest, min(highest, 0.0))
        )
        return ExtremeLosses(((high, low),), flat)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a node's inputs depend: on the point of the differing round."""
        return of_one_point(self, left, right, centred=t0 == 0)

    def _estimate(self, centre: Floats, action: Floats, loss: Floats) -> Floats:
        direction = (action - centre) / self.beta
        if self.regulariser:
            loss = loss + 0.5 * self.regulariser * np.square(action).sum(axis=0)
        return self.arms / self.beta * loss * direction

    def centres(self, actions: Floats) -> Floats:
        """Return the centres behind actions, for p = 1 and beta more than half the radius.

        Raises
        ------
        ValueError
            Where an action may belong to several centres.
        """
        if self.arms != 1 or 2 * self.beta <= self.domain.inner_radius:
            raise ValueError("centres are read off the actions for p = 1 and beta > r / 2 only")
        return actions - self.beta * np.sign(actions)  # centres are shorter than beta

    def fed(self, actions: Floats, feedback: list[Floats]) -> list[Floats]:
        """Return what each round adds to the counter, from actions alone (see `centres`)."""
        centres = self.centres(actions)
        return [self._estimate(*round_) for round_ in zip(centres, actions, feedback, strict=False)]

    def release_means(self, actions: Floats, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy sums given the earlier ones, which give the centres and so the directions."""
        centre = self.project(np.zeros(actions[0].shape))
        total = np.zeros(actions[0].shape)
        fed: list[Floats] = []
        for t, noisy in enumerate(releases, start=1):
            fed.append(self._estimate(centre, actions[t - 1], feedback[t - 1]))
            total = total + centre
            centre = self.step(total / t, noisy, t)
        return self.tree.means(releases, fed)
