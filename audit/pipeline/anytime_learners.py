"""Audits of learners that stop early: exact likelihood ratios where there are any, else attacks that are learned."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from scipy.special import expit

from ...mechanisms.draws import Floats, Stage
from ..attacks.learner_attacks import SequenceRatio
from ..attacks.protocol import FittedAttack, LearnerAttack
from ..play.pairs import Pair
from ..play.transcripts import Transcripts, concatenate
from ..statistics import sequential
from ..statistics.event_rule import transfer
from ..statistics.events import Event, count
from ..statistics.graded_bets import Stakes
from .anytime import SEARCH_RUNS, Scored
from .frame import Choice
from .learner_stages import FEW_SEARCH, MOST_TO_LEARN, LearnerAudit, best_of, judged_loss


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
            worths.append(audit.promise(event, count(event, scores, seen_runs.left)))
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
        return partial(_score, self.audit.player(choice.losses, choice.index, Stage.CERTIFY), choice.attack)


def _score(
    play: Callable[[tuple[int, int]], Transcripts], attack: FittedAttack[Transcripts], block: tuple[int, int]
) -> Scored[Transcripts]:
    transcripts = play(block)
    return Scored(attack.score(transcripts), transcripts.left, transcripts)
