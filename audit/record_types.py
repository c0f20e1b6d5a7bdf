"""The record: what it holds, declared once. The types say what readers rely on, and `reports.record_schema` checks it.

A key may be missing, unless it is `Needed`: a record is of one part more or less, and older versions wrote fewer.
Fields may be added, and are never renamed. What is not declared passes.
"""

from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    Final,
    Literal,
    NamedTuple,
    Required,
    TypedDict,
    TypeVar,
)

from msgspec import Meta

T = TypeVar("T")

#: JSON reads 1e999 as infinite.
Number = Annotated[float, Meta(ge=-1e300, le=1e300)]
Level = Annotated[float, Meta(ge=0, le=1e300)]
Factor = Annotated[float, Meta(ge=1, le=1e300)]
Share = Annotated[float, Meta(ge=0, le=1)]
Inside = Annotated[float, Meta(gt=0, lt=1)]
Count = Annotated[int, Meta(ge=0, le=2**53 - 1)]
Round = Annotated[int, Meta(ge=1, le=2**53 - 1)]
Ends = Annotated[list[Number], Meta(min_length=2, max_length=2)]
Levels = Annotated[list[Level], Meta(min_length=2, max_length=2)]
Coins = Annotated[str, Meta(pattern="^([0-9a-f]{2})*$")]

if TYPE_CHECKING:
    # Readers fill the one and rely on the other; writers put a record together of parts.
    Maybe = Annotated[T, None]
    Needed = Annotated[T, None]
    Verdict = str  # a reader may say BYPASS
else:
    Verdict = Literal["FALSIFIED", "SURVIVED", "UNDERPOWERED"]

    class Maybe:
        """A field that may be null, where readers take its default."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Return the type, or null."""
            return kind | None

    class Needed:
        """A field that no record lacks."""

        def __class_getitem__(cls, kind: Any) -> Any:
            """Return the type of a required field."""
            return Required[kind]


class Default(NamedTuple):
    """What a reader takes for a field that a record lacks, or has as null."""

    value: object


#: The two worlds.
SIDES: Final = ("left", "right")
#: Both errors of a trade-off, each with the ends of its interval.
ERRORS: Final = (
    *("false_positive", "false_positive_low", "false_positive_high"),
    *("false_negative", "false_negative_low", "false_negative_high"),
)
#: How scores of canaries came to be: each from a training of its own, or many from one training.
Design = Literal["independent", "one-run"]
#: Why a verdict is UNDERPOWERED.
Reason = Literal[
    "too few runs",
    "no difference seen",
    "low power",
    "power not measured",
    "rare difference",
    "hidden by the exact law",
]
#: Whose claim it is: the catalogue's words, and the word of libraries.
Standing = Literal["theorem", "proof", "computed", "reading", "variant", "control", "documented"]
#: The verdict that is expected.
Expected = Literal["falsified", "survived"]
#: What a trace comes to.
TraceResult = Literal["BOUNDED", "NOT BOUNDED", "BYPASS", "NOT TRACED"]


# What is claimed.
class ClaimedJson(TypedDict, total=False):
    """What is claimed as an epsilon at a delta."""

    epsilon: Needed[Level]
    delta: Maybe[Share]


class MeasureJson(TypedDict, total=False):
    """A measure: its kind, and what that is stated by."""

    kind: Maybe[str]
    epsilon: Level
    delta: Level
    mu: Level
    rho: Level
    order: Level
    points: list[Levels]


class Quotation(TypedDict):
    """The words of a paper."""

    text: str
    where: str


# What was counted and certified.
class CountsJson(TypedDict, total=False):
    """Counts with the guesses that they come to."""

    runs: Count
    runs_left: Count
    left_upper: Count
    right_upper: Count
    left_lower: Count
    right_lower: Count
    right: Count
    guesses: Count
    tally: list[Count]


class BetsJson(TypedDict):
    """The bets of two samples."""

    first: list[Number]
    second: list[Number]
    weights: list[Number]


class FunctionJson(TypedDict):
    """A step function of the score; None is an infinite edge."""

    edges: list[Number | None]
    values: list[Number]
    order: Number
    towards: str
    bets: BetsJson
    runs: Count


class EventRecord(TypedDict, total=False):
    """The event that was certified."""

    lower: Number | None
    upper: Number | None
    share: Inside
    function: FunctionJson


class TranslationJson(TypedDict, total=False):
    """What one region of an event's two probabilities says in all measures."""

    alpha: Maybe[Number]
    named: str
    p_lower: Number
    q_upper: Number
    epsilon: Needed[list[Levels]]
    delta: Needed[Maybe[Level]]
    mu: Needed[Maybe[Level]]
    rho: Needed[Maybe[Level]]


class HolmRecord(TypedDict):
    """At what level Holm's procedure falsified a claim."""

    p_value: Share
    level: Share


class FrozenJson(TypedDict, total=False):
    """The event as later versions of the target are counted on it."""

    kind: Needed[str]
    share: Inside
    counts: CountsJson
    reason: str


class RocJson(TypedDict):
    """A ROC curve: how many canaries of each kind are above ever lower thresholds."""

    inserted: list[Count]
    held_out: list[Count]


class ScoresJson(TypedDict, total=False):
    """Scores of canaries."""

    canaries: Needed[Count]
    inserted: Needed[Count]
    trainings: Needed[Count]
    assumes: Needed[list[str]]
    coins: Coins | None
    digest: str
    roc: Needed[RocJson]
    needed: Count | None
    limit: str
    reversed: bool
    halves: bool


# What the figures show.
class TradeoffJson(TypedDict, total=False):
    """Both errors of guessing the world at each threshold, with their intervals."""

    threshold: list[float | None]
    false_positive: Needed[list[Share]]
    false_positive_low: Needed[list[Share]]
    false_positive_high: Needed[list[Share]]
    false_negative: Needed[list[Share]]
    false_negative_low: Needed[list[Share]]
    false_negative_high: Needed[list[Share]]


class ExactProfileJson(TypedDict):
    """The exact delta and epsilon."""

    delta: list[Maybe[Number]]
    epsilon: list[Number | None]


class ProfileJson(TypedDict, total=False):
    """The delta that is needed at each epsilon."""

    epsilon: Needed[list[Number]]
    estimate: Needed[list[Number | None]]
    lower: Needed[list[Number | None]]
    exact: Maybe[ExactProfileJson]


class HistogramJson(TypedDict, total=False):
    """Counts of the score by world, at each value or in bins; and how often it was -inf and inf."""

    values: list[Number]
    edges: list[Number]
    left: Needed[list[Count]]
    right: Needed[list[Count]]
    left_infinite: Needed[list[Count]]
    right_infinite: Needed[list[Count]]


class ByRoundJson(TypedDict, total=False):
    """Epsilon of the first rounds alone."""

    kind: str
    rounds: Needed[list[Round]]
    epsilon: Needed[list[Number | None]]


class GrowthJson(TypedDict, total=False):
    """The bound of each prefix of the runs."""

    runs: Needed[list[Round]]
    bound: Needed[list[Number | None]]
    source: str
    decides: Round | None


class SequenceJson(TypedDict):
    """A sequence of arms that the event names, with its probability in both worlds."""

    arms: list[Any]
    says: str
    left: Share
    right: Share


class EvidenceJson(TypedDict, total=False):
    """What the figures of a claim show."""

    alpha: Inside
    runs: dict[str, int]
    tradeoff: Maybe[TradeoffJson]
    profile: Maybe[ProfileJson]
    scores: Maybe[HistogramJson]
    by_round: Maybe[ByRoundJson]
    telling: Maybe[list[SequenceJson]]
    growth: Maybe[GrowthJson]


# On what it was audited, and what that can show.
class PairJson(TypedDict, total=False):
    """Two worlds, losses or inputs, and the rounds in which they differ, from 1.

    The first of them, and all where several may differ. Inputs are whatever JSON has.
    """

    round: Maybe[Round]
    rounds: list[Round]
    left: Any
    right: Any


class OneSidedJson(TypedDict):
    """A pair on which one side alone raises."""

    left: Any
    right: Any
    left_raised: Count
    right_raised: Count
    runs: Count
    said: str


class SearchedJson(TypedDict, total=False):
    """How inputs were searched."""

    tried: Count
    refused: Count
    slow: Count
    reason: str | None
    one_sided: Maybe[OneSidedJson]


class CertificateJson(TypedDict, total=False):
    """What was certified of a shrunk witness."""

    epsilon_lower: Number
    claimed: Number
    seed: int
    runs: Maybe[Count]
    confidence: Inside
    lower: Maybe[Level]
    measure: Maybe[MeasureJson]


class ShrunkJson(CertificateJson, total=False):
    """A shrunk witness: a pair of losses, or the inputs of a mechanism."""

    rounds: Count
    arms: Count | None
    pair: Maybe[PairJson]
    fresh: bool
    replay: str


class OtherRelationJson(TypedDict):
    """What an audit of a falsified claim found under a weaker relation, where it found no violation."""

    neighbours: str
    lower: Number
    runs: Count


class BeyondLimitsJson(TypedDict):
    """What an audit with inputs beyond the limits of their schema found, where the claim is not false within them."""

    pair: PairJson
    lower: Number
    runs: Count


class SiteJson(TypedDict):
    """A fault at one call site, and whether the audit caught it."""

    kind: str
    place: str
    caught: bool


class RareJson(TypedDict):
    """A rare difference: about how often the output of one input alone happens, where, and what certifies it."""

    probability: Share
    place: str
    runs: Count | None
    input: Literal["left", "right"]


class BlindSpotJson(TypedDict, total=False):
    """A blind spot."""

    factor: Needed[Factor | None]
    missed: Factor | None
    tried: Factor | None
    bounds: Maybe[list[Ends]]
    runs: Count | None
    alpha: Maybe[Inside]
    parameter: str | None
    true_to: Factor | None
    false_at: Factor | None
    kind: str | None
    sites: Maybe[list[SiteJson]]
    limit: Factor | None


# What traces show.
class PlaceJson(TypedDict):
    """Where code is written."""

    file: str
    line: Round


class LeakJson(TypedDict, total=False):
    """What differs although all noise is the same: a bypass, or where the trace has lost track."""

    text: Needed[str]
    what: str
    round: Count
    bypass: bool
    finding: str
    seen: str
    hint: str
    place: PlaceJson | None
    lost: PlaceJson | None


class CauseJson(TypedDict, total=False):
    """Why a claim is false."""

    text: Needed[str]
    kind: Needed[Literal["leak", "calls", "law"]]
    place: PlaceJson | None
    call: Round | None
    calls: Round | None
    differs: Number | None
    calibrated_for: Number | None


class TracesJson(TypedDict, total=False):
    """Bounds from above, the leak and the cause; why there are none, and why one was rejected."""

    epsilon_upper: Annotated[Number | None, Default(None)]
    epsilon_upper_pair: Number | None
    upper: Number | None
    upper_scope: Literal["pair", "claim"] | None
    upper_how: Annotated[Literal["maximised", "bounded", "sampled"] | None, Default(None)]
    upper_rests_on: list[str] | None
    upper_rejected: Maybe[str]
    leak: LeakJson | None
    cause: CauseJson | None
    untraced: str | None
    trace_result: Maybe[TraceResult]
    within_claim: Maybe[bool]


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


# A claim, a measurement of regret, a run.
class Said(TypedDict, total=False):
    """What is said of a claim by its name: an error, a finding of a baseline, a library that is not installed."""

    name: Needed[str]
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


class MissingJson(TypedDict):
    """What a verdict goes without, as a trace or a figure, and why."""

    what: str
    reason: str


class AcceptedRecord(TypedDict):
    """The event by which later changes are compared with an accepted claim, and what it showed then."""

    frozen: FrozenJson
    pair: PairJson
    method: str
    counts: CountsJson


class BeforeRecord(TypedDict, total=False):
    """What a baseline says of a claim, and what the evidence over the changes since decides."""

    epsilon_lower: Maybe[Number]
    lower: Number | None
    measure: Maybe[MeasureJson]
    # Of scores: of "they tell no more than they did".
    p_value: Number | None
    # Of what is counted: log10 of the evidence, from where it is red, and what it decides.
    decision: Maybe[str]
    evidence: Number | None
    red_from: Number | None
    batches: Maybe[Count]
    more_runs: Maybe[Count]
    exceeded: Maybe[bool]


class ClaimRecord(TracesJson, total=False):
    """One audited claim, with the defaults that readers take where a record lacks a field."""

    name: Needed[str]
    claimed: Needed[ClaimedJson]
    verdict: Needed[Verdict]
    expected: Annotated[Expected | None, Default(None)]
    holm: Maybe[HolmRecord]
    # The game.
    calibration: Annotated[str | None, Default(None)]
    surface: Annotated[Maybe[str], Default("actions")]
    raising: Annotated[Maybe[Literal["error", "outcome"]], Default("error")]
    neighbours: Annotated[Maybe[str], Default("replace")]
    relation: str | None
    losses: Annotated[Maybe[str], Default("")]
    rounds: Annotated[Count | None, Default(None)]
    arms: Count | None
    mechanism: Maybe[bool]
    parameters: Maybe[dict[str, Any]]
    pair: Maybe[PairJson]
    pair_given: Maybe[bool]
    inputs: dict[str, Any] | None
    bits: Maybe[bool]
    reseed: Maybe[bool]
    # What was certified.
    measure: Annotated[MeasureJson | None, Default(None)]
    lower: Annotated[Number | None, Default(None)]
    epsilon_lower: Annotated[Maybe[Number], Default(0.0)]
    translation: Annotated[TranslationJson | None, Default(None)]
    confidence: Annotated[Maybe[Inside], Default(0.99)]
    p_value: Annotated[Share | None, Default(None)]
    method: Annotated[Maybe[str], Default("guess")]
    counts: Maybe[CountsJson]
    event: Annotated[EventRecord | None, Default(None)]
    event_in_words: str | None
    two_interval_bound: Annotated[Number | None, Default(None)]
    attack: Annotated[Maybe[str], Default("")]
    attack_exact: Maybe[bool]
    attack_reads: Maybe[str]
    frozen: Maybe[FrozenJson]
    question: Maybe[dict[str, Any]]
    accepted: Maybe[AcceptedRecord]
    evidence: Annotated[EvidenceJson | None, Default(None)]
    baseline: BeforeRecord | float | None
    # Of scores of canaries: how they came to be, and what they are.
    design: Annotated[Design | None, Default(None)]
    scores: Annotated[ScoresJson | None, Default(None)]
    # What is exact on the audited pair.
    exact_level: Annotated[Number | None, Default(None)]
    exact_mu: Number | None
    exact_rho: Number | None
    exact_epsilon: Annotated[Number | None, Default(None)]
    exact_infinite: Annotated[Maybe[bool], Default(False)]
    # What could have been seen.
    detectable_epsilon: Annotated[Number | None, Default(None)]
    blind_spot: Annotated[BlindSpotJson | None, Default(None)]
    required_power: Factor | None
    rare: Maybe[RareJson]
    reason: Annotated[Reason | None, Default(None)]
    untested: Annotated[Maybe[bool], Default(False)]
    alike: Maybe[bool]
    paired_runs: Count | None
    unread_bits: Maybe[bool]
    noise_set_by: Maybe[list[str]]
    untested_allowed: Maybe[bool]
    remarks: Maybe[list[str]]
    # What its verdict goes without.
    missing: Maybe[list[MissingJson]]
    # How it was audited.
    runs: Annotated[Count | None, Default(None)]
    budget: Maybe[Count]
    pilot_runs: Annotated[Count | None, Default(None)]
    stop: Maybe[str]
    seed: Maybe[Count]
    engine: Maybe[str]
    seconds: Annotated[Number | None, Default(None)]
    platform_dependent: Maybe[bool]
    replay: Annotated[Maybe[str], Default("")]
    replayable: Annotated[Maybe[bool], Default(True)]
    outputs_digest: str | None
    searched: SearchedJson | None
    smallest_inputs: ShrunkJson | None
    shrunk: ShrunkJson | None
    survives: Maybe[OtherRelationJson]
    beyond_limits: Maybe[BeyondLimitsJson]
    # Whose claim it is.
    source: Annotated[Maybe[str], Default("")]
    standing: Annotated[Standing | None, Default(None)]
    published: Annotated[Maybe[bool], Default(True)]
    quotation: Annotated[Quotation | None, Default(None)]
    false: Annotated[str | None, Default(None)]
    answer: Annotated[str | None, Default(None)]
    repair: Annotated[str | None, Default(None)]
    undisclosed: bool
    note: Annotated[Maybe[str], Default("")]
    where: PlaceJson | None
    claimed_in: Annotated[Maybe[str], Default("")]


class UnnoticedJson(TypedDict):
    """The regret with next to no noise."""

    epsilon: Number
    mean_regret: Number
    interval: Ends


class AdaptiveJson(TypedDict, total=False):
    """The regret against an adversary that adapts."""

    adversary: str
    mean_regret: Number
    interval: Ends


class RegretJson(TypedDict, total=False):
    """A measurement of regret."""

    name: Maybe[str]
    sequence: Maybe[str]
    source: str | None
    rounds: Count | None
    runs: Count | None
    mean_regret: Number | None
    interval: Ends | None
    interval_method: Maybe[str]
    confidence: float
    comparator: float
    largest: float | None
    expected_losses: Maybe[bool]
    bound: Number | None
    exponent: Number | None
    bound_slope: Number | None
    slope: Number | None
    slope_lower: Number | None
    slope_upper: Number | None
    horizons: Maybe[list[Count]]
    regrets: Maybe[list[Maybe[Number]]]
    binds_from: Count | None
    verdict: str | None
    bound_verdict: str | None
    growth_verdict: str | None
    growth_lower: Number | None
    growth_upper: Number | None
    by_sequence: Maybe[dict[str, Number]]
    found: list[Any] | None
    adaptive: Maybe[list[AdaptiveJson]]
    epsilons: Maybe[list[Number]]
    price: Maybe[list[Maybe[Number]]]
    price_intervals: Maybe[list[Ends]]
    unnoticed: UnnoticedJson | None
    replay: Maybe[str]
    command: str


class ProcessorJson(TypedDict, total=False):
    """What the last bits of floats depend on."""

    machine: str
    libc: str
    numpy: list[str]
    blas: list[str]


class AuditedJson(TypedDict, total=False):
    """What was audited; None where git does not tell."""

    commit: str | None
    clean: bool | None
    files: dict[str, str]
    versions: dict[str, str]


class BaselineRecord(TypedDict, total=False):
    """The comparison with a baseline."""

    file: str
    created: str | None
    digest: str
    test: str
    changes: Count
    torn: bool
    findings: Maybe[list[Said]]
    errors: list[Said]


class LedgerOfTests(TypedDict, total=False):
    """Every test that shared the report's alpha."""

    method: str
    planned: Count
    family_wise_error: float
    tests: list[dict[str, Any]]


class RunRecord(TypedDict, total=False):
    """The record of a run."""

    schema: int
    overclaim: Maybe[str]
    seed: Maybe[int]
    alpha: Inside
    created: Maybe[str]
    command: Maybe[str]
    folder: Maybe[str]
    status: Maybe[str]
    block: int
    versions: Maybe[dict[str, Any]]
    audited: AuditedJson | None
    protects: Maybe[str]
    headline: Maybe[dict[str, Count]]
    processor: Maybe[ProcessorJson]
    claims: Needed[list[ClaimRecord]]
    regret: Maybe[list[RegretJson]]
    regret_not_measured: Maybe[list[dict[str, str]]]
    utility: Maybe[list[dict[str, Any]]]
    errors: Maybe[list[Said]]
    skipped: Maybe[list[Said]]
    selftest: Maybe[list[dict[str, Any]]]
    ledger_of_tests: Maybe[LedgerOfTests]
    baseline: BaselineRecord | None


class LegibleRecord(RunRecord, total=False):
    """A record with every field that the reports name."""

    findings: list[Said]


def defaults_of(record_type: type) -> dict[str, Any]:
    """Return the defaults of a typed dictionary's fields that have one, by name."""
    facts = ((name, getattr(kind, "__metadata__", ())) for name, kind in record_type.__annotations__.items())
    return {name: fact.value for name, known in facts for fact in known if isinstance(fact, Default)}
