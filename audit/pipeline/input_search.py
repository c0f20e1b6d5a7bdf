"""The search over pairs of inputs that a strategy draws: successive halving, and changes of the best.

It only chooses: what wins is audited as a pair that was given, on runs of its own.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise, zip_longest

import numpy as np

from ...learners.blame import name_of
from ...learners.protocol import LearnerError
from ...mechanisms.draws import Draws, Stage
from ..assumptions.independence import check_memory
from ..encoding.places import scalars
from ..execution.processor import one_thread
from ..execution.progress import steps
from ..execution.workers import in_parallel
from ..play.data import DataPair, to_json
from ..play.mechanism_runs import RefusedInputError, Sample, SlowInputError, outputs_of, run_block
from ..search.leads import leads
from ..search.one_sided import OneSided, Searched, confirmed, one_sided
from ..spaces.candidates import Candidate, Drawn, Space
from ..spaces.related import Related
from .mechanism_stages import MechanismAudit

#: The share of the runs that the search takes; the most runs it takes for a claim of epsilon 1 (beyond, certification
#: gains more from them); and the most for any claim.
SHARE, ENOUGH_RUNS, MOST_RUNS = 0.3, 60_000, 1_000_000
#: Pairs of each generation, how many of those before are kept for it (the others are changes of these), and its share
#: of the search's runs.
GENERATIONS = ((48, 0, 0.2), (28, 10, 0.2), (16, 8, 0.2), (8, 5, 0.2), (3, 3, 0.2))
#: Of a mechanism's data: more runs, most of them for the last pairs, since rare events show in hundreds of runs alone.
DATA_SHARE = 0.35
DATA_GENERATIONS = ((48, 0, 0.1), (28, 10, 0.15), (16, 8, 0.2), (8, 5, 0.25), (3, 3, 0.3))
#: The fewest runs of a pair in one generation: from fewer nothing is learned.
MIN_RUNS = 12
#: The part of the key of draws that leads are found by: runs that rank pairs have 0.
LED = 2
#: The fewest pairs of a generation, however few the runs.
MIN_PAIRS = 2
#: How often other pairs are drawn for a generation in the place of those on which the mechanism raises.
REFILLS = 2
#: Pairs whose inputs are tried, at most, to find two on which the mechanism does not raise.
MAX_UNLIKE = 8
#: About the share of all runs that certification plays in one world.
CERTIFIED = 0.25
#: How often a world must have been due to show something, were the claim true, to be taken never to show it.
EXPECTED = 1.0
#: The most characters of a message that are kept: of an input it has 200, before what was raised.
MAX_LETTERS = 400


@dataclass(eq=False)
class _Ranked:
    candidate: Candidate
    pair: DataPair
    index: int
    samples: list[Sample] = field(default_factory=list)
    worth: float = -math.inf
    unlike: bool = False  # whether the two inputs differ in more than their numbers
    blocks: int = 0


def search_inputs(audit: MechanismAudit, space: Space) -> Searched:
    """Return the pair on which the outputs differ most, as far as the pilot's runs tell.

    What an earlier attempt at the same audit has found is taken from its memory.

    Raises
    ------
    ValueError
        If there is no pair of inputs that differ.
    LearnerError
        If the mechanism raises, or is too slow, on every pair that is drawn.
    """
    return Searched.from_json(audit.once("inputs", lambda: _Search(audit, space).run().to_json()))


class _Search:
    def __init__(self, audit: MechanismAudit, space: Space) -> None:
        self.audit, self.space = audit, space
        self.rng = np.random.default_rng([audit.budget.seed, 3])
        self.of_data = isinstance(space, Related | Drawn)
        self.share, self.generations = (DATA_SHARE, DATA_GENERATIONS) if self.of_data else (SHARE, GENERATIONS)
        self.seen: set[str] = set()
        self.index, self.spent, self.tried, self.slow = 0, 0, 0, 0
        self.refused: list[str] = []
        self.one_sided: list[tuple[OneSided, int]] = []
        self.first_slow = ""

    def run(self) -> Searched:
        budget = max(MIN_RUNS * 8, self.audit.share(self.share, ENOUGH_RUNS, MOST_RUNS))
        scale = min(1.0, budget / (MIN_RUNS * len(self.generations) * self.generations[0][0]))
        alive, led = list[_Ranked](), self._to_rank(self._leads())
        level = self.audit.claim.measure.level  # what costs no more shows nothing of itself
        led_by = {ranked.index for ranked in led[:1] if (self.audit.cost_of(ranked.pair) or 0.0) > level}
        label = "generations of pairs" if self.audit.execution.progress else None
        for number, (n_pairs, n_kept, share) in enumerate(steps(self.generations, label)):
            n_pairs, n_kept = (max(MIN_PAIRS, round(scale * size)) if size else 0 for size in (n_pairs, n_kept))
            before = _best(alive, n_kept, led_by) if number else led[: max(1, n_pairs // 4)]
            alive = before + self._to_rank(self._more(before, n_pairs - len(before), first=not number))
            runs_per_pair = max(MIN_RUNS, math.floor(share * budget) // max(1, len(alive)))
            affordable = max(1, min(len(alive), (budget - self.spent) // runs_per_pair))
            alive = self._played(alive[:affordable], runs_per_pair)
            for _ in range(REFILLS if self.of_data else 0):  # others in the place of those on which it raises
                if len(alive) < affordable and self.refused:
                    proposed = self._to_rank(self._more(alive, affordable - len(alive), first=not number))
                    alive += self._played(proposed, runs_per_pair)
            if not alive:
                slowness = " or was too slow" if self.slow else ""
                if ranked := self._confirmed():
                    raise ranked.error(name_of(self.audit.mechanism))
                first = (self.refused or [self.first_slow])[0]
                raise LearnerError(f"the mechanism raised{slowness} on every pair of inputs that was drawn: {first}")
        best = max(alive, key=lambda ranked: ranked.worth)
        reason = (self.refused or [""])[0][:MAX_LETTERS]
        counts = self.spent, self.tried, len(self.refused), self.slow
        return Searched(best.pair, best.index, *counts, reason, self._confirmed())

    def _confirmed(self) -> OneSided | None:
        audit = self.audit
        return confirmed(audit.limited, self.one_sided, audit.budget.seed, audit.budget.runs)

    def _leads(self) -> list[Candidate]:
        """Return pairs to begin with: of each kind of lead the first, then the second of each.

        The first calls of the mechanism are made here, by `_check_memory`.
        """
        audit = self.audit
        if audit.unseeded:
            return []
        first = self.space.first(self.generations[0][0])
        self._check_memory(first[:MAX_UNLIKE])
        lead_lists = leads(
            self.space,
            first,
            lambda candidate: audit.cost_of(DataPair(candidate.left, candidate.right)),
            self._answer,
            self.rng,
            runs=audit.budget.runs,
            rounds=max(audit.rounds_of(candidate.left) for candidate in first),
        )
        return [candidate for tier in zip_longest(*lead_lists) for candidate in tier if candidate is not None]

    def _check_memory(self, candidates: Sequence[Candidate]) -> None:
        """Raise LearnerError for what keeps what its first call came to: no later one would show it.

        It is played on inputs of two pairs, which are less alike than neighbours: what is kept is another then.
        """
        for candidate, other in pairwise(candidates):
            with suppress(RefusedInputError):
                pair = DataPair(candidate.left, other.right)
                return check_memory(self.audit.limited, pair, self.audit.budget.seed)

    def _answer(self, data: object, run: int) -> object:
        """Return what the mechanism answers in one run of its own; what it raised, where it raises."""
        draws = Draws(self.audit.budget.seed, Stage.SEARCH, 0, LED, run)
        try:
            return outputs_of(self.audit.limited, data, draws, 1)
        except LearnerError as error:
            return str(error)

    def _to_rank(self, candidates: Sequence[Candidate]) -> list[_Ranked]:
        ranked = []
        for candidate in candidates:
            if candidate.key not in self.seen:
                self.seen.add(candidate.key)
                unlike = _shape(to_json(candidate.left)) != _shape(to_json(candidate.right))
                ranked.append(_Ranked(candidate, DataPair(candidate.left, candidate.right), self.index, unlike=unlike))
                self.index += 1
        return ranked

    def _more(self, alive: Sequence[_Ranked], count: int, *, first: bool) -> list[Candidate]:
        """Return first pairs, or changes of those that are kept, more of the better ones."""
        if first or not alive:
            return self.space.first(count)
        places = [min(i, int(self.rng.integers(len(alive)))) for i in range(count)]
        changes = [self.space.changed(alive[place].candidate, self.rng) for place in places]
        return [candidate for candidate in changes if candidate is not None]

    def _played(self, alive: list[_Ranked], runs_per_pair: int) -> list[_Ranked]:
        """Return the candidates with their runs and worths, but for those on which the mechanism raises."""
        audit = self.audit
        pairs = {ranked.index: ranked.pair for ranked in alive}
        play = partial(_attempt, audit.limited, audit.budget.seed, pairs)
        todo = [(ranked.index, ranked.blocks, runs_per_pair) for ranked in alive]
        outcomes = list(in_parallel(play, todo, jobs=audit.execution.jobs, equal_costs=True))
        for ranked, sample in zip(alive, outcomes, strict=True):
            self.tried += ranked.blocks == 0
            ranked.blocks += 1
            free = self.of_data and isinstance(sample, _Refusal) and not sample.slow
            self.spent += 0 if free else runs_per_pair
            if isinstance(sample, Sample):
                ranked.samples.append(sample)
            elif sample.slow:
                self.slow, self.first_slow = self.slow + 1, self.first_slow or sample.said
            else:
                self.refused.append(sample.said)
                self.one_sided += [] if sample.one_sided is None else [(sample.one_sided, ranked.index)]
        alive = [ranked for ranked, sample in zip(alive, outcomes, strict=True) if isinstance(sample, Sample)]
        with one_thread():
            for ranked in alive:
                ranked.worth = float(
                    audit.fit(ranked.pair, ranked.index, ranked.samples, thorough=False, ranked=True)[1]
                )
                ranked.worth = max(
                    ranked.worth, _promise(*_alone_in_one_world(ranked.samples), audit, unlike=ranked.unlike)
                )
        return alive


def _best(alive: Sequence[_Ranked], n_kept: int, led: Container[int] = ()) -> list[_Ranked]:
    """Return the candidates to keep: the leads, those of most worth, and a quarter that differ in form, the simplest.

    A key, a record or a missing value more may show rarely, and be worth nothing in few runs, and yet be certain.
    """
    leading = [ranked for ranked in alive if ranked.index in led][:n_kept]
    alive, n_kept = [ranked for ranked in alive if ranked not in leading], n_kept - len(leading)
    simple = sorted((ranked for ranked in alive if ranked.unlike), key=lambda ranked: ranked.candidate.cost)
    unlike = list({frozenset(ranked.pair.keys): ranked for ranked in reversed(simple)}.values())[::-1][
        : -(-n_kept // 4)
    ]
    remaining = sorted((ranked for ranked in alive if ranked not in unlike), key=lambda ranked: -ranked.worth)
    return [*leading, *remaining[: n_kept - len(unlike)], *unlike]


def _promise(single_runs: int, seen: int, audit: MechanismAudit, *, unlike: bool) -> float:
    """Return the bound that a form of output promises which only one world has shown, if the other never shows it.

    Few runs do not say that: a rate of one in so many is as likely. Of data that differ in form it is taken to be so
    once the other world, were the claim true, should have shown it (`EXPECTED` times).
    """
    rate, delta = single_runs / max(1, seen), audit.claim.delta
    rate_lower = rate - math.sqrt(single_runs) / max(1, seen) - delta
    if rate_lower <= 0:
        return -math.inf
    never = -math.log(audit.budget.alpha) / (CERTIFIED * audit.budget.runs)
    expected = (rate - delta) * seen * math.exp(-min(audit.claim.epsilon, 700.0))
    return math.log(rate_lower / (never if unlike and expected > EXPECTED else max(1 / seen, never)))


def _alone_in_one_world(samples: Sequence[Sample]) -> tuple[int, int]:
    """Return how many runs have one form of output that no run of the other world has, and the runs of their world.

    The form is what an output is made of, but for its numbers: keys, texts, sizes, what is missing.
    """
    forms: tuple[Counter[str], Counter[str]] = (Counter(), Counter())
    for sample in samples:
        if isinstance(sample.outputs, np.ndarray):
            return 0, 0
        for output, left in zip(sample.outputs, sample.left.tolist(), strict=True):
            forms[left][_form(output)] += 1
    counts = (
        (count, forms[i].total()) for i in (0, 1) for form, count in forms[i].items() if form not in forms[1 - i]
    )
    return max(counts, default=(0, 0))


def _shape(form: object) -> object:
    """Return the form of data in a record with 0 for every number."""
    if isinstance(form, dict):
        return {key: _shape(value) for key, value in form.items()}
    if isinstance(form, list):
        return [_shape(part) for part in form]
    return 0 if type(form) in (int, float) else form


def _form(output: object) -> str:
    leaves = (leaf for _, leaf in scalars(output))
    return repr([leaf if isinstance(leaf, str | bytes | tuple | None) or leaf != leaf else 0 for leaf in leaves])


@dataclass(frozen=True)
class _Refusal:
    """Why there are no runs of a pair."""

    said: str
    slow: bool
    one_sided: OneSided | None = None


def _attempt(
    mechanism: object, seed: int, pairs: dict[int, DataPair], block: tuple[int, int, int]
) -> Sample | _Refusal:
    """Return runs of a pair, or why there are none."""
    index, number, runs = block
    try:
        return run_block(mechanism, pairs[index], Draws(seed, Stage.SEARCH, index, 0, number), runs)
    except RefusedInputError as error:
        if isinstance(error, SlowInputError):
            return _Refusal(str(error), slow=True)
        return _Refusal(str(error), False, one_sided(mechanism, pairs[index], seed, index, runs))
