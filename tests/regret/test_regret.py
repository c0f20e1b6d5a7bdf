"""Regret: what is measured, how sure it is, how it grows, and which printed claims about it are false."""

import json
import math
from dataclasses import dataclass, replace

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.regret import comparator as hindsight
from overclaim.audit.regret.adversaries import adversaries
from overclaim.audit.regret.growth import default_horizons, growth
from overclaim.audit.regret.measurement import BETTING, NORMAL, Regret
from overclaim.audit.regret.regret_audit import RegretRequest, audit_regret
from overclaim.audit.regret.verdicts import (
    HOLDS,
    UNDECIDED,
    VACUOUS,
    VIOLATED,
    first_binding,
    judge_bound,
    judge_growth,
)
from overclaim.learners import Exp3, Ftrl, Threshold
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.entry import RegretClaim, Setting
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.problems.losses import LOSS_SETS
from overclaim.mechanisms.noise import Laplace
from overclaim.reports.false_regret_statements import regret_on_random_signs, walk_interval
from overclaim.tests.support.regret import measure

UNIFORM = Exp3(arms=2, eta=1e-12, gamma=1.0)
STUCK = Threshold(arms=2, threshold=1e9)


def test_a_learner_that_is_stuck_pays_the_whole_gap():
    regret = measure(STUCK, np.tile([1.0, 0.25], (10, 1)), Budget(runs=50))
    assert regret.mean == pytest.approx(7.5)
    assert regret.comparator == 2.5
    assert regret.largest == 7.5
    low, high = regret.interval
    assert low <= 7.5 <= high
    assert high == pytest.approx(7.5)  # no run can pay more, and the interval knows it
    assert regret.interval_method == BETTING
    assert json.loads(json.dumps(regret.to_json()))["rounds"] == 10


def test_uniform_play_pays_half_of_the_gap():
    """Seed 0, 5000 runs: the interval misses with probability 1e-6."""
    regret = measure(UNIFORM, np.tile([1.0, 0.0], (16, 1)), Budget(runs=5000, confidence=1 - 1e-6))
    assert regret.interval[0] < 8 < regret.interval[1]
    assert regret.mean == pytest.approx(8, abs=0.2)


@pytest.mark.slow(reason="10,000 runs, four times")
def test_the_result_depends_on_the_seed_alone():
    learner = Exp3(arms=2, eta=0.3, gamma=0.1)
    losses = adversaries("unit", rounds=8, arms=2)["random signs"]
    one, two = (measure(learner, losses, Budget(runs=10_000, seed=3), Execution(jobs=jobs)) for jobs in (1, 2))
    assert one == two
    assert measure(learner, losses, Budget(runs=10_000, seed=4)).mean != one.mean
    assert measure(learner, losses, Budget(runs=10_000, seed=3), label=1).mean != one.mean


@pytest.mark.parametrize(
    ("changes", "told"), [({"runs": 1}, "runs must be at least 2"), ({"confidence": 1.0}, "confidence must be in")]
)
def test_measure_checks_its_parameters(changes, told):
    with pytest.raises(ValueError, match=told):
        measure(STUCK, np.ones((2, 2)), Budget(**changes))
    with pytest.raises(ValueError, match="at least one round"):
        measure(STUCK, np.ones((0, 2)))


@dataclass(frozen=True)
class Interval:
    """[-1, 1]."""

    dim: int = 1

    def minimise(self, linear):
        return np.where(linear > 0, -1.0, 1.0)


@dataclass(frozen=True)
class Still:
    """Plays one point of [-1, 1] for ever, with noise of its own on demand."""

    point: float
    width: float = 0.0
    domain: Interval = Interval()
    arms: int = 1
    feedback: str = "full"

    def start(self, runs, draws):
        return np.zeros(runs)

    def act(self, state, draws):
        return self.point + self.width * draws.normal((1, state.size))

    def update(self, state, actions, feedback, draws):
        pass


@dataclass(frozen=True)
class Parabola:
    centre: float

    def value(self, x):
        return np.square(x - self.centre).sum(axis=0)

    def gradient(self, x):
        return 2 * (x - self.centre)


@dataclass(frozen=True)
class Kink:
    centre: float

    def value(self, x):
        return np.abs(x - self.centre).sum(axis=0)

    def gradient(self, x):
        return np.sign(x - self.centre)


def test_points_are_compared_with_the_domains_minimiser():
    regret = measure(Still(0.5), np.tile([[1.0], [1.0], [-1.0]], (4, 1)), Budget(runs=20))
    assert regret.comparator == -4  # x = -1
    assert regret.mean == pytest.approx(6)
    assert regret.interval_method == BETTING


def test_points_outside_the_domain_are_not_bounded():
    assert measure(Still(0.9, width=1.0), np.ones((8, 1)), Budget(runs=200)).interval_method == NORMAL


def test_convex_losses_are_compared_with_their_best_point():
    """Three parabolas at 0.5 and one at -0.5: the best point is 1/4, with a total of 3/4."""
    losses = [Parabola(0.5), Parabola(0.5), Parabola(-0.5), Parabola(0.5)]
    regret = measure(Still(0.0, width=0.01), losses, Budget(runs=20))
    assert regret.comparator == pytest.approx(0.75, abs=1e-6)
    assert regret.mean == pytest.approx(0.25, abs=0.1)
    assert regret.interval_method == NORMAL
    assert regret.interval[0] < 0.25 < regret.interval[1]


@pytest.mark.parametrize("bandits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_entry_of_the_catalogue_can_be_measured(bandits):
    """Small budget: no entry raises, and none is wrongly accused (each bound is wrong with probability 1e-6)."""
    for name, entry in entries().items():
        if ("bandit" in name) is not bandits:
            continue
        setting = entry.setting(rounds=16)
        shortest = 16 if bandits else 4  # smoothing radii grow as horizons shrink, out of the domain
        horizons = (shortest, 4 * shortest, 32 * shortest)
        audit = audit_regret(RegretRequest(entry, setting, horizons=horizons), Budget(runs=50, confidence=1 - 1e-6))
        assert audit.bound_verdict != VIOLATED, name
        assert audit.regret.mean > -16, name


def test_the_search_for_the_best_point_admits_its_gap():
    best, gap = hindsight.best_fixed_point(Interval(), [Kink(0.2), Kink(0.2), Kink(-0.6)], 1)
    assert best - gap <= 0.8 <= best + 1e-12


def test_convex_losses_need_a_domain_or_a_comparator():
    learner = replace(Still(0.0), domain=None)
    with pytest.raises(
        ValueError, match="Still has no domain to minimise convex losses over\nhint: give a comparator"
    ):
        measure(learner, [Parabola(0.5)], Budget(runs=5))
    assert measure(learner, [Parabola(0.5)], Budget(runs=5), comparator=0.0).mean == pytest.approx(0.25)


def test_experts_are_compared_with_the_best_expert():
    from overclaim.learners.problems.advice import Advice

    @dataclass(frozen=True, kw_only=True)
    class Advised(Exp3):
        advice: Advice

    advice = Advice([[0.5, 0.5], [0.25, 0.75]])
    regret = measure(Advised(arms=2, eta=1.0, advice=advice), np.tile([1.0, 0.0], (8, 1)), Budget(runs=5))
    assert regret.comparator == 2  # the second expert's 1/4 a round, not the second arm's 0


@pytest.mark.parametrize("losses", sorted(LOSS_SETS))
@pytest.mark.parametrize("arms", [1, 2, 5])
def test_adversaries_lie_in_the_loss_set(losses, arms):
    sequences = adversaries(losses, rounds=10, arms=arms)
    assert ("Lemma 11" in sequences) == (arms == 2)
    for name, sequence in sequences.items():
        assert sequence.shape == (10, arms), name
        for loss in sequence:
            LOSS_SETS[losses].check(loss, name)


def test_growth_finds_the_exponent_of_a_power():
    horizons = default_horizons(1024)
    assert horizons == (32, 64, 128, 256, 512, 1024)
    fitted = growth(horizons, [3 * t**0.75 for t in horizons])
    assert fitted.slope == pytest.approx(0.75)
    assert fitted.slope_lower <= fitted.slope <= fitted.slope_upper == pytest.approx(0.75)


@pytest.mark.parametrize(
    ("rounds", "horizons"), [(64, (2, 4, 8, 16, 32, 64)), (1000, (31, 62, 125, 250, 500, 1000)), (31, ()), (1, ())]
)
def test_no_horizon_is_longer_than_what_was_asked(rounds, horizons):
    """Growth at 64 rounds was measured up to 512: nine tenths of the time."""
    assert default_horizons(rounds) == horizons


def test_growth_covers_a_noisy_exponent():
    """500 fits, one-sided limit at 90%: fewer than 415 that cover have probability 1e-6."""
    rng = np.random.default_rng(1)
    x = np.array(default_horizons(512))
    fits = [growth(x.tolist(), np.exp(0.5 * np.log(x) + 0.1 * rng.normal(size=6)), confidence=0.9) for _ in range(500)]
    assert sum(fit.slope_upper >= 0.5 for fit in fits) >= 415


def test_growth_without_regret_has_no_slope():
    assert growth(default_horizons(512), [-1, 0, 0, 1, 2, -4]).slope is None


@pytest.mark.parametrize("horizons", [(16, 32, 64), (16, 16, 1024), (64, 32, 2048), (0, 32)])
def test_growth_refuses_too_few_doublings(horizons):
    with pytest.raises(ValueError, match="horizons must"):
        growth(horizons, [1.0] * len(horizons))


ENTRY = replace(
    lookup("asi-raman-talwar/exp3"),
    regret=RegretClaim(
        # Auer et al. 2002: (e - 1) gamma T + K ln K / gamma, with eta = gamma / K.
        bound=lambda setting, learner: (math.e - 1) * learner.gamma * setting.rounds + 2 * math.log(2) / learner.gamma,
        exponent=0.5,
        source="Auer et al. 2002, Theorem 3.1",
    ),
    build=lambda setting, *, gamma=None: Exp3(
        arms=2, eta=(g := gamma or min(1.0, math.sqrt(2 * math.log(2) / ((math.e - 1) * setting.rounds)))) / 2, gamma=g
    ),
)


def test_a_true_bound_and_exponent_hold():
    audit = audit_regret(RegretRequest(ENTRY, Setting(rounds=512)), Budget(runs=1000))
    assert audit.bound_verdict == HOLDS
    # At these horizons regret grows faster than its limit of 1/2, by about the tolerance: no verdict on that.
    assert (audit.growth_verdict, audit.verdict) == (UNDECIDED, UNDECIDED)
    assert 0.5 < audit.growth_lower < 0.6 < audit.growth_upper < 0.7
    assert audit.regret.mean < audit.bound < 512
    assert audit.growth.slope_upper < 0.7
    printed = json.loads(json.dumps(audit.to_json(), allow_nan=False))
    assert {
        "mean_regret",
        "interval",
        "interval_method",
        "bound",
        "exponent",
        "slope",
        "slope_upper",
    } <= printed.keys()
    assert printed["horizons"] == list(default_horizons(512))
    assert printed["regrets"][-1] == printed["mean_regret"]


def test_a_bound_that_is_too_small_is_violated():
    tight = replace(ENTRY.regret, bound=lambda setting, learner: 0.25 * math.sqrt(setting.rounds))
    audit = audit_regret(RegretRequest(replace(ENTRY, regret=tight), Setting(rounds=128)), Budget(runs=500))
    assert audit.bound_verdict == audit.verdict == VIOLATED


def test_a_learner_that_does_not_learn_violates_its_exponent():
    bound = RegretClaim(bound=lambda setting, _: 2.3 * math.sqrt(setting.rounds), exponent=0.5, source="ours")
    still = replace(ENTRY, build=lambda setting: UNIFORM, regret=bound)
    audit = audit_regret(RegretRequest(still, Setting(rounds=64)), Budget(runs=200))
    assert audit.growth_verdict == audit.verdict == VIOLATED
    assert audit.growth.slope == pytest.approx(1, abs=0.1)


def test_a_bound_that_nothing_could_violate_is_vacuous_and_so_is_its_growth():
    """Linear regret below a bound of 40 sqrt(T), which exceeds T / 2 until T = 6400."""
    vacuous = RegretClaim(bound=lambda setting, _: 40 * math.sqrt(setting.rounds), exponent=0.5, source="ours")
    audit = audit_regret(
        RegretRequest(replace(ENTRY, build=lambda setting: UNIFORM, regret=vacuous), Setting(rounds=64)),
        Budget(runs=200),
    )
    assert (audit.bound_verdict, audit.growth_verdict, audit.verdict) == (VACUOUS, VACUOUS, VACUOUS)
    assert 40 * math.sqrt(audit.binds_from) < audit.regret.largest / 64 * audit.binds_from
    assert 40 * math.sqrt(audit.binds_from - 1) >= audit.regret.largest / 64 * (audit.binds_from - 1)


def test_a_bound_within_the_interval_is_undecided():
    even = RegretClaim(bound=lambda setting, _: setting.rounds / 2, exponent=1.0, source="ours")  # the exact regret
    audit = audit_regret(
        RegretRequest(replace(ENTRY, build=lambda setting: UNIFORM, regret=even), Setting(rounds=64)), Budget(runs=200)
    )
    assert audit.bound_verdict == UNDECIDED
    assert audit.bound_slope == pytest.approx(1.0)


def regret_of(low, high, *, largest=100.0, method=BETTING):
    middle = (low + high) / 2
    return Regret(middle, (low, high), method, comparator=0.0, largest=largest, rounds=100, runs=50, confidence=0.99)


@pytest.mark.parametrize(
    ("found", "bound", "verdict"),
    [
        ([regret_of(10, 20), regret_of(30, 40)], 29.0, VIOLATED),
        ([regret_of(10, 20), regret_of(30, 40)], 40.0, HOLDS),
        ([regret_of(10, 20), regret_of(30, 40)], 39.0, UNDECIDED),
        ([regret_of(10, 20), regret_of(30, 40)], 100.0, VACUOUS),
        ([regret_of(10, 20), regret_of(30, 40, largest=None, method=NORMAL)], 99.0, UNDECIDED),
        ([regret_of(10, 20, largest=None, method=NORMAL)], 5.0, UNDECIDED),  # no verdict rests on an approximation
        ([regret_of(10, 20)], math.inf, VACUOUS),
    ],
)
def test_what_the_intervals_say_of_a_bound(found, bound, verdict):
    assert judge_bound(found, bound) == verdict


@pytest.mark.parametrize(
    ("bound", "first"),
    [(lambda t: 10 * math.sqrt(t), 101), (lambda t: 0.5, 1), (lambda t: t, None), (lambda t: 9 * math.log(t), 31)],
)
def test_a_bound_binds_from_the_first_horizon_below_the_largest_regret(bound, first):
    assert first_binding(bound, 1.0) == first


@pytest.mark.parametrize(
    "fault",
    [
        {"eta": 1e-9, "gamma": 0.01},  # hardly learns
        {"gamma": 1.0, "eta": 0.1},  # explores only
    ],
)
def test_planted_faults_violate_the_bound(fault):
    broken = replace(ENTRY, build=lambda setting: Exp3(arms=2, **fault))
    bound = RegretClaim(
        bound=lambda setting, _: 2.63 * math.sqrt(2 * setting.rounds * math.log(2)), exponent=0.5, source="x"
    )
    audit = audit_regret(RegretRequest(replace(broken, regret=bound), Setting(rounds=512)), Budget(runs=200))
    assert (audit.bound_verdict, audit.verdict) == (VIOLATED, VIOLATED)


@pytest.mark.parametrize(
    ("limits", "promised", "verdict"),
    [
        ({16: (4, 4.1), 1024: (32, 33)}, 0.5, HOLDS),
        ({16: (4, 4.1), 1024: (256, 260)}, 0.5, VIOLATED),
        ({16: (4, 4.1), 1024: (256, 260)}, 0.95, HOLDS),  # the bound's own slope there
        ({16: (1, 16), 1024: (32, 64)}, 0.5, UNDECIDED),
        ({16: (-1, 4), 1024: (2, 3)}, 0.5, UNDECIDED),
        ({16: (-1, 4), 1024: (-3, -1)}, 0.5, HOLDS),
        ({16: None, 1024: (2, 3)}, 0.5, UNDECIDED),  # no verdict rests on an approximation
        ({512: (4, 4.1), 1024: (256, 260)}, 0.5, VACUOUS),
        ({}, 0.5, VACUOUS),
    ],
)
def test_what_the_intervals_say_of_growth(limits, promised, verdict):
    assert judge_growth(limits, promised)["growth_verdict"] == verdict


class Greedy:
    feedback = "full"

    def __init__(self, arms, rounds, rng, lazy=0.0):
        self.total, self.rng, self.lazy = np.zeros(arms), rng, lazy

    def act(self):
        return 0 if self.rng.random() < self.lazy else int(self.total.argmin())

    def update(self, losses):
        self.total += losses


def test_a_users_class_is_measured_without_a_verdict():
    audit = audit_regret(RegretRequest(Greedy, Setting(rounds=64), parameters={"lazy": 0.5}), Budget(runs=20))
    assert audit.verdict is None
    assert audit.bound is None
    assert audit.growth.slope > 0.8  # half of the rounds are lost
    assert audit.to_json()["verdict"] is None


def test_sequences_and_horizons_may_be_given():
    audit = audit_regret(
        RegretRequest(
            STUCK,
            Setting(rounds=4),
            horizons=(1, 2, 4, 8, 16, 32),
            sequences=lambda t: {"bad": np.tile([1.0, 0.0], (t, 1)), "good": np.tile([0.0, 1.0], (t, 1))},
        ),
        Budget(runs=10),
    )
    assert audit.sequence == "bad"
    assert audit.growth.regrets == (1, 2, 4, 8, 16, 32)
    with pytest.raises(ValueError, match="must span at least 5 doublings"):
        audit_regret(RegretRequest(STUCK, Setting(rounds=4), horizons=(1, 2)))


def test_regret_on_random_signs_is_what_the_walks_say():
    """Noiseless FTRL on [-1, 1], 16 rounds, 4000 runs of standard deviation about 4: 5 standard errors are 0.32."""
    entry = lookup("agarwal-singh/ftrl-ball")
    learner = entry.build(entry.setting(rounds=16, arms=1, epsilon=math.inf))
    low, high = walk_interval(16)
    assert low - 0.32 < regret_on_random_signs(learner, 16, 4000).mean() < high + 0.32


def ftrl(rounds, arms, epsilon, eta=None, kind=Ftrl):
    """FTRL experts as published, with ceil(log2 T): node noise N ceil(log2 T) / epsilon."""
    levels = (rounds - 1).bit_length()
    return kind(
        domain=EntropySimplex(arms),
        rounds=rounds,
        eta=eta or math.sqrt(2 * math.log(arms) / rounds),
        noise=Laplace(arms * levels / epsilon),
    )


def ftrl_bound(rounds, arms, epsilon, seed=0):
    """sqrt(2 T ln N) + E[max Z - min Z], the second by simulation: 200 000 draws, and its standard error."""
    levels = (rounds - 1).bit_length()
    rng = np.random.default_rng(seed)
    z = rng.laplace(scale=arms * levels / epsilon, size=(levels, arms, 200_000)).sum(axis=0)
    spread = np.ptp(z, axis=0)
    return math.sqrt(2 * rounds * math.log(arms)) + spread.mean(), spread.std() / math.sqrt(spread.size)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("losses", "rounds", "arms"),
    [
        ("symmetric", 16, 2),
        ("unit", 64, 2),
        *(pytest.param(*case, marks=pytest.mark.slow) for case in (("symmetric", 64, 2), ("symmetric", 256, 3))),
        pytest.param("unit", 256, 2, marks=pytest.mark.slow),
    ],
)
def test_the_bound_of_ftrl_experts_holds_and_says_something(losses, rounds, arms):
    """Every adversary: the lower end, wrong with probability 1e-6, stays below sqrt(2 T ln N) + E[max Z - min Z].

    At epsilon = 1 and N = 2 the bound is below the trivial one from T = 16 on [-1, 1] and from T = 64 on [0, 1].
    """
    bound, error = ftrl_bound(rounds, arms, 1.0)
    assert bound + 5 * error < (2 if losses == "symmetric" else 1) * rounds
    for name, sequence in adversaries(losses, rounds=rounds, arms=arms).items():
        regret = measure(ftrl(rounds, arms, 1.0), sequence, Budget(runs=1000, confidence=1 - 1e-6))
        assert regret.interval[0] <= bound + 5 * error, name


class Inverted(Ftrl):
    """Follows the worst expert."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, -feedback, draws)


def test_an_inverted_learner_breaks_the_bound_of_ftrl_experts():
    bound, error = ftrl_bound(256, 2, 1.0)
    losses = adversaries("symmetric", rounds=256, arms=2)["constant gap"]
    regret = measure(ftrl(256, 2, 1.0, kind=Inverted), losses, Budget(runs=1000, confidence=1 - 1e-6))
    assert regret.interval[0] > bound + 5 * error


def test_without_its_noise_the_bound_of_ftrl_experts_is_nearly_used():
    """At epsilon = inf: holds on random signs, with more than a third of it spent; a learning rate of 20 breaks it."""
    losses = 2 * adversaries("unit", rounds=256, arms=8)["alternating"] - 1
    bound = math.sqrt(2 * 256 * math.log(8))
    assert measure(ftrl(256, 8, math.inf), losses, Budget(runs=2)).mean <= bound
    signs = [adversaries("symmetric", rounds=256, arms=8, seed=s)["random signs"] for s in range(20)]
    assert bound / 3 < np.mean([measure(ftrl(256, 8, math.inf), s, Budget(runs=2)).mean for s in signs]) <= bound
    assert measure(ftrl(256, 8, math.inf, eta=20.0), losses, Budget(runs=2)).mean > bound
