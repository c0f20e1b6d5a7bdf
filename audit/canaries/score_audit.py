"""Audit a training by the scores of canaries: given ones, or those of trainings that are run here."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...errors import exclude, hinted, must_be_one_of, not_given, takes_no
from ...mechanisms.claim import Claim, check_claim
from ..execution.execution import Budget
from ..play.data import DataPair
from ..record_types import Design
from ..statistics.bounds.score_bounds import check_coins, check_scores
from ..statistics.canary_scores import CanaryScores, ScoresFound, bound, ceiling, certified, needed, p_value_of
from ..statistics.canary_words import DESIGNS, ONE_RUN
from ..statistics.score_certificates import score_certificate
from ..verdicts.verdict import Result

#: The inputs of such an audit, in words: the change of one canary.
INPUTS = DataPair("the data with a canary", "the data without it")
#: Coins are refused as unfair below this probability.
UNFAIR = 1e-6
NO_DESIGN = (
    "design must be said, 'independent' or 'one-run': canaries that shared a training have scores that depend on each "
    "other, and a certificate of independent scores does not hold for them"
)


def audit_scores(
    scores: ArrayLike | Sequence[ArrayLike] | None = None,
    *,
    included: ArrayLike | Sequence[ArrayLike] | None = None,
    inserted: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    design: Design | None = None,
    claim: Claim,
    confidence: float = 0.99,
    seed: int = 0,
) -> Result:
    """Try to falsify a privacy claim about a training, by an attack's scores of canaries.

    Parameters
    ----------
    scores, included : arrays (m,), or (trainings, m)
        The score of each canary, and whether it was in the data. A larger score means included.
        Of several trainings, each with coins of its own: a list of arrays, or a row for each.
    inserted, held_out : arrays
        In place of them, for independent scores: those of inserted and those of held-out canaries.
    design : {"independent", "one-run"}
        Whether each score comes from a training of its own, or many canaries shared a training. There is no default:
        scores of canaries that shared a training depend on each other.
    claim : Claim
        In any measure. Of others than an epsilon one run certifies a part alone; independent scores certify all.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    seed : int
        Breaks ties; of independent scores it draws coins too.

    Returns
    -------
    Result
        With `verdict`, `epsilon_lower`, `lower`, `reason`, `roc`, and `canaries`, whose `assumes` says what must hold.

    Raises
    ------
    ValueError
        For scores that are NaN, coins that are not 0 or 1, lengths that differ, coins that were not fair, no canary
        of one kind, or no design.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(2000) < 0.5
    >>> scores = 3 * coins + rng.normal(size=2000)
    >>> result = audit_scores(scores, included=coins, design="one-run", claim=Claim(epsilon=1.0))
    >>> result.verdict, result.lower > 3
    (<Verdict.FALSIFIED: 'FALSIFIED'>, True)
    """
    check_claim(claim)
    check_scored(claim)
    budget, start = Budget(seed=seed, confidence=confidence), time.perf_counter()
    check_design(design)
    assert design is not None
    if scores is not None and inserted is held_out is None:
        canaries = of_coins(design, scores, included, seed=budget.seed)
    elif scores is included is None:
        canaries = of_samples(design, inserted, held_out, seed=budget.seed)
    else:
        raise exclude("`scores` and `included`", "`inserted` and `held_out`")
    return concluded(canaries, claim, budget, start)


def check_scored(claim: Claim) -> None:
    """Raise ValueError where a claim says what scores of canaries do not show: it would not be heeded."""
    default = Claim(measure=claim.measure)
    for name in ("losses", "surface", "raising"):
        if (value := getattr(claim, name)) != getattr(default, name):
            raise takes_no("the claim is tested by scores of canaries", [f'{name}="{value}"'])


def check_design(design: object) -> None:
    """Raise ValueError unless a design is said."""
    if design is None:
        raise ValueError(NO_DESIGN)
    if design not in DESIGNS:
        raise must_be_one_of("design", DESIGNS, design)


def of_coins(design: Design, scores: Any, included: Any, *, seed: int = 0) -> CanaryScores:
    """Return canaries with their coins, of one training or of several; raise ValueError for what cannot be."""
    if included is None:
        raise not_given("included", "give `included`: for each canary 1 if it was in the data, else 0")
    rows, kinds = (_trainings(name, table) for name, table in (("scores", scores), ("included", included)))
    if len(rows) != len(kinds):
        raise ValueError(f"included must have as many trainings as scores, {len(rows)}, got {len(kinds)}")
    values = [check_scores("scores", row) for row in rows]
    coins = [check_coins(kind, value.size) for kind, value in zip(kinds, values, strict=True)]
    joined = CanaryScores.of(design, np.concatenate(values), np.concatenate(coins), seed=seed, trainings=len(rows))
    _check_both_kinds(joined.inserted, joined.many - joined.inserted)
    if design == ONE_RUN:
        check_fair(coins)
    return replace(joined, halves=all(2 * int(row.sum()) == row.size for row in coins))


def of_samples(design: Design, inserted: Any, held_out: Any, *, seed: int = 0) -> CanaryScores:
    """Return canaries of two samples of independent scores; raise ValueError for what cannot be."""
    if design == ONE_RUN:
        error = takes_no("each canary of one run has a coin of its own", ["inserted", "held_out"])
        raise hinted(error, "give `scores` and `included`")
    if inserted is None or held_out is None:
        raise not_given("a sample of scores", "give `scores` and `included`, or both `inserted` and `held_out`")
    _check_both_kinds(np.size(inserted), np.size(held_out))
    sides = [check_scores(name, side) for name, side in (("inserted", inserted), ("held_out", held_out))]
    coins = np.arange(sides[0].size + sides[1].size) < sides[0].size
    return CanaryScores.of(design, np.concatenate(sides), coins, seed=seed)


def _trainings(name: str, values: Any) -> list[Any]:
    """Return the arrays of each training: rows of a table, or the arrays of a list; else one."""
    if isinstance(values, list | tuple) and values and np.ndim(values[0]) == 1:
        return [*values]
    try:
        array = np.asarray(values)
    except ValueError:
        raise ValueError(f"{name} must be a list of numbers, or of lists of them, one for each training") from None
    return [*array] if array.ndim == 2 and array.size else [array]


def _check_both_kinds(inserted: int, held_out: int) -> None:
    for kind, count in (("inserted", inserted), ("held-out", held_out)):
        if not count:
            raise ValueError(f"there must be canaries of both kinds, and there is no {kind} one")


def check_fair(trainings: Sequence[NDArray[np.bool_]]) -> None:
    """Raise ValueError where the coins of some trainings are no independent fair coins.

    Five p-values are computed, none of which depends on scores: fair coins are refused with probability `UNFAIR` at
    most. Canaries may be given in the order of their scores or coins, so few neighbours that differ say nothing.

    Parameters
    ----------
    trainings : bool arrays (canaries,)
        The coins of each training, in the order in which they were given.
    """
    tests = p_values(trainings)
    text, p = min(tests, key=lambda test: test[1])
    if p < UNFAIR / len(tests):
        error = ValueError(f"these coins were not fair: {text} (p-value {p:.1g})")
        raise hinted(
            error, "one-run needs an independent fair coin for each canary, and rows that no coin has ordered"
        )


def p_values(trainings: Sequence[NDArray[np.bool_]]) -> list[tuple[str, float]]:
    """Return p-values of "all coins are fair and independent", each with what was seen: exact ones, or larger."""
    coins = np.concatenate(trainings)
    sizes, inserted = np.array([[row.size, row.sum()] for row in trainings]).T
    even = np.abs(2 * inserted - sizes) <= 1
    uniform, several = (inserted == 0) | (inserted == sizes), sizes > 1
    chance = np.where(several, special.exp2(1.0 - sizes), 1.0)
    log_ways = special.gammaln(sizes + 1) - special.gammaln(sizes // 2 + 1) - special.gammaln((sizes + 1) // 2 + 1)
    chance_even = np.minimum(1.0, np.exp(log_ways - sizes * np.log(2)) * (1 + sizes % 2))
    tests = [
        (f"{coins.sum():,} of {coins.size:,} canaries were included", _uneven(int(coins.sum()), coins.size)),
        (_of_trainings(even & several, "half of their canaries"), _frequent(even, chance_even)),
        (_of_trainings(uniform & several, "all or none of their canaries"), _frequent(uniform, chance)),
    ]
    for start in (0, 1):
        pairs = coins[start : start + (coins.size - start) // 2 * 2].reshape(-1, 2)
        differ = int((pairs[:, 0] != pairs[:, 1]).sum())
        text = f"{differ:,} of {len(pairs):,} pairs of canaries, in the order given, had one included"
        tests.append((text, float(special.bdtrc(differ - 1, len(pairs), 0.5)) if differ else 1.0))
    return tests


def _of_trainings(marks: NDArray[np.bool_], share: str) -> str:
    return f"{np.count_nonzero(marks):,} trainings included {share}"


def _uneven(inserted: int, count: int) -> float:
    """Return the two-sided p-value of a number of fair coins."""
    return min(1.0, 2 * float(special.bdtr(min(inserted, count - inserted), count, 0.5)))


def _frequent(happened: NDArray[np.bool_], chances: NDArray[np.float64]) -> float:
    """Return an upper bound on the probability that so many independent events happen, by Chernoff's inequality.

    Where all of them happened it is exact: the product of their chances.
    """
    count = int(happened.sum())
    if count <= chances.sum():
        return 1.0
    if count == happened.size:
        return float(np.exp(np.log(chances).sum()))
    tilts = np.geomspace(1e-3, 50.0, 200)[:, None]
    values, times = np.unique(chances, return_counts=True)
    logs = (np.log1p(values * np.expm1(tilts)) * times).sum(axis=1) - tilts[:, 0] * count
    return float(np.exp(min(0.0, logs.min())))


def concluded(canaries: CanaryScores, claim: Claim, budget: Budget, start: float, *, attack: str = "scores") -> Result:
    """Return the verdict on scores; `began` is on the clock of `time.perf_counter`."""
    measure, alpha = claim.measure, budget.alpha
    certificate = certified(canaries, measure, alpha=alpha)
    lower = certificate.lower
    max_lower = math.inf if lower > measure.level else ceiling(canaries, measure, alpha=alpha)
    is_small = max_lower <= measure.level
    design = canaries.design
    scored = ScoresFound(
        canaries,
        min_canaries=needed(design, measure, alpha=alpha, seed=canaries.seed, excluded_size=canaries.many)
        if is_small
        else None,
        turned=canaries.favours_held_out and bound(canaries.turned(), measure, alpha=alpha) > lower,
        limit=score_certificate(design, measure).limit if is_small else "",
        p_value=p_value_of(canaries, measure, alpha=alpha, lower=lower),
    )
    return Result(
        claim=claim,
        certificate=certificate,
        pair=INPUTS,
        event=canaries.event(measure, alpha=alpha),
        attack=attack,
        runs=canaries.many,
        pilot=0,
        detectable_epsilon=math.nan,
        power=None,
        seed=budget.seed,
        seconds=time.perf_counter() - start,
        ceiling=max_lower,
        alike=canaries.alike,
        canaries=scored,
    )
