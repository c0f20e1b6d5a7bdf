"""Adversaries that are searched for: block-constant loss sequences of large regret.

A search sees pilot runs alone. What it finds is measured again on draws of its own, beside the listed sequences.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from ...learners.problems.losses import LOSS_SETS, Loss
from ...learners.protocol import Learner
from ..execution.execution import Budget, Execution
from ..execution.progress import steps
from ..search.proposals import quiet
from .block_sequences import BlockSequence, equal_blocks
from .measurement import play_sequences

#: Blocks of a proposed sequence, proposals, how many of them are played side by side, and the pilot runs of each.
BLOCKS, TRIALS, BATCH, PILOT_RUNS = 8, 40, 8, 100
#: Pilot runs have labels from here on: no measurement shares their draws.
PILOT = 1_000_000
#: Gaps between the best arm and the others, in units of the range.
GAPS = (1.0, 0.5, 0.25)
#: A shrunk sequence may lose so much of the regret.
MIN_SHARE = 0.97


def find_adversary(
    learner: Learner, rows: Sequence[Loss], rounds: int, budget: Budget, execution: Execution
) -> BlockSequence:
    """Return the block-constant sequence of the largest mean regret on pilot runs.

    A tree-structured Parzen estimator (optuna) proposes the losses of eight blocks, eight proposals at a time that are
    played side by side, beginning with those of the listed families that are so: a constant gap, a switch half-way and
    a late one, alternation. Then blocks are merged with their neighbours as long as 97 % of the pilot's regret stay.

    Parameters
    ----------
    rows : sequence of Loss
        What a block may hold; the first two are opposites.
    """
    import optuna

    pilot = _Pilot(learner, rounds, budget, execution)
    with quiet():
        sampler = optuna.samplers.TPESampler(seed=budget.seed % 2**32, n_startup_trials=BATCH, constant_liar=True)
        study = optuna.create_study(direction="maximize", sampler=sampler)
    for first in _known(len(rows)):
        study.enqueue_trial({f"block {i}": row for i, row in enumerate(first)})

    def proposed(trial: optuna.trial.Trial) -> BlockSequence:
        choices = [trial.suggest_categorical(f"block {i}", range(len(rows))) for i in range(min(BLOCKS, rounds))]
        return equal_blocks(rounds, [rows[row] for row in choices])

    with quiet():
        bar = "search for losses" if execution.progress else None
        for _ in steps(range(TRIALS // BATCH), bar):
            trials = [study.ask() for _ in range(BATCH)]
            for trial, regret in zip(trials, pilot([proposed(trial) for trial in trials]), strict=True):
                study.tell(trial, regret)
    best = equal_blocks(rounds, [rows[study.best_params[f"block {i}"]] for i in range(min(BLOCKS, rounds))])
    return _shrunk(best, pilot)


def rows_of_arms(losses: str, arms: int) -> list[Loss]:
    """Return loss vectors of a loss set: one arm better than all others, by a small gap or a large one; all worst."""
    kind = LOSS_SETS[losses]
    vectors = [1.0 - gap * (np.arange(arms) == best) for gap in GAPS for best in (arms - 1, *range(arms - 1))]
    vectors += [1.0 * (np.arange(arms) == worst) for worst in range(arms)] if arms > 2 else []
    vectors.append(np.ones(arms))
    return [(kind.low + (kind.high - kind.low) * vector) * kind.scale(arms) for vector in vectors]


class _Pilot:
    """The mean regrets on fresh pilot runs."""

    def __init__(self, learner: Learner, rounds: int, budget: Budget, execution: Execution) -> None:
        self.rounds, self.looks = rounds, 0
        runs = replace(budget, runs=min(PILOT_RUNS, budget.runs), stop="budget")
        self.play = partial(
            play_sequences, learner, budget=runs, execution=replace(execution, memory=None, jobs=1, progress=False)
        )

    def __call__(self, sequences: Sequence[BlockSequence]) -> list[float]:
        self.looks += 1
        worlds = [sequence.at(self.rounds) for sequence in sequences]
        return [played.mean for played in self.play(worlds, label=PILOT + BATCH * self.looks)]


def _known(rows: int) -> list[list[int]]:
    """Return the listed families that are constant on eight blocks: the first two rows are opposites."""
    half = BLOCKS // 2
    return [
        [0] * BLOCKS,
        [0] * half + [1] * half,
        [0] * (BLOCKS - 2) + [1] * 2,
        [0, 1] * half,
        [rows - 1] * half + [0] * half,
    ]


def _shrunk(sequence: BlockSequence, pilot: _Pilot) -> BlockSequence:
    """Return a sequence of fewer blocks that keeps nearly all of the pilot's regret."""
    min_regret = MIN_SHARE * pilot([sequence])[0]
    i = 0
    while min_regret > 0 and i < len(sequence.lengths) - 1:
        smaller = []
        for losses in ({i: sequence.losses[i + 1]}, {i + 1: sequence.losses[i]}):
            new_losses = tuple(losses.get(k, loss) for k, loss in enumerate(sequence.losses))
            smaller.append(replace(sequence, losses=new_losses).merged())
        regrets = pilot(smaller)
        sequence, i = (smaller[regrets[0] < min_regret], i) if max(regrets) >= min_regret else (sequence, i + 1)
    return sequence
