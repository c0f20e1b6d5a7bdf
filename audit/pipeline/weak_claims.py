"""The choice of pair, attack and event for weak claims and many runs: from runs of all inputs with the same draws.

At an epsilon of 0.1 the two worlds' rates differ by less than the noise of a pilot. So every input is played with the
same draws (`pilot`). What attacks learn from some runs is judged by others, of which only the scores are kept: so many
that the rare events are among them that often tell most, by the trend of the tail that they are in: by its counts the
best of many is best by luck. The last few pairs race on such runs too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import numpy as np

from ...mechanisms.draws import Draws, Floats, Stage
from ..attacks.outputs.learned import OutputAttack, on_outputs
from ..attacks.outputs.output_attacks import attacks_on
from ..attacks.protocol import NoEvidence, Scorer
from ..encoding.encoder import Encoder
from ..encoding.features import Columns, Features, LabelledColumns, Outputs
from ..execution.processor import one_thread
from ..execution.workers import in_parallel
from ..play.data import DataPair
from ..play.mechanism_runs import Sample, outputs_of
from ..play.transcripts import BLOCK, blocks
from ..play.unseeded import Unseeded
from ..search.race import Heat, halving, race
from ..statistics import event_choice
from ..statistics.event_choice import Certification, Odds, PilotScores, choose_by_trend, predicted_bound
from ..statistics.events import NO_EVENT, Event
from .event_statements import MOST_RUNS, described
from .frame import Audit, Choice
from .pilot import Pilot

#: Claims of at most this epsilon, with so many runs at least, are weak.
WEAK, MANY_RUNS = 0.5, 1_000_000
#: Shares of the runs: the search over pairs, the training runs, those that choose the event; and the most of each.
SEARCH, TRAIN, JUDGED = 0.03, 0.06, 0.18
MOST_SEARCH, MOST_TRAIN, MOST_JUDGED = 600_000, 1_000_000, 1_600_000
#: So many pairs at most race, with so many of their attacks: every input's draws in each heat as a share of the runs,
#: the most of these draws, and the pairs that are left. They are the first of the draws that choose the event.
N_FINALISTS, RACERS, RACE = 4, 2, ((0.0125, 250_000, 2), (0.04, 800_000, 1))
#: The part of a score's doubt that counts while pairs and attacks are compared: a rough estimate may be of the best.
SEARCH_DOUBT = 0.5
#: All attacks are tried on so many of the training runs, and so many of them, the best, learn from all.
HEATS, FINALISTS = 120_000, 3
#: While pairs are compared, columns are looked at on so many runs.
LOOKED_AT = 100_000


def is_weak(audit: Audit) -> bool:
    """Tell whether a claim is weak, and the runs are many."""
    return audit.claim.measure.is_epsilon and audit.claim.epsilon <= WEAK and audit.budget.runs >= MANY_RUNS


@one_thread()
def choose(audit: Audit, mechanism: object, options: Sequence[DataPair], index: int) -> tuple[Choice, int]:
    """Return the pair, attack and event to certify, and the runs spent; `index` is a part of the key of the draws."""
    return _Choosing(audit, mechanism).of(options, index)


@dataclass(frozen=True)
class _Scorer:
    """Attacks on a pair that have learned, and how they read outputs."""

    pair: DataPair
    encoder: Callable[[Outputs], Floats]
    features: Features
    attacks: Sequence[OutputAttack]
    fitted: Sequence[Scorer[Columns]]

    @property
    def inputs(self) -> list[tuple[str, object]]:
        """The inputs by their texts, the left one first."""
        return list(zip(self.pair.keys, (self.pair.left, self.pair.right), strict=True))

    def scores(self, played: Mapping[str, Outputs]) -> list[tuple[Floats, Floats]]:
        """Return each attack's scores of outputs on either input."""
        left, right = (self.features.view(self.encoder(played[key])) for key, _ in self.inputs)
        return [(attack.score(left), attack.score(right)) for attack in self.fitted]


@dataclass(frozen=True)
class _Lesson:
    """The pilot's runs of a pair, encoded once, and what few of them show is worth learning."""

    pilot: Pilot
    index: int
    alive: tuple[int, ...]

    @property
    def pair(self) -> DataPair:
        """The pair."""
        return self.pilot.pairs[self.index]

    @cached_property
    def encoder(self) -> Encoder:
        """What turns outputs into columns."""
        return Encoder.fit(self._sample.outputs)

    @cached_property
    def train(self) -> LabelledColumns:
        """The training runs, whose features were looked for in some of them."""
        columns = self.encoder(self._sample.outputs)
        features = Features(columns[:, :: -(-columns.shape[1] // LOOKED_AT)])
        return features.view(columns).labelled(self._sample.left, coupled=True)

    @cached_property
    def attacks(self) -> list[OutputAttack]:
        """The attacks worth fitting."""
        return attacks_on(self.train, thorough=False)

    @property
    def _sample(self) -> Sample:
        return self.pilot.sample(self.index, self.alive)


@dataclass(frozen=True)
class _Choosing:
    """An audit of a mechanism that chooses what to certify."""

    audit: Audit
    mechanism: object

    def of(self, options: Sequence[DataPair], index: int) -> tuple[Choice, int]:
        pilot = Pilot(self.audit, self.mechanism, options, index)
        best = self._search(pilot) if len(options) > 1 else 0
        pilot.extend([best], max(0, self._share(TRAIN, MOST_TRAIN) - 2 * pilot.draws))
        sample = pilot.sample(best, [best])
        pilot.played.clear()
        encoder = Encoder.fit(sample.outputs)
        columns = encoder(sample.outputs)
        features = Features(columns)
        runs = features.view(columns).labelled(sample.left, coupled=True)
        judged = self._share(JUDGED, MOST_JUDGED) // 2

        def play(fitted: Sequence[Scorer[Columns]]) -> list[Floats]:
            return self._scores([_Scorer(options[best], encoder, features, (), fitted)], index, judged)[0]

        fitted, event = self._fitted(options[best], index + best, runs, play)
        attack = NoEvidence() if fitted is None else on_outputs(fitted, encoder, features)
        choice = Choice(options[best], attack, event, index + best, alike=fitted is None)
        step = -(-sample.left.size // MOST_RUNS)
        outputs = sample.outputs[..., ::step] if isinstance(sample.outputs, np.ndarray) else sample.outputs[::step]
        return described(choice, outputs), pilot.spent + 2 * judged

    def _scores(self, scorers: Sequence[_Scorer], index: int, draws: int) -> list[list[Floats]]:
        """Return each attack's scores of fresh coupled runs, the left world's first; nothing else of them is kept."""
        task = partial(_scored_block, self.mechanism, self.audit.budget.seed, index, scorers)
        score_blocks = list(in_parallel(task, list(blocks(draws)), jobs=self.audit.execution.jobs, equal_costs=True))
        return [
            [
                np.concatenate([block[i][k][side] for side in (0, 1) for block in score_blocks])
                for k in range(len(scorer.fitted))
            ]
            for i, scorer in enumerate(scorers)
        ]

    def _search(self, pilot: Pilot) -> int:
        """Return the best pair: of the few that halving leaves, by fresh runs, which their best attacks score."""
        recall, n_pairs, runs = self.audit.once, len(pilot.pairs), self._share(SEARCH, MOST_SEARCH)
        lessons, bets, before = dict[int, _Lesson](), dict[int, list[Any]](), 0

        def judge(alive: Sequence[int], heat: Heat) -> list[float]:
            pilot.forget(alive)
            pilot.extend(alive, max(10 * len(alive), heat.runs))
            lessons.update((i, _Lesson(pilot, i, tuple(alive))) for i in alive)
            bets.update((i, recall(f"worth/{i}/{pilot.draws}", partial(self._bet, lessons[i]))) for i in alive)
            return [bets[i][0] for i in alive]

        def judge_afresh(alive: Sequence[int], heat: Heat) -> list[float]:
            nonlocal before
            draws = heat.runs - (heat.runs % BLOCK if heat.runs > BLOCK else 0)
            self._pay(pilot, alive, draws, before)
            racing = [i for i in alive if i in promising]
            raced = partial(self._race, [promising[i] for i in racing], pilot.index, draws)
            worths = dict(zip(racing, recall(f"race/{heat.n_kept}", raced), strict=True))
            before = draws
            return [worths.get(i, -math.inf) for i in alive]

        alive = race(range(n_pairs), halving(n_pairs, runs, min_entrants=N_FINALISTS) or [Heat(runs, n_pairs)], judge)
        promising = {i: self._scorer(lessons[i], bets[i][1]) for i in alive if bets[i][1]}
        heats = [Heat(self._share(share, max_runs), n_kept) for share, max_runs, n_kept in RACE if len(alive) > n_kept]
        alive = race(alive, heats, judge_afresh)
        pilot.forget(alive)
        return alive[0]

    def _pay(self, pilot: Pilot, alive: Sequence[int], draws: int, before: int) -> None:
        """Count the runs of a race that no other heat has, nor the winner's runs that choose the event."""
        inputs = pilot.many_inputs(alive)
        seeded = not isinstance(self.mechanism, Unseeded)  # what cannot be seeded plays other runs each time
        pilot.spent += (inputs - 2) * (draws - before) if seeded else inputs * draws

    def _share(self, share: float, max_runs: int) -> int:
        """Return a share of the runs, but at most so many."""
        return min(int(share * self.audit.budget.runs), max_runs)

    def _bet(self, lesson: _Lesson) -> list[Any]:
        """Return what the best event on a pair promises, and the attacks that promise most: a ranking of pairs."""
        worths = self._promises(lesson.attacks, lesson.pair, lesson.train)
        ranked = sorted(range(len(worths)), key=lambda i: -worths[i])
        return [max(worths, default=-math.inf), ranked[:RACERS]]

    def _scorer(self, lesson: _Lesson, best: Sequence[int]) -> _Scorer:
        """Return a pair's best attacks, which learned from all its runs."""
        attacks, train = [lesson.attacks[i] for i in best], lesson.train
        fitted = [attack.fit(self.mechanism, lesson.pair, train) for attack in attacks]
        return _Scorer(lesson.pair, lesson.encoder, train.features, attacks, fitted)

    def _race(self, scorers: Sequence[_Scorer], index: int, draws: int) -> list[float]:
        """Return what the best event on each pair promises on so many fresh draws."""
        scores = self._scores(scorers, index, draws)
        return [
            max(self._raced(attack, score) for attack, score in zip(scorer.attacks, scorer_scores, strict=True))
            for scorer, scorer_scores in zip(scorers, scores, strict=True)
        ]

    def _raced(self, attack: OutputAttack, scores: Floats) -> float:
        """Return what an attack's best event promises, by the trends of tails or, if less, by smoothed rates."""
        pilot = PilotScores(scores, doubt=SEARCH_DOUBT * attack.doubt)
        return min(choose_by_trend(pilot, self._certification).bound, self._promise(attack, scores))

    def _fitted(
        self,
        pair: DataPair,
        index: int,
        train: LabelledColumns,
        play: Callable[[Sequence[Scorer[Columns]]], list[Floats]],
    ) -> tuple[Scorer[Columns] | None, Event]:
        """Return the attack and event to certify: attacks learn from training runs, fresh ones choose the event."""
        recall = self.audit.once
        attacks = attacks_on(train, thorough=True)
        if len(attacks) > FINALISTS and train.left.size > 2 * HEATS:
            heats = recall(f"heats/{index}", partial(self._heats, pair, train, attacks))
            attacks = [attacks[i] for i in heats]
        if not attacks:
            return None, NO_EVENT

        @cache
        def fitted(i: int) -> Scorer[Columns]:
            return attacks[i].fit(self.mechanism, pair, train)

        def final() -> list[list[Any]]:
            scores = play([fitted(i) for i in range(len(attacks))])
            return [self._judged(attack, attack_scores) for attack, attack_scores in zip(attacks, scores, strict=True)]

        best = recall(f"final/{index}", final)
        best_attack = _winner(best)
        if best_attack is None:
            return None, NO_EVENT
        return fitted(best_attack), Event.of_json(best[best_attack][1])

    def _judged(self, attack: OutputAttack, scores: Floats) -> list[Any]:
        """Return what the best of an attack's events promises, and the event, as JSON.

        By its counts the best of them is best by luck: trends say what they are worth. Log odds may mislead where few
        runs are, so half of what an event of theirs promises is by its counts.
        """
        event, bound = choose_by_trend(self._pilot(attack, scores, attack.doubt), self._certification)
        if attack.log_odds:
            bound_of_counts = predicted_bound(event, PilotScores(scores, doubt=0.0), self._certification)
            bound = (bound + bound_of_counts) / 2
        return [bound, event.to_json()]

    @property
    def _certification(self) -> Certification:
        return Certification(self.audit.claim.delta, self.audit.budget.alpha, self.audit.budget.runs)

    @staticmethod
    def _pilot(attack: OutputAttack, scores: Floats, doubt: float) -> PilotScores:
        """Return an attack's scores of coupled runs."""
        return PilotScores(scores, odds=Odds.ESTIMATED if attack.log_odds else Odds.NONE, doubt=doubt)

    def _heats(self, pair: DataPair, train: LabelledColumns, attacks: Sequence[OutputAttack]) -> list[int]:
        """Return the attacks that promise most on some of the runs, in their order."""
        worths = self._promises(attacks, pair, train.thinned(HEATS))
        return sorted(sorted(range(len(attacks)), key=lambda i: -worths[i])[:FINALISTS])

    def _promises(self, attacks: Sequence[OutputAttack], pair: DataPair, train: LabelledColumns) -> list[float]:
        """Return what the best event of every attack promises, fitted on either half of some runs."""
        return [self._promise(attack, attack.cross_fitted(self.mechanism, pair, train)) for attack in attacks]

    def _promise(self, attack: OutputAttack, scores: Floats) -> float:
        """Return what an attack's best event promises, while pairs and attacks are compared."""
        pilot = self._pilot(attack, scores, SEARCH_DOUBT * attack.doubt)
        return event_choice.choose(pilot, self._certification).bound


def _scored_block(
    mechanism: object, seed: int, index: int, scorers: Sequence[_Scorer], block: tuple[int, int]
) -> list[list[tuple[Floats, Floats]]]:
    number, runs = block
    inputs = {key: data for scorer in scorers for key, data in scorer.inputs}
    played = {
        key: outputs_of(mechanism, data, Draws(seed, Stage.TRAIN, index, 1, number), runs)
        for key, data in inputs.items()
    }
    return [scorer.scores(played) for scorer in scorers]


def _winner(bets: Sequence[Sequence[Any]]) -> int | None:
    """Return the attack whose event promises most, if any does."""
    winner, best = None, -math.inf
    for i, (bound, _) in enumerate(bets):
        if bound > best:
            winner, best = i, bound
    return winner
