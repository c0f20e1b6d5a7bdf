"""The types of a record's parts. They are JSON: `record_schema` checks their form when a record is read.

A key may be missing: a record is of one part more or less, and older versions wrote fewer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict

from ..audit.traces.trace_types import PlaceJson, TracesJson

if TYPE_CHECKING:
    from ..audit.certification.blind_spot import BlindSpotJson, Reason
    from ..audit.certification.evidence import EvidenceJson
    from ..audit.certification.verdict import SearchedJson
    from ..audit.certification.witness import ShrunkJson
    from ..audit.play.pairs import PairJson
    from ..audit.regret.measurement import RegretJson
    from ..audit.statistics.certificates import TranslationJson
    from ..audit.statistics.events import CountsJson
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
    # Of a finding: its claim (`identity.mark`), and the claim's name where the target has several.
    claim: str
    label: str
    fails: bool  # where its kind alone does not fail a run


class EventRecord(TypedDict, total=False):
    """The event that was certified."""

    lower: float | None
    upper: float | None
    share: float
    function: dict[str, object]


class Quotation(TypedDict):
    """The words of a paper."""

    text: str
    where: str


class HolmRecord(TypedDict):
    """At what level Holm's procedure falsified a claim."""

    p_value: float
    level: float


class BeforeRecord(TypedDict, total=False):
    """What a baseline says of a claim, and what came of counting its event again."""

    epsilon_lower: float
    lower: float | None
    measure: MeasureJson
    p_value: float | None
    not_compared: str | None
    counts: CountsJson
    counts_before: CountsJson


class MissingJson(TypedDict):
    """What a verdict goes without, as a trace or a figure, and why."""

    what: str
    reason: str


class ClaimRecord(TracesJson, total=False):
    """One audited claim."""

    name: str
    claimed: ClaimedJson
    verdict: str
    expected: str | None
    holm: HolmRecord
    # The game.
    calibration: str | None
    surface: str
    neighbours: str
    relation: str | None
    losses: str
    rounds: int | None
    arms: int | None
    mechanism: bool
    parameters: dict[str, object]
    pair: PairJson
    pair_given: bool
    inputs: dict[str, object] | None
    bits: bool
    # What was certified.
    measure: MeasureJson | None
    lower: float | None
    epsilon_lower: float
    translation: TranslationJson | None
    confidence: float
    p_value: float | None
    method: str
    counts: CountsJson
    event: EventRecord | None
    event_in_words: str | None
    two_interval_bound: float | None
    attack: str
    attack_exact: bool
    attack_reads: str
    frozen: dict[str, object]
    evidence: EvidenceJson | None
    baseline: BeforeRecord | float | None
    # What is exact on the audited pair.
    exact_level: float | None
    exact_mu: float | None
    exact_rho: float | None
    exact_epsilon: float | None
    exact_infinite: bool
    # What could have been seen.
    detectable_epsilon: float | None
    blind_spot: BlindSpotJson | None
    reason: Reason | None
    untested: bool
    alike: bool
    paired_runs: int | None
    unread_bits: bool
    untested_allowed: bool
    # What its verdict goes without.
    missing: list[MissingJson]
    # How it was audited.
    runs: int | None
    budget: int
    pilot_runs: int | None
    stop: str
    seed: int
    engine: str
    seconds: float | None
    platform_dependent: bool
    replay: str
    replayable: bool
    outputs_digest: str | None
    searched: SearchedJson | None
    smallest_inputs: ShrunkJson | None
    shrunk: ShrunkJson | None
    # Whose claim it is.
    source: str
    standing: str | None
    published: bool
    quotation: Quotation | None
    false: str | None
    answer: str | None
    repair: str | None
    note: str
    where: PlaceJson | None


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
    headline: dict[str, int]
    processor: dict[str, object]
    claims: list[ClaimRecord]
    regret: list[RegretJson]
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


class SmokeRecord(TypedDict, total=False):
    """What `overclaim smoke` prints: the audit of a single run."""

    name: str
    claimed: ClaimedJson
    verdict: str
    reason: Reason | None
    epsilon_lower: float
    confidence: float
    rounds: int
    right: int
    guesses: int
    canaries: int
    seed: int
    p_value: float
