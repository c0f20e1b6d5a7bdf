"""The extras of a claim's record: figures, traces, exact values, a shrunk witness. No fault of one costs a verdict."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar, cast

from ..audit.execution.progress import stage
from ..audit.play.data import DataPair
from ..audit.record_types import ClaimRecord, EvidenceJson, FrozenJson, MissingJson, ShrunkJson, TranslationJson
from ..audit.statistics.canary_words import METHOD
from ..learners.blame import MissingExtra, extra_or_reason
from .sanitise import finite, json_text

if TYPE_CHECKING:
    from ..audit.plans.tasks import Prepared
    from ..audit.verdicts.verdict import Result
    from ..audit.verdicts.witness import ShrunkWitness

#: Methods whose event is not counted in a number of runs that was fixed before.
UNCOUNTED = ("anytime", METHOD)
#: Where nothing is known to be exact.
NO_LEVELS: ClaimRecord = {"exact_level": None, "exact_mu": None, "exact_rho": None}
Extra = TypeVar("Extra")


@dataclass
class Extras:
    """What a record has beside its verdict: what cannot be computed, or not be written, is missing with its reason."""

    missing: list[MissingExtra]

    def get(self, name: str, make: Callable[[], Extra]) -> Extra | None:
        """Return an extra; None where it is missing."""
        with stage(f"computing the {name}"):
            extra, missing = extra_or_reason(name, make)
        self.missing += missing
        return extra

    def written(self, name: str, make: Callable[[], Extra]) -> Extra | None:
        """Return an extra that can be written as JSON; None where it is missing."""

        def made() -> Extra:
            extra = make()
            json_text(extra)
            return extra

        return self.get(name, made)

    def noted(self, record: ClaimRecord) -> ClaimRecord:
        """Return a record that says what is missing."""
        earlier, missing = (
            record.get("missing", []),
            [MissingJson(what=extra.what, reason=extra.reason) for extra in self.missing],
        )
        return {**record, "missing": [*earlier, *missing]} if missing else record


def with_shrunk(record: ClaimRecord, shrink: Callable[[], ShrunkWitness | None]) -> ClaimRecord:
    """Return a record with the shrunk witness of its claim, or why it is missing."""
    extras = Extras([])

    def shrunk() -> ShrunkJson | None:
        witness = shrink()
        return None if witness is None else witness.to_json()

    return extras.noted({**record, "shrunk": extras.written("shrunk witness", shrunk)})


def figures_of(
    prepared: Prepared, result: Result, exact: dict[float, float], jobs: int, extras: Extras
) -> ClaimRecord:
    """Return the frozen event of a claim, and the data of its figures where it has any."""
    frozen = extras.written("frozen event", lambda: cast(FrozenJson, frozen_event(prepared, result, jobs)))
    figures: ClaimRecord = {"frozen": frozen or {"kind": "none", "reason": extras.missing[-1].reason}}
    if result.canaries is not None or prepared.run_by_run or prepared.task.os_random:
        return figures
    return {**figures, "evidence": extras.written("figures", lambda: claim_evidence(prepared, result, exact))}


def traces_of(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what traces of the audited pair say: bounds from above, leaks, and the cause of what was falsified."""
    from ..audit.traces.summary import traced

    audited: Any = result.pair
    pair = audited
    if prepared.of_sequences:
        from ..audit.pipeline.given_rounds import pair_of

        pair = pair_of(audited.left, audited.right, result.claim, prepared.rounds)
    if pair is None:
        return {"untraced": "a learner is traced on a pair of loss sequences, and this one was audited on rounds"}
    falsified = result.verdict.value == "FALSIFIED"
    traces = traced(prepared.traced, pair, result.claim, falsified=falsified, seed=result.seed)
    return cast(ClaimRecord, traces)


def cause_of(target: object, result: Result) -> ClaimRecord:
    """Return what traces of a falsified pair say, of a target alone; nothing where rounds or scores were audited."""
    from ..audit.play.pairs import Pair
    from ..audit.traces.summary import traced
    from ..learners.scalar import as_learner

    pair = result.pair
    if isinstance(pair, Pair) and pair.arms is not None:
        target = as_learner(target, arms=pair.arms, rounds=pair.rounds)
    elif not isinstance(pair, DataPair) or result.canaries is not None:
        return {}
    return cast(ClaimRecord, traced(target, pair, result.claim, falsified=True, seed=result.seed))


def exact_facts(epsilon: float | None) -> ClaimRecord:
    """Return the exact epsilon of the audited pair, or that it is infinite: JSON has no number for that."""
    value = None if epsilon is None else finite(epsilon)
    return {"exact_epsilon": value, "exact_infinite": epsilon is not None and math.isinf(epsilon)}


def facts_of(
    prepared: Prepared, result: Result, extras: Extras, *, figures: bool
) -> tuple[dict[float, float], ClaimRecord]:
    """Return the exact epsilon at the claim's delta and at others, and the fields of what stands beside a verdict."""
    delta = result.claim.delta
    deltas: Sequence[float] = ()
    if figures:
        from ..audit.evidence.evidence import PROFILE_DELTAS

        deltas = PROFILE_DELTAS
    exact = extras.get("exact value", lambda: exact_epsilons(prepared, result, (delta, *deltas))) or {}
    return exact, {
        "translation": extras.written("event in all measures", lambda: translated(result)),
        **(extras.written("exact level", lambda: exact_levels(prepared, result)) or NO_LEVELS),
        **exact_facts(exact.get(delta)),
        "smallest_inputs": extras.written("shrunk inputs", lambda: shrunk_inputs(prepared, result)),
    }


def shrunk_inputs(prepared: Prepared, result: Result) -> ShrunkJson | None:
    """Return the smallest inputs that an audit certified; None where it did not shrink any."""
    if result.shrunk is None:
        return None
    from ..audit.plans.shrink import smallest_inputs

    return smallest_inputs(prepared, result)


def translated(result: Result) -> TranslationJson | None:
    """Return what the event says in all measures; None for an audit that stops early, and for one of all scores.

    The intervals are of one event and a number of runs that were fixed before: an early stop has neither.
    """
    certificate = result.certificate
    if certificate.method in UNCOUNTED:
        return None
    from ..audit.statistics.certificates import translation

    return translation(result.event, certificate.counts, alpha=certificate.alpha)


def frozen_event(prepared: Prepared, result: Result, jobs: int) -> dict[str, object]:
    """Return the event as data, with counts that a later run is compared with; or why there is none."""
    from ..audit.attacks.rules import NotFrozenError
    from ..audit.evidence.frozen import freeze

    try:
        return freeze(prepared.played, result, budget=prepared.task.budget.runs, jobs=jobs).to_json()
    except NotFrozenError as error:
        return {"kind": "none", "reason": str(error)}


def claim_evidence(prepared: Prepared, result: Result, exact: dict[float, float]) -> EvidenceJson:
    """Return the data of a claim's figures, with the exact values where they are known."""
    from ..audit.evidence.by_round import evidence_of_rounds
    from ..audit.evidence.evidence import PROFILE_DELTAS, deciding_runs, evidence, evidence_of_data
    from ..audit.play.learner_mechanism import RoundsPair

    if isinstance(result.pair, RoundsPair):
        figures = evidence_of_rounds(prepared.played, result, result.pair)
    elif isinstance(result.pair, DataPair):
        figures = evidence_of_data(prepared.played, result, result.pair)
    else:
        figures = evidence(prepared.target, result)
    true = exact.get(result.claim.delta, result.epsilon_lower)
    figures["growth"]["decides"] = deciding_runs(result.claim, true, result.certificate.alpha)
    if exact and "profile" in figures:
        points = [(delta, finite(exact[delta])) for delta in PROFILE_DELTAS]
        figures["profile"]["exact"] = {"delta": [d for d, _ in points], "epsilon": [e for _, e in points]}
    return figures


def exact_levels(prepared: Prepared, result: Result) -> ClaimRecord:
    """Return what is exact on the audited pair beside epsilon: the level of another measure; mu and rho of a release.

    Of claims of an epsilon only a release with Gaussian noise has its mu and rho: they are in closed form.
    """
    measure, view = result.claim.measure, result.claim.view
    levels = NO_LEVELS.copy()
    if isinstance(result.pair, DataPair):
        if not measure.is_epsilon and result.pair.shows_nothing(view):
            levels["exact_level"] = 0.0
        return levels
    from ..audit.laws.exact import NotExactError
    from ..audit.laws.exact_levels import exact_level, gaussian_mu_of

    try:
        if not measure.is_epsilon:
            levels["exact_level"] = finite(exact_level(prepared.target, result.pair, measure, view=view))
        if (mu := gaussian_mu_of(prepared.target, result.pair, view)) is not None:
            levels |= {"exact_mu": mu, "exact_rho": mu**2 / 2}
    except NotExactError:
        pass
    return levels


def exact_epsilons(prepared: Prepared, result: Result, deltas: Sequence[float]) -> dict[float, float]:
    """Return the exact epsilon on the audited pair at each delta; empty where no method covers it."""
    if isinstance(result.pair, DataPair):
        return dict.fromkeys(deltas, 0.0) if result.pair.shows_nothing(result.claim.view) else {}
    from ..audit.laws.exact import NotExactError, exact_epsilon

    try:
        return exact_epsilon(prepared.target, result.losses, view=result.claim.view, deltas=deltas)
    except NotExactError:
        return {}
