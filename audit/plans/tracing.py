"""The traces of a task: the table that `overclaim trace` prints."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import hinted
from ..pipeline.given_losses import check_surface
from ..play.data import DataPair
from ..play.pairs import Pair, check_pair
from ..record_types import CallJson, ClaimedJson, MeasureJson, PairJson, PlaceJson, TracesJson
from ..spaces.families import standard_pairs
from ..spaces.related import space_of
from ..statistics.digits import exceeds
from ..traces.summary import call_rows, cause_of, fields_of, not_traced, place_json, worst_tracing
from ..traces.tape import UntraceableError
from ..traces.upper import escape_of
from .targets import source_place
from .tasks import NO_INPUTS, Prepared, Task

#: Pairs that are drawn by a schema: as many as a search begins with.
_MAX_PAIRS = 48
#: The most rounds that may differ one after the other: a trace plays each of them as often.
_MOST_ROUNDS = 64


class TraceJson(TracesJson, total=False):
    """What a trace comes to, and the noise calls of one run for both inputs."""

    name: str
    claimed: ClaimedJson
    measure: MeasureJson
    surface: str
    where: PlaceJson | None
    pair: PairJson
    runs: int
    calls: list[CallJson]
    infinite: bool
    lost: PlaceJson | None
    tried: int
    of_losses: bool


@dataclass(frozen=True, kw_only=True)
class _Traced(Task):
    """A task whose command is a trace."""

    def command(self) -> str:
        """Return the command that traces it: it counts no runs."""
        words = shlex.split(super().command())
        place = words.index("--runs")
        return shlex.join([words[0], "trace", *words[2:place], *words[place + 2 :]])


def trace_task(task: Task) -> TraceJson:
    """Return what a trace of a target comes to, and the noise calls of one run for both inputs.

    Raises
    ------
    ValueError
        For bad input.
    LearnerError
        If it crashes.
    """
    prepared = _Traced(**vars(task)).prepare()
    if prepared.gives_sequences:
        error = ValueError(f"trace follows a pair of loss sequences, and {task.target} has searched or longer inputs")
        raise hinted(error, "give a pair with `pair`, and no `inputs`")
    claim = prepared.claim
    head: TraceJson = {
        "name": task.target,
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "measure": claim.measure.to_json(),
        "surface": claim.surface,
        "where": source_place(prepared.target),
    }
    pairs = _pairs(prepared)
    free = not prepared.is_mechanism and prepared.pairs is None
    try:
        tracing, pair = worst_tracing(
            prepared.traced, pairs, claim, seed=task.budget.seed, more_pairs=_in_other_rounds if free else None
        )
    except UntraceableError as error:
        return {**head, "calls": [], "infinite": False, **not_traced(str(error))}
    upper = tracing.pair_upper
    sampled = upper is not None and upper.how == "sampled"
    costly = upper is not None and exceeds(upper.epsilon, claim.epsilon)
    return {
        **head,
        "pair": pair.to_json(),
        "tried": len(pairs),
        "of_losses": isinstance(pair, Pair),
        "runs": sum(trace.runs for trace in tracing.traces),
        "calls": call_rows(tracing, claim),
        **fields_of(tracing, claim),
        "infinite": upper is not None and math.isinf(upper.epsilon),
        "lost": place_json(escape.place) if sampled and (escape := escape_of(tracing.traces)) else None,
        "cause": cause_of(tracing, claim) if costly else None,
    }


def _pairs(prepared: Prepared) -> Sequence[Pair | DataPair]:
    """Return the pairs to trace: those given, drawn by a schema, or the standard ones.

    Raises
    ------
    ValueError
        For what cannot be shown.
    """
    if prepared.searched_inputs is not None and prepared.is_mechanism:
        pairs = space_of(prepared.searched_inputs, prepared.task.budget.seed).first(_MAX_PAIRS)
        return [DataPair(pair.left, pair.right) for pair in pairs]
    if prepared.is_mechanism:
        inputs = prepared.task.inputs()
        worlds = [(inputs["left"], inputs["right"])] if inputs else prepared.pairs or ()
        if not worlds:
            error = ValueError(f"{prepared.task.target} is a mechanism, and its two inputs are missing")
            raise hinted(error, NO_INPUTS)
        return [DataPair(*pair) for pair in worlds]
    check_surface(prepared.target, prepared.claim)
    if prepared.pairs is not None:
        for pair in prepared.pairs:
            check_pair(pair, prepared.claim, prepared.target)
        return list(prepared.pairs)
    return standard_pairs(prepared.target, prepared.claim, prepared.rounds)


def _in_other_rounds(pair: Pair | DataPair) -> list[Pair | DataPair]:
    """Return a pair of losses with the round that differs in every other place."""
    assert isinstance(pair, Pair)
    worlds = [list(pair.left), list(pair.right)]
    rows = [world.pop(pair.t0) for world in worlds]
    places = [t0 for t0 in range(min(pair.rounds, _MOST_ROUNDS)) if t0 != pair.t0]
    return [Pair(*([*w[:t0], row, *w[t0:]] for w, row in zip(worlds, rows, strict=True))) for t0 in places]
