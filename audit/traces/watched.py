"""A generator that is watched: the Laplace and normal noise that is drawn from it is followed as linear forms.

A plain class or a mechanism of (data, rng) is given one in a trace. All other numbers are drawn as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...mechanisms.draws import Law
from ...mechanisms.noise import Gaussian, Laplace

if TYPE_CHECKING:
    from .tape import Tape


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


class UnreadNoiseError(ValueError):
    """Noise was drawn in a way that a trace cannot read."""


class Watched(np.random.Generator):
    """A NumPy generator whose Laplace and normal noise is reported.

    Parameters
    ----------
    bits : BitGenerator
        Of all that is not noise.
    recorder : Tape
        What noise comes from, and what hears of it.
    """

    def __init__(self, bits: np.random.BitGenerator, recorder: Tape) -> None:
        super().__init__(bits)
        self.recorder = recorder
        recorder.watch(bits)

    def laplace(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return a location with noise."""
        return self.recorder.added(Laplace, loc, scale, size, "noise")

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        """Return a location with noise."""
        return self.recorder.added(Gaussian, loc, scale, size, "noise")

    def standard_normal(self, size: Any = None, *args: object, **kwargs: object) -> Any:
        """Return noise."""
        return self.recorder.added(Gaussian, 0.0, 1.0, size, "noise")

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
        if isinstance(law, Laplace | Gaussian):
            return self.recorder.added(type(law), value, _scale(law), None, name)
        exact = np.asarray(value)  # whole numbers
        noise = np.asarray(self.recorder.noise(law, (exact.size, 1), exact.reshape(-1, 1), name)).reshape(exact.shape)
        return exact + noise if exact.shape else (exact + noise).item()

    def chosen(self, probabilities: object, sample: Callable[[np.random.Generator], object], name: str) -> int:
        """Return the number of an outcome: a noisy call."""
        return int(self.recorder.outcome(lambda: probabilities, lambda draws: np.array(sample(draws.generator)), name))


def _scale(law: Laplace | Gaussian) -> float:
    return float(law.scale if isinstance(law, Laplace) else law.sigma)


def _straying(name: str) -> Callable[..., object]:
    """Return a method that draws as the generator does, and says that this is no noise call."""

    def draw(self: Watched, *args: object, **kwargs: object) -> object:
        self.recorder.stray()
        return getattr(np.random.Generator, name)(self, *args, **kwargs)

    return draw


for _name in dir(np.random.Generator):
    if not _name.startswith("_") and _name not in vars(Watched):
        setattr(Watched, _name, _straying(_name))
