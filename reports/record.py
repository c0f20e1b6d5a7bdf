"""The record: the versioned JSON of a run. Everything a report shows comes from it alone."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from msgspec import to_builtins

from .. import __version__
from ..audit.execution.provenance import folder_in_tree, versions
from ..audit.plans.options import ALLOWED
from ..audit.plans.paths import check_output, named, read_text
from ..audit.plans.targets import source_place
from ..audit.play.json_text import parse_json
from ..audit.record_types import (
    ClaimRecord,
    Expected,
    FunctionJson,
    ProcessorJson,
    RegretJson,
    RunRecord,
    Said,
    Standing,
)
from ..audit.verdicts.verdict import Result, Verdict
from ..errors import hinted
from ..mechanisms.relations.relation import neighbours_words
from .extras import UNCOUNTED, Extras, facts_of, figures_of, traces_of
from .identity import parameter, question_of
from .sanitise import finite, json_text
from .score_record import of_scores, p_value_of
from .upper_words import kept_traces, least_binding

if TYPE_CHECKING:
    from ..audit.plans.tasks import Prepared, Task
    from ..audit.statistics.bounds.variational import StepFunction

SCHEMA = 1


def claim_record(
    prepared: Prepared, result: Result, *, with_evidence: bool = False, with_trace: bool = False, jobs: int = 1
) -> ClaimRecord:
    """Return the record of one audited claim, on request with the data of its figures, its frozen event, its traces.

    No choice behind it hangs on the last bits of a float, unless it is `platform_dependent`: then the floating-point
    arithmetic of the machine is what was attacked.
    """
    task, extras = prepared.task, Extras(list(result.missing))
    traced, figured = (flag and result.canaries is None for flag in (with_trace, with_evidence))
    traces = (extras.written("trace", lambda: traces_of(prepared, result)) or {}) if traced else {}
    promise = promised(result)
    traces = kept_traces(promise, traces)
    upper = least_binding({**promise, **traces}, on_pair=result.pair_given)
    result = replace(result, upper=upper)
    exact, exact_fields = facts_of(prepared, result, extras, figures=figured)
    record: ClaimRecord = {
        **game_of(prepared, result),
        **result_fields(result),
        **exact_fields,
        "expected": cast(Expected, task.expected),
        **asked(task),
        "engine": "numpy",
        "budget": task.budget.runs,
        "platform_dependent": task.bits,
        "untested_allowed": task.untested == ALLOWED,
        **of_inputs(prepared, result),
        "seconds": round(result.seconds, 3),
        "source": prepared.claim.source,
        **standing_of(prepared),
        "where": source_place(prepared.target),
        "published": is_published(prepared),
        "note": task.note or note_of(prepared, result),
        "replay": task.command(),
        **traces,
        **of_scores(prepared, result),
    }
    if task.input_schema is not None:
        from .audits_beside import audits_beside

        record |= extras.get("audit of other inputs", lambda: audits_beside(prepared, result, jobs)) or {}
    record["question"] = question_of(task, record)
    return extras.noted(record | (figures_of(prepared, result, exact, jobs, extras) if figured else {}))


def game_of(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what is played: the target and its game."""
    return {
        "name": prepared.task.target,
        "calibration": prepared.setting.calibration if prepared.setting else None,
        "surface": result.claim.surface,
        **relations_of(prepared, result),
        "losses": result.claim.losses,
        "rounds": prepared.rounds,
        "arms": getattr(prepared.target, "arms", None),
        "mechanism": prepared.is_mechanism,
        "parameters": {name: parameter(value) for name, value in prepared.task.named_parameters().items()},
    }


def is_published(prepared: Prepared) -> bool:
    """Return whether a claim is printed in a paper."""
    if prepared.case is None:
        return False
    from ..learners.entry import PUBLISHED

    return prepared.case.standing in PUBLISHED


def result_fields(result: Result) -> ClaimRecord:
    """Return what a result tells by itself: its verdict and power, the attack, and the event with its counts."""
    certificate = result.certificate
    return {
        **promised(result),
        "verdict": result.verdict.value,
        "reason": result.reason,
        "method": certificate.method,
        **attack_facts(result),
        "confidence": rounded(result.confidence),
        "p_value": p_value_of(result),
        "runs": result.runs,
        "pilot_runs": result.pilot,
        "detectable_epsilon": finite(result.detectable_epsilon),
        "blind_spot": None if result.blind_spot is None else result.blind_spot.to_json(),
        "required_power": result.power,
        **({} if result.rare is None else {"rare": result.rare.to_json()}),
        "untested": result.untested,
        **counted(result),
        "event_in_words": result.event_in_words or None,
        "two_interval_bound": None if certificate.method in UNCOUNTED else certificate.two_interval_bound,
        "pair": result.pair.to_json(),
        "seed": result.seed,
    }


def relations_of(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return which worlds are neighbours: by the claim, by what was asked of searched inputs, or by the entry.

    In words too, where a relation was asked for. And what an exception is, if it is an outcome.
    """
    task, stated_relation = prepared.task, result.claim.neighbours
    of_data = task.input_schema is not None or prepared.is_mechanism
    relation = prepared.relation or (task.relation if of_data else stated_relation)
    raising: ClaimRecord = {} if result.claim.raising == "error" else {"raising": "outcome"}
    text = neighbours_words(relation, data=True) if prepared.is_mechanism else neighbours_words(stated_relation)
    is_shown = not prepared.is_mechanism or bool(prepared.relation or task.neighbours or task.input_schema is not None)
    return {"neighbours": relation, "relation": text if is_shown else None, **raising}


def of_inputs(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what was asked of inputs and of the noise, what their search found, and whether a seed replays it."""
    task = prepared.task
    schema = None
    if task.input_schema is not None:
        from ..audit.spaces.files import read_schema

        schema = read_schema(task.input_schema)
    return {
        "inputs": None if schema is None else {"schema": schema, "relation": task.relation},
        "searched": None if result.searched is None else result.searched.facts(),
        "replayable": not task.os_random,
        "outputs_digest": result.outputs_digest,
        "noise_set_by": [*prepared.noise_set_by],
        "unread_bits": prepared.is_mechanism and result.floats and not task.bits,
    }


def promised(result: Result) -> ClaimRecord:
    """Return what is claimed and what was certified, as an epsilon and in the claim's own measure."""
    claim = result.claim
    return {
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "epsilon_lower": result.epsilon_lower,
        "measure": claim.measure.to_json(),
        "lower": result.lower,
    }


def attack_facts(result: Result) -> ClaimRecord:
    """Return the attack, whether its score is the exact log-likelihood ratio, and of what; and what it saw."""
    attack = result.scorer
    remarks: ClaimRecord = {"remarks": [*result.remarks]} if result.remarks else {}
    return {
        "attack": result.attack,
        "attack_exact": attack.exact,
        "attack_reads": attack.wording if attack.exact else "",
        "alike": result.alike and not result.unseen,
        "paired_runs": result.paired,
        **remarks,
    }


def asked(task: Task) -> ClaimRecord:
    """Return how an audit was asked for, beside its claim and budget."""
    has_inputs = task.pair is not None or bool(task.inputs())
    reseeded: ClaimRecord = {"reseed": True} if task.reseed else {}
    return {"stop": task.budget.stop, "bits": task.bits, "pair_given": has_inputs, **reseeded}


def counted(result: Result) -> ClaimRecord:
    """Return the event and its counts."""
    event, counts = result.event, result.certificate.counts
    return {
        "counts": counts.to_json(),
        "event": {
            "lower": finite(event.lower),
            "upper": finite(event.upper),
            "share": event.share,
            **({} if event.function is None else {"function": finite_function(event.function)}),
        },
    }


def finite_function(function: StepFunction) -> FunctionJson:
    """Return a function of a score as the record has it: an infinite threshold has no number in JSON."""
    return cast(FunctionJson, to_builtins(function) | {"edges": [finite(edge) for edge in function.edges]})


def note_of(prepared: Prepared, result: Result) -> str:
    """Return what the catalogue remarks on a case; of a game that it has no case of, whose claim is called false."""
    if prepared.case is not None:
        from ..mechanisms.library_entry import LibraryCase

        return "" if isinstance(prepared.case, LibraryCase) else prepared.case.note
    source = prepared.claim.source
    if result.verdict is not Verdict.FALSIFIED or prepared.setting is None or not source:
        return ""
    if source.startswith("none: "):
        return f"nobody's claim: {source.removeprefix('none: ')}"
    return f"the catalogue has no case of this game: we have not read whether {source} claims it"


def standing_of(prepared: Prepared) -> ClaimRecord:
    """Return whose claim it is, and the words that it audits; None for each where the catalogue has no such case."""
    case = prepared.case
    statement = case.statement if case else None
    return {
        "standing": cast(Standing, case.standing) if case else None,
        "quotation": {"text": statement.text, "where": statement.where} if statement else None,
        "false": (statement.false if statement else "") or None,
        "answer": (statement.answer if statement else "") or None,
        "repair": (statement.repair if statement else "") or None,
        **({"undisclosed": True} if statement and statement.undisclosed else {}),
    }


def rounded(probability: float) -> float:
    """Return a probability without the dust of its arithmetic, inside (0, 1) still."""
    short = round(probability, 12)
    return short if 0 < short < 1 else probability


def run_record(
    claims: Sequence[ClaimRecord],
    *,
    seed: int,
    alpha: float,
    command: str,
    errors: Sequence[Said] = (),
    regret: Sequence[RegretJson] = (),
    utility: Sequence[dict[str, object]] = (),
) -> RunRecord:
    """Return the record of a run.

    Parameters
    ----------
    regret : sequence of dict
        What `overclaim regret --json` prints, each with the `name` of its target.
    utility : sequence of dict
        Published statements about regret that do not hold: `paper`, `statement`, `truth`, `witness`.
    """
    from ..audit.execution.processor import processor
    from ..audit.play.transcripts import BLOCK
    from .headline import headline

    return {
        "schema": SCHEMA,
        "overclaim": __version__,
        "seed": seed,
        "alpha": rounded(alpha),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "folder": folder_in_tree(),
        "block": BLOCK,
        "versions": versions(),
        "headline": headline(claims),
        "processor": cast(ProcessorJson, processor()),
        "claims": list(claims),
        "regret": list(regret),
        "utility": list(utility),
        "errors": list(errors),
    }


def read_record(path: Path) -> RunRecord:
    """Read a record.

    Raises
    ------
    ValueError
        If the file cannot be read, is no JSON, or is no record of a schema that this version knows.
    """
    from .record_schema import fault

    text = read_text(path, "record")
    try:
        data = parse_json(text, _no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("claims"), list):
        raise ValueError(f'{str(path)!r} is no record: it must be an object with a list of "claims"')
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{str(path)!r} has schema {data.get('schema')!r}, this version reads {SCHEMA}")
    if str(data.get("overclaim")).startswith("0.1."):
        old = f"{str(path)!r} is of version {data['overclaim']}, and this version reads records of 0.2.0 and later"
        raise hinted(ValueError(old), "audit it again")
    misfit = fault(data)
    if misfit is not None:
        raise ValueError(f"{str(path)!r} is no record: {misfit}")
    return cast(RunRecord, data)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is no number")


def write_atomically(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises
    ------
    ValueError
        If the file cannot be written there.
    """
    from ..audit.plans.lock import alone

    check_output(path)
    with named("cannot write", path):
        final = Path(os.path.realpath(path))  # a link stays a link
        final.parent.mkdir(parents=True, exist_ok=True)
        # A fixed name: what a killed process leaves, the next one replaces. Nobody's link is followed. And a short
        # one, for names that are as long as the system allows.
        short = final.name if len(final.name) <= 40 else hashlib.sha256(os.fsencode(final.name)).hexdigest()[:40]
        temporary = final.with_name(f".{short}.new")
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
        with alone(final.with_name(f".{short}.lock")):  # another process would write into our unfinished file
            try:
                with open(os.open(temporary, flags, 0o666), "w", encoding="utf-8") as file:
                    file.write(text)
                os.replace(temporary, final)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise


def to_text(record: Mapping[str, object], *, sort_keys: bool = False) -> str:
    """Return the record as JSON text."""
    return json_text(record, indent=1, sort_keys=sort_keys) + "\n"
