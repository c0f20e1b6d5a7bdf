"""A claim's measure as a record, a plan or a command line says it."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from ...errors import hinted
from .approximate import ApproxDP
from .kinds import KINDS
from .measure import Measure


def class_of(kind: str) -> type[Measure]:
    """Return the class of measures of a kind."""
    module, _, name = KINDS[kind].place.partition(":")
    measure: type[Measure] = getattr(import_module(f".{module}", __package__), name)
    return measure


def measure_from_json(data: Any) -> Measure:
    """Return the measure that a record's `measure` says.

    Raises
    ------
    ValueError
        If it is none.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind != ApproxDP.kind and kind not in KINDS:
        raise ValueError(f"a measure must have a kind, one of {', '.join((ApproxDP.kind, *KINDS))}, got {data!r}")
    measure = ApproxDP if kind == ApproxDP.kind else class_of(kind)
    try:
        return measure(**{name: value for name, value in data.items() if name != "kind"})
    except TypeError:
        raise ValueError(f"this is no measure of kind {kind!r}: {data!r}") from None


def stated_measure(options: Mapping[str, object]) -> Measure | None:
    """Return the measure among what is said of a claim; None where it says an epsilon, or nothing.

    Parameters
    ----------
    options : mapping
        The keys of `KINDS`, `epsilon` and `delta`; what is None is not said.

    Raises
    ------
    ValueError
        For a value outside its range, or more than one of them.
    """
    names = [name for name in ("epsilon", *KINDS) if options.get(name) is not None]
    if len(names) > 1:
        raise ValueError(f"a claim is made in one measure, got {' and '.join(names)}")
    if not names or names == ["epsilon"]:
        return None
    if options.get("delta") is not None:
        raise hinted(
            ValueError(f"delta goes with epsilon, got it with {names[0]}"),
            "`set=delta=...` sets the noise of a target",
        )
    return class_of(names[0]).of_plan(options[names[0]])
