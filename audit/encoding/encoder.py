"""Outputs of any form as columns of numbers: every scalar at its place, its kind, the sizes of what holds it.

An output may be a number, a text, a category, None, or what is nested of them: lists, tuples, sets, dictionaries,
arrays. Two outputs that differ should differ in some column, or no attack can tell them apart.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Floats
from .columns import REPEATS
from .features import Outputs
from .places import (
    BY_ID,
    FROM_END,
    MOST_NUMBERS,
    NO_SCALARS,
    ORDER,
    Bag,
    Ends,
    Ids,
    Path,
    Placed,
    Size,
    Table,
    by_id,
    check_width,
    from_end,
    placed,
)
from .texts import MAX_INTEGER, Digits, as_float, tokens_of

#: With more different texts than this, those of a place are split into tokens.
FEW_TEXTS = 64
#: Runs that show whether outputs have floats that hardly ever repeat.
FEW_RUNS = 400
#: Codes of a category that training has not seen, and of a place that an output has not.
UNSEEN, MISSING = -1.0, -2.0
#: With more places than this, those that hardly any output has are left out; the most places whose texts are split;
#: and the most parts of lists and sets that are counted.
_MANY_PLACES, MOST_SPLIT, MOST_COUNTED = 64, 256, 512
#: Stands among the parts that are counted for those that repeat others.
_REPEATED = Size("repeated", 0)
#: Scalars of these very types are seen as the same where they are equal.
_BY_VALUE = (int, bool, str, bytes, type(None), Size, Digits)


def _seen_as(leaf: object) -> tuple[float, str]:
    """Return a scalar's number (nan if it is none) and its category; that of a common float is empty."""
    if isinstance(leaf, float):
        return leaf, "-0.0" if leaf == 0 and math.copysign(1, leaf) < 0 else ""
    if leaf is None:
        return math.nan, "None"
    if isinstance(leaf, Size):
        return leaf.parts, leaf.kind
    if isinstance(leaf, str | bytes):
        return len(leaf), repr(leaf)
    if isinstance(leaf, Digits):
        return as_float(leaf.number), f"{leaf.digits} digits"
    number, kind = as_float(leaf), type(leaf).__name__
    if isinstance(leaf, int) and math.isinf(number):
        return number, f"{kind} of {leaf.bit_length()} bits"
    return number, kind


@dataclass(frozen=True)
class Place:
    """What training showed of one place of the outputs.

    Attributes
    ----------
    path : tuple of int and str
    number, big, size : bool
        Whether it held numbers, some too large for floats to tell apart, and texts or what is nested.
    codes : mapping or None
        The code of each category, where there is more than one.
    split : bool
        Whether its texts are split.
    aligned : bool
        Whether its texts are all of one length.
    """

    path: Path
    number: bool
    big: bool
    size: bool
    codes: dict[str, int] | None
    split: bool
    aligned: bool = False

    def value(self, kind: str, leaf: object) -> float:
        """Return what the column of a kind holds for a scalar."""
        number, name = _seen_as(leaf)
        nested = isinstance(leaf, Size | str | bytes)
        if kind == "code":
            assert self.codes is not None
            return self.codes.get(name, UNSEEN) if name else 0.0
        if kind == "low":
            plain_number = leaf.number if isinstance(leaf, Digits) else leaf
            return float(plain_number % MAX_INTEGER) if isinstance(plain_number, int) else 0.0
        return number if nested == (kind == "size") else math.nan

    def values(self, kind: str, leaves: Sequence[Any]) -> Floats:
        """Return what the column of a kind holds for scalars of one type."""
        if kind == "number" and (isinstance(leaves[0], float) or type(leaves[0]) is int):
            try:
                return np.array(leaves, dtype=np.float64)
            except OverflowError:  # whole numbers beyond all floats
                pass
        if type(leaves[0]) in _BY_VALUE:
            value_of = {leaf: self.value(kind, leaf) for leaf in set(leaves)}
            return np.array([value_of[leaf] for leaf in leaves])
        return np.array([self.value(kind, leaf) for leaf in leaves])


def _counted(leaves: Sequence[Any]) -> Iterable[tuple[Any, int]]:
    """Return scalars of one type that are seen as different ones, with how often they are there."""
    if isinstance(leaves[0], float):
        zeros = np.array(leaves, dtype=np.float64)
        negative = int(np.count_nonzero(np.signbit(zeros) & (zeros == 0)))
        return [(leaf, times) for leaf, times in ((1.0, len(leaves) - negative), (-0.0, negative)) if times]
    if type(leaves[0]) is int and max(leaves) <= MAX_INTEGER and min(leaves) >= -MAX_INTEGER:
        return [(leaves[0], len(leaves))]
    return Counter(leaves).items() if type(leaves[0]) in _BY_VALUE else ((leaf, 1) for leaf in leaves)


class _Seen:
    """What training shows of one place, while it is looked at."""

    def __init__(self) -> None:
        self.number = self.big = self.size = False
        self.names: Counter[str] = Counter()
        self.texts = 0  # different ones
        self.lengths: set[int] = set()  # of texts

    def add(self, leaves: Sequence[Any]) -> None:
        """Look at scalars of one type."""
        for leaf, times in _counted(leaves):
            nested = isinstance(leaf, Size | str | bytes)
            self.size |= nested
            self.number |= not nested and leaf is not None
            number = leaf.number if isinstance(leaf, Digits) else leaf
            self.big |= isinstance(number, int) and abs(number) > MAX_INTEGER
            if isinstance(leaf, str | bytes):
                self.lengths.add(len(leaf))
            name = _seen_as(leaf)[1]
            self.texts += isinstance(leaf, str | bytes) and name not in self.names
            self.names[name] += times

    @property
    def many_texts(self) -> bool:
        """Whether there are too many different texts to be categories."""
        return self.texts > FEW_TEXTS

    @property
    def aligned(self) -> bool:
        """Whether its texts are all of one length: then what stands at one place of them may be of one kind."""
        return len(self.lengths) == 1

    def place(self, path: Path, runs: int, *, split: bool) -> Place:
        min_count = REPEATS if self.many_texts else 1
        names = sorted(name for name, times in self.names.items() if name and times >= min_count)
        several = len(self.names) > 1 or self.names.total() < runs
        codes = {name: i for i, name in enumerate(names, start=1)} if several else None
        return Place(path, self.number, self.big, self.size, codes, split, self.aligned)


@dataclass(frozen=True)
class Encoder:
    """Outputs as columns of numbers, (columns, runs).

    Vectors of numbers are columns as they are. Of other outputs every place has its number (nan if it has none), the
    low digits of large whole numbers, the code of its category or kind, and the size of a text or of what is nested,
    in this order and as far as training had any; then how often lists and sets have the parts that training had often,
    whatever their order.

    Parameters
    ----------
    shape : tuple or None
        Of vectors of numbers.
    places : tuple of Place
    bags : mapping
        The parts that are counted, by the place of what holds them.
    ids : mapping
        What tells the records of a table apart, by the place of the table.
    ends : set
        The places of lists whose last parts are read from the end too, for their lengths vary.
    """

    shape: tuple[object, ...] | None
    places: tuple[Place, ...]
    bags: Mapping[Path, Sequence[Any]] = field(default_factory=dict)
    ids: Mapping[Path, Ids] = field(default_factory=dict)
    ends: Set[Path] = frozenset()

    @classmethod
    def fit(cls, outputs: Outputs) -> Encoder:
        """Learn the places and the categories."""
        shape, numbers = vectors(outputs)
        if numbers is not None:
            check_width(len(numbers), MOST_NUMBERS)
            return cls(shape, tuple(_place_of_row((i,) if shape else (), row) for i, row in enumerate(numbers)))
        rows = rows_of(outputs)
        seen: dict[Path, _Seen] = defaultdict(_Seen)
        texts: list[Placed] = []
        counters: dict[Path, Counter[Any]] = defaultdict(Counter)
        tables: dict[Path, list[Placed]] = defaultdict(list)
        lists: dict[Path, list[Placed]] = defaultdict(list)
        for path, runs, leaves in placed(rows):
            if type(leaves[0]) is Bag:
                counters[path].update(chain.from_iterable(map(set, leaves)))
                counters[path][_REPEATED] += sum(len(set(bag)) < len(bag) for bag in leaves)
            elif type(leaves[0]) is Table:
                tables[path].append((path, runs, leaves))
            elif type(leaves[0]) is Ends:
                lists[path].append((path, runs, leaves))
            else:
                seen[path].add(leaves)
                if isinstance(leaves[0], str | bytes):
                    texts.append((path, runs, leaves))
        ids = Ids.of_tables(tables)
        ends = {
            path
            for path, ends_of_path in lists.items()
            if Ends.differ(chain.from_iterable(leaves for *_, leaves in ends_of_path))
        }
        for group in chain(*tables.values(), *lists.values()):
            for path, _, leaves in _read_otherwise(group, ids, ends):
                seen[path].add(leaves)
        split = {path: seen[path].aligned for path in sorted(seen, key=_in_order) if seen[path].many_texts}
        split = dict(list(split.items())[:MOST_SPLIT])
        for text in texts:
            for path, _, leaves in tokens_of(text, split):
                seen[path].add(leaves)
        min_count = REPEATS if len(seen) > _MANY_PLACES else 1
        ordered = [path for path in sorted(seen, key=_in_order) if seen[path].names.total() >= min_count]
        places = (seen[path].place(path, len(rows), split=path in split) for path in ordered)
        return cls(None, tuple(places), _frequent(counters), ids, ends)

    @cached_property
    def _layout(self) -> list[tuple[str, Place]]:
        """What each column holds."""
        return [
            *(("number", place) for place in self.places if place.number),
            *(("low", place) for place in self.places if place.big),
            *(("code", place) for place in self.places if place.codes is not None),
            *(("size", place) for place in self.places if place.size),
        ]

    def __call__(self, outputs: Outputs) -> Floats:
        """Encode."""
        if self.shape is not None:
            shape, numbers = vectors(outputs)
            if numbers is not None and shape == self.shape:
                return self._encoded_vectors(numbers)
        rows = rows_of(outputs)
        columns = np.zeros((len(self._layout) + sum(map(len, self.bags.values())), len(rows)))
        of_path: dict[Path, list[tuple[int, str, Place]]] = defaultdict(list)
        for i, (kind, place) in enumerate(self._layout):
            columns[i] = {"low": 0.0, "code": MISSING}.get(kind, math.nan)
            of_path[place.path].append((i, kind, place))
        split = {place.path: place.aligned for place in self.places if place.split}
        rest = iter(range(len(self._layout), len(columns)))
        column_of = {path: {part: next(rest) for part in parts} for path, parts in self.bags.items()}
        for scalar in placed(rows):
            if type(scalar[2][0]) is Bag:
                column_of_value = column_of.get(scalar[0], {})
                for run, bag in zip(scalar[1].tolist(), scalar[2], strict=True):
                    times = Counter(bag)
                    times[_REPEATED] = len(bag) - len(times)
                    for part in times.keys() & column_of_value.keys():
                        columns[column_of_value[part], run] = times[part]
                continue
            parts: Iterable[Placed] = chain([scalar], tokens_of(scalar, split))
            if type(scalar[2][0]) in NO_SCALARS:
                parts = _read_otherwise(scalar, self.ids, self.ends)
            for path, runs, leaves in parts:
                for i, kind, place in of_path.get(path, ()):
                    columns[i, runs] = place.values(kind, leaves)
        return columns

    def floats(self, outputs: Outputs) -> Iterator[Floats]:
        """Yield the numbers at each place, 0 where one is whole, infinite or missing; not those within texts."""
        texts = {place.path for place in self.places if place.split}
        for column, (kind, place) in zip(self(outputs), self._layout, strict=False):
            if kind == "number" and (not place.path or place.path[:-1] not in texts):
                yield np.where(np.isfinite(column) & (column != np.rint(column)), column, 0.0)

    def _encoded_vectors(self, numbers: NDArray[np.generic]) -> Floats:
        columns = np.asarray(numbers, dtype=np.float64)
        if len(self._layout) == len(columns):
            return columns
        low = [row % row.dtype.type(MAX_INTEGER) for row, place in zip(numbers, self.places, strict=True) if place.big]
        with_zeros = [row for row, place in zip(columns, self.places, strict=True) if place.codes is not None]
        return np.vstack([columns, *low, *(np.signbit(row) & (row == 0) for row in with_zeros)]).astype(np.float64)


def _read_otherwise(placed: Placed, ids: Mapping[Path, Ids], ends: Set[Path]) -> Iterator[Placed]:
    """Yield what a table holds by its ids, and a list of varying length from its end."""
    if type(placed[2][0]) is Table:
        yield from by_id(*placed, ids)
    elif type(placed[2][0]) is Ends and placed[0] in ends:
        yield from from_end(*placed)


def _in_order(path: Path) -> tuple[object, ...]:
    """Return what places are sorted by: columns of what was returned come first."""
    return ORDER in path, BY_ID in path, FROM_END in path, [(isinstance(step, str), step) for step in path]


def _frequent(counters: Mapping[Path, Counter[Any]]) -> dict[Path, list[Any]]:
    """Return the parts that are worth a count, those that the most outputs have, by the place of what holds them."""
    often = [
        (-count, _in_order(path), repr(part), path, part)
        for path, times in counters.items()
        for part, count in times.items()
        if count >= REPEATS
    ]
    parts: dict[Path, list[Any]] = defaultdict(list)
    for *_, path, part in sorted(often, key=lambda entry: entry[:3])[:MOST_COUNTED]:
        parts[path].append(part)
    return {path: parts[path] for path in sorted(parts, key=_in_order)}


def _place_of_row(path: Path, row: NDArray[Any]) -> Place:
    """Return the place of one number of a vector, from all its values."""
    if row.dtype.kind == "f":
        zeros = row[row == 0]
        return Place(path, True, False, False, {"-0.0": 1} if np.signbit(zeros).any() else None, False)
    beyond_floats = row.dtype.itemsize == 8 and bool((row > MAX_INTEGER).any() or (row < -MAX_INTEGER).any())
    return Place(path, True, beyond_floats, False, None, False)


def has_floats(outputs: Outputs) -> bool:
    """Tell whether a part of outputs is a float that hardly ever repeats, as noise does that is not rounded."""
    outputs = outputs[..., :FEW_RUNS] if isinstance(outputs, np.ndarray) else outputs[:FEW_RUNS]
    return any(2 * np.unique(column).size > column.size for column in Encoder.fit(outputs).floats(outputs))


def rows_of(outputs: Outputs) -> list[Any]:
    """Return the outputs one by one."""
    return list(np.atleast_2d(outputs).T) if isinstance(outputs, np.ndarray) else outputs


def vectors(outputs: Outputs) -> tuple[tuple[object, ...] | None, NDArray[Any] | None]:
    """Return outputs that are vectors of one length, or numbers, of one type: the form of each, and (length, runs)."""
    if isinstance(outputs, np.ndarray):
        return ("array", outputs.shape[:-1]), outputs.reshape(-1, outputs.shape[-1])
    kinds = set(map(type, outputs))
    if not kinds:
        return None, None
    if kinds == {np.ndarray}:
        if len({(output.shape, output.dtype) for output in outputs}) == 1 and outputs[0].dtype.kind in "biuf":
            return ("array", *outputs[0].shape), np.stack(outputs).reshape(len(outputs), -1).T
        return None, None
    shape: tuple[object, ...] = ()
    if kinds in ({list}, {tuple}):
        if len(set(map(len, outputs))) > 1:
            return None, None
        shape, kinds = (*kinds, len(outputs[0])), set(map(type, chain.from_iterable(outputs)))
    if kinds and kinds <= {float, np.float64}:
        return shape, np.array(outputs, dtype=np.float64).reshape(len(outputs), -1).T
    if kinds == {int}:
        numbers = np.array(outputs)
        return (shape, numbers.reshape(len(outputs), -1).T) if numbers.dtype.kind == "i" else (None, None)
    return None, None
