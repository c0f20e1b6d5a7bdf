"""The one-run audit: what it catches, that it stays silent on true claims, and what it refuses."""

import json

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.canaries import one_run
from overclaim.audit.canaries.one_run import smoke_test
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.claim import Claim
from overclaim.tests.support.command_line import error_lines, overclaim

THRESHOLD = "agarwal-singh/reduction-threshold"


def built(name, rounds, **settings):
    entry = lookup(name)
    setting = entry.setting(rounds=rounds, **settings)
    return entry.build(setting), entry.claim(setting)


def smoke(*words):
    return overclaim("smoke", *words)


def test_one_run_falsifies_a_learner_that_remembers_little():
    """True epsilon 2, claimed 1; the bound exceeds 2 with probability 1e-6 at most."""
    learner, claim = built(THRESHOLD, 2000)
    outcome = smoke_test(learner, claim, rounds=2000, confidence=1 - 1e-6)
    assert outcome.verdict is Verdict.FALSIFIED
    assert 1.1 < outcome.epsilon_lower < 2
    assert outcome.canaries == 1999


class Uniform:
    """Learns nothing: epsilon 0, so every claim is true."""

    feedback, arms = "bandit", 3

    def start(self, runs, draws):
        return None

    def act(self, state, draws):
        return draws.generator.integers(3, size=1)

    def update(self, state, actions, feedback, draws):
        pass


def alarms(learner, claim, rounds, audits=100):
    """Count false alarms at 80 % confidence."""
    outcomes = [smoke_test(learner, claim, rounds=rounds, seed=seed, confidence=0.8) for seed in range(audits)]
    return sum(f.verdict is Verdict.FALSIFIED for f in outcomes)


@pytest.mark.nightly(reason="200 audits")
def test_false_alarms():
    """A nearly tight claim and one of no leak: at most 20 % of 100; false-alarm probability of each at most 1e-6."""
    limit = stats.binom.isf(1e-6, 100, 0.2)
    assert alarms(*built(THRESHOLD, 100, calibration="corrected"), rounds=100) <= limit
    assert alarms(Uniform(), Claim(epsilon=0.001), rounds=40) <= limit


def test_planted_practice_in_the_certified_run_raises_the_alarm(monkeypatch):
    """The rule learned from the very coins that it guesses: what keeping practice apart is for."""
    real = one_run._run
    monkeypatch.setattr(one_run, "_run", lambda *words: real(*words[:4], one_run.Draws(words[4].key[0], 3)))
    assert alarms(Uniform(), Claim(epsilon=0.001), rounds=40) > stats.binom.isf(1e-6, 100, 0.2)


def test_points_are_guessed_by_their_side():
    class Follows:
        """Full feedback: the next point is minus the last loss. No privacy at all."""

        feedback, arms = "full", 2

        def start(self, runs, draws):
            return np.zeros((2, runs))

        def act(self, state, draws):
            return -state.copy()

        def update(self, state, actions, feedback, draws):
            state[:] = feedback

    outcome = smoke_test(Follows(), Claim(epsilon=1.0, losses="l2-ball"), rounds=200)
    assert (outcome.verdict, outcome.right) == (Verdict.FALSIFIED, outcome.guesses)
    assert outcome.guesses > 100


def test_a_claim_beyond_all_guesses_is_underpowered():
    learner, _ = built(THRESHOLD, 30)
    assert smoke_test(learner, Claim(epsilon=9.0, losses="symmetric"), rounds=30).verdict is Verdict.UNDERPOWERED


def test_a_claim_that_all_coins_could_refute_is_not_underpowered():
    """Half of the coins are guessed: a perfect attack would have guessed them all, and certified 3.05."""
    learner, _ = built(THRESHOLD, 100)
    outcome = smoke_test(learner, Claim(epsilon=3.0, losses="symmetric"), rounds=100)
    assert outcome.guesses < 60
    assert (outcome.verdict, outcome.canaries) == (Verdict.SURVIVED, 99)
    assert smoke_test(learner, Claim(epsilon=3.1, losses="symmetric"), rounds=100).verdict is Verdict.UNDERPOWERED


def test_a_run_that_no_coin_changes_is_no_test(tmp_path):
    """The paired run, in which every coin is the other one, plays the same: it had exit code 0."""
    file = tmp_path / "own.py"
    file.write_text(
        "class Ignores:\n    feedback = 'bandit'\n"
        "    def __init__(self, arms, rounds, rng): self.rng = rng\n"
        "    def act(self): return int(self.rng.integers(2))\n"
        "    def update(self, loss): pass\n"
    )
    result = smoke(f"{file}:Ignores", "--epsilon", 1, "--rounds", 200)
    assert result.exit_code == 3
    assert "no difference was seen (nothing certified)" in " ".join(result.stdout.split())
    printed = json.loads(smoke(f"{file}:Ignores", "--epsilon", 1, "--rounds", 200, "--json").stdout)
    assert (printed["verdict"], printed["reason"]) == ("UNDERPOWERED", "no difference seen")
    few = json.loads(smoke(THRESHOLD, "--epsilon", 20, "--rounds", 30, "--json").stdout)
    assert (few["verdict"], few["reason"]) == ("UNDERPOWERED", "too few runs")


def test_the_command_prints_and_exits():
    result = smoke(THRESHOLD, "--rounds", 2000)
    assert result.exit_code == 1
    assert "FALSIFIED  agarwal-singh/reduction-threshold: claimed epsilon 1" in result.stdout
    printed = json.loads(smoke(THRESHOLD, "--set", "calibration=corrected", "--rounds", 200, "--json").stdout)
    assert printed["verdict"] == "SURVIVED"
    assert {"epsilon_lower", "p_value", "right", "guesses", "canaries", "claimed"} <= printed.keys()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["mechanisms/svt1"], "smoke tests learners only, and mechanisms/svt1 is a mechanism"),
        (["smith-thakurta/pftal"], "one run is for linear losses, got convex ones"),
        ([THRESHOLD, "--rounds", "1"], "rounds must be more than 1, for a later action to guess from, got 1"),
        ([THRESHOLD, "--confidence", "1"], "confidence must be in (0, 1), got 1.0"),
    ],
)
def test_refused_where_the_conditions_do_not_hold(words, message):
    result = smoke(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert error_lines(result.stderr) == 1


@pytest.mark.parametrize(("claim", "message"), [({"surface": "release"}, "guessed from actions, got the surface")])
def test_surfaces_are_refused(claim, message):
    learner, _ = built(THRESHOLD, 10)
    with pytest.raises(ValueError, match=message):
        smoke_test(learner, Claim(epsilon=1.0, losses="symmetric", **claim), rounds=10)
