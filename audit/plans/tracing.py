"""The traces of a task: the table that `overclaim trace` prints."""

from __future__ import annotations

import math
from collections.abc import Sequence

from ...mechanisms.claim import ClaimedJson
from ..assumptions.mechanism_runs import DataPair
from ..certification.falsify import check_surface
from ..play.pairs import Pair, PairJson, check_pair
from ..search.families import standard_pairs
from ..statistics.digits import exceeds
from ..traces.summary import call_rows, cause_of, fields_of, worst_tracing
from ..traces.trace_types import CallJson, TracesJson
from .tasks import Prepared, Task


class TraceJson(TracesJson, total=False):
    """The noisy calls of one run, what leaks around them, and what bounds them."""

    name: str
    claimed: ClaimedJson
    surface: str
    pair: PairJson
    runs: int
    calls: list[CallJson]
    infinite: bool


def trace_task(task: Task) -> TraceJson:
    """Return the noisy calls of one run of a target in both worlds, with what leaks around them and bounds them.

    Raises
    ------
    ValueError
        For bad input.
    UntraceableError
        If the target draws in a way that is not watched.
    LearnerError
        If it crashes.
    """
    prepared = task.prepare()
    if prepared.of_sequences:
        raise ValueError(f"{task.target} is traced on a pair of loss sequences: give a pair (--pair), and no inputs")
    claim = prepared.claim
    tracing, pair = worst_tracing(prepared.played, _pairs(prepared), claim, seed=task.budget.seed)
    upper = tracing.pair_upper
    costly = upper is not None and exceeds(upper.epsilon, claim.epsilon)
    return {
        "name": task.target,
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "surface": claim.surface,
        "pair": pair.to_json(),
        "runs": sum(one.runs for one in tracing.traces),
        "calls": call_rows(tracing, claim),
        **fields_of(tracing, claim),
        "infinite": upper is not None and math.isinf(upper.epsilon),
        "cause": cause_of(tracing, claim) if costly else None,
    }


def _pairs(prepared: Prepared) -> Sequence[Pair | DataPair]:
    """Return the pairs to trace: those given, or the standard ones; raise ValueError for what cannot be shown."""
    if prepared.is_mechanism:
        inputs = prepared.task.inputs()
        given = [(inputs["left"], inputs["right"])] if inputs else prepared.pairs or ()
        if not given:
            raise ValueError(f"{prepared.task.target} is traced on two inputs: give left and right (--left, --right)")
        return [DataPair(*pair) for pair in given]
    check_surface(prepared.target, prepared.claim)
    if prepared.pairs is not None:
        for pair in prepared.pairs:
            check_pair(pair, prepared.claim, prepared.target)
        return list(prepared.pairs)
    return standard_pairs(prepared.target, prepared.claim, prepared.rounds)
