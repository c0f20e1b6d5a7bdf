"""The choice of pair, attack and event for weak claims and many runs: from runs of all inputs with the same draws.

At an epsilon of 0.1 the two worlds' rates differ by less than the noise of a pilot. So every input is played with the
same draws (`pilot`). What attacks learn from some runs is judged by others, of which only the scores are kept: so many
that the rare events are among them that often tell most. Where the choice goes by counts, a third of these had no part
in choosing the events: the best of many is best by luck.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np

from ...mechanisms.draws import Draws, Floats, Stage
from ..assumptions.mechanism_runs import DataPair, Sample, outputs_of
from ..attacks.encoding import Encoder
from ..attacks.features import Features, LabelledView, Outputs, View
from ..attacks.learned import OutputAttack
from ..attacks.output_attacks import attacks_on
from ..attacks.protocol import FittedAttack
from ..certification.frame import Audit
from ..play.processor import one_thread
from ..play.transcripts import blocks
from ..play.workers import in_parallel
from ..statistics import event_choice
from ..statistics.events import UNUSED, Event
from .event_statements import MOST_RUNS
from .pilot import Pilot

#: Claims of at most this epsilon, with so many runs at least, are weak.
WEAK, MANY_RUNS = 0.5, 1_000_000
#: Shares of the runs: the search over pairs, the training runs, those that choose the event; and the most of each.
SEARCH, TRAIN, JUDGED = 0.12, 0.06, 0.18
MOST_SEARCH, MOST_TRAIN, MOST_JUDGED = 1_000_000, 1_000_000, 3_600_000
#: The part of a score's doubt that counts while pairs and attacks are compared: a rough estimate may be of the best.
SEARCH_DOUBT = 0.5
#: All attacks are tried on so many of the training runs, and so many of them, the best, learn from all.
HEATS, FINALISTS = 120_000, 3
#: While pairs are compared, columns are looked at on so many runs.
LOOKED_AT = 100_000
#: The share by which a histogram must promise more than what it is made of.
COARSE = 0.03
#: The shares of an attack's doubt that events are chosen with, that of smoothed log odds, and the doubt of the judges.
DOUBTS, SMOOTH_DOUBTS, LAST_DOUBT = (0.2, 0.5, 1.0, 2.0, 4.0), (0.1,), 1.0


@dataclass(frozen=True)
class Chosen:
    """What certification needs; no attack where the outputs are constant."""

    index: int  # of the pair
    attack: FittedAttack[View] | None
    encoder: Callable[[Outputs], Floats]
    features: Features
    event: Event
    spent: int  # runs
    shown: Outputs  # of some runs of both worlds


def is_weak(audit: Audit) -> bool:
    """Tell whether a claim is weak, and the runs are many."""
    return audit.claim.measure.is_epsilon and audit.claim.epsilon <= WEAK and audit.budget.runs >= MANY_RUNS


def choose(audit: Audit, mechanism: object, options: Sequence[DataPair], index: int) -> Chosen:
    """Return the pair, attack and event to certify; `index` is a part of the key of the draws."""
    with one_thread():
        return _Choice(audit, mechanism).of(options, index)


@dataclass(frozen=True)
class _Choice:
    audit: Audit
    mechanism: object

    def of(self, options: Sequence[DataPair], index: int) -> Chosen:
        pilot = Pilot(self.audit, self.mechanism, options, index)
        won = self._halve(pilot) if len(options) > 1 else 0
        train = min(int(TRAIN * self.audit.budget.runs), MOST_TRAIN)
        pilot.extend([won], max(0, train - 2 * pilot.draws))
        sample = pilot.sample(won, [won])
        pilot.played.clear()
        encoder = Encoder.fit(sample.outputs)
        columns = encoder(sample.outputs)
        features = Features(columns)
        runs = features.view(columns).labelled(sample.left, coupled=True)
        judged = min(int(JUDGED * self.audit.budget.runs), MOST_JUDGED) // 2
        play = partial(self._scores, options[won], index, encoder, features, judged)
        attack, event = self._fitted(options[won], index + won, runs, play)
        step = -(-sample.left.size // MOST_RUNS)
        shown = sample.outputs[..., ::step] if isinstance(sample.outputs, np.ndarray) else sample.outputs[::step]
        return Chosen(index + won, attack, encoder, features, event, pilot.spent + 2 * judged, shown)

    def _scores(
        self,
        pair: DataPair,
        index: int,
        encoder: Encoder,
        features: Features,
        draws: int,
        fitted: Sequence[FittedAttack[View]],
    ) -> list[Floats]:
        """Return each attack's scores of fresh coupled runs, the left world's first; nothing else of them is kept."""
        task = partial(_scored_block, self.mechanism, self.audit.budget.seed, index, pair, encoder, features, fitted)
        shown = list(in_parallel(task, list(blocks(draws)), jobs=self.audit.execution.jobs, alike=True))
        return [np.concatenate([one[i][side] for side in (0, 1) for one in shown]) for i in range(len(fitted))]

    def _halve(self, pilot: Pilot) -> int:
        """Return the winner of successive halving."""
        alive = list(range(len(pilot.pairs)))
        stages = math.ceil(math.log2(len(alive)))
        budget = min(int(SEARCH * self.audit.budget.runs), MOST_SEARCH) // (stages + 1)
        while len(alive) > 1:
            last = len(alive) <= 3  # the best few differ least
            pilot.extend(alive, max(10 * len(alive), 2 * budget if last else budget))

            def worth(i: int, alive: Sequence[int] = tuple(alive)) -> float:
                return self._worth(pilot.pairs[i], pilot.sample(i, alive))

            worths = {i: self.audit.once(f"worth/{i}/{pilot.draws}", partial(worth, i)) for i in alive}
            alive = sorted(alive, key=lambda i: -worths[i])[: len(alive) // 2]
            pilot.forget(alive)
        return alive[0]

    def _worth(self, pair: DataPair, sample: Sample) -> float:
        """Return what the best event on a pair promises: a ranking of pairs."""
        columns = Encoder.fit(sample.outputs)(sample.outputs)
        features = Features(columns[:, :: -(-sample.left.size // LOOKED_AT)])
        train = features.view(columns).labelled(sample.left, coupled=True)
        attacks = attacks_on(train, thorough=False)
        bets = [self._bets(pair, train, attack, (SEARCH_DOUBT,))[0] for attack in attacks]
        return _winner(attacks, bets)[1]

    def _fitted(
        self,
        pair: DataPair,
        index: int,
        train: LabelledView,
        play: Callable[[Sequence[FittedAttack[View]]], list[Floats]],
    ) -> tuple[FittedAttack[View] | None, Event]:
        """Return the attack and event to certify: attacks learn from training runs, fresh ones choose the event."""
        once = self.audit.once
        attacks = attacks_on(train, thorough=True)
        if len(attacks) > FINALISTS and train.left.size > 2 * HEATS:
            heats = once(f"heats/{index}", partial(self._heats, pair, train, attacks))
            attacks = [attacks[i] for i in heats]
        if not attacks:
            return None, Event(UNUSED, UNUSED, "guess")

        @cache
        def fitted(i: int) -> FittedAttack[View]:
            return attacks[i].fit(self.mechanism, pair, train)

        def final() -> list[list[Any]]:
            scores = play([fitted(i) for i in range(len(attacks))])
            return [self._judged(attack, one) for attack, one in zip(attacks, scores, strict=True)]

        best = once(f"final/{index}", final)
        won, _ = _winner(attacks, best)
        if won is None:
            return None, Event(UNUSED, UNUSED, "guess")
        return fitted(won), Event.of_json(best[won][1])

    def _judged(self, attack: OutputAttack, scores: Floats) -> list[Any]:
        """Return what the best of an attack's events promises, and the event, as JSON.

        A score that says log odds says which of its events is best, in the measure that all the runs bear it out: by
        their own counts the best of the rare ones is best by luck.
        """
        half, smooth = scores.size // 2, attack.log_odds
        choosing = (
            scores if smooth else np.concatenate([side[: half * 2 // 3] for side in (scores[:half], scores[half:])])
        )
        delta, alpha, runs = self.audit.claim.delta, self.audit.budget.alpha, self.audit.budget.runs
        choices = event_choice.choose_several(
            choosing,
            np.repeat([True, False], choosing.size // 2),
            [doubt * attack.doubt for doubt in (SMOOTH_DOUBTS if smooth else DOUBTS)],
            log_odds=attack.log_odds,
            coupled=True,
            smooth_alone=smooth,
            delta=delta,
            alpha=alpha,
            runs=runs,
        )
        events = [event for event, _ in choices]
        worths = event_choice.promised(events, scores, delta=delta, alpha=alpha, runs=runs, doubt=LAST_DOUBT)
        won = worths.index(max(worths))
        return [worths[won], events[won].to_json()]

    def _heats(self, pair: DataPair, train: LabelledView, attacks: Sequence[OutputAttack]) -> list[int]:
        """Return the attacks that promise most on some of the runs, in their order."""
        heat = train.thinned(HEATS)
        worths = [self._bets(pair, heat, attack, (SEARCH_DOUBT,))[0][0] for attack in attacks]
        return sorted(sorted(range(len(attacks)), key=lambda i: -worths[i])[:FINALISTS])

    def _bets(
        self,
        pair: DataPair,
        train: LabelledView,
        attack: OutputAttack,
        doubts: Sequence[float],
        scores: Floats | None = None,
    ) -> list[list[Any]]:
        """Return what an attack's best events promise, and these, with so much of the attack's own doubt each."""
        if scores is None:
            scores = self._cross_fitted(pair, train, attack)
        choices = event_choice.choose_several(
            scores,
            train.left,
            [doubt * attack.doubt for doubt in doubts],
            delta=self.audit.claim.delta,
            alpha=self.audit.budget.alpha,
            runs=self.audit.budget.runs,
            log_odds=attack.log_odds,
            coupled=True,
        )
        return [[float(worth), event.to_json()] for event, worth in choices]

    def _cross_fitted(self, pair: DataPair, train: LabelledView, attack: OutputAttack) -> Floats:
        """Return the scores of all runs by an attack that was fitted on the other half of them."""
        if not attack.needs_other_runs:
            return attack.fit(self.mechanism, pair, train).score(train)
        scores = np.empty(train.left.size)
        for fold in (0, 1):
            fitted = attack.fit(self.mechanism, pair, train.every(2, 1 - fold))
            scores[train.fold(fold)] = fitted.score(train.every(2, fold))
        return scores


def _scored_block(
    mechanism: object,
    seed: int,
    index: int,
    pair: DataPair,
    encoder: Encoder,
    features: Features,
    fitted: Sequence[FittedAttack[View]],
    block: tuple[int, int],
) -> list[tuple[Floats, Floats]]:
    number, runs = block
    views = []
    for data in (pair.left, pair.right):
        outputs = outputs_of(mechanism, data, Draws(seed, Stage.TRAIN, index, 1, number), runs)
        views.append(features.view(encoder(outputs)))
    return [(attack.score(views[0]), attack.score(views[1])) for attack in fitted]


def _winner(attacks: Sequence[OutputAttack], bets: Sequence[Sequence[Any]]) -> tuple[int | None, float]:
    """Return the attack whose event promises most, if any does, and what it promises."""
    won, best = None, -math.inf
    for i, (attack, (worth, _)) in enumerate(zip(attacks, bets, strict=True)):
        # What a few bins say more than their feature is mostly luck, unless it is much.
        handicap = COARSE * abs(best) if attack.coarse and math.isfinite(best) else 0.0
        if worth > best + handicap:
            won, best = i, worth
    return won, best
