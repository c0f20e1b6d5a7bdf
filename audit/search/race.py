"""A race: how every search compares what may be audited, heat by heat, on runs that never certify."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Entrant = TypeVar("Entrant")


@dataclass(frozen=True)
class Heat:
    """One heat of a race.

    Attributes
    ----------
    runs : int
        Of all entrants together.
    n_kept : int
        How many entrants go on.
    """

    runs: int
    n_kept: int


def halving(entrants: int, runs: int, *, min_entrants: int = 1, last: int = 1) -> list[Heat]:
    """Return heats that halve the entrants down to `min_entrants`, of equal runs; the last has `last` times as many.

    This is successive halving (Karnin, Koren & Somekh 2013).
    """
    sizes = []
    while entrants > min_entrants:
        sizes.append(entrants := max(min_entrants, entrants // 2))
    if not sizes:
        return []
    part = runs // (len(sizes) - 1 + last)
    return [Heat(part * (last if number == len(sizes) else 1), n_kept) for number, n_kept in enumerate(sizes, start=1)]


def race(
    entrants: Sequence[Entrant], heats: Iterable[Heat], judge: Callable[[Sequence[Entrant], Heat], Sequence[float]]
) -> list[Entrant]:
    """Return the entrants that are left after all heats, the best first.

    Parameters
    ----------
    entrants : sequence
    heats : iterable of Heat
    judge : callable
        From the entrants of a heat and the heat to what each promises; it plays the runs.
    """
    survivors = list(entrants)
    for heat in heats:
        promises = judge(survivors, heat)
        ranked = sorted(range(len(survivors)), key=lambda place: -promises[place])
        survivors = [survivors[place] for place in ranked[: heat.n_kept]]
    return survivors
