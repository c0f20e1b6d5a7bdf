"""Plain classes, whose time grows with every run: all runs on three sequences, a tenth of them on the others."""

import io
import sys
from collections import Counter

import numpy as np
import pytest

from overclaim.audit.execution import progress
from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.execution.progress import with_bar
from overclaim.audit.plans.plan import literature
from overclaim.audit.plans.regret_tasks import SPARED, RegretTask
from overclaim.audit.regret import measurement
from overclaim.audit.regret.measurement import PILOT_SHARE, RACED, play_raced
from overclaim.audit.regret.regret_audit import RegretRequest, audit_regret, says_something
from overclaim.audit.regret.verdicts import HOLDS, UNDECIDED, VIOLATED
from overclaim.learners import Exp3
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.entry import RegretClaim, Setting
from overclaim.learners.scalar import as_learner
from overclaim.tests.support.command_line import overclaim as command

#: Rounds and runs of a short game.
GAME, BUDGET = Setting(rounds=64, arms=2), Budget(runs=400)


class Lazy:
    """Plays at random, the first arm with probability `first`."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng, first=0.5):
        self.rng, self.first = rng, first

    def act(self):
        return int(self.rng.random() >= self.first)

    def update(self, loss):
        pass


def gaps(*sizes):
    """Return one sequence for each size, on which the second arm costs so much in every round."""
    return lambda rounds: {f"gap {size}": np.tile([0.0, size], (rounds, 1)) for size in sizes}


def plays(monkeypatch):
    """Count the runs of each horizon."""
    counted: Counter[int] = Counter()
    real = measurement.play_block

    def note(learner, worlds, seed, label, how, block):
        counted[len(worlds[0])] += len(worlds) * block[1]
        return real(learner, worlds, seed, label, how, block)

    monkeypatch.setattr(measurement, "play_block", note)
    return counted


def test_a_plain_class_plays_what_the_budget_says_beforehand_and_nothing_beyond_its_horizon(monkeypatch):
    """A bandit of 64 rounds took 158 s: ten sequences, 2,000 runs of each, at horizons up to 512."""
    counted = plays(monkeypatch)
    audit_regret(RegretRequest(Lazy, GAME), BUDGET)
    each = 10 * BUDGET.runs // PILOT_SHARE + RACED * BUDGET.runs
    assert counted == {2: each + 20, **dict.fromkeys((4, 8, 16, 32, 64), each)}  # two runs tell whether T = 2 is borne


def test_the_worst_sequences_have_all_the_runs():
    sequences = [*gaps(0.1, 0.9, 0.2, 0.8, 0.7, 0.3)(16).values()]
    played = play_raced(as_learner(Lazy, arms=2, rounds=16), sequences, Budget(runs=200))
    assert [one.totals.size for one in played] == [20, 200, 20, 200, 200, 20]
    assert len({tuple(one.totals[:20] / size) for one, size in zip(played, (0.1, 0.9), strict=False)}) == 2


def test_the_race_depends_on_neither_jobs_nor_time():
    one, two = (audit_regret(RegretRequest(Lazy, GAME), BUDGET, Execution(jobs)).to_json() for jobs in (1, 2))
    assert one == two


@pytest.mark.few(1)
@pytest.mark.parametrize(("bound", "verdict"), [(40.0, HOLDS), (20.0, VIOLATED), (28.8, UNDECIDED)])
def test_a_bound_is_judged_by_all_sequences(bound, verdict):
    """The regret is 28.8 on the worst sequence. False alarm and miss of each: at most .01 / 2."""
    claim = RegretClaim(bound=lambda *_: bound, exponent=0.0, source="ours")
    audit = audit_regret(
        RegretRequest(Lazy, GAME, sequences=gaps(0.9, 0.8, 0.7, 0.2, 0.1), claim=claim, horizons=()), BUDGET
    )
    assert audit.bound_verdict == verdict
    assert audit.regret.runs == BUDGET.runs
    assert audit.sequence == "gap 0.9"


def test_a_sequence_that_lost_the_race_leaves_a_bound_undecided_by_its_few_runs():
    """Five equal sequences of regret 32: 40 runs of each are not enough for a bound that 400 are enough for."""
    claim = RegretClaim(bound=lambda *_: 33.0, exponent=0.0, source="ours")
    audits = [
        audit_regret(RegretRequest(Lazy, GAME, sequences=gaps(*sizes), claim=claim, horizons=()), BUDGET)
        for sizes in ((1.0, 0.99, 0.98), (1.0, 0.99, 0.98, 0.97, 0.96))
    ]
    assert [audit.bound_verdict for audit in audits] == [HOLDS, UNDECIDED]


@pytest.mark.nightly(reason="400 audits")
def test_intervals_hold_together_after_a_race():
    """400 audits at 90 %, six equal sequences: more than 69 with a wrong interval has probability 1e-6 at most."""
    wrong = 0
    for seed in range(400):
        game, budget = Setting(rounds=4), Budget(runs=40, seed=seed, confidence=0.9)
        claim = RegretClaim(bound=lambda *_: 2.001, exponent=0.0, source="ours")
        sequences = lambda rounds: {str(i): np.tile([0.0, 1.0], (rounds, 1)) for i in range(6)}  # noqa: E731
        audit = audit_regret(RegretRequest(Lazy, game, sequences=sequences, claim=claim, horizons=()), budget)
        wrong += audit.bound_verdict == VIOLATED  # the regret is 2
    assert wrong <= 69


class Blocks(Lazy):
    """Divides by its blocks, of which short games have none."""

    def __init__(self, arms, rounds, rng):
        super().__init__(arms, rounds, rng)
        self.each = rounds // (rounds // 8)


def test_a_class_that_bears_no_short_game_has_no_growth_and_is_measured():
    audit = audit_regret(RegretRequest(Blocks, GAME), Budget(runs=20))
    assert audit.growth.horizons == (64,)
    assert audit.growth.slope is None
    assert audit.regret.mean > 0


def test_a_game_too_short_for_growth_says_so():
    result = command("regret", "asi-raman-talwar/batched-exp3", "--rounds", 16, "--runs", 20)
    assert result.exit_code == 0, result.output
    assert "no exponent: it needs T = 32 or more" in result.output


def test_a_bound_that_says_nothing_has_fewer_runs_and_the_same_verdict():
    tasks = {task.target: task for task in literature().regret}
    task = tasks["ene-nguyen-vladu/private-bandit-gaussian"]
    row = RegretTask(task.target, 64, task.budget, spare=True).measure()
    assert row["runs"] == task.budget.runs // SPARED
    assert f"--runs {row['runs']} " in row["replay"]
    assert row["bound_verdict"] == "VACUOUS"
    assert RegretTask("agarwal-singh/ftrl-experts", 32, Budget(runs=40), spare=True).measure()["runs"] == 40


def test_what_says_something_is_known_without_the_runs_of_the_measurement():
    said = {
        name: says_something(entry, entry.setting(rounds=1024), BUDGET)
        for name, entry in entries().items()
        if name in {"agarwal-singh/ftrl-ball", "smith-thakurta/pftal"}
    }
    assert said == {"agarwal-singh/ftrl-ball": True, "smith-thakurta/pftal": False}
    assert lookup("smith-thakurta/pftal").regret is not None


class _File(io.StringIO):
    def isatty(self):
        return False


def test_without_a_terminal_only_what_is_finished_is_printed(monkeypatch):
    monkeypatch.setattr(sys, "stderr", said := _File())
    progress.begin()
    assert list(with_bar(iter("abc"), 3, "regret at T = 32")) == [*"abc"]
    assert said.getvalue() == ""
    assert list(with_bar(iter("abc"), 3, "claims", "{} is finished".format)) == [*"abc"]
    assert said.getvalue() == "a is finished\nb is finished\nc is finished\n"
    assert list(with_bar(iter("abc"), 3, None)) == [*"abc"]


def test_our_batched_learners_play_all_sequences_in_full(monkeypatch):
    counted = plays(monkeypatch)
    audit_regret(RegretRequest(Exp3(arms=2, eta=0.1), GAME, horizons=()), BUDGET)
    assert counted == {64: 10 * BUDGET.runs}
