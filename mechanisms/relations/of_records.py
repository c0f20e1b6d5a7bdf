"""Relations of records: one is another, becomes zero, is there or not, or has one feature of another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .canonical import Canonical, RelationError, feature_fault, is_zero_of
from .records import Choose, Drawing, Parts, Records, UnfitError
from .relation import Relation

if TYPE_CHECKING:
    import numpy as np


class Replace(Relation):
    """A record, or up to K, is another one; of a learner, a round."""

    name, for_rounds, takes_count, of_record = "replace", True, True, True
    data_text, rounds_text = "{records} replaced", "{rounds} replaced"


class ZeroOut(Relation):
    """A record becomes zero; of a learner, a round's loss."""

    name, for_rounds, losses_alone = "zero-out", True, True
    data_text, rounds_text = "one record becomes zero", "one round's loss becomes 0"

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the records that differ are not zero in one of the inputs."""
        return super().record_fault(left, right, places) or zero_fault(left, right, places)

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the record as zero."""
        return parts.zeroed(record)

    def stages(self, parts: Parts, record: Any, other: Any) -> Iterator[Any]:
        """Yield the record as zero, and then the other one, of which zero is a neighbour too."""
        yield (zero := parts.zeroed(record))
        yield parts.with_losses(zero, other)

    def new_records(
        self, records: Records, places: Sequence[int], rng: np.random.Generator, drawing: Drawing
    ) -> dict[int, Any]:
        """Return the records as zeros."""
        return {i: records.zeroed(records.record(i)) for i in places}


class AddRemove(Relation):
    """A record, or up to K, is there or not."""

    name, takes_count, removes, of_record = "add-remove", True, True, True
    data_text = "{records} added or removed"

    def on_rounds(self) -> Relation:
        """Raise RelationError."""
        reason = "a learner's actions tell how many rounds it has played, so both sides have as many"
        raise RelationError(f"add-remove cannot apply to a learner: {reason}")

    def fault(self, left: Canonical, right: Canonical) -> str:
        """Return why one input is not the other with records taken away; their order stays."""
        return removal_fault(self, left, right)

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why so many records may not come and go."""
        limit = self.limit or 1
        return f"{len(places)} records are added or removed, more than {limit}" if len(places) > limit else ""

    def neighbours(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Any, Any]:
        """Return the data set, and it without some of its records."""
        records, places = self.places(records, rng, drawing)
        places = [drawing.index, *(i for i in places if i != drawing.index)][: records.size - drawing.min_size]
        return without(records, places, drawing)


class SubstituteFeature(Relation):
    """One feature of one record is another's."""

    name, of_record, data_text = "substitute-feature", True, "one feature of one record is replaced"

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the record that differs does not differ in one feature alone."""
        index = places[0]
        return super().record_fault(left, right, places) or feature_fault(left.records[index], right.records[index])

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the record with any one feature of the other."""
        return parts.with_feature(record, choose(max(1, parts.features_of(record))), other)

    def stages(self, parts: Parts, record: Any, other: Any) -> Iterator[Any]:
        """Yield the record with more and more features of the other."""
        for feature in range(parts.features_of(record)):
            record = parts.with_feature(record, feature, other)
            yield record


def zero_fault(left: Canonical, right: Canonical, places: Sequence[int], *, of_user: bool = False) -> str:
    """Return why the records at some places are the other's as zeros in neither input."""
    for side, other in ((left, right), (right, left)):
        if all(is_zero_of(side.records[i], other.records[i], side, of_user=of_user) for i in places):
            return ""
    listed = ", ".join(str(i + 1) for i in places)
    return (
        f"one loss of round {listed} must be 0"
        if left.noun == "round"
        else f"neither side is zero in records {listed}"
    )


def removal_fault(relation: Relation, left: Canonical, right: Canonical) -> str:
    """Return why one input is not the other with records removed by a relation; nothing where it is."""
    left, right = left.opened(right), right.opened(left)
    if fault := left.frame_fault(right):
        return fault
    labelled = not (left.unlabelled and right.unlabelled)
    full, subset = sorted((left, right), key=lambda side: -len(side.records))
    keys, kept_keys = ([side.key(i, labelled=labelled) for i in range(len(side.records))] for side in (full, subset))
    removed, index = [], 0
    for i, key in enumerate(keys):
        if index < len(kept_keys) and key == kept_keys[index]:
            index += 1
        else:
            removed.append(i)
    if index < len(kept_keys):
        return "one side is not the other with records removed"
    return relation.record_fault(full, subset, removed) if removed else ""


def without(records: Records, places: Sequence[int], drawing: Drawing) -> tuple[Any, Any]:
    """Return the data, and it without the records at some places; UnfitError where too few would be left."""
    if not places or records.size - len(places) < drawing.min_size:
        raise UnfitError("a data set would have too few records")
    return records.data, records.take([i for i in range(records.size) if i not in places])
