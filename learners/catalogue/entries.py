"""The catalogue of the papers' algorithms.

A new algorithm is one file in this room and one `Entry` in its paper's list.
"""

from __future__ import annotations

from importlib import import_module

from ...errors import unknown_target
from ..entry import Case, Entry
from .exact_laws import EXACT_LAWS, key_of

#: The papers' modules, each with a tuple `ENTRIES`.
PAPERS = (
    "agarwal_singh",
    "agarwal_singh_bandits",
    "asi_raman_talwar",
    "asi_raman_talwar_advice",
    "tossou_dimitrakakis",
    "ene_nguyen_vladu",
    "ene_nguyen_vladu_oracles",
    "smith_thakurta",
    "smith_thakurta_bandits",
)


def entries() -> dict[str, Entry]:
    """Return the catalogue by name."""
    papers = (import_module(f".{paper}", __package__) for paper in PAPERS)
    return {entry.name: entry for paper in papers for entry in paper.ENTRIES}


def lookup(name: str) -> Entry:
    """Return the entry of this name.

    Raises
    ------
    ValueError
        If there is none, with the near matches.
    """
    catalogue = entries()
    if name not in catalogue:
        raise unknown_target(name, catalogue)
    return catalogue[name]


def exact_law(entry: Entry, case: Case) -> tuple[float, int] | None:
    """Return what `EXACT_LAWS` has of a row; None where it has nothing."""
    return EXACT_LAWS.get(key_of(entry, case))
