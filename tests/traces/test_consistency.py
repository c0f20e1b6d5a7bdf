"""Certified from below, exact by a law, bounded from above along traces: computed apart, and in this order."""

import math
from itertools import pairwise

import pytest

from overclaim.benchmarks.catalogue import traces


@pytest.fixture(scope="module")
def table():
    """The rows of `benchmarks/catalogue/traces.py` with few runs: every learner's row of the catalogue."""
    return list(traces.rows(runs=2000))


@pytest.mark.nightly(reason="a table of all claims, in every game")
def test_lower_exact_upper(table):
    """Each certificate is wrong with probability 5e-9, so all of them hold with 1 - 1e-6, and the seed is fixed."""
    assert 150 < len(table) <= 200
    for row in table:
        lower, exact, upper, every = row["lower"], row["exact"], row["upper"], row["every pair"]
        known = [value for value in (lower, exact, upper, every) if value is not None]
        # Laws on grids are off by up to 1e-3; certificates and costs are not.
        assert all(a <= b + 1e-3 for a, b in pairwise(known)), row
        if "release" in row["game"] and row["delta"] == 0 and exact is not None:
            assert upper == pytest.approx(exact, abs=1e-9), row


@pytest.mark.nightly(reason="a table of all claims, in every game")
def test_what_leaks_and_what_is_bounded(table):
    leaks = {
        row["name"] for row in table if row["why"].startswith(("BYPASS: ", "NOT BOUNDED: the trace has lost track"))
    }
    assert leaks == {"asi-raman-talwar/exp3", "tossou-dimitrakakis/exp3-minibatch"}
    unbounded = {row["name"] for row in table if row["upper"] is None} - leaks
    assert unbounded == {"asi-raman-talwar/agreed-advice"}  # the first standard pair changes nothing that it plays
    infinite = {row["name"] for row in table if row["upper"] is not None and math.isinf(row["upper"])}
    assert infinite == {f"agarwal-singh/ftpl-{domain}" for domain in ("simplex", "ball", "cube")}  # pure claims
    assert sum(row["every pair"] is not None for row in table) >= 140
