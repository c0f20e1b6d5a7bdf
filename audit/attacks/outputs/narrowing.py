"""Wide outputs by the few things that tell the inputs apart, and attacks on these alone.

Of thousands of columns most say nothing, and an attack on all of them takes long and learns little. So the columns,
steps and sums are kept that say most, with directions in all columns together. Like attacks, these are learned from
one half of the training runs for the other one: what fits by luck is found out there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import scipy  # its parts load when first used
from scipy import special

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import best, rounded, significant
from ...encoding.features import Columns, Feature, Features, LabelledColumns, Labels, Outputs
from .interactions import Counted, interactions
from .learned import SCREENED
from .regressions import STANDARD_BITS, TELLING, LinearOdds
from .screening import SCREENED_SHARES, in_turn, told_by, told_by_each

#: The number of columns beyond which an output is narrowed. Of the rows that tell the inputs apart beyond chance
#: narrowing keeps at most the second number; if there are none, it keeps the third number of best rows.
WIDE, MOST_KEPT, FEWEST_KEPT = 256, 32, 2
#: Spreads around the centre beyond which a number counts no more in a direction: noise may have heavy tails.
REACH = 8.0
#: Standard errors by which a column must tell something to count in the direction of few.
LEAST_TOLD = 2.0
#: The most runs or columns of a ridge regression, whose time is their cube; and its penalties, in mean eigenvalues.
MOST_SOLVED, PENALTIES = 2048, (0.1, 1.0)
#: The most numbers of outputs that are narrowed together, which bounds the memory.
MAX_NUMBERS = 2**24


@dataclass(frozen=True)
class Direction:
    """A weighted sum of all columns, each around its centre and clipped."""

    weights: Floats

    @classmethod
    def of(cls, train: LabelledColumns, estimator: Estimator) -> Direction:
        """Return what a way to learn weights makes of training runs."""
        columns, side = train.clipped(REACH), train.left - train.left.mean()
        scale = significant(columns.std(axis=1), STANDARD_BITS)
        scale[scale == 0] = np.inf
        weights = estimator((columns - columns.mean(axis=1, keepdims=True)) / scale[:, None], side)
        return cls(significant(weights / (np.sqrt(np.sum(weights**2)) or 1.0) / scale, STANDARD_BITS))

    def __call__(self, view: Columns) -> Floats:
        """Return the sums, (runs,)."""
        return rounded(self.weights @ view.clipped(REACH))


#: Returns weights of standardised columns, (columns, runs), by the runs' labels around their mean.
Estimator = Callable[[Floats, Floats], Floats]
#: What is learned of all columns together.
Learned = tuple[str, Callable[[LabelledColumns], Feature]]


@dataclass(frozen=True)
class Narrowed:
    """What turns outputs into few columns.

    Parameters
    ----------
    encoder : callable
        What turns outputs into all columns.
    features : Features
        Of all columns.
    rows : sequence of (name, feature)
        What is kept.
    """

    encoder: Callable[[Outputs], Floats]
    features: Features
    rows: Sequence[tuple[str, Feature]]

    @classmethod
    def fit(
        cls, encoder: Callable[[Outputs], Floats], columns: Floats, left: Labels
    ) -> tuple[Narrowed, LabelledColumns]:
        """Return what keeps little of encoded training runs, (columns, runs), and what it keeps of them.

        What is learned of all columns is learned from either half of the runs for the other one: stacking [1]_.

        References
        ----------
        .. [1] D. Wolpert. Stacked generalization. Neural Networks 5, 1992.
        """
        features = Features(columns)
        train = features.view(columns).labelled(left)
        sample, halves = train.thinned(SCREENED), [train.part(train.fold(i)) for i in (0, 1)]
        rows, values = list[tuple[str, Feature]](), list[Floats]()
        if features.kept:
            rows, surely = _picked(sample)
            values = [feature(train) for _, feature in rows]
            for name, learn in (_direction(sample), *_together(sample)):
                stacked = np.empty(left.size)
                for fold in (0, 1):
                    stacked[train.fold(fold)] = learn(halves[1 - fold].thinned(SCREENED))(halves[fold])
                if not surely or _says_more(stacked, np.array(values), left):
                    values.append(stacked)
                    rows.append((name, learn(sample)))
        numbers = np.array(values).reshape(-1, left.size)
        narrowed = cls(encoder, features, rows)
        return narrowed, Features(numbers, [name for name, _ in rows]).view(numbers).labelled(left)

    def __call__(self, outputs: Outputs) -> Floats:
        """Encode and narrow, some runs at a time."""
        runs = outputs.shape[-1] if isinstance(outputs, np.ndarray) else len(outputs)
        step = max(1, MAX_NUMBERS // max(1, len(self.features.columns)))
        parts = []
        for start in range(0, runs, step):
            stretch = slice(start, start + step)
            part = outputs[..., stretch] if isinstance(outputs, np.ndarray) else outputs[stretch]
            view = self.features.view(self.encoder(part))
            parts.append(np.array([feature(view) for _, feature in self.rows]))
        return np.concatenate(parts, axis=1)


def _picked(train: LabelledColumns) -> tuple[list[tuple[str, Feature]], bool]:
    """Return the columns, steps and sums that say most, as they are, in their order, and whether more than by chance.

    Where some say more, the others are left out.
    """
    features = train.features
    count, labels = len(features.columns), features.called
    evidence = told_by_each(train.clean, train.left)
    for i in features.varied:
        evidence[i] = np.max([told_by(feature(train), train.left) for _, feature in features.of_column(i)], axis=0)
    rows: list[tuple[str, Feature]] = [(labels[i], partial(_column, i)) for i in range(count)]
    if features.steps:
        steps = told_by_each(train.steps, train.left)
        # A step says again what its columns say, and these what it does: the one that says most is kept.
        of_one, of_step = evidence[:, 0].copy(), steps[:, 0].copy()
        evidence[of_one < np.maximum(of_step, np.roll(of_step, -1))] = -np.inf
        steps[of_step <= np.maximum(of_one, np.roll(of_one, 1))] = -np.inf
        rows += [(f"step to {labels[i]}", partial(_step, i)) for i in range(1, count)]
        evidence = np.concatenate([evidence, steps[1:]])
    sums = list(features.of_all())
    evidence = np.concatenate([evidence, *([told_by(feature(train), train.left)] for _, feature in sums)])
    order = in_turn(evidence)
    chance = -special.ndtri(1 / (2 * SCREENED_SHARES.size * len(evidence)))
    surely = [i for i in order if evidence[i, 3] > chance][:MOST_KEPT]
    return [[*rows, *sums][i] for i in sorted(surely or order[:FEWEST_KEPT])], bool(surely)


def _says_more(row: Floats, basis: Floats, left: Labels) -> bool:
    """Return whether a learned row tells the inputs apart beyond a regression on the rows that are kept."""
    view = Features(basis).view(basis)
    shares = special.expit(LinearOdds.fit(view.features.matrix(view), left).of(view.features.matrix(view)))
    statistic = abs(float((left - shares) @ (row - row.mean()))) / (float(row.std()) or 1.0)
    return statistic > TELLING * math.sqrt(float(np.sum(shares * (1 - shares))))


def _column(index: int, view: Columns) -> Floats:
    row: Floats = view.columns[index]
    return row


def _step(index: int, view: Columns) -> Floats:
    return view.step_row(index)


def _direction(train: LabelledColumns) -> Learned:
    """Return the way to learn a direction in all columns that says most, where each column says little.

    Four ways compete. Two weight each column by the difference of its means, all columns or only those that differ,
    as if columns were independent [1]_. Two are ridge regressions, which use the dependence. Each way learns from one
    half of the runs, and the other half judges it.

    References
    ----------
    .. [1] P. Bickel, E. Levina. Some theory for Fisher's linear discriminant function, 'naive Bayes', and some
       alternatives when there are many more variables than observations. Bernoulli 10, 2004.
    """
    estimators: list[Estimator] = [_of_means, partial(_of_means, min_errors=LEAST_TOLD)]
    estimators += [partial(_of_ridge, penalty=penalty) for penalty in PENALTIES]
    learned, judged = (train.part(train.fold(i)) for i in (0, 1))
    side = judged.left - judged.left.mean()
    sums = [Direction.of(learned, estimator)(judged) for estimator in estimators]
    statistics = [float(side @ row) / (float(row.std()) or 1.0) for row in sums]
    return "direction", partial(Direction.of, estimator=estimators[best(statistics)])


def _of_means(columns: Floats, side: Floats, min_errors: float = 0.0) -> Floats:
    """Return weights: the difference of each standardised column's means, or 0 below `min_errors` standard errors."""
    means = columns @ side
    return np.where(np.abs(means) >= min_errors * np.sqrt(np.sum(side**2)), means, 0.0)


def _of_ridge(columns: Floats, side: Floats, penalty: float) -> Floats:
    """Return weights of a ridge regression on standardised columns: by runs, where there are fewer of them."""
    if min(columns.shape) > MOST_SOLVED:
        step = -(-columns.shape[1] // MOST_SOLVED)
        columns, side = columns[:, ::step], side[::step]
    dual = columns.shape[0] > columns.shape[1]
    products = columns.T @ columns if dual else columns @ columns.T
    products[np.diag_indices_from(products)] += penalty * max(1.0, float(np.trace(products)) / len(products))
    solved = scipy.linalg.solve(products, side if dual else columns @ side, assume_a="pos")
    weights: Floats = columns @ solved if dual else solved
    return weights


def _together(train: LabelledColumns) -> list[Learned]:
    """Return what columns say only together."""
    return [
        (f"columns together {i}", partial(Counted.of, code)) for i, code in enumerate(interactions(train), start=1)
    ]
