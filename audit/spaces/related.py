"""Pairs of inputs to search: first ones from the strategy's draws, then changes of good ones, then simpler ones.

Everything is put together from records and data that the strategy drew, so that no pair leaves what it allows, but for
what `neighbours` says of its `where`. Hypothesis draws the edges of ranges, NaN, huge and tiny numbers often.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from ...learners.protocol import LearnerError
from ...mechanisms.relations import Relation, RelationError
from ...mechanisms.relations.paths import path_between
from ...mechanisms.relations.records import UnfitError
from ..play.data import key_of, shown, to_json
from .candidates import DATA_SETS, Candidate, Drawn, Space, another, several
from .drawing import check_strategy, draw, is_strategy, large_integers
from .extremes import all_alike, all_equal, by_length, corners, extremes, plain_record
from .mutations import DataStats, Mutator
from .neighbours import Domain, Neighbours, made_by
from .records import Records, features_of, records_of, user_of, with_feature

#: Data sets of equal records, and others, between which decisions are looked for.
EQUAL_SETS, MIXED_SETS = 8, 4
#: The most different records of the drawn data sets that are kept.
MAX_POOL = 600
#: The share of the first pairs in which all other records are copies of one extreme record.
P_FILLED = 0.3
#: The share of the first pairs in which one feature of all records but the one that differs is the same, and how often
#: that is a plain one, as zeros are: what other records hold cancels or outweighs what one record changes.
SPARSE, PLAIN_SHARE = 0.4, 0.7
#: The share of the first pairs whose data is changed by mutations, beside those that are drawn as they are or sparse.
MUTATED = 1 / 3


def space_of(inputs: object, seed: int) -> Space:
    """Return where the pairs of a strategy come from.

    Parameters
    ----------
    inputs : hypothesis strategy
        Of pairs, from `neighbours` or any other.
    seed : int
    """
    if hasattr(inputs, "first"):  # a learner's: it is such a place already
        return cast(Space, inputs)
    strategy = check_strategy(inputs)
    neighbours = made_by(inputs)
    if neighbours is not None and isinstance(neighbours.relation, Relation) and neighbours.of_rounds:
        raise RelationError(f"{neighbours.relation} is a relation of a learner's rounds, and a mechanism has none")
    return Drawn(strategy, seed) if neighbours is None else Related(neighbours, seed)


class Related(Space):
    """Pairs of a strategy with a neighbour relation."""

    def __init__(self, neighbours: Neighbours, seed: int) -> None:
        self.neighbours, self.relation, self.seed = neighbours, neighbours.relation, seed
        data_sets, large = draw(neighbours.strategy, DATA_SETS, seed), large_integers(neighbours.strategy)
        data_sets += large if type(data_sets[0]) is int else []
        self.bases = list({key_of(data): data for data in data_sets if neighbours.allows(data)}.values())
        if not self.bases:
            raise ValueError("nothing fits the strategy of inputs: `where` allows no data that it draws")
        self.rng = np.random.default_rng([seed, 1])
        records: dict[str, object] = {}
        for data in self.bases:
            records_here = neighbours.records_of(data)
            for i in range(records_here.size):
                if len(records) < MAX_POOL:
                    record = records_here.record(i)
                    records.setdefault(key_of(plain_record(record)), record)
        if records and all(type(record) is int for record in records.values()):
            records.update((key_of(number), number) for number in large)
        exact = isinstance(neighbours.where, Domain)
        self.corners = corners(list(records.values())) if exact else []
        self.pool = [*records.values(), *self.corners]
        self.extremes = extremes(self.pool)
        if isinstance(self.relation, Relation):
            for data in self.bases:
                neighbours.changes.learn(data)
        sizes = [neighbours.records_of(data).size for data in self.bases]
        self.stats = DataStats.of(self.bases, self.pool, [neighbours.fewest, *sizes], exact=exact)
        self.mutator = Mutator(self.stats)
        self.plain = sorted(self.pool, key=by_length)[:2]

    def first(self, count: int) -> list[Candidate]:
        """Return up to so many different pairs."""
        candidates = several(partial(self._random_pair, self.rng), count)
        candidates = list({candidate.key: candidate for candidate in [*self._at_corners(), *candidates]}.values())[
            :count
        ]
        if not candidates:
            relation = self.neighbours.relation if isinstance(self.relation, Relation) else "the relation"
            raise ValueError(
                f"{relation} makes no two inputs that differ of what the strategy draws, such as "
                f"{shown(to_json(self.bases[0]))[:80]}"
            )
        return candidates

    def _at_corners(self) -> Iterator[Candidate]:
        """Yield pairs that differ in a record all of whose numbers are at an edge."""
        base = min(self.bases, key=lambda data: self.neighbours.records_of(data).size or math.inf)
        for corner in self.corners[:2]:
            with suppress(UnfitError, IndexError):
                opposite = next(
                    (candidate for candidate in self.corners[:2] if candidate is not corner), self.plain[0]
                )
                data = self.neighbours.records_of(base).put(0, opposite)
                pair = (
                    self._pair_at(data, np.random.default_rng([self.seed, 4]), 0, corner) if self._fits(data) else None
                )
                if pair is not None:
                    yield pair

    def _random_pair(self, rng: np.random.Generator) -> Candidate | None:
        base = self._base(rng)
        if rng.random() < MUTATED:
            return self._mutated(base, rng) or self._pair_at(base, rng)
        if rng.random() < SPARSE:
            return self._sparse(base, rng) or self._pair_at(base, rng)
        candidate = self._pair_at(base, rng)
        if candidate is not None and rng.random() < P_FILLED:
            candidate = (
                self._others_alike(candidate, self._extreme(rng), rng, equal=bool(rng.random() < 0.5)) or candidate
            )
        if candidate is None or not self._adds_or_removes or rng.random() < 0.5:
            return candidate
        return self._pair_at(candidate.base, rng, candidate.index, self._record(rng)) or candidate

    def _mutated(
        self, base: object, rng: np.random.Generator, index: int | None = None, record: object = ...
    ) -> Candidate | None:
        """Return a pair on this data as mutations change it."""
        size = self.neighbours.records_of(base).size
        base = self.mutator.mutated(base, rng)
        if not self._fits(base):
            return None
        same_size = self.neighbours.records_of(base).size == size
        try:
            return self._pair_where_any(base, rng, index if same_size else None, record, fixed=True)
        except LearnerError:
            if self.stats.exact:
                raise
            return None  # whether the relation has to take such data is not known

    def _sparse(self, base: object, rng: np.random.Generator) -> Candidate | None:
        """Return a pair on this data with a feature in which all records are alike, but for the one that differs."""
        if not isinstance(self.relation, Relation) or not self.pool:
            return None
        filler = self.plain[int(rng.integers(len(self.plain)))] if rng.random() < PLAIN_SHARE else self._extreme(rng)
        try:
            base = all_alike(base, filler, rng)
        except (UnfitError, IndexError):
            return None
        return self._pair_where_any(base, rng, None, self._record(rng)) if self._fits(base) else None

    def _base(self, rng: np.random.Generator) -> object:
        return self.bases[int(rng.integers(len(self.bases)))]

    def _fits(self, data: object) -> bool:
        """Tell whether data that was put together is in the domain, and its records are known."""
        try:
            self.neighbours.records_of(data)
        except RelationError:
            return False
        return self.neighbours.allows(data)

    def _record(self, rng: np.random.Generator) -> object:
        return self._extreme(rng) if rng.random() < 0.5 else self.pool[int(rng.integers(len(self.pool)))]

    def _extreme(self, rng: np.random.Generator) -> object:
        return self.extremes[int(rng.integers(len(self.extremes)))]

    def _pair_at(
        self,
        base: object,
        rng: np.random.Generator,
        index: int | None = None,
        record: object = ...,
        *,
        fixed: bool = False,
    ) -> Candidate | None:
        """Return a pair of neighbours of which one is this data set; None where it has no such neighbour."""
        records = self.neighbours.records_of(base)
        index = int(rng.integers(records.size)) if index is None and records.size else index or 0
        flipped = bool(rng.random() < 0.5)
        if not isinstance(self.relation, Relation):
            return self._pair(base, self._related(base, rng, fixed), index, ..., flipped)
        if not records.size:
            return None
        if not self.relation.single:
            return self._of_relation(base, index, rng, flipped, record, fixed=fixed)
        if self._adds_or_removes:
            if record is not ...:  # another record comes and goes
                try:
                    base = records.put(index, record)
                except UnfitError:
                    return None
                if not self._fits(base):
                    return None
                records = records_of(base)
            other = records.without(index) if records.size > self.neighbours.fewest else None
            return None if other is None else self._pair(base, other, index, ..., flipped)
        if record is ...:
            record = self._record(rng) if self.pool else None
        try:
            record = self.relation.change(
                records, records.record(index), record, lambda count: int(rng.integers(count))
            )
            return self._pair(base, records.put(index, record), index, record, flipped)
        except UnfitError:
            return None

    def _pair_where_any(self, *arguments: Any, **keywords: Any) -> Candidate | None:
        """Return a pair on changed data; None where nothing is left that the relation can change, such as a number."""
        try:
            return self._pair_at(*arguments, **keywords)
        except RelationError:
            return None

    @property
    def _adds_or_removes(self) -> bool:
        return isinstance(self.relation, Relation) and self.relation.single and self.relation.removes

    def _of_relation(
        self, base: object, index: int, rng: np.random.Generator, flipped: bool, record: object, *, fixed: bool
    ) -> Candidate | None:
        """Return a pair by a relation of several records, of users, of zeros or of distances."""
        draw = partial(self._record, rng) if record is ... or not self.pool else lambda: record
        try:
            base, other = self.neighbours.changes.pair(base, index, rng, draw, fixed=fixed)
        except UnfitError:
            return None
        return self._pair(base, other, index, ..., flipped) if self._fits(base) else None

    def _related(self, base: object, rng: np.random.Generator, fixed: bool) -> object:
        """Return a neighbour that a function names, of mutated data often the first; `...` where it names none.

        The first lacks the first user, whom mutations put there.
        """
        neighbours = self.neighbours.neighbours_of(base)
        neighbours = draw(neighbours, 8, self.seed) if is_strategy(neighbours) else neighbours
        takes_first = fixed and rng.random() < 0.5
        return neighbours[0 if takes_first else int(rng.integers(len(neighbours)))] if neighbours else ...

    def _pair(self, base: object, other: object, index: int, record: object, flipped: bool) -> Candidate | None:
        if other is ... or key_of(base) == key_of(other) or not self._fits(other):
            return None
        if not self.neighbours.are_near(base, other):
            return None
        left, right = (other, base) if flipped else (base, other)
        return Candidate(left, right, base, index, record, flipped)

    def changed(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a pair that differs from this one in its record, its data, its place or its order."""
        return another(partial(self._changed, candidate, rng), (candidate.key,))

    def _changed(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        records, turn = self.neighbours.records_of(candidate.base), int(rng.integers(18))
        if turn > 8:  # in half of the cases: the data changed by what it is made of
            return self._mutated(candidate.base, rng, candidate.index, candidate.record)
        if turn == 0 and isinstance(self.relation, Relation):  # another record in its place
            return self._pair_where_any(candidate.base, rng, candidate.index, self._record(rng))
        if turn == 1:  # the worlds exchanged
            return _swapped(candidate)
        if turn == 8:  # other data, alike in a feature
            return self._sparse(candidate.base, rng)
        if turn == 2:  # the same record in other data
            return self._pair_where_any(self._base(rng), rng, None, candidate.record)
        if records.size < 2 or not isinstance(self.relation, Relation):
            return self._pair_where_any(self._base(rng), rng)
        if turn == 3:  # fewer of the others
            kept_places = [i for i in range(records.size) if i == candidate.index or rng.random() < 0.5]
            return self._cut(candidate, records, kept_places, rng)
        if turn in (4, 5):  # all others like the one that differs, as in data of one class, or like an extreme one
            filler = records.record(candidate.index) if turn == 4 else self._extreme(rng)
            return self._others_alike(candidate, filler, rng, equal=bool(rng.random() < 0.7))
        new_places = [i for i in range(records.size) if i != candidate.index and rng.random() < 0.5]
        return self._replaced(candidate, {i: self._record(rng) for i in new_places}, rng)

    def _others_alike(
        self, candidate: Candidate, record: object, rng: np.random.Generator, *, equal: bool
    ) -> Candidate | None:
        """Return the pair with all others equal, or alike in a feature: left out or clipped, they hide nothing."""
        if not isinstance(self.relation, Relation):
            return None
        records = records_of(candidate.base)
        other_records = {i: records.record(i) for i in range(records.size) if i != candidate.index}
        count = min(map(features_of, other_records.values()), default=1)
        if equal or count < 2:
            return self._replaced(candidate, dict.fromkeys(other_records, record), rng)
        feature = int(rng.integers(count))
        try:
            new_records = {i: with_feature(other, feature, record) for i, other in other_records.items()}
        except (UnfitError, IndexError):
            return None
        return self._replaced(candidate, new_records, rng)

    def _replaced(
        self, candidate: Candidate, records: Mapping[int, object], rng: np.random.Generator
    ) -> Candidate | None:
        """Return the pair with other records at some places of both worlds, where they fit."""
        base = candidate.base
        for i, record in records.items():
            try:
                base = records_of(base).put(i, record)
            except UnfitError:
                continue
        return self._pair_where_any(base, rng, candidate.index, candidate.record) if self._fits(base) else None

    def _cut(
        self, candidate: Candidate, records: Records, kept_places: Sequence[int], rng: np.random.Generator
    ) -> Candidate | None:
        if candidate.index not in kept_places or len(kept_places) < self.neighbours.fewest:
            return None
        base = records.take(kept_places)
        if not self._fits(base):
            return None
        cut_pair = self._pair_where_any(base, rng, list(kept_places).index(candidate.index), candidate.record)
        return cut_pair if cut_pair is None or cut_pair.flipped == candidate.flipped else _swapped(cut_pair)

    def candidate_of(self, left: object, right: object) -> Candidate:
        """Return a pair that came from here, with how it came to be."""
        sides = [self.neighbours.records_of(side) for side in (left, right)]
        if self._adds_or_removes:
            other, base = sorted(sides, key=lambda side: side.size)
            other_key = key_of(other.data)
            index = next(i for i in range(base.size) if key_of(base.without(i)) == other_key)
            return Candidate(left, right, base.data, index, ..., base is sides[1])
        keys = [[key_of(plain_record(side.record(i))) for i in range(side.size)] for side in sides]
        if not isinstance(self.relation, Relation) or not self.relation.single:
            index = next((i for i, (key, other_key) in enumerate(zip(*keys, strict=False)) if key != other_key), 0)
            return Candidate(left, right, left, index)
        if isinstance(left, set | frozenset):  # the record has another place there
            unshared = ([key for key in keys[k] if key not in keys[1 - k]] for k in range(2))
            index, place = (own_keys.index(lone[0]) for own_keys, lone in zip(keys, unshared, strict=True))
        else:
            index = place = next(i for i, (key, other_key) in enumerate(zip(*keys, strict=True)) if key != other_key)
        return Candidate(left, right, left, index, sides[1].record(place))

    def poles(self, rng: np.random.Generator) -> list[Any]:
        """Return largest data sets of equal records at the edges of what is drawn, and others that are drawn."""
        base, data_sets = max(self.bases, key=lambda data: self.neighbours.records_of(data).size), list[object]()
        for record in self.extremes[:EQUAL_SETS] if self.pool else []:
            with suppress(UnfitError, IndexError):
                data = all_equal(base, record)
                data_sets += [data] if self._fits(data) else []
        return [*data_sets, *(self._base(rng) for _ in range(MIXED_SETS))]

    def between(self, left: object, right: object) -> Sequence[Any]:
        """Return a way from one data set to another; none where a function says what neighbours are."""
        relation = Relation.parse("user") if self.neighbours.of_users else self.relation
        if not isinstance(relation, Relation):
            return []
        return path_between(relation, records_of(left), records_of(right), self.neighbours.fewest)

    def beside(self, left: object, right: object) -> Candidate | None:
        """Return the pair of two steps; None where they leave the domain, or are no neighbours after all."""
        is_allowed = key_of(left) != key_of(right) and self._fits(left) and self._fits(right)
        return self.candidate_of(left, right) if is_allowed and self._are_near(left, right) else None

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simpler pairs: with fewer records, fewer different ones, simpler ones; the simplest first."""
        rng = np.random.default_rng([self.seed, 2])
        return self.cheaper(candidate, self._simpler(candidate, rng), exact=self.stats.exact)

    def _are_near(self, left: object, right: object) -> bool:
        if isinstance(self.relation, Relation):
            return self.neighbours.are_near(left, right)
        if not self.neighbours.of_users:
            return False  # what a function names may be drawn
        full, rest = (left, right) if len(self._records(left)) > len(self._records(right)) else (right, left)
        return key_of(rest) in map(key_of, self.neighbours.neighbours_of(full))

    def _records(self, data: object) -> range:
        return range(self.neighbours.records_of(data).size)

    def _simpler(self, candidate: Candidate, rng: np.random.Generator) -> Iterator[Candidate | None]:
        if not isinstance(self.relation, Relation):
            if self.neighbours.of_users:
                yield from self._of_one_user(candidate)
            for base in sorted(self.bases, key=lambda data: (len(shown(to_json(data))), shown(to_json(data))))[:12]:
                yield from (self._pair_where_any(base, rng) for _ in range(3))
            return
        records = records_of(candidate.base)
        other_places = [i for i in range(records.size) if i != candidate.index]
        for size in dict.fromkeys([0, len(other_places) // 4, len(other_places) // 2, len(other_places) - 1]):
            starts = range(len(other_places)) if size == len(other_places) - 1 and size else [0]
            for start in starts:
                others_kept = [other_places[(start + k) % len(other_places)] for k in range(max(size, 0))]
                yield self._cut(candidate, records, sorted([*others_kept, candidate.index]), rng)
        simple = sorted(self.pool, key=by_length)[:6]
        for record in simple:  # all others the same simple record
            yield self._with(candidate, other_places, record, rng)
        for record in simple:  # a simpler difference
            yield self._with(candidate, [], None, rng, record)
        for record in simple[:3]:
            yield self._with(candidate, [candidate.index], record, rng)
        for i in other_places:
            yield from (self._with(candidate, [i], record, rng) for record in simple[:2])

    def _of_one_user(self, candidate: Candidate) -> Iterator[Candidate | None]:
        """Yield the pair with fewer records of its user, and no more of others than there must be."""
        rest, full = sorted(map(records_of, (candidate.left, candidate.right)), key=lambda side: side.size)
        other_users = [user_of(rest.record(i)) for i in range(rest.size)]
        users = [user_of(full.record(i)) for i in range(full.size)]
        user_places = [i for i, user in enumerate(users) if user not in other_users]
        kept_places = [i for i, user in enumerate(users) if user in other_users][: self.neighbours.fewest]
        for count in dict.fromkeys(max(1, len(user_places) * share // 4) for share in range(5)):
            base = full.take([*kept_places, *user_places[:count]])
            if self._fits(base):
                yield self._pair(base, full.take(kept_places), 0, ..., candidate.left is rest.data)
        for i in range(full.size):  # one record less, of hers or of another
            base = full.without(i)
            others_left = [j - (j > i) for j in range(full.size) if j != i and j not in user_places]
            if len(others_left) >= self.neighbours.fewest and self._fits(base):
                without_user = records_of(base).take(others_left)
                yield self._pair(base, without_user, 0, ..., candidate.left is rest.data)

    def _with(
        self,
        candidate: Candidate,
        places: Sequence[int],
        record: object,
        rng: np.random.Generator,
        differing: object = ...,
    ) -> Candidate | None:
        """Return the pair with a record at some places of both worlds, or another one where they differ."""
        base = candidate.base
        try:
            for i in places:
                base = records_of(base).put(i, record)
        except UnfitError:
            return None
        differing = candidate.record if differing is ... else differing
        changed_pair = self._pair_where_any(base, rng, candidate.index, differing) if self._fits(base) else None
        if changed_pair is None or changed_pair.flipped == candidate.flipped:
            return changed_pair
        return _swapped(changed_pair)


def _swapped(candidate: Candidate) -> Candidate:
    return replace(candidate, left=candidate.right, right=candidate.left, flipped=not candidate.flipped)
