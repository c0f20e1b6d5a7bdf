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
    kept : int
        How many entrants go on.
    """

    runs: int
    kept: int


def halving(entrants: int, runs: int, *, least: int = 1, last: int = 1) -> list[Heat]:
    """Return heats that halve the entrants down to `least`, of equally many runs; the last has `last` times as many.

    This is successive halving (Karnin, Koren & Somekh 2013).
    """
    kept = []
    while entrants > least:
        kept.append(entrants := max(least, entrants // 2))
    if not kept:
        return []
    part = runs // (len(kept) - 1 + last)
    return [Heat(part * (last if number == len(kept) else 1), many) for number, many in enumerate(kept, start=1)]


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
    alive = list(entrants)
    for heat in heats:
        worths = judge(alive, heat)
        ranked = sorted(range(len(alive)), key=lambda place: -worths[place])
        alive = [alive[place] for place in ranked[: heat.kept]]
    return alive
