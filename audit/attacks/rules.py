"""Rules: which side an event takes of each run, written as data that needs no attack and no learner to be read."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...learners.abilities import decisions
from ...mechanisms.draws import Floats
from ..encoding.encoder import rows_of, vectors
from ..encoding.features import Outputs
from ..encoding.places import scalars
from ..laws.sequences import index_of
from ..play.transcripts import Transcripts
from .outputs.regressions import LinearOdds

#: What is seen of a block of runs: of a learner's, or the outputs of a mechanism.
Seen = Transcripts | Outputs
Sides = NDArray[np.int8]  # (runs,): 1 names the left world, -1 the right one, 0 neither
#: What an event says of one outcome, in a record.
LETTERS = {1: "l", -1: "r", 0: "-"}
_SIDES = {letter: side for side, letter in LETTERS.items()}
#: Shares of the spread around the centre in which the side of a number counts, and the largest standardised one.
_NEAR, _FAR = 0.1, 1e3


class NotFrozenError(ValueError):
    """An event cannot be written as data, or what was written does not fit what it is asked of."""


class Rule(Protocol):
    """The side that an event takes of each run."""

    def sides(self, seen: Seen) -> Sides:
        """Return 1 where the left world is named, -1 where the right one is, else 0: (runs,)."""

    def to_json(self) -> dict[str, object]:
        """Return the record's form, with its `kind`."""


def _letters(sides: Sides) -> str:
    return "".join(LETTERS[side] for side in sides.tolist())


def _read_letters(letters: object) -> Sides:
    if not isinstance(letters, str) or not letters or set(letters) - set(_SIDES):
        raise must_be("says", "letters of l, r and -", str(letters)[:40], NotFrozenError)
    return np.array([_SIDES[letter] for letter in letters], dtype=np.int8)


@dataclass(frozen=True, eq=False)
class Sequences:
    """The side of every sequence of arms, in the order of `sequences.all_sequences`."""

    arms: int
    batch: int
    says: Sides

    def sides(self, seen: Seen) -> Sides:
        """Look the sequences up."""
        actions = seen.actions if isinstance(seen, Transcripts) else np.empty(0)
        if actions.ndim != 2 or self.says.size != self.arms ** decisions(len(actions), self.batch):
            raise NotFrozenError("the sequences of arms are others than the baseline's")
        sides: Sides = self.says[index_of(actions, self.arms, self.batch)]
        return sides

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        return {"kind": "sequences", "arms": self.arms, "batch": self.batch, "says": _letters(self.says)}


@dataclass(frozen=True, eq=False)
class Intervals:
    """The side of a number by the interval that holds it: at or above a cut lies beyond it, nan above all."""

    cuts: Floats
    says: Sides

    def sides(self, seen: Seen) -> Sides:
        """Look the numbers up."""
        sides: Sides = self.says[np.searchsorted(self.cuts, columns_of(mechanism_outputs(seen), 0, 1)[0], "right")]
        return sides

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        return {"kind": "intervals", "cuts": self.cuts.tolist(), "says": _letters(self.says)}


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The side of every outcome that is named, by its text."""

    says: Mapping[str, int]

    def sides(self, seen: Seen) -> Sides:
        """Look the outcomes up."""
        return np.array([self.says.get(text, 0) for text in texts_of(mechanism_outputs(seen))], dtype=np.int8)

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        return {"kind": "outcomes", "says": {text: LETTERS[side] for text, side in self.says.items()}}


@dataclass(frozen=True, eq=False)
class LinearRule:
    """Two thresholds on a weighted sum of standardised columns, their sides, and products of neighbouring ones.

    `arms` is 0 where no arms are played: points, or the outputs of a mechanism.
    """

    arms: int
    centre: Floats
    spread: Floats
    weights: Floats
    constant: float
    lower: float
    upper: float

    @staticmethod
    def features(columns: Floats, centre: Floats, spread: Floats) -> Floats:
        """Return (features, runs)."""
        finite = np.where(np.isfinite(columns), columns, centre[:, None])
        with np.errstate(over="ignore"):  # what is beyond any float is clipped
            standard = np.clip((finite - centre[:, None]) / spread[:, None], -_FAR, _FAR)
        return np.concatenate([standard, np.clip(standard / _NEAR, -1, 1), standard[1:] * standard[:-1]])

    def score(self, columns: Floats) -> Floats:
        """Return the weighted sum, (runs,)."""
        features = self.features(columns, self.centre, self.spread)
        return LinearOdds(self.weights, self.constant)(columns.shape[1], features.__getitem__)

    def sides(self, seen: Seen) -> Sides:
        """Compare the score with the thresholds."""
        score = self.score(columns_of(seen, self.arms, self.centre.size))
        return (score >= self.upper).astype(np.int8) - (score <= self.lower)

    def to_json(self) -> dict[str, object]:
        """Return the record's form."""
        lists = {name: getattr(self, name).tolist() for name in ("centre", "spread", "weights")}
        return {
            "kind": "linear",
            "arms": self.arms,
            **lists,
            "constant": self.constant,
            "lower": _finite(self.lower),
            "upper": _finite(self.upper),
        }


def _finite(threshold: float) -> float | None:
    return None if math.isnan(threshold) else max(-1e300, min(1e300, threshold))


def rule_of(data: Any) -> Rule:
    """Return the rule that a record holds.

    Raises
    ------
    NotFrozenError
        If it holds none.
    """
    try:
        kind = data["kind"]
        if kind == "none":
            raise NotFrozenError(str(data["reason"]))
        if kind == "sequences":
            return Sequences(int(data["arms"]), max(1, int(data["batch"])), _read_letters(data["says"]))
        if kind == "outcomes":
            return Outcomes({str(text): _SIDES[letter] for text, letter in data["says"].items()})
        if kind == "intervals":
            cuts, sides = np.array(data["cuts"], dtype=float), _read_letters(data["says"])
            if cuts.ndim != 1 or sides.size != cuts.size + 1:
                raise NotFrozenError("there must be one letter more than cuts")
            return Intervals(cuts, sides)
        if kind == "linear":
            ends = [math.nan if data[name] is None else float(data[name]) for name in ("lower", "upper")]
            centre, spread, weights = (np.array(data[name], dtype=float) for name in ("centre", "spread", "weights"))
            if centre.ndim != 1 or (spread.shape, weights.shape) != (centre.shape, (3 * centre.size - 1,)):
                raise NotFrozenError("centre, spread and weights do not fit each other")
            return LinearRule(int(data["arms"]), centre, spread, weights, float(data["constant"]), *ends)
    except NotFrozenError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise NotFrozenError(f"the baseline's event cannot be read: {error}") from None
    raise NotFrozenError(f"the baseline's event is of the kind {kind!r}, which this version does not know")


def text_of(output: object) -> str:
    """Return the text of an outcome: equal for equal ones."""
    return repr([leaf for _, leaf in scalars(output)])


def texts_of(seen: Outputs) -> list[str]:
    """Return the text of every outcome; in an array, equal bytes are read once."""
    rows = rows_of(seen)
    if not isinstance(seen, np.ndarray) or seen.dtype == object:
        return list(map(text_of, rows))
    keys = [row.tobytes() for row in rows]
    texts = {key: text_of(row) for key, row in dict(zip(keys, rows, strict=True)).items()}
    return [texts[key] for key in keys]


def mechanism_outputs(seen: Seen) -> Outputs:
    """Return the outputs of a mechanism's runs; raise NotFrozenError for a learner's runs."""
    if isinstance(seen, Transcripts):
        raise NotFrozenError("the baseline's event is of a mechanism's outputs, and a learner has none")
    return seen


def columns_of(seen: Seen, arms: int, columns: int | None = None) -> Floats:
    """Return what is seen as numbers, (columns, runs): whether each arm was played, points, releases; or vectors."""
    stacked: NDArray[Any] | None
    if isinstance(seen, Transcripts):
        parts = [seen.played(arms), *([] if seen.releases is None else [seen.releases])]
        stacked = np.concatenate([part.reshape(-1, seen.runs) for part in parts])
    else:
        stacked = vectors(seen)[1]
        if stacked is None and columns is None:
            raise NotFrozenError("its outputs are neither numbers nor few")
    if stacked is None or columns not in (None, len(stacked)):
        raise NotFrozenError("what is seen has another form than the baseline's")
    return np.asarray(stacked, dtype=np.float64)
