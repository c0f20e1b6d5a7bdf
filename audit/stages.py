"""The stages of a learner's audit: search over pairs, training and choice of the event, play of fresh runs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..learners.protocol import Learner
from ..mechanisms.draws import Draws, Stage
from ..mechanisms.philox import CounterDraws
from . import kernels
from .attacks import Attack, SequenceRatio, applicable
from .certification import Audit, Choice
from .engines import in_parallel
from .events import Counts, Event, certify, choose_event, choose_event_from_laws, count
from .exact_search import rank_exactly
from .mutations import Mutations
from .pairs import Pair
from .particle import ParticleRatio
from .play import Transcripts, blocks, concatenate, play
from .search import climb

#: Shares of the runs: search over pairs (only if there is no exact ranking), training, and choosing the event.
SEARCH, TRAIN, PILOT = 0.10, 0.05, 0.10
#: No stage before certification uses more: beyond it the choice does not get better.
MOST = 300_000


@dataclass(frozen=True, kw_only=True)
class LearnerAudit(Audit):
    """An audit of a learner."""

    learner: Learner
    searched: bool = False  # whether the pairs are our own, to be mutated, and not the user's

    def choose(self, options: Sequence[Pair]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""
        pair, best, spent = self.find_pair(options)
        first = applicable(self.learner, pair, self.claim.surface)[0]
        if first is SequenceRatio:  # the laws of all outcomes are known: no pilot is needed
            attack = SequenceRatio(self.learner, pair)
            event = choose_event_from_laws(
                *attack.laws, delta=self.claim.delta, alpha=self.alpha, runs=self.runs - spent
            )
            return Choice(pair, attack, event, best), spent
        choice, _, used = self._pilot(pair, best, self._share(TRAIN), self._share(PILOT), Stage.TRAIN)
        return choice, spent + used

    def _share(self, share: float) -> int:
        return max(10, min(MOST, int(share * self.runs)))

    def find_pair(self, options: Sequence[Pair]) -> tuple[Pair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        if len(options) == 1:
            return options[0], 0, 0
        ranked = rank_exactly(self.learner, self.claim, options)
        if ranked is not None:
            return ranked[0], next(i for i, option in enumerate(options) if option is ranked[0]), 0

        def trial(pair: Pair, index: int, runs: int) -> tuple[float, int]:
            return self._pilot(pair, index, runs, runs, Stage.SEARCH)[1:]

        mutate = Mutations(self.learner, self.claim, self.seed) if self.searched else None
        return climb(options, trial, self._share(SEARCH), mutate=mutate)

    def _pilot(self, pair: Pair, index: int, train: int, pilot: int, stage: Stage) -> tuple[Choice, float, int]:
        """Fit every applicable attack and choose its event; return the best, what it promises, and the runs spent.

        At the search stage one set of transcripts, keyed apart from all later ones, is split in two.
        """
        recipes = applicable(self.learner, pair, self.claim.surface)
        needed = any(r.trained for r in recipes)
        if stage is Stage.SEARCH:
            both = self._play(pair, index, stage, train + pilot if needed else pilot)
            training = both[:train] if needed else None
            chosen_on = both[train:] if needed else both
        else:
            training = self._play(pair, index, Stage.TRAIN, train) if needed else None
            chosen_on = self._play(pair, index, Stage.PILOT, pilot)
        best: tuple[float, Choice] | None = None
        for made in recipes:
            attack = self.fit(made, pair, training)
            scores = attack.score(chosen_on)
            event = choose_event(scores, chosen_on.left, delta=self.claim.delta, alpha=self.alpha, runs=self.runs)
            worth = self.promise(event, count(event, scores, chosen_on.left))
            if best is None or worth > best[0]:
                best = worth, Choice(pair, attack, event, index)
        assert best is not None
        return best[1], best[0], chosen_on.runs + (training.runs if training is not None else 0)

    def fit(self, made: Any, pair: Pair, train: Transcripts | None) -> Attack:
        """Return an attack of this kind, fitted; compiled where the audit is."""
        attack: Attack = made.fit(self.learner, pair, train)
        return attack.faster() if self.engine == "numba" and isinstance(attack, ParticleRatio) else attack

    def promise(self, event: Event, counts: Counts) -> float:
        """Return the bound that the pilot's own counts would give: a ranking, never a certificate."""
        worth = certify(event, counts, delta=self.claim.delta, alpha=0.2).epsilon_lower
        if worth > 0 or not counts.guesses:
            return worth
        return float(counts.right / counts.guesses - 1)

    def _play(self, pair: Pair, index: int, stage: Stage, runs: int) -> Transcripts:
        return concatenate(list(self.play_blocks(pair, index, stage, blocks(runs))))

    def play_blocks(
        self, pair: Pair, index: int, stage: Stage, some: Sequence[tuple[int, int]]
    ) -> Iterator[Transcripts]:
        """Yield the transcripts of some blocks."""
        return in_parallel(self.player(pair, index, stage), some, jobs=self.jobs, alike=True)

    def player(
        self, pair: Pair, index: int, stage: Stage, share: float = 0.5
    ) -> Callable[[tuple[int, int]], Transcripts]:
        """Return what plays a block; it travels to processes, and the audit's memory does not."""
        return partial(play_block, self.learner, pair, self.seed, stage, index, self.claim.surface, self.engine, share)

    def counter(self, choice: Choice) -> Callable[[tuple[int, int]], Counts]:
        """Return what plays a block of fresh runs and counts the event."""
        play = self.player(choice.pair, choice.index, Stage.CERTIFY, choice.event.share)
        return partial(_count_block, play, choice)


def play_block(
    learner: Learner,
    pair: Pair,
    seed: int,
    stage: Stage,
    index: int,
    surface: str,
    engine: str,
    share: float,
    block: tuple[int, int],
) -> Transcripts:
    """Return the transcripts of one block, (its number, its runs), played on an engine."""
    number, runs = block
    if engine == "numba":
        draws = CounterDraws(seed, stage, index, 0, number)
        return kernels.play(learner, pair, draws, runs, surface=surface, share=share)
    return play(learner, pair, Draws(seed, stage, index, 0, number), runs, surface=surface, share=share)


def _count_block(play: Callable[[tuple[int, int]], Transcripts], choice: Choice, block: tuple[int, int]) -> Counts:
    transcripts = play(block)
    return count(choice.event, choice.attack.score(transcripts), transcripts.left)
