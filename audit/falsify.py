"""From a claim to a verdict: search, pilot, certification."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

from ..learners.protocol import Learner
from ..learners.scalar import recipe
from ..mechanisms.claim import Claim
from ..mechanisms.draws import Draws, Stage
from .attacks import Attack, SequenceRatio, applicable, has_release
from .conformance import check_fresh
from .events import Counts, Event, certify, choose_event, choose_event_from_laws, count
from .pairs import Pair
from .play import Transcripts, blocks, concatenate, in_parallel, play
from .power import ceiling_epsilon, detectable_epsilon
from .search import Mutations, candidates, climb, rank_exactly
from .verdict import Result, Verdict

#: Shares of the runs: search over pairs (only if there is no exact ranking), training, and choosing the event.
SEARCH, TRAIN, PILOT = 0.10, 0.05, 0.10
#: When an audit ends: after all its runs, or as soon as the claim is falsified.
STOPS = ("budget", "early")
#: No stage before certification uses more: beyond it the choice does not get better.
MOST = 300_000


class Memory(Protocol):
    """Finished certification blocks of one audit, kept across interruptions: a `ledger.Page`."""

    def recall(self, stage: str) -> dict[int, Counts]:
        """Return the finished blocks of a stage."""

    def keep(self, stage: str, block: int, counts: Counts) -> None:
        """Keep one finished block."""


@dataclass(frozen=True)
class Choice:
    """What the pilot fixed: everything that certification needs."""

    pair: Pair
    attack: Attack
    event: Event
    index: int  # of the pair, a part of the key of its draws

    @property
    def key(self) -> str:
        """Everything that the counts of a certification block depend on, besides the audit's own facts."""
        event = self.event
        return f"certify/{self.index}/{self.attack.name}/{event.method}/{event.lower!r}/{event.upper!r}"


def falsify(
    learner: Any,
    claim: Claim,
    *,
    rounds: int | None = None,
    arms: int | None = None,
    pair: Pair | None = None,
    pairs: Iterable[Pair] | None = None,
    runs: int = 100_000,
    seed: int = 0,
    confidence: float = 0.99,
    jobs: int = 1,
    progress: bool = False,
    memory: Memory | None = None,
    stop: str = "budget",
) -> Result:
    """Try to falsify a privacy claim about a learner.

    Parameters
    ----------
    learner : Learner, or a user's class
        A batched learner, or a class with `act` and `update` that is built as `cls(arms, rounds, rng)`.
    claim : Claim
        What is promised.
    rounds : int, optional
        The horizon; that of the pair if one is given.
    arms : int, optional
        For a user's class; a batched learner knows its own.
    pair : Pair, optional
        The two worlds. By default the worst of the standard families is searched.
    pairs : iterable of Pair, optional
        The pairs to search instead of the standard families.
    runs : int
        All runs of the audit, both worlds and the pilot included.
    seed : int
        Non-negative.
    confidence : float
        1 - alpha of the certificate, in (0, 1).
    jobs : int
        Processes. The result does not depend on it.
    progress : bool
        Show a progress bar on stderr.
    memory : Memory, optional
        Finished blocks of the same audit are taken from it, and new ones kept in it. It does not change the result.
    stop : {"budget", "early"}
        When to stop: after all the runs, or as soon as the claim is falsified. An early audit is anytime-valid, and
        learns its attack on the way; if nothing is wrong its bound is looser than that of a full budget.

    Returns
    -------
    Result

    Raises
    ------
    ValueError
        For parameters outside their range, or a pair outside the claim's loss set.
    LearnerError
        If the learner misbehaves.
    """
    began = time.perf_counter()
    rounds = _check_rounds(rounds, pair)
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must be in (0, 1), got {confidence!r}")
    if stop not in STOPS:
        raise ValueError(f"stop must be one of {', '.join(STOPS)}, got {stop!r}")
    if runs < 20:
        raise ValueError(f"runs must be at least 20, got {runs!r}")
    built = recipe(learner, arms=_arms(learner, arms, pair), rounds=rounds)
    options = _check_pairs(built, claim, rounds, runs, pair, pairs)
    if claim.surface == "release" and not has_release(built):
        raise ValueError(f"{type(built).__name__} releases nothing noisy: audit the surface 'actions'")
    check_fresh(built, options[0], seed)

    searched = pair is None and pairs is None
    audit = Audit(built, claim, runs, seed, 1 - confidence, jobs, progress, memory, searched)
    alpha = 1 - confidence
    parts: tuple[Counts, ...] = ()
    if stop == "early":
        from .early import until_falsified

        choice, pilot, certificate, detectable, ceiling = until_falsified(audit, options)
        runs = pilot + certificate.counts.runs
    else:
        choice, pilot = audit.choose(options)
        if pilot >= runs:
            many = f"choosing among {len(options)} pairs takes {pilot}"
            raise ValueError(f"runs must be more than {pilot}, got {runs}: {many}; a pair of your own takes fewer")
        parts = tuple(audit.certification_blocks(choice, runs - pilot))
        counts = sum(parts, start=Counts())
        certificate = certify(choice.event, counts, delta=claim.delta, alpha=alpha)
        detectable = detectable_epsilon(claim.epsilon, counts.runs, delta=claim.delta, alpha=alpha)
        ceiling = None
    return Result(
        verdict=decide(claim, certificate.epsilon_lower, certificate.counts.runs, alpha, ceiling=ceiling),
        claim=claim,
        certificate=certificate,
        pair=choice.pair,
        event=choice.event,
        attack=choice.attack.name,
        runs=runs,
        pilot=pilot,
        detectable_epsilon=detectable,
        seed=seed,
        seconds=time.perf_counter() - began,
        scorer=choice.attack,
        blocks=parts,
    )


def decide(claim: Claim, epsilon_lower: float, runs: int, alpha: float, *, ceiling: float | None = None) -> Verdict:
    """Return the verdict on a claim: UNDERPOWERED if even a perfect attack could not have falsified it.

    Parameters
    ----------
    runs : int
        Certification runs.
    ceiling : float, optional
        What a perfect attack would have certified; that of a fixed number of runs by default.
    """
    if epsilon_lower > claim.epsilon:
        return Verdict.FALSIFIED
    if (ceiling_epsilon(runs, delta=claim.delta, alpha=alpha) if ceiling is None else ceiling) <= claim.epsilon:
        return Verdict.UNDERPOWERED
    return Verdict.SURVIVED


def _check_rounds(rounds: int | None, pair: Pair | None) -> int:
    if rounds is None:
        if pair is None:
            raise ValueError("rounds must be given where no pair is")
        return pair.rounds
    if rounds < 1:
        raise ValueError(f"rounds must be at least 1, got {rounds!r}")
    if pair is not None and pair.rounds != rounds:
        raise ValueError(f"the pair has {pair.rounds} rounds, but rounds = {rounds} was asked for")
    return rounds


def _arms(learner: Any, arms: int | None, pair: Pair | None) -> int:
    """Return the number of arms: as asked for, else the learner's, else the pair's, else 2."""
    if arms is not None:
        if arms < 1:
            raise ValueError(f"arms must be at least 1, got {arms!r}")
        return arms
    own = getattr(learner, "arms", None)
    return own if isinstance(own, int) else (pair.arms if pair is not None else None) or 2


def _check_pairs(
    learner: Learner, claim: Claim, rounds: int, runs: int, pair: Pair | None, pairs: Iterable[Pair] | None
) -> Sequence[Pair]:
    if pair is not None:
        options: Sequence[Pair] = [pair]
    else:
        options = list(pairs) if pairs is not None else candidates(learner, claim, rounds=rounds, runs=runs)
    if not options:
        raise ValueError("there is no pair to audit on")
    radius = float(getattr(getattr(learner, "domain", None), "outer_radius", 1.0))
    for option in options:
        if option.arms is not None and option.arms != learner.arms:
            raise ValueError(f"the pair has {option.arms} arms, but the learner has {learner.arms}")
        option.check(claim, radius=radius)
    return options


@dataclass(frozen=True)
class Audit:
    """One audit's fixed facts, and its three stages."""

    learner: Learner
    claim: Claim
    runs: int
    seed: int
    alpha: float
    jobs: int
    progress: bool
    memory: Memory | None = None
    searched: bool = False  # whether the pairs are our own, to be mutated, and not the user's

    def choose(self, options: Sequence[Pair]) -> tuple[Choice, int]:
        """Return the pair, attack and event to certify, and the runs that it took to choose them."""
        pair, best, spent = self.find_pair(options)
        first = applicable(self.learner, pair, self.claim.surface)[0]
        if first is SequenceRatio:  # the laws of all outcomes are known: no pilot is needed
            attack = SequenceRatio(self.learner, pair)
            event = choose_event_from_laws(
                *attack.laws, delta=self.claim.delta, alpha=self.alpha, runs=self.runs - spent
            )
            return Choice(pair, attack, event, best), spent
        choice, _, used = self._pilot(pair, best, self._share(TRAIN), self._share(PILOT), Stage.TRAIN)
        return choice, spent + used

    def _share(self, share: float) -> int:
        return max(10, min(MOST, int(share * self.runs)))

    def find_pair(self, options: Sequence[Pair]) -> tuple[Pair, int, int]:
        """Return the pair to audit on, its index, and the runs that it took to find it."""
        if len(options) == 1:
            return options[0], 0, 0
        ranked = rank_exactly(self.learner, self.claim, options)
        if ranked is not None:
            return ranked[0], next(i for i, option in enumerate(options) if option is ranked[0]), 0

        def trial(pair: Pair, index: int, runs: int) -> tuple[float, int]:
            return self._pilot(pair, index, runs, runs, Stage.SEARCH)[1:]

        mutate = Mutations(self.learner, self.claim, self.seed) if self.searched else None
        return climb(options, trial, self._share(SEARCH), mutate=mutate)

    def _pilot(self, pair: Pair, index: int, train: int, pilot: int, stage: Stage) -> tuple[Choice, float, int]:
        """Fit every applicable attack and choose its event; return the best, what it promises, and the runs spent.

        At the search stage one set of transcripts, keyed apart from all later ones, is split in two.
        """
        recipes = applicable(self.learner, pair, self.claim.surface)
        needed = any(r.trained for r in recipes)
        if stage is Stage.SEARCH:
            both = self._play(pair, index, stage, train + pilot if needed else pilot)
            training = both[:train] if needed else None
            chosen_on = both[train:] if needed else both
        else:
            training = self._play(pair, index, Stage.TRAIN, train) if needed else None
            chosen_on = self._play(pair, index, Stage.PILOT, pilot)
        best: tuple[float, Choice] | None = None
        for made in recipes:
            attack: Attack = made.fit(self.learner, pair, training)
            scores = attack.score(chosen_on)
            event = choose_event(scores, chosen_on.left, delta=self.claim.delta, alpha=self.alpha, runs=self.runs)
            worth = self.promise(event, count(event, scores, chosen_on.left))
            if best is None or worth > best[0]:
                best = worth, Choice(pair, attack, event, index)
        assert best is not None
        return best[1], best[0], chosen_on.runs + (training.runs if training is not None else 0)

    def promise(self, event: Event, counts: Counts) -> float:
        """Return the bound that the pilot's own counts would give: a ranking, never a certificate."""
        worth = certify(event, counts, delta=self.claim.delta, alpha=0.2).epsilon_lower
        if worth > 0 or not counts.guesses:
            return worth
        return float(counts.right / counts.guesses - 1)

    def _play(self, pair: Pair, index: int, stage: Stage, runs: int) -> Transcripts:
        return concatenate(self.play_blocks(pair, index, stage, blocks(runs)))

    def play_blocks(self, pair: Pair, index: int, stage: Stage, some: Sequence[tuple[int, int]]) -> list[Transcripts]:
        """Return the transcripts of some blocks."""
        task = partial(_play_block, self.learner, pair, self.seed, stage, index, self.claim.surface)
        return list(in_parallel(task, some, jobs=self.jobs))

    def certification_blocks(self, choice: Choice, runs: int) -> list[Counts]:
        """Return the counts of the event over fresh runs, block by block."""
        task = partial(_count_block, self.learner, choice, self.seed, self.claim.surface)
        known = self.memory.recall(choice.key) if self.memory is not None else {}
        missing = [block for block in blocks(runs) if block[0] not in known]
        label = "certify" if self.progress else None
        for (number, _), counts in zip(
            missing, in_parallel(task, missing, jobs=self.jobs, progress=label), strict=True
        ):
            if self.memory is not None:
                self.memory.keep(choice.key, number, counts)
            known[number] = counts
        return [known[number] for number, _ in blocks(runs)]


def _play_block(
    learner: Learner, pair: Pair, seed: int, stage: Stage, index: int, surface: str, block: tuple[int, int]
) -> Transcripts:
    number, runs = block
    return play(learner, pair, Draws(seed, stage, index, 0, number), runs, surface=surface)


def _count_block(learner: Learner, choice: Choice, seed: int, surface: str, block: tuple[int, int]) -> Counts:
    transcripts = _play_block(learner, choice.pair, seed, Stage.CERTIFY, choice.index, surface, block)
    return count(choice.event, choice.attack.score(transcripts), transcripts.left)
