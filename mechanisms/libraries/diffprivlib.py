"""diffprivlib 0.6.6: mechanisms, tools and models; docs/libraries.md says which are missing. Its documentation states no neighbour relation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..claim import Claim
from .entry import Finding, Library, LibraryEntry, Mechanism, quietly

LIBRARY = Library(
    name="diffprivlib",
    distribution="diffprivlib",
    version="0.6.6",
    module="diffprivlib",
    needs="scikit-learn below 1.6",
)
_TRACKER = "https://github.com/IBM/differential-privacy-library/issues"
_ONE = Claim(epsilon=1.0)
_APPROXIMATE = Claim(epsilon=1.0, delta=0.01)
_NONE_FOUND = "nothing was found in their tracker."


def _state(rng: Any) -> Any:
    """Return the random state that diffprivlib takes, on the audit's own generator."""
    return np.random.RandomState(rng.bit_generator)


def _grid(st: Any) -> Any:
    return st.integers(0, 100).map(lambda percent: percent / 100)


def _unit(st: Any) -> Any:
    return st.lists(_grid(st), min_size=1, max_size=5)


def _with_missing(st: Any) -> Any:
    some = st.lists(_grid(st) | st.just(math.nan), min_size=1, max_size=5)
    return some.filter(_has_number)


def _has_number(data: Any) -> bool:
    return not all(map(math.isnan, data))


def _tool(name: str, *more: Any, **options: Any) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        tool = getattr(LIBRARY.load("diffprivlib.tools"), name)

        def mechanism(data: Any, rng: Any) -> Any:
            found = tool(np.asarray(data), *more, epsilon=1.0, random_state=_state(rng), **options)
            return found[0] if isinstance(found, tuple) else found

        return quietly(mechanism)

    return build


_NANMEAN = Finding(
    false="the noise is calibrated for as many numbers as the array has places, and the mean is over those that are "
    "numbers: one of few moves it by more (`_mean` in `diffprivlib/tools/utils.py`: sensitivity (upper - lower) / "
    "array.size)",
    answer="The count of missing values could be meant to be public, and the same in both worlds; the documentation "
    "does not say so.",
    repair="count the numbers that are not NaN with noise, or bound the sensitivity by (upper - lower)",
    upstream=f"{_TRACKER}/87 is about the bounds of the nan* functions; of their sensitivity {_NONE_FOUND}",
)
_HISTOGRAM = Finding(
    false="a record that is replaced changes two counts, and each has noise for one (`histogram` in "
    "`diffprivlib/tools/histograms.py`: GeometricTruncated with sensitivity 1 for each bin)",
    answer="Neighbours could be meant to have one record more or less: then the claim holds. The relation is not "
    "documented.",
    repair="say so, or halve epsilon",
    upstream=_NONE_FOUND,
)
_SIZE = Finding(
    false="the number of records is taken to be public: what is released lies between bounds that are multiples of it "
    "(`_sum` in `diffprivlib/tools/utils.py`: lower * array.size and upper * array.size), or has noise that is computed "
    "from it (`_var`: sensitivity ((upper - lower) / array.size) ** 2 * (array.size - 1), which is 0 for one record)",
    answer="Neighbours could be meant to replace a record, and so to have as many: then no violation was found. The "
    "relation is not documented.",
    repair="say so",
    upstream=_NONE_FOUND,
)

#: Tool, its other arguments, its data, the first sentence of its documentation.
_TOOLS: tuple[tuple[str, tuple[Any, ...], dict[str, Any], Any, str], ...] = (
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
    "nanmean": (_NANMEAN, ("replace",)),
    "histogram": (_HISTOGRAM, ("replace",)),
    **dict.fromkeys(("count_nonzero", "var", "nanvar", "std", "nanstd", "sum", "nansum"), (_SIZE, ("add-remove",))),
}


def _tools() -> Iterator[LibraryEntry]:
    for name, more, options, data, said in _TOOLS:
        finding, under = _TOOL_FINDINGS.get(name, (None, ()))
        yield LibraryEntry(
            package=LIBRARY,
            what=name,
            claim=_ONE,
            quotation=said,
            where=f"documentation of diffprivlib.tools.{name}",
            strategy=data,
            allowed=_has_number if data is _with_missing else None,
            build=_tool(name, *more, **options),
            finding=finding,
            false_under=under,
        )


def _rows(features: int, values: Any, labels: Any, least: int = 2) -> Callable[[Any], Any]:
    """Return the strategy of (X, y), rows of numbers with their labels."""

    def strategy(st: Any) -> Any:
        row = st.tuples(*[values(st)] * features, labels(st))
        some = st.lists(row, min_size=least, max_size=5)
        return some.map(lambda rows: (np.array([row[:-1] for row in rows]), np.array([row[-1] for row in rows])))

    return strategy


def _points(values: Any, features: int, least: int = 2) -> Callable[[Any], Any]:
    def strategy(st: Any) -> Any:
        some = st.lists(st.tuples(*[values(st)] * features), min_size=least, max_size=5)
        return some.map(lambda rows: np.array(rows, dtype=float))

    return strategy


def _classes(st: Any) -> Any:
    return st.integers(0, 1)


def _hundreds(st: Any) -> Any:
    return st.integers(-10, 10).map(lambda tens: 10.0 * tens)


def _model(name: str, attributes: tuple[str, ...], **options: Any) -> Callable[[], Mechanism]:
    """Return what fits a model and releases what it has learned."""

    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.models"), name)

        def mechanism(data: Any, rng: Any) -> Any:
            parts = data if isinstance(data, tuple) else (data,)
            model = kind(epsilon=1.0, random_state=_state(rng), **options).fit(*parts)
            return {attribute: np.asarray(getattr(model, attribute)) for attribute in attributes}

        return quietly(mechanism)

    return build


_LINEAR = Finding(
    false="the sensitivity of the sums of squares of a feature is the square of its lower bound, whatever its upper one: "
    "with the bounds (0, 1) they have no noise (`_construct_regression_obj` in "
    "`diffprivlib/models/linear_regression.py`: bounds_X[0][i] stands there twice)",
    answer="A slip, which the tracker knows; it is harmless for bounds that are symmetric around 0.",
    repair="take the larger of |bounds_X[0][i]| and |bounds_X[1][i]|",
    upstream=f"{_TRACKER}/104 and {_TRACKER}/105, open, with a patch in /110",
    certified=False,
)
_LOGISTIC = Finding(
    false="the second derivative of the objective is bounded by 0.25 times the square of the data's norm, and the noise "
    "is calculated with 0.25 times the norm itself (`fit` in `diffprivlib/models/logistic_regression.py` and "
    "`Vector.randomise` in `diffprivlib/mechanisms/vector.py`)",
    answer="For data of norm at most 1, as in the paper, it is the same.",
    repair="function_sensitivity = 0.25 * data_norm",
    upstream=f"{_TRACKER}/10 asked for the proof of other norms than 1, and was closed; of this {_NONE_FOUND}",
    certified=False,
)
_NAIVE = Finding(
    false="the noisy counts of the classes lie between 1 and the number of records, and add up to it: it is released "
    "(`_noisy_class_counts` in `diffprivlib/models/naive_bayes.py`: upper=n_total)",
    answer="Neighbours could be meant to replace a record, and so to have as many: then no violation was found. The "
    "relation is not documented.",
    repair="say so",
    upstream=_NONE_FOUND,
)
_BOX: dict[str, Any] = {"bounds": (0, 1)}
_COEFFICIENTS = ("coef_", "intercept_")
#: Name of the entry, model, what it releases, its options, its data, its documentation's sentence, finding.
_MODELS: tuple[tuple[str, str, tuple[str, ...], dict[str, Any], Any, str, Finding | None], ...] = (
    (
        "LinearRegression", "LinearRegression", ("coef_",),
        {"bounds_X": (0, 1), "bounds_y": (0, 1), "fit_intercept": False}, _rows(1, _grid, _grid),
        "Ordinary least squares Linear Regression with differential privacy.", _LINEAR,
    ),
    (
        "LogisticRegression-norm-100", "LogisticRegression", _COEFFICIENTS, {"data_norm": 100.0},
        _rows(1, _hundreds, _classes), "Logistic Regression (aka logit, MaxEnt) classifier with differential privacy.", _LOGISTIC,
    ),
    (
        "LogisticRegression", "LogisticRegression", _COEFFICIENTS, {"data_norm": 1.0}, _rows(1, _grid, _classes),
        "Logistic Regression (aka logit, MaxEnt) classifier with differential privacy.", None,
    ),
    (
        "GaussianNB", "GaussianNB", ("theta_", "var_", "class_count_"), _BOX, _rows(1, _grid, _classes),
        "Gaussian Naive Bayes (GaussianNB) with differential privacy", _NAIVE,
    ),
    (
        "KMeans", "KMeans", ("cluster_centers_",), {"n_clusters": 2, **_BOX}, _points(_grid, 1),
        "K-Means clustering with differential privacy.", None,
    ),
    (
        "PCA", "PCA", ("components_", "explained_variance_"), {"n_components": 1, "data_norm": 1.0, "centered": True},
        _points(lambda st: st.integers(-7, 7).map(lambda tenth: tenth / 10), 2),
        "Principal component analysis (PCA) with differential privacy.", None,
    ),
    (
        "StandardScaler", "StandardScaler", ("mean_", "var_"), _BOX, _points(_grid, 1),
        "Standardize features by removing the mean and scaling to unit variance, calculated with differential privacy guarantees.",
        None,
    ),
)  # fmt: skip


#: The relations under which a model's claim is expected to be false: where noise is missing, any; else where that was
#: certified or read.
_UNDER: dict[str, tuple[str, ...]] = {
    "LinearRegression": ("replace", "add-remove"),
    "LogisticRegression-norm-100": ("replace",),
    "GaussianNB": ("add-remove",),
}


def _models() -> Iterator[LibraryEntry]:
    for what, model, attributes, options, data, said, finding in _MODELS:
        yield LibraryEntry(
            package=LIBRARY,
            what=what,
            claim=_ONE,
            quotation=said,
            where=f"documentation of diffprivlib.models.{model}",
            strategy=data,
            build=_model(model, attributes, **options),
            finding=finding,
            false_under=_UNDER.get(what, ()),
        )


def _mechanism(name: str, **options: Any) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.mechanisms"), name)

        def mechanism(data: Any, rng: Any) -> Any:
            return kind(random_state=_state(rng), **options).randomise(data)

        return quietly(mechanism)

    return build


def _chosen(name: str) -> Callable[[], Mechanism]:
    """Return what chooses by utilities, which are its data."""

    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.mechanisms"), name)

        def mechanism(data: Any, rng: Any) -> Any:
            return kind(epsilon=1.0, sensitivity=1.0, utility=list(data), random_state=_state(rng)).randomise()

        return quietly(mechanism)

    return build


def _beside(value: Any) -> list[Any]:
    return [value - 1, value + 1]


def _beside_in_unit(value: Any) -> list[Any]:
    return [0.0, 1.0] if 0 <= value <= 1 else []


def _beside_utilities(data: Any) -> list[Any]:
    return [
        [u + s for u, s in zip(data, step, strict=True)] for step in itertools.product((-1.0, 1.0), repeat=len(data))
    ]


_ROUNDED = Finding(
    false="beyond 2^53 the value is rounded to a float before the noise is added to it: neighbours are further apart than "
    "the sensitivity, or the same (`Geometric.randomise` in `diffprivlib/mechanisms/geometric.py`: value + float)",
    answer="Values of that size are rare; the type of `value` is documented as int, without a bound.",
    repair="add integers: value + int(sgn * np.floor(...))",
    upstream=_NONE_FOUND,
)


def _integers(st: Any) -> Any:
    return st.integers(-(2**60), 2**60)


def _floats(st: Any) -> Any:
    return st.integers(-200, 200).map(lambda percent: percent / 100)


def _binary(st: Any) -> Any:
    return st.sampled_from(["yes", "no"])


def _utilities(st: Any) -> Any:
    return st.lists(st.integers(0, 4).map(float), min_size=2, max_size=3)


_NEAR_ONE = {"epsilon": 1.0, "sensitivity": 1.0}
_NEAR_DELTA = {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1.0}
_UNIT_BOX = {**_NEAR_ONE, "lower": 0.0, "upper": 1.0}
#: Mechanism, its options, claim, data, neighbours, the words of its documentation.
_MECHANISMS: tuple[tuple[str, dict[str, Any], Claim, Any, Any, str], ...] = (
    (
        "Binary",
        {"epsilon": 1.0, "value0": "yes", "value1": "no"},
        _ONE,
        _binary,
        lambda value: ["yes", "no"],
        "The classic binary mechanism in differential privacy.",
    ),
    ("Gaussian", _NEAR_DELTA, _APPROXIMATE, _floats, _beside, "The Gaussian mechanism in differential privacy."),
    (
        "GaussianAnalytic",
        _NEAR_DELTA,
        _APPROXIMATE,
        _floats,
        _beside,
        "The analytic Gaussian mechanism in differential privacy.",
    ),
    (
        "GaussianDiscrete",
        {**_NEAR_DELTA, "sensitivity": 1},
        _APPROXIMATE,
        lambda st: st.integers(-5, 5),
        _beside,
        "The Discrete Gaussian mechanism in differential privacy.",
    ),
    (
        "Geometric",
        {"epsilon": 1.0, "sensitivity": 1},
        _ONE,
        _integers,
        _beside,
        "The classic geometric mechanism for differential privacy",
    ),
    (
        "GeometricTruncated",
        {"epsilon": 1.0, "sensitivity": 1, "lower": 0, "upper": 3},
        _ONE,
        lambda st: st.integers(0, 3),
        _beside,
        "The truncated geometric mechanism",
    ),
    (
        "GeometricFolded",
        {"epsilon": 1.0, "sensitivity": 1, "lower": 0, "upper": 3},
        _ONE,
        lambda st: st.integers(0, 3),
        _beside,
        "The folded geometric mechanism",
    ),
    ("Laplace", _NEAR_ONE, _ONE, _floats, _beside, "The classical Laplace mechanism in differential privacy."),
    ("LaplaceTruncated", _UNIT_BOX, _ONE, _grid, _beside_in_unit, "The truncated Laplace mechanism"),
    ("LaplaceFolded", _UNIT_BOX, _ONE, _grid, _beside_in_unit, "The folded Laplace mechanism"),
    (
        "LaplaceBoundedDomain",
        _UNIT_BOX,
        _ONE,
        _grid,
        _beside_in_unit,
        "The bounded Laplace mechanism on a bounded domain.",
    ),
    (
        "LaplaceBoundedNoise",
        _NEAR_DELTA,
        _APPROXIMATE,
        _floats,
        _beside,
        "The Laplace mechanism with bounded noise, only applicable for approximate differential privacy (delta > 0)",
    ),
    (
        "Snapping",
        {**_NEAR_ONE, "lower": 0.0, "upper": 100.0},
        _ONE,
        _grid,
        _beside_in_unit,
        "The Snapping mechanism for differential privacy.",
    ),
    ("Staircase", _NEAR_ONE, _ONE, _floats, _beside, "The staircase mechanism in differential privacy."),
)


def _mechanisms() -> Iterator[LibraryEntry]:
    for name, options, claim, data, near, said in _MECHANISMS:
        rounded = name == "Geometric"
        yield LibraryEntry(
            package=LIBRARY,
            what=name,
            claim=claim,
            quotation=said,
            where=f"documentation of diffprivlib.mechanisms.{name}",
            strategy=data,
            build=_mechanism(name, **options),
            relations=("replace",),
            near=near,
            finding=_ROUNDED if rounded else None,
            false_under=("replace",) if rounded else (),
        )
    for name in ("Exponential", "PermuteAndFlip"):
        yield LibraryEntry(
            package=LIBRARY,
            what=name,
            claim=_ONE,
            quotation="mechanism for achieving differential privacy on candidate selection",
            where=f"documentation of diffprivlib.mechanisms.{name}",
            strategy=_utilities,
            build=_chosen(name),
            relations=("replace",),
            near=_beside_utilities,
        )


ENTRIES: tuple[LibraryEntry, ...] = (*_tools(), *_models(), *_mechanisms())
