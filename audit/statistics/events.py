"""Events: thresholds on a score, chosen on pilot runs, counted and certified on fresh ones.

How an event is chosen (`event_rule`, `event_choice`, `measure_choice`) costs power, never validity, because `certify`
sees only counts of runs that were drawn after the event was fixed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import msgspec
import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...errors import must_be
from ..record_types import CountsJson
from .bounds import intervals, joint_bound
from .bounds.joint_cover import MARGINS
from .bounds.variational import StepFunction
from .graded_bets import Stakes

UNUSED = math.nan  # a threshold that no score meets: comparisons with nan are false, also for infinite scores

_Floats = NDArray[np.float64]
#: The fields of `Counts` that are single numbers.
_NUMBERS: Final = ("runs", "runs_left", "left_upper", "right_upper", "left_lower", "right_lower")


@dataclass(frozen=True, eq=False)
class Event:
    """What the attack says about one run, from its score alone.

    It names world P ("left") iff ``score >= upper``, world Q ("right") iff ``score <= lower``, and abstains
    otherwise; a nan score is never named. `UNUSED` (nan) stands for a side that is not used: infinite scores
    are real and informative, so an infinite threshold is a threshold.

    Parameters
    ----------
    lower, upper : float
        The thresholds, ``lower < upper`` where both are used.
    method : {"guess", "joint", "variational"}
        The estimator the event was chosen for. A joint event uses exactly one side, and so does a variational one,
        which is certified by its function.
    share : float
        The probability that a certification run is played in the left world, in (0, 1): 1/2 in the guess game. A
        joint event that names one world is rarer in the other, which may have more of the runs.
    function : StepFunction, optional
        Of a variational event.
    stakes : Stakes, optional
        What an audit that stops early bets on a run besides: for a guess event.
    """

    lower: float
    upper: float
    method: str
    share: float = 0.5
    function: StepFunction | None = None
    stakes: Stakes | None = None

    def __post_init__(self) -> None:
        if self.method not in ("guess", "joint", "variational"):
            raise must_be("method", "'guess', 'joint' or 'variational'", self.method)
        if (self.method == "variational") != (self.function is not None):
            raise ValueError(f"a variational event, and no other, has a function, got {self.method!r}")
        if self.method != "guess" and self.direction not in ("left", "right"):
            raise ValueError(
                f"a {self.method} event must use exactly one of lower and upper (nan marks the unused one), "
                f"but got lower={self.lower} and upper={self.upper}"
            )
        if not 0 < self.share < 1 or (self.method == "guess" and self.share != 0.5):
            raise must_be("share", "1/2 in the guess game and in (0, 1) otherwise", self.share)
        if self.lower >= self.upper:
            raise ValueError(f"lower must be below upper, got lower={self.lower} and upper={self.upper}")

    def to_json(self) -> dict[str, Any]:
        """Return the event as JSON, but for nan."""
        return msgspec.to_builtins(self)  # type: ignore[no-any-return]

    @classmethod
    def of_json(cls, data: object) -> Event:
        """Return the event that `to_json` wrote."""
        return msgspec.convert(data, cls)

    def sides(self, scores: _Floats) -> NDArray[np.int8]:
        """Return which world it names of each run: 1 for P, -1 for Q, 0 for neither."""
        return (scores >= self.upper).astype(np.int8) - (scores <= self.lower)

    @property
    def direction(self) -> str:
        """The worlds the event can name: "left", "right", "both" or "none"."""
        if math.isnan(self.upper):
            return "none" if math.isnan(self.lower) else "right"
        return "left" if math.isnan(self.lower) else "both"

    def __eq__(self, other: object) -> bool:
        # nan differs from itself; two events with the same side unused are the same event.
        return isinstance(other, Event) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    @property
    def _key(self) -> tuple[object, ...]:
        lower, upper = (None if math.isnan(side) else side for side in (self.lower, self.upper))
        return lower, upper, self.method, self.share, self.function, self.stakes


#: The event that names no run.
NO_EVENT: Final = Event(UNUSED, UNUSED, "guess")


@dataclass(frozen=True)
class Counts:
    """How often an event happened, per world and tail: integers, so that blocks of runs sum in any order.

    Attributes
    ----------
    runs, runs_left : int
        Of both worlds, and of the left one.
    left_upper, right_upper, left_lower, right_lower : int
        Runs of a world whose score was in the upper or the lower tail.
    tally : tuple of int
        How often the score was in each step of a variational event's function, in the left and then the right world.
        Of an audit that stops early: how many runs its stakes named rightly, by grade, and then how many wrongly.
    """

    runs: int = 0
    runs_left: int = 0
    left_upper: int = 0
    right_upper: int = 0
    left_lower: int = 0
    right_lower: int = 0
    tally: tuple[int, ...] = ()

    def __add__(self, other: Counts) -> Counts:
        if not isinstance(other, Counts):
            return NotImplemented
        if self.tally and other.tally:
            tally = tuple(a + b for a, b in zip(self.tally, other.tally, strict=True))
        else:
            tally = self.tally or other.tally
        sums = map(operator.add, self.numbers[:6], other.numbers[:6])
        return Counts(**dict(zip(_NUMBERS, sums, strict=True)), tally=tally)

    @classmethod
    def of_numbers(cls, numbers: Sequence[int]) -> Counts:
        """Return the counts of `numbers`."""
        return cls(**dict(zip(_NUMBERS, numbers[:6], strict=True)), tally=tuple(numbers[6:]))

    @property
    def numbers(self) -> tuple[int, ...]:
        """All of them, in a row."""
        return *(getattr(self, name) for name in _NUMBERS), *self.tally

    def to_json(self) -> CountsJson:
        """Return the record's form."""
        record: CountsJson = {
            "runs": self.runs,
            "runs_left": self.runs_left,
            "left_upper": self.left_upper,
            "right_upper": self.right_upper,
            "left_lower": self.left_lower,
            "right_lower": self.right_lower,
            "right": self.right,
            "guesses": self.guesses,
        }
        return {**record, "tally": list(self.tally)} if self.tally else record

    @classmethod
    def of_json(cls, data: CountsJson) -> Counts:
        """Return the counts of a record."""
        return cls.of_numbers([*(int(data[name]) for name in _NUMBERS), *map(int, data.get("tally", ()))])

    @property
    def tallies(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The halves of the tally: that of the left world, or of what was named rightly, and the other."""
        steps = len(self.tally) // 2
        return self.tally[:steps], self.tally[steps:]

    @property
    def runs_right(self) -> int:
        """Runs of world Q."""
        return self.runs - self.runs_left

    @property
    def right(self) -> int:
        """Right guesses."""
        return self.left_upper + self.right_lower

    @property
    def guesses(self) -> int:
        """Guesses made: runs without an abstention."""
        return self.left_upper + self.right_upper + self.left_lower + self.right_lower


@dataclass(frozen=True)
class Certificate:
    """A lower bound on what is true, wrong with probability at most alpha: on epsilon at a delta, or in a measure.

    Parameters
    ----------
    epsilon_lower : float
        The bound in nats, at least 0. Beside a bound in another measure, what the counts of the event say of epsilon,
        with an error of its own.
    method : str
        "guess", "joint", "variational" or "anytime".
    delta, alpha : float
        The delta it is stated for, and its error.
    counts : Counts
        The certification runs it rests on.
    two_interval_bound : float
        The transparent bound from the same counts. Valid at alpha by itself; the larger of the two is not.
    level_lower : float, optional
        The bound in the unit of a claim's measure, where that is not epsilon.
    """

    epsilon_lower: float
    method: str
    delta: float
    alpha: float
    counts: Counts
    two_interval_bound: float
    level_lower: float | None = None

    @property
    def lower(self) -> float:
        """The certified bound, in the unit of the claim's measure."""
        return self.epsilon_lower if self.level_lower is None else self.level_lower


def count(event: Event, scores: ArrayLike, left: ArrayLike) -> Counts:
    """Count the event over runs with the given scores and world labels (True: world P, the pair's left)."""
    values, labels = check_runs(scores, left)
    in_upper, in_lower = values >= event.upper, values <= event.lower
    return Counts(
        runs=int(values.size),
        runs_left=int(np.count_nonzero(labels)),
        left_upper=int(np.count_nonzero(in_upper & labels)),
        right_upper=int(np.count_nonzero(in_upper & ~labels)),
        left_lower=int(np.count_nonzero(in_lower & labels)),
        right_lower=int(np.count_nonzero(in_lower & ~labels)),
        tally=event.function.tally(values, labels) if event.function is not None else (),
    )


def certify(event: Event, counts: Counts, *, delta: float, alpha: float) -> Certificate:
    """Turn the counts of fresh runs into a certificate.

    **Guarantee**: if the world labels were fair and independent and the event was fixed before these runs
    were drawn, ``epsilon_lower`` exceeds the true epsilon at `delta` with probability at most `alpha`. A
    joint event and the two-interval bound hold given the realised numbers of runs per world, so they do not
    need the labels to be fair.

    Parameters
    ----------
    event : Event
        Fixed before the runs were drawn.
    counts : Counts
        Of those runs.
    delta : float
        In [0, 1); the claim's.
    alpha : float
        In (0, 1).

    Raises
    ------
    ValueError
        If no run was played, alpha is outside (0, 1) or delta outside [0, 1).

    Examples
    --------
    >>> event = Event(lower=-1.0, upper=1.0, method="guess")
    >>> counts = Counts(runs=1000, runs_left=500, left_upper=400, right_upper=60, left_lower=50, right_lower=390)
    >>> round(certify(event, counts, delta=0.0, alpha=0.01).epsilon_lower, 3)
    1.736
    """
    bound = bound_of(event, counts, delta=delta, alpha=alpha)
    return Certificate(bound, event.method, delta, alpha, counts, _two_interval(event, counts, delta, alpha))


@lru_cache(maxsize=4096, typed=True)  # a resumed audit, its p-value and its figures ask for the same again
def bound_of(
    event: Event,
    counts: Counts,
    *,
    delta: float,
    alpha: float,
    margins: tuple[float, ...] = MARGINS,
    level: float | None = None,
) -> float:
    """Return the bound on epsilon that `certify` states.

    Parameters are its own, and `margins` and `level` those of `epsilon_joint`: without margins it is a ranking, not
    proved, of which a level says only whether it is above.
    """
    return float(bounds_of(event, (counts,), delta=delta, alpha=alpha, margins=margins, level=level)[0])


def bounds_of(
    event: Event,
    parts: Sequence[Counts],
    *,
    delta: float,
    alpha: float,
    margins: tuple[float, ...] = MARGINS,
    level: float | None = None,
) -> _Floats:
    """Return `bound_of` several counts, each by itself, (parts,)."""
    if event.method == "guess":
        game, slack = np.array([(c.right, c.guesses, c.runs) for c in parts]).T, _run_delta(event, delta)
        return np.asarray(intervals.epsilon_guess(*game, delta=slack, alpha=alpha))
    sides = [sides_of(event, c) for c in parts]
    played, bounds = [bool(side_counts) for side_counts in sides], np.zeros(len(sides))
    if any(played):
        game = np.array([side_counts[0] for side_counts in sides if side_counts]).T
        bounds[played] = joint_bound.epsilon_joint(*game, delta=delta, alpha=alpha, margins=margins, level=level)
    return bounds


def _run_delta(event: Event, delta: float) -> float:
    """Return delta of the inequality ``P(right) <= e^epsilon P(wrong) + delta`` that holds per run.

    A run is played in the named world with probability 1/2, so each side in use adds delta/2.
    """
    return delta if event.direction == "both" else delta / 2


def sides_of(event: Event, counts: Counts) -> list[tuple[int, int, int, int]]:
    """Return (k_p, n_p, k_q, n_q) of each side in use, P being the world that it names; none unless both have runs."""
    sides: list[tuple[int, int, int, int]] = []
    if not counts.runs_left or not counts.runs_right:
        return sides
    if not math.isnan(event.upper):
        sides.append((counts.left_upper, counts.runs_left, counts.right_upper, counts.runs_right))
    if not math.isnan(event.lower):
        sides.append((counts.right_lower, counts.runs_right, counts.left_lower, counts.runs_left))
    return sides


def _two_interval(event: Event, counts: Counts, delta: float, alpha: float) -> float:
    """Return the best two-interval bound of the sides in use, which share alpha (Bonferroni)."""
    sides = sides_of(event, counts)
    if not sides:
        return 0.0
    error = alpha / len(sides)
    bounds = (intervals.epsilon_two_interval, intervals.epsilon_two_interval_complement)
    return max(float(bound(*side, delta=delta, alpha=error)) for side in sides for bound in bounds)


def check_runs(scores: ArrayLike, left: ArrayLike) -> tuple[_Floats, NDArray[np.bool_]]:
    """Return scores and labels as arrays, or raise ValueError where they do not fit."""
    values, labels = np.asarray(scores, dtype=np.float64), np.asarray(left)
    if values.ndim != 1 or values.shape != labels.shape:
        shapes = f"{values.shape} and {labels.shape}"
        raise must_be("scores and left", "one-dimensional and equally long", shapes)
    if labels.dtype != np.bool_:
        raise ValueError(f"left must be an array of bool, got dtype {labels.dtype}")
    return values, labels
