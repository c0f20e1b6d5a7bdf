"""Bounds in a few digits, rounded towards what is known: the digits of a lower bound down, of an upper bound up.

To the nearest digit half of all bounds would be printed as a little more than was certified.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal

#: Numbers whose ratio is closer to 1 than this differ by the rounding of what they were computed from.
REL_TOLERANCE = 1e-9
#: Floating-point arithmetic is not sure of more digits than these: 0.1 + 0.2 is at most 0.3.
_CONTEXT = Context(prec=12)


def at_least(bound: float | None, digits: str = ".4g", claim: float | None = None) -> str:
    """Return a lower bound in the digits of a format such as ".4g" or ".4f", rounded down; a dash for none.

    A bound that is `claim` a claim has as many digits more as tell it from the claim.
    """
    text, places = _directed(bound, digits, ROUND_FLOOR), int(digits[1:-1])
    while bound is not None and claim is not None and float(text) <= claim < bound and places < _CONTEXT.prec:
        places += 1
        text = _directed(bound, f".{places}{digits[-1]}", ROUND_FLOOR)
    return text


def at_most(bound: float | None, digits: str = ".4g") -> str:
    """Return an upper bound in the digits of a format such as ".4g" or ".4f", rounded up; a dash for none."""
    return _directed(bound, digits, ROUND_CEILING)


def within(low: float | None, high: float | None, digits: str = ".4g") -> tuple[str, str]:
    """Return both ends of an interval, rounded outwards."""
    return at_least(low, digits), at_most(high, digits)


def exceeds(number: float, other: float) -> bool:
    """Return whether a number of at least 0 exceeds another by more than rounding."""
    return number > other * (1 + REL_TOLERANCE)


def compact(value: object) -> str:
    """Return a float in five digits, an interval in six, rounded outwards, and anything else as it is."""
    if isinstance(value, list) and [type(end) for end in value] == [float, float]:
        return "[{}, {}]".format(*within(value[0], value[1], ".6g"))
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def exactly(number: float) -> str:
    """Return a number in few digits, but no other number."""
    text = f"{number:g}"
    return text if float(text) == number or math.isnan(number) else repr(float(number)).removesuffix(".0")


def confidence_text(confidence: float) -> str:
    """Return a confidence in per cent, rounded down, with as many digits as tell it from certainty."""
    digits = 2 - math.floor(math.log10(max(1 - confidence, 1e-17)))
    text = at_least(confidence, f".{min(max(4, digits), 17)}g") if digits <= 12 else repr(confidence)
    return f"{(100 * Decimal(text)).normalize():f}%"


def _directed(bound: float | None, digits: str, rounding: str) -> str:
    if bound is None:
        return "-"
    if not math.isfinite(bound):
        return f"{bound:{digits}}"
    number, places = _CONTEXT.create_decimal(Decimal(bound)), int(digits[1:-1])
    if digits.endswith("f"):
        short = number.quantize(Decimal(1).scaleb(-places), rounding, Context(prec=400))
    else:
        short = Context(prec=places, rounding=rounding).create_decimal(number)
    return f"{float(short) + 0.0:{digits}}"
