"""Neighbour relations: which two inputs are neighbours, by one set of words in command line, plan and Python."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation

from ..errors import must_be, must_be_one_of

#: What stands before the name of a function that says which inputs are neighbours.
BY_FUNCTION = "function "
#: The largest number of records, rounds or users' rounds that a relation may name.
MOST = 10**6


class RelationError(ValueError):
    """A neighbour relation that cannot apply to the data."""


@dataclass(frozen=True)
class Relation:
    """What makes two inputs neighbours.

    Attributes
    ----------
    name : str
        The word of command line, plan and Python, without its number: `replace` of `replace:3`.
    unit : {"record", "feature", "user", "value"}
        What changes: a record (a learner's record is a round), one feature of a record, all records of one user, or
        the numbers of the input.
    change : {"replace", "add-remove", "zero", "losses", "within"}
        What happens to it. "losses" replaces a round's losses and keeps its context; "within" moves numbers by at
        most `distance`.
    most : int or None
        How many units may change; None of a user's records: all of them.
    norm : float
        Of "within": 1, 2 or infinity.
    distance : str
        Of "within": the largest distance, as it was written.
    for_data, for_rounds : bool
        Whether it applies to the data of mechanisms, and to the rounds of learners.

    Examples
    --------
    >>> Relation.parse("replace:3").words
    'up to 3 records are replaced'
    >>> str(Relation.parse("l2:0.5"))
    'l2:0.5'
    >>> Relation.parse("l2")
    Traceback (most recent call last):
    overclaim.mechanisms.relation.RelationError: neighbours must be l2:D with a distance, as in l2:0.5, got 'l2'
    """

    name: str
    unit: str
    change: str
    most: int | None = 1
    norm: float = 0.0
    distance: str = ""
    for_data: bool = True
    for_rounds: bool = False

    @staticmethod
    def parse(text: object) -> Relation:
        """Return the relation that a text names.

        Raises
        ------
        RelationError
            For another text, with those that are known.
        """
        name, colon, number = str(text).partition(":")
        known = _KNOWN.get(name) if isinstance(text, str) else None
        if known is None:
            raise must_be_one_of("neighbours", relation_names(), text, RelationError)
        if known.change == "within":
            return replace(known, distance=_distance(name, number))
        if not colon:
            return known
        if name not in _COUNTED:
            raise must_be("neighbours", f"{name} without a number", text, RelationError)
        if not re.fullmatch(r"[1-9]\d*", number, re.ASCII) or int(number) > MOST:
            raise must_be("neighbours", f"{name}:K with a whole number from 1 to {MOST}", text, RelationError)
        # All of a user's rounds, unless rounds do not say whose they are: then up to so many.
        return replace(known, most=int(number))

    def __str__(self) -> str:
        if self.change == "within":
            return f"{self.name}:{self.distance}"
        return self.name if self.most == _KNOWN[self.name].most else f"{self.name}:{self.most}"

    @property
    def losses_alone(self) -> bool:
        """Whether contexts are the same on both sides."""
        return self.change in ("zero", "losses", "within")

    @property
    def words(self) -> str:
        """What a neighbouring input of a mechanism changes: a clause."""
        norm = _NORMS.get(self.norm, "")
        many = f"up to {self.most} records are" if self.most and self.most > 1 else "one record is"
        words = {
            ("record", "replace"): f"{many} replaced",
            ("record", "add-remove"): f"{many} added or removed",
            ("record", "zero"): "one record becomes zero",
            ("feature", "replace"): "one feature of one record is replaced",
            ("user", "add-remove"): "all records of one user are added or removed",
            ("user", "replace"): "all records of one user are replaced",
            ("user", "zero"): "all records of one user become zero",
            (
                "value",
                "within",
            ): f"the numbers move by at most {self.distance} in {norm} distance",
        }
        return words.get((self.unit, self.change), self.round_words)

    @property
    def round_words(self) -> str:
        """What a neighbouring sequence of rounds changes: a clause."""
        up_to = "" if self.most is None else f"up to {self.most} round{'s' * (self.most > 1)}"
        user = f"{up_to or 'all rounds'} of one user"
        many = "one round" if self.most == 1 else up_to
        words = {
            ("record", "replace"): f"{many} replaced",
            ("record", "zero"): "one round's loss becomes 0",
            ("record", "losses"): "the losses of one round replaced, its context the same",
            ("user", "add-remove"): f"{user} replaced",
            ("user", "replace"): f"{user} replaced",
            ("user", "zero"): f"the losses of {user} become 0, their contexts the same",
            ("user", "losses"): f"the losses of {user} replaced, their contexts the same",
            ("value", "within"): f"one round's loss moves by at most {self.distance} in "
            f"{_NORMS.get(self.norm, '')} distance",
        }
        return words.get((self.unit, self.change), str(self))


_NORMS = {1.0: "L1", 2.0: "L2", float("inf"): "L-infinity"}
#: Every relation by its name. `user` adds or removes a user's records in data, and replaces a user's rounds.
_KNOWN = {
    relation.name: relation
    for relation in (
        Relation("replace", "record", "replace", for_rounds=True),
        Relation("zero-out", "record", "zero", for_rounds=True),
        Relation("add-remove", "record", "add-remove"),
        Relation("substitute-feature", "feature", "replace"),
        Relation("user", "user", "add-remove", most=None, for_rounds=True),
        Relation("replace-user", "user", "replace", most=None, for_rounds=True),
        Relation("zero-out-user", "user", "zero", most=None, for_rounds=True),
        Relation("replace-losses", "record", "losses", for_data=False, for_rounds=True),
        Relation("user-losses", "user", "losses", most=None, for_data=False, for_rounds=True),
        Relation("l1", "value", "within", norm=1.0, for_rounds=True),
        Relation("l2", "value", "within", norm=2.0, for_rounds=True),
        Relation("linf", "value", "within", norm=float("inf"), for_rounds=True),
    )
}
#: Those that may name how many.
_COUNTED = ("replace", "add-remove", "user", "user-losses", "replace-user", "zero-out-user")


def relation_names(*, rounds: bool = False, data: bool = False) -> list[str]:
    """Return the words of all relations, or of those of rounds or of data, with what a number stands for."""
    wanted = [r for r in _KNOWN.values() if (r.for_rounds or not rounds) and (r.for_data or not data)]
    return [f"{r.name}:D" if r.change == "within" else r.name for r in wanted]


def is_relation(text: object) -> bool:
    """Return whether a text names a relation."""
    try:
        Relation.parse(text)
    except RelationError:
        return False
    return True


def by_function(neighbours: object) -> bool:
    """Return whether a claim's neighbours are what a function of the user's says."""
    return isinstance(neighbours, str) and neighbours.startswith(BY_FUNCTION)


def neighbours_words(neighbours: str, *, data: bool = False) -> str:
    """Return what a relation of rounds, or of data, changes, in words; that of another relation is its name.

    Examples
    --------
    >>> neighbours_words("user:3")
    'user: up to 3 rounds of one user replaced'
    >>> neighbours_words("replace-user", data=True)
    'replace-user: all records of one user are replaced'
    """
    if not is_relation(neighbours):
        return neighbours
    relation = Relation.parse(neighbours)
    if data:
        return f"{relation.name}: {relation.words}" if relation.for_data else neighbours
    return f"{relation.name}: {relation.round_words}" if relation.for_rounds else neighbours


def _distance(name: str, number: str) -> str:
    if not number:
        raise must_be("neighbours", f"{name}:D with a distance, as in {name}:0.5", name, RelationError)
    try:
        distance = Decimal(number)
    except InvalidOperation:
        distance = Decimal("NaN")
    if not distance.is_finite() or distance <= 0:
        raise must_be("neighbours", f"{name}:D with a positive, finite distance", f"{name}:{number}", RelationError)
    return number
