"""The choice of an event on pilot runs, or from exact laws, for a claim of an epsilon at a delta.

The choice may be as clever as it likes: it costs power, never validity, because `events.certify` sees only counts of
runs that were drawn after the event was fixed.

References
----------
.. [1] J. Neyman. On the two different aspects of the representative method. JRSS 97, 1934 (which share of a sample
   each stratum should have).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...errors import must_be
from ...mechanisms.numerics import best, rounded
from .bounds import intervals, joint_bound
from .bounds.power import SHARES
from .events import NO_EVENT, UNUSED, Event, check_runs

#: Where scores stand for log odds they are clipped at this size.
CERTAIN = 20.0
_PILOT_WEIGHT = 1.5  # standard errors of the pilot taken off an estimate: the winner's curse
_TIE_TOLERANCE = 1e-6  # bounds that are closer are compared by all their digits
_EVERY_VALUE = 256  # up to so many distinct scores each one is a candidate
_DISAGREE = 4.0  # standard errors beyond which labels are not those that the odds speak of
_LAW_DIGITS = 12  # decimals of a law's probabilities: rarer outcomes are left out
_Floats = NDArray[np.float64]


def choose_by_labels(
    scores: ArrayLike, left: ArrayLike, *, delta: float, alpha: float, runs: int, fair: bool = False
) -> Event:
    """Choose thresholds and method on pilot runs, for `runs` certification runs to come.

    Within each family (guess, joint left, joint right) the thresholds maximise ``ln((p^ - delta) / q~) - z
    se(runs) - 1.5 se(pilot)``, q~ smoothed by adding one, z the normal quantile of alpha; in the guess game
    p^ and q~ are the rates of right and of wrong guesses. A joint event comes with the share of the runs for the left
    world that makes se(runs) smallest (`allotment`). Among the three winners the estimators themselves decide, at the
    expected counts.

    Parameters
    ----------
    scores : array of float, shape (pilot runs,)
        Evidence for world P. Infinite scores are allowed; nan is never guessed.
    left : array of bool, shape (pilot runs,)
        True where the run was played in world P.
    delta, alpha : float
        What the certificate will be stated for.
    runs : int
        Certification runs in total, both worlds together.
    fair : bool
        Whether these have fair labels whatever the event, because they are played already.

    Raises
    ------
    ValueError
        If there are no scores, the shapes differ, the labels are not boolean, runs < 1, alpha is
        outside (0, 1) or delta outside [0, 1).
    """
    values, labels = check_runs(scores, left)
    if values.size == 0:
        raise ValueError("choose_by_labels needs at least one pilot run, got 0")
    if runs < 1:
        raise must_be("runs", "at least 1", runs)
    if not 0 < alpha < 1:
        raise must_be("alpha", "in (0, 1)", alpha)
    if not 0 <= delta < 1:
        raise must_be("delta", "in [0, 1)", delta)
    return _best_event(_Tails.of(values, labels), _EventRule(delta, alpha, runs, fair))[1]


def choose_by_odds(scores: ArrayLike, left: ArrayLike, *, delta: float, alpha: float, runs: int) -> Event:
    """Choose thresholds and method on pilot runs whose scores are log odds, for runs to come.

    Each run counts for both worlds, by its odds: the ratio of two rates then owes nothing to the luck of labels.
    Where labels and odds do not agree, what was played is not what the odds are of, and the labels decide if what they
    say is worth more, with the doubt of `choose_by_labels`.

    Parameters
    ----------
    scores : array of float, shape (pilot runs,)
        Log odds of world P (left), of runs whose labels were fair coins; nan is never guessed.
    left, delta, alpha, runs
        As for `choose_by_labels`.
    """
    values, labels = check_runs(scores, left)
    is_number = ~np.isnan(values)
    odds = np.clip(values[is_number], -CERTAIN, CERTAIN)
    laws = [special.expit(sign * odds) for sign in (1, -1)]
    likely = [law * (odds.size / values.size / max(law.sum(), 1e-12)) for law in laws]
    predicted_bound, event = _best_event(
        _Tails.of_laws(values[is_number], *likely), _EventRule(delta, alpha, runs, min_probability=1 / runs)
    )
    # Of the labels' mean along the odds, in standard errors: whether the odds are too large, too small, or wrong.
    off = rounded(((labels[is_number] - laws[0]) @ odds) / math.sqrt((laws[0] * laws[1]) @ odds**2 + 1e-12))
    if abs(off) > _DISAGREE:
        label_bound, other = _best_event(_Tails.of(values, labels), _EventRule(delta, alpha, runs))
        return other if rounded(label_bound) > rounded(predicted_bound) else event
    return event


def choose_from_laws(scores: ArrayLike, p: ArrayLike, q: ArrayLike, *, delta: float, alpha: float, runs: int) -> Event:
    """Choose thresholds and method from the exact laws of a discrete transcript: a pilot of unlimited size.

    Parameters
    ----------
    scores, p, q : arrays of float, shape (outcomes,)
        The score of each outcome, and its probability in world P (left) and in world Q (right).
    delta, alpha, runs
        As for `choose_by_labels`.
    """
    values, left, right = (np.asarray(a, dtype=np.float64) for a in (scores, p, q))
    # A law may name what no run will show: certification tells nothing below 1 / runs.
    return _best_event(_Tails.of_laws(values, left, right), _EventRule(delta, alpha, runs, min_probability=1 / runs))[
        1
    ]


def allotment(of_left: _Floats, of_right: _Floats) -> _Floats:
    """Return the share of the runs for the left world that makes a sum of two means' variances smallest [1]_.

    Parameters
    ----------
    of_left, of_right : arrays
        The variances of one run's term in each world; nan or infinite where they are not known.

    Returns
    -------
    array
        One of `bounds.power.SHARES`; 1/2 where a variance is not known.
    """
    with np.errstate(invalid="ignore"):
        share = np.sqrt(of_left) / (np.sqrt(of_left) + np.sqrt(of_right))
        share = np.where(np.isfinite(of_left + of_right), np.nan_to_num(share, nan=0.5), 0.5)
    multiples: _Floats = np.clip(np.round(rounded(share), 2), SHARES[0], SHARES[-1])
    return multiples


def _best_event(tails: _Tails, rule: _EventRule) -> tuple[float, Event]:
    if tails.thresholds.size == 0:
        return -math.inf, NO_EVENT  # every score is nan: nothing can be guessed
    guess = rule.best_guess(tails)
    candidates = [guess, *rule.best_joint(tails, guess[0])]
    return candidates[best([bound for bound, _ in candidates])]


@dataclass(frozen=True)
class _Tails:
    """Pilot counts of both tails in both worlds at every candidate threshold."""

    thresholds: _Floats
    pilot: int
    pilot_left: int
    left_upper: _Floats
    right_upper: _Floats
    left_lower: _Floats
    right_lower: _Floats

    @classmethod
    def of(cls, values: _Floats, labels: NDArray[np.bool_]) -> _Tails:
        is_number = ~np.isnan(values)
        left, right = np.sort(values[is_number & labels]), np.sort(values[is_number & ~labels])
        grid = _candidates(np.sort(values[is_number]))
        return cls(
            grid,
            int(values.size),
            int(np.count_nonzero(labels)),
            *((side.size - np.searchsorted(side, grid, "left")).astype(np.float64) for side in (left, right)),
            *(np.searchsorted(side, grid, "right").astype(np.float64) for side in (left, right)),
        )

    @classmethod
    def of_laws(cls, values: _Floats, p: _Floats, q: _Floats) -> _Tails:
        endless = 1e15  # so many pilot runs that neither smoothing nor their error matters
        # Whole numbers of runs have exact sums, so a sum is 0 on every processor or on none. Outcomes with 0 runs
        # in both worlds are left out.
        masses = [np.rint(rounded(law, _LAW_DIGITS) * (endless / 2)) for law in (p, q)]
        is_possible = ~np.isnan(values) & (masses[0] + masses[1] > 0)
        order = np.argsort(values[is_possible], kind="stable")
        values = values[is_possible][order]
        grid = _candidates(values)
        # Rounding may take a law's sum beyond 1, where its variance would be negative.
        sums = [np.minimum(np.append(0.0, np.cumsum(law[is_possible][order])), endless / 2) for law in masses]
        n_below, n_upto = (np.searchsorted(values, grid, side) for side in ("left", "right"))
        return cls(
            grid,
            round(endless),
            round(endless / 2),
            *(mass[-1] - mass[n_below] for mass in sums),
            *(mass[n_upto] for mass in sums),
        )


@dataclass(frozen=True)
class _EventRule:
    delta: float
    alpha: float
    runs: int
    fair: bool = False
    min_probability: float = 0.0  # the smallest probability that runs can tell from 0

    def best_guess(self, tails: _Tails) -> tuple[float, Event]:
        """Return the best pair of thresholds, one-sided ones included, with its worth."""
        none = np.zeros(1)
        upper, lower, one_sided, allowed = pairs(tails.thresholds)
        rights = np.append(tails.left_upper, none)[:, None] + np.append(tails.right_lower, none)
        wrongs = np.append(tails.right_upper, none)[:, None] + np.append(tails.left_lower, none)
        slack = np.where(one_sided, self.delta / 2, self.delta)
        a, b = rights / tails.pilot, (wrongs + 1) / (tails.pilot + 1)
        seen = np.maximum(b, self.min_probability)
        with np.errstate(divide="ignore", invalid="ignore"):
            # Right and wrong guesses exclude each other in a run, hence the last, covariance term.
            variance = a * (1 - a) / (a - slack) ** 2 + (1 - seen) / seen + 2 * a / (a - slack)
        predicted_bound = np.where(
            allowed, self._predicted_bound(a, seen, slack, variance, variance / tails.pilot), -np.inf
        )
        i, j = np.unravel_index(np.argmax(predicted_bound), predicted_bound.shape)
        n, event = self.runs, Event(float(lower[j]), float(upper[i]), "guess")
        c = round(n * float(a[i, j]))
        guessed = c + min(round(n * float(b[i, j])), n - c)
        bound = intervals.epsilon_guess(c, guessed, n, delta=slack[i, j], alpha=self.alpha)
        return _settle(float(bound), float(variance[i, j]) / tails.pilot, float(predicted_bound[i, j])), event

    def best_joint(self, tails: _Tails, floor: float = -math.inf) -> list[tuple[float, Event]]:
        """Return the best event towards each world, with its worth, where that may be above the floor."""
        games, doubts, events = [], [], []
        n_left, n_right = tails.pilot_left, tails.pilot - tails.pilot_left
        if n_left == 0 or n_right == 0:
            return []
        for towards, k_p, n_p, k_q, n_q in (
            ("left", tails.left_upper, n_left, tails.right_upper, n_right),
            ("right", tails.right_lower, n_right, tails.left_lower, n_left),
        ):
            p, q = k_p / n_p, (k_q + 1) / (n_q + 1)
            seen = np.maximum(q, self.min_probability)
            with np.errstate(divide="ignore", invalid="ignore"):
                spread_p, spread_q = p * (1 - p) / (p - self.delta) ** 2, (1 - seen) / seen
            pilot = spread_p / n_p + spread_q / n_q
            share = np.full(p.shape, 0.5) if self.fair else allotment(spread_p, spread_q)  # of P, which is named
            predicted_bound = self._predicted_bound(
                p, seen, np.asarray(self.delta), spread_p / share + spread_q / (1 - share), pilot
            )
            i = int(np.argmax(predicted_bound))
            threshold, named_share = float(tails.thresholds[i]), float(share[i])
            played = max(1, round(self.runs * named_share)), max(1, round(self.runs * (1 - named_share)))
            games.append((round(played[0] * float(p[i])), played[0], round(played[1] * float(q[i])), played[1]))
            doubts.append((float(pilot[i]), float(predicted_bound[i])))
            if towards == "left":
                events.append(Event(UNUSED, threshold, "joint", named_share))
            else:
                events.append(Event(threshold, UNUSED, "joint", round(1 - named_share, 2)))
        table = np.array(games).T
        hopeful = np.ones(2, dtype=bool)
        if floor >= 0:  # of an event that is worth less the bound is not needed, which takes long to compute
            levels = [floor + _PILOT_WEIGHT * math.sqrt(pilot) - _TIE_TOLERANCE for pilot, _ in doubts]
            is_finite = np.isfinite(levels)
            hopeful[is_finite] = joint_bound.rejected(
                *table[:, is_finite], epsilon=np.array(levels)[is_finite], delta=self.delta, alpha=self.alpha
            )
        bounds = joint_bound.epsilon_joint(*table[:, hopeful], delta=self.delta, alpha=self.alpha, margins=())
        indices = [i for i in range(2) if hopeful[i]]
        settled = [_settle(float(bound), *doubts[i]) for i, bound in zip(indices, np.ravel(bounds), strict=True)]
        return [(predicted_bound, events[i]) for i, predicted_bound in zip(indices, settled, strict=True)]

    def _predicted_bound(self, p: _Floats, q: _Floats, delta: _Floats, variance: _Floats, pilot: _Floats) -> _Floats:
        """Return the rule's value, rounded; `variance` is that of one certification run, `pilot` that of the pilot."""
        quantile = -float(special.ndtri(self.alpha))
        with np.errstate(divide="ignore", invalid="ignore"):
            doubt = quantile * np.sqrt(variance / self.runs) + _PILOT_WEIGHT * np.sqrt(pilot)
            rule = np.log((p - delta) / q) - doubt
        # Where delta explains everything the logarithm says nothing: rank by the difference, below the rest.
        return np.where(p > delta, rounded(rule), rounded(p - delta - q) - 1e9)


def _settle(bound: float, pilot_variance: float, rule_value: float) -> float:
    """Return what a family's winner promises: its expected bound, or the rule where that is clipped."""
    return bound - _PILOT_WEIGHT * math.sqrt(pilot_variance) if bound > 0 else min(rule_value, 0.0)


def _candidates(ordered: _Floats) -> _Floats:
    """Return thresholds from sorted scores: quantiles, both far tails, and atoms wherever they lie."""
    distinct: _Floats = np.unique(ordered)
    if distinct.size <= _EVERY_VALUE:
        return distinct
    tail = np.geomspace(1, ordered.size, 40).astype(np.int64) - 1  # rare events: the few most extreme runs
    return picked(ordered, distinct, tail=tail, quantiles=97, spread=65)


def picked(ordered: _Floats, distinct: _Floats, *, tail: NDArray[np.int64], quantiles: int, spread: int) -> _Floats:
    """Return thresholds from many sorted scores, in ascending order.

    Parameters
    ----------
    ordered, distinct : arrays of float
        The scores, and their distinct values.
    tail : array of int
        Places among the scores, from the lowest one, that are tried from both ends.
    quantiles : int
        Scores that are tried at even distances.
    spread : int
        Distinct values that are tried at even distances: quantiles miss some where few values hold most scores.
    """
    last = ordered.size - 1
    places = np.concatenate([tail, last - tail, np.linspace(0, last, quantiles).astype(np.int64)])
    values = distinct[np.linspace(0, distinct.size - 1, spread).astype(np.int64)]
    thresholds: _Floats = np.unique(np.concatenate([ordered[places], values]))
    return thresholds


def transfer(event: Event, scores: _Floats, new_scores: _Floats) -> Event:
    """Return the event on other scores of the same runs whose tails hold as many of them.

    The folds of cross-fitting and the final model score alike but not equally: a threshold that cuts 3 % of one may
    lie above everything of the other.
    """
    if np.array_equal(scores, new_scores, equal_nan=True):
        return event
    if event.function is not None:
        event = replace(event, function=event.function.transferred(scores, new_scores))
    if event.stakes is not None:
        event = replace(event, stakes=event.stakes.transferred(scores, new_scores))
    upper, lower = UNUSED, UNUSED
    if not math.isnan(event.upper):
        upper = -_lowest_of_top(-new_scores, int(np.sum(scores >= event.upper)))
    if not math.isnan(event.lower):
        lower = _lowest_of_top(new_scores, int(np.sum(scores <= event.lower)))
    if not math.isnan(upper) and not math.isnan(lower) and lower >= upper:
        return event
    return replace(event, lower=lower, upper=upper)


def _lowest_of_top(scores: _Floats, count: int) -> float:
    """Return t such that the number of scores at most t is nearest to `count`, and not 0."""
    values, times = np.unique(scores[~np.isnan(scores)], return_counts=True)
    if not values.size:
        return UNUSED
    return float(values[np.argmin(np.abs(np.cumsum(times) - count))])


def pairs(grid: _Floats) -> tuple[_Floats, _Floats, NDArray[np.bool_], NDArray[np.bool_]]:
    """Return all pairs of thresholds as a table; the last row and the last column stand for a side that is not used.

    Returns
    -------
    upper, lower : arrays (thresholds + 1,)
        Of the rows, from which score up the left world is named; of the columns, up to which the right one is.
    one_sided : bool array (thresholds + 1, thresholds + 1)
        Where a side is not used.
    allowed : bool array of the same shape
        Where no score names both worlds and some side is used.
    """
    upper, lower = (np.append(grid, UNUSED) for _ in range(2))
    one_sided = np.isnan(upper)[:, None] | np.isnan(lower)
    allowed = (lower < upper[:, None]) | one_sided
    allowed[-1, -1] = False
    return upper, lower, one_sided, allowed
