"""Linear forms: numbers of the code under audit that are a shift plus plain factors times variables.

Variables are watched noise, and public numbers that were computed of what is released (`trusted`). Sums, differences
and multiples of forms are forms again, so what is released is A x noise + shift. A form holds no drawn number: who
asks for its value asks the tape, which notes it.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from functools import partialmethod
from numbers import Real
from typing import TYPE_CHECKING, Any, cast

import numpy as np

if TYPE_CHECKING:
    from ..tape import Tape

#: Factors that cancel up to this share of the larger cancel.
_CANCELLED = 1e-12
#: Where smaller numbers, or larger ones than one over this, may underflow or overflow: NumPy may be asked to raise.
_SMALLEST = 1e-290
#: The largest power of a form that is a public number.
_LARGEST_POWER = 8
#: A line of code: its file and its number.
Line = tuple[str, int]


class Form:
    """A number: `shift` plus the sum of factors times variables. Public variables have negative numbers.

    It looks like a float. `size` is the largest number that it was computed of.
    """

    __slots__ = ("factors", "shift", "size", "tape", "where")
    __array_priority__ = 1000.0

    def __init__(
        self, tape: Tape, shift: float, factors: dict[int, float], where: Line | None = None, size: float = 0.0
    ) -> None:
        self.tape, self.shift, self.factors = tape, shift, factors
        self.where, self.size = where or tape.line(), max(size, abs(shift))

    __class__ = property(lambda self: float)  # isinstance(x, float), as of a number

    @property
    def noise(self) -> dict[int, float]:
        """The factors of noise."""
        return {key: factor for key, factor in self.factors.items() if key >= 0}

    @property
    def is_public(self) -> bool:
        """Whether public variables are in it."""
        return any(key < 0 for key in self.factors)

    @property
    def is_signed_zero(self) -> bool:
        """Whether nothing is left of its noise but the sign of a zero."""
        noise = self.noise
        return bool(noise) and not any(noise.values())

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
        return float, (self.tape.reveal(self),)

    def _new(self, shift: float, factors: dict[int, float], size: float) -> Any:
        """Return a form, or a number where no noise is left but what a number beside it hides."""
        self.tape.operations += 1
        if 0.0 in factors.values():
            if any(factor and key >= 0 for key, factor in factors.items()):
                factors = {key: factor for key, factor in factors.items() if factor}
            elif shift and all(key >= 0 for key in factors):
                return shift
        return Form(self.tape, shift, factors, None, size) if factors else shift

    def _plus(self, value: object, sign: float, multiple: float = 1.0) -> Any:
        """Return own times this plus sign times a value."""
        if type(value) is Form:
            total = self._times(multiple).copy()
            for key, factor in value.factors.items():
                added, old = sign * factor, total.pop(key, 0.0)
                if added == old == 0.0 or abs(old + added) > _CANCELLED * abs(added):
                    total[key] = old + added
            return self._new(multiple * self.shift + sign * value.shift, total, max(self.size, value.size))
        number = _number(value)
        if number is None:
            return NotImplemented
        if self.is_signed_zero and not self.is_public and math.copysign(1.0, sign * number) > 0:
            return multiple * self.shift + sign * number
        return self._new(multiple * self.shift + sign * number, self._times(multiple), max(self.size, abs(number)))

    def _times(self, factor: float) -> dict[int, float]:
        if factor == 1.0:
            return self.factors
        return {key: factor * number for key, number in self.factors.items()}

    def _scaled(self, value: object, *, divided: bool = False) -> Any:
        if type(value) is Form:
            return _revealed(operator.truediv, self, value) if divided else published(np.multiply, self, value)
        number = _number(value)
        if number is None:
            return NotImplemented
        factor = number if not divided else 1 / number if number else math.nan
        factors = self._times(factor)
        if not all(
            _SMALLEST < abs(factor_of_key) < 1 / _SMALLEST or factor_of_key == 0 for factor_of_key in factors.values()
        ):
            return _revealed(operator.truediv if divided else operator.mul, self, value)
        shift = self.shift / number if divided else self.shift * number
        return self._new(shift, factors, self.size * abs(factor))

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

    def __abs__(self) -> Any:
        return published(np.absolute, self)

    def __pow__(self, value: object, modulus: object = None) -> Any:
        is_trusted = type(value) in (int, float) and value in range(_LARGEST_POWER + 1)
        if is_trusted and modulus is None:
            return published(np.power, self, value)
        return _revealed(operator.pow, self, value)

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.tape.answer(self, ("round",))) if digits is None else published(np.round, self, digits)

    def __float__(self) -> float:
        return self.tape.answer(self, ("float",))

    def __int__(self) -> int:
        return int(self.tape.answer(self, ("int",)))

    def __getattr__(self, name: str) -> Any:
        ufunc = getattr(np, name, None)
        if isinstance(ufunc, np.ufunc):  # as NumPy asks the objects of an array for
            return lambda *operands: _revealed(ufunc, self, *operands)
        if name.startswith("__") or not hasattr(float, name):
            raise AttributeError(f"'float' object has no attribute {name!r}")
        return getattr(self.tape.reveal(self), name)


def _number(value: object) -> float | None:
    """Return a real number as a float; None for anything else."""
    return float(cast(Any, value)) if isinstance(value, Real | np.bool_) else None


def _revealed(function: Callable[..., Any], *values: Any) -> Any:
    """Return a function of the values of forms."""
    return function(*(value.tape.reveal(value) if type(value) is Form else value for value in values))


def _of_value(self: Form, function: Callable[..., Any], *operands: Any) -> Any:
    return _revealed(function, self, *operands)


def published(function: Callable[..., Any], *values: Any) -> Any:
    """Return a function of forms: public variables where it is trusted, else of their values."""
    tape = next(value.tape for value in values if type(value) is Form)
    result = tape.publish(function, list(values), {})
    return _revealed(function, *values) if result is NotImplemented else result


def _revealing(function: Callable[..., Any], *, reflected: bool = False) -> Callable[..., Any]:
    def method(self: Form, *operands: Any) -> Any:
        if any(type(other) is not Form and _number(other) is None for other in operands):
            return NotImplemented
        return _revealed(function, *operands, self) if reflected else _revealed(function, self, *operands)

    return method


def _comparing(name: str) -> Callable[..., Any]:
    compare = getattr(operator, name)

    def method(self: Form, other: Any) -> Any:
        if type(other) is Form:
            return _revealed(compare, self, other)
        is_builtin = name in ("lt", "gt")  # as Python's `max` and `min` ask
        return compare(self.tape.answer(self, ("max", "min"), other) if is_builtin else self.tape.reveal(self), other)

    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(Form, f"__{_name}__", _comparing(_name))
for _name in ("bool", "complex", "hash", "str", "repr", "format"):
    setattr(Form, f"__{_name}__", partialmethod(_of_value, getattr(builtins, _name)))
for _name in ("trunc", "floor", "ceil"):
    setattr(Form, f"__{_name}__", _revealing(getattr(math, _name)))
for _name in ("mod", "floordiv"):
    setattr(Form, f"__{_name}__", _revealing(getattr(operator, _name)))
for _name in ("pow", "mod", "floordiv", "truediv"):
    setattr(Form, f"__r{_name}__", _revealing(getattr(operator, _name), reflected=True))
