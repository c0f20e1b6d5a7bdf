"""What relations ask of a data set, whatever holds its records."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

from .canonical import RelationError
from .numbers import Path

#: From n to a whole number below it: a draw.
Choose = Callable[[int], int]


class UnfitError(RelationError):
    """A record that does not fit the place it is put into, while others may."""


class Parts(ABC):
    """What a record is made of: one thing, unless a subclass says more."""

    def replaced(self, record: Any, other: Any) -> Any:
        """Return what stands in the place of a record that becomes another; UnfitError where that does not fit."""
        return other

    def with_losses(self, record: Any, other: Any) -> Any:
        """Return a round with the losses of another; another record in the place of what is no round."""
        return self.replaced(record, other)

    def with_user_of(self, record: Any, other: Any) -> Any:
        """Return another record under the user of this one."""
        return self.replaced(record, other)

    @abstractmethod
    def zeroed(self, record: Any) -> Any:
        """Return a record with 0 for its numbers and nothing for its texts."""

    def losses_of(self, record: Any) -> Any:
        """Return the losses of a round; of what is no round the record."""
        return record

    def features_of(self, record: Any) -> int:
        """Return how many features a record has."""
        return 1

    def with_feature(self, record: Any, feature: int, other: Any) -> Any:
        """Return a record with one feature of another record."""
        return self.replaced(record, other)


class Records(Parts):
    """The records of one data set; every method returns data anew.

    Attributes
    ----------
    data : object
        The data set itself.
    size : int
        How many records it has.
    """

    data: Any
    size: int

    @abstractmethod
    def record(self, index: int) -> Any:
        """Return a record."""

    @abstractmethod
    def take(self, indices: Sequence[int]) -> Any:
        """Return the data of some records, in this order."""

    @abstractmethod
    def put(self, index: int, record: Any) -> Any:
        """Return the data with another record in the place of one; UnfitError where it does not fit."""

    @abstractmethod
    def check_removable(self) -> None:
        """Raise RelationError where no record can ever be taken away."""

    @abstractmethod
    def records_of(self, data: Any) -> Records:
        """Return the records of other data."""

    @abstractmethod
    def user_of(self, record: Any) -> str:
        """Return a text that says whose a record is."""

    @property
    @abstractmethod
    def form(self) -> Any:
        """The data's form in a record."""

    @abstractmethod
    def read(self, form: Any) -> Any:
        """Return the data that a form stands for."""


@dataclass(frozen=True)
class Drawing:
    """What a neighbour is drawn from.

    Attributes
    ----------
    index : int
        Of the record that differs.
    draw : callable
        Returns a record for its place.
    fixed : bool
        Whether the data set shall stay as it is where it can.
    min_size : int
        The fewest records of a data set.
    ranges : mapping
        The least and the largest number seen at each place of the data, for moves within a distance.
    """

    index: int
    draw: Callable[[], Any]
    fixed: bool = False
    min_size: int = 0
    ranges: Mapping[Path, tuple[Decimal, Decimal]] = field(default_factory=dict)


def put_all(records: Records, record_of_place: Mapping[int, Any]) -> Records:
    """Return the records with others at some places."""
    for i, record in record_of_place.items():
        records = records.records_of(records.put(i, record))
    return records
