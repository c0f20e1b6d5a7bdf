"""A user's own learner: a plain Python class, one object a run, behind the batched protocol."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast, get_args

import numpy as np
from numpy.typing import NDArray

from ..errors import about, hinted, must_be, placed, unknown
from ..mechanisms.constant_seeds import drawn_reseeded, held_generators, seed_held
from ..mechanisms.draws import Draws, Floats
from ..mechanisms.faults import Fault
from ..mechanisms.framework_random import loaded_frameworks
from ..mechanisms.global_random import FRESH_SEEDS, drawn_from
from ..mechanisms.parameters import with_plain_numbers
from ..mechanisms.weakening import NoiseParameter, default_of, with_parameter
from .blame import crash_place, name_of, raised, said
from .checks import check_arms, check_rounds
from .float_errors import theirs
from .protocol import Arms, FeedbackKind, Learner, LearnerError

KINDS = get_args(FeedbackKind)
SIGNATURE = "__init__(self, arms, rounds, rng)"
#: What a constructor is offered.
OFFERED = frozenset({"arms", "rounds", "rng"})
#: What cures a learner or mechanism whose randomness nobody can seed.
OS_CURE = "`os_random=True` plays code whose randomness cannot be seeded"
#: What makes an exception count.
RAISING_CURE = '`raising="outcome"` takes an exception as an outcome like any other'


def global_cure() -> str:
    """Return the cure of a target that draws from global generators, with the frameworks that are loaded."""
    sources = ["np.random", "random", *loaded_frameworks()]
    return f"`global_random=True` plays code that draws from {', '.join(sources[:-1])} or {sources[-1]}"


def state_cures(target: object) -> tuple[str, ...]:
    """Return what cures code that keeps state or draws from elsewhere, by what it holds and how it is played."""
    seeding = getattr(target, "seeding", getattr(target, "global_random", False))
    held = {} if seeding == FRESH_SEEDS else held_generators(target)
    if not held:
        return () if seeding else (global_cure(),)
    seeds = {name: seed_held(generator) for name, generator in held.items()}
    names = ", ".join(name if seed is None else f"{name} (seed {seed})" for name, seed in seeds.items())
    return (f"made before the call: {names}; `reseed=True` plays what draws from that with fresh seeds",)


@dataclass
class ScalarState:
    """One object of the user's class and its generator for each run, the rounds begun, and the arms just played."""

    objects: list[Any]
    round: int
    played: Arms
    generators: list[np.random.Generator]


@dataclass(frozen=True)
class Scalar:
    """Play a user's plain class, one object a run, in a Python loop over the runs.

    The class has `feedback = "bandit"` or `"full"`, `__init__(self, arms, rounds, rng)`, `act(self) -> int` and
    `update(self, feedback)`. `rng` is a numpy Generator of the run's own, its only randomness. `feedback` is the
    played arm's loss (a float), or the loss vector (arms,). With a method `observe(self, context)` it is told the
    context of every round that has one, before it acts.

    **Claim**: none of its own; the user's.

    Parameters
    ----------
    user_class : type
        The class.
    arms, rounds : int
        K and T, passed to its constructor.
    parameters : mapping
        Further keyword arguments of its constructor. They may stand for arms and rounds, as `n_arms` and `T` do.
    global_random : bool or "fresh seeds"
        Whether it draws from `np.random`, `random` or unseeded generators, which then draw from the run's generator
        (`mechanisms.global_random`): its constructor needs no rng. With fresh seeds its own are another in each run.
    os_random : bool
        Whether its randomness cannot be seeded: its constructor needs no rng.
    fault : Fault, optional
        A fault in the noise of every run.

    Raises
    ------
    LearnerError
        If the class lacks a method, has another constructor, raises, or plays no arm; with the round and the run.
    ValueError
        If a parameter is missing, or is none of the constructor's.
    """

    user_class: type
    arms: int
    rounds: int
    parameters: Mapping[str, object] = field(default_factory=dict)
    global_random: bool | str = False
    os_random: bool = False
    fault: Fault | None = None

    def __post_init__(self) -> None:
        check_arms(self.arms)
        check_rounds(self.rounds)
        _check_methods(self.user_class, ("act", "update"))
        lacking = OFFERED - self._given
        if self.parameters:  # they may say arms and rounds by other names
            lacking -= {"arms", "rounds"}
        if self.global_random or self.os_random:
            lacking -= {"rng"}
        if lacking:
            takes = f"{self.user_class.__name__}{inspect.signature(self.user_class)}"
            cures = [
                *(["give n_arms and the like by `set`"] if lacking & {"arms", "rounds"} else []),
                *([global_cure(), OS_CURE] if "rng" in lacking else []),
            ]
            lacks = f"it takes no {', '.join(sorted(lacking))}"
            raise hinted(LearnerError(f"{takes} must be {SIGNATURE}: {lacks}"), *cures)

    @property
    def _given(self) -> set[str]:
        """Which of arms, rounds and rng the constructor takes."""
        seedless = self.global_random or self.os_random
        offered = OFFERED - {"rng"} if seedless and not _takes(self.user_class, "rng") else OFFERED
        return _arguments(self.user_class, set(offered), self.parameters)

    @property
    def feedback(self) -> FeedbackKind:
        """What `update` is told: the class says."""
        return cast(FeedbackKind, self.user_class.feedback)  # type: ignore[attr-defined]

    def start(self, runs: int, draws: Draws) -> ScalarState:
        """Return a fresh object for every run, each with a generator keyed by its run."""
        objects, generators, accepted = [], [], self._given
        for run in range(runs):
            rng = draws.run_generator(run)
            rng = rng if self.fault is None else self.fault.generator(rng)
            offered = {"arms": self.arms, "rounds": self.rounds, "rng": rng}
            arguments = {name: value for name, value in offered.items() if name in accepted}
            generators.append(rng)
            make = partial(self.user_class, **arguments, **self.parameters)
            objects.append(self._call("__init__", 0, run, rng, make))
        return ScalarState(objects, 0, np.zeros(runs, dtype=np.intp), generators)

    def _call(self, method: str, t: int, run: int, rng: np.random.Generator, call: Callable[[], Any]) -> Any:
        """Return what the user's code answers; raise LearnerError for what it raises, with the method and the run."""
        try:
            if self.global_random == FRESH_SEEDS:
                return drawn_reseeded(self, rng, call)
            return drawn_from(rng, call) if self.global_random else call()
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            fault = self._error(method, f"raised {said(error)}", t, run, crash_place(error))
            counts = isinstance(error, Exception) and not isinstance(error, MemoryError | LearnerError)
            raise (hinted(fault, RAISING_CURE) if counts else fault) from error

    def _ask(self, state: ScalarState, run: int, method: str, *args: object, ahead: int = 0) -> Any:
        """Return what a method of one run's object answers in this round, or in one ahead."""
        learner, rng = state.objects[run], state.generators[run]
        return self._call(method, state.round + ahead, run, rng, lambda: getattr(learner, method)(*args))

    def observe(self, state: ScalarState, context: object, runs: NDArray[np.bool_]) -> None:
        """Show the round's context to some of the objects, each a copy of its own."""
        for run in np.flatnonzero(runs).tolist():
            self._ask(state, run, "observe", copy.deepcopy(context), ahead=1)

    def offer(self, state: ScalarState, arms: list[int], runs: NDArray[np.bool_]) -> None:
        """Tell some of the objects which arms the round has."""
        for run in np.flatnonzero(runs).tolist():
            self._ask(state, run, "offer", list(arms), ahead=1)

    def draw(self, state: ScalarState) -> Floats:
        """Return the losses that the objects draw for what they played: (runs,), or vectors (arms, runs)."""
        runs = range(len(state.objects))
        losses = np.array([self._losses(self._ask(state, run, "draw"), state.round, run) for run in runs])
        return losses if self.feedback == "bandit" else losses.T

    def _losses(self, losses: object, t: int, run: int) -> NDArray[np.float64]:
        """Return drawn losses as an array; raise LearnerError unless they are finite, and as many as are told."""
        shape = () if self.feedback == "bandit" else (self.arms,)
        try:
            numbers = np.asarray(losses, dtype=np.float64)
        except (TypeError, ValueError):
            numbers = np.full(1, np.nan)
        if numbers.shape != shape or not np.isfinite(numbers).all():
            expected = "a finite number" if self.feedback == "bandit" else f"{self.arms} finite numbers"
            raise self._error("draw", f"must return {expected}, got {_one_line(repr(losses))}", t, run)
        return numbers

    def act(self, state: ScalarState, draws: Draws) -> Arms:
        """Ask every object for its arm."""
        state.round += 1
        arms = np.empty(len(state.objects), dtype=np.intp)
        for run in range(arms.size):
            arm = self._ask(state, run, "act")
            if isinstance(arm, bool) or not isinstance(arm, int | np.integer):
                fault = f"must return an integer arm, got {type(arm).__name__} {_one_line(repr(arm))}"
                raise self._error("act", fault, state.round, run)
            if not 0 <= arm < self.arms:
                fault = f"must return an arm in 0..{self.arms - 1}, got {arm}"
                raise self._error("act", fault, state.round, run)
            arms[run] = arm
        state.played = arms
        return arms

    def update(self, state: ScalarState, actions: Arms, feedback: Floats, draws: Draws) -> None:
        """Tell every object its loss, or its own copy of the loss vector.

        Raises
        ------
        ValueError
            If `actions` are not those that the objects chose: a plain class cannot be told of other ones.
        """
        if actions is not state.played and not np.array_equal(actions, state.played):
            raise ValueError("the actions of a plain class cannot be clamped")
        runs = len(state.objects)
        fed = feedback.tolist() if feedback.ndim == 1 else np.broadcast_to(feedback, (self.arms, runs)).T
        for run in range(runs):
            self._ask(state, run, "update", fed[run] if feedback.ndim == 1 else fed[run].copy())

    def values(self, state: ScalarState, method: str) -> list[object]:
        """Ask every object for what one of its methods returns now, such as `model()`."""
        learners = zip(state.objects, state.generators, strict=True)
        return [
            self._call(method, state.round, run, rng, partial(_copied_answer, learner, method))
            for run, (learner, rng) in enumerate(learners)
        ]

    def _error(self, method: str, fault: str, t: int, run: int, place: str = "") -> LearnerError:
        where = f"round {t}, run {run}" if t else f"before round 1, run {run}"
        name = f"{self.user_class.__name__}.{method}"
        return placed(about(name, LearnerError(f"{name} {fault}")), "; ".join(filter(None, (place, where))))


def has_channel(learner: object, channel: str) -> bool:
    """Tell whether a learner, or the plain class behind it, has a method that shows something after an update."""
    return callable(getattr(learner.user_class if isinstance(learner, Scalar) else learner, channel, None))


def values_of(learner: Learner, channel: str, state: object) -> Any:
    """Return what is shown after an update: an array (..., runs) or None; of a plain class a list, a value a run."""
    if isinstance(learner, Scalar):
        return learner.values(cast(ScalarState, state), channel)
    return getattr(learner, channel)(state)


def check_target(user_object: object) -> None:
    """Raise LearnerError for what is no learner, nor may make one; ValueError for a mechanism."""
    if is_mechanism(user_object):
        raise ValueError(
            f"{name_of(user_object)} is a mechanism, a function of (data, rng), and no learner: audit it by "
            "falsify (overclaim check)"
        )
    if isinstance(user_object, type):
        batched = hasattr(user_object, "start")
        _check_methods(user_object, ("start", "act", "update") if batched else ("act", "update"), feedback=not batched)
    elif isinstance(user_object, partial):
        maker = name_of(user_object.func)
        raise hinted(
            LearnerError(f"a partial of {maker} is no learner"),
            f"give {maker} itself, with parameters (--set NAME=VALUE), or a class derived from it that has "
            "them as defaults",
        )
    elif not inspect.isroutine(user_object):
        _check_methods(user_object, ("start", "act", "update"))


def as_learner(
    user_object: object,
    *,
    arms: int,
    rounds: int,
    global_random: bool | str = False,
    os_random: bool = False,
    **parameters: object,
) -> Learner:
    """Return the batched learner behind a user's object.

    Parameters
    ----------
    user_object
        A batched learner, returned as it is; a batched class (one with `start`) or a function that returns a batched
        learner, called with whichever of `arms` and `rounds` it takes; or a plain class, wrapped in `Scalar`.
    arms, rounds : int
        K and T.
    global_random, os_random : bool
        Whether a plain class draws from global generators, or from what cannot be seeded: see `Scalar`.
    **parameters
        Further arguments of the constructor.

    Raises
    ------
    LearnerError
        If the object is no learner, or its constructor raises.
    ValueError
        If a parameter is missing, or is none of the constructor's.
    """
    check_target(user_object)
    if isinstance(user_object, type) and not hasattr(user_object, "start"):
        return with_plain_numbers(Scalar(user_object, arms, rounds, parameters, global_random, os_random))
    for option, is_set in (("global_random", global_random), ("os_random", os_random)):
        if is_set and not isinstance(user_object, Scalar):
            raise ValueError(f"{option} is for plain classes, and {name_of(user_object)} plays many runs at once")
    if isinstance(user_object, type) or inspect.isroutine(user_object):
        learner = _built(user_object, {"arms": arms, "rounds": rounds}, parameters)
        _check_methods(learner, ("start", "act", "update"))
    else:
        learner = user_object
        if parameters:
            raise ValueError(f"{type(learner).__name__} is built already and takes no {', '.join(sorted(parameters))}")
    if not hasattr(learner, "arms"):
        raise LearnerError(f"{type(learner).__name__} must have arms, the length of a loss vector")
    return _with_plain_arms(with_plain_numbers(cast(Learner, learner)))


def plays_run_by_run(learner: object) -> bool:
    """Return whether each run of a learner is an object of a plain class: its time grows with every run."""
    return isinstance(learner, Scalar)


def _with_plain_arms(learner: Learner) -> Learner:
    """Return a learner whose arms are an integer of Python's: with a small one of NumPy's products overflow."""
    arms: object = learner.arms
    if not isinstance(arms, np.integer):
        return learner
    learner = copy.copy(learner)
    try:
        object.__setattr__(learner, "arms", int(arms))
    except AttributeError:  # a property
        if arms.itemsize < np.dtype(np.int64).itemsize:
            expected = f"an int, not {type(arms).__name__}"
            raise must_be(f"{name_of(learner)}.arms", expected, arms, LearnerError) from None
    return learner


def arms_of(learner: object, arms: int | None, length: int | None = None) -> int:
    """Return the number of arms: as asked for, else the learner's, else the length of the losses, else 2.

    Raises
    ------
    ValueError
        If other ones are asked for than a learner has that is built already.
    """
    stated_arms = getattr(learner, "arms", None)
    stated_arms = int(stated_arms) if isinstance(stated_arms, np.integer) else stated_arms
    if arms is None:
        return stated_arms if isinstance(stated_arms, int) else length or 2
    if (
        isinstance(stated_arms, int)
        and isinstance(arms, int | np.integer)
        and not isinstance(learner, type)
        and stated_arms != arms
    ):
        raise must_be("arms", f"those of the learner, {stated_arms}", arms)
    return arms


def is_learner(target: object) -> bool:
    """Tell whether a target is a learner or makes one: it has what a learner has, or takes what a game has."""
    if hasattr(target, "act") or hasattr(target, "update"):
        return True
    if not inspect.isfunction(target):
        return False
    names = inspect.signature(target).parameters.keys()
    return not names or bool({"arms", "rounds"} & names)


def is_mechanism(target: object, *, has_inputs: bool = False) -> bool:
    """Tell whether a target is a mechanism, by itself; with inputs beside it so is every function of no game."""
    if has_inputs and inspect.isroutine(target):
        return not is_learner(target)
    if isinstance(target, partial) and is_learner(target.func):
        return False
    if not inspect.isfunction(target):  # an object that is called is one, unless it is to be played
        played = any(hasattr(target, name) for name in ("start", "act", "update"))
        return callable(target) and not inspect.isclass(target) and not inspect.isroutine(target) and not played
    return bool({"data", "rng"} & inspect.signature(target).parameters.keys()) and not is_learner(target)


def weaker_learner(
    user_object: object,
    parameter: NoiseParameter,
    factor: float,
    *,
    arms: int,
    rounds: int,
    **parameters: Any,
) -> Learner:
    """Return what `as_learner` returns, with less noise: a class or function is called with one parameter changed.

    Parameters
    ----------
    user_object, arms, rounds, **parameters
        As for `as_learner`.
    parameter : NoiseParameter
        Its value is what `parameters` say, else its default; of a learner that is built, the field's.
    factor : float
        That it is multiplied by, or divided.

    Raises
    ------
    LearnerError, ValueError
        As for `as_learner`; and if there is no such parameter, or it is no number.
    """
    if not isinstance(user_object, type) and not inspect.isroutine(user_object):
        return as_learner(with_parameter(user_object, parameter, factor), arms=arms, rounds=rounds)
    name = parameter.name
    value = parameters[name] if name in parameters else default_of(user_object, name, ("arms", "rounds", "rng"))
    weaker_parameters = {**parameters, name: parameter.weaker(value, factor)}
    return as_learner(user_object, arms=arms, rounds=rounds, **weaker_parameters)


def _built(make: Callable[..., object], game: Mapping[str, int], parameters: Mapping[str, object]) -> object:
    arguments = _arguments(make, set(game), parameters)
    try:
        with theirs():
            return make(**{name: value for name, value in game.items() if name in arguments} | dict(parameters))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if isinstance(error, ValueError) and parameters:  # one outside its range: the message says which
            raise ValueError(said(error).removeprefix("ValueError: ")) from None
        raise raised(make.__name__, error, " when built") from error


def _copied_answer(learner: Any, method: str) -> object:
    return copy.deepcopy(getattr(learner, method)())


def _takes(make: Callable[..., object], name: str) -> bool:
    """Return whether a constructor has a parameter of this name."""
    try:
        return name in inspect.signature(make).parameters
    except (TypeError, ValueError):
        return False


def _arguments(make: Callable[..., object], offered: set[str], parameters: Mapping[str, object]) -> set[str]:
    """Return which of the offered arguments `make` takes; raise ValueError for unknown or missing parameters."""
    name = make.__name__
    try:
        signature = inspect.signature(make).parameters.values()
    except (TypeError, ValueError):
        raise LearnerError(f"{name} must have {SIGNATURE}, its constructor cannot be read") from None
    by_name = {p.name: p for p in signature if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}
    open_ended = any(p.kind is p.VAR_KEYWORD for p in signature)
    unknown_names = [key for key in parameters if key in offered or not (open_ended or key in by_name)]
    if unknown_names:
        takes = sorted(by_name.keys() - offered)
        raise unknown(f"{name} takes no parameter", unknown_names[0], takes, f"it takes {', '.join(takes) or 'none'}")
    missing = [p.name for p in by_name.values() if p.default is p.empty and p.name not in {*offered, *parameters}]
    # Other names in place of the offered ones are another constructor, not a parameter left out.
    if "rng" in missing and not isinstance(make, type):
        raise hinted(
            LearnerError(f"{name} takes rng, so it makes the object of one run"),
            "give its class itself, or a function of arms and rounds that returns a batched learner",
        )
    if missing and (open_ended or parameters or "rng" not in offered or offered <= by_name.keys()):
        sets = " ".join(f"`set={parameter}=...`" for parameter in missing)
        error = ValueError(f"{name} needs a value for {' and '.join(missing)}")
        raise hinted(error, f"give {sets}, or a default in the code")
    return offered if open_ended and "rng" in offered else offered & by_name.keys()


def _check_methods(learner: object, methods: tuple[str, ...], *, feedback: bool = True) -> None:
    name = learner.__name__ if isinstance(learner, type) else type(learner).__name__
    lacking = [method for method in methods if not callable(getattr(learner, method, None))]
    if lacking == ["start"]:
        raise hinted(
            LearnerError(f"{name} must have start, act, update; it has no start"),
            "of a plain class give the class itself, no object and no function that returns it: every run "
            "gets an object of its own",
        )
    if lacking:
        raise hinted(
            LearnerError(f"{name} must have {', '.join(methods)}; it has no {', '.join(lacking)}"),
            "an adapter of a few lines calls what a class of other methods has, or a function def f(data, rng)",
        )
    for method in ("act", "update", "observe"):
        _check_runs(f"{name}.{method}", getattr(learner, method, None))
    stated_feedback = getattr(learner, "feedback", None)
    if feedback and not (isinstance(stated_feedback, str) and stated_feedback in KINDS):
        # Of what is no text the type: a property's own words are an address.
        kind = "none" if stated_feedback is None else type(stated_feedback).__name__
        shown_feedback = repr(stated_feedback) if isinstance(stated_feedback, str) else kind
        before = isinstance(learner, type) and not isinstance(stated_feedback, str)
        where = ": it is read from the class, before an object is made" if before else ""
        kinds = ", ".join(map(repr, KINDS))
        raise LearnerError(f"{name}.feedback must be one of {kinds}; got {shown_feedback}{where}")


def _check_runs(name: str, method: object) -> None:
    """Raise LearnerError for a method whose call runs nothing of it: what it should learn would be lost unseen."""
    is_async = inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method)
    if is_async or inspect.isgeneratorfunction(method):
        word = "async def" if is_async else "yield"
        raise LearnerError(f"{name} must be a plain method: with {word!r} a call of it runs nothing")


def _one_line(text: str) -> str:
    """Return the text on one line, cut to a readable length."""
    line = " ".join(text.split())
    return line if len(line) <= 200 else f"{line[:197]}..."
