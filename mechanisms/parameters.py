"""Checks of the parameters that mechanisms are made with: the message names the value and what was expected."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass, replace
from fractions import Fraction
from typing import TypeVar

import numpy as np

from ..errors import must_be

Recipe = TypeVar("Recipe")

#: The package, whose dataclasses are made anew from their fields.
_PACKAGE = __name__.partition("mechanisms.")[0]
#: The most answers, bits or hash functions: more do not fit into memory, as many times as an audit calls a mechanism.
LARGEST = 10_000
#: What can still be computed with, noise of a scale some thousand times 1 / epsilon among it: `noise.LARGEST`.
MIN_POSITIVE, MAX_POSITIVE = 1e-140, 1e140


def check_count(name: str, value: object) -> None:
    """Raise ValueError unless the value is an integer in 1..`LARGEST`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 1 <= value <= LARGEST:
        raise must_be(name, f"an integer in 1..{LARGEST}", value)


def check_finite(name: str, value: object) -> None:
    """Raise ValueError unless the value is a finite number."""
    if not is_finite(value):
        raise must_be(name, "a finite number", value)


def check_positive(
    name: str, value: float | Fraction, *, minimum: float = MIN_POSITIVE, maximum: float = MAX_POSITIVE
) -> None:
    """Raise ValueError unless the value is a positive, finite number that can be computed with."""
    if not is_finite(value) or not value > 0:
        raise must_be(name, "positive and finite", value)
    if not minimum <= float(value) <= maximum:  # the limits are beyond some of NumPy's floats
        bound = f"at least {minimum:g}" if value < minimum else f"at most {maximum:g}"
        raise must_be(name, bound, value)


def is_finite(value: object) -> bool:
    """Tell whether a value is a finite number; truth values are none."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | np.integer | np.floating):
        return False
    try:
        return math.isfinite(value)
    except OverflowError:  # an integer too large for a float
        return False


def with_plain_numbers(recipe: Recipe) -> Recipe:
    """Return a recipe of ours and of its parts with Python's numbers in place of NumPy's: small ones overflow."""
    if not is_dataclass(recipe) or isinstance(recipe, type) or not type(recipe).__module__.startswith(_PACKAGE):
        return recipe
    changes = {}
    for field in fields(recipe):
        value = getattr(recipe, field.name)
        number = value.item() if isinstance(value, np.generic) else with_plain_numbers(value)
        if field.init and number is not value:
            changes[field.name] = number
    return replace(recipe, **changes) if changes else recipe
