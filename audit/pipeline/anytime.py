"""Audits that stop early: guess run by run, learn the attack on the way, end when the claim is falsified."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ..execution.workers import in_parallel
from ..play.transcripts import blocks
from ..statistics import sequential
from ..statistics.events import Certificate, Counts, Event, count
from ..statistics.graded_bets import by_grade
from .frame import Audit, Certified, Choice, too_few_runs

#: The two worlds, and runs of a block as the audited thing shows them.
Worlds = TypeVar("Worlds")
Played = TypeVar("Played")
#: Runs spent on finding the pair, where there is no exact ranking; guesses begin after this many more runs.
SEARCH_RUNS, FIRST = 2000, 12
#: Epochs are a third as long as the runs before them, and from so many runs on as long: then little is left to learn.
SLOW = 1000
#: Runs that must be left after the search: the first ten serve to learn an attack.
MIN_LEFT = 20
#: The sides of runs, read as scores: beyond the upper threshold, beyond the lower one, or neither.
SIDES = Event(-1.0, 1.0, "guess")


class Anytime(Protocol[Worlds, Played]):
    """What an early audit is of, a learner or a mechanism: how it chooses, and what a block of runs shows.

    Certification is drawn at `Stage.CERTIFY`, and nothing else is: the pair is found on other runs.
    """

    @property
    def audit(self) -> Audit:
        """The audit's fixed facts."""

    @property
    def most_to_learn(self) -> int:
        """Runs beyond which more of them teach an attack nothing more."""

    def find_pair(self, options: Sequence[Worlds]) -> tuple[Worlds, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it: few, since few may decide."""

    def trained(self, pair: Worlds) -> bool:
        """Tell whether attacks are learned from runs."""

    def exact(self, pair: Worlds) -> bool:
        """Tell whether the laws of all outcomes are known: then there is nothing to learn."""

    def choose(self, pair: Worlds, index: int, past: Sequence[Played]) -> Choice:
        """Return the attack and event of the next epoch, from blocks of runs: none where attacks are not trained."""

    def play(self, pair: Worlds, index: int, numbered: Sequence[tuple[int, int]]) -> Iterable[Played]:
        """Yield some blocks of certification."""

    def scorer(self, choice: Choice) -> Callable[[tuple[int, int]], Scored[Played]]:
        """Return what plays and scores a block of certification; it travels to processes."""


@dataclass(frozen=True)
class Scored(Generic[Played]):
    """A block of runs: given those before it, the label of each run is a fair coin."""

    scores: Floats
    left: NDArray[np.bool_]
    played: Played  # to learn from; its runs may be in another order


def check_measure(claim: Claim) -> None:
    """Raise ValueError for a claim that guesses do not test."""
    if not claim.measure.is_epsilon:
        detail = f"got early: {claim.measure!r}"
        raise ValueError(f"stop must be budget for a claim in another measure than epsilon, {detail}")


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


def until_falsified(game: Anytime[Worlds, Played], options: Sequence[Worlds]) -> Certified:
    """Guess run by run until the claim is falsified or the runs are spent.

    Runs come in epochs that grow; the attack and event of an epoch are chosen on the runs before it, so every
    guess is fixed before its run. Only the search, and the first few runs where an attack is learned, are spent on
    choosing. Blocks that the audit's memory knows are not played again, unless an attack has to be learned from them.

    Returns
    -------
    Certified
        The choice of the last epoch, the runs in which nothing was guessed yet, the certificate of all guesses
        whatever their event, and what the whole budget could at best have caught and certified.
    """
    audit = game.audit
    pair, index, searched = game.find_pair(options)
    claimed, budget = audit.claim.epsilon, audit.budget.runs - searched
    if budget < MIN_LEFT:
        raise too_few_runs(audit.budget.runs, searched, MIN_LEFT, len(options))
    trained = game.trained(pair)
    first = min(FIRST, max(10, budget // 4)) if trained else 0
    planned = epochs(first, budget)
    bets, attacks = sequential.AnytimeBets(claimed, audit.claim.delta), _Attacks(game, pair, index, planned)
    counts, bound, end = Counts(), 0.0, planned[-1]
    for epoch in planned[1:] if trained else planned:
        for added, falsified in _counted(audit, bets, attacks, epoch, counts):
            counts = counts + added
            bound = max(bound, bets.epsilon_lower(counts, audit.budget.alpha))
            if falsified:
                bound = max(bound, math.nextafter(claimed, math.inf))
        if bound > claimed:
            end = epoch
            break
    certificate = Certificate(bound, "anytime", audit.claim.delta, audit.budget.alpha, counts, 0.0)
    power = {"delta": audit.claim.delta, "alpha": audit.budget.alpha}
    detectable = sequential.detectable_epsilon(claimed, budget - first, **power)
    ceiling = sequential.ceiling_epsilon(claimed, budget - first, **power)
    return Certified(attacks.of(end), searched + first, certificate, detectable, ceiling)


def epochs(first: int, budget: int) -> list[Epoch]:
    """Return the epochs of an audit; one of `first` runs, if any, comes before.

    Each is a third as long as all before it, and from `SLOW` runs on as long.
    """
    planned: list[Epoch] = []
    begin, number = 0, 0
    while begin < budget:
        length = begin if begin >= SLOW else begin // 3
        sizes = tuple((number + i, size) for i, size in blocks(min(max(first or FIRST, length), budget - begin)))
        planned.append(Epoch(begin, sizes))
        begin, number = begin + sum(size for _, size in sizes), number + len(sizes)
    return planned


def _counted(
    audit: Audit, bets: sequential.AnytimeBets, attacks: _Attacks[Worlds, Played], epoch: Epoch, before: Counts
) -> Iterator[tuple[Counts, bool]]:
    """Yield the counts of the blocks of an epoch, and whether the claim is falsified, which ends it.

    The last block of a falsified claim is short, and is not kept: a resumed audit meets its end again.
    """
    stage = f"graded/{attacks.index}"  # the plan fixes the rest
    memory = audit.execution.memory
    recalled = memory.recall(stage) if memory is not None else {}
    guesses = attacks.guesses(epoch, [block for block in epoch.blocks if block[0] not in recalled])
    for number, _ in epoch.blocks:
        if number in recalled:
            counts, falsified = recalled[number], False
        else:
            counts, falsified = _bet(audit.budget.alpha, bets, before, next(guesses))
            if memory is not None and not falsified:
                memory.keep(stage, number, counts)
        before = before + counts
        yield counts, falsified
        if falsified:
            return


@dataclass(frozen=True)
class _Guesses(Generic[Played]):
    """What was guessed of the runs of a block, before it is known how many of them are needed."""

    sides: NDArray[np.int8]  # the event's: 1 for the left world, -1 for the right one, 0 for no guess
    grades: NDArray[np.int8]  # the stakes': the same with the number of a grade
    left: NDArray[np.bool_]
    played: Played | None  # where later epochs learn from them


@dataclass(frozen=True)
class _Attacks(Generic[Worlds, Played]):
    """The attack and event of every epoch, each chosen when it is first needed, on the runs before."""

    game: Anytime[Worlds, Played]
    pair: Worlds
    index: int
    epochs: Sequence[Epoch]
    seen: dict[int, Played] = field(default_factory=dict)  # by block
    chosen: dict[int, Choice] = field(default_factory=dict)  # by the runs before

    def of(self, epoch: Epoch) -> Choice:
        """Return what guesses in an epoch."""
        # More than most_to_learn runs teach nothing more.
        begin = max(e.begin for e in self.epochs if e.begin <= min(epoch.begin, 2 * self.game.most_to_learn))
        if begin not in self.chosen:
            self.chosen[begin] = self._choose(begin)
        return self.chosen[begin]

    def _choose(self, begin: int) -> Choice:
        if begin and self.game.exact(self.pair):
            return self.of(self.epochs[0])
        past = self._past(begin)
        missing = [block for block in past if block[0] not in self.seen]
        played = self.game.play(self.pair, self.index, missing)
        self.seen.update((number, block) for (number, _), block in zip(missing, played, strict=True))
        return self.game.choose(self.pair, self.index, [self.seen[number] for number, _ in past])

    def _past(self, begin: int) -> list[tuple[int, int]]:
        """Return the blocks to learn from: those before, until there are most_to_learn runs."""
        earlier: list[tuple[int, int]] = []
        for block in (b for epoch in self.epochs if epoch.begin < begin for b in epoch.blocks):
            if sum(size for _, size in earlier) < self.game.most_to_learn:
                earlier.append(block)
        return earlier

    def guesses(self, epoch: Epoch, numbered: Sequence[tuple[int, int]]) -> Iterator[_Guesses[Played]]:
        """Yield the guesses of some blocks of an epoch, in order."""
        if not numbered:
            return
        learned = [] if self.game.exact(self.pair) else self._past(2 * self.game.most_to_learn + 1)
        choice, audit = self.of(epoch), self.game.audit
        task = partial(_guess, self.game.scorer(choice), choice.event, frozenset(number for number, _ in learned))
        for (number, _), guesses_of_block in zip(
            numbered, in_parallel(task, numbered, jobs=audit.execution.jobs, equal_costs=True), strict=True
        ):
            if guesses_of_block.played is not None:
                self.seen[number] = guesses_of_block.played
            yield guesses_of_block


def _guess(
    score: Callable[[tuple[int, int]], Scored[Played]], event: Event, taught: frozenset[int], block: tuple[int, int]
) -> _Guesses[Played]:
    scored = score(block)
    sides = event.sides(scored.scores)
    grades = np.zeros_like(sides) if event.stakes is None else event.stakes.of(scored.scores)
    return _Guesses(sides, grades, scored.left, scored.played if block[0] in taught else None)


def _bet(alpha: float, bets: sequential.AnytimeBets, counts: Counts, guesses: _Guesses[Played]) -> tuple[Counts, bool]:
    """Return the counts of these runs, up to the first that falsifies the claim, and whether one did."""
    guessed, true = guesses.sides, np.where(guesses.left, 1, -1)
    graded = [np.cumsum(side, axis=0) for side in by_grade(guesses.grades, guesses.left)]
    runs = np.arange(1, true.size + 1)
    before = counts.tallies if counts.tally else (0, 0)
    wealth = bets.log_wealth(
        (before[0] + graded[0], before[1] + graded[1]),
        (counts.right + np.cumsum(guessed == true), counts.guesses - counts.right + np.cumsum(guessed == -true)),
        counts.runs + runs,
        bets.claimed,
    )
    rich = np.flatnonzero(wealth >= -math.log(alpha))
    seen = int(rich[0]) + 1 if rich.size else true.size
    tally = np.concatenate([side[seen - 1] for side in graded]).tolist()
    return replace(count(SIDES, guessed[:seen], guesses.left[:seen]), tally=tuple(tally)), rich.size > 0
