"""Logistic regressions of features, all or the few that tell most."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from operator import methodcaller

import numpy as np
import scipy  # its parts load when first used
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import best, rounded, significant
from ...encoding.features import Columns, Feature, LabelledColumns, Labels
from ..protocol import log_losses
from .learned import OutputAttack, nothing

#: The most training runs that a regression uses.
FITTED = 300_000
#: Decimals of a regression's weights, and leading bits of the means and deviations that features are standardised by.
WEIGHT_DIGITS, STANDARD_BITS = 4, 20
#: A feature whose standard deviation is at most this share of its largest value varies by rounding alone.
LAST_BITS = 1e-12
#: Features up to which a regression is on all of them; the most that are taken one by one, and the standard deviations
#: by which the next one must tell something.
FEW_FEATURES, MOST_TAKEN, TELLING = 4, 24, 4.0
#: With fewer runs for each feature, weights are tried whose variances, before anything is seen, are these and not 1.
MANY_RUNS, SMALLER = 100, (0.1, 0.01, 0.001)
#: Features up to which a regression is fitted by Newton's method, whose result is good to many digits.
MOST_NEWTON = 512


@dataclass(frozen=True)
class Logistic(OutputAttack):
    """Log odds of a logistic regression (scikit-learn), on all features or on the few that tell most.

    Of many features most may say nothing of the worlds: then the noise of their weights makes rare scores that promise
    more than they hold. So Akaike's criterion decides [1]_.

    References
    ----------
    .. [1] H. Akaike. A new look at the statistical model identification. IEEE Transactions on Automatic Control 19,
       1974.
    """

    name, log_odds = "logistic regression", True

    def learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        """Fit the regressions."""
        if train.of_one_world:
            return nothing
        rows, sample = self.rows_of(train), train.thinned(FITTED)
        matrix, left = np.stack([row(sample) for row in rows], axis=1), sample.left
        odds = self.odds_of(matrix, left)
        return lambda view: odds(view.columns.shape[1], lambda i: rows[i](view))

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        if matrix.shape[1] <= FEW_FEATURES:
            return LinearOdds.fit(matrix, left)
        return LinearOdds.best_of([*LinearOdds.fits(matrix, left), LinearOdds.stepwise(matrix, left)], matrix, left)

    def rows_of(self, train: LabelledColumns) -> Sequence[Feature]:
        """Return what the regression is on."""
        return train.features.rows


class OnAll(Logistic):
    """Log odds of a logistic regression on all features, whose weights are small: each has few runs."""

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        return LinearOdds.best_of([LinearOdds.fit(matrix, left, v) for v in SMALLER[1:]], matrix, left)


class OnColumns(Logistic):
    """A logistic regression on the columns as they are: what leaks into all of them is lost among other features.

    Its scores are not taken for log odds: these may have a bound where a sum has none.
    """

    name, log_odds = "logistic regression on columns", False

    @staticmethod
    def is_worth(train: LabelledColumns) -> bool:
        """Tell whether there are many columns, and few runs for each: of more a regression on all learns as much."""
        columns = len(train.features.columns)
        return columns > FEW_FEATURES and train.left.size < MANY_RUNS * columns and not train.features.discrete

    def rows_of(self, train: LabelledColumns) -> list[Feature]:
        """Return what the regression is on."""
        return [methodcaller("clean_row", i) for i in range(len(train.features.columns))]

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        return LinearOdds.best_of(LinearOdds.fits(matrix, left), matrix, left)


class OnFew(Logistic):
    """Log odds of a logistic regression on the few features that tell most."""

    name = "logistic regression on few features"

    def odds_of(self, matrix: Floats, left: Labels) -> LinearOdds:
        """Return the log odds by features (runs, features)."""
        return LinearOdds.stepwise(matrix, left)


@dataclass(frozen=True)
class LinearOdds:
    """Log odds that are linear in features.

    Parameters
    ----------
    weights : array (features,)
    constant : float
    variance : float
        Of the weights of standardised features, before anything is seen.
    """

    weights: Floats
    constant: float
    variance: float = 1.0

    @classmethod
    def fit(cls, matrix: Floats, left: Labels, variance: float = 1.0) -> LinearOdds:
        """Return those of a logistic regression (scikit-learn) on features (runs, features), of both worlds.

        What the training finds is rounded, far below its standard error: its sums depend on the processor, and scores
        of the same runs must not.
        """
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.linear_model import LogisticRegression

        mean, scale = _moments(matrix)
        newton = matrix.shape[1] <= MOST_NEWTON
        options = {"solver": "newton-cholesky", "max_iter": 60, "tol": 1e-3} if newton else {"max_iter": 300}
        model = LogisticRegression(C=variance, **options)
        with warnings.catch_warnings():
            for poor in (ConvergenceWarning, scipy.linalg.LinAlgWarning):  # costs power, and another attack is picked
                warnings.simplefilter("ignore", poor)
            model.fit((matrix - mean) / scale, left)
        # The features are not standardised again for every block: the weights are.
        weights = rounded(model.coef_[0], WEIGHT_DIGITS) / scale
        shift = sum(weight * middle for weight, middle in zip(weights.tolist(), mean.tolist(), strict=True))
        return cls(weights, float(rounded(model.intercept_[0], WEIGHT_DIGITS)) - shift, variance)

    @classmethod
    def fits(cls, matrix: Floats, left: Labels) -> list[LinearOdds]:
        """Return those on all features, also with weights that are smaller where runs are few for each."""
        variances = (1.0, *SMALLER) if len(left) < MANY_RUNS * matrix.shape[1] else (1.0,)
        return [cls.fit(matrix, left, variance) for variance in variances]

    @classmethod
    def stepwise(cls, matrix: Floats, left: Labels) -> LinearOdds:
        """Return those of the features that tell something beside the ones before them, each the best that is left."""
        mean, scale = _moments(matrix)
        standard = (matrix - mean) / scale
        selected: list[int] = []
        odds = cls(np.zeros(matrix.shape[1]), math.log(left.sum() / (~left).sum()))
        while len(selected) < MOST_TAKEN:
            shares = special.expit(odds.of(matrix))
            statistics = np.abs((left - shares) @ standard) / math.sqrt(float(np.sum(shares * (1 - shares))))
            statistics[selected] = 0.0
            if statistics.max() < TELLING:
                break
            selected.append(best(statistics))
            fitted = cls.fit(matrix[:, selected], left)
            odds = cls(np.zeros(matrix.shape[1]), fitted.constant)
            odds.weights[selected] = fitted.weights
        return odds

    @classmethod
    def telling(cls, matrix: Floats, left: Labels) -> LinearOdds:
        """Return those on the few features that tell most, if these say more than all do: by Akaike's criterion."""
        odds = cls.fit(matrix, left)
        if matrix.shape[1] <= FEW_FEATURES:
            return odds
        selected = cls.stepwise(matrix, left)
        if not selected.weights.any():  # each tells too little alone, and all may tell something together
            return odds
        return cls.best_of([odds, selected], matrix, left)

    @staticmethod
    def best_of(candidates: Sequence[LinearOdds], matrix: Floats, left: Labels) -> LinearOdds:
        """Return the first of those with the least criterion, but for rounding."""
        product = cache(partial(_product, matrix))
        return min(candidates, key=lambda candidate: float(rounded(candidate.criterion(matrix, left, product))))

    def of(self, matrix: Floats) -> Floats:
        """Return the log odds, (runs,), of runs whose features are a matrix, (runs, features)."""
        return self(len(matrix), lambda i: matrix[:, i])

    def criterion(self, matrix: Floats, left: Labels, product: Callable[[], Floats]) -> float:
        """Return Akaike's criterion: what the odds do not say of the runs, and twice the effective number of weights.

        A weight counts for as much as the runs, and not its variance before them, decide it [1]_.

        Parameters
        ----------
        matrix : array (runs, features)
        left : bool array (runs,)
        product : callable
            Returns that of every two runs, which odds on more features than there are runs have in common.

        References
        ----------
        .. [1] R. Gray. Flexible methods for analyzing survival data using splines. JASA 87, 1992, section 2.
        """
        odds, active = self.of(matrix), self.weights != 0
        if not active.any():
            return float(2 * log_losses(odds, left).sum())
        shares = special.expit(odds)
        root = np.sqrt(shares * (1 - shares))
        # The sum of c / (c + 1 / variance) over the eigenvalues c of either product of the matrix and its transpose.
        if np.count_nonzero(active) > max(MOST_TAKEN, len(matrix)):
            weighted = product() * np.outer(root, root)
        else:
            standard = _standard(matrix[:, active]) * root[:, None]
            gram_rows = standard.T if standard.shape[0] > standard.shape[1] else standard
            weighted = gram_rows @ gram_rows.T
        weighted[np.diag_indices_from(weighted)] += 1 / self.variance
        inverse, _ = scipy.linalg.lapack.dtrtri(np.linalg.cholesky(weighted), lower=1)
        effective = len(weighted) - np.sum(np.square(inverse)) / self.variance
        return float(2 * log_losses(odds, left).sum() + 2 * effective)

    def __call__(self, runs: int, feature: Callable[[int], Floats]) -> Floats:
        """Return the log odds, (runs,), of runs whose features are told one by one: a sum in a fixed order."""
        total = np.full(runs, self.constant)
        for i in np.flatnonzero(self.weights).tolist():
            total += self.weights[i] * feature(i)
        return rounded(total)


def _product(matrix: Floats) -> Floats:
    standard = _standard(matrix)
    product: Floats = standard @ standard.T
    return product


def _standard(matrix: Floats) -> Floats:
    mean, scale = _moments(matrix)
    standard: Floats = (matrix - mean) / scale
    return standard


def _moments(matrix: Floats) -> tuple[Floats, Floats]:
    """Return the means and standard deviations of features, (runs, features), in few bits.

    The deviation is infinite of what varies by rounding alone: that tells nothing of the worlds.
    """
    mean, scale = (significant(moments, STANDARD_BITS) for moments in (matrix.mean(axis=0), matrix.std(axis=0)))
    return mean, np.where(scale > LAST_BITS * np.abs(matrix).max(axis=0), scale, np.inf)
