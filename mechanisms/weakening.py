"""Weaker twins: a learner, a mechanism or a noise law with its noise divided by a factor, everything else as it was.

An audit that survives is tried on them, to see what it would have caught (`audit.verdicts.blind_spot`).
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, runtime_checkable

from ..errors import hinted, must_be, unknown

if TYPE_CHECKING:
    from typing import Self

Target = TypeVar("Target")


class NoNoiseError(ValueError):
    """There is no noise in a target, or none that is known here."""


@runtime_checkable
class CanWeaken(Protocol):
    """Ability: says itself what less noise is. Laws have it, and whatever is not weakened by its fields."""

    def weakened(self, factor: float) -> Self:
        """Return the same with its noise divided by a factor of 1 or more."""


def weakened(target: Target, factor: float) -> Target:
    """Return the target with the scale of all its noise divided by `factor`.

    A dataclass is weakened by its fields: noise laws and what else can be weakened are, and `epsilon`, which in all of
    this package divides the scale of the noise and sets nothing else, is multiplied by the factor. Learning rates,
    batches and horizons stay as they are.

    Parameters
    ----------
    factor : float
        1 or more, finite.

    Raises
    ------
    NoNoiseError
        If nothing in the target is noise that is known here.
    ValueError
        For another factor.

    Examples
    --------
    >>> from overclaim.mechanisms.noise import Laplace
    >>> weakened(Laplace(scale=3.0), 1.5)
    Laplace(scale=2.0)
    """
    _check_factor(factor)
    if isinstance(target, CanWeaken):
        return target.weakened(factor)
    changes: dict[str, Any] = {}
    for name, value in _fields(target).items():
        if name == "epsilon" and math.isfinite(value):
            changes[name] = value * factor
        else:
            try:
                changes[name] = weakened(value, factor)
            except NoNoiseError:
                continue
    if not changes:
        subject = getattr(target, "user_class", target)
        name = getattr(subject, "__name__", type(subject).__name__)
        raise NoNoiseError(f"{name} has no noise that is known here: name the parameter that sets it")
    return replace(target, **changes)  # type: ignore[type-var]


def _fields(target: object) -> dict[str, Any]:
    """Return the fields of a dataclass that its constructor takes; nothing of other things."""
    if not is_dataclass(target) or isinstance(target, type):
        return {}
    return {field.name: getattr(target, field.name) for field in fields(target) if field.init}


def _check_factor(factor: float) -> None:
    if not (factor >= 1 and math.isfinite(factor)):
        raise must_be("the factor that noise is divided by", "at least 1 and finite", factor)


@dataclass(frozen=True)
class NoiseParameter:
    """The parameter that sets the noise of a user's target, and in which direction.

    `epsilon` is multiplied by the factor, more of it being less noise; `1/scale` is the way to say that a parameter
    `scale` is divided by it.
    """

    name: str
    inverse: bool = False

    @classmethod
    def parse(cls, text: str) -> NoiseParameter:
        """Return the parameter that a text names: `NAME`, or `1/NAME`.

        Raises
        ------
        ValueError
            If it is neither.
        """
        name = text.removeprefix("1/")
        if not name.isidentifier():
            raise must_be("weaken", "NAME, to be multiplied by the factor, or 1/NAME", text)
        return cls(name, name != text)

    def __str__(self) -> str:
        return f"1/{self.name}" if self.inverse else self.name

    def weaker(self, value: object, factor: float) -> float:
        """Return the parameter's value with less noise.

        Raises
        ------
        ValueError
            If it is no number.
        """
        _check_factor(factor)
        if isinstance(value, str):
            value = _read(value)
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise must_be(f"weaken: {self.name}", "a finite number", value)
        return value / factor if self.inverse else value * factor


def _read(text: str) -> object:
    try:
        return float(text)
    except ValueError:
        return text


def default_of(make: Callable[..., object], name: str, arguments: Collection[str]) -> object:
    """Return the default of a parameter of a function or class, other than what every audit gives it.

    Raises
    ------
    ValueError
        If it has no such parameter, or that has no default.
    """
    parameters = {
        key: parameter for key, parameter in inspect.signature(make).parameters.items() if key not in arguments
    }
    maker_name = getattr(make, "__name__", type(make).__name__)
    if name not in parameters:
        raise unknown(
            f"weaken: {maker_name} has no parameter", name, parameters, f"it has {', '.join(parameters) or 'none'}"
        )
    default = parameters[name].default
    if default is inspect.Parameter.empty:
        raise hinted(
            ValueError(f"weaken: {name} of {maker_name} has no default"), f"give it a value: `set={name}=...`"
        )
    return default


def with_settings(target: Any, values: Mapping[str, object]) -> Any:
    """Return a function with keywords that have values: its data and its generator are what an audit gives it.

    Raises
    ------
    ValueError
        If the target is no function, or has no such keyword.
    """
    if not values:
        return target
    target_name = getattr(target, "__name__", type(target).__name__)
    if not inspect.isfunction(target):
        raise ValueError(f"set is for the keywords of a function, and {target_name} is none")
    parameters = list(inspect.signature(target).parameters.values())
    places = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    settable = [parameter.name for parameter in parameters[1:] if parameter.kind in places and parameter.name != "rng"]
    unsettable = [name for name in values if name not in settable]
    if unsettable and not any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        raise unknown(
            f"{target_name} takes no parameter", unsettable[0], settable, f"it takes {', '.join(settable) or 'none'}"
        )
    return _WithSettings(target, **values)


class _WithSettings(partial):  # type: ignore[type-arg]
    """A function with keywords that have values: wherever they stand, the generator has its own place, by its name."""

    def __init__(self, func: Any, **values: object) -> None:
        update_wrapper(self, func)
        del vars(self)["__wrapped__"]  # whose signature has these keywords still
        data, *others = inspect.signature(func).parameters.values()
        open_places = [p.name for p in others if p.kind is p.POSITIONAL_OR_KEYWORD and p.name not in values]
        self.generator = "rng" if any(p.name == "rng" for p in others) else next(iter(open_places), None)
        own, first = inspect.signature(partial(func, **values)).parameters.values(), (data.name, self.generator)
        places = [p.replace(kind=p.POSITIONAL_OR_KEYWORD) for p in own if p.name in first]
        rest = [p.replace(kind=max(p.kind, p.KEYWORD_ONLY)) for p in own if p.name not in first]
        self.__signature__ = inspect.Signature([*places, *rest])

    def __call__(self, data: object, *generators: object, **values: object) -> object:
        """Call the function with its data, and with a generator if there is one."""
        keywords = {**self.keywords, **values}
        if self.generator is None or not generators:
            return self.func(data, *generators, **keywords)
        return self.func(data, **{self.generator: generators[0], **keywords})


def with_parameter(target: Any, parameter: NoiseParameter, factor: float) -> object:
    """Return a built target with less noise: a dataclass with a field changed, a function with a keyword's default.

    Raises
    ------
    ValueError
        If the target is neither, or has no such parameter.
    """
    if parameter.name in (names := _fields(target)):
        return replace(target, **{parameter.name: parameter.weaker(names[parameter.name], factor)})
    if inspect.isroutine(target) or isinstance(target, partial):
        value = parameter.weaker(default_of(target, parameter.name, ("data", "rng")), factor)
        return update_wrapper(partial(target, **{parameter.name: value}), target)
    raise ValueError(
        f"weaken: {type(target).__name__} has no field {parameter.name!r} to change; it must be a dataclass, "
        "a function, or a class that is built anew"
    )
