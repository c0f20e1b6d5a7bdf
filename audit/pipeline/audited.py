"""The walk of every audit: read what is given, search, check, choose, certify, decide, and what is told beside."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from typing import Any

from ...errors import takes_no
from ...learners.blame import blaming, extra_or_reason, name_of
from ...learners.scalar import is_mechanism
from ...mechanisms.claim import Claim
from ...mechanisms.global_random import restored
from ..execution.execution import IN_PROCESS, Budget, Execution
from ..execution.progress import stage
from ..play.run_by_run import played_alone
from ..play.unseeded import digest_of
from ..verdicts.rare import Rare
from ..verdicts.verdict import Result, Verdict
from .blind_spot_search import with_blind_spot
from .frame import FEWEST_RUNS, Choice, all_runs, conclude, with_paired_runs
from .given import Given, Setup
from .given_data import check_no_game, read_data
from .rare_paths import Look, can_be_rare
from .remarks import with_remarks

#: The options that each kind of target does not take.
NOT_OF = {
    "mechanism": ("rounds", "arms", "pair"),
    "learner": ("bits", "call_limit", "attributes", "score"),
    "training": (
        *("rounds", "arms", "pair", "pairs", "left", "right", "inputs", "bits", "os_random", "call_limit"),
        *("attributes", "score", "weaken"),
    ),
}
#: What each of them takes in their place.
TAKES = {
    "mechanism": "its inputs are `left` and `right`, `pairs` or `inputs`",
    "learner": "they are for mechanisms",
    "training": "",
}
#: Reads what is given for one kind of target and worlds.
Reader = Callable[[object, Claim, Budget, Execution, Given], Setup]


def reader_of(target: object, claim: Claim, inputs: Given) -> Reader:
    """Return what reads what is given: a mechanism's inputs, a learner's losses, or its sequences of rounds."""
    if is_mechanism(target, has_inputs=not inputs.losses_alone or inputs.pairs is not None):
        refuse(target, "mechanism", inputs)
        check_no_game(claim)
        return read_data
    from .given_losses import read_losses, seen_on_sequences
    from .given_rounds import read_rounds

    refuse(target, "learner", inputs)
    run_by_run = played_alone(claim, os_random=inputs.os_random)
    if inputs.losses_alone and not (run_by_run or seen_on_sequences(target, claim.view)):
        return read_losses
    return read_rounds


def refuse(target: object, kind: str, inputs: Given) -> None:
    """Raise ValueError for what targets of this kind do not take: it would not be heeded."""
    options = vars(inputs)
    if names := [name for name in NOT_OF[kind] if options[name] not in (None, False)]:
        raise takes_no(f"{name_of(target)} is a {kind}", names, TAKES[kind])


@blaming
@restored()
def audited(
    target: object,
    claim: Claim,
    budget: Budget,
    execution: Execution = IN_PROCESS,
    inputs: Given | None = None,
    read: Reader | None = None,
) -> Result:
    """Return the result of auditing a claim about a learner or a mechanism: `falsify`, its keywords put together.

    Raises
    ------
    ValueError, LearnerError
        As `falsify`.
    """
    start = time.perf_counter()
    inputs = inputs or Given()
    read = read or reader_of(target, claim, inputs)
    setup = read(target, claim, budget.of_at_least(FEWEST_RUNS), execution, inputs)

    def shown(label: str) -> AbstractContextManager[None]:
        return stage(label if execution.progress else None)

    audit, options, searched = setup.audit, setup.options, None
    if setup.space is not None:
        from .input_search import search_inputs

        with shown("searching inputs"):
            searched = search_inputs(audit, setup.space)
        audit, options = replace(audit, index=searched.index, spent=searched.runs), [searched.pair]
    certified = _certified(audit, options, inputs, shown)
    result = replace(
        conclude(audit, certified, start),
        searched=searched,
        outputs_digest=digest_of(certified.blocks),
        pair_given=setup.pair_given,
    )
    falsified = result.verdict is Verdict.FALSIFIED
    if searched is not None:
        searched.check(name_of(audit.mechanism), falsified=falsified)
    if inputs.trial:
        if falsified:
            setup.check_late()
        return result
    if setup.space is not None and inputs.shrink and falsified:
        with shown("simplifying inputs"):
            result = _with_shrunk(audit, setup.space, result)
    with shown("last checks" if inputs.power is None or result.final else "power test"):
        result = with_blind_spot(audit, audit.target, result, setup.weakening, inputs.power)
        result = with_remarks(audit, result, certified.choice)
    if not result.final:
        exact, missing = extra_or_reason("exact value", partial(audit.exact, result))
        result = replace(result, exact=exact, missing=(*result.missing, *missing))
    described: Result = audit.told(with_paired_runs(audit, result, certified.choice))
    return described


def _with_shrunk(audit: Any, space: Any, result: Result) -> Result:
    """Return a result with its simplest inputs, or why they are missing."""
    from .shrink_inputs import shrink_inputs

    shrunk, missing = extra_or_reason("shrunk inputs", partial(shrink_inputs, audit, space, result))
    return replace(result, shrunk=shrunk, missing=(*result.missing, *missing))


def _certified(
    audit: Any, options: Any, inputs: Given, progress: Callable[[str], AbstractContextManager[None]]
) -> Any:
    """Return what the runs of an audit certify, its assumptions checked before and after."""
    with audit.naming_the_cure():
        with progress("first calls"):
            before = audit.check(options)
        if audit.budget.stop == "early":
            from .anytime import until_falsified

            with progress(f"up to {audit.budget.runs:,} runs, until the claim is falsified"):
                certified = until_falsified(audit.anytime(), options)
        else:
            rare = inputs.power is not None and not inputs.trial and can_be_rare(audit)
            certified = all_runs(audit, options, partial(_look, audit) if rare else None)
        audit.recheck(options, certified.choice, before)
    return certified


def _look(audit: Any, choice: Choice, n_counted: int) -> tuple[Choice, Rare | None]:
    """Look for rare differences on what was chosen; a fault of the search costs no verdict."""
    lead, _ = extra_or_reason("rare differences", partial(Look(audit, choice).led, n_counted))
    return lead or (choice, None)
