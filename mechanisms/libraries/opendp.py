"""OpenDP 0.16: the measurements that release, each held to its own privacy map. Its randomness cannot be seeded."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import ModuleType
from typing import Any

from ..claim import Claim
from ..library_entry import Finding, Library, LibraryEntry, Mechanism, Neighbour, Strategy
from ..measures.renyi import ZCDP

LIBRARY = Library(name="opendp", distribution="opendp", version="0.16.0", module="opendp.prelude")


def _prelude() -> ModuleType:
    dp = LIBRARY.load()
    dp.enable_features("contrib", "honest-but-curious")
    return dp


def _measured(make: Callable[[ModuleType, float], Any]) -> Callable[[float], Mechanism]:
    """Return what builds a mechanism of a measurement, which takes data alone."""

    def build(factor: float) -> Mechanism:
        measurement = make(_prelude(), factor)

        def mechanism(data: object) -> object:
            return measurement(data)

        return mechanism

    return build


def _truth(choices: int, factor: float) -> float:
    """Return the probability of the truth where it has odds of 3 against each other choice, to the power `factor`."""
    odds = float(3.0**factor)
    return odds / (odds + choices - 1)


def _integers(dp: ModuleType) -> tuple[object, object]:
    return dp.atom_domain(T=int), dp.absolute_distance(T=int)


def _floats(dp: ModuleType) -> tuple[object, object]:
    return dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)


def _scores(dp: ModuleType) -> tuple[object, object]:
    return dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int)


def _counts(dp: ModuleType, kind: type) -> tuple[object, object]:
    domain = dp.atom_domain(T=int) if kind is int else dp.atom_domain(T=float, nan=False)
    return dp.map_domain(dp.atom_domain(T=str), domain), dp.l01inf_distance(dp.absolute_distance(T=kind))


def _weighted_counts(dp: ModuleType) -> tuple[object, object]:
    return dp.map_domain(dp.atom_domain(T=str), dp.atom_domain(T=int)), dp.l02inf_distance(dp.absolute_distance(T=int))


def _beside(value: float) -> list[object]:
    return [value - 1, value + 1]


def _beside_scores(data: Sequence[float]) -> list[object]:
    """Return scores of which each moved by at most 1."""
    shifted = [[u + s for u in data] for s in (-1, 1)]
    return [
        *shifted,
        *([u + (s if i == j else -s) for j, u in enumerate(data)] for i in range(len(data)) for s in (-1, 1)),
    ]


def _beside_counts(data: Mapping[str, float]) -> list[object]:
    """Return counts of which one moved by at most 1, was 1 and is gone, or is 1 and new."""
    unit = next(iter(data.values()), 1) * 0 + 1
    new = next(name for name in "abcdefgh" if name not in data)
    recounted = [{**data, name: value + s} for name, value in data.items() for s in (-unit, unit) if value + s > 0]
    without_key = [{k: v for k, v in data.items() if k != name} for name, value in data.items() if value == unit]
    return [*recounted, *without_key, {**data, new: unit}]


def _count_data(kind: type) -> Strategy:
    return lambda st: st.dictionaries(st.sampled_from(["a", "b", "c"]), st.integers(1, 4).map(kind), max_size=3)


_MAP = "privacy map: measurement.map(d_in=1)"
_MAP_OF_COUNTS = "privacy map: measurement.map(d_in=(1, 1, 1))"
_THRESHOLD = Finding(
    false="keys whose noisy count equals the threshold are released, and delta counts only the tail above it (OpenDP's "
    "`rust/src/measurements/noise_threshold/mod.rs` and `rust/src/accuracy/tail_bounds/mod.rs`)",
    answer="Both docstrings are right by themselves, as the issue says; for floats the threshold has probability 0.",
    repair="release counts above the threshold alone, or count the tail from the threshold on",
    upstream="https://github.com/opendp/opendp/issues/2922, open",
    disclosed="2026-09-18",
)


def _entry(
    what: str,
    make: Callable[[ModuleType, float], object],
    strategy: Strategy,
    near: Neighbour | None,
    *,
    epsilon: float = 1.0,
    **more: Any,
) -> LibraryEntry:
    quotation = more.pop("said")
    rho, delta, privacy_map = more.pop("rho", None), more.pop("delta", 0.0), more.pop("privacy_map", _MAP)
    return LibraryEntry(
        package=LIBRARY,
        what=what,
        claim=Claim(epsilon=epsilon, delta=delta) if rho is None else Claim(measure=ZCDP(rho)),
        quotation=quotation,
        where=f"opendp.measurements.{what.partition('-')[0]}, {privacy_map}",
        strategy=strategy,
        build=_measured(make),
        relations=("replace",) if near is not None else ("add-remove",),
        near=near,
        stated=True,
        os_random=True,
        **{"runs": 10_000, **more},
    )


def _alp(dp: ModuleType, factor: float) -> object:
    """Return what makes a queryable of counts, and asks it for three keys."""
    measurement = dp.m.make_alp_queryable(*_counts(dp, int), scale=1.0 / factor, total_limit=10, value_limit=5)

    def asked(data: Sequence[float]) -> list[float]:
        queryable = measurement(data)
        return [queryable(key) for key in ("a", "b", "c")]

    return asked


def _small(st: ModuleType) -> object:
    return st.integers(-5, 5)


def _halves(st: ModuleType) -> object:
    return st.integers(-10, 10).map(lambda half: half / 2)


def _some_scores(st: ModuleType) -> object:
    return st.lists(st.integers(0, 4), min_size=2, max_size=3)


#: What `make_zCDP_to_approxDP(make_gaussian(..., scale=3)).map(1).epsilon(0.01)` says, rounded up.
_GAUSSIAN = 0.6713
#: Above the 0.871 that it says of `make_gaussian_threshold(..., scale=3, threshold=6)` at (1, 1, 1) and delta 0.05.
_GAUSSIAN_THRESHOLD = 1.2
_NOISE = "Make a Measurement that adds noise from the Laplace(`scale`) distribution to the input."
_COUNTS = "Make a Measurement that uses propose-test-release to release a hashmap of counts."

_of_scores = partial(
    _entry,
    strategy=_some_scores,
    near=_beside_scores,
    said="Make a Measurement that takes a vector of scores and privately selects the index of the highest score.",
)

ENTRIES: tuple[LibraryEntry, ...] = (
    _entry(
        "make_laplace-int",
        lambda dp, factor: dp.m.make_laplace(*_integers(dp), scale=1.0 / factor),
        _small,
        _beside,
        said=_NOISE,
    ),
    _entry(
        "make_laplace-float",
        lambda dp, factor: dp.m.make_laplace(*_floats(dp), scale=1.0 / factor),
        _halves,
        _beside,
        said=_NOISE,
    ),
    _entry(
        "make_geometric",
        lambda dp, factor: dp.m.make_geometric(*_integers(dp), scale=1.0 / factor, bounds=(0, 4)),
        lambda st: st.integers(0, 4),
        lambda x: [y for y in (x - 1, x + 1) if 0 <= y <= 4],
        said="Equivalent to `make_laplace` but restricted to an integer support.",
    ),
    _entry(
        "make_gaussian-float",
        lambda dp, factor: dp.m.make_gaussian(*_floats(dp), scale=3.0 / factor),
        _halves,
        _beside,
        epsilon=_GAUSSIAN,
        delta=0.01,
        said="Make a Measurement that adds noise from the Gaussian(`scale`) distribution to the input.",
        privacy_map=f"{_MAP} after make_zCDP_to_approxDP, at delta 0.01",
    ),
    _entry(
        "make_laplace_threshold-int",
        lambda dp, factor: dp.m.make_laplace_threshold(*_counts(dp, int), scale=1.0 / factor, threshold=4),
        _count_data(int),
        _beside_counts,
        delta=0.013391,
        said=_COUNTS,
        privacy_map=_MAP_OF_COUNTS,
        finding=_THRESHOLD,
        false_under=("replace",),
        runs=60_000,  # with 20,000 one of two audits at the error of one claim of all certified nothing
    ),
    _entry(
        "make_gaussian_threshold-int",
        lambda dp, factor: dp.m.make_gaussian_threshold(*_weighted_counts(dp), scale=3.0 / factor, threshold=6),
        _count_data(int),
        _beside_counts,
        epsilon=_GAUSSIAN_THRESHOLD,
        delta=0.05,
        said=_COUNTS,
        privacy_map=f"{_MAP_OF_COUNTS} after make_zCDP_to_approxDP says epsilon 0.871 at delta 0.05",
        finding=_THRESHOLD,
        false_under=("replace",),
        runs=200_000,
    ),
    _entry(
        "make_laplace_threshold-float",
        lambda dp, factor: dp.m.make_laplace_threshold(*_counts(dp, float), scale=1.0 / factor, threshold=4.0),
        _count_data(float),
        _beside_counts,
        delta=0.024894,
        said=_COUNTS,
        privacy_map=_MAP_OF_COUNTS,
    ),
    _entry(
        "make_randomized_response",
        lambda dp, factor: dp.m.make_randomized_response(["a", "b", "c"], prob=_truth(3, factor)),
        lambda st: st.sampled_from(["a", "b", "c"]),
        lambda x: ["a", "b", "c"],
        epsilon=math.log(3.0),
        said="Make a Measurement that implements randomized response on a categorical value.",
    ),
    _entry(
        "make_randomized_response_bool",
        lambda dp, factor: dp.m.make_randomized_response_bool(prob=_truth(2, factor)),
        lambda st: st.booleans(),
        lambda x: [not x],
        epsilon=math.log(3.0),
        said="Make a Measurement that implements randomized response on a boolean value.",
    ),
    _entry(
        "make_randomized_response_bitvec",
        lambda dp, factor: dp.m.make_randomized_response_bitvec(
            dp.bitvector_domain(max_weight=1), dp.discrete_distance(), f=2 / (1 + 3.0**factor)
        ),
        lambda st: st.sampled_from([bytes([0]), *(bytes([2**bit]) for bit in range(3))]),
        lambda x: [bytes([0]), *(bytes([2**bit]) for bit in range(3))],
        epsilon=2 * math.log(3.0),
        said="Make a Measurement that implements randomized response on a bit vector.",
    ),
    _entry(
        "make_alp_queryable",
        _alp,
        _count_data(int),
        _beside_counts,
        said="Measurement to release a queryable containing a DP projection of bounded sparse data.",
        privacy_map=_MAP_OF_COUNTS,
    ),
    _entry(
        "make_gaussian-int",
        lambda dp, factor: dp.m.make_gaussian(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=1.0 / factor),
        _small,
        _beside,
        rho=0.5,
        said="Make a Measurement that adds noise from the Gaussian(`scale`) distribution to the input.",
    ),
    _of_scores(
        "make_noisy_max-zcdp",
        lambda dp, factor: dp.m.make_noisy_max(*_scores(dp), dp.zero_concentrated_divergence(), scale=2.0 / factor),
        rho=0.125,
    ),
    _of_scores(
        "make_report_noisy_max_gumbel",
        lambda dp, factor: dp.m.make_report_noisy_max_gumbel(*_scores(dp), scale=2.0 / factor),
    ),
    _of_scores(
        "make_noisy_max",
        lambda dp, factor: dp.m.make_noisy_max(*_scores(dp), dp.max_divergence(), scale=2.0 / factor),
    ),
    _of_scores(
        "make_noisy_top_k",
        lambda dp, factor: dp.m.make_noisy_top_k(*_scores(dp), dp.max_divergence(), k=2, scale=4.0 / factor),
    ),
    _entry(
        "make_private_quantile",
        lambda dp, factor: dp.m.make_private_quantile(
            dp.vector_domain(dp.atom_domain(T=float, nan=False)),
            dp.symmetric_distance(),
            dp.max_divergence(),
            candidates=[0.0, 0.25, 0.5, 0.75, 1.0],
            alpha=0.5,
            scale=1.0 / factor,
        ),
        lambda st: st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), max_size=5),
        None,
        said="Make a Measurement that computes the quantile of a dataset.",
    ),
    _entry(
        "make_canonical_noise",
        lambda dp, factor: dp.m.make_canonical_noise(*_floats(dp), d_in=1.0, d_out=(factor, 0.01)),
        _halves,
        _beside,
        delta=0.01,
        said="Make a Measurement that adds noise from a canonical noise distribution.",
    ),
)
