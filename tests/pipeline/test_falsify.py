"""From a claim to a verdict: what is caught, what survives, what cannot be told."""

import dataclasses
import math
import sqlite3

import numpy as np
import pytest

from overclaim import GDP, Claim, Pair, Verdict, falsify
from overclaim.audit.attacks.learner_attacks import ATTACKS, applicable
from overclaim.audit.execution import workers
from overclaim.audit.pipeline import learner_stages as stages
from overclaim.audit.play.transcripts import BLOCK, concatenate
from overclaim.audit.verdicts.verdict import UnderpoweredError
from overclaim.learners import BanditReduction, BatchedLaplace, Exp3, Ftrl, LearnerError, MiniBatch, Threshold
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.view import ACTIONS, RELEASE

EXP3 = Exp3(arms=2, eta=2.0, gamma=0.02)


def certified(name, runs, *, neighbours="replace", surface="actions", parameters=None, **setting):
    entry = lookup(name)
    chosen = entry.setting(**setting)
    learner = entry.build(chosen, **(parameters or {}))
    return falsify(
        learner, entry.claim(chosen, neighbours=neighbours, surface=surface), rounds=chosen.rounds, runs=runs
    )


# The figures at a tenth of its larger budgets; each seeded, so these are deterministic.
@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("name", "runs", "options", "least", "most", "verdict"),
    [
        ("agarwal-singh/reduction-threshold", 200_000, {}, 1.94, 2.0, "FALSIFIED"),
        ("agarwal-singh/reduction-threshold", 200_000, {"neighbours": "zero-out"}, 0.96, 1.0, "SURVIVED"),
        ("agarwal-singh/reduction-threshold", 200_000, {"calibration": "corrected"}, 0.96, 1.0, "SURVIVED"),
        (
            "agarwal-singh/reduction-exp2",
            200_000,
            {"parameters": {"eta": 2.0, "gamma": 0.02}},
            1.70,
            1.756,
            "FALSIFIED",
        ),
        (
            "asi-raman-talwar/batched-exp3",
            200_000,
            {"parameters": {"eta": 2.0, "gamma": 0.02, "batch": 1}},
            0.93,
            0.977,
            "SURVIVED",
        ),
        (
            "asi-raman-talwar/batched-exp3",
            200_000,
            {"rounds": 8, "parameters": {"eta": 0.5, "gamma": 0.1, "batch": 2}},
            0.60,
            0.7351,  # the worst pair that a search may find
            "SURVIVED",
        ),
        ("agarwal-singh/ftrl-experts", 100_000, {"delta": 1e-3}, 1.0, 1.245, "FALSIFIED"),
        ("asi-raman-talwar/exp3", 50_000, {}, 5.5, math.inf, "FALSIFIED"),
    ],
)
def test_figures(name, runs, options, least, most, verdict):
    result = certified(name, runs, **options)
    assert least <= result.epsilon_lower <= most
    assert str(result.verdict) == verdict
    assert result.certificate.counts.runs + result.pilot == runs


def test_result_does_not_depend_on_the_number_of_workers():
    learner = BatchedLaplace(inner=EXP3, epsilon=1.0, batch=1)
    left = np.ones((14, 2))
    worlds = Pair(left, np.vstack([np.zeros((1, 2)), left[1:]]))
    options = {"pair": worlds, "runs": 20_000, "seed": 3}
    one, two = (falsify(learner, Claim(epsilon=1.0), jobs=jobs, **options) for jobs in (1, 2))
    assert one.certificate == two.certificate
    assert one.event == two.event
    assert one.pair.to_json() == two.pair.to_json()


@pytest.mark.slow(reason="repeated audits")
def test_seeds_give_other_runs():
    learner = BatchedLaplace(inner=EXP3, epsilon=1.0, batch=1)
    bounds = {falsify(learner, Claim(epsilon=1.0), rounds=4, runs=5000, seed=seed).epsilon_lower for seed in range(4)}
    assert len(bounds) == 4


# Known violations: each must be caught, or the audit could not fail anything.
BROKEN = {
    "noise halved": BatchedLaplace(inner=EXP3, epsilon=2.0, batch=1),
    "batch noise divided twice": BatchedLaplace(inner=EXP3, epsilon=2.0, batch=2),
    "no noise": MiniBatch(inner=EXP3, batch=1),
    "sensitivity of a norm": BanditReduction(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_broken_learners_are_falsified(fault):
    losses = "symmetric" if fault == "sensitivity of a norm" else "unit"
    rounds = 8 if "batch" in fault else 6
    result = falsify(BROKEN[fault], Claim(epsilon=1.0, losses=losses), rounds=rounds, runs=60_000)
    assert result.verdict is Verdict.FALSIFIED


@pytest.mark.parametrize("seed", range(6))
def test_correct_learners_survive(seed):
    """Six audits of exactly (1, 0)-private releases at alpha 1e-6 each."""
    learner = BatchedLaplace(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=1)
    result = falsify(learner, Claim(epsilon=1.0), rounds=2, runs=40_000, seed=seed, confidence=1 - 1e-6)
    assert result.verdict is Verdict.SURVIVED


def test_release_leaks_at_least_as_much_as_actions():
    learner = BatchedLaplace(inner=Exp3(arms=2, eta=0.5, gamma=0.1), epsilon=1.0, batch=1)
    actions, release = (
        falsify(learner, Claim(epsilon=1.0, surface=surface), rounds=4, runs=100_000)
        for surface in ("actions", "release")
    )
    assert release.epsilon_lower > 0.95 > actions.epsilon_lower


def test_points_are_attacked_too():
    learner = Ftrl(domain=EntropySimplex(3), rounds=4, eta=1.0, noise=Laplace(1.0))
    result = falsify(learner, Claim(epsilon=1.0), rounds=4, runs=15_000)
    assert result.verdict is Verdict.FALSIFIED


def built(name, **setting):
    entry = lookup(name)
    return entry.build(entry.setting(**setting))


def worlds(rounds, arms, high=1.0, low=0.0):
    left = np.full((rounds, arms), high)
    return Pair(left, np.vstack([np.full((1, arms), low), left[1:]]))


def test_every_recipe_is_reached():
    noisy = BatchedLaplace(inner=EXP3, epsilon=1.0, batch=1)
    three = BatchedLaplace(inner=Exp3(arms=3, eta=1.0), epsilon=1.0, batch=1)
    small = {"high": 0.3, "low": -0.3}
    cases = [
        (noisy, worlds(2, 2), ACTIONS),
        (noisy, worlds(2, 2), RELEASE),
        (three, worlds(2, 3), ACTIONS),
        (noisy, worlds(40, 2), ACTIONS),
        (built("asi-raman-talwar/batched-ftpl", arms=8, rounds=64), worlds(64, 8), ACTIONS),
        (EXP3, worlds(40, 2), ACTIONS),
        (built("agarwal-singh/ftrl-experts"), worlds(4, 2), ACTIONS),
        (built("agarwal-singh/ftrl-experts", arms=3), worlds(4, 3), ACTIONS),
        (built("agarwal-singh/ftrl-cube"), worlds(4, 2, **small), ACTIONS),
        (built("agarwal-singh/ftrl-ball"), worlds(4, 2, **small), ACTIONS),
        (built("agarwal-singh/ftpl-cube", delta=0.01), worlds(4, 2, **small), ACTIONS),
        (built("agarwal-singh/ftpl-ball", delta=0.01), worlds(4, 2, **small), ACTIONS),
        (built("smith-thakurta/pftal"), worlds(4, 1, low=-1.0), ACTIONS),
        (built("ene-nguyen-vladu/private-bandit-laplace", rounds=16), worlds(16, 2, **small), ACTIONS),
    ]
    reached = {recipe.name for case in cases for recipe in applicable(*case)}
    declared = {
        "inverted prefix sums",
        "inverted gradient sums",
        "sign sequences",
        "inverted coordinates",
        "inverted points",
        "inverted prefix sums up to a shift",
        "whitened prefix sums",
        "responses along the changed gradient",
    }
    assert reached == {recipe.name for recipe in ATTACKS} | declared


def test_a_verdict_is_not_compared_with_text():
    """`result.verdict != "FALSIFIED"` was true of a falsified claim."""
    for compare in (lambda: Verdict.FALSIFIED != "FALSIFIED", lambda: Verdict.SURVIVED in ("SURVIVED", "FALSIFIED")):
        with pytest.raises(TypeError, match=r"a verdict is no text, as '\w+' is: compare it"):
            compare()
    assert Verdict("SURVIVED") is Verdict.SURVIVED != Verdict.FALSIFIED
    assert {Verdict.SURVIVED: 1}[Verdict.SURVIVED] == 1
    assert Verdict.SURVIVED not in (None, Verdict.UNDERPOWERED)


def test_verdicts_and_results_have_no_truth_value():
    result = falsify(EXP3, Claim(epsilon=1.0), rounds=3, runs=1000)
    for thing in (Verdict.SURVIVED, result):
        with pytest.raises(TypeError, match="no truth value"):
            bool(thing)


def test_printed_result_and_requirement():
    result = falsify(BROKEN["no noise"], Claim(epsilon=1.0), rounds=6, runs=20_000)
    assert "FALSIFIED: claimed epsilon 1, at least" in str(result)
    with pytest.raises(AssertionError, match="FALSIFIED"):
        result.require_survived()
    undecided = falsify(EXP3, Claim(epsilon=50.0), rounds=3, runs=1000)
    with pytest.raises(AssertionError, match="UNDERPOWERED"):
        undecided.require_survived()
    kept = falsify(BatchedLaplace(inner=EXP3, epsilon=1.0, batch=1), Claim(epsilon=1.0), rounds=3, runs=1000)
    assert kept.require_survived() is None


@pytest.mark.parametrize(
    "given",
    [
        {"rounds": 1},
        {"pair": Pair([[0, 0], [1, 1]], [[0, 0], [0, 1]])},
        {"left": [[0, 0], [1, 1]], "right": [[0, 0], [0, 1]]},
    ],
    ids=["one round", "last round", "sequences"],
)
def test_worlds_that_differ_in_the_last_losses_alone_are_no_test(given):
    """It passed, whatever the learner."""
    result = falsify(EXP3, Claim(epsilon=1.0), runs=1000, **given)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, "hidden by the exact law")
    with pytest.raises(
        UnderpoweredError, match=r"hidden by the exact law: .* 0: the inputs differ in the last losses alone"
    ):
        result.require_survived()


@pytest.mark.parametrize(
    ("claim", "unit"), [(Claim(epsilon=1.0), "epsilon"), (Claim(measure=GDP(1.0)), "mu")], ids=["epsilon", "mu"]
)
def test_a_pair_that_shows_nothing_by_an_exact_law_is_no_test(claim, unit):
    """`overclaim check` exited 3, and the same audit from Python passed."""
    result = falsify(BatchedLaplace(inner=EXP3, epsilon=1.0, batch=2), claim, rounds=2, runs=1000)
    assert (result.verdict, result.untested) == (Verdict.UNDERPOWERED, True)
    with pytest.raises(UnderpoweredError, match=f"hidden by the exact law: on this pair {unit} is exactly 0"):
        result.require_survived()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rounds": 0}, "rounds must be an integer of at least 1, got 0"),
        ({"rounds": "2"}, "rounds must be an integer of at least 1, got '2'"),
        ({"rounds": 2.5}, "rounds must be an integer of at least 1, got 2.5"),
        ({"rounds": 10**9}, "rounds must be at most 10,000,000, got 1000000000"),
        ({"arms": "2"}, "arms must be an integer of at least 1, got '2'"),
        ({"rounds": 10**7}, "rounds times arms must be at most 10,000,000, got 10000000 times 2"),
        ({"arms": 3}, "arms must be those of the learner, 2, got 3"),
        ({"rounds": None}, "rounds is missing"),
        ({"runs": 3}, "runs must be at least 20, got 3"),
        ({"confidence": 1.0}, r"confidence must be in \(0, 1\), got 1.0"),
        ({"confidence": "high"}, r"confidence must be in \(0, 1\), got 'high'"),
        ({"confidence": 1e-300}, "confidence must be farther from 0 and 1 than floating point, got 1e-300"),
        ({"jobs": 0}, "jobs must be an integer of at least 1, got 0"),
        ({"jobs": True}, "jobs must be an integer of at least 1, got True"),
        ({"jobs": "2"}, "jobs must be an integer of at least 1, got '2'"),
        ({"rounds": 3, "pair": Pair([[1.0, 1.0]], [[0.0, 0.0]])}, "the pair has 1 rounds"),
        ({"rounds": "1", "pair": Pair([[1.0, 1.0]], [[0.0, 0.0]])}, "the pair has 1 rounds, but rounds = '1' was"),
        ({"rounds": 1, "pair": Pair([[1.0]], [[0.0]])}, "the pair has 1 arms, but the learner has 2"),
        ({"rounds": 1, "pair": Pair([[2.0, 0.0]], [[0.0, 0.0]])}, "must lie in"),
        ({"pairs": []}, "no pair"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(ValueError, match=message):
        falsify(EXP3, Claim(epsilon=1.0), **{"rounds": 4, "runs": 100, **options})


@pytest.mark.parametrize("target", [5, None, "exp3", dict])
@pytest.mark.parametrize("given", [{}, {"rounds": 2}, {"left": [[0.0]], "right": [[1.0]]}])
def test_what_is_no_learner_is_named_before_all_else(target, given):
    with pytest.raises(LearnerError, match=r"must have (start, )?act, update; it has no"):
        falsify(target, Claim(epsilon=1.0), **given)


def test_a_learner_without_release_has_no_release_surface():
    with pytest.raises(ValueError, match="releases nothing noisy"):
        falsify(EXP3, Claim(epsilon=1.0, surface="release"), rounds=3, runs=100)


def test_claims_are_checked():
    for values, message in (
        ({"epsilon": 0.0}, "epsilon must be positive and finite, got 0.0"),
        ({"epsilon": math.nan}, "got nan"),
        ({"epsilon": 1.0, "delta": 1.0}, r"delta must be in \[0, 1\), got 1.0"),
        ({"epsilon": 1.0, "delta": -0.1}, "delta"),
        ({"epsilon": 1.0, "losses": "all"}, "losses must be one of unit"),
        ({"epsilon": 1.0, "neighbours": "x"}, "neighbours must be one of replace, zero-out"),
        ({"epsilon": 1.0, "surface": "x"}, "surface must be one of actions, release"),
    ):
        with pytest.raises(ValueError, match=message):
            Claim(**values)
    with pytest.raises(dataclasses.FrozenInstanceError):
        Claim(epsilon=1.0).epsilon = 2.0


def test_one_arm_tells_nothing(uniform_class):
    result = falsify(uniform_class, Claim(epsilon=1.0), rounds=4, arms=1, runs=500)
    assert (result.verdict, result.epsilon_lower) == (Verdict.UNDERPOWERED, 0.0)
    assert result.reason == "no difference seen"


def test_small_audits_start_no_processes(monkeypatch):
    """What one process does in less than a worker takes to start stays in it, with the same result."""
    learner, started = BatchedLaplace(EXP3, epsilon=1.0, batch=1), []

    def recorded(task, items, jobs):
        started.append(jobs)
        return map(task, items)

    monkeypatch.setattr(workers, "_on_processes", recorded)
    results = []
    for start in (1e9, 0.0):
        assert not started
        monkeypatch.setattr(workers, "START", start)
        results.append(falsify(learner, Claim(epsilon=1.0), rounds=4, runs=50_000, jobs=2).certificate)
    assert results[0] == results[1]
    assert set(started) == {2}


@pytest.mark.slow(reason="the same record for any number of processes is quick")
@pytest.mark.parametrize(
    "epsilon", [1.0, pytest.param(1.2, marks=pytest.mark.slow)]
)  # one that survives, one that ends within an epoch
def test_early_audits_use_every_process(monkeypatch, epsilon):
    """Later epochs are long enough to be shared: same guesses, same end, whoever plays them."""
    learner, shared, real = BatchedLaplace(EXP3, epsilon=epsilon, batch=1), [], workers._on_processes

    def recorded(task, items, jobs):
        shared.append(len(items))
        return real(task, items, jobs)

    monkeypatch.setattr(workers, "_on_processes", recorded)
    monkeypatch.setattr(workers, "START", 0.0)
    alone, both, kept = (
        falsify(learner, Claim(epsilon=0.95), rounds=2, runs=100_000, stop="early", jobs=jobs, memory=memory)
        for jobs, memory in ((1, None), (2, None), (2, Connected()))
    )
    assert alone.certificate == both.certificate == kept.certificate
    assert alone.runs == both.runs == kept.runs
    assert max(shared) > 2


class Connected:
    """A memory that cannot travel to other processes: a ledger's page with its connection open."""

    def __init__(self):
        self.connection = sqlite3.connect(":memory:")

    def recall(self, stage):
        return {}

    def keep(self, stage, block, counts):
        pass


class Stages:
    """A memory that knows the names of what it was given to keep."""

    def __init__(self):
        self.kept = []

    def recall(self, stage):
        return {}

    def keep(self, stage, block, counts):
        pass

    def once(self, stage, compute):
        return compute()

    def recall_stage(self, stage):
        return None

    def keep_stage(self, stage, value):
        self.kept.append(stage.partition("/")[0])


@pytest.mark.parametrize(("quick", "kept"), [(0.0, {"TRAIN", "PILOT"}), (60.0, set())])
def test_runs_that_are_played_again_sooner_than_written_are_not_kept(monkeypatch, quick, kept):
    monkeypatch.setattr(stages, "QUICK", quick)
    learner, memory = lookup("ene-nguyen-vladu/noisy-oco"), Stages()
    setting = learner.setting()
    claim = learner.claim(setting, surface="actions")
    falsify(learner.build(setting), claim, rounds=setting.rounds, runs=2000, memory=memory)
    assert set(memory.kept) == kept


def test_the_pilot_of_one_exact_attack_keeps_no_runs(monkeypatch):
    # Released sequences over a thousand rounds, all of the pilot's at once, fill the memory.
    entry = lookup("ene-nguyen-vladu/tree-aggregation")
    setting = entry.setting(rounds=4)
    learner, claim = entry.build(setting), entry.claim(setting, surface="release")
    kept = []
    monkeypatch.setattr(stages, "concatenate", lambda parts: kept.extend(parts) or concatenate(parts))
    falsify(learner, claim, rounds=4, runs=200_000)
    assert [part.left.size for part in kept] == [BLOCK, BLOCK, 20_000 - 2 * BLOCK]
    assert all(part.releases is None and part.actions.shape == part.left.shape for part in kept)


def test_too_few_runs_to_choose_are_named(uniform_class):
    message = r"^runs = 30 is too small: choosing among \d+ pairs of inputs takes \d+ runs\nhint: use `runs=\d+`"
    with pytest.raises(ValueError, match=message):
        falsify(uniform_class, Claim(epsilon=1.0), rounds=3, runs=30)
