"""The shrunk witness: what it holds, its record's form, and the two short lists that show it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from ..assumptions.mechanism_runs import DataPair
from ..play.pairs import Pair
from ..statistics.digits import at_least


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """The certificate of the smallest witness found.

    Attributes
    ----------
    epsilon_lower, claimed : float
        The certified epsilon, and the claim that it falsifies.
    seed, runs : int
    trials : int
        Pairs that were tried.
    confidence : float
        Of the certificate.
    replay : str
        The command that repeats the certificate.
    """

    epsilon_lower: float
    claimed: float
    seed: int
    runs: int
    trials: int
    confidence: float
    replay: str = ""

    @property
    def certificate(self) -> dict[str, Any]:
        """The record's form of what was certified."""
        names = ("epsilon_lower", "claimed", "seed", "runs", "confidence")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, kw_only=True)
class ShrunkInputs(Shrunk):
    """The smallest inputs of a mechanism, or sequences of a learner, that certify."""

    pair: DataPair

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        shape = {"rounds": getattr(self.pair, "rounds", 1), "arms": None, "pair": self.pair.to_json(), "fresh": True}
        return {**shape, **self.certificate, "replay": self.replay}


@dataclass(frozen=True, kw_only=True)
class ShrunkWitness(Shrunk):
    """The smallest loss sequences that certify.

    Attributes
    ----------
    pair : Pair
    arms : int
    fresh : bool
        Whether it was certified on runs of its own; else nothing smaller was, and it is the audit's own witness.
    """

    pair: Pair
    arms: int
    fresh: bool = True

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        shape = {"rounds": self.pair.rounds, "arms": self.arms, "pair": self.pair.to_json()}
        return {**shape, **self.certificate, "fresh": self.fresh, "replay": self.replay}

    def __str__(self) -> str:
        return "\n".join([*witness_lines(self.to_json()), *([f"  {self.replay}"] if self.replay else [])])


def witness_lines(shrunk: Mapping[str, Any]) -> list[str]:
    """Return a shrunk witness, in the record's form, as a line of its size and bound and the two lists of losses."""
    pair = shrunk["pair"]
    left, right = (_row(pair[side], pair["round"] - 1) for side in ("left", "right"))
    size = f"{_count(shrunk['rounds'], 'round')}, {_count(shrunk['arms'], 'arm')}"
    heading = "shrunk to" if shrunk.get("fresh", True) else "nothing smaller certifies:"
    bound = f"epsilon at least {at_least(shrunk['epsilon_lower'])}, claimed {shrunk['claimed']:g}"
    return [f"{heading} {size}: {bound}", f"  left   {left}", f"  right  {right}"]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _row(losses: list[Any], t0: int) -> str:
    """Return the losses in words, the differing one between stars, equal neighbours counted."""
    words = [f"*{_shown(loss)}*" if t == t0 else _shown(loss) for t, loss in enumerate(losses)]
    groups = [(word, len(list(same))) for word, same in groupby(words)]
    return "  ".join(
        word if count < 4 else f"{word} x {count}" for word, count in groups for _ in range(count if count < 4 else 1)
    )


def _shown(loss: object) -> str:
    if isinstance(loss, float):
        short = f"{loss:.6g}"
        return short if float(short) == loss else repr(loss)
    if isinstance(loss, list):
        return "(" + ", ".join(_shown(x) for x in loss) + ")"
    if isinstance(loss, dict):
        fields = (f"{k} {_shown(v)}" for k, v in loss.items() if k != "loss")
        return f"{loss['loss']}[{', '.join(fields)}]"
    return str(loss)
