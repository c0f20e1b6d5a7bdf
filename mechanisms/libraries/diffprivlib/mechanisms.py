"""The mechanisms of diffprivlib, each on data beside its own."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...claim import Claim
from ...library_entry import Finding, LibraryEntry, Mechanism, Neighbour, Strategy, quietly
from .package import LIBRARY, NONE_FOUND, hundredths, library_entry, random_state


def _mechanism(name: str, **options: object) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.mechanisms"), name)

        def mechanism(data: object, rng: np.random.Generator) -> object:
            return kind(random_state=random_state(rng), **options).randomise(data)

        return quietly(mechanism)

    return build


def _chosen(name: str) -> Callable[[], Mechanism]:
    """Return what chooses by utilities, which are its data."""

    def build() -> Mechanism:
        kind = getattr(LIBRARY.load("diffprivlib.mechanisms"), name)

        def mechanism(data: Sequence[float], rng: np.random.Generator) -> object:
            return kind(epsilon=1.0, sensitivity=1.0, utility=list(data), random_state=random_state(rng)).randomise()

        return quietly(mechanism)

    return build


def _beside(value: float) -> list[object]:
    return [value - 1, value + 1]


def _beside_in_unit(value: float) -> list[object]:
    return [0.0, 1.0] if 0 <= value <= 1 else []


def _beside_utilities(data: Sequence[float]) -> list[object]:
    return [
        [u + s for u, s in zip(data, step, strict=True)] for step in itertools.product((-1.0, 1.0), repeat=len(data))
    ]


_ROUNDED = Finding(
    false="beyond 2^53 the value is rounded to a float before the noise is added to it: neighbours are further apart than "
    "the sensitivity, or the same (`Geometric.randomise` in `diffprivlib/mechanisms/geometric.py`: value + float)",
    answer="Values of that size are rare; the type of `value` is documented as int, without a bound.",
    repair="add integers: value + int(sgn * np.floor(...))",
    upstream=NONE_FOUND,
)


def _integers(st: ModuleType) -> object:
    return st.integers(-(2**60), 2**60)


def _floats(st: ModuleType) -> object:
    return st.integers(-200, 200).map(lambda percent: percent / 100)


def _binary(st: ModuleType) -> object:
    return st.sampled_from(["yes", "no"])


def _utilities(st: ModuleType) -> object:
    return st.lists(st.integers(0, 4).map(float), min_size=2, max_size=3)


def _letter(st: ModuleType) -> object:
    return st.sampled_from(["a", "b", "c"])


def _other_letters(value: object) -> list[str]:
    return ["a", "b", "c"]


_NEAR_ONE = {"epsilon": 1.0, "sensitivity": 1.0}
_NEAR_DELTA = {"epsilon": 1.0, "delta": 0.01, "sensitivity": 1.0}
_UNIT_BOX = {**_NEAR_ONE, "lower": 0.0, "upper": 1.0}
#: Mechanism, its options, which say what it claims, data, neighbours, the words of its documentation.
_MECHANISMS: tuple[tuple[str, Mapping[str, Any], Strategy, Neighbour | None, str], ...] = (
    (
        "Binary",
        {"epsilon": 1.0, "value0": "yes", "value1": "no"},
        _binary,
        lambda value: ["yes", "no"],
        "The classic binary mechanism in differential privacy.",
    ),
    ("Gaussian", _NEAR_DELTA, _floats, _beside, "The Gaussian mechanism in differential privacy."),
    ("GaussianAnalytic", _NEAR_DELTA, _floats, _beside, "The analytic Gaussian mechanism in differential privacy."),
    (
        "GaussianDiscrete",
        {**_NEAR_DELTA, "sensitivity": 1},
        lambda st: st.integers(-5, 5),
        _beside,
        "The Discrete Gaussian mechanism in differential privacy.",
    ),
    (
        "Geometric",
        {"epsilon": 1.0, "sensitivity": 1},
        _integers,
        _beside,
        "The classic geometric mechanism for differential privacy",
    ),
    (
        "GeometricTruncated",
        {"epsilon": 1.0, "sensitivity": 1, "lower": 0, "upper": 3},
        lambda st: st.integers(0, 3),
        _beside,
        "The truncated geometric mechanism",
    ),
    (
        "GeometricFolded",
        {"epsilon": 1.0, "sensitivity": 1, "lower": 0, "upper": 3},
        lambda st: st.integers(0, 3),
        _beside,
        "The folded geometric mechanism",
    ),
    ("Laplace", _NEAR_ONE, _floats, _beside, "The classical Laplace mechanism in differential privacy."),
    ("LaplaceTruncated", _UNIT_BOX, hundredths, _beside_in_unit, "The truncated Laplace mechanism"),
    ("LaplaceFolded", _UNIT_BOX, hundredths, _beside_in_unit, "The folded Laplace mechanism"),
    (
        "LaplaceBoundedDomain",
        _UNIT_BOX,
        hundredths,
        _beside_in_unit,
        "The bounded Laplace mechanism on a bounded domain.",
    ),
    (
        "LaplaceBoundedNoise",
        _NEAR_DELTA,
        _floats,
        _beside,
        "The Laplace mechanism with bounded noise, only applicable for approximate differential privacy (delta > 0)",
    ),
    (
        "Snapping",
        {**_NEAR_ONE, "lower": 0.0, "upper": 100.0},
        hundredths,
        _beside_in_unit,
        "The Snapping mechanism for differential privacy.",
    ),
    ("Staircase", _NEAR_ONE, _floats, _beside, "The staircase mechanism in differential privacy."),
    (
        "Uniform",
        {"delta": 0.25, "sensitivity": 1.0},
        _floats,
        _beside,
        "The Uniform mechanism in differential privacy.",
    ),
    (
        "ExponentialCategorical",
        {"epsilon": 1.0, "utility_list": [("a", "b", 1.0), ("a", "c", 2.0), ("b", "c", 1.0)]},
        _letter,
        _other_letters,
        "The exponential mechanism for achieving differential privacy on categorical inputs, as first proposed by "
        "McSherry and Talwar.",
    ),
    (
        "ExponentialHierarchical",
        {"epsilon": 1.0, "hierarchy": [["a", "b"], ["c"]]},
        _letter,
        _other_letters,
        "Adaptation of the exponential mechanism to hierarchical data.",
    ),
)


def _mechanisms() -> Iterator[LibraryEntry]:
    for name, options, data, neighbour, quotation in _MECHANISMS:
        rounded = name == "Geometric"
        yield library_entry(
            what=name,
            claim=Claim(epsilon=options.get("epsilon", 0.0), delta=options.get("delta", 0.0)),
            quotation=quotation,
            where=f"documentation of diffprivlib.mechanisms.{name}",
            strategy=data,
            build=_mechanism(name, **options),
            relations=("replace",),
            near=neighbour,
            finding=_ROUNDED if rounded else None,
            false_under=("replace",) if rounded else (),
        )
    for name in ("Exponential", "PermuteAndFlip"):
        yield library_entry(
            what=name,
            quotation="mechanism for achieving differential privacy on candidate selection",
            where=f"documentation of diffprivlib.mechanisms.{name}",
            strategy=_utilities,
            build=_chosen(name),
            relations=("replace",),
            near=_beside_utilities,
        )


def _vector() -> Mechanism:
    """Return what perturbs the mean of linear functions, z w of each number z, and releases its value at 1."""
    kind = LIBRARY.load("diffprivlib.mechanisms").Vector

    def mechanism(data: Sequence[float], rng: np.random.Generator) -> object:
        constants = {"function_sensitivity": 0.0, "dimension": 1, "alpha": 1.0, "n": len(data)}
        noisy = kind(epsilon=1.0, random_state=random_state(rng), **constants).randomise(
            lambda point: float(np.mean(data) * point[0])
        )
        return float(noisy(np.ones(1)))

    return quietly(mechanism)


def _bingham() -> Mechanism:
    """Return what draws a direction of the second moments of rows of norm 1 at most."""
    kind = LIBRARY.load("diffprivlib.mechanisms").Bingham

    def mechanism(data: NDArray[np.float64], rng: np.random.Generator) -> object:
        direction = kind(epsilon=1.0, sensitivity=1.0, random_state=random_state(rng)).randomise(data.T @ data)
        return (direction * np.sign(direction[0])).tolist()  # both signs are as likely

    return quietly(mechanism)


def _halves(st: ModuleType) -> object:
    return st.lists(st.integers(-2, 2).map(lambda half: half / 2), min_size=1, max_size=5)


def _directions(st: ModuleType) -> object:
    points = st.sampled_from([(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (0.6, 0.8), (0.8, -0.6)])
    return st.lists(points, min_size=1, max_size=5).map(np.array)


#: Of objective functions, and of matrices: what is released, from which data, the words of its documentation.
_OF_DATA: tuple[tuple[str, Callable[[], Mechanism], Strategy, str], ...] = (
    (
        "Vector",
        _vector,
        _halves,
        "The vector mechanism is used when perturbing convex objective functions.",
    ),
    (
        "Bingham",
        _bingham,
        _directions,
        "Used to estimate the first eigenvector (associated with the largest eigenvalue) of a covariance matrix.",
    ),
)


def _of_data() -> Iterator[LibraryEntry]:
    for name, build, data, quotation in _OF_DATA:
        yield library_entry(
            what=name,
            quotation=quotation,
            where=f"documentation of diffprivlib.mechanisms.{name}",
            strategy=data,
            build=build,
            relations=("replace",) if name == "Vector" else ("replace", "add-remove"),
        )


ENTRIES: tuple[LibraryEntry, ...] = (*_mechanisms(), *_of_data())
