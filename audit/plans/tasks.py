"""One claim to audit: its target resolved, and all built that the audit needs."""

from __future__ import annotations

import inspect
import math
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from ...errors import about, exclude, hinted, must_be_one_of, not_given, takes_no
from ...mechanisms.claim import LOSS_SET_NAMES, Claim
from ...mechanisms.draws import Draws
from ...mechanisms.measures.approximate import ApproxDP
from ...mechanisms.measures.measure import Measure
from ...mechanisms.relations import Relation
from ..execution.execution import IN_PROCESS, Execution
from ..execution.import_path import let_be_missing
from ..spaces.files import read_input, read_schema
from .catalogues import library_entry_of
from .request import Request, names_in
from .targets import (
    MechanismError,
    literal,
    losses_given_once,
    parse_parameters,
    relation_functions,
    resolve,
    score_function,
)

if TYPE_CHECKING:
    from ...learners.entry import Case, Entry, Setting
    from ...mechanisms.library_entry import LibraryCase, LibraryEntry
    from ...mechanisms.specimen import Specimen
    from ...mechanisms.weakening import NoiseParameter
    from ..pipeline.audited import Reader
    from ..pipeline.blind_spot_search import Weakening
    from ..pipeline.given import Given
    from ..play.pairs import Pair
    from ..verdicts.verdict import Result

#: For a user's learner, where nothing else says.
DEFAULT_ROUNDS = 8
#: Seconds of a claim of the literature whatever its runs, and of a round of a run: a fit to 40 of them (two cores of a
#: Xeon, 2026). One claim may take a quarter or four times as long; their sums are about right.
SECONDS_OF_CLAIM, RUN_ROUND = 0.3, 4e-7
#: Seconds of a training, of which nothing is known: they begin first.
TRAINING = 600.0


#: What a function of a user's lacks.
NO_CANARIES = "give the number of its canaries with `canaries`"
NO_INPUTS = "give them with `left` and `right`, or search them with `inputs`, a schema"


def unclaimed(target: str) -> ValueError:
    """Return the error that nothing says what a target claims."""
    return not_given(f"the claimed epsilon of {target}", "give `epsilon=1` or another measure")


def not_own(option: str, target: str) -> ValueError:
    """Return the error that an option is for code that a user wrote."""
    return about(option, ValueError(f"{option} is for code of your own: {target} draws from its generator only"))


@dataclass(frozen=True, kw_only=True)
class Task(Request):
    """A request that is resolved and built: see `Request` for its fields."""

    @property
    def cost(self) -> float:
        """About how many seconds the audit takes, by what is said of it: to begin the long ones first."""
        if self.canaries is not None:
            return TRAINING * self.trainings
        return SECONDS_OF_CLAIM + RUN_ROUND * self.budget.runs * (self.rounds or DEFAULT_ROUNDS)

    def completed(self) -> Task:
        """Return the task with what an entry of the libraries' catalogue says of its randomness and its time."""
        entry = library_entry_of(self.target)
        if entry is None:
            return self
        unlimited = self.call_limit is None and not self._given_inputs()
        return replace(self, os_random=entry.os_random, call_limit=entry.call_limit if unlimited else self.call_limit)

    def prepare(self) -> Prepared:
        """Resolve the target and build everything that an audit needs.

        Raises
        ------
        ValueError
            For a target, parameter or value that does not fit.
        LearnerError
            If the user's learner cannot be built.
        """
        let_be_missing(names_in(self.stub))
        if self.python is not None:
            return self._prepare_elsewhere()
        if self.of_canaries:
            return self._prepare_canaries()
        from ...learners.entry import Entry
        from ...learners.scalar import is_learner, is_mechanism
        from ...mechanisms.library_entry import LibraryEntry
        from ...mechanisms.specimen import Specimen

        target = resolve(self.target)
        if isinstance(target, Entry):
            return self.resolved()._prepare_entry(target)
        parameters = parse_parameters(target, self.parameters)
        if isinstance(target, Specimen):
            self._refuse_game(relation=bool(self._given_inputs()))
            return self._prepare_specimen(target, parameters.arguments)
        if isinstance(target, LibraryEntry):
            return self._prepare_library(target)
        if self._stated is None:
            raise unclaimed(self.target)
        if self.has_inputs and not is_learner(target):
            return self._prepare_mechanism(target, self._stated, parameters.arguments)
        if is_mechanism(target):
            from ..canaries.training_audit import is_training

            if is_training(target):
                raise hinted(MechanismError(f"{self.target} is a training, and its canaries are missing"), NO_CANARIES)
            raise hinted(MechanismError(f"{self.target} is a mechanism, and its two inputs are missing"), NO_INPUTS)
        if not callable(target) and not any(hasattr(target, name) for name in ("start", "act", "update")):
            kind = type(target).__name__
            raise ValueError(f"{self.target} is neither a learner nor a mechanism, it is of type {kind}")
        return self._prepare_learner(target, self._stated, parameters.arguments)

    def _prepare_mechanism(self, target: Any, measure: Measure, arguments: Mapping[str, Any]) -> Prepared:
        from ...mechanisms.weakening import with_parameter, with_settings

        self._check_mechanism(target)
        written, target = target, with_settings(target, arguments)
        self._check_call(written, measure, arguments)
        claim = Claim(measure=measure, raising=self.raising or "error")
        self._check_near()
        weakening = self._weakening(partial(with_parameter, target))
        searched = self._searched_inputs()
        return Prepared(self, target, claim, is_mechanism=True, weakening=weakening, searched_inputs=searched)

    def _check_call(self, target: Any, measure: Measure, own: Mapping[str, Any]) -> None:
        """Raise ValueError for a function that is not called with data and rng, and give the command that calls it."""
        if not inspect.isfunction(target) or getattr(target, "batched", False):
            return
        others = list(inspect.signature(target).parameters.values())[1:]
        named = {one.name: one for one in others if one.kind in (one.POSITIONAL_OR_KEYWORD, one.KEYWORD_ONLY)}
        if len(named) < len(others):
            return
        seedless = bool(self.seeding or self.os_random)
        needed = [name for name, one in named.items() if one.default is one.empty and name not in (*own, "rng")]
        if "rng" not in named and not seedless:
            needed = needed[:-1] if len(needed) == 1 else needed  # the only one is the generator, by another name
        lacks_rng = not seedless and not named.keys() - own.keys()
        if not needed and not lacks_rng:
            return
        lacks = f"needs a value for {' and '.join(needed)}" if needed else "takes no rng"
        values = {name: measure.level if name in ("epsilon", "eps") else "VALUE" for name in needed}
        random = seedless or "rng" in named
        fixed = replace(self, parameters={**self.parameters, **values}, global_random=self.global_random or not random)
        raise hinted(ValueError(f"{target.__name__} {lacks}"), fixed.command())

    def _prepare_elsewhere(self) -> Prepared:
        """Build a mechanism that another Python plays."""
        from ..play.other_python import mechanism_of

        assert self.python is not None
        if ":" not in self.target:
            raise about("python", ValueError(f"python plays code of your own, FILE.py:NAME, not {self.target}"))
        refused = {"attributes": self.attributes, "os_random": self.os_random, "weaken": isinstance(self.weaken, str)}
        if unheeded := [name for name, value in {**refused, "canaries": self.canaries}.items() if value]:
            raise takes_no(f"{self.target} is played by {self.python}", unheeded)
        if not self.has_inputs:
            raise hinted(MechanismError(f"{self.python} plays mechanisms, and two inputs are missing"), NO_INPUTS)
        if self._stated is None:
            raise unclaimed(self.target)
        target = mechanism_of(
            self.target,
            self.python,
            {name: literal(value) for name, value in self.parameters.items()},
            seeding=self.seeding,
            outcomes=self.raising == "outcome",
            call_limit=self.call_limit,
            stubs=names_in(self.stub),
        )
        return self._prepare_mechanism(target, self._stated, {})

    def _prepare_learner(self, target: Any, measure: Measure, arguments: Mapping[str, Any]) -> Prepared:
        from ...learners.scalar import arms_of, as_learner, weaker_learner

        self._check_learner()
        claim = Claim(
            measure=measure,
            losses=self.losses or "unit",
            neighbours=self.claimed_neighbours,
            surface=self.surface or "actions",
            raising=self.raising or "error",
        )
        rounds = self.rounds or self.worlds_rounds or DEFAULT_ROUNDS
        arms = arms_of(target, self.arms, self._arms_given() if self.arms is None else None)
        randomness = {"global_random": self.seeding, "os_random": self.os_random}
        game: dict[str, Any] = {"arms": arms, "rounds": rounds, **randomness, **arguments}
        learner = as_learner(target, **game)
        arms_of(learner, self.arms)  # raises where a function makes a learner of its own arms
        weakening = self._weakening(partial(weaker_learner, target, **game))
        searched = self._searched_inputs()
        pairs = self._given(claim, rounds)
        return Prepared(self, learner, claim, pairs, rounds, weakening=weakening, searched_inputs=searched)

    def _arms_given(self) -> int | None:
        """Return how many arms the losses have that are given; None where none are."""
        if self.pair is not None:
            return self.pair.arms
        from ..play.rounds import arms_told, as_sequence
        from ..spaces.sequences import examples_of

        with suppress(ValueError):  # said where they are read
            sequences = [as_sequence(side) for side in self.inputs().values()]
            searched = self._searched_inputs()
            sequences += [] if searched is None else examples_of(searched, self.budget.seed, first_only=True)
            return arms_told(sequences[0]) if sequences else None
        return None

    def _prepare_entry(self, entry: Entry) -> Prepared:
        parameters = parse_parameters(entry, self.parameters)
        setting, arguments = parameters.setting, parameters.arguments
        self._check_learner()
        self._refuse_own()
        game = {"epsilon": self._of_noise, "delta": self.delta, "rounds": self.rounds, "arms": self.arms}
        changes = {"losses": losses_given_once(self.losses, setting), **game, **setting}
        game_setting = entry.setting(**{name: value for name, value in changes.items() if value is not None})
        if game_setting.losses not in LOSS_SET_NAMES:
            raise must_be_one_of("losses", LOSS_SET_NAMES, game_setting.losses)
        claimed: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta, "surface": self.surface}
        claim = entry.claim(game_setting, **claimed, neighbours=self.claimed_neighbours)
        learner = entry.build(game_setting, **arguments)
        values = {**vars(game_setting), **entry.defaults, **arguments}
        weakening = self._weakening(partial(self._with_parameter, values, claim.epsilon))
        case = self._case(entry.cases_of(game_setting, arguments, claim)) if self.measure is None else None
        if self.measure is None:
            claim = replace(claim, source=case.source(entry) if case else entry.source)
        else:  # no paper's
            claim = replace(claim, measure=self.measure, source="")
        searched = self._searched_inputs()
        usual_levels = {name: getattr(entry.setting(), name) for name in ("epsilon", "delta") if name not in setting}
        other_settings = {name: replace(game_setting, **{name: value}) for name, value in usual_levels.items()}
        return Prepared(
            self,
            learner,
            claim,
            self._given(claim, game_setting.rounds),
            game_setting.rounds,
            setting=game_setting,
            case=case,
            weakening=weakening,
            searched_inputs=searched,
            noise_set_by=[
                name for name, other in other_settings.items() if not _makes(entry, other, arguments, learner)
            ],
        )

    def _with_parameter(
        self, values: Mapping[str, object], claimed: float, parameter: NoiseParameter, factor: float
    ) -> object:
        """Return a catalogue entry's learner with one of its parameters changed, the claim being the same."""
        name = parameter.name
        if values.get(name) is None:
            error = about("weaken", ValueError(f"weaken: {name!r} has no value in {self.target}"))
            raise hinted(error, f"give `set={name}=...`, or `weaken` alone")
        parameters = {**self.parameters, name: parameter.weaker(values[name], factor)}
        epsilon = claimed if self.measure is None else self.epsilon
        return replace(self, parameters=parameters, epsilon=epsilon, weaken=None).prepare().target

    def _case(self, cases: Sequence[Case]) -> Case | None:
        """Return the case on the pair that was given, or else one whose pair is searched; None if there is neither."""
        from ..play.pairs import Pair

        worlds = None if self.pair is None else self.pair.to_json()
        on_pair = (c for c in cases if worlds is not None and c.pair is not None and Pair(*c.pair).to_json() == worlds)
        searched = sorted(cases, key=lambda case: case.pair is not None)
        return next(on_pair, None) or next((case for case in searched if case.pair is None or worlds is None), None)

    def _prepare_specimen(self, specimen: Specimen, arguments: Mapping[str, Any]) -> Prepared:
        from ...mechanisms.specimen import claim_of
        from ...mechanisms.weakening import with_parameter

        mechanism = specimen.build(**{"epsilon": self._of_noise, **arguments})
        claim = self._said(Claim(measure=claim_of(mechanism), source=specimen.source))
        self._check_inputs()
        self._check_near()
        for side, data in self.inputs().items():  # ours raise for nothing but what they cannot take
            try:
                mechanism(data, Draws(self.budget.seed), 1)
            except Exception as error:
                message = " ".join(str(error).split())
                raise ValueError(f"{self.target} cannot take the {side} input {data!r}: {message}") from None
        self._refuse_own()
        searched = self._searched_inputs()
        pairs = None if self.inputs() or searched is not None else specimen.pairs
        weakening = self._weakening(partial(with_parameter, mechanism))
        calibrated = "epsilon" in specimen.parameters and "epsilon" not in arguments
        sets = ["epsilon"] if calibrated and self._of_noise not in (None, specimen.epsilon) else []
        return Prepared(
            self,
            mechanism,
            claim,
            pairs,
            is_mechanism=True,
            weakening=weakening,
            searched_inputs=searched,
            noise_set_by=sets,
        )

    def _prepare_library(self, entry: LibraryEntry) -> Prepared:
        relation = self.relation_of(entry)
        if self.input_schema is not None or self.parameters:
            raise takes_no(f"{self.target} has its own inputs and parameters", ["inputs", "set"])
        if relation not in entry.relations:
            raise must_be_one_of(f"neighbours of {self.target}", entry.relations, self.relation)
        self._refuse_game(relation=True)
        if self.os_random and not entry.os_random:
            raise not_own("os_random", self.target)
        self._check_inputs()
        from ...mechanisms.library_entry import LibraryCase
        from ..pipeline.blind_spot_search import Weakening
        from ..spaces.neighbours import neighbours_of

        claim, mechanism = self._said(replace(entry.claim, source=entry.source)), entry.mechanism
        claim = replace(claim, raising=self.raising or "error")
        inputs = None if self._given_inputs() else neighbours_of(entry, relation)
        if isinstance(parameter := self.weaken, str):
            error = about(
                "weaken", ValueError(f"weaken = {parameter} names a parameter: {self.target} has its noise only")
            )
            raise hinted(error, "give `weaken` alone")
        weakening = None if entry.weakened_by is None else Weakening(entry.build, entry.weakened_by)
        return Prepared(
            self.completed(),
            mechanism,
            claim,
            case=LibraryCase(entry, relation) if claim.source else None,
            is_mechanism=True,
            relation=relation,
            weakening=weakening,
            searched_inputs=inputs,
        )

    def _refuse_own(self) -> None:
        """Raise ValueError for options of code that a user wrote."""
        for option in ("global_random", "reseed", "os_random"):
            if getattr(self, option):
                raise not_own(option, self.target)
        if self.raising is not None:
            raise about("raising", ValueError(f"raising is for code of your own, and {self.target} raises nothing"))

    def _prepare_canaries(self) -> Prepared:
        """Read the scores of canaries, or resolve the training that gives them."""
        from .canary_requests import given_scores, given_training

        target = given_scores(self) if self.of_scores else given_training(self, resolve(self.target))
        if self._stated is None:
            raise unclaimed(self.target)
        return Prepared(self, target, Claim(measure=self._stated), is_mechanism=True)

    @property
    def _of_noise(self) -> float | None:
        """The epsilon that sets the noise; None of a claim (0, delta), which bounds the total variation alone."""
        return None if self.epsilon == 0 and self.delta else self.epsilon

    def _said(self, claim: Claim) -> Claim:
        """Return the claim that is asked for about a mechanism: its own, or one that is not said where its own is."""
        measure = self.measure or self._restated(claim.measure)
        return claim if measure == claim.measure else replace(claim, measure=measure, source="")

    def _restated(self, measure: Measure) -> Measure:
        """Return a claim with the epsilon and delta that are asked for; of another measure what it implies there."""
        if self.epsilon is self.delta is None:
            return measure
        approximate = measure if isinstance(measure, ApproxDP) else None
        delta = self.delta if self.delta is not None else approximate.delta if approximate else 0.0
        epsilon = (
            self.epsilon
            if self.epsilon is not None
            else approximate.epsilon
            if approximate
            else measure.approximate(delta)
        )
        if delta == 0 and math.isinf(epsilon):
            error = ValueError(f"{self.target} claims no epsilon at delta 0")
            raise hinted(error, "give `epsilon`, or a larger `delta`")
        return ApproxDP(epsilon, delta)

    def _weakening(self, weaker: Callable[[NoiseParameter, float], object]) -> Weakening | None:
        """Return how the target is weakened by a parameter, as `weaker` does; None where none is named."""
        from ...mechanisms.weakening import NoiseParameter
        from ..pipeline.blind_spot_search import Weakening

        if isinstance(self.weaken, str):
            return Weakening(partial(weaker, NoiseParameter.parse(self.weaken)), self.weaken)
        return None

    def _searched_inputs(self) -> object:
        """Return the strategy of the pairs that are searched; None where none are."""
        if self.input_schema is None:
            return None
        if self._given_inputs():
            raise exclude("`left` and `right`", "`inputs`", "a schema searches what they give")
        from ..spaces.schema import pairs_of

        relation = relation_functions(self.relation)[0] if self.near_by_function else self.relation
        return pairs_of(read_schema(self.input_schema), relation)

    def _check_near(self) -> None:
        """Raise ValueError where given inputs are no neighbours by the relation that was said."""
        if not self._given_inputs():
            return
        left, right = (read_input(value) for value in (self.left, self.right))
        if self.neighbours is None:
            from ..spaces.changes import check_some_relation

            check_some_relation(left, right)
            return
        if not self.near_by_function:
            from ..spaces.changes import check_near

            check_near(Relation.parse(self.neighbours), left, right)
            return
        is_near = relation_functions(self.neighbours)[1]
        if is_near is not None and not is_near(left, right):
            raise ValueError(f"the two inputs are not neighbours by is_near of {self.neighbours}")

    def _given(self, claim: Claim, rounds: int) -> tuple[Pair, ...] | None:
        """Return the pair of losses that is given, by itself or as two sequences of rounds; None where none is."""
        if self.pair is None and len(self._given_inputs()) == 2:
            from ..pipeline.given_rounds import pair_of

            left, right = self.inputs().values()
            pair = pair_of(left, right, claim, rounds)
            return None if pair is None else (pair,)
        return None if self.pair is None else (self.pair,)

    def _check_mechanism(self, target: object) -> None:
        """Raise ValueError for what a user's mechanism cannot be, and for the options of learners."""
        self._check_inputs()
        if inspect.isclass(target) or not callable(target):
            kind = "a class" if inspect.isclass(target) else f"{type(target).__name__} {target!r}"
            raise hinted(
                ValueError(
                    f"`left` and `right` are for a mechanism, a function of (data, rng): {self.target} is {kind}"
                ),
                "write a function that makes the object and returns what one call of it answers",
            )
        self._refuse_game(relation=bool(self._given_inputs()))


def _makes(entry: Entry, setting: Setting, arguments: Mapping[str, Any], learner: object) -> bool:
    """Tell whether an entry makes this learner in another setting too; in some, as without a delta, it makes none."""
    try:
        return repr(entry.build(setting, **arguments)) == repr(learner)
    except ValueError:
        return False


@dataclass(frozen=True)
class Prepared:
    """A task with its target built."""

    task: Task
    target: Any  # a learner, or a mechanism
    claim: Claim
    pairs: tuple[Any, ...] | None = None
    rounds: int = 1
    setting: Setting | None = None  # of a catalogue entry
    case: Case | LibraryCase | None = None  # the catalogue's, where it has this one
    is_mechanism: bool = False  # answers once, on one of two inputs
    relation: str | None = None  # of an entry of the libraries' catalogue: what its neighbours are
    weakening: Weakening | None = None  # how its noise is made weaker, if not by its fields or by planted faults
    searched_inputs: object = None  # the strategy of its inputs
    noise_set_by: Sequence[str] = ()  # options of the claim that set its noise too, to another than the usual

    def audit(self, execution: Execution = IN_PROCESS, *, shrink: bool = False) -> Result:
        """Run the audit; where inputs are searched, shrink those that falsify."""
        if self.task.of_scores:
            from ..canaries.score_audit import concluded

            return concluded(self.target, self.claim, self.task.budget, time.perf_counter())
        if self.task.canaries is not None:
            from ..canaries.training_audit import audit_training

            task = self.task
            options: Any = {"canaries": task.canaries, "trainings": task.trainings, "global_random": task.seeding}
            options["power"] = task.required_power
            return audit_training(self.target, self.claim, task.budget, execution, **options)
        from ..pipeline.audited import audited

        reader, inputs = self._reading(shrink=shrink)
        return audited(self.target, self.claim, self.task.budget, execution, inputs, reader)

    def _reading(self, *, shrink: bool) -> tuple[Reader, Given]:
        """Return what reads the target's worlds, and what it is given."""
        from ..pipeline.given import Given

        task, worlds = self.task, self.task.inputs()
        power: dict[str, Any] = {"weaken": self.weakening, "power": task.required_power}
        options: dict[str, Any] = {**power, "shrink": shrink, "inputs": self.searched_inputs}
        if self.of_sequences:
            pairs = None if worlds else self.pairs
            from ..pipeline.given_rounds import read_rounds

            return read_rounds, Given(rounds=self.rounds, **worlds, pairs=pairs, os_random=task.os_random, **options)
        if not self.is_mechanism:
            from ..pipeline.given_losses import read_losses

            return read_losses, Given(rounds=self.rounds, pairs=self.pairs, **power)
        elsewhere = task.python is not None  # where a process of its own seeds what is global
        randomness: dict[str, Any] = {
            "os_random": task.os_random,
            "global_random": False if elsewhere else task.seeding,
        }
        read: dict[str, Any] = {"bits": task.bits, "call_limit": task.call_limit, "attributes": task.attributes}
        read["score"] = None if task.score is None else score_function(task.score)
        from ..pipeline.given_data import read_data

        return read_data, Given(**worlds, pairs=self.pairs, **randomness, **read, **options)

    @property
    def of_sequences(self) -> bool:
        """Whether a learner is audited on sequences of rounds, as a mechanism is on inputs."""
        if self.is_mechanism:
            return False
        from ..pipeline.given_losses import seen_on_sequences

        return self.gives_sequences or self.run_by_run or seen_on_sequences(self.target, self.claim.view)

    @property
    def run_by_run(self) -> bool:
        """Whether the runs of a learner are played one by one."""
        if self.is_mechanism:
            return False
        from ..play.run_by_run import played_alone

        return played_alone(self.claim, os_random=self.task.os_random)

    @property
    def gives_sequences(self) -> bool:
        """Whether a learner's inputs are sequences of rounds that no pair of losses says as well."""
        return not self.is_mechanism and self.task.has_inputs and self.pairs is None

    @property
    def traced(self) -> Any:
        """What a trace plays: a learner itself, on a pair of losses."""
        return self.played if self.is_mechanism else self.target

    @property
    def played(self) -> Any:
        """What is called: the learner or mechanism, without a generator where it is not asked for one."""
        from ..play.unseeded import OnGlobals, Unseeded

        if self.of_sequences:
            from ..play.run_by_run import player_of

            player = player_of(self.target, self.claim, run_by_run=self.run_by_run)
            return Unseeded(player) if self.task.os_random else player
        read = self.target
        if self.task.python is not None:  # which does all of this itself
            return read
        if self.task.attributes is not None:
            from ..play.attributes import WithAttributes

            read = WithAttributes(read, self.task.attributes)
        read = OnGlobals(read, self.task.seeding) if self.task.seeding and self.is_mechanism else read
        if self.claim.raising == "outcome" and self.is_mechanism:
            from ..play.raising import Outcomes

            read = Outcomes(read)
        return Unseeded(read) if self.task.os_random else read
