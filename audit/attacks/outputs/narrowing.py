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
TOGETHER = 2**24


@dataclass(frozen=True)
class Direction:
    """A weighted sum of all columns, each around its centre and clipped."""

    weights: Floats

    @classmethod
    def of(cls, train: LabelledColumns, way: Way) -> Direction:
        """Return what a way to learn weights makes of training runs."""
        shown, side = train.clipped(REACH), train.left - train.left.mean()
        scale = significant(shown.std(axis=1), STANDARD_BITS)
        scale[scale == 0] = np.inf
        weights = way((shown - shown.mean(axis=1, keepdims=True)) / scale[:, None], side)
        return cls(significant(weights / (np.sqrt(np.sum(weights**2)) or 1.0) / scale, STANDARD_BITS))

    def __call__(self, view: Columns) -> Floats:
        """Return the sums, (runs,)."""
        return rounded(self.weights @ view.clipped(REACH))


#: Returns weights of standardised columns, (columns, runs), by the runs' labels around their mean.
Way = Callable[[Floats, Floats], Floats]
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
        few, halves = train.thinned(SCREENED), [train.part(train.fold(i)) for i in (0, 1)]
        rows, kept = list[tuple[str, Feature]](), list[Floats]()
        if features.kept:
            rows, surely = _picked(few)
            kept = [feature(train) for _, feature in rows]
            for name, learn in (_direction(few), *_together(few)):
                stacked = np.empty(left.size)
                for fold in (0, 1):
                    stacked[train.fold(fold)] = learn(halves[1 - fold].thinned(SCREENED))(halves[fold])
                if not surely or _says_more(stacked, np.array(kept), left):
                    kept.append(stacked)
                    rows.append((name, learn(few)))
        shown = np.array(kept).reshape(-1, left.size)
        narrowed = cls(encoder, features, rows)
        return narrowed, Features(shown, [name for name, _ in rows]).view(shown).labelled(left)

    def __call__(self, outputs: Outputs) -> Floats:
        """Encode and narrow, some runs at a time."""
        runs = outputs.shape[-1] if isinstance(outputs, np.ndarray) else len(outputs)
        step = max(1, TOGETHER // max(1, len(self.features.columns)))
        parts = []
        for start in range(0, runs, step):
            here = slice(start, start + step)
            part = outputs[..., here] if isinstance(outputs, np.ndarray) else outputs[here]
            view = self.features.view(self.encoder(part))
            parts.append(np.array([feature(view) for _, feature in self.rows]))
        return np.concatenate(parts, axis=1)


def _picked(train: LabelledColumns) -> tuple[list[tuple[str, Feature]], bool]:
    """Return the columns, steps and sums that say most, as they are, in their order, and whether more than by chance.

    Where some say more, the others are left out.
    """
    features = train.features
    count, called = len(features.columns), features.called
    told = told_by_each(train.clean, train.left)
    for i in features.varied:
        told[i] = np.max([told_by(feature(train), train.left) for _, feature in features.of_column(i)], axis=0)
    rows: list[tuple[str, Feature]] = [(called[i], partial(_column, i)) for i in range(count)]
    if features.steps:
        steps = told_by_each(train.steps, train.left)
        # A step says again what its columns say, and these what it does: the one that says most is kept.
        of_one, of_step = told[:, 0].copy(), steps[:, 0].copy()
        told[of_one < np.maximum(of_step, np.roll(of_step, -1))] = -np.inf
        steps[of_step <= np.maximum(of_one, np.roll(of_one, 1))] = -np.inf
        rows += [(f"step to {called[i]}", partial(_step, i)) for i in range(1, count)]
        told = np.concatenate([told, steps[1:]])
    sums = list(features.of_all())
    told = np.concatenate([told, *([told_by(feature(train), train.left)] for _, feature in sums)])
    order = in_turn(told)
    chance = -special.ndtri(1 / (2 * SCREENED_SHARES.size * len(told)))
    surely = [i for i in order if told[i, 3] > chance][:MOST_KEPT]
    return [[*rows, *sums][i] for i in sorted(surely or order[:FEWEST_KEPT])], bool(surely)


def _says_more(row: Floats, kept: Floats, left: Labels) -> bool:
    """Return whether a learned row tells the inputs apart beyond a regression on the rows that are kept."""
    view = Features(kept).view(kept)
    shares = special.expit(LinearOdds.fit(view.features.matrix(view), left).of(view.features.matrix(view)))
    told = abs(float((left - shares) @ (row - row.mean()))) / (float(row.std()) or 1.0)
    return told > TELLING * math.sqrt(float(np.sum(shares * (1 - shares))))


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
    ways: list[Way] = [_of_means, partial(_of_means, least=LEAST_TOLD)]
    ways += [partial(_of_ridge, penalty=one) for one in PENALTIES]
    learned, judged = (train.part(train.fold(i)) for i in (0, 1))
    side = judged.left - judged.left.mean()
    sums = [Direction.of(learned, way)(judged) for way in ways]
    told = [float(side @ one) / (float(one.std()) or 1.0) for one in sums]
    return "direction", partial(Direction.of, way=ways[best(told)])


def _of_means(shown: Floats, side: Floats, least: float = 0.0) -> Floats:
    """Return weights: the difference of each standardised column's means, or 0 below `least` standard errors."""
    told = shown @ side
    return np.where(np.abs(told) >= least * np.sqrt(np.sum(side**2)), told, 0.0)


def _of_ridge(shown: Floats, side: Floats, penalty: float) -> Floats:
    """Return weights of a ridge regression on standardised columns: by runs, where there are fewer of them."""
    if min(shown.shape) > MOST_SOLVED:
        step = -(-shown.shape[1] // MOST_SOLVED)
        shown, side = shown[:, ::step], side[::step]
    dual = shown.shape[0] > shown.shape[1]
    products = shown.T @ shown if dual else shown @ shown.T
    products[np.diag_indices_from(products)] += penalty * max(1.0, float(np.trace(products)) / len(products))
    solved = scipy.linalg.solve(products, side if dual else shown @ side, assume_a="pos")
    weights: Floats = shown @ solved if dual else solved
    return weights


def _together(train: LabelledColumns) -> list[Learned]:
    """Return what columns say only together."""
    return [
        (f"columns together {i}", partial(Counted.of, code)) for i, code in enumerate(interactions(train), start=1)
    ]
