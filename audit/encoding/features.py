"""Columns of numbers as features: what a classifier or a threshold can use.

`encoder.Encoder` turns outputs of any form into columns of numbers, `Features` these into what `learned` makes
evidence from. Features are finite, whatever the columns hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded
from ..statistics.digits import exactly
from .columns import LARGE, REPEATS, Column, equal

#: The most columns that are used for order statistics.
MOST_SORTED = 12
#: The most bits of whole numbers that are features.
MOST_BITS = 128
#: A share of a run's numbers that are different, on average: where there are so many, their places may say nothing.
#: And the most whole numbers whose presence is looked at then.
DIFFERENT, MOST_PRESENT = 0.9, 512

Labels = NDArray[np.bool_]
Outputs = NDArray[Any] | list[Any]
Value = TypeVar("Value")


class Columns:
    """A block of encoded outputs, with what several features share computed once."""

    def __init__(self, features: Features, columns: Floats) -> None:
        self.features, self.columns = features, columns
        self._known: dict[Hashable, Any] = {}

    def once(self, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return what is computed of the runs, once: several attacks look at the same."""
        if key not in self._known:
            self._known[key] = compute()
        value: Value = self._known[key]
        return value

    def part(self, runs: Labels | NDArray[np.intp] | slice) -> Columns:
        """Return the view of some of the runs."""
        return Columns(self.features, self.columns[:, runs])

    def labelled(self, left: Labels, *, coupled: bool = False) -> LabelledColumns:
        """Return the view of training runs, with their world labels; see `LabelledColumns` for `coupled`."""
        return LabelledColumns(self.features, self.columns, left, coupled=coupled)

    @cached_property
    def clean(self) -> Floats:
        """The columns with every value that is no ordinary number at the column's centre: finite, (columns, runs)."""
        clean = np.where(np.isfinite(self.columns), np.clip(self.columns, -LARGE, LARGE), self.features.centres)
        for i in self.features.special:
            clean[i] = self.clean_row(i)
        return clean

    def clean_row(self, index: int) -> Floats:
        """Return one row of `clean`, (runs,): a score may need few."""
        if "clean" in self.__dict__:
            row: Floats = self.clean[index]
            return row
        return self.once(("clean", index), lambda: self.features.columns[index].look(self.columns[index]))

    def kinds(self, index: int) -> NDArray[np.uint8]:
        """Return which of its column's values each number is, from 1 on; 0 for others."""
        return self.once(("kinds", index), lambda: self.features.columns[index].kinds(self.columns[index]))

    def numbers(self, index: int) -> Floats:
        """Return the ordinary numbers of a column, nan for the rest."""
        column = self.features.columns[index]
        row: Floats = self.columns[index]
        if not column.values.size:
            return row
        with np.errstate(invalid="ignore"):
            numbers: Floats = row * 0.0  # nan for what is not finite
        numbers += row
        for value in column.values[np.isfinite(column.values)]:
            numbers[row == value] = np.nan
        return numbers

    @cached_property
    def least(self) -> Floats:
        """The least ordinary number of the columns that are not discrete, infinity where there is none."""
        minimum: Floats = np.full(self.columns.shape[1], np.inf)
        for i, column in enumerate(self.features.columns):
            if not column.discrete:
                np.fmin(minimum, self.numbers(i), out=minimum)
        return minimum

    def clipped(self, reach: float) -> Floats:
        """Return the columns around their centres, in `reach` spreads, clipped to [-1, 1], (columns, runs)."""
        return self.once(("clipped", reach), lambda: _clipped(self.clean, self.features.columns, reach))

    @cached_property
    def signs(self) -> Floats:
        """The columns around their centres, clipped to a tenth of their spread."""
        return _clipped(self.clean, self.features.columns)

    def sign_row(self, index: int) -> Floats:
        """Return one row of `signs`, (runs,)."""
        signs: Floats = _clipped(self.clean_row(index)[None], self.features.columns[index : index + 1])[0]
        return signs

    @cached_property
    def steps(self) -> Floats:
        """The differences of neighbouring columns, the first from 0."""
        return rounded(np.diff(self.clean, axis=0, prepend=0.0))  # equal steps are equal but for the last bits

    def step_row(self, index: int) -> Floats:
        """Return one row of `steps`, (runs,)."""
        before = self.clean_row(index - 1) if index else 0.0
        return rounded(self.clean_row(index) - before)

    @cached_property
    def step_signs(self) -> Floats:
        """The differences around their centres, clipped to a tenth of their spread."""
        return _clipped(self.steps, self.features.steps)

    @cached_property
    def ordered(self) -> Floats:
        """The columns in order of size, for each run."""
        return np.sort(self.clean, axis=0)

    @cached_property
    def repeats(self) -> Floats:
        """How many numbers of the columns that are not discrete are the same as others, (runs,)."""
        ordered = np.sort(self.columns[self.features.wide], axis=0)
        repeats: Floats = (ordered[1:] == ordered[:-1]).sum(axis=0).astype(np.float64)
        return repeats

    @cached_property
    def halves(self) -> Floats:
        """The sums of the first and of the second half of the columns, (2, runs)."""
        half = len(self.clean) // 2
        return rounded([self.clean[:half].sum(axis=0), self.clean[half:].sum(axis=0)])


class LabelledColumns(Columns):
    """A view of training runs, with the label of the world that each was played in.

    Parameters
    ----------
    coupled : bool
        Whether the first half of the runs is of the left world, the other half of the right one, and run i of either
        was played with the same draws: then most of the noise of one is that of the other.
    """

    def __init__(self, features: Features, columns: Floats, left: Labels, *, coupled: bool = False) -> None:
        super().__init__(features, columns)
        self.left, self.coupled = left, coupled

    @property
    def of_one_world(self) -> bool:
        """Whether all runs are of the same world, or there are none: then nothing is learned from them."""
        return bool(self.left.all() or not self.left.any())

    def part(self, runs: Labels | NDArray[np.intp] | slice) -> LabelledColumns:
        """Return the view of some of the runs, with their labels."""
        return LabelledColumns(self.features, self.columns[:, runs], self.left[runs])

    def thinned(self, max_runs: int) -> LabelledColumns:
        """Return runs at even distances, at most `max_runs` of them; coupled runs stay together."""
        return self.every(-(-self.left.size // max_runs))

    def every(self, step: int, offset: int = 0) -> LabelledColumns:
        """Return every step-th run, from an offset on; coupled runs stay together."""
        if step == 1 and not offset:
            return self
        return self.once(("every", step, offset), lambda: self._every(step, offset))

    def _every(self, step: int, offset: int) -> LabelledColumns:
        if not self.coupled:
            return self.part(slice(offset, None, step))
        half = self.left.size // 2
        rows = [side[..., offset::step] for side in (self.columns[:, :half], self.columns[:, half:])]
        left = np.repeat([True, False], rows[0].shape[1])
        return LabelledColumns(self.features, np.concatenate(rows, axis=1), left, coupled=True)

    def fold(self, index: int) -> Labels:
        """Return which runs are of one of two folds, 0 or 1; coupled runs are of the same."""
        size = self.left.size // 2 if self.coupled else self.left.size
        in_fold = np.arange(size) % 2 == index
        return np.tile(in_fold, 2) if self.coupled else in_fold


def _clipped(rows: Floats, columns: Sequence[Column], reach: float = 0.1) -> Floats:
    clipped: Floats = rows - np.array([[c.centre] for c in columns])
    clipped /= reach * np.array([[c.spread] for c in columns])
    return np.clip(clipped, -1, 1, out=clipped)


Feature = Callable[[Columns], Floats]


class Features:
    """Features of encoded outputs: each column and its special values, and what the columns are together.

    Parameters
    ----------
    columns : array (columns, runs)
        Training outputs. Constant columns are dropped.
    """

    def __init__(self, columns: Floats, names: Sequence[str] | None = None) -> None:
        looked = Column.of_each(columns)
        self.kept = [i for i, column in enumerate(looked) if not (column.discrete and column.values.size == 1)]
        self.columns = [looked[i] for i in self.kept]
        self.called = [names[i] if names else f"column {i + 1}" for i in self.kept]
        self.discrete = all(column.discrete for column in self.columns)
        self.steps: list[Column] = []
        self.wide = [i for i, column in enumerate(self.columns) if not column.discrete]
        view = self.view(columns)
        self.repeat, self.present = self._of_sets(view)
        if len(self.kept) > 1 and not self.discrete:
            self.steps = Column.of_each(view.steps)

    @cached_property
    def centres(self) -> Floats:
        """The centre of each column, (columns, 1)."""
        return np.array([[column.centre] for column in self.columns]).reshape(-1, 1)

    @cached_property
    def special(self) -> list[int]:
        """The columns that features show in another way than number by number."""
        return [
            i
            for i, column in enumerate(self.columns)
            if column.transform or (not column.discrete and column.values.size)
        ]

    @property
    def varied(self) -> list[int]:
        """The columns whose numbers repeat, or are whole: each has features that say more than its order does."""
        return [i for i, column in enumerate(self.columns) if column.values.size or column.whole]

    @cached_property
    def named(self) -> list[tuple[str, Feature]]:
        """All features with their names."""
        return list(self._list()) if self.kept else []

    @cached_property
    def names(self) -> list[str]:
        """The names of all features."""
        return [name for name, _ in self.named]

    @cached_property
    def rows(self) -> list[Feature]:
        """All features."""
        return [feature for _, feature in self.named]

    @property
    def with_specials(self) -> list[int]:
        """The columns of numbers and special values."""
        return [i for i in self.wide if self.columns[i].values.size]

    def view(self, columns: Floats) -> Columns:
        """Return the view of encoded outputs."""
        return Columns(self, columns if len(self.kept) == len(columns) else columns[self.kept])

    def matrix(self, view: Columns) -> Floats:
        """Return all features, (runs, features)."""
        return np.stack([row(view) for row in self.rows], axis=1)

    def _of_sets(self, view: Columns) -> tuple[bool, set[float]]:
        """Tell whether numbers repeat others though hardly any do, and which whole numbers come again then.

        Such a row may be a set, or records in any order, and which number stands where say nothing.
        """
        if len(self.wide) < 2 or np.mean(view.repeats) > (1 - DIFFERENT) * len(self.wide):
            return False, set()
        repeat = bool(np.count_nonzero(view.repeats != np.median(view.repeats)) >= REPEATS)
        if not all(self.columns[i].whole for i in self.wide):
            return repeat, set()
        values, times = np.unique(view.columns[self.wide], return_counts=True)
        often = np.argsort(-times, kind="stable")[:MOST_PRESENT]
        return repeat, set(values[often[(times[often] >= REPEATS) & np.isfinite(values[often])]].tolist())

    def _list(self) -> Iterator[tuple[str, Feature]]:
        for i in range(len(self.columns)):
            yield from self.of_column(i)
        if len(self.columns) > 1:
            yield from self._sums()
            if not self.discrete:
                yield from (*self._steps(), *self._orders())

    @cached_property
    def _bit_by_bit(self) -> bool:
        category = len(self.columns) == 1 and self.with_specials  # that repeats itself: it is worth more than its bits
        return not category and sum(len(column.bits) for column in self.columns) <= MOST_BITS

    def of_column(self, i: int) -> Iterator[tuple[str, Feature]]:
        """Yield the features of one column."""
        name, column = self.called[i], self.columns[i]
        yield name, partial(_row, "clean", i)
        if not column.discrete:
            yield f"side of {name}", partial(_row, "signs", i)
            # Noise may have moved whole numbers by even ones alone, or they are masks of bits.
            for bit in column.bits if self._bit_by_bit else column.bits[:1]:
                yield f"bit {bit} of {name}" if bit else f"parity of {name}", partial(_bit, i, bit)
        if column.values.size > 2 or not column.discrete:
            for value in column.values:
                yield f"{name} is {exactly(value)}", partial(_equals, i, float(value))

    def of_all(self) -> Iterator[tuple[str, Feature]]:
        """Yield what all columns are together, steps between neighbours left out."""
        if len(self.columns) > 1:
            yield from self._sums()
            if not self.discrete:
                yield from self._orders()

    def _sums(self) -> Iterator[tuple[str, Feature]]:
        for half, label in enumerate(("first", "second")):
            yield f"sum of the {label} half", partial(_row, "halves", half)
            yield f"square of the {label} half's sum", partial(_square_of_half, half)
        yield "sum", lambda view: view.halves.sum(axis=0)
        yield "product of the halves' sums", lambda view: view.halves.prod(axis=0)
        yield "position of the largest", lambda view: view.clean.argmax(axis=0).astype(np.float64)
        yield "position of the smallest", lambda view: view.clean.argmin(axis=0).astype(np.float64)
        if self.discrete:
            yield "largest", lambda view: view.clean.max(axis=0)
            yield "smallest", lambda view: view.clean.min(axis=0)
        else:
            yield "sum of the sides", lambda view: view.signs.sum(axis=0)
            yield "sum of the steps' sides", lambda view: view.step_signs.sum(axis=0)

    def _steps(self) -> Iterator[tuple[str, Feature]]:
        names, count = self.called, len(self.columns)
        yield from ((f"step to {names[i]}", partial(_row, "steps", i)) for i in range(1, count))
        yield from ((f"side of the step to {names[i]}", partial(_row, "step_signs", i)) for i in range(count))

    def _orders(self) -> Iterator[tuple[str, Feature]]:
        count = len(self.columns)
        places = range(count) if count <= MOST_SORTED else (0, count - 1)
        yield from ((f"{i + 1} of {count} in order of size", partial(_in_order_of_size, i)) for i in places)
        if self.repeat:
            yield "how many repeat others", lambda view: view.repeats
        special = Counter(float(v) for c in self.columns for v in c.values if not np.isnan(v))
        frequent = [value for value, _ in special.most_common(MOST_PRESENT)]
        for value in sorted({*frequent, *self.present}):
            yield f"how many are {exactly(value)}", partial(_times, value)
        yield "how many are nan", lambda view: np.isnan(view.columns).sum(axis=0).astype(np.float64)
        yield "position of the first number", lambda view: np.isnan(view.columns).argmin(axis=0).astype(np.float64)


def _row(name: str, index: int, view: Columns) -> Floats:
    if name in ("clean", "signs"):
        return view.clean_row(index) if name == "clean" else view.sign_row(index)
    row: Floats = getattr(view, name)[index]
    return row


def _in_order_of_size(place: int, view: Columns) -> Floats:
    if len(view.clean) > MOST_SORTED:
        row: Floats = view.clean.max(axis=0) if place else view.clean.min(axis=0)
        return row
    return _row("ordered", place, view)


def _equals(index: int, value: float, view: Columns) -> Floats:
    return equal(view.columns[index], value).astype(np.float64)


def _bit(index: int, bit: int, view: Columns) -> Floats:
    column = view.columns[index]
    finite = np.isfinite(column)
    value: Floats = np.where(finite, np.mod(np.floor(np.where(finite, column, 0.0) / 2.0**bit), 2.0), 0.5)
    return value


def _square_of_half(half: int, view: Columns) -> Floats:
    square: Floats = np.square(view.halves[half])
    return square


def _times(value: float, view: Columns) -> Floats:
    times: Floats = (view.columns == value).sum(axis=0).astype(np.float64)
    return times
