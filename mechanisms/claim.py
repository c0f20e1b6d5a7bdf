"""A privacy claim: what is promised, about which losses, under which neighbour relation, and where it is written."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .measures.approximate import ApproxDP
from .measures.measure import Measure

#: The loss sets by name; `learners.losses` holds their geometry.
LOSS_SET_NAMES = ("unit", "symmetric", "l1-ball", "l2-ball", "lipschitz")
NEIGHBOURS = ("replace", "zero-out")
SURFACES = ("actions", "release", "publication")
#: What an audit may be expected to find.
EXPECTATIONS = ("falsified", "survived")


@dataclass(frozen=True, kw_only=True, init=False)
class Claim:
    """A privacy claim about the released transcript of a learner.

    Parameters
    ----------
    epsilon : float, optional
        Of a claim of (epsilon, delta)-differential privacy: in nats, finite, at least 0, above 0 where delta is 0.
    delta : float, optional
        In [0, 1).
    measure : Measure, optional
        What is claimed in any measure, in place of epsilon and delta. Beside an `ApproxDP`, epsilon and delta replace
        its own, so that `dataclasses.replace` takes them.
    losses : str
        The loss set: "unit" for [0, 1] or "symmetric" for [-1, 1] on every coordinate, "l1-ball" or "l2-ball" for
        the unit balls of linear losses, "lipschitz" for convex functions with gradients of norm at most 1.
    neighbours : str
        "replace" (one round's whole loss is replaced) or "zero-out" (it becomes 0).
    surface : str
        What the adversary sees: "actions"; "release", the noisy quantities whose privacy the proof composes, as far as
        actions depend on them; or "publication", all of them as a paper publishes them, those of the last round too.
    source : str
        Paper and theorem.

    Raises
    ------
    ValueError
        For a value outside its range, naming the value.

    Examples
    --------
    >>> Claim(epsilon=1.0, losses="symmetric").neighbours
    'replace'
    >>> Claim(epsilon=1.0).measure
    ApproxDP(epsilon=1.0, delta=0.0)
    >>> Claim(epsilon=-1.0)
    Traceback (most recent call last):
    ValueError: epsilon must be positive and finite, got -1.0
    """

    measure: Measure
    losses: str
    neighbours: str
    surface: str
    source: str

    def __init__(
        self,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        measure: Measure | None = None,
        losses: str = "unit",
        neighbours: str = "replace",
        surface: str = "actions",
        source: str = "",
    ) -> None:
        fields: dict[str, Any] = {"losses": losses, "neighbours": neighbours, "surface": surface}
        for (name, value), known in zip(fields.items(), (LOSS_SET_NAMES, NEIGHBOURS, SURFACES), strict=True):
            if value not in known:
                raise ValueError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        fields |= {"measure": _stated(epsilon, delta, measure), "source": source}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def epsilon(self) -> float:
        """In nats: what is claimed, or what a claim in another measure implies at `delta`."""
        return self.measure.stated[0]

    @property
    def delta(self) -> float:
        """The delta of `epsilon`."""
        return self.measure.stated[1]


def _stated(epsilon: float | None, delta: float | None, measure: Measure | None) -> Measure:
    """Return the measure that is claimed."""
    if measure is None:
        if epsilon is None:
            raise ValueError("a claim needs an epsilon or a measure, got neither")
        return ApproxDP(epsilon, delta or 0.0)
    if not isinstance(measure, Measure):
        raise ValueError(f"measure must be a Measure, such as GDP(1.0), got {measure!r}")
    if epsilon is None and delta is None:
        return measure
    if not isinstance(measure, ApproxDP):
        raise ValueError(f"a claim has an epsilon and a delta, or a measure, got both and {measure!r}")
    return ApproxDP(measure.epsilon if epsilon is None else epsilon, measure.delta if delta is None else delta)
