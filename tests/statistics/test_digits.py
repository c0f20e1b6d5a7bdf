"""A bound is never printed as more than is known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from overclaim.audit.statistics.digits import at_least, at_most, compact, confidence_text, within


@given(st.floats(-1e12, 1e12), st.sampled_from([".4g", ".4f", ".3g", ".2f"]))
def test_digits_are_on_the_safe_side(bound: float, digits: str) -> None:
    slack = 1e-11 * abs(bound)
    low, high = (float(text) for text in within(bound, bound, digits))
    assert low <= bound + slack
    assert high >= bound - slack
    near = float(f"{bound:{digits}}")
    assert near in (low, high) or math.isclose(near, low) or math.isclose(near, high)


@pytest.mark.parametrize(
    ("bound", "digits", "least", "most"),
    [
        (1.47555, ".4g", "1.475", "1.476"),
        (0.99996, ".4f", "0.9999", "1.0000"),
        (0.1 + 0.2, ".4g", "0.3", "0.3"),
        (12345.6, ".4g", "1.234e+04", "1.235e+04"),
        (0.0, ".4f", "0.0000", "0.0000"),
        (math.inf, ".4f", "inf", "inf"),
        (None, ".4g", "-", "-"),
    ],
)
def test_examples(bound: float | None, digits: str, least: str, most: str) -> None:
    assert (at_least(bound, digits), at_most(bound, digits)) == (least, most)


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.95, "95%"), (1 - 1e-5, "99.999%"), (1 - 1e-9, "99.9999999%"), (1 - 1e-15, "99.9999999999999%")],
)
def test_no_confidence_is_certainty(confidence: float, text: str) -> None:
    assert confidence_text(confidence) == text


@pytest.mark.parametrize(
    ("bound", "digits", "claim", "text"),
    [
        (1.00006614, ".4g", 1.0, "1.00006"),
        (1.00006614, ".4f", 1.0, "1.00006"),
        (1.0011, ".3g", 1.0, "1.001"),
        (1.4821, ".4g", 1.0, "1.482"),
        (0.99996, ".4g", 1.0, "0.9999"),
        (1.0, ".4g", 1.0, "1"),
        (math.nextafter(1.0, 2.0), ".4f", 1.0, "1.000000000000"),
        (None, ".4g", 1.0, "-"),
    ],
)
def test_a_bound_beyond_a_claim_is_told_from_it(bound: float | None, digits: str, claim: float, text: str) -> None:
    assert at_least(bound, digits, claim) == text


def test_an_interval_is_shown_rounded_outwards_and_a_word_as_it_is():
    assert compact([2310.92039, 2310.92054]) == "[2310.92, 2310.93]"
    assert [compact(value) for value in (2295.58065, 7, "word", ["a", "b"])] == ["2295.6", "7", "word", "['a', 'b']"]
