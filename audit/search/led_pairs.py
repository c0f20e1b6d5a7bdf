"""Pairs of losses that leads find for a plain class: its rounds changed as data is, and beside its decisions."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from ...learners.problems.losses import loss_set
from ...learners.scalar import plays_run_by_run
from ...mechanisms.draws import Draws, Stage
from ...mechanisms.relations import Relation
from ..play.data import key_of
from ..play.learner_mechanism import LearnerMechanism
from ..play.mechanism_runs import outputs_of
from ..play.pairs import Pair
from ..play.rounds import Game, RoundRelation, as_sequence, losses_pair
from ..spaces.candidates import Candidate
from ..spaces.pair_space import PairSpace
from ..spaces.sequences import SequencePairs
from ..traces.one_path import cost_of_one_run
from .leads import leads, share_decided_otherwise

#: Pairs that leads begin with; and those of each kind that are tried: the dearest, unlike decisions, beside one.
FIRST, MAX_PAIRS = 16, (3, 2, 1)
#: Costs that differ by less are the same; shares of few decisions differ so much by luck.
ROUNDING, FLIP_RATIO = 1e-9, 2.0
#: The part of the key of draws that decisions are found by.
_PART = 2


def led_pairs(audit: Any, space: PairSpace, standard: Sequence[Pair]) -> list[Pair]:
    """Return pairs that traces or decisions lead to; none of learners whose runs are played in step, or other losses.

    What is known of the law of our own learners ranks their pairs. Where traces tell costs, a pair is worth runs that
    flips many more decisions than all standard ones, or costs more and flips as many: each more in the final leaves
    fewer runs to tell the others apart.
    """
    learner, claim, budget = audit.learner, audit.claim, audit.budget
    vectors = all(isinstance(row, np.ndarray) for row in space.alphabet.rows)
    if not plays_run_by_run(learner) or not vectors or space.rounds < 2:
        return []
    game = Game(learner.arms, space.rounds, claim.losses, 1.0, contexts=False, publication=claim.view.last)
    rows = [*space.alphabet.rows, *chain.from_iterable(space.alphabet.single_entries)]
    levels = [np.asarray(row).tolist() for row in rows]
    sequences = SequencePairs(
        lambda data: _fits(game, data),
        game,
        RoundRelation(Relation.parse(claim.neighbours)),
        budget.seed,
        [as_sequence([row] * space.rounds) for row in levels],
        exact=loss_set(claim.losses).bounded,
    )
    rng = np.random.default_rng([budget.seed, 4])
    cache = _Cache(audit)
    kinds = leads(
        sequences,
        sequences.first(FIRST),
        lambda lead: cache.cost(_pair(lead)),
        cache.answer,
        rng,
        runs=budget.runs,
        rounds=space.rounds,
    )
    led = [_pair(lead) for n, kind in zip(MAX_PAIRS, kinds, strict=True) for lead in kind[:n]]
    standard_cost = cache.max_cost(standard) if led else None
    if standard_cost is None:
        return led
    flips = max(map(cache.share, standard))
    costs = [(pair, cache.max_cost([pair]) or 0.0, cache.share(pair)) for pair in led]
    dearer = standard_cost * (1 + ROUNDING)
    return [pair for pair, cost, share in costs if share > FLIP_RATIO * flips or (cost > dearer and share >= flips)]


class _Cache:
    """What a run costs on pairs, and what is answered on sequences: each is looked at once."""

    def __init__(self, audit: Any) -> None:
        self.audit, self.played = audit, LearnerMechanism(audit.learner, audit.claim.view)
        self.costs: dict[str, float | None] = {}
        self.answers: dict[tuple[str, int], object] = {}

    def cost(self, pair: Pair) -> float | None:
        """Return what one run costs; None where no trace tells."""
        if pair.key not in self.costs:
            audit = self.audit
            self.costs[pair.key] = cost_of_one_run(audit.learner, pair, audit.claim, seed=audit.budget.seed)
        return self.costs[pair.key]

    def max_cost(self, pairs: Sequence[Pair]) -> float | None:
        """Return what the dearest of some pairs costs; None where no trace tells."""
        costs = map(self.cost, pairs)
        return max((cost for cost in costs if cost is not None), default=None)

    def answer(self, data: object, run: int) -> object:
        """Return what is shown on a sequence in one run of its own."""
        key = key_of(data), run
        if key not in self.answers:
            draws = Draws(self.audit.budget.seed, Stage.SEARCH, 0, _PART, run)
            self.answers[key] = outputs_of(self.played, data, draws, 1)
        return self.answers[key]

    def share(self, pair: Pair) -> float:
        """Return the share of decisions that differ between both sides."""
        sides = as_sequence(pair.left), as_sequence(pair.right)
        return share_decided_otherwise(self.answer, Candidate(*sides)) or 0.0


def _fits(game: Game, data: object) -> bool:
    try:
        game.read(data)
    except ValueError:
        return False
    return True


def _pair(candidate: Candidate) -> Pair:
    return losses_pair(as_sequence(candidate.left), as_sequence(candidate.right))
