"""Which attacks on outputs are worth fitting: those that few training runs show to tell the worlds apart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..encoding.features import LabelledView
from .binned_regressions import BinnedRegression
from .count_tables import FEW_OUTCOMES, MOST_OUTCOMES, Patterns, Table
from .interactions import Interacting, interactions
from .learned import SCREENED, Boosting, Histogram, OutputAttack, SingleFeature, quantiles
from .regressions import Logistic, OnAll, OnColumns, OnFew

#: Where there are so many times the screened runs, the better features are screened again on as many more.
MANY = 8
#: The bins of a feature that is screened.
SCREENED_BINS = 16
FEWEST_BOOSTED = 8000
#: With fewer runs for each feature, a regression is better on all features or on few by the luck of the half that it
#: learns from, where a plane may be between the worlds by chance (Cover 1965), and all runs may say the other: so both
#: are attacks, whose scores of other runs are judged.
SEPARABLE = 4
#: Standard deviations of the steps between the weights of neighbouring bins that are tried, the one that is taken
#: while pairs are compared, and that of curves of the least number.
BIN_STEPS, SEARCH_STEP, CURVE_STEP = (0.01, 0.003, 0.001), 0.003, 0.01


def attacks_on(train: LabelledView, *, thorough: bool) -> list[OutputAttack]:
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
    picked = screen(train, 4 if thorough else 2)
    signs = (1.0, -1.0) if train.coupled else (1.0,)
    worth += [SingleFeature(i, features.names[i], sign) for i in picked for sign in signs]
    if thorough and not features.discrete:
        worth += [Histogram(i, features.names[i]) for i in picked[:2]]
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


def screen(train: LabelledView, most: int) -> list[int]:
    """Return the features that tell the worlds apart best: by information over all bins, and by their best tail.

    All are looked at on few runs, and the better ones again where there are many: weak evidence needs them.
    """
    rows = list(range(len(train.features.rows)))
    step = -(-train.left.size // SCREENED)
    if step >= MANY:
        rows = _best_rows(train.every(step), rows)[: len(rows) // 4 + most]
        step = -(-step // MANY)
    return _best_rows(train.every(step), rows)[:most]


def _best_rows(train: LabelledView, rows: Sequence[int]) -> list[int]:
    """Return the numbers of some features, best first, by either criterion in turn."""
    worth, left = [], train.left
    for i in rows:
        values = train.features.rows[i](train)
        edges = quantiles(values, SCREENED_BINS)
        below = [np.searchsorted(np.sort(values[world]), edges) for world in (left, ~left)]
        both = np.diff(below, prepend=0, append=[[np.count_nonzero(left)], [np.count_nonzero(~left)]]) + 0.5
        information = float(np.sum((both[0] - both[1]) ** 2 / both.sum(axis=0)))
        tails = np.concatenate([np.cumsum(both, axis=1)[:, :-1], np.cumsum(both[:, ::-1], axis=1)[:, :-1]], axis=1)
        tails = tails if tails.size else both
        ratio = np.abs(np.log(tails[0] / tails[1])) - 2 * np.sqrt((1 / tails).sum(axis=0))
        worth.append((information, float(ratio.max())))
    orders = np.argsort([[-value for value in criterion] for criterion in zip(*worth, strict=True)], kind="stable")
    picked: list[int] = []
    for pair in orders.T.tolist():
        picked += [i for i in dict.fromkeys(pair) if i not in picked]
    return [rows[i] for i in picked]
