"""An entry of a catalogue of learners: an algorithm with its claim, its calibrations and the audits of it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, get_type_hints

from ..errors import must_be, must_be_one_of
from ..mechanisms.claim import EXPECTATIONS, Claim
from ..mechanisms.statement import Statement
from .checks import check_epsilon
from .protocol import Learner

CALIBRATIONS = ("as_published", "corrected")
#: Whose claim a case is. `theorem`: a numbered statement of the paper, in its own parameters, loss set, neighbours and
#: output. `proof`: a quantity that a proof calls private, though the algorithm does not output it. `computed`: a
#: theorem that a computed law refutes where no affordable number of runs does. `reading`: it depends on how the paper
#: is read, where a formula, a base or a constant is open. `variant`: the paper's algorithm outside its assumptions, or
#: under another relation of neighbours. `control`: nobody's claim.
STANDINGS = ("theorem", "proof", "computed", "reading", "variant", "control")
#: The standings of what is printed in a paper, and those that need its words.
PUBLISHED = ("theorem", "proof")
QUOTED = (*PUBLISHED, "computed")


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What every algorithm is told: the game, the claim to calibrate for, and which calibration.

    Attributes
    ----------
    rounds, arms : int
        T and K (or N, the number of experts or coordinates).
    epsilon, delta : float
        The claim that the noise is calibrated to; epsilon in nats, inf for no noise.
    losses : str
        The loss set, by name.
    calibration : str
        "as_published" (the noise exactly as the paper states it) or "corrected" (noise with which we expect
        the claim to hold).
    """

    rounds: int
    arms: int = 2
    epsilon: float = 1.0
    delta: float = 0.0
    losses: str = "unit"
    calibration: str = "as_published"

    def __post_init__(self) -> None:
        if self.calibration not in CALIBRATIONS:
            raise must_be_one_of("calibration", CALIBRATIONS, self.calibration)
        if not self.epsilon > 0:
            raise must_be("epsilon", "positive: the noise is calibrated to it", self.epsilon)
        check_epsilon(self.epsilon)

    @property
    def published(self) -> bool:
        """Whether the noise is the paper's."""
        return self.calibration == "as_published"

    @property
    def range(self) -> float:
        """The largest difference of two losses of one coordinate: 1 on [0, 1], 2 on [-1, 1]."""
        return 1.0 if self.losses == "unit" else 2.0


@dataclass(frozen=True, kw_only=True)
class Case:
    """One audit of an entry: whose claim it is, a setting, what the adversary may do and see, and what is expected.

    Attributes
    ----------
    expected : str
        "falsified" or "survived".
    standing : str
        Whose claim it is: one of `STANDINGS`.
    statement : Statement, optional
        The words that it audits: required for `theorem`, `proof` and `computed`, and there with an answer if they are
        called false.
    note : str
        A remark that the report prints beside the verdict: for a falsified `reading` or `variant`, which one.
    pair : tuple, optional
        The losses of the two worlds, where they are not to be searched.
    untested : str
        "allowed" where it is known and documented that an audit catches too little.

    Raises
    ------
    ValueError
        For a standing or an expectation of another name, or without what they require.
    """

    expected: str
    standing: str
    statement: Statement | None = None
    calibration: str = "as_published"
    losses: str = ""  # the entry's own
    neighbours: str = "replace"
    surface: str = "actions"
    rounds: int = 0  # the entry's own
    arms: int = 0
    epsilon: float = 1.0
    delta: float | None = None
    runs: int = 200_000
    parameters: Mapping[str, object] = field(default_factory=dict)
    note: str = ""
    pair: tuple[Any, Any] | None = None
    untested: str = ""

    def __post_init__(self) -> None:
        if self.expected not in EXPECTATIONS:
            raise must_be_one_of("expected", EXPECTATIONS, self.expected)
        if self.standing not in STANDINGS:
            raise must_be_one_of("standing", STANDINGS, self.standing)
        if self.standing in QUOTED and self.statement is None:
            raise ValueError(f"a {self.standing} must be quoted: its statement is missing")
        called_false = self.standing == "computed" or self.expected == "falsified"
        if called_false and self.standing in QUOTED and self.statement is not None and not self.statement.answer:
            raise ValueError(f"{self.statement.source} is called false without what its authors could answer")
        if self.expected != "falsified":
            return
        if self.standing in ("reading", "variant") and not self.note:
            raise ValueError(f"a falsified {self.standing} must have a note that says which")

    def to_json(self, entry: Entry) -> dict[str, object]:
        """Return whose claim it is and what is expected, in the words of a record."""
        statement, (setting, _) = self.statement, entry.setting_of(self)
        claim = entry.claim(setting)
        return {
            "standing": self.standing,
            "source": self.source(entry),
            "quotation": {"text": statement.text, "where": statement.where} if statement else None,
            "answer": (statement.answer or None) if statement else None,
            "calibration": self.calibration,
            "surface": self.surface,
            "neighbours": self.neighbours,
            "losses": self.losses or entry.losses,
            "rounds": setting.rounds,
            "arms": setting.arms,
            "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
            "parameters": dict(self.parameters),
            "expected": self.expected,
            "note": self.note,
        }

    def source(self, entry: Entry) -> str:
        """Return paper and statement: the entry's where the case has no statement of its own."""
        return self.statement.source if self.statement else entry.source


#: What several cases of a paper share: whose words they audit, in which calibration, under which relation.
Shared = dict[str, Any]
#: The cases of either verdict.
FalsifiedCase, SurvivingCase = (partial(Case, expected=verdict) for verdict in ("falsified", "survived"))


@dataclass(frozen=True, kw_only=True)
class RegretClaim:
    """A regret bound as data.

    Attributes
    ----------
    bound : callable
        From a setting and the learner to the bound on the expected regret.
    exponent : float
        The growth in T that it promises, up to logarithms.
    source : str
        Where it is printed, or derived.
    constant : bool
        Whether its constant is known: where it is not, 1 stands for it, and no measured regret refutes it.
    measured : bool
        Whether `overclaim run` measures it; where that takes long, `overclaim regret` alone does.
    """

    bound: Callable[[Setting, Any], float]
    exponent: float
    source: str
    constant: bool = True
    measured: bool = True


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A catalogue entry: it cannot exist without a claim.

    Attributes
    ----------
    name : str
        `authors/algorithm`.
    summary : str
        One line.
    source : str
        Paper and theorem of the privacy claim.
    build : callable
        `build(setting, **parameters) -> Learner`; its keyword parameters are what `--set` accepts besides those of
        `Setting`.
    rounds, arms, delta, losses
        The defaults of an audit.
    fixed_losses : bool
        Whether the noise is made for losses of this set alone, and not for the set that a setting names.
    claim_epsilon : callable, optional
        The claimed epsilon of a setting, for claims that depend on T; default `setting.epsilon`.
    regret : RegretClaim, optional
    cases : tuple of Case
        What `overclaim run` audits.
    example : Case, optional
        The game that is audited, field by field, where a command says nothing of it: one in which something can be
        seen, where with the defaults nothing can.
    """

    name: str
    summary: str
    source: str
    build: Callable[..., Learner]
    rounds: int
    arms: int = 2
    delta: float = 0.0
    losses: str = "unit"
    fixed_losses: bool = False
    claim_epsilon: Callable[[Setting], float] | None = None
    regret: RegretClaim | None = None
    cases: tuple[Case, ...]
    example: Case | None = None

    @property
    def promise(self) -> str:
        """What is claimed, in words; empty where nobody calls it private, and the claim that is audited is ours."""
        if all(case.standing == "control" for case in self.cases):
            return ""
        epsilon = "f(T)" if self.claim_epsilon else "epsilon"
        return f"({epsilon}, {self.delta:g})-DP on {self.losses} losses"

    @property
    def parameters(self) -> dict[str, type]:
        """The algorithm's own parameters and their types."""
        hints = get_type_hints(self.build)
        names = [p.name for p in inspect.signature(self.build).parameters.values() if p.kind is p.KEYWORD_ONLY]
        return {name: hints[name] for name in names}

    @property
    def defaults(self) -> dict[str, object]:
        """The algorithm's own parameters and their values where nothing is said."""
        parameters = inspect.signature(self.build).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is p.KEYWORD_ONLY}

    def setting(self, **changes: Any) -> Setting:
        """Return the entry's default setting with some values changed."""
        default = Setting(rounds=self.rounds, arms=self.arms, delta=self.delta, losses=self.losses)
        setting = replace(default, **changes)
        if self.fixed_losses and setting.losses != self.losses:
            raise must_be(f"losses of {self.name}", f"{self.losses}: its noise is", setting.losses)
        return setting

    def cases_of(self, setting: Setting, own: Mapping[str, object], claim: Claim) -> list[Case]:
        """Return the cases that audit this claim in this setting, on whatever pair and with whatever runs.

        Parameters
        ----------
        own : mapping
            The algorithm's own parameters, where they are not as usual.
        """
        defaults = self.defaults
        key = setting, {**defaults, **own}, claim.neighbours, claim.surface, claim.epsilon, claim.delta
        cases = []
        for case in self.cases:
            case_setting, parameters = self.setting_of(case)
            claimed = self.claim(case_setting).epsilon if self.claim_epsilon else case.epsilon
            if (
                case_setting,
                {**defaults, **parameters},
                case.neighbours,
                case.surface,
                claimed,
                case_setting.delta,
            ) == key:
                cases.append(case)
        return cases

    def setting_of(self, case: Case) -> tuple[Setting, dict[str, object]]:
        """Return the setting of a case, and those of the algorithm's own parameters that it names."""
        own_parameters = {name: value for name, value in case.parameters.items() if name in self.parameters}
        setting = self.setting(
            rounds=case.rounds or self.rounds,
            arms=case.arms or self.arms,
            delta=self.delta if case.delta is None else case.delta,
            losses=case.losses or self.losses,
            **{"epsilon": case.epsilon, "calibration": case.calibration}
            | {name: value for name, value in case.parameters.items() if name not in own_parameters},
        )
        return setting, own_parameters

    def claim(
        self,
        setting: Setting,
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        neighbours: str = "replace",
        surface: str = "actions",
    ) -> Claim:
        """Return the claim that the entry makes in a setting, or of another epsilon or delta about the same noise."""
        if epsilon is None:
            epsilon = self.claim_epsilon(setting) if self.claim_epsilon else setting.epsilon
        return Claim(
            epsilon=epsilon,
            delta=setting.delta if delta is None else delta,
            losses=setting.losses,
            neighbours=neighbours,
            surface=surface,
            source=self.source,
        )
