"""Ctrl-C and other requests to end: one line, exit code 130 or as a shell has it, nothing half-written."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from overclaim.reports.command_line.console import INTERRUPTED, Failure, clear_interrupt
from overclaim.reports.status import CRASHED
from overclaim.tests.support.command_line import PLAN, overclaim, refused


def hears_ctrl_c():
    """Undo what every child inherits: a shell's job in the background ignores SIGINT, one of nohup SIGHUP."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


WORDS = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated", signal.SIGHUP: "hung up"}


@pytest.mark.few(1)
@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("end", WORDS)
def test_the_end_is_one_line_and_nothing_half_written(tmp_path, end, jobs):
    """A terminal sends Ctrl-C and its own end to every process of the command, `kill` to the one that was started."""
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("runs = 4000", "runs = 400_000_000"))
    words = [sys.executable, "-m", "overclaim", "run", str(plan), "--out", str(tmp_path / "out"), "--jobs", str(jobs)]
    process = subprocess.Popen(
        words,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=hears_ctrl_c,
        start_new_session=True,
    )
    begun, deadline = tmp_path / "out" / "ledger.sqlite", time.monotonic() + 60
    while not blocks_in(begun) and time.monotonic() < deadline:
        time.sleep(0.1)
    (os.kill if end == signal.SIGTERM else os.killpg)(process.pid, end)
    out, err = process.communicate(timeout=60)  # worker processes have ended too, or stderr would be open
    assert process.returncode == 128 + end, err
    kept, ended = err.splitlines()
    assert kept.endswith("--resume goes on")
    assert ended == f"overclaim: {WORDS[end]}"
    assert out == ""
    # The finished blocks, whole; a process that was ended may leave the files in which sqlite writes ahead.
    left = {path.name.removeprefix("ledger.sqlite") for path in Path(tmp_path / "out").glob("ledger*")}
    assert "" in left <= {"", "-wal", "-shm"}
    assert blocks_in(begun)


def blocks_in(ledger):
    """How many blocks are finished; 0 as long as there is no ledger."""
    if not ledger.exists():
        return 0
    try:
        with closing(sqlite3.connect(ledger)) as connection:
            return connection.execute("SELECT count(*) FROM blocks").fetchone()[0]
    except sqlite3.Error:
        return 0


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # of forks, where there are threads
def test_a_child_of_audited_code_ends_as_children_do():
    """It has our handlers, and must not go on as a second copy of the command."""
    with clear_interrupt():
        child = os.fork()
        if child == 0:
            try:
                os.kill(os.getpid(), signal.SIGTERM)
            finally:
                os._exit(1)
        assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGTERM


@pytest.mark.parametrize("end", WORDS)
def test_a_request_that_python_drops_is_made_again(end):
    """As in a `__del__` that was running: the command went on as if nobody had asked."""

    class Asked:
        def __del__(self):
            signal.raise_signal(end)

    @clear_interrupt()
    def goes_on():
        Asked()
        latest = time.monotonic() + 60
        while time.monotonic() < latest:
            time.sleep(0.01)

    inherited = signal.signal(end, signal.default_int_handler)  # it may be ignored, and then goes on being so
    try:
        with pytest.raises(Failure, match=WORDS[end]):
            goes_on()
    finally:
        signal.signal(end, inherited)


# The command line, with Ctrl-C pressed while a module is imported; C code may make another error of it.
PRESS = """
import os, signal, sys
from overclaim.__main__ import run

class Press:
    def __init__(self, module, swallowed):
        assert module not in sys.modules
        self.module, self.swallowed = module, swallowed

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return
        self.module = None
        try:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(10**5))
        except KeyboardInterrupt:
            if self.swallowed:
                raise ImportError("initialization failed") from None
            raise

sys.meta_path.insert(0, Press(sys.argv.pop(1), sys.argv.pop(1) == "swallowed"))
run()
"""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("module", "way"),
    [
        ("click", "raised"),
        ("scipy.special", "swallowed"),
        ("overclaim.reports.record", "raised"),
        ("overclaim.reports.record", "swallowed"),
    ],
)
def test_ctrl_c_while_modules_load_is_one_line_too(module, way):
    words = ["check", "agarwal-singh/reduction-threshold", "--epsilon", "1", "--rounds", "2", "--runs", "1000"]
    words = [sys.executable, "-c", PRESS, module, way, *words, "--jobs", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=hears_ctrl_c)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "overclaim: interrupted\n")


@pytest.mark.few(1)
@pytest.mark.parametrize("end", WORDS)
def test_the_exit_code_is_that_of_the_request_also_where_a_text_is_executed(tmp_path, end):
    """Modules with data classes do; Python then ended `python -m overclaim` by SIGINT, whatever our exit code."""
    pressed = f'exec("os.kill(os.getpid(), {int(end)}); sum(range(10**5))")'
    (tmp_path / "press.py").write_text(PRESS.replace("os.kill(os.getpid(), signal.SIGINT)", pressed))
    words = [sys.executable, "-m", "press", "overclaim.reports.record", "raised", "check", "mechanisms/laplace"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False, preexec_fn=hears_ctrl_c)
    assert (done.returncode, done.stderr) == (128 + end, f"overclaim: {WORDS[end]}\n")


@pytest.mark.slow(reason="it waits until worker processes load")
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="it looks for worker processes in /proc")
def test_ctrl_c_while_worker_processes_load_is_two_lines(tmp_path):
    """Each of them printed the traceback of the import that it was at."""
    (tmp_path / "plan.toml").write_text(PLAN.replace("runs = 4000", "runs = 400_000_000"))
    words = [sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", "2"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": tmp_path}
    process = subprocess.Popen(words, **pipes, preexec_fn=hears_ctrl_c, start_new_session=True)
    children, deadline = Path(f"/proc/{process.pid}/task/{process.pid}/children"), time.monotonic() + 60
    while time.monotonic() < deadline and not any(
        "--process-name" in command(c) for c in children.read_text().split()
    ):
        time.sleep(0.01)
    time.sleep(0.3)  # Python has begun there: before, the signal ends it without a word
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert len(err.splitlines()) == 2, err


# The command line, which is ended while a process of its own is started, and not yet one that it could end.
STARTS = """
import os
from joblib.externals.loky.backend.popen_loky_posix import Popen
from overclaim.__main__ import run

def start(self, process, begin=Popen._launch):
    begin(self, process)
    os.kill(os.getpid(), int(os.environ["PRESSED"]))

Popen._launch = start
run()
"""


# A lock that was given back before its tracker heard of that, as where the end comes between the two.
LEFT = STARTS.replace(
    "run()\n",
    """
from joblib.externals.loky.backend import resource_tracker
resource_tracker.ensure_running = lambda old=resource_tracker.ensure_running: (
    old(), resource_tracker.register("/overclaim-is-gone", "semlock")
)
run()
""",
)


@pytest.mark.few(1)
@pytest.mark.parametrize("starts", [STARTS, LEFT], ids=["", "a lock is left"])
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_end_while_processes_start_is_two_lines(tmp_path, end, starts):
    """It waited for all that these processes had to do, or what was half started printed a traceback.

    Once in some hundred times joblib's tracker of resources warned, after the end, of a lock that it looked for.
    """
    (tmp_path / "plan.toml").write_text(PLAN.replace("runs = 4000", "runs = 400_000_000"))
    words = [sys.executable, "-c", starts, "run", "plan.toml", "--jobs", "2"]
    few = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL")}  # another thread could not put it off
    pipes = {"capture_output": True, "text": True, "cwd": tmp_path, "timeout": 60}
    done = subprocess.run(
        words, **pipes, env=os.environ | few | {"PRESSED": str(int(end))}, preexec_fn=hears_ctrl_c, check=False
    )
    assert done.returncode == 128 + end, done.stderr
    assert len(lines := done.stderr.splitlines()) == 2, done.stderr
    assert lines[0].endswith("--resume goes on")
    assert lines[1] == f"overclaim: {WORDS[end]}"


# The command line, which is ended when the first result of its processes has come.
WAITS = """
import os
from overclaim.audit.execution import workers
from overclaim.__main__ import run

def unwrapped(result, old=workers.unwrapped):
    os.kill(os.getpid(), int(os.environ["PRESSED"]))
    return old(result)

workers.unwrapped = unwrapped
run()
"""


@pytest.mark.slow(reason="it waits until worker processes compute")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_end_while_processes_compute_is_one_line(end):
    """Every second one printed tracebacks: joblib sent more to processes that Python had ended."""
    words = [
        sys.executable,
        "-c",
        WAITS,
        "check",
        "asi-raman-talwar/batched-exp3",
        "--runs",
        "500000000",
        "--jobs",
        "2",
    ]
    pipes = {"capture_output": True, "text": True, "timeout": 60, "env": os.environ | {"PRESSED": str(int(end))}}
    done = subprocess.run(words, **pipes, preexec_fn=hears_ctrl_c, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (128 + end, f"overclaim: {WORDS[end]}\n", "")


def command(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_text()
    except OSError:
        return ""


# The command line, where a target may see that it is played by the first process, as in a comparison with a baseline.
FIRST = """
import os
from overclaim.__main__ import run

os.environ["FIRST"] = str(os.getpid())
run()
"""
PRESSES = """
import os

def count(data, rng):
    if os.environ.get("FIRST") == str(os.getpid()):
        os.kill(os.getpid(), int(os.environ["PRESSED"]))
    return len(data) + rng.laplace(scale=2.0)
"""


def compared(folder, *more, program=("-m", "overclaim"), **named):
    words = [sys.executable, *program, "run", "plan.toml", "--jobs", "1", "--no-blind-spots", *more]
    pipes = {"capture_output": True, "text": True, "cwd": folder, "check": False}
    return subprocess.run(words, **pipes, env=os.environ | named, preexec_fn=hears_ctrl_c)


@pytest.fixture
def accepted(tmp_path):
    """Return a folder with a plan of one claim, and the baseline to compare with: what a history has is not played."""
    folder = tmp_path
    (folder / "mine.py").write_text(PRESSES)
    claim = '[[claims]]\ntarget = "mine.py:count"\nepsilon = 1.0\nleft = ["a", "b"]\nright = ["a"]\nruns = 400\n'
    (folder / "plan.toml").write_text(claim)
    assert compared(folder, "--out", "base").returncode in (0, 3)
    words = [sys.executable, "-m", "overclaim", "accept", "base/record.json", "--baseline", "base.json"]
    subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.mark.slow(reason="several whole commands")
@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_the_end_of_a_comparison_with_a_baseline_is_no_crash_of_the_target(accepted, end):
    """It was recorded as one, "the target raised KeyboardInterrupt", and the ledger was gone."""
    against = ("--out", end.name, "--baseline", "base.json")
    ended = compared(accepted, *against, program=("-c", FIRST), PRESSED=str(int(end)))
    assert ended.returncode == 128 + end, ended.stderr
    *_, kept, last = ended.stderr.splitlines()  # behind the claims that are finished
    assert kept.endswith("--resume goes on")
    assert last == f"overclaim: {WORDS[end]}"
    out = accepted / end.name
    assert (out / "ledger.sqlite").exists()
    assert not (out / "record.json").exists()
    resumed = compared(accepted, *against, "--resume")
    assert resumed.returncode in (0, 3), resumed.stderr
    assert not (out / "ledger.sqlite").exists()


# Targets that end an audit themselves, and one during which Ctrl-C is pressed.
ENDS = """
import os, signal

def raises(data, rng):
    raise KeyboardInterrupt

def raised_for_it(data, rng):
    (_ for _ in data).throw(KeyboardInterrupt)

def pressed(data, rng):
    os.kill(int(os.environ["FIRST"]), signal.SIGINT)
    sum(range(10**7))
    return rng.laplace()
"""
ONE_CLAIM = '[[claims]]\ntarget = "ends.py:{}"\nepsilon = 1.0\nleft = [1, 2]\nright = [1]\nruns = 2000\n'


@pytest.mark.few(1)
@pytest.mark.parametrize(("name", "code"), [("raises", CRASHED), ("raised_for_it", CRASHED), ("pressed", INTERRUPTED)])
@pytest.mark.parametrize("command", ["check", "run", pytest.param("check on 2", marks=pytest.mark.slow)])
def test_who_raises_keyboard_interrupt_is_told_from_who_presses_ctrl_c(tmp_path, name, code, command):
    """`check` called a target's own a Ctrl-C of the user's, with 130; `run` said that the target had crashed."""
    (tmp_path / "ends.py").write_text(ENDS)
    (tmp_path / "plan.toml").write_text(ONE_CLAIM.format(name))
    words = ["check", f"ends.py:{name}", "--epsilon", "1", "--left", "[1, 2]", "--right", "[1]", "--runs", "2000"]
    words += ["--jobs", "2" if command == "check on 2" else "1"]
    words = ["run", "plan.toml", "--jobs", "1"] if command == "run" else words
    done = subprocess.run(
        [sys.executable, "-c", FIRST, *words],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=hears_ctrl_c,
    )
    assert done.returncode == code, done.stderr
    told = "interrupted" if code == INTERRUPTED else f"{name} raised KeyboardInterrupt"
    if command == "run" and code == CRASHED:
        assert f"  ends.py:{name}: KeyboardInterrupt" in done.stdout
    assert told in done.stderr


def test_a_file_that_raises_keyboard_interrupt_has_crashed(tmp_path):
    (tmp_path / "ends.py").write_text("raise KeyboardInterrupt\n")
    refused(
        overclaim("check", f"{tmp_path / 'ends.py'}:any", "--epsilon", 1),
        "ends.py raised KeyboardInterrupt",
        code=CRASHED,
    )
