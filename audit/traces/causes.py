"""Causes: which noisy call makes a claim false, where it is written, and what it is calibrated for."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...mechanisms.claim import Claim
from ...mechanisms.measures.approximate import Profile
from ...mechanisms.measures.measure import Measure
from ...mechanisms.noise import Gaussian, L2Laplace, Projected
from ...mechanisms.numerics import bisect
from ..record_types import CauseJson
from ..statistics import measure_words
from ..statistics.digits import REL_TOLERANCE, at_most, exceeds
from .costs import (
    Cost,
    bounds_no_ratio,
    composed_epsilon,
    cost,
    difference,
    laplace_shifts,
    own_level,
    path_cost,
    words_of,
)
from .libraries import Mapped
from .tape import Call
from .upper import Tracing, escape_of
from .watched import CallSite

#: The calls that a cause names by their numbers.
_MOST_CALLS = 6


@dataclass(frozen=True)
class Cause:
    """Why a claim is false, as far as traces tell.

    Attributes
    ----------
    text : str
    kind : {"leak", "calls", "law"}
        A leak around the noise; noisy calls whose inputs differ by more than their noise is calibrated for; or
        neither: then the noise has not the law that its calls name, calls are missing, double precision leaks, or a
        path that was not sampled costs more; or what they cost in the measure of the claim is not known.
    place : CallSite or None
        Where the first of these calls is written.
    call, calls : int or None
        Its number, from 1, and how many there are.
    differs, calibrated_for : float or None
        By how much its inputs differ, in the norm of its law, and by how much they may, where that is known.
    """

    text: str
    kind: str
    place: CallSite | None = None
    call: int | None = None
    calls: int | None = None
    differs: float | None = None
    calibrated_for: float | None = None

    def to_json(self) -> CauseJson:
        """Return the record's form."""
        return {
            "text": self.text,
            "kind": cast(Any, self.kind),
            "place": None if self.place is None else {"file": self.place.file, "line": self.place.line},
            "call": self.call,
            "calls": self.calls,
            "differs": _finite(self.differs),
            "calibrated_for": _finite(self.calibrated_for),
        }


def _finite(size: float | None) -> float | None:
    return size if size is not None and math.isfinite(size) else None


def cause(tracing: Tracing, claim: Claim) -> Cause | None:
    """Return why a claim that was falsified is false; None where traces show no noise and no leak."""
    if tracing.leak is not None:
        return Cause(str(tracing.leak), "leak", tracing.leak.place)
    calls, runs = tracing.worst.calls, tracing.worst.runs
    if tracing.pair_upper is None or not calls:
        return None
    # A profile is false at one of its points: of that its account tells.
    accounts = [(Account.of(tracing, point, claim), point) for point in _points(tracing, claim)]
    account, claim = max(accounts, key=lambda scored: scored[0].share)
    if not exceeds(account.spent, account.allowed):
        return Cause(_not_the_calls(account, claim, tracing), "law")
    sizes = np.array([_size(cost(left, right, runs), tracing.run) for left, right in calls])
    if not sizes.any():  # where every path is bounded in closed form
        return Cause(
            f"not seen: the noisy calls of the replayed paths cost nothing, those of other paths may cost "
            f"{account.words} on this pair",
            "law",
        )
    largest = int(np.argmax(sizes >= sizes.max() * (1 - REL_TOLERANCE)))
    left, right = calls[largest]
    differs = _norm(left, right, runs, tracing.run)
    allowed = differs * _share(tracing, claim) if math.isfinite(differs) else None
    costly = np.flatnonzero(sizes > 0) + 1
    subject = f"calls {_listed(costly)}" if len(costly) > 1 else f"call {largest + 1}"
    little = "" if left.law is None or allowed is None else "too little noise in "
    finite = math.isfinite(account.spent)
    total = account.about + account.words if finite else f"no finite {account.unit} that is known"
    fault = _words(left, sizes[largest], differs, allowed, claim) + account.translated
    text = f"its {fault}; it costs {total}"
    if len(costly) > 1:
        text = f"they cost {total} together; the {fault.replace(' ', f' of call {largest + 1} ', 1)}"
    return Cause(
        f"{little}{subject} ({left.place}): {text}",
        "calls",
        left.place,
        largest + 1,
        len(calls),
        differs,
        None if math.isinf(sizes[largest]) else allowed,
    )


def _not_the_calls(account: Account, claim: Claim, tracing: Tracing) -> str:
    sampled = tracing.pair_upper is not None and tracing.pair_upper.how == "sampled"
    calls = "noisy calls of the sampled paths" if sampled else "noisy calls"
    if account.translated:
        return (
            f"not known: with the laws that they name the {calls} cost at most {account.words} on this pair, which "
            f"the claim allows; what they cost in {claim.measure.unit}{account.own} is not known"
        )
    where = escape_of(tracing.traces) if sampled else None
    other = f"another path costs more{f' ({where})' if where else ''}, " if sampled else ""
    return (
        f"not the {calls}: with the laws that they name they cost at most {account.words} on this pair; so {other}the "
        "noise has another law, something is drawn unseen, or rounding leaks"
    )


@dataclass(frozen=True)
class Account:
    """What the noisy calls cost on a pair, and what the claim allows, in one unit.

    Attributes
    ----------
    unit : str
    spent, allowed : float
    beside : str
        What the unit is stated at, behind a number.
    translated : str
        Where the claim's own measure has no such sum: what it was translated to, behind what it allows.
    own : str
        What the unit of that measure is stated at.
    about : str
        Before what was spent, where a measure's own sum is of more than normal noise: that is known from above.
    """

    unit: str
    spent: float
    allowed: float
    beside: str = ""
    translated: str = ""
    own: str = ""
    about: str = ""

    @property
    def share(self) -> float:
        """What was spent, in multiples of what is allowed."""
        return self.spent / self.allowed if self.allowed else math.inf if self.spent else 0.0

    @property
    def words(self) -> str:
        """What was spent."""
        return f"{self.unit} {at_most(self.spent)}{self.beside}"

    @classmethod
    def of(cls, tracing: Tracing, claim: Claim, traced: Claim) -> Account:
        """Return that of a pair that was traced for a claim: for it, or for one of its points."""
        assert tracing.pair_upper is not None
        measure, total = claim.measure, tracing.pair_upper.epsilon
        branching = tracing.pair_upper.how
        if (branching == "sampled" and claim.delta) or (branching != "bounded" and claim.delta != traced.delta):
            total = _epsilon_of_path(tracing, claim.delta)  # the bound adds up what calls of sampled paths cost at 0
        point = measure_words.at_delta(claim.delta)
        if measure.is_epsilon:
            return cls("epsilon", total, claim.epsilon, point if isinstance(traced.measure, Profile) else "")
        level, suffix = level_of_path(tracing, measure), measure_words.beside(measure.to_json())
        if level is not None and branching != "bounded":
            pure, _, rho = _parts(tracing)
            return cls(measure.unit, level, measure.level, suffix, about="at most " if pure or rho else "")
        implied = f", for the epsilon {claim.epsilon:.4g}{point} that the claim implies"
        return cls("epsilon", total, claim.epsilon, point, implied, suffix)


def level_of_path(tracing: Tracing, measure: Measure) -> float | None:
    """Return what the path that costs most in a measure, that of the traced claim, comes to; None if not known."""
    return own_level(measure, *_parts(tracing))


def _points(tracing: Tracing, claim: Claim) -> list[Claim]:
    """Return the points of a profile of which traces can tell, as claims; another claim as it is."""
    if not isinstance(claim.measure, Profile):
        return [claim]
    points = [replace(claim, measure=point) for point in claim.measure.claims]
    bounded = tracing.pair_upper is not None and tracing.pair_upper.how == "bounded"  # at the delta of the claim
    return [point for point in points if not bounded or point.delta >= claim.delta]


def _epsilon_of_path(tracing: Tracing, delta: float) -> float:
    """Return what the largest path costs at a delta."""
    calls, run, runs = tracing.worst.calls, tracing.run, tracing.worst.runs
    shifts = laplace_shifts(calls, run, runs)
    return float(path_cost(calls, runs).epsilon(delta)[run]) if shifts is None else composed_epsilon(shifts, delta)


def _parts(tracing: Tracing) -> tuple[float, float, float]:
    """Return the cost of the largest path: pure epsilon, the square of mu, and rho."""
    total = path_cost(tracing.worst.calls, tracing.worst.runs)
    pure, mu_squared, rho = (float(part[tracing.run]) for part in (total.pure, total.mu_squared, total.rho))
    return pure, mu_squared, rho


def _words(left: Call, size: float, differs: float, allowed: float | None, claim: Claim) -> str:
    """Return what is wrong with a call, to stand behind "its": its cost orders the calls, and may be infinite."""
    if left.law is None:
        if not math.isfinite(differs):
            return "outcome is impossible for one of the inputs"
        factor = math.exp(differs if allowed is None else allowed)
        return f"outcome changes its probability by a factor of {math.exp(differs):.4g}; the claim allows {factor:.4g}"
    if allowed is None:
        return "input is no finite number in one of the runs"
    law, changes = words_of(left.law), f"input changes by {differs:.6g}"
    if allowed == 0 and claim.delta == 0 and bounds_no_ratio(left.law):
        return f"{changes}; {law} noise bounds no ratio{measure_words.at_delta(claim.delta)}"
    if allowed == 0 and (math.isinf(size) or isinstance(left.law, Mapped)):
        return f"{changes}; what {law} noise costs is not known"
    return f"{changes}; {law} is enough for {allowed:.4g}{_needs(left.law, differs, allowed, claim)}"


def _needs(law: object, differs: float, allowed: float, claim: Claim) -> str:
    """Return what scale of the noise the claim needs."""
    name = next((name for name in ("scale", "sigma") if hasattr(law, name)), None)
    if name is None or not allowed or isinstance(claim.measure, Profile):
        return ""
    point = measure_words.at_delta(claim.delta) if claim.measure.is_epsilon and claim.delta else ""
    level = f"{claim.measure.unit} {claim.measure.level:.4g}{point}"
    return f", and {level} needs {name} {float(getattr(law, name)) * differs / allowed:.4g}"


def _listed(numbers: NDArray[np.signedinteger]) -> str:
    """Return some numbers of calls in words, the first six where there are more."""
    if len(numbers) > _MOST_CALLS:
        return ", ".join(map(str, numbers[:_MOST_CALLS])) + ", ..."
    return " and ".join([", ".join(map(str, numbers[:-1])), str(numbers[-1])])


def _size(run_cost: Cost, run: int) -> float:
    """Return what orders calls by their cost."""
    return float(run_cost.pure[run] + math.sqrt(run_cost.mu_squared[run]) + math.sqrt(run_cost.rho[run]))


def _norm(left: Call, right: Call, runs: int, run: int) -> float:
    """Return by how much the inputs of a call differ, in the norm of its law; the log ratio of an outcome."""
    if left.law is None:
        return float(cost(left, right, runs).pure[run])
    if isinstance(left.law, Mapped):
        return left.law.distance(left.value[0, 0], right.value[0, 0])
    d = difference(left, right).reshape(-1, runs)[:, run]
    euclidean = isinstance(left.law, Gaussian | L2Laplace) or (
        isinstance(left.law, Projected) and isinstance(left.law.law, Gaussian)
    )
    with np.errstate(over="ignore"):
        return float(np.sqrt(np.square(d).sum()) if euclidean else np.abs(d).sum())


def _share(tracing: Tracing, claim: Claim) -> float:
    """Return the share of all inputs' differences at which the path would cost just the claim."""
    pure, mu, rho = _parts(tracing)
    if own_level(claim.measure, pure, mu, rho) is not None:

        def fits(share: float) -> bool:
            level = own_level(claim.measure, share * pure, share**2 * mu, share**2 * rho)
            return level is not None and level <= claim.measure.level

        return bisect(fits, 0.0, 1.0, steps=30)[0]
    if claim.delta == 0:
        return claim.epsilon / pure if mu == rho == 0 else 0.0
    shifts = laplace_shifts(tracing.worst.calls, tracing.run, tracing.worst.runs) if mu == rho == 0 else None

    def kept(share: float) -> bool:
        if shifts is not None:
            return composed_epsilon([share * shift for shift in shifts], claim.delta) <= claim.epsilon
        rows = (np.array([value]) for value in (share * pure, share**2 * mu, share**2 * rho))
        return float(Cost(*rows).epsilon(claim.delta)[0]) <= claim.epsilon

    return bisect(kept, 0.0, 1.0, steps=30)[0]
