"""Pairs that are worth runs, found before any run is counted: the dearest by their traces, and those beside jumps.

A lead only proposes: what it costs in one path, or that a decision flips in a few runs, certifies nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import combinations, zip_longest
from numbers import Real
from typing import NamedTuple

import numpy as np

from ...mechanisms.draws import Floats
from ...mechanisms.numerics import significant
from ..encoding.places import scalars
from ..spaces.candidates import Candidate, Space

#: The most traces, and how many runs of the audit there are for each: a trace takes as long as some dozens of runs.
MAX_TRACES, RUNS_OF_A_TRACE = 500, 40
#: The fewest traces, where an audit has runs for a search at all: as many as the pairs that a search begins with.
MIN_TRACES = 48
#: The most rounds that all traces play: each takes time in proportion to its rounds.
MAX_ROUNDS = 4096
#: How many pairs a search changes next, and how many it proposes.
PARENTS, LEADS = 8, 4
#: Pairs without a trace before it is taken that there is none.
UNTRACED = 4
#: Runs in which a decision must flip: one that noise takes part in flips in some alone.
FLIPS = 4
#: Of the runs of an audit, the share that is played to find decisions, and the most pairs of data sets between which.
DECISIONS, MAX_BISECTED = 0.05, 24
#: A number jumps where it moves by so much more than on other steps of the way: the first, the last, those beside it.
UNUSUAL, PROBES = 4.0, 4
#: Leading bits of how far a number moves: beyond them processors differ.
LEADING_BITS = 30

#: From a pair to what it costs, None where no trace tells.
CostOf = Callable[[Candidate], float | None]
#: From data and the number of a run to what the target returns, the noise being that of the number.
Answer = Callable[[object, int], object]


def dearest(
    space: Space, first: Sequence[Candidate], cost_of: CostOf, rng: np.random.Generator, max_traces: int
) -> list[Candidate]:
    """Return the pairs that cost most, the dearest first and of equals the simplest; none where nothing is traced.

    Of pairs that cost the same one is returned: what costs much in noise may show little in what is released.
    The first ones are traced, then changes of the dearest. A pair with a bypass ends that: nothing is dearer.

    Parameters
    ----------
    max_traces : int
        Traces.
    """
    priced: dict[str, tuple[float, Candidate]] = {}
    queue = list(first[: max(1, max_traces // 3)])
    for traced in range(max_traces):
        if queue:
            candidate = queue.pop(0)
        else:
            parents = sorted(priced.values(), key=lambda cost_and_pair: -cost_and_pair[0])[:PARENTS]
            variant = space.changed(parents[int(rng.integers(len(parents)))][1], rng) if parents else None
            if variant is None:
                break
            candidate = variant
        if candidate.key in priced:
            continue
        cost = cost_of(candidate)
        if cost is not None:
            priced[candidate.key] = cost, candidate
        if not priced and traced + 1 >= UNTRACED:
            return []
        if cost == math.inf:
            break
    simplest: dict[float, Candidate] = {}
    for cost, candidate in priced.values():
        best = simplest.get(cost)
        if cost > 0 and (best is None or candidate.cost < best.cost):
            simplest[cost] = candidate
    return [simplest[cost] for cost in sorted(simplest, reverse=True)[:LEADS]]


def beside_jumps(space: Space, answer: Answer, rng: np.random.Generator, max_calls: int) -> list[Candidate]:
    """Return neighbours between which outputs jump in every run: bisected between data that are unlike.

    A decision flips, or a number moves by more than on other steps of the same way: a threshold, or a type that ends.
    A decision is the discrete part of what a target returns: arms, texts, keys, sizes.

    Parameters
    ----------
    max_calls : int
        Calls of the target.
    """
    poles, calls = space.poles(rng), 0

    def look(data: object, run: int) -> _Output:
        nonlocal calls
        calls += 1
        return _Output.of(answer(data, run))

    outputs = [look(data, 0) for data in poles[: max(0, max_calls // 2)]]
    gaps = {(i, j): outputs[i].jump(outputs[j]) for i, j in combinations(range(len(outputs)), 2)}
    order = [list(gaps)[int(place)] for place in rng.permutation(len(gaps))]
    candidates: dict[str, Candidate] = {}
    for i, j in sorted(order, key=lambda places: not gaps[places].flips)[:MAX_BISECTED]:
        steps = space.between(poles[i], poles[j])
        if len(steps) < 2 or not any(gaps[i, j]) or calls + math.log2(len(steps)) + 2 * (FLIPS + PROBES) > max_calls:
            continue
        low, high, before, after = 0, len(steps) - 1, outputs[i], outputs[j]
        while high - low > 1:
            middle = (low + high) // 2
            output = look(steps[middle], 0)
            if before.jump(output) < output.jump(after):
                low, before = middle, output
            else:
                high, after = middle, output
        jumps = [look(steps[low], run).jump(look(steps[high], run)) for run in range(FLIPS)]
        if not all(jump.flips for jump in jumps):  # a number moves: is that more than elsewhere?
            places = {0, low - 1, high, len(steps) - 2} - {-1, low, len(steps) - 1}
            moves = [look(steps[place], 0).jump(look(steps[place + 1], 0)).moves for place in sorted(places)]
            if not all(jump.moves > UNUSUAL * max(moves, default=math.inf) for jump in jumps):
                continue
        candidate = space.beside(steps[low], steps[high])
        if candidate is not None:
            candidates.setdefault(candidate.key, candidate)
        if len(candidates) == LEADS:
            break
    return sorted(candidates.values(), key=lambda pair: pair.cost)


class _Jump(NamedTuple):
    """How unlike two outputs of the same noise are: whether their decisions are, then how far a number moves."""

    flips: bool
    moves: float


@dataclass(frozen=True)
class _Output:
    """What an output decides, and its numbers."""

    decided: str
    numbers: Floats

    @classmethod
    def of(cls, output: object) -> _Output:
        return cls(discrete(output), np.array([_float(leaf) for _, leaf in scalars(output) if isinstance(leaf, Real)]))

    def jump(self, other: _Output) -> _Jump:
        moves = 0.0
        if self.numbers.size == other.numbers.size:
            with np.errstate(invalid="ignore", over="ignore"):
                distances = np.abs(self.numbers - other.numbers)
            moves = float(significant(distances[np.isfinite(distances)].max(initial=0.0), LEADING_BITS))
        return _Jump(self.decided != other.decided, moves)


def _float(number: Real) -> float:
    try:
        return float(number)
    except OverflowError:  # a whole number beyond all floats: it takes part in no difference
        return math.inf


def share_decided_otherwise(answer: Answer, candidate: Candidate) -> float | None:
    """Return the share of decisions that differ between two inputs in runs with the same noise; None without any.

    What noise costs says little of what is released, as where one arm is chosen by it: this says more.
    """
    shares = []
    for run in range(FLIPS):
        left, right = (_decisions(answer(data, run)) for data in (candidate.left, candidate.right))
        if not left and not right:
            return None
        shares.append(np.mean([a != b for a, b in zip_longest(left, right)]))
    return float(np.mean(shares))


def _shown_cost(cost_of: CostOf, answer: Answer, share_of: CostOf, candidate: Candidate) -> float | None:
    """Return what a run costs; of what shows decisions alone, as much of it as the decisions that flip.

    Noise may cost much and decide nothing, as where all arms are moved alike.
    """
    cost = cost_of(candidate)
    if not cost:
        return cost
    if any(isinstance(leaf, float | np.floating) for _, leaf in scalars(answer(candidate.left, 0))):
        return cost
    share = share_of(candidate)
    return cost if share is None else share and cost * share


def _decisions(output: object) -> list[str]:
    """Return the parts of an output that are no floats."""
    leaves = [leaf for _, leaf in scalars(output)]
    return [repr(leaf) for leaf in leaves if not isinstance(leaf, float | np.floating) or leaf != leaf]


def discrete(output: object) -> str:
    """Return a text of what an output decides: all of it, but for its floats."""
    leaves = (leaf for _, leaf in scalars(output))
    return repr([0.0 if isinstance(leaf, float | np.floating) and leaf == leaf else leaf for leaf in leaves])


def leads(
    space: Space,
    first: Sequence[Candidate],
    cost_of: CostOf,
    answer: Answer,
    rng: np.random.Generator,
    *,
    runs: int,
    rounds: int,
) -> tuple[list[Candidate], list[Candidate], list[Candidate]]:
    """Return the dearest pairs by their traces, those whose decisions differ most, and those beside a decision.

    A trace tells what noise costs, and not what is shown of it.

    Parameters
    ----------
    runs : int
        Of the audit.
    rounds : int
        Of a run.
    """
    calls = int(DECISIONS * runs)
    traces = min(MAX_TRACES, max(MIN_TRACES, runs // RUNS_OF_A_TRACE), MAX_ROUNDS // rounds)
    shares: dict[str, float | None] = {}

    def share_of(candidate: Candidate) -> float | None:
        if candidate.key not in shares:
            shares[candidate.key] = share_decided_otherwise(answer, candidate)
        return shares[candidate.key]

    dear = dearest(space, first, partial(_shown_cost, cost_of, answer, share_of), rng, traces)
    differing = dearest(space, first, share_of, rng, calls // (2 * FLIPS))
    return dear, differing, beside_jumps(space, answer, rng, calls)
