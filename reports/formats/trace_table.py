"""The table of one run's noisy calls in both worlds."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, cast

from ...audit.statistics.digits import at_most
from ...audit.statistics.measure_words import claimed_words
from ..sanitise import visible, visible_line
from .terminal import table, width

if TYPE_CHECKING:
    from ...audit.plans.tracing import TraceJson
    from ...audit.traces.trace_types import CallJson
    from ...mechanisms.measures.measure import MeasureJson

#: The numbers of an input that are printed, and the calls of a run.
_FEW_VALUES, _MOST_CALLS = 3, 40


def trace_lines(trace: TraceJson) -> str:
    """Return the calls as a table, and below it what leaks or what bounds them."""
    trace = visible(trace)
    claimed, calls = cast("MeasureJson", trace["claimed"]), trace["calls"]
    lines = [f"{visible_line(trace['name'])}: claimed {claimed_words(claimed)}; one run in both worlds"]
    if calls:
        head = ("call", "place", "name", "round", "input left", "input right", "noise", "loss so far")
        lines.append(table(head, (_row(call) for call in calls[:_MOST_CALLS])))
    lines += [f"and {len(calls) - _MOST_CALLS} more calls"] if len(calls) > _MOST_CALLS else []
    before = " before the leak" if trace["leak"] else ""  # which may itself be one that is not the same in both worlds
    lines += [] if calls else [f"no noisy call{before}"]
    words = _words(trace)
    wrapped = (textwrap.fill(w, width(), subsequent_indent="  ", break_on_hyphens=False) for w in words)
    return "\n".join([*lines, *wrapped])


def _row(call: CallJson) -> tuple[str, ...]:
    place, loss = call["place"], call["loss"]
    so_far = "inf" if loss["epsilon"] is None else at_most(loss["epsilon"])
    so_far += f" (mu {at_most(loss['mu'])})" if "mu" in loss else ""
    at = visible_line(f"{place['file']}:{place['line']}")
    inputs = [_numbers(call[side]) for side in ("left", "right")]
    return (str(call["call"]), at, call["name"], str(call["round"] or "-"), *inputs, call["law"], so_far)


def _numbers(values: list[float | None]) -> str:
    words = ["none" if value is None else f"{value:.4g}" for value in values[:_FEW_VALUES]]
    more = ", ..." if len(values) > _FEW_VALUES else ""
    return words[0] if len(values) == 1 else f"[{', '.join(words)}{more}]"


def _words(trace: TraceJson) -> list[str]:
    """Return what follows from the calls."""
    if trace["leak"]:
        return [
            trace["leak"]["text"],
            "a fact about these two runs: what differs was not computed from the noisy outputs alone, so they bound "
            "nothing; the claim may still hold if randomness that is no noise protects it",
        ]
    if trace["infinite"]:
        return ["no finite bound is known", *_cause(trace)]
    upper = trace["epsilon_upper"]
    if upper is None:
        return [f"nothing differs in {trace['runs']} replayed runs of this pair"]
    if trace["upper_how"] == "sampled":
        first = f"at most {at_most(upper, '.4f')} on the sampled paths of this pair, which bounds nothing"
    else:
        where = "on every pair" if trace["upper_scope"] == "claim" else "on this pair"
        own = trace["epsilon_upper_pair"]
        beside = f", {at_most(own, '.4f')} on this one" if trace["upper_scope"] == "claim" and own is not None else ""
        first = f"epsilon is at most {at_most(upper, '.4f')} {where}{beside}"
    return [first, f"it rests on: {'; '.join(trace['upper_rests_on'] or ())}", *_cause(trace)]


def _cause(trace: TraceJson) -> list[str]:
    return [trace["cause"]["text"]] if trace["cause"] else []
