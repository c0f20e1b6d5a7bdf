"""An entry of the libraries' catalogue: whose code, what it claims in its own words, and which inputs are searched."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from ..errors import hinted
from .claim import Claim
from .statement import Statement

#: `mechanism(data, rng)`.
Mechanism = Callable[..., object]
#: From `hypothesis.strategies`, which is imported when something is drawn, to a strategy of data.
Strategy = Callable[[ModuleType], object]
#: From data to its neighbours, an iterable or a strategy of them.
Neighbour = Callable[[Any], object]


class MissingLibraryError(ValueError):
    """A library that is not installed, or cannot be imported beside what is."""


@dataclass(frozen=True, kw_only=True)
class Library:
    """A library as it is audited.

    Attributes
    ----------
    name : str
        As it is called, the first part of its entries' names.
    distribution, version : str
        What is installed, and the version whose documentation is quoted.
    module : str
        What is imported.
    needs : str
        What must be installed beside it, as pip reads it; nothing where nothing must.
    target : str
        What `make` calls the environment that has it at this version.
    """

    name: str
    distribution: str
    version: str
    module: str
    needs: str = ""
    target: str = "libraries"

    def load(self, module: str = "") -> ModuleType:
        """Return the library, or a module of it.

        Raises
        ------
        MissingLibraryError
            If it is not installed, or cannot be imported.
        """
        version = self.asked
        if not self.is_installed:
            error = MissingLibraryError(f"libraries/{self.name} needs {version}, which is not installed")
            raise hinted(error, f"{self.command}, or make {self.target}")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                return importlib.import_module(module or self.module)
        except ImportError as error:
            message = " ".join(str(error).split())[:150]
            unfit = MissingLibraryError(f"libraries/{self.name} needs {version}; what is installed says: {message}")
            raise hinted(unfit, self.command) from None

    @property
    def asked(self) -> str:
        """What must be installed, in words."""
        return f"{self.distribution} {self.version}{f' with {self.needs}' if self.needs else ''}"

    @property
    def command(self) -> str:
        """What installs it."""
        return f"pip install {self.distribution}=={self.version}{f' {self.needs!r}' if self.needs else ''}"

    @property
    def is_installed(self) -> bool:
        """Whether it is there; whether it can be imported, only `load` tells."""
        return importlib.util.find_spec(self.module.partition(".")[0]) is not None

    @property
    def other(self) -> str:
        """The version that is installed, where it is another than the one whose documentation is quoted."""
        installed = _installed(self.distribution) if self.is_installed else ""
        return "" if installed == self.version else installed

    @property
    def missing(self) -> str:
        """What is not there for an audit of the version that is quoted; nothing where nothing is missing."""
        if not self.is_installed:
            return f"{self.asked} is not installed"
        return f"{self.asked} is not installed, but {self.other}" if self.other else ""


@cache
def _installed(distribution: str) -> str:
    """Return the version of what is installed; nothing where no distribution of that name is."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return ""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found to be false of an entry's claim, or is read in the source to be.

    Attributes
    ----------
    false : str
        What is false, and its cause in the library's source.
    answer : str
        What its authors could answer.
    repair : str
    upstream : str
        What their tracker says: an address, or that nothing was found.
    disclosed : str
        The date on which the fault was in public, or told to the authors; until then it stands in no register.
    certified : bool
        Whether an audit has falsified the claim; else it was only read in the source.
    reading : bool
        Whether the claim may mean something else than a relation under which no violation was found.
    """

    false: str
    answer: str
    repair: str
    upstream: str
    disclosed: str = ""
    certified: bool = True
    reading: bool = False


@dataclass(frozen=True, kw_only=True)
class LibraryEntry:
    """A mechanism, tool or model of a library.

    Attributes
    ----------
    package : Library
    what : str
        Its name; with the library's that of the entry.
    claim : Claim
    quotation, where : str
        The claim in the library's own words, and where they stand.
    strategy : callable
        From `hypothesis.strategies` to the strategy of the data.
    build : callable
        Makes the mechanism, and imports the library; from a factor that weakens it, 1 for the one that is claimed.
    weakened_by : str or None
        What the factor of `build` changes: it divides the "noise", or multiplies "epsilon". None where `build` takes
        none: it draws from the audit's generator, in which faults are planted.
    relations : tuple of str
        The neighbour relations to audit: what is documented, or both where none is.
    near : callable, optional
        From data to its neighbours, where these are values within a sensitivity.
    allowed : callable, optional
        Whether data is in the domain, where records that move may leave it.
    stated : bool
        Whether the relation is documented.
    os_random : bool
        Whether its randomness cannot be seeded.
    runs : int
    call_limit : float, optional
        Seconds of processor time of one call beyond which inputs are left out.
    finding : Finding, optional
        What is false, and under which relations; None where nothing is known to be.
    false_under : tuple of str
        The relations under which we expect it to be falsified.
    ours : bool
        Whether it is no claim of the library's, but one of ours about what it does behind noise of ours.
    """

    package: Library
    what: str
    claim: Claim
    quotation: str
    where: str
    strategy: Strategy
    build: Callable[..., Mechanism]
    weakened_by: str | None = "noise"
    relations: tuple[str, ...] = ("replace", "add-remove")
    near: Neighbour | None = None
    allowed: Callable[[Any], bool] | None = None
    stated: bool = False
    os_random: bool = False
    runs: int = 20_000
    call_limit: float | None = None
    finding: Finding | None = None
    false_under: tuple[str, ...] = ()
    ours: bool = False

    @property
    def name(self) -> str:
        """As the command line has it."""
        return f"libraries/{self.package.name}/{self.what}"

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism that is claimed."""
        return self.build() if self.weakened_by is None else self.build(1.0)

    @property
    def source(self) -> str:
        """The library, its version and what it is; where another version is installed, that one too."""
        quoted = f"{self.package.distribution} {self.package.version}"
        audited = f" ({self.package.other} is installed)" if self.package.other else ""
        return f"{quoted}{audited}, {self.where}"

    def to_json(self) -> dict[str, object]:
        """Return what `overclaim list` says of it."""
        data = {"quotation": self.quotation, "where": self.where, "relations": list(self.relations)}
        claimed = {"epsilon": self.claim.epsilon, "delta": self.claim.delta}
        return {"name": self.name, "claimed": claimed, "source": self.source, "parameters": [], **data}

    def standing(self, relation: str) -> str:
        """Return whose claim it is: documented, where the relation is, or where it was falsified under each one."""
        if self.ours:
            return "control"
        is_certified = self.finding is not None and self.finding.certified and not self.finding.reading
        everywhere = is_certified and {"replace", "add-remove"} <= set(
            self.false_under
        )  # also where one is not audited
        return "documented" if self.stated or everywhere or self.near is not None else "reading"

    def statement(self, relation: str) -> Statement:
        """Return the words that are audited, with what is false about them under this relation."""
        finding = self.finding if relation in self.false_under else None
        answer = "" if finding is None else f"{finding.answer} Upstream: {finding.upstream}"
        false, repair = ("", "") if finding is None else (finding.false, finding.repair)
        return Statement(
            source=self.source,
            text=self.quotation,
            where=self.where,
            false=false,
            answer=answer,
            repair=repair,
            undisclosed=finding is not None and not finding.disclosed,
        )


@dataclass(frozen=True)
class LibraryCase:
    """An entry under one relation: what a record asks of a case."""

    entry: LibraryEntry
    relation: str

    @property
    def standing(self) -> str:
        """Whose claim it is."""
        return self.entry.standing(self.relation)

    @property
    def statement(self) -> Statement:
        """The words that are audited."""
        return self.entry.statement(self.relation)

    @property
    def expected(self) -> str:
        """The verdict that we expect."""
        return "falsified" if self.relation in self.entry.false_under else "survived"


def quietly(mechanism: Mechanism) -> Mechanism:
    """Return a mechanism without the warnings of its library, which say what its documentation says too."""

    def quiet(data: object, rng: np.random.Generator) -> object:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mechanism(data, rng)

    return quiet
