"""Neighbouring inputs as a Hypothesis strategy: pairs of data that differ in one person's contribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from types import ModuleType
from typing import TYPE_CHECKING, Any

from ...learners.blame import raised
from ...mechanisms.claim import ROUND_NEIGHBOURS, user_rounds
from ...mechanisms.libraries.entry import LibraryEntry
from .data import key_of
from .drawing import check_strategy, draw, import_hypothesis, is_strategy, simplest
from .records import (
    Records,
    RelationError,
    UnfitError,
    features_of,
    records_of,
    records_or_whole,
    with_feature,
)
from .rounds import Relation, as_sequence

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

#: The neighbour relations of records by name; those of a learner's rounds are `mechanisms.claim.ROUND_NEIGHBOURS`.
RELATIONS = ("replace", "add-remove", "substitute-feature", "user")
#: The most neighbours of one input that a user's function is asked for.
MOST_NEIGHBOURS = 1000
#: The attribute of a strategy of pairs that holds how it was made.
_MADE_BY = "overclaim_neighbours"


def neighbours(
    strategy: object,
    relation: str | Callable[[Any], object] = "replace",
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
    relation : str or callable
        "replace": one record is another one, as the strategy draws it elsewhere. "add-remove": one record more or
        less. "substitute-feature": one feature of one record is another's. "user": records are (user, value), and all
        of one user's are there or not, however many. Or a function from data to all its neighbours, an iterable or a
        strategy of them. Of a learner's rounds "replace", "replace-losses" (the losses of one round, its context the
        same), "zero-out" (its loss becomes 0), "user" (all rounds of one user are replaced, where each says whose it
        is) or "user-losses".
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
            wanted = "a whole number of at least 1, for the relations user and user-losses"
            raise ValueError(f"rounds_per_user must be {wanted}, got {rounds_per_user!r} for {relation!r}")
        relation = f"{relation}:{rounds_per_user}"
    strategy = check_strategy(strategy)
    if relation == "user":  # raises now, not during a search, where it cannot apply
        examples = draw(strategy, 20, seed=0)
        if not all(map(_of_users, examples)):
            for data in examples:
                without_a_user(data)
            relation = without_a_user
    source = Neighbours(strategy, relation, where)
    drawn = source.pairs()
    setattr(drawn, _MADE_BY, source)
    return drawn


def _of_users(data: object) -> bool:
    """Tell whether data is a sequence of rounds that say whose they are."""
    return isinstance(data, list | tuple) and all(isinstance(r, dict) and {"user", "losses"} <= r.keys() for r in data)


def without_a_user(data: object) -> list[object]:
    """Return the data sets that lack all records of one user: the neighbours of user-level privacy.

    Parameters
    ----------
    data : list of (user, value)

    Raises
    ------
    RelationError
        For records of another form.
    """
    if not isinstance(data, list) or any(not isinstance(r, list | tuple) or len(r) != 2 for r in data):
        raise RelationError(
            f'user needs lists of (user, value) as data, or of a learner\'s rounds {{"user": ..., "losses": ...}}; or '
            f"rounds_per_user (user:3); got {data!r:.80}"
        )
    users = {key_of(record[0]): record[0] for record in data}
    return [[record for record in data if key_of(record[0]) != user] for user in users]


def made_by(strategy: object) -> Neighbours | None:
    """Return what `neighbours` knows of a strategy of pairs; None where it did not make it."""
    source: Neighbours | None = getattr(strategy, _MADE_BY, None)
    return source


@dataclass(frozen=True)
class Neighbours:
    """A strategy of data with a neighbour relation."""

    strategy: SearchStrategy[object]
    relation: str | Callable[[object], Any] = "replace"
    where: Callable[[object], object] | None = None

    def __post_init__(self) -> None:
        check_strategy(self.strategy)
        if not callable(self.relation) and self.relation not in RELATIONS and not self.of_rounds:
            known = (
                f"{', '.join(RELATIONS)}, a function, or of a learner's rounds {', '.join(ROUND_NEIGHBOURS)}, user:3"
            )
            raise ValueError(f"relation must be one of {known}, got {self.relation!r}")
        least = self.records_of(self.simplest)  # raises now, not during a search, where the relation cannot apply
        if self.relation == "add-remove":
            least.check_removable()

    @property
    def of_rounds(self) -> bool:
        """Whether it is a relation of a learner's rounds alone."""
        named = isinstance(self.relation, str) and self.relation != "replace"
        return named and (self.relation in ROUND_NEIGHBOURS or user_rounds(self.relation) is not None)

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

    def neighbours_of(self, data: object) -> Any:
        """Return what the user's function says are neighbours: a list, or a strategy."""
        assert callable(self.relation)
        try:
            near = self.relation(data)
            if self.of_users:
                near = [other for other in near if len(other) >= self.fewest]
            return near if is_strategy(near) else list(islice(near, MOST_NEIGHBOURS))
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
            other = source._other(draw, st, data)
            if not (source.allows(data) and source.allows(other)) or key_of(data) == key_of(other):
                import_hypothesis().reject()
            return (data, other) if draw(st.booleans()) else (other, data)

        drawn: SearchStrategy[tuple[object, object]] = pairs()
        return drawn

    def _other(self, draw: DrawFn, st: ModuleType, data: object) -> object:
        """Draw a neighbour of data."""
        from hypothesis import reject

        if callable(self.relation):
            near = self.neighbours_of(data)
            return draw(near if is_strategy(near) else st.sampled_from(near) if near else st.nothing())
        if self.of_rounds:
            pool = as_sequence(draw(self.strategy))
            return Relation(str(self.relation)).replaced(
                as_sequence(data), lambda many: draw(st.integers(0, many - 1)), pool
            )
        here = records_of(data)
        if here.size <= (self.fewest if self.relation == "add-remove" else 0):
            reject()
        at = draw(st.integers(0, here.size - 1))
        if self.relation == "add-remove":
            return here.without(at)
        there = records_of(draw(self.strategy))
        if not there.size:
            reject()
        record = there.record(draw(st.integers(0, there.size - 1)))
        try:
            if self.relation == "substitute-feature":
                mine = here.record(at)
                record = with_feature(mine, draw(st.integers(0, max(0, features_of(mine) - 1))), record)
            return here.put(at, record)
        except UnfitError:
            reject()


def neighbours_of(entry: LibraryEntry, relation: str) -> SearchStrategy[tuple[object, object]]:
    """Return the strategy of neighbouring inputs of an entry of the libraries' catalogue."""
    data = entry.strategy(import_hypothesis().strategies)
    return neighbours(data, relation if entry.near is None else entry.near, where=entry.allowed)
