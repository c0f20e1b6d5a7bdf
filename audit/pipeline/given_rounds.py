"""A learner on sequences of rounds, in its own terms: played as a mechanism whose input is a sequence."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from ...errors import exclude, hinted
from ...learners.abilities import has_method, plays_arms, takes_contexts
from ...learners.checks import check_game
from ...learners.problems.losses import Loss
from ...learners.protocol import Learner
from ...learners.scalar import arms_of, as_learner, check_target, weaker_learner
from ...mechanisms.claim import NEIGHBOURS, Claim
from ...mechanisms.relations.relation import BY_FUNCTION, Relation
from ...mechanisms.view import View
from ..assumptions.conformance import check_fresh
from ..execution.execution import Budget, Execution
from ..play.data import DataPair
from ..play.learner_mechanism import RoundsPair
from ..play.pairs import Pair, radius_of
from ..play.rounds import (
    Game,
    Round,
    RoundRelation,
    arms_told,
    as_sequence,
    check_differing,
    differing,
    is_plain,
    loss_of,
    losses_pair,
)
from ..play.run_by_run import played_alone, player_of
from ..spaces.families import standard_pairs
from ..spaces.neighbours import made_by
from ..spaces.sequences import examples_of, sequences_of
from ..traces.one_path import cost_of_one_run
from ..verdicts.verdict import Result
from .blind_spot_search import weakening
from .frame import Choice
from .given import Given, Setup
from .given_data import read_data
from .given_losses import (
    check_pairs,
    check_relation,
    check_surface,
    given_pairs,
    read_losses,
    rounds_of,
    seen_on_sequences,
)
from .mechanism_stages import MechanismAudit


@dataclass(frozen=True, kw_only=True)
class RoundsAudit(MechanismAudit):
    """An audit of a learner on sequences of rounds."""

    learner: Learner

    @property
    def alone(self) -> bool:
        """Whether the runs are played one by one."""
        return not getattr(self.mechanism, "in_step", False)

    def rounds_of(self, data: object) -> int:
        """Return how many rounds a sequence has."""
        return len(as_sequence(data))

    def cost_of(self, pair: DataPair) -> float | None:
        """Return what one run costs on a pair of losses by its trace; None of other rounds."""
        losses = pair_of(pair.left, pair.right, self.claim, len(as_sequence(pair.left)))
        return None if losses is None else cost_of_one_run(self.learner, losses, self.claim, seed=self.budget.seed)

    def recheck(self, options: Sequence[Any], choice: Choice, before: object) -> None:
        """Raise LearnerError as of every mechanism, and as of every learner."""
        super().recheck(options, choice, before)
        if not self.alone:
            _check_runs(self.learner, _as_rounds(choice.inputs), self.budget.seed)

    def told(self, result: Result) -> Result:
        """Return the result as one of rounds."""
        pair = _as_rounds(result.inputs)
        shrunk = result.shrunk and replace(result.shrunk, pair=_as_rounds(result.shrunk.pair))
        text = result.event_in_words
        text = _by_rounds(text, pair, self.claim.view) if plays_arms(self.learner) else text
        return replace(result, pair=pair, shrunk=shrunk, event_in_words=text)


def read_rounds(learner: object, claim: Claim, budget: Budget, execution: Execution, inputs: Given) -> Setup:
    """Return the audit of a learner on the sequences that are given, on a strategy of them, or on pairs of losses.

    Where the two sequences are a pair of losses whose law may be known, they are read as that pair.

    Raises
    ------
    ValueError
        For what does not fit the learner or the claim.
    LearnerError
        If the learner misbehaves.
    """
    check_target(learner)
    run_by_run = played_alone(claim, os_random=inputs.os_random)
    _check_given(inputs)
    claim = claimed_on(claim, inputs.inputs)
    pairs, examples = given_pairs(inputs.pair, inputs.pairs), list[list[Round]]()
    if inputs.losses_alone:
        check_relation(claim)
        rounds, pair_arms = rounds_of(inputs.rounds, pairs[0] if pairs else None), pairs[0].arms if pairs else None
    else:
        examples = _examples(inputs, budget.seed)
        rounds = max(map(len, examples)) if inputs.rounds is None else inputs.rounds
        pair_arms = arms_told(examples[0])
    rounds, arms = check_game(rounds, arms_of(learner, inputs.arms, pair_arms))
    randomness: Any = {"global_random": inputs.global_random, "os_random": inputs.os_random}
    built = as_learner(learner, arms=arms, rounds=rounds, **randomness)
    check_surface(built, claim)
    played = player_of(built, claim, run_by_run=run_by_run)
    if inputs.losses_alone:
        worlds: dict[str, Any] = {"pairs": _sequences_of(pairs, built, claim, rounds)}
    else:
        worlds = _worlds(built, claim, rounds, inputs.inputs, examples, budget.seed)
        as_losses = inputs.inputs is None and not (run_by_run or seen_on_sequences(built, claim.view))
        if as_losses and (pair := pair_of(examples[0], examples[1], claim, rounds)) is not None:
            as_pair = replace(inputs, pair=pair, left=None, right=None, rounds=rounds, arms=built.arms)
            return read_losses(learner, claim, budget, execution, as_pair)
    weakened = weakening(
        inputs.weaken, built, partial(weaker_learner, learner, arms=built.arms, rounds=rounds, **randomness)
    )
    weakened = weakened and weakened.through(lambda weaker: replace(played, learner=weaker))
    of_data = Given(os_random=inputs.os_random, weaken=False if weakened is None else weakened, **worlds)
    return read_data(played, claim, budget, execution, of_data, kind=partial(RoundsAudit, learner=built))


def _examples(inputs: Given, seed: int) -> list[list[Round]]:
    """Return the two sequences that are given, or some that the strategy draws."""
    if inputs.inputs is not None:
        return examples_of(inputs.inputs, seed)
    return [as_sequence(side) for side in (inputs.left, inputs.right)]


#: Matches the name of one row of the output of a learner that plays arms.
_ROW = re.compile(r"\boutput\[(\d+)\]")


def _by_rounds(text: str, pair: RoundsPair, view: View) -> str:
    """Return an event with the rounds of the actions that it names, and whether these are hidden from others."""
    visible = [t for t in range(pair.rounds) if not (view.without_own and t in pair.own)] if view.actions else []
    rows = {int(row) for row in _ROW.findall(text)}
    if not rows or max(rows) >= len(visible):
        return text
    statement = _ROW.sub(lambda row: f"the action of round {visible[int(row[1])] + 1}", text)
    if view.without_own or not rows <= pair.own:
        return statement
    return f"{statement}; this is the own action of whoever differs, which joint privacy hides: --surface joint"


def _sequences_of(
    pairs: Sequence[Pair] | None, learner: Learner, claim: Claim, rounds: int
) -> list[tuple[object, object]]:
    """Return pairs of losses as sequences of rounds: those given, or the standard ones; ValueError for unfit ones."""
    loss_pairs = standard_pairs(learner, claim, rounds) if pairs is None else pairs
    check_pairs(loss_pairs, claim, learner)
    if any(hasattr(loss, "given") for pair in loss_pairs for world in (pair.left, pair.right) for loss in world):
        reason = (
            "it would show others the actions that are hidden" if claim.view.without_own else "give left and right"
        )
        raise ValueError(f"no loss may depend on earlier actions on the surface {claim.surface}: {reason}")
    worlds = ([pair.to_json()[side] for side in ("left", "right")] for pair in loss_pairs)
    return [(as_sequence(left), as_sequence(right)) for left, right in worlds]


def _worlds(
    learner: Learner, claim: Claim, rounds: int, inputs: object, examples: Sequence[list[Round]], seed: int
) -> dict[str, Any]:
    """Return the two sequences that are given, or the strategy of them, as what the learner can be told."""
    able = has_method(learner, "offer"), has_method(learner, "draw")
    seen = takes_contexts(learner), claim.view.last
    game = Game(learner.arms, rounds, claim.losses, radius_of(learner), *seen, *able)
    relation = None if claim.relation is None else RoundRelation(claim.relation)
    if inputs is not None:
        return {"inputs": sequences_of(inputs, game, relation, seed, examples)}
    left, right = [game.read(side, "the input has") for side in examples]
    check_differing(left, right)
    if relation is not None:
        relation.check(left, right)
    return {"left": left, "right": right}


def _check_given(inputs: Given) -> None:
    """Raise ValueError unless either two sequences are given, or a strategy of them, or neither."""
    if inputs.losses_alone:
        return
    if inputs.pair is not None or inputs.pairs is not None:
        raise exclude("`pair` or `pairs`", "`left` and `right`, or with `inputs`")
    if inputs.inputs is None and (inputs.left is None or inputs.right is None):
        raise hinted(ValueError("one of two neighbouring sequences is missing"), "give both `left` and `right`")
    if inputs.inputs is not None and not (inputs.left is None and inputs.right is None):
        raise exclude("`inputs`", "`left` and `right`")


def pair_of(left: object, right: object, claim: Claim, rounds: int) -> Pair | None:
    """Return two sequences as a pair of losses, of which a learner's law may be known; None where they are more.

    They are a pair where one round's losses differ as numbers, none has a context, they have all the rounds of the
    game, and the claim is about one round.
    """
    if claim.neighbours not in NEIGHBOURS:
        return None
    try:
        worlds = [as_sequence(side) for side in (left, right)]
        if any(len(world) != rounds for world in worlds) or any(map(_says_more, itertools.chain(*worlds))):
            return None
        return losses_pair(*worlds)
    except ValueError:  # such as sequences that differ in several rounds, or in -0.0 alone
        return None


def _says_more(round_: Round) -> bool:
    """Return whether a round has a context or a user beside its losses."""
    return isinstance(round_, dict) and "losses" in round_ and len(round_) > 1


def claimed_on(claim: Claim, inputs: object) -> Claim:
    """Return the claim with the neighbour relation of its inputs; raise ValueError where it has another."""
    source = None if inputs is None else made_by(inputs)
    if source is None:
        return claim
    if source.of_users:  # its rounds say nothing of users
        relation = "user"
    elif isinstance(source.relation, Relation):
        relation = RoundRelation(source.relation).name
    else:
        relation = f"{BY_FUNCTION}{getattr(source.relation, '__name__', type(source.relation).__name__)}"
    if claim.neighbours not in ("replace", relation):
        raise ValueError(f"the claim is about {claim.neighbours!r} neighbours, the inputs are {relation!r} ones")
    return replace(claim, neighbours=relation)


def _check_runs(learner: Learner, pair: RoundsPair, seed: int) -> None:
    """Raise LearnerError as every audit of a learner does, where two worlds of losses alone can be played for it."""
    worlds = pair.left, pair.right
    if not all(is_plain(round_) for world in worlds for round_ in world):
        return  # it would play without what is more
    sides: list[list[Loss]] = [[loss_of(round_) for round_ in world] for world in worlds]
    for t in differing(*worlds):
        try:
            # As if it were the only one that differs.
            single_pair = Pair(sides[0], [*sides[0][:t], sides[1][t], *sides[0][t + 1 :]])
        except ValueError:  # they differ in nothing that losses show, such as in -0.0
            continue
        return check_fresh(learner, single_pair, seed)


def _as_rounds(pair: DataPair) -> RoundsPair:
    return RoundsPair(as_sequence(pair.left), as_sequence(pair.right))
