"""A user's own bound on regret: in a call, in a plan, in a test."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import overclaim
from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.plans.regret_tasks import regret_setting
from overclaim.audit.regret.check_regret import OpenBoundError, audit_own_bound, own_claim
from overclaim.audit.regret.regret_audit import RegretRequest, audit_regret
from overclaim.audit.regret.verdicts import HOLDS, UNDECIDED, VACUOUS, VIOLATED
from overclaim.learners import Exp3
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.entry import Setting
from overclaim.learners.leaders.ftrl import Ftrl
from overclaim.learners.planted.planted_regret import Wrapped
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.noise import Laplace
from overclaim.tests.support.command_line import overclaim as command
from overclaim.tests.support.own_code import COIN

pytest_plugins = ["pytester"]
#: Its expected regret is 32 in 64 rounds where one arm costs nothing.
UNIFORM = Exp3(arms=2, eta=1e-12, gamma=1.0)
FEW = {"rounds": 64, "runs": 200}


@pytest.mark.parametrize(("bound", "verdict"), [(40.0, HOLDS), (32.0, UNDECIDED), (64.0, VACUOUS)])
def test_a_bound_that_is_not_violated_is_judged(bound, verdict):
    audit = audit_own_bound(UNIFORM, bound, Setting(rounds=64, arms=2, losses="unit"), Budget(runs=200))
    assert audit.bound_verdict == audit.verdict == verdict
    assert (audit.growth_verdict, audit.binds_from) == (None, None)


@pytest.mark.parametrize(
    ("bound", "words"),
    [
        (32.0, r"bound of 32 .* is UNDECIDED in 64 rounds: on 'constant gap' losses the mean is 32, .*; more runs"),
        (64.0, r"bound of 64 .* is VACUOUS in 64 rounds: no learner could exceed it on these losses$"),
        (math.inf, "bound of infinity .* is VACUOUS in 64 rounds"),
        (lambda t: 40 * math.sqrt(t), r"VACUOUS in 64 rounds: no learner .*, it says something from T = 1,601 on$"),
    ],
)
def test_a_bound_that_is_not_known_to_hold_is_no_green(bound, words):
    """It returned the measurement, and a test that did not look at it passed."""
    with pytest.raises(OpenBoundError, match=words):
        overclaim.check_regret(UNIFORM, bound, **FEW)


@pytest.mark.parametrize(("bound", "words"), [(0.1, "bound of 0.1 in 1 round: "), (9.0, "is VACUOUS in 1 round: ")])
def test_a_game_of_one_round_has_one_round(bound, words):
    with pytest.raises((LearnerError, OpenBoundError), match=words):
        overclaim.check_regret(UNIFORM, bound, rounds=1, runs=100)


def test_a_bound_that_is_violated_is_an_error_that_says_so():
    with pytest.raises(LearnerError, match=r"regret of Exp3 exceeds the bound of 20 in 64 rounds: on 'constant gap'"):
        overclaim.check_regret(UNIFORM, 20.0, **FEW)


class Unsteady:
    """It plays the first arm in all rounds of one run of five; in the others the second in the first rounds."""

    feedback = "full"

    def __init__(self, arms, rounds, rng, first):
        self.rounds, self.losses, self.stuck = first, np.zeros(arms), rng.random() < 0.2

    def act(self):
        self.rounds -= 1
        return 0 if self.stuck else 1 if self.rounds >= 0 else int(np.argmin(self.losses))

    def update(self, losses):
        self.losses += losses


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("first", "seed", "bound", "verdict", "shown"),
    [(12, 4, 6.0, VIOLATED, "steady"), (20, 2, 24.0, UNDECIDED, "unsteady"), (12, 4, 60.0, HOLDS, "unsteady")],
)
def test_what_is_shown_beside_a_verdict_is_what_decides(first, seed, bound, verdict, shown):
    """The largest mean was, whose interval could hold a bound that was violated, or lie below one undecided."""
    audit = audit_regret(
        RegretRequest(
            Unsteady,
            Setting(rounds=64, arms=2, losses="unit"),
            parameters={"first": first},
            sequences=lambda t: {"unsteady": np.tile([1.0, 0.0], (t, 1)), "steady": np.tile([0.0, 1.0], (t, 1))},
            claim=own_claim(bound, 64),
            horizons=(),
        ),
        Budget(runs=40, seed=seed),
    )
    low, high = audit.regret.interval
    assert (audit.bound_verdict, audit.sequence) == (verdict, shown)
    assert audit.means[shown] == audit.regret.mean
    assert {VIOLATED: bound < low, UNDECIDED: low <= bound < high, HOLDS: high <= bound}[verdict]
    assert (audit.regret.mean == max(audit.means.values())) == (verdict == HOLDS)


@pytest.mark.slow(reason="2,000 runs of 256 rounds")
def test_a_function_of_the_horizon_is_judged_on_its_growth_too():
    """The regret is T / 2: below 2.2 T^(3/4) at T = 256, where that binds from T = 24 on, but it grows faster."""
    assert overclaim.check_regret(UNIFORM, lambda t: 0.7 * t, rounds=256, runs=400).growth_verdict == HOLDS
    with pytest.raises(LearnerError, match=r"grows as T\^0.9|grows as T\^1"):
        overclaim.check_regret(UNIFORM, lambda t: 2.2 * t**0.75, rounds=256, runs=2000)


class Leader:
    """Follow-the-leader, whose regret is T / 2 in the worst case; `ties` is the arm that is played at a tie."""

    feedback, arms = "full", 2

    def __init__(self, ties):
        self.ties = ties

    def start(self, runs, draws):
        return np.zeros((2, runs))

    def act(self, state, draws):
        even = np.full(state.shape[1], self.ties) if self.ties is not None else draws.uniform(state.shape[1]) < 0.5
        return np.where(state[0] == state[1], even, state[0] > state[1]).astype(int)

    def update(self, state, actions, feedback, draws):
        state += feedback


@pytest.mark.parametrize("ties", [0, 1, None])
def test_follow_the_leader_is_seen_to_regret_half_of_the_rounds_whatever_it_does_of_ties(ties):
    with pytest.raises(LearnerError, match="exceeds the bound of 24 in 64 rounds"):
        overclaim.check_regret(Leader(ties), 24.0, **FEW)


class Greedy(Leader):
    """Plays the arm of the least mean loss so far, each once at first: it stays with an arm that becomes bad."""

    feedback, arms = "bandit", 5

    def start(self, runs, draws):
        return np.zeros((2, 5, runs))

    def act(self, state, draws):
        return np.where(state[1] == 0, -1, state[0] / np.maximum(state[1], 1)).argmin(axis=0)

    def update(self, state, actions, feedback, draws):
        state[0, actions, np.arange(actions.size)] += feedback
        state[1, actions, np.arange(actions.size)] += 1


class RoundsLosses(Wrapped):
    """A loss is read as 0 or 1."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, np.round(feedback), draws)


class Unweighted(Exp3):
    """EXP3 without importance weights: in the end it plays two arms that both lose as 1 / loss."""

    def update(self, state, actions, feedback, draws):
        state.shift_at(state.places(actions), -self.eta * feedback)


class Stale(Wrapped):
    """The losses of sqrt(T) rounds are passed on together."""

    def update(self, state, actions, feedback, draws):
        state.waiting = getattr(state, "waiting", 0) + feedback
        due = (state.rounds + 1) % math.isqrt(self.rounds) == 0
        super().update(state, actions, state.waiting if due else 0 * feedback, draws)
        state.waiting = 0 if due else state.waiting


class NeverTheMiddle(Wrapped):
    """The middle arm's weight goes to the first."""

    def act(self, state, draws):
        points = np.array(super().act(state, draws))
        points[0] += points[self.arms // 2]
        points[self.arms // 2] = 0
        return points


def hedge(arms, rounds):
    eta = math.sqrt(8 * math.log(arms) / rounds)
    return Ftrl(domain=EntropySimplex(arms), rounds=rounds, eta=eta, noise=Laplace(0.0))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("learner", "bound"),
    [
        (Greedy(None), math.sqrt(2 * 1024 * 5 * math.log(5))),
        (RoundsLosses(Exp3(arms=2, eta=math.sqrt(math.log(2) / 1024)), 1024), math.sqrt(2 * 1024 * 2 * math.log(2))),
        (Unweighted(arms=2, eta=0.14, gamma=0.03), 2 * math.sqrt(1024 * 2 * math.log(2))),
        (Stale(hedge(2, 1024), 1024), 3 * math.sqrt(1024 * math.log(2) / 2)),
        (NeverTheMiddle(hedge(5, 1024), 1024), math.sqrt(1024 * math.log(5) / 2)),
    ],
    ids=["greedy", "rounds losses", "unweighted", "stale", "never the middle arm"],
)
def test_faults_that_break_a_textbook_bound_are_seen_without_a_search(learner, bound):
    with pytest.raises(LearnerError, match="exceeds the bound"):
        overclaim.check_regret(learner, bound, rounds=1024, runs=500)


class OneArm:
    """Plays one arm for ever, the same in all runs of a block: its expected regret is T / 2."""

    feedback, arms = "bandit", 2

    def start(self, runs, draws):
        return np.full(runs, int(draws.generator.random() < 0.5))

    def act(self, state, draws):
        return state

    def update(self, state, actions, feedback, draws):
        pass


def test_runs_that_are_not_independent_are_refused_before_an_interval_counts_them():
    with pytest.raises(LearnerError, match="the runs of OneArm share randomness, such as one draw for a whole block"):
        overclaim.check_regret(OneArm(), 40.0, **FEW)


LEARNER = (
    COIN
    + """
class Crashing(Coin):
    def act(self):
        raise RuntimeError("no arm")
"""
)
PLAN = """
[[claims]]
target = "mine.py:{name}"
epsilon = 1.0
rounds = 2
runs = 500
untested = "allowed"
weaken = false
regret = {regret}
"""


@pytest.mark.parametrize(
    ("name", "regret", "code", "words"),
    [
        ("Coin", "{ bound = 9.0, horizon = 32, runs = 60 }", 1, "VIOLATED: mean 1"),
        pytest.param(
            "Coin",
            "{ bound = 30.0, horizon = 32, runs = 60 }",
            0,
            "HOLDS on the sequences played: mean 1",
            marks=pytest.mark.slow,
        ),
        pytest.param("Crashing", "{ bound = 30.0, horizon = 32, runs = 60 }", 4, "no arm", marks=pytest.mark.slow),
        pytest.param(
            "Coin", "{ bound = 15.9, horizon = 32, runs = 60 }", 3, "UNDECIDED: mean 1", marks=pytest.mark.slow
        ),
        pytest.param(
            "Coin", "{ bound = 99.0, horizon = 32, runs = 60 }", 3, "VACUOUS: mean 1", marks=pytest.mark.slow
        ),
        ("Coin", "{ horizon = 32 }", 2, "regret needs a bound"),
        ("Coin", "{ bound = 3, rounds = 32 }", 2, "unknown key 'rounds'"),
        ("Coin", "{ bound = -3 }", 2, "bound must be at least 0"),
        ("Coin", "{ bound = 3, stop = 'soon' }", 2, "stop must be one of budget, early"),
    ],
)
def test_a_plan_may_hold_a_claims_regret_against_a_bound(name, regret, code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(LEARNER)
    Path("plan.toml").write_text(PLAN.format(name=name, regret=regret))
    result = command("run", "plan.toml", "--jobs", 1)
    assert words in result.output
    assert result.exit_code == code
    if code in (0, 1, 3):
        (row,) = json.loads(Path("out/record.json").read_text())["regret"]
        assert (row["rounds"], row["runs"], row["source"]) == (32, 60, "your bound")


def test_the_plan_passes_on_what_the_claim_says(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(
        '[[claims]]\ntarget = "agarwal-singh/ftrl-experts"\nepsilon = 2.0\narms = 3\nset = { eta = 0.1 }\n'
        "regret = { bound = 99, horizon = 64, stop = 'early' }\n"
    )
    (task,) = read_plan(path).regret
    assert task.budget.stop == "early"
    early = replace(task, budget=replace(task.budget, runs=5000), parameters={}).measure()
    assert (early["bound_verdict"], early["interval_method"]) == ("HOLDS", "betting, anytime-valid")
    assert early["runs"] < 5000
    assert (task.rounds, task.bound, task.arms) == (64, 99.0, 3)
    assert task.parameters == {"epsilon": 2.0, "eta": 0.1}


def test_the_plan_measures_the_regret_of_the_learner_that_it_audits(tmp_path):
    """The claimed delta sets the noise of a catalogue learner; regret was that of the catalogue's delta."""
    path, target = tmp_path / "plan.toml", "agarwal-singh/ftpl-simplex"
    path.write_text(f'[[claims]]\ntarget = "{target}"\nepsilon = 1.0\ndelta = 0.5\nregret = {{ bound = 99 }}\n')
    plan = read_plan(path)
    (task,), (regret,) = plan.tasks, plan.regret
    audited = task.prepare().setting
    entry, setting, own = regret_setting(target, audited.rounds, audited.arms, regret.losses, regret.parameters)
    assert entry.build(setting, **own).noise == task.prepare().target.noise


def test_the_fixture_fails_a_test_whose_bound_is_violated_or_open(pytester):
    pytester.makepyfile("""
        import pytest
        from overclaim.learners import Exp3
        UNIFORM = Exp3(arms=2, eta=1e-12, gamma=1.0)

        @pytest.mark.overclaim(runs=100)
        def test_holds(check_regret):
            assert check_regret(UNIFORM, 40.0, rounds=64).regret.runs == 100

        def test_fails(check_regret):
            check_regret(UNIFORM, 10.0, rounds=64, runs=100)

        def test_open(check_regret):
            check_regret(UNIFORM, 64.0, rounds=64, runs=100)
    """)
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*exceeds the bound of 10 in 64 rounds*"])
    result.stdout.fnmatch_lines(["the bound of 64 on the expected regret of Exp3 is VACUOUS in 64 rounds: *"])


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("bound", "growth"), [(lambda t: 15 + 0.51 * t, HOLDS), (lambda t: 0.7 * t if t >= 24 else math.inf, None)]
)
def test_a_bound_that_holds_is_not_outgrown_for_its_constant_or_where_it_says_nothing(bound, growth):
    """The regret is T / 2: at short horizons 15 + 0.51 T grows as T^0.7, and the other bound has no slope."""
    assert overclaim.check_regret(UNIFORM, bound, rounds=512, runs=200).growth_verdict == growth


@pytest.mark.slow(reason="long horizons")
def test_a_bound_is_as_steep_as_where_growth_is_judged():
    """The regret is T / 2, in a game of which the bound says something from T = 128 on and grows as T up to T = 1024.

    Over all the horizons, from T = 32 on, it grows as T^0.82, and in the end as T^0.5.
    """
    audit = overclaim.check_regret(UNIFORM, lambda t: min(max(64.0, 0.9 * t), 1000 * t**0.5), rounds=1024, runs=200)
    assert (audit.bound_verdict, audit.growth_verdict) == (HOLDS, HOLDS)
    assert audit.bound_slope == pytest.approx(1.0)


@pytest.mark.slow(reason="sums of many terms")
def test_a_sum_over_the_rounds_is_refused_as_a_bound():
    """It was asked at T = 2^60, and never answered."""
    with pytest.raises(ValueError, match=r"a bound on regret must be a formula, for it is asked at T = 2\^60 too: at"):
        overclaim.check_regret(UNIFORM, lambda t: 20 * sum(1 / s for s in range(1, t + 1)), **FEW)


@pytest.mark.parametrize("bound", ["60", -1, math.nan, None, True, [3], 1j])
def test_a_bound_that_is_none_is_refused_by_its_value(bound):
    with pytest.raises(ValueError, match=r"a bound on regret must (be|have) a number of at least 0"):
        overclaim.check_regret(UNIFORM, bound, rounds=64, runs=20)
    with pytest.raises(ValueError, match="a bound on regret must have a number of at least 0 at T = 64: got"):
        overclaim.check_regret(UNIFORM, lambda t: bound, rounds=64, runs=20)


def test_a_function_that_raises_is_told_where():
    with pytest.raises(ValueError, match="at T = 64: it raised ZeroDivisionError: division by zero"):
        overclaim.check_regret(UNIFORM, lambda t: 1 / 0, rounds=64, runs=20)
    short = overclaim.check_regret(UNIFORM, lambda t: math.sqrt(t - 40) + 50, rounds=64, runs=200)  # none at T = 32
    assert (short.bound_verdict, short.growth_verdict) == (HOLDS, None)
    for huge in (10**400, lambda t: 10**400, math.inf):
        with pytest.raises(OpenBoundError, match="VACUOUS"):
            overclaim.check_regret(UNIFORM, huge, rounds=64, runs=20)


@pytest.mark.parametrize(
    ("game", "words"),
    [
        ({"rounds": 0}, "rounds must be an integer of at least 1, got 0"),
        ({"rounds": 2.5}, "rounds must be an integer"),
        ({"rounds": 10**9}, "rounds must be at most 33,554,432"),
        ({"arms": 5}, "arms must be those of the learner, 2, got 5"),
        ({"losses": "nope"}, "losses must be one of unit, symmetric"),
    ],
)
def test_a_game_that_is_none_is_refused(game, words):
    with pytest.raises(ValueError, match=words):
        overclaim.check_regret(UNIFORM, 60.0, runs=20, **game)


def test_a_learner_is_played_no_longer_than_it_is_made_for():
    """Six doublings from 16 on went to T = 512, where a tree for 64 rounds ends."""
    learner = lookup("agarwal-singh/ftrl-experts").build(lookup("agarwal-singh/ftrl-experts").setting(rounds=64))
    audit = overclaim.check_regret(learner, 120.0, rounds=64, losses="symmetric", runs=50)
    assert audit.growth.horizons == (64,)
    audit = overclaim.check_regret(learner, lambda t: 15 * math.sqrt(t), rounds=64, losses="symmetric", runs=50)
    assert audit.growth.horizons == (2, 4, 8, 16, 32, 64)
    assert overclaim.check_regret(replace(UNIFORM, arms=3), 0.99, rounds=1, runs=20).regret.rounds == 1


@pytest.mark.few(18)
@pytest.mark.parametrize("stated", ["", "epsilon = 2.0\n", "gdp = 1.0\n"], ids=["bare", "epsilon", "mu"])
@pytest.mark.parametrize("name", [name for name, entry in entries().items() if entry.example])
def test_of_a_bare_claim_too(tmp_path, name, stated):
    """The audit played the entry's example, and the regret was that of its defaults."""
    path = tmp_path / "plan.toml"
    path.write_text(f'[[claims]]\ntarget = "{name}"\n{stated}regret = {{ bound = 99, horizon = 32 }}\n')
    plan = read_plan(path)
    (task,), (regret,) = plan.tasks, plan.regret
    entry, setting, own = regret_setting(name, regret.rounds, regret.arms, regret.losses, regret.parameters)
    measured, audited = entry.build(setting, **own), replace(task, rounds=32).prepare().target
    assert re.sub(" at 0x[0-9a-f]+", "", repr(measured)) == re.sub(" at 0x[0-9a-f]+", "", repr(audited))
