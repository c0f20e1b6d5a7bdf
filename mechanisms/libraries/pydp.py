"""PyDP 1.1.5, the Python face of Google's library: its Laplacian algorithms but percentile. It cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..claim import Claim
from .entry import Library, LibraryEntry, Mechanism

LIBRARY = Library(name="pydp", distribution="python-dp", version="1.1.5", module="pydp")
_BOUNDS: dict[str, Any] = {"lower_bound": 0.0, "upper_bound": 1.0}
#: Algorithm, its options, the words of its documentation.
_ALGORITHMS: tuple[tuple[str, dict[str, Any], str], ...] = (
    (
        "BoundedMean",
        _BOUNDS,
        "BoundedMean computes the average of values in a dataset, in a differentially private manner.",
    ),
    ("BoundedSum", _BOUNDS, "BoundedSum computes the sum of values in a dataset, in a differentially private manner."),
    (
        "BoundedVariance",
        _BOUNDS,
        "BoundedVariance computes the variance of values in a dataset, in a differentially private manner.",
    ),
    (
        "BoundedStandardDeviation",
        _BOUNDS,
        "BoundedStandardDeviation computes the standard deviation of values in a dataset, in a differentially private manner.",
    ),
    ("Count", {}, "The library provides a set of ε-differentially private algorithms"),
    ("Max", _BOUNDS, "Max computes the Max value in the dataset, in a differentially private manner."),
    ("Min", _BOUNDS, "The library provides a set of ε-differentially private algorithms"),
    ("Median", _BOUNDS, "The library provides a set of ε-differentially private algorithms"),
)


def _algorithm(name: str, options: dict[str, Any]) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("pydp.algorithms.laplacian"), name)

        def mechanism(data: Any) -> Any:
            return kind(epsilon=1.0, dtype="float", **options).quick_result(list(data))

        return mechanism

    return build


def _data(st: Any) -> Any:
    return st.lists(st.integers(0, 10).map(lambda tenth: tenth / 10), min_size=1, max_size=5)


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        package=LIBRARY,
        what=name,
        claim=Claim(epsilon=1.0),
        quotation=said,
        where=f"documentation of pydp.algorithms.laplacian.{name}"
        if said.startswith(name)
        else "PyDP's README, of all its algorithms",
        strategy=_data,
        build=_algorithm(name, options),
        relations=("add-remove",),
        os_random=True,
    )
    for name, options, said in _ALGORITHMS
)
