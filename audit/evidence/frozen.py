"""Frozen events: what an audit's event says of a run, written as data, so that a later run can count it again.

A baseline is compared with a changed learner by one event on fresh runs of it, never by two audits, whose events
differ by luck alone and with every change of the attack. So the event must be data, neither a fitted object nor code
that may change: which side it takes of every sequence of arms, of every outcome, of every interval of a number; or,
where these are too many, a logistic regression that stands in for the attack.

It is fixed before the runs that are counted for it. The draws of a comparison are keyed by the hash of what was
counted, at a stage of their own, so they are never those of the baseline, and those of no other claim.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...learners.abilities import batch_of, decisions
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.numerics import significant
from ...mechanisms.view import ACTIONS, View
from ..attacks.learner_attacks import SequenceRatio, SequenceTable
from ..attacks.outputs.regressions import STANDARD_BITS, LinearOdds
from ..attacks.protocol import Scorer
from ..attacks.rules import (
    Intervals,
    LinearRule,
    NotFrozenError,
    Outcomes,
    Rule,
    Seen,
    Sequences,
    columns_of,
    mechanism_outputs,
    rule_of,
    texts_of,
)
from ..encoding.encoder import vectors
from ..execution.workers import in_parallel
from ..laws.sequences import MAX_SEQUENCES, all_sequences
from ..play.data import DataPair
from ..play.mechanism_runs import join, run_block
from ..play.pairs import Pair
from ..play.transcripts import Transcripts, blocks, concatenate, play
from ..statistics.event_rule import choose_by_labels
from ..statistics.events import Counts, Event, count
from ..verdicts.verdict import Result

#: Sides read as scores.
BY_SIDE = Event(-0.5, 0.5, "guess")
#: Runs that show which outcomes there are, or that a regression is fitted on, and as many to choose its thresholds.
LOOKED = 10_000
#: Runs that are counted where an audit's own cannot serve: the event is another, or changed on the way.
FRESH_RUNS = 50_000
#: Runs of each, at least.
MIN_RUNS = 200
#: Beyond so many intervals, outcomes, letters of all outcomes, or columns, an event is not written.
MOST_CUTS, MOST_OUTCOMES, MOST_LETTERS, MOST_COLUMNS = 400, 400, 20_000, 400
#: The largest written number: JSON has no infinity.
_LARGEST = float(np.finfo(float).max)
#: Sums of squares of numbers up to 2 to this power are finite.
_SQUARED = 400
#: Among the ranks of scores, as shares of them, thresholds are looked for: evenly, and ever closer to the ends.
_RANKS = np.unique([*np.arange(32) / 32, *(0.5 ** np.arange(6, 13)), *(1 - 0.5 ** np.arange(6, 13))])
_LOOK, _CHOOSE, _COUNT = 0, 1, 2  # keys of the draws


#: Plays a block, (its number, its runs), of a stage and a key, with a share of the runs in the left world.
#: Returns what is seen, and the labels.
Player = Callable[[int, int, float, tuple[int, int]], tuple[Seen, NDArray[np.bool_]]]


def player_of(target: object, pair: Pair | DataPair, view: View, seed: int) -> Player:
    """Return what plays a learner or a mechanism on a pair, always on NumPy's draws; it travels to processes."""
    return partial(_play, target, pair, view, seed)


def _play(
    target: Any,
    pair: Pair | DataPair,
    view: View,
    seed: int,
    stage: int,
    key: int,
    share: float,
    block: tuple[int, int],
) -> tuple[Seen, NDArray[np.bool_]]:
    number, runs = block
    draws = Draws(seed, stage, 0, key, number)
    if isinstance(pair, DataPair):
        sample = run_block(target, pair, draws, runs, share)
        return sample.outputs, sample.left
    seen = play(target, pair, draws, runs, view=view, share=share)
    return seen, seen.left


def _count_block(play: Player, rule: Rule, stage: int, share: float, block: tuple[int, int]) -> Counts:
    seen, left = play(stage, _COUNT, share, block)
    return count(BY_SIDE, rule.sides(seen), left)


def count_fresh(play: Player, rule: Rule, stage: Stage, share: float, runs: int, *, jobs: int = 1) -> Counts:
    """Return the counts of a rule over fresh runs of a stage."""
    task = partial(_count_block, play, rule, int(stage), share)
    return sum(in_parallel(task, blocks(runs), jobs=jobs, equal_costs=True), start=Counts())


def _together(play: Player, key: int, share: float, runs: int) -> tuple[Seen, NDArray[np.bool_]]:
    parts = [play(Stage.FROZEN, key, share, block) for block in blocks(runs)]
    transcripts = [part for part, _ in parts if isinstance(part, Transcripts)]
    seen = concatenate(transcripts) if transcripts else join([mechanism_outputs(part) for part, _ in parts])
    return seen, np.concatenate([labels for _, labels in parts])


@dataclass(frozen=True)
class Frozen:
    """A rule with what was counted of it.

    Attributes
    ----------
    rule : Rule
    share : float
        The probability of the left world in the runs that were counted.
    counts : Counts
    """

    rule: Rule
    share: float
    counts: Counts

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        return {**self.rule.to_json(), "share": self.share, "counts": self.counts.to_json()}

    @classmethod
    def from_json(cls, data: Any) -> Frozen:
        """Read the record's form; raise NotFrozenError if it is none."""
        rule = rule_of(data)
        try:
            share = float(data["share"])
            counts = Counts.of_json(data["counts"])
        except (KeyError, TypeError, ValueError) as error:
            raise NotFrozenError(f"the baseline's counts cannot be read: {error}") from None
        if not 0 < share < 1:
            raise must_be("the baseline's share", "in (0, 1)", share, NotFrozenError)
        return cls(rule, share, counts)

    def again(
        self, target: object, pair: Pair | DataPair, view: View, *, key: object, runs: int, jobs: int = 1
    ) -> Counts:
        """Return the counts of the rule over fresh runs of a learner or mechanism, on draws of their own.

        Parameters
        ----------
        key : JSON
            What the draws are keyed by, beside what is frozen.
        """
        text = json.dumps([key, self.to_json()], sort_keys=True, default=repr)
        seed = int.from_bytes(hashlib.sha256(text.encode(errors="replace")).digest()[:8], "big")
        play = player_of(target, pair, view, seed)
        return count_fresh(play, self.rule, Stage.COMPARISON, self.share, runs, jobs=jobs)


def freeze(target: object, result: Result, *, budget: int, jobs: int = 1) -> Frozen:
    """Return an audit's event as data, or a regression that stands in for it, with what was counted of it.

    Parameters
    ----------
    target : Learner or mechanism
        What was audited.
    budget : int
        All runs of the audit.

    Raises
    ------
    NotFrozenError
        If there is no such event: outputs that are neither numbers nor few, or too many columns.
    LearnerError
        If the target misbehaves.
    """
    play = player_of(target, result.pair, result.claim.view, result.seed)
    looked, n_counted = min(LOOKED, max(MIN_RUNS, budget // 5)), max(MIN_RUNS, min(FRESH_RUNS, budget))
    if result.certificate.method == "anytime":
        result = _told_best(result, *_together(play, _CHOOSE, 0.5, looked))
    rule, share = _sequences(target, result), result.event.share
    if rule is not None and _counted_already(result):
        return Frozen(rule, share, result.certificate.counts)
    if rule is None and isinstance(result.pair, DataPair):
        rule = _outcomes(result, play, looked)
    if rule is None:
        rule, share = _linear(target, result, play, looked)
    return Frozen(rule, share, count_fresh(play, rule, Stage.FROZEN, share, n_counted, jobs=jobs))


def _told_best(result: Result, seen: Seen, left: NDArray[np.bool_]) -> Result:
    """Return an early audit's result with the event on its score that tells the worlds apart best.

    What it bet on last was chosen against e^epsilon of the claim. Where the claim holds that may be a far tail, which
    less noise makes rarer, or none at all: then the score may even be a number that is larger in the right world. The
    runs here are counted for nothing, so their labels may choose.
    """
    scorers: list[Any] = [result.scorer, Scorer(result.attack, lambda seen: -result.scorer.score(seen))]
    candidates = [replace(result, scorer=scorer) for scorer in scorers]
    events = [_most_telling(candidate.scorer.score(seen), left) for candidate in candidates]
    best = int(events[1][1] > events[0][1])
    return replace(candidates[best], event=events[best][0])


def _most_telling(scores: Floats, left: NDArray[np.bool_]) -> tuple[Event, float]:
    """Return the event by which right guesses exceed wrong ones most, in standard errors, and by how many."""
    finite = np.sort(scores[~np.isnan(scores)])
    cuts = np.append(
        np.unique(finite[(_RANKS * finite.size).astype(int)]) if finite.size else [], np.nan
    )  # nan: unused
    upper_marks, lower_marks = scores >= cuts[:, None], scores <= cuts[:, None]
    excess = upper_marks @ (2.0 * left - 1) + (lower_marks @ (1 - 2.0 * left))[:, None]
    guesses = upper_marks.sum(axis=1) + lower_marks.sum(axis=1)[:, None]
    excess[cuts[:, None] >= cuts] = -np.inf  # a run would be named for both worlds
    excess[-1, -1] = -np.inf  # none would be named
    gains = excess / np.sqrt(guesses + 1)
    lower, upper = np.unravel_index(np.argmax(gains), gains.shape)
    return Event(float(cuts[lower]), float(cuts[upper]), "guess"), float(gains[lower, upper])


def _sequences(target: Any, result: Result) -> Rule | None:
    """Return the side of every sequence of arms, where they are few."""
    pair = result.pair
    if not isinstance(pair, Pair) or result.claim.view != ACTIONS or pair.arms is None:
        return None
    batch = batch_of(target)
    n_decisions = decisions(pair.rounds, batch)
    if n_decisions * math.log(target.arms) > math.log(MAX_SEQUENCES) + 1e-9:
        return None
    sample, _ = player_of(target, pair, ACTIONS, 0)(Stage.FROZEN, _LOOK, 0.5, (0, 1))
    if not isinstance(sample, Transcripts) or sample.actions.ndim != 2:  # points
        return None
    actions = np.repeat(all_sequences(target.arms, n_decisions), batch, axis=0)[: pair.rounds].astype(
        sample.actions.dtype
    )
    scores = result.scorer.score(Transcripts(actions, np.zeros(actions.shape[-1], dtype=np.bool_)))
    return Sequences(target.arms, batch, result.event.sides(scores))


def _counted_already(result: Result) -> bool:
    """Tell whether the certificate counted this very event, on the draws that a comparison has too."""
    looked_up = isinstance(result.scorer, SequenceRatio | SequenceTable)
    return looked_up and result.certificate.method != "anytime"


def _outcomes(result: Result, play: Player, runs: int) -> Rule | None:
    """Return the side of every interval of a number, or of every outcome where they are few."""
    outputs = mechanism_outputs(_together(play, _LOOK, result.event.share, runs)[0])
    sides = result.event.sides(result.scorer.score(outputs))
    _, numbers = vectors(outputs)
    if numbers is not None and len(numbers) == 1:
        values, first = np.unique(np.asarray(numbers[0], dtype=float), return_index=True)
        value_sides = sides[first]
        turns = np.flatnonzero(value_sides[1:] != value_sides[:-1]) + 1
        if turns.size > MOST_CUTS or np.isnan(values[turns]).any():
            raise NotFrozenError(f"its event reads single bits: it turns {turns.size} times over the numbers")
        cuts = np.clip(values[turns], -_LARGEST, _LARGEST)
        return Intervals(cuts, value_sides[np.concatenate([[0], turns])])
    texts = texts_of(outputs)
    side_of = dict(zip(texts, sides.tolist(), strict=True))
    if len(side_of) > min(MOST_OUTCOMES, runs // 4) or sum(map(len, side_of)) > MOST_LETTERS:
        return None
    return Outcomes({text: side for text, side in sorted(side_of.items()) if side})


def _centre_and_spread(columns: Floats) -> tuple[Floats, Floats]:
    """Return the medians and the standard deviations of columns, finite even where their sums or squares are not."""
    shift = np.maximum(np.frexp(np.abs(columns).max(axis=1))[1] - _SQUARED, 0)
    scaled = np.ldexp(columns, -shift[:, None])
    centre = np.ldexp(np.median(scaled, axis=1), shift)
    spread = significant(np.ldexp(scaled.std(axis=1), shift), STANDARD_BITS)
    return centre, np.where((spread > 0) & np.isfinite(spread), spread, 1.0)


def _linear(target: Any, result: Result, play: Player, runs: int) -> tuple[Rule, float]:
    """Return a regression that stands in for the attack, and the share of its event."""
    arms = target.arms if isinstance(result.pair, Pair) else 0
    seen, left = _together(play, _LOOK, 0.5, runs)
    columns = columns_of(seen, arms)
    if not 0 < len(columns) <= MOST_COLUMNS:
        raise NotFrozenError(f"{len(columns)} columns are too many to write an event of")
    finite = np.where(np.isfinite(columns), columns, 0.0)
    centre, spread = _centre_and_spread(finite)
    odds = LinearOdds(np.zeros(3 * len(columns) - 1), 0.0)
    if left.any() and not left.all():
        odds = LinearOdds.fit(LinearRule.features(columns, centre, spread).T, left)
    rule = LinearRule(arms, centre, spread, odds.weights, odds.constant, math.nan, math.nan)
    seen, left = _together(play, _CHOOSE, 0.5, runs)
    scores, delta, alpha = rule.score(columns_of(seen, arms)), result.claim.delta, result.certificate.alpha
    if result.certificate.method == "anytime":
        event, _ = _most_telling(scores, left)
    else:
        event = choose_by_labels(scores, left, delta=delta, alpha=alpha, runs=FRESH_RUNS)
    return replace(rule, lower=event.lower, upper=event.upper), event.share
