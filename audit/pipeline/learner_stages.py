"""The stages of a learner's audit: search over pairs, training and choice of the event, play of fresh runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ...learners.abilities import batch_of, decisions
from ...learners.protocol import Learner
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.numerics import rounded
from ...mechanisms.view import View
from ..attacks.learner_attacks import (
    FEWEST_BOOSTED,
    FEWEST_PAIRED,
    Boosted,
    Paired,
    SequenceRatio,
    SequenceTable,
    WindowRatio,
    applicable,
)
from ..attacks.particle import ParticleRatio
from ..attacks.protocol import FittedAttack, LearnerAttack, log_loss
from ..execution.workers import in_parallel
from ..laws.exact_levels import claimed_level
from ..play.pairs import Pair
from ..play.transcripts import Transcripts, blocks, concatenate, from_bytes, play, to_bytes
from ..search.exact_search import expected_bound, worst_of
from ..search.influential_rounds import influential_pairs
from ..search.led_pairs import led_pairs
from ..search.pair_search import MIN_RUNS, Trial, climb
from ..spaces.families import unlike
from ..spaces.pair_space import PairSpace
from ..statistics import sequential
from ..statistics.chooser import Evidence, choose_event, promised_by_counts
from ..statistics.event_rule import transfer
from ..statistics.events import Counts, Event, count
from ..statistics.graded_bets import Stakes
from ..verdicts.verdict import Result
from .anytime import SEARCH_RUNS, Scored
from .frame import FIRST_PAIRED, Audit, Choice

#: Shares of the runs: search over pairs (only if there is no exact ranking), training, and choosing the event.
SEARCH, TRAIN, PILOT = 0.10, 0.05, 0.10
#: A search of few runs has this share, up to so many: a poor pair costs more than certification with a tenth less.
FEW_SEARCH, ENOUGH_SEARCH = 0.20, 8000
#: The share of the search that looks where the worlds should differ.
LOOK = 0.125
#: The part of the key of those draws: trials of pairs have 0.
_LOOK_PART = 1
#: Runs of a proposed pair, at least, where an attack has to be learned from them.
LEAST_TRAINED = 800
#: How many times what others tell an attack on columns together has to.
MARKEDLY = 1.05
#: Runs for each possible sequence of arms, from which on the best event is not mere luck.
OFTEN = 10
#: Seconds: a block of runs that is played in fewer is not kept for a resumed audit. To write it takes about as long.
QUICK = 0.1
#: No stage before certification uses more: beyond it the choice does not get better.
MOST_TO_LEARN = 300_000


@dataclass(frozen=True)
class _Odds:
    """Runs as a search judges them by likelihood ratios: their scores, (runs,), and their worlds."""

    scores: Floats
    left: NDArray[np.bool_]

    @property
    def runs(self) -> int:
        """The number of runs."""
        return self.left.size


@dataclass(frozen=True, kw_only=True)
class LearnerAudit(Audit):
    """An audit of a learner."""

    learner: Learner
    searched: bool = False  # whether the pairs are our own, to which more may be proposed, and not the user's

    @property
    def target(self) -> Learner:
        """The learner."""
        return self.learner

    def of(self, target: Learner) -> Self:
        """Return the same audit of another learner."""
        return replace(self, learner=target)

    def anytime(self) -> AnytimeLearner:
        """Return the early audit with the same facts."""
        return AnytimeLearner(self)

    def exact(self, result: Result) -> float | None:
        """Return the exact level of what is claimed on the pair; None where no law tells it."""
        return claimed_level(self.learner, result.losses, self.claim)

    def choose(self, options: Sequence[Pair]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""
        pair, best, search_runs = self.find_pair(options)
        first = self.attacks(pair)[0]
        if first is SequenceRatio:  # the laws of all outcomes are known: no pilot is needed
            attack, runs, alpha = SequenceRatio(self.learner, pair), self.budget.runs - search_runs, self.budget.alpha
            event, _ = choose_event(Evidence(laws=attack.laws), self.claim.measure, alpha=alpha, runs=runs)
            return Choice(pair, attack, event, best), search_runs
        choice, pilot_runs = self._pilot(pair, best, self._share(TRAIN), self._share(PILOT))
        return choice, search_runs + pilot_runs

    def _share(self, share: float) -> int:
        return max(10, min(MOST_TO_LEARN, int(share * self.budget.runs)))

    def find_pair(self, options: Sequence[Pair]) -> tuple[Pair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        if len(options) == 1:
            return options[0], 0, 0
        _, index, runs = best = self.once("search", lambda: self._searched(options))
        return options[index] if index < len(options) else Pair.from_json(best[0]), index, runs

    def _searched(self, options: Sequence[Pair]) -> list[Any]:
        """Return the pair that a search finds, unless it is one of the options, its index and the runs spent."""
        worst = worst_of(self.learner, self.claim, options)
        if worst is not None:
            return [None, worst, 0]

        n_given = len(options)
        runs = max(self._share(SEARCH), min(self._share(FEW_SEARCH), ENOUGH_SEARCH))
        space, looked, awaited = None, 0, list[int]()
        learns = self._likelihood(options[0]) is None
        if self.searched:
            space = PairSpace.of(self.learner, self.claim, options[0].rounds)
            draws = Draws(self.budget.seed, Stage.SEARCH, part=_LOOK_PART)
            influential, hidden, looked = influential_pairs(
                self.learner, space.alphabet, space.rounds, draws, int(LOOK * runs), with_hidden=learns
            )
            last = [*([] if hidden is None else [hidden]), *led_pairs(self, space, options)]
            options = unlike([*options, *influential, *last])
            keys = [option.key for option in options]
            awaited = [keys.index(pair.key) for pair in unlike(last)]
        min_runs = LEAST_TRAINED if learns else MIN_RUNS
        climbing: Any = {"space": space, "runs_per_pair": min_runs, "seed": self.budget.seed, "awaited": awaited}
        pair, index, climbing_runs = climb(options, self.trial(), runs - looked, **climbing)
        if not self._pair_differs(pair, index):  # runs rank pairs on which nothing is seen by chance
            index = next((i for i, pair in enumerate(options) if self._pair_differs(pair, i)), index)
            pair = options[index] if index < len(options) else pair
        return [pair.to_json() if index >= n_given else None, index, climbing_runs + looked]

    def trial(self) -> Trial:
        """Return what plays runs of a pair at the search stage, and judges them; no run is played twice."""
        blocks_of_pair: dict[int, list[tuple[int, int]]] = {}  # blocks of each pair
        block_data: dict[tuple[int, int], Transcripts | _Odds] = {}  # of a pair's block

        def try_pair(pair: Pair, index: int, runs: int, before: int = 0) -> tuple[float, int]:
            played_blocks = blocks_of_pair.setdefault(index, [])
            played_blocks += [(len(played_blocks) + number, size) for number, size in blocks(runs)]
            first = len(played_blocks)
            while sum(size for _, size in played_blocks[first:]) < before + runs:
                first -= 1
            numbered = played_blocks[first:]

            def judged() -> float:
                # All of them, where an audit is resumed.
                missing = [block for block in numbered if (index, block[0]) not in block_data]
                played = list(self.play_blocks(pair, index, Stage.SEARCH, missing))
                for (number, _), value in zip(missing, self._to_judge(pair, played), strict=True):
                    block_data[index, number] = value
                return float(self.judge(pair, _joined([block_data[index, number] for number, _ in numbered])))

            return self.once(f"trial/{index}/{numbered}", judged), runs

        return try_pair

    def attacks(self, pair: Pair) -> list[LearnerAttack]:
        """Return the attacks to try on a pair."""
        return applicable(self.learner, pair, self.claim.view)

    def _likelihood(self, pair: Pair) -> LearnerAttack | None:
        """Return the attack whose scores are likelihood ratios, if there is one."""
        return next((attack for attack in self.attacks(pair) if attack.exact or attack is ParticleRatio), None)

    def _to_judge(self, pair: Pair, played: Sequence[Transcripts]) -> list[Transcripts | _Odds]:
        """Return what is kept of runs to judge a pair by: their odds alone, where no attack learns.

        Actions of many rounds would fill the memory, as they do in the pilot of the other attacks alone.
        """
        likelihood = self._likelihood(pair)
        if likelihood is None:
            return list(played)
        attack = self.fit(likelihood, pair, None)
        return [_Odds(attack.score(transcripts), transcripts.left) for transcripts in played]

    def judge(self, pair: Pair, played: Transcripts | _Odds) -> float:
        """Return how much a pair promises, from few runs, rounded: a ranking of pairs, never a certificate.

        A likelihood ratio tells the odds of a run's world, with less noise than its label: what the planned runs would
        certify if all were like these. Other attacks are learned on one half, and guess on the other: right guesses
        tell more than the best of many events, which is the luckiest.
        """
        if isinstance(played, _Odds):
            scores = played.scores
            if not self.claim.measure.is_epsilon:
                return float(rounded(self.promised(Evidence(scores, played.left, log_odds=True))[1]))
            scores = scores[~np.isnan(scores)]
            p, q = (2 * expit(sign * scores) / max(1, scores.size) for sign in (1, -1))
            bound = expected_bound(p, q, self.claim.delta, self.budget.runs)
            return float(rounded(bound if bound > 0 else np.abs(p - q).sum() / 2 - 1))
        half = played.runs // 2
        other = played[half:]
        countable = self.learner.arms ** decisions(pair.rounds, batch_of(self.learner)) * OFTEN <= half
        worths = []
        for kind in self.attacks(pair):
            if (kind is Boosted and half < FEWEST_BOOSTED) or (kind is Paired and half < FEWEST_PAIRED):
                continue  # a regression would stand in, which is tried anyway, or nothing
            attack = self.fit(kind, pair, played[:half])
            if countable and kind is SequenceTable:
                return float(rounded(self._bet(attack, attack.score(other), other.left, trained=True)[1]))
            worths.append(guessed(attack.score(other), other.left))
        return float(rounded(max(worths)))

    def _pilot(self, pair: Pair, index: int, train: int, pilot: int) -> tuple[Choice, int]:
        """Fit every applicable attack and choose its event; return the best, and the runs spent."""
        attacks = self.attacks(pair)
        learns = any(attack.trained or attack is ParticleRatio for attack in attacks)

        @cache
        def runs_of(stage: Stage) -> Transcripts:
            return self._play(pair, index, stage, train if stage is Stage.TRAIN else pilot)

        @cache
        def fitted(i: int) -> FittedAttack[Transcripts]:
            return self.fit(attacks[i], pair, runs_of(Stage.TRAIN) if learns else None)

        @cache
        def scored(i: int) -> tuple[Floats, NDArray[np.bool_]]:
            if len(attacks) == 1 and not learns:  # no other attack will ask for the runs, which may fill the memory
                return self._scored(fitted(i), pair, index, pilot)
            return fitted(i).score(runs_of(Stage.PILOT)), runs_of(Stage.PILOT).left

        def scores_of(i: int) -> Floats:
            return scored(i)[0]

        def bet(i: int) -> list[Any]:
            left = scored(i)[1]
            event, predicted_bound = self._bet(fitted(i), scores_of(i), left, trained=attacks[i].trained)
            return [predicted_bound, event.to_json(), judged_loss(attacks, i, scores_of, left)]

        bets = [self.once(f"pilot/{index}/{i}", partial(bet, i)) for i in range(len(attacks))]
        best = best_of(attacks, [predicted_bound for predicted_bound, _, _ in bets], [loss for _, _, loss in bets])
        same_outputs = learns and runs_of(Stage.TRAIN).alike and runs_of(Stage.PILOT).alike
        choice = Choice(pair, fitted(best), Event.of_json(bets[best][1]), index, alike=same_outputs)
        return choice, pilot + (train if learns else 0)

    def _bet(
        self, attack: FittedAttack[Transcripts], scores: Floats, left: NDArray[np.bool_], *, trained: bool
    ) -> tuple[Event, float]:
        """Return the event to bet on with this attack and its scores of runs, and what it promises."""
        exact = attack.exact or isinstance(attack, ParticleRatio)
        laws = attack.laws if isinstance(attack, WindowRatio) else None
        return self.promised(Evidence(scores, left, log_odds=not trained, exact=exact, laws=laws))

    def fit(self, attack: LearnerAttack, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Return the attack fitted; a filter's lag is chosen on the training runs."""
        fitted = attack.fit(self.learner, pair, train)
        if not isinstance(fitted, ParticleRatio):
            return fitted
        return fitted if train is None else fitted.tuned(train)

    def _play(self, pair: Pair, index: int, stage: Stage, runs: int) -> Transcripts:
        play = partial(self.play_blocks, pair, index, stage)
        parts = self.kept_blocks(f"{stage.name}/{index}", blocks(runs), play, from_bytes, to_bytes, quick=QUICK)
        return concatenate(parts)

    def _scored(
        self, attack: FittedAttack[Transcripts], pair: Pair, index: int, runs: int
    ) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the scores of the pilot's runs and their labels; each block is forgotten when it is scored."""

        def play(numbered: Sequence[tuple[int, int]]) -> Iterator[Transcripts]:
            for part in self.play_blocks(pair, index, Stage.PILOT, numbered):
                yield Transcripts(attack.score(part), part.left, None)  # the scores in the place of actions

        stage = f"{Stage.PILOT.name}/{index}/scores"
        scored = concatenate(self.kept_blocks(stage, blocks(runs), play, from_bytes, to_bytes, quick=QUICK))
        return scored.actions, scored.left

    def play_blocks(
        self, pair: Pair, index: int, stage: Stage, numbered: Sequence[tuple[int, int]]
    ) -> Iterator[Transcripts]:
        """Yield the transcripts of some blocks."""
        return in_parallel(self.player(pair, index, stage), numbered, jobs=self.execution.jobs, equal_costs=True)

    def player(
        self, pair: Pair, index: int, stage: Stage, share: float = 0.5
    ) -> Callable[[tuple[int, int]], Transcripts]:
        """Return what plays a block; it travels to processes, and the audit's memory does not."""
        return partial(play_block, self.learner, pair, self.budget.seed, stage, index, self.claim.view, share)

    def outputs_differ(self, choice: Choice, block: int, runs: int) -> bool:
        """Return whether any of `runs` paired runs shows another output for the other losses."""
        return self._pair_differs(choice.losses, choice.index, block, runs)

    def _pair_differs(self, pair: Pair, index: int, block: int = 0, runs: int = FIRST_PAIRED) -> bool:
        left, right = (self.player(pair, index, Stage.PAIRED, share)((block, runs)) for share in (1.0, 0.0))
        sides = zip((left.actions, left.releases), (right.actions, right.releases), strict=True)
        return any(not np.array_equal(a, b) for a, b in sides if a is not None and b is not None)

    def shown_of_left(self, pair: Pair, runs: int) -> object:
        """Return what some runs show of the left losses."""
        played = self.player(pair, 1, Stage.PAIRED, 1.0)((0, runs))
        return [None if released is None else released.tobytes() for released in (played.actions, played.releases)]

    def counter(self, choice: Choice) -> Callable[[tuple[int, int]], Counts]:
        """Return what plays a block of fresh runs and counts the event."""
        play = self.player(choice.losses, choice.index, Stage.CERTIFY, choice.event.share)
        return partial(_count_block, play, choice)


@dataclass(frozen=True)
class AnytimeLearner:
    """An early audit of a learner (`anytime.Anytime`)."""

    audit: LearnerAudit
    most_to_learn: int = MOST_TO_LEARN

    def find_pair(self, options: Sequence[Pair]) -> tuple[Pair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        runs = min(self.audit.budget.runs, round(SEARCH_RUNS / FEW_SEARCH))
        return replace(self.audit, budget=replace(self.audit.budget, runs=runs)).find_pair(options)

    def trained(self, pair: Pair) -> bool:
        """Tell whether attacks are learned from runs."""
        return self.audit.attacks(pair)[0].trained

    def exact(self, pair: Pair) -> bool:
        """Tell whether the laws of all outcomes are known."""
        return self.audit.attacks(pair)[0] is SequenceRatio

    def choose(self, pair: Pair, index: int, past: Sequence[Transcripts]) -> Choice:
        """Return the attack and event of the next epoch, from all runs so far."""
        if not past:
            return self._unseen(pair, index)
        audit, seen_runs = self.audit, concatenate(list(past))
        claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
        kinds, worths, judged, choices = audit.attacks(pair), [], [], []
        for kind in kinds:
            attack: FittedAttack[Transcripts] = audit.fit(kind, pair, seen_runs if kind.trained else None)
            fitted_scores = attack.score(seen_runs)
            if kind.trained:
                scores, runs = self._cross_fitted(kind, pair, seen_runs), seen_runs.runs
                p, q, seen = seen_runs.left / runs, ~seen_runs.left / runs, runs
                stakes, _ = sequential.choose_stakes(scores, seen_runs.left, **claim, log_odds=False)
            else:  # the score is a likelihood ratio and tells the odds of the labels, with less noise than the labels
                scores, seen = fitted_scores, None
                p, q = expit(scores) / seen_runs.runs, expit(-scores) / seen_runs.runs
                stakes = Stakes.of_log_odds(audit.claim.epsilon)
            event = replace(sequential.choose_growing_event(scores, p, q, seen=seen, **claim), stakes=stakes)
            worths.append(promised_by_counts(event, Evidence(scores, seen_runs.left), audit.claim.delta))
            judged.append(scores)
            choices.append(Choice(pair, attack, transfer(event, scores, fitted_scores), index, alike=seen_runs.alike))
        losses = [judged_loss(kinds, i, judged.__getitem__, seen_runs.left) for i in range(len(kinds))]
        return choices[best_of(kinds, worths, losses)]

    def _cross_fitted(self, kind: LearnerAttack, pair: Pair, played: Transcripts) -> Floats:
        """Return the scores of all runs, of each by an attack that was fitted on the other half of them."""
        half = played.runs // 2
        parts = played[:half], played[half:]
        scores = [self.audit.fit(kind, pair, parts[1 - i]).score(parts[i]) for i in (0, 1)]
        return np.concatenate(scores)

    def _unseen(self, pair: Pair, index: int) -> Choice:
        """Return an exact likelihood ratio with its event before any run was played."""
        audit = self.audit
        claim = {"epsilon": audit.claim.epsilon, "delta": audit.claim.delta}
        attack: FittedAttack[Transcripts] = audit.fit(audit.attacks(pair)[0], pair, None)
        if isinstance(attack, SequenceRatio):
            scores, p, q = attack.laws
            event = sequential.choose_growing_event(scores, p / 2, q / 2, seen=None, **claim)
        else:  # guess where the odds are beyond what the claim allows
            event = Event(-audit.claim.epsilon, audit.claim.epsilon, "guess")
        return Choice(pair, attack, replace(event, stakes=Stakes.of_log_odds(audit.claim.epsilon)), index)

    def play(self, pair: Pair, index: int, numbered: Sequence[tuple[int, int]]) -> Iterator[Transcripts]:
        """Yield some blocks of certification."""
        return self.audit.play_blocks(pair, index, Stage.CERTIFY, numbered)

    def scorer(self, choice: Choice) -> Callable[[tuple[int, int]], Scored[Transcripts]]:
        """Return what plays and scores a block of certification."""
        return partial(_score_block, self.audit.player(choice.losses, choice.index, Stage.CERTIFY), choice.attack)


def _score_block(
    play: Callable[[tuple[int, int]], Transcripts], attack: FittedAttack[Transcripts], block: tuple[int, int]
) -> Scored[Transcripts]:
    transcripts = play(block)
    return Scored(attack.score(transcripts), transcripts.left, transcripts)


def judged_loss(
    attacks: Sequence[LearnerAttack], i: int, scores_of: Callable[[int], Floats], left: NDArray[np.bool_]
) -> float:
    """Return the log loss by which `best_of` judges an attack: beside a window's or a filter's scores."""
    of_law = next((j for j, attack in enumerate(attacks) if attack in (WindowRatio, ParticleRatio)), None)
    return log_loss(scores_of(i), left, other_odds=None if of_law is None else scores_of(of_law))


def best_of(attacks: Sequence[LearnerAttack], worths: Sequence[float], losses: Sequence[float]) -> int:
    """Return which attack promises most; where some are calibrated, one of these unless its log loss is larger.

    The best of many events of a score is the luckiest, and what it promises is the pilot's luck. Log odds are judged
    by their mean log loss, which no single event decides: of the calibrated attacks the one whose loss is smallest,
    and another only if its loss is smaller still. What columns say together counts where that is markedly more than
    any other attack tells: a regression on much that says the same has more events to be lucky with.
    """
    unpaired = [i for i, attack in enumerate(attacks) if attack is not Paired]
    if unpaired and len(unpaired) < len(attacks):
        information = [math.log(2) - loss for loss in losses]
        if max(information) < MARKEDLY * max(information[i] for i in unpaired):
            predicted_bounds, loss = ([values[i] for i in unpaired] for values in (worths, losses))
            return unpaired[best_of([attacks[i] for i in unpaired], predicted_bounds, loss)]
    winner = max(range(len(attacks)), key=lambda i: worths[i])
    judged = [i for i, attack in enumerate(attacks) if attack.calibrated]
    best = min(judged, key=lambda i: losses[i], default=winner)
    return best if attacks[winner].calibrated or losses[best] <= losses[winner] else winner


def guessed(scores: Floats, left: NDArray[np.bool_]) -> float:
    """Return the epsilon of a randomised response that is guessed as well as runs are by their scores, log odds.

    A guess counts by the confidence that its odds give it, which is steadier than right and wrong; negative where
    the guesses are worse than none.
    """
    confidence = np.tanh(np.nan_to_num(scores) / 2)
    return float(2 * np.arctanh(np.where(left, confidence, -confidence).sum() / (left.size + 1)))


def play_block(
    learner: Learner,
    pair: Pair,
    seed: int,
    stage: Stage,
    index: int,
    view: View,
    share: float,
    block: tuple[int, int],
) -> Transcripts:
    """Return the transcripts of one block, (its number, its runs)."""
    number, runs = block
    return play(learner, pair, Draws(seed, stage, index, 0, number), runs, view=view, share=share)


def _count_block(play: Callable[[tuple[int, int]], Transcripts], choice: Choice, block: tuple[int, int]) -> Counts:
    transcripts = play(block)
    return count(choice.event, choice.attack.score(transcripts), transcripts.left)


def _joined(parts: Sequence[Transcripts | _Odds]) -> Transcripts | _Odds:
    """Join what is kept of the same pair's runs."""
    odds = [part for part in parts if isinstance(part, _Odds)]
    if not odds:
        return concatenate([part for part in parts if isinstance(part, Transcripts)])
    return _Odds(np.concatenate([part.scores for part in odds]), np.concatenate([part.left for part in odds]))
