"""A privacy claim: what is promised, about which losses, under which neighbour relation, and where it is written."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ..errors import must_be, must_be_one_of
from .measures.approximate import ApproxDP
from .measures.measure import Measure
from .relations.relation import Relation, by_function
from .view import VIEWS, View

#: The loss sets by name; `learners.problems.losses` holds their geometry.
LOSS_SET_NAMES = ("unit", "symmetric", "l1-ball", "l2-ball", "lipschitz")
#: What stands for a loss set of one's own: numbers between two ends, any finite ones, or any at all.
OWN_LOSSES = ("box:LOW:HIGH", "finite", "any")
#: The relations of pairs of losses, which are searched without inputs.
NEIGHBOURS = ("replace", "zero-out")
#: What an exception is: no output, or one like any other.
RAISING = ("error", "outcome")
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
        the unit balls of linear losses, "lipschitz" for convex functions with gradients of norm at most 1. Or of one's
        own: "box:-3:3" for [-3, 3], "finite" for all finite numbers, "any" for NaN and infinities as well.
    neighbours : str
        The relation that makes two inputs neighbours, by its words (`mechanisms.relations`): "replace" (one record, or
        one round's whole loss, is replaced), "zero-out" (it becomes 0), "replace:3", "user", "l2:0.5" and others; or
        "function NAME" (as that function says). Without inputs a learner takes the first two.
    surface : str
        What the adversary sees: "actions"; "release", the noisy quantities whose privacy the proof composes, as far as
        actions depend on them; or "publication", all of them as a paper publishes them, those of the last round too.
    raising : str
        What an exception of the target is: "error", no output; or "outcome", one like any other, its type without its
        message.
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
    raising: str
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
        raising: str = "error",
        source: str = "",
    ) -> None:
        fields: dict[str, object] = {"losses": losses, "neighbours": neighbours, "surface": surface}
        fields["raising"] = raising
        if losses not in LOSS_SET_NAMES:
            loss_range(losses)
        for name, names in (("surface", VIEWS), ("raising", RAISING)):
            if fields[name] not in names:
                raise must_be_one_of(name, names, fields[name])
        if not by_function(neighbours):
            fields["neighbours"] = str(Relation.parse(neighbours))
        fields |= {"measure": _stated(epsilon, delta, measure), "source": source}
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    @property
    def relation(self) -> Relation | None:
        """The neighbour relation; None where a function of the user's says which inputs are neighbours."""
        return None if by_function(self.neighbours) else Relation.parse(self.neighbours)

    @property
    def view(self) -> View:
        """What the adversary sees."""
        return VIEWS[self.surface]

    @property
    def epsilon(self) -> float:
        """In nats: what is claimed, or what a claim in another measure implies at `delta`."""
        return self.measure.stated[0]

    @property
    def delta(self) -> float:
        """The delta of `epsilon`."""
        return self.measure.stated[1]


def loss_range(losses: object) -> tuple[float, float]:
    """Return the ends of a loss set of one's own: `OWN_LOSSES`.

    Raises
    ------
    ValueError
        For another text, with those that are known.

    Examples
    --------
    >>> loss_range("box:-3:3"), loss_range("finite")
    ((-3.0, 3.0), (-inf, inf))
    """
    if losses in ("finite", "any"):
        return -math.inf, math.inf
    kind, *ends = losses.split(":") if isinstance(losses, str) else [""]
    if kind != "box":
        raise must_be_one_of("losses", (*LOSS_SET_NAMES, *OWN_LOSSES), losses)
    try:
        low, high = map(float, ends)
    except ValueError:
        low, high = math.nan, math.nan
    if not -math.inf < low < high < math.inf:
        raise must_be("losses", "box:LOW:HIGH with two finite numbers, the lower one first", losses)
    return low, high


def check_claim(claim: object) -> None:
    """Raise ValueError unless it is a `Claim`."""
    if not isinstance(claim, Claim):
        example = f"Claim(measure={claim!r})" if isinstance(claim, Measure) else "Claim(epsilon=1.0)"
        raise must_be("claim", f"a Claim, such as {example}", claim)


def _stated(epsilon: float | None, delta: float | None, measure: Measure | None) -> Measure:
    """Return the measure that is claimed."""
    if measure is None:
        if epsilon is None:
            raise ValueError("a claim needs an epsilon or a measure, got neither")
        return ApproxDP(epsilon, 0.0 if delta is None else delta)
    if not isinstance(measure, Measure):
        raise must_be("measure", "a Measure, such as GDP(1.0)", measure)
    if epsilon is None and delta is None:
        return measure
    if not isinstance(measure, ApproxDP):
        raise ValueError(f"a claim has an epsilon and a delta, or a measure, got both and {measure!r}")
    return ApproxDP(measure.epsilon if epsilon is None else epsilon, measure.delta if delta is None else delta)
