"""The tools of diffprivlib: statistics of arrays."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from types import ModuleType

import numpy as np

from ...library_entry import Finding, LibraryEntry, Mechanism, Strategy
from .package import LIBRARY, NONE_FOUND, TRACKER, accounted_alone, hundredths, library_entry, random_state


def _unit(st: ModuleType) -> object:
    return st.lists(hundredths(st), min_size=1, max_size=5)


def _several(st: ModuleType) -> object:
    return st.lists(hundredths(st), min_size=2, max_size=6)


def _points(st: ModuleType) -> object:
    """Return the strategy of points in the unit square, as their two coordinates."""
    several = st.lists(st.tuples(hundredths(st), hundredths(st)), min_size=1, max_size=5)
    return several.map(lambda points: tuple(np.array(points).T))


def _rows(st: ModuleType) -> object:
    """Return the strategy of points in the unit square, as rows."""
    return st.lists(st.tuples(hundredths(st), hundredths(st)), min_size=1, max_size=5).map(np.array)


def _with_missing(st: ModuleType) -> object:
    numbers = st.lists(hundredths(st) | st.just(math.nan), min_size=1, max_size=5)
    return numbers.filter(_has_number)


def _columns(st: ModuleType) -> object:
    """Return the strategy of rows of two numbers in [0, 1], of which any may be missing."""
    number = hundredths(st) | st.just(math.nan)
    return st.lists(st.tuples(number, number), min_size=1, max_size=4).map(np.array)


def _has_number(data: Iterable[float]) -> bool:
    return not all(map(math.isnan, data))


def _tool(name: str, *arguments: object, **options: object) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        tool = getattr(LIBRARY.load("diffprivlib.tools"), name)

        def mechanism(data: object, rng: np.random.Generator) -> object:
            parts = data if isinstance(data, tuple) else (np.asarray(data),)
            released = tool(*parts, *arguments, epsilon=1.0, random_state=random_state(rng), **options)
            return released[0] if isinstance(released, tuple) else released

        return accounted_alone(mechanism)

    return build


_NANMEAN = Finding(
    false="the noise is calibrated for as many numbers as the array has places, and the mean is over those that are "
    "numbers: one of few moves it by more (`_mean` in `diffprivlib/tools/utils.py`: sensitivity (upper - lower) / "
    "array.size)",
    answer="The count of missing values could be meant to be public, and the same in both worlds; the documentation "
    "does not say so.",
    repair="count the numbers that are not NaN with noise, or bound the sensitivity by (upper - lower)",
    upstream=f"{TRACKER}/87 is about the bounds of the nan* functions; of their sensitivity {NONE_FOUND}",
)
_HISTOGRAM = Finding(
    false="a record that is replaced changes two counts, and each has noise for one (`histogram` in "
    "`diffprivlib/tools/histograms.py`: GeometricTruncated with sensitivity 1 for each bin)",
    answer="Neighbours could be meant to have one record more or less: then no violation was found. The relation is not "
    "documented.",
    repair="say so, or halve epsilon",
    upstream=NONE_FOUND,
)
_WEIGHTS = Finding(
    false="a record moves a bin by its weight, and the noise is for 1 (`histogram`, `histogram2d` and `histogramdd` in "
    "`diffprivlib/tools/histograms.py`: GeometricTruncated with sensitivity 1, whatever the weights)",
    answer='Weights could be meant to be 1 at most. The documentation says that each value "only contributes its associated '
    'weight towards the bin count (instead of 1)", and states no bound.',
    repair="refuse weights above 1, or take a bound of the weights as the sensitivity",
    upstream=NONE_FOUND,
)
_BINS = Finding(
    false="where bins names a method, numpy computes their number from the data, and it is released without noise "
    "(`histogram` in `diffprivlib/tools/histograms.py`: numpy.histogram with the given bins), also where the range is given",
    answer="A method that looks at the data cannot be private. It is documented as an option, and no PrivacyLeakWarning is "
    "given where the range is.",
    repair="refuse names of methods, or warn as for a missing range",
    upstream=NONE_FOUND,
)
_ALL_MISSING = Finding(
    false="of a column without a number NaN is released, with certainty, and of one with a number never (`_mean` and `_var` in "
    "`diffprivlib/tools/utils.py` give the mechanism NaN; `LaplaceTruncated` adds noise to it and `LaplaceBoundedDomain`, in "
    "`diffprivlib/mechanisms/laplace.py`, returns it as it is): one record that is replaced shows",
    answer='It is documented: "For all-NaN slices, NaN is returned". Which columns have no number at all could be meant to be '
    "public; the documentation does not say so.",
    repair="release a random number of the domain for such a column, as nansum takes 0 for its sum and adds noise",
    upstream=f"{TRACKER}/80, open, says that a NaN is a distinguishing event for most functions, and excepts nanmean, nanvar "
    f"and nanstd; of columns without a number {NONE_FOUND}",
)
_SIZE = Finding(
    false="the number of records is taken to be public: what is released lies between bounds that are multiples of it "
    "(`_sum` in `diffprivlib/tools/utils.py`: lower * array.size and upper * array.size), or has noise that is computed "
    "from it (`_var`: sensitivity ((upper - lower) / array.size) ** 2 * (array.size - 1), which is 0 for one record)",
    answer="Neighbours could be meant to replace a record, and so to have as many: then no violation was found. The "
    "relation is not documented.",
    repair="say so",
    upstream=NONE_FOUND,
)

_WEIGHT = "Each value in `a` only contributes its associated weight towards the bin count (instead of 1)."
_SLICES = "For all-NaN slices, NaN is returned and a `RuntimeWarning` is raised."
_SUMS = "Sum of array elements over a given axis with differential privacy, ignoring NaNs."
_BIN_WIDTHS = "If `bins` is a string, it defines the method used to calculate the optimal bin width"


def _weighted_histogram() -> Mechanism:
    """Return the histogram of values with weights."""
    tool = LIBRARY.load("diffprivlib.tools").histogram

    def mechanism(data: object, rng: np.random.Generator) -> object:
        values, weights = np.array(data).T
        options = {"bins": 2, "range": (0, 1), "weights": weights}
        return tool(values, epsilon=1.0, random_state=random_state(rng), **options)[0]

    return accounted_alone(mechanism)


def _weighted(st: ModuleType) -> object:
    """Return the strategy of values in [0, 1] with their weights."""
    return st.lists(st.tuples(hundredths(st), st.sampled_from([1.0, 5.0])), min_size=1, max_size=4)


#: Tool, its other arguments, its data, the first sentence of its documentation.
_TOOLS: tuple[tuple[str, tuple[object, ...], dict[str, object], Strategy, str], ...] = (
    (
        "count_nonzero",
        (),
        {},
        _unit,
        "Counts the number of non-zero values in the array ``array`` with differential privacy.",
    ),
    (
        "histogram",
        (),
        {"bins": 2, "range": (0, 1)},
        _unit,
        "Compute the differentially private histogram of a set of data.",
    ),
    (
        "histogram2d",
        (),
        {"bins": 2, "range": ((0, 1), (0, 1))},
        _points,
        "Compute the differentially private bi-dimensional histogram of two data samples.",
    ),
    (
        "histogramdd",
        (),
        {"bins": 2, "range": ((0, 1), (0, 1))},
        _rows,
        "Compute the differentially private multidimensional histogram of some data.",
    ),
    (
        "mean",
        (),
        {"bounds": (0, 1)},
        _unit,
        "Compute the differentially private arithmetic mean along the specified axis.",
    ),
    (
        "nanmean",
        (),
        {"bounds": (0, 1)},
        _with_missing,
        "Compute the differentially private arithmetic mean along the specified axis, ignoring NaNs.",
    ),
    ("var", (), {"bounds": (0, 1)}, _unit, "Compute the differentially private variance along the specified axis."),
    (
        "nanvar",
        (),
        {"bounds": (0, 1)},
        _with_missing,
        "Compute the differentially private variance along the specified axis, ignoring NaNs.",
    ),
    (
        "std",
        (),
        {"bounds": (0, 1)},
        _unit,
        "Returns the standard deviation of the array elements, a measure of the spread of a distribution, with differential privacy.",
    ),
    (
        "nanstd",
        (),
        {"bounds": (0, 1)},
        _with_missing,
        "Returns the standard deviation of the array elements, a measure of the spread of a distribution, with differential privacy.",
    ),
    ("sum", (), {"bounds": (0, 1)}, _unit, "Sum of array elements over a given axis with differential privacy."),
    (
        "nansum",
        (),
        {"bounds": (0, 1)},
        _with_missing,
        "Sum of array elements over a given axis with differential privacy, ignoring NaNs.",
    ),
    ("median", (), {"bounds": (0, 1)}, _unit, "Compute the differentially private median of the array."),
    ("quantile", (0.25,), {"bounds": (0, 1)}, _unit, "Compute the differentially private quantile of the array."),
    ("percentile", (75,), {"bounds": (0, 1)}, _unit, "Compute the differentially private percentile of the array."),
)
_TOOL_FINDINGS: dict[str, tuple[Finding, tuple[str, ...]]] = {
    "nanmean": (_NANMEAN, ("add-remove", "replace")),
    **dict.fromkeys(("histogram", "histogram2d", "histogramdd"), (_HISTOGRAM, ("replace",))),
    **dict.fromkeys(("count_nonzero", "var", "nanvar", "std", "nanstd", "sum", "nansum"), (_SIZE, ("add-remove",))),
}


def _tools() -> Iterator[LibraryEntry]:
    for name, arguments, options, data, quotation in _TOOLS:
        finding, relations = _TOOL_FINDINGS.get(name, (None, ()))
        yield library_entry(
            what=name,
            quotation=quotation,
            where=f"documentation of diffprivlib.tools.{name}",
            strategy=data,
            allowed=_has_number if data is _with_missing else None,
            build=_tool(name, *arguments, **options),
            runs=LibraryEntry.runs if "replace" in relations else 10_000,
            finding=finding,
            false_under=relations,
        )


def _options() -> Iterator[LibraryEntry]:
    of_widths, all_relations = _tool("histogram", bins="auto", range=(0, 1)), LibraryEntry.relations
    by_column = {name: _tool(name, bounds=(0, 1), axis=0) for name in ("nanmean", "nanvar", "nanstd", "nansum")}
    for subject, build, data, quotation, finding, relations in (
        ("histogram-weights", _weighted_histogram, _weighted, _WEIGHT, _WEIGHTS, all_relations),
        ("histogram-auto", of_widths, _several, _BIN_WIDTHS, _BINS, ("replace",)),
        ("nanmean-columns", by_column["nanmean"], _columns, _SLICES, _ALL_MISSING, all_relations),
        ("nanvar-columns", by_column["nanvar"], _columns, _SLICES, _ALL_MISSING, all_relations),
        ("nanstd-columns", by_column["nanstd"], _columns, _SLICES, _ALL_MISSING, all_relations),
        ("nansum-columns", by_column["nansum"], _columns, _SUMS, None, ("replace",)),
    ):
        yield library_entry(
            what=subject,
            quotation=quotation,
            where=f"documentation of diffprivlib.tools.{subject.partition('-')[0]}, of the option",
            strategy=data,
            build=build,
            runs=10_000,
            finding=finding,
            relations=relations,
            false_under=relations if finding else (),
        )


ENTRIES: tuple[LibraryEntry, ...] = (*_tools(), *_options())
