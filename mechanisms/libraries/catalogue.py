"""All entries of the libraries' catalogue, by name. No library is imported for it."""

from __future__ import annotations

from functools import cache

from ..library_entry import LibraryEntry
from . import dpmm, jax_privacy, mabwiser, opacus, opendp, pipeline_dp, pydp, river
from .diffprivlib import mechanisms, models, tools
from .smartnoise import sql, synth


@cache
def library_entries() -> dict[str, LibraryEntry]:
    """Return every entry by its name."""
    entries = [
        *tools.ENTRIES,
        *models.ENTRIES,
        *mechanisms.ENTRIES,
        *opendp.ENTRIES,
        *pydp.ENTRIES,
        *pipeline_dp.ENTRIES,
        *river.ENTRIES,
        *mabwiser.ENTRIES,
        *opacus.ENTRIES,
        *jax_privacy.ENTRIES,
        *dpmm.ENTRIES,
        *sql.ENTRIES,
        *synth.ENTRIES,
    ]
    return {entry.name: entry for entry in entries}
