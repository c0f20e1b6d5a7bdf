"""A learner's regret on adversarial sequences, held against the printed bound and growth rate."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
from typing import Any

from ...learners.blame import blaming
from ...learners.entry import Entry, RegretClaim, Setting
from ...learners.protocol import Learner, LearnerError
from ...learners.scalar import as_learner, plays_run_by_run
from ..execution.execution import IN_PROCESS, Budget, Execution
from ..play.pairs import World
from ..record_types import RegretJson
from .adaptive import play_adaptive
from .adversaries import check_losses, check_runs, convex_opposites, regret_losses
from .adversary_search import PILOT, find_adversary, rows_of_arms
from .block_sequences import BlockSequence
from .growth import Growth, default_horizons, growth
from .measurement import BUDGET, MIN_RUNS, RACED, Played, Regret, play_raced, play_sequences, shares
from .verdicts import (
    HOLDS,
    MIN_DOUBLINGS,
    UNDECIDED,
    VACUOUS,
    VIOLATED,
    HorizonRuns,
    Judged,
    as_bound,
    first_binding,
    judge_growth,
    promised_growth,
    without_violations,
)

#: What the sequence is called that a search found.
SEARCH_RESULT = "found by search"
#: Loss sequences by name, from the horizon.
_Sequences = Callable[[int], Mapping[str, World]]
#: Losses of one sequence, at most: more would not fit into the memory of many machines.
MAX_REGRET_LOSSES = 2**26
#: Rounds of a first look at whether a bound binds.
_GLANCE = 16
#: Runs that are played before the first look of a measurement that may stop early.
FIRST_LOOK = 250


@dataclass(frozen=True, kw_only=True)
class RegretAudit:
    """What a learner's regret is, beside what is printed about it.

    Attributes
    ----------
    regret, sequence
        The worst of the adversarial sequences at the setting's horizon, and its name: that of the largest mean, of
        those that decide where the bound is VIOLATED or UNDECIDED.
    growth : Growth
        Of the worst sequence's mean at each horizon.
    bound, exponent, source
        What is printed, if anything.
    bound_slope : float or None
        The slope of the printed bound itself, with its logarithms: between the horizons that its growth is judged by,
        else between the first and the last.
    binds_from : int or None
        The horizon from which on the bound is below the largest possible regret, by the bound's own formula; None
        where it is not at 2^60, or nothing bounds the losses.
    bound_verdict : str or None
        Of the setting's horizon. VIOLATED: on some sequence the expected regret exceeds the bound. HOLDS: it is below
        the bound on every sequence played, and the bound is below the largest possible regret. VACUOUS: the bound is
        not below it. UNDECIDED: the interval straddles the bound, or is no exact one. VIOLATED and HOLDS are wrong
        with probability at most 1 - confidence.
    growth_verdict : str or None
        Of the largest regret over the sequences, between the first and the last horizon from `binds_from` on; VACUOUS
        where they span fewer than three doublings. VIOLATED or HOLDS where the certified growth between them is above,
        or below, the exponent or the bound's own slope, whichever is steeper, and the tolerance; else UNDECIDED.
    growth_lower, growth_upper : float or None
        The certified limits of that growth: of log regret by log T, from the intervals at both horizons.
    means : mapping
        The mean regret on every sequence played at the setting's horizon.
    adversary : BlockSequence, optional
        What a search found: one of these sequences.
    adaptive : mapping
        The policy-free regret against adversaries that answer the past arms, each interval for itself. No verdict
        rests on it: bounds are for losses that are fixed in advance.
    plays : mapping
        The total losses of all runs, by the horizon.
    """

    regret: Regret
    sequence: str
    growth: Growth
    bound: float | None = None
    exponent: float | None = None
    source: str = ""
    bound_slope: float | None = None
    binds_from: int | None = None
    bound_verdict: str | None = None
    growth_verdict: str | None = None
    growth_lower: float | None = None
    growth_upper: float | None = None
    means: Mapping[str, float] = field(default_factory=dict)
    adversary: BlockSequence | None = None
    adaptive: Mapping[str, Regret] = field(default_factory=dict)
    plays: Mapping[int, tuple[Played, ...]] = field(default_factory=dict, repr=False)

    @property
    def verdict(self) -> str | None:
        """The worse of the two: VIOLATED, UNDECIDED, VACUOUS, HOLDS; None if nothing is claimed."""
        verdicts = (self.bound_verdict, self.growth_verdict)
        return next((v for v in (VIOLATED, UNDECIDED, VACUOUS, HOLDS) if v in verdicts), None)

    def to_json(self) -> RegretJson:
        """Return what `overclaim regret --json` prints."""
        return {
            **self.regret.to_json(),
            "sequence": self.sequence,
            "bound": self.bound,
            "exponent": self.exponent,
            "slope": self.growth.slope,
            "slope_lower": self.growth.slope_lower,
            "slope_upper": self.growth.slope_upper,
            "horizons": list(self.growth.horizons),
            "regrets": list(self.growth.regrets),
            "bound_slope": self.bound_slope,
            "binds_from": self.binds_from,
            "bound_verdict": self.bound_verdict,
            "growth_verdict": self.growth_verdict,
            "growth_lower": self.growth_lower,
            "growth_upper": self.growth_upper,
            "verdict": self.verdict,
            "source": self.source,
            "by_sequence": dict(self.means),
            "found": None if self.adversary is None else self.adversary.to_json(),
            "adaptive": [
                {"adversary": name, "mean_regret": regret.mean, "interval": list(regret.interval)}
                for name, regret in self.adaptive.items()
            ],
        }


@dataclass(frozen=True)
class RegretRequest:
    """Whose regret is measured, on which losses, and what it is held against.

    Parameters
    ----------
    target : Entry, or a user's object
        A user's object makes no claim of its own: without `claim` it is only measured.
    setting : Setting
        The game; its `rounds` is the horizon of the bound.
    parameters : mapping
        The algorithm's own parameters.
    horizons : sequence of int, optional
        For the growth; default six, halves of the setting's rounds up to themselves, and none where the shortest has
        no round or the learner refuses it. With none nothing is said of it.
    sequences : callable, optional
        From a horizon to loss sequences by name; default `adversaries`, or for an entry with convex losses two
        extreme losses (quadratic ones tilted), constant, in turn, switching half-way or early, and at random.
    claim : RegretClaim, optional
        The bound to hold the measurement against; default the entry's.
    search : bool
        Whether to search for a worse sequence first, on pilot runs, and to play adaptive adversaries too.
    search_where_binding : bool
        Whether to search at a quarter of the horizon, without adaptive adversaries, if the bound is below the largest
        possible regret.
    """

    target: object
    setting: Setting
    _: KW_ONLY
    parameters: Mapping[str, object] = field(default_factory=dict)
    horizons: Sequence[int] | None = None
    sequences: _Sequences | None = None
    claim: RegretClaim | None = None
    search: bool = False
    search_where_binding: bool = False

    @property
    def stated_claim(self) -> RegretClaim | None:
        """The claim, or that of the entry."""
        return self.target.regret if self.claim is None and isinstance(self.target, Entry) else self.claim

    def at(self, rounds: int) -> tuple[Setting, Learner]:
        """Return the setting at a horizon, and the learner built for it."""
        setting = replace(self.setting, rounds=rounds)
        if isinstance(self.target, Entry):
            return setting, self.target.build(setting, **self.parameters)
        parameters = dict[str, Any](self.parameters)
        return setting, as_learner(self.target, arms=setting.arms, rounds=rounds, **parameters)


def audit_regret(request: RegretRequest, budget: Budget = BUDGET, execution: Execution = IN_PROCESS) -> RegretAudit:
    """Measure a learner's regret and hold it against the printed bound and growth rate.

    Parameters
    ----------
    request : RegretRequest
    budget, execution
        As for `play_sequences`. The confidence holds over all sequences together. With `stop` "early" no more runs are
        played than it takes to decide on the bound, by intervals that hold at all numbers of runs.

    Raises
    ------
    ValueError, LearnerError
        As `play_sequences`, `growth` and `as_learner`.
    """
    return _audit(request.target, request, budget, execution)


@blaming
def _audit(target: object, request: RegretRequest, budget: Budget, execution: Execution) -> RegretAudit:
    """Carry out a request; errors of the target are blamed on it."""
    setting, claim = request.setting, request.stated_claim
    if request.horizons:
        growth(request.horizons, [1.0] * len(request.horizons))  # refuse bad horizons before hours of play
    if claim is None and budget.stop == "early":
        raise ValueError("stop early needs a bound on regret to decide on: nothing is claimed here")

    adaptive = _adaptive(request, budget, execution) if request.search else {}
    game = _Game(request)
    horizons = game.horizons(budget) if request.horizons is None else tuple(request.horizons)
    if request.search or (request.search_where_binding and game.binds(budget)):
        rounds = setting.rounds if request.search else max(1, setting.rounds // 4)
        game = replace(game, adversary=game.find(rounds, budget, execution))

    def bound_at(t: int) -> float:
        return game.bound(t, played[t].learner if t in played else None)

    played: dict[int, HorizonRuns] = {}
    at_horizon = game.play(setting.rounds, budget, execution)
    budget = replace(budget, runs=at_horizon.worst.totals.size)  # fewer where it was stopped early
    played |= {t: at_horizon if t == setting.rounds else game.play(t, budget, execution) for t in horizons}
    means = [played[t].worst.mean for t in horizons]
    index = at_horizon.index if claim is None else at_horizon.decisive(bound_at(setting.rounds))
    grown = growth(horizons, means, confidence=budget.confidence) if horizons else at_horizon.growth
    audit = RegretAudit(
        regret=replace(at_horizon.regret(index), confidence=budget.confidence),
        sequence=at_horizon.names[index],
        growth=grown,
        means={name: runs.mean for name, runs in zip(at_horizon.names, at_horizon.played, strict=True)},
        adversary=game.adversary,
        adaptive=adaptive,
        plays={t: tuple(runs.played) for t, runs in played.items()},
    )
    if claim is None:
        return audit
    verdicts = _judge(claim.exponent, bound_at, setting, at_horizon, played)
    verdicts = verdicts if claim.constant else without_violations(verdicts)
    return replace(audit, exponent=claim.exponent, source=claim.source, **verdicts)


def says_something(entry: Entry, setting: Setting, budget: Budget) -> bool:
    """Return whether an entry's bound is below the largest possible regret on some listed sequence.

    If not, its verdict is VACUOUS whatever the runs are.
    """
    return _Game(RegretRequest(entry, setting)).binds(budget)


def _adaptive(request: RegretRequest, budget: Budget, execution: Execution) -> dict[str, Regret]:
    setting, learner = request.at(request.setting.rounds)
    played = play_adaptive(learner, setting.losses, setting.rounds, budget, execution) or {}
    return {name: runs.regret(budget.confidence) for name, runs in played.items()}


@dataclass(frozen=True)
class _Game:
    """What is measured, at every horizon, with what a search found."""

    request: RegretRequest
    adversary: BlockSequence | None = None

    def bound(self, rounds: int, learner: Learner | None = None) -> float:
        claim = self.request.stated_claim
        assert claim is not None
        if learner is None:
            return as_bound(claim.bound(*self.request.at(rounds)))
        return as_bound(claim.bound(replace(self.request.setting, rounds=rounds), learner))

    def worlds(self, setting: Setting, learner: Learner, seed: int) -> Mapping[str, World]:
        """Return the sequences of a horizon: those given, or listed, and what a search found."""
        if self.request.sequences is not None:
            sequences = self.request.sequences(setting.rounds)
        else:
            sequences = regret_losses(self.request.target, setting, learner, seed)
        return sequences if self.adversary is None else {**sequences, SEARCH_RESULT: self.adversary.at(setting.rounds)}

    def horizons(self, budget: Budget) -> tuple[int, ...]:
        """Return the horizons of growth; none where the learner raises at the shortest, which nobody asked for."""
        horizons = default_horizons(self.request.setting.rounds)
        if not horizons or self.request.sequences is not None:
            return horizons
        try:
            self.glance(horizons[0], budget)
        except (LearnerError, ValueError):
            return ()
        return horizons

    def glance(self, rounds: int, budget: Budget) -> list[Played]:
        """Return two runs on each sequence of a horizon."""
        setting, learner = self.request.at(rounds)
        worlds = [*self.worlds(setting, learner, budget.seed).values()]
        return play_sequences(learner, worlds, replace(budget, runs=MIN_RUNS), label=PILOT)

    def binds(self, budget: Budget) -> bool:
        """Tell whether the bound is below the largest possible regret on some listed sequence: by two short runs."""
        if self.request.stated_claim is None:
            return False
        short = min(_GLANCE, self.request.setting.rounds)
        played = self.glance(short, budget)
        largest = max((runs.largest or 0.0 for runs in played), default=0.0) / short * self.request.setting.rounds
        return self.bound(self.request.setting.rounds) < largest

    def find(self, rounds: int, budget: Budget, execution: Execution) -> BlockSequence:
        setting, learner = self.request.at(rounds)
        rows = convex_opposites(self.request.target, setting, learner) or rows_of_arms(setting.losses, setting.arms)
        return find_adversary(learner, rows, rounds, budget, execution)

    def play(self, rounds: int, budget: Budget, execution: Execution) -> HorizonRuns:
        """Play all sequences at a horizon; with a budget that may stop early, until the bound is decided."""
        if rounds * self.request.setting.arms > MAX_REGRET_LOSSES:
            max_rounds = MAX_REGRET_LOSSES // self.request.setting.arms
            raise ValueError(
                f"rounds must be at most {max_rounds:,} here, for losses are kept in memory, got {rounds:,}"
            )
        setting, learner = self.request.at(rounds)
        sequences = self.worlds(setting, learner, budget.seed)
        check_losses(sequences, setting, learner)
        if rounds == self.request.setting.rounds and not isinstance(self.request.target, Entry):
            check_runs(learner, setting, budget.seed)
        if self.request.stated_claim is not None and budget.stop == "early" and rounds == self.request.setting.rounds:
            return _play_early(learner, sequences, budget, execution, self.bound(rounds, learner))
        worlds = [*sequences.values()]
        if plays_run_by_run(learner) and len(worlds) > RACED:
            return HorizonRuns(
                learner, sequences, play_raced(learner, worlds, budget, execution), budget, n_reruns=RACED
            )
        return HorizonRuns(learner, sequences, play_sequences(learner, worlds, budget, execution), budget)


def _play_early(
    learner: Learner, sequences: Mapping[str, World], budget: Budget, execution: Execution, bound: float
) -> HorizonRuns:
    """Play more and more runs until intervals that hold at all numbers of them decide on a bound."""
    played: list[Played] = []
    runs = first = 0
    while True:
        n_runs = max(MIN_RUNS, min(runs or FIRST_LOOK, budget.runs - runs))
        new_runs = play_sequences(learner, [*sequences.values()], replace(budget, runs=n_runs), execution, first=first)
        played = [
            old.with_more(new)
            for old, new in zip(played or [runs_of.none() for runs_of in new_runs], new_runs, strict=True)
        ]
        runs, first = runs + n_runs, first + len(shares(learner, n_runs, len(new_runs)))
        so_far = HorizonRuns(learner, sequences, played, budget)
        if runs + MIN_RUNS > budget.runs or so_far.verdict(bound) != UNDECIDED:
            return so_far


def _judge(
    exponent: float,
    bound_at: Callable[[int], float],
    setting: Setting,
    at_horizon: HorizonRuns,
    played: Mapping[int, HorizonRuns],
) -> Judged:
    """Return what a printed bound and growth rate come to."""
    bound, bounds = bound_at(setting.rounds), {t: bound_at(t) for t in played}
    sizes = [runs.largest / runs.rounds for runs in at_horizon.played if runs.largest is not None]
    largest = max(sizes) if at_horizon.bounded else None
    binds_from = None if largest is None else first_binding(bound_at, largest)
    binding = [t for t in played if binds_from is not None and t >= binds_from]
    far_enough = binding and max(binding) >= 2**MIN_DOUBLINGS * min(binding)
    ends = {t: played[t].limits() for t in (min(binding), max(binding))} if far_enough else {}
    printed = None
    if played and all(0 < b < math.inf for b in bounds.values()):
        first, last = sorted(ends) or (min(played), max(played))  # where regret's growth is judged, if it is
        printed = (math.log(bounds[last]) - math.log(bounds[first])) / math.log(last / first)
    return {
        "bound": bound if math.isfinite(bound) else None,
        "bound_slope": printed,
        "binds_from": binds_from,
        "bound_verdict": at_horizon.verdict(bound),
        **judge_growth(ends, promised_growth(exponent, printed)[0]),
    }
