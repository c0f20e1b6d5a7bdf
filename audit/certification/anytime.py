"""Audits that stop early: guess run by run, learn the attack on the way, end when the claim is falsified."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...mechanisms.draws import Stage
from ..attacks.learner_attacks import SequenceRatio, applicable
from ..attacks.protocol import FittedAttack
from ..play.pairs import Pair
from ..play.transcripts import Transcripts, blocks, concatenate
from ..play.workers import in_parallel
from ..statistics import sequential
from ..statistics.events import Certificate, Counts, Event, count
from .frame import Choice, Found
from .stages import MOST_TO_LEARN, SEARCH, LearnerAudit

#: Runs spent on finding the pair, where there is no exact ranking; guesses begin after this many more runs.
SEARCH_RUNS, FIRST = 2000, 32
#: Runs that must be left after the search: the first ten serve to learn an attack.
FEWEST = 20
#: The sides of runs, read as scores: beyond the upper threshold, beyond the lower one, or neither.
SIDES = Event(-1.0, 1.0, "guess")


@dataclass(frozen=True)
class Epoch:
    """Runs that are bet on by one attack and event.

    Attributes
    ----------
    begin : int
        The runs before it.
    blocks : tuple of (int, int)
        Number and size of its blocks of runs.
    """

    begin: int
    blocks: tuple[tuple[int, int], ...]


def until_falsified(audit: LearnerAudit, options: Sequence[Pair]) -> Found:
    """Guess run by run until the claim is falsified or the runs are spent.

    Runs come in epochs that double; the attack and event of an epoch are chosen on the runs before it, so every
    guess is fixed before its run. Only the search, and the first few runs where an attack is learned, are spent on
    choosing. Blocks that the audit's memory knows are not played again, unless an attack has to be learned from them.

    Returns
    -------
    Found
        The choice of the last epoch, the runs in which nothing was guessed yet, the certificate of all guesses
        whatever their event, and what the whole budget could at best have caught and certified.
    """
    pair, best, searched = _find_pair(audit, options)
    claimed, budget = audit.claim.epsilon, audit.budget.runs - searched
    if budget < FEWEST:
        many = f"choosing among {len(options)} pairs takes {searched}"
        raise ValueError(f"runs must be at least {searched + FEWEST}, got {audit.budget.runs}: {many}")
    trained = applicable(audit.learner, pair, audit.claim.surface)[0].trained
    first = min(FIRST, max(10, budget // 4)) if trained else 0
    planned = epochs(first, budget)
    bets, attacks = sequential.Bets(claimed, audit.claim.delta), _Attacks(audit, pair, best, planned)
    counts, bound, end = Counts(), 0.0, planned[-1]
    for epoch in planned[1:] if trained else planned:
        for got, falsified in _counted(audit, bets, attacks, epoch, counts):
            counts = counts + got
            wrong = counts.guesses - counts.right
            bound = max(bound, bets.epsilon_lower(counts.right, wrong, counts.runs, audit.budget.alpha))
            if falsified:
                bound = max(bound, math.nextafter(claimed, math.inf))
        if bound > claimed:
            end = epoch
            break
    certificate = Certificate(bound, "anytime", audit.claim.delta, audit.budget.alpha, counts, 0.0)
    power = {"delta": audit.claim.delta, "alpha": audit.budget.alpha}
    detectable = sequential.detectable_epsilon(claimed, budget - first, **power)
    ceiling = sequential.ceiling_epsilon(claimed, budget - first, **power)
    return Found(attacks.of(end), searched + first, certificate, detectable, ceiling)


def epochs(first: int, budget: int) -> list[Epoch]:
    """Return the epochs of an audit, each as long as all before it; one of `first` runs, if any, comes before."""
    planned: list[Epoch] = []
    begin, number = 0, 0
    while begin < budget:
        sizes = tuple((number + i, size) for i, size in blocks(min(max(first or FIRST, begin), budget - begin)))
        planned.append(Epoch(begin, sizes))
        begin, number = begin + sum(size for _, size in sizes), number + len(sizes)
    return planned


def _counted(
    audit: LearnerAudit, bets: sequential.Bets, attacks: _Attacks, epoch: Epoch, before: Counts
) -> Iterator[tuple[Counts, bool]]:
    """Yield the counts of the blocks of an epoch, and whether the claim is falsified, which ends it.

    The last block of a falsified claim is short, and is not kept: a resumed audit meets its end again.
    """
    stage = f"early/{attacks.index}"  # the plan fixes the rest
    memory = audit.execution.memory
    known = memory.recall(stage) if memory is not None else {}
    guesses = attacks.guesses(epoch, [block for block in epoch.blocks if block[0] not in known])
    for number, _ in epoch.blocks:
        if number in known:
            got, falsified = known[number], False
        else:
            got, falsified = _bet(audit.budget.alpha, bets, before, next(guesses))
            if memory is not None and not falsified:
                memory.keep(stage, number, got)
        before = before + got
        yield got, falsified
        if falsified:
            return


@dataclass(frozen=True)
class _Guesses:
    """What was guessed of the runs of a block, before it is known how many of them are needed."""

    sides: NDArray[np.int8]  # 1 for the left world, -1 for the right one, 0 for no guess
    left: NDArray[np.bool_]
    transcripts: Transcripts | None  # where later epochs learn from them


@dataclass(frozen=True)
class _Attacks:
    """The attack and event of every epoch, each chosen when it is first needed, on the runs before."""

    audit: LearnerAudit
    pair: Pair
    index: int
    epochs: Sequence[Epoch]
    seen: dict[int, Transcripts] = field(default_factory=dict)  # by block
    chosen: dict[int, Choice] = field(default_factory=dict)  # by the runs before

    def of(self, epoch: Epoch) -> Choice:
        """Return what guesses in an epoch."""
        # More than MOST_TO_LEARN runs teach nothing more.
        begin = max(e.begin for e in self.epochs if e.begin <= min(epoch.begin, 2 * MOST_TO_LEARN))
        if begin not in self.chosen:
            self.chosen[begin] = self._choose(begin)
        return self.chosen[begin]

    def _choose(self, begin: int) -> Choice:
        if not begin:
            return _choose_unseen(self.audit, self.pair, self.index)
        if self._exact:
            return self.of(self.epochs[0])
        past = self._past(begin)
        missing = [block for block in past if block[0] not in self.seen]
        played = self.audit.play_blocks(self.pair, self.index, Stage.CERTIFY, missing)
        self.seen.update((number, transcripts) for (number, _), transcripts in zip(missing, played, strict=True))
        return _choose(self.audit, self.pair, self.index, concatenate([self.seen[number] for number, _ in past]))

    @property
    def _exact(self) -> bool:
        """Whether the laws of all outcomes are known: then there is nothing to learn."""
        return applicable(self.audit.learner, self.pair, self.audit.claim.surface)[0] is SequenceRatio

    def _past(self, begin: int) -> list[tuple[int, int]]:
        """Return the blocks to learn from: those before, until there are MOST_TO_LEARN runs."""
        earlier: list[tuple[int, int]] = []
        for block in (b for epoch in self.epochs if epoch.begin < begin for b in epoch.blocks):
            if sum(size for _, size in earlier) < MOST_TO_LEARN:
                earlier.append(block)
        return earlier

    def guesses(self, epoch: Epoch, numbered: Sequence[tuple[int, int]]) -> Iterator[_Guesses]:
        """Yield the guesses of some blocks of an epoch, in order."""
        if not numbered:
            return
        taught = frozenset() if self._exact else frozenset(number for number, _ in self._past(2 * MOST_TO_LEARN + 1))
        choice = self.of(epoch)
        task = partial(_guess, self.audit.player(choice.pair, choice.index, Stage.CERTIFY), choice, taught)
        for (number, _), guesses_of_block in zip(
            numbered, in_parallel(task, numbered, jobs=self.audit.execution.jobs, alike=True), strict=True
        ):
            if guesses_of_block.transcripts is not None:
                self.seen[number] = guesses_of_block.transcripts
            yield guesses_of_block


def _guess(
    play: Callable[[tuple[int, int]], Transcripts], choice: Choice, taught: frozenset[int], block: tuple[int, int]
) -> _Guesses:
    transcripts = play(block)
    scores, event = choice.attack.score(transcripts), choice.event
    sides = (scores >= event.upper).astype(np.int8) - (scores <= event.lower)
    return _Guesses(sides, transcripts.left, transcripts if block[0] in taught else None)


def _find_pair(audit: LearnerAudit, options: Sequence[Pair]) -> tuple[Pair, int, int]:
    """Return the pair to audit on, its index, and the runs that it took to find it: few, since few may decide."""
    runs = min(audit.budget.runs, round(SEARCH_RUNS / SEARCH))
    return replace(audit, budget=replace(audit.budget, runs=runs)).find_pair(options)


def _choose_unseen(audit: LearnerAudit, pair: Pair, index: int) -> Choice:
    """Return an exact likelihood ratio with its event before any run was played."""
    claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
    attack: FittedAttack[Transcripts] = audit.fit(applicable(audit.learner, pair, audit.claim.surface)[0], pair, None)
    if isinstance(attack, SequenceRatio):
        scores, p, q = attack.laws
        event = sequential.choose_growing_event(scores, p / 2, q / 2, seen=None, **claim)
    else:  # guess where the odds are beyond what the claim allows
        event = Event(-audit.claim.epsilon, audit.claim.epsilon, "guess")
    return Choice(pair, attack, event, index)


def _choose(audit: LearnerAudit, pair: Pair, index: int, past: Transcripts) -> Choice:
    """Return the attack and event of the next epoch, from all runs so far."""
    claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
    best: tuple[float, Choice] | None = None
    for kind in applicable(audit.learner, pair, audit.claim.surface):
        half = past.runs // 2 if kind.trained else 0
        attack: FittedAttack[Transcripts] = audit.fit(kind, pair, past[:half] if kind.trained else None)
        fresh = past[half:]
        scores = attack.score(fresh)
        if kind.trained:
            p, q, seen = fresh.left / fresh.runs, ~fresh.left / fresh.runs, fresh.runs
        else:  # the score is a likelihood ratio and tells the odds of the labels, with less noise than the labels do
            p, q, seen = expit(scores) / fresh.runs, expit(-scores) / fresh.runs, None
        event = sequential.choose_growing_event(scores, p, q, seen=seen, **claim)
        worth = audit.promise(event, count(event, scores, fresh.left))
        if best is None or worth > best[0]:
            best = worth, Choice(pair, attack, event, index)
    assert best is not None
    return best[1]


def _bet(alpha: float, bets: sequential.Bets, counts: Counts, guesses: _Guesses) -> tuple[Counts, bool]:
    """Return the counts of these runs, up to the first that falsifies the claim, and whether one did."""
    named, true = guesses.sides, np.where(guesses.left, 1, -1)
    right = counts.right + np.cumsum(named == true)
    wrong = counts.guesses - counts.right + np.cumsum(named == -true)
    runs = counts.runs + np.arange(1, true.size + 1)
    end = sequential.first_crossing(bets, right, wrong, runs, alpha)
    seen = slice(None if end is None else end + 1)
    return count(SIDES, named[seen], guesses.left[seen]), end is not None
