import pytest
from hypothesis import strategies as st
from hypothesis.extra import pandas as frames
from visits import AGES, CITIES, release

from overclaim import Claim
from overclaim.testing import neighbours

COLUMNS = {"city": CITIES, "age": AGES}
VISITORS = frames.data_frames([frames.column(name, st.sampled_from(of), str) for name, of in COLUMNS.items()])


@pytest.mark.overclaim(runs=3000, confidence=0.999999)
def test_no_visitor_can_be_seen(falsify):
    inputs = neighbours(VISITORS, "add-remove")
    falsify(release, Claim(epsilon=1.0), inputs=inputs, os_random=True).require_survived()
