"""A difference that is too rare for the runs of an audit."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from ..record_types import RareJson


@dataclass(frozen=True)
class Rare:
    """Outputs that name one input, found with stretched noise, and never seen in ordinary runs on the other.

    Attributes
    ----------
    probability : float
        About how often it happens.
    place : str
        FILE:LINE of the draw that decides it.
    runs : int or None
        How many counted runs certify it, if the other input never shows it; None where no affordable number does.
    input : {"left", "right"}
        The input that is named.
    """

    probability: float
    place: str
    runs: int | None
    input: Literal["left", "right"]

    def __str__(self) -> str:
        return rare_words(self.to_json())

    def to_json(self) -> RareJson:
        """Return the record's `rare`."""
        return {"probability": self.probability, "place": self.place, "runs": self.runs, "input": self.input}


def rare_words(rare: RareJson) -> str:
    """Return what a record's `rare` says: the input, about how often, the line, and the runs that certify it."""
    return (
        f"stretched noise shows outputs that name the {rare['input']} input, with probability about "
        f"{rare['probability']:.1g} ({rare['place']}); {_runs_words(rare['runs'])}"
    )


def rounded_up(runs: int) -> int:
    """Return a number of runs with one digit, rounded up."""
    unit = int(10 ** math.floor(math.log10(max(1, runs))))
    return math.ceil(runs / unit) * unit


def _runs_words(runs: int | None) -> str:
    if runs is None:
        return "no affordable number of runs certifies them"
    return f"to certify them takes about {rounded_up(runs):,} runs, or more"
