"""Scores of canaries in words, as a record has them. It loads no NumPy."""

from __future__ import annotations

from typing import Final

from ..record_types import Design, ScoresJson

INDEPENDENT: Final = "independent"
ONE_RUN: Final = "one-run"
DESIGNS = (INDEPENDENT, ONE_RUN)
#: The method of their certificates, which use all scores.
METHOD: Final = "scores"
_ASSUMED: dict[Design, tuple[str, ...]] = {
    INDEPENDENT: (
        "each score comes from a training of its own",
        "inserted canaries are alike, and so are held-out ones",
    ),
    ONE_RUN: (
        "an independent fair coin for each canary (no fixed number in, no pairs)",
        "scores that depend on coins only through the data of the claim",
        "a claim about the change of one canary",
    ),
}
_TRAININGS = "independent trainings"


def assumptions(design: Design, trainings: int) -> list[str]:
    """Return what must hold for the certificate of scores."""
    return [*_ASSUMED[design], *([_TRAININGS] if design == ONE_RUN and trainings > 1 else [])]


def canaries_words(design: str | None, scores: ScoresJson) -> str:
    """Return how many canaries a record has, and of how many trainings."""
    count, trainings = scores["canaries"], scores.get("trainings") or 1
    where = (
        "from independent trainings"
        if design == INDEPENDENT
        else ("in one training" if trainings == 1 else f"in {trainings:,} trainings")
    )
    return f"{count:,} canaries {where}"


def needed_words(scores: ScoresJson) -> str:
    """Return how many canaries a perfect attack needs, where those of a record are too few."""
    if (count := scores.get("needed")) is not None:
        return f"a perfect attack needs {count:,} canaries"
    return scores.get("limit") or "a perfect attack needs more canaries"


def is_half(design: str | None, scores: ScoresJson) -> bool:
    """Return whether exactly half of the canaries of each training of a one-run design were included."""
    return design == ONE_RUN and bool(scores.get("halves"))
