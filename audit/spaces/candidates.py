"""Pairs of inputs that a search may audit: what they are, where they come from, and those that are drawn whole."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

import numpy as np

from ...errors import must_be
from ..play.data import key_of, shown, to_json
from .drawing import draw
from .extremes import plain_record
from .records import records_or_whole
from .simple_values import DIGITS, with_simpler_values

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

#: Data sets that a strategy is asked for.
DATA_SETS = 200
#: Attempts to make one more pair that is new, before the search takes it that there is none.
MAX_ATTEMPTS = 30


@dataclass(frozen=True)
class Candidate:
    """Two neighbouring inputs, and how they came to be.

    Attributes
    ----------
    left, right : object
    base : object
        The data set that both come from; None where only the pair is known.
    index : int
        Of the record that differs.
    record : object
        What takes its place in the other world; `...` where it is gone, or the relation is a function.
    flipped : bool
        Whether the base is the right world.
    """

    left: object
    right: object
    base: object = None
    index: int = 0
    record: object = ...
    flipped: bool = False

    @property
    def key(self) -> str:
        """A text that is the same for equal pairs."""
        return f"{key_of(self.left)} {key_of(self.right)}"

    @property
    def cost(self) -> tuple[int, ...]:
        """How much there is to read: records, different records, letters, and the sum of their code points."""
        sides = [records_or_whole(side) for side in (self.left, self.right)]
        records = {key_of(plain_record(side.record(i))) for side in sides for i in range(side.size)}
        text = "".join(shown(to_json(side.data)) for side in sides)
        return sum(side.size for side in sides), len(records), len(text), sum(map(ord, text))


class Space(ABC):
    """Where pairs come from; of single data sets, and of what may change, it need not know."""

    @abstractmethod
    def first(self, count: int) -> list[Candidate]:
        """Return up to so many different pairs."""

    def changed(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a pair like this one; None where there is none."""
        return None

    def candidate_of(self, left: object, right: object) -> Candidate:
        """Return a pair that came from here, with how it came to be."""
        return Candidate(left, right)

    def poles(self, rng: np.random.Generator) -> list[Any]:
        """Return data sets that are unlike each other; none where single ones are not known."""
        return []

    def between(self, left: Any, right: Any) -> Sequence[Any]:
        """Return a way from one data set to another whose steps are neighbours; none where there is no such way."""
        return []

    def beside(self, left: Any, right: Any) -> Candidate | None:
        """Return the pair of two steps; None where they leave the domain, or are no neighbours after all."""
        return None

    @abstractmethod
    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simpler pairs, the simplest first."""

    def cheaper(self, than: Candidate, others: Iterable[Candidate | None], *, exact: bool) -> Iterator[Candidate]:
        """Yield the pairs that are shorter to read, each once: with rounded numbers, `others`, with simpler numbers.

        Numbers are other ones only where the domain tells `exact`ly that they fit and the inputs are neighbours still.
        """
        numbers = with_simpler_values(than.left, than.right) if exact else ()
        values = (self.beside(*sides) for sides in numbers)
        seen, before = set[str](), than.cost
        for other in chain(islice(values, len(DIGITS)), others, values):
            if other is not None and other.key not in seen and other.cost < before:
                seen.add(other.key)
                yield other


def several(make: Callable[[], Candidate | None], count: int) -> list[Candidate]:
    """Return up to so many different pairs."""
    candidates: dict[str, Candidate] = {}
    for _ in range(count):
        if (candidate := another(make, candidates)) is not None:
            candidates[candidate.key] = candidate
    return list(candidates.values())


def another(make: Callable[[], Candidate | None], known_keys: Container[str]) -> Candidate | None:
    """Return a pair whose key is not known, where one of some tries makes it."""
    for _ in range(MAX_ATTEMPTS):
        candidate = make()
        if candidate is not None and candidate.key not in known_keys:
            return candidate
    return None


@dataclass(frozen=True)
class Drawn(Space):
    """Pairs of a strategy of the user's own: as they are drawn."""

    inputs: SearchStrategy[object]
    seed: int

    def first(self, count: int) -> list[Candidate]:
        """Return up to so many different pairs."""
        candidates = []
        for pair in draw(self.inputs, count, self.seed):
            if not isinstance(pair, Sequence) or isinstance(pair, str | bytes) or len(pair) != 2:
                raise must_be("inputs", "pairs (left, right), as neighbours(strategy, relation) draws", pair)
            candidates.append(Candidate(*pair))
        different = {
            candidate.key: candidate for candidate in candidates if key_of(candidate.left) != key_of(candidate.right)
        }
        if not different:
            raise ValueError(
                f"the strategy of inputs draws equal worlds: left and right must differ, both are "
                f"{shown(to_json(candidates[0].left))[:80]}"
            )
        return list(different.values())

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simpler pairs that were drawn."""
        by_cost = sorted(self.first(DATA_SETS), key=lambda other: other.cost)
        yield from (other for other in by_cost if other.cost < candidate.cost)
