"""PyDP 1.1.5, the Python face of Google's library: its Laplacian algorithms, its noise and its choice of keys. It cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import ModuleType

from ..claim import Claim
from ..library_entry import Library, LibraryEntry, Mechanism, Neighbour, Strategy

LIBRARY = Library(name="pydp", distribution="python-dp", version="1.1.5", module="pydp")
_BOUNDS: dict[str, object] = {"lower_bound": 0.0, "upper_bound": 1.0}
#: Algorithm, its options, the words of its documentation.
_ALGORITHMS: tuple[tuple[str, dict[str, object], str], ...] = (
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
    (
        "Percentile",
        {"percentile": 0.25, **_BOUNDS},
        "Perencetile finds the value in the dataset with that percentile, in a differentially private manner.",
    ),
    ("Median", _BOUNDS, "The library provides a set of ε-differentially private algorithms"),
)


def _algorithm(name: str, options: dict[str, object]) -> Callable[[float], Mechanism]:
    def build(factor: float) -> Mechanism:
        kind = getattr(LIBRARY.load("pydp.algorithms.laplacian"), name)

        def mechanism(data: Sequence[float]) -> object:
            return kind(epsilon=factor, dtype="float", **options).quick_result(list(data))

        return mechanism

    return build


def _data(st: ModuleType) -> object:
    return st.lists(st.integers(0, 10).map(lambda tenth: tenth / 10), min_size=1, max_size=5)


def _noise(name: str, **options: object) -> Callable[[float], Mechanism]:
    """Return what adds noise to a number whose neighbours are 1 away."""

    def build(factor: float) -> Mechanism:
        kind = getattr(LIBRARY.load("pydp.algorithms.numerical_mechanisms"), name)
        noise = kind(sensitivity=1.0 / factor, **options)

        def mechanism(data: object) -> object:
            return noise.add_noise(data)

        return mechanism

    return build


def _kept_keys(name: str) -> Callable[[float], Mechanism]:
    """Return what says whether a key with so many users is released."""

    def build(factor: float) -> Mechanism:
        make = LIBRARY.load("pydp.algorithms.partition_selection").create_partition_strategy
        strategy = make(name, factor, 0.01, 1)

        def mechanism(data: object) -> object:
            return strategy.should_keep(data)

        return mechanism

    return build


def _beside(value: float) -> list[object]:
    return [value - 1, value + 1]


def _users(value: int) -> list[int]:
    return [number for number in (value - 1, value + 1) if number >= 0]


#: Name, how it is built, claim, what the factor changes, its data, their neighbours, its words and where they are.
_OTHER_ALGORITHMS: tuple[
    tuple[str, Callable[[float], Mechanism], Claim, str, Strategy, Neighbour | None, str, str], ...
] = (
    *(
        (
            f"{name}-{kind}",
            _noise(name, **options),
            claim,
            "noise",
            data,
            _beside,
            "The library provides a set of ε-differentially private algorithms",
            "PyDP's README, of all its algorithms",
        )
        for name, options, claim in (
            ("LaplaceMechanism", {"epsilon": 1.0}, Claim(epsilon=1.0)),
            ("GaussianMechanism", {"epsilon": 1.0, "delta": 0.01}, Claim(epsilon=1.0, delta=0.01)),
        )
        for kind, data in (
            ("int", lambda st: st.integers(-(2**60), 2**60)),
            ("float", lambda st: st.integers(-200, 200).map(lambda percent: percent / 100)),
        )
    ),
    *(
        (
            f"partition-{name.replace('_', '-')}",
            _kept_keys(name),
            Claim(epsilon=1.0, delta=0.01),
            "epsilon",
            lambda st: st.integers(0, 25),
            _users,
            "The :math:`\\varepsilon` of the partition mechanism",
            "documentation of pydp.algorithms.partition_selection.create_partition_strategy",
        )
        for name in ("truncated_geometric", "laplace", "gaussian")
    ),
)


def _others() -> Iterator[LibraryEntry]:
    for name, build, claim, weakened_by, data, neighbour, quotation, where in _OTHER_ALGORITHMS:
        yield LibraryEntry(
            package=LIBRARY,
            what=name,
            claim=claim,
            quotation=quotation,
            where=where,
            strategy=data,
            build=build,
            weakened_by=weakened_by,
            relations=("replace",),
            near=neighbour,
            os_random=True,
        )


ENTRIES: tuple[LibraryEntry, ...] = (
    *(
        LibraryEntry(
            package=LIBRARY,
            what=name,
            claim=Claim(epsilon=1.0),
            quotation=said,
            where=f"documentation of pydp.algorithms.laplacian.{name}"
            if said.startswith((name, "Perencetile"))
            else "PyDP's README, of all its algorithms",
            strategy=_data,
            build=_algorithm(name, options),
            weakened_by="epsilon",
            relations=("add-remove",),
            os_random=True,
        )
        for name, options, said in _ALGORITHMS
    ),
    *_others(),
)
