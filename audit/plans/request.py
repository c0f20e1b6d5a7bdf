"""What a plan or a command line asks of one audit, and the command that asks it again."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Self

from ...errors import exclude, hinted, must_be_one_of, shown, takes_no
from ...learners.checks import check_game
from ...mechanisms.claim import EXPECTATIONS, LOSS_SET_NAMES, NEIGHBOURS, loss_range
from ...mechanisms.measures.approximate import ApproxDP
from ...mechanisms.measures.measure import Measure, number_text
from ...mechanisms.relations.relation import BY_FUNCTION, Relation
from ..execution.execution import BUDGET, Budget
from ..spaces.files import read_input, written, written_schema
from ..verdicts.blind_spot import power_of
from .catalogues import LIBRARIES, MECHANISMS, entry_of
from .options import ALLOWED
from .targets import convert

if TYPE_CHECKING:
    from ...learners.entry import Case, Entry
    from ...mechanisms.library_entry import LibraryEntry
    from ..play.pairs import Pair

#: What says something of a learner's game.
_GAME = ("rounds", "arms", "losses", "neighbours", "surface", "parameters")
#: Options of learners alone, and of mechanisms alone.
_OF_LEARNERS = ("rounds", "arms", "losses", "pair", "surface", "neighbours")
_OF_MECHANISMS = ("bits", "call_limit", "attributes", "score", "python")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What is asked of one audit: a target, a setting, a budget, an expectation. What is None is not said.

    `resolved` fills in what is not said of a catalogue learner's game.

    `epsilon` is the claim, unless `measure` is. It also sets the noise of a catalogue target that has an epsilon,
    unless `parameters` do, or it is 0.
    The inputs `left` and `right` of a mechanism are `...` where they are not given: None is JSON's null. Or pairs are
    searched that fit the JSON Schema `input_schema`; then `neighbours` is their relation. Those of a learner are
    sequences of rounds.
    If the claim survives its power is measured: where `power` is not "off", on noise that is weaker by its factor and
    less; by the parameter that `weaken` names, by the fields of a learner of ours, else by planted faults.
    Of scores of canaries, `scores` or `inserted` and `held_out` name the files, and the target is their name. A target
    that is a training has `canaries`.
    """

    target: str
    epsilon: float | None = None
    delta: float | None = None
    measure: Measure | None = None
    rounds: int | None = None
    arms: int | None = None
    losses: str | None = None
    neighbours: str | None = None
    surface: str | None = None
    raising: str | None = None
    budget: Budget = BUDGET
    parameters: Mapping[str, object] = field(default_factory=dict)
    pair: Pair | None = None
    left: object = ...
    right: object = ...
    input_schema: object = None
    bits: bool = False
    os_random: bool = False
    global_random: bool = False
    reseed: bool = False
    call_limit: float | None = None
    attributes: str | Sequence[str] | None = None
    score: str | None = None
    python: str | None = None
    stub: str | Sequence[str] | None = None
    power: float | str | None = None
    weaken: bool | str | None = None
    untested: str | None = None
    expected: str | None = None
    note: str = ""
    scores: str | None = None
    inserted: str | None = None
    held_out: str | None = None
    design: str | None = None
    canaries: int | None = None
    trainings: int = 1

    def __post_init__(self) -> None:
        if self.untested not in (None, ALLOWED):
            raise must_be_one_of("untested", [ALLOWED], self.untested)
        if self.expected is not None and self.expected not in EXPECTATIONS:
            raise must_be_one_of("expect", EXPECTATIONS, self.expected)
        check_game(*(1 if value is None else value for value in (self.rounds, self.arms)))
        if self.measure is not None and not (self.epsilon is self.delta is None):
            raise exclude("`epsilon` or `delta`", shown(self.measure), "a claim is made in one measure")
        power_of(self.power)
        if self.attributes is not None:
            from ..play.attributes import check_attributes

            check_attributes(self.attributes)
        if not self.of_canaries and (self.trainings != 1 or self.design is not None):
            raise ValueError(f"{self.target} takes `trainings` and `design` with `canaries` or scores only")
        if self.losses is not None and self.losses not in LOSS_SET_NAMES:
            loss_range(self.losses)
        if not self.near_by_function:
            Relation.parse(self.relation)
        if self.pair is not None and self.rounds not in (None, self.pair.rounds):
            from ..play.pairs import other_rounds

            raise other_rounds(self.pair.rounds, self.rounds)

    def resolved(self) -> Self:
        """Return the request with the whole game of a catalogue learner; any other request is returned as it is.

        Each field is what is said, else the entry's example's, else the entry's, else the usual one. Worlds that are
        given say how many rounds the game has.
        """
        entry = None if self.of_canaries else entry_of(self.target)
        if entry is None:
            return self
        defaults = {"neighbours": self.relation, "surface": "actions", "epsilon": None, "delta": None}
        game = {**defaults, **{name: getattr(entry, name) for name in ("rounds", "arms", "losses")}, "parameters": {}}
        if entry.example is not None:
            game |= game_of(entry, entry.example)
        game["rounds"] = self.worlds_rounds or game["rounds"]
        if self.pair is not None and self.pair.length not in (None, game["arms"]):
            game["arms"] = entry.arms
        parameters = {**self._of_example(entry, game), **self.parameters}
        stated = {*parameters, *(("epsilon", "delta") if self.measure is not None else ())}
        filled = {name: value for name, value in game.items() if getattr(self, name) is None and name not in stated}
        return replace(self, **filled | {"parameters": parameters})

    def _of_example(self, entry: Entry, game: Mapping[str, Any]) -> dict[str, object]:
        """Return the parameters that an example sets; with a claim in another measure its epsilon sets the noise.

        If something of the game is said, a usual calibration or epsilon is not named: older records do not name it.
        """
        noise = {} if self.measure is None else {name: game[name] for name in ("epsilon", "delta")}
        parameters = {name: value for name, value in {**noise, **game["parameters"]}.items() if value is not None}
        if not any(getattr(self, name) for name in _GAME):
            return parameters
        defaults = vars(entry.setting())
        return {name: value for name, value in parameters.items() if name not in defaults or value != defaults[name]}

    def named_parameters(self) -> dict[str, object]:
        """Return the parameters that a record names.

        A default in place of an example's value is not named: older records of the same game do not name it.
        """
        entry = entry_of(self.target) if self.parameters else None
        if entry is None or entry.example is None:
            return dict(self.parameters)
        kinds, defaults = entry.parameters, entry.defaults
        usual_values = {name: defaults[name] for name in entry.example.parameters}
        return {
            name: value
            for name, value in self.parameters.items()
            if name not in usual_values or convert(name, value, kinds[name]) != usual_values[name]
        }

    @property
    def required_power(self) -> float | None:
        """The factor of too little noise that a survivor has to catch; None where none is measured."""
        return power_of(self.power, self.weaken)

    @property
    def seeding(self) -> bool | str:
        """Whether global generators draw from the run's own, or "fresh seeds" where its own seeds do too."""
        if not self.reseed:
            return self.global_random
        from ...mechanisms.global_random import FRESH_SEEDS  # a file of scores needs none of it

        return FRESH_SEEDS

    @property
    def _stated(self) -> Measure | None:
        """What is claimed, where the task itself says it."""
        if self.measure is None and self.epsilon is not None:
            return ApproxDP(self.epsilon, self.delta or 0.0)
        return self.measure

    @property
    def is_mechanism(self) -> bool:
        """Whether the target is a mechanism by its name, or audited as one is: on inputs, as a learner may be too."""
        if self.of_canaries:
            return True
        return self.has_inputs or self.target.startswith((MECHANISMS, LIBRARIES))

    @property
    def of_scores(self) -> bool:
        """Whether scores of canaries are given: nothing is played."""
        return any(file is not None for file in (self.scores, self.inserted, self.held_out))

    @property
    def of_canaries(self) -> bool:
        """Whether scores of canaries are audited: given ones, or those of a training."""
        return self.of_scores or self.canaries is not None

    @property
    def near_by_function(self) -> bool:
        """Whether the relation is a function of the user's, FILE.py:NAME."""
        return ".py:" in self.relation

    @property
    def relation(self) -> str:
        """The neighbour relation in words: that of replaced records where none is said."""
        return "replace" if self.neighbours is None else self.neighbours

    @property
    def claimed_neighbours(self) -> str:
        """The neighbours of a learner's claim."""
        return f"{BY_FUNCTION}{self.relation.rpartition(':')[2]}" if self.near_by_function else self.relation

    def relation_of(self, entry: LibraryEntry) -> str:
        """Return the relation that is asked for; an entry's own where only one is possible."""
        return entry.relations[0] if self.neighbours is None and len(entry.relations) == 1 else self.relation

    def inputs(self) -> dict[str, Any]:
        """Return those inputs of a mechanism that are given, by their side."""
        return {side: read_input(value) for side, value in self._given_inputs().items()}

    @property
    def worlds_rounds(self) -> int | None:
        """How many rounds the worlds have that are given, the longer one; None where none are, or both are empty."""
        if self.pair is not None:
            return self.pair.rounds
        return max((len(side) for side in self.inputs().values() if isinstance(side, list | tuple)), default=0) or None

    def _given_inputs(self) -> dict[str, object]:
        return {side: value for side, value in (("left", self.left), ("right", self.right)) if value is not ...}

    def _check_inputs(self) -> None:
        """Raise ValueError if only one input is given."""
        if len(self._given_inputs()) == 1:
            missing = "right" if "left" in self._given_inputs() else "left"
            raise ValueError(f"{self.target} needs two inputs, `left` and `right`: `{missing}` is missing")

    def _refuse_game(self, *, relation: bool = False) -> None:
        """Raise ValueError for what only learners take, be it said as usual: no option may go unheeded.

        `relation` says whether one is heeded, as it is where inputs are searched.
        """
        refused = [name for name in _OF_LEARNERS if getattr(self, name) not in (None, False)]
        if relation or self.input_schema is not None:
            refused = [name for name in refused if name != "neighbours"]
        if refused:
            reason = "a neighbour relation is for searched inputs (`inputs`)" if "neighbours" in refused else ""
            raise takes_no(f"{self.target} is a mechanism", refused, reason)

    @property
    def has_inputs(self) -> bool:
        """Whether inputs are given or searched: those of a learner are sequences of rounds."""
        return bool(self._given_inputs()) or self.input_schema is not None

    def _check_learner(self) -> None:
        """Raise ValueError for what a learner does not take: no option may go unheeded."""
        if refused := [name for name in _OF_MECHANISMS if getattr(self, name) != getattr(Request, name)]:
            raise takes_no(f"{self.target} is a learner", refused)
        if not self.has_inputs:
            if self.relation not in NEIGHBOURS:
                error = must_be_one_of(f"neighbours of the learner {self.target}", NEIGHBOURS, self.neighbours)
                hint = "other relations are for rounds that are searched (`inputs`) or given (`left` and `right`)"
                raise hinted(error, hint)
            return
        if not self.near_by_function:
            from ..play.rounds import RoundRelation

            RoundRelation(Relation.parse(self.relation))  # raises where it cannot apply
        self._check_inputs()
        if self.pair is not None:
            raise exclude("`pair`", "`inputs`, or with `left` and `right`")

    def command(self) -> str:
        """Return the command that replays this audit: it says the whole game of a catalogue learner."""
        game = self.resolved()
        if self.of_scores:
            return shlex.join(["overclaim", "scores", *self._canary_words()])
        # A file whose name looks like an option.
        arguments = ["overclaim", "check", f"./{self.target}" if self.target.startswith("-") else self.target]
        arguments += self.measure.as_options() if self.measure is not None else []
        arguments += _words_of(game, "epsilon", "delta", "rounds", "arms", "losses")
        if self.canaries is not None:
            return shlex.join([*arguments, *self._canary_words()])
        arguments += ["--runs", str(self.budget.runs), "--seed", str(self.budget.seed)]
        arguments += [*_words_of(game, "surface", "neighbours"), *_words_of(self.budget, "confidence", "stop")]
        for name, value in game.parameters.items():
            arguments += ["--set", f"{name}={number_text(value)}"]
        for side, value in self._given_inputs().items():
            arguments += [f"--{side}", written(value)]
        arguments += [] if self.input_schema is None else ["--inputs", written_schema(self.input_schema)]
        arguments += [] if self.raising == "error" else _words_of(self, "raising")
        arguments += _words_of(self, "call_limit")
        arguments += _list_of(self, "attributes")
        arguments += _words_of(self, "bits", "os_random", "global_random", "reseed", "score", "python")
        arguments += [*_list_of(self, "stub"), *_words_of(self, "power")]
        arguments += ["--weaken", self.weaken] if isinstance(self.weaken, str) else []
        if self.pair is not None:
            sides = {side: value for side, value in self.pair.to_json().items() if side != "round"}
            arguments += ["--pair", json.dumps(sides, separators=(",", ":"))]
        return shlex.join(arguments)

    def _canary_words(self) -> list[str]:
        """Return the rest of the command that audits scores of canaries again, after its name or its target."""
        arguments = []
        if self.of_scores:
            file = self.scores if self.scores is None or not self.scores.startswith("-") else f"./{self.scores}"
            arguments += [] if file is None else [file]
            arguments += _words_of(self, "inserted", "held_out", "design")
            arguments += self.measure.as_options() if self.measure is not None else []
            arguments += _words_of(self, "epsilon", "delta")
        else:
            arguments += [
                *_words_of(self, "canaries", "trainings", "global_random", "reseed"),
                *_list_of(self, "stub"),
            ]
        return [*arguments, "--seed", str(self.budget.seed), *_words_of(self.budget, "confidence")]


def _words_of(holder: Request | Budget, *names: str) -> list[str]:
    """Return the command's options for those values that differ from the default."""
    arguments = []
    for name in names:
        value = getattr(holder, name)
        if value != getattr(type(holder), name):
            arguments += [f"--{name.replace('_', '-')}", *([] if value is True else [number_text(value)])]
    return arguments


def _list_of(request: Request, name: str) -> list[str]:
    """Return the option of a command that lists names; nothing where none are given."""
    names = names_in(getattr(request, name))
    return [f"--{name}", ",".join(names)] if names else []


def names_in(value: str | Sequence[str] | None) -> tuple[str, ...]:
    """Return the names of an option that takes a single one as a text."""
    return (value,) if isinstance(value, str) else tuple(value or ())


def named_files(scores: object, inserted: object, held_out: object) -> str:
    """Return what to call the scores of files."""
    return " and ".join(str(file) for file in (scores, inserted, held_out) if file is not None)


def game_of(entry: Entry, case: Case) -> dict[str, Any]:
    """Return what a request says of a case's game.

    A parameter that the entry's example sets, and the case does not, has its default.
    """
    usual_values = {name: entry.defaults[name] for name in (entry.example.parameters if entry.example else ())}
    return {
        # A claim that depends on T is the entry's own; any other is stated by the case.
        "epsilon": None if entry.claim_epsilon else case.epsilon,
        "delta": case.delta,
        "rounds": case.rounds or entry.rounds,
        "arms": case.arms or entry.arms,
        "losses": case.losses or entry.losses,
        "neighbours": case.neighbours,
        "surface": case.surface,
        "parameters": {**usual_values, "calibration": case.calibration, **case.parameters},
    }
