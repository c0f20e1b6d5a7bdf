"""What pairs are made of: the extreme losses that a learner takes and a claim allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...learners.leaders.pftal import BanditPftal, Pftal
from ...learners.leaders.private_bandit import PrivateBandit
from ...learners.problems.losses import Adaptive, Family, Linear, Loss, Quadratic, Switch, loss_set
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ..play.pairs import Pair, differing_losses, extremes

#: A loss of one round; and two of them: of the two worlds, or of the even and the odd rounds.
Choice = Loss | Adaptive
Pattern = tuple[Choice, Choice]


@dataclass(frozen=True)
class Alphabet:
    """The losses that pairs are composed of.

    Attributes
    ----------
    differing : tuple of (left, right)
        The extreme neighbours of one round.
    patterns : tuple of (even, odd)
        What the other rounds may hold: a loss in the even and one in the odd rounds. The first is the extreme one.
    others_in_batch : tuple
        What the other rounds of the differing batch hold.
    rows : tuple
        Every loss of the patterns, and more that only a search over single rounds tries.
    box : bool
        Whether single entries of a loss vector may be changed too.
    alone : tuple of (left, right)
        Neighbours that differ in one entry. Those of `differing` hide from who is told all losses what depends on
        whether some are equal, or on the parity of their sum.
    """

    differing: tuple[tuple[Loss, Loss], ...]
    patterns: tuple[Pattern, ...]
    others_in_batch: tuple[Choice, ...]
    rows: tuple[Choice, ...]
    box: bool = False
    alone: tuple[tuple[Loss, Loss], ...] = ()

    def pair(
        self,
        rounds: int,
        t0: int,
        batch: int,
        differing: tuple[Loss, Loss],
        in_batch: Choice,
        before: Pattern,
        after: Pattern,
    ) -> Pair:
        """Return the pair that differs in round t0 (from 0), with patterns before and after.

        Parameters
        ----------
        in_batch : loss
            Of the rest of the batch that t0 lies in.
        before, after : (even, odd)
        """
        end = batch * (t0 // batch + 1)
        rest = [in_batch if t0 <= t < end else (before if t < t0 else after)[t % 2] for t in range(rounds)]
        left, right = rest.copy(), rest.copy()
        left[t0], right[t0] = differing
        return Pair(left, right)


def linear_alphabet(claim: Claim, arms: int) -> Alphabet:
    """Return the extreme vectors of a loss set: all coordinates high, low or between, contrasts, and one alone."""
    low, high, contrast, single = extremes(claim, arms)
    ones, other = np.ones(arms), high + low - contrast
    constants = [high * ones, low * ones, (high + low) / 2 * ones]
    box = loss_set(claim.losses).box
    return Alphabet(
        differing=tuple(differing_losses(claim, arms)),
        patterns=(*((c, c) for c in (*constants, contrast)), (contrast, other)),
        others_in_batch=tuple(constants[:2]),
        rows=(*constants, contrast, other),
        box=box,
        alone=((single, low * ones),) if box and claim.neighbours == "replace" else (),
    )


def alphabet_of(learner: Learner, claim: Claim) -> Alphabet:
    """Return the losses to search over: convex ones where the learner takes them, else vectors."""
    if claim.losses == "lipschitz" and isinstance(learner, Pftal | BanditPftal | PrivateBandit):
        return _convex_alphabet(learner, claim)
    return linear_alphabet(claim, learner.arms)


def _convex_alphabet(learner: Pftal | BanditPftal | PrivateBandit, claim: Claim) -> Alphabet:
    """Return extreme 1-Lipschitz losses: linear ones, and quadratic where the learner needs strong convexity.

    Full information sees gradients, so centres lie as far outside the domain as the Lipschitz bound allows; the
    gradients are then nearly ±1. A bandit sees values: a slope that is 0 at an end of the domain, and flat bowls.
    """
    p = learner.arms
    nothing = Linear(slope=(0.0,) * p)
    flat: Family = nothing
    directions = [np.full(p, p**-0.5), *([np.eye(p)[0]] if p > 1 else [])]
    ups_downs: list[tuple[Family, Family]] = []
    up: Family
    down: Family
    if isinstance(learner, PrivateBandit):
        for end in (0.0, 1.0, -1.0):
            up, down = (Linear(slope=tuple(s * np.eye(p)[0]), offset=s * end) for s in (1.0, -1.0))
            ups_downs.append((up, down))
    elif isinstance(learner, BanditPftal) and learner.regulariser:  # no loss need be strongly convex
        up, down = (Linear(slope=(0.0,) * p, offset=offset) for offset in (learner.bound, -learner.bound))
        ups_downs.append((up, down))
    elif isinstance(learner, BanditPftal):
        highest, lowest = learner.bound - learner.curvature * learner.domain.outer_radius**2 / 2, -learner.bound
        up, down, flat = (
            Quadratic(curvature=learner.curvature, centre=(0.0,) * p, offset=offset)
            for offset in (highest, lowest, min(highest, 0.0))
        )
        ups_downs.append((up, down))
    else:
        ups_downs += [_steep(learner, slope) for slope in directions]
        if isinstance(ups_downs[0][0], Quadratic):
            flat = Quadratic(curvature=learner.curvature, centre=(0.0,) * p)
    up, down = ups_downs[0]
    rows: list[Choice] = [flat, *(loss for both in ups_downs for loss in both)]
    patterns: list[Pattern] = [(down, up), (up, down), (down, down), (up, up), (flat, flat)]
    if isinstance(learner, Pftal):  # its gradient rises with the point: one convex loss, as |w|, that nobody adapts
        valley = Switch(below=down, above=up)
        rows.append(valley)
        patterns.append((valley, valley))
    differing: tuple[tuple[Loss, Loss], ...] = tuple(ups_downs)
    if claim.neighbours == "zero-out":
        differing = tuple((loss, nothing) for both in ups_downs for loss in both)
    return Alphabet(differing, tuple(patterns), (flat, up), tuple(rows))


def _steep(learner: Pftal, slope: Floats) -> tuple[Family, Family]:
    """Return the losses with the steepest gradients along and against `slope` that the learner's class allows."""
    h, radius = learner.curvature, learner.domain.outer_radius
    if learner.regulariser:  # it makes linear losses strongly convex
        return Linear(slope=tuple(slope)), Linear(slope=tuple(-slope))
    up, down = (Quadratic.steep(tuple(s * slope), curvature=h, radius=radius) for s in (1.0, -1.0))
    return up, down
