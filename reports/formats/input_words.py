"""The two inputs of a claim, side by side in one line, short enough to be read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ...audit.play.data import shown
from ...audit.play.pair_text import MAX_LETTERS, beside, cut_beside
from ...audit.record_types import SIDES, ClaimRecord
from ...audit.statistics.digits import exactly
from ..reading import is_mechanism, rounds_words

#: Letters that both inputs have in two lines, and those that say of which rounds their losses are.
_ROOM, _WHERE = 180, 30


def inputs_words(claim: ClaimRecord, *, max_letters: int = MAX_LETTERS) -> str:
    """Return the two inputs or losses, what neighbours differ in, and how many pairs were tried."""
    pair = claim.get("pair") or {}
    if pair.get("left") is None and pair.get("right") is None:
        return ""
    relation, searched = _relation(claim), claim.get("searched")
    tail = (f"; {relation}" if relation else "") + (f" ({searched['tried']:,} pairs tried)" if searched else "")
    room = (_ROOM - len(tail) - (0 if is_mechanism(claim) else _WHERE)) // 2
    return (
        pair_words(cast("Mapping[str, Any]", pair), of_data=is_mechanism(claim), max_letters=min(max_letters, room))
        + tail
    )


def _relation(claim: ClaimRecord) -> str:
    """Return what neighbours differ in, where that was asked for or is not that one round's loss is replaced."""
    neighbours, text = claim.get("neighbours"), claim.get("relation") or ""
    if neighbours == "replace" and not is_mechanism(claim):
        return ""
    return text.partition(": ")[2] or (f"neighbours are {text}" if text else "")


def pair_words(pair: Mapping[str, Any], *, of_data: bool, max_letters: int = MAX_LETTERS) -> str:
    """Return two inputs of a mechanism, or the losses of the rounds in which two sequences differ."""
    if of_data:
        left, right = beside(pair["left"], pair["right"], max_letters)
        return f"left {left}, right {right}"
    rounds = pair.get("rounds") or [pair["round"]]
    sides = [[pair[side][t - 1] for t in rounds] for side in SIDES]
    texts = [[_loss(loss, digits=4) for loss in side] for side in sides]
    if texts[0] == texts[1]:  # they differ in digits that are not shown
        texts = [[_loss(loss, digits=None) for loss in side] for side in sides]
    constant = len(rounds) > 1 and all(len(set(side)) == 1 for side in texts)
    left, right = (side[0] if constant else " and ".join(side) for side in texts)
    left, right = cut_beside(left, right, max_letters)
    where = f"the losses of {rounds_words(rounds)} of {len(pair['left'])}"
    return f"{where}: left {left}, right {right}" + " in each" * constant


def _loss(loss: object, *, digits: int | None) -> str:
    """Return a loss: a number, a list of them, or a convex loss as its family with its coefficients."""
    if isinstance(loss, Mapping) and "loss" in loss:
        parts = (f"{key} {_loss(value, digits=digits)}" for key, value in loss.items() if key != "loss")
        return f"{loss['loss']}({', '.join(parts)})"
    if isinstance(loss, list):
        return f"[{', '.join(_loss(value, digits=digits) for value in loss)}]"
    if not isinstance(loss, float):
        return shown(loss)
    return exactly(loss) if digits is None else f"{loss + 0.0:.{digits}g}"
