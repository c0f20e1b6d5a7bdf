"""Exact levels in any measure at small horizons: mu, rho and the like of a pair, from the laws of what is released."""

from __future__ import annotations

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray
from scipy import special

from ...errors import reworded
from ...learners.laws import GaussianLaw, NotEnumerableError, OutcomeLaw
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Floats
from ...mechanisms.measures.approximate import ApproxDP, Profile
from ...mechanisms.measures.divergences import NEAR_ONE
from ...mechanisms.measures.gaussian_dp import GDP
from ...mechanisms.measures.measure import Measure, TradeOff
from ...mechanisms.measures.renyi import RDP, ZCDP
from ...mechanisms.privacy_loss import MIN_DELTA, PrivacyLoss
from ...mechanisms.view import ACTIONS, View
from ..play.pairs import Pair
from .exact import NotExactError, exact_epsilon, law_of
from .sequences import FINE, log_sequence_laws

#: Orders, less 1, at which the divergence by its order is looked at; 0 is its limit.
ORDERS = np.concatenate([[0.0], np.geomspace(1e-3, 1e3, 80)])
#: Levels of laws that rounding alone tells apart.
_NOTHING = 1e-12
#: Sums of a law's masses are less than this off.
_NEAR_ALL = 1e-6


def level_of_laws(measure: Measure, p: Floats, q: Floats) -> float:
    """Return the smallest level at which two laws of the same outcomes keep a claim in a measure, both ways.

    Parameters
    ----------
    measure : Measure
        Whose own level does not matter.
    p, q : arrays (outcomes,)
        Probabilities in the two worlds.

    Notes
    -----
    What an event may be is decided by the trade-off of both errors, which is convex and made of straight pieces: no
    point between two prefixes of the outcomes by likelihood ratio needs more than one of them.
    """
    possible = (p > 0) | (q > 0)
    p, q = p[possible], q[possible]
    with np.errstate(divide="ignore"):
        loss = np.log(p) - np.log(q)
    if isinstance(measure, RDP | ZCDP):
        level = max(_divergence_level(measure, p, loss), _divergence_level(measure, q, -loss))
    else:
        order = np.argsort(-loss, kind="stable")
        head_sums, tail_sums = (
            [np.cumsum(law[order][direction])[:-1] for law in (p, q)]
            for direction in (slice(None), slice(None, None, -1))
        )
        lower_half = head_sums[0] <= 0.5  # of others the complement: a sum near 1 has not the digits of what is left
        level = float(np.max(measure.needed(head_sums[0][lower_half], head_sums[1][lower_half]), initial=0.0))
        other_p, other_q = (np.minimum(law[::-1][~lower_half], 1.0) for law in tail_sums)
        level = max(level, float(np.max(measure.needed(other_q, other_p), initial=0.0)))
    return level if level > _NOTHING else 0.0


def level_of_loss(measure: Measure, law: PrivacyLoss) -> float:
    """Return the smallest level at which a law of the privacy loss keeps a claim in a measure, both ways.

    Its small masses are rounding errors of a Fourier transform, and their sum is not quite 1: their ratios tell no
    loss, which the grid does. So for a mu no event of so little probability, or of nearly all, is looked at.
    """
    if isinstance(measure, RDP | ZCDP):
        loss = np.clip((law.start + np.arange(law.left.size)) * law.step, *law.ends)
        return max(_divergence_level(measure, law.left, loss), _divergence_level(measure, law.right, -loss))
    if isinstance(measure, ApproxDP | Profile):
        return level_of_laws(measure, law.left, law.right)
    levels = [0.0]
    for end in (slice(None), slice(None, None, -1)):  # events of the right world, and of the left
        low, high = sorted((law.left[end].cumsum(), law.right[end].cumsum()), key=np.sum)
        reliable = (low > MIN_DELTA) & (high < 1 - _NEAR_ALL)
        levels.append(float(np.max(measure.needed(high[reliable], low[reliable]), initial=0.0)))
    return max(levels)


def _divergence_level(measure: RDP | ZCDP, p: Floats, loss: Floats) -> float:
    """Return the level that the divergences of one world from the other need, `loss` being ln(p / q)."""
    if isinstance(measure, RDP):
        return _divergence(measure.order - 1, p, loss)
    shares = [_divergence(excess_order, p, loss) / (1 + excess_order) for excess_order in ORDERS.tolist()]
    best = int(np.argmax(shares))
    if not best:
        return float(shares[0])
    refined = scipy.optimize.minimize_scalar(
        lambda excess_order: -_divergence(excess_order, p, loss) / (1 + excess_order),
        bounds=(ORDERS[max(best - 1, 1)], ORDERS[min(best + 1, ORDERS.size - 1)]),
        method="bounded",
    )
    return float(max(*shares, -refined.fun))


def _divergence(excess_order: float, p: Floats, loss: Floats) -> float:
    """Return the divergence of order 1 + `more`: ln E_P[e^(more loss)] / more, and E_P[loss] where it is 0."""
    support: NDArray[np.bool_] = p > 0
    if excess_order < NEAR_ONE:
        return float(p[support] @ loss[support])
    return float(np.logaddexp.reduce(np.log(p[support]) + excess_order * loss[support])) / excess_order


def level_of_gaussian(measure: Measure, mu: float) -> float:
    """Return the smallest level at which N(0, 1) and N(mu, 1) keep a claim in a measure.

    Raises
    ------
    NotExactError
        If that is not known of the measure.
    """
    if isinstance(measure, Profile):
        return max(level_of_gaussian(claim, mu) / claim.level for claim in measure.claims)
    if mu == 0:
        return 0.0
    if isinstance(measure, ApproxDP):
        if measure.epsilon > 0:
            return GDP(mu).approximate(measure.delta)
        return float(2 * special.ndtr(mu / 2) - 1)
    if isinstance(measure, GDP):
        return mu
    if isinstance(measure, RDP | ZCDP):
        return getattr(measure, "order", 1.0) * mu**2 / 2
    raise _unknown(measure)


def _unknown(measure: Measure) -> NotExactError:
    return NotExactError(f"exact levels are not known of {type(measure).__name__}")


def level_of_law(measure: Measure, law: PrivacyLoss | GaussianLaw) -> float:
    """Return the smallest level at which a law keeps a claim in a measure.

    Raises
    ------
    NotExactError
        If that is not known of the measure.
    """
    if isinstance(law, PrivacyLoss):
        return level_of_loss(measure, law)
    # Given what is seen and alike for both inputs, each release is Gaussian: no event needs more than the largest mu,
    # and those in its far tail need as much. So do divergences of large orders, by their order.
    if len(law.mus) == 1 or isinstance(measure, GDP | ZCDP):
        return level_of_gaussian(measure, max(law.mus))
    if isinstance(measure, Profile):
        return max(level_of_law(claim, law) / claim.level for claim in measure.claims)
    if isinstance(measure, RDP):
        excess_order = measure.order - 1
        grown = special.logsumexp(excess_order * measure.order * np.square(law.mus) / 2) - np.log(len(law.mus))
        return float(grown) / excess_order if excess_order >= NEAR_ONE else float(np.mean(np.square(law.mus))) / 2
    if not isinstance(measure, ApproxDP):
        raise _unknown(measure)
    if measure.epsilon > 0:
        return law.epsilon(measure.delta)
    return float(np.mean(2 * special.ndtr(np.array(law.mus) / 2) - 1))


def gaussian_mu_of(learner: Learner, pair: Pair, view: View) -> float | None:
    """Return the largest mu of what a pair's release shows, where its noise is Gaussian; None elsewhere.

    Raises
    ------
    NotExactError
        As `exact.exact_epsilon`.
    """
    law = law_of(learner, pair, view) if view.channel else None
    return max(law.mus) if isinstance(law, GaussianLaw) else None


def claimed_level(learner: Learner, pair: Pair, claim: Claim) -> float | None:
    """Return the exact level of what is claimed on a pair, in its view; None where no exact law is known."""
    try:
        if claim.measure.is_epsilon:
            return exact_epsilon(learner, pair, view=claim.view, deltas=(claim.delta,))[claim.delta]
        return exact_level(learner, pair, claim.measure, view=claim.view)
    except NotExactError:
        return None


def exact_level(learner: Learner, pair: Pair, measure: Measure, *, view: View = ACTIONS) -> float:
    """Return the exact level of a measure between the two worlds of a pair, in its own unit.

    Parameters
    ----------
    measure : Measure
        Whose own level does not matter.
    view
        As for `exact.exact_epsilon`.

    Raises
    ------
    NotExactError
        As `exact.exact_epsilon`.

    Notes
    -----
    Gaussian releases are in closed form. Laplace releases are read off their privacy loss on a grid of a 4000th of its
    largest part, sequences of arms off the laws of all of them.
    """
    if pair.shows_nothing(view):
        return 0.0
    if not isinstance(measure, TradeOff | RDP | ZCDP):  # of others an event may tell less than there is
        raise _unknown(measure)
    law = law_of(learner, pair, view)
    if law is not None and not isinstance(law, OutcomeLaw):
        return level_of_law(measure, law)
    try:
        return level_of_laws(measure, *(np.exp(law) for law in log_sequence_laws(learner, pair, cells=FINE)))
    except NotEnumerableError as error:
        raise reworded(error, str(error), NotExactError) from None


def exact_mu_and_rho(learner: Learner, pair: Pair, *, view: View = ACTIONS) -> dict[str, float]:
    """Return the exact `mu` of Gaussian DP and `rho` of zero-concentrated DP of a pair.

    Raises
    ------
    NotExactError
        As `exact_level`.
    """
    measures = (GDP(1.0), ZCDP(1.0))
    return {measure.unit: exact_level(learner, pair, measure, view=view) for measure in measures}
