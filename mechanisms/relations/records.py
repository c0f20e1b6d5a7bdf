"""What relations ask of a data set, whatever holds its records."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from .canonical import RelationError
from .numbers import Path

#: From n to a whole number below it: a draw.
Choose = Callable[[int], int]


class UnfitError(RelationError):
    """A record that does not fit the place it is put into, while others may."""


class Parts(Protocol):
    """What a record is made of."""

    def replaced(self, record: Any, other: Any) -> Any:
        """Return what stands in the place of a record that becomes another; UnfitError where that does not fit."""

    def with_losses(self, record: Any, other: Any) -> Any:
        """Return a round with the losses of another; another record in the place of what is no round."""

    def with_user_of(self, record: Any, other: Any) -> Any:
        """Return another record under the user of this one."""

    def zeroed(self, record: Any) -> Any:
        """Return a record with 0 for its numbers and nothing for its texts."""

    def losses_of(self, record: Any) -> Any:
        """Return the losses of a round."""

    def features_of(self, record: Any) -> int:
        """Return how many features a record has."""

    def with_feature(self, record: Any, feature: int, other: Any) -> Any:
        """Return a record with one feature of another record."""


class Records(Parts, Protocol):
    """The records of one data set; every method returns data anew."""

    data: Any
    size: int

    def record(self, index: int) -> Any:
        """Return a record."""

    def take(self, indices: Sequence[int]) -> Any:
        """Return the data of some records, in this order."""

    def put(self, index: int, record: Any) -> Any:
        """Return the data with another record in the place of one."""

    def check_removable(self) -> None:
        """Raise RelationError where no record can ever be taken away."""

    def records_of(self, data: Any) -> Records:
        """Return the records of other data."""

    def user_of(self, record: Any) -> str:
        """Return a text that says whose a record is."""

    @property
    def form(self) -> Any:
        """The data's form in a record."""

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
    still : bool
        Whether the data set shall stay as it is where it can.
    min_size : int
        The fewest records of a data set.
    ranges : mapping
        The least and the largest number seen at each place of the data, for moves within a distance.
    """

    index: int
    draw: Callable[[], Any]
    still: bool = False
    min_size: int = 0
    ranges: Mapping[Path, tuple[Decimal, Decimal]] = field(default_factory=dict)


def put_all(records: Records, changed: Mapping[int, Any]) -> Records:
    """Return the records with others at some places."""
    for i, record in changed.items():
        records = records.records_of(records.put(i, record))
    return records
