"""Pairs of inputs on which a mechanism raises on one side alone: whoever is told that it failed knows the input."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, cast

from ...errors import about, hinted
from ...learners.protocol import LearnerError
from ...learners.scalar import RAISING_CURE
from ...mechanisms.draws import Draws, Stage
from ..play.data import DataPair, from_json, to_json
from ..play.mechanism_runs import RefusedInputError, SlowInputError, outputs_of
from ..play.pair_text import beside
from ..record_types import OneSidedJson, SearchedJson

#: Runs on each side that confirm a pair, at most; the share of all runs that is; and the most pairs that are tried.
MAX_RUNS, SHARE, MAX_TRIED = 1_000, 1 / 20, 4
#: Letters of an input, and of what was raised.
_MAX_LETTERS = 200
#: Where the draws of a run on one side begin: no other runs of a search have such a part.
_PART = 1_000


@dataclass(frozen=True)
class OneSided:
    """A mechanism raised on one side of a pair and never on the other: the counts, and the runs of each side."""

    left: object
    right: object
    left_raised: int
    right_raised: int
    runs: int
    said: str

    @property
    def rate(self) -> float:
        """The share of the runs that raised."""
        return max(self.left_raised, self.right_raised) / self.runs

    @property
    def words(self) -> str:
        """What was seen, on one line."""
        sides = [(self.left, self.left_raised), (self.right, self.right_raised)]
        (raising, count), (silent, _) = sorted(sides, key=lambda side: -side[1])
        inputs = beside(to_json(raising), to_json(silent), _MAX_LETTERS)
        return (
            f"raised {self.said}, on one of two neighbours alone: in {count:,} of {self.runs:,} runs on {inputs[0]}, "
            f"in 0 of {self.runs:,} on {inputs[1]}"
        )

    def error(self, name: str) -> LearnerError:
        """Return the error of a mechanism of this name."""
        return hinted(about(name, LearnerError(f"{name} {self.words}")), RAISING_CURE)

    def to_json(self) -> OneSidedJson:
        """Return the record's form."""
        return cast(OneSidedJson, {**asdict(self), "left": to_json(self.left), "right": to_json(self.right)})

    @classmethod
    def of_json(cls, data: OneSidedJson | None) -> OneSided | None:
        """Read the record's form."""
        if data is None:
            return None
        return cls(**{**data, "left": from_json(data["left"]), "right": from_json(data["right"])})


@dataclass(frozen=True)
class Searched:
    """What a search over inputs has found.

    Attributes
    ----------
    pair : DataPair
    index : int
        Of the pair, the key of its draws.
    runs : int
        Spent on all pairs; of data, but for those on which the mechanism raised.
    tried, refused, slow : int
        Pairs that were played, and those of them on which the mechanism raised, or took longer than a call may take:
        they were left out.
    reason : str
        What it raised first.
    one_sided : OneSided, optional
        A pair on which it raises on one side alone, the clearest.
    """

    pair: DataPair
    index: int
    runs: int
    tried: int
    refused: int = 0
    slow: int = 0
    reason: str = ""
    one_sided: OneSided | None = None

    def to_json(self) -> dict[str, object]:
        """Return the form that a ledger keeps."""
        sides = {"left": to_json(self.pair.left), "right": to_json(self.pair.right)}
        return {**sides, "index": self.index, "runs": self.runs, **self.facts()}

    def check(self, name: str, *, falsified: bool) -> None:
        """Raise LearnerError for a pair on which one side alone raises, unless another pair falsifies the claim."""
        if self.one_sided is not None and not falsified:
            raise self.one_sided.error(name)

    def facts(self) -> SearchedJson:
        """Return what a record says of it."""
        counts: SearchedJson = {"tried": self.tried, "refused": self.refused, "slow": self.slow}
        example: SearchedJson = {} if self.one_sided is None else {"one_sided": self.one_sided.to_json()}
        return {**counts, "reason": self.reason or None, **example}

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Searched:
        """Read the form that a ledger keeps."""
        pair = DataPair(from_json(data["left"]), from_json(data["right"]))
        counts = {name: data[name] for name in ("index", "runs", "tried", "refused", "slow")}
        return cls(pair, **counts, reason=data["reason"] or "", one_sided=OneSided.of_json(data.get("one_sided")))


def one_sided(
    mechanism: object, pair: DataPair, seed: int, index: int, runs: int, *, repeat: bool = False
) -> OneSided | None:
    """Return how often each side of a pair raises; None where both do or neither, or a call is too slow.

    Parameters
    ----------
    index : int
        Of the pair, the key of its draws; `repeat` has others.
    runs : int
        On each side; fewer where both raise.
    """
    counts, messages = [0, 0], [""]
    for run in range(runs):
        for side, data in enumerate((pair.left, pair.right)):
            try:
                outputs_of(mechanism, data, Draws(seed, Stage.SEARCH, index, _PART + 2 * repeat + side, run), 1)
            except SlowInputError:
                return None
            except RefusedInputError as error:
                counts[side] += 1
                messages.append(_raised(error))
        if all(counts):
            return None
    return OneSided(pair.left, pair.right, counts[0], counts[1], runs, messages[1]) if any(counts) else None


def confirmed(mechanism: object, candidates: Sequence[tuple[OneSided, int]], seed: int, runs: int) -> OneSided | None:
    """Return the clearest of the pairs that were found, with their indices, by fresh runs; None where none is one.

    Parameters
    ----------
    runs : int
        Of the whole audit.
    """
    n_runs = max(1, min(MAX_RUNS, int(SHARE * runs)))
    for pair, index in sorted(candidates, key=lambda item: -item[0].rate)[:MAX_TRIED]:
        repeated = one_sided(mechanism, DataPair(pair.left, pair.right), seed, index, n_runs, repeat=True)
        if repeated is not None:
            return repeated
    return None


def _raised(error: RefusedInputError) -> str:
    """Return the type of what was raised, and the first line of its message."""
    cause: BaseException = error
    while isinstance(cause, LearnerError) and cause.__cause__ is not None:  # a learner's, which names its method
        cause = cause.__cause__
    if isinstance(cause, LearnerError):
        return str(cause)[:_MAX_LETTERS]
    try:
        first = (str(cause).splitlines() or [""])[0]
    except Exception:
        first = "(its message raises)"
    return f"{type(cause).__name__}: {first}".removesuffix(": ")[:_MAX_LETTERS]
