"""The shrunk witness: what it holds, its record's form, and the two short lists that show it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, cast

from ..record_types import CertificateJson, MeasureJson, ShrunkJson
from ..statistics.digits import at_least
from ..statistics.measure_words import claimed_words, lower_words

if TYPE_CHECKING:
    from ..play.data import DataPair
    from ..play.pairs import Pair


@dataclass(frozen=True, kw_only=True)
class Shrunk:
    """The certificate of the smallest witness found.

    Attributes
    ----------
    epsilon_lower, claimed : float
        The certified epsilon, and the claim that it falsifies.
    lower, measure
        Of a claim in another measure: the certified level, and the measure.
    seed, runs : int
    trials : int
        Pairs that were tried.
    confidence : float
        Of the certificate.
    replay : str
        The command that repeats the certificate.
    fresh : bool
        Whether it was certified on runs of its own; else nothing smaller was, and it is the audit's own witness.
    """

    epsilon_lower: float
    claimed: float
    seed: int
    runs: int
    trials: int
    confidence: float
    lower: float | None = None
    measure: MeasureJson | None = None
    replay: str = ""
    fresh: bool = True

    @property
    def certificate(self) -> CertificateJson:
        """The record's form of what was certified."""
        certified: CertificateJson = {
            "epsilon_lower": self.epsilon_lower,
            "claimed": self.claimed,
            "seed": self.seed,
            "runs": self.runs,
            "confidence": self.confidence,
        }
        if self.lower is not None and self.measure is not None:
            certified |= {"lower": self.lower, "measure": self.measure}
        return certified


@dataclass(frozen=True, kw_only=True)
class ShrunkInputs(Shrunk):
    """The smallest inputs of a mechanism, or sequences of a learner, that certify."""

    pair: DataPair

    def to_json(self) -> ShrunkJson:
        """Return the record's form."""
        shape: ShrunkJson = {
            "rounds": getattr(self.pair, "rounds", 1),
            "arms": None,
            "pair": self.pair.to_json(),
            "fresh": self.fresh,
        }
        return {**shape, **self.certificate, "replay": self.replay}


@dataclass(frozen=True, kw_only=True)
class ShrunkWitness(Shrunk):
    """The smallest loss sequences that certify.

    Attributes
    ----------
    pair : Pair
    arms : int
    """

    pair: Pair
    arms: int

    def to_json(self) -> ShrunkJson:
        """Return the record's form."""
        shape: ShrunkJson = {"rounds": self.pair.rounds, "arms": self.arms, "pair": self.pair.to_json()}
        return {**shape, **self.certificate, "fresh": self.fresh, "replay": self.replay}

    def __str__(self) -> str:
        return "\n".join([*witness_lines(self.to_json()), *([f"  {self.replay}"] if self.replay else [])])


def witness_lines(shrunk: ShrunkJson) -> list[str]:
    """Return a shrunk witness, in the record's form, as a line of its size and bound and the two lists of losses."""
    pair = shrunk["pair"]
    worlds = (cast("list[object]", world) for world in (pair["left"], pair["right"]))
    left, right = (_row(world, pair["round"] - 1) for world in worlds)
    size = f"{_count(shrunk['rounds'], 'round')}, {_count(shrunk['arms'], 'arm')}"
    heading = "shrunk to" if shrunk.get("fresh", True) else "nothing smaller was certified:"
    claimed = claimed_words(shrunk["measure"]) if shrunk.get("measure") else f"{shrunk['claimed']:.10g}"
    return [f"{heading} {size}: {shrunk_words(shrunk)}, claimed {claimed}", f"  left   {left}", f"  right  {right}"]


def shrunk_words(shrunk: CertificateJson) -> str:
    """Return what was certified of a shrunk witness, in the measure of its claim."""
    if measure := shrunk.get("measure"):
        return lower_words(measure, shrunk.get("lower", 0.0))
    return f"epsilon at least {at_least(shrunk['epsilon_lower'], claim=shrunk['claimed'])}"


def _count(number: int | None, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _row(losses: Sequence[object], t0: int) -> str:
    """Return the losses in words, the differing one between stars, equal neighbours counted."""
    texts = [f"*{_shown(loss)}*" if t == t0 else _shown(loss) for t, loss in enumerate(losses)]
    groups = [(word, len(list(equal_texts))) for word, equal_texts in groupby(texts)]
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
