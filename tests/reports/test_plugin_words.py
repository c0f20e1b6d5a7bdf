"""What the pytest plugin says of a failure: each thing once, in a line, and nothing that steers a terminal."""

from overclaim import falsify_mechanism
from overclaim.mechanisms import Claim
from overclaim.reports.plugin import AuditedResult
from overclaim.tests.support.own_code import COIN

pytest_plugins = ["pytester"]

BROKEN = """
import pytest
from learners import Coin
from overclaim import Claim
from overclaim.learners import LearnerError

class Broken(Coin):
    def act(self):
        return 1 / 0

def wrong(data, rng):
    return 1 / 0

def test_learner(falsify):
    falsify(Broken, Claim(epsilon=1.0), rounds=2, runs=200)

def test_mechanism(falsify):
    falsify(wrong, Claim(epsilon=1.0), left=0, right=1, runs=200)

def test_regret(check_regret):
    check_regret(Broken, 5.0, rounds=4, runs=50)

def test_bound(check_regret):
    check_regret(Coin, 0.01, rounds=8, runs=200)

def test_expected(falsify):
    with pytest.raises(LearnerError, match="raised ZeroDivisionError"):
        falsify(Broken, Claim(epsilon=1.0), rounds=2, runs=200)
"""


def test_a_failure_is_said_once_and_without_our_own_code(pytester):
    """The regret came twice, and a crash with over 100 lines of overclaim's."""
    pytester.makepyfile(learners=COIN, test_broken=BROKEN)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rN")
    result.assert_outcomes(passed=1, failed=4)
    text = result.stdout.str()
    assert text.count(" raised ZeroDivisionError") == 3
    assert text.count("the expected regret of Coin exceeds the bound of 0.01") == 1
    assert "During handling" not in text
    assert "direct cause" not in text
    assert "plugin.py" not in text
    assert len(text.splitlines()) < 60


def test_a_report_steers_no_terminal():
    def audited(data, rng):
        return rng.random()

    from overclaim import falsify_mechanism

    audited.__name__ = "a\x1b[31m\u202eb"
    result = falsify_mechanism(audited, Claim(epsilon=1.0), left=0, right=1, runs=200)
    report = AuditedResult(result, audited, "pytest a\x1b[31m.py").report()
    assert "\x1b" not in report
    assert "\u202e" not in report
    assert report.count("a\\u001b[31m\\u202eb") == 1
    assert report.endswith("pytest a\\u001b[31m.py")


def test_what_is_falsified_is_not_said_to_be_beyond_the_budget():
    """The limit of a budget is that of Laplace noise; an output that is the input shows more."""
    result = falsify_mechanism(lambda data, rng: data, Claim(epsilon=1.0), left=1, right=0, runs=30)
    assert result.verdict.value == "FALSIFIED"
    limit = "no violation by Laplace noise nine times in ten"
    assert str(result).endswith(f"; at best, from this many runs: {limit}")
    assert limit not in AuditedResult(result, lambda data, rng: data, "pytest").report()
