"""Learners and mechanisms of a user's own, at the command line: sound, broken, printing, quitting."""

import html
import json
import os
import re
import subprocess
import sys

import pytest

from overclaim.audit.execution.workers import cores
from overclaim.tests.support.command_line import FIELDS, check, error_lines, overclaim, refused, run_plan

LEARNERS = '''
import numpy as np

class Private:
    """Follow the perturbed leader with far more noise than epsilon = 1 needs."""
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng, self.total, self.scale = rng, np.zeros(arms), 40.0 * rounds
    def act(self):
        return int(np.argmin(self.total + self.rng.laplace(0, self.scale, self.total.size)))
    def update(self, feedback):
        self.total += feedback

class Leaky(Private):
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        super().__init__(arms, rounds, rng)
        self.scale = 0.05
    def act(self):
        self.arm = super().act()
        return self.arm
    def update(self, feedback):
        self.total[self.arm] += feedback

class Raises(Private):
    def update(self, feedback):
        raise KeyError("oops")

class NoArm(Private):
    def act(self):
        return 7

class Keeps(Private):
    played = []
    def act(self):
        self.played.append(0)
        return len(self.played) // 3 % 2
'''


@pytest.fixture
def learners(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(LEARNERS)
    return path


@pytest.mark.parametrize(("name", "code"), [("Private", 3), ("Leaky", 1)])  # so much noise shows too little
def test_a_users_own_file(learners, name, code):
    result = check(f"{learners}:{name}", "--rounds", 8, "--arms", 2, "--runs", 6000)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raises", ":Raises raised KeyError: 'oops'\n"),
        ("NoArm", "NoArm.act must return an arm in 0..1, got 7"),
        ("Keeps", "keeps state"),
    ],
)
def test_a_misbehaving_learner(learners, name, message):
    refused(check(f"{learners}:{name}", "--runs", 200), message, code=4)


def test_a_users_file_that_does_not_load(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('not today')")
    refused(check(f"{broken}:Name", "--runs", 100), "raised RuntimeError: not today", code=4)
    broken.write_text("def (:")
    assert check(f"{broken}:Name", "--runs", 100).exit_code == 4


PRINTING = """
def noisy(data, rng):
    print("a word of the user's own")
    return data[0] + rng.laplace()

class Learner:
    pass

class Called:
    def __call__(self, data, rng):
        return len(data or []) + rng.laplace()

class Played:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        pass
    def act(self):
        return 0
    def update(self, feedback):
        pass

called = Called()
number = 3
"""


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("noisy", (), "its two inputs are missing\n  hint:  give them with --left and --right, or search"),
        ("called", (), "called is a mechanism, and its two inputs are missing"),
        (
            "noisy",
            ("--left", "[0]", "--right", "[1]", "--neighbours", "linf:0.5"),
            "are no neighbours by linf:0.5: their distance is 1",
        ),
        ("noisy", ("--inputs", '{"type": "array"}', "--surface", "actions"), "is a mechanism: it takes no --surface"),
        ("noisy", ("--left", "[0]", "--right", "[1]", "--shrink"), "--shrink simplifies searched inputs"),
        ("Played", ("--bits",), "Played is a learner: it takes no --bits"),
        ("noisy", ("--left", "[0]"), "two inputs, --left and --right: --right is missing"),
        ("noisy", ("--left", "[0]", "--right", "[1]", "--rounds", 3), "is a mechanism: it takes no --rounds"),
        (
            "noisy",
            ("--left", "[0]", "--right", "[1]", "--set", "a=1"),
            "no parameter 'a'\n  hint:  it takes none",
        ),
        ("Learner", ("--left", "[0]", "--right", "[1]"), "Learner is a class"),
        ("number", ("--left", "[0]", "--right", "[1]"), "number is int 3"),
    ],
)
def test_a_mechanism_asked_for_wrongly(tmp_path, name, options, message):
    file = tmp_path / "mine.py"
    file.write_text(PRINTING)
    refused(check(f"{file}:{name}", *options), message)


@pytest.mark.parametrize("command", ["exact", "check"])
def test_what_takes_a_mechanisms_inputs_is_named(tmp_path, command):
    """Also by commands that take none."""
    file = tmp_path / "mine.py"
    file.write_text(PRINTING)
    refused(overclaim(command, f"{file}:noisy", "--epsilon", 1), "--left", "--right")


def test_a_mechanism_may_read_null(tmp_path):
    """null is an input; what is missing is none."""
    file = tmp_path / "mine.py"
    file.write_text(PRINTING)
    result = check(f"{file}:called", "--left", "null", "--right", "[1]", "--runs", 400)
    assert result.exit_code == 0, result.output
    assert "Inputs      left null, right [1]" in result.output
    assert "--left null --right '[1]'" in result.output
    refused(check(f"{file}:called", "--left", "null", "--runs", 400), "right is missing")


def test_what_audited_code_prints_does_not_reach_stdout(tmp_path):
    (tmp_path / "mine.py").write_text(PRINTING)
    words = ["check", "mine.py:noisy", "--epsilon", "1", "--left", "[0]", "--right", "[1]", "--runs", "2000", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "overclaim", *words, "--jobs", "2"], cwd=tmp_path, capture_output=True, text=True
    )
    assert json.loads(done.stdout)["verdict"] == "SURVIVED"
    assert "a word of the user's own" in done.stderr


STATED = """
import numpy as np

class Stated:
    feedback = "full"
    def __init__(self, arms, rounds):
        self.arms = arms
    def start(self, runs, draws):
        return np.zeros((self.arms, runs))
    def probabilities(self, state):
        print("a word of the user's own")
        return np.full(state.shape, 1 / self.arms)
    def act(self, state, draws):
        return (draws.uniform(state.shape[1:]) * self.arms).astype(np.intp)
    def update(self, state, actions, feedback, draws):
        print("a word of the user's own")
        return state
"""


@pytest.mark.few(1)
@pytest.mark.parametrize("command", [["exact", "--rounds", "2"], ["regret", "--rounds", "9"]])
def test_nor_does_what_it_prints_while_its_law_or_its_losses_are_computed(tmp_path, command):
    (tmp_path / "mine.py").write_text(STATED)
    words = [command[0], "mine.py:Stated", *command[1:], "--json"] + ["--epsilon", "1"] * (command[0] != "regret")
    done = subprocess.run([sys.executable, "-m", "overclaim", *words], cwd=tmp_path, capture_output=True, text=True)
    assert json.loads(done.stdout)
    assert "a word of the user's own" in done.stderr


SLIPS = """
import numpy as np

class Slips:
    \"\"\"It plays the leader by itself in one run of fifty, which the law that it states leaves out.\"\"\"

    feedback, arms = "full", 2
    def start(self, runs, draws):
        return np.zeros((2, runs))
    def probabilities(self, state):
        weights = np.exp(-0.3 * state)
        return weights / weights.sum(axis=0)
    def act(self, state, draws):
        drawn, slips = draws.uniform((2, state.shape[1]))
        return np.where(slips < 0.02, state.argmin(axis=0), drawn > self.probabilities(state)[0]).astype(np.intp)
    def update(self, state, actions, feedback, draws):
        state += feedback
"""


def test_an_exact_value_is_by_the_law_that_the_users_own_target_states(tmp_path, monkeypatch):
    """It was said to be that of the pair, and the report that no attack shows more."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(SLIPS)
    plan = '[[claims]]\ntarget = "mine.py:Slips"\nepsilon = 0.1\nrounds = 2\nruns = 4000\n'
    (tmp_path / "plan.toml").write_text(plan)
    done = overclaim("check", "mine.py:Slips", "--epsilon", 3, "--rounds", 2, "--runs", 2000, "--jobs", 1, "-v")
    said = " ".join(done.output.split())
    assert "exact value for these inputs by the law that it states: 0.3000" in said
    assert overclaim("run", "plan.toml", "--no-blind-spots", "--jobs", 1).exit_code == 1
    report = " ".join((tmp_path / "out" / "report.html").read_text().split())
    assert "exactly 0.3 for these inputs by the law that it states" in report
    assert "none shows more than that on that pair: of a target that states its law, if it plays by that law" in report


THREADED = """
import sklearn.linear_model  # with its OpenMP
from threadpoolctl import threadpool_info

POOLS = threadpool_info()

class Threaded:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        if any(pool["num_threads"] > 1 for pool in POOLS):
            raise RuntimeError(f"threads: {POOLS}")
    def act(self):
        return 0
    def update(self, feedback):
        pass
"""


TWICE = 2 * '[[claims]]\ntarget = "mine.py:Threaded"\nepsilon = 1\nrounds = 2\nruns = 2000\nuntested = "allowed"\n'


@pytest.mark.slow(reason="a whole command")
@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
@pytest.mark.parametrize(("jobs", "given", "code"), [(1, {}, 0), (2, {}, 0), (2, {"OPENBLAS_NUM_THREADS": "2"}, 4)])
def test_processes_have_one_thread_each(tmp_path, jobs, given, code):
    """Unless the user asks for more. Two claims are audited, each in a worker where there are two."""
    (tmp_path / "mine.py").write_text(THREADED)
    (tmp_path / "plan.toml").write_text(TWICE)
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = [sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", str(jobs)]
    done = subprocess.run(words, cwd=tmp_path, env={**unset, **given}, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr


QUITTERS = """
import sys

class Bare(BaseException):
    pass

class Scalar:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        pass
    def act(self):
        raise Bare("oops")
    def update(self, feedback):
        pass

class Batched:
    feedback = "bandit"
    def __init__(self, arms):
        self.arms, self.calls = arms, 0
    def start(self, runs, draws):
        return draws.arms(self.arms, runs) if hasattr(draws, "arms") else draws.labels(runs).astype(int)
    def act(self, state, draws):
        self.calls += 1
        if self.calls > LATE:
            sys.exit(0)
        return state
    def update(self, state, actions, feedback, draws):
        pass

def mechanism(data, rng):
    raise Bare
"""


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("Scalar", (), "Scalar raised Bare: oops"),
        ("Batched", (), "Batched raised SystemExit: 0"),
        ("mechanism", ("--left", "0", "--right", "1", "--runs", 300), "mechanism raised Bare on"),
    ],
)
@pytest.mark.parametrize("late", [0, 60])
def test_a_target_that_quits_has_crashed(tmp_path, target, more, message, late):
    """Not even sys.exit(0) ends an audit as if its claim had survived; nor once the first checks are passed."""
    (tmp_path / "mine.py").write_text(QUITTERS.replace("LATE", str(late)))
    more = more or ("--rounds", 2, "--runs", 30_000)
    result = overclaim("check", f"{tmp_path / 'mine.py'}:{target}", "--epsilon", 1, "--jobs", 1, *more)
    assert result.exit_code == 4, result.output
    # What counts its calls on the recipe is refused for that, where the first checks are passed.
    assert message in result.stderr or (late and "Batched keeps state between runs" in result.stderr)
    assert error_lines(result.stderr) == 1


def test_a_module_that_quits_when_imported_has_crashed(tmp_path, monkeypatch):
    (tmp_path / "quitting.py").write_text("import sys; sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    refused(overclaim("check", "quitting:Learner", "--epsilon", 1), "importing quitting raised SystemExit: 0", code=4)


MECHANISMS = """
def halved(data, rng):
    return data[0] + rng.laplace(0, 0.5)

def sound(data, rng):
    return data[0] + rng.laplace(0, 1.0)

def raises(data, rng):
    raise RuntimeError("boom")
"""


@pytest.mark.parametrize(("name", "code"), [("halved", 1), ("sound", 0), ("raises", 4)])
def test_a_users_mechanism(tmp_path, name, code):
    path = tmp_path / "mechanisms.py"
    path.write_text(MECHANISMS)
    inputs = ["--left", "[0]", "--right", "[1]", "--runs", 6000]
    result = check(f"{path}:{name}", *inputs)
    assert result.exit_code == code, result.output
    if code == 4:
        assert "raises raised RuntimeError" in result.stderr
        return
    assert "Inputs      left [0], right [1]" in result.output
    claim = json.loads(check(f"{path}:{name}", *inputs, "--json").stdout)
    assert claim.keys() >= FIELDS
    assert "--left '[0]' --right '[1]'" in claim["replay"]


def test_a_mechanism_of_the_zoo():
    broken = check("mechanisms/svt6", "--runs", 20_000)
    assert broken.exit_code == 1, broken.output
    assert check("mechanisms/laplace", "--runs", 4000).exit_code == 0
    assert "mechanisms/svt6" in overclaim("list").output


@pytest.mark.parametrize(
    ("target", "words", "message"),
    [
        ("mechanisms/laplac", [], "did you mean mechanisms/laplace"),
        ("gaussian", [], "did you mean mechanisms/gaussian?"),
        ("make_laplace-int", [], "did you mean libraries/opendp/make_laplace-int?"),
        ("mechanisms/laplace", ["--left", "[0"], "--left must be JSON"),
        ("mechanisms/laplace", ["--left", "[0]", "--right", "[0]"], "the two inputs must differ"),
        ("mechanisms/laplace", ["--left", "[0]"], "two inputs, --left and --right: --right is missing"),
        ("mechanisms/laplace", ["--right", "null"], "needs two inputs, --left and --right: --left is missing"),
        ("mechanisms/laplace", ["--left", "0", "--right", "1"], "cannot take the left input 0: 'int' object"),
        ("mechanisms/truncated-geometric", ["--left", "[5]", "--right", "[6]"], "right input [6]: the count must be"),
        (
            "mechanisms/laplace",
            ["--rounds", 5, "--losses", "unit", "--arms", 7],
            "no --rounds, --arms, --losses",
        ),
        (
            "mechanisms/laplace",
            ["--surface", "release", "--neighbours", "zero-out"],
            "no --surface, --neighbours",
        ),
        (
            "mechanisms/laplace",
            ["--surface", "actions", "--neighbours", "replace"],
            "no --surface, --neighbours",
        ),
        ("mechanisms/laplace", ["--shrink"], "--shrink simplifies searched inputs and a learner's losses"),
        ("mechanisms/laplace", ["--pair", '{"left": [[0, 0]], "right": [[1, 1]]}'], "it takes no --pair"),
        ("mechanisms/svt1", ["--set", "limit=abc"], "limit must be an integer in 1..10000, got 'abc'"),
        ("mechanisms/svt1", ["--set", "limt=3"], "has no parameter 'limt'\n  hint:  did you mean limit?"),
        (
            "mechanisms/rappor",
            ["--set", "epsilon=3"],
            "parameter 'epsilon'\n  hint:  it has hashes, size, f, p, q",
        ),
        (
            "agarwal-singh/reduction-exp2",
            ["--left", "[0]"],
            "two inputs, --left and --right: --right is missing",
        ),
    ],
)
def test_bad_mechanism_input(target, words, message):
    refused(check(target, "--runs", 200, *words), message)


@pytest.mark.parametrize(
    ("target", "words", "claimed", "code"),
    [
        ("rappor", ["--epsilon", 0.2], 0.2, 3),  # its rates set its noise, and its power is not measured here
        ("rappor", [], 0.400083, 3),
        ("truncated-geometric", ["--set", "epsilon=0.1"], 0.117783, 0),  # as its theorem states
        ("laplace", ["--epsilon", 1, "--set", "epsilon=2"], 1, 1),
        ("laplace", ["--epsilon", 2], 2, 0),
    ],
)
def test_the_claim_of_a_mechanism_of_the_zoo(target, words, claimed, code):
    """What is asked for is the claim; else it is the mechanism's own."""
    result = overclaim("check", f"mechanisms/{target}", "--runs", 20_000, "--jobs", 1, *words)
    assert re.search(rf"claimed epsilon\s+{re.escape(str(claimed))}\d*[; \n]", result.stdout)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize("command", ["exact", "regret"])
def test_what_needs_a_learner_refuses_mechanisms(command):
    refused(overclaim(command, "mechanisms/laplace"), "mechanisms/laplace is a mechanism")


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: x + 1, lambda x: {"x": x}], ids=["list", "number", "table"])
def test_a_mechanism_in_a_plan(tmp_path, wrap):
    """Inputs are whatever JSON can hold; the report shows them whole."""
    (tmp_path / "mechanisms.py").write_text(
        MECHANISMS.replace(
            "data[0]", "(data if isinstance(data, int) else next(iter(getattr(data, 'values', lambda: data)())))"
        )
    )
    left, right = (json.dumps(wrap(x)) for x in (0, 1))
    plan = f"""
[[claims]]
target = "{tmp_path}/mechanisms.py:halved"
epsilon = 1
left = {left.replace(":", " =")}
right = {right.replace(":", " =")}
runs = 6000
expect = "falsified"
"""
    result = run_plan(tmp_path, plan)
    assert result.exit_code == 0, result.output
    assert "mechanism" in result.output
    page = html.unescape((tmp_path / "out" / "report.html").read_text())
    assert "Two inputs that the mechanism must not tell apart" in page
    assert f"<bdi>{left}</bdi>" in page
    assert f"<bdi>{right}</bdi>" in page
    assert "differs" not in page.partition('id="evidence"')[2].partition("</article>")[0]


def test_a_file_may_look_itself_up_while_it_is_loaded(tmp_path):
    """Dataclasses look up annotations that are text in `sys.modules`, where the file was not."""
    (tmp_path / "own.py").write_text(
        "from __future__ import annotations\n\nfrom dataclasses import dataclass\n\n\n"
        "@dataclass\nclass Learner:\n    arms: int\n    rounds: int\n    rng: object\n\n"
        "    def act(self):\n        return int(self.rng.integers(self.arms))\n\n"
        "    def update(self, loss):\n        pass\n\n\nLearner.feedback = 'bandit'\n"
    )
    result = overclaim("check", f"{tmp_path / 'own.py'}:Learner", "--epsilon", 1, "--runs", 2000, "--jobs", 2)
    assert result.exit_code == 3, result.output  # it ignores its losses
    assert not any(name.startswith("overclaim_target_") for name in sys.modules)
