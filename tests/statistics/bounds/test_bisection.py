"""Bisection: each end is on its own side, and a bracket that is looked for is no longer than it must be."""

import math

import pytest

from overclaim.audit.statistics.bounds.bisection import bisect, least


@pytest.mark.parametrize("edge", [0.1, 0.5, 0.999])
def test_each_end_is_on_its_own_side(edge):
    low, high = bisect(lambda x: x <= edge, 0.0, 1.0, steps=12)
    assert low <= edge < high
    assert high - low == 2.0**-12
    low, high = bisect(lambda x: x <= edge, 0.0, 1.0)
    assert (low, high) == (edge, math.nextafter(edge, 1))


@pytest.mark.parametrize(("edge", "length"), [(3.25, 1.0), (4.0, 1.0), (4.01, 2.0), (300.0, 512.0)])
def test_the_least_is_looked_for_in_the_smallest_power_of_two(edge, length):
    asked = []

    def holds(x):
        asked.append(x)
        return x >= edge

    found = least(holds, 3.0, steps=10)
    assert holds(found)
    assert found - length / 2**10 < edge
    assert max(x for x in asked if x < math.inf) == 3.0 + length


def test_what_holds_nowhere_has_no_least():
    assert least(lambda x: False, 1.0) == math.inf
