"""Certificates of claims in any measure: `events` certifies epsilon at a delta, and everything else is here."""

from __future__ import annotations

import math

import numpy as np

from ...mechanisms.measures.approximate import epsilon_needed
from ...mechanisms.measures.gaussian_dp import GDP
from ...mechanisms.measures.measure import DELTA, Measure
from ...mechanisms.measures.renyi import ZCDP
from ..record_types import TranslationJson
from .bounds.joint_cover import MARGINS
from .bounds.measure_bounds import corner, level_lower, refuted
from .bounds.power import ceiling_epsilon, lefts
from .bounds.variational import divergence_lower, level_of
from .digits import at_least
from .events import Certificate, Counts, Event, bound_of, certify, sides_of

#: The deltas at which a region of (p, q) is told as an epsilon.
TRANSLATED = (0.0, DELTA, 1e-2)


def certify_claim(measure: Measure, event: Event, counts: Counts, *, alpha: float) -> Certificate:
    """Turn the counts of fresh runs into a certificate in the unit of a claim's measure.

    **Guarantee**: under the conditions of `events.certify`, ``lower`` exceeds what is true with probability at most
    `alpha`. So does ``epsilon_lower`` what is true at the delta of the claim as it is stated; where the measure is
    another than epsilon, that is a statement of its own.

    Parameters
    ----------
    measure : Measure
        The claim.
    event : Event
        Fixed before the runs were drawn.
    counts : Counts
        Of those runs.
    alpha : float
        In (0, 1).

    Raises
    ------
    ValueError
        As `events.certify`.
    """
    certificate = certify(event, counts, delta=measure.stated[1], alpha=alpha)
    if measure.is_epsilon:
        return certificate
    limits = vars(certificate) | {"level_lower": _level(measure, event, counts, alpha)}
    return Certificate(**limits)


def _level(measure: Measure, event: Event, counts: Counts, alpha: float) -> float:
    sides = sides_of(event, counts)
    if not sides:
        return 0.0
    if event.function is not None:
        divergence = divergence_lower(event.function, *counts.tallies, alpha=alpha)
        return level_of(measure, event.function.order, divergence)
    # Both sides of an event that guesses are events of their own: that which names the right world is not looked at.
    return level_lower(measure, *sides[0], alpha=alpha)


def lower_of(
    measure: Measure, event: Event, counts: Counts, *, alpha: float, margins: tuple[float, ...] = MARGINS
) -> float:
    """Return the bound that `certify_claim` states; `margins` are those of `events.bound_of`."""
    if measure.is_epsilon:
        return bound_of(event, counts, delta=measure.stated[1], alpha=alpha, margins=margins)
    return certify_claim(measure, event, counts, alpha=alpha).lower


def refutes(
    measure: Measure, event: Event, counts: Counts, *, alpha: float, margins: tuple[float, ...] = MARGINS
) -> bool:
    """Tell whether the certificate of these counts is above what is claimed; `margins` as for `lower_of`."""
    if measure.is_epsilon and not margins:
        epsilon, delta = measure.level, measure.stated[1]
        return bound_of(event, counts, delta=delta, alpha=alpha, margins=(), level=epsilon) > epsilon
    if measure.is_epsilon or event.function is not None:
        return lower_of(measure, event, counts, alpha=alpha, margins=margins) > measure.level
    sides = sides_of(event, counts)
    return bool(sides and refuted(measure, *sides[0], alpha=alpha))


def ceiling(measure: Measure, runs: int, *, alpha: float) -> float:
    """Return what a perfect attack would certify; of other measures than epsilon, whether that is above the claim.

    Then it is the claim's own level if not, and infinity if so. Its event happens in every run of one world alone, to
    which it may give any share of the runs that an audit gives.
    """
    if measure.is_epsilon:
        return ceiling_epsilon(runs, delta=measure.stated[1], alpha=alpha)
    left = lefts(runs)
    caught = refuted(measure, left, left, 0, np.maximum(1, runs - left), alpha=alpha)
    return math.inf if caught.any() else measure.level


def translation(event: Event, counts: Counts, *, alpha: float) -> TranslationJson | None:
    """Return what one region of (p, q) says in all measures at once; None where the event has no such region.

    The region is the corner of two Clopper-Pearson intervals for one world's event: whatever it says holds together,
    with probability 1 - alpha.

    Returns
    -------
    dict
        `alpha`, `p_lower`, `q_upper`, the world `named`, and lower bounds `mu`, `rho`, `delta` (at epsilon 0), and
        `epsilon`: pairs of a delta and a bound.
    """
    sides = sides_of(event, counts)
    if not sides:
        return None
    p, q = (float(limit) for limit in corner(*sides[0], alpha=alpha))
    return {
        "alpha": alpha,
        "named": "right" if math.isnan(event.upper) else "left",
        "p_lower": p,
        "q_upper": q,
        "epsilon": [[delta, float(epsilon_needed(p, q, delta))] for delta in TRANSLATED],
        "delta": max(0.0, p - q),
        "mu": float(GDP(1.0).needed(p, q)),
        "rho": float(ZCDP(1.0).needed(p, q)),
    }


def translation_words(translation: TranslationJson) -> str:
    """Return a translation in one line."""
    epsilons = ", ".join(f"{at_least(bound)} at delta {delta:g}" for delta, bound in translation["epsilon"])
    return (
        f"epsilon >= {epsilons}; mu >= {at_least(translation['mu'])}; rho >= {at_least(translation['rho'])}; "
        f"total variation >= {at_least(translation['delta'])}"
    )
