"""Loss sequences for regret: alternation, the leader that loses, changes, and the hard instance of Lemma 11."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...mechanisms.draws import Floats
from ..checks import check_arms, check_rounds


def alternating_losses(rounds: int, arms: int) -> Floats:
    """Return losses of 0 for one arm and 1 for the others, the good arm going round: (rounds, arms)."""
    check_rounds(rounds)
    check_arms(arms)
    return 1.0 - np.eye(arms)[np.arange(rounds) % arms]


def leader_loses(rounds: int, arms: int) -> Floats:
    """Return losses on which the arm that was best so far has loss 1 in every round but the first: (rounds, arms).

    Half a loss for the first arm, then 1 for the second and the first arm in turn: no tie, so follow-the-leader has a
    regret of about T / 2 however it breaks them. Other arms have loss 1 (Shalev-Shwartz 2012, Example 2.2).
    """
    check_rounds(rounds)
    check_arms(arms)
    losses = np.ones((rounds, arms))
    if arms == 1:  # a slope on an interval: its sum so far is negative where the next one is positive, in [-1, 1]
        losses[0], losses[2::2] = 0.25, 0.0
        return losses
    losses[1::2, 0] = losses[2::2, 1] = losses[0, 1] = 0.0
    losses[0, 0] = 0.5
    return losses


def switching_losses(rounds: int, arms: int) -> Floats:
    """Return losses whose best arm is the first until half-time and the last from then on: (rounds, arms).

    The last arm's losses are (1, then 0), the first arm's (1/4, then 1), the others' 1: the last arm is best overall.
    """
    check_rounds(rounds)
    check_arms(arms)
    losses = np.ones((rounds, arms))
    losses[: rounds // 2, 0] = 0.25
    losses[rounds // 2 :, -1] = 0.0
    return losses


def early_switch(rounds: int, arms: int) -> Floats:
    """Return losses of 0 for the first arm in the first quarter, then for the last, else 1: (rounds, arms).

    Whoever stays with the first arm has a regret of T / 2.
    """
    check_rounds(rounds)
    check_arms(arms)
    return _first_or_last(np.arange(rounds) < rounds // 4, arms)


def held_losses(rounds: int, arms: int) -> Floats:
    """Return losses of 0 for the first and the last arm in turn, sqrt(T) rounds each, else 1: (rounds, arms).

    Whoever decides anew every sqrt(T) rounds only follows what was.
    """
    check_rounds(rounds)
    check_arms(arms)
    return _first_or_last(np.arange(rounds) // math.isqrt(rounds) % 2 == 0, arms)


def _first_or_last(first: NDArray[np.bool_], arms: int) -> Floats:
    losses = np.ones((first.size, arms))
    losses[~first, -1] = 0.0
    losses[:, 0] = ~first  # of one arm, too
    return losses


def lemma_11_losses(rounds: int, *, drop: int | None = None) -> Floats:
    """Return the instance of Lemma 11 of Asi, Raman & Talwar 2025, (rounds, 2).

    Arm 0 always has loss 1/2. Arm 1 has loss 1 in the first `drop` rounds and 0 from then on: a private learner that
    has stopped playing it is slow to notice.

    Parameters
    ----------
    rounds : int
        T.
    drop : int, optional
        Rounds before arm 1 drops, 0 to T; default T / 2, T for never.
    """
    check_rounds(rounds)
    drop = rounds // 2 if drop is None else drop
    if not 0 <= drop <= rounds:
        raise must_be("drop", f"in 0..{rounds}", drop)
    losses = np.tile([0.5, 1.0], (rounds, 1))
    losses[drop:, 1] = 0.0
    return losses
