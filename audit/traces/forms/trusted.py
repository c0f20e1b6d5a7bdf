"""Functions of NumPy that are trusted with forms: what they give of released numbers is public, and no more.

They never raise, and give floats whose shape the shapes of their arguments say: so what the code under audit does
next depends on no value. Those that may warn are trusted while nothing makes more of a warning.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

#: What is silent on all floats but infinite ones and nan.
_SILENT: frozenset[Callable[..., Any]] = frozenset(
    (
        *(
            np.absolute,
            np.fabs,
            np.sign,
            np.clip,
            np.maximum,
            np.minimum,
            np.fmax,
            np.fmin,
            np.floor,
            np.ceil,
            np.rint,
        ),
        *(np.trunc, np.round, np.around, np.heaviside, np.sort, np.max, np.amax, np.min, np.amin, np.nan_to_num),
        *(np.arctan, np.tanh),
    )
)
#: What may warn: of overflow, of zeros, or of negative numbers.
_WARNING: frozenset[Callable[..., Any]] = frozenset(
    {
        *(np.exp, np.log, np.sqrt, np.divide, np.multiply, np.power, np.square, np.log1p, np.expm1, np.std, np.var),
        np.linalg.norm,
    }
)
#: What else than arrays they take by name.
_KEYWORDS = frozenset({"axis", "keepdims", "decimals", "a_min", "a_max", "min", "max", "ddof"})
_MOST_POWER = 8


def is_trusted(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any], quiet: object) -> bool:
    """Tell whether a function is trusted with these arguments, of which arrays of forms are arrays of objects.

    Parameters
    ----------
    quiet : object
        What `warning_state` was when the code under audit began.
    """
    if function not in _SILENT | _WARNING or not _KEYWORDS.issuperset(kwargs):
        return False
    if function is np.linalg.norm and (len(args) > 1 or not {"axis", "keepdims"}.issuperset(kwargs)):
        return False  # of other orders some are of singular values
    if function is np.power and not (np.ndim(args[1]) == 0 and args[1] in range(_MOST_POWER + 1)):
        return False
    if any(isinstance(value, list | tuple) for value in args):
        return False
    return function in _SILENT or (warning_state() == quiet and set(np.geterr().values()) <= {"ignore", "warn"})


def warning_state() -> object:
    """Return what Python makes of a warning."""
    show: Any = getattr(warnings, "_showwarnmsg_impl", None)
    return tuple(warnings.filters), warnings.showwarning, show


def shape_of(function: Callable[..., Any], args: list[Any], kwargs: dict[str, Any]) -> tuple[int, ...] | None:
    """Return the shape of a function's floats, given ones in place of forms; None where it gives anything else."""
    try:
        with np.errstate(all="ignore"):
            result = function(*args, **kwargs)
    except Exception:
        return None
    is_array = type(result) is np.ndarray
    return np.shape(result) if (is_array or type(result) is np.float64) and result.dtype == np.float64 else None
