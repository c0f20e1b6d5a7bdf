"""Lower bounds in any measure from two samples of independent scores, by how they are ranked among each other.

An event "the score is above the k-th largest of the held-out ones" is chosen by data, yet its probability q is known
but for a law that nothing else decides: ranks have the same law whatever the scores' is. What a claim allows for the
inserted scores follows from q, and so does the chance of each count of them above that score.

References
----------
.. [1] H. A. David, H. N. Nagaraja. Order Statistics, 3rd ed. Wiley, 2003, equation 2.1.5 (the beta law of ranks).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ....mechanisms.measures.measure import Measure, TradeOff
from .one_run import largest_refuted, least_allowed

_Floats = NDArray[np.float64]
#: The shares of a sample whose last score is compared with, at either end.
RANKS = (1 / 64, 1 / 16, 1 / 4)
#: Cells of the beta law, in so many standard deviations to either side: fewer where `allowed` is itself a search.
_CELLS, _SEARCHED, _SPAN = 800, 64, 8.0


def refuted_by_ranks(measure: Measure, n_above: int, inserted: int, rank: int, held_out: int, *, alpha: float) -> bool:
    """Tell whether the inserted scores above the held-out score of a rank refute a claim in any measure.

    **Validity**: all scores are independent, inserted ones alike and held-out ones alike, and the rank was fixed
    before; ties are broken by lots. A true claim is refuted with probability at most alpha.

    Proof. With lots the held-out scores have a law without atoms. So the probability q that a held-out score is above
    the k-th largest of n is itself random, Beta(k, n + 1 - k) by [1]_, whatever the law. Given that score, an inserted
    one is above it with probability p <= g(q), the largest that the claim allows, and the number of those above is
    Bin(N, p), independently. Its tail grows with p, so that a count of c or more has probability at most
    E[P(Bin(N, g(q)) >= c)], in which nothing is unknown. It is summed over cells of the law of q, each with the tail
    at its larger end. Counts that refute are therefore a tail of probability at most alpha. A smaller level has a
    smaller g: what is below a refuted level is refuted.

    Parameters
    ----------
    measure : Measure
        The claim.
    n_above, inserted : int
        Inserted scores above the held-out one of that rank, and all of them.
    rank, held_out : int
        1 is the largest of the held-out scores; and their number.
    alpha : float
        In (0, 1).

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> [refuted_by_ranks(GDP(mu), 60, 100, 25, 100, alpha=0.05) for mu in (0.3, 1.0)]
    [True, False]
    """
    if n_above == 0:
        return False
    cells = _CELLS if isinstance(measure, TradeOff) else _SEARCHED
    ends = special.betaincinv(rank, held_out + 1 - rank, special.ndtr(np.linspace(-_SPAN, _SPAN, cells)))
    ends = np.append(ends, 1.0)
    masses = np.diff(special.betainc(rank, held_out + 1 - rank, ends), prepend=0.0)
    allowed = np.append(1 - least_allowed(measure, 1 - ends[:-1]), 1.0)
    tails = special.betainc(n_above, inserted - n_above + 1, allowed)
    return float(masses @ tails) <= alpha


def level_from_samples(
    measure: Measure, inserted: _Floats, held_out: _Floats, *, alpha: float = 0.05, seed: int = 0
) -> float:
    """Return a lower bound on the level of a measure from scores of inserted and of held-out canaries.

    It is wrong with probability at most alpha, under the conditions of `refuted_by_ranks`. Compared are the last of a
    few shares of the held-out scores, from above, and of the inserted ones, from below: the claim holds both ways.
    Each is tested with an equal part of alpha.

    Parameters
    ----------
    measure : Measure
        Says which levels are asked for.
    inserted, held_out : arrays
        Larger where the attack takes a canary for inserted. Infinities are allowed.
    alpha : float
        In (0, 1).
    seed : int
        Of the lots that break ties.

    Examples
    --------
    >>> from overclaim.mechanisms.measures.gaussian_dp import GDP
    >>> rng = np.random.default_rng(0)
    >>> 1.6 < level_from_samples(GDP(1.0), rng.normal(2, 1, 1000), rng.normal(0, 1, 1000)) < 2.0
    True
    """
    games = ranked(inserted, held_out, seed)
    test_alpha = alpha / len(games)
    tests = (lambda claim, game=game: refuted_by_ranks(claim, *game, alpha=test_alpha) for game in games)
    return largest_refuted(measure, *tests)


def ranked(inserted: _Floats, held_out: _Floats, seed: int) -> list[tuple[int, int, int, int]]:
    """Return how many scores are beyond the score of each rank, with the numbers that `refuted_by_ranks` takes."""
    lots = np.random.default_rng(seed)
    return [
        (_above(scores, references, rank, lots), scores.size, rank, references.size)
        for scores, references in ((inserted, held_out), (-held_out, -inserted))
        for rank in sorted({max(1, round(share * references.size)) for share in RANKS})
    ]


def _above(scores: _Floats, references: _Floats, rank: int, lots: np.random.Generator) -> int:
    """Return how many of those are above the other score of a rank, equal ones by lots."""
    score = np.partition(references, references.size - rank)[references.size - rank]
    tied = lots.random(int((references == score).sum()))
    # Of the tied ones it has this rank, by their lots.
    lot = np.sort(tied)[::-1][rank - 1 - int((references > score).sum())]
    return int((scores > score).sum() + (lots.random(int((scores == score).sum())) > lot).sum())
