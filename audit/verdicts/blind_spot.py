"""Power: how much too little noise an audit that survived would have missed, and why an audit is UNDERPOWERED."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from ...errors import must_be
from ..record_types import BlindSpotJson, MeasureJson, RareJson, Reason, ScoresJson, SiteJson
from ..statistics.canary_words import needed_words
from ..statistics.digits import at_least
from ..statistics.measure_words import beside, level_words
from .rare import rare_words

#: An audit that does not catch this factor, beyond what slack explains, tests too little to be called a test.
LARGEST = 3.0
#: The smallest factor that can be asked for, and what leaves the power test out.
LEAST_POWER, OFF_WORD = 1.1, "off"
#: How much an exact level may be off by the grid of its law, as a share of it.
OFF = 1e-4
#: An exact level below this, which is rounding, is none: both worlds act alike.
UNSEEN = 1e-9


def usual_power() -> float | None:
    """Return the factor that has to be caught where nothing is asked for."""
    return LARGEST


def power_of(power: object, weaken: object = None) -> float | None:
    """Return the factor of too little noise that has to be caught, by what is asked; None where none is measured.

    Parameters
    ----------
    asked
        A factor, "off", or None.
    weaken
        How noise is made weaker: false where it is not to be, and what else is said asks for a power test.

    Raises
    ------
    ValueError
        If it is neither "off" nor a finite number of at least 1.1.
    """
    if weaken is False:
        return None
    if power is None:
        return LARGEST if weaken else usual_power()
    if power == OFF_WORD:
        return None
    if isinstance(power, bool) or not isinstance(power, int | float) or not LEAST_POWER <= power < math.inf:
        raise must_be("power", f"a factor of at least {LEAST_POWER:g}, or {OFF_WORD}", power)
    return float(power)


#: Even a perfect attack could not have falsified the claim.
TOO_FEW: Final = "too few runs"
#: Paired runs gave the same outputs, or the attack made no guess, and nothing bounds the claim from above.
NOT_SEEN: Final = "no difference seen"
#: The power test missed three times too little noise, or an exact law calls the claim false on the audited inputs.
LOW_POWER: Final = "low power"
#: No power test was made, or no fault can be planted, and too little of the claim was certified.
UNMEASURED: Final = "power not measured"
#: Stretched noise found an input-dependent branch that is too rare for these runs.
RARE: Final = "rare difference"
#: By an exact law nothing can be seen on these inputs.
HIDDEN: Final = "hidden by the exact law"
#: What is said of a bound of 0.
NOTHING: Final = "no difference was seen (nothing certified)"


#: The kind of a fault at one call site: its draws are left out.
MISSING: Final = "missing"


@dataclass(frozen=True)
class Site:
    """A fault at one call site: of which kind, where, and whether the audit caught it."""

    kind: str
    place: str
    caught: bool

    def to_json(self) -> SiteJson:
        """Return the record's form."""
        return {"kind": self.kind, "place": self.place, "caught": self.caught}


@dataclass(frozen=True)
class BlindSpot:
    """What an audit that survived catches on weaker targets.

    Attributes
    ----------
    factor : float or None
        The smallest factor tried at which the claim was falsified; None if it never was.
    bounds : tuple of (factor, bound)
        Every factor tried, in order, with the lower bound that was certified there in the unit of the claim's measure.
    runs : int or None
        Of each test, its pilot included, where all have as many.
    alpha : float
        The error of each test.
    parameter : str
        What was changed: "noise", or the parameter of a user's target.
    true_to : float or None
        The factor up to which exact laws say that the claim stays true on this and the standard pairs; None where
        there is no exact law. Only computed where `LARGEST` is not caught.
    false_at : float or None
        The least factor at which they say that it is false; None where none says so.
    kind : str or None
        Which way planted faults moved uniform draws; None where a parameter or a field set the noise.
    sites : tuple of Site
        What was caught of faults at single call sites.
    limit : float
        The factor that has to be caught.
    """

    factor: float | None
    bounds: tuple[tuple[float, float], ...]
    runs: int | None
    alpha: float
    parameter: str = "noise"
    true_to: float | None = None
    false_at: float | None = None
    kind: str | None = None
    sites: tuple[Site, ...] = ()
    limit: float = LARGEST

    @property
    def missed(self) -> float | None:
        """The largest factor tried below `factor`, or of all where there is none, that was not falsified."""
        missed_factors = [f for f, _ in self.bounds if self.factor is None or f < self.factor]
        return max(missed_factors, default=None)

    @property
    def untested(self) -> bool:
        """Whether the audit says too little: not even so many times too little noise was caught, slack not counted."""
        return self.factor is None or self.factor > self.limit * (self.true_to or 1.0)

    @property
    def hidden(self) -> bool:
        """Whether exact laws call the claim true at every factor tried: there is nothing to see."""
        return is_hidden(self.to_json())

    def __str__(self) -> str:
        return words(self.to_json())

    def to_json(self) -> BlindSpotJson:
        """Return the record's `blind_spot`."""
        faults: BlindSpotJson = {}
        if self.kind is not None:
            faults = {"kind": self.kind, "sites": [site.to_json() for site in self.sites]}
        if self.limit != LARGEST:
            faults["limit"] = self.limit
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
            **faults,
        }


def factor_words(blind_spot: BlindSpotJson | None) -> str:
    """Return the factor of a record's `blind_spot`, more than what was tried, or a dash where there is none."""
    if not blind_spot or (blind_spot["factor"] is None and not blind_spot.get("tried")):
        return "-"
    return f"> {blind_spot['tried']:g}" if blind_spot["factor"] is None else f"{blind_spot['factor']:g}"


def words(blind_spot: BlindSpotJson) -> str:
    """Return what a record's `blind_spot` says, in one line."""
    factor, missed, name, slack = (blind_spot.get(key) for key in ("factor", "missed", "parameter", "true_to"))
    subject = "noise divided by" if name in (None, "noise") else f"{name} times"
    if factor is None:
        text = f"not even with {subject} {blind_spot.get('tried') or 1:g} is the claim falsified"
    else:
        text = f"with {subject} {factor:g} the claim is falsified" + (f", with {missed:g} not" if missed else "")
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


def is_hidden(blind_spot: BlindSpotJson) -> bool:
    """Return whether exact laws call the claim of a record true at every factor that its power test tried."""
    return (blind_spot.get("true_to") or 1.0) == blind_spot.get("tried")


def answer_words(reason: Reason, measure: MeasureJson, runs: int | None, unit: str = "runs") -> str:
    """Return what line 1 of an UNDERPOWERED audit says behind its claim."""
    if reason == TOO_FEW:
        return f"{'its' if runs is None else f'{runs:,}'} {unit} are too few to test it"
    if reason == NOT_SEEN:
        return NOTHING
    if reason == HIDDEN:
        return f"{level_words(measure)} is exactly 0{beside(measure)} for these inputs"
    if reason == RARE:
        return "a difference was found that is too rare for these runs"
    if reason == UNMEASURED:
        return "its power was not measured, and too little was certified"
    return "this audit cannot detect a violation"


def reason_words(
    reason: Reason,
    measure: MeasureJson,
    blind_spot: BlindSpotJson | None = None,
    *,
    in_last_losses: bool = False,
    alike: bool = False,
    unguessed: bool = False,
    paired: int | None = None,
    exceeded: bool = False,
    rare: RareJson | None = None,
    scores: ScoresJson | None = None,
) -> str:
    """Return why an audit is UNDERPOWERED: its reason, and what it rests on.

    Parameters
    ----------
    in_last_losses : bool
        Whether the inputs differ in the last losses alone.
    alike, unguessed : bool
        Whether all runs that were looked at show the same, and whether the attack made no guess.
    paired : int, optional
        The paired runs, where all of them gave the same output for both inputs.
    exceeded : bool
        Whether the exact value on the audited pair is beyond the claim.
    rare : RareJson, optional
        A difference that is too rare for the runs.
    scores : ScoresJson, optional
        Of an audit of canaries.
    """
    if reason == RARE:
        return f"{reason}: {rare_words(rare)}" if rare else reason
    if reason == TOO_FEW and scores:
        return f"{reason}: {needed_words(scores)}"
    if reason == NOT_SEEN and scores:
        return f"{reason}: all scores are equal"
    if reason == TOO_FEW:
        return f"{reason}: even a perfect attack could not falsify so large a claim with so few runs"
    if reason == NOT_SEEN:
        if alike:
            return f"{reason}: all runs that were looked at show the same, as far as it is read"
        if paired is not None:
            return f"{reason}: both inputs gave the same output in all {paired:,} paired runs (same random numbers)"
        return f"{reason}: the attack made no guess" if unguessed else reason
    if reason == HIDDEN:
        if blind_spot and is_hidden(blind_spot):
            return f"{reason}: nothing can be seen on the standard pairs"
        cause = ": the inputs differ in the last losses alone, which come after all that is shown" * in_last_losses
        return f"{reason}: on this pair {level_words(measure)} is exactly 0{beside(measure)}{cause}"
    if reason == UNMEASURED:
        return f"{reason}: less than a third of the claim was certified, and no fault was planted in the noise"
    return f"{reason}: {_missed_words(blind_spot, exceeded=exceeded)}"


def _missed_words(blind_spot: BlindSpotJson | None, *, exceeded: bool) -> str:
    """Return what an audit of low power missed."""
    if exceeded:
        return "the exact value on this pair is beyond the claim: these runs did not certify it"
    if not blind_spot:  # of a record that does not say
        return "this audit cannot detect a violation"
    slack = blind_spot.get("true_to") or 1.0
    is_false = blind_spot.get("false_at") is not None
    cause = "no attack known" if is_false else "no attack known, or more noise than the claim needs"
    if slack > 1:
        true = f"the claim is true up to {at_least(slack, '.3g')} times too little noise on the standard pairs"
        reach = "" if is_false else ", as far as exact laws tell"
        missed = blind_spot.get("missed") or blind_spot.get("tried") or LARGEST
        return f"{true}{reach}, and {missed:g} times was not caught; {cause}"
    name = blind_spot.get("parameter") or "noise"
    if name == "noise" or is_false:
        return f"this audit would not have caught three times too little noise; {cause}"
    # Whether more of a parameter is less noise is the user's word: of a scale it is untrue.
    other = name.removeprefix("1/") if name.startswith("1/") else f"1/{name}"
    cause += f", or more of it is more noise: then name {other}"
    return f"the claim was not falsified with {name} times 3; {cause}"
