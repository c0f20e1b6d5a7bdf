"""What a Hypothesis strategy draws, by seed alone: no database, no health check, no profile, no code that is loaded.

Hypothesis is imported when something is drawn, and not before.
"""

from __future__ import annotations

import os
import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, TypeGuard, TypeVar

from ...errors import hinted, must_be
from ...learners.blame import raised, said
from ...learners.protocol import LearnerError

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

T = TypeVar("T")


class MissingPackageError(ValueError):
    """A package that is asked for, and is not installed."""


def import_hypothesis() -> ModuleType:
    """Return the package; raise MissingPackageError where it is not installed."""
    try:
        import hypothesis
    except ImportError:
        raise hinted(
            MissingPackageError("inputs are drawn by hypothesis, which is not installed"), "pip install hypothesis"
        ) from None
    return hypothesis


def is_strategy(strategy: object) -> TypeGuard[SearchStrategy[object]]:
    """Tell whether something is a Hypothesis strategy."""
    return isinstance(strategy, import_hypothesis().strategies.SearchStrategy)


def check_strategy(strategy: object) -> SearchStrategy[object]:
    """Return what is a Hypothesis strategy; raise ValueError for anything else."""
    if not is_strategy(strategy):
        raise must_be("inputs", "a Hypothesis strategy, as in st.lists(st.floats(0, 1))", strategy)
    return strategy


def draw(strategy: SearchStrategy[T], count: int, seed: int) -> list[T]:
    """Return up to so many draws of a strategy, the same for the same seed.

    Raises
    ------
    ValueError
        If nothing fits the strategy.
    LearnerError
        If code of the user's in it raises.
    """
    hypothesis, examples = import_hypothesis(), list[T]()

    @hypothesis.seed(seed)
    @_settings(count, "generate")
    @hypothesis.given(strategy)
    def collect(data: T) -> None:
        examples.append(data)

    with _alone():
        try:
            collect()
        except hypothesis.errors.Unsatisfiable:
            pass
        except Exception as error:
            _explain(error)
    if not examples:
        raise ValueError("nothing fits the strategy of inputs: not one example was drawn")
    return examples


def simplest(strategy: SearchStrategy[T]) -> T:
    """Return the simplest example of a strategy: of lists, a shortest one."""
    hypothesis = import_hypothesis()
    with _alone():
        try:
            settings = _settings(200, "generate", "shrink")
            simple: T = hypothesis.find(strategy, lambda _: True, settings=settings, random=random.Random(0))
            return simple
        except (hypothesis.errors.Unsatisfiable, hypothesis.errors.NoSuchExample):
            raise ValueError("nothing fits the strategy of inputs: not one example was drawn") from None
        except Exception as error:
            _explain(error)


def _explain(error: Exception) -> NoReturn:
    """Raise what an error of a draw means: our own as they are, Hypothesis' as bad input, the user's as theirs."""
    if isinstance(error, ValueError | LearnerError) and type(error).__module__.startswith(__name__.partition(".")[0]):
        raise error
    module = import_hypothesis().errors.HypothesisException
    if isinstance(error, module):
        raise ValueError(f"the strategy of inputs cannot be drawn from: {said(error)}") from None
    raise raised("drawing inputs", error) from error


def _settings(count: int, *phases: str) -> Any:
    hypothesis = import_hypothesis()
    return hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        derandomize=False,
        phases=[hypothesis.Phase[phase] for phase in phases],
        suppress_health_check=list(hypothesis.HealthCheck),
        verbosity=hypothesis.Verbosity.quiet,
    )


@contextmanager
def _alone() -> Iterator[None]:
    """Draw as if nothing but Hypothesis were loaded: it takes constants from the code of loaded modules."""
    providers: Any = None
    with suppress(ImportError):
        providers = import_module("hypothesis.internal.conjecture.providers")
    local_constants = getattr(providers, "_get_local_constants", None)
    none = getattr(providers, "Constants", None)
    with warnings.catch_warnings(), _storage_elsewhere():
        warnings.simplefilter("ignore")  # Hypothesis shows its warnings in users' own tests
        try:
            if local_constants is not None and none is not None:
                providers._get_local_constants = none
                _forget(providers)
            yield
        finally:
            if local_constants is not None:
                providers._get_local_constants = local_constants
                _forget(providers)


@contextmanager
def _storage_elsewhere() -> Iterator[None]:
    """Let Hypothesis keep its tables of characters in a folder that goes away: `.hypothesis` would be left behind."""
    configuration = import_module("hypothesis.configuration")
    name = "__hypothesis_home_directory"
    before = getattr(configuration, name, None)
    if before is not None or os.getenv("HYPOTHESIS_STORAGE_DIRECTORY") or Path(".hypothesis").exists():
        yield
        return
    with TemporaryDirectory(prefix="overclaim-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(None)


def _forget(providers: Any) -> None:
    with suppress(AttributeError):
        providers.CONSTANTS_CACHE.cache.clear()


def large_integers(strategy: object) -> list[int]:
    """Return integers around 2^53, as far as a strategy of integers, or of lists of them, allows such.

    Floats do not tell them apart, and Hypothesis draws them rarely.
    """
    inner = strategy
    for _ in range(8):  # at most eight wrappers, each with the inner strategy as an attribute
        inner = getattr(inner, "wrapped_strategy", getattr(inner, "element_strategy", inner))
    if type(inner).__name__ != "IntegersStrategy":
        return []
    start, end = getattr(inner, "start", None), getattr(inner, "end", None)
    edges = [sign * (2**bits + step) for bits in (53, 54, 55) for step in (1, 2, 3) for sign in (1, -1)]
    return [number for number in edges if (start is None or start <= number) and (end is None or number <= end)]
