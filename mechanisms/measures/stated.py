"""A claim's measure as a record, a plan or a command line says it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from ...errors import hinted, must_be
from .approximate import ApproxDP, Profile
from .gaussian_dp import GDP
from .measure import Measure
from .renyi import RDP, ZCDP

#: What else than an epsilon may be claimed: a plan's keys, which are the options of the command line too.
MEASURES: dict[str, Callable[[Any], Measure]] = {
    "gdp": GDP,
    "zcdp": ZCDP,
    "rdp": lambda value: RDP(*_pair("rdp", "[order, epsilon]", value)),
    "profile": lambda value: Profile(
        tuple(_pair("a point of a profile", "[epsilon, delta]", p) for p in _list(value))
    ),
}
_KINDS: dict[str, type[Measure]] = {cls.kind: cls for cls in (ApproxDP, GDP, ZCDP, RDP, Profile)}


def measure_from_json(data: Any) -> Measure:
    """Return the measure that a record's `measure` says.

    Raises
    ------
    ValueError
        If it is none.
    """
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in _KINDS:
        raise ValueError(f"a measure must have a kind, one of {', '.join(_KINDS)}, got {data!r}")
    try:
        return _KINDS[kind](**{name: value for name, value in data.items() if name != "kind"})
    except TypeError:
        raise ValueError(f"this is no measure of kind {kind!r}: {data!r}") from None


def _list(value: object) -> Iterable[object]:
    if not isinstance(value, list | tuple):
        raise must_be("profile", "a list of [epsilon, delta]", value)
    return value


def _pair(name: str, form: str, value: object) -> tuple[Any, Any]:
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise must_be(name, form, value)
    return value[0], value[1]


def stated_measure(options: Mapping[str, object]) -> Measure | None:
    """Return the measure among what is said of a claim; None where it says an epsilon, or nothing.

    Parameters
    ----------
    options : mapping
        The keys of `MEASURES`, `epsilon` and `delta`; what is None is not said.

    Raises
    ------
    ValueError
        For a value outside its range, or more than one of them.
    """
    names = [name for name in ("epsilon", *MEASURES) if options.get(name) is not None]
    if len(names) > 1:
        raise ValueError(f"a claim is made in one measure, got {' and '.join(names)}")
    if not names or names == ["epsilon"]:
        return None
    if options.get("delta") is not None:
        raise hinted(
            ValueError(f"delta goes with epsilon, got it with {names[0]}"),
            "`set=delta=...` sets the noise of a target",
        )
    return MEASURES[names[0]](options[names[0]])


def option_words(measure: Measure) -> list[str]:
    """Return the options of the command line that make this claim."""
    if isinstance(measure, Profile):
        points = ",".join(f"[{number_text(epsilon)},{number_text(delta)}]" for epsilon, delta in measure.points)
        return ["--profile", f"[{points}]"]
    if isinstance(measure, RDP):
        return ["--rdp", f"{number_text(measure.order)}:{number_text(measure.epsilon)}"]
    if isinstance(measure, ApproxDP):
        return ["--epsilon", number_text(measure.epsilon), "--delta", number_text(measure.delta)]
    return [f"--{measure.kind}", number_text(measure.level)]


def number_text(value: object) -> str:
    """Return the shortest text that reads back as the value."""
    short = f"{value:g}" if isinstance(value, float) else str(value)
    return short if not isinstance(value, float) or float(short) == value else repr(value)
