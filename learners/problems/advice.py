"""Expert advice: what every expert recommends, round by round, as distributions over arms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import must_be
from ...mechanisms.draws import Floats
from ..checks import check_arms

_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Advice:
    """The experts' distributions over arms. Public: a privacy claim is about the losses only.

    Parameters
    ----------
    table : array (experts, arms), the same in every round, or (rounds, experts, arms)

    Raises
    ------
    ValueError
        If a row is no distribution, naming the row and its sum.
    """

    table: Floats

    def __init__(self, table: ArrayLike) -> None:
        array = np.array(table, dtype=float)
        if array.ndim not in (2, 3) or 0 in array.shape:
            raise ValueError(f"advice must have shape (experts, arms) or (rounds, experts, arms), got {array.shape}")
        for row in np.ndindex(array.shape[:-1]):
            where = f"expert {row[-1] + 1}" + (f" in round {row[0] + 1}" if len(row) == 2 else "")
            values = array[row]
            if not (np.isfinite(values).all() and values.min() >= 0):
                raise ValueError(f"the advice of {where} must have no negative entry, got {values.tolist()}")
            if abs(values.sum() - 1) > _TOLERANCE:
                raise ValueError(f"the advice of {where} must sum to 1, got sum {values.sum():g}")
        array.setflags(write=False)
        object.__setattr__(self, "table", array)

    @property
    def steady(self) -> bool:
        """Whether the advice is the same in every round."""
        return self.table.ndim == 2

    @property
    def rounds(self) -> Floats:
        """The table round by round, (rounds, experts, arms); one round where it is steady."""
        return self.table[None] if self.steady else self.table

    @property
    def experts(self) -> int:
        """N."""
        return int(self.table.shape[-2])

    @property
    def arms(self) -> int:
        """K."""
        return int(self.table.shape[-1])

    def at(self, t: int) -> Floats:
        """Return the advice of round t (from 0), (experts, arms)."""
        if self.steady:
            return self.table
        if t >= len(self.table):
            raise ValueError(f"the advice covers {len(self.table)} rounds, asked for round {t + 1}")
        table: Floats = self.table[t]
        return table


def observed(seen: Floats | None, context: Any, advice: Advice, runs: NDArray[np.bool_]) -> Floats:
    """Return the advice of a round, (experts, arms, runs), with a context, (experts, arms), as that of some runs.

    Parameters
    ----------
    seen : array (experts, arms, runs), or None
        The round's advice so far.
    advice : Advice
        What the context stands in for: its shape.
    """
    table = Advice(context).table
    shape = advice.experts, advice.arms
    if table.shape != shape:
        raise must_be("a context", f"advice of shape {shape} (experts, arms)", table.shape)
    seen = np.empty((*shape, runs.size)) if seen is None else seen
    seen[..., runs] = table[..., None]
    return seen


def graded_advice(experts: int, arms: int) -> Advice:
    """Return a plain example: the first K experts each name one arm; every later group of K is less certain."""
    check_arms(arms)
    if experts < 1:
        raise must_be("experts", "an integer of at least 1", experts)
    groups = -(-experts // arms)
    table = np.zeros((experts, arms))
    for j in range(experts):
        doubt = (j // arms) / (2 * groups)
        table[j] = doubt / arms
        table[j, j % arms] += 1 - doubt
    return Advice(table)
