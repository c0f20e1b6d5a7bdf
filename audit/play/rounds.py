"""The rounds of a learner as data, in its own terms, and which sequences of them are neighbours.

A round is a loss vector, `[0.2, 1.0]`, or one number for a learner of one arm; a convex loss, `{"loss": "quadratic",
...}`; or an object of these as "losses", with a "context" for a learner that observes one before it acts, with the
"arms" that it may play, and with the "user" whose round it is. `{"loss": "drawn"}` is a loss that the learner's own
code draws. Both worlds have as many rounds, since a learner's actions tell how many it has played.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import hinted, must_be, must_be_one_of, reworded
from ...learners.problems.losses import Family, Loss, check_lipschitz, loss_set
from ...mechanisms.relation import Relation, RelationError, relation_names
from .data import key_of
from .distances import distance_fault, within
from .pairs import Pair, fixed_loss, lengths_of, unlike

#: The parts of a round that is an object, in this order.
PARTS = ("user", "context", "arms", "losses")
#: The losses of a round whose losses the learner's method `draw` draws.
DRAWN = {"loss": "drawn"}
#: A round as data: a list of numbers or an object. So is what a round holds as its losses.
Round = list[float] | dict[str, Any]
#: From n to a whole number below it: a draw.
Choose = Callable[[int], int]


def losses_of(round_: Round) -> Round:
    """Return the losses of a round as data."""
    return round_["losses"] if isinstance(round_, dict) and "losses" in round_ else round_


def arms_of_round(round_: Round) -> list[int] | None:
    """Return the arms that a round offers; None where it offers all."""
    return round_["arms"] if isinstance(round_, dict) and "losses" in round_ and "arms" in round_ else None


def is_drawn(round_: Round) -> bool:
    """Tell whether the learner draws the losses of a round."""
    return losses_of(round_) == DRAWN


def is_plain(round_: Round) -> bool:
    """Tell whether a round is losses alone, as far as a learner is told: no context, no arms, nothing drawn."""
    more = isinstance(round_, dict) and {"context", "arms"} & round_.keys()
    return not more and not is_drawn(round_)


def arms_told(sequence: Sequence[Round]) -> int | None:
    """Return how many arms the first vector of losses of a sequence has that all arms have; None where none says."""
    lengths = (losses for round_ in sequence if arms_of_round(round_) is None for losses in [losses_of(round_)])
    return next((len(losses) for losses in lengths if isinstance(losses, list)), None)


def loss_of(round_: Round, arms: int | None = None) -> Loss:
    """Return the loss of a round, a vector or a convex function; raise ValueError where it has none, or adapts.

    Of a round that offers some of so many `arms`, and has a loss for these alone, that of the others is 0.
    """
    offered, losses = arms_of_round(round_), losses_of(round_)
    if offered is not None and arms is not None and isinstance(losses, list) and len(losses) < arms:
        known = dict(zip(offered, losses, strict=True))
        losses = [known.get(arm, 0.0) for arm in range(arms)]
    return fixed_loss(losses)


def losses_pair(left: Sequence[Round], right: Sequence[Round]) -> Pair:
    """Return two sequences of rounds as a pair of losses; raise ValueError where they are none."""
    return Pair([loss_of(round_) for round_ in left], [loss_of(round_) for round_ in right])


def as_sequence(data: object) -> list[Round]:
    """Return a sequence of rounds as lists of floats and objects, whatever arrays and tuples it is made of.

    Raises
    ------
    ValueError
        For what is no sequence of rounds.
    """
    if isinstance(data, np.ndarray) and data.ndim:
        data = list(data)
    if not isinstance(data, list | tuple) or not len(data):
        raise ValueError(f"the inputs of a learner are sequences of at least one round, got {data!r:.80}")
    return [_as_round(round_, t) for t, round_ in enumerate(data, start=1)]


def _as_round(data: object, t: int) -> Round:
    if isinstance(data, dict) and "losses" in data:
        if more := [key for key in data if key not in PARTS]:
            raise ValueError(f"round {t} of an input has {', '.join(PARTS)}, got {more[0]!r}")
        return {part: _as_losses(data[part], t) if part == "losses" else data[part] for part in PARTS if part in data}
    return _as_losses(data, t)


def _as_losses(data: object, t: int) -> Round:
    if isinstance(data, dict) and "loss" in data:
        return data
    try:
        vector = np.atleast_1d(np.asarray(data, dtype=float))
    except OverflowError:
        raise ValueError(f"round {t} of an input must be finite, got a number beyond all floats") from None
    except (TypeError, ValueError):
        vector = np.empty((0, 0))
    if vector.ndim != 1 or not vector.size:
        expected = 'a loss vector, a convex loss or {"losses": ...} with a "context", "arms" or a "user"'
        raise must_be(f"round {t} of an input", expected, data)
    numbers: list[float] = vector.tolist()
    return numbers


@dataclass(frozen=True)
class Game:
    """What a learner can be told: every sequence must fit it.

    Attributes
    ----------
    arms, rounds : int
        The length of a loss vector; and the horizon, which no sequence exceeds. A shorter one is the beginning of a
        game: what the learner has released so far.
    losses : str
        The loss set of the claim.
    radius : float
        Of a ball around 0 that holds the domain: convex losses must be 1-Lipschitz there.
    contexts : bool
        Whether the learner observes contexts.
    publication : bool
        Whether what becomes of the last round's losses is shown.
    offers, draws : bool
        Whether the learner takes the arms of a round, and draws losses itself.
    """

    arms: int
    rounds: int
    losses: str
    radius: float
    contexts: bool
    publication: bool = False
    offers: bool = False
    draws: bool = False

    def read(self, data: object, what: str = "the strategy of inputs draws") -> list[Round]:
        """Return a sequence that fits; raise ValueError, in one line, for another."""
        sequence = as_sequence(data)
        if len(sequence) > self.rounds:
            error = ValueError(f"{what} {len(sequence)} rounds, but the horizon is {self.rounds}")
            raise hinted(error, f"give `rounds={len(sequence)}`")
        for t, round_ in enumerate(sequence, start=1):
            try:
                self._check(round_, t)
            except ValueError as error:
                told = f"{what} what the learner, whose input is a sequence of rounds, cannot be told"
                raise reworded(error, f"{told}: {error}", ValueError) from None
        return sequence

    def _check_offered(self, round_: Round, t: int) -> None:
        """Raise ValueError unless the arms of a round are some of the game's, and the learner takes them."""
        offered, losses = arms_of_round(round_), losses_of(round_)
        if offered is None:
            return
        whole = isinstance(offered, list) and all(type(arm) is int for arm in offered)
        if not whole or not offered or len(set(offered)) < len(offered) or not set(offered) <= set(range(self.arms)):
            raise ValueError(f"round {t} must offer some of the arms 0 to {self.arms - 1}, got {offered!r:.80}")
        if not self.offers:
            raise ValueError(f"round {t} offers arms, and the learner has no method offer that takes them")
        if isinstance(losses, list) and len(losses) not in (len(offered), self.arms):
            raise ValueError(
                f"the loss of round {t} has {len(losses)} numbers, for {len(offered)} arms that it offers of "
                f"{self.arms}"
            )

    def _check(self, round_: Round, t: int) -> None:
        if isinstance(round_, dict) and "context" in round_ and not self.contexts:
            raise ValueError(f"round {t} has a context, and the learner has no method observe that takes it")
        self._check_offered(round_, t)
        if is_drawn(round_):
            if not self.draws:
                raise ValueError(f"the loss of round {t} is drawn by the learner, which has no method draw")
            return
        loss, what = loss_of(round_), f"the loss of round {t}"
        if isinstance(loss, np.ndarray):
            if len(loss) != self.arms and arms_of_round(round_) is None:
                raise unlike(f"{what} has", len(loss), self.arms)
            if self.losses != "any" and not all(map(math.isfinite, loss)):
                raise must_be(what, "finite", loss.tolist())
            loss_set(self.losses).check(loss, what)
            return
        if lengths_of(loss) - {self.arms}:
            raise unlike(f"{what} has", max(lengths_of(loss)), self.arms)
        if isinstance(loss, Family):
            check_lipschitz(loss, self.radius)


@dataclass(frozen=True)
class RoundRelation:
    """Which sequences of rounds are neighbours by a relation: a record is a round, a value its loss."""

    relation: Relation

    def __post_init__(self) -> None:
        if self.relation.change == "add-remove" and self.relation.unit != "user":
            why = "a learner's actions tell how many rounds it has played, so both sides have as many"
            raise RelationError(f"add-remove cannot apply to a learner: {why}")
        if not self.relation.for_rounds:
            known = relation_names(rounds=True)
            error = must_be_one_of("neighbours of a learner's rounds", known, self.name, RelationError)
            raise hinted(error, "user:3 is for users of at most 3 rounds")

    @property
    def name(self) -> str:
        """The relation's words."""
        return str(self.relation)

    @property
    def most(self) -> int | None:
        """How many rounds may differ; None of a user's rounds: all of them."""
        return self.relation.most

    @property
    def labelled(self) -> bool:
        """Whether the rounds say whose they are."""
        return self.relation.unit == "user" and self.most is None

    def places(self, sequence: Sequence[Round], choose: Choose) -> list[int]:
        """Return places that may differ together: as many as are a user's."""
        if self.labelled:
            users = [_user(round_) for round_ in sequence]
            user = list(dict.fromkeys(users))[choose(len(set(users)))]
            return [t for t, one in enumerate(users) if one == user]
        left = list(range(len(sequence)))
        most = min(self.most or 1, len(left))
        many = most if most < 2 or choose(2) else 1 + choose(most)
        return sorted(left.pop(choose(len(left))) for _ in range(many))

    def put(self, mine: Round, other: Round) -> Round:
        """Return a round with the data of another in the place of its own, as far as the relation replaces it."""
        losses = losses_of(other)
        if self.relation.change == "zero":
            if isinstance(losses, dict):
                raise hinted(
                    RelationError("zero-out cannot apply to convex losses that are drawn"), "give loss vectors"
                )
            losses = [0.0] * len(losses_of(mine))
        if self.relation.change == "within":
            losses = within(self.relation, losses_of(mine), losses)
        if not isinstance(mine, dict) or "losses" not in mine:
            return losses
        if self.relation.losses_alone and arms_of_round(mine) != arms_of_round(other):
            return mine  # its losses are of other arms
        parts = {} if self.relation.losses_alone or not isinstance(other, dict) or "losses" not in other else other
        whose = {"user": mine["user"]} if "user" in mine else {}
        return {part: value for part, value in {**mine, **parts, **whose, "losses": losses}.items() if part in PARTS}

    def replaced(self, sequence: Sequence[Round], choose: Choose, pool: Sequence[Round]) -> list[Round]:
        """Return a neighbour of a sequence, with rounds of a pool."""
        new = list(sequence)
        for t in self.places(sequence, choose):
            new[t] = self.put(new[t], pool[choose(len(pool))])
        return new

    def check(self, left: Sequence[Round], right: Sequence[Round]) -> None:
        """Raise ValueError unless two sequences are neighbours."""
        if len(left) != len(right):
            raise ValueError(f"both worlds must have as many rounds, got {len(left)} and {len(right)}")
        if why := self._fault(left, right):
            raise ValueError(f"the two worlds are no neighbours by {self.name}: {why}")

    def _fault(self, left: Sequence[Round], right: Sequence[Round]) -> str:
        places = differing(left, right)
        listed = ", ".join(str(t + 1) for t in places) or "none"
        if not places:
            return "no round differs"
        if any(_part(left[t], "user") != _part(right[t], "user") for t in places):
            return "a round has another user in the other world"
        if self.labelled:
            if len({_user(left[t]) for t in places}) > 1:
                return f"rounds of several users differ: {listed}"
        elif len(places) > (self.most or 1):
            return f"they differ in rounds {listed}"
        for part in ("context", "arms") if self.relation.losses_alone else ():
            if any(_part(left[t], part) != _part(right[t], part) for t in places):
                return f"their {part.removesuffix('s')}s differ"
        if self.relation.change == "zero" and not any(
            all(_is_zero(side[t]) for t in places) for side in (left, right)
        ):
            return f"one loss of round {listed} must be 0"
        if self.relation.change == "within":
            return distance_fault(self.relation, losses_of(left[places[0]]), losses_of(right[places[0]]))
        return ""


def differing(left: Sequence[Round], right: Sequence[Round]) -> list[int]:
    """Return the places at which two sequences differ, from 0; -0.0 is another number than 0.0."""
    return [t for t, (one, other) in enumerate(zip(left, right, strict=True)) if key_of(one) != key_of(other)]


def check_differing(left: Sequence[Round], right: Sequence[Round]) -> None:
    """Raise ValueError where the losses of a round that differs are drawn: they must be said."""
    for t, (mine, other) in enumerate(zip(left, right, strict=False)):
        if key_of(mine) != key_of(other) and (is_drawn(mine) or is_drawn(other)):
            raise ValueError(f"the losses of round {t + 1}, in which the worlds differ, must be given, and not drawn")


def shows_nothing(left: object, right: object) -> bool:
    """Tell whether sequences differ in what a learner is told after all that it shows: the last round's losses."""
    mine, other = as_sequence(left), as_sequence(right)
    told_before = any(_part(mine[-1], part) != _part(other[-1], part) for part in ("context", "arms"))
    return differing(mine, other) == [len(mine) - 1] and not told_before


def _part(round_: Round, name: str) -> str | None:
    return key_of(round_[name]) if isinstance(round_, dict) and name in round_ else None


def user_of(round_: Round) -> str | None:
    """Return whose a round is; None where it does not say."""
    return _part(round_, "user")


def _user(round_: Round) -> str:
    user = user_of(round_)
    if user is None:
        raise RelationError(
            'user needs rounds that say whose they are, {"user": ..., "losses": ...}; or how many rounds a user has '
            "at most, as in user:3 or rounds_per_user=3"
        )
    return user


def _is_zero(round_: Round) -> bool:
    losses = losses_of(round_)
    return not isinstance(losses, dict) and not any(losses)
