"""What a record says of traces: the types of its fields, with their schemas (`json_schema`)."""

from typing import Annotated, Literal, TypedDict, get_args

from ...json_schema import BOOLEAN, COUNT, NUMBER, REQUIRED, ROUND, TEXT, Default, array, choice, maybe, table_of


class PlaceJson(TypedDict):
    """Where code is written."""

    file: Annotated[str, TEXT, REQUIRED]
    line: Annotated[int, ROUND, REQUIRED]


#: What a trace comes to.
TraceResult = Literal["BOUNDED", "NOT BOUNDED", "BYPASS", "NOT TRACED"]


class LeakJson(TypedDict, total=False):
    """What differs although all noise is the same: a bypass, or where the trace has lost track."""

    text: Annotated[str, TEXT, REQUIRED]
    what: Annotated[str, TEXT]
    round: Annotated[int, COUNT]
    bypass: bool
    finding: Annotated[str, TEXT]
    seen: str
    hint: str
    place: Annotated[PlaceJson | None, maybe(table_of(PlaceJson))]
    lost: PlaceJson | None


class CauseJson(TypedDict):
    """Why a claim is false."""

    text: Annotated[str, TEXT, REQUIRED]
    kind: Annotated[str, choice("leak", "calls", "law"), REQUIRED]
    place: Annotated[PlaceJson | None, maybe(table_of(PlaceJson))]
    call: Annotated[int | None, maybe(ROUND)]
    calls: Annotated[int | None, maybe(ROUND)]
    differs: Annotated[float | None, maybe(NUMBER)]
    calibrated_for: Annotated[float | None, maybe(NUMBER)]


class TracesJson(TypedDict, total=False):
    """Bounds from above, the leak and the cause; why there are none."""

    epsilon_upper: Annotated[float | None, maybe(NUMBER), Default(None)]
    epsilon_upper_pair: Annotated[float | None, maybe(NUMBER)]
    upper: Annotated[float | None, maybe(NUMBER)]
    upper_scope: Annotated[str | None, choice("pair", "claim", None)]
    upper_how: Annotated[str | None, choice("maximised", "bounded", "sampled", None), Default(None)]
    upper_rests_on: Annotated[list[str] | None, maybe(array(TEXT))]
    leak: Annotated[LeakJson | None, maybe(table_of(LeakJson))]
    cause: Annotated[CauseJson | None, maybe(table_of(CauseJson))]
    untraced: Annotated[str | None, maybe(TEXT)]
    trace_result: Annotated[TraceResult, choice(*get_args(TraceResult), None)]
    within_claim: Annotated[bool, maybe(BOOLEAN)]


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
