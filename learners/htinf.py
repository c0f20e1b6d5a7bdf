"""HTINF: follow the regularised leader with Tsallis entropy for heavy-tailed losses, such as noisy ones."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from ..mechanisms.draws import Draws, Floats
from .checks import check_arms, check_positive
from .protocol import Arms, FeedbackKind
from .sampling import draw_arm, of_arm

#: Theta at alpha = 2: 1 - 2^(-(alpha - 1) / (2 alpha - 1)).
THETA = 1 - 2 ** (-1 / 3)
#: sigma of the private conversion: losses in [0, 1] plus Laplace(1) noise have second moment at most 1 + 2 <= 6.
SIGMA = math.sqrt(6)
#: The weights sum to 1 within this.
PRECISION = 1e-12
#: Newton's iteration is quadratic, with a factor far below sqrt(arms): one more step from here reaches the precision.
_NEARLY = 1e-7
_ITERATIONS = 60
_CHUNK = 32_768


@dataclass
class TsallisLaw:
    """The minimisers `x = (losses - shift)^-2` of <losses, x> - 2 sum sqrt(x) over the simplex, one for each run."""

    x: Floats  # (arms, runs); each run sums to 1 within PRECISION
    shift: Floats  # (runs,): below the least loss by at least 1 and at most sqrt(arms)
    cubes: Floats  # (runs,): the sum of x^(3/2), to about 1e-7


def tsallis_law(losses: Floats, guess: Floats) -> TsallisLaw:
    """Return the Tsallis law of losses (arms, runs), already multiplied by the learning rate.

    Parameters
    ----------
    losses : array (arms, runs)
    guess : array (runs,)
        Where to start from: the shifts of similar losses. Any will do.

    Notes
    -----
    With w = least loss - shift and d the losses less the least one, `h(w) = (sum (d_i + w)^-2)^(-1/2)` is increasing,
    concave and nearly linear, so Newton's iteration for h(w) = 1 lands left of the root after one step and then climbs
    to it; the bounds on w are the safeguard of the first step.
    """
    law = TsallisLaw(np.empty_like(losses), np.empty_like(guess), np.empty_like(guess))
    width = max(512, _CHUNK // len(losses))  # what the iterations touch fits a cache
    for start in range(0, guess.size, width):
        part = slice(start, start + width)
        law.shift[part], law.cubes[part] = _solve(losses[:, part], guess[part], law.x[:, part])
    return law


def _solve(losses: Floats, guess: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Write the minimisers into `x` and return the shifts and the sums of cubes."""
    low, top = losses.min(axis=0), math.sqrt(len(losses))
    d = losses - low
    root = np.empty_like(d)  # of x
    w = np.clip(low - guess, 1.0, top)
    for _ in range(_ITERATIONS):
        np.add(d, w, out=root)
        np.reciprocal(root, out=root)
        np.multiply(root, root, out=x)
        total = x.sum(axis=0)
        root *= x
        cubes = root.sum(axis=0)
        step = np.sqrt(total)
        step -= 1.0
        excess = max(step.max(), -step.min())
        step *= total
        step /= cubes
        w += step
        np.maximum(w, 1.0, out=w)
        np.minimum(w, top, out=w)
        if excess <= _NEARLY:
            break
    np.add(d, w, out=root)
    np.reciprocal(root, out=root)
    np.multiply(root, root, out=x)
    return low - w, cubes


def first_step(law: TsallisLaw, arms: Arms, rate: float, moved: Floats) -> Floats:
    """Return the shifts after Newton's first step, when all losses are scaled and one loss of each run changes.

    It needs no sum over arms, since all terms but one only scale.

    Parameters
    ----------
    law : TsallisLaw
        The law before.
    arms : array (runs,)
        Whose loss changes.
    rate : float
        The factor of all losses.
    moved : array (runs,)
        The change, after scaling.
    """
    before = of_arm(law.x, arms)
    root = np.sqrt(before)
    after = 1 / np.maximum(rate / root + moved, 1.0)
    square = after * after
    total = (1 - before) / rate**2 + square
    cubes = (law.cubes - before * root) / rate**3 + square * after
    step: Floats = total * (np.sqrt(total) - 1) / cubes
    return rate * law.shift - step


@dataclass
class TsallisState:
    """The estimates so far and the law they lead to."""

    rounds: int
    losses: Floats  # (arms, runs)
    law: TsallisLaw


@dataclass(frozen=True, kw_only=True)
class Htinf:
    """1/2-Tsallis follow the regularised leader that skips large losses.

    In round t, `x_t = argmin <L, x> eta_t - 2 sum sqrt(x)` with `1 / eta_t = sigma sqrt(t)`; the played arm's loss y
    enters L as y / x, unless |y| > r = Theta sqrt(x) / eta_t: then it is skipped. Huang, Dai & Huang 2022, Algorithm 1
    at alpha = 2, with Theta = 1 - 2^(-1/3); Asi, Raman & Talwar 2025, Corollary 2, with sigma = sqrt(6).

    **Claim**: none of its own; inside `BatchedLaplace`, epsilon-DP. Skipping makes the state no affine function of the
    fed loss, so there is no grid law.

    Parameters
    ----------
    arms : int
        K, at least 1.
    sigma : float
        Bound on the root of the second moment of a fed loss.
    """

    arms: int
    sigma: float = SIGMA
    feedback: FeedbackKind = "bandit"

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_positive("sigma", self.sigma)

    def start(self, runs: int, draws: Draws) -> TsallisState:
        """Return the uniform law."""
        losses = np.zeros((self.arms, runs))
        return TsallisState(1, losses, tsallis_law(losses, np.full(runs, -math.sqrt(self.arms))))

    def probabilities(self, state: TsallisState) -> Floats:
        """Return x_t, (arms, runs)."""
        return state.law.x

    def act(self, state: TsallisState, draws: Draws) -> Arms:
        """Draw an arm from x_t: one uniform a run."""
        return draw_arm(state.law.x, draws)

    def update(self, state: TsallisState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Add the importance-weighted loss of the played arm unless it is skipped, and find the next law."""
        played = of_arm(state.law.x, actions)
        kept = np.abs(feedback) <= THETA * self.sigma * math.sqrt(state.rounds) * np.sqrt(played)
        estimate = kept * feedback / played
        runs = actions.size
        state.losses.reshape(-1)[actions * runs + np.arange(runs)] += estimate
        rate = 1 / (self.sigma * math.sqrt(state.rounds + 1))
        slower = math.sqrt(state.rounds / (state.rounds + 1))
        guess = first_step(state.law, actions, slower, rate * estimate)
        state.rounds += 1
        state.law = tsallis_law(rate * state.losses, guess)
