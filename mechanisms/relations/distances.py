"""Relations of distances: the numbers of the data, as they are printed, move by at most so much together."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ...errors import must_be
from .canonical import Canonical, RelationError, sorted_form, text_of
from .numbers import SHORT, blank, is_whole, kind_of, numbers_of, with_numbers
from .records import Choose, Drawing, Parts, Records, UnfitError
from .relation import Relation

if TYPE_CHECKING:
    import numpy as np

#: Squares of floats have up to 34 digits, and a distance is compared exactly.
EXACT = Context(prec=200)
#: The share of the moves within a distance that start where the domain ends: then the whole distance fits into it.
P_AT_EDGES = 0.7


@dataclass(frozen=True)
class Distance(Relation):
    """Numbers move by at most a distance in some norm; of a learner, those of one round's loss.

    Attributes
    ----------
    distance : str
        The largest one, as it was written.
    """

    number, for_rounds, losses_alone = ":D", True, True
    data_text = "the numbers move by at most {relation.distance} in {relation.norm_name} distance"
    rounds_text = "one round's loss moves by at most {relation.distance} in {relation.norm_name} distance"
    norm_name: ClassVar[str]
    distance: str = ""

    @classmethod
    def with_number(cls, number: str | None) -> Self:
        """Return the relation with a distance; RelationError for one that is no positive, finite number."""
        if not number:
            raise must_be("neighbours", f"{cls.name}:D with a distance, as in {cls.name}:0.5", cls.name, RelationError)
        try:
            distance = Decimal(number)
        except InvalidOperation:
            distance = Decimal("NaN")
        if not distance.is_finite() or distance <= 0:
            text = f"{cls.name}:{number}"
            raise must_be("neighbours", f"{cls.name}:D with a positive, finite distance", text, RelationError)
        return cls(distance=number)

    def __str__(self) -> str:
        return f"{self.name}:{self.distance}"

    @abstractmethod
    def norm(self, moves: Sequence[Decimal]) -> Decimal:
        """Return the norm of moves."""

    @abstractmethod
    def width(self, count: int, are_whole: bool, rng: np.random.Generator) -> int:
        """Return how many of so many numbers move; `whole` if all of them are whole."""

    def min_width(self, widest: Decimal) -> int:
        """Return how many numbers must move for the distance, of which each reaches at most so far."""
        return 1

    def fault(self, left: Canonical, right: Canonical) -> str:
        """Return why two inputs are not within the distance; nothing where they are."""
        return super().fault(left, right) if left.noun == "round" else self.form_fault(left.form, right.form)

    def record_fault(self, left: Canonical, right: Canonical, places: Sequence[int]) -> str:
        """Return why the losses of the round that differs are not within the distance."""
        losses = (side.records[places[0]]["losses"] for side in (left, right))
        return super().record_fault(left, right, places) or self.form_fault(*losses)

    def form_fault(self, left: Any, right: Any) -> str:
        """Return why two records' forms of data are not within the distance; nothing where they are."""
        left, right = sorted_form(left), sorted_form(right)
        left_numbers, right_numbers = dict(numbers_of(left)), dict(numbers_of(right))
        if left_numbers.keys() != right_numbers.keys() or text_of(blank(left)) != text_of(blank(right)):
            return "they differ in more than their numbers"
        length = self.norm([abs(left_numbers[path] - right_numbers[path]) for path in left_numbers])
        if length <= Decimal(self.distance):
            return ""
        return f"their distance is {length:.6}, more than {self.distance}"

    def change(self, parts: Parts, record: Any, other: Any, choose: Choose) -> Any:
        """Return the round with its losses moved towards the other's."""
        return parts.with_losses(record, self.moved(parts.losses_of(record), parts.losses_of(other)))

    def moved(self, losses: Any, others: Any) -> Any:
        """Return losses moved towards others, by the distance or up to them; RelationError for others than vectors."""
        if not isinstance(losses, list) or not isinstance(others, list) or len(losses) != len(others):
            raise RelationError(f"{self} applies to loss vectors of one length, got {losses!r:.40} and {others!r:.40}")
        start, end = ([Decimal(repr(float(x))) for x in side] for side in (losses, others))
        gaps = [b - a for a, b in zip(start, end, strict=True)]
        distance, length = Decimal(self.distance), self.norm([abs(gap) for gap in gaps])
        if length <= distance:
            return others
        share = SHORT.divide(distance, length)
        return [float(a + SHORT.multiply(gap, share)) for a, gap in zip(start, gaps, strict=True)]

    def neighbours(self, records: Records, rng: np.random.Generator, drawing: Drawing) -> tuple[Any, Any]:
        """Return data and a neighbour whose numbers moved, by the whole distance where that fits."""
        form = records.form
        paths = list(numbers_of(form))
        if not paths:
            kind = UnfitError if "$float" in repr(form) else RelationError  # others may be finite
            raise kind(f"{self} needs numbers in the data, got {records.data!r:.80}")
        edges = [drawing.ranges.get(kind_of(path), (number, number)) for path, number in paths]
        are_whole = [is_whole(form, path) for path, _ in paths]
        steps = self._steps(are_whole, [high - low for low, high in edges], rng)
        start = {
            path: SHORT.plus(number) if step % 1 else number for (path, number), step in zip(paths, steps, strict=True)
        }
        if not drawing.fixed and rng.random() < P_AT_EDGES:
            for (path, number), step, (low, high) in zip(paths, steps, edges, strict=True):
                start[path] = low if step > 0 else high if step < 0 else number
        moved_numbers = {path: start[path] + step for (path, _), step in zip(paths, steps, strict=True)}
        base = form if all(start[path] == number for path, number in paths) else with_numbers(form, start)
        other = with_numbers(form, moved_numbers)
        if self.form_fault(base, other):
            raise UnfitError("the numbers cannot move so")
        return records.read(base), records.read(other)

    def _steps(self, are_whole: Sequence[bool], reach: Sequence[Decimal], rng: np.random.Generator) -> list[Decimal]:
        """Return how far each number moves: together the largest distance, or the largest that they reach.

        Parameters
        ----------
        whole : sequence of bool
            Which numbers are whole.
        reach : sequence of Decimal
            How far each can move in all; 0 where that is not known.
        """
        count, distance = len(are_whole), Decimal(self.distance)
        width = self.width(count, all(are_whole), rng)
        if (widest := max(reach)) and distance > widest:  # one number does not reach so far
            width = min(count, max(width, self.min_width(widest)))
        places = [int(i) for i in rng.permutation(count)[:width]]
        length = distance if width == 1 else SHORT.divide(distance, self.norm([Decimal(1)] * width))
        # All one way, all but one, or at random: sums, differences and spreads feel different ones.
        signs = [1] * width
        turn = int(rng.integers(3))
        if turn == 1:
            signs[0] = -1
        elif turn == 2:
            signs = [1 if rng.random() < 0.5 else -1 for _ in signs]
        flip = 1 if rng.random() < 0.5 else -1
        steps = [Decimal(0)] * count
        for i, sign in zip(places, signs, strict=True):
            step = min(length, reach[i] or length)
            steps[i] = flip * sign * (Decimal(math.floor(step)) if are_whole[i] else step)
        return steps


class L1(Distance):
    """The sum of the moves."""

    name, norm_name = "l1", "L1"

    def norm(self, moves: Sequence[Decimal]) -> Decimal:
        """Return the sum."""
        return sum(moves, Decimal(0))

    def width(self, count: int, are_whole: bool, rng: np.random.Generator) -> int:
        """Return one, which moves by the whole distance."""
        return 1

    def min_width(self, widest: Decimal) -> int:
        """Return how many must move."""
        return math.ceil(Decimal(self.distance) / widest)


class L2(Distance):
    """The root of the sum of the squares."""

    name, norm_name = "l2", "L2"

    def norm(self, moves: Sequence[Decimal]) -> Decimal:
        """Return the root."""
        squares = Decimal(0)
        for move in moves:
            squares = EXACT.fma(move, move, squares)
        return EXACT.sqrt(squares)

    def width(self, count: int, are_whole: bool, rng: np.random.Generator) -> int:
        """Return one, or several: of whole numbers so many as move by 1 each."""
        if rng.random() < 1 / 3 or count == 1:
            return 1
        if are_whole:
            return max(1, min(count, int(Decimal(self.distance) * Decimal(self.distance))))
        return int(rng.integers(2, count + 1)) if rng.random() < 0.5 else count

    def min_width(self, widest: Decimal) -> int:
        """Return how many must move."""
        return math.ceil((Decimal(self.distance) / widest) ** 2)


class LInfinity(Distance):
    """The largest of the moves."""

    name, norm_name = "linf", "L-infinity"

    def norm(self, moves: Sequence[Decimal]) -> Decimal:
        """Return the largest."""
        return max(moves, default=Decimal(0))

    def width(self, count: int, are_whole: bool, rng: np.random.Generator) -> int:
        """Return one, or all of them."""
        return 1 if rng.random() < 1 / 3 else count
