"""What a trace comes to, and the table of one run's noise calls."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...audit.statistics.digits import at_most
from ...audit.statistics.measure_words import beside, is_epsilon, level_of, unit_of
from ..sanitise import json_text, visible, visible_line
from .terminal import colour, shorten, table, width

if TYPE_CHECKING:
    from ...audit.plans.tracing import TraceJson
    from ...audit.traces.trace_types import CallJson, PlaceJson

#: The numbers of an input that are printed, and the calls of a run.
_FEW_VALUES, _MOST_CALLS = 3, 40
#: The most letters of an input that are printed.
_MOST_LETTERS = 120
_MEANING = (
    "a trace cannot bound this target: it follows added noise only, and this target also draws otherwise, or uses "
    "noise in another way"
)


def trace_lines(trace: TraceJson) -> str:
    """Return what a trace comes to, what it rests on, and its noise calls as a table."""
    trace = visible(trace)
    word = click.style(trace["trace_result"], fg=colour(trace["trace_result"]), bold=True)
    lines = [f"{word}  {visible_line(trace['name'])}: {visible_line(_result(trace))}"]
    lines += [_filled(label, visible_line(text)) for label, text in _labelled(trace)]
    return "\n".join([*lines, *_table(trace["calls"])])


def _filled(label: str, text: str) -> str:
    """Return a line behind its label; a command stays in one line, to be copied."""
    start = f"{label:<12}"
    if label == "Next":
        return start + text
    return textwrap.fill(text, width(), initial_indent=start, subsequent_indent=" " * 12, break_on_hyphens=False)


def _table(calls: Sequence[CallJson]) -> list[str]:
    if not calls:
        return []
    head = ("call", "place", "name", "round", "left input", "right input", "noise", "epsilon so far")
    more = [f"and {len(calls) - _MOST_CALLS} more calls"] if len(calls) > _MOST_CALLS else []
    return ["", table(head, (_row(call) for call in calls[:_MOST_CALLS])), *more]


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


def _result(trace: TraceJson) -> str:
    """Return what a trace comes to, beside its word."""
    measure, leak, upper = trace["measure"], trace["leak"], trace["epsilon_upper"]
    unit, claimed = unit_of(measure), f"; claimed {level_of(measure):.10g}{beside(measure)}"
    if trace["trace_result"] == "NOT TRACED":
        return str(trace["untraced"])
    if leak:
        place = leak["place"] or trace["where"]
        return f"{leak['finding']}{_at(place)}" if leak["bypass"] else leak["finding"]
    if trace["infinite"]:
        return f"no finite bound is known{claimed}"
    if upper is None:
        return f"nothing differs in {trace['runs']} paired runs, and no noise call bounds the others{claimed}"
    if trace["trace_result"] == "BOUNDED":
        bound = upper if is_epsilon(measure) else trace["upper"]
        every = is_epsilon(measure) and trace["upper_scope"] == "claim"
        return f"{unit} is at most {at_most(bound, '.2f')} for {'every pair of' if every else 'these'} inputs{claimed}"
    if trace["upper_how"] == "sampled":
        cost = f"the largest cost in {trace['runs']} runs is epsilon {at_most(upper, '.2f')}"
        return f"{cost}; other runs may cost more{claimed}"
    return f"no bound is known in {unit}{claimed}"


def _inputs(trace: TraceJson) -> str:
    """Return which of several pairs a trace is of: its inputs, of losses those of the round that differs."""
    pair, sides = trace["pair"], [trace["pair"]["left"], trace["pair"]["right"]]
    where = ""
    if trace["of_losses"]:
        where, sides = f"round {pair['round']}, ", [losses[pair["round"] - 1] for losses in sides]  # type: ignore[index]
    left, right = (shorten(json_text(side), _MOST_LETTERS) for side in sides)
    return (
        f"the {'first' if trace['leak'] else 'dearest'} of {trace['tried']} pairs: {where}left {left}, right {right}"
    )


def _at(place: PlaceJson | None) -> str:
    return "" if place is None else f" ({place['file']}:{place['line']})"


def _labelled(trace: TraceJson) -> list[tuple[str, str]]:
    """Return the other lines: label and text."""
    leak, cause, lines = trace["leak"], trace.get("cause"), []
    if trace.get("tried", 0) > 1 and trace["upper_scope"] != "claim":
        lines.append(("Inputs", _inputs(trace)))
    if leak:
        lines.append(("Seen", leak["seen"]))
        lines += [("Hint", leak["hint"])] if leak.get("hint") else []
    if leak and not leak["bypass"]:
        lines.append(("Lost track", f"at {leak['lost']['file']}:{leak['lost']['line']}" if leak["lost"] else "-"))
        lines.append(("Meaning", _MEANING))
        lines.append(("Next", f"overclaim check {trace['name']} tests the claim"))
    if lost := trace.get("lost"):
        lines.append(("Lost track", f"at {lost['file']}:{lost['line']}: what follows may depend on noise"))
    if cause and not leak:
        lines.append(("Cause", cause["text"]))
    own = trace["epsilon_upper_pair"]
    if trace["trace_result"] == "BOUNDED" and trace["upper_scope"] == "claim" and own is not None:
        lines.append(("This pair", f"epsilon is at most {at_most(own, '.2f')}"))
    if trace["upper_rests_on"]:
        lines.append(("Assumes", "; ".join(trace["upper_rests_on"])))
    return lines
