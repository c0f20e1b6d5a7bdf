"""A space of pairs for an optimiser: a few numbers say where the worlds differ and what stretches of rounds hold."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...learners.abilities import batch_of, decisions
from ...learners.problems.losses import loss_set
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ..play.pairs import Pair, same_loss
from .loss_choices import Alphabet, Pattern, alphabet_of

#: A coordinate's name to its value, from 0.
Point = Mapping[str, int]
#: The stretches of rounds, in order: before the differing batch, and three behind it.
STRETCHES = ("before", "first", "second", "third")
#: Coordinates that have an order; the values of the others are names.
ORDERED = ("place", "second from", "third from")


@dataclass(frozen=True)
class PairSpace:
    """Pairs of an alphabet's losses that differ in one batch of rounds, with four stretches around it.

    A batch is what a learner decides once for: a single round for most. The coordinates of a point are

    - `place`: the batch whose first round differs, and `differing`: by which losses;
    - `others in batch`: what the rest of that batch holds;
    - `before`, `first`, `second`, `third`: the pattern of each stretch, the last three behind the differing batch;
    - `second from`, `third from`: the batches where these begin; a stretch without batches is left out;
    - `arm`, `entry`, `where`: one arm's loss in a stretch, or in the left world's differing round, is changed; none if
      `arm` is 0. Only where single entries may be changed.
    """

    alphabet: Alphabet
    rounds: int
    batch: int
    arms: int
    levels: tuple[float, ...] = ()  # of single entries
    replace: bool = True  # whether the differing round's losses may be any two

    @classmethod
    def of(cls, learner: Learner, claim: Claim, rounds: int) -> PairSpace:
        """Return the space for a learner's audit."""
        alphabet, losses = alphabet_of(learner, claim), loss_set(claim.losses)
        levels = (losses.low, losses.high, (losses.low + losses.high) / 2) if alphabet.box else ()
        return cls(alphabet, rounds, batch_of(learner), learner.arms, levels, claim.neighbours == "replace")

    @cached_property
    def holds(self) -> list[Pattern]:
        """What a stretch may hold, in even and in odd rounds."""
        choices = list(self.alphabet.patterns)
        for row in self.alphabet.rows:
            if not any(same_loss(row, even) and same_loss(row, odd) for even, odd in choices):
                choices.append((row, row))
        return choices

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The number of values of each coordinate; those with a single one are left out."""
        batches, holds = decisions(self.rounds, self.batch), len(self.holds)
        places = max(1, batches - 1)  # what the last batch feeds back reaches no action
        sizes = {"place": places, "differing": len(self.alphabet.differing)}
        sizes |= {"others in batch": len(self.alphabet.others_in_batch) if self.batch > 1 else 1}
        sizes |= {"before": holds if places > 1 else 1}
        sizes |= {stretch: holds if self.rounds > 1 else 1 for stretch in STRETCHES[1:]}
        sizes |= {"second from": batches + 1, "third from": batches + 1}
        if self.levels:
            sizes |= {"arm": self.arms + 1, "entry": len(self.levels), "where": len(STRETCHES) + self.replace}
        return {name: size for name, size in sizes.items() if size > 1}

    def pair(self, point: Point) -> Pair | None:
        """Return the pair at a point; None where its worlds do not differ."""
        t0 = self.batch * point.get("place", 0)
        batches = np.arange(self.rounds) // self.batch
        stretch = np.where(batches > t0 // self.batch, 1, 0)
        stretch[stretch == 1] += batches[stretch == 1] >= point.get("second from", 0)
        stretch[(stretch > 0) & (batches >= point.get("third from", 0))] = 3
        rest = [self.holds[point.get(STRETCHES[s], 0)][t % 2] for t, s in enumerate(stretch)]
        for t in range(t0 + 1, min(t0 + self.batch, self.rounds)):
            rest[t], stretch[t] = self.alphabet.others_in_batch[point.get("others in batch", 0)], -1
        left, right = self.alphabet.differing[point.get("differing", 0)]
        if point.get("arm", 0):
            arm, level, where = point["arm"] - 1, self.levels[point.get("entry", 0)], point.get("where", 0)
            if where == len(STRETCHES):
                left = _changed(left, arm, level)
            else:
                rest = [_changed(r, arm, level) if s == where else r for r, s in zip(rest, stretch, strict=True)]
        if same_loss(left, right):
            return None
        return Pair([*rest[:t0], left, *rest[t0 + 1 :]], [*rest[:t0], right, *rest[t0 + 1 :]])

    def point(self, pair: Pair) -> dict[str, int] | None:
        """Return a point of a pair, its stretches split evenly; None if the space does not hold it."""
        place = pair.t0 // self.batch
        begin, end = self.batch * place, min(self.batch * (place + 1), self.rounds)
        differing, other_losses = (pair.left[begin], pair.right[begin]), pair.left[begin + 1 : end]
        choices = {
            "differing": [all(map(same_loss, losses, differing)) for losses in self.alphabet.differing],
            "others in batch": [
                all(same_loss(choice, loss) for loss in other_losses) for choice in self.alphabet.others_in_batch
            ],
        }
        matches = np.array([[same_loss(two[t % 2], loss) for t, loss in enumerate(pair.left)] for two in self.holds])
        choices["before"] = [bool(row[:begin].all()) for row in matches]
        stretches: list[tuple[int, int]] = []  # where each begins, and what it holds
        start = end
        while start < self.rounds:
            reach = [int(np.argmin([*row[start:], False])) for row in matches]
            stretches.append((start, int(np.argmax(reach))))
            if not max(reach) or start % self.batch:
                return None
            start += max(reach)
        if len(stretches) > 3 or pair.t0 != begin or not all(map(any, choices.values())):
            return None
        while stretches and len(stretches) < 3:
            ends = [*(first_batch for first_batch, _ in stretches[1:]), self.rounds]
            longest = max(range(len(stretches)), key=lambda i: ends[i] - stretches[i][0])
            middle = -(-(stretches[longest][0] + ends[longest]) // (2 * self.batch))
            stretches.insert(longest + 1, (self.batch * middle, stretches[longest][1]))
        coordinates = {"place": place} | {name: those.index(True) for name, those in choices.items()}
        for name, (first_batch, pattern) in zip(STRETCHES[1:], stretches, strict=False):
            coordinates |= {name: pattern, f"{name} from": first_batch // self.batch}
        return {name: coordinates.get(name, 0) for name in self.sizes}


def _changed(row: Any, arm: int, level: float) -> Any:
    new_row = row.copy()
    new_row[arm] = level
    return new_row


def changes(pair: Pair, t: int, alphabet: Alphabet, claim: Claim) -> Iterator[Pair]:
    """Yield the pairs that differ from this one in round t: other losses of the alphabet, and other single entries."""
    worlds = [list(pair.left), list(pair.right)]

    def put(left: object, right: object) -> Iterator[Pair]:
        old = worlds[0][t], worlds[1][t]
        if not (same_loss(left, old[0]) and same_loss(right, old[1])) and (t != pair.t0 or not same_loss(left, right)):
            yield Pair(*([*world[:t], new, *world[t + 1 :]] for world, new in zip(worlds, (left, right), strict=True)))

    if t == pair.t0:
        for left, right in alphabet.differing:
            yield from put(left, right)
            if claim.neighbours == "replace":
                yield from put(right, left)
    else:
        for row in alphabet.rows:
            yield from put(row, row)
    if not alphabet.box or (t == pair.t0 and claim.neighbours != "replace"):
        return
    losses = loss_set(claim.losses)
    for arm in range(len(worlds[0][t])):
        for value in (losses.low, losses.high, (losses.low + losses.high) / 2):
            if t != pair.t0:
                row = worlds[0][t].copy()
                row[arm] = value
                yield from put(row, row)
                continue
            for side in (0, 1):
                rows = [worlds[0][t].copy(), worlds[1][t].copy()]
                rows[side][arm] = value
                yield from put(*rows)


def moved(pair: Pair, t0: int, before: tuple[object, object]) -> Pair:
    """Return the pair with its differing round and its suffix moved to t0, behind a prefix."""
    shift = t0 - pair.t0
    prefix = [before[t % 2] for t in range(t0)]
    worlds = [[*prefix, *list(world)[pair.t0 : pair.rounds - shift]] for world in (pair.left, pair.right)]
    return Pair(*worlds)
