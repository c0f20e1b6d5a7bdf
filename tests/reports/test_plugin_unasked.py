"""A FALSIFIED result of which a test requires nothing fails it when it is over, whoever audited and on what."""

import pytest

from overclaim.tests.reports.test_plugin import LEARNERS

pytest_plugins = ["pytester"]

HEAD = """
import pytest
from learners import Coin, Parrot
from overclaim import Claim, Verdict, falsify_mechanism

pytestmark = pytest.mark.overclaim(runs=700)
claim = Claim(epsilon=1.0)

def count(data, rng):
    return sum(data) + rng.laplace(scale=0.1)

def parrot(falsify):
    return falsify(Parrot, claim, rounds=2)

early = pytest.fixture(lambda falsify: falsify(Parrot, claim, rounds=2, stop="early"))
"""
#: All of these passed.
UNASKED = """
def test_bare(falsify):
    falsify(Parrot, claim, rounds=2)

def test_not_called(falsify):
    falsify(Parrot, claim, rounds=2).require_survived

def test_asserted(falsify):
    assert parrot(falsify).require_survived

def test_mechanism(falsify):
    falsify(count, claim, left=[0], right=[1])

def test_of_a_fixture(early):
    assert early.runs <= 700

def test_two(falsify):
    parrot(falsify), parrot(falsify).require_falsified(), parrot(falsify)

def test_bound(falsify):
    assert parrot(falsify).epsilon_lower > 0

class TestClass:
    def test_method(self, falsify):
        repr(parrot(falsify))
"""
ASKED = """
import copy

def test_required_of_a_copy(falsify):
    copy.copy(parrot(falsify)).require_falsified()

def test_required_of_a_deep_copy(falsify):
    copy.deepcopy([parrot(falsify)])[0].require_falsified()

def test_required(falsify):
    parrot(falsify).require_falsified()

def test_compared(falsify):
    assert parrot(falsify).verdict is Verdict.FALSIFIED

def test_sound(falsify):
    falsify(Coin, claim, rounds=2)

def test_raises(falsify):
    with pytest.raises(pytest.fail.Exception):
        parrot(falsify).require_survived()

@pytest.fixture
def late(falsify):
    yield
    parrot(falsify).require_falsified()

@pytest.fixture
def later(falsify):
    result = parrot(falsify)
    yield result
    result.require_falsified()

def test_at_teardown(late, later):
    pass

def test_skipped(falsify):
    parrot(falsify)
    pytest.skip("not today")

@pytest.mark.xfail(strict=True)
def test_expected_to_fail(falsify):
    parrot(falsify)
    assert False
"""
WIDE = """
wide = pytest.fixture(scope="module")(parrot)

def test_first(wide):
    assert wide.runs == 700

def test_last(wide):
    pass
"""


def outcomes(pytester, text):
    pytester.makepyfile(learners=LEARNERS, test_all=HEAD + text)
    return pytester.runpytest_inprocess("-p", "no:cacheprovider", "-p", "no:randomly", "-rN")


def test_what_nothing_is_required_of_fails_at_teardown(pytester):
    result = outcomes(pytester, UNASKED)
    result.assert_outcomes(passed=8, errors=8)
    text = result.stdout.str()
    assert text.count("a result is FALSIFIED, and the test requires nothing of it: call its require_survived()") == 8
    assert text.count("\nFALSIFIED  Parrot") == 7
    assert text.count("\nFALSIFIED  count") == 1
    assert text.count("... and 1 more") == 1
    assert "plugin.py" not in text


def test_what_is_required_or_compared_does_not(pytester):
    """Nor what a test did not come to, which was skipped or failed before."""
    outcomes(pytester, ASKED).assert_outcomes(passed=7, skipped=1, xfailed=1)


@pytest.mark.parametrize("asked", [False, True])
def test_a_fixture_of_a_module_is_over_with_its_last_test(pytester, asked):
    result = outcomes(pytester, WIDE + "    wide.require_falsified()\n" * asked)
    result.assert_outcomes(passed=2, errors=0 if asked else 1)
    assert ("ERROR at teardown of test_last" in result.stdout.str()) is not asked


def test_a_test_that_failed_says_that_alone(pytester):
    outcomes(pytester, "def test_failed(falsify):\n    parrot(falsify)\n    assert False\n").assert_outcomes(failed=1)
