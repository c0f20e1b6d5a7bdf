"""Which attacks on outputs are worth fitting: those that few training runs show to tell the worlds apart."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ....mechanisms.draws import Floats
from ...encoding.columns import of_sorted
from ...encoding.features import LabelledColumns, Labels
from ...statistics.bounds.rounding import best
from .binned_regressions import BinnedRegression
from .count_tables import FEW_OUTCOMES, MOST_OUTCOMES, ByCategory, Patterns, Table
from .interactions import Interacting, interactions
from .learned import SCREENED, Boosting, Histogram, OutputAttack, SingleFeature
from .parities import Parities
from .regressions import Logistic, OnAll, OnColumns, OnFew

#: Where there are so many times the screened runs, the better features are screened again on as many more.
MANY = 8
#: Between which shares of its values the bins of a feature that is screened are: finer in its tails, for what is rare.
SCREENED_SHARES = np.concatenate([0.5 ** np.arange(8, 4, -1), np.arange(1, 16) / 16, 1 - 0.5 ** np.arange(5, 9)])
#: Training runs below which trees are not grown: they would learn the luck of the runs.
FEWEST_BOOSTED = 8000
#: With fewer runs for each feature, a regression is better on all features or on few by the luck of the half that it
#: learns from, where a plane may be between the worlds by chance (Cover 1965), and all runs may say the other: so both
#: are attacks, whose scores of other runs are judged.
SEPARABLE = 4
#: Standard deviations of the steps between the weights of neighbouring bins that are tried, the one that is taken
#: while pairs are compared, and that of curves of the least number.
BIN_STEPS, SEARCH_STEP, CURVE_STEP = (0.01, 0.003, 0.001), 0.003, 0.01


def attacks_on(train: LabelledColumns, *, thorough: bool) -> list[OutputAttack]:
    """Return the attacks worth fitting on these training runs.

    Parameters
    ----------
    thorough : bool
        False while many pairs are compared.
    """
    features = train.features
    if not features.rows:
        return []
    outcomes = Table.projections(train)
    worth: list[OutputAttack] = [Table(name, smooth=thorough, outcomes=many) for name, many in outcomes.items()]
    if outcomes.get("all", MOST_OUTCOMES) <= FEW_OUTCOMES:
        return worth[:1]
    several = train.coupled and len(features.columns) > 1
    if (thorough or not several) and Patterns.is_worth(train):
        worth.append(Patterns())
    if several:
        if len(features.with_specials) > 1:
            worth.append(BinnedRegression(CURVE_STEP, least=True))
        worth += [BinnedRegression(step) for step in (BIN_STEPS if thorough else (SEARCH_STEP,))]
    if thorough:
        worth += ByCategory.worth(train)
        worth += Parities.worth(train)
    picked = screen(train, 4 if thorough else 2)
    for i, sign in picked.items():
        worth += [SingleFeature(i, features.names[i], one) for one in ((1.0, -1.0) if train.coupled else (sign,))]
    if thorough and not features.discrete:
        worth += [Histogram(i, features.names[i]) for i in list(picked)[:2]]
    if not several and len(features.rows) > 2 and (thorough or "all" not in outcomes):
        separable = train.left.size < SEPARABLE * len(features.rows)
        worth += [OnAll(), OnFew()] if separable else [Logistic()]
        if OnColumns.is_worth(train):
            worth.append(OnColumns())
    if found := interactions(train):
        worth.append(Interacting(found))
    if thorough and not several and not outcomes and len(features.columns) > 1 and train.left.size >= FEWEST_BOOSTED:
        worth.append(Boosting())
    return worth


def screen(train: LabelledColumns, most: int) -> dict[int, float]:
    """Return the features that tell the worlds apart best, and the sign of each whose best tail is of its own world.

    They are best by information over all bins, or by their best tail. All are looked at on few runs, and the better
    ones again where there are many: weak evidence needs them.
    """
    rows = list(range(len(train.features.rows)))
    step = -(-train.left.size // SCREENED)
    if step >= MANY:
        rows = list(_best_rows(train.every(step), rows))[: len(rows) // 4 + most]
        step = -(-step // MANY)
    return dict(list(_best_rows(train.every(step), rows).items())[:most])


def _best_rows(train: LabelledColumns, rows: Sequence[int]) -> dict[int, float]:
    """Return some features with their signs, best first, by either criterion in turn."""
    told = [_told(train.features.rows[i](train), train.left) for i in rows]
    orders = np.argsort([[-one[k] for one in told] for k in (0, 1)], kind="stable")
    return {rows[i]: told[i][2] for i in dict.fromkeys(orders.T.ravel().tolist())}


def _told(values: Floats, left: Labels) -> tuple[float, float, float]:
    """Return what bins of a feature say, what its best tail says, and the sign with which that is of its own world.

    Of many bins more is said by chance: as much as there are, less one.
    """
    edges = of_sorted(np.sort(values), SCREENED_SHARES)
    # Values that come often have a bin of their own.
    edges = np.unique(np.concatenate([edges, np.nextafter(edges, np.inf), [-np.inf, np.inf]]))
    counts = np.diff([np.searchsorted(np.sort(values[world]), edges) for world in (left, ~left)])
    counts = counts[:, counts.any(axis=0)]
    both = counts + 0.5
    information = float(np.sum((both[0] - both[1]) ** 2 / both.sum(axis=0))) - (both.shape[1] - 1)
    if both.shape[1] == 1:
        return information, -math.inf, 1.0
    tails = np.stack([np.cumsum(counts, axis=1)[:, :-1], np.cumsum(counts[:, ::-1], axis=1)[:, :-1]], axis=1) + 0.5
    ratios = np.log(tails[0] / tails[1])
    surely = np.abs(ratios) - 2 * np.sqrt((1 / tails).sum(axis=0))
    upper, place = np.unravel_index(best(surely), surely.shape)
    return information, float(surely.max()), float(np.sign(ratios[upper, place]) * (1 if upper else -1)) or 1.0
