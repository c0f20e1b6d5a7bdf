"""The record: the versioned JSON of a run. Everything a report shows comes from it alone."""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

from .. import __version__
from ..audit.attacks.rules import NotFrozenError
from ..audit.certification.evidence import PROFILE_DELTAS, deciding_runs, evidence
from ..audit.certification.frozen import freeze
from ..audit.certification.verdict import Result, Verdict
from ..audit.inputs.files import read_schema
from ..audit.inputs.json_text import parse_json
from ..audit.laws.exact import NotExactError, exact_epsilon
from ..audit.laws.exact_levels import exact_level, gaussian_mu_of
from ..audit.plans.lock import alone
from ..audit.plans.paths import check_output, named, read_text
from ..audit.plans.plan_schema import ALLOWED
from ..audit.plans.shrink import smallest_inputs
from ..audit.plans.targets import source_place
from ..audit.plans.tasks import Prepared, Task
from ..audit.play.pairs import Pair
from ..audit.play.processor import processor
from ..audit.play.provenance import folder_in_tree, versions
from ..audit.play.transcripts import BLOCK
from ..audit.statistics.bounds.variational import StepFunction
from ..audit.statistics.certificates import translation
from ..audit.statistics.multiplicity import p_value
from ..audit.traces.summary import traced
from ..learners.catalogue.statements import PUBLISHED
from ..mechanisms.claim import neighbours_words
from ..mechanisms.libraries.entry import LibraryCase
from .headline import headline
from .identity import parameter
from .record_schema import fault
from .record_types import ClaimRecord, RunRecord, Said
from .sanitise import json_text

if TYPE_CHECKING:
    from ..audit.certification.evidence import EvidenceJson
    from ..audit.regret.measurement import RegretJson

SCHEMA = 1


def claim_record(
    prepared: Prepared, result: Result, *, with_evidence: bool = False, with_trace: bool = False, jobs: int = 1
) -> ClaimRecord:
    """Return the record of one audited claim, on request with the data of its figures, its frozen event, its traces.

    No choice behind it hangs on the last bits of a float, unless it is `platform_dependent`: then the floating-point
    arithmetic of the machine is what was attacked.
    """
    task, claim, certificate = prepared.task, result.claim, result.certificate
    exact = exact_epsilons(prepared, result, (claim.delta, *(PROFILE_DELTAS if with_evidence else ())))
    record: ClaimRecord = {
        "name": task.target,
        "calibration": prepared.setting.calibration if prepared.setting else None,
        "surface": claim.surface,
        **relations_of(prepared, result),
        "losses": claim.losses,
        "rounds": prepared.rounds,
        "arms": getattr(prepared.target, "arms", None),
        "mechanism": prepared.is_mechanism,
        "parameters": {name: parameter(value) for name, value in task.parameters.items()},
        **promised(result),
        **exact_levels(prepared, result),
        **exact_facts(exact.get(claim.delta)),
        "verdict": result.verdict.value,
        "expected": task.expected,
        "method": certificate.method,
        **attack_facts(result),
        "confidence": rounded(result.confidence),
        "p_value": p_value(claim, result.event, certificate),
        **asked(task),
        "engine": result.engine,
        "runs": result.runs,
        "budget": task.budget.runs,
        "pilot_runs": result.pilot,
        "platform_dependent": task.bits,
        "detectable_epsilon": finite(result.detectable_epsilon),
        "blind_spot": result.blind_spot.to_json() if result.blind_spot is not None else None,
        "untested": result.verdict is Verdict.SURVIVED and result.untested,
        "untested_allowed": task.untested == ALLOWED,
        **counted(result),
        "pair": result.pair.to_json(),
        **of_inputs(prepared, result),
        "two_interval_bound": None if certificate.method == "anytime" else certificate.two_interval_bound,
        "seconds": round(result.seconds, 3),
        "source": prepared.claim.source,
        **standing_of(prepared),
        "where": source_place(prepared.target),
        "published": prepared.case is not None and prepared.case.standing in PUBLISHED,
        "note": task.note or note_of(prepared, result),
        "seed": result.seed,
        "replay": task.command(),
    }
    record |= traces_of(prepared, result) if with_trace else {}
    return record | (figures_of(prepared, result, exact, jobs) if with_evidence else {})


def relations_of(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return which worlds are neighbours: by the claim, by what was asked of searched inputs, or by the entry.

    Of a learner's rounds in words too: what is replaced.
    """
    task, own = prepared.task, result.claim.neighbours
    named = prepared.relation or (own if task.input_schema is None else task.neighbours)
    return {"neighbours": named, "relation": None if prepared.is_mechanism else neighbours_words(own)}


def figures_of(prepared: Prepared, result: Result, exact: dict[float, float], jobs: int) -> ClaimRecord:
    """Return the frozen event of a claim, and the data of its figures where it has any."""
    figures: ClaimRecord = {"frozen": frozen_event(prepared, result, jobs)}
    if not isinstance(result.pair, Pair):
        return figures
    return {**figures, "evidence": claim_evidence(prepared, result, exact)}


def traces_of(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what traces of the audited pair say: bounds from above, leaks, and the cause of what was falsified."""
    if prepared.of_sequences:
        return {"untraced": "a learner is traced on a pair of loss sequences, and this one was audited on rounds"}
    falsified = result.verdict.value == "FALSIFIED"
    traces = traced(prepared.played, result.pair, result.claim, falsified=falsified, seed=result.seed)
    return cast(ClaimRecord, traces)


def of_inputs(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what was asked of the search over inputs, and what it found; and whether the same seed gives the same."""
    task = prepared.task
    schema = None if task.input_schema is None else read_schema(task.input_schema)
    return {
        "inputs": None if schema is None else {"schema": schema, "relation": task.neighbours},
        "searched": None if result.searched is None else result.searched.facts(),
        "smallest_inputs": smallest_inputs(prepared, result),
        "replayable": not task.os_random,
        "outputs_digest": result.outputs_digest,
        "event_in_words": result.event_in_words or None,
        "unread_bits": prepared.is_mechanism and result.floats and not task.bits,
    }


def promised(result: Result) -> ClaimRecord:
    """Return what is claimed and what was certified, as an epsilon, in the claim's own measure and in all measures."""
    claim, certificate = result.claim, result.certificate
    # The intervals are of one event and a number of runs that were fixed before: an anytime audit has neither.
    fixed = certificate.method != "anytime"
    return {
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "epsilon_lower": result.epsilon_lower,
        "measure": claim.measure.to_json(),
        "lower": result.lower,
        "translation": translation(result.event, certificate.counts, alpha=certificate.alpha) if fixed else None,
    }


def frozen_event(prepared: Prepared, result: Result, jobs: int) -> dict[str, object]:
    """Return the event as data, with counts that a later run is compared with; or why there is none."""
    try:
        return freeze(prepared.played, result, budget=prepared.task.budget.runs, jobs=jobs).to_json()
    except NotFrozenError as error:
        return {"kind": "none", "reason": str(error)}


def attack_facts(result: Result) -> ClaimRecord:
    """Return the attack, whether its score is the exact log-likelihood ratio, and of what; and whether it saw any."""
    attack = result.scorer
    return {
        "attack": result.attack,
        "attack_exact": attack.exact,
        "attack_reads": attack.wording if attack.exact else "",
        "alike": result.alike and not result.unseen,
    }


def asked(task: Task) -> ClaimRecord:
    """Return how an audit was asked for, beside its claim and budget."""
    given = task.pair is not None or bool(task.inputs())
    return {"stop": task.budget.stop, "bits": task.bits, "pair_given": given}


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


def finite_function(function: StepFunction) -> dict[str, object]:
    """Return a function of a score as the record has it: an infinite threshold has no number in JSON."""
    data = function.to_json()
    return {**data, "edges": [finite(edge) for edge in data["edges"]]}


def claim_evidence(prepared: Prepared, result: Result, exact: dict[float, float]) -> EvidenceJson:
    """Return the data of a claim's figures, with the exact values where they are known."""
    figures = evidence(prepared.target, result)
    true = exact.get(result.claim.delta, result.epsilon_lower)
    figures["growth"]["decides"] = deciding_runs(result.claim, true, result.certificate.alpha)
    if exact and "profile" in figures:
        known = [(delta, finite(exact[delta])) for delta in PROFILE_DELTAS]
        figures["profile"]["exact"] = {"delta": [d for d, _ in known], "epsilon": [e for _, e in known]}
    return figures


def note_of(prepared: Prepared, result: Result) -> str:
    """Return what the catalogue remarks on a case; of a game that it has no case of, whose claim is called false."""
    if prepared.case is not None:
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
    said = case.statement if case else None
    return {
        "standing": case.standing if case else None,
        "quotation": {"text": said.text, "where": said.where} if said else None,
        "false": (said.false if said else "") or None,
        "answer": (said.answer if said else "") or None,
        "repair": (said.repair if said else "") or None,
    }


def exact_facts(epsilon: float | None) -> ClaimRecord:
    """Return the exact epsilon of the audited pair, or that it is infinite: JSON has no number for that."""
    value = None if epsilon is None else finite(epsilon)
    return {"exact_epsilon": value, "exact_infinite": epsilon is not None and math.isinf(epsilon)}


def exact_levels(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what is exact on the audited pair beside epsilon: the level of another measure; mu and rho of a release.

    Of claims of an epsilon only a release with Gaussian noise has its mu and rho: they are in closed form.
    """
    measure, surface = result.claim.measure, result.claim.surface
    levels: ClaimRecord = {"exact_level": None, "exact_mu": None, "exact_rho": None}
    if not isinstance(result.pair, Pair):
        if not measure.is_epsilon and result.pair.shows_nothing(surface):
            levels["exact_level"] = 0.0
        return levels
    try:
        if not measure.is_epsilon:
            levels["exact_level"] = finite(exact_level(prepared.target, result.pair, measure, surface=surface))
        if (mu := gaussian_mu_of(prepared.target, result.pair, surface)) is not None:
            levels |= {"exact_mu": mu, "exact_rho": mu**2 / 2}
    except NotExactError:
        pass
    return levels


def exact_epsilons(prepared: Prepared, result: Result, deltas: Sequence[float]) -> dict[float, float]:
    """Return the exact epsilon on the audited pair at each delta; empty where no method covers it."""
    if not isinstance(result.pair, Pair):
        return dict.fromkeys(deltas, 0.0) if result.pair.shows_nothing(result.claim.surface) else {}
    try:
        return exact_epsilon(prepared.target, result.losses, surface=result.claim.surface, deltas=deltas)
    except NotExactError:
        return {}


def rounded(probability: float) -> float:
    """Return a probability without the dust of its arithmetic, inside (0, 1) still."""
    short = round(probability, 12)
    return short if 0 < short < 1 else probability


def finite(value: float) -> float | None:
    """Return the value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


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
    fast = any(claim.get("engine") == "numba" for claim in claims)
    return {
        "schema": SCHEMA,
        "overclaim": __version__,
        "seed": seed,
        "alpha": rounded(alpha),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "folder": folder_in_tree(),
        "block": BLOCK,
        "versions": versions(fast=fast),
        "headline": headline(claims),
        "processor": processor(),
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
    text = read_text(path, "record")
    try:
        data = parse_json(text, _no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{str(path)!r} is no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("claims"), list):
        raise ValueError(f'{str(path)!r} is no record: it must be an object with a list of "claims"')
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{str(path)!r} has schema {data.get('schema')!r}, this version reads {SCHEMA}")
    wrong = fault(data)
    if wrong is not None:
        raise ValueError(f"{str(path)!r} is no record: {wrong}")
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


def to_text(record: Mapping[str, object]) -> str:
    """Return the record as JSON text."""
    return json_text(record, indent=1) + "\n"
