"""From a claim about loss sequences to a verdict: search, pilot, certification."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...learners.abilities import has_release, inherited, is_ours
from ...learners.blame import blaming, extra_or_reason, name_of
from ...learners.checks import check_game
from ...learners.protocol import Learner, publishes
from ...learners.scalar import arms_of, as_learner, check_target, has_channel, plays_run_by_run, weaker_learner
from ...mechanisms.claim import NEIGHBOURS, Claim
from ...mechanisms.global_random import restored
from ...mechanisms.relation import neighbours_words
from ...mechanisms.view import View
from ..assumptions.blocks import apart_if_exchanged
from ..assumptions.conformance import check_fresh
from ..assumptions.declared_laws import as_watched, check_kernel
from ..assumptions.independence import check_block
from ..execution.execution import HERE, Budget, Execution
from ..laws.exact_levels import claimed_level
from ..play.kernels import engine_of
from ..play.pairs import Pair, check_pair
from ..spaces.loss_choices import linear_alphabet
from .anytime import check_measure, until_falsified
from .anytime_learners import AnytimeLearner
from .blind_spot_search import WeakenChoice, weakening, with_blind_spot
from .frame import FEWEST_RUNS, Certified, all_runs, conclude, with_paired_runs
from .learner_stages import LearnerAudit
from .pair_search import candidates
from .verdict import Result, Verdict


@blaming
@restored()
def audit_learner(
    learner: object,
    claim: Claim,
    budget: Budget,
    execution: Execution = HERE,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Pair] | None = None,
    global_random: bool = False,
    weaken: WeakenChoice = None,
    trial: bool = False,
) -> Result:
    """As `falsify` (`pipeline.falsify`), on loss sequences; a `trial` has its runs checked only if it falsifies."""
    began = time.perf_counter()
    check_relation(claim)
    check_target(learner)
    given = given_pairs(pair, pairs)
    runs, seed = budget.of_at_least(FEWEST_RUNS).runs, budget.seed
    rounds, arms = check_game(rounds_of(rounds, pair), arms_of(learner, arms, None if pair is None else pair.arms))
    built = as_learner(learner, arms=arms, rounds=rounds, global_random=global_random)
    check_surface(built, claim)
    options = candidates(built, claim, rounds=rounds, runs=runs) if given is None else given
    check_pairs(options, claim, built)
    game: Any = {"arms": built.arms, "rounds": rounds, "global_random": global_random}
    how = weakening(weaken, built, partial(weaker_learner, learner, **game))
    engine = engine_of(built, options, fast=execution.fast)
    independent = partial(_check_runs, built, options, seed, runs)
    if not trial:
        independent()
    rows = None if options[0].arms is None else linear_alphabet(claim, built.arms).rows
    if engine == "numba" and not is_ours(built):
        check_kernel(built, options, seed, view=claim.view)
    built = as_watched(built, options[0], seed, rows=rows, view=claim.view)

    facts: Any = {"claim": claim, "budget": budget, "execution": execution, "engine": engine}
    audit = LearnerAudit(learner=built, searched=given is None, **facts)
    certified = _certified(audit, options)
    result = with_blind_spot(audit, conclude(audit, certified, began), how)
    if trial and result.verdict is Verdict.FALSIFIED:
        independent()
    if result.final or trial:
        return result
    exact, missing = extra_or_reason("exact value", partial(claimed_level, built, result.losses, claim))
    result = replace(result, exact=exact, missing=(*result.missing, *missing))
    return with_paired_runs(audit, result, certified.choice)


def _certified(audit: LearnerAudit, options: Sequence[Pair]) -> Certified:
    """Return what the audit certifies: of all runs, or until the claim is falsified."""
    if audit.budget.stop != "early":
        return all_runs(audit, options)
    check_measure(audit.claim)
    return until_falsified(AnytimeLearner(audit), options)


def check_relation(claim: Claim) -> None:
    """Raise ValueError where the pairs of a claim cannot be found among those of losses."""
    if claim.neighbours not in NEIGHBOURS:
        wanted = "inputs, or left and right: sequences of rounds that are such neighbours"
        raise ValueError(f"a claim about {neighbours_words(claim.neighbours)} needs {wanted}")


def _check_runs(learner: Learner, options: Sequence[Pair], seed: int, runs: int) -> None:
    """Raise LearnerError if the runs of an audit would not be independent."""
    apart = max(options, key=apart_if_exchanged)
    check_fresh(learner, apart, seed)
    check_block(learner, apart, seed, runs)


def rounds_of(rounds: int | None, pair: Pair | None) -> int:
    """Return the rounds that are asked for, else the pair's; raise ValueError where neither is, or they differ."""
    if rounds is None:
        if pair is None:
            raise ValueError("rounds must be given where no pair is")
        return pair.rounds
    if pair is not None and pair.rounds != rounds:
        raise ValueError(f"the pair has {pair.rounds} rounds, but rounds = {rounds!r} was asked for")
    return rounds


def given_pairs(pair: Pair | None, pairs: Iterable[Pair] | None) -> Sequence[Pair] | None:
    """Return the pairs that are given, None where none are; raise ValueError for what is none."""
    if pair is None and pairs is None:
        return None
    given: object = pairs if pair is None else [pair]
    if not isinstance(given, Iterable):
        raise ValueError(f"pairs must be pairs of losses, got {pairs!r}")
    options = list(given)
    for one in options:
        if not isinstance(one, Pair):
            raise ValueError(f"a pair must be a Pair of losses, as Pair(left, right), got {one!r}")
    return options


def check_pairs(options: Sequence[Pair], claim: Claim, learner: Learner) -> None:
    """Raise ValueError where there is no pair to audit on, or one that is unfit."""
    if not options:
        raise ValueError("there is no pair to audit on")
    for option in options:
        check_pair(option, claim, learner)


def check_surface(learner: Learner, claim: Claim) -> None:
    """Raise ValueError unless a learner shows what the claim speaks of."""
    view, name = claim.view, name_of(learner)
    if plays_run_by_run(learner) or view.channel != "release":
        if view.channel and not has_channel(learner, view.channel):
            what = f"has no method {view.channel}, whose value is seen after each update"
            raise ValueError(f"{name} {what}: define it, or audit the surface 'actions'")
        return
    if not has_release(learner):
        raise ValueError(f"{name} releases nothing noisy{inherited(learner)}: audit the surface 'actions'")
    if view.last and not publishes(learner):
        raise ValueError(f"{name} publishes nothing: audit the surface 'release' or 'actions'")


def seen_on_sequences(learner: object, view: View) -> bool:
    """Tell whether what is seen of a learner is audited on sequences of rounds: no law is known of it.

    That are the actions of others alone, reports, models, and whatever a plain class shows beside its actions.
    """
    plain = plays_run_by_run(learner) or (isinstance(learner, type) and not hasattr(learner, "start"))
    return not view.plays_losses or bool(view.channel and plain)
