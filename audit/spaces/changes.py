"""How a neighbour relation changes data: a neighbour of an input, and whether two given inputs are neighbours."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import numpy as np

from ...errors import hinted
from ...mechanisms.relations import Distance, Relation, RelationError
from ...mechanisms.relations.canonical import Canonical
from ...mechanisms.relations.numbers import Path, ranges_of
from ...mechanisms.relations.records import Drawing
from ..play.data import to_json
from .records import records_of


@dataclass
class Changes:
    """The neighbours of data by a relation: what search and drawing ask for.

    Attributes
    ----------
    relation : Relation
    min_size : int
        The fewest records of a data set.
    ranges : dict
        The least and the largest number seen at each place of the data, for moves within a distance.
    """

    relation: Relation
    min_size: int = 0
    ranges: dict[Path, tuple[Decimal, Decimal]] = field(default_factory=dict)

    def learn(self, data: object) -> None:
        """Widen the ranges by the numbers of a data set."""
        if isinstance(self.relation, Distance):
            ranges_of(to_json(data), self.ranges)

    def pair(
        self, data: object, index: int, rng: np.random.Generator, draw: Callable[[], Any], *, fixed: bool = False
    ) -> tuple[object, object]:
        """Return a data set, this one or one like it, and a neighbour of it: see `Drawing`.

        Raises
        ------
        UnfitError
            Where a record does not fit.
        RelationError
            Where the relation cannot apply to such data.
        """
        return self.relation.neighbours(records_of(data), rng, Drawing(index, draw, fixed, self.min_size, self.ranges))


def check_near(relation: Relation, left: object, right: object) -> None:
    """Raise ValueError unless two inputs of a mechanism are neighbours by a relation.

    Raises
    ------
    ValueError
        With what is wrong.
    """
    if not relation.for_data:
        raise RelationError(f"{relation} is a relation of a learner's rounds, and a mechanism has none")
    relation.check(*(Canonical.of(to_json(side)) for side in (left, right)))


def check_some_relation(left: object, right: object) -> None:
    """Raise ValueError where two inputs of a mechanism are neighbours by no relation: in more than their records.

    None is no data at all: a person who is absent.
    """
    if left is None or right is None:
        return
    sides = [Canonical.whatever(to_json(side)) for side in (left, right)]
    if fault := sides[0].opened(sides[1]).frame_fault(sides[1].opened(sides[0])):
        cure = "--neighbours FILE.py:NAME names a relation of your own"
        raise hinted(ValueError(f"the two inputs are no neighbours by any relation: {fault}"), cure)
