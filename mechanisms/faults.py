"""Planted faults: a generator that draws weaker or stronger noise, so that an audit shows what it can find.

The randomness of a target is the audit's own, so its noise can be made weaker without touching its code. A factor f
divides the deviation of every draw from its location. Where a draw is only an ingredient, as `random()` is, `kind`
says which way it is moved. A factor below 1 stretches the noise: rare branches become common, and each run knows how
much more likely its draws were made (`Fault.weights`).
"""

from __future__ import annotations

import copy
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import FrameType
from typing import Any

import numpy as np
from scipy import special

from .draws import Draws

#: Which way uniform numbers are moved: to 1/2 or away from it on the logit scale, or to either end.
NEARER, FARTHER, LOW, HIGH = KINDS = ("nearer", "farther", "low", "high")
#: Draws with the random numbers that the run began with.
REUSED = "reused"
#: Ranges of integers of at most so many values are choices; of more than so many they are stretched at a site.
FEW_VALUES, MANY_VALUES = 16, 1_000
#: Stretched uniforms this near to 0 or 1 are drawn anew: in double precision such numbers are artefacts.
NEAREST_END = 1e-12
#: The largest number that `random` returns.
_BELOW_ONE = 1 - 2.0**-53
_PACKAGE = __name__.partition(".")[0]
#: Modules between a draw and the line that asked for it.
_PASSED_MODULES = {
    f"{_PACKAGE}.mechanisms.{name}" for name in ("faults", "global_random", "primitives", "draws", "noise")
}


@dataclass(frozen=True)
class Fault:
    """A fault to plant in the noise of a target.

    Attributes
    ----------
    factor : float
        Divides the noise; infinite where draws are missing, below 1 where noise is stretched.
    kind : str
        One of `KINDS` for uniform draws, or `REUSED`.
    site : str or None
        FILE:LINE of the draws that are faulty; None for all of them.
    places : list of str, optional
        Collects the site of each draw.
    weights : list of float, optional
        Collects for each run the logarithm of the probability of its draws over that by the stretched laws.
    """

    factor: float
    kind: str = NEARER
    site: str | None = None
    places: list[str] | None = field(default=None, compare=False, repr=False)
    weights: list[float] | None = field(default=None, compare=False, repr=False)

    def generator(self, rng: np.random.Generator) -> FaultyGenerator:
        """Return a faulty generator on the bits of another."""
        return FaultyGenerator(rng.bit_generator, self)


class FaultyGenerator(np.random.Generator):
    """A NumPy generator with a fault in its draws.

    Parameters
    ----------
    bits : BitGenerator
    fault : Fault
    run : int, optional
        The index of the run in `Fault.weights`; a new run by default.

    Examples
    --------
    >>> rng = FaultyGenerator(np.random.PCG64(0), Fault(2.0))
    >>> rng.normal(5.0) == 5 + np.random.default_rng(0).normal() / 2
    True
    """

    def __init__(self, bits: np.random.BitGenerator, fault: Fault, run: int | None = None) -> None:
        super().__init__(bits)
        self.fault = fault
        self.plain = np.random.Generator(bits)  # what it calls inside, such as `random` by `choice`, has no fault
        self.first = copy.deepcopy(bits) if fault.kind == REUSED else None
        if fault.weights is not None and run is None:
            fault.weights.append(0.0)
            run = len(fault.weights) - 1
        self.run = run

    def spawn(self, n_children: int) -> list[np.random.Generator]:
        """Return faulty children."""
        return [FaultyGenerator(child.bit_generator, self.fault, self.run) for child in self.plain.spawn(n_children)]

    def __reduce__(self) -> Any:
        """Return what makes a copy with the same fault."""
        return FaultyGenerator, (copy.deepcopy(self.bit_generator), self.fault, self.run)

    def is_faulty(self) -> bool:
        """Return whether the draw that is being made has the fault; note its place."""
        fault = self.fault
        if fault.site is None and fault.places is None:
            return True
        place = _place(sys._getframe(1))
        if fault.places is not None:
            fault.places.append(place)
        return fault.site in (None, place)

    def drawn(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Return a draw without a fault; of reused numbers, one from where the run began, this one's being spent."""
        value = getattr(self.plain, name)(*args, **kwargs)
        if self.first is None:
            return value
        return getattr(np.random.Generator(copy.deepcopy(self.first)), name)(*args, **kwargs)

    def weigh(self, log_ratio: Callable[[], Any]) -> None:
        """Note how much likelier a draw is by its own law than by the stretched one."""
        if self.fault.weights is not None and self.run is not None:
            self.fault.weights[self.run] += float(np.sum(log_ratio()))

    def scaled(self, name: str, *args: Any, center: Any = 0.0, out: Any = None, **kwargs: Any) -> Any:
        """Return a draw whose deviation from a center is divided by the factor."""
        if not self.is_faulty():
            return getattr(self.plain, name)(*args, **kwargs | ({} if out is None else {"out": out}))
        value, factor = self.drawn(name, *args, **kwargs), self.fault.factor
        squeezed = center + (value - center) / factor
        self.weigh(lambda: _log_ratio(name, args, kwargs, value - center, factor))
        if out is None:
            return squeezed
        out[...] = squeezed
        return out

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        """Return uniform numbers, moved."""
        if not self.is_faulty():
            return self.plain.random(size, dtype, out)
        numbers = self.moved(out.shape if size is None and out is not None else size)
        if out is not None:
            out[...] = numbers
            return out
        return numbers if size is None else numbers.astype(dtype, copy=False)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        """Return uniform numbers of a range, moved."""
        if not self.is_faulty():
            return self.plain.uniform(low, high, size)
        low, high = (bound if np.isscalar(bound) else np.asarray(bound) for bound in (low, high))
        shape = size if size is not None else np.broadcast_shapes(np.shape(low), np.shape(high)) or None
        return low + (high - low) * self.moved(shape)

    def moved(self, size: Any) -> Any:
        """Return uniform numbers of a shape, moved as the fault's kind says."""
        factor, kind = self.fault.factor, self.fault.kind
        u = self.drawn("random", size)
        if kind == LOW:
            return np.maximum(1 - _BELOW_ONE, 1 - (1 - u) * factor)
        if kind == HIGH:
            return np.minimum(_BELOW_ONE, u * factor)
        if kind == REUSED:
            return u
        power = factor if kind == FARTHER else 1 / factor
        result = _on_logits(u, power)
        if factor < 1:
            result = self._redrawn(result, power)
        return result

    def _redrawn(self, u: Any, power: float) -> Any:
        """Return stretched uniform numbers, those at the ends drawn anew."""
        values = np.atleast_1d(np.array(u))
        while (ends := (values < NEAREST_END) | (values > 1 - NEAREST_END)).any():
            values[ends] = _on_logits(self.plain.random(int(ends.sum())), power)
        end = special.expit(special.logit(NEAREST_END) / power)
        logits = special.logit(values)
        self.weigh(lambda: _log_density(logits) - _log_density(logits / power) + np.log(power * (1 - 2 * end)))
        return values if np.ndim(u) else float(values[0])

    def integers(
        self, low: Any, high: Any = None, size: Any = None, dtype: Any = np.int64, endpoint: Any = False
    ) -> Any:
        """Return integers: of few values moved to an end, of many stretched where their site is."""
        fault = self.fault
        if not self.is_faulty() or np.ndim(low) or np.ndim(high):
            return self.plain.integers(low, high, size, dtype, endpoint)
        value = self.drawn("integers", low, high, size, dtype, endpoint)
        lowest, count = (0, int(low)) if high is None else (int(low), int(high) - int(low))
        count += bool(endpoint)
        if count <= FEW_VALUES and fault.kind in (LOW, HIGH):
            return self._at_end(value, lowest if fault.kind == LOW else lowest + count - 1)
        if count > MANY_VALUES and fault.site is not None and fault.factor < 1:
            return self._stretched(value, lowest, count)
        return value

    def _at_end(self, value: Any, end: int) -> Any:
        """Return values, each replaced by one end with probability 1 - 1 / factor."""
        at_end = self.plain.random(np.shape(value) or None) < 1 - 1 / self.fault.factor
        if np.ndim(value):
            return np.where(at_end, end, value).astype(np.asarray(value).dtype)
        return type(value)(end) if at_end else value

    def _stretched(self, value: Any, lowest: int, count: int) -> Any:
        """Return integers of a wide range with more of them near its ends."""
        power = 1 / self.fault.factor
        u = (np.asarray(value, dtype=float) - lowest + self.plain.random(np.shape(value))) / count
        cells = np.minimum(np.floor(_on_logits(u, power) * count), count - 1)

        def log_ratio() -> Any:
            ends = special.expit(special.logit(np.stack([cells, cells + 1]) / count) / power)
            return -np.log(count) - np.log(np.maximum(ends[1] - ends[0], 1e-300))

        self.weigh(log_ratio)
        integers = cells.astype(np.int64) + lowest
        return integers.astype(np.asarray(value).dtype) if np.ndim(value) else type(value)(integers)

    def geometric(self, p: Any, size: Any = None) -> Any:
        """Return geometric numbers whose tails are as those of noise divided by the factor."""
        if not self.is_faulty():
            return self.plain.geometric(p, size)
        p = p if np.isscalar(p) else np.asarray(p)
        faulty = np.maximum(1 - (1 - p) ** self.fault.factor, 1e-300)
        value = self.drawn("geometric", faulty, size)
        self.weigh(lambda: np.log(p / faulty) + (value - 1.0) * (np.log1p(-p) - np.log1p(-faulty)))
        return value

    def choice(self, a: Any, size: Any = None, replace: bool = True, p: Any = None, *args: Any, **kwargs: Any) -> Any:
        """Return choices by sharper or flatter probabilities; uniform ones of few values moved to an end."""
        kind = self.fault.kind
        if not self.is_faulty():
            return self.plain.choice(a, size, replace, p, *args, **kwargs)
        if p is not None:
            sharper = _sharpened(p, self.fault.factor)
            count = np.count_nonzero(sharper)
            if not replace and size is not None and count < np.prod(size):  # it may not run out of values
                return self.plain.choice(a, size, replace, p, *args, **kwargs)
            places = self.drawn("choice", len(sharper), size, replace, sharper)
            probabilities = np.asarray(p, dtype=float)
            self.weigh(lambda: np.log(probabilities[places]) - np.log(sharper[places]))
            return _taken(a, places)
        values = int(a) if np.ndim(a) == 0 else len(a)
        if values <= FEW_VALUES and kind in (LOW, HIGH) and (replace or size is None):
            return _taken(a, self._at_end(self.plain.integers(values, size=size), 0 if kind == LOW else values - 1))
        return self.drawn("choice", a, size, replace, p, *args, **kwargs)

    def multinomial(self, n: Any, pvals: Any, size: Any = None) -> Any:
        """Return counts by sharper or flatter probabilities."""
        if not self.is_faulty():
            return self.plain.multinomial(n, pvals, size)
        return self.drawn("multinomial", n, _sharpened(pvals, self.fault.factor), size)

    def binomial(self, n: Any, p: Any, size: Any = None) -> Any:
        """Return counts by a sharper probability; of fair coins nearer to their mean, one coin at an end."""
        if not self.is_faulty():
            return self.plain.binomial(n, p, size)
        fault = self.fault
        if np.all(np.equal(p, 0.5)):
            value = self.drawn("binomial", n, p, size)
            if np.all(np.equal(n, 1)) and fault.kind in (LOW, HIGH):
                return self._at_end(value, int(fault.kind == HIGH))
            return _whole(value, np.multiply(n, p), fault.factor, n)
        law = np.stack([np.asarray(p, dtype=float), 1 - np.asarray(p, dtype=float)], axis=-1)
        sharper = _sharpened(law, fault.factor)[..., 0]
        value = self.drawn("binomial", n, sharper if sharper.ndim else float(sharper), size)
        self.weigh(
            lambda: special.xlogy(value, p / sharper) + special.xlogy(np.subtract(n, value), (1 - p) / (1 - sharper))
        )
        return value

    def poisson(self, lam: Any = 1.0, size: Any = None) -> Any:
        """Return counts nearer to their mean."""
        if not self.is_faulty():
            return self.plain.poisson(lam, size)
        return _whole(self.drawn("poisson", lam, size), lam, self.fault.factor, None)

    def multivariate_normal(self, mean: Any, cov: Any, size: Any = None, **kwargs: Any) -> Any:  # type: ignore[override]
        """Return vectors nearer to their mean."""
        return self.scaled("multivariate_normal", mean, cov, size, center=np.asarray(mean, dtype=float), **kwargs)

    def lognormal(self, mean: Any = 0.0, sigma: Any = 1.0, size: Any = None) -> Any:
        """Return exponentials of normal noise."""
        return np.exp(self.scaled("normal", mean, sigma, size, center=mean))


def _located(name: str) -> Callable[..., Any]:
    def draw(self: FaultyGenerator, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        center = loc if np.isscalar(loc) else np.asarray(loc)
        return self.scaled(name, loc, scale, size, center=center)

    return draw


def _at_zero(name: str) -> Callable[..., Any]:
    def draw(self: FaultyGenerator, *args: Any, **kwargs: Any) -> Any:
        return self.scaled(name, *args, **kwargs)

    return draw


#: Laws with a location, and laws around 0.
_LOCATED = ("laplace", "normal", "logistic", "gumbel")
_AT_ZERO = (
    *("standard_normal", "standard_t", "standard_cauchy", "exponential", "standard_exponential", "gamma"),
    *("standard_gamma", "chisquare", "rayleigh", "weibull", "pareto"),
)
for _names, _make in ((_LOCATED, _located), (_AT_ZERO, _at_zero)):
    for _name in _names:
        setattr(FaultyGenerator, _name, _make(_name))


class FaultyDraws(Draws):
    """The draws of a block whose generator is faulty, for targets that play many runs at once."""

    def __init__(self, draws: Draws, fault: Fault) -> None:
        super().__init__(*draws.key)
        self.own, self.fault = draws, fault
        self.generator = fault.generator(draws.generator)

    def continued(self) -> Draws:
        """Return the same, continued."""
        return FaultyDraws(self.own.continued(), self.fault)

    def run_generator(self, run: int) -> np.random.Generator:
        """Return the faulty generator of one run."""
        return self.fault.generator(self.own.run_generator(run))


def _place(frame: FrameType | None) -> str:
    """Return the line of the code under audit that draws."""
    while frame is not None:
        module = str(frame.f_globals.get("__name__", ""))
        if module.partition(".")[0] not in ("numpy", "random") and module not in _PASSED_MODULES:
            return f"{frame.f_code.co_filename}:{frame.f_lineno}"
        frame = frame.f_back
    return "?"


def _on_logits(u: Any, power: float) -> Any:
    """Return uniform numbers whose logits are multiplied."""
    if isinstance(u, float):  # special functions take microseconds for one number
        if u <= 0.0 or power == 0:
            return u if power else 0.5
        odds = power * (math.log(u) - math.log1p(-u))
        return min(_BELOW_ONE, 1 / (1 + math.exp(-odds))) if odds > -700 else 0.0
    return np.minimum(_BELOW_ONE, special.expit(np.where(u > 0, special.logit(u), -750.0) * power))


def _log_density(logits: Any) -> Any:
    """Return the log density of the logistic law."""
    return special.log_expit(logits) + special.log_expit(-logits)


def _sharpened(p: Any, factor: float) -> Any:
    """Return probabilities to a power, normalised."""
    values = np.asarray(p, dtype=float)
    powered = (values / values.max(axis=-1, keepdims=True)) ** factor
    return powered / powered.sum(axis=-1, keepdims=True)


def _taken(a: Any, places: Any) -> Any:
    """Return the chosen values."""
    return places if np.ndim(a) == 0 else np.asarray(a)[places]


def _whole(value: Any, mean: Any, factor: float, highest: Any) -> Any:
    """Return whole numbers whose deviation from the mean is divided and rounded, within their range."""
    integers = np.clip(np.rint(mean + (value - mean) / factor), 0, highest).astype(np.int64)
    return integers if np.ndim(value) else int(integers)


#: The standard log densities of noise, up to a constant: of its arguments' first number where the law has a shape.
_LOG_DENSITIES: dict[str, Callable[..., Any]] = {
    "laplace": lambda z: -np.abs(z),
    "normal": lambda z: -(z**2) / 2,
    "standard_normal": lambda z: -(z**2) / 2,
    "logistic": _log_density,
    "gumbel": lambda z: -z - np.exp(-z),
    "standard_cauchy": lambda z: -np.log1p(z**2),
    "exponential": lambda z: -z,
    "standard_exponential": lambda z: -z,
}


def _log_ratio(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], deviation: Any, factor: float) -> Any:
    """Return log of density over stretched density at a stretched draw; nan where the law is not in the table."""
    density = _LOG_DENSITIES.get(name)
    if density is None:
        return math.nan
    place = 1 if name in _LOCATED else 0
    scaled = name in (*_LOCATED, "exponential")
    scale = (args[place] if len(args) > place else kwargs.get("scale", 1.0)) if scaled else 1.0
    z = np.asarray(deviation) / np.asarray(scale)
    return density(z / factor) - density(z) - math.log(factor)


#: Functions of legacy NumPy that have another name as methods of a generator.
_LEGACY = {"random_sample": "random", "ranf": "random", "sample": "random"}


def legacy_draws(rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of `np.random`, and methods of `RandomState`, that draw noise, on a generator."""
    for name in (
        *_LOCATED,
        *_AT_ZERO,
        "uniform",
        "random",
        "geometric",
        "choice",
        "multinomial",
        "binomial",
        "poisson",
    ):
        yield name, getattr(rng, name)
    for name, method in _LEGACY.items():
        yield name, getattr(rng, method)
    yield "rand", lambda *shape: rng.random(shape or None)
    yield "randn", lambda *shape: rng.standard_normal(shape or None)
    yield "randint", lambda low, high=None, size=None, dtype=int: rng.integers(low, high, size, dtype)


def python_draws(rng: np.random.Generator) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Yield the functions of `random` that draw noise, on a generator."""
    yield "random", lambda: float(rng.random())
    yield "uniform", lambda a, b: float(rng.uniform(a, b))
    yield "gauss", lambda mu=0.0, sigma=1.0: float(rng.normal(mu, sigma))
    yield "normalvariate", lambda mu=0.0, sigma=1.0: float(rng.normal(mu, sigma))
    yield "expovariate", lambda lambd=1.0: float(rng.exponential(1 / lambd))
    yield "randint", lambda a, b: int(rng.integers(a, b + 1))
    yield "choice", lambda values: values[int(rng.integers(len(values)))]


class FaultyState(np.random.RandomState):
    """A legacy random state on a faulty generator, for libraries that take no other."""

    def __init__(self, rng: FaultyGenerator) -> None:
        super().__init__(rng.bit_generator)
        for name, draw in legacy_draws(rng):
            setattr(self, name, draw)


def missing(site: str) -> Fault:
    """Return the fault that the draws of a site are left out: each is its location."""
    return Fault(math.inf, NEARER, site)
