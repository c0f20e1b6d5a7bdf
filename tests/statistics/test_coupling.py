"""Rates in two worlds with the same draws: where scores lie among thresholds."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from overclaim.audit.statistics.coupling import CELLS, reached

NUMBERS = st.one_of(st.sampled_from([math.inf, -math.inf, 0.0, 1.0, -1e308, 1e308, 5e-324]), st.floats(-10, 10))


@given(st.sets(NUMBERS, max_size=40), st.lists(st.one_of(st.just(math.nan), NUMBERS), max_size=40), st.booleans())
def test_scores_reach_the_thresholds_that_a_search_finds(grid, scores, many):
    """Scores on thresholds, beside them and beyond them; many are looked up in a table, few are searched."""
    grid = np.array(sorted(grid))
    scores = np.concatenate([np.array(scores), grid, np.nextafter(grid, math.inf), np.nextafter(grid, -math.inf)])
    scores = np.tile(scores, CELLS if many and scores.size else 1)[: max(scores.size, 2 * CELLS)]
    reaches, within = reached(grid, scores)
    known = ~np.isnan(scores)
    np.testing.assert_array_equal(reaches, np.where(known, np.searchsorted(grid, scores, "right"), 0))
    np.testing.assert_array_equal(within, np.searchsorted(grid, scores, "left"))


def test_thresholds_that_lie_close_together_are_told_apart():
    grid = np.array([-1e6, *np.arange(5.0), *(10 + 1e-9 * np.arange(20)), 1e6])
    scores = np.concatenate([np.random.default_rng(0).choice(grid, 3 * CELLS), [math.nan]])
    for some in (grid, grid[:6], grid[:1]):
        reaches, within = reached(some, scores)
        np.testing.assert_array_equal(reaches[:-1], np.searchsorted(some, scores[:-1], "right"))
        np.testing.assert_array_equal(within, np.searchsorted(some, scores, "left"))
        assert reaches[-1] == 0
