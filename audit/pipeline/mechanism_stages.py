"""The stages of auditing a mechanism as a black box: inputs in, outputs out, nothing else known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from functools import cache, partial
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ...learners.scalar import RAISING_CURE
from ...mechanisms.draws import Draws, Floats, Stage
from ..assumptions.independence import check_independence, check_neighbours, check_replay
from ..attacks.outputs.float_leaks import BitColumns, Preimages
from ..attacks.outputs.learned import OutputAttack, on_outputs
from ..attacks.outputs.narrowing import WIDE, Narrowed
from ..attacks.outputs.output_attacks import attacks_on
from ..attacks.outputs.own_score import OwnScore, ScoreFunction
from ..attacks.protocol import NoEvidence
from ..encoding.encoder import Encoder, has_floats
from ..encoding.features import Features, LabelledColumns, Outputs
from ..execution.processor import one_thread
from ..execution.workers import in_parallel
from ..play.call_limit import Limited
from ..play.data import DataPair
from ..play.mechanism_runs import (
    RefusedInputError,
    Sample,
    comparable,
    from_bytes,
    generator_as,
    join,
    outputs_of,
    paired_outputs_differ,
    run_block,
    to_bytes,
)
from ..play.raising import outcome_of
from ..play.transcripts import blocks
from ..play.unseeded import Digested, Unseeded
from ..search.race import Heat, halving, race
from ..statistics import sequential
from ..statistics.chooser import Evidence, Learned
from ..statistics.event_choice import DOUBT, DOUBT_OF_LOG_ODDS, Odds
from ..statistics.event_rule import transfer
from ..statistics.events import NO_EVENT, Counts, Event, count
from . import weak_claims
from .anytime import FIRST, SEARCH_RUNS, Scored
from .event_statements import MOST_RUNS, described
from .frame import Audit, Choice
from .weak_claims import SEARCH_DOUBT

#: Shares of the runs: the search over pairs, and the training runs, which cross-fitting makes the pilot as well.
SEARCH, TRAIN = 0.18, 0.20
#: Runs of a stage beyond which more of them serve certification better, at a claim of 1: smaller ones need more, as
#: 1 / epsilon^2. And the most whatever the claim, which bounds the memory.
ENOUGH_SEARCH, ENOUGH_TRAIN = 100_000, 200_000
MOST_SEARCH, MOST_TRAIN = 3_600_000, 1_500_000
#: Where a search has so many runs, the shares are these, and the last two pairs, which differ least, are ranked by all
#: attacks on so many times the runs of a stage.
LONG_SEARCH, SEARCH_SHARE, TRAIN_SHARE, LAST_STAGE = 10_000, 0.20, 0.18, 3
#: Where the training runs promise less than this part of the claim, what they show is likely too few of it: then they
#: are doubled, and doubled again, up to so many, and to so much of all runs; not for so small a part of them, nor
#: where they are so few that certification needs the others.
HOPE, FEW_TRAIN, MOST_SPENT, WORTH_PLAYING, MIN_GUESSES = 0.5, 40_000, 0.5, 0.25, 100
#: What an event promises of a claim, and of a nat, to be worth more than one that may tell much or nothing.
NEXT_TO_NOTHING = 0.05


#: A block of runs: the index of its pair, its number, its runs.
_Block = tuple[int, int, int]


@dataclass(frozen=True)
class _Encoded:
    """Training runs as some attacks see them."""

    encoder: Callable[[Outputs], Floats]
    train: LabelledColumns
    bits: bool

    @classmethod
    def of(
        cls, encoder: Callable[[Outputs], Floats], outputs: Outputs, left: NDArray[np.bool_], *, bits: bool = False
    ) -> _Encoded:
        """Encode the runs; of wide outputs what tells the inputs apart is kept."""
        columns = encoder(outputs)
        if len(columns) > WIDE:
            return cls(*Narrowed.fit(encoder, columns, left), bits)
        return cls(encoder, Features(columns).view(columns).labelled(left), bits)


@dataclass(frozen=True, kw_only=True)
class MechanismAudit(Audit):
    """An audit of a mechanism."""

    mechanism: Callable[..., object]
    bits: bool = False
    index: int = 0  # of the first pair: the key of its draws
    spent: int = 0  # runs that were spent on finding it
    call_limit: float | None = None  # seconds of a call, while inputs are searched
    score: ScoreFunction | None = None  # a user's attack

    #: By how much an attack must promise more than the best of those before it.
    min_gain: ClassVar[float] = 0.0

    @property
    def target(self) -> Any:
        """The mechanism."""
        return self.mechanism

    def of(self, target: Any) -> Self:
        """Return the same audit of another mechanism."""
        return replace(self, mechanism=Unseeded(target) if self.unseeded else target, spent=0)

    @property
    def limited(self) -> Callable[..., object]:
        """The mechanism, held to the time that a call may take."""
        if self.call_limit is None or hasattr(self.mechanism, "play_block"):  # which has the limit itself
            return self.mechanism
        return Limited(self.mechanism, self.call_limit)

    def rounds_of(self, data: object) -> int:
        """Return how many rounds a trace plays on an input."""
        return 1

    def cost_of(self, pair: DataPair) -> float | None:
        """Return what one run costs on a pair by its trace; None where no trace tells."""
        from ..traces.one_path import cost_of_one_run

        return cost_of_one_run(self.limited, pair, self.claim, seed=self.budget.seed)

    def anytime(self) -> AnytimeMechanism:
        """Return the early audit with the same facts."""
        return AnytimeMechanism(self)

    def check(self, options: Sequence[DataPair]) -> object:
        """Raise LearnerError if runs depend on each other; return what one block came to."""
        runs, seed = self.budget.runs, self.budget.seed
        before = None if self.unseeded else check_replay(self.mechanism, options[0], seed, runs)
        check_independence(self.mechanism, options[0], seed, runs)
        return before

    def recheck(self, options: Sequence[DataPair], choice: Choice, before: Any) -> None:
        """Raise LearnerError if a block gives other outputs than before the audit."""
        if self.unseeded:
            return
        runs, seed = self.budget.runs, self.budget.seed
        # A memory may show only after many calls, or on another input.
        check_replay(self.mechanism, options[0], seed, runs, before)
        if choice.index != self.index:
            check_replay(self.mechanism, choice.inputs, seed, runs)

    @contextmanager
    def naming_the_cure(self) -> Iterator[None]:
        """Say how an exception of the mechanism is taken as an outcome, where it can be."""
        try:
            yield
        except RefusedInputError as error:
            is_batched = getattr(self.mechanism, "batched", False) or generator_as(self.mechanism, error.__cause__)
            if not is_batched and self.claim.raising != "outcome" and outcome_of(error.__cause__) is not None:
                hinted(error, RAISING_CURE)
            raise

    @property
    def unseeded(self) -> bool:
        """Whether the mechanism has randomness that no seed replays."""
        return isinstance(self.mechanism, Unseeded)

    def choose(self, options: Sequence[DataPair]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""
        if weak_claims.is_weak(self) and not self.bits and self.score is None:
            choice, runs = weak_claims.choose(self, self.mechanism, options, self.index)
            return choice, self.spent + runs
        samples: list[Sample] = []
        runs, best = self.spent, self.index
        if len(options) > 1:
            best, samples, runs = self.halve(options)
        pairs = dict(enumerate(options, start=self.index))
        share = TRAIN_SHARE if len(options) > 1 and self.searches_long else TRAIN
        train = max(10, self.share(share, ENOUGH_TRAIN, MOST_TRAIN))
        missing_runs, numbers = max(0, train - _runs_of(samples)), itertools.count()
        while True:
            samples = samples + self.play(
                [(best, next(numbers), size) for _, size in blocks(missing_runs)], pairs, Stage.TRAIN
            )
            runs += missing_runs
            choice, promised = self.fit(pairs[best], best, samples)
            missing_runs = self.more_to_learn_from(_runs_of(samples), runs, promised)
            if not missing_runs:
                return replace(described(choice, some_outputs(samples)), promised=promised), runs

    def more_to_learn_from(self, seen: int, spent: int, promised: float) -> int:
        """Return how many training runs to add to those seen, 0 where they promise enough or may be no more."""
        runs = min(seen, int(MOST_SPENT * self.budget.runs) - spent)
        enough = promised > HOPE * self.claim.measure.level or seen < MIN_GUESSES
        return 0 if enough or seen + runs > FEW_TRAIN or runs < WORTH_PLAYING * seen else runs

    def share(self, share: float, enough: int, max_runs: int) -> int:
        """Return a share of the runs, but no more than are enough."""
        scale = max(min(1.0, self.claim.epsilon), 1e-9)  # beyond it all the runs are not enough
        return min(int(share * self.budget.runs), int(enough / scale**2), max_runs)

    @property
    def searches_long(self) -> bool:
        """Whether a search has the runs for a longer last stage."""
        return SEARCH_SHARE * self.budget.runs >= LONG_SEARCH

    def halve(self, options: Sequence[DataPair]) -> tuple[int, list[Sample], int]:
        """Return the winner of successive halving, its runs, and the runs spent on all pairs."""
        last, share = (LAST_STAGE, SEARCH_SHARE) if self.searches_long else (1, SEARCH)
        budget = max(40, self.share(share, ENOUGH_SEARCH, MOST_SEARCH))
        planned: dict[int, list[tuple[int, int]]] = {i: [] for i in range(len(options))}
        samples: dict[int, list[Sample]] = {i: [] for i in range(len(options))}
        runs = 0

        def judge(alive: Sequence[int], heat: Heat) -> list[float]:
            nonlocal runs
            runs_per_pair = max(10, heat.runs // len(alive))
            for i in alive:
                planned[i] += [(len(planned[i]) + n, size) for n, size in blocks(runs_per_pair)]
            runs += runs_per_pair * len(alive)

            def worth(i: int) -> float:
                # All of them, the first time that one is asked for.
                missing = [(j, *block) for j in alive for block in planned[j][len(samples[j]) :]]
                for (j, *_), sample in zip(
                    missing, self.play(missing, dict(enumerate(options)), Stage.SEARCH), strict=True
                ):
                    samples[j].append(sample)
                seen = samples[i] + _of_same_left(i, options, {j: samples[j] for j in alive})
                thorough = last > 1 and heat.n_kept == 1
                return float(self.fit(options[i], i, seen, thorough=thorough, ranked=True)[1])

            return [self.once(f"worth/{i}/{len(planned[i])}", partial(worth, i)) for i in alive]

        best = race(range(len(options)), halving(len(options), budget, last=last), judge)[0]
        missing = [(best, *block) for block in planned[best][len(samples[best]) :]]
        return best, samples[best] + self.play(missing, dict(enumerate(options)), Stage.SEARCH), runs

    def play(self, numbered: Sequence[_Block], options: Mapping[int, DataPair], stage: Stage) -> list[Sample]:
        """Return runs of pairs, block by block."""
        pairs = {index: options[index] for index, *_ in numbered}
        play = partial(
            in_parallel, partial(_play_block, self.mechanism, self.budget.seed, stage, pairs), jobs=self.execution.jobs
        )
        return self.kept_blocks(stage.name, numbered, play, from_bytes, to_bytes)

    @one_thread()
    def fit(
        self, pair: DataPair, index: int, samples: Sequence[Sample], *, thorough: bool = True, ranked: bool = False
    ) -> tuple[Choice, float]:
        """Return the attack and event that promise most, and what they promise.

        Each attack is fitted on one half of the runs and scores the other (cross-fitting), so all of them serve to
        choose the event; the winner is then fitted on all. Only a table of few outcomes is fitted on all at once.

        Parameters
        ----------
        thorough : bool
            Whether all attacks are tried.
        ranked : bool
            Whether what they promise is all that is asked for, to rank pairs: then no attack is returned.
        """
        outputs = join([sample.outputs for sample in samples])
        left = np.concatenate([sample.left for sample in samples])
        best, best_plain, event = -math.inf, -math.inf, NO_EVENT
        best_attack: tuple[_Encoded, OutputAttack, Callable[[], Floats]] | None = None
        for i, (seen, attack) in enumerate(self._attacks(outputs, left, thorough=thorough, ranked=ranked)):
            scores: Callable[[], Floats] = cache(partial(attack.cross_fitted, self.mechanism, pair, seen.train))
            bet = partial(self._bet, seen, attack, scores, best_plain, ranked=ranked)
            predicted_bound, bet_result = bet() if ranked else self.once(f"fit/{index}/{left.size}/{i}", bet)
            if predicted_bound > best + self.min_gain:
                best, event, best_attack = predicted_bound, Event.of_json(bet_result), (seen, attack, scores)
            best_plain = best_plain if seen.bits else best
        by_score = self._by_score(pair, outputs, left)
        if by_score is not None and by_score[2] > best:
            return Choice(pair, by_score[0], by_score[1], index), by_score[2]
        if best_attack is None or ranked:  # the outputs are constant, or a ranking of pairs is all that is asked for
            return Choice(pair, NoEvidence(), event, index, alike=not ranked), best
        seen, attack, scores = best_attack
        fitted = attack.fit(self.mechanism, pair, seen.train)
        event = transfer(event, scores(), fitted.score(seen.train))
        return Choice(pair, on_outputs(fitted, seen.encoder, seen.train.features), event, index), best

    def _by_score(
        self, pair: DataPair, outputs: Outputs, left: NDArray[np.bool_]
    ) -> tuple[OwnScore, Event, float] | None:
        """Return the user's attack, its best event and what that promises; None without one."""
        if self.score is None:
            return None
        attack = OwnScore(self.score, pair.left, pair.right)
        learned = Learned(DOUBT_OF_LOG_ODDS, min_promise=NEXT_TO_NOTHING * min(1.0, self.claim.epsilon))
        event, predicted_bound = self.promised(Evidence(attack.score(outputs), left, learned=learned))
        return attack, event, float(predicted_bound)

    def _bet(
        self, seen: _Encoded, attack: OutputAttack, scores: Callable[[], Floats], best_plain: float, *, ranked: bool
    ) -> list[Any]:
        """Return what an attack's best event promises, and the event, as JSON; `best_plain` is of values alone."""
        left, discrete = seen.train.left, seen.train.features.discrete
        learned = Learned(
            SEARCH_DOUBT * attack.doubt if ranked else attack.doubt,
            (Odds.HELD_OUT if attack.needs_other_runs else Odds.ESTIMATED) if discrete else Odds.NUMERIC,
            NEXT_TO_NOTHING * min(1.0, self.claim.epsilon),
        )
        evidence = Evidence(scores(), left, log_odds=attack.log_odds, learned=learned)
        event, predicted_bound = self.promised(evidence)
        if seen.bits and attack.log_odds and predicted_bound > best_plain > -math.inf:
            # The odds of rare values are learned from few runs each, and some are large by luck: a bound that they
            # promise above that of the values alone is believed where the counts promise one too.
            by_counts = self.promised(replace(evidence, log_odds=False, learned=replace(learned, doubt=DOUBT)))[1]
            predicted_bound = predicted_bound if by_counts > best_plain else by_counts
        return [float(predicted_bound), event.to_json()]

    def _attacks(
        self, outputs: Outputs, left: NDArray[np.bool_], *, thorough: bool, ranked: bool
    ) -> Iterator[tuple[_Encoded, OutputAttack]]:
        """Yield the attacks to fit, and what of the outputs each is shown: those that read bits come last.

        Where bits are read, they alone rank pairs.
        """
        encoder: Callable[[Outputs], Floats] = Encoder.fit(outputs)
        if not (self.bits and ranked):
            encoded = _Encoded.of(encoder, outputs, left)
            yield from ((encoded, attack) for attack in attacks_on(encoded.train, thorough=thorough))
        if not self.bits:
            return
        encoded = _Encoded.of(BitColumns(encoder), outputs, left, bits=True)
        # Its columns are the number and its lowest bit.
        if len(encoded.train.columns) == 2 and Preimages.applies(self.mechanism):
            yield encoded, Preimages()
        yield from ((encoded, attack) for attack in attacks_on(encoded.train, thorough=thorough))

    def outputs_differ(self, choice: Choice, block: int, runs: int) -> bool | None:
        """Return whether any of `runs` paired runs gives another output for the other input.

        None where the mechanism's randomness cannot be seeded.
        """
        if self.unseeded:
            return None
        key = self.budget.seed, Stage.PAIRED, choice.index
        return paired_outputs_differ(self.mechanism, choice.inputs, key, block, runs)

    def shown_of_left(self, pair: DataPair, runs: int) -> object:
        """Return what some runs show of the left input."""
        draws = Draws(self.budget.seed, Stage.PAIRED, self.index, 1)
        if getattr(self.mechanism, "in_step", False):
            return comparable(
                outputs_of(self.mechanism, (pair.left, pair.right), draws, runs, np.ones(runs, dtype=bool))
            )
        return comparable(outputs_of(self.mechanism, pair.left, draws, runs))

    def counter(self, choice: Choice) -> Callable[[tuple[int, int]], Counts]:
        """Return what runs a block of fresh runs and counts the event."""
        return partial(_count_block, self.mechanism, choice, self.budget.seed)


@dataclass(frozen=True)
class AnytimeMechanism:
    """An early audit of a mechanism (`anytime.Anytime`): outputs are all that is known, so every attack is learned."""

    audit: MechanismAudit

    @property
    def most_to_learn(self) -> int:
        """As many runs as an audit with a fixed number of runs would train on."""
        return max(FIRST, self.audit.share(TRAIN, ENOUGH_TRAIN, MOST_TRAIN))

    def find_pair(self, options: Sequence[DataPair]) -> tuple[DataPair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        if len(options) == 1:
            return options[0], self.audit.index, self.audit.spent
        runs = min(self.audit.budget.runs, round(SEARCH_RUNS / SEARCH))
        best, _, search_runs = replace(self.audit, budget=replace(self.audit.budget, runs=runs)).halve(options)
        return options[best], best, search_runs

    def trained(self, pair: DataPair) -> bool:
        """Tell whether attacks are learned from runs: always."""
        return True

    def exact(self, pair: DataPair) -> bool:
        """Tell whether the laws of all outcomes are known: never."""
        return False

    def choose(self, pair: DataPair, index: int, past: Sequence[Sample]) -> Choice:
        """Return the attack and event of the next epoch, from the runs so far."""
        runs = sum(sample.left.size for sample in past)
        values = {field.name: getattr(self.audit, field.name) for field in fields(MechanismAudit)}
        values["execution"] = self.audit.execution.inside(f"early {runs}")
        choice = _Growing(**values).fit(pair, index, past)[0]
        return replace(choice, floats=has_floats(some_outputs(past)))

    def play(self, pair: DataPair, index: int, numbered: Sequence[tuple[int, int]]) -> list[Sample]:
        """Return some blocks of certification."""
        return self.audit.play([(index, *block) for block in numbered], {index: pair}, Stage.CERTIFY)

    def scorer(self, choice: Choice) -> Callable[[tuple[int, int]], Scored[Sample]]:
        """Return what plays and scores a block of certification."""
        return partial(_score, self.audit.mechanism, choice, self.audit.budget.seed)


@dataclass(frozen=True)
class _Growing(MechanismAudit):
    """An audit whose stakes are to make a gambler against the claim rich."""

    #: In nats that she would have won: the best of several is so by luck too.
    min_gain = 1.0

    def promised(self, evidence: Evidence) -> tuple[Event, float]:
        """Return the event whose guesses grow her wealth fastest, with the best stakes, and what these would win."""
        scores, left = evidence.scores, evidence.left
        p, q = left / left.size, ~left / left.size
        claim = {"epsilon": self.claim.epsilon, "delta": self.claim.delta}
        event = sequential.choose_growing_event(scores, p, q, seen=left.size, **claim)
        stakes, gain = sequential.choose_stakes(scores, left, **claim, log_odds=evidence.log_odds)
        return replace(event, stakes=stakes), gain


def _score(mechanism: object, choice: Choice, seed: int, block: tuple[int, int]) -> Scored[Sample]:
    """Return a block of runs, each with a label that those before it do not tell.

    A batched mechanism is called for the left world first, so in the order of the calls the labels are no coins, and
    a guess could be bet on them. The runs are independent: those of either world take the places that its labels had
    when they were drawn.
    """
    number, runs = block
    draws = Draws(seed, Stage.CERTIFY, choice.index, 0, number)
    sample = run_block(mechanism, choice.inputs, draws, runs)
    scores = choice.attack.score(sample.outputs)
    check_neighbours(choice.event, scores, sample.left)
    left = draws.labels(runs)
    in_place = np.empty_like(scores)
    for world in (True, False):
        in_place[left == world] = scores[sample.left == world]
    return Scored(in_place, left, sample)


def _runs_of(samples: Sequence[Sample]) -> int:
    return sum(sample.left.size for sample in samples)


def some_outputs(samples: Sequence[Sample]) -> Outputs:
    """Return what the first pilot runs showed, enough to put an event in words."""
    few_samples: list[Sample] = []
    for sample in samples:
        if _runs_of(few_samples) < MOST_RUNS:
            few_samples.append(sample)
    return join([sample.outputs for sample in few_samples])


def _of_same_left(index: int, options: Sequence[DataPair], samples: Mapping[int, Sequence[Sample]]) -> list[Sample]:
    """Return the runs of the left world that other pairs played on the same input: they serve this pair too."""
    siblings = [j for j in samples if j != index and options[j].keys[0] == options[index].keys[0]]
    return [sample.of_left() for j in siblings for sample in samples[j]]


def _play_block(mechanism: object, seed: int, stage: Stage, pairs: Mapping[int, DataPair], block: _Block) -> Sample:
    index, number, runs = block
    return run_block(mechanism, pairs[index], Draws(seed, stage, index, 0, number), runs)


def _count_block(mechanism: object, choice: Choice, seed: int, block: tuple[int, int]) -> Counts:
    number, runs = block
    draws = Draws(seed, Stage.CERTIFY, choice.index, 0, number)
    sample = run_block(mechanism, choice.inputs, draws, runs, choice.event.share)
    scores = choice.attack.score(sample.outputs)
    check_neighbours(choice.event, scores, sample.left)
    counts = count(choice.event, scores, sample.left)
    return Digested.of(counts, sample) if isinstance(mechanism, Unseeded) else counts
