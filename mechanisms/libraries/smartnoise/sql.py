"""SmartNoise SQL 1.0.10: queries on a data frame, each held to what `get_privacy_cost` says of it. It cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType

from ...claim import Claim
from ...library_entry import Finding, Library, LibraryEntry, Mechanism, Strategy, quietly

LIBRARY = Library(
    name="smartnoise-sql",
    distribution="smartnoise-sql",
    version="1.0.10",
    module="snsql",
    needs="opendp<0.15",
    target="libraries-smartnoise",
)
TRACKER = "https://github.com/opendp/smartnoise-sdk/issues"
#: Of numbers x in [0, 4] and keys k; every row is an individual, keys are public.
_TABLE: dict[str, object] = {
    "row_privacy": True,
    "censor_dims": False,
    "x": {"name": "x", "type": "int", "lower": 0, "upper": 4},
    "k": {"name": "k", "type": "string"},
}
#: The same, keys are not public.
_CENSORED = {**_TABLE, "censor_dims": True}


def _query(
    query: str, table: dict[str, object], epsilon: float = 1.0, delta: float = 0.01
) -> Callable[[float], Mechanism]:
    """Return what asks a query about a data frame, each time of a reader that has spent nothing, and releases the rows."""

    def build(factor: float) -> Mechanism:
        snsql, pandas = LIBRARY.load(), LIBRARY.load("pandas")
        columns = [name for name, column in table.items() if isinstance(column, dict)]

        def mechanism(data: Sequence[tuple[object, ...]], rng: object) -> object:
            frame = pandas.DataFrame(list(data), columns=columns)
            privacy = snsql.Privacy(epsilon=epsilon * factor, delta=delta)
            reader = snsql.from_df(frame, metadata={"": {"s": {"t": table}}}, privacy=privacy)
            return sorted([list(row) for row in reader.execute(query)[1:]])

        return quietly(mechanism)

    return build


def _rows(min_rows: int, *values: int, keys: str = "ab", max_rows: int = 4) -> Strategy:
    """Return the strategy of rows (x, k)."""

    def strategy(st: ModuleType) -> object:
        return st.lists(
            st.tuples(st.sampled_from(values), st.sampled_from(keys)), min_size=min_rows, max_size=max_rows
        )

    return strategy


_UNCLAMPED = Finding(
    false="a column that a query groups by is not clamped, also where the query sums it: the sum of a group is any number, and "
    "its noise that of the bounds (`bounds_clamp` in `snsql/sql/private_rewriter.py`)",
    answer="Why sum a column within groups in which it is constant; and who knows that the data never fall outside of the bounds "
    "loses nothing.",
    repair="clamp what is summed, and leave the grouping column alone as it is shown",
    upstream=f"{TRACKER}/359 asked not to clamp grouping columns and was done; of their sums nothing was found.",
)
_CLAMPS = "By default, the system clamps all input data to ensure that it falls within the lower and upper bounds specified for that column."
_QUOTATION = "Executes a query and returns a recordset that is differentially private."
_METADATA = "its documentation of metadata; epsilon and delta by PrivateReader.get_privacy_cost"
_EXECUTE = "documentation of PrivateReader.execute; epsilon and delta by PrivateReader.get_privacy_cost"
_NUMBERS = _rows(1, -3, 0, 1, 4, 9)
#: Name, how it is built, what `get_privacy_cost` says of it rounded up, its data.
_SOUND: tuple[tuple[str, Callable[[float], Mechanism], Claim, Strategy], ...] = (
    ("COUNT", _query("SELECT COUNT(*) AS n FROM s.t", _TABLE), Claim(epsilon=1.0, delta=0.015), _NUMBERS),
    ("SUM", _query("SELECT SUM(x) AS s FROM s.t", _TABLE), Claim(epsilon=1.0, delta=0.0051), _NUMBERS),
    ("AVG", _query("SELECT AVG(x) AS m FROM s.t", _TABLE), Claim(epsilon=2.0, delta=0.0051), _NUMBERS),
    (
        "GROUP-BY", _query("SELECT k, COUNT(*) AS n FROM s.t GROUP BY k", _CENSORED), Claim(epsilon=1.0, delta=0.015),
        _rows(1, 0, keys="abc", max_rows=8),
    ),
)  # fmt: skip

ENTRIES: tuple[LibraryEntry, ...] = (
    *(
        LibraryEntry(
            package=LIBRARY,
            what=what,
            claim=claim,
            quotation=_QUOTATION,
            where=_EXECUTE,
            strategy=data,
            build=build,
            weakened_by="epsilon",
            relations=("add-remove",),
            os_random=True,
            runs=1000,  # 0.1 s each
        )
        for what, build, claim, data in _SOUND
    ),
    LibraryEntry(
        package=LIBRARY,
        what="SUM-GROUP-BY-itself",
        claim=Claim(epsilon=2.0, delta=0.145),
        quotation=_CLAMPS,
        where=_METADATA,
        strategy=_rows(4, 1, 1000, keys="a", max_rows=6),
        build=_query("SELECT x, SUM(x) AS s FROM s.t GROUP BY x", _CENSORED, delta=0.1),
        weakened_by="epsilon",
        relations=("add-remove",),
        os_random=True,
        runs=1000,
        finding=_UNCLAMPED,
        false_under=("add-remove",),
    ),
)
