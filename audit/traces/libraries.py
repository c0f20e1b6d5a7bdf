"""Libraries that are watched while a mechanism is traced: diffprivlib's `randomise` and OpenDP's measurements.

What they release is a noisy call: its input is what the library is given, its law is what the library was told to
calibrate for. Nothing is patched where a library is not loaded, and everything is put back.
"""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from ...mechanisms.discrete import DiscreteLaplaceNoise
from ...mechanisms.noise import Gaussian, Laplace
from ...mechanisms.watching import active
from .forms.arrays import values_of
from .tape import Tape
from .watched import UnreadNoiseError

#: diffprivlib's classes that compute their output from that of a class that is read.
_AFTER = {"LaplaceTruncated", "LaplaceFolded", "GeometricTruncated", "GeometricFolded"}


@contextmanager
def watched_libraries(tape: Tape) -> Iterator[None]:
    """Report the noisy calls of diffprivlib and OpenDP to a tape, where they are loaded."""
    with ExitStack() as stack:
        stack.enter_context(active(partial(_note, tape)))
        if mechanisms := sys.modules.get("diffprivlib.mechanisms"):
            for kind in _with_randomise(mechanisms):
                stack.enter_context(_patched(kind, "randomise", _randomise(kind, tape)))
        if opendp := sys.modules.get("opendp.mod"):
            stack.enter_context(_patched(opendp.Measurement, "__call__", _measure(opendp.Measurement, tape)))
        yield


def _note(
    tape: Tape, function: Callable[..., object], law_of: Callable[..., object], /, *args: Any, **kwargs: Any
) -> object:
    """Return what a function returns that a user watches (`testing.watching`): its first argument with noise."""
    args, kwargs = tuple(map(values_of, args)), {name: values_of(value) for name, value in kwargs.items()}
    name = getattr(function, "__name__", "noise")
    return tape.measured(law_of(*args, **kwargs), args[0], lambda: function(*args, **kwargs), name)


@contextmanager
def _patched(kind: object, name: str, method: Callable[..., object]) -> Iterator[None]:
    original = vars(kind)[name]
    setattr(kind, name, method)
    try:
        yield
    finally:
        setattr(kind, name, original)


def _with_randomise(mechanisms: object) -> list[type]:
    kinds = {kind for kind in vars(mechanisms).values() if isinstance(kind, type)}
    return [kind for kind in kinds if "randomise" in vars(kind) and kind.__name__ not in {"DPMechanism", *_AFTER}]


def _randomise(kind: type, tape: Tape) -> Callable[..., object]:
    """Return `randomise` of a class of diffprivlib, reported."""
    original = vars(kind)["randomise"]

    def randomise(self: object, value: object = None) -> object:  # those that choose take no value
        name, value = f"diffprivlib {kind.__name__}", values_of(value)
        law = _law_of(self, kind.__name__)
        if law is None:
            raise UnreadNoiseError(f"{name} is not watched in a trace")
        return tape.measured(law, value, lambda: original(self, value), name)

    return randomise


def _law_of(mechanism: Any, kind: str) -> object:
    """Return the law that a mechanism of diffprivlib adds; None where it is not known here."""
    if kind == "Laplace":
        return Laplace(float(mechanism.sensitivity / (mechanism.epsilon - math.log(1 - mechanism.delta))))
    if kind == "Geometric":
        return DiscreteLaplaceNoise(Fraction(mechanism.sensitivity) / Fraction(mechanism.epsilon))
    return Gaussian(float(mechanism._scale)) if kind == "Gaussian" else None


@dataclass(frozen=True)
class Mapped:
    """The law of an OpenDP measurement, by its own privacy map: what a distance of its inputs costs."""

    metric: str
    measure: str
    map: Callable[[float], float]

    def distance(self, left: Any, right: Any) -> float:
        """Return the distance of two inputs in the measurement's metric.

        Raises
        ------
        UnreadNoiseError
            If the metric is not known here.
        """
        if self.metric.startswith("SymmetricDistance"):
            a, b = Counter(map(repr, left)), Counter(map(repr, right))
            return float(((a - b) + (b - a)).total())
        if not self.metric.startswith(("AbsoluteDistance", "L1Distance", "L2Distance")):  # others are not of numbers
            raise UnreadNoiseError(f"OpenDP's {self.metric} is not watched in a trace")
        if np.shape(left) != np.shape(right):
            return math.inf
        d = np.abs(np.asarray(left, dtype=float) - np.asarray(right, dtype=float))
        return float(np.sqrt(np.square(d).sum()) if self.metric.startswith("L2Distance") else d.sum())

    def loss(self, distance: float) -> float:
        """Return what a distance costs, in the output's measure."""
        if distance == 0 or math.isinf(distance):
            return distance
        is_whole = "f32" not in self.metric and "f64" not in self.metric
        return float(self.map(math.ceil(distance) if is_whole else distance))


def _measure(kind: object, tape: Tape) -> Callable[..., object]:
    """Return the call of an OpenDP measurement, reported."""
    original = vars(kind)["__call__"]

    def measure(self: Any, arg: object) -> object:
        law, arg = Mapped(str(self.input_metric), str(self.output_measure), self.map), values_of(arg)
        if law.measure not in ("MaxDivergence", "ZeroConcentratedDivergence"):
            raise UnreadNoiseError(f"OpenDP's {law.measure} is not watched in a trace")
        return tape.measured(law, arg, lambda: original(self, arg), "OpenDP measurement")

    return measure
