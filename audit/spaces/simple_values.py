"""Simpler numbers in both inputs of a pair: 0 and 1, small whole numbers, then few digits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_HALF_EVEN, Decimal
from typing import Any

from ...mechanisms.relations.numbers import numbers_of, with_numbers
from ..play.data import from_json, to_json

#: Digits behind the point that numbers are rounded to, the simplest first.
DIGITS = (0, 1, 2, 3)


def with_simpler_values(left: object, right: object) -> Iterator[tuple[Any, Any]]:
    """Yield a pair with simpler numbers; where one becomes another it does so in all places of both inputs.

    All numbers are rounded first, then single ones become 0 or 1 or are rounded, those with most digits first.
    """
    forms = [to_json(left), to_json(right)]
    numbers = list(dict.fromkeys(number for form in forms for _, number in numbers_of(form)))
    for digits in DIGITS:
        yield _pair(forms, {number: _rounded(number, digits) for number in numbers})
    for number in sorted(numbers, key=lambda number: -len(str(number))):
        simple = (Decimal(0), Decimal(1), *(_rounded(number, digits) for digits in DIGITS))
        for other in dict.fromkeys(simple):
            if other != number and len(str(other)) <= len(str(number)):
                yield _pair(forms, {number: other})


def _rounded(number: Decimal, digits: int) -> Decimal:
    """Return a number with so many digits behind its point, as long as it has any."""
    if number.adjusted() > 15 or not math.isfinite(number):  # whole, and more digits than a context has
        return number
    return number.quantize(Decimal(1).scaleb(-digits), rounding=ROUND_HALF_EVEN).normalize() + 0


def _pair(forms: list[Any], new: dict[Decimal, Decimal]) -> tuple[Any, Any]:
    worlds = []
    for form in forms:
        new_numbers = {path: new[number] for path, number in numbers_of(form) if number in new}
        worlds.append(from_json(with_numbers(form, new_numbers)))
    return worlds[0], worlds[1]
