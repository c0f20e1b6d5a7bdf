"""The pair of a claim as the report shows it: two inputs, or losses as a few steps of equal ones."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

from ..audit.play.data import shown
from ..audit.play.pair_text import beside
from ..audit.record_types import ClaimRecord, PairJson
from .reading import is_mechanism, rounds_words
from .sanitise import visible

#: Steps of a pair, and numbers of a loss vector, that are printed.
MAX_STEPS, MAX_NUMBERS = 9, 8
#: Of a mechanism's input.
MAX_LETTERS = 400


def witness(claim: ClaimRecord) -> dict[str, Any] | None:
    """Return the pair to show: the inputs of a mechanism, or losses as a few steps of equal ones, shrunken first."""
    if is_mechanism(claim):
        inputs = claim.get("pair") or {}
        texts = beside(inputs.get("left"), inputs.get("right"), MAX_LETTERS)
        return {"inputs": list(map(visible, texts)), "steps": []}
    shrunk: Mapping[str, object] = claim.get("shrunk") or {}
    shrunken = shrunk.get("pair") or (shrunk if "left" in shrunk else claim.get("pair")) or {}
    pair = cast("PairJson", shrunken)
    left, right = pair.get("left"), pair.get("right")
    if not left or not isinstance(left, list) or not isinstance(right, list) or len(left) != len(right):
        return None
    first = pair.get("round") or next((t for t, (a, b) in enumerate(zip(left, right, strict=True), 1) if a != b), 1)
    differ = pair.get("rounds") or [first]
    steps: list[dict[str, Any]] = []
    for t, (a, b) in enumerate(zip(left, right, strict=True), start=1):
        row = (_vector(a), _vector(b))
        row = (shown(a), shown(b)) if t in differ and row[0] == row[1] else row  # as 0 and -0, or 1 and 1.00001
        if steps and (steps[-1]["left"], steps[-1]["right"]) == row and not {t, t - 1} & set(differ):
            steps[-1]["last"] = t
        else:
            steps.append({"first": t, "last": t, "left": row[0], "right": row[1], "differs": t in differ})
    hidden = 0
    if len(steps) > MAX_STEPS:
        middle = next((i for i, s in enumerate(steps) if s["differs"]), 0)
        start = max(0, min(middle - MAX_STEPS // 2, len(steps) - MAX_STEPS))
        hidden = len(steps) - MAX_STEPS
        steps = steps[start : start + MAX_STEPS]
    return {"inputs": [], "steps": steps, "hidden": hidden, "round": rounds_words(differ), "rounds": len(left)}


def _vector(loss: object) -> str:
    if isinstance(loss, Mapping):  # a convex loss: its family and its coefficients
        parts = [f"{key} {_vector(value)}" for key, value in loss.items() if key != "loss"]
        return ", ".join(parts if "losses" in loss else [str(loss.get("loss", "loss")), *parts])
    if isinstance(loss, (int, float)):
        return f"{loss + 0.0:.4g}"
    if not isinstance(loss, list):
        return str(loss)
    entries = [f"{x + 0.0:.4g}" if isinstance(x, (int, float)) else str(x) for x in loss]
    if len(entries) > MAX_NUMBERS:
        entries = [*entries[: MAX_NUMBERS - 1], f"… {len(entries) - MAX_NUMBERS + 1} more"]
    return "(" + ", ".join(entries) + ")"
