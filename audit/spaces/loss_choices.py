"""What pairs are made of: the extreme losses that a learner takes and a claim allows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...learners.problems.extremes import ExtremeLosses, HasExtremes
from ...learners.problems.losses import Adaptive, Linear, Loss, loss_set
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
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
    single_entries : tuple of (left, right)
        Neighbours that differ in one entry. Those of `differing` hide from who is told all losses what depends on
        whether some are equal, or on the parity of their sum.
    """

    differing: tuple[tuple[Loss, Loss], ...]
    patterns: tuple[Pattern, ...]
    others_in_batch: tuple[Choice, ...]
    rows: tuple[Choice, ...]
    box: bool = False
    single_entries: tuple[tuple[Loss, Loss], ...] = ()

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
    unit, other = np.ones(arms), high + low - contrast
    constants = [high * unit, low * unit, (high + low) / 2 * unit]
    box = loss_set(claim.losses).box
    return Alphabet(
        differing=tuple(differing_losses(claim, arms)),
        patterns=(*((c, c) for c in (*constants, contrast)), (contrast, other)),
        others_in_batch=tuple(constants[:2]),
        rows=(*constants, contrast, other),
        box=box,
        single_entries=((single, low * unit),) if box and claim.neighbours == "replace" else (),
    )


def alphabet_of(learner: Learner, claim: Claim) -> Alphabet:
    """Return the losses to search over: those that a learner of convex losses calls extreme, else vectors."""
    if claim.losses == "lipschitz" and isinstance(learner, HasExtremes):
        return _convex_alphabet(learner.extremes(), learner.arms, claim)
    return linear_alphabet(claim, learner.arms)


def _convex_alphabet(extreme: ExtremeLosses, arms: int, claim: Claim) -> Alphabet:
    flat, (rise, fall) = extreme.flat, extreme.opposed[0]
    rows: list[Choice] = [flat, *(loss for sides in extreme.opposed for loss in sides), *extreme.adaptive]
    patterns: list[Pattern] = [(fall, rise), (rise, fall), (fall, fall), (rise, rise), (flat, flat)]
    patterns += [(loss, loss) for loss in extreme.adaptive]
    differing: tuple[tuple[Loss, Loss], ...] = extreme.opposed
    if claim.neighbours == "zero-out":
        nothing = Linear(slope=(0.0,) * arms)
        differing = tuple((loss, nothing) for sides in extreme.opposed for loss in sides)
    return Alphabet(differing, tuple(patterns), (flat, rise), tuple(rows))
