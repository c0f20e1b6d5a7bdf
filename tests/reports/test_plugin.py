"""The pytest plugin, by pytester: verdicts as tests, markers, bug reports, xdist, and an instant start."""

import subprocess
import sys

# What a session in this process imports first is unloaded after it, and compiled modules load only once.
import joblib  # noqa: F401
import pytest
import sklearn.ensemble
import sklearn.linear_model  # noqa: F401

import overclaim.audit.pipeline.falsify
import overclaim.audit.plans.shrink  # noqa: F401
from overclaim.tests.support.own_code import COIN

pytest_plugins = ["pytester"]

LEARNERS = (
    COIN
    + """
class Parrot(Coin):
    arm = 0
    def act(self):
        return self.arm if self.rng.random() < 0.95 else 1 - self.arm
    def update(self, feedback):
        self.arm = int(feedback[0] > 0.5)
class Hidden(Parrot):
    def act(self):
        return self.arm if self.rng.random() < 0.55 else 1 - self.arm
"""
)
TESTS = """
import pytest
from learners import Coin, Hidden, Parrot
from overclaim import Claim, Verdict

@pytest.mark.overclaim(runs=2000, seed=4, power=3.0)
def test_hidden(falsify):
    result = falsify(Hidden, Claim(epsilon=1.0), rounds=2)
    result.require_survived()
    assert result.runs == 2000 and result.seed == 4
    assert result.verdict is Verdict.SURVIVED

def test_coin(falsify):
    falsify(Coin, Claim(epsilon=1.0), rounds=2, runs=2000).require_survived()

@pytest.mark.overclaim(runs=2000)
def test_parrot(falsify):
    falsify(Parrot, Claim(epsilon=1.0), rounds=2).require_survived()

@pytest.mark.overclaim(runs=2000, stop="early")
def test_parrot_is_broken(falsify):
    falsify(Parrot, Claim(epsilon=1.0), rounds=2).require_falsified()

def test_small(falsify):
    falsify(Coin, Claim(epsilon=12.0), rounds=2, runs=900).require_survived()

def test_short(falsify):
    falsify(Parrot, Claim(epsilon=1.0), rounds=1, runs=900).require_survived()
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(learners=LEARNERS, test_promise=TESTS)
    return pytester


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_promises_are_tests(project, workers):
    run = project.runpytest_subprocess if workers else project.runpytest_inprocess
    result = run("-n", str(workers), "--dist", "loadfile", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=4)
    result.stdout.fnmatch_lines(
        [
            "UNDERPOWERED  Coin (*): claimed epsilon 1; no difference was seen (nothing certified)",
            "Power       *",
            "Meaning     both inputs gave the same output in all * paired runs*",
            "FALSIFIED  Parrot (*learners.py:*): claimed epsilon 1; epsilon is at least 2.* (99% confidence)",
            "Evidence    *% of the attack's guesses are right; epsilon 1 allows 73.1%",
            "Inputs      the losses of round 1 of 2: left *",
            "Reproduce   pytest test_promise.py::test_parrot --overclaim-seed 0",
            "UNDERPOWERED  Coin (*): claimed epsilon 12; 900 runs are too few to test it",
            "Meaning     a perfect attack needs *",
            "UNDERPOWERED  Parrot (*): claimed epsilon 1; epsilon is exactly 0 for these inputs",
            "Meaning     on this pair epsilon is exactly 0: the inputs differ in the last*",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*plugin.py:*")


@pytest.mark.slow(reason="a pytest within pytest")
def test_budget_and_seed_of_the_command_line(pytester):
    pytester.makepyfile(learners=LEARNERS)
    pytester.makepyfile(
        """
        import pytest
        from learners import Coin
        from overclaim import Claim

        def test_options(falsify):
            result = falsify(Coin, Claim(epsilon=1.0), rounds=2)
            assert (result.runs, result.seed) == (500, 7)

        @pytest.mark.overclaim(runs=600)
        def test_marker(falsify):
            result = falsify(Coin, Claim(epsilon=1.0), rounds=2)
            assert (result.runs, result.seed) == (600, 7)

        def test_call(falsify):
            result = falsify(Coin, Claim(epsilon=1.0), rounds=2, runs=700, seed=1)
            assert (result.runs, result.seed) == (700, 1)
            with pytest.raises(TypeError):
                bool(result)
        """
    )
    result = pytester.runpytest_inprocess("--overclaim-runs", "500", "--overclaim-seed", "7", "--strict-markers")
    result.assert_outcomes(passed=3)
    result.stdout.fnmatch_lines(["overclaim: runs 500, seed 7"])


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--overclaim-runs", "5"), "argument --overclaim-runs: must be at least 20, got 5"),
        (("--overclaim-seed", "-1"), "argument --overclaim-seed: must be at least 0, got -1"),
        (("--overclaim-runs", "many"), "argument --overclaim-runs: invalid number value: 'many'"),
    ],
)
def test_a_mistaken_option_is_a_usage_error(pytester, words, told):
    """Before any test runs, and not once for each of them."""
    result = pytester.runpytest_inprocess(*words)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*{told}"])


def test_a_mistaken_marker_is_an_error(pytester):
    pytester.makepyfile(learners=LEARNERS)
    pytester.makepyfile(
        """
        import pytest

        @pytest.mark.overclaim(run=5)
        def test_marker(falsify):
            pass
        """
    )
    result = pytester.runpytest_inprocess()
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*the marker overclaim takes runs, stop, * by name, got run"])


MISUSED = {
    "5": "runs, stop, seed, confidence, power, weaken, score by name, got 5",
    "runs=5": "a whole number of at least 20 as runs, got 5",
    "runs='many'": "a whole number of at least 20 as runs, got 'many'",
    "runs=True": "a whole number of at least 20 as runs, got True",
    "seed=-1": "a whole number of at least 0 as seed, got -1",
    "confidence=1": "a number between 0 and 1 as confidence, got 1",
    "stop='soon'": "'budget' or 'early' as stop, got 'soon'",
    "stop=[]": "'budget' or 'early' as stop, got []",
    "power=1": "a factor of at least 1.1, or 'off' as power, got 1",
    "score='f.py:g'": "a function of (output, left, right) as score, got 'f.py:g'",
    "fast=True": "no fast: kernels were removed in 0.3.0: every audit plays on NumPy",
}


def test_a_misused_marker_is_one_line_without_our_source(pytester):
    tests = [f"@pytest.mark.overclaim({m})\ndef test_{i}(falsify):\n    pass\n" for i, m in enumerate(MISUSED)]
    pytester.makepyfile("\n".join(["import pytest", *tests]))
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    result.assert_outcomes(errors=len(MISUSED))
    for wrong in MISUSED.values():
        assert f"the marker overclaim takes {wrong}" in result.outlines
    assert "def " not in result.stdout.str()
    assert "plugin.py" not in result.stdout.str()


WIDE = """
import pytest
from learners import Coin, Parrot
from overclaim import Claim

pytestmark = pytest.mark.overclaim(runs=700, seed=3)

def audited(falsify):
    return falsify(Parrot, Claim(epsilon=1.0), rounds=2)

of_session = pytest.fixture(scope="session")(lambda falsify: audited(falsify))
of_module = pytest.fixture(scope="module")(lambda falsify: audited(falsify))
of_class = pytest.fixture(scope="class")(lambda falsify: audited(falsify))
of_function = pytest.fixture(lambda falsify: audited(falsify))

class TestWide:
    @pytest.mark.overclaim(runs=900)
    def test_all(self, of_session, of_module, of_class, of_function, falsify):
        results = of_session, of_module, of_class, of_function, audited(falsify)
        assert [(r.runs, r.seed) for r in results] == [(600, 0), (700, 3), (700, 3), (900, 3), (900, 3)]

    def test_again(self, of_session, of_function):
        assert (of_session.runs, of_function.runs) == (600, 700)

    def test_session(self, of_session):
        of_session.require_survived()

    def test_module(self, of_module):
        of_module.require_survived()

    def test_class(self, of_class):
        of_class.require_survived()
"""


@pytest.mark.slow(reason="a pytest within pytest")
def test_fixtures_of_every_scope(pytester):
    """Each audits with the markers of what it belongs to, and is repeated by its name."""
    pytester.makepyfile(learners=LEARNERS, test_wide=WIDE)
    result = pytester.runpytest_inprocess("--overclaim-runs", "600", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=2, failed=3, errors=2)  # of_function, of which no test requires anything
    for what, seed in (("", 0), ("test_wide.py ", 3), ("test_wide.py::TestWide ", 3)):
        assert f"Reproduce   pytest {what}--overclaim-runs 600 --overclaim-seed {seed}" in result.outlines


AWKWARD = """
import pytest
from learners import Parrot
from overclaim import Claim

@pytest.mark.parametrize("word", ["$(touch pwned)", "`touch pwned`", "it's", '"; touch pwned; "'])
def test_parrot(falsify, word):
    falsify(Parrot, Claim(epsilon=1.0), rounds=2, runs=900).require_survived()
"""


def test_the_replay_is_one_command_for_a_shell(pytester):
    """Every line is given to a shell, in which a `pytest` prints what it is called with."""
    folder = pytester.mkdir("a folder; touch pwned")
    (folder / "learners.py").write_text(LEARNERS)
    (folder / "test_awkward.py").write_text(AWKWARD)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider")
    # Where CI is set, pytest repeats a failure in its summary: each line counts once.
    replays = {line.removeprefix("Reproduce ").strip() for line in result.outlines if line.startswith("Reproduce ")}
    assert len(replays) == 4
    for replay in replays:
        said = subprocess.run(
            ["sh", "-c", f"pytest() {{ printf '%s\\n' \"$@\"; }}; {replay}"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        assert said[0].startswith("a folder; touch pwned/test_awkward.py::test_parrot[")
        assert said[1:] == ["--overclaim-seed", "0"]
    assert not list(pytester.path.rglob("pwned"))


def test_the_replay_is_one_of_the_folder_where_pytest_was_started(pytester, monkeypatch):
    """As of a project's part; from there every audit raised, as pytest had changed a function that is not public."""
    pytester.makeini("[pytest]")
    pytester.makepyfile(learners=LEARNERS, test_awkward=AWKWARD.replace('"`', '"a::b", "`'))
    monkeypatch.chdir(pytester.mkdir("below"))
    result = pytester.runpytest_inprocess("..", "-p", "no:cacheprovider", "-k", "a::b")
    result.assert_outcomes(failed=1, deselected=4)
    assert "Reproduce   pytest '../test_awkward.py::test_parrot[a::b]' --overclaim-seed 0" in result.outlines


def test_nothing_heavy_is_imported_at_collection(pytester):
    pytester.makeconftest(
        """
        import sys

        def pytest_collection_finish(session):
            table = {"overclaim.audit.plans.options", "overclaim.mechanisms.measures.kinds"}  # of options
            table |= {name.rpartition(".")[0] for name in table}
            table |= {name.rpartition(".")[0] for name in table}
            rooms = ("numpy", "scipy", "click", "overclaim.audit", "overclaim.learners", "overclaim.mechanisms")
            heavy = [m for m in sys.modules if m.startswith(rooms) and m not in table]
            print("loaded:", heavy, "overclaim.reports.plugin" in sys.modules)
        """
    )
    pytester.makepyfile("def test_nothing(): pass")
    words = [sys.executable, "-m", "pytest", "--collect-only", "-s", "-p", "no:cacheprovider"]
    printed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "loaded: [] True" in printed


MECHANISM = """
import pytest
from hypothesis import strategies as st
from overclaim import Claim
from overclaim.testing import neighbours

def total(data, rng):
    return sum(data) + rng.laplace(scale=0.25)

def mean(data, rng):
    return sum(data) / len(data) + rng.laplace(scale=1 / len(data))

UNIT = st.lists(st.floats(0, 1), min_size=1, max_size=3)

@pytest.mark.overclaim(runs=2000)
def test_sound(falsify):
    falsify(mean, Claim(epsilon=1.0), inputs=neighbours(UNIT)).require_survived()

@pytest.mark.overclaim(runs=2000, confidence=0.999999)
def test_broken(falsify):
    inputs = neighbours(UNIT, "add-remove")
    falsify(total, Claim(epsilon=1.0), inputs=inputs, shrink=False, os_random=True).require_survived()

@pytest.mark.overclaim(runs=2000)
def test_a_pair(falsify):
    falsify(total, Claim(epsilon=5.0), left=[1], right=[0]).require_survived()

@pytest.mark.overclaim(runs=20_000, stop="early")
def test_early(falsify):
    result = falsify(total, Claim(epsilon=1.0), left=[1], right=[0])
    result.require_falsified()
    assert result.certificate.method == "anytime" and result.runs < 2000
"""


@pytest.mark.slow(reason="a pytest within pytest")
def test_mechanisms_are_audited_as_learners_are(pytester):
    pytester.makepyfile(MECHANISM)
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=3, failed=1)
    result.stdout.fnmatch_lines(["FALSIFIED  total (*(99.9999% confidence)", "Inputs      left *, right *"])
    result.stdout.fnmatch_lines(
        ["Next        each repetition has other counts: *", "Reproduce *::test_broken --over*"]
    )


ROUNDS = """
import pytest
from hypothesis import strategies as st
from overclaim import Claim
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.testing import neighbours

LEARNER = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
DRAWN = st.lists(st.lists(st.floats(0, 1), min_size=2, max_size=2), min_size=2, max_size=3)

@pytest.mark.overclaim(runs=800)
def test_event(falsify):
    falsify(LEARNER, Claim(epsilon=1.0), inputs=neighbours(DRAWN)).require_survived()

@pytest.mark.overclaim(runs=8000, confidence=0.999999)
def test_user(falsify):
    left, right = [[1, 1], [1, 1], [0, 0]], [[0, 0], [0, 0], [0, 0]]
    falsify(LEARNER, Claim(epsilon=1.0, neighbours="user:2"), left=left, right=right).require_survived()
"""


@pytest.mark.slow(reason="a pytest within pytest")
def test_learners_are_audited_on_rounds_as_mechanisms_on_inputs(pytester):
    pytester.makepyfile(ROUNDS)
    result = pytester.runpytest_inprocess("-p", "no:randomly", "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, failed=1)
    wanted = "Inputs      the losses of rounds 1 and 2 of 3: * in each; up to 2 rounds of one user replaced"
    result.stdout.fnmatch_lines([wanted])
