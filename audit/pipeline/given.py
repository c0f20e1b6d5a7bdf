"""What is given beside a target and a claim: the game, the worlds or their source, and how the target draws."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..verdicts.blind_spot import power_of

if TYPE_CHECKING:
    from ..attacks.outputs.own_score import ScoreFunction
    from ..play.pairs import Pair
    from ..spaces.candidates import Space
    from .blind_spot_search import WeakenChoice, Weakening


@dataclass(frozen=True, kw_only=True)
class Given:
    """The game and the worlds as a user gives them; `falsify` documents each field.

    Attributes
    ----------
    rounds, arms, pair, pairs, left, right, inputs, bits, os_random, global_random, call_limit, attributes, score,
    weaken, shrink
        As in `falsify`.
    power : float or None
        The factor of too little noise that a survivor has to catch; None where no power is measured.
    trial : bool
        Whether the audit judges one step of a search: its runs are checked only where it falsifies, and it is told no
        more than its verdict.
    """

    rounds: int | None = None
    arms: int | None = None
    pair: Pair | None = None
    pairs: Iterable[Any] | None = None
    left: object = None
    right: object = None
    inputs: object = None
    bits: bool = False
    os_random: bool = False
    global_random: bool | str = False
    call_limit: float | None = None
    attributes: str | Sequence[str] | None = None
    score: ScoreFunction | None = None
    weaken: WeakenChoice = None
    power: float | None = field(default_factory=lambda: power_of(None))
    shrink: bool = False
    trial: bool = False

    @property
    def losses_alone(self) -> bool:
        """Whether no inputs are given, neither two of them nor a strategy."""
        return self.left is None and self.right is None and self.inputs is None


def _nothing() -> None:
    """Check nothing."""


@dataclass(frozen=True)
class Setup:
    """What an audit begins with.

    Attributes
    ----------
    audit : frame.Audit
    options : sequence
        The pairs of worlds to choose from; none where a space is searched.
    space : Space or None
    weakening : Weakening or None
        How the target is weakened, where its parameter or its fields set the noise; else faults are planted.
    pair_given : bool
        Whether the inputs are given, and not searched.
    check_late : callable
        Raises LearnerError if the runs depend on each other: of a trial that is asked where it falsifies.
    """

    audit: Any
    options: Sequence[Any]
    space: Space | None = None
    weakening: Weakening | None = None
    check_late: Callable[[], None] = _nothing
    pair_given: bool = False
