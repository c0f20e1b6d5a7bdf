"""The types of a record's parts. They are JSON: `record_schema` checks their form when a record is read.

A key may be missing: a record is of one part more or less, and older versions wrote fewer.
"""

from typing import TYPE_CHECKING, Annotated, Final, TypedDict, get_args

from ..audit.statistics.canary_words import Design
from ..audit.traces.trace_types import PlaceJson, TracesJson
from ..audit.verdicts.blind_spot import Reason
from ..json_schema import (
    BOOLEAN,
    COUNT,
    INSIDE,
    NUMBER,
    REQUIRED,
    SHARE,
    TEXT,
    Default,
    array,
    choice,
    maybe,
    table,
    table_of,
)
from .record_parts import (
    BLIND_SPOT,
    CLAIMED,
    COUNTS,
    EVIDENCE,
    FROZEN,
    MEASURE,
    PAIR,
    SCORES,
    SEARCHED,
    SHRUNK,
    SMALLEST,
    TRANSLATION,
    standings,
)

if TYPE_CHECKING:
    from ..audit.evidence.evidence import EvidenceJson
    from ..audit.plans.audited_files import AuditedJson
    from ..audit.play.pairs import PairJson
    from ..audit.regret.measurement import RegretJson
    from ..audit.statistics.canary_words import ScoresJson
    from ..audit.statistics.certificates import TranslationJson
    from ..audit.statistics.events import CountsJson
    from ..audit.verdicts.blind_spot import BlindSpotJson
    from ..audit.verdicts.verdict import SearchedJson
    from ..audit.verdicts.witness import ShrunkJson
    from ..mechanisms.claim import ClaimedJson
    from ..mechanisms.measures.measure import MeasureJson


#: The two worlds.
SIDES: Final = ("left", "right")


class Said(TypedDict, total=False):
    """What is said of a claim by its name: an error, a finding of a baseline, a library that is not installed."""

    name: str
    kind: str
    message: str
    replay: str
    reason: str
    # Of an error: the line of the target that raised it, and what to do.
    where: str
    hint: str
    # Of a finding: its claim (`identity.mark`), and the claim's name where the target has several.
    claim: str
    label: str
    fails: bool  # where its kind alone does not fail a run


class EventRecord(TypedDict, total=False):
    """The event that was certified."""

    lower: Annotated[float | None, maybe(NUMBER)]
    upper: Annotated[float | None, maybe(NUMBER)]
    share: Annotated[float, INSIDE]
    function: dict[str, object]


class Quotation(TypedDict):
    """The words of a paper."""

    text: Annotated[str, TEXT, REQUIRED]
    where: Annotated[str, TEXT, REQUIRED]


class HolmRecord(TypedDict):
    """At what level Holm's procedure falsified a claim."""

    p_value: Annotated[float, SHARE, REQUIRED]
    level: Annotated[float, SHARE, REQUIRED]


class BeforeRecord(TypedDict, total=False):
    """What a baseline says of a claim, and what came of counting its event again."""

    epsilon_lower: float
    lower: float | None
    measure: "MeasureJson"
    p_value: float | None
    not_compared: str | None
    counts: "CountsJson"
    counts_before: "CountsJson"


class MissingJson(TypedDict):
    """What a verdict goes without, as a trace or a figure, and why."""

    what: Annotated[str, TEXT, REQUIRED]
    reason: Annotated[str, TEXT, REQUIRED]


class ClaimRecord(TracesJson, total=False):
    """One audited claim: each field with its schema, and the default that readers take where a record lacks it."""

    name: Annotated[str, TEXT, REQUIRED]
    claimed: Annotated["ClaimedJson", CLAIMED, REQUIRED]
    verdict: Annotated[str, choice("FALSIFIED", "SURVIVED", "UNDERPOWERED"), REQUIRED]
    expected: Annotated[str | None, choice("falsified", "survived", None), Default(None)]
    holm: Annotated[HolmRecord, maybe(table_of(HolmRecord))]
    # The game.
    calibration: Annotated[str | None, maybe(TEXT), Default(None)]
    surface: Annotated[str, maybe(TEXT), Default("actions")]
    raising: Annotated[str, choice("error", "outcome", None), Default("error")]
    neighbours: Annotated[str, maybe(TEXT), Default("replace")]
    relation: Annotated[str | None, maybe(TEXT)]
    losses: Annotated[str, maybe(TEXT), Default("")]
    rounds: Annotated[int | None, maybe(COUNT), Default(None)]
    arms: Annotated[int | None, maybe(COUNT)]
    mechanism: Annotated[bool, maybe(BOOLEAN)]
    parameters: dict[str, object]
    pair: Annotated["PairJson", maybe(PAIR)]
    pair_given: Annotated[bool, maybe(BOOLEAN)]
    inputs: Annotated[dict[str, object] | None, maybe(table())]
    bits: Annotated[bool, maybe(BOOLEAN)]
    # What was certified.
    measure: Annotated["MeasureJson | None", maybe(MEASURE), Default(None)]
    lower: Annotated[float | None, maybe(NUMBER), Default(None)]
    epsilon_lower: Annotated[float, maybe(NUMBER), Default(0.0)]
    translation: Annotated["TranslationJson | None", maybe(TRANSLATION), Default(None)]
    confidence: Annotated[float, maybe(INSIDE), Default(0.99)]
    p_value: Annotated[float | None, maybe(SHARE), Default(None)]
    method: Annotated[str, maybe(TEXT), Default("guess")]
    counts: Annotated["CountsJson", maybe(COUNTS)]
    event: Annotated[EventRecord | None, maybe(table_of(EventRecord)), Default(None)]
    event_in_words: Annotated[str | None, maybe(TEXT)]
    two_interval_bound: Annotated[float | None, maybe(NUMBER), Default(None)]
    attack: Annotated[str, maybe(TEXT), Default("")]
    attack_exact: Annotated[bool, maybe(BOOLEAN)]
    attack_reads: Annotated[str, maybe(TEXT)]
    frozen: Annotated[dict[str, object], maybe(FROZEN)]
    evidence: Annotated["EvidenceJson | None", maybe(EVIDENCE), Default(None)]
    baseline: BeforeRecord | float | None
    # Of scores of canaries: how they came to be, and what they are.
    design: Annotated[str | None, choice(*get_args(Design), None), Default(None)]
    scores: Annotated["ScoresJson | None", maybe(SCORES), Default(None)]
    # What is exact on the audited pair.
    exact_level: Annotated[float | None, maybe(NUMBER), Default(None)]
    exact_mu: Annotated[float | None, maybe(NUMBER)]
    exact_rho: Annotated[float | None, maybe(NUMBER)]
    exact_epsilon: Annotated[float | None, maybe(NUMBER), Default(None)]
    exact_infinite: Annotated[bool, maybe(BOOLEAN), Default(False)]
    # What could have been seen.
    detectable_epsilon: Annotated[float | None, maybe(NUMBER), Default(None)]
    blind_spot: Annotated["BlindSpotJson | None", maybe(BLIND_SPOT), Default(None)]
    reason: Annotated[Reason | None, choice(*get_args(Reason), None), Default(None)]
    untested: Annotated[bool, maybe(BOOLEAN), Default(False)]
    alike: Annotated[bool, maybe(BOOLEAN)]
    paired_runs: Annotated[int | None, maybe(COUNT)]
    unread_bits: Annotated[bool, maybe(BOOLEAN)]
    noise_set_by: Annotated[list[str], maybe(array(TEXT))]
    untested_allowed: Annotated[bool, maybe(BOOLEAN)]
    remarks: Annotated[list[str], maybe(array(TEXT))]
    # What its verdict goes without.
    missing: Annotated[list[MissingJson], maybe(array(table_of(MissingJson)))]
    # How it was audited.
    runs: Annotated[int | None, maybe(COUNT), Default(None)]
    budget: Annotated[int, maybe(COUNT)]
    pilot_runs: Annotated[int | None, maybe(COUNT), Default(None)]
    stop: Annotated[str, maybe(TEXT)]
    seed: Annotated[int, maybe(COUNT)]
    engine: Annotated[str, maybe(TEXT)]
    seconds: Annotated[float | None, maybe(NUMBER), Default(None)]
    platform_dependent: Annotated[bool, maybe(BOOLEAN)]
    replay: Annotated[str, maybe(TEXT), Default("")]
    replayable: Annotated[bool, maybe(BOOLEAN), Default(True)]
    outputs_digest: Annotated[str | None, maybe(TEXT)]
    searched: Annotated["SearchedJson | None", maybe(SEARCHED)]
    smallest_inputs: Annotated["ShrunkJson | None", maybe(SMALLEST)]
    shrunk: Annotated["ShrunkJson | None", maybe(SHRUNK)]
    # Whose claim it is.
    source: Annotated[str, maybe(TEXT), Default("")]
    standing: Annotated[str | None, standings, Default(None)]
    published: Annotated[bool, maybe(BOOLEAN), Default(True)]
    quotation: Annotated[Quotation | None, maybe(table_of(Quotation)), Default(None)]
    false: Annotated[str | None, maybe(TEXT), Default(None)]
    answer: Annotated[str | None, maybe(TEXT), Default(None)]
    repair: Annotated[str | None, maybe(TEXT), Default(None)]
    note: Annotated[str, maybe(TEXT), Default("")]
    where: Annotated[PlaceJson | None, maybe(table_of(PlaceJson))]
    claimed_in: Annotated[str, maybe(TEXT), Default("")]


class BaselineRecord(TypedDict, total=False):
    """The comparison with a baseline."""

    file: str
    created: str | None
    digest: str
    alpha: float
    test: str
    findings: list[Said]
    errors: list[Said]


class LedgerOfTests(TypedDict, total=False):
    """Every test that shared the report's alpha."""

    method: str
    planned: int
    family_wise_error: float
    tests: list[dict[str, object]]


class RunRecord(TypedDict, total=False):
    """The record of a run."""

    schema: int
    overclaim: str
    seed: int
    alpha: float
    created: str
    command: str
    folder: str
    block: int
    versions: dict[str, str]
    audited: "AuditedJson | None"
    protects: str
    headline: dict[str, int]
    processor: dict[str, object]
    claims: list[ClaimRecord]
    regret: "list[RegretJson]"
    regret_not_measured: list[dict[str, str]]
    utility: list[dict[str, object]]
    errors: list[Said]
    skipped: list[Said]
    selftest: list[dict[str, object]]
    ledger_of_tests: LedgerOfTests
    baseline: BaselineRecord | None


class LegibleRecord(RunRecord, total=False):
    """A record with every field that the reports name."""

    findings: list[Said]
