"""Whose abilities are whose. Everything that trusts what a learner offers beside its protocol asks here first.

An ability (`probabilities`, `release_means`, `batch`, a closed form) speaks of how an object plays, and was
written and tested with the methods of one class. A subclass that overrides one of these methods, or an object in which
one was replaced, plays otherwise; what it inherits is then not its own, and is not used. What its author defines
beside the new methods is, and is held against what is played (`overclaim.audit.assumptions.declared_laws`).
"""

from __future__ import annotations

import inspect
from collections.abc import Hashable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cached_property, lru_cache
from types import NoneType
from typing import Any, TypeGuard, cast

import numpy as np

from ..mechanisms.draws import Draws, Purpose
from ..mechanisms.noise import deviation_of, scale_of
from .laws import NotEnumerableError
from .protocol import HasInner, HasProbabilities, HasRelease, Learner, OnALine
from .written import in_our_rooms, is_written, playing

#: Updates in which a learner is watched for draws, the runs of each, and the ranges of the losses that it is told.
_PROBED, _PROBES = 32, 8
_TOLD = ((0.0, 0.0), (1.0, 1.0), (-1.0, -1.0), (0.0, 1.0), (-1.0, 1.0))
#: Values that play nothing.
_PLAIN = (NoneType, bool, int, float, complex, str, bytes, *set(np.sctypeDict.values()))


class WithoutProbabilities:
    """A learner as it is, but for its `probabilities`, which are no law of its arms where it draws noise to learn."""

    def __init__(self, learner: Learner) -> None:
        self.learner = learner

    def __getattr__(self, name: str) -> object:
        if name in ("learner", "probabilities") or name.startswith("__"):  # nothing is there while it is unpickled
            raise AttributeError(name)
        return getattr(self.learner, name)


def inward(learner: object) -> Iterator[object]:
    """Yield a learner, the one that it wraps, and so on."""
    while learner is not None:
        yield learner
        learner = getattr(learner, "inner", None)


def takes_contexts(learner: object) -> bool:
    """Tell whether a learner observes a context before it acts: it has a method `observe`, as has what it wraps."""
    return has_method(learner, "observe")


def has_method(learner: object, name: str) -> bool:
    """Tell whether a learner has a method, and what it wraps has it too."""
    inner = getattr(learner, "user_class", getattr(learner, "inner", None))
    return hasattr(learner, name) and (inner is None or has_method(inner, name))


def owns(target: object, *abilities: str) -> bool:
    """Tell whether a thing offers all these abilities, each of them its own.

    An ability belongs to the class that defines it, or to the class of ours that inherits it there. Below that class
    nothing may override what it has, neither a subclass nor the object itself; abstract methods may be filled in. A
    subclass that overrides nothing keeps what it inherits.
    """
    if type(target) is WithoutProbabilities:
        return "probabilities" not in abilities and owns(target.learner, *abilities)
    return all(_owns(target, ability) for ability in abilities)


def _owns(target: object, ability: str) -> bool:
    classes = [kind for kind in type(target).__mro__[:-1] if not vars(kind).get("_is_protocol", False)]
    attributes = getattr(target, "__dict__", {})
    declares = (kind for kind in classes if ability in vars(kind) or ability in inspect.get_annotations(kind))
    owner = next(declares, None)
    if ability in attributes and (owner is None or _plays(vars(owner).get(ability))):
        return attributes[ability] is not None  # put into the object: nothing lies below
    if owner is None or (ability not in attributes and getattr(target, ability, None) is None):
        return False
    our_class = next((kind for kind in classes if in_our_rooms(kind)), None)
    if our_class is not None and owner in our_class.__mro__:
        if not is_written(our_class):
            return False
        owner = our_class
    tested = {name: value for kind in reversed(owner.__mro__[:-1]) for name, value in vars(kind).items()}
    tested = {name: value for name, value in tested.items() if not getattr(value, "__isabstractmethod__", False)}
    overrides = [item for kind in classes[: classes.index(owner)] for item in vars(kind).items()]
    overrides += [(name, None) for name in attributes if name in tested]
    # A number that a subclass or the object sets anew, such as its scale, is what the ability reads there, too.
    replaced = {name for name, value in overrides if _plays(value) or _plays(tested.get(name))}
    return not playing(replaced) & {*tested, "__getattr__", "__getattribute__"}


def _plays(value: object) -> bool:
    """Tell whether an attribute of a class is code that an object's own attribute would stand in for."""
    return (callable(value) or hasattr(value, "__get__")) and not isinstance(value, cached_property)


def is_ours(target: object) -> bool:
    """Tell whether a learner, or a part of one, is exactly ours as it is written, and so is all that it holds.

    A closed form is that of our code. Another class may have the same abilities, a subclass another update, an object
    a method of its own, a part another law.
    """
    attributes = getattr(target, "__dict__", {})
    return (
        is_written(type(target))
        and not any(_plays(getattr(type(target), name, None)) for name in attributes)
        and all(map(_is_harmless, attributes.values()))
    )


def _is_harmless(value: Any) -> bool:
    """Tell whether a value plays nothing of its own: numbers, texts, arrays, containers of these, and what is ours."""
    if isinstance(value, np.ndarray):
        return type(value) is np.ndarray and value.dtype != object
    if type(value) in (tuple, list, set, frozenset):
        return all(map(_is_harmless, value))
    if type(value) is dict:
        return all(map(_is_harmless, value.values()))
    return type(value) in _PLAIN or is_ours(value)


def declares(target: object, ability: str) -> bool:
    """Tell whether a law, a score or branches that a thing declares are to be believed: it offers them as its own.

    A closed form of ours is that of our code alone, with parts of ours; another author's is that of the class beside
    whose methods it stands.
    """
    owner = next((kind for kind in type(target).__mro__ if ability in vars(kind)), None)
    return owner is not None and owns(target, ability) and (not in_our_rooms(owner) or is_ours(target))


def plays_arms(learner: object) -> bool:
    """Tell whether neither a learner nor one that it wraps says that it plays points."""
    return all(getattr(part, "plays", "arms") == "arms" for part in inward(learner))


def batch_of(learner: Any) -> int:
    """Return the rounds that an arm is held: 1 unless the learner says otherwise."""
    return int(learner.batch) if owns(learner, "batch") else 1


def decisions(rounds: int, batch: int) -> int:
    """Return the number of arms chosen in `rounds` rounds."""
    return -(-rounds // batch)


def has_probabilities(learner: Learner) -> TypeGuard[HasProbabilities]:
    """Tell whether the learner says the law of its next arm, and so does one inside it."""
    inner = getattr(learner, "inner", None)
    return owns(learner, "probabilities") and (inner is None or has_probabilities(inner))


def is_noisy(noise: object) -> bool:
    """Tell whether a law of noise has a positive scale or standard deviation."""
    return scale_of(noise) > 0 or deviation_of(noise) > 0


def has_release(learner: Learner) -> TypeGuard[HasRelease]:
    """Tell whether the learner releases anything noisy."""
    return isinstance(learner, HasRelease) and owns(learner, "release") and is_noisy(learner.noise)


def inherited(learner: Learner) -> str:
    """Return what to say of a learner that releases by a method that is not its own."""
    if not isinstance(learner, HasRelease) or owns(learner, "release"):
        return ""
    return " of its own (it inherits release, but overrides methods that release speaks of: define it beside them)"


def knows_releases(learner: Learner) -> TypeGuard[HasRelease]:
    """Tell whether the law of what the learner releases is known, given what it released before."""
    density = "release_log_density"
    return (
        has_release(learner)
        and owns(learner, "release_means", "noise")
        and (not hasattr(learner, density) or owns(learner, density))
    )


def has_inner(learner: Any) -> TypeGuard[HasInner]:
    """Tell whether the learner feeds noisy scalars to one inside it whose next law is known."""
    return owns(learner, "inner", "noise", "batch") and is_noisy(learner.noise) and has_probabilities(learner.inner)


def has_grid_law(learner: Learner) -> TypeGuard[HasInner]:
    """Tell whether the learner feeds one noisy scalar to a two-armed learner on a line; both are ours."""
    return is_ours(learner) and isinstance(learner, HasInner) and is_noisy(learner.noise) and on_a_line(learner.inner)


def on_a_line(learner: Learner) -> TypeGuard[OnALine]:
    """Tell whether the grid filter applies to `learner` as it is configured."""
    return owns(learner, "line_probabilities", "line_step") and getattr(learner, "arms", 0) == 2


def has_noiseless_law(learner: Learner) -> TypeGuard[HasProbabilities]:
    """Tell whether the next arm's law is a function of the past arms and losses.

    A learner that draws while it learns, such as one with noise of its own, has no such law, whatever it offers; one
    that draws seldom is found out by `audit.assumptions.declared_laws`, which watches it on the losses of the audit.
    """
    return has_probabilities(learner) and not draws_to_learn(learner)


class NoDraws(Draws):
    """Draws for a learner that must not draw."""

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Raise NotEnumerableError."""
        raise NotEnumerableError("the learner draws noise of its own while it learns: its law is not known")


def draws_to_learn(learner: Learner) -> bool:
    """Tell whether `start`, or one of the first updates, draws, whatever was played and told: several probes."""
    # Equal recipes of ours play alike; others may be equal and have different methods.
    return _draws_when_probed(cast(Hashable, learner)) if is_ours(learner) and _hashable(learner) else _probed(learner)


def _hashable(learner: Learner) -> bool:
    try:
        hash(learner)
    except TypeError:
        return False
    return True


@lru_cache(maxsize=64)
def _draws_when_probed(learner: Hashable) -> bool:
    return _probed(cast(Learner, learner))


def _probed(learner: Learner) -> bool:
    return any(_draws_when_told(learner, *losses) for losses in _TOLD)


def _draws_when_told(learner: Learner, low: float, high: float) -> bool:
    """Tell whether the learner draws to learn from losses in a range, at random arms."""
    chance = np.random.default_rng(0)
    shape = (_PROBES,) if learner.feedback == "bandit" else (learner.arms, _PROBES)
    try:
        state = learner.start(_PROBES, NoDraws(0))
        for _ in range(max(_PROBED, batch_of(learner))):
            arms = chance.integers(learner.arms, size=_PROBES)
            learner.update(state, arms, chance.uniform(low, high, shape), NoDraws(0))
    except NotEnumerableError:
        return True
    except Exception:  # beyond its horizon, or told what it does not take: until there, nothing was drawn
        return False
    return False


def select(state: Any, columns: Any) -> object:
    """Return a learner's state with the given runs: every array's last axis is taken at `columns`."""
    if hasattr(state, "select"):
        return state.select(columns)
    arrays = {}
    for field in fields(state):
        value = getattr(state, field.name)
        if isinstance(value, np.ndarray):
            arrays[field.name] = value.take(columns, axis=-1)  # contiguous, unlike value[..., columns]
        elif is_dataclass(value):
            arrays[field.name] = select(value, columns)
    return replace(state, **arrays)
