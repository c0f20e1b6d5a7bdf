"""Scores of canaries: what is certified from them, what a perfect attack would certify, and their ROC curve.

Every certificate depends on the order of the scores alone: on the coins of the canaries, sorted by descending score.
A record keeps these, and its reader computes the bound again.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import cast

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...errors import must_be
from ...mechanisms.measures.approximate import ApproxDP
from ...mechanisms.measures.measure import Measure, TradeOff
from ...mechanisms.numerics import bisect
from ..record_types import Design, ScoresJson
from .bounds.measure_bounds import corner
from .canary_words import METHOD, assumptions
from .events import UNUSED, Certificate, Counts, Event
from .score_certificates import score_certificate

_Floats = NDArray[np.float64]
_Bools = NDArray[np.bool_]

#: Thresholds of a ROC curve, at most, closest at both ends.
THRESHOLDS = 400
#: Canaries whose coins a record keeps, at most: four of them are one letter.
MAX_KEPT = 2**17
#: Of the stream that orders equal scores: `score_bounds.fair_coins` draws coins from stream 1.
LOT = 2
#: Canaries up to which it is searched how many a perfect attack needs.
MAX_NEEDED = 2**20
#: p-values below this are reported as this; halvings of their logarithm; canaries up to which they are computed.
SMALLEST, HALVINGS, MAX_P_VALUE_CANARIES = 1e-100, 12, 2**17


@dataclass(frozen=True)
class Roc:
    """A ROC curve: the rates of canaries above each threshold, from the highest threshold on.

    Attributes
    ----------
    false_positive, true_positive : array (points,)
        Shares of held-out and of inserted canaries with at least that score, from 0 to 1.
    thresholds : array (points - 1,)
        Of all points but the first, where none is above.
    """

    false_positive: _Floats
    true_positive: _Floats
    thresholds: _Floats


@dataclass(frozen=True, eq=False)
class CanaryScores:
    """Scores of canaries, sorted, with their coins.

    Attributes
    ----------
    design : {"independent", "one-run"}
    coins : bool array (m,)
        Whether each canary was in the data, by descending score; the lot has decided between equal scores.
    scores : array (m,)
        Descending.
    seed : int
        Of the lot, and of the coins that an independent design draws.
    trainings : int
        That the canaries of a one-run design were trained in.
    halves : bool
        Whether exactly half of the canaries of each training were in the data.
    """

    design: Design
    coins: _Bools
    scores: _Floats = field(repr=False)
    seed: int = 0
    trainings: int = 1
    halves: bool = False

    @classmethod
    def of(cls, design: Design, scores: _Floats, coins: _Bools, *, seed: int = 0, trainings: int = 1) -> CanaryScores:
        """Return scores sorted; equal ones in an order drawn by lot."""
        order = np.argsort(-scores, kind="stable")
        if (scores[order[1:]] == scores[order[:-1]]).any():
            lot = np.random.default_rng([seed, LOT]).permutation(scores.size)
            order = lot[np.argsort(-scores[lot], kind="stable")]
        return cls(design, coins[order], scores[order], seed, trainings)

    @classmethod
    def of_order(cls, design: Design, coins: _Bools, *, seed: int = 0) -> CanaryScores:
        """Return canaries of which the order of the scores alone is known."""
        return cls(design, coins, np.arange(coins.size, 0, -1, dtype=np.float64), seed)

    @property
    def many(self) -> int:
        """Number of canaries."""
        return int(self.coins.size)

    @cached_property
    def inserted(self) -> int:
        """Number of canaries that were in the data."""
        return int(np.count_nonzero(self.coins))

    @property
    def alike(self) -> bool:
        """Whether all scores are equal."""
        return not self.many or bool(self.scores[0] == self.scores[-1])

    def perfect(self) -> CanaryScores:
        """Return the same canaries as a perfect attack would score them."""
        return CanaryScores.of_order(self.design, np.arange(self.many) < self.inserted, seed=self.seed)

    def turned(self) -> CanaryScores:
        """Return the canaries with the negative of their scores."""
        return replace(self, coins=self.coins[::-1], scores=-self.scores[::-1])

    @cached_property
    def favours_held_out(self) -> bool:
        """Whether held-out canaries have the larger scores, by the area under the ROC curve."""
        ranks = np.flatnonzero(self.coins)  # from 0: of the highest score
        return bool(2 * ranks.sum(dtype=np.float64) > self.inserted * (self.many - 1))

    def counted(self) -> tuple[_Floats, NDArray[np.int64], NDArray[np.int64]]:
        """Return thresholds, descending, and how many inserted and held-out canaries are at each or above it."""
        if self.many <= THRESHOLDS:
            ends = np.arange(self.many)
        else:
            extremes = np.unique(np.geomspace(1, self.many // 2, THRESHOLDS // 2).astype(np.int64))
            ends = np.unique(np.concatenate([extremes - 1, self.many - 1 - extremes, [self.many - 1]]))
        # The last place of each run of equal scores: no threshold lies inside one.
        last = np.unique(self.many - np.searchsorted(self.scores[::-1], self.scores[ends], side="left") - 1)
        inserted = np.cumsum(self.coins, dtype=np.int64)[last]
        return self.scores[last], inserted, last + 1 - inserted

    def roc(self) -> Roc:
        """Return the ROC curve."""
        thresholds, inserted, held_out = self.counted()
        false, true = (np.concatenate([[0], n]) / max(1, n[-1]) for n in (held_out, inserted))
        return Roc(false, true, thresholds)

    def event(self, measure: Measure, *, alpha: float) -> Event:
        """Return the threshold at which the canaries need the largest level, by two Clopper-Pearson intervals."""
        thresholds, hits, misses = self.counted()
        ins, outs = self.inserted, self.many - self.inserted
        uppers = _needed(measure, hits, ins, misses, outs, alpha)
        lowers = _needed(measure, outs - misses, outs, ins - hits, ins, alpha)  # strictly below each threshold
        if lowers.max() > uppers.max():
            best = int(np.argmax(lowers))
            return Event(float(self.scores[hits[best] + misses[best]]), UNUSED, "joint")
        return Event(UNUSED, float(thresholds[np.argmax(uppers)]), "joint")

    def counts(self, event: Event) -> Counts:
        """Return how often an event happened: inserted canaries are the left world."""
        upper, lower = self.scores >= event.upper, self.scores <= event.lower
        ins, outs = self.coins, ~self.coins
        hits = [int(np.count_nonzero(side & kind)) for side in (upper, lower) for kind in (ins, outs)]
        return Counts(self.many, self.inserted, hits[0], hits[1], hits[2], hits[3])

    def to_json(self) -> ScoresJson:
        """Return what a record keeps of the canaries."""
        _, inserted, held_out = self.counted()
        packed = np.packbits(self.coins).tobytes()
        return {
            "canaries": self.many,
            "inserted": self.inserted,
            "trainings": self.trainings,
            "assumes": assumptions(self.design, self.trainings),
            "coins": packed.hex() if self.many <= MAX_KEPT else None,
            "digest": hashlib.sha256(packed + self.scores.tobytes()).hexdigest(),
            "roc": {"inserted": inserted.tolist(), "held_out": held_out.tolist()},
            "halves": self.halves,
        }


@dataclass(frozen=True)
class ScoresFound:
    """What the scores of canaries came to, beside the certificate.

    Attributes
    ----------
    canaries : CanaryScores
    min_canaries : int or None
        How many canaries a perfect attack needs, where these are too few; None where that is not known.
    turned : bool
        Whether the negative of the scores certifies more.
    limit : str
        Why the certificate shows less than a reader may expect, where these are too few.
    p_value : float
        Of the claim.
    """

    canaries: CanaryScores
    min_canaries: int | None = None
    turned: bool = False
    limit: str = ""
    p_value: float = 1.0

    @property
    def design(self) -> Design:
        """How the scores came to be."""
        return self.canaries.design

    @property
    def assumes(self) -> tuple[str, ...]:
        """What must hold."""
        return tuple(assumptions(self.design, self.canaries.trainings))

    def to_json(self) -> ScoresJson:
        """Return the record's `scores`."""
        findings = {"needed": self.min_canaries, "reversed": self.turned, "limit": self.limit}
        return cast(ScoresJson, {**self.canaries.to_json(), **findings})


def _needed(
    measure: Measure, hits: NDArray[np.int64], n: int, misses: NDArray[np.int64], m: int, alpha: float
) -> _Floats:
    """Return the level that each of several events needs, (thresholds,)."""
    if not (n and m):
        return np.zeros(hits.size)
    p, q = corner(hits, n, misses, m, alpha=alpha)
    if measure.is_epsilon:  # of one direction, as its certificate
        return np.maximum(0.0, np.log(np.maximum(p - measure.stated[1], 1e-300) / q))
    return np.asarray(measure.needed(p, q))


def coins_of(data: ScoresJson) -> _Bools | None:
    """Return the coins that a record keeps; None where it keeps none."""
    if data.get("coins") is None:
        return None
    packed = np.frombuffer(bytes.fromhex(str(data["coins"])), dtype=np.uint8)
    if packed.size != -(-data["canaries"] // 8):
        raise must_be("coins", f"{data['canaries']} bits", 8 * packed.size)
    return np.unpackbits(packed, count=data["canaries"]).astype(np.bool_)


def bound(canaries: CanaryScores, measure: Measure, *, alpha: float) -> float:
    """Return a lower bound on the level of a measure, from all scores: `score_certificates` says how."""
    order = np.arange(canaries.many, 0, -1, dtype=np.float64)
    certificate = score_certificate(canaries.design, measure)
    return certificate.lower(order, canaries.coins, alpha=alpha, seed=canaries.seed)


def refuted(canaries: CanaryScores, measure: Measure, *, alpha: float) -> bool:
    """Return whether the bound is above the measure's own level."""
    order = np.arange(canaries.many, 0, -1, dtype=np.float64)
    certificate = score_certificate(canaries.design, measure)
    return certificate.refutes(order, canaries.coins, alpha=alpha, seed=canaries.seed)


def certified(canaries: CanaryScores, measure: Measure, *, alpha: float) -> Certificate:
    """Return the certificate of a claim, which rests on all scores; its counts are of the threshold that shows most.

    Beside a bound in another measure its epsilon is one of its own, with an error of its own.
    """
    event, delta = canaries.event(measure, alpha=alpha), measure.stated[1]
    lower = bound(canaries, measure, alpha=alpha)
    common = METHOD, delta, alpha, canaries.counts(event), 0.0
    if measure.is_epsilon:
        return Certificate(lower, *common)
    return Certificate(bound(canaries, ApproxDP(1.0, delta), alpha=alpha), *common, level_lower=lower)


def ceiling(canaries: CanaryScores, measure: Measure, *, alpha: float) -> float:
    """Return what a perfect attack would certify from the same canaries."""
    return bound(canaries.perfect(), measure, alpha=alpha)


def needed(design: Design, measure: Measure, *, alpha: float, seed: int = 0, excluded_size: int = 2) -> int | None:
    """Return how many canaries a perfect attack needs to refute a claim, to two digits, rounded up.

    None where more do not help, where it is more than `MAX_NEEDED`, and where each trial takes a second.

    Parameters
    ----------
    excluded_size : int
        A number of canaries that is too small.
    """
    return (
        _least_perfect(design, measure, alpha, seed, max(2, excluded_size)) if isinstance(measure, TradeOff) else None
    )


@lru_cache(maxsize=8)
def _least_perfect(design: Design, measure: TradeOff, alpha: float, seed: int, low: int) -> int | None:
    """Return how many canaries a perfect attack needs, more than `low`: asked for before a training, and after it."""

    def enough(count: int) -> bool:
        perfect = CanaryScores.of_order(design, np.arange(count) < count // 2, seed=seed)
        return refuted(perfect, measure, alpha=alpha)

    # Fewer guesses are all right with probability alpha under randomised response, which keeps an epsilon.
    min_guesses = math.log(alpha) / float(special.log_expit(measure.level)) if measure.is_epsilon else 0.0
    if min_guesses > 2 * MAX_NEEDED:
        return None
    low, high = max(low, int(min_guesses)), 2 * max(low, int(min_guesses))
    while not enough(high):
        if high > MAX_NEEDED:
            return None
        low, high = high, 2 * high
    while high > 1.01 * low + 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    digits: int = 10 ** max(0, len(str(high)) - 2)
    return -(-high // digits) * digits


def p_value_of(canaries: CanaryScores, measure: Measure, *, alpha: float, lower: float) -> float:
    """Return the smallest alpha at which the scores refute a claim; 1 if none does. It agrees with the bound.

    Where a bound takes a second, of other measures than a trade-off and of many scores, it is alpha or 1.
    """

    def refutes(log_alpha: float) -> bool:
        return refuted(canaries, measure, alpha=math.exp(log_alpha))

    false = lower > measure.level
    if not isinstance(measure, TradeOff) or canaries.many > MAX_P_VALUE_CANARIES:
        return alpha if false else 1.0
    lowest, log_level, highest = math.log(SMALLEST), math.log(alpha), -1e-9
    if false and refutes(lowest):
        return SMALLEST
    if not false and not refutes(highest):
        return 1.0
    low, high = (lowest, log_level) if false else (log_level, highest)
    return math.exp(bisect(lambda log_alpha: not refutes(log_alpha), low, high, steps=HALVINGS)[1])
