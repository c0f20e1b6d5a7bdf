"""Which certificate the scores of canaries have, by design and measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...mechanisms.measures.measure import Measure
from ..record_types import Design
from .bounds.binomial_bounds import check_alpha
from .bounds.rank_bounds import level_from_samples
from .bounds.score_bounds import (
    SHARES,
    check_coins,
    check_scores,
    epsilon_from_coins,
    fair_coins,
    level_from_coins,
    refuted_by_coins,
)

_BETS = "shares of guesses, and bets on guesses in the order of the scores"
_SHARES = "shares of guesses"
_RANKS = "ranks of the scores of one sample among those of the other"
_DELTA = (
    "a claim with a delta allows that everything is told with that probability: one run certifies nothing where delta "
    f"is alpha / {len(SHARES)} or more"
)
_PART = (
    "one run certifies a part of the level, however many canaries it has: a claim in this measure allows that a rare "
    "outcome tells much of all of them; independent trainings certify all of it"
)


@dataclass(frozen=True)
class ScoreCertificate:
    """How the scores of canaries are certified.

    Attributes
    ----------
    design : {"independent", "one-run"}
    measure : Measure
        Says which levels are asked for.
    method : str
        What is tested, in words.
    source : str
        Whose theorem it rests on.
    limit : str
        Why it certifies less than a reader may expect; empty where there is no reason.
    """

    design: Design
    measure: Measure
    method: str
    source: str
    limit: str = ""

    def lower(self, scores: ArrayLike, included: ArrayLike, *, alpha: float = 0.05, seed: int = 0) -> float:
        """Return a lower bound on the level, wrong with probability at most alpha.

        Parameters and errors are those of `epsilon_from_coins`. Of an independent design `included` says from which
        sample a score comes, and `seed` draws its coins too.
        """
        values, coins = check_scores("scores", scores), check_coins(included, np.size(scores))
        check_alpha(alpha)
        if self.design == "independent":
            return _independent(self.measure, values[coins], values[~coins], alpha, seed)
        if _is_pure(self.measure):
            return epsilon_from_coins(values, coins, alpha=alpha, seed=seed)
        return level_from_coins(self.measure, values, coins, alpha=alpha, seed=seed)

    def refutes(self, scores: ArrayLike, included: ArrayLike, *, alpha: float = 0.05, seed: int = 0) -> bool:
        """Return whether the lower bound is above the measure's own level, sooner than by computing it."""
        measure = self.measure
        if self.design == "one-run":
            return refuted_by_coins(measure, scores, included, alpha=alpha, seed=seed)
        values, coins = check_scores("scores", scores), check_coins(included, np.size(scores))
        if not (_is_pure(measure) and coins.any() and not coins.all()):
            return self.lower(scores, included, alpha=alpha, seed=seed) > measure.level
        fair_sample = fair_coins(values[coins], values[~coins], seed=seed)
        return fair_sample is not None and refuted_by_coins(measure, *fair_sample, alpha=alpha, seed=seed)


def score_certificate(design: Design, measure: Measure) -> ScoreCertificate:
    """Return the certificate that applies to a measure in a design; every measure has one in both.

    Raises
    ------
    ValueError
        For another design, saying why there is no default.

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> score_certificate("independent", GDP(1.0)).method
    'ranks of the scores of one sample among those of the other'
    """
    if design not in get_args(Design):
        raise ValueError(
            f"design must be 'independent' or 'one-run', got {design!r}; there is no default, since canaries of one "
            "training have scores that depend on each other"
        )
    if _is_pure(measure):
        return ScoreCertificate(design, measure, _BETS, "Waudby-Smith & Ramdas 2024; Steinke, Nasr & Jagielski 2023")
    if design == "one-run":
        limit = _DELTA if measure.is_epsilon else _PART
        return ScoreCertificate(design, measure, _SHARES, "Mahloujifar, Melis & Chaudhuri 2025", limit)
    if measure.is_epsilon:
        methods = f"{_SHARES}, and {_RANKS}"
        return ScoreCertificate(design, measure, methods, "Mahloujifar, Melis & Chaudhuri 2025; David & Nagaraja 2003")
    return ScoreCertificate(design, measure, _RANKS, "David & Nagaraja 2003")


def _is_pure(measure: Measure) -> bool:
    return measure.is_epsilon and not measure.stated[1]


def _independent(
    measure: Measure, inserted: NDArray[np.float64], held_out: NDArray[np.float64], alpha: float, seed: int
) -> float:
    """Return a bound from two samples; where it is tested in two ways, each has half of alpha."""
    if not (inserted.size and held_out.size):
        return 0.0
    if not measure.is_epsilon:
        return level_from_samples(measure, inserted, held_out, alpha=alpha, seed=seed)
    fair_sample = fair_coins(inserted, held_out, seed=seed)
    if _is_pure(measure):
        return 0.0 if fair_sample is None else epsilon_from_coins(*fair_sample, alpha=alpha, seed=seed)
    by_shares = 0.0 if fair_sample is None else level_from_coins(measure, *fair_sample, alpha=alpha / 2, seed=seed)
    return max(by_shares, level_from_samples(measure, inserted, held_out, alpha=alpha / 2, seed=seed))
