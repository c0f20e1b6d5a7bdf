"""SmartNoise Synth 1.0.8: what prepares columns for its synthesisers, its covariances, and MWEM. Most of it cannot be seeded."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from types import ModuleType

import numpy as np

from ...claim import Claim
from ...library_entry import Finding, Library, LibraryEntry, Mechanism, quietly
from .sql import TRACKER

LIBRARY = Library(
    name="smartnoise-synth",
    distribution="smartnoise-synth",
    version="1.0.8",
    module="snsynth",
    needs="opendp<0.15",
    target="libraries-smartnoise",
)
_NONE_FOUND = "nothing was found in their tracker."
#: The range of each column whose covariances are released.
_RANGES = ((0.0, 1.0), (0.0, 100.0), (0.0, 1.0))


def _scaled(factor: float) -> Mechanism:
    """Return what estimates the mean and the variance of numbers in [0, 1], to scale them."""
    kind = LIBRARY.load("snsynth.transform").StandardScaler

    def mechanism(data: Sequence[float], rng: object) -> object:
        scaler = kind(lower=0.0, upper=1.0, epsilon=factor)
        scaler.fit(list(data))
        return [float(scaler.mean), float(scaler.var)]

    return quietly(mechanism)


def _inferred(factor: float) -> Mechanism:
    """Return what infers bounds of so many equal numbers, or says that it found none."""
    kind = LIBRARY.load("snsynth.transform").MinMaxTransformer

    def mechanism(count: int, rng: object) -> object:
        transformer = kind(epsilon=factor)
        try:
            transformer.fit([3.0] * count)
        except ValueError:
            return None
        return [transformer.fit_lower, transformer.fit_upper]

    return quietly(mechanism)


def _covariances(factor: float) -> Mechanism:
    """Return what releases the covariances of three columns."""
    kind, pandas = LIBRARY.load("snsynth.models.dp_covariance").DPcovariance, LIBRARY.load("pandas")

    def mechanism(data: Sequence[tuple[float, ...]], rng: np.random.Generator) -> object:
        np.random.seed(int(rng.integers(2**32)))  # noqa: NPY002 (it draws from nowhere else)
        columns, ranges = ["a", "b", "c"], pandas.DataFrame(dict(enumerate(_RANGES)))
        released = kind(len(data), columns, ranges, factor).release(pandas.DataFrame(list(data), columns=columns))
        return [float(number) for number in released]

    return quietly(mechanism)


def _mwem(factor: float) -> Mechanism:
    """Return what fits a histogram of three categories, which are given, and counts them in a sample from it."""
    kind, transform = LIBRARY.load("snsynth.mwem").MWEMSynthesizer, LIBRARY.load("snsynth.transform")

    def mechanism(data: Sequence[int], rng: object) -> object:
        transformer = transform.TableTransformer([transform.LabelTransformer(nullable=False)])
        transformer.fit([(0,), (1,), (2,)])
        synthesiser = kind(epsilon=factor, iterations=1, q_count=1)
        synthesiser.fit([(value,) for value in data], transformer=transformer)
        sample = [row[0] for row in synthesiser.sample(300)]
        return [sample.count(category) for category in range(3)]

    return quietly(mechanism)


def _records(st: ModuleType) -> object:
    """Return the strategy of records of three numbers in their ranges."""
    record = st.tuples(*(st.sampled_from([lower, (lower + upper) / 2, upper]) for lower, upper in _RANGES))
    return st.lists(record, min_size=2, max_size=5)


_SCALE = Finding(
    false="the scale of the noise is searched for a symmetric distance of 1 between data of the same size, at which OpenDP says that "
    "a mean and a variance move by no more than rounding: it is about 1e-15 (`_fit_finish` in `snsynth/transform/standard.py`: d_in=1 "
    "and size=n)",
    answer="A slip: neighbours of one size have an even distance.",
    repair="take d_in=2; and a size that is not that of the data, where neighbours may have another one",
    upstream=_NONE_FOUND,
)
_ORDER = Finding(
    false="the covariances are in the order of a lower triangle, their sensitivities in that of an upper one: of three columns or "
    "more, whose ranges differ, some have the noise of others (`release` and `covariance_sensitivity` in "
    "`snsynth/models/dp_covariance.py`)",
    answer="For two columns, or columns with one range, both orders are the same.",
    repair="compute the sensitivities in the order of np.tril_indices",
    upstream=f"{TRACKER}/622, closed, is about clipping in the same function; of the order {_NONE_FOUND}",
)
_SUPPORT = Finding(
    false="the histogram reaches from the smallest to the largest category that occurs in the data, although the categories are "
    "given: one beyond is never sampled (`_histogram_from_data_attributes` in `snsynth/mwem.py`)",
    answer="The largest category of a large table always occurs.",
    repair="take the cardinalities of the transformer",
    upstream=f"{TRACKER}/473, closed, asks about the edges of the bins; an author answered that MWEM is meant for categories that are given.",
)

_entry = partial(LibraryEntry, package=LIBRARY, claim=Claim(epsilon=1.0), weakened_by="epsilon")

ENTRIES: tuple[LibraryEntry, ...] = (
    _entry(
        what="StandardScaler",
        quotation="Some privacy budget is always used to estimate the mean and variance.",
        where="documentation of snsynth.transform.standard.StandardScaler",
        strategy=lambda st: st.lists(st.integers(0, 100).map(lambda percent: percent / 100), min_size=2, max_size=5),
        build=_scaled,
        os_random=True,
        runs=300,  # 0.1 s each
        finding=_SCALE,
        false_under=LibraryEntry.relations,
    ),
    _entry(
        what="MinMaxTransformer",
        quotation="The privacy budget to use to infer bounds, if none provided.",
        where="documentation of snsynth.transform.minmax.MinMaxTransformer, epsilon",
        strategy=lambda st: st.integers(1, 24),
        build=_inferred,
        relations=("replace",),
        near=lambda count: [count - 1, count + 1],
        os_random=True,
        runs=2000,
    ),
    _entry(
        what="DPcovariance",
        quotation="differentially privately released covariance matrix that will be used to make the linear regression",
        where="documentation of snsynth.models.dp_covariance.cov_method_lin_reg, release",
        strategy=_records,
        build=_covariances,
        runs=2000,
        finding=_ORDER,
        false_under=LibraryEntry.relations,
    ),
    _entry(
        what="MWEMSynthesizer",
        quotation="N-Dimensional numpy implementation of MWEM.",
        where="documentation of snsynth.mwem.MWEMSynthesizer, whose epsilon is the privacy budget",
        strategy=lambda st: st.lists(st.integers(0, 2), min_size=8, max_size=12),
        build=_mwem,
        os_random=True,
        runs=1000,
        finding=_SUPPORT,
        false_under=LibraryEntry.relations,
    ),
)
