"""What a record says of traces, as types."""

from __future__ import annotations

from typing import Literal, TypedDict


class PlaceJson(TypedDict):
    """Where code is written."""

    file: str
    line: int


#: What a trace comes to.
TraceResult = Literal["BOUNDED", "NOT BOUNDED", "BYPASS", "NOT TRACED"]


class LeakJson(TypedDict, total=False):
    """What differs although all noise is the same: a bypass, or where the trace has lost track."""

    text: str
    what: str
    round: int
    bypass: bool
    finding: str
    seen: str
    place: PlaceJson | None
    lost: PlaceJson | None


class CauseJson(TypedDict):
    """Why a claim is false."""

    text: str
    kind: str
    place: PlaceJson | None
    call: int | None
    calls: int | None
    differs: float | None
    calibrated_for: float | None


class TracesJson(TypedDict, total=False):
    """Bounds from above, the leak and the cause; why there are none."""

    epsilon_upper: float | None
    epsilon_upper_pair: float | None
    upper: float | None
    upper_scope: str | None
    upper_how: str | None
    upper_rests_on: list[str] | None
    trace_result: TraceResult
    within_claim: bool
    leak: LeakJson | None
    cause: CauseJson | None
    untraced: str | None


class LossJson(TypedDict, total=False):
    """The privacy loss of the calls so far: epsilon, None where it is infinite, and mu where the noise is Gaussian."""

    epsilon: float | None
    mu: float


class CallJson(TypedDict):
    """One noisy call of a run in both worlds."""

    call: int
    round: int | None
    name: str
    place: PlaceJson
    left: list[float | None]
    right: list[float | None]
    law: str
    loss: LossJson
