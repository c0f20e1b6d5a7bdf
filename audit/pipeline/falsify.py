"""Falsify a claim about a learner: on loss sequences, or on sequences of rounds in the learner's own terms."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from ...learners.abilities import takes_contexts
from ...learners.blame import blaming, name_of
from ...learners.checks import check_game
from ...learners.problems.losses import Loss
from ...learners.protocol import Learner
from ...learners.scalar import arms_of, as_learner, check_target, is_mechanism, weaker_learner
from ...mechanisms.claim import NEIGHBOURS, Claim, check_claim
from ...mechanisms.relation import BY_FUNCTION, Relation
from ...mechanisms.view import View
from ..assumptions.conformance import check_fresh
from ..attacks.responses import plays_points
from ..execution.cluster import Cluster
from ..execution.execution import HERE, Budget, Execution, Memory
from ..play.learner_mechanism import RoundsPair
from ..play.mechanism_runs import DataPair
from ..play.pairs import Pair, radius_of
from ..play.rounds import Game, Round, RoundRelation, as_sequence, differing, loss_of, losses_of
from ..play.run_by_run import played_alone, player_of
from ..spaces.families import standard_pairs
from ..spaces.neighbours import made_by
from ..spaces.sequences import examples_of, sequences_of
from .blind_spot_search import WeakenChoice, weakening
from .learners import (
    audit_learner,
    check_pairs,
    check_relation,
    check_surface,
    given_pairs,
    rounds_of,
    seen_on_sequences,
)
from .mechanisms import audit_mechanism, check_no_game
from .verdict import Result


def falsify(
    learner: object,
    claim: Claim,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Pair] | None = None,
    left: object = None,
    right: object = None,
    inputs: object = None,
    runs: int = 100_000,
    seed: int = 0,
    confidence: float = 0.99,
    jobs: int = 1,
    progress: bool = False,
    memory: Memory | None = None,
    cluster: Cluster | None = None,
    stop: str = "budget",
    fast: bool = False,
    global_random: bool = False,
    os_random: bool = False,
    weaken: WeakenChoice = None,
    shrink: bool = True,
) -> Result:
    """Try to falsify a privacy claim about a learner.

    Parameters
    ----------
    learner : Learner, a user's class, or a mechanism
        A batched learner, or a class with `act` and `update` that is built as `cls(arms, rounds, rng)`. A mechanism
        is audited as by `falsify_mechanism`, which has more options for it.
    claim : Claim
        What is promised.
    rounds : int, optional
        The horizon; that of the pair if one is given.
    arms : int, optional
        For a user's class; a batched learner knows its own.
    pair : Pair, optional
        The two worlds. By default the worst of the standard families is searched.
    pairs : iterable of Pair, optional
        The pairs to search instead of the standard families.
    left, right : sequences of rounds, optional
        Two neighbouring sequences in the learner's own terms (`audit.play.rounds`): loss vectors, convex losses, or
        `{"user": ..., "context": ..., "losses": ...}`. They may differ in as many rounds as the claim says.
    inputs : hypothesis strategy, optional
        Of sequences of rounds with a neighbour relation, from `overclaim.testing.neighbours`; or of pairs of
        sequences, which are held to the claim's own. The worst pair is searched, and what is falsified is shrunk to
        the fewest differing rounds, the shortest sequence and the simplest values. The result's claim has the
        relation.
    runs : int
        All runs of the audit, both worlds and the pilot included.
    seed : int
        Non-negative.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    jobs : int
        Processes. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr.
    memory : Memory, optional
        Finished blocks of the same audit are taken from it, and new ones kept in it. It does not change the result.
    cluster : Cluster, optional
        Computes the blocks of certification, instead of processes here. It does not change the result.
    stop : {"budget", "early"}
        When to stop: after all the runs, or as soon as the claim is falsified. An early audit is anytime-valid, and
        learns its attack on the way; if nothing is wrong its bound is looser than that of a full budget.
    fast : bool
        Play on compiled kernels where the learner has one (it needs Numba). They draw other numbers than NumPy does,
        so the counts differ; the result names its engine.
    global_random : bool
        Whether a plain class draws from `np.random`, `random` or generators made without a seed: they draw from the
        generator of its run then, and its constructor needs no rng. Their state is restored afterwards.
    os_random : bool
        Whether a plain class has randomness that cannot be seeded, as that of the operating system: its constructor
        needs no rng. As in `falsify_mechanism` nothing is played twice, and all runs are played in this process.
    weaken : bool, str or callable, optional
        Measure the blind spot of an audit that survives, on the learner with its noise divided by factors up to 100:
        the parameter that sets the noise, `"epsilon"` to be multiplied by the factor or `"1/scale"` to be divided;
        True where the learner is made of this package's parts, whose noise is known; or a function from the factor to
        the weaker learner.
    shrink : bool
        Whether the inputs of a falsified claim are shrunk, where they were searched: up to 4 times the runs more.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For parameters outside their range, a pair outside the claim's loss set, or inputs that are no neighbours.
    LearnerError
        If the learner misbehaves.

    Examples
    --------
    Noise of scale 1/2 for each batch of one loss, where epsilon = 1 needs scale 1:

    >>> from overclaim.learners import BatchedLaplace, Threshold
    >>> learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    >>> result = falsify(learner, Claim(epsilon=1.0), rounds=2, runs=20_000)
    >>> result.verdict, round(result.epsilon_lower, 2)
    (<Verdict.FALSIFIED: 'FALSIFIED'>, 1.45)
    """
    check_claim(claim)
    budget, execution = Budget(runs, seed, confidence, stop), Execution(jobs, progress, memory, cluster, fast)
    losses_alone = left is None and right is None and inputs is None
    game: dict[str, Any] = {"rounds": rounds, "arms": arms, "global_random": global_random, "weaken": weaken}
    worlds: dict[str, Any] = {"left": left, "right": right, "inputs": inputs}
    if is_mechanism(learner, has_inputs=not losses_alone):
        _refuse_game(learner, claim, rounds=rounds, arms=arms, pair=pair, fast=fast or None)
        mechanism = cast(Callable[..., object], learner)
        how: dict[str, Any] = {"pairs": pairs, "global_random": global_random, "os_random": os_random}
        how |= {"weaken": weaken, "shrink": shrink}
        return audit_mechanism(mechanism, claim, budget, execution, **worlds, **how)
    if losses_alone and not (seen_on_sequences(learner, claim.view) or played_alone(claim, os_random=os_random)):
        return audit_learner(learner, claim, budget, execution, pair=pair, pairs=pairs, **game)
    if not losses_alone and (pair is not None or pairs is not None):
        raise ValueError("give either a pair, or pairs, or left and right, or inputs")
    pairs = given_pairs(pair, pairs)
    more: dict[str, Any] = {"pairs": pairs, "os_random": os_random, "shrink": shrink}
    return audit_sequences(learner, claim, budget, execution, **worlds, **game, **more)


def _refuse_game(mechanism: object, claim: Claim, **game: object) -> None:
    """Raise ValueError for what learners alone take: it would not be heeded."""
    if said := [name for name, value in game.items() if value is not None]:
        raise ValueError(
            f"{name_of(mechanism)} is a mechanism: it takes no {', '.join(said)}; its inputs are left and right, "
            "pairs or inputs, as in falsify_mechanism"
        )
    check_no_game(claim)


@blaming
def audit_sequences(
    learner: object,
    claim: Claim,
    budget: Budget,
    execution: Execution = HERE,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    left: object = None,
    right: object = None,
    inputs: object = None,
    pairs: Sequence[Pair] | None = None,
    global_random: bool = False,
    os_random: bool = False,
    weaken: WeakenChoice = None,
    shrink: bool = False,
) -> Result:
    """As `falsify` with inputs, or with left and right, whose keywords a budget and an execution hold.

    Without either the pairs of losses that are given, or the standard ones, are sequences too.
    """
    check_target(learner)
    alone = played_alone(claim, os_random=os_random)
    losses_alone = left is None and right is None and inputs is None
    _check_given(left, right, inputs, losses_alone=losses_alone, fast=execution.fast)
    claim = claimed_on(claim, inputs)
    examples: list[list[Round]] = []
    if losses_alone:
        check_relation(claim)
        rounds, told = rounds_of(rounds, pairs[0] if pairs else None), pairs[0].arms if pairs else None
    else:
        examples = examples_of(inputs, budget.seed) if left is right is None else [*map(as_sequence, (left, right))]
        rounds, told = max(map(len, examples)) if rounds is None else rounds, _length(losses_of(examples[0][0]))
    rounds, arms = check_game(rounds, arms_of(learner, arms, told))
    make: Any = {"rounds": rounds, "global_random": global_random}
    built = as_learner(learner, arms=arms, os_random=os_random, **make)
    check_surface(built, claim)
    make["arms"] = built.arms
    played = player_of(built, claim, alone=alone)
    how = weakening(weaken, built, partial(weaker_learner, learner, os_random=os_random, **make))
    how = how and how.through(lambda weaker: replace(played, learner=weaker))
    if losses_alone:
        worlds: dict[str, Any] = {"pairs": _sequences_of(pairs, built, claim, rounds)}
    else:
        worlds = _worlds(built, claim, rounds, inputs, examples, budget.seed)
        as_losses = inputs is None and not (alone or seen_on_sequences(built, claim.view))
        if as_losses and (one := pair_of(examples[0], examples[1], claim, rounds)) is not None:
            return audit_learner(learner, claim, budget, execution, pair=one, weaken=weaken, **make)
    more: Any = {"os_random": os_random, "weaken": how, "shrink": shrink}
    result = audit_mechanism(played, claim, budget, execution, **worlds, **more)
    if not alone:
        _check_runs(built, _as_rounds(result.inputs), budget.seed)
    return _on_rounds(result, built, claim)


def _on_rounds(result: Result, learner: Learner, claim: Claim) -> Result:
    """Return a result whose inputs are sequences of rounds as one of rounds."""
    pair = _as_rounds(result.inputs)
    shrunk = result.shrunk and replace(result.shrunk, pair=_as_rounds(result.shrunk.pair))
    words = result.event_in_words if plays_points(learner) else _by_rounds(result.event_in_words, pair, claim.view)
    return replace(result, pair=pair, shrunk=shrunk, event_in_words=words)


#: A part of what is seen of a learner that plays arms: one row of it.
_ROW = re.compile(r"\boutput\[(\d+)\]")


def _by_rounds(words: str, pair: RoundsPair, view: View) -> str:
    """Return an event with the rounds of the actions that it names, and whether these are hidden from others."""
    shown = [t for t in range(pair.rounds) if not (view.without_own and t in pair.own)] if view.actions else []
    named = {int(row) for row in _ROW.findall(words)}
    if not named or max(named) >= len(shown):
        return words
    told = _ROW.sub(lambda row: f"the action of round {shown[int(row[1])] + 1}", words)
    if view.without_own or not named <= pair.own:
        return told
    return f"{told}; this is the own action of whoever differs, which joint privacy hides: --surface joint"


def _sequences_of(
    pairs: Sequence[Pair] | None, learner: Learner, claim: Claim, rounds: int
) -> list[tuple[object, object]]:
    """Return pairs of losses as sequences of rounds: those given, or the standard ones; ValueError for unfit ones."""
    found = standard_pairs(learner, claim, rounds) if pairs is None else pairs
    check_pairs(found, claim, learner)
    if any(hasattr(loss, "given") for pair in found for world in (pair.left, pair.right) for loss in world):
        shown = "it would show others the actions that are hidden" if claim.view.without_own else "give left and right"
        raise ValueError(f"no loss may depend on earlier actions on the surface {claim.surface}: {shown}")
    worlds = ([pair.to_json()[side] for side in ("left", "right")] for pair in found)
    return [(as_sequence(left), as_sequence(right)) for left, right in worlds]


def _length(losses: Round) -> int | None:
    """Return the length of a loss vector; None of a convex loss."""
    return len(losses) if isinstance(losses, list) else None


def _worlds(
    learner: Learner, claim: Claim, rounds: int, inputs: object, examples: Sequence[list[Round]], seed: int
) -> dict[str, Any]:
    """Return the two sequences that are given, or the strategy of them, as what the learner can be told."""
    seen = takes_contexts(learner), claim.view.last
    game = Game(learner.arms, rounds, claim.losses, radius_of(learner), *seen)
    relation = None if claim.relation is None else RoundRelation(claim.relation)
    if inputs is not None:
        return {"inputs": sequences_of(inputs, game, relation, seed, examples)}
    left, right = [game.read(side, "the input has") for side in examples]
    if relation is not None:
        relation.check(left, right)
    return {"left": left, "right": right}


def _check_given(left: object, right: object, inputs: object, *, losses_alone: bool, fast: bool) -> None:
    """Raise ValueError unless either two sequences are given, or a strategy of them, or neither."""
    if fast:
        raise ValueError("compiled kernels play pairs of losses alone: give a pair, or leave out fast")
    if losses_alone:
        return
    if inputs is None and (left is None or right is None):
        raise ValueError("two neighbouring sequences must be given: left and right")
    if inputs is not None and not (left is None and right is None):
        raise ValueError("give either inputs, a strategy of sequences, or left and right")


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
        return Pair(*([loss_of(round_) for round_ in world] for world in worlds))
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
    sides: list[list[Loss]] = [[loss_of(round_) for round_ in world] for world in worlds]
    if any(isinstance(round_, dict) and "context" in round_ for world in worlds for round_ in world):
        return  # it would play without them
    for t in differing(*worlds):
        try:
            one = Pair(sides[0], [*sides[0][:t], sides[1][t], *sides[0][t + 1 :]])  # as if it were the only one
        except ValueError:  # they differ in nothing that losses show, such as in -0.0
            continue
        return check_fresh(learner, one, seed)


def _as_rounds(pair: DataPair) -> RoundsPair:
    return RoundsPair(as_sequence(pair.left), as_sequence(pair.right))
