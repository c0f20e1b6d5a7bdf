"""Parities of a row number beside a bit: what a Hadamard response says of its input.

Such a report is a row that was drawn, and the noisy entry of the input's column in that row of a Hadamard matrix: the
parity of the bits that row and input share. Among many rows each has few runs, but all of them tell the same parity.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...statistics.bounds.rounding import rounded
from ..encoding.features import LabelledView, Labels, View
from .learned import SCREENED, OutputAttack

#: Rows are whole numbers below this; and the most columns of rows, and of bits, that are looked at, the first.
MOST_ROWS, MOST_LOOKED_AT = 4096, 8
#: The chance that a parity is taken which says nothing of the worlds.
BY_CHANCE = 1e-6


@dataclass(frozen=True)
class Parities(OutputAttack):
    """The sum of what the parities that tell the worlds apart say of a row and its bit.

    Parameters
    ----------
    row, bit : int
        The columns.
    """

    row: int
    bit: int

    name = "parities of a row number"

    @classmethod
    def worth(cls, train: LabelledView) -> list[Parities]:
        """Return those of the first columns of rows and of bits that say something."""
        if train.coupled or train.of_one_world:
            return []
        few, columns = train.thinned(SCREENED), train.features.columns
        rows = [i for i, one in enumerate(columns) if one.whole and _are_rows(train.columns[i]).all()]
        bits = [i for i, one in enumerate(columns) if one.discrete and one.values.size == 2]
        pairs = [cls(row, bit) for row in rows[:MOST_LOOKED_AT] for bit in bits[:MOST_LOOKED_AT]]
        return [pair for pair in pairs if pair._weights(few).any()]

    def learn(self, train: LabelledView) -> Callable[[View], Floats]:
        """Weigh the parities."""
        told = _of_parities(self._weights(train.thinned(SCREENED)))
        return lambda view: rounded(self._signs(view) * told[_rows_of(view.columns[self.row])])

    def _weights(self, train: LabelledView) -> Floats:
        """Return how far every parity goes with the left world, 0 where that may be by chance."""
        rows, left = _rows_of(train.columns[self.row]), train.left
        with_left = self._signs(train) * (left - left.mean())
        weights = _of_parities(np.bincount(rows, with_left, MOST_ROWS).astype(np.float64)) / left.size
        surely = special.ndtri(1 - BY_CHANCE / 2 / MOST_ROWS) * np.sqrt(np.mean(with_left**2) / left.size)
        return np.where(rounded(np.abs(weights)) > surely, weights, 0.0)

    def _signs(self, view: View) -> Floats:
        """Return the bit as 1 or -1; 0 where row or bit is none."""
        signs = np.array([0.0, 1.0, -1.0])[view.kinds(self.bit)]
        return np.where(_are_rows(view.columns[self.row]), signs, 0.0)


def _are_rows(numbers: Floats) -> Labels:
    rows: Labels = (numbers >= 0) & (numbers < MOST_ROWS) & (numbers == np.floor(numbers))
    return rows


def _rows_of(numbers: Floats) -> NDArray[np.intp]:
    return np.where(_are_rows(numbers), numbers, 0).astype(np.intp)


def _of_parities(values: Floats) -> Floats:
    """Return the sums of values with the signs of every parity of their places: the Walsh-Hadamard transform."""
    sums, width = values, 1
    while width < sums.size:
        pairs = sums.reshape(-1, 2, width)
        sums = np.stack([pairs[:, 0] + pairs[:, 1], pairs[:, 0] - pairs[:, 1]], axis=1).reshape(-1)
        width *= 2
    return sums
