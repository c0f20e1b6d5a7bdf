"""Anytime-valid audits: e-processes on the guesses of an attack, which may be looked at after every run.

Every run has a fair world label of its own; the attack names the left world, the right one, or abstains. Under
(epsilon, delta)-DP, given all earlier runs, ``P(right) <= e^epsilon P(wrong) + delta``. So a gambler who stakes the
share lambda of her wealth on ``1{right} - e^epsilon 1{wrong} - delta`` has an expected growth of at most 1 in every
run, and by Ville's inequality her wealth ever reaches 1/alpha with probability at most alpha: whenever one looks,
however often, and even if the event of the next run depends on the earlier ones.

Without delta the gambler's shares are mixed uniformly, which has a closed form: with pi0 = sigmoid(epsilon) it is the
mean over pi in (pi0, 1) of the likelihood ratio of pi to pi0, and equals ``integral_0^1 (u + (1-u)/pi0)^c u^w du`` for
c right and w wrong guesses. That falls in epsilon, hence the rejected epsilons are an interval from 0, and its end is
a lower bound that holds at all times together. With delta the shares are a fixed list, and the wealth falls too.

An audit bets four fifths of its wealth in grades (`graded_bets`), which end it sooner, and one fifth like this: the
mean of two such wealths is one, and falls in epsilon.

References
----------
.. [1] J. Ville. Etude critique de la notion de collectif. 1939.
.. [2] I. Waudby-Smith, A. Ramdas. Estimating means of bounded random variables by betting. JRSS B 86, 2024.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import special

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import bisect, least, rounded, significant
from .bounds.binomial import survival, upper_quantile
from .event_choice import cells_of, counts_of
from .event_rule import CERTAIN, pairs
from .events import NO_EVENT, Counts, Event
from .graded_bets import GRADES, GradedBets, Stakes, by_grade, e_to
from .odds.models import NOISES, noise_odds, polynomial_odds

_Floats = NDArray[np.float64]

#: Below this the incomplete beta function is replaced by its series: below 1e-240 its own terms may be lost.
_TINY = 1e-200
#: Terms of that series at most: it has converged long before, or its arguments are wrong.
_MAX_TERMS = 200_000
#: Of an interval of some nats that holds what a budget catches: to a millionth of it.
_HALVINGS = 20
#: Stakes, in shares of the largest that the claim allows: most of the mixture, and a tail for other epsilons.
_SHARES = (np.arange(64) + 0.5) / 64
_TAIL_SHARES = np.geomspace(1e-8, 1.0, 96)
_MAIN_WEIGHT = 0.8
#: The part of all wealth that is bet in grades; the rest, on the event's guesses, tells how large epsilon is where the
#: claim is true, and nothing beyond it shows.
_GRADED_WEIGHT = 0.8
#: What the log wealth must have beyond its goal: it is rounded, so that no end hangs on the last bits of a sum.
_ROUNDING = 1e-8
#: Parts of the runs, of which each judges the stakes that the others taught; and from how many runs on cells that are
#: like their neighbours are a model of the odds.
_FOLDS, _MIN_CELL_RUNS = 5, 100
#: How far beyond the scores that were seen odds are looked at, in shares of their range; decimals of models' weights.
_EXTENSIONS, _TRUST_DIGITS = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6]), 6
#: Thresholds tried on each side of an event, and stakes at which its growth is computed.
_THRESHOLDS, _STAKES = 64, 24
_SMALL_DIGITS = 12  # decimals of the growth in one run, which is small
#: The power is averaged over this many equally likely numbers of guesses.
_GUESS_COUNTS = (np.arange(33) + 0.5) / 33


def log_e_value(n_right: ArrayLike, n_wrong: ArrayLike, epsilon: ArrayLike) -> _Floats:
    """Return the logarithm of the e-value against epsilon-DP of so many right and wrong guesses.

    ``B(c+1, w+1) I_(pi0..1)(c+1, w+1) / [(1-pi0) pi0^c (1-pi0)^w]``, pi0 = sigmoid(epsilon).

    Parameters
    ----------
    n_right, n_wrong : int or array of int
        c and w.
    epsilon : float or array of float
        The claim, in nats, at least 0.
    """
    c, w, e = np.broadcast_arrays(n_right, n_wrong, epsilon)
    log_pi, log_rest = special.log_expit(e), special.log_expit(-e)
    # The tail beyond pi0 is computed as the lower tail of 1 - pi: nothing is ever subtracted from 1.
    tail = special.betainc(w + 1, c + 1, special.expit(-e))
    # The series stands in where it is far; at epsilons near the largest float the logarithms overflow there.
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        log_value = np.asarray(special.betaln(c + 1, w + 1) + np.log(tail) - (w + 1) * log_rest - c * log_pi)
    underflow = tail < _TINY
    if np.any(underflow):
        log_value[underflow] = _log_series(c[underflow], w[underflow], e[underflow])
    return log_value


def _log_series(c: _Floats, w: _Floats, e: _Floats) -> _Floats:
    """Return the same by ``pi0 / (w+1) * 2F1(1, c+w+2; w+2; 1-pi0)``: positive terms, for guesses below chance."""
    x = special.expit(-e)
    term, total = np.ones_like(x), np.ones_like(x)
    for k in range(_MAX_TERMS):
        term = term * ((c + w + 2 + k) / (w + 2 + k) * x)
        total += term
        if np.all(term < 1e-17 * total):
            break
    log_tails: _Floats = special.log_expit(e) - np.log(w + 1) + np.log(total)
    return log_tails


@dataclass(frozen=True)
class Bets:
    """A gambler against the claims of one delta: fixed stakes, most of them placed for `claimed`.

    Stakes that a larger epsilon does not allow count as lost there, so that the wealth falls in epsilon.

    Parameters
    ----------
    claimed, delta : float
        The claim that the audit is about.
    """

    claimed: float
    delta: float

    def _stakes(self) -> tuple[_Floats, _Floats]:
        main_stakes = _SHARES / (e_to(self.claimed) + self.delta)
        tail_stakes = _TAIL_SHARES / (1 + self.delta)
        weights = np.repeat(
            [_MAIN_WEIGHT / main_stakes.size, (1 - _MAIN_WEIGHT) / tail_stakes.size],
            [main_stakes.size, tail_stakes.size],
        )
        return np.concatenate([main_stakes, tail_stakes]), weights

    def log_wealth(self, n_right: ArrayLike, n_wrong: ArrayLike, runs: ArrayLike, epsilon: ArrayLike) -> _Floats:
        """Return the log wealth against `epsilon` after so many runs, right and wrong guesses among them."""
        if self.delta == 0:
            return log_e_value(n_right, n_wrong, epsilon)
        c, w, n, e = np.broadcast_arrays(*(np.asarray(a)[..., None] for a in (n_right, n_wrong, runs, epsilon)))
        stakes, weights = self._stakes()
        with np.errstate(over="ignore"):
            losses = stakes * (np.exp(e) + self.delta)
            log = c * np.log1p(stakes * (1 - self.delta)) + (n - c - w) * np.log1p(-stakes * self.delta)
            log = np.where(losses < 1, log + special.xlog1py(w, -np.minimum(losses, 1.0)), -np.inf)
        log_mean: _Floats = special.logsumexp(log, axis=-1, b=weights)
        return log_mean


@dataclass(frozen=True)
class AnytimeBets:
    """The gamblers of an audit that stops early: most bet in grades (`graded_bets`), the others on guesses (`Bets`).

    Parameters
    ----------
    claimed, delta : float
        The claim that the audit is about.
    """

    claimed: float
    delta: float

    def log_wealth(
        self,
        graded: tuple[ArrayLike, ArrayLike],
        guessed: tuple[ArrayLike, ArrayLike],
        runs: ArrayLike,
        epsilon: float,
    ) -> _Floats:
        """Return the log wealth against `epsilon`, rounded to nine decimals, and less than it is by about 1e-8.

        Parameters
        ----------
        graded : (right, wrong), int arrays (..., grades)
            Of so many runs, those that the stakes named rightly and wrongly.
        guessed : (right, wrong), int arrays (...,)
            Those that the event did.
        runs : int array (...,)
        epsilon : float
        """
        parts = (
            math.log(_GRADED_WEIGHT) + GradedBets(self.claimed, self.delta).log_wealth(*graded, runs, epsilon),
            math.log(1 - _GRADED_WEIGHT) + Bets(self.claimed, self.delta).log_wealth(*guessed, runs, epsilon),
        )
        return rounded(np.logaddexp(*parts) - _ROUNDING)

    def log_wealth_of(self, counts: Counts, epsilon: float) -> float:
        """Return the same after the runs of some counts."""
        guessed = counts.right, counts.guesses - counts.right
        return float(self.log_wealth(counts.tallies, guessed, counts.runs, epsilon))

    def epsilon_lower(self, counts: Counts, alpha: float) -> float:
        """Return the largest epsilon, in nats, that the wealth rejects at 1/alpha; 0 if none."""
        goal = -math.log(alpha)

        def rejected(epsilon: float) -> bool:
            return self.log_wealth_of(counts, epsilon) >= goal

        if not rejected(0.0):
            return 0.0
        low, high = 0.0, 1.0
        while rejected(high):
            low, high = high, 2 * high
        return bisect(rejected, low, high)[0]

    def boundary(self, guesses: ArrayLike, runs: ArrayLike, alpha: float, grade: int) -> NDArray[np.int64]:
        """Return the fewest right ones of so many guesses of one grade that reject the claim.

        It is one more than all if none do. Guesses of grade 0 are the event's alone.
        """
        n, total = (np.asarray(a, dtype=np.int64) for a in np.broadcast_arrays(guesses, runs))
        is_grade = np.arange(1, GRADES + 1) == grade
        low, high = np.full(n.shape, -1), n + 1
        while np.any(high - low > 1):
            middle = (low + high) // 2
            n_correct = np.clip(middle, 0, n)
            guessed = n_correct, n - n_correct
            graded = (guessed[0][..., None] * is_grade, guessed[1][..., None] * is_grade)
            caught = self.log_wealth(graded, guessed, total, self.claimed) >= -math.log(alpha)
            caught |= middle > n
            low, high = np.where(caught, low, np.maximum(middle, low)), np.where(caught, middle, high)
        return high


def ceiling_epsilon(claimed: float, runs: int, *, delta: float, alpha: float) -> float:
    """Return the bound (nats) that an attack which is right in every run would have after `runs` runs."""
    best = Counts(runs, left_upper=runs, tally=(runs, *(0,) * (2 * GRADES - 1)))
    return AnytimeBets(claimed, delta).epsilon_lower(best, alpha)


@lru_cache(maxsize=256)
def detectable_epsilon(claimed: float, runs: int, *, delta: float, alpha: float, power: float = 0.9) -> float:
    """Return the smallest true epsilon that `runs` runs catch with the given power, by the last look alone.

    The reference is that of `power`: a Laplace mechanism attacked optimally, which also reveals its input with
    probability delta. Earlier looks only add power. Infinite if nothing is caught that often.
    """
    bets = AnytimeBets(claimed, delta)

    def enough(true: float) -> bool:
        p_right, p_wrong = (1 + delta) / 2, (1 - delta) / 2 * math.exp(-true)
        grade = int(Stakes.of_log_odds(claimed).of(math.log(p_right / p_wrong) if p_wrong else math.inf))
        guesses = upper_quantile(1 - _GUESS_COUNTS, runs, min(1.0, p_right + p_wrong))
        min_right = bets.boundary(guesses, runs, alpha, grade)
        return float(np.mean(survival(min_right - 1, guesses, p_right / (p_right + p_wrong)))) >= power

    return least(enough, claimed, steps=_HALVINGS)  # where e^-true underflows, true might as well be infinite


def choose_growing_event(
    scores: ArrayLike, left: ArrayLike, right: ArrayLike, *, epsilon: float, delta: float, seen: int | None
) -> Event:
    """Choose the thresholds whose guesses make a gambler against the claim rich fastest.

    Parameters
    ----------
    scores : array (outcomes,)
        Evidence for the left world of outcomes, or of runs.
    left, right : array (outcomes,)
        Their probability together with each label, adding up to 1: halves of both laws, or 1/n at a run's label.
    epsilon, delta : float
        The claim.
    seen : int or None
        The runs that the probabilities were estimated from: wrong guesses are then smoothed by adding one.
    """
    values, p, q = (np.asarray(a, dtype=np.float64) for a in (scores, left, right))
    is_number = ~np.isnan(values)
    if not is_number.any():
        return NO_EVENT
    order = np.argsort(values[is_number], kind="stable")
    values, p, q = values[is_number][order], p[is_number][order], q[is_number][order]
    distinct = np.unique(values)
    places = np.unique(np.linspace(0, distinct.size - 1, _THRESHOLDS).astype(np.int64))
    mass = rounded(np.cumsum(p + q), _SMALL_DIGITS)
    by_mass = values[np.minimum(np.searchsorted(mass, np.linspace(0, 1, _THRESHOLDS)), values.size - 1)]
    grid = np.unique(np.concatenate([distinct[places], by_mass]))
    sums = [np.concatenate([[0.0], np.cumsum(law)]) for law in (p, q)]
    n_below, n_upto = (np.searchsorted(values, grid, side) for side in ("left", "right"))
    # Rows: name the left world from this score up, or never. Columns: name the right one up to this score, or never.
    right_rate = np.append(sums[0][-1] - sums[0][n_below], 0)[:, None] + np.append(sums[1][n_upto], 0)
    wrong_rate = np.append(sums[1][-1] - sums[1][n_below], 0)[:, None] + np.append(sums[0][n_upto], 0)
    if seen is not None:
        wrong_rate = wrong_rate + 1 / seen
    upper, lower, _, allowed = pairs(grid)
    growth = np.where(allowed, _growth(right_rate, wrong_rate, epsilon, delta), -np.inf)
    i, j = np.unravel_index(np.argmax(growth), growth.shape)
    return Event(float(lower[j]), float(upper[i]), "guess")


def _growth(p_right: _Floats, p_wrong: _Floats, epsilon: float, delta: float) -> _Floats:
    """Return the growth of the log wealth in a run at the best stake; where none grows, a ranking below 0. Rounded."""
    largest = 1 / (e_to(epsilon) + delta)
    best = np.full(p_right.shape, -np.inf)
    rest = np.maximum(1 - p_right - p_wrong, 0)
    for stake in (np.arange(_STAKES) + 0.5) / _STAKES * largest:
        log = (
            p_right * np.log1p(stake * (1 - delta))
            + p_wrong * np.log1p(-stake / largest)
            + rest * np.log1p(-stake * delta)
        )
        best = np.maximum(best, log)
    best = rounded(best, _SMALL_DIGITS)
    return np.where(best > 0, best, rounded(p_right - p_wrong * e_to(epsilon) - delta) - 1e3)


def choose_stakes(
    scores: Floats, left: NDArray[np.bool_], *, epsilon: float, delta: float, log_odds: bool
) -> tuple[Stakes, float]:
    """Choose what to stake on runs of each score, and return what it would have won.

    Several models say the odds of each score's worlds (`odds.models`): polynomials of rank, noise of some location and
    scale, and from many runs on cells that are like their neighbours. How far each is trusted is what it made of the
    others' labels, when most of the runs taught it: the odds are their mixture.

    Parameters
    ----------
    scores : array (runs,)
        Evidence for the left world; nan has no stake.
    left : bool array (runs,)
        The labels, of coins.
    epsilon, delta : float
        The claim.
    log_odds : bool
        Whether scores estimate the log odds of the left world.

    Returns
    -------
    stakes : Stakes
    gain : float
        The log wealth of gamblers against the claim after all runs: the stakes that most of the runs teach are bet on
        the others (cross-validation).
    """
    is_number = ~np.isnan(scores)
    fold = np.arange(left.size) % _FOLDS
    several = left.size >= _MIN_CELL_RUNS

    def learned(runs: NDArray[np.bool_]) -> tuple[Floats, Floats]:
        return _model_odds(scores[is_number & runs], left[is_number & runs], several=several, log_odds=log_odds)

    of_folds = [learned(fold != i) for i in range(_FOLDS)]
    trust = np.zeros(len(of_folds[0][1]))
    for i, (edges, odds) in enumerate(of_folds):
        in_fold = is_number & (fold == i)
        fold_odds = odds[:, np.searchsorted(edges, scores[in_fold], side="right")]
        trust += special.log_expit(np.where(left[in_fold], fold_odds, -fold_odds)).sum(axis=1)
    tally = np.zeros((2, GRADES), dtype=np.int64)
    for i, (edges, odds) in enumerate(of_folds):
        in_fold = fold == i
        stakes = Stakes.of_cells(edges, _mixed(odds, trust), epsilon)
        tally += [side.sum(axis=0) for side in by_grade(stakes.of(scores[in_fold]), left[in_fold])]
    gain = float(rounded(GradedBets(epsilon, delta).log_wealth(tally[0], tally[1], left.size, epsilon)))
    edges, odds = learned(is_number)
    return Stakes.of_cells(edges, _mixed(odds, trust), epsilon), gain


def _mixed(odds: Floats, trust: Floats) -> Floats:
    """Return the log odds of a mixture of models, (cells,), from theirs, (models, cells), and their log weights."""
    weights = special.softmax(rounded(trust, _TRUST_DIGITS))
    return rounded(special.logit(weights @ special.expit(odds)), _TRUST_DIGITS)


def _model_odds(scores: Floats, left: NDArray[np.bool_], *, several: bool, log_odds: bool) -> tuple[Floats, Floats]:
    """Return thresholds, and the log odds of the left world between them by each model, (models, cells)."""
    grid, *counts = counts_of(scores, left)
    if not grid.size:
        return grid, np.zeros((1 + NOISES + several, 1))
    with np.errstate(invalid="ignore", over="ignore"):  # infinite scores are not noise's
        length = float(np.subtract(grid[-1], grid[0]))
        # Beyond the scores that were seen noise still says something.
        extensions = _EXTENSIONS * significant(length, 20) if 0 < length < math.inf else np.zeros(0)
        edges = np.concatenate([grid[0] - extensions[::-1], grid[1:], grid[-1] + extensions])
        middles = np.concatenate([edges[:1], (edges[:-1] + edges[1:]) / 2, edges[-1:]]) if edges.size else grid
    cells = np.clip(np.arange(edges.size + 1) - extensions.size, 0, grid.size - 1)
    models = [polynomial_odds(*(side[1:] for side in counts))[cells]]
    models += list(noise_odds(scores, left, middles))
    if several:
        _, *of_worlds = cells_of(scores, left, log_odds=log_odds)
        with np.errstate(divide="ignore", invalid="ignore"):
            odds = np.log(of_worlds[0] / max(1, left.sum())) - np.log(of_worlds[1] / max(1, (~left).sum()))
        models.append(np.nan_to_num(odds, posinf=CERTAIN, neginf=-CERTAIN)[cells + 1])
    return edges, np.stack(models)
