"""Records as any report may show them: a record is data that others, or older versions, may have written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple, cast

from ..audit.record_types import (
    ClaimedJson,
    ClaimRecord,
    LegibleRecord,
    MeasureJson,
    PairJson,
    Reason,
    RegretJson,
    RunRecord,
    Said,
    defaults_of,
)
from ..audit.statistics import measure_words
from ..audit.statistics.canary_words import INDEPENDENT, METHOD
from ..audit.statistics.digits import at_least, at_most, confidence_text
from ..audit.verdicts import blind_spot
from .sanitise import visible

#: What a claim says where its record does not.
_DEFAULTS = defaults_of(ClaimRecord)
#: What fails a run of what is found against a baseline; other findings are remarks.
FAILING = (WORSE := "worse", "changed", "missing", "new")
#: What else did in records of before; they are read as they were.
_FAILED = ("regression", "weakened", "lost power")
#: Relations of data whose word says what they are.
_PLAIN_RELATIONS = ("replace", "add-remove")
#: The two kinds of canaries.
INCLUDED, HELD_OUT = "included", "held-out"
#: What stands before the command that audits a claim again: where its counts are replayed, and where they are not.
REPLAY_WORDS = ("replay", "again, not a replay")


def legible(record: RunRecord) -> LegibleRecord:
    """Return a record with nothing hidden in its strings, and with every field that the reports name."""
    defaults = {"alpha": 0.01, "created": "", "command": "-", "overclaim": "?", "seed": "?"}
    readable = cast(LegibleRecord, defaults | {k: v for k, v in visible(record).items() if v is not None})
    readable["claims"] = [*map(legible_claim, record["claims"])]
    readable["errors"] = [{"replay": "", **error} for error in readable.get("errors", ())]
    readable["skipped"] = readable.get("skipped", [])
    readable["findings"] = (readable.get("baseline") or {}).get("findings") or []
    return readable


def legible_claim(claim: ClaimRecord) -> ClaimRecord:
    """Return a claim with nothing hidden in its strings, and with every field that the reports name."""
    # What is written out in an input would be escaped again where that is shown as JSON.
    inputs = {"pair": claim.get("pair")} if is_mechanism(claim) else {}
    return filled(cast(ClaimRecord, {**visible(claim), **inputs}))


def missing_words(claim: ClaimRecord) -> list[str]:
    """Return what a verdict goes without, and why, line by line."""
    return [f"missing: {extra['what']}: {extra['reason']}" for extra in claim.get("missing") or ()]


def remark_lines(claim: ClaimRecord) -> list[str]:
    """Return what differs, whether noise is fixed, and on which inputs the target raised on one side alone."""
    return [*(claim.get("remarks") or ()), *one_sided_lines(claim)]


def one_sided_lines(claim: ClaimRecord) -> list[str]:
    """Return on which inputs the target raised on one side alone: no cause, as they are not those of the evidence."""
    if not (pair := (claim.get("searched") or {}).get("one_sided")):
        return []
    from ..audit.play.pair_text import beside  # it loads NumPy

    sides = zip((pair["left_raised"], pair["right_raised"]), beside(pair["left"], pair["right"]), strict=True)
    counts = ", in ".join(f"{count:,} of {pair['runs']:,} runs on {text}" for count, text in sides)
    return [f"raised on one side alone: {pair['said']}; in {counts}"]


def is_mechanism(claim: ClaimRecord) -> bool:
    """Tell whether a mechanism was audited, on two inputs: older records say so by having one round and no arms."""
    return bool(claim.get("mechanism", claim.get("arms") is None and claim.get("rounds") == 1))


def kind_words(claim: ClaimRecord) -> str:
    """Return what was audited that is no learner: a mechanism, or scores of canaries in their design."""
    if not claim.get("scores"):
        return "mechanism"
    return "canaries, a training each" if claim["design"] == INDEPENDENT else "canaries of one training"


def relation_words(claim: ClaimRecord) -> str:
    """Return which worlds are neighbours, where it is not that one round is replaced; nothing of two given inputs."""
    from ..mechanisms.claim import NEIGHBOURS  # not before a claim is shown: `--help` is instant

    neighbours = claim.get("neighbours")
    if is_mechanism(claim):
        # Of a library's claim it is part, and of one about inputs that were searched.
        is_shown = claim.get("inputs") or claim.get("standing") or claim.get("searched")
        default = f"{neighbours} neighbours" if is_shown and neighbours else ""
        return default if neighbours in _PLAIN_RELATIONS else str(claim.get("relation") or default)
    if neighbours in NEIGHBOURS:
        return "" if neighbours == "replace" else f"{neighbours} neighbours"
    return str(claim.get("relation") or "")


def with_relation(promise: str, claim: ClaimRecord) -> str:
    """Return what is promised, and to which neighbours where that is not the usual."""
    return ", ".join(filter(None, (promise, relation_words(claim))))


def rounds_words(rounds: Sequence[int]) -> str:
    """Return which rounds, from 1, in words: `round 2`, `rounds 2, 3 and 5`."""
    *first, last = map(str, rounds)
    return f"rounds {', '.join(first)} and {last}" if first else f"round {last}"


def is_untested(claim: ClaimRecord) -> bool:
    """Return whether an audit is UNDERPOWERED although its runs would do."""
    return bool(claim["verdict"] != "FALSIFIED" and claim.get("untested"))


def verdict_of(claim: ClaimRecord) -> str:
    """Return the verdict of a claim: that of its audit, or BYPASS where a trace shows a leak that it did not.

    With a baseline the evidence over changes decides whether a claim is false.
    """
    decision = decision_of(claim)
    if decision == "false":
        return "FALSIFIED"
    if (claim["verdict"] != "FALSIFIED" or decision) and (claim.get("leak") or {}).get("bypass"):
        return "BYPASS"
    if claim["verdict"] == "FALSIFIED" and decision:
        return "SURVIVED"
    return str(claim["verdict"])


def decision_of(claim: ClaimRecord) -> str:
    """Return what the evidence over changes decides of a claim that is not expected to be false: empty without any."""
    before = claim.get("baseline")
    applies = isinstance(before, dict) and due_verdict(claim) != "FALSIFIED"
    return str(before.get("decision") or "") if applies and isinstance(before, dict) else ""


def may_allow_bypass(claim: ClaimRecord) -> bool:
    """Tell whether what depends on the input without noise may be in the claim: it has a delta, or is a profile."""
    measure = measure_of(claim)
    return measure.get("kind") == "profile" or bool(measure.get("delta"))


def is_in_doubt(claim: ClaimRecord) -> bool:
    """Tell whether the evidence over the changes since the baseline is neither enough nor gone."""
    return decision_of(claim) == "in doubt"


def reason_of(claim: ClaimRecord) -> Reason | None:
    """Return why a claim is UNDERPOWERED; None for other verdicts."""
    return (claim.get("reason") or blind_spot.TOO_FEW) if verdict_of(claim) == "UNDERPOWERED" else None


def reason_text(claim: ClaimRecord) -> str:
    """Return that reason in the words of what was audited, canaries or runs; empty for other verdicts."""
    reason = str(reason_of(claim) or "")
    return reason.replace("runs", "canaries") if claim.get("scores") else reason


def is_accepted(claim: ClaimRecord) -> bool:
    """Return whether a claim is as expected although it is UNDERPOWERED: its plan allows that it is untested."""
    allowed = is_untested(claim) and bool(claim.get("untested_allowed")) and not claim.get("rare")
    return allowed and verdict_of(claim) == "UNDERPOWERED" and due_verdict(claim) == "SURVIVED"


def is_unexpected(claim: ClaimRecord) -> bool:
    """Return whether another verdict came than the one expected; without one, whether the claim is false or leaks."""
    verdict, expected = verdict_of(claim), due_verdict(claim)
    if is_accepted(claim) or (verdict == "BYPASS" and expected == "FALSIFIED"):
        return False
    return verdict != expected if claim.get("expected") else verdict in ("FALSIFIED", "BYPASS")


def due_verdict(claim: ClaimRecord) -> str:
    """Return the verdict that a claim ought to get: SURVIVED where nothing is said of it."""
    return (claim.get("expected") or "survived").upper()


def replay_word(claim: ClaimRecord) -> str:
    """Return what stands before a claim's command: it replays the counts, or audits again."""
    return REPLAY_WORDS[claim.get("replayable") is False]


def regret_replay(row: RegretJson) -> str:
    """Return the command of a measurement of regret behind what it does; nothing where there is none.

    What a search found is played alone then, and meets other random numbers than beside the listed sequences.
    """
    command = row.get("replay")
    return f"{REPLAY_WORDS['--sequence' in command]}: {command}" if command else ""


def reason_words(claim: ClaimRecord) -> str:
    """Return why a claim is UNDERPOWERED, its reason first; empty for other verdicts."""
    reason = reason_of(claim)
    if reason is None:
        return ""
    pair: PairJson = claim.get("pair") or {}
    left = pair.get("left")
    differ = pair.get("rounds", [pair.get("round")])
    before = claim.get("mechanism") or claim["surface"] == "publication"
    last = not before and isinstance(left, list) and differ == [len(left)]
    return blind_spot.reason_words(
        reason,
        measure_of(claim),
        claim.get("blind_spot"),
        in_last_losses=last,
        alike=bool(claim.get("alike")),
        unguessed=is_unguessed(claim),
        paired=claim.get("paired_runs"),
        exceeded=is_exceeded(claim),
        rare=claim.get("rare"),
        scores=claim.get("scores"),
    )


def is_unguessed(claim: ClaimRecord) -> bool:
    """Return whether the attack made no guess in the counted runs."""
    counts = claim.get("counts") or {}
    return counts.get("guesses") == 0 and not any(counts.get("tally") or ())


def answer_words(claim: ClaimRecord) -> str:
    """Return what line 1 says behind a claim whose bound is no answer; empty where it is one."""
    reason = reason_of(claim)
    if reason is not None:
        unit = "canaries" if claim.get("scores") else "runs"
        return blind_spot.answer_words(reason, measure_of(claim), claim.get("runs"), unit)
    return "" if lower(claim) > 0 or by_holm(claim) else blind_spot.NOTHING


def by_holm(claim: ClaimRecord) -> bool:
    """Tell whether Holm's procedure over the report falsified a claim that its own bound, at alpha / m, does not."""
    return bool(claim.get("holm"))


def measure_of(claim: ClaimRecord) -> MeasureJson:
    """Return the measure of a claim: of an epsilon at a delta as `claimed` says, which older records have too."""
    recorded: MeasureJson = claim.get("measure") or {}
    if recorded.get("kind") in (None, "approximate"):
        return cast("MeasureJson", {**claim["claimed"], "kind": "approximate"})
    return recorded


def level(claim: ClaimRecord) -> float:
    """Return what is claimed, in the unit of the claim's measure."""
    return measure_words.level_of(measure_of(claim))


def lower(claim: ClaimRecord) -> float:
    """Return what was certified, in that unit."""
    bound = None if measure_words.is_epsilon(measure_of(claim)) else claim.get("lower")
    return float((claim.get("epsilon_lower") if bound is None else bound) or 0.0)


def bound_text(bound: float, claimed: float) -> str:
    """Return a lower bound with two decimals, or as many as tell it from 0 and from a claim that it exceeds."""
    text = at_least(bound, ".2f", claimed)
    return at_least(bound, ".2g", claimed) if float(text) == 0 else text


def certified(claim: ClaimRecord) -> str:
    """Return what was certified as text: every output has the same digits."""
    return bound_text(lower(claim), level(claim))


def exact_level(claim: ClaimRecord) -> float | None:
    """Return the exact value on the audited pair, in that unit, if known; 0 where it is so but for rounding."""
    epsilon = claim.get("exact_epsilon") if measure_words.is_epsilon(measure_of(claim)) else None
    exact = claim.get("exact_level")
    value = epsilon if exact is None else exact
    return 0.0 if value is not None and round(value, 9) == 0 else value


def by_what_law(claim: ClaimRecord) -> str:
    """Return by whose law an exact value is one, in words: a target of the user's own may play by another."""
    return " by the law that it states" if ":" in claim["name"] else ""


def is_exceeded(claim: ClaimRecord) -> bool:
    """Tell whether the exact value on the audited pair is beyond the claim, by more than its law may be off."""
    infinite = claim.get("exact_infinite") and measure_words.is_epsilon(measure_of(claim))
    exact = math.inf if infinite else exact_level(claim)
    return exact is not None and blind_spot.is_beyond(exact, level(claim))


def is_violated(row: RegretJson) -> bool:
    """Tell whether a measurement of regret violates its bound or growth: that fails a run."""
    return row.get("verdict") == "VIOLATED"


def is_open(row: RegretJson) -> bool:
    """Tell whether a plan's own bound on regret was not decided, or nothing could exceed it: that is no green."""
    from ..audit.regret.verdicts import UNDECIDED, VACUOUS, YOURS  # not before a bound is shown: `--help` is instant

    return row.get("source") == YOURS and row.get("verdict") in (UNDECIDED, VACUOUS)


def failing_bounds(record: RunRecord) -> list[RegretJson]:
    """Return the measurements of regret whose bound is violated, or a plan's own and open."""
    return [row for row in record.get("regret") or () if is_violated(row) or is_open(row)]


def is_failing(finding: Said) -> bool:
    """Tell whether what was found against a baseline fails a run."""
    return finding["kind"] in (*FAILING, *_FAILED) or bool(finding.get("fails"))


def symbol(claim: ClaimRecord) -> str:
    """Return the symbol of that unit."""
    unit = measure_words.unit_of(measure_of(claim))
    return measure_words.SYMBOLS.get(unit, unit)


def bound_words(claim: ClaimRecord) -> str:
    """Return what was certified about a claim, with everything that its error depends on."""
    measure, bound = measure_of(claim), lower(claim)
    if bound <= 0 and not by_holm(claim):
        return blind_spot.NOTHING
    text = f"at least {measure_words.bound_words(measure, bound)} ({confidence_text(claim['confidence'])} confidence)"
    unit = measure_words.subject_of(measure)
    if not by_holm(claim):
        return f"{unit} is {text}"
    level_text, test = measure_words.bound_words(measure, level(claim)), claim["holm"]
    return (
        f"{unit} is above {level_text} by Holm's procedure over the report, p-value {at_most(test['p_value'], '.2g')} "
        f"at level {at_least(test['level'], '.2g')}; alone {text}"
    )


class ByWorld(NamedTuple):
    """How often a joint event happened in the world that it names, and in the other one."""

    name: str
    hits: int
    runs: int
    other: str
    misses: int
    other_runs: int


def named_world(claim: ClaimRecord) -> ByWorld | None:
    """Return what a joint event shows of each world.

    None in the guess game, where right and wrong guesses are what counts, and where a record does not say.
    """
    counts = claim.get("counts") or {}
    if claim.get("method") not in ("joint", METHOD) or "left_upper" not in counts or "runs_left" not in counts:
        return None
    left, right = counts["runs_left"], counts["runs"] - counts["runs_left"]
    if claim.get("scores"):
        return _named_kind(claim, left, right)
    if counts["left_lower"] + counts["right_lower"]:
        return ByWorld("right", counts["right_lower"], right, "left", counts["left_lower"], left)
    return ByWorld("left", counts["left_upper"], left, "right", counts["right_upper"], right)


def _named_kind(claim: ClaimRecord, inserted: int, held_out: int) -> ByWorld:
    """Return what the threshold on the scores of canaries shows of those of each kind."""
    counts = claim["counts"]
    if counts["left_lower"] + counts["right_lower"]:
        return ByWorld(HELD_OUT, counts["right_lower"], held_out, INCLUDED, counts["left_lower"], inserted)
    return ByWorld(INCLUDED, counts["left_upper"], inserted, HELD_OUT, counts["right_upper"], held_out)


def counted_words(claim: ClaimRecord) -> str:
    """Return the counts that a certificate rests on."""
    world, counts = named_world(claim), claim["counts"]
    if claim.get("method") == "variational" and counts.get("tally"):
        steps, left = len(counts["tally"]) // 2, counts["runs_left"]
        return f"a function of {steps} steps of the score, in {left:,} left and {counts['runs'] - left:,} right runs"
    if world is None:
        right, guesses = counts["right"], counts["guesses"]
        return f"{guesses:,} guesses in {counts['runs']:,} runs: {right:,} right, {guesses - right:,} wrong"
    name, hits, runs, other, misses, other_runs = world
    unit = "canaries" if claim.get("scores") else "runs"
    return f'"{name}" in {hits:,} of {runs:,} {name} {unit} and in {misses:,} of {other_runs:,} {other} {unit}'


def exact_words(claim: ClaimRecord, infinite: str = "inf") -> str:
    """Return the exact value with four digits, what infinity is called, or a dash where it is not known."""
    if claim.get("exact_infinite") and measure_words.is_epsilon(measure_of(claim)):
        return infinite
    value = exact_level(claim)
    return "-" if value is None else f"{value:.4g}"


def filled(claim: ClaimRecord) -> ClaimRecord:
    """Return a claim with every field that the reports name, and with the verdicts of this version."""
    claimed: ClaimedJson = {"epsilon": claim["claimed"]["epsilon"], "delta": claim["claimed"].get("delta") or 0.0}
    fields = {key: value for key, value in claim.items() if value is not None}
    completed = cast(ClaimRecord, {**_DEFAULTS, **fields, "claimed": claimed})
    return cast(ClaimRecord, {**completed, "verdict": verdict_of(completed), "reason": reason_of(completed)})
