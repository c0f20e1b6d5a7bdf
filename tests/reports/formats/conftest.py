"""Pages have their figures here."""

import functools
import json

import pytest

from overclaim.reports.formats import figures as drawing

DONE = {}


@pytest.fixture(autouse=True, scope="module")
def pictures():
    """Draw the figures of equal claims once, nine tenths of a page; `figures.drawn.__wrapped__` draws anew."""
    real = drawing.drawn

    @functools.wraps(real)
    def drawn(item):
        painters = [part for part in vars(drawing).values() if callable(part)]  # a test may replace one
        key = json.dumps(item, default=repr), repr(painters)
        if key not in DONE:
            DONE[key] = real(item)
        return DONE[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(drawing, "drawn", drawn)
        yield
