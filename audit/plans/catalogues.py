"""The catalogues that come with overclaim: each is loaded when a name of it is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol, cast

if TYPE_CHECKING:
    from ...learners.entry import Case, Entry
    from ...mechanisms.library_entry import LibraryEntry
    from ...mechanisms.specimen import Specimen

#: What the names of the mechanisms' and of the libraries' catalogue begin with.
MECHANISMS, LIBRARIES = "mechanisms/", "libraries/"

_ROOT = __name__.rpartition(".audit.")[0]


class Catalogue(Protocol):
    """The catalogue of the papers' algorithms."""

    def entries(self) -> Mapping[str, Entry]:
        """Return the entries by name."""

    def lookup(self, name: str) -> Entry:
        """Return the entry of this name; raise ValueError if there is none."""

    def exact_law(self, entry: Entry, case: Case) -> tuple[float, int] | None:
        """Return what is known of a falsified row before any run, as `plan.runs_of` reads it; None of others."""


class PlantedSubject(Protocol):
    """A sound mechanism, and the bugs that can be planted in it, by name with what they do; epsilon is 1."""

    name: str
    play: Callable[..., object]
    left: object
    right: object
    delta: float
    bugs: Mapping[str, str]


class PlantedLearner(Protocol):
    """A sound learner with a bound on its regret, and its faults by name, with what they do."""

    name: str
    losses: str
    faults: Mapping[str, tuple[str, Any]]

    def bound(self, rounds: int) -> float:
        """Return the bound on its expected regret."""

    def planted(self, fault: str, rounds: int) -> object:
        """Return the learner with one fault; sound where the name is empty."""


class SelfTest(Protocol):
    """What a self-test audits."""

    def mechanisms(self) -> Sequence[PlantedSubject]:
        """Return the mechanisms."""

    def planted(self, subject: Any, bug: str) -> object:
        """Return a mechanism with one bug; sound where the name is empty."""

    def classes(self) -> Sequence[type]:
        """Return the plain classes, the sound one first; the docstring of another says its bug."""

    def learners(self) -> Sequence[PlantedLearner]:
        """Return the learners whose regret is audited."""


def _load(module: str) -> Any:
    return import_module(f"{_ROOT}.{module}")


def catalogue() -> Catalogue:
    """Return the catalogue of the papers' algorithms."""
    return cast(Catalogue, _load("learners.catalogue.entries"))


def self_test() -> SelfTest:
    """Return what the self-test audits."""
    return cast(SelfTest, _load("learners.planted.selftest"))


def mechanisms() -> Mapping[str, Specimen]:
    """Return the mechanisms of the zoo by name."""
    return cast("Mapping[str, Specimen]", _load("mechanisms.one_shot.zoo").zoo())


def libraries() -> Mapping[str, LibraryEntry]:
    """Return the entries of the libraries' catalogue by name; no library is imported for it."""
    return cast("Mapping[str, LibraryEntry]", _load("mechanisms.libraries.catalogue").library_entries())


def entry_of(target: str) -> Entry | None:
    """Return the entry of a target that names an algorithm of the papers; None for other targets."""
    if ":" in target or target.startswith((MECHANISMS, LIBRARIES)):
        return None
    return catalogue().entries().get(target)


def library_entry_of(target: str) -> LibraryEntry | None:
    """Return the entry of a target that names one of the libraries' catalogue; None for other targets."""
    return libraries().get(target) if target.startswith(LIBRARIES) else None
