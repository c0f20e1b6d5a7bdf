"""Parities of a row number beside a bit: what a Hadamard response says of its input.

Such a report is a row that was drawn, and the noisy entry of the input's column in that row of a Hadamard matrix: the
parity of the bits that row and input share. Among many rows each has few runs, but all of them tell the same parity.
Of several hashes [1]_ it hangs on which was drawn.

References
----------
.. [1] Differential Privacy Team, Apple. Learning with privacy at scale. 2017: the Hadamard count mean sketch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product, starmap

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.draws import Floats
from ...encoding.features import Columns, LabelledColumns, Labels
from ...statistics.bounds.rounding import rounded
from .learned import SCREENED, OutputAttack

#: Rows are whole numbers below this; and the most columns of rows, of bits and of hashes that are read: the first.
MOST_ROWS, MOST_READ = 4096, 4
#: The chance that any parity is taken where none says anything of the worlds.
BY_CHANCE = 1e-3


@dataclass(frozen=True)
class Parities(OutputAttack):
    """The sum of what the parities that tell the worlds apart say of a row and its bit.

    Parameters
    ----------
    row, bit : int
        The columns.
    drawn : int, optional
        The column of the hash that was drawn.
    """

    row: int
    bit: int
    drawn: int | None = None

    name = "parities of a row number"

    @classmethod
    def worth(cls, train: LabelledColumns) -> list[Parities]:
        """Return those of the first columns of rows and of bits that say something."""
        if train.coupled or train.of_one_world:
            return []
        few, columns = train.thinned(SCREENED), train.features.columns
        rows = [i for i, one in enumerate(columns) if one.whole and _are_rows(train.columns[i]).all()]
        codes = [i for i, one in enumerate(columns) if one.discrete and one.values.size > 1]
        bits = [i for i in codes if columns[i].values.size == 2][:MOST_READ]
        those = product(rows[:MOST_READ], bits, [None, *codes[:MOST_READ]])
        return [one for one in starmap(cls, those) if one.bit != one.drawn and one._weights(few).any()]

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Weigh the parities."""
        told = _of_parities(self._weights(train.thinned(SCREENED)))

        def score(view: Columns) -> Floats:
            rows = _rows_of(view.columns[self.row])
            signs = np.where(rows < told.shape[1], self._signs(view), 0.0)
            return rounded(signs * told[self._hashes(view), rows % told.shape[1]])

        return score

    def _weights(self, train: LabelledColumns) -> Floats:
        """Return how far every parity goes with the left world, of each hash; 0 where that may be by chance."""
        rows, hashes, left = _rows_of(train.columns[self.row]), self._hashes(train), train.left
        size = 1 << int(rows.max()).bit_length()
        count = 1 if self.drawn is None else train.features.columns[self.drawn].values.size + 1
        with_left = self._signs(train) * (left - left.mean())
        sums = np.bincount(hashes * size + rows, with_left, count * size).astype(np.float64)
        sums = _of_parities(sums.reshape(count, size))
        spread = np.sqrt(np.bincount(hashes, with_left**2, count))[:, None]
        surely = special.ndtri(1 - BY_CHANCE / 2 / sums.size) * spread
        runs = np.maximum(np.bincount(hashes, minlength=count), 1)[:, None]
        return np.where(rounded(np.abs(sums)) > rounded(surely), sums / runs, 0.0)

    def _hashes(self, view: Columns) -> NDArray[np.intp]:
        """Return which hash was drawn, from 1 on; 0 for others."""
        zeros = np.zeros(view.columns.shape[1], dtype=np.intp)
        return zeros if self.drawn is None else zeros + view.kinds(self.drawn)

    def _signs(self, view: Columns) -> Floats:
        """Return the bit as 1 or -1; 0 where row or bit is none."""
        signs = np.array([0.0, 1.0, -1.0])[view.kinds(self.bit)]
        return np.where(_are_rows(view.columns[self.row]), signs, 0.0)


def _are_rows(numbers: Floats) -> Labels:
    rows: Labels = (numbers >= 0) & (numbers < MOST_ROWS) & (numbers == np.floor(numbers))
    return rows


def _rows_of(numbers: Floats) -> NDArray[np.intp]:
    return np.where(_are_rows(numbers), numbers, 0).astype(np.intp)


def _of_parities(values: Floats) -> Floats:
    """Return the sums of every row's values with the signs of each parity of their places, its Walsh transform."""
    sums, width = values, 1
    while width < values.shape[1]:
        pairs = sums.reshape(len(values), -1, 2, width)
        sums = np.stack([pairs[:, :, 0] + pairs[:, :, 1], pairs[:, :, 0] - pairs[:, :, 1]], axis=2)
        sums, width = sums.reshape(values.shape), 2 * width
    return sums
