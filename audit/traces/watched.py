"""A generator that is watched: noise drawn from it for a value is a noisy call, noise drawn bare waits for its value.

A plain class or a mechanism of (data, rng) is given one in a trace. `rng.laplace(loc=value, scale=b)` and
`rng.normal(value, sigma)` are noisy calls. `x + rng.laplace(0, b)` is one at its first addition: until then the noise
carries its law. All other numbers are drawn as ever.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import ArrayLike

from ...mechanisms.draws import Draws, Floats, Law, Outcome
from ...mechanisms.noise import Gaussian, Laplace


@dataclass(frozen=True)
class CallSite:
    """Where a noisy call is written.

    Attributes
    ----------
    file : str
        Relative to the package for our own code, to the current folder where the file lies in it.
    line : int
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


class Recorder(Protocol):
    """What a watched generator reports to: a tape."""

    #: Where noise was drawn for a value, by `spot`: there 0 is a value too.
    direct: set[object]
    #: Where bare noise was drawn that was used before it was added to a value.
    alone: list[CallSite]
    #: The runs that a call serves: on the last axis, if there are several.
    runs: int

    def noise(
        self, law: Law, shape: tuple[int, ...], value: object, name: str = "", where: CallSite | None = None
    ) -> object:
        """Return the noise of a noisy call."""

    def outcome(self, law: Callable[[], object], sample: Callable[[Draws], Outcome], name: str = "") -> Outcome:
        """Return the outcome of a noisy call."""

    def measured(self, law: object, value: object, make: Callable[[], object], name: str) -> object:
        """Return what another's code released of a value: a noisy call."""

    def stray(self, where: CallSite | None = None) -> None:
        """Note a draw that is no noise call, or noise that is used otherwise than for one value."""

    def zero(self) -> None:
        """Note that the next noise call has 0 as its value."""

    def place(self) -> CallSite:
        """Return where the code under audit is."""

    def spot(self) -> object:
        """Return the same to the instruction: a line may draw noise for a value, and bare noise too."""


class UnreadNoiseError(ValueError):
    """Noise was drawn in a way that a trace cannot read."""


class Bare:
    """Noise that was drawn with no value, until it is added to one.

    It may be negated and multiplied by numbers before. Used otherwise it is noise for 0. When it is added again, it or
    a multiple of it, it is the same noise: nothing more is recorded, and in a replay the sum shows by what the first
    call's input was moved. So it is where one number is added to several: it is noise for the first of them.
    """

    def __init__(self, recorder: Recorder, law: Callable[[float], Law], scale: float, size: ArrayLike | None) -> None:
        self.recorder, self.law, self.scale, self.size = recorder, law, scale, size
        self.where = recorder.place()
        self.factor = 1.0
        self.cell: list[float | Floats] = []  # shared by all multiples

    @property
    def drawn(self) -> float | Floats | None:
        """The noise before it is multiplied, once it was drawn."""
        return self.cell[0] if self.cell else None

    def settled(self) -> float | Floats:
        """Return the noise as a number or an array: noise for 0, unless it was added to a value before."""
        self.recorder.stray(self.where)
        if self.drawn is None:
            self.recorder.alone.append(self.where)
            self._drawn_for(0.0)
        return self.factor * self.cell[0]

    def _drawn_for(self, value: object) -> None:
        """Draw the noise for a value, before it is multiplied."""
        scale = self.scale * abs(self.factor)
        noise = noisy(self.recorder, self.law(scale), value, self.size, "noise", self.where)[1]
        self.cell.append(noise / self.factor)

    def _added(self, value: object) -> object:
        if self.drawn is None and not isinstance(value, Bare):
            if not np.any(settled(value)):  # such as the beginning of a sum
                self.recorder.zero()
            self._drawn_for(self._first_of(value))
            return settled(value) + self.factor * self.cell[0]
        return settled(value) + self.settled()

    def _first_of(self, value: object) -> object:
        """Return what each number of the noise is for: of several values that it is added to, the first."""
        exact = np.asarray(settled(value))
        shape = () if self.size is None else tuple(np.atleast_1d(self.size).tolist())
        full = np.broadcast_shapes(exact.shape, shape)
        if full == shape or 0 in full:
            return value
        self.recorder.stray(self.where)  # one number of noise for several values
        rows = np.broadcast_to(exact, full)[(0,) * (len(full) - len(shape))]
        return rows[tuple(slice(1) if n == 1 else slice(None) for n in shape)]

    def _scaled(self, factor: Any) -> object:
        if self.drawn is not None or isinstance(factor, Bare) or np.ndim(factor) or factor == 0:
            return self.settled() * settled(factor)
        scaled = Bare(self.recorder, self.law, self.scale, self.size)
        scaled.where, scaled.factor, scaled.cell = self.where, self.factor * float(factor), self.cell
        return scaled

    def __add__(self, value: object) -> object:
        return self._added(value)

    __radd__ = __add__

    def __sub__(self, value: Any) -> object:
        return self._added(-value)

    def __rsub__(self, value: object) -> object:
        return (-self) + value

    def __neg__(self) -> Any:
        return self._scaled(-1.0)

    def __mul__(self, factor: object) -> object:
        return self._scaled(factor)

    __rmul__ = __mul__

    def __truediv__(self, divisor: object) -> object:
        return self._scaled(1 / settled(divisor))

    def __array__(self, *args: Any, **kwargs: object) -> object:
        return np.asarray(self.settled(), *args)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: object) -> object:
        """Leave sums and products to this class; everything else is computed with the noise as it is."""
        own: dict[object, Callable[[object, object], object]] = {
            np.add: operator.add,
            np.subtract: operator.sub,
            np.multiply: operator.mul,
        }
        if method == "__call__" and ufunc in own and list(kwargs) == ["out"]:  # such as values += noise
            (into,) = cast("tuple[Floats]", kwargs["out"])
            np.copyto(into, settled(ufunc(*inputs)), casting="same_kind")
            return into
        if method == "__call__" and ufunc in own and not kwargs:
            first, second = inputs
            if isinstance(first, Bare):
                return own[ufunc](first, second)
            reflected: dict[object, Callable[[object], object]] = {
                np.add: second.__radd__,
                np.subtract: second.__rsub__,
                np.multiply: second.__rmul__,
            }
            return reflected[ufunc](first)
        return getattr(ufunc, method)(*map(settled, inputs), **kwargs)

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(np.asarray(self.settled()), name)


def settled(value: Any) -> Any:
    """Return a value with bare noise in it, also inside lists and tuples, as numbers."""
    if isinstance(value, Bare):
        return value.settled()
    if type(value) in (list, tuple):
        return type(value)(settled(one) for one in value)
    return value


def _plainly(name: str) -> Callable[..., object]:
    """Return a method that has the noise's number do what it is asked to."""

    def method(self: Bare, *others: object) -> object:
        return getattr(operator, name)(self.settled(), *map(settled, others))

    return method


for _name in ("lt", "le", "gt", "ge", "eq", "ne", "abs", "pow", "floordiv", "mod", "getitem", "matmul"):
    setattr(Bare, f"__{_name}__", _plainly(_name))
for _name, _kind in (("float", float), ("int", int), ("bool", bool), ("iter", iter), ("len", len), ("round", round)):
    setattr(Bare, f"__{_name}__", lambda self, *others, kind=_kind: kind(self.settled(), *others))
for _name in ("str", "format", "hash", "repr"):
    setattr(Bare, f"__{_name}__", lambda self, *others, kind=_name: getattr(self.settled(), f"__{kind}__")(*others))


class Watched(np.random.Generator):
    """A NumPy generator whose Laplace and normal noise is reported.

    Parameters
    ----------
    bits : BitGenerator
        Of all that is not noise.
    recorder : Recorder
        What noise comes from, and what hears of it.
    """

    def __init__(self, bits: np.random.BitGenerator, recorder: Recorder) -> None:
        super().__init__(bits)
        self.recorder = recorder

    def laplace(self, *args: object, **kwargs: object) -> Any:
        """Return noisy values, or bare noise where no value is given."""
        return self._drawn(Laplace, *args, **kwargs)

    def normal(self, *args: object, **kwargs: object) -> Any:
        """Return noisy values, or bare noise where no value is given."""
        return self._drawn(Gaussian, *args, **kwargs)

    def standard_normal(self, size: Any = None, *args: object, **kwargs: object) -> Any:
        """Return bare noise."""
        return Bare(self.recorder, Gaussian, 1.0, size)

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Return watched children."""
        return [Watched(bits, self.recorder) for bits in super().bit_generator.spawn(n_children)]

    @property
    def bit_generator(self) -> np.random.BitGenerator:
        """What numbers are made from, unwatched."""
        self.recorder.stray()
        return super().bit_generator

    def __reduce__(self) -> Any:
        """Return what makes a copy, which is not watched."""
        self.recorder.stray()
        return super().__reduce__()

    def noisy(self, law: Law, value: object, name: str) -> object:
        """Return a value with noise: a noisy call."""
        if not np.any(settled(value)):
            self.recorder.zero()
        return noisy(self.recorder, law, value, None, name)[0]

    def chosen(self, probabilities: object, sample: Callable[[np.random.Generator], object], name: str) -> int:
        """Return the number of an outcome: a noisy call."""
        return int(self.recorder.outcome(lambda: probabilities, lambda draws: np.array(sample(draws.generator)), name))

    def _drawn(self, kind: Callable[[float], Law], *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(("loc", "scale", "size"), args, strict=False)) | kwargs
        loc, scale, size = given.get("loc", 0.0), given.get("scale", 1.0), given.get("size")
        zero = type(loc) in (int, float) and loc == 0
        if zero and np.ndim(scale) == 0 and self.recorder.spot() not in self.recorder.direct:
            return Bare(self.recorder, kind, float(scale), size)
        self.recorder.direct.add(self.recorder.spot())
        return noisy(self.recorder, _law_of(kind, scale), loc, size, "noise")[0]


def _straying(name: str) -> Callable[..., object]:
    """Return a method that draws as the generator does, and says that this is no noise call."""

    def draw(self: Watched, *args: object, **kwargs: object) -> object:
        self.recorder.stray()
        return getattr(np.random.Generator, name)(self, *args, **kwargs)

    return draw


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(Watched):
        setattr(Watched, _name, _straying(_name))


def _law_of(kind: Callable[[float], Law], scale: ArrayLike) -> Law:
    """Return the law of this kind; UnreadNoiseError where its scale is not one number."""
    if np.ndim(scale):
        raise UnreadNoiseError(f"the scale of watched noise must be one number, got {np.asarray(scale).tolist()!r}")
    return kind(float(np.asarray(scale)))


def noisy(
    recorder: Recorder, law: Law, value: object, size: ArrayLike | None, name: str, where: CallSite | None = None
) -> tuple[float | Floats, float | Floats]:
    """Return a value with noise, and the noise alone, both in the value's shape or that of `size`."""
    exact = np.asarray(settled(value))
    shape = np.broadcast_shapes(exact.shape, () if size is None else tuple(np.atleast_1d(size).tolist()))
    if recorder.runs > 1 and shape[-1:] != (recorder.runs,):
        raise UnreadNoiseError(f"the watched noise of a batched target must have the shape (..., runs), got {shape}")
    column = np.broadcast_to(exact, shape) if recorder.runs > 1 else np.broadcast_to(exact, shape).reshape(-1, 1)
    drawn = np.asarray(recorder.noise(law, column.shape, column, name, where)).reshape(shape)
    with np.errstate(invalid="ignore", over="ignore"):  # of infinite values
        made = exact + drawn
    return (made, drawn) if shape else (made.item(), drawn.item())
