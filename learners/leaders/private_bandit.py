"""Projection-free private bandits: noisy online convex optimisation through a linear minimisation oracle."""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache, partial, reduce
from typing import ClassVar, cast

import numpy as np

from ...mechanisms.draws import Draws, Floats
from ...mechanisms.noise import Gaussian, Noise
from ...mechanisms.parameters import check_positive
from ...mechanisms.tree import Tree, TreeState, nodes_holding
from ...mechanisms.view import ACTIONS, View
from ..checks import check_rounds
from ..laws import GaussianLaw, Law, Losses, Neighbours, NotEnumerableError, Score, values_at
from ..paths import Paths, Summands, if_linear
from ..problems.domains import LinearOracle
from ..problems.extremes import ExtremeLosses
from ..problems.loss_classes import ConvexClass
from ..problems.losses import Linear
from ..protocol import Arms, FeedbackKind, PlayKind
from .bandit_responses import ResponseScore
from .pftal import of_one_point, sphere

#: The share of runs that still move, below which they go on without the others: to leave others out takes a copy.
MIN_SHARE = 0.5
#: So few runs go on together: to leave some out takes longer than to take them along.
MIN_RUNS = 512
#: Least squared length of a move that is divided by; those of length 0 are not made.
TINY = np.finfo(float).tiny
#: What slopes are rounded to, in precision^2 / diameter.
ROUNDED = 2.0**-20


def conditional_gradient(oracle: LinearOracle, linear: Floats, precision: float) -> Floats:
    """Return points within `precision` of argmin over the domain of `1/2 ||x||^2 + <linear, x>`.

    Frank-Wolfe with exact line search, from the least of the linear part. A run stops moving once its duality gap,
    which bounds half the squared distance, is at most precision^2 / 2; after k steps the distance is at most
    2 D / sqrt(k + 2), so that 4 (D / precision)^2 oracle calls suffice, the one at the start among them.

    A line search ends where vertices cost the same. Which of them is next must not hang on last bits, which differ
    where the same sums come about in another way: so slopes are rounded, by far less than the precision.

    Parameters
    ----------
    linear : array (dim, runs)
    precision : float
        In L2 distance.
    """
    x = points = oracle.minimise(linear)
    moving = np.arange(linear.shape[1])
    coarse = 1.5 * 2.0 ** (52 + math.floor(math.log2(ROUNDED * precision**2 / oracle.diameter)))
    for _ in range(max(1, math.ceil(4 * (oracle.diameter / precision) ** 2) - 1)):
        gradient = points + linear
        gradient += coarse  # then it has no digits below
        gradient -= coarse
        move = oracle.minimise(gradient)
        move -= points
        gap = -reduce(np.add, np.multiply(gradient, move, out=gradient))  # row by row: the same bits in all company
        active = gap > precision**2 / 2
        count = np.count_nonzero(active)
        if not count:
            break
        if gap.size > MIN_RUNS and count <= MIN_SHARE * gap.size:  # the others go on without those that have arrived
            _put(x, moving, points)
            going = np.flatnonzero(active)
            points, linear, move = (rows.take(going, axis=1, mode="clip") for rows in (points, linear, move))
            moving, gap, active = moving[going], gap[going], active[going]
        length = reduce(np.add, move * move)
        step = np.minimum(gap / np.maximum(length, TINY), 1.0)
        step *= active  # who has arrived stays, and is found there again
        move *= step
        points += move
    _put(x, moving, points)
    return x


def _put(x: Floats, runs: Arms, points: Floats) -> None:
    """Write the points of some runs into those of all, row by row, which takes two thirds of the time."""
    if points is not x:
        for row, row_points in zip(x, points, strict=True):
            row[runs] = row_points


@lru_cache(maxsize=64)
def _first(oracle: Hashable) -> Floats:
    """Return what is played first over a `LinearOracle`'s domain, its answer to 0: (dim, 1)."""
    typed_oracle = cast(LinearOracle, oracle)
    x = typed_oracle.minimise(np.zeros((typed_oracle.dim, 1)))
    x.flags.writeable = False
    return x


@dataclass
class OcoState:
    """The counter, the response to be played, and, with stale responses, the one after it."""

    tree: TreeState
    x: Floats
    following: Floats


@dataclass(frozen=True, kw_only=True)
class NoisyOco:
    """The template: play `x_t ~ argmin 1/2 ||x||^2 + eta <s, x>`, s a noisy sum of gradients; then add a gradient.

    Ene, Nguyen & Vladu 2021, Algorithm 2, with the squared norm for mirror map, the padded tree for noise, and
    conditional gradient for the map. As a learner it is told gradients; `PrivateBandit` drives it with estimates.

    Parameters
    ----------
    oracle : LinearOracle
        The domain D.
    rounds : int
        The number of gradients.
    eta : float
        Learning rate.
    noise : Noise
        The law of one node's noise.
    precision : float
        Of a response, in L2 distance.
    stale : bool
        Whether a response waits one round, as in Algorithm 1 of the paper, where it is computed in parallel: x_t then
        rests on gradients 1..t-2.
    """

    oracle: LinearOracle
    rounds: int
    eta: float
    noise: Noise
    precision: float
    stale: bool = False
    feedback: FeedbackKind = "full"
    plays: ClassVar[PlayKind] = "points"
    #: What a node adds up: the gradients that it is told, which are loss vectors.
    summands: ClassVar[Summands] = "losses"
    #: How far points lie out of the domain.
    zeta: ClassVar[float] = 0.0

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        _check_domain(self.oracle)
        check_positive("eta", self.eta)
        check_positive("precision", self.precision)

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.oracle.dim

    @property
    def tree(self) -> Tree:
        """The counter of gradient sums."""
        return Tree(self.noise, self.rounds)

    def respond(self, tree: TreeState, draws: Draws) -> Floats:
        """Return the regularised response to the padded noisy sum, (dim, runs)."""
        linear = self.tree.pad(tree, draws)
        linear *= self.eta
        return conditional_gradient(self.oracle, linear, self.precision)

    def _vertex(self, runs: int) -> Floats:
        return np.repeat(_first(cast(Hashable, self.oracle)), runs, axis=1)

    def start(self, runs: int, draws: Draws) -> OcoState:
        """Return an empty counter; the first point is the oracle's answer to 0.

        That is our choice: Algorithm 1 names none, and Algorithm 2 responds to an empty sum there. With stale
        responses the second point is the response to the empty sum, which is noise.
        """
        tree = self.tree.start(self.arms, runs)
        x = self._vertex(runs)
        return OcoState(tree, x, self.respond(tree, draws) if self.stale else x)

    def act(self, state: OcoState, draws: Draws) -> Floats:
        """Return the point, (dim, runs)."""
        return state.x

    def update(self, state: OcoState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add a gradient and respond."""
        self.tree.add(state.tree, feedback, draws)
        response = self.respond(state.tree, draws)
        state.x, state.following = (state.following, response) if self.stale else (response, response)

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a node's inputs depend: a node is a sum of gradients, which are the loss vectors."""
        return if_linear(left, right)

    def release(self, state: OcoState) -> Floats:
        """Return the noisy gradient sum before padding, (dim, runs)."""
        return state.tree.noisy.copy()

    def release_means(self, actions: Floats, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy sums given the earlier ones."""
        return self.tree.means(releases, feedback)


@dataclass
class BanditState:
    """The template's state, the batch's gradient estimate so far, and the round (from 0)."""

    oco: OcoState
    t: int
    gradient: Floats
    released: Floats | None = None


@dataclass(frozen=True, kw_only=True)
class PrivateBandit:
    """Play `x_t = x~ + zeta u_t` for a batch, add `sum (n / zeta) f_t(x_t) u_t` to the tree, respond one batch late.

    Ene, Nguyen & Vladu 2021, Algorithm 1 (PrivateBandit) on `NoisyOco`. With T_batch = ceil(sqrt T) rounds a batch (a
    T that is no perfect square leaves the last batch short: our choice), `zeta = D sqrt n / T^(1/4)` and
    `eta = D / (T^(3/4) sqrt n L)`, derived from the paper's `L D n / zeta = T^(1/4) sqrt n L`. Responses are computed
    to precision D / sqrt(T_batch), with at most 4 oracle calls a round.

    Played points leave D by up to zeta, as the paper allows. Its bound |f_t(x_t)| <= L D does not cover that: what
    follows from its assumptions is L (D + zeta).

    **Claim**: epsilon-DP with Laplace noise of scale `sqrt(T) n L log2(T) / epsilon` on every coordinate of a node
    (Lemma 7), (epsilon, delta)-DP with Gaussian noise (Lemma 10), one round's loss replaced. The proof of Lemma 7
    lets all T_batch rounds of a batch change where one does: the truth is about epsilon / T^(1/4). The noisy sums
    before padding are the release; because of the late response, the last two reach no action.

    Parameters
    ----------
    oracle : LinearOracle
        The domain D.
    rounds : int
        T, the horizon.
    noise : Noise
        The law of one node's noise.
    lipschitz : float
        L.
    """

    oracle: LinearOracle
    rounds: int
    noise: Noise
    lipschitz: float = 1.0
    feedback: FeedbackKind = "bandit"
    #: All noisy sums of the batches' gradients are called private (proof of Lemma 7).
    publishes: ClassVar[bool] = True
    plays: ClassVar[PlayKind] = "points"

    def __post_init__(self) -> None:
        check_rounds(self.rounds)
        check_positive("lipschitz", self.lipschitz)
        _check_domain(self.oracle)

    @property
    def arms(self) -> int:
        """The number of coordinates."""
        return self.oracle.dim

    @property
    def loss_class(self) -> ConvexClass:
        """The losses that the lemmas are about: of values within L D on the domain."""
        domain: LinearOracle = getattr(self.oracle, "shrunk_from", self.oracle)
        return ConvexClass(domain, bound=self.lipschitz * domain.diameter)

    @property
    def batch(self) -> int:
        """T_batch, rounds per batch."""
        return batch_rounds(self.rounds)

    @property
    def batches(self) -> int:
        """T_round, the number of batches."""
        return -(-self.rounds // self.batch)

    @property
    def zeta(self) -> float:
        """The sampling radius."""
        return sampling_radius(self.rounds, self.arms, self.oracle.diameter)

    @property
    def eta(self) -> float:
        """The learning rate."""
        return self.oracle.diameter / (math.pow(self.rounds, 0.75) * math.sqrt(self.arms) * self.lipschitz)

    @property
    def template(self) -> NoisyOco:
        """What one batch is one round of."""
        precision = self.oracle.diameter / math.sqrt(self.batch)
        return NoisyOco(
            oracle=self.oracle,
            rounds=self.batches,
            eta=self.eta,
            noise=self.noise,
            precision=precision,
            stale=True,
        )

    def start(self, runs: int, draws: Draws) -> BanditState:
        """Return the template's state and an empty batch."""
        return BanditState(self.template.start(runs, draws), 0, np.zeros((self.arms, runs)))

    def act(self, state: BanditState, draws: Draws) -> Floats:
        """Return the response plus exploration, (dim, runs)."""
        x = self.template.act(state.oco, draws)
        return x + self.zeta * sphere(self.arms, x.shape[1], draws)

    def update(self, state: BanditState, actions: Floats, feedback: Floats, draws: Draws) -> None:
        """Add the estimate; at the end of a batch, hand it to the template."""
        state.gradient = state.gradient + self.estimate(state.oco.x, actions, feedback)
        state.t += 1
        state.released = None
        if state.t % self.batch == 0:
            self.template.update(state.oco, state.oco.x, state.gradient, draws)
            state.gradient = np.zeros_like(state.gradient)
            state.released = np.concatenate([state.oco.tree.noisy, state.oco.x])

    def estimate(self, x: Floats, action: Floats, loss: Floats) -> Floats:
        """Return (n / zeta) f(x_t) u_t, the gradient estimate of a round, (dim, runs)."""
        direction = (action - x) / self.zeta
        return self.arms / self.zeta * loss * direction

    def first_point(self, runs: int) -> Floats:
        """Return what the first batch plays around, (dim, runs)."""
        return self.template._vertex(runs)

    def law(self, left: Losses, right: Losses, t0: int, view: View = ACTIONS, *, fine: bool = True) -> Law | None:
        """Return the law of the release, given each of the two directions of the differing round; None for actions.

        A direction is drawn alike for both inputs, with probability 1/2 each, and is seen: the responses are released,
        the played points are actions, and their difference is the direction times zeta. Given it, the noisy sums are
        Gaussian, and their means differ by the batch's estimate alone: everything after it is a function of what was
        released before. The first batch plays around a fixed point, so only there are both values of the loss known.
        """
        if not view.channel:
            return None
        noise = self.noise
        if not isinstance(noise, Gaussian) or noise.sigma <= 0 or self.arms != 1 or t0 >= self.batch:
            raise NotEnumerableError(
                "a bandit's release is exact with Gaussian noise in one dimension, where the first batch differs"
            )
        points = self.first_point(1) + self.zeta * np.array([[1.0, -1.0]])
        values = [values_at(losses[t0], points) for losses in (left, right)]
        nodes = len(nodes_holding(0, view.updates(len(left)) // self.batch))
        scale = self.arms / self.zeta * math.sqrt(nodes) / noise.sigma
        mu_up, mu_down = (np.abs(values[0] - values[1]) * scale).tolist()
        return GaussianLaw((mu_up, mu_down))

    def score(self, left: Losses, right: Losses, t0: int) -> tuple[Score, ...]:
        """Return the score of the responses, where a batch after the next one to the differing round's is played."""
        if len(left) <= self.batch * (t0 // self.batch + 2):
            return ()
        prepare = partial(ResponseScore, self, Neighbours(left, right, t0))
        return (Score("responses along the changed gradient", prepare),)

    def extremes(self) -> ExtremeLosses:
        """Return slopes that are 0 at the centre, or at an end of the domain: values alone are seen."""
        opposed = []
        for end in (0.0, 1.0, -1.0):
            rising, falling = (Linear(slope=tuple(s * np.eye(self.arms)[0]), offset=s * end) for s in (1.0, -1.0))
            opposed.append((rising, falling))
        return ExtremeLosses(tuple(opposed), Linear(slope=(0.0,) * self.arms))

    def paths(self, left: object, right: object, t0: int) -> Paths | None:
        """Return on what a node's inputs depend: on the point of the differing round."""
        return of_one_point(self, left, right, centred=t0 < self.batch)

    def release(self, state: BanditState) -> Floats | None:
        """Return, at the end of a batch, its noisy sum and below it the next batch's response: (2 dim, runs).

        The response is a function of earlier nodes and of padding. It is released so that the directions u_t, which
        the proof conditions on, can be read off the actions.
        """
        return state.released

    def release_means(self, actions: Floats, releases: Floats, feedback: list[Floats]) -> Floats:
        """Return the means of the noisy sums given what was released before; of a response, itself."""
        n = self.arms
        runs = actions[0].shape[1]
        x = self.first_point(runs)
        sums = []
        for batch, released in enumerate(releases):
            rounds = range(batch * self.batch, (batch + 1) * self.batch)
            gradient = np.zeros((n, runs))
            for t in rounds:
                gradient = gradient + self.estimate(x, actions[t], feedback[t])
            sums.append(gradient)
            x = released[n:]
        return np.concatenate([self.template.tree.means(releases[:, :n], sums), releases[:, n:]], axis=1)


def _check_domain(oracle: LinearOracle) -> None:
    if oracle.diameter <= 0:
        raise ValueError("the domain must have more than one point")


def batch_rounds(rounds: int) -> int:
    """Return ceil(sqrt T)."""
    return math.isqrt(rounds - 1) + 1


def sampling_radius(rounds: int, dim: int, diameter: float) -> float:
    """Return zeta = D sqrt n / T^(1/4)."""
    return diameter * math.sqrt(dim) / math.pow(rounds, 0.25)
