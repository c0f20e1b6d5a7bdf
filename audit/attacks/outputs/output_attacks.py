"""Which attacks on outputs are worth fitting: those that few training runs show to tell the worlds apart."""

from __future__ import annotations

from ...encoding.features import LabelledColumns
from .binned_regressions import BinnedRegression
from .count_tables import FEW_OUTCOMES, MOST_OUTCOMES, Table
from .interactions import Interacting, interactions
from .learned import Boosting, OutputAttack, SingleFeature
from .regressions import Logistic, OnAll, OnColumns, OnFew
from .screening import screen

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
    attacks: list[OutputAttack] = [
        Table(name, smooth=thorough, outcomes=outcome_count) for name, outcome_count in outcomes.items()
    ]
    if outcomes.get("all", MOST_OUTCOMES) <= FEW_OUTCOMES:
        return attacks[:1]
    several = train.coupled and len(features.columns) > 1
    if several:
        if len(features.with_specials) > 1:
            attacks.append(BinnedRegression(CURVE_STEP, least=True))
        attacks += [BinnedRegression(step) for step in (BIN_STEPS if thorough else (SEARCH_STEP,))]
    picked = screen(train, 4 if thorough else 2)
    for i, sign in picked.items():
        attacks += [
            SingleFeature(i, features.names[i], direction) for direction in ((1.0, -1.0) if train.coupled else (sign,))
        ]
    if not several and len(features.rows) > 2 and (thorough or "all" not in outcomes):
        separable = train.left.size < SEPARABLE * len(features.rows)
        attacks += [OnAll(), OnFew()] if separable else [Logistic()]
        if OnColumns.is_worth(train):
            attacks.append(OnColumns())
    if codes := interactions(train):
        attacks.append(Interacting(codes))
    if thorough and not several and not outcomes and len(features.columns) > 1 and train.left.size >= FEWEST_BOOSTED:
        attacks.append(Boosting())
    return attacks
