"""Neighbouring loss sequences: two worlds that differ in exactly one round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import hinted, must_be
from ...learners.problems.losses import (
    Adaptive,
    Family,
    Loss,
    Switch,
    check_lipschitz,
    check_told,
    feedback,
    from_json,
    loss_set,
    resolve,
)
from ...learners.protocol import Actions, FeedbackKind, Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ...mechanisms.view import View
from ..record_types import PairJson

World = Sequence[Loss | Adaptive] | NDArray[np.float64]


def _world(losses_given: ArrayLike | Sequence[Loss | Adaptive], side: str) -> World:
    """Return the losses as a float array (rounds, arms), or as a tuple where some are convex functions."""
    losses = cast("Sequence[object]", losses_given)
    if len(losses) == 0:
        raise ValueError(f"a pair needs at least one round, got an empty {side} sequence")
    rows_of_numbers = isinstance(losses_given, np.ndarray) and losses_given.dtype != object
    if not rows_of_numbers and any(_is_function(loss) for loss in losses):
        for t, loss in enumerate(losses):
            numbers = isinstance(loss, np.ndarray) and loss.ndim == 1 and loss.size and loss.dtype.kind in "iuf"
            if not _is_function(loss) and not (numbers and np.isfinite(np.asarray(loss)).all()):
                raise must_be(
                    f"the {side} loss of round {t + 1}",
                    "a convex function or, beside such, a NumPy vector of finite numbers",
                    loss,
                )
        return cast(World, tuple(losses))
    try:
        array = np.asarray(losses, dtype=float)
    except OverflowError:
        raise ValueError(f"the {side} losses must be finite, got a number beyond all floats") from None
    except (TypeError, ValueError):
        raise ValueError(f"the {side} losses must be numbers in {len(losses)} rows of equal length") from None
    if array.ndim != 2 or array.shape[1] == 0:
        raise ValueError(f"the {side} losses must have shape (rounds, arms), got {array.shape}")
    if not np.isfinite(array).all():
        raise must_be(f"the {side} losses", "finite", array[~np.isfinite(array)][0])
    return array


def _is_function(loss: object) -> bool:
    return hasattr(loss, "gradient") or hasattr(loss, "given")


def lengths_of(loss: object) -> set[int]:
    """Return the length of a vector, a slope or a centre; none of a user's own kind of loss."""
    if isinstance(loss, Switch):
        return lengths_of(loss.below) | lengths_of(loss.above)
    vector = loss if isinstance(loss, np.ndarray) else getattr(loss, "slope", getattr(loss, "centre", None))
    return {len(vector)} if isinstance(loss, np.ndarray | Family) and vector is not None else set()


@dataclass(frozen=True)
class Pair:
    """Two loss sequences that differ in exactly one round.

    Parameters
    ----------
    left, right : array-like (rounds, arms), or sequences of `Convex` losses
        The losses of the two worlds.

    Raises
    ------
    ValueError
        If the shapes differ, a loss is not finite, or the worlds differ in no round or in several.

    Examples
    --------
    >>> pair = Pair([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]])
    >>> pair.t0, pair.rounds, pair.arms
    (0, 2, 2)
    >>> Pair([[1.0, 0.0]], [[1.0, 0.0]])
    Traceback (most recent call last):
    ValueError: a pair must differ in exactly one round, these differ in: none
    """

    left: World
    right: World

    def __init__(
        self, left: ArrayLike | Sequence[Loss | Adaptive], right: ArrayLike | Sequence[Loss | Adaptive]
    ) -> None:
        object.__setattr__(self, "left", _world(left, "left"))
        object.__setattr__(self, "right", _world(right, "right"))
        shapes = [np.shape(w) if isinstance(w, np.ndarray) else (len(w),) for w in (self.left, self.right)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"both inputs must have the same shape, got {shapes[0]} and {shapes[1]}")
        if len(self._lengths) > 1:
            raise ValueError(
                f"all losses of a pair must be of one length, got {' and '.join(map(str, self._lengths))}"
            )
        coordinates = [loss.coordinate for loss in (*self.left, *self.right) if isinstance(loss, Switch)]
        if coordinates and self.length is not None and max(coordinates) >= self.length:
            raise must_be("coordinate", f"less than {self.length}", max(coordinates))
        if len(self._differing) != 1:
            rounds = ", ".join(str(t + 1) for t in self._differing) or "none"
            raise ValueError(f"a pair must differ in exactly one round, these differ in: {rounds}")

    @cached_property
    def _lengths(self) -> list[int]:
        if isinstance(self.left, np.ndarray):
            return [int(self.left.shape[1])]
        return sorted(set().union(*(lengths_of(loss) for loss in (*self.left, *self.right))))

    @cached_property
    def _differing(self) -> list[int]:
        if isinstance(self.left, np.ndarray) and isinstance(self.right, np.ndarray):
            return np.flatnonzero((self.left != self.right).any(axis=1)).tolist()
        return [t for t, (a, b) in enumerate(zip(self.left, self.right, strict=True)) if not same_loss(a, b)]

    @property
    def t0(self) -> int:
        """The index of the differing round, from 0."""
        return self._differing[0]

    @property
    def rounds(self) -> int:
        """The number of rounds."""
        return len(self.left)

    @property
    def difference(self) -> str:
        """Where the two worlds differ, in words."""
        return f"pair differing in round {self.t0 + 1}" if self.rounds > 1 else "one round"

    def shows_nothing(self, view: View) -> bool:
        """Tell whether the worlds differ in the last losses alone, which come after all that any learner shows.

        A publication has what the last round released, too.
        """
        return self.t0 == view.updates(self.rounds)

    @property
    def arms(self) -> int | None:
        """The length of a loss vector; None for convex losses."""
        return int(self.left.shape[1]) if isinstance(self.left, np.ndarray) else None

    @property
    def length(self) -> int | None:
        """The length of every loss vector, slope and centre; None where the losses are all of a user's own kind."""
        return self._lengths[0] if self._lengths else None

    def feedback(
        self,
        t: int,
        actions: Actions,
        kind: FeedbackKind,
        left: NDArray[np.bool_] | bool,
        past: Sequence[Actions] | Actions = (),
    ) -> Floats:
        """Return what a learner is told after its actions in round t (from 0), each run in its own world.

        Parameters
        ----------
        left : bool, or bool array (runs,)
            Which world; the worlds agree except at t0.
        past : sequence of actions
            Those of the rounds before, which adaptive losses depend on.
        """
        in_left = self._told("left", t, actions, kind, past)
        if t != self.t0 or left is True:
            return in_left
        in_right = self._told("right", t, actions, kind, past)
        return in_right if left is False else np.where(left, in_left, in_right)

    def _told(
        self, side: str, t: int, actions: Actions, kind: FeedbackKind, past: Sequence[Actions] | Actions
    ) -> Floats:
        world = getattr(self, side)
        if isinstance(world, np.ndarray):  # checked already
            return feedback(world[t], actions, kind)
        loss = resolve(world[t], [*past, actions])
        fed = feedback(loss, actions, kind)
        check_told(fed, f"the {side} loss of round {t + 1}", loss)
        return fed

    def check(self, claim: Claim, *, radius: float = 1.0) -> None:
        """Raise ValueError unless both worlds lie in the claim's loss set and are its neighbours.

        Parameters
        ----------
        radius : float
            Of a ball around 0 that holds the domain: convex losses must be 1-Lipschitz there.
        """
        for function in {loss for loss in (*self.left, *self.right) if isinstance(loss, Family | Switch)}:
            check_lipschitz(function, radius)
        for side, world in (("left", self.left), ("right", self.right)):
            for t, loss in enumerate(world):
                if isinstance(loss, np.ndarray):
                    loss_set(claim.losses).check(loss, f"the {side} loss of round {t + 1}")
        differing = self.left[self.t0], self.right[self.t0]
        if claim.neighbours == "zero-out" and not any(_nothing(loss, radius) for loss in differing):
            raise ValueError(f"under zero-out neighbours one loss of round {self.t0 + 1} must be 0, both are not")

    @property
    def key(self) -> str:
        """What equal pairs share, and no others."""
        return repr(self.to_json())

    def to_json(self) -> PairJson:
        """Return the record's form: the differing round from 1, and both sequences."""
        left, right = (
            world.tolist() if isinstance(world, np.ndarray) else [loss_json(loss) for loss in world]
            for world in (self.left, self.right)
        )
        return {"round": self.t0 + 1, "left": left, "right": right}

    @classmethod
    def from_json(cls, data: object) -> Pair:
        """Read a pair from `{"left": [...], "right": [...]}`: loss vectors, or objects of convex losses."""
        if not isinstance(data, dict) or not {"left", "right"} <= data.keys():
            expected = 'an object with "left" and "right", each a list of loss vectors'
            raise must_be("a pair", expected, data)
        for side in ("left", "right"):
            if not isinstance(data[side], list) or not data[side]:
                raise must_be(f'"{side}"', "a non-empty list of loss vectors", data[side])
        sides = (data["left"], data["right"])
        if any(isinstance(loss, dict) for side in sides for loss in side):
            left, right = ([from_json(loss) for loss in side] for side in sides)
            return cls(left, right)
        return cls(*sides)


def fixed_loss(data: object) -> Loss:
    """Read a loss from the record's form; raise ValueError for an adaptive one too, which pairs alone may have."""
    loss = from_json(data)
    if isinstance(loss, Switch):
        raise ValueError(f"a loss that depends on past actions can be given in a pair alone, got {data!r:.80}")
    return loss


def radius_of(learner: Learner) -> float:
    """Return the radius of a ball around 0 that holds the learner's domain, where it has one; else 1."""
    return float(getattr(getattr(learner, "domain", None), "outer_radius", 1.0))


def unlike(subject: str, length: int, arms: int, unit: str = "length {}") -> ValueError:
    """Return the error that losses have another length than the learner has arms."""
    return hinted(
        ValueError(f"{subject} {unit.format(length)}, but the learner has {arms} arms"), f"give `arms={length}`"
    )


def other_rounds(has: int, asked: int | None) -> ValueError:
    """Return the error that a pair of inputs has other rounds than are asked for."""
    error = ValueError(f"the pair has {has} rounds, but rounds = {asked!r} was asked for")
    return hinted(error, f"leave out `rounds`, or give `rounds={has}`")


def check_pair(pair: Pair, claim: Claim, learner: Learner) -> None:
    """Raise ValueError unless a learner can be audited on a pair and the claim speaks of it.

    Every stage asks here: what one of them may be given, no other refuses.
    """
    if pair.arms is not None and pair.arms != learner.arms:
        raise unlike("the pair has", pair.arms, learner.arms, "{} arms")
    if pair.length not in (None, learner.arms):
        raise unlike("the pair's losses have", pair.length, learner.arms)
    pair.check(claim, radius=radius_of(learner))
    allowed = getattr(learner, "loss_class", None)
    if allowed is not None:
        for side, world in (("left", pair.left), ("right", pair.right)):
            for t, loss in enumerate(world):
                nothing = claim.neighbours == "zero-out" and t == pair.t0 and _nothing(loss, radius_of(learner))
                if not nothing:  # what replaces the round's loss need not be of the class
                    allowed.check(loss, f"the {side} loss of round {t + 1}")


def same_loss(a: object, b: object) -> bool:
    """Tell whether two losses, vectors or functions, are the same."""
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        return bool(np.array_equal(a, b))
    return bool(a == b)


def _nothing(loss: object, radius: float) -> bool:
    """Tell whether a loss is 0 on the ball of this radius; a user's own kind of loss is taken for it."""
    if isinstance(loss, np.ndarray):
        return not loss.any()
    if isinstance(loss, Switch):
        return _nothing(loss.below, radius) and _nothing(loss.above, radius)
    return not isinstance(loss, Family) or loss.bound(radius) == 0


def loss_json(loss: object) -> object:
    """Return a loss in the record's form."""
    if isinstance(loss, np.ndarray):
        return loss.tolist()
    return loss.to_json() if hasattr(loss, "to_json") else repr(loss)


def extremes(claim: Claim, arms: int) -> tuple[float, float, Floats, Floats]:
    """Return the least and the largest loss that all arms have, and losses that are high by turns, and at one arm."""
    losses = loss_set(claim.losses)
    if not losses.bounded:
        raise hinted(
            ValueError(f"losses {losses.name} have no extremes to search"),
            "give `pair`, `left` and `right`, or `inputs`",
        )
    low, high = (end * losses.scale(arms) for end in (losses.low, losses.high))
    contrast, single = (np.where(where, high, low) for where in (np.arange(arms) % 2 == 0, np.arange(arms) == 0))
    return low, high, contrast, single


def differing_losses(claim: Claim, arms: int) -> list[tuple[Floats, Floats]]:
    """Return the extreme differing losses of one round: all coordinates together, opposed, and one alone."""
    low, high, contrast, single = extremes(claim, arms)
    unit = np.ones(arms)
    if claim.neighbours == "zero-out":
        return [(loss, 0 * unit) for loss in _distinct([high * unit, contrast, single, -contrast * (low < 0)])]
    opposite = high + low
    lefts = _distinct([high * unit, contrast, single])
    pairs = [(left, opposite - left) for left in lefts]
    if claim.losses == "l1-ball":
        pairs.append((np.eye(arms)[0], -np.eye(arms)[0]))
    return pairs


def _distinct(rows: list[Floats]) -> list[Floats]:
    rows_kept: list[Floats] = []
    for row in rows:
        if np.any(row) and not any(np.array_equal(row, other) for other in rows_kept):
            rows_kept.append(row)
    return rows_kept
