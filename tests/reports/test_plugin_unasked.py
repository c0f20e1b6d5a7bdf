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


#: What pytest-rerunfailures does: a second attempt where one failed, of which the reports count.
RERUN = """
import pytest
from _pytest.runner import runtestprotocol

@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item, nextitem):
    for last in (False, True):
        reports = runtestprotocol(item, nextitem=nextitem, log=False)
        if last or not any(report.failed for report in reports):
            break
        item._initrequest()
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    return True
"""
#: An audit that a module keeps is not made again.
KEPT = """
kept = []

def parrot_once(falsify):
    kept or kept.append(falsify(Parrot, claim, rounds=2))
    return kept[0]

tries = []
"""
FIRST_FAILS = "    tries.append(1)\n    assert len(tries) > 1\n"
PROCESSES = ("-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "--overclaim-runs", "300")


def rerun(pytester, text):
    pytester.makeconftest(RERUN)
    pytester.makepyfile(learners=LEARNERS, test_all=HEAD.replace("pytestmark", "_") + KEPT + text)
    words = ("-p", "no:cacheprovider", "-p", "no:randomly", "-rN", "--overclaim-runs", "300")
    return pytester.runpytest_inprocess(*words)


@pytest.mark.few(2)
@pytest.mark.parametrize("scope", ["session", "class", "module", "package", "function"])
@pytest.mark.parametrize("make", ["parrot", "parrot_once"])
def test_a_rerun_clears_no_fixture_of_any_scope(pytester, scope, make):
    fixture = f"wide = pytest.fixture(scope={scope!r})({make})\n"
    result = rerun(pytester, fixture + "def test_first(wide):\n    pass\ndef test_last(wide):\n    pass\n")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "a result is FALSIFIED, and the test requires nothing of it" in result.stdout.str()


def test_a_second_attempt_does_not_clear_what_the_first_one_saw(pytester):
    """The first fails before its end, and the second does not audit."""
    result = rerun(pytester, "def test_it(falsify):\n    tries or parrot_once(falsify)\n" + FIRST_FAILS)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.assert_outcomes(passed=1, errors=1)


def test_a_second_attempt_that_is_skipped_clears_nothing(pytester):
    text = "def test_it(falsify):\n    tries and pytest.skip()\n    tries.append(1)\n    parrot(falsify)\n"
    assert rerun(pytester, text).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.parametrize("scope", ["function", "module", "session"])
def test_a_second_attempt_judges_for_the_first(pytester, scope):
    fixture = f"wide = pytest.fixture(scope={scope!r})(parrot)\n"
    result = rerun(pytester, f"{fixture}def test_it(wide):\n{FIRST_FAILS}    wide.require_falsified()\n")
    assert result.ret == pytest.ExitCode.OK, result.stdout.str()
    result.assert_outcomes(passed=1)


def test_of_two_results_each_is_judged_by_itself(pytester):
    text = (
        f"def test_it(falsify):\n    a, b = parrot(falsify), parrot(falsify)\n{FIRST_FAILS}    a.require_falsified()\n"
    )
    assert rerun(pytester, text).ret == pytest.ExitCode.TESTS_FAILED


@pytest.mark.slow(reason="starts processes")
@pytest.mark.parametrize(("asked", "code"), [(0, 1), (1, 0)])
def test_under_xdist_a_fixture_of_the_session_is_judged_in_any_process(pytester, asked, code):
    text = "wide = pytest.fixture(scope='session')(parrot)\n"
    for place in range(2):
        text += f"def test_{place}(wide):\n    {'wide.require_falsified()' if place < asked else 'assert wide.runs'}\n"
    pytester.makepyfile(learners=LEARNERS, test_all=HEAD + text)
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "--overclaim-runs", "300"
    )
    assert result.ret == code, result.stdout.str()
    assert ("FALSIFIED, and nobody asked" in result.stdout.str()) is bool(code)


@pytest.mark.slow(reason="starts processes")
def test_under_xdist_a_test_fails_by_itself(pytester):
    pytester.makepyfile(learners=LEARNERS, test_all=HEAD + "def test_it(falsify):\n    parrot(falsify)\n")
    result = pytester.runpytest_subprocess(
        "-p", "no:cacheprovider", "-p", "xdist", "-n", "2", "--overclaim-runs", "300"
    )
    result.assert_outcomes(passed=1, errors=1)
