"""Pairs of neighbouring sequences of rounds to search: from the strategy's draws, changes of good ones, simpler ones.

As for the inputs of mechanisms (`related`), all is put together from rounds and sequences that the strategy drew.
What may differ is what the relation of the claim says (`rounds.RoundRelation`), in as many rounds as it says.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import repeat
from typing import Any

import numpy as np

from ...errors import hinted
from ...mechanisms.relations import Distance, Relation
from ...mechanisms.relations.paths import groups, line
from ...mechanisms.relations.records import Choose
from ..play.data import from_json, key_of, shown, to_json
from ..play.rounds import (
    ROUND_PARTS,
    Game,
    Round,
    RoundRelation,
    as_sequence,
    check_differing,
    differing,
    is_drawn,
    losses_of,
    shows_nothing,
)
from .candidates import DATA_SETS, Candidate, Drawn, Space, another, several
from .drawing import check_strategy, draw
from .extremes import corners, extremes
from .mutations import DataStats, Mutator
from .neighbours import Domain, made_by
from .related import EQUAL_SETS, MIXED_SETS, MUTATED, P_FILLED, Related

#: Any round in the place of another, in both inputs.
REPLACE, LOSSES = (RoundRelation(Relation.parse(name)) for name in ("replace", "replace-losses"))
#: Rounds of the two narrow kinds that a search draws from; and the simplest ones, which shrinking tries everywhere.
NARROW_ROUNDS, SIMPLE = 8, 6
#: What losses are multiplied by that are small beside others.
SMALL_FACTOR = 1 / 64
#: Sequences that a strategy is asked for, more than data sets are: an odd number among many is drawn rarely.
SEQUENCES = 600


@dataclass(frozen=True)
class SequenceCandidate(Candidate):
    """Two neighbouring sequences."""

    left: list[Round]
    right: list[Round]

    @property
    def places(self) -> list[int]:
        """Where they differ."""
        return differing(self.left, self.right)

    @property
    def cost(self) -> tuple[int, ...]:
        """How much there is to read: differing rounds first."""
        return len(self.places), *super().cost


def examples_of(inputs: object, seed: int, *, first_only: bool = False) -> list[list[Round]]:
    """Return the sequences that a strategy draws, of single ones or of pairs; the first of them if `first_only`."""
    strategy = check_strategy(inputs)
    source = made_by(inputs)
    if source is not None:
        return [as_sequence(data) for data in draw(source.strategy, 1 if first_only else SEQUENCES, seed)]
    return [
        as_sequence(side)
        for candidate in Drawn(strategy, seed).first(1 if first_only else DATA_SETS)
        for side in (candidate.left, candidate.right)
    ]


def sequences_of(
    inputs: object, game: Game, relation: RoundRelation | None, seed: int, examples: Sequence[list[Round]]
) -> Space:
    """Return where the pairs of a strategy come from.

    Parameters
    ----------
    examples : sequence of sequences
        What it draws (`examples_of`).
    relation : RoundRelation or None
        What its pairs are held to; None where a function says which they are.
    """
    source = made_by(inputs)
    if source is None:
        return Checked(Drawn(check_strategy(inputs), seed), game, relation)
    if relation is None:
        return Checked(Related(source, seed), game, None)
    return SequencePairs(source.allows, game, relation, seed, examples, exact=isinstance(source.where, Domain))


@dataclass(frozen=True)
class Checked(Space):
    """Pairs that a strategy or a function of the user's names: as many rounds in both worlds, all of the game's."""

    space: Space
    game: Game
    relation: RoundRelation | None

    def first(self, count: int) -> list[Candidate]:
        """Return up to so many different pairs."""
        return [self._checked(candidate) for candidate in self.space.first(count)]

    def changed(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a pair like this one; None where there is none."""
        new_candidate = self.space.changed(candidate, rng)
        return None if new_candidate is None else self._checked(new_candidate)

    def candidate_of(self, left: object, right: object) -> Candidate:
        """Return a pair that came from here."""
        return self.space.candidate_of(left, right)

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simpler pairs, the simplest first."""
        return map(self._checked, self.space.simpler(candidate))

    def _checked(self, candidate: Candidate) -> Candidate:
        left, right = (self.game.read(side) for side in (candidate.left, candidate.right))
        check_differing(left, right)
        if len(left) != len(right):
            raise ValueError(f"both inputs must have as many rounds, the inputs have {len(left)} and {len(right)}")
        if self.relation is not None:
            self.relation.check(left, right)
        return replace(candidate, left=left, right=right)


class SequencePairs(Space):
    """Pairs of sequences with a relation of rounds.

    Parameters
    ----------
    allows : callable
        Whether a sequence is in the domain.
    examples : sequence of sequences
        What the rounds are taken from.
    exact : bool
        Whether `allows` tells of any numbers if they fit: see `DataStats`.
    """

    def __init__(
        self,
        allows: Callable[[object], object],
        game: Game,
        relation: RoundRelation,
        seed: int,
        examples: Sequence[list[Round]],
        *,
        exact: bool,
    ) -> None:
        self.allows, self.relation, self.publication, self.game = allows, relation, game.publication, game
        read = [game.read(data) for data in examples]
        if any(is_drawn(round_) for data in read for round_ in data):
            raise hinted(ValueError("a search takes no losses that the learner draws"), "give `left` and `right`")
        self.bases = list({key_of(data): data for data in read if allows(data)}.values())
        if not self.bases:
            raise ValueError("nothing fits the strategy of inputs: `where` allows no sequence that it draws")
        rounds = (_nobodys(round_) for base in self.bases for round_ in base)
        pool = list({key_of(round_): round_ for round_ in rounds}.values())
        self.pool: list[Round] = [*pool, *(corners(pool) if exact else [])]
        edges, self.simple = extremes(self.pool), sorted(self.pool, key=_length)
        #: From the narrowest: rounds at edges in most of their numbers, simple ones, others at edges, and all.
        self.kinds = [edges[:NARROW_ROUNDS], _varied(self.simple)[:NARROW_ROUNDS], edges, self.pool]
        sizes = list(map(len, self.bases))
        self.fewest = min(sizes)
        labelled_rounds = list({key_of(round_): round_ for base in self.bases for round_ in base}.values())
        self.stats = DataStats.of(self.bases, labelled_rounds, sizes, exact=exact, mixes=exact)
        self.mutator = Mutator(self.stats)
        self.rng = np.random.default_rng([seed, 1])

    def first(self, count: int) -> list[Candidate]:
        """Return up to so many different pairs."""
        candidates = several(lambda: self._any(self._base(self.rng), self.rng), count)
        candidates_by_key = {candidate.key: candidate for candidate in [*self._beside_one(), *candidates]}
        candidates = list(candidates_by_key.values())[:count]
        if not candidates:
            example = shown(to_json(self.bases[0]))[:80]
            problem = f"{self.relation.name} makes no two inputs that differ before the last loss"
            raise ValueError(f"{problem} of what the strategy draws, such as {example}")
        return candidates

    def _beside_one(self) -> Iterator[Candidate]:
        """Yield pairs whose rounds are small beside the one that differs, in all arms alike, first or later.

        What a learner scales or clips by the losses so far, one large one decides for all others.
        """
        vectors = [row for row in map(losses_of, self.pool) if isinstance(row, list)]
        rows = [row for row in vectors if len(row) == len(vectors[0])]
        uneven = sorted((row for row in rows if len(set(row)) > 1), key=lambda row: min(row) - max(row))
        if not self.stats.exact or not uneven:
            return
        longest = max(self.bases, key=len)
        high, low = (edge(rows, axis=0).tolist() for edge in (np.max, np.min))
        against = next((row for row in uneven if np.argmin(row) != np.argmin(uneven[0])), uneven[-1])
        for row in (uneven[0], against):
            small_rounds = [LOSSES.put(round_, [SMALL_FACTOR * x for x in row]) for round_ in longest]
            for t in (0, len(longest) // 8):
                left, right = list(small_rounds), list(small_rounds)
                left[t] = LOSSES.put(small_rounds[t], high)
                right[t] = self.relation.put(left[t], low)
                if (pair := self.beside(left, right)) is not None:
                    yield pair

    def _base(self, rng: np.random.Generator) -> list[Round]:
        return self.bases[int(rng.integers(len(self.bases)))]

    def _round(self, rng: np.random.Generator) -> Round:
        kind = self.kinds[int(rng.integers(len(self.kinds)))]
        return kind[int(rng.integers(len(kind)))]

    def _any(self, base: list[Round], rng: np.random.Generator) -> Candidate | None:
        """Return a pair on a sequence: the rounds that differ may be alike, and so may be all others."""
        if rng.random() < MUTATED:
            base = self._mutated(base, rng)
        places = self.relation.places(base, _chooser(rng))
        if rng.random() < P_FILLED:
            filler = self._round(rng)
            base = [round_ if t in places else self._put(round_, filler) for t, round_ in enumerate(base)]
        if rng.random() < 0.5:
            own_round, other = self._round(rng), self._round(rng)
            return self._alike(base, places, own_round, other)
        right = list(base)
        for t in places:
            right[t] = self.relation.put(right[t], self._round(rng))
        return self._case(base, right)

    def _mutated(self, base: list[Round], rng: np.random.Generator) -> list[Round]:
        """Return a sequence as mutations change it, where it can be told to the learner then."""
        mutated = self.mutator.mutated(base, rng)
        try:
            return self.game.read(mutated) if self.allows(mutated) else base
        except ValueError:
            return base

    def _alike(self, base: list[Round], places: Sequence[int], round_: Round | None, other: Round) -> Candidate | None:
        """Return the pair whose differing rounds are alike in each world; in the left one as they were, if None."""
        left, right = list(base), list(base)
        for t in places:
            left[t] = left[t] if round_ is None else self._put(left[t], round_)
            right[t] = self.relation.put(left[t], other)
        return self._case(left, right)

    @staticmethod
    def _put(round_: Round, other: Round) -> Round:
        """Return a round with all of another's data, in both worlds; whose it is stays."""
        return REPLACE.put(round_, other)

    def _case(self, left: list[Round], right: list[Round]) -> Candidate | None:
        """Return the pair of neighbours in the domain that differ before the end, where there is a before."""
        if len(left) > 1 and not self.publication and shows_nothing(left, right):
            return None
        is_allowed = self.relation.are_near(left, right) and self.allows(left) and self.allows(right)
        return SequenceCandidate(left, right, left) if is_allowed else None

    def changed(self, candidate: Candidate, rng: np.random.Generator) -> Candidate | None:
        """Return a pair that differs from this one in what differs, in its other rounds, or in which it has."""
        return another(partial(self._changed, _own(candidate), rng), (candidate.key,))

    def _changed(self, candidate: SequenceCandidate, rng: np.random.Generator) -> Candidate | None:
        places, turn = candidate.places, int(rng.integers(16))
        other_places = [t for t in range(len(candidate.left)) if t not in places]
        if turn == 0:
            return self._alike(candidate.left, places, None, self._round(rng))
        if turn > 7:  # in half of the cases: the rounds changed by what they are made of, but for those that differ
            mutated = self._mutated(candidate.left, rng)
            if len(mutated) == len(candidate.left):
                worlds = [
                    [side[t] if t in places else round_ for t, round_ in enumerate(mutated)]
                    for side in (candidate.left, candidate.right)
                ]
                return self._case(*worlds)
            places_now = self.relation.places(mutated, _chooser(rng))
            return self._alike(mutated, places_now, candidate.left[places[0]], candidate.right[places[0]])
        if turn == 1:  # the worlds exchanged
            return self._case(candidate.right, candidate.left)
        if turn in (2, 3):
            return self._alike(candidate.left, places, self._round(rng), self._round(rng))
        if turn == 4:  # what differs, in other places of other data
            base = self._base(rng)
            places_now = self.relation.places(base, _chooser(rng))
            return self._alike(base, places_now, candidate.left[places[0]], candidate.right[places[0]])
        if turn == 5:  # fewer rounds
            return self._cut(candidate, [t for t in other_places if rng.random() < 0.5])
        if turn == 6:  # all other rounds alike
            return self._with(candidate, other_places, repeat(self._round(rng)))
        replaced = [t for t in other_places if rng.random() < 0.5]
        return self._with(candidate, replaced, (self._round(rng) for _ in replaced))

    def _with(self, candidate: SequenceCandidate, places: Sequence[int], rounds: Iterable[Round]) -> Candidate | None:
        left, right = list(candidate.left), list(candidate.right)
        for t, other in zip(places, rounds, strict=False):
            left[t] = right[t] = self._put(left[t], other)
        return self._case(left, right)

    def _cut(self, candidate: SequenceCandidate, other_places: Sequence[int]) -> Candidate | None:
        kept_places = sorted([*other_places, *candidate.places])
        if len(kept_places) < self.fewest:
            return None
        return self._case([candidate.left[t] for t in kept_places], [candidate.right[t] for t in kept_places])

    def candidate_of(self, left: object, right: object) -> Candidate:
        """Return a pair that came from here, with how it came to be."""
        sequence = as_sequence(left)
        return SequenceCandidate(sequence, as_sequence(right), sequence)

    def poles(self, rng: np.random.Generator) -> list[Any]:
        """Return longest sequences of equal rounds, and others that are drawn."""
        longest = max(self.bases, key=len)
        rounds = dict.fromkeys(map(key_of, [*self.kinds[0], *self.kinds[1]]))
        pool = {key_of(round_): round_ for round_ in self.pool}
        equal = ([self._put(own_round, pool[key]) for own_round in longest] for key in list(rounds)[:EQUAL_SETS])
        longest_bases = [base for base in self.bases if len(base) == len(longest)]
        return [
            *(data for data in equal if self.allows(data)),
            *(longest_bases[int(rng.integers(len(longest_bases)))] for _ in range(MIXED_SETS)),
        ]

    def between(self, left: list[Round], right: list[Round]) -> Sequence[Any]:
        """Return a way from one sequence to another, by the rounds that may differ together; whose they are stays."""
        relation = self.relation.relation
        if len(left) != len(right):
            return []
        if isinstance(relation, Distance):
            end = [LOSSES.put(round_, other) for round_, other in zip(left, right, strict=True)]
            return line(relation, to_json(left), to_json(end), from_json)
        steps, differing_places, owners = [left], differing(left, right), self.relation.owners(left)
        for group in groups(len(differing_places), relation.limit, lambda i: owners[differing_places[i]]):
            places = [differing_places[i] for i in group]
            stages = (relation.stages(ROUND_PARTS, steps[-1][t], right[t]) for t in places)
            for rounds in zip(*stages, strict=True):
                changed_rounds = dict(zip(places, rounds, strict=True))
                steps.append([changed_rounds.get(t, round_) for t, round_ in enumerate(steps[-1])])
        return steps

    def beside(self, left: list[Round], right: list[Round]) -> Candidate | None:
        """Return the pair of two steps; None where they leave the domain, or are no neighbours after all."""
        try:
            return self._case(self.game.read(left), self.game.read(right))
        except ValueError:
            return None

    def simpler(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield simpler pairs: with fewer differing rounds, fewer rounds, simpler ones; the simplest first."""
        return self.cheaper(candidate, self._simpler(_own(candidate)), exact=self.stats.exact)

    def _simpler(self, candidate: SequenceCandidate) -> Iterator[Candidate | None]:
        places = candidate.places
        other_places = [t for t in range(len(candidate.left)) if t not in places]
        for kept_places in [*([t] for t in places), *([s for s in places if s != t] for t in places)]:
            if len(kept_places) < len(places):
                right = [candidate.right[t] if t in kept_places else round_ for t, round_ in enumerate(candidate.left)]
                yield self._case(candidate.left, right)
        later_places = [t for t in other_places if t > places[0]]  # a learner shows what it was told later
        for size in dict.fromkeys([0, 1, len(other_places) // 4, len(other_places) // 2, len(other_places) - 1]):
            if 0 <= size < len(other_places):
                yield self._cut(candidate, later_places[:size])
                yield self._cut(candidate, other_places[:size])
        simple = self.simple[:SIMPLE]
        for round_ in simple:  # all others the same simple round
            yield self._with(candidate, other_places, repeat(round_))
        for round_ in simple[:4]:  # a simpler difference
            yield from (self._alike(candidate.left, places, round_, other) for other in simple[:4])
        for round_ in simple:
            yield self._alike(candidate.left, places, None, round_)
            yield from (self._with(candidate, [t], [round_]) for t in other_places)


def _own(candidate: Candidate) -> SequenceCandidate:
    assert isinstance(candidate, SequenceCandidate), "the candidates of a space come from there"
    return candidate


def _nobodys(round_: Round) -> Round:
    """Return a round without its user: rounds move to others."""
    if not isinstance(round_, dict) or "user" not in round_:
        return round_
    return {part: value for part, value in round_.items() if part != "user"}


def _varied(rounds: Sequence[Round]) -> list[Round]:
    """Return the rounds that have a number, or other data, which none before them has."""
    seen, varied = set[str](), list[Round]()
    for round_ in rounds:
        parts = [round_] if isinstance(round_, dict) else round_
        if new := set(map(key_of, parts)) - seen:
            seen |= new
            varied.append(round_)
    return varied


def _chooser(rng: np.random.Generator) -> Choose:
    return lambda count: int(rng.integers(count))


def _length(round_: Round) -> tuple[int, str]:
    text = shown(to_json(round_))
    return len(text), text
