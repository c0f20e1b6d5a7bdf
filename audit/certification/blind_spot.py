"""Blind spots: how much too little noise an audit that survived would have missed. What is found, and its words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypedDict

from ..statistics.digits import at_least
from ..statistics.measure_words import beside, unit_of

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import MeasureJson

#: An audit that does not catch this factor, beyond what slack explains, tests too little to be called a test.
LARGEST = 3.0
#: How much an exact level may be off by the grid of its law, as a share of it.
OFF = 1e-4
#: An exact level below this, which is rounding, is none: both worlds act alike.
UNSEEN = 1e-9


class BlindSpotJson(TypedDict, total=False):
    """A blind spot as a record has it."""

    factor: float | None
    missed: float | None
    tried: float | None
    bounds: list[list[float]]
    runs: int | None
    alpha: float
    parameter: str | None
    true_to: float | None
    false_at: float | None


@dataclass(frozen=True)
class BlindSpot:
    """What an audit that survived catches on weaker targets.

    Attributes
    ----------
    factor : float or None
        The smallest factor tried at which the claim was falsified; None if it never was.
    bounds : tuple of (factor, bound)
        Every factor tried, in order, with the lower bound that was certified there in the unit of the claim's measure.
    runs : int
        Of each test, its pilot included.
    alpha : float
        The error of each test.
    parameter : str
        What was changed: "noise", or the parameter of a user's target.
    true_to : float or None
        The factor up to which exact laws say that the claim stays true on this and the standard pairs; None where
        there is no exact law. Only computed where `LARGEST` is not caught.
    false_at : float or None
        The least factor at which they say that it is false; None where none says so.
    """

    factor: float | None
    bounds: tuple[tuple[float, float], ...]
    runs: int
    alpha: float
    parameter: str = "noise"
    true_to: float | None = None
    false_at: float | None = None

    @property
    def missed(self) -> float | None:
        """The largest factor tried below `factor`, or of all where there is none, that was not falsified."""
        below = [f for f, _ in self.bounds if self.factor is None or f < self.factor]
        return max(below, default=None)

    @property
    def untested(self) -> bool:
        """Whether the audit says too little: not even three times too little noise was caught, slack not counted."""
        return self.factor is None or self.factor > LARGEST * (self.true_to or 1.0)

    def __str__(self) -> str:
        return words(self.to_json())

    def to_json(self) -> BlindSpotJson:
        """Return the record's `blind_spot`."""
        return {
            "factor": self.factor,
            "missed": self.missed,
            "tried": max(f for f, _ in self.bounds),
            "bounds": [[f, bound] for f, bound in self.bounds],
            "runs": self.runs,
            "alpha": self.alpha,
            "parameter": self.parameter,
            "true_to": self.true_to,
            "false_at": self.false_at,
        }


def factor_words(blind_spot: BlindSpotJson | None) -> str:
    """Return the factor of a record's `blind_spot`, more than what was tried, or a dash where there is none."""
    if not blind_spot or (blind_spot["factor"] is None and not blind_spot.get("tried")):
        return "-"
    return f"> {blind_spot['tried']:g}" if blind_spot["factor"] is None else f"{blind_spot['factor']:g}"


def words(blind_spot: BlindSpotJson) -> str:
    """Return what a record's `blind_spot` says, in one line."""
    factor, missed, name, slack = (blind_spot.get(key) for key in ("factor", "missed", "parameter", "true_to"))
    what = "noise divided by" if name in (None, "noise") else f"{name} times"
    if factor is None:
        text = f"not even with {what} {blind_spot.get('tried') or 1:g} is the claim falsified"
    else:
        text = f"with {what} {factor:g} the claim is falsified" + (f", with {missed:g} not" if missed else "")
    text += f", in {blind_spot['runs']:,} runs each" if blind_spot.get("runs") else ""
    if blind_spot.get("false_at") == 1:
        text += "; by exact laws it is false as it is, on this pair or a standard one"
    elif slack and slack == blind_spot.get("tried"):
        text += "; by exact laws it is true there on the standard pairs: there is nothing to see"
    elif slack:
        up_to = at_least(blind_spot["true_to"], ".3g")
        text += f"; up to {up_to} it is true on the standard pairs, by exact laws"
        text += "" if blind_spot.get("false_at") else ", which say nothing of more"
    return text


def is_beyond(level: float, claimed: float) -> bool:
    """Tell whether an exact level is beyond the claim, by more than the grids of exact laws may be off."""
    return level > claimed * (1 + OFF)


def untested_words(
    measure: MeasureJson,
    blind_spot: BlindSpotJson | None,
    *,
    in_last_losses: bool,
    alike: bool = False,
    exceeded: bool = False,
) -> str:
    """Return why an audit is no test of the claim that survived it: by its blind spot, else by what its pair shows.

    Parameters
    ----------
    in_last_losses : bool
        Whether the worlds differ in the last losses alone.
    alike : bool
        Whether what was looked at shows the same in all runs, and no exact law says more.
    exceeded : bool
        Whether the exact value on the audited pair is beyond the claim.
    """
    if exceeded:
        return "untested: the exact value on this pair is beyond the claim: these runs did not certify it"
    by_law = in_last_losses or bool(blind_spot and blind_spot.get("true_to"))
    if alike and not by_law:
        return "untested: nothing was seen here, all runs that were looked at show the same, as far as it is read"
    if not blind_spot:
        unit = "the multiple of the profile" if measure.get("kind") == "profile" else unit_of(measure)
        why = ": the worlds differ in the last losses alone, which come after all that is shown" * in_last_losses
        return f"untested: nothing can be seen here, on this pair {unit} is exactly 0{beside(measure)}{why}"
    slack = blind_spot.get("true_to") or 1.0
    if slack == blind_spot.get("tried"):
        return "untested: nothing can be seen on the standard pairs, by exact laws"
    known = blind_spot.get("false_at") is not None
    why = "no attack known" if known else "no attack known, or more noise than the claim needs"
    if slack > 1:
        true = f"the claim is true up to {at_least(slack, '.3g')} times too little noise on the standard pairs"
        far = "" if known else ", as far as exact laws tell"
        missed = blind_spot.get("missed") or blind_spot.get("tried") or LARGEST
        return f"untested: {true}{far}, and {missed:g} times was not caught; {why}"
    name = blind_spot.get("parameter") or "noise"
    if name == "noise" or known:
        return f"untested: this audit would not have caught three times too little noise; {why}"
    # Whether more of a parameter is less noise is the user's word: of a scale it is untrue.
    other = name.removeprefix("1/") if name.startswith("1/") else f"1/{name}"
    why += f", or more of it is more noise: then name {other}"
    return f"untested: the claim was not falsified with {name} times 3; {why}"
