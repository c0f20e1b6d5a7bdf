"""Several claims in one report: p-values of certificates, and Holm's procedure over them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ...errors import must_be
from ...mechanisms.claim import Claim
from ...mechanisms.measures.measure import Measure
from ...mechanisms.numerics import bisect
from .bounds.variational import divergence_of, divergence_p_value
from .certificates import refutes
from .events import Certificate, Counts, Event
from .sequential import AnytimeBets

#: p-values below this are reported as this.
SMALLEST = 1e-100
#: Halvings of the logarithm of a p-value between these two ends.
_BISECTIONS = 24
_LOWEST, _HIGHEST = math.log(SMALLEST), -1e-9
#: Nats, to which a p-value is looked for.
P_VALUE_DIGITS = (_HIGHEST - _LOWEST) / 2**_BISECTIONS
#: By how much a p-value is first raised to be proved, in nats.
_STEP = 1e-3


def p_value(claim: Claim, event: Event, certificate: Certificate) -> float:
    """Return the smallest alpha at which the counts of a certificate falsify the claim; 1 if none does.

    For an anytime-valid certificate it is the inverse of the gambler's wealth at the end, which is valid too; for a
    variational one, that of the wealth of its bets.
    """
    counts = certificate.counts
    if counts.runs == 0:
        return 1.0
    if certificate.method == "anytime":
        wealth = AnytimeBets(claim.epsilon, claim.delta).log_wealth_of(counts, claim.epsilon)
        return max(SMALLEST, min(1.0, math.exp(-max(0.0, float(wealth)))))

    if event.function is not None:
        claimed = divergence_of(claim.measure, event.function.order)
        smallest = max(SMALLEST, divergence_p_value(event.function, *counts.tallies, claimed))
        return _as_certified(claim, certificate, smallest)

    low, step = _unproved(claim.measure, event, counts), _STEP
    while low < _HIGHEST and not refutes(claim.measure, event, counts, alpha=math.exp(low)):
        low, step = low + step, 2 * step
    if low >= _HIGHEST:
        return 1.0
    return _as_certified(claim, certificate, max(SMALLEST, math.exp(low)))


def _unproved(measure: Measure, event: Event, counts: Counts) -> float:
    """Return the logarithm of the p-value that is looked for without proof; 0 where no alpha falsifies."""

    def falsified(log_alpha: float) -> bool:
        return refutes(measure, event, counts, alpha=math.exp(log_alpha), margins=())

    if falsified(_LOWEST):
        return _LOWEST
    if not falsified(_HIGHEST):
        return 0.0
    return bisect(lambda log_alpha: not falsified(log_alpha), _LOWEST, _HIGHEST, steps=_BISECTIONS)[1]


def _as_certified(claim: Claim, certificate: Certificate, p: float) -> float:
    """Return a p-value that says the same as the certificate: what is proved depends on alpha by its last digits."""
    alpha = certificate.alpha
    return min(p, alpha) if certificate.lower > claim.measure.level else max(p, math.nextafter(alpha, 1))


@dataclass(frozen=True)
class Decision:
    """One test that shared the alpha of a report.

    Attributes
    ----------
    p_value : float
    level : float
        The share of alpha that it was compared with.
    adjusted : float
        The smallest alpha of the report at which it would be rejected.
    rejected : bool
    """

    p_value: float
    level: float
    adjusted: float
    rejected: bool


def holm(p_values: Sequence[float], alpha: float, *, planned: int = 0) -> list[Decision]:
    """Return Holm's decisions: some true claim is rejected with probability at most alpha, whatever the dependence.

    Parameters
    ----------
    p_values : sequence of float
        One per claim, in the order of the report.
    alpha : float
        For all of them together, in (0, 1).
    planned : int
        Tests that were planned, where more than there are p-values: a claim that crashed has none, and shares alpha.

    Raises
    ------
    ValueError
        If alpha is outside (0, 1).

    Examples
    --------
    >>> [decision.rejected for decision in holm([0.001, 0.2, 0.02], alpha=0.05)]
    [True, False, True]
    """
    if not 0 < alpha < 1:
        raise must_be("alpha", "in (0, 1)", alpha)
    if not p_values:
        return []
    from statsmodels.stats.multitest import multipletests  # a second of imports, for reports of several claims alone

    m, n_tests = max(planned, len(p_values)), len(p_values)
    rejected, adjusted, _, _ = multipletests([*p_values, *[1.0] * (m - n_tests)], alpha, method="holm")
    rank = {i: step for step, i in enumerate(sorted(range(n_tests), key=lambda i: p_values[i]))}
    return [Decision(p, alpha / (m - rank[i]), float(adjusted[i]), bool(rejected[i])) for i, p in enumerate(p_values)]
