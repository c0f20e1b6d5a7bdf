"""Evidence over changes: e-values of audits of one claim, multiplied up over all changes of the audited code.

Every audited change draws fresh runs on fresh random numbers. An event that was fixed before them names the left
input, the right one, or none. A `Line` is what a hypothesis allows it in each run, given all earlier ones,
``P(right) <= e^epsilon P(wrong) + delta``. A stake l below ``1 / (e^epsilon + delta)`` multiplies by ``1 + l (1 -
delta)`` for a right guess, ``1 - l (e^epsilon + delta)`` for a wrong one and ``1 - l delta`` else: nowhere negative,
and on average by ``1 + l (P(right) - e^epsilon P(wrong) - delta) <= 1``. So the product over the runs of a change,
L, has mean at most 1 given the past, also where it is decided from the runs so far whether more of them are counted
(optional continuation).

The e-Shiryaev-Roberts process of a stake is ``R = (1 + R) L``, from 0. Its mean grows by at most 1 in a change, so
``R - n`` is a supermartingale after n changes. Let T be the first of N changes at which R reaches c: by optional
stopping ``c P(T <= N) <= E[R at min(T, N)] <= N``. The mean of several such processes, over stakes and events, is
bounded alike. Where each of m claims turns red at ``c = CHANGES m / ERROR``, chance makes any of them red in `CHANGES`
changes with probability at most `ERROR` if all hypotheses are true. A hypothesis that is itself an upper bound, wrong
with probability `ERROR / 2 m`, leaves half of the error to chance: it needs twice c.

To lower R keeps all of this: after a red change R starts from where a claim is in doubt, lost history is less
evidence, and a change whose draws are those of an earlier one counts once.

References
----------
.. [1] J. Shin, A. Ramdas, A. Rinaldo. E-detectors: a nonparametric framework for sequential change detection. 2024.
.. [2] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B 86, 2024.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from ...mechanisms.measures.measure import Measure
from .bounds.binomial import survival
from .bounds.binomial_bounds import clopper_pearson_lower, clopper_pearson_upper
from .events import Counts
from .graded_bets import e_to

_Floats = NDArray[np.float64]

#: The promise: chance turns a gate red with at most this probability in so many audited changes.
ERROR, CHANGES = 0.01, 200
#: The stakes, in shares of the largest that a line allows.
STAKES = np.geomspace(0.02, 0.98, 8)
#: A claim is in doubt from this many times the claims on, and is counted on for so many batches at most.
DOUBT, MAX_BATCHES = 100.0, 40
#: Where a claim in another measure than an epsilon is looked for the line that its event needs most.
_DELTAS = np.append(0.0, np.geomspace(1e-9, 0.9, 64))


class Guesses(NamedTuple):
    """How often an event named the input of a run rightly and wrongly, in so many runs."""

    right: int
    wrong: int
    runs: int

    @classmethod
    def of(cls, counts: Counts) -> Guesses:
        """Return those of the counts of an event."""
        return cls(counts.right, counts.guesses - counts.right, counts.runs)

    def __add__(self, other: object) -> Guesses:
        """Return those of both samples."""
        assert isinstance(other, Guesses)
        return Guesses(self.right + other.right, self.wrong + other.wrong, self.runs + other.runs)


@dataclass(frozen=True)
class Line:
    """A hypothesis about an event: P(right) is at most e^epsilon P(wrong) + delta, given all earlier runs.

    Parameters
    ----------
    epsilon : float
        In nats; it may be negative, where the event names the rarer input.
    delta : float
        In [0, 1).
    """

    epsilon: float
    delta: float = 0.0

    def log_growth(self, guesses: Guesses) -> _Floats:
        """Return the logarithm of L after so many guesses, for each stake."""
        factor = e_to(self.epsilon) + self.delta
        stakes = STAKES / factor
        rest = guesses.runs - guesses.right - guesses.wrong
        log: _Floats = guesses.right * np.log1p(stakes * (1 - self.delta)) + guesses.wrong * np.log1p(-STAKES)
        log += rest * np.log1p(-stakes * self.delta)
        return log


def claimed_line(measure: Measure, guesses: Guesses, log_odds: float) -> Line:
    """Return a line that a claim gives an event.

    Of a claim at a delta it is the claim's own; of another measure that which allows the event fewest right guesses,
    judged by counts from before the runs that the line is for.

    Parameters
    ----------
    measure : Measure
    guesses : Guesses
        Of the event, from earlier runs.
    log_odds : float
        Of the input that the event names, ln(s / (1 - s)) with the share s of its runs; the larger one where it names
        both.
    """
    if measure.is_epsilon:
        epsilon, delta = measure.stated
        return Line(epsilon + log_odds, delta)
    rate = (guesses.wrong + 1) / (guesses.runs + 2)
    epsilons = [measure.approximate(float(delta)) + log_odds for delta in _DELTAS]
    allowed = [min(1.0, e_to(epsilon) * rate + delta) for epsilon, delta in zip(epsilons, _DELTAS, strict=True)]
    best = int(np.argmin(np.round(allowed, 12)))
    return Line(epsilons[best], float(_DELTAS[best]))


def accepted_line(claimed: Line, guesses: Guesses, alpha: float) -> Line:
    """Return an upper bound on what an event showed, or the claim's line where that allows less.

    Parameters
    ----------
    alpha : float
        The probability that the event's law is beyond it.
    """
    hits, misses, runs = guesses
    if claimed.delta == 0:
        if not hits + misses:
            return claimed
        share = float(clopper_pearson_upper(hits, hits + misses, alpha))
        epsilon = math.inf if share >= 1 else float(special.logit(share))
    else:
        high = float(clopper_pearson_upper(hits, runs, alpha / 2)) - claimed.delta
        low = float(clopper_pearson_lower(misses, runs, alpha / 2))
        epsilon = -700.0 if high <= 0 else math.inf if low <= 0 else math.log(high / low)
    return claimed if epsilon >= claimed.epsilon else Line(epsilon, claimed.delta)


def p_value_of_growth(accepted: Line, guesses: Guesses) -> float:
    """Return the p-value of "the odds of a right guess are at most those of a line without delta"."""
    n_guesses = guesses.right + guesses.wrong
    return float(survival(guesses.right - 1, n_guesses, special.expit(accepted.epsilon))) if guesses.right else 1.0


def log_e_value(p_value: float) -> float:
    """Return the logarithm of an e-value from a p-value: ``(1 - p + p ln p) / (p ln^2 p)``, the mean of p^(k-1) k."""
    log_p = math.log(max(p_value, 1e-300))
    if log_p > -1e-4:
        return -math.log(2.0)  # its limit, which it is never below
    return math.log(-math.expm1(log_p) + math.exp(log_p) * log_p) - log_p - 2 * math.log(-log_p)


@dataclass(frozen=True)
class Limits:
    """Where a claim is red and where it is in doubt, as logarithms of R.

    Parameters
    ----------
    claims : int
        That share the error.
    bounded : bool
        Whether a hypothesis of the claim is an upper bound that was certified.
    """

    claims: int
    bounded: bool = False

    @property
    def log_red(self) -> float:
        """From here on the claim is red."""
        return math.log(CHANGES * self.claims / ERROR * (2 if self.bounded else 1))

    @property
    def log_doubt(self) -> float:
        """From here on it is in doubt."""
        return math.log(DOUBT * self.claims)


@dataclass(frozen=True)
class Evidence:
    """The processes of one claim: a row for each event, a column for each stake.

    Attributes
    ----------
    log_r : float array (events, stakes)
    """

    log_r: _Floats

    @classmethod
    def none(cls, events: int) -> Evidence:
        """Return no evidence."""
        return cls(np.full((events, STAKES.size), -np.inf))

    def after(self, log_l: _Floats) -> Evidence:
        """Return the evidence after one more change, (1 + R) L; where L is nan nothing was counted."""
        return Evidence(np.where(np.isnan(log_l), self.log_r, np.logaddexp(0.0, self.log_r) + log_l))

    def log_mean(self, rows: Sequence[int] | None = None) -> float:
        """Return the logarithm of the mean of all R, or of the part that some rows have of it."""
        part = self.log_r if rows is None else self.log_r[list(rows)]
        return float(special.logsumexp(part) - math.log(self.log_r.size)) if part.size else -math.inf

    def started(self, limits: Limits) -> Evidence:
        """Return the evidence that the next change starts from: scaled down to doubt where it was red."""
        if self.log_mean() < limits.log_red:
            return self
        return Evidence(self.log_r - (self.log_mean() - limits.log_doubt))


def evidence_of(changes: Iterable[_Floats], events: int, limits: Limits) -> Evidence:
    """Return the evidence after changes of (events, stakes) log L each."""
    evidence = Evidence.none(events)
    for log_l in changes:
        evidence = evidence.started(limits).after(log_l)
    return evidence
