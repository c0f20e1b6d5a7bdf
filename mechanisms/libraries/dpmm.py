"""dpmm 0.1.9: what bins the columns of a table, and which marginals its Bayesian network chooses. It needs an environment of its own."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from ..claim import Claim
from ..library_entry import Finding, Library, LibraryEntry, Mechanism, quietly

LIBRARY = Library(
    name="dpmm",
    distribution="dpmm",
    version="0.1.9",
    module="dpmm",
    needs="opendp==0.12.1",
    target="libraries-dpmm",
)
#: Records of the table of which so many have a 1 in its first two columns, and half have one in the third.
_RECORDS = 1000
_NONE_FOUND = "nothing was found in their tracker."


def _binned(factor: float) -> Mechanism:
    """Return what bins a column in [0, 1] whose domain is given, and releases what is learned of it."""
    kind, pandas = LIBRARY.load("dpmm.processing.table_binner").TableBinner, LIBRARY.load("pandas")

    def mechanism(data: Sequence[float], rng: np.random.Generator) -> object:
        binner = kind(
            binner_type="priv-tree",
            binner_settings={"epsilon": factor, "n_bins": 4},
            domain={"x": {"lower": 0.0, "upper": 1.0}},
            random_state=np.random.RandomState(rng.bit_generator),
        )
        binner.fit(pandas.DataFrame({"x": list(data)}))
        return {
            "static": {name: float(value) for name, value in binner.static_columns.items()},
            "bins": {name: [float(edge) for edge in binned.bins] for name, binned in binner.binners.items()},
        }

    return quietly(mechanism)


def _chosen(factor: float) -> Mechanism:
    """Return what chooses the marginals of a table of three columns, of which so many records have a 1 in two.

    Released is whether these two are joined: what is chosen tells them apart by more than a dozen outcomes, each rare.
    """
    models, mbi = LIBRARY.load("dpmm.models.priv_bayes"), LIBRARY.load("dpmm.models.base.mbi")
    pandas, domain = LIBRARY.load("pandas"), mbi.Domain(("a", "b", "c"), (2, 2, 2))
    logging.getLogger("dpmm").setLevel(logging.ERROR)

    def mechanism(count: int, rng: np.random.Generator) -> object:
        records = (np.arange(_RECORDS) < count).astype(int)
        table = pandas.DataFrame({"a": records, "b": records, "c": np.arange(_RECORDS) % 2})
        chooser.set_random_state(np.random.RandomState(rng.bit_generator))
        return any({"a", "b"} <= set(clique) for clique in chooser.select(mbi.Dataset(table, domain)))

    chooser = models.PrivBayes(epsilon=factor, delta=0.01, n_jobs=1)
    return quietly(mechanism)


def _values(st: ModuleType) -> object:
    """Return the strategy of numbers in [0, 1]."""
    return st.lists(st.integers(0, 4).map(lambda quarter: quarter / 4), min_size=3, max_size=6)


_STATIC = Finding(
    false="a column whose values are all equal is set aside with that value, and every record that is generated has it: whether all "
    "are equal, and the value, are released as they are, also where the domain is given (`fit` in `dpmm/processing/table_binner.py`: "
    "static_columns)",
    answer="Columns of large tables have more than one value.",
    repair="keep columns whose domain is given, and set none aside by the data",
    upstream=_NONE_FOUND,
)
_NORMALISED = Finding(
    false="the mutual information by which parents are chosen is divided by the root of both entropies, and its sensitivity is that of "
    "the information before it is divided: where two columns hardly vary, one record moves it by up to 1 (`MI` and "
    "`ExponentialMechanism.compute_delta` in `dpmm/models/priv_bayes.py`)",
    answer="The sensitivity is that of the paper, whose score is not divided; columns that hardly vary are rare.",
    repair="choose by the information as it is in the paper",
    upstream=_NONE_FOUND,
)
_README = "dpmm's README"

ENTRIES: tuple[LibraryEntry, ...] = (
    LibraryEntry(
        package=LIBRARY,
        what="TableBinner",
        claim=Claim(epsilon=1.0),
        quotation="DP data preprocessing -- 1) data domain is either provided as input or extracted with DP, and 2) continous data is discretized with DP",
        where=_README,
        strategy=_values,
        build=_binned,
        weakened_by="epsilon",
        os_random=True,
        runs=1000,
        finding=_STATIC,
        false_under=LibraryEntry.relations,
    ),
    LibraryEntry(
        package=LIBRARY,
        what="PrivBayes-select",
        claim=Claim(epsilon=1.0, delta=0.01),
        quotation="It selects dependencies between attributes based on mutual information and relies on the exponential and laplace mechanism to ensure differential privacy.",
        where="documentation of dpmm.models.priv_bayes.PrivBayes",
        strategy=lambda st: st.integers(0, 2),
        build=_chosen,
        weakened_by="epsilon",
        relations=("replace",),
        near=lambda ones: [number for number in (ones - 1, ones + 1) if number >= 0],
        runs=2000,
        finding=_NORMALISED,
        false_under=("replace",),
    ),
)
