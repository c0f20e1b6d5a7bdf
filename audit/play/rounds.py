"""The rounds of a learner as data, in its own terms, and which sequences of them are neighbours.

A round is a loss vector, `[0.2, 1.0]`, or one number for a learner of one arm; a convex loss, `{"loss": "quadratic",
...}`; or an object of these as "losses", with a "context" for a learner that observes one before it acts, with the
"arms" that it may play, and with the "user" whose round it is. `{"loss": "drawn"}` is a loss that the learner's own
code draws. Both worlds have as many rounds, since a learner's actions tell how many it has played.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import hinted, must_be, reworded
from ...learners.problems.losses import Family, Loss, check_lipschitz, loss_set
from ...mechanisms.relations import Relation, RelationError
from ...mechanisms.relations.canonical import Canonical
from ...mechanisms.relations.of_users import OfUser
from ...mechanisms.relations.records import Choose, Parts
from .data import key_of, to_json
from .pairs import Pair, fixed_loss, lengths_of, unlike

#: The parts of a round that is an object, in this order.
PARTS = ("user", "context", "arms", "losses")
#: The losses of a round whose losses the learner's method `draw` draws.
DRAWN_LOSS = {"loss": "drawn"}
#: A round as data: a list of numbers or an object. So is what a round holds as its losses.
Round = list[float] | dict[str, Any]


def losses_of(round_: Round) -> Round:
    """Return the losses of a round as data."""
    return round_["losses"] if isinstance(round_, dict) and "losses" in round_ else round_


def arms_of_round(round_: Round) -> list[int] | None:
    """Return the arms that a round offers; None where it offers all."""
    return round_["arms"] if isinstance(round_, dict) and "losses" in round_ and "arms" in round_ else None


def is_drawn(round_: Round) -> bool:
    """Tell whether the learner draws the losses of a round."""
    return losses_of(round_) == DRAWN_LOSS


def is_plain(round_: Round) -> bool:
    """Tell whether a round is losses alone, as far as a learner is told: no context, no arms, nothing drawn."""
    extra_parts = isinstance(round_, dict) and {"context", "arms"} & round_.keys()
    return not extra_parts and not is_drawn(round_)


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
        loss_of_arm = dict(zip(offered, losses, strict=True))
        losses = [loss_of_arm.get(arm, 0.0) for arm in range(arms)]
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
        if unknown_parts := [key for key in data if key not in PARTS]:
            raise ValueError(f"round {t} of an input has {', '.join(PARTS)}, got {unknown_parts[0]!r}")
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

    def read(self, data: object, source: str = "the strategy of inputs draws") -> list[Round]:
        """Return a sequence that fits; raise ValueError, in one line, for another."""
        sequence = as_sequence(data)
        if len(sequence) > self.rounds:
            error = ValueError(f"{source} {len(sequence)} rounds, but the horizon is {self.rounds}")
            raise hinted(error, f"give `rounds={len(sequence)}`")
        for t, round_ in enumerate(sequence, start=1):
            try:
                self._check(round_, t)
            except ValueError as error:
                message = f"{source} what the learner, whose input is a sequence of rounds, cannot be told"
                raise reworded(error, f"{message}: {error}", ValueError) from None
        return sequence

    def _check_offered(self, round_: Round, t: int) -> None:
        """Raise ValueError unless the arms of a round are some of the game's, and the learner takes them."""
        offered, losses = arms_of_round(round_), losses_of(round_)
        if offered is None:
            return
        are_integers = isinstance(offered, list) and all(type(arm) is int for arm in offered)
        if (
            not are_integers
            or not offered
            or len(set(offered)) < len(offered)
            or not set(offered) <= set(range(self.arms))
        ):
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
        loss, place = loss_of(round_), f"the loss of round {t}"
        if isinstance(loss, np.ndarray):
            if len(loss) != self.arms and arms_of_round(round_) is None:
                raise unlike(f"{place} has", len(loss), self.arms)
            if self.losses != "any" and not all(map(math.isfinite, loss)):
                raise must_be(place, "finite", loss.tolist())
            loss_set(self.losses).check(loss, place)
            return
        if lengths_of(loss) - {self.arms}:
            raise unlike(f"{place} has", max(lengths_of(loss)), self.arms)
        if isinstance(loss, Family):
            check_lipschitz(loss, self.radius)


class RoundParts(Parts):
    """What a round is made of: it is replaced whole, and whose it is stays."""

    def replaced(self, record: Round, other: Round) -> Round:
        """Return a round with all of another's data; whose it is stays."""
        return self._with(record, losses_of(other), other if isinstance(other, dict) and "losses" in other else {})

    def with_losses(self, record: Round, other: Round) -> Round:
        """Return a round with the losses of another, unless these are of other arms."""
        has_parts = isinstance(record, dict) and "losses" in record
        if has_parts and arms_of_round(record) != arms_of_round(other):
            return record
        return self._with(record, losses_of(other))

    def zeroed(self, record: Round) -> Round:
        """Return a round with zero losses."""
        losses = losses_of(record)
        if isinstance(losses, dict):
            raise hinted(RelationError("zero-out cannot apply to convex losses that are drawn"), "give loss vectors")
        return self._with(record, [0.0] * len(losses))

    def losses_of(self, record: Round) -> Round:
        """Return the losses of a round."""
        return losses_of(record)

    @staticmethod
    def _with(record: Round, losses: Round, parts: dict[str, Any] | None = None) -> Round:
        if not isinstance(record, dict) or "losses" not in record:
            return losses
        owner = {"user": record["user"]} if "user" in record else {}
        new_parts = {**record, **(parts or {}), **owner, "losses": losses}
        return {part: value for part, value in new_parts.items() if part in PARTS}


ROUND_PARTS = RoundParts()


@dataclass(frozen=True)
class RoundRelation:
    """Which sequences of rounds are neighbours by a relation: a record is a round, a value its loss."""

    relation: Relation

    def __post_init__(self) -> None:
        self.relation.on_rounds()  # raises where it cannot apply

    @property
    def name(self) -> str:
        """The relation's words."""
        return str(self.relation)

    def owners(self, sequence: Sequence[Round]) -> list[str | None]:
        """Return the user of each round, where the relation binds the rounds of a user together."""
        if not isinstance(self.relation, OfUser):
            return [None] * len(sequence)
        rounds = canonical(sequence)
        return rounds.users(required=self.relation.binds(rounds))

    def places(self, sequence: Sequence[Round], choose: Choose) -> list[int]:
        """Return places that may differ together: all of a user's, or as many as the relation says."""
        owners = self.owners(sequence)
        users = list(dict.fromkeys(owners))
        user = users[choose(len(users))]
        left = [t for t, owner in enumerate(owners) if owner == user]
        if self.relation.limit is None:
            return left
        max_count = min(self.relation.limit, len(left))
        count = max_count if max_count < 2 or choose(2) else 1 + choose(max_count)
        return sorted(left.pop(choose(len(left))) for _ in range(count))

    def put(self, record: Round, other: Round) -> Round:
        """Return a round with the data of another in the place of its own, as far as the relation replaces it."""
        new_round: Round = self.relation.change(ROUND_PARTS, record, other, int)
        return new_round

    def replaced(self, sequence: Sequence[Round], choose: Choose, pool: Sequence[Round]) -> list[Round]:
        """Return a neighbour of a sequence, with rounds of a pool."""
        new = list(sequence)
        for t in self.places(sequence, choose):
            new[t] = self.put(new[t], pool[choose(len(pool))])
        return new

    def check(self, left: Sequence[Round], right: Sequence[Round]) -> None:
        """Raise ValueError unless two sequences are neighbours."""
        if len(left) != len(right):
            raise ValueError(f"both inputs must have as many rounds, got {len(left)} and {len(right)}")
        worlds = canonical(left), canonical(right)
        if fault := self._kept_fault(*worlds) or self.relation.on_rounds().fault(*worlds):
            raise ValueError(f"the two worlds are no neighbours by {self.name}: {fault}")

    def are_near(self, left: Sequence[Round], right: Sequence[Round]) -> bool:
        """Return whether `check` takes two sequences."""
        with suppress(ValueError):
            self.check(left, right)
            return True
        return False

    def _kept_fault(self, left: Canonical, right: Canonical) -> str:
        """Return why rounds differ in what is no loss, where the relation lets it not."""
        pairs = [(left.records[t], right.records[t]) for t in left.places_apart(right)]
        if not pairs:
            return "no round differs"
        if any(record.get("user") != other.get("user") for record, other in pairs):
            return "a round has another user in the other input"
        if any(("context" in record) != ("context" in other) for record, other in pairs):
            return "a round has a context in one world alone"
        for part in ("context", "arms") if self.relation.losses_alone else ():
            if any(record.get(part) != other.get(part) for record, other in pairs):
                return f"their {part.removesuffix('s')}s differ"
        return ""


def canonical(sequence: Sequence[Round]) -> Canonical:
    """Return the canonical form of a sequence: its rounds are records."""
    rounds = [
        to_json(round_ if isinstance(round_, dict) and "losses" in round_ else {"losses": round_})
        for round_ in sequence
    ]
    return Canonical(rounds, "rounds", rounds, noun="round")


def differing(left: Sequence[Round], right: Sequence[Round]) -> list[int]:
    """Return the places at which two sequences differ, from 0; -0.0 is another number than 0.0."""
    return [t for t, (first, second) in enumerate(zip(left, right, strict=True)) if key_of(first) != key_of(second)]


def check_differing(left: Sequence[Round], right: Sequence[Round]) -> None:
    """Raise ValueError where the losses of a round that differs are drawn: they must be said."""
    for t, (first, second) in enumerate(zip(left, right, strict=False)):
        if key_of(first) != key_of(second) and (is_drawn(first) or is_drawn(second)):
            raise ValueError(f"the losses of round {t + 1}, in which the inputs differ, must be given, and not drawn")


def shows_nothing(left: object, right: object) -> bool:
    """Tell whether sequences differ in what a learner is told after all that it shows: the last round's losses."""
    first, second = as_sequence(left), as_sequence(right)
    told_before = any(_part(first[-1], part) != _part(second[-1], part) for part in ("context", "arms"))
    return differing(first, second) == [len(first) - 1] and not told_before


def _part(round_: Round, name: str) -> str | None:
    return key_of(round_[name]) if isinstance(round_, dict) and name in round_ else None


def user_of(round_: Round) -> str | None:
    """Return whose a round is; None where it does not say."""
    return _part(round_, "user")
