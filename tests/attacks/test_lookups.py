"""What attacks read of many numbers at once, against the plain definition of each."""

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from overclaim.audit.attacks.outputs.binned_regressions import NUDGE, STRETCH, UNIFORM, Coded, CodedRuns, _bins
from overclaim.audit.attacks.outputs.count_tables import kinds_of
from overclaim.audit.attacks.outputs.screening import SCREENED_SHARES
from overclaim.audit.encoding.columns import (
    FEW_VALUES,
    MOST_SPECIALS,
    QUARTERS,
    REPEATS,
    STANDS_OUT,
    Column,
    of_sorted,
)
from overclaim.audit.encoding.features import Features
from overclaim.audit.statistics.coupling import MAX_KEYS, Places

NUMBERS = st.one_of(
    st.sampled_from([math.nan, math.inf, -math.inf, 0.0, -0.0, 1.0, 2.0, -1e308, 1e308, 5e-324]), st.floats(-10, 10)
)
COLUMNS = st.lists(NUMBERS, min_size=1, max_size=60).map(np.array)


@given(st.lists(st.one_of(st.floats(-1e100, 1e100), st.sampled_from([0.0, 5e-324, 1.0])), min_size=1, max_size=60))
def test_quantiles_of_sorted_numbers_are_numpys_to_the_last_bit(numbers):
    ordered, shares = np.sort(numbers), np.concatenate([SCREENED_SHARES, QUARTERS, [0.0, 1.0]])
    np.testing.assert_array_equal(of_sorted(ordered, shares), np.quantile(ordered, shares))


@given(COLUMNS, COLUMNS)
def test_kinds_are_the_places_of_a_columns_values(training, column):
    looked = Column.of(training)
    values = looked.values.tolist()

    def kind(number):
        same = [
            i for i, value in enumerate(values, start=1) if value == number or (number != number and value != value)
        ]
        return same[0] if same else 0

    assert looked.kinds(column).tolist() == [kind(number) for number in column.tolist()]


@given(st.lists(st.one_of(NUMBERS, st.integers(-2, 2).map(float)), min_size=1, max_size=60).map(np.array))
def test_a_columns_values_are_those_it_repeats(column):
    looked = Column.of(column)
    values, times = np.unique(column, return_counts=True)
    discrete = values.size <= FEW_VALUES and (times.max() >= REPEATS or values.size == 1)
    if not discrete:
        padded = [0, 0, *times, 0, 0]
        beside = [max(min(padded[i - 2 : i]), min(padded[i + 1 : i + 3])) for i in range(2, len(padded) - 2)]
        times = np.where((times >= STANDS_OUT * np.array(beside)) | ~np.isfinite(values), times, 0)
        often = np.argsort(-times, kind="stable")[:MOST_SPECIALS]
        values = values[np.sort(often[(times[often] >= REPEATS) | ~np.isfinite(values[often])])]
    assert looked.discrete == discrete
    np.testing.assert_array_equal(looked.values, values)
    rest = column[np.isfinite(column)]
    others = rest if discrete else rest[~np.isin(rest, values)]
    if looked.transform is None and rest.size:
        shown = others if others.size else rest
        centre = np.quantile(shown, 0.5)
        if discrete or (shown == centre).sum() < REPEATS:
            assert looked.centre == centre
        else:
            below, above = (abs(2 * np.count_nonzero(side) - shown.size) for side in (shown < centre, shown <= centre))
            beside = shown[shown < centre].max(initial=-np.inf), shown[shown > centre].min(initial=np.inf)
            other = beside[0] if below <= above else beside[1]
            assert looked.centre == (centre + (other - centre) / 2 if np.isfinite(other) else centre)


@given(st.sets(st.integers(0, 50), min_size=1), st.lists(st.integers(0, 50), min_size=1), st.booleans())
def test_places_are_those_of_a_search(known, asked, few):
    known, asked = np.array(sorted(known)), np.array(asked)
    places = Places.of(known, 51 if few else MAX_KEYS + 1)
    expected = [known.tolist().index(one) if one in known else known.size for one in asked.tolist()]
    assert places(asked).tolist() == expected


@given(COLUMNS, st.floats(-10, 10), st.floats(0.01, 100))
def test_bins_have_one_width_and_no_end(numbers, low, per_unit):
    def bin_of(number):
        return (
            min(max(math.floor((number - low) * per_unit + NUDGE), 0), UNIFORM - 1) if np.isfinite(number) else UNIFORM
        )

    codes = _bins(lambda view: numbers, low, per_unit, None)
    with np.errstate(over="ignore"):
        expected = [
            bin_of(x) if not np.isfinite(x) or abs(x) < 1e300 else (UNIFORM - 1) * (x > 0) for x in numbers.tolist()
        ]
    assert codes.tolist() == expected


def test_bins_of_many_numbers_are_those_of_each():
    numbers = np.random.default_rng(0).laplace(size=3 * STRETCH + 1) * 20
    numbers[::7], numbers[1::7] = math.nan, -math.inf
    codes = _bins(lambda view: numbers, -30.0, 0.8, None)
    plain = np.where(np.isfinite(numbers), np.clip((numbers + 30.0) * 0.8 + NUDGE, 0, UNIFORM - 1), UNIFORM)
    np.testing.assert_array_equal(codes, plain.astype(int))


def test_a_columns_numbers_are_nan_where_they_are_special():
    column = np.array([1.5] * 5 + [math.nan, math.inf, -math.inf, -0.0, *np.arange(40.0)])
    view = Features(column[None]).view(column[None])
    special = np.isin(column, view.features.columns[0].values) | ~np.isfinite(column)
    numbers = view.numbers(0)
    np.testing.assert_array_equal(np.isnan(numbers), special)
    assert numbers[~special].tobytes() == column[~special].tobytes()


def test_patterns_are_numbered_by_every_columns_kind():
    rng = np.random.default_rng(0)
    columns = rng.choice([0.0, 1.0, math.nan], (3, 200))
    view = Features(columns).view(columns)
    kinds = [view.kinds(i).astype(int) for i in range(3)]
    np.testing.assert_array_equal(kinds_of(range(3), view), (kinds[0] * 4 + kinds[1]) * 4 + kinds[2])
    assert view.kinds(0) is view.kinds(0)


def test_the_curvature_of_a_regression_on_codes_is_that_of_its_features():
    """Codes as columns of zeros and ones, or of a part's weights: X' diag(p (1 - p)) X, and X' (y - p)."""
    rng = np.random.default_rng(0)
    runs = 2 * STRETCH + 10
    codes = [rng.integers(0, size, runs).astype(np.uint8) for size in (3, 5, 2)]
    weights = [None, rng.random(runs), None]
    parts = [Coded(code, weight, size, True) for code, weight, size in zip(codes, weights, (3, 5, 2), strict=True)]
    coded = CodedRuns(parts, np.arange(runs) < runs // 2)
    matrix = np.concatenate(
        [np.eye(part.size)[part.codes] * (1.0 if part.weights is None else part.weights[:, None]) for part in parts],
        axis=1,
    )
    found = rng.normal(size=10)
    for odds, curvature in ((np.zeros(10), coded.even), (found, coded._curvature(found))):
        rate = 1 / (1 + np.exp(-(matrix @ odds)))
        np.testing.assert_allclose(curvature, (matrix.T * (rate * (1 - rate))) @ matrix, rtol=1e-9, atol=1e-9)
    slope, curved = coded._slope(found)
    np.testing.assert_allclose(slope, matrix.T @ (coded.left - rate), rtol=1e-9, atol=1e-9)
    assert math.isclose(curved, float(np.mean(rate * (1 - rate))), rel_tol=1e-12)
