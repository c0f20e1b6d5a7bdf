"""Causes: which noisy call makes a claim false, where it is written, and what it is calibrated for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...mechanisms.claim import Claim
from ...mechanisms.noise import Gaussian, L2Laplace, Projected
from ..statistics.bounds.bisection import bisect
from .costs import Cost, composed_epsilon, cost, difference, laplace_shifts, path_cost, words_of
from .libraries import Mapped
from .tape import Call, Place
from .upper import Tracing

#: How much a call's cost may be below the largest and still be named with it.
_ALIKE = 1e-9


@dataclass(frozen=True)
class Cause:
    """Why a claim is false, as far as traces tell.

    Attributes
    ----------
    text : str
    kind : {"leak", "calls", "law"}
        A leak around the noise; noisy calls whose inputs differ by more than their noise is calibrated for; or
        neither: then the noise has not the law that its calls name, or it is double precision that leaks.
    place : Place or None
        Where the first of these calls is written.
    call, calls : int or None
        Its number, from 1, and how many there are.
    differs, calibrated_for : float or None
        By how much its inputs differ, in the norm of its law, and by how much they may.
    """

    text: str
    kind: str
    place: Place | None = None
    call: int | None = None
    calls: int | None = None
    differs: float | None = None
    calibrated_for: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the record's form."""
        place = None if self.place is None else {"file": self.place.file, "line": self.place.line}
        numbers = {"call": self.call, "calls": self.calls}
        sizes = {"differs": self.differs, "calibrated_for": self.calibrated_for}
        known = {name: size if size is not None and math.isfinite(size) else None for name, size in sizes.items()}
        return {"text": self.text, "kind": self.kind, "place": place, **numbers, **known}


def cause(found: Tracing, claim: Claim) -> Cause | None:
    """Return why a claim that was falsified is false; None where traces show no noise and no leak."""
    if found.leak is not None:
        return Cause(str(found.leak), "leak", found.leak.place)
    calls, runs = found.worst.calls, found.worst.runs
    if found.pair_upper is None or not calls:
        return None
    if found.pair_upper.epsilon <= claim.epsilon:
        text = (
            f"not the noisy calls: with the laws that they name they cost at most {found.pair_upper.epsilon:.4g} on "
            "this pair; so the noise has another law, calls are missing, or rounding leaks"
        )
        return Cause(text, "law")
    sizes = np.array([_size(cost(left, right, runs), found.run) for left, right in calls])
    largest = int(np.argmax(sizes >= sizes.max() * (1 - _ALIKE)))
    left, right = calls[largest]
    differs = _norm(left, right, runs, found.run)
    allowed = differs * _share(found, claim) if math.isfinite(differs) else None
    at = f"noisy call {largest + 1} of {len(calls)} ({left.place}, {left.name})"
    together = _together(np.flatnonzero(sizes > 0) + 1, found.pair_upper.epsilon)
    return Cause(
        f"{at}: {_words(left, right, differs, allowed, claim)}{together}",
        "calls",
        left.place,
        largest + 1,
        len(calls),
        differs,
        allowed,
    )


def _words(left: Call, right: Call, differs: float, allowed: float | None, claim: Claim) -> str:
    if left.law is None:
        return (
            f"the probabilities of an outcome differ by a factor of {math.exp(differs):.4g}, the claim allows "
            f"{math.exp(differs if allowed is None else allowed):.4g}"
            if math.isfinite(differs)
            else "an outcome is impossible in one world"
        )
    if allowed is None:
        return "an input is no finite number in one world"
    law = words_of(left.law)
    if allowed == 0:
        return f"inputs differ by {differs:.6g}; {law} noise bounds no ratio at delta {claim.delta:g}"
    return f"inputs differ by {differs:.6g}, noise is calibrated for {allowed:.4g} ({law})"


def _together(changed: Any, epsilon: float) -> str:
    total = "no finite epsilon" if math.isinf(epsilon) else f"epsilon {epsilon:.4g}"
    if len(changed) == 1:
        return f"; it costs {total}"
    listed = ", ".join(map(str, changed[:6])) + (", ..." if len(changed) > 6 else "")
    return f"; calls {listed} differ and cost {total} together"


def _size(one: Cost, run: int) -> float:
    """Return what orders calls by their cost."""
    return float(one.pure[run] + math.sqrt(one.mu_squared[run]) + math.sqrt(one.rho[run]))


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
    return float(np.sqrt(np.square(d).sum()) if euclidean else np.abs(d).sum())


def _share(found: Tracing, claim: Claim) -> float:
    """Return the share of all inputs' differences at which the path would cost just the claim."""
    total, run = path_cost(found.worst.calls, found.worst.runs), found.run
    pure, mu, rho = (float(part[run]) for part in (total.pure, total.mu_squared, total.rho))
    if claim.delta == 0:
        return claim.epsilon / pure if mu == rho == 0 else 0.0
    shifts = laplace_shifts(found.worst.calls, run, found.worst.runs) if mu == rho == 0 else None

    def kept(share: float) -> bool:
        if shifts is not None:
            return composed_epsilon([share * shift for shift in shifts], claim.delta) <= claim.epsilon
        rows = (np.array([value]) for value in (share * pure, share**2 * mu, share**2 * rho))
        return float(Cost(*rows).epsilon(claim.delta)[0]) <= claim.epsilon

    return bisect(kept, 0.0, 1.0, steps=30)[0]
