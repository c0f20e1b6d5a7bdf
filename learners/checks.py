"""Checks of parameters, each with a message that states the bound and the value it got."""

from __future__ import annotations

import math
import operator

from ..errors import must_be
from ..mechanisms.parameters import check_positive

#: The most losses in one sequence: larger ones do not fit into memory, as many times as an audit plays them.
MOST_LOSSES = 10_000_000


def check_arms(arms: int) -> None:
    """Raise ValueError unless `arms` is an integer of at least 1."""
    check_whole("arms", arms)


def check_rounds(rounds: int) -> None:
    """Raise ValueError unless `rounds` is an integer of at least 1."""
    check_whole("rounds", rounds)


def check_game(rounds: int, arms: int) -> tuple[int, int]:
    """Return both as `check_whole`; raise ValueError unless they are so small that the losses fit into memory."""
    rounds, arms = check_whole("rounds", rounds), check_whole("arms", arms)
    for name, value in (("rounds", rounds), ("arms", arms)):
        if value > MOST_LOSSES:
            raise must_be(name, f"at most {MOST_LOSSES:,}", value)
    if rounds * arms > MOST_LOSSES:
        raise ValueError(f"rounds times arms must be at most {MOST_LOSSES:,}, got {rounds} times {arms}")
    return rounds, arms


def check_batch(batch: int) -> None:
    """Raise ValueError unless `batch` is an integer of at least 1."""
    check_whole("batch", batch)


def check_whole(name: str, value: int) -> int:
    """Return `value` as an integer of Python's, which never overflows; raise ValueError unless it is one from 1 on."""
    if isinstance(value, bool) or not hasattr(value, "__index__") or value < 1:
        raise must_be(name, "an integer of at least 1", value)
    return operator.index(value)


def check_fraction(name: str, value: float) -> None:
    """Raise ValueError unless `value` lies in [0, 1]."""
    if not 0 <= value <= 1:
        raise must_be(name, "in [0, 1]", value)


def check_epsilon(epsilon: float) -> None:
    """Raise ValueError unless `epsilon` is positive and can be computed with; inf means no noise."""
    if not epsilon > 0:
        raise must_be("epsilon", "positive (inf for no noise)", epsilon)
    if epsilon != math.inf:
        check_positive("epsilon", epsilon)


def check_delta(delta: float) -> None:
    """Raise ValueError unless `delta` lies in (0, 1), as Gaussian noise needs."""
    if not 0 < delta < 1:
        raise must_be("delta", "in (0, 1) for Gaussian noise", delta)
