"""A learner on pairs of loss sequences: what is given becomes the pairs to choose from and the audit that chooses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from ...errors import hinted, must_be, not_given
from ...learners.abilities import has_release, inherited
from ...learners.blame import name_of
from ...learners.checks import check_game
from ...learners.problems.losses import loss_set
from ...learners.protocol import Learner, publishes
from ...learners.scalar import (
    arms_of,
    as_learner,
    check_target,
    has_channel,
    plays_run_by_run,
    weaker_learner,
)
from ...mechanisms.claim import NEIGHBOURS, Claim
from ...mechanisms.relations.relation import neighbours_words
from ...mechanisms.view import View
from ..assumptions.blocks import apart_if_exchanged
from ..assumptions.conformance import check_fresh
from ..assumptions.declared_laws import as_watched
from ..assumptions.independence import check_block
from ..execution.execution import Budget, Execution
from ..play.pairs import Pair, check_pair, other_rounds
from ..search.pair_search import candidates
from ..spaces.loss_choices import linear_alphabet
from .anytime import check_measure
from .blind_spot_search import weakening
from .given import Given, Setup
from .learner_stages import LearnerAudit


def read_losses(learner: object, claim: Claim, budget: Budget, execution: Execution, inputs: Given) -> Setup:
    """Return the audit of a learner on the pair or the pairs of losses that are given, else on the standard ones.

    Raises
    ------
    ValueError
        For what does not fit the learner or the claim.
    LearnerError
        If the learner misbehaves.
    """
    check_relation(claim)
    check_target(learner)
    if budget.stop == "early":
        check_measure(claim)
    pairs, seed = given_pairs(inputs.pair, inputs.pairs), budget.seed
    arms = arms_of(learner, inputs.arms, None if inputs.pair is None else inputs.pair.arms)
    rounds, arms = check_game(rounds_of(inputs.rounds, inputs.pair), arms)
    built = as_learner(learner, arms=arms, rounds=rounds, global_random=inputs.global_random)
    check_surface(built, claim)
    options = candidates(built, claim, rounds=rounds, runs=budget.runs) if pairs is None else pairs
    check_pairs(options, claim, built)
    game: Any = {"arms": built.arms, "rounds": rounds, "global_random": inputs.global_random}
    weakened = weakening(inputs.weaken, built, partial(weaker_learner, learner, **game))
    independent = partial(_check_runs, built, options, seed, budget.runs)
    if not inputs.trial:
        independent()
    rows = linear_alphabet(claim, built.arms).rows if _has_extremes(options[0], claim) else None
    watched = as_watched(built, options[0], seed, rows=rows, view=claim.view)
    audit_options: Any = {"claim": claim, "budget": budget, "execution": execution}
    audit = LearnerAudit(learner=watched, searched=pairs is None, **audit_options)
    return Setup(audit, options, weakening=weakened, check_late=independent, pair_given=inputs.pair is not None)


def _has_extremes(pair: Pair, claim: Claim) -> bool:
    """Return whether the losses are vectors of a set that has extremes."""
    return pair.arms is not None and loss_set(claim.losses).bounded


def check_relation(claim: Claim) -> None:
    """Raise ValueError where the pairs of a claim cannot be found among those of losses."""
    if claim.neighbours not in NEIGHBOURS:
        expected = "inputs, or left and right: sequences of rounds that are such neighbours"
        raise ValueError(f"a claim about {neighbours_words(claim.neighbours)} needs {expected}")


def _check_runs(learner: Learner, options: Sequence[Pair], seed: int, runs: int) -> None:
    """Raise LearnerError if the runs of an audit would not be independent."""
    farthest = max(options, key=apart_if_exchanged)
    check_fresh(learner, farthest, seed)
    check_block(learner, farthest, seed, runs)


#: The view that every learner has.
_ACTIONS = 'use `surface="actions"`'


def rounds_of(rounds: int | None, pair: Pair | None) -> int:
    """Return the rounds that are asked for, else the pair's; raise ValueError where neither is, or they differ."""
    if rounds is None:
        if pair is None:
            raise not_given("rounds", "give `rounds`, or a pair of inputs")
        return pair.rounds
    if pair is not None and pair.rounds != rounds:
        raise other_rounds(pair.rounds, rounds)
    return rounds


def given_pairs(pair: Pair | None, pairs: Iterable[Pair] | None) -> Sequence[Pair] | None:
    """Return the pairs that are given, None where none are; raise ValueError for what is none."""
    if pair is None and pairs is None:
        return None
    listed: object = pairs if pair is None else [pair]
    if not isinstance(listed, Iterable):
        raise must_be("pairs", "pairs of losses", pairs)
    options = list(listed)
    for option in options:
        if not isinstance(option, Pair):
            raise must_be("a pair", "a Pair of losses, as Pair(left, right)", option)
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
            fault = f"has no method {view.channel}, whose value is seen after each update"
            raise hinted(ValueError(f"{name} {fault}"), f"{_ACTIONS}, or define the method")
        return
    if not has_release(learner):
        raise hinted(ValueError(f"{name} releases nothing noisy{inherited(learner)}"), _ACTIONS)
    if view.last and not publishes(learner):
        raise hinted(ValueError(f"{name} publishes nothing"), f'{_ACTIONS}, or `surface="release"`')


def seen_on_sequences(learner: object, view: View) -> bool:
    """Return whether a learner is audited on sequences of rounds, because no law of what it shows is known.

    That are the actions of others alone, reports, models, and whatever a plain class shows beside its actions.
    """
    is_plain = plays_run_by_run(learner) or (isinstance(learner, type) and not hasattr(learner, "start"))
    return not view.plays_losses or bool(view.channel and is_plain)
