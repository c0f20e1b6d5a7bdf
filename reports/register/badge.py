"""A claim's badge, as SVG and for shields.io: what the newest audit found, never that a target is private."""

from __future__ import annotations

from dataclasses import dataclass

from ...audit.record_types import ClaimRecord
from ...audit.statistics.measure_words import claimed_words
from ..reading import bound_words, measure_of, verdict_of

#: What each verdict is called: no badge praises. Colours have a contrast of at least 4.5 to white.
_MESSAGES = {"FALSIFIED": "falsified", "SURVIVED": "not falsified", "UNDERPOWERED": "not decided"}
_COLOURS = {"FALSIFIED": "#b3261e", "SURVIVED": "#55606e", "UNDERPOWERED": "#7a5200"}
#: Pixels: of a letter of 11 px in the widest of the fonts that the badge names, and on both sides of a text.
_LETTER, _PADDING = 6.6, 12


@dataclass(frozen=True)
class Badge:
    """The two halves of a badge: the claim, and what its newest audit found."""

    label: str
    message: str
    colour: str

    @property
    def widths(self) -> tuple[int, int]:
        """The width of each half, in pixels."""
        return _width(self.label), _width(self.message)

    def to_json(self) -> dict[str, object]:
        """Return the badge as an endpoint of shields.io."""
        return {"schemaVersion": 1, "label": self.label, "message": self.message, "color": self.colour}


def badge_of(claim: ClaimRecord) -> Badge:
    """Return the badge of a claim."""
    verdict = verdict_of(claim)
    bound = f": {bound_words(claim)}" if verdict == "FALSIFIED" else ""
    label = f"privacy claim: {claimed_words(measure_of(claim))}"
    return Badge(label, f"{_MESSAGES[verdict]}{bound}", _COLOURS[verdict])


def _width(text: str) -> int:
    return round(len(text) * _LETTER) + _PADDING
