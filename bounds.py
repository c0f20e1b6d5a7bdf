"""Lower bounds on epsilon and mu, from counts, guesses or scores: public and stable.

Each bound exceeds what is true with probability at most `alpha`, at every sample size, under the assumptions that its
docstring states. Overclaim's own verdicts rest on these functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from overclaim.audit.record_types import Design
from overclaim.audit.statistics.bounds.binomial_bounds import Reals
from overclaim.audit.statistics.bounds.intervals import epsilon_guess
from overclaim.audit.statistics.bounds.joint_bound import epsilon_joint
from overclaim.audit.statistics.bounds.measure_bounds import level_lower
from overclaim.audit.statistics.bounds.one_run import epsilon_one_run, level_one_run
from overclaim.audit.statistics.bounds.score_bounds import check_scores
from overclaim.audit.statistics.score_certificates import score_certificate
from overclaim.errors import must_be
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import GDP

__all__ = ["epsilon_from_counts", "epsilon_from_guesses", "epsilon_from_scores", "gdp_from_counts", "gdp_from_scores"]


def epsilon_from_counts(
    true_positives: ArrayLike,
    positives: ArrayLike,
    false_positives: ArrayLike,
    negatives: ArrayLike,
    *,
    delta: ArrayLike = 0.0,
    alpha: ArrayLike = 0.05,
) -> Reals:
    """Return a lower bound on epsilon (nats) from how often an event happened on each of two neighbouring inputs.

    **Validity**: runs are independent, and the event was fixed before they were drawn.

    Parameters
    ----------
    true_positives, positives : int or array of int
        Runs with the event, and all runs, on one input.
    false_positives, negatives : int or array of int
        The same on the other input.
    delta : float or array of float
        In [0, 1): epsilon is bounded at this delta.
    alpha : float or array of float
        In (0, 1).

    Raises
    ------
    ValueError
        For counts that are negative or no integers, an event more frequent than runs, and values outside their range.

    Examples
    --------
    >>> round(float(epsilon_from_counts(5_000, 10_000, 700, 10_000, alpha=0.01)), 3)
    1.878
    """
    return epsilon_joint(true_positives, positives, false_positives, negatives, delta=delta, alpha=alpha)


def epsilon_from_guesses(
    right: int, guesses: int, *, canaries: int | None = None, delta: float = 0.0, alpha: float = 0.05
) -> float:
    """Return a lower bound on epsilon (nats) from guesses of hidden bits, each set by a fair coin.

    **Validity**: coins are fair and independent, guesses use what is released alone, and the number of guesses was
    fixed before. The bits may share one run. With delta the larger of two bounds is returned, since the tail of right
    guesses obeys both: Theorem 5.2 of Steinke, Nasr and Jagielski (NeurIPS 2023), and the recursion of Mahloujifar,
    Melis and Chaudhuri (ICML 2025).

    Parameters
    ----------
    right, guesses : int
        Right guesses of guesses made.
    canaries : int, optional
        Coins thrown; by default as many as guesses. They matter where delta > 0.
    delta : float
        In [0, 1).
    alpha : float
        In (0, 1).

    Raises
    ------
    ValueError
        Unless 0 <= right <= guesses <= canaries, with a guess at least, and for values outside their range.

    Examples
    --------
    >>> round(epsilon_from_guesses(90, 100), 3), round(epsilon_from_guesses(90, 100, delta=1e-4), 3)
    (1.631, 1.626)
    """
    if delta == 0:
        return float(epsilon_guess(right, guesses, guesses if canaries is None else canaries, alpha=alpha))
    game = (right, guesses, guesses if canaries is None else canaries)
    by_theorem = epsilon_one_run(*game, delta=delta, alpha=alpha)
    return max(by_theorem, level_one_run(ApproxDP(1.0, delta), *game, alpha=alpha))


def epsilon_from_scores(
    scores: ArrayLike | None = None,
    included: ArrayLike | None = None,
    *,
    design: Design,
    inserted: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    delta: float = 0.0,
    alpha: float = 0.05,
    seed: int = 0,
) -> float:
    """Return a lower bound on epsilon (nats) from scores of canaries; a higher score means included.

    **Validity**: for "one-run" each canary is in the data by a fair coin of its own, which neither training nor attack
    sees. For "independent" every score comes from a training of its own, all inserted ones alike and all held-out ones
    alike. `audit.statistics.score_certificates` says what is tested.

    Parameters
    ----------
    scores, included : arrays (m,)
        Scores, and whether each canary was in the data: of a one-run design.
    design : {"independent", "one-run"}
        There is no default: scores of canaries that shared one training depend on each other.
    inserted, held_out : arrays
        Scores of inserted and of held-out canaries: of an independent design. `scores` and `included` also serve.
    delta : float
        In [0, 1).
    alpha : float
        In (0, 1).
    seed : int
        Breaks ties, and draws the coins of an independent design.

    Raises
    ------
    ValueError
        For scores that are NaN, coins that are not 0 or 1, lengths that differ, and another design.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> coins = rng.random(1000) < 0.5
    >>> 1.5 < epsilon_from_scores(2 * coins + rng.normal(size=1000), coins, design="one-run") < 4.0
    True
    """
    if not 0 <= delta < 1:
        raise must_be("delta", "in [0, 1)", delta)
    certificate = score_certificate(design, ApproxDP(1.0, delta))
    return certificate.lower(*_scores_and_coins(design, scores, included, inserted, held_out), alpha=alpha, seed=seed)


def gdp_from_counts(
    true_positives: int, positives: int, false_positives: int, negatives: int, *, alpha: float = 0.05
) -> float:
    """Return a lower bound on mu of Gaussian differential privacy, from counts as for `epsilon_from_counts`.

    Examples
    --------
    >>> round(gdp_from_counts(5_000, 10_000, 1_587, 10_000, alpha=0.01), 3)
    0.951
    """
    return level_lower(GDP(1.0), true_positives, positives, false_positives, negatives, alpha=alpha)


def gdp_from_scores(
    scores: ArrayLike | None = None,
    included: ArrayLike | None = None,
    *,
    design: Design,
    inserted: ArrayLike | None = None,
    held_out: ArrayLike | None = None,
    alpha: float = 0.05,
    seed: int = 0,
) -> float:
    """Return a lower bound on mu of Gaussian differential privacy, from scores as for `epsilon_from_scores`.

    It holds for every training: nothing is assumed to be Gaussian. One run certifies a part of mu, however many
    canaries it has: a claim of mu allows that a rare outcome tells much of all of them.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> inserted, held_out = rng.normal(1, 1, 1000), rng.normal(0, 1, 1000)
    >>> 0.7 < gdp_from_scores(inserted=inserted, held_out=held_out, design="independent") < 1.0
    True
    """
    certificate = score_certificate(design, GDP(1.0))
    return certificate.lower(*_scores_and_coins(design, scores, included, inserted, held_out), alpha=alpha, seed=seed)


def _scores_and_coins(
    design: Design,
    scores: ArrayLike | None,
    included: ArrayLike | None,
    inserted: ArrayLike | None,
    held_out: ArrayLike | None,
) -> tuple[ArrayLike, ArrayLike]:
    """Return the scores of all canaries, and whether each was included; raise ValueError where some are missing."""
    if scores is not None and included is not None:
        return scores, included
    if design == "one-run":
        raise ValueError("a one-run design needs scores and included, one coin for each score")
    if inserted is None or held_out is None:
        raise ValueError("an independent design needs inserted and held_out scores, or scores and included")
    ins, outs = check_scores("inserted", inserted), check_scores("held_out", held_out)
    return np.concatenate([ins, outs]), np.arange(ins.size + outs.size) < ins.size
