"""What traces say of a claim, as data: for a record, and for the table of one run's noisy calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from typing import Any, TypeVar, cast

import numpy as np

from ...learners.blame import extra_or_reason
from ...learners.protocol import LearnerError
from ...mechanisms.claim import Claim
from ..execution.progress import steps
from ..record_types import CallJson, CauseJson, LeakJson, LossJson, PlaceJson, TracesJson
from ..statistics.digits import at_most, exceeds
from .causes import cause, level_of_path
from .costs import Cost, cost, words_of
from .coupling import Twin
from .parting import Leak
from .tape import Call
from .upper import Tracing, tracing
from .upper import traced as untested
from .watched import CallSite

_Pair = TypeVar("_Pair")
MorePairs = Callable[[_Pair], Sequence[_Pair]]


def traced(target: object, pair: object, claim: Claim, *, falsified: bool, seed: int = 0) -> TracesJson:
    """Return the fields of a record that come from traces; where there are none, why, as `untraced`.

    Parameters
    ----------
    falsified : bool
        Whether the claim was falsified: then its cause is looked for.
    """

    def found() -> TracesJson:
        outcome = tracing(target, pair, claim, seed=seed)
        reason = cause_of(outcome, claim) if falsified else None
        return {**fields_of(outcome, claim), "cause": reason, "untraced": None}

    fields, missing = extra_or_reason("trace", found)
    return not_traced(missing[0].reason) if fields is None else fields


def not_traced(reason: str) -> TracesJson:
    """Return the fields of what cannot be traced."""
    return {**_NOTHING, "trace_result": "NOT TRACED", "untraced": " ".join(reason.split())}


_NOTHING: TracesJson = {
    "epsilon_upper": None,
    "epsilon_upper_pair": None,
    "upper": None,
    "upper_scope": None,
    "upper_how": None,
    "upper_rests_on": None,
    "trace_result": "NOT BOUNDED",
    "within_claim": False,
    "leak": None,
    "cause": None,
}


def fields_of(tracing: Tracing, claim: Claim) -> TracesJson:
    """Return what traces come to, the bounds and the leak, as a record has them."""
    upper, on_pair = tracing.upper, tracing.pair_upper
    leak = leak_json(tracing.leak)
    if leak is not None and leak["bypass"]:
        return {**_NOTHING, "trace_result": "BYPASS", "leak": leak}
    if upper is None or not math.isfinite(upper.epsilon):
        return {**_NOTHING, "leak": leak}
    # A bound for every pair is one for this pair, where of this pair's own paths only some were sampled.
    pair_bound = on_pair if on_pair is not None and (on_pair.binds or upper is on_pair) else None
    epsilon_upper_pair = (pair_bound or upper).epsilon
    level = level_of_path(tracing, claim.measure) if pair_bound is not None and pair_bound.how == "maximised" else None
    bound = upper.epsilon if claim.measure.is_epsilon else level
    bounded = upper.binds and bound is not None
    return {
        "epsilon_upper": upper.epsilon,
        "epsilon_upper_pair": epsilon_upper_pair,
        "upper": level,
        "upper_scope": cast(Any, upper.scope),
        "upper_how": cast(Any, upper.how),
        "upper_rests_on": list(upper.rests_on),
        "trace_result": "BOUNDED" if bounded else "NOT BOUNDED",
        "within_claim": bounded and bound is not None and not exceeds(bound, claim.measure.level),
        "leak": leak,
    }


def leak_json(leak: Leak | None) -> LeakJson | None:
    """Return a leak as a record has it."""
    if leak is None:
        return None
    return {
        "text": str(leak),
        "what": leak.what,
        "round": leak.round,
        "bypass": leak.bypass,
        "finding": leak.finding,
        "seen": leak.seen,
        **({"hint": leak.hint} if leak.hint else {}),
        "place": place_json(leak.place),
        "lost": place_json(leak.lost),
    }


def place_json(place: CallSite | None) -> PlaceJson | None:
    """Return a place as a record has it."""
    return None if place is None else {"file": place.file, "line": place.line}


def place_of_fault(target: object, pair: object, claim: Claim) -> str:
    """Return the leak around the noise, or the call that costs more than is claimed; why there is neither else."""
    outcome, missing = extra_or_reason("trace", partial(tracing, target, pair, claim, every_pair=False))
    if outcome is None:
        return f"not traced: {missing[0].reason}"
    upper = outcome.pair_upper
    if outcome.leak is None and (upper is None or not exceeds(upper.epsilon, claim.epsilon)):
        scope = " of the sampled paths" if upper is not None and upper.how == "sampled" else ""
        cost = "no noisy call" if upper is None else f"the calls{scope} cost at most {at_most(upper.epsilon)}"
        return f"nothing: {cost}"
    reason = cause(outcome, claim)
    assert reason is not None
    return reason.text


def cause_of(tracing: Tracing, claim: Claim) -> CauseJson | None:
    """Return why a claim that was falsified is false, as a record has it."""
    reason = cause(tracing, claim)
    return None if reason is None else reason.to_json()


def worst_tracing(
    target: object, pairs: Sequence[_Pair], claim: Claim, *, seed: int = 0, more_pairs: MorePairs[_Pair] | None = None
) -> tuple[Tracing, _Pair]:
    """Return the traces of the first pair with a bypass, else that lost track, else with the largest bound.

    Of several pairs those on which the target raises are left out.

    Parameters
    ----------
    more_pairs : function, optional
        Returns further pairs, given the worst of the first.

    Raises
    ------
    UntraceableError
        If the target draws in a way that is not watched.
    LearnerError
        If it raises on every pair.
    """
    with closing(Twin(target)) as twin:
        return _worst(target, pairs, claim, seed, more_pairs, twin)


def _worst(
    target: object, pairs: Sequence[_Pair], claim: Claim, seed: int, more_pairs: MorePairs[_Pair] | None, twin: Twin
) -> tuple[Tracing, _Pair]:
    best, error = None, None
    for pair in steps(pairs, f"tracing {len(pairs)} pair{'s' * (len(pairs) != 1)} of inputs"):
        try:
            outcome = untested(target, pair, claim, seed=seed)
        except LearnerError as raised:
            error = raised
            continue
        if outcome.leak is not None and outcome.leak.bypass:
            return outcome, pair
        if best is None or _size(outcome) > _size(best[0]):
            best = outcome, pair
    if best is None:
        assert error is not None
        raise error
    if best[0].leak is not None:
        return best
    tested = tracing(target, best[1], claim, seed=seed, twin=twin)
    if more_pairs is None or tested.claim_upper is not None:
        return tested, best[1]
    return _worst(target, [best[1], *more_pairs(best[1])], claim, seed, None, twin)


def _size(outcome: Tracing) -> tuple[bool, float]:
    """Return what orders traces: those that lost track come before all bounds."""
    return outcome.leak is not None, -1.0 if outcome.pair_upper is None else outcome.pair_upper.epsilon


def call_rows(tracing: Tracing, claim: Claim) -> list[CallJson]:
    """Return the noisy calls of one run in both worlds: where, inputs, law, and the loss until there."""
    rows: list[CallJson] = []
    runs, run = tracing.worst.runs, tracing.run
    zero = np.zeros(runs)
    total = Cost(zero, zero, zero)
    for number, (left, right) in enumerate(tracing.worst.calls, start=1):
        call_cost = cost(left, right, runs)
        total += call_cost
        rows.append(
            {
                "call": number,
                "round": left.round or None,
                "name": left.name,
                "place": {"file": left.place.file, "line": left.place.line},
                "left": input_of(left, run),
                "right": input_of(right, run),
                "law": words_of(left.law),
                "loss": _loss(total, run, claim.delta),
            }
        )
    return rows


def input_of(call: Call, run: int) -> list[float | None]:
    """Return a run's input of a call as numbers: of an outcome its probabilities."""
    if np.asarray(call.value).dtype == object:  # what a library was given, whole
        return [float(number) if isinstance(number, int | float) else None for number in np.ravel(call.value[0, 0])]
    value = np.asarray(call.value, dtype=float)
    column = value.reshape(-1) if call.law is None else value.reshape(-1, value.shape[-1])[:, run]
    return [float(number) if math.isfinite(number) else None for number in column]


def _loss(total: Cost, run: int, delta: float) -> LossJson:
    """Return the loss so far: epsilon, None where it is infinite, and mu where the noise is Gaussian."""
    epsilon = float(total.epsilon(delta)[run])
    mu = math.sqrt(float(total.mu_squared[run]))
    loss: LossJson = {"epsilon": epsilon if math.isfinite(epsilon) else None}
    return {**loss, "mu": mu} if mu else loss
