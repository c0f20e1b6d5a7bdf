"""Audits of mechanisms that stop early: attacks are learned on the way, and bet on the runs that follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.draws import Draws, Floats, Stage
from ..assumptions.independence import check_neighbours
from ..attacks.outputs.learned import OutputAttack
from ..encoding.encoder import has_floats
from ..play.mechanism_runs import DataPair, Sample, run_block
from ..statistics import sequential
from ..statistics.events import Event
from .anytime import FIRST, SEARCH_RUNS, Scored
from .frame import Choice
from .mechanism_stages import ENOUGH_TRAIN, MOST_TRAIN, SEARCH, TRAIN, MechanismAudit, some_outputs

#: What an attack must have won more than those before it, in nats: the best of several is so by luck too.
LUCK = 1.0


@dataclass(frozen=True)
class AnytimeMechanism:
    """An early audit of a mechanism (`anytime.Anytime`): outputs are all that is known, so every attack is learned."""

    audit: MechanismAudit

    @property
    def most_to_learn(self) -> int:
        """As many runs as an audit with a fixed number of runs would train on."""
        return max(FIRST, self.audit.share(TRAIN, ENOUGH_TRAIN, MOST_TRAIN))

    def find_pair(self, options: Sequence[DataPair]) -> tuple[DataPair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        if len(options) == 1:
            return options[0], self.audit.index, self.audit.spent
        runs = min(self.audit.budget.runs, round(SEARCH_RUNS / SEARCH))
        won, _, spent = replace(self.audit, budget=replace(self.audit.budget, runs=runs)).halve(options)
        return options[won], won, spent

    def trained(self, pair: DataPair) -> bool:
        """Tell whether attacks are learned from runs: always."""
        return True

    def exact(self, pair: DataPair) -> bool:
        """Tell whether the laws of all outcomes are known: never."""
        return False

    def choose(self, pair: DataPair, index: int, past: Sequence[Sample]) -> Choice:
        """Return the attack and event of the next epoch, from the runs so far."""
        runs = sum(sample.left.size for sample in past)
        facts = {field.name: getattr(self.audit, field.name) for field in fields(self.audit)}
        facts["execution"] = self.audit.execution.inside(f"early {runs}")
        choice = _Growing(**facts).fit(pair, index, past)[0]
        return replace(choice, floats=has_floats(some_outputs(past)))

    def play(self, pair: DataPair, index: int, numbered: Sequence[tuple[int, int]]) -> list[Sample]:
        """Return some blocks of certification."""
        return self.audit.play([(index, *block) for block in numbered], {index: pair}, Stage.CERTIFY)

    def scorer(self, choice: Choice) -> Callable[[tuple[int, int]], Scored[Sample]]:
        """Return what plays and scores a block of certification."""
        return partial(_score, self.audit.mechanism, choice, self.audit.budget.seed)


@dataclass(frozen=True)
class _Growing(MechanismAudit):
    """An audit whose stakes are to make a gambler against the claim rich."""

    def promised(
        self, scores: Floats, left: NDArray[np.bool_], *, doubt: float, log_odds: bool, **how: bool
    ) -> tuple[Event, float]:
        """Return the event whose guesses grow her wealth fastest, with the best stakes, and what these would win."""
        p, q = left / left.size, ~left / left.size
        claim = {"epsilon": self.claim.epsilon, "delta": self.claim.delta}
        event = sequential.choose_growing_event(scores, p, q, seen=left.size, **claim)
        stakes, gain = sequential.choose_stakes(scores, left, **claim, log_odds=log_odds)
        return replace(event, stakes=stakes), gain

    def is_better(self, attack: OutputAttack, best: float, worth: float) -> bool:
        """Tell whether an attack would have won more than the best of those before it."""
        return worth > best + LUCK


def _score(mechanism: object, choice: Choice, seed: int, block: tuple[int, int]) -> Scored[Sample]:
    """Return a block of runs, each with a label that those before it do not tell.

    A batched mechanism is called for the left world first, so in the order of the calls the labels are no coins, and
    a guess could be bet on them. The runs are independent: those of either world take the places that its labels had
    when they were drawn.
    """
    number, runs = block
    draws = Draws(seed, Stage.CERTIFY, choice.index, 0, number)
    sample = run_block(mechanism, choice.inputs, draws, runs)
    scores = choice.attack.score(sample.outputs)
    check_neighbours(choice.event, scores, sample.left)
    left = draws.labels(runs)
    in_place = np.empty_like(scores)
    for world in (True, False):
        in_place[left == world] = scores[sample.left == world]
    return Scored(in_place, left, sample)
