"""What every neighbour relation has, and all of them by their names."""

from __future__ import annotations

import re
from abc import ABC
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...errors import hinted, must_be, must_be_one_of
from .canonical import Canonical, RelationError
from .records import Choose, Drawing, Parts, Records, put_all

if TYPE_CHECKING:
    import numpy as np

#: What stands before the name of a function that says which inputs are neighbours.
BY_FUNCTION = "function "
#: The largest number of records, rounds or users' rounds that a relation may name.
MAX_COUNT = 10**6
#: The share of the changes of several records in which all of them become the same record: sums add up then.
P_EQUAL = 0.7
#: Every relation by its name; a class enters itself.
RELATIONS: dict[str, type[Relation]] = {}


@dataclass(frozen=True)
class Relation(ABC):
    """What makes two inputs neighbours: a class for each relation.

    Attributes
    ----------
    name : str
        The word of command line, plan and Python, without its number: `replace` of `replace:3`.
    for_data, for_rounds : bool
        Whether it applies to the data of mechanisms, and to the rounds of learners.
    takes_count : bool
        Whether it may name how many records change, as in `replace:3`.
    removes : bool
        Whether one input has records that the other lacks.
    of_users : bool
        Whether all that changes is one user's.
    of_record : bool
        Whether a record takes another's place, or is left out, whatever it is.
    losses_alone : bool
        Whether a round keeps its context and its arms.
    data_text, rounds_text : str
        What a neighbour changes, a clause with {records}, {rounds} and {user_rounds} for how many.
    limit : int or None
        How many records may change; None of a user's records: all of them.

    Examples
    --------
    >>> Relation.parse("replace:3").clause
    'up to 3 records are replaced'
    >>> str(Relation.parse("l2:0.5"))
    'l2:0.5'
    """

    name: ClassVar[str]
    number: ClassVar[str] = ""
    for_data: ClassVar[bool] = True
    for_rounds: ClassVar[bool] = False
    takes_count: ClassVar[bool] = False
    removes: ClassVar[bool] = False
    of_users: ClassVar[bool] = False
    of_record: ClassVar[bool] = False
    losses_alone: ClassVar[bool] = False
    data_text: ClassVar[str] = ""
    rounds_text: ClassVar[str] = ""
    limit: int | None = 1

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "name" in vars(cls):
            RELATIONS[cls.name] = cls

    @staticmethod
    def parse(text: object) -> Relation:
        """Return the relation that a text names.

        Raises
        ------
        RelationError
            For another text, with those that there are.
        """
        name, colon, number = str(text).partition(":")
        if not isinstance(text, str) or name not in RELATIONS:
            raise must_be_one_of("neighbours", relation_names(), text, RelationError)
        return RELATIONS[name].with_number(number if colon else None)

    @classmethod
    def with_number(cls, number: str | None) -> Self:
        """Return the relation with the number behind its name; RelationError for one that it cannot have."""
        if number is None:
            return cls()
        text = f"{cls.name}:{number}"
        if not cls.takes_count:
            raise must_be("neighbours", f"{cls.name} without a number", text, RelationError)
        if not re.fullmatch(r"[1-9]\d*", number, re.ASCII) or int(number) > MAX_COUNT:
            raise must_be("neighbours", f"{cls.name}:K with a whole number from 1 to {MAX_COUNT}", text, RelationError)
        return cls(limit=int(number))

    def __str__(self) -> str:
        return self.name if self.limit == type(self)().limit else f"{self.name}:{self.limit}"

    @property
    def clause(self) -> str:
        """What a neighbouring input of a mechanism changes."""
        return self._filled(self.data_text)

    @property
    def round_clause(self) -> str:
        """What a neighbouring sequence of rounds changes."""
        return self._filled(self.rounds_text) or str(self)

    def _filled(self, text: str) -> str:
        count = self.limit
        rounds = "all rounds" if count is None else f"up to {count} round{'s' * (count > 1)}"
        return text.format(
            relation=self,
            records=f"up to {count} records are" if count and count > 1 else "one record is",
            rounds="one round" if count == 1 else rounds,
            user_rounds=f"{rounds} of one user",
        )

    @property
    def single(self) -> bool:
        """Whether a pair of a search is a data set and the record that takes another's place, or that is left out."""
        return self.of_record and self.limit == 1

    def on_rounds(self) -> Relation:
        """Return the relation as it applies to the rounds of a learner; RelationError where it does not."""
        if not self.for_rounds:
            known_names = relation_names(rounds=True)
            error = must_be_one_of("neighbours of a learner's rounds", known_names, str(self), RelationError)
            raise hinted(error, "user:3 is for users of at most 3 rounds")
        return self

    # What neighbours are

    def check(self, left: Canonical, right: Canonical) -> None:
        """Raise ValueError, with what is wrong, unless two inputs are neighbours."""
        if fault := self.fault(left, right):
            raise ValueError(f"the two inputs are no neighbours by {self}: {fault}")

    def fault(self, left: Canonical, right: Canonical) -> str:
        """Return why two inputs are no neighbours; nothing where they are.

        What the relation does not allow to differ is equal: kind, keys, shape, labels and types.
        """
        if fault := left.frame_fault(right):
            return fault
        if len(left.records) != len(right.records):
            return f"they have {len(left.records)} and {len(right.records)} {left.noun}s"
        if left.kind in ("set", "frozenset"):
            left, right = left.aligned(right), right.aligned(left)
        elif left.labels != right.labels:
            return "the keys or labels of their records differ"
        places = left.places_apart(right)
        return self.record_fault(left, right, places) if places else ""

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the records at the places where two inputs differ are not what the relation allows."""
        listed = ", ".join(str(i + 1) for i in places)
        return f"they differ in {left.noun}s {listed}" if len(places) > (self.limit or 1) else ""

    # How data changes by it

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return what a record becomes, given another one, as far as the relation lets it; UnfitError if nothing."""
        return parts.replaced(record, other)

    def stages(self, parts: Parts, record: Any, other: Any) -> Iterator[Any]:
        """Yield what a record becomes on its way to another one, each a change by the relation."""
        yield self.change(parts, record, other, lambda count: 0)

    def user_at(self, records: Records, index: int) -> str | None:
        """Return whose a record is, where that binds records together."""
        return None

    def check_data(self, records: Records) -> None:
        """Raise RelationError where the relation can never apply to such data: where no record can be taken away."""
        if self.removes:
            records.check_removable()

    def neighbours(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Any, Any]:
        """Return a data set, this one or one like it, and a neighbour of it.

        Raises
        ------
        UnfitError
            Where a record does not fit.
        RelationError
            Where the relation cannot apply to such data.
        """
        records, places = self.places(records, rng, drawing)
        if self.of_users or rng.random() < P_EQUAL:  # equal in the data set too: they add up
            record = drawing.draw()
            records = put_all(records, {i: self.of_owner(records, i, record) for i in places})
        return records.data, put_all(records, self.new_records(records, places, rng, drawing)).data

    def places(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Records, Sequence[int]]:
        """Return the records, or others like them, and the places that change together."""
        other_places = [i for i in range(records.size) if i != drawing.index]
        max_count = min((self.limit or 1) - 1, len(other_places))
        count = max_count if rng.random() < P_EQUAL else int(rng.integers(max_count + 1))
        return records, sorted([drawing.index, *(int(i) for i in rng.permutation(other_places)[:count])])

    def new_records(
        self, records: Records, places: Sequence[int], rng: np.random.Generator, drawing: Drawing
    ) -> dict[int, Any]:
        """Return what takes the places of the records that change: often the same record."""
        equal = drawing.draw() if rng.random() < P_EQUAL else None
        return {i: self.of_owner(records, i, drawing.draw() if equal is None else equal) for i in places}

    def of_owner(self, records: Records, index: int, other: Any) -> Any:
        """Return another record as it stands in the place of one."""
        return records.replaced(records.record(index), other)


def relation_names(*, rounds: bool = False, data: bool = False) -> list[str]:
    """Return the names of all relations, or of those of rounds or of data, with what a number stands for."""
    kinds = [kind for kind in RELATIONS.values() if (kind.for_rounds or not rounds) and (kind.for_data or not data)]
    return [f"{kind.name}{kind.number}" for kind in kinds]


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
        return f"{relation.name}: {relation.clause}" if relation.for_data else neighbours
    return f"{relation.name}: {relation.round_clause}" if relation.for_rounds else neighbours
