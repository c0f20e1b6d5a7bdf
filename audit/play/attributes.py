"""Objects as outputs: a fitted model is released as what it has learned, which its attributes hold."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Number

from ...errors import must_be
from ...learners.blame import name_of
from ...learners.protocol import LearnerError
from ..encoding.objects import is_columnar
from ..encoding.places import scalars
from .data import is_frame

#: What may be asked for in place of names: the attributes that end with an underscore (scikit-learn's convention for
#: what was fitted), or all that do not begin with one.
FITTED, ALL = "fitted", "all"


class AttributesError(LearnerError):
    """What a mechanism returned has not the attributes that are asked for: it raised nothing itself."""


def check_attributes(attributes: object) -> None:
    """Raise ValueError unless attributes are asked for by a word that is known, by their names, or not at all."""
    names = attributes if isinstance(attributes, list | tuple) else [attributes]
    if attributes is None or attributes in (FITTED, ALL):
        return
    if (
        isinstance(attributes, str)
        or not names
        or not all(isinstance(name, str) and name.isidentifier() for name in names)
    ):
        raise must_be("attributes", "fitted, all, or names of attributes", attributes)
    if special := [name for name in map(str, names) if name.startswith("__") and name.endswith("__")]:
        raise must_be("attributes", "names of attributes that hold outputs, none of Python's own", special[0])


class WithAttributes:
    """A mechanism whose outputs are objects, as dictionaries of their attributes.

    Parameters
    ----------
    mechanism : callable
    attributes : "fitted", "all" or names
    """

    batched = False

    def __init__(self, mechanism: Callable[..., object], attributes: str | Sequence[str]) -> None:
        check_attributes(attributes)
        if getattr(mechanism, "batched", False):
            raise ValueError("attributes are read of mechanisms that are called run by run, not of batched ones")
        self.attributes, self.mechanism = attributes, mechanism
        self.__wrapped__ = mechanism  # what a signature is read from
        self.__name__ = name_of(mechanism)

    def __call__(self, *arguments: object) -> dict[str, object]:
        """Answer once."""
        return self._read(self.mechanism(*arguments), "the output")

    def _read(self, output: object, where: str) -> dict[str, object]:
        if isinstance(self.attributes, str):
            values = _attributes(output, where)
            names = [name for name in values if not name.startswith("_")]
            names = [name for name in names if name.endswith("_")] if self.attributes == FITTED else names
            if not names:
                raise AttributesError(
                    f"{where}, {type(output).__name__}, has no attributes that are {self.attributes}"
                )
        else:
            names = list(self.attributes)
            missing = [name for name in names if not hasattr(output, name)]
            if missing:
                raise AttributesError(f"{where}, {type(output).__name__}, has no attribute {missing[0]!r}")
        return {name: self._value(getattr(output, name), f"{where}.{name}") for name in names}

    def _value(self, value: object, where: str) -> object:
        """Return an attribute; objects within as dictionaries, where no names were given."""
        if isinstance(value, Mapping):
            return {key: self._value(part, f"{where}[{key!r}]") for key, part in value.items()}
        if isinstance(value, list | tuple):
            parts = [self._value(part, f"{where}[{i}]") for i, part in enumerate(value)]
            return tuple(parts) if isinstance(value, tuple) else parts  # a named tuple takes them one by one
        if _is_readable(value):
            list(scalars(value))
            return value
        if isinstance(self.attributes, str) and hasattr(value, "__dict__") and not callable(value):
            return self._read(value, where)
        raise AttributesError(
            f"{where} cannot be read, {type(value).__name__}: name attributes that hold numbers, texts or arrays"
        )


def _attributes(output: object, where: str) -> dict[str, object]:
    if not hasattr(output, "__dict__"):
        raise AttributesError(f"{where} is no object with attributes: {output!r:.80}")
    return dict(vars(output))


def _is_readable(value: object) -> bool:
    """Tell whether a value is an output by itself: a number, a text, a set, None, or what turns into a list."""
    is_simple = value is None or isinstance(value, str | bytes | Number | set | frozenset)
    listed = any(hasattr(value, name) for name in ("tolist", "tocoo", "__array__"))
    return is_simple or listed or is_columnar(value) or is_frame(value)
