"""Which features tell the inputs apart best, by counts in bins of each alone."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ....mechanisms.draws import Floats
from ....mechanisms.numerics import rounded
from ...encoding.columns import MAX_NUMBERS, of_sorted
from ...encoding.features import LabelledColumns, Labels
from .learned import SCREENED

#: An audit that has this many times the screened runs screens the better features again, on more runs.
MAX_BINS = 8
#: Between which shares of its values the bins of a feature that is screened are: finer in its tails, for what is rare.
SCREENED_SHARES = np.concatenate([0.5 ** np.arange(8, 4, -1), np.arange(1, 16) / 16, 1 - 0.5 ** np.arange(5, 9)])


def screen(train: LabelledColumns, max_features: int) -> dict[int, float]:
    """Return the features that tell the inputs apart best, each with the sign that its scores need.

    They are best by information over all bins, or by their best tail. All are looked at on few runs, and the better
    ones again where there are many: weak evidence needs them.
    """
    rows = list(range(len(train.features.rows)))
    step = -(-train.left.size // SCREENED)
    if step >= MAX_BINS:
        rows = list(_best_rows(train.every(step), rows))[: len(rows) // 4 + max_features]
        step = -(-step // MAX_BINS)
    return dict(list(_best_rows(train.every(step), rows).items())[:max_features])


def _best_rows(train: LabelledColumns, rows: Sequence[int]) -> dict[int, float]:
    """Return some features with their signs, best first, by either criterion in turn."""
    evidence = np.array([told_by(train.features.rows[i](train), train.left) for i in rows]).reshape(-1, 4)
    return {rows[i]: float(evidence[i, 2]) for i in in_turn(evidence)}


def in_turn(evidence: Floats) -> list[int]:
    """Return the places of features, best first, by either criterion in turn; see `told_by`."""
    return list(dict.fromkeys(np.argsort(-evidence[:, :2], axis=0, kind="stable").ravel().tolist()))


def told_by(values: Floats, left: Labels) -> Floats:
    """Return what bins of a feature say, what its best tail says, the sign with which that is of its own world, and z.

    That is by how many standard errors it says so.
    """
    edges = of_sorted(np.sort(values), SCREENED_SHARES)
    # Values that come often have a bin of their own.
    edges = np.unique(np.concatenate([edges, np.nextafter(edges, np.inf), [-np.inf, np.inf]]))
    counts = np.diff([np.searchsorted(np.sort(values[world]), edges) for world in (left, ~left)])
    evidence: Floats = _told(counts[None, :, counts.any(axis=0)])[0]
    return evidence


def told_by_each(rows: Floats, left: Labels) -> Floats:
    """Return what `told_by` returns of each row, (rows, 4): of those whose numbers differ many at a time."""
    evidence = np.empty((len(rows), 4))
    cuts = np.unique(np.ceil(SCREENED_SHARES * (left.size - 1)).astype(np.intp))
    cuts = cuts[(cuts > 0) & (cuts < left.size)]
    sizes = np.diff(cuts, prepend=0, append=left.size)
    step = max(1, MAX_NUMBERS // max(1, left.size))
    for start in range(0, len(rows), step):
        batch = rows[start : start + step]
        order = np.argsort(batch, axis=1)
        ordered = np.take_along_axis(batch, order, axis=1)
        of_left = np.add.reduceat(left[order].astype(np.int64), np.append(0, cuts), axis=1)
        batch_evidence = _told(np.stack([of_left, sizes - of_left], axis=1))
        for i in np.flatnonzero(~(ordered[:, 1:] > ordered[:, :-1]).all(axis=1)):
            batch_evidence[i] = told_by(batch[i], left)
        evidence[start : start + step] = batch_evidence
    return evidence


def _told(counts: Floats) -> Floats:
    """Return what counts of either world by bins, (features, 2, bins), say, as `told_by` does: (features, 4).

    Of many bins more is said by chance: as much as there are, less one.
    """
    smoothed = counts + 0.5
    information = ((smoothed[:, 0] - smoothed[:, 1]) ** 2 / smoothed.sum(axis=1)).sum(axis=1) - (smoothed.shape[2] - 1)
    if smoothed.shape[2] == 1:
        none, n_left = np.zeros(len(smoothed)), np.ones(len(smoothed))
        return np.stack([information, none - np.inf, n_left, none], axis=1)
    upto, on = np.cumsum(counts, axis=2)[..., :-1], np.cumsum(counts[..., ::-1], axis=2)[..., :-1]
    tails = np.stack([upto, on], axis=2) + 0.5  # (features, 2, lower or upper, places)
    ratios, errors = np.log(tails[:, 0] / tails[:, 1]), np.sqrt((1 / tails).sum(axis=1))
    surely, *flat = (n_left.reshape(len(smoothed), -1) for n_left in (np.abs(ratios) - 2 * errors, ratios, errors))
    place = np.argmax(rounded(surely), axis=1)[:, None]
    ratio, error = (np.take_along_axis(n_left, place, axis=1)[:, 0] for n_left in flat)
    sign = np.sign(ratio) * np.where(place[:, 0] >= ratios.shape[2], 1.0, -1.0)
    runs = smoothed.sum(axis=2)
    z = np.abs(ratio - np.log(runs[:, 0] / runs[:, 1])) / error
    return np.stack([information, surely.max(axis=1), np.where(sign == 0, 1.0, sign), z], axis=1)
