"""Neighbouring inputs as a Hypothesis strategy: pairs of data that differ in one person's contribution."""

from __future__ import annotations

import copy
import inspect
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, wraps
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...learners.blame import raised
from ...mechanisms.library_entry import LibraryEntry
from ...mechanisms.relations import Relation, User
from ...mechanisms.relations.records import UnfitError
from ..play.data import key_of
from ..play.rounds import RoundRelation, as_sequence
from .changes import Changes, check_near
from .drawing import check_strategy, draw, import_hypothesis, is_strategy, simplest
from .records import Records, records_of, records_or_whole, user_of

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

#: The most neighbours of one input that a user's function is asked for.
MAX_NEIGHBOURS = 1000
#: How many neighbours of one input a function that draws them is asked for.
DRAWN_NEIGHBOURS = 8
#: The attribute of a strategy of pairs that holds how it was made.
_MADE_BY = "overclaim_neighbours"


@dataclass(frozen=True)
class Domain:
    """A `where` that tells of any data whether it is in the domain: what no strategy drew may be tried too."""

    holds: Callable[[Any], object]

    def __call__(self, data: object) -> object:
        """Tell whether data is in the domain."""
        return self.holds(data)


def neighbours(
    strategy: object,
    relation: str | Relation | Callable[..., object] = "replace",
    *,
    where: Callable[[Any], object] | None = None,
    rounds_per_user: int | None = None,
) -> SearchStrategy[tuple[Any, Any]]:
    """Return a Hypothesis strategy of pairs (left, right) of neighbouring inputs.

    A record is an item of a list, tuple or set, a row of an array or data frame, a row across all parts of labelled
    data `(X, y)` or of a dictionary of columns, an item of a dictionary of anything else; other data is one record.
    The data of a learner are sequences of rounds (`rounds`), and a record is a round.

    Parameters
    ----------
    strategy : hypothesis strategy
        Of the data: lists, numpy arrays, pandas frames and series, dictionaries or tuples of them, or single values.
    relation : str, Relation or callable
        By its words (`mechanisms.relations`). "replace": one record is another one, as the strategy draws it
        elsewhere; "replace:3": up to 3 are. "add-remove": one record more or less. "zero-out": it becomes zero.
        "substitute-feature": one feature of one record is another's. "user": all records of one user, however many,
        are there or not; "replace-user": they are replaced, "zero-out-user": they become zero. Whose a record is says
        `(user, value)`, or the key "user". "l1:D", "l2:D", "linf:D": the numbers move by at most D together. Of a
        learner's rounds also "replace-losses" (the losses of one round, its context the same) and "user-losses"; there
        "user" replaces the rounds of one user. Or a function: of data, to all its neighbours, an iterable or a
        strategy of them; or of data and a NumPy Generator, to one neighbour.
    where : callable, optional
        Whether data is in the domain. Records move to other places and other data sets than they were drawn in; where
        the strategy would not allow that (records that depend on each other, a sorted list), say what it allows.
    rounds_per_user : int, optional
        With "user" or "user-losses", where rounds do not say whose they are: how many a user has at most, anywhere.
        3 of them is the relation "user:3".

    Returns
    -------
    SearchStrategy
        `inputs=` of `falsify` and `falsify_mechanism` searches it; in a test of your own it draws pairs as any other
        strategy.

    Raises
    ------
    ValueError
        For a relation that is not known or cannot apply, or a strategy that nothing fits.

    Examples
    --------
    >>> from hypothesis import strategies as st
    >>> pairs = neighbours(st.lists(st.floats(0, 1), min_size=1, max_size=5), "replace")
    """
    if rounds_per_user is not None:
        if relation not in ("user", "user-losses") or not isinstance(rounds_per_user, int) or rounds_per_user < 1:
            expected = "a whole number of at least 1, for the relations user and user-losses"
            raise ValueError(f"rounds_per_user must be {expected}, got {rounds_per_user!r} for {relation!r}")
        relation = f"{relation}:{rounds_per_user}"
    strategy = check_strategy(strategy)
    parsed = one_of_many(relation) if callable(relation) else Relation.parse(str(relation))
    if isinstance(parsed, Relation) and parsed.of_users and parsed.for_data and parsed.limit is None:
        # Raises now, not during a search, where it cannot apply.
        examples = draw(strategy, 20, seed=0)
        if not all(map(_of_users, examples)):
            for data in examples:
                without_a_user(data)
            parsed = without_a_user if isinstance(parsed, User) else parsed
    source = Neighbours(strategy, parsed, where)
    strategy_of_pairs = source.pairs()
    setattr(strategy_of_pairs, _MADE_BY, source)
    return strategy_of_pairs


def _of_users(data: object) -> bool:
    """Tell whether data is a sequence of rounds that say whose they are."""
    return (
        isinstance(data, list | tuple)
        and len(data) > 0
        and all(isinstance(r, dict) and {"user", "losses"} <= r.keys() for r in data)
    )


def without_a_user(data: object) -> list[object]:
    """Return the data sets that lack all records of one user: the neighbours of user-level privacy.

    Raises
    ------
    RelationError
        For records that do not say whose they are.
    """
    records = records_of(data)
    users = [user_of(records.record(i)) for i in range(records.size)]
    return [records.take([i for i, other in enumerate(users) if other != user]) for user in dict.fromkeys(users)]


def one_of_many(relation: Callable[..., Any]) -> Callable[[Any], Any]:
    """Return a function from data to several neighbours, where the user's draws one by a generator."""
    try:
        inspect.signature(relation).bind(None, None)
    except (TypeError, ValueError):  # one argument, or not told
        return relation

    @wraps(relation)
    def drawn(data: object) -> list[object]:
        rng = np.random.default_rng([len(key_of(data)), zlib.crc32(key_of(data).encode())])
        return [relation(copy.deepcopy(data), rng) for _ in range(DRAWN_NEIGHBOURS)]

    return drawn


def made_by(strategy: object) -> Neighbours | None:
    """Return what `neighbours` knows of a strategy of pairs; None where it did not make it."""
    source: Neighbours | None = getattr(strategy, _MADE_BY, None)
    return source


@dataclass(frozen=True)
class Neighbours:
    """A strategy of data with a neighbour relation."""

    strategy: SearchStrategy[object]
    relation: Relation | Callable[[object], Any]
    where: Callable[[object], object] | None = None

    def __post_init__(self) -> None:
        check_strategy(self.strategy)
        # Raises now, not during a search, where the relation cannot apply.
        simplest_records = self.records_of(self.simplest)
        if isinstance(self.relation, Relation) and not self.of_rounds:
            self.relation.check_data(simplest_records)

    @cached_property
    def of_rounds(self) -> bool:
        """Whether the data are a learner's rounds: the relation has no other, or rounds say whose they are."""
        if not isinstance(self.relation, Relation):
            return False
        if not self.relation.for_data or self.relation.name == "user":
            return True
        # What either kind may have: a user's records are told from a user's rounds by their losses.
        return self.relation.of_users and _of_users(self.simplest)

    @cached_property
    def changes(self) -> Changes:
        """How the relation changes data."""
        assert isinstance(self.relation, Relation)
        return Changes(self.relation, self.fewest)

    @property
    def of_users(self) -> bool:
        """Whether all records of a user, in lists of (user, value), are there or not."""
        return self.relation is without_a_user

    @cached_property
    def simplest(self) -> object:
        """The simplest data: no data set is made that has fewer records."""
        return simplest(self.strategy)

    @cached_property
    def fewest(self) -> int:
        """The fewest records of a data set."""
        return self.records_of(self.simplest).size

    def records_of(self, data: object) -> Records:
        """Return the records of data; a function may be given as the relation of data that has none."""
        return records_or_whole(data) if callable(self.relation) else records_of(data)

    def allows(self, data: object) -> bool:
        """Tell whether data is in the domain."""
        try:
            return self.where is None or bool(self.where(data))
        except Exception as error:
            raise raised("where", error) from error

    def are_near(self, left: Any, right: Any) -> bool:
        """Return whether the relation's own check takes two inputs; what a function names is a neighbour by that."""
        if not isinstance(self.relation, Relation):
            return True
        if self.of_rounds:
            return RoundRelation(self.relation).are_near(left, right)
        with suppress(ValueError):
            check_near(self.relation, left, right)
            return True
        return False

    def neighbours_of(self, data: object) -> Any:
        """Return what the user's function says are neighbours: a list, or a strategy."""
        assert callable(self.relation)
        try:
            neighbours = self.relation(data)
            if self.of_users:
                neighbours = [other for other in neighbours if len(other) >= self.fewest]
            return neighbours if is_strategy(neighbours) else list(islice(neighbours, MAX_NEIGHBOURS))
        except Exception as error:
            raise raised("the neighbour relation", error) from error

    def pairs(self) -> SearchStrategy[tuple[object, object]]:
        """Return a Hypothesis strategy of pairs."""
        st = import_hypothesis().strategies
        source = self

        @st.composite
        def pairs(draw: DrawFn) -> tuple[object, object]:
            data = draw(source.strategy)
            data = as_sequence(data) if source.of_rounds else data
            data, other = source._both(draw, st, data)
            are_allowed = source.allows(data) and source.allows(other) and source.are_near(data, other)
            if not are_allowed or key_of(data) == key_of(other):
                import_hypothesis().reject()
            return (data, other) if draw(st.booleans()) else (other, data)

        strategy_of_pairs: SearchStrategy[tuple[object, object]] = pairs()
        return strategy_of_pairs

    def _both(self, draw: DrawFn, st: ModuleType, data: object) -> tuple[object, object]:
        """Draw two neighbours, of which one is this data set or is made of it."""
        from hypothesis import reject

        if not isinstance(self.relation, Relation):
            neighbours = self.neighbours_of(data)
            return data, draw(
                neighbours if is_strategy(neighbours) else st.sampled_from(neighbours) if neighbours else st.nothing()
            )
        if self.of_rounds:
            rounds, pool = as_sequence(data), as_sequence(draw(self.strategy))
            return data, RoundRelation(self.relation).replaced(
                rounds, lambda count: int(draw(st.integers(0, count - 1))), pool
            )
        records = records_of(data)
        if records.size <= (self.fewest if self.relation.removes else 0):
            reject()
        index = draw(st.integers(0, records.size - 1))
        if self.relation.single:
            return data, self._plain(draw, st, records, index)
        donors = records_of(draw(self.strategy))
        rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        if not donors.size:
            reject()
        self.changes.learn(data)
        self.changes.learn(donors.data)
        try:
            return self.changes.pair(data, index, rng, lambda: donors.record(int(rng.integers(donors.size))))
        except UnfitError:
            reject()

    def _plain(self, draw: DrawFn, st: ModuleType, records: Records, index: int) -> object:
        """Draw a neighbour that differs in one record, as drawn or changed in a feature, or that lacks it."""
        from hypothesis import reject

        assert isinstance(self.relation, Relation)
        if self.relation.removes:
            return records.without(index)
        donors = records_of(draw(self.strategy))
        if not donors.size:
            reject()
        record = donors.record(draw(st.integers(0, donors.size - 1)))
        try:
            new_record = self.relation.change(
                records, records.record(index), record, lambda n: int(draw(st.integers(0, n - 1)))
            )
            return records.put(index, new_record)
        except UnfitError:
            reject()


def neighbours_of(entry: LibraryEntry, relation: str) -> SearchStrategy[tuple[object, object]]:
    """Return the strategy of neighbouring inputs of an entry of the libraries' catalogue."""
    data = entry.strategy(import_hypothesis().strategies)
    return neighbours(data, relation if entry.near is None else entry.near, where=entry.allowed)
