"""A mechanism of the zoo: its claim, its fault if it has one, and the neighbouring inputs it is audited on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any

from .measures.approximate import ApproxDP
from .measures.measure import Measure

Inputs = tuple[Sequence[float], Sequence[float]]


def patterns(dimension: int, *, differ: str) -> tuple[Inputs, ...]:
    """Return the standard neighbouring inputs of Ding et al. 2018, which DP-Sniper uses too.

    Parameters
    ----------
    dimension : int
        The number of query answers.
    differ : str
        "one" answer differs by at most 1, or "all" may.
    """
    n, half = dimension, dimension // 2
    rest = n - half
    base = [1] * n
    pairs = [(base, [0] + [1] * (n - 1)), (base, [2] + [1] * (n - 1))]
    if differ == "all" and n > 1:
        pairs += [
            (base, [2] + [0] * (n - 1)),
            (base, [0] + [2] * (n - 1)),
            (base, [2] * half + [0] * rest),
            (base, [2] * n),
            (base, [0] * n),
            ([1] * half + [0] * rest, [0] * half + [1] * rest),
        ]
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A mechanism of the zoo.

    Attributes
    ----------
    name : str
        Its target on the command line, `mechanisms/...`.
    make : type
        Its class, a dataclass; its fields are its parameters.
    epsilon : float
        The default of its parameter epsilon, if it has one.
    fault : str
        What is broken; empty if nothing is.
    bits : bool
        Whether only the low-order bits of its outputs show the fault: in real arithmetic the claim is true.
    dimension : int
        The number of query answers in its inputs.
    differ : str
        "one" or "all": which answers of neighbouring inputs differ.
    source : str
    inputs : tuple of (left, right)
        The neighbouring inputs, where they are none of the standard ones.
    """

    name: str
    make: type[Any]
    epsilon: float = 1.0
    fault: str = ""
    bits: bool = False
    dimension: int = 1
    differ: str = "one"
    source: str = ""
    inputs: tuple[Inputs, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(field.name for field in fields(self.make))

    def build(self, epsilon: float | None = None, **parameters: object) -> Callable[..., Any]:
        """Return the mechanism; one that has no parameter epsilon, as RAPPOR with its rates, takes no notice of it."""
        if "epsilon" in self.parameters:
            parameters["epsilon"] = self.epsilon if epsilon is None else epsilon
        mechanism: Callable[..., Any] = self.make(**parameters)
        return mechanism

    def claimed(self, epsilon: float | None = None, **parameters: object) -> float:
        """Return the claimed epsilon."""
        return claim_of(self.build(epsilon, **parameters)).stated[0]

    @property
    def pairs(self) -> tuple[Inputs, ...]:
        """The neighbouring inputs to search."""
        return self.inputs or patterns(self.dimension, differ=self.differ)

    @property
    def difference(self) -> str:
        """In what neighbouring inputs differ, in words."""
        if self.inputs:
            return "one number is replaced"
        return f"{'each' if self.differ == 'all' else 'one'} number changes by at most 1"

    def is_audited_on(self, left: object, right: object) -> bool:
        """Tell whether two inputs are a pair of its own."""
        return any([left, right] == [list(side) for side in pair] for pair in self.pairs)

    @property
    def expected(self) -> str:
        """The expected verdict of an audit of the claim, with its bits where only they show the fault."""
        return "falsified" if self.fault else "survived"


def claim_of(mechanism: Any) -> Measure:
    """Return what a mechanism of the zoo claims: its own statement where it has one, else its parameter epsilon."""
    measure: Measure | None = getattr(mechanism, "measure", None)
    claimed = getattr(mechanism, "claimed", None)
    return measure or ApproxDP(mechanism.epsilon if claimed is None else claimed)
