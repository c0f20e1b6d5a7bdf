"""Only a verdict exits 1: crashes of the target exit 4, trouble with outputs 2, and each has one line."""

import json
import math
import os
import signal
import subprocess
import sys

import pytest
from jinja2 import DictLoader

from overclaim.audit.execution.execution import Execution
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.regret_tasks import RegretTask
from overclaim.reports import record
from overclaim.reports.command_line import cli
from overclaim.reports.command_line.console import failure_of
from overclaim.reports.command_line.running import run_plan
from overclaim.reports.formats import html
from overclaim.reports.sanitise import json_text
from overclaim.reports.status import BAD_INPUT, CRASHED, FALSIFIED, INTERNAL, OK, UNDERPOWERED, status_of
from overclaim.tests.support.command_line import check, error_lines, overclaim, refused

OWN = """
import atexit, os, signal, sys, threading, time, warnings
import numpy as np

class Sound:
    feedback, arms = "bandit", 2
    def start(self, runs, draws): return {"runs": runs}
    def act(self, state, draws): return (draws.uniform(state["runs"]) < 0.5).astype(int)
    def update(self, state, actions, feedback, draws): pass
    def probabilities(self, state): return np.full((2, state["runs"]), 0.5)

class Unsayable(Exception):
    def __str__(self): raise RuntimeError

class Base(BaseException): pass

def fails(error):
    def update(self, *_): raise error
    return update

def calls(function):
    def update(self, *_): function()
    return update

def of(update): return type("Faulty", (Sound,), {"update": update})

def raised(error): return of(fails(error))

Value, Runtime, Key = raised(ValueError("x")), raised(RuntimeError("x")), raised(KeyError("x"))
Exit, Stop, End = raised(SystemExit(1)), raised(StopIteration("x")), raised(EOFError("x"))
Memory, Recursion, Generator = raised(MemoryError("x")), raised(RecursionError("x")), raised(GeneratorExit("x"))
Pipe, Own = raised(BrokenPipeError(32, "x")), raised(Base("x"))
Dumb = raised(Unsayable())
Exits, OsExits = of(calls(lambda: sys.exit(1))), of(calls(lambda: os._exit(1)))
Warns = of(calls(lambda: (warnings.simplefilter("error"), warnings.warn("x"))))
Deep = of(lambda self, *a: self.update(*a))

class NoProbabilities(Sound):
    def probabilities(self, state): raise LookupError("x")

class NoneProbabilities(Sound):
    def probabilities(self, state): return None

class FlatProbabilities(Sound):
    def probabilities(self, state): return np.zeros(3)

class WordArms(Sound):
    arms = "two"

class FailingArms(Sound):
    arms = property(lambda self: 1 / 0)

class FailingInit(Sound):
    def __init__(self): raise ValueError("x")

class Late(Sound):
    def act(self, state, draws):
        if state["runs"] > 500:
            os._exit(1)
        return super().act(state, draws)

Shallow = of(calls(lambda: sys.setrecursionlimit(60)))

class Later(Sound):
    def update(self, *_): atexit.register(lambda: os._exit(1))

class Unspeakable(Sound):
    def __repr__(self): raise RuntimeError
    def __eq__(self, other): raise RuntimeError

class Locked(Sound):
    def __init__(self): self.lock = threading.Lock()

class Closing(Sound):
    def update(self, *_): sys.stdout.close()

def huge(data, rng): return 10**5000

def quits(data, rng): os._exit(1)

def rings(data, rng):
    signal.setitimer(signal.ITIMER_REAL, 0.01)
    time.sleep(60)

def rings_later(data, rng):
    signal.setitimer(signal.ITIMER_REAL, 600)
    return rng.laplace()

def lost(data, rng):
    sys.path.clear()
"""
CRASHES = {
    *("Value", "Runtime", "Key", "Exit", "Memory", "Recursion", "Generator", "Stop", "End", "Pipe", "Own", "Dumb"),
    *("Exits", "OsExits", "Warns", "Deep", "NoProbabilities", "NoneProbabilities", "FlatProbabilities", "WordArms"),
    *("FailingArms", "FailingInit", "Late", "Shallow"),
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("name", sorted(CRASHES))
def test_a_crash_of_the_target_exits_4_with_one_line(own, name):
    result = check(f"own.py:{name}", "--rounds", 2, "--runs", 2000)
    assert (result.exit_code, result.stdout, error_lines(result.stderr)) == (CRASHED, "", 1), result.output
    assert "internal error" not in result.stderr


@pytest.mark.parametrize("name", ["huge", "quits"])
def test_a_crash_of_a_mechanism_exits_4_with_one_line(own, name):
    result = check(f"own.py:{name}", "--left", 0, "--right", 1, "--runs", 200)
    assert (result.exit_code, result.stdout, error_lines(result.stderr)) == (CRASHED, "", 1), result.output


@pytest.mark.parametrize("name", ["Unspeakable", "Locked", "Closing"])
def test_odd_targets_have_a_verdict(own, name):
    result = check(f"own.py:{name}", "--rounds", 2, "--runs", 2000)
    assert result.exit_code in (OK, UNDERPOWERED), result.output
    assert result.stdout.startswith(("SURVIVED", "UNDERPOWERED"))


def test_regret_blames_the_target(own):
    refused(overclaim("regret", "own.py:Runtime", "--rounds", 8), "raised RuntimeError: x", code=CRASHED)


def test_what_does_not_fit_into_memory_says_what_is_to_be_fewer():
    for why in ([], ["Unable to allocate 74.5 GiB"]):
        because = "".join(f": {text}" for text in why)
        failure = failure_of(MemoryError(*why), plays=False)
        assert failure.exit_code == BAD_INPUT
        assert failure.message == f"out of memory{because}"
        assert failure.hint == "use fewer rounds, arms or --jobs"


def test_a_fault_of_our_own_exits_70(monkeypatch):
    monkeypatch.setattr(cli, "status_of", {}.__getitem__)
    result = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 200)
    assert result.exit_code == INTERNAL
    assert result.stderr.startswith("overclaim: error: internal error, a fault of overclaim: TypeError: ")
    assert error_lines(result.stderr) == 1


@pytest.mark.slow(reason="a run of several claims")
def test_a_record_that_cannot_be_written_costs_no_other_claim_its_own(tmp_path, monkeypatch):
    real = record.claim_record

    def infinite(prepared, result, **how):
        written = real(prepared, result, **how)
        return {**written, "seconds": math.inf} if prepared.task.rounds == 3 else written

    monkeypatch.setattr(record, "claim_record", infinite)
    one = '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nruns = 200\nrounds = {}\n'
    (tmp_path / "plan.toml").write_text(one.format(2) + one.format(3))
    result = overclaim("run", tmp_path / "plan.toml", "--out", tmp_path, "--jobs", 1)
    assert result.exit_code == INTERNAL
    written = json.loads((tmp_path / "record.json").read_text())
    assert [claim["rounds"] for claim in written["claims"]] == [2]
    assert [error["kind"] for error in written["errors"]] == ["internal error"]
    assert "a value that JSON has not" in written["errors"][0]["message"]


def test_a_measurement_that_cannot_be_written_costs_no_claim_its_record(tmp_path, monkeypatch):
    monkeypatch.setattr(RegretTask, "measure", lambda task, _: {"name": task.target, "regret": math.inf})
    one = '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nruns = 200\nrounds = 2\n'
    (tmp_path / "plan.toml").write_text(one + "regret = { bound = 60.0, horizon = 16 }\n")
    result = overclaim("run", tmp_path / "plan.toml", "--out", tmp_path, "--jobs", 1)
    assert result.exit_code == INTERNAL
    written = json.loads((tmp_path / "record.json").read_text())
    assert len(written["claims"]) == 1
    assert not written["regret"]
    assert "a value that JSON has not" in written["errors"][0]["message"]


@pytest.mark.parametrize("kept", [True, False], ids=["with a ledger", "without"])
def test_a_measurement_of_the_catalogue_that_cannot_be_written_costs_only_its_line(tmp_path, monkeypatch, kept):
    regrets = {"exp3": math.inf, "htinf": math.nan, "exp2": 1.0}
    monkeypatch.setattr(RegretTask, "measure", lambda task, *_: {"name": task.target, "regret": regrets[task.target]})
    plan = Plan((), regret=tuple(map(RegretTask, ("exp3", "htinf", "exp2"))))
    ledger = Ledger.begin(tmp_path, plan, resume=False) if kept else None
    written = run_plan(plan, Execution(1), command="", ledger=ledger)
    assert [row["name"] for row in written["regret"]] == ["exp2"]
    assert [error["name"] for error in written["errors"]] == ["exp3", "htinf"]
    assert status_of(written).code == INTERNAL
    json_text(written)


@pytest.mark.few("compiling")
@pytest.mark.parametrize("fault", ["{{ 1 // 0 }}", "{{ 1 | unknown }}"], ids=["running", "compiling"])
def test_a_fault_of_a_template_is_our_own(tmp_path, monkeypatch, fault):
    monkeypatch.setattr(html, "PackageLoader", lambda _: DictLoader({"report.html": fault}))
    monkeypatch.setattr(html, "environment", html.environment.__wrapped__)  # what was compiled before is kept
    (tmp_path / "plan.toml").write_text(PLAN.rpartition("\n\n")[2])
    result = overclaim("run", tmp_path / "plan.toml", "--out", tmp_path, "--jobs", 1)
    assert result.exit_code == INTERNAL
    assert "\noverclaim: error: internal error, a fault of overclaim: " in f"\n{result.stderr}"


def test_an_unpicklable_target_has_the_same_result_in_one_process(own, monkeypatch):
    """Every block is worth processes, and a lock cannot travel to them."""
    monkeypatch.setattr("overclaim.audit.execution.workers.START", 0.0)
    words = ("--epsilon", 1, "--rounds", 2, "--runs", 40_000)
    one = overclaim("check", "own.py:Locked", *words, "--jobs", 1)
    two = overclaim("check", "own.py:Locked", *words, "--jobs", 2)
    assert (one.exit_code, one.stderr, two.exit_code) == (UNDERPOWERED, "", UNDERPOWERED), two.output
    assert two.stdout == one.stdout
    assert two.stderr == "overclaim: the target cannot be sent to other processes: it is played in this one\n"


PLAN = """
[[claims]]
target = "own.py:{}"
epsilon = 1
rounds = 2
runs = 2000

[[claims]]
target = "agarwal-singh/reduction-threshold"
epsilon = 1
rounds = 2
runs = 2000
"""
KILLED = """
import os
from own import Sound

class Killed(Sound):
    def act(self, state, draws):
        os.kill(os.getpid(), 9)

class Interrupted(Sound):
    def act(self, state, draws):
        raise KeyboardInterrupt
"""


@pytest.mark.few("Interrupted-1")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["Killed", "Interrupted"])
def test_whatever_a_claim_does_to_its_process_the_others_are_written(own, name, jobs):
    (own / "killed.py").write_text(KILLED)
    (own / "plan.toml").write_text(PLAN.replace("own.py:{}", f"killed.py:{name}"))
    done = overclaim("run", "plan.toml", "--json", "--jobs", jobs)
    assert done.exit_code == CRASHED, done.stderr
    assert '"kind": "crashed"' in done.stdout
    assert '"verdict": "FALSIFIED"' in done.stdout
    assert sorted(os.listdir("out")) == [".gitignore", "record.json", "report.html"]


COMMAND = [sys.executable, "-m", "overclaim"]
CHECK = ["check", "agarwal-singh/reduction-threshold", "--epsilon", "1", "--rounds", "2", "--runs", "2000", "--jobs"]
CHECK.append("1")


@pytest.mark.few(1)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a device that is always full")
@pytest.mark.parametrize("words", [CHECK, [*CHECK, "--json"], ["--help"], ["check", "--help"]])
def test_a_full_stdout_is_no_verdict(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run(COMMAND + words, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert (done.returncode, done.stderr) == (2, "overclaim: error: cannot write to stdout: No space left on device\n")


@pytest.mark.slow(reason="a full stdout is its quick sibling")
@pytest.mark.parametrize("words", [CHECK, ["list"]])
def test_a_reader_that_has_gone_is_no_verdict(words):
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(COMMAND + words, stdout=writer, stderr=subprocess.PIPE, text=True, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (2, "overclaim: error: cannot write to stdout: Broken pipe\n")


ENDED = {"rings": "on [0]: SIGALRM arrived: a timer of the target's ran out", "lost": "cannot import "}


@pytest.mark.few(1)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
@pytest.mark.parametrize("name", sorted(ENDED))
def test_what_ends_the_process_or_its_imports_exits_4_with_one_line(own, name):
    words = ["check", f"own.py:{name}", "--epsilon", "1", "--left", "[0]", "--right", "[0, 1]", "--jobs", "1"]
    done = subprocess.run(COMMAND + words, capture_output=True, text=True, check=False)
    assert (done.returncode, error_lines(done.stderr)) == (CRASHED, 1), (done.returncode, done.stderr)
    assert done.stderr.startswith(f"overclaim: error: {ENDED[name]}")


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers")
def test_a_timer_that_a_target_has_set_ends_with_its_audit(own):
    done = check("own.py:rings_later", "--left", "[0]", "--right", "[1]", "--runs", 1000)
    assert done.exit_code == UNDERPOWERED, done.stderr  # it ignores its input
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)
    assert signal.getsignal(signal.SIGALRM) is signal.SIG_DFL


@pytest.mark.slow(reason="a whole command")
def test_what_a_target_registers_for_the_end_is_no_verdict(own):
    words = ["check", "own.py:Later", "--epsilon", "1", "--rounds", "2", "--runs", "2000", "--jobs", "1"]
    done = subprocess.run(COMMAND + words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()[0]) == (UNDERPOWERED, "UNDERPOWERED"), done.stderr


@pytest.mark.slow(reason="two whole commands")
def test_closed_streams_are_no_verdict():
    for closing in (">&-", "<&- >&- 2>&-"):
        shell = ["sh", "-c", f'exec "$@" {closing}', "sh", *COMMAND, *CHECK]
        assert subprocess.run(shell, capture_output=True, check=False).returncode == 2, closing
    assert FALSIFIED == 1


@pytest.mark.slow(reason="a whole command that starts processes")
def test_a_run_on_own_code_needs_no_stderr(tmp_path):
    """The start of a process asked for it: an internal error, 70."""
    (tmp_path / "own.py").write_text("def noisy(data, rng):\n    return data + rng.laplace()\n")
    claim = '[[claims]]\ntarget = "own.py:noisy"\nepsilon = 1\nleft = 0\nright = 1\nruns = 2000\n'
    (tmp_path / "plan.toml").write_text(claim)
    shell = ["sh", "-c", 'exec "$@" 2>&-', "sh", sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", "1"]
    done = subprocess.run([*shell, "--no-blind-spots"], cwd=tmp_path, stdout=subprocess.PIPE, text=True, check=False)
    assert done.returncode == OK
    assert "1 claim: survived" in done.stdout


ENDLESS = """
import threading, time

def forever():
    while True:
        time.sleep(1)

def noisy(data, rng):
    if threading.active_count() < 4:
        threading.Thread(target=forever).start()
    return data + rng.laplace()
"""


@pytest.mark.slow(reason="a whole command")
@pytest.mark.parametrize(
    "words",
    [["check", "--runs", "2000", "--jobs", "1"], pytest.param(["run", "--jobs", "1"], marks=pytest.mark.slow)],
    ids=lambda words: words[0],
)
def test_a_thread_that_never_ends_keeps_no_command_from_its_end(tmp_path, words):
    """Python waits for threads that are no daemons; of a run each claim's first part is played in another process."""
    (tmp_path / "own.py").write_text(ENDLESS)
    (tmp_path / "plan.toml").write_text(
        '[[claims]]\ntarget = "own.py:noisy"\nepsilon = 1\nleft = 0\nright = 1\nruns = 2000\n'
    )
    about = {"check": ["own.py:noisy", "--epsilon", "1", "--left", "0", "--right", "1"], "run": ["plan.toml"]}
    done = subprocess.run(
        [sys.executable, "-m", "overclaim", words[0], *about[words[0]], *words[1:]],
        cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert (done.returncode, error_lines(done.stderr)) == (0, 0), done.stderr
    assert "SURVIVED" in done.stdout.upper()
