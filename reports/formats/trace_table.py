"""What a trace comes to, and the table of one run's noise calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from ...audit.statistics.digits import at_most
from ...audit.statistics.measure_words import beside, is_epsilon, level_of, unit_of
from ..sanitise import visible, visible_line
from .input_words import pair_words
from .layout import Row, labelled, whole
from .terminal import colour, table

if TYPE_CHECKING:
    from ...audit.plans.tracing import TraceJson
    from ...audit.record_types import CallJson, PlaceJson

#: The numbers of an input that are printed, and the calls of a run.
_FEW_VALUES, _MAX_CALLS = 3, 40
_MEANING = (
    "a trace cannot bound this target: it follows added noise only, and this target also draws otherwise, or uses "
    "noise in another way"
)


def trace_lines(trace: TraceJson, *, quiet: bool = False, verbose: bool = False) -> str:
    """Return what a trace comes to, what it assumes, and its noise calls as a table; line 1 alone if `quiet`.

    If `verbose`, every assumption stands on a line of its own, and no text is shortened.
    """
    trace = visible(trace)
    word = click.style(trace["trace_result"], fg=colour(trace["trace_result"]), bold=True)
    head = f"{word}  {visible_line(trace['name'])}: {visible_line(_result(trace))}"
    if quiet:
        return head
    rows = [(label, visible_line(text)) for label, text in _labelled(trace, separate=verbose)]
    lines = [labelled(head, rows)]
    if verbose:
        lines = [head, *whole(rows)]
    return "\n".join([*lines, *_table(trace["calls"])])


def _table(calls: Sequence[CallJson]) -> list[str]:
    if not calls:
        return []
    head = ("call", "place", "name", "round", "left input", "right input", "noise", "epsilon so far")
    rest = [f"and {len(calls) - _MAX_CALLS} more calls"] if len(calls) > _MAX_CALLS else []
    return ["", table(head, (_row(call) for call in calls[:_MAX_CALLS])), *rest]


def _row(call: CallJson) -> tuple[str, ...]:
    place, loss = call["place"], call["loss"]
    so_far = "inf" if loss["epsilon"] is None else at_most(loss["epsilon"])
    so_far += f" (mu {at_most(loss['mu'])})" if "mu" in loss else ""
    location = visible_line(f"{place['file']}:{place['line']}")
    inputs = [_numbers(call[side]) for side in ("left", "right")]
    return (str(call["call"]), location, call["name"], str(call["round"] or "-"), *inputs, call["law"], so_far)


def _numbers(values: list[float | None]) -> str:
    texts = ["none" if value is None else f"{value:.4g}" for value in values[:_FEW_VALUES]]
    rest = ", ..." if len(values) > _FEW_VALUES else ""
    return texts[0] if len(values) == 1 else f"[{', '.join(texts)}{rest}]"


def _result(trace: TraceJson) -> str:
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
        pairs = "every pair of" if is_epsilon(measure) and trace["upper_scope"] == "claim" else "these"
        return f"{unit} is at most {at_most(bound, '.2f')} for {pairs} inputs{claimed}"
    if trace["upper_how"] == "sampled":
        runs = f"{trace['runs']} run{'s' * (trace['runs'] != 1)}"
        cost = f"the largest cost in {runs} is epsilon {at_most(upper, '.2f')}"
        return f"{cost}; other runs may cost more{claimed}"
    return f"no bound is known in {unit}{claimed}"


def _inputs(trace: TraceJson) -> str:
    rank = "first" if trace["leak"] else "costliest"
    text = pair_words(trace["pair"], of_data=not trace["of_losses"])
    return f"the {rank} of {trace['tried']:,} pairs: {text}"


def _at(place: PlaceJson | None) -> str:
    return "" if place is None else f" ({place['file']}:{place['line']})"


def _labelled(trace: TraceJson, *, separate: bool) -> list[Row]:
    """Return the other lines: label and text; each assumption is one where that is wanted."""
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
    if place := trace.get("lost"):
        lines.append(("Lost track", f"at {place['file']}:{place['line']}: what follows may depend on noise"))
    if cause and not leak:
        lines.append(("Cause", cause["text"]))
    pair_bound = trace["epsilon_upper_pair"]
    smaller = pair_bound is not None and at_most(pair_bound, ".2f") != at_most(trace["epsilon_upper"], ".2f")
    if trace["trace_result"] == "BOUNDED" and trace["upper_scope"] == "claim" and smaller:
        lines.append(("This pair", f"epsilon is at most {at_most(pair_bound, '.2f')}"))
    assumed = trace["upper_rests_on"] or ()
    lines += [("Assumes", line) for line in (assumed if separate else ["; ".join(assumed)]) if line]
    return lines
