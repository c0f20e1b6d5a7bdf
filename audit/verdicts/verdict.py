"""The three answers of an audit, and everything that stands behind one."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...mechanisms.claim import NEIGHBOURS, Claim
from ...mechanisms.relations.relation import neighbours_words
from ..attacks.protocol import NoEvidence
from ..record_types import Reason
from ..statistics.canary_words import canaries_words
from ..statistics.digits import confidence_text, exceeds
from ..statistics.events import Certificate, Counts, Event
from ..statistics.measure_words import bound_words, caught_words, claimed_words, is_epsilon, spent_words
from .blind_spot import (
    HIDDEN,
    LARGEST,
    LOW_POWER,
    NOT_SEEN,
    RARE,
    TOO_FEW,
    UNMEASURED,
    UNSEEN,
    BlindSpot,
    is_beyond,
    reason_words,
)

if TYPE_CHECKING:
    from ... import Kind, Plot
    from ...learners.blame import MissingExtra
    from ..attacks.protocol import FittedAttack
    from ..play.data import DataPair
    from ..play.pairs import Pair
    from ..search.one_sided import Searched
    from ..statistics.canary_scores import Roc, ScoresFound
    from .rare import Rare
    from .witness import ShrunkInputs


class Verdict(Enum):
    """FALSIFIED, SURVIVED or UNDERPOWERED. Never "passed", never "private": surviving is not a proof.

    Examples
    --------
    >>> str(Verdict.SURVIVED)
    'SURVIVED'
    >>> bool(Verdict.SURVIVED)
    Traceback (most recent call last):
    TypeError: a verdict has three values and no truth value: compare it, as in `is Verdict.FALSIFIED`
    """

    FALSIFIED = "FALSIFIED"
    SURVIVED = "SURVIVED"
    UNDERPOWERED = "UNDERPOWERED"

    def __bool__(self) -> bool:
        """Refuse: three answers have no truth value."""
        raise TypeError("a verdict has three values and no truth value: compare it, as in `is Verdict.FALSIFIED`")

    def __eq__(self, other: object) -> bool:
        """Refuse text: `verdict != "FALSIFIED"` would be true of each verdict."""
        if isinstance(other, str):
            raise TypeError(f"a verdict is no text, as {other!r} is: compare it, as in `is Verdict.FALSIFIED`")
        return self is other

    __hash__ = Enum.__hash__

    def __str__(self) -> str:
        return self.value


class UnderpoweredError(AssertionError):
    """Raised by `Result.require_survived` when the audit could not have falsified the claim."""


def decide(
    claim: Claim,
    lower: float,
    runs: int,
    alpha: float,
    *,
    ceiling: float | None = None,
    reason: Reason | None = None,
) -> Verdict:
    """Return the verdict on a claim: UNDERPOWERED if this audit could not have falsified it.

    Parameters
    ----------
    lower : float
        The certified bound, in the unit of the claim's measure.
    runs : int
        Certification runs.
    ceiling : float, optional
        What a perfect attack would have certified; epsilon in a fixed number of runs by default.
    reason : str, optional
        Why the audit is no test of the claim, although its runs would do: see `Result.reason`.
    """
    if lower > claim.measure.level:
        return Verdict.FALSIFIED
    shortage = too_few(claim, runs, alpha, ceiling=ceiling)
    return Verdict.UNDERPOWERED if shortage or reason is not None else Verdict.SURVIVED


def too_few(claim: Claim, runs: int, alpha: float, *, ceiling: float | None = None) -> bool:
    """Return whether even a perfect attack could not have falsified the claim; parameters are those of `decide`."""
    if ceiling is None:
        from ..statistics import certificates

        ceiling = certificates.ceiling(claim.measure, runs, alpha=alpha)
    return ceiling <= claim.measure.level


class OnPair:
    """What is about a pair: of losses in a learner's audit, of inputs in a mechanism's."""

    pair: Pair | DataPair

    @property
    def losses(self) -> Pair:
        """The pair, of a learner's audit."""
        from ..play.pairs import Pair

        assert isinstance(self.pair, Pair), "a mechanism's audit has inputs, and no losses"
        return self.pair

    @property
    def inputs(self) -> DataPair:
        """The pair, of a mechanism's audit."""
        from ..play.data import DataPair

        assert isinstance(self.pair, DataPair), "a learner's audit has losses, and no inputs"
        return self.pair


@dataclass(frozen=True)
class Result(OnPair):
    """The outcome of one audit.

    Attributes
    ----------
    claim : Claim
    certificate : Certificate
        The lower bound, on epsilon or in the measure of the claim, with its counts.
    pair : Pair, or DataPair of a mechanism or of a learner on sequences of rounds
        The witness.
    event : Event
    attack : str
        The name of the attack that won the pilot.
    runs, pilot : int
        Total runs, and those of them spent before certification.
    detectable_epsilon : float
        The smallest true epsilon of Laplace noise that a perfect attack would have caught from as many runs with
        probability 0.9: the limit of the budget, which this attack need not reach, and no attack where epsilon shows
        in rare outputs alone; nan for claims in other measures.
    seed : int
    seconds : float
    scorer : FittedAttack
        The attack itself.
    blocks : tuple of Counts
        The certification counts block by block, where a fixed number of runs was certified.
    blind_spot : BlindSpot or None
        What the audit catches on weaker targets, where it survived and that was asked for.
    exact : float or None
        The exact level of what is claimed on the pair, where the claim survived and a law tells it.
    searched : Searched or None
        How many pairs of inputs were tried, where a strategy of them was searched.
    shrunk : ShrunkInputs or None
        The smallest inputs that were certified, where searched inputs falsified and that was asked for; the witness
        itself, which is not `fresh`, where no smaller ones were.
    outputs_digest : str or None
        Of all outputs that were certified, where the mechanism's randomness cannot be seeded: nothing replays them.
    event_in_words : str
        What the event says of a mechanism's outputs, where it says no more than one statement about a part of them.
    ceiling : float or None
        What a perfect attack would have certified; None for epsilon in a fixed number of runs.
    alike : bool
        Whether all runs that the attack and its event were chosen on show the same, in both worlds.
    paired : int or None
        How many paired runs gave the same output, where all of them did: paired runs have the same random numbers
        and different inputs.
    upper : float or None
        A bound from above on what was audited, in the unit of the claim's measure, where a trace gave one: on the
        pair if it was given, on every pair if it was searched.
    pair_given : bool
        Whether the inputs were given, and not searched.
    power : float or None
        The factor of too little noise that a survivor has to catch; None of given scores, where none can be planted.
    rare : Rare or None
        A difference that stretched noise found and that these runs cannot certify.
    canaries : ScoresFound or None
        Of an audit of scores: the canaries, and what must hold.
    floats : bool
        Whether what a mechanism returned in them has floats that hardly ever repeat: their low-order bits, which are
        read where that is asked for, may tell more than their values.
    missing : tuple of MissingExtra
        What was asked for beside the verdict, or belongs to it, and could not be computed, with the reason.
    remarks : tuple of str
        What differs between the outputs, and whether the noise is fixed: facts of fresh runs, which bound nothing.

    Examples
    --------
    >>> from overclaim import Claim, falsify
    >>> from overclaim.learners import BatchedLaplace, Threshold
    >>> learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    >>> result = falsify(learner, Claim(epsilon=1.0), rounds=2, runs=20_000)
    >>> result.verdict, result.epsilon_lower > 1.0
    (<Verdict.FALSIFIED: 'FALSIFIED'>, True)
    """

    claim: Claim
    certificate: Certificate
    pair: Pair | DataPair
    event: Event
    attack: str
    runs: int
    pilot: int
    detectable_epsilon: float
    seed: int
    seconds: float
    scorer: FittedAttack[Any] = field(default_factory=NoEvidence, repr=False, compare=False)
    blocks: tuple[Counts, ...] = field(default=(), repr=False, compare=False)
    blind_spot: BlindSpot | None = None
    exact: float | None = None
    searched: Searched | None = None
    shrunk: ShrunkInputs | None = None
    outputs_digest: str | None = None
    event_in_words: str = ""
    alike: bool = False
    floats: bool = False
    missing: tuple[MissingExtra, ...] = ()
    remarks: tuple[str, ...] = ()
    ceiling: float | None = None
    paired: int | None = None
    upper: float | None = None
    pair_given: bool = False
    power: float | None = LARGEST
    rare: Rare | None = None
    canaries: ScoresFound | None = None

    @cached_property
    def verdict(self) -> Verdict:
        """The verdict: see `decide`."""
        return decide(
            self.claim,
            self.lower,
            self.certificate.counts.runs,
            self.certificate.alpha,
            ceiling=self.ceiling,
            reason=self._untested_by,
        )

    @cached_property
    def reason(self) -> Reason | None:
        """Why the verdict is UNDERPOWERED; None for the other verdicts."""
        if self.verdict is not Verdict.UNDERPOWERED:
            return None
        runs, alpha = self.certificate.counts.runs, self.certificate.alpha
        return TOO_FEW if too_few(self.claim, runs, alpha, ceiling=self.ceiling) else self._untested_by

    @property
    def epsilon_lower(self) -> float:
        """The certified lower bound on epsilon, in nats."""
        return self.certificate.epsilon_lower

    @property
    def lower(self) -> float:
        """The certified lower bound, in the unit of the claim's measure."""
        return self.certificate.lower

    @property
    def confidence(self) -> float:
        """1 - alpha."""
        return 1 - self.certificate.alpha

    @property
    def roc(self) -> Roc | None:
        """The ROC curve of the scores of canaries; None of other audits."""
        return None if self.canaries is None else self.canaries.canaries.roc()

    @property
    def final(self) -> bool:
        """Whether nothing but the counts decides: the claim is falsified, or the runs are too few."""
        return self.verdict is Verdict.FALSIFIED or self.reason == TOO_FEW

    @property
    def unseen(self) -> bool:
        """Whether an exact law says that the pair shows nothing."""
        return self.exact is not None and self.exact < UNSEEN

    @property
    def exceeded(self) -> bool:
        """Whether an exact law calls the claim false on the pair: these runs did not certify it."""
        return self.exact is not None and is_beyond(self.exact, self.claim.measure.level)

    @property
    def unguessed(self) -> bool:
        """Whether the attack made no guess in the counted runs."""
        counts = self.certificate.counts
        return not counts.guesses and not any(counts.tally)

    @property
    def bounded(self) -> bool:
        """Whether a trace or an exact law bounds what was audited by no more than the claim."""
        level = self.claim.measure.level
        traced = self.upper is not None and not exceeds(self.upper, level)
        by_law = self.exact is not None and not self.exceeded
        return traced or (by_law and self.pair_given and not self.unseen)

    def __bool__(self) -> bool:
        """Refuse, as a verdict does."""
        return bool(self.verdict)

    def __str__(self) -> str:
        measure, relation = self.claim.measure.to_json(), self.claim.neighbours
        claimed = claimed_words(measure) + ("" if relation in NEIGHBOURS else f" ({neighbours_words(relation)})")
        confidence, budget = confidence_text(self.confidence), spent_words(self.certificate.method)
        best = caught_words(self.detectable_epsilon, self.claim.epsilon)
        canaries, shows_power = self.canaries, is_epsilon(measure) and self.canaries is None
        evidence = (
            f"{self.runs:,} runs, {self.attack} attack, {self.pair.difference}"
            if canaries is None
            else canaries_words(canaries.design, canaries.to_json())
        )
        bound = bound_words(measure, self.lower)
        return (
            f"{self.verdict}: claimed {claimed}, at least {bound} ({confidence} confidence, {evidence})"
            + (f"; at best, from {budget}: {best}" if shows_power else "")
            + (f"; {self.why_underpowered}" if self.reason else "")
            + (f"; {self.blind_spot}" if self.blind_spot is not None else "")
            + "".join(f"; {missing}" for missing in self.missing)
        )

    def _repr_html_(self) -> str:
        """Return the card of a report, which notebooks show."""
        from ... import result_card  # the face loads `reports` on first use; this room lies below it

        return result_card(self)

    def plot(self, kind: Kind | None = None) -> Plot:
        """Return a plot that notebooks show: "ruler", "tradeoff", or "roc" of scores of canaries.

        The default is the ROC curve of scores, and the ruler of other audits. `svg` of the plot is the picture.
        """
        from ... import result_plot

        return result_plot(self, kind)

    @property
    def untested(self) -> bool:
        """Whether the verdict is UNDERPOWERED although the runs would do."""
        return self.reason not in (None, TOO_FEW)

    @property
    def _untested_by(self) -> Reason | None:
        """Why the audit is no test of the claim, although its runs would do; None where it is one.

        It is one where so many times too little noise is caught, where the claim bounds what was audited from above,
        or, where no power was measured, where that part of the claim was certified.
        """
        spot = self.blind_spot
        if self.rare is not None:
            return RARE
        if self.exceeded:
            return LOW_POWER
        if self.bounded or (spot is not None and not spot.untested):
            return None
        seen_nothing = self.alike or self.unguessed or self.paired is not None
        if self._shows_nothing or self.unseen or (spot is not None and spot.hidden):
            return HIDDEN
        if seen_nothing and (spot is None or not spot.true_to):
            return NOT_SEEN
        if spot is not None:
            return LOW_POWER
        enough = self.power is None or (self.lower > 0 and self.power * self.lower >= self.claim.measure.level)
        return None if enough else UNMEASURED

    @property
    def why_underpowered(self) -> str:
        """Why the verdict is UNDERPOWERED, in a record's words; empty for the other verdicts."""
        if self.reason is None:
            return ""
        spot = None if self.blind_spot is None else self.blind_spot.to_json()
        return reason_words(
            self.reason,
            self.claim.measure.to_json(),
            spot,
            in_last_losses=self._shows_nothing,
            alike=self.alike,
            unguessed=self.unguessed,
            paired=self.paired,
            exceeded=self.exceeded,
            rare=None if self.rare is None else self.rare.to_json(),
            scores=None if self.canaries is None else self.canaries.to_json(),
        )

    @property
    def _shows_nothing(self) -> bool:
        return self.pair.shows_nothing(self.claim.view)

    def require_survived(self) -> None:
        """Raise AssertionError unless the claim survived: UnderpoweredError where the verdict is UNDERPOWERED."""
        if self.verdict is Verdict.FALSIFIED:
            raise AssertionError(str(self))
        if self.verdict is Verdict.UNDERPOWERED:
            raise UnderpoweredError(str(self))
