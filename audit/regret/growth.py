"""The growth of regret with the horizon: an exponent fitted on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

#: Growth is fitted over at least this many doublings of the horizon.
DOUBLINGS = 5


@dataclass(frozen=True)
class Growth:
    """A least-squares line through log mean regret against log T.

    Attributes
    ----------
    horizons, regrets
        T, and the mean regret at each.
    slope, slope_lower, slope_upper : float or None
        The fitted exponent with its one-sided confidence limits, under normal errors about the line; None where fewer
        than three horizons show any regret.
    """

    horizons: tuple[int, ...]
    regrets: tuple[float, ...]
    slope: float | None
    slope_lower: float | None
    slope_upper: float | None


def growth(horizons: Sequence[int], regrets: Sequence[float], *, confidence: float = 0.99) -> Growth:
    """Fit the growth exponent of mean regrets: the slope of log regret on log T by least squares.

    The slope's limits take the errors about the line as normal and equal; logarithmic factors bend the line, so read
    them as a description of these horizons.

    Raises
    ------
    ValueError
        If the horizons do not increase or span fewer than five doublings.
    """
    if sorted(set(horizons)) != list(horizons) or len(horizons) != len(regrets):
        raise ValueError(f"horizons must increase and have one regret each, got {list(horizons)}")
    if horizons[0] < 1 or horizons[-1] < horizons[0] * 2**DOUBLINGS:
        raise ValueError(f"horizons must span at least {DOUBLINGS} doublings, got {list(horizons)}")
    positive = [(t, r) for t, r in zip(horizons, regrets, strict=True) if r > 0]
    slope = lower = upper = None
    if len(positive) >= 3:
        from scipy.stats import linregress

        line = linregress(*np.log(np.array(positive, dtype=float)).T)
        slope, off = float(line.slope), float(special.stdtrit(len(positive) - 2, confidence) * line.stderr)
        lower, upper = slope - off, slope + off
    return Growth(tuple(horizons), tuple(float(r) for r in regrets), slope, lower, upper)


def default_horizons(rounds: int) -> tuple[int, ...]:
    """Return six horizons, halves of `rounds` up to itself; none where the shortest would have no round.

    None is longer than what was asked: a learner may be made for that, and its time grows with every round.
    """
    return tuple(rounds // 2**k for k in range(DOUBLINGS, -1, -1)) if rounds >= 2**DOUBLINGS else ()
