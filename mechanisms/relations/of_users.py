"""Relations of users: all records of one user are there or not, are replaced, or become zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .canonical import Canonical
from .of_records import removal_fault, without, zero_fault
from .records import Choose, Drawing, Parts, Records, UnfitError, put_all
from .relation import P_EQUAL, Relation

if TYPE_CHECKING:
    import numpy as np


@dataclass(frozen=True)
class OfUser(Relation):
    """A relation of one user's records; with K, of a user who has at most so many."""

    for_rounds, takes_count, of_users = True, True, True
    limit: int | None = None

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the records that differ are not one user's, or too many."""
        listed = ", ".join(str(i + 1) for i in places)
        users = {side.users(required=self.binds(left))[i] for side in (left, right) for i in places}
        if len(users) > 1:
            several = (
                "rounds of several users differ: {}" if left.noun == "round" else "records {} are of several users"
            )
            return several.format(listed)
        if self.limit is not None and len(places) > self.limit:
            return f"they differ in {left.noun}s {listed}, more than {self.limit}"
        return ""

    def binds(self, data: Canonical) -> bool:
        """Return whether the records must say whose they are: of rounds that are counted they need not."""
        return data.noun == "record" or self.limit is None

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the other record under the user of this one."""
        return parts.with_user_of(record, other)

    def user_at(self, records: Records, index: int) -> str | None:
        """Return whose a record is."""
        return records.user_of(records.record(index))

    def places(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Records, Sequence[int]]:
        """Return the records, some of which may now be the same user's, and the places of all of hers."""
        if not drawing.fixed and rng.random() < P_EQUAL:  # her share is what the relation protects
            other_places = [i for i in range(records.size) if rng.random() < rng.random()]
            owner = records.record(drawing.index)
            records = put_all(records, {i: records.with_user_of(owner, records.record(i)) for i in other_places})
        users = [records.user_of(records.record(i)) for i in range(records.size)]
        return records, [i for i, user in enumerate(users) if user == users[drawing.index]]

    def of_owner(self, records: Records, index: int, other: Any) -> Any:
        """Return another record as this one's user has it."""
        try:
            return records.with_user_of(records.record(index), other)
        except (TypeError, AttributeError):
            raise UnfitError("a record of another form does not fit the user's") from None


class User(OfUser):
    """All records of one user are there or not; a learner has as many rounds on both sides, and hers are replaced."""

    name, removes = "user", True
    data_text, rounds_text = "all records of one user are added or removed", "{user_rounds} replaced"

    def on_rounds(self) -> Relation:
        """Return the relation by which a user's rounds are replaced."""
        return ReplaceUser(self.limit)

    def fault(self, left: Canonical, right: Canonical) -> str:
        """Return why one input is not the other without a user."""
        return removal_fault(self, left, right)

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the records that are gone are not all of one user."""
        users = left.users()
        if len({users[i] for i in places}) > 1 or any(user == users[places[0]] for user in right.users()):
            return "the records that are added or removed are not all of one user"
        if self.limit is not None and len(places) > self.limit:
            return f"{len(places)} records of one user are added or removed, more than {self.limit}"
        return ""

    def neighbours(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Any, Any]:
        """Return the data set, in which the user may have more records, and it without her."""
        return without(*self.places(records, rng, drawing), drawing)


class ReplaceUser(OfUser):
    """All records of one user are replaced, and stay hers."""

    name = "replace-user"
    data_text, rounds_text = "all records of one user are replaced", "{user_rounds} replaced"


class ZeroOutUser(OfUser):
    """All records of one user become zero, and stay hers."""

    name, losses_alone, data_text = "zero-out-user", True, "all records of one user become zero"
    rounds_text = "the losses of {user_rounds} become 0, their contexts the same"

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why not all records of the user who differs are zero in one of the inputs."""
        if fault := super().record_fault(left, right, places):
            return fault
        users = left.users(required=self.binds(left))
        all_of_user = [i for i, user in enumerate(users) if i in places or user == users[places[0]] is not None]
        return zero_fault(left, right, all_of_user, of_user=True)

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the record as zero, its user the same."""
        return parts.with_user_of(record, parts.zeroed(record))

    def stages(self, parts: Parts, record: Any, other: Any) -> Iterator[Any]:
        """Yield the record as zero, and then the other one, of which zero is a neighbour too."""
        yield (zero := self.change(parts, record, other, int))
        yield parts.with_user_of(record, parts.with_losses(zero, other))

    def new_records(
        self, records: Records, places: Sequence[int], rng: np.random.Generator, drawing: Drawing
    ) -> dict[int, Any]:
        """Return the user's records as zeros."""
        return {i: self.change(records, records.record(i), None, int) for i in places}
