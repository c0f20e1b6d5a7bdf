"""Linear forms: numbers of the code under audit that are a shift plus plain numbers times watched noise.

Sums, differences and multiples of a form are forms again, so what is released is A x noise + shift. Any other use
releases the form: its value is noted, and a replay gives the same value. What is computed of released values by NumPy
is a form without noise, marked as adaptive. What becomes a Python number, a bool or an index is out of sight.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from numbers import Real
from typing import Any, Protocol, cast

import numpy as np

#: Coefficients that cancel up to this share of the larger cancel.
_CANCELLED = 1e-12
#: A line of code: its file and its number.
Line = tuple[str, int]


class Follower(Protocol):
    """What forms report to: a tape."""

    @property
    def eager(self) -> bool:
        """Whether a sum of noise and a number is released at once, as a plain number."""

    def overwrite(self) -> None:
        """Note that a number with noise is replaced by one without."""

    def line(self) -> Line:
        """Return the line of the code under audit that runs."""

    def concrete(self, form: Form) -> float:
        """Return the value of a form with the noise that was drawn."""

    def release(self, form: Form) -> float:
        """Note that a form is released; return its value, in a replay that of the recorded run."""

    def compute(self, inputs: object) -> None:
        """Note what a value is computed of, released values among it."""

    def escape(self) -> None:
        """Note that the code under audit has a plain number, a bool or an index that depends on noise."""


class Form:
    """A number: `shift` plus the sum of coefficients times noise variables.

    It looks like a float. `adaptive` says that the shift was computed from released values.
    """

    __slots__ = ("adaptive", "coefficients", "released", "shift", "tape", "where")
    __array_priority__ = 1000.0

    def __init__(
        self,
        tape: Follower,
        shift: float,
        coefficients: dict[int, float],
        where: Line | None = None,
        adaptive: bool = False,
    ) -> None:
        self.tape, self.shift, self.coefficients = tape, shift, coefficients
        self.where, self.adaptive = where or tape.line(), adaptive
        self.released: float | None = None

    __class__ = property(lambda self: float)  # isinstance(x, float), as of a number

    @property
    def real(self) -> Form:
        """The number."""
        return self

    @property
    def imag(self) -> float:
        """Zero."""
        return 0.0

    def conjugate(self) -> Form:
        """Return the number."""
        return self

    item = tolist = __copy__ = __pos__ = conjugate

    def __deepcopy__(self, memo: object) -> Form:
        return self

    def __reduce_ex__(self, protocol: object) -> Any:
        return float, (float(self),)

    def _new(self, shift: float, coefficients: dict[int, float], adaptive: bool) -> Any:
        if not coefficients and not adaptive:
            return shift
        return Form(self.tape, shift, coefficients, None, adaptive)

    def _plus(self, value: object, sign: float, own: float = 1.0) -> Any:
        """Return own times this plus sign times a value."""
        if type(value) is Form:
            one, other = self.coefficients, value.coefficients
            total = {key: own * one[key] for key in one}
            for key, factor in other.items():
                more, old = sign * factor, total.pop(key, 0.0)
                if abs(old + more) > _CANCELLED * abs(more):
                    total[key] = old + more
            return self._new(own * self.shift + sign * value.shift, total, self.adaptive or value.adaptive)
        number = _number(value)
        if number is None:
            return NotImplemented
        made = Form(self.tape, own * self.shift + sign * number, self._times(own), None, self.adaptive)
        return float(made) if self.tape.eager else made

    def _times(self, factor: float) -> dict[int, float]:
        if factor == 1.0:
            return self.coefficients
        return {key: factor * number for key, number in self.coefficients.items()}

    def _scaled(self, value: object, *, divided: bool = False) -> Any:
        if type(value) is Form:
            return computed(operator.truediv if divided else operator.mul, self, value)
        number = _number(value)
        if number is None:
            return NotImplemented
        factor = number if not divided else 1 / number if number else math.nan
        if not math.isfinite(factor):
            return computed(operator.truediv if divided else operator.mul, self, value)
        shift = self.shift / number if divided else self.shift * number
        return self._new(shift, self._times(factor) if factor else {}, self.adaptive)

    def __add__(self, value: object) -> Any:
        return self._plus(value, 1.0)

    __radd__ = __add__

    def __sub__(self, value: object) -> Any:
        return self._plus(value, -1.0)

    def __rsub__(self, value: object) -> Any:
        return self._plus(value, 1.0, -1.0)

    def __neg__(self) -> Any:
        return self._scaled(-1.0)

    def __mul__(self, value: object) -> Any:
        return self._scaled(value)

    __rmul__ = __mul__

    def __truediv__(self, value: object) -> Any:
        return self._scaled(value, divided=True)

    def __round__(self, digits: int | None = None) -> Any:
        return round(float(self)) if digits is None else computed(round, self, digits)

    def __getattr__(self, name: str) -> Any:
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc):  # as NumPy asks the objects of an array for
            return lambda *others: computed(ufunc, self, *others)
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'float' object has no attribute {name!r}")
        return getattr(float(self), name)


def _number(value: object) -> float | None:
    """Return a real number as a float; None for anything else."""
    return float(cast(Any, value)) if isinstance(value, Real | np.bool_) else None


def computed(function: Callable[..., Any], *values: Any) -> Any:
    """Return a function of forms, which are released: a form without noise, or what it is, where that is no float."""
    tape = next(value.tape for value in values if type(value) is Form)
    plain = [tape.release(value) if type(value) is Form else value for value in values]
    tape.compute((str(function), plain))
    return covered(function(*plain), tape)


def covered(result: Any, tape: Follower) -> Any:
    """Return a float that was computed of released values as a form without noise; note that anything else escapes."""
    if isinstance(result, float) and not tape.eager:
        return Form(tape, float(result), {}, None, True)
    tape.escape()
    return result


def _escaping(convert: Callable[..., object]) -> Callable[..., Any]:
    """Return a method that releases a form, and works on its value."""

    def method(self: Form, *others: object) -> object:
        value = self.tape.release(self)
        self.tape.escape()
        return convert(value, *(other.tape.release(other) if type(other) is Form else other for other in others))

    return method


def _computing(name: str, *, reflected: bool = False) -> Callable[..., Any]:
    function = getattr(operator, name)

    def method(self: Form, *others: Any) -> Any:
        if any(type(other) is not Form and _number(other) is None for other in others):
            return NotImplemented
        return computed(function, *others, self) if reflected else computed(function, self, *others)

    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Form, f"__{_name}__", _escaping(getattr(operator, _name)))
for _name in ("float", "int", "bool", "complex", "hash", "str", "repr", "format"):
    setattr(Form, f"__{_name}__", _escaping(getattr(__import__("builtins"), _name)))
for _name in ("trunc", "floor", "ceil"):
    setattr(Form, f"__{_name}__", _escaping(getattr(math, _name)))
for _name in ("abs", "pow", "mod", "floordiv"):
    setattr(Form, f"__{_name}__", _computing(_name))
for _name in ("pow", "mod", "floordiv", "truediv"):
    setattr(Form, f"__r{_name}__", _computing(_name, reflected=True))
