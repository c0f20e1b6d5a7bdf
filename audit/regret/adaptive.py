"""Adaptive adversaries: losses that answer the past arms of their own run.

Bounds are mostly proved for losses that are fixed in advance. The regret here is the policy-free one: the total loss
of a run less that of the best fixed arm on the losses that this run met.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
from numpy.typing import NDArray

from ...learners.blame import at_play, blaming
from ...learners.problems.losses import LOSS_SETS
from ...learners.protocol import Arms, Learner
from ...mechanisms.draws import Draws, Floats, Stage
from ..execution.execution import Budget, Execution
from ..execution.workers import in_parallel
from ..play.transcripts import blocks, check_actions
from .measurement import Played

#: From how often each arm was played so far, (arms, runs), and the last arms, (runs,), to which lose, (arms, runs).
Adversary = Callable[[NDArray[np.integer], Arms], NDArray[np.bool_]]
#: Draws of these measurements: no other has labels from here on.
_LABEL = 2_000_000


def punish_last(counts: NDArray[np.integer], last: Arms) -> NDArray[np.bool_]:
    """Let the arm lose that was played in the round before."""
    loses: NDArray[np.bool_] = np.arange(len(counts))[:, None] == last
    return loses


def chase_leader(counts: NDArray[np.integer], last: Arms) -> NDArray[np.bool_]:
    """Let the arm lose that was played most often, the first of equals."""
    loses: NDArray[np.bool_] = np.arange(len(counts))[:, None] == counts.argmax(axis=0)
    return loses


ADAPTIVE: Mapping[str, Adversary] = {"punishes the last arm": punish_last, "chases the leader": chase_leader}


def play_adaptive(
    learner: Learner, losses: str, rounds: int, budget: Budget, execution: Execution
) -> dict[str, Played] | None:
    """Play a learner of arms against every adaptive adversary; None where it plays points.

    Returns
    -------
    dict of Played
        Of regrets: the comparator is in each, and 0 here.
    """
    kind = LOSS_SETS[losses]
    low, high = (end * kind.scale(learner.arms) for end in (kind.low, kind.high))
    played = {}
    for i, (name, adversary) in enumerate(ADAPTIVE.items()):
        task = partial(_block, learner, adversary, (low, high), rounds, budget.seed, _LABEL + i)
        bar = f"losses of an adversary that {name}" if execution.progress else None
        parts = list(in_parallel(task, list(blocks(budget.runs)), jobs=execution.jobs, equal_costs=True, progress=bar))
        if any(part is None for part in parts):
            return None
        max_regret = rounds * (high - low)
        regrets = np.concatenate([part for part in parts if part is not None])
        played[name] = Played(regrets, (-max_regret, max_regret), 0.0, 0.0, rounds)
    return played


@blaming
def _block(
    learner: Learner,
    adversary: Adversary,
    ends: tuple[float, float],
    rounds: int,
    seed: int,
    label: int,
    block: tuple[int, int],
) -> Floats | None:
    """Return the regret of every run, (runs,)."""
    number, runs = block
    draws = Draws(seed, Stage.REGRET, pair=label, part=rounds, block=number)
    playing = at_play(learner)
    with playing():
        state = learner.start(runs, draws)
    total, of_arms = np.zeros(runs), np.zeros((learner.arms, runs))
    counts, last = np.zeros((learner.arms, runs), dtype=np.int64), np.full(runs, -1)
    columns = np.arange(runs)
    for t in range(rounds):
        with playing():
            actions = learner.act(state, draws)
        check_actions(actions, learner.arms, runs, t)
        if actions.ndim == 2:
            return None
        losses = np.where(adversary(counts, last), ends[1], ends[0])
        incurred = losses[actions, columns]
        total += incurred
        of_arms += losses
        counts[actions, columns] += 1
        last = actions.astype(np.intp)
        if t < rounds - 1:
            with playing():
                learner.update(state, actions, incurred if learner.feedback == "bandit" else losses, draws)
    regrets: Floats = total - of_arms.min(axis=0)
    return regrets
