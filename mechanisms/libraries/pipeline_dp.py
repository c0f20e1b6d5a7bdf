"""PipelineDP 0.3.1: its aggregations of a list, by partitions that are given or chosen. Its noise is PyDP's and cannot be seeded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import Any

from ..claim import Claim
from ..library_entry import Library, LibraryEntry, Mechanism, Strategy, quietly

LIBRARY = Library(name="pipeline_dp", distribution="pipeline-dp", version="0.3.1", module="pipeline_dp")
_PARTITIONS = ["a", "b"]


def _engine(module: ModuleType, epsilon: float) -> tuple[Any, Any, Any]:
    """Return what has this epsilon and a delta of 0.01 to spend, an engine that spends it, and what rows are made of."""
    accountant = module.NaiveBudgetAccountant(total_epsilon=epsilon, total_delta=0.01)
    extractors = module.DataExtractors(
        privacy_id_extractor=lambda row: row[0],
        partition_extractor=lambda row: row[1],
        value_extractor=lambda row: row[2],
    )
    return accountant, module.DPEngine(accountant, module.LocalBackend()), extractors


def _users(data: Sequence[tuple[str, float]]) -> list[tuple[int, str, float]]:
    """Return rows, each of another user."""
    return [(user, *row) for user, row in enumerate(data)]


def _aggregated(metrics: tuple[str, ...], public: bool, **options: object) -> Callable[[float], Mechanism]:
    """Return what aggregates values in [0, 1], or [1, 2] where `options` say so, by partition."""

    def build(factor: float) -> Mechanism:
        module = LIBRARY.load()
        requested_metrics = [
            module.Metrics.PERCENTILE(50) if name == "PERCENTILE" else getattr(module.Metrics, name)
            for name in metrics
        ]
        params = module.AggregateParams(
            metrics=requested_metrics,
            max_partitions_contributed=1,
            max_contributions_per_partition=1,
            **{"min_value": 0.0, "max_value": 1.0, **options},
        )

        def mechanism(data: Sequence[tuple[str, float]], rng: object) -> object:
            accountant, engine, extractors = _engine(module, factor)
            result = engine.aggregate(
                _users(data), params, extractors, public_partitions=_PARTITIONS if public else None
            )
            accountant.compute_budgets()
            return sorted([key, *map(float, values)] for key, values in result)

        return quietly(mechanism)

    return build


def _selected(factor: float) -> Mechanism:
    """Return what chooses partitions with enough users."""
    module = LIBRARY.load()
    params = module.SelectPartitionsParams(max_partitions_contributed=1)

    def mechanism(data: Sequence[tuple[str, float]], rng: object) -> object:
        accountant, engine, extractors = _engine(module, factor)
        result = engine.select_partitions(_users(data), params, extractors)
        accountant.compute_budgets()
        return sorted(result)

    return quietly(mechanism)


def _rows(*values: float, max_rows: int = 4) -> Strategy:
    """Return the strategy of rows (partition, value)."""

    def strategy(st: ModuleType) -> object:
        return st.lists(
            st.tuples(st.sampled_from(_PARTITIONS), st.sampled_from(values)), min_size=1, max_size=max_rows
        )

    return strategy


_AGGREGATE = ("Computes DP aggregate metrics.", "documentation of pipeline_dp.DPEngine.aggregate")
_SELECT = (
    "Retrieves a collection of differentially-private partitions.",
    "documentation of pipeline_dp.DPEngine.select_partitions",
)
_VALUES = _rows(-3.0, 0.0, 0.5, 1.0, 9.0)
#: Name, how it is built, its data, the words of its documentation and where they are.
_ALL: tuple[tuple[str, Callable[[float], Mechanism], Strategy, tuple[str, str]], ...] = (
    ("COUNT", _aggregated(("COUNT",), public=True), _VALUES, _AGGREGATE),
    ("SUM", _aggregated(("SUM",), public=True), _VALUES, _AGGREGATE),
    ("MEAN", _aggregated(("MEAN",), public=True, min_value=1.0, max_value=2.0), _rows(1.0, 1.5, 2.0), _AGGREGATE),
    ("VARIANCE", _aggregated(("VARIANCE",), public=True), _VALUES, _AGGREGATE),
    ("PERCENTILE", _aggregated(("PERCENTILE",), public=True), _VALUES, _AGGREGATE),
    ("COUNT-private-partitions", _aggregated(("COUNT",), public=False), _rows(0.0, max_rows=9), _AGGREGATE),
    ("select_partitions", _selected, _rows(0.0, max_rows=9), _SELECT),
)

ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        package=LIBRARY,
        what=what,
        claim=Claim(epsilon=1.0, delta=0.01),
        quotation=said,
        where=where,
        strategy=data,
        build=build,
        weakened_by="epsilon",
        relations=("add-remove",),
        os_random=True,
        runs=10_000,
    )
    for what, build, data, (said, where) in _ALL
)
