"""What reports say of traces: bounds from above, leaks around the noise, causes. Nothing where a record has none."""

from __future__ import annotations

import math

from ..audit.record_types import ClaimRecord, PlaceJson
from ..audit.statistics.digits import at_most, exceeds, within
from ..audit.statistics.measure_words import beside, is_epsilon, unit_of
from .reading import measure_of

#: Rooms whose code makes noisy calls.
_OUR_ROOMS = ("mechanisms/", "learners/")


def binding(claim: ClaimRecord) -> float | None:
    """Return a claim's upper bound where it is one.

    None where paths were only sampled, where no trace was made, or where more was certified than it allows.
    """
    return None if _contradicted(claim) else _traced(claim)


def kept_traces(promise: ClaimRecord, traces: ClaimRecord) -> ClaimRecord:
    """Return what traces come to, without a bound that what was certified rejects: why is said in its place."""
    claim: ClaimRecord = {**promise, **traces}
    if not _contradicted(claim):
        return traces
    bounds: ClaimRecord = {"epsilon_upper": None, "epsilon_upper_pair": None, "upper": None, "upper_how": None}
    rejected: ClaimRecord = {"trace_result": "NOT BOUNDED", "within_claim": False, "upper_rejected": _bounds(claim)[0]}
    return {**traces, **bounds, "upper_scope": None, **rejected}


def _traced(claim: ClaimRecord) -> float | None:
    """Return what traces bound a claim's level by, whatever was certified; None where they do not."""
    upper = claim.get("epsilon_upper") if is_epsilon(measure_of(claim)) else claim.get("upper")
    return None if upper is None or claim.get("upper_how") in (None, "sampled") else float(upper)


def least_binding(claim: ClaimRecord, *, on_pair: bool) -> float | None:
    """Return the least bound from above on a claim's own measure, where wanted on its pair alone; None without one."""
    upper = binding(claim)
    if upper is None or on_pair:
        return upper if upper is None or not is_epsilon(measure_of(claim)) else _top(claim)
    return upper if is_epsilon(measure_of(claim)) and claim.get("upper_scope") == "claim" else None


def binding_where(claim: ClaimRecord) -> str:
    """Return where a claim's upper bound holds: on every pair, or on the one that was audited."""
    return _where(claim.get("upper_scope") if is_epsilon(measure_of(claim)) else "pair")


def is_bounded(claim: ClaimRecord) -> bool:
    """Tell whether a claim survived and traces bound its epsilon by no more than is claimed."""
    upper = binding(claim)
    is_within = upper is not None and is_epsilon(measure_of(claim)) and not exceeds(upper, claim["claimed"]["epsilon"])
    return claim["verdict"] == "SURVIVED" and is_within


def bounded_words(claim: ClaimRecord) -> str:
    """Return ", bounded: ..." to stand behind SURVIVED, or nothing."""
    upper = claim.get("epsilon_upper")
    if upper is None or not is_bounded(claim):
        return ""
    return f", bounded: at most {at_most(upper)} {_where(claim.get('upper_scope'))}"


def bypass_text(claim: ClaimRecord) -> str:
    """Return which output depends on the input without noise, with its line; empty where a trace shows none."""
    leak = claim.get("leak")
    if not leak or not leak.get("bypass"):
        return ""
    place = leak.get("place") or claim.get("where")
    location = f" ({place['file']}:{place['line']})" if place else ""
    return f"{leak.get('finding') or leak['text']}{location}"


def trace_lines(claim: ClaimRecord) -> list[str]:
    """Return what a claim's traces say, line by line."""
    lines = _bounds(claim)
    if leak := claim.get("leak"):
        lines.append(leak["text"])
    cause = claim.get("cause")
    if cause and cause["kind"] != "leak":
        lines.append(f"cause: {cause['text']}")
    if claim.get("untraced"):
        lines.append(f"NOT TRACED: {claim['untraced']}")
    if not lines and "untraced" in claim:  # traced it was
        lines.append("NOT BOUNDED: no finite bound is known")
    return lines


def _bounds(claim: ClaimRecord) -> list[str]:
    upper, pair = claim.get("epsilon_upper"), claim.get("epsilon_upper_pair")
    subject = "it" if claim.get("upper_how") == "sampled" else "the upper bound"  # of sampled paths there is none
    rests = f"{subject} rests on: {'; '.join(claim.get('upper_rests_on') or ())}"
    if upper is None:
        rejected = claim.get("upper_rejected")
        return [rejected, rests] if rejected else []
    sampled = claim.get("upper_how") == "sampled"
    if sampled and _contradicted(claim):
        top = at_most(_top(claim), ".4f")
        other = "another path costs more, or not all that this rests on holds"
        return [f"traced: at most {top} on the sampled paths, below what is certified: {other}", rests]
    if not is_epsilon(measure_of(claim)):
        level = _traced(claim)
        if level is None:
            if sampled:
                return ["NOT BOUNDED: the paths were sampled; other runs may cost more", rests]
            return ["NOT BOUNDED: no bound is known in this measure"]
        on = ", below what is certified: not all that this rests on holds" if _contradicted(claim) else " on this pair"
        unit, at_delta = unit_of(measure_of(claim)), beside(measure_of(claim))
        return [f"traced: {unit} at most {at_most(level, '.4f')}{at_delta}{on}", rests]
    if _contradicted(claim):
        top = at_most(_top(claim), ".4f")
        return [f"traced: at most {top}, below what is certified: not all that this rests on holds", rests]
    if sampled:
        cost = f"the largest cost of the sampled paths is epsilon {at_most(upper, '.4f')}"
        return [f"NOT BOUNDED: {cost}; other runs may cost more", rests]
    lines = []
    if pair is not None:
        low, high = within(claim["epsilon_lower"] or 0.0, pair, ".4f")
        lines.append(f"interval: epsilon in [{low}, {high}] on this pair")
    if claim.get("upper_scope") == "claim":
        lines.append(f"at most {at_most(upper, '.4f')} {_where('claim')}")
    return [*lines, rests]


def _contradicted(claim: ClaimRecord) -> bool:
    """Tell whether more was certified than traces allow, or than the paths cost that were sampled."""
    level = None if is_epsilon(measure_of(claim)) else _traced(claim)
    if level is not None:
        return exceeds(claim.get("lower") or 0.0, level)
    return exceeds(claim.get("epsilon_lower") or 0.0, _top(claim))


def _top(claim: ClaimRecord) -> float:
    """Return the least of what is said of this pair, and of every one."""
    bounds = claim.get("epsilon_upper_pair"), claim.get("epsilon_upper")
    return min((float(bound) for bound in bounds if bound is not None), default=math.inf)


def _where(scope: str | None) -> str:
    return "on every pair" if scope == "claim" else "on this pair"


def place_of(claim: ClaimRecord) -> PlaceJson | None:
    """Return the line of a claim's cause or bypass, else that where its target is written.

    A cause in our own code is named relative to our package: it is a file of the repository only where the target is.
    """
    cause, leak, where = claim.get("cause"), claim.get("leak") or {}, claim.get("where")
    place = cause.get("place") if cause else leak.get("place") if leak.get("bypass") else None
    foreign = place and place["file"].startswith(_OUR_ROOMS) and where and not where["file"].startswith(_OUR_ROOMS)
    return where if not place or foreign else place
