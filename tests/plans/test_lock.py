"""One run owns a folder, its rows bear its key, and its workers end with it."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from overclaim.audit.plans.ledger import NAME as LEDGER
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.lock import NAME, LedgerError, owned
from overclaim.audit.plans.plan import Plan, read_plan
from overclaim.audit.plans.tasks import Task
from overclaim.tests.support.command_line import PLAN, error_lines, overclaim, refused

#: Owns a folder until it is killed.
OWNER = """
import sys, time
from pathlib import Path
from overclaim.audit.plans.lock import owned
with owned(Path(sys.argv[1])):
    print("owned", flush=True)
    time.sleep(600)
"""


def test_a_folder_has_one_owner_and_the_lock_dies_with_it(tmp_path):
    out = tmp_path / "out"
    (tmp_path / "plan.toml").write_text(PLAN)
    with subprocess.Popen([sys.executable, "-c", OWNER, out], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "owned\n"
        for more in ((), ("--resume",)):
            refused(overclaim("run", tmp_path / "plan.toml", "--out", out, *more), "another run is writing to")
            assert os.listdir(out) == [NAME]
        owner.kill()
    with owned(out):
        pass
    assert os.listdir(out) == []


def test_a_lock_does_not_follow_links(tmp_path):
    (tmp_path / "other").write_text("theirs")
    (tmp_path / NAME).symlink_to(tmp_path / "other")
    with pytest.raises(ValueError, match="cannot write to --out"), owned(tmp_path):
        pass
    assert (tmp_path / "other").read_text() == "theirs"


def test_rows_of_another_run_are_not_read(tmp_path):
    """What outlives its run may write into the file of the next one."""
    first = Ledger.begin(tmp_path, Plan((Task(target="mechanisms/laplace"),)), resume=False)
    first.remove()
    second = Ledger.begin(tmp_path, Plan((Task(target="mechanisms/svt4"),)), resume=False)
    first.keep_outcome(0, ["theirs", None])
    first.page(0).keep_totals("certify", 0, [1.0])
    first.page(0).once("search", lambda: 1)
    assert second.outcomes() == {}
    assert second.page(0).recall_totals("certify") == {}
    assert second.page(0).once("search", lambda: 2) == 2
    assert first.outcomes() == {0: ["theirs", None]}


#: Tells the numbers of its workers, and keeps them busy for minutes.
BUSY = """
import os, sys, time
from overclaim.audit.execution.workers import in_parallel

def work(item):
    print(os.getpid(), flush=True)
    end = time.monotonic() + 300
    while time.monotonic() < end:
        sum(range(1000))

if __name__ == "__main__":
    list(in_parallel(work, [1, 2], jobs=2))
"""


#: Killed while it sends the first task: its workers have started, and have nothing to compute.
KILLED = """
import os, sys
from overclaim.audit.execution import workers

class Last:
    def __reduce__(self):
        os.kill(os.getpid(), 9)

if __name__ == "__main__":
    if sys.argv[1] == "alone":
        workers.alone(print, Last())
    list(workers.in_parallel(print, [Last(), Last()], jobs=2))
"""


def lives(process):
    """Whether a process computes: one that nobody has waited for does not."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("how", [pytest.param(signal.SIGTERM, marks=pytest.mark.slow), signal.SIGKILL])
def test_workers_do_not_outlive_their_run(tmp_path, how):
    (tmp_path / "busy.py").write_text(BUSY)
    # A file of its own: whoever inherits a pipe keeps it open.
    with (tmp_path / "told").open("w") as output:
        parent = subprocess.Popen([sys.executable, tmp_path / "busy.py"], stdout=output, stderr=subprocess.DEVNULL)
    deadline = time.monotonic() + 120
    while len((tmp_path / "told").read_text().split()) < 2 and time.monotonic() < deadline:
        time.sleep(0.1)
    workers = [int(word) for word in (tmp_path / "told").read_text().split()]
    assert len(workers) == 2
    assert all(map(lives, workers))
    parent.send_signal(how)
    parent.wait()
    deadline = time.monotonic() + 60  # the machine may be busy; they compute for five minutes
    while any(map(lives, workers)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(map(lives, workers))


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("how", [pytest.param("alone", marks=pytest.mark.slow), "in_parallel"])
def test_workers_without_a_task_do_not_outlive_their_run(tmp_path, how):
    (tmp_path / "killed.py").write_text(KILLED)
    words = [sys.executable, tmp_path / "killed.py", how]
    # A session of its own tells who was started; they go on when their parent has ended.
    parent = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
    # As for who first reads all that its workers may print, it is dead and has its number still.
    assert os.waitid(os.P_PID, parent.pid, os.WEXITED | os.WNOWAIT).si_status == signal.SIGKILL
    assert of_session(parent.pid)
    deadline = time.monotonic() + 240  # the machine may be busy; joblib itself would end them after 300 s
    while of_session(parent.pid) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not of_session(parent.pid)
    parent.wait()


def of_session(number):
    """Return the processes of a session."""
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [one for one in numbers if session_of(one) == number and lives(one)]


def session_of(process):
    try:
        return os.getsid(process)
    except ProcessLookupError:
        return None


DAMAGE = {
    "null": "UPDATE claims SET outcome = 'null'",
    "two nulls": "UPDATE claims SET outcome = '[null, null]'",
    "a number": "UPDATE claims SET outcome = '7'",
    "no JSON": "UPDATE claims SET outcome = '{'",
    "bytes": "UPDATE claims SET outcome = x'ff00'",
    "both": "UPDATE claims SET outcome = '[{}, {}]'",
    "another target": "UPDATE claims SET outcome = replace(outcome, 'reduction-threshold', 'ftrl-ball')",
    "a record with less": """UPDATE claims SET outcome = '[{"name": "agarwal-singh/reduction-threshold"}, null]'""",
    "an error of numbers": """UPDATE claims SET outcome = '[null, {"name": 1}]'""",
    "another claim": "UPDATE claims SET claim = 7",
    "a word for a claim": "UPDATE claims SET claim = 'x'",
    "no table": "DROP TABLE claims",
    "no column": "ALTER TABLE blocks RENAME COLUMN counts TO numbers",
    "another schema": "UPDATE about SET value = '1' WHERE key = 'schema'",
    "no schema": "DELETE FROM about",
}


@pytest.fixture(scope="module")
def killed(tmp_path_factory):
    """A run that was killed when its first claim was finished, and its second one begun."""
    folder = tmp_path_factory.mktemp("killed")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        Path("plan.toml").write_text(PLAN)
        run = overclaim("run", "plan.toml", "--out", "whole", "--jobs", 1, "--json")
        ledger = Ledger.begin(Path("out"), read_plan(Path("plan.toml")), resume=False)
        page = ledger.page(1)
        page.keep_totals("certify", 0, [1, 1, 1, 0, 0, 0])
        page.close()
        ledger.keep_outcome(0, [json.loads(run.stdout)["claims"][0], None])
    return folder


@pytest.fixture
def unfinished(killed, tmp_path, monkeypatch):
    """A copy of that run's folder, and in it the way to its ledger."""
    shutil.copytree(killed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return Path("out") / LEDGER


@pytest.mark.few(3)
@pytest.mark.parametrize("how", DAMAGE)
def test_a_damaged_row_is_one_line(unfinished, how):
    with closing(sqlite3.connect(unfinished)) as connection:
        connection.execute(DAMAGE[how])
        connection.commit()
    result = overclaim("run", "plan.toml", "--out", "out", "--resume", "--jobs", 1)
    assert (result.exit_code, result.stdout, error_lines(result.stderr)) == (2, "", 1), result.output
    assert "it cannot be resumed: remove the file to start over" in result.stderr
    assert "--resume goes on" not in result.stderr


@pytest.mark.parametrize("left", [50, 100, 4096, 5000])
def test_a_truncated_file_is_one_line(unfinished, left):
    with closing(sqlite3.connect(unfinished)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    os.truncate(unfinished, left)
    refused(
        overclaim("run", "plan.toml", "--out", "out", "--resume", "--jobs", 1),
        "it cannot be resumed: remove the file to start over",
    )


@pytest.mark.parametrize(
    "counts", ["null", "[]", "[1, 1]", '["a", 0, 0, 0, 0, 0]', "[1, 2, 0, 0, 0, 0]", "[-1, 0, 0, 0, 0, 0]"]
)
def test_a_damaged_block_is_refused(unfinished, counts):
    with closing(sqlite3.connect(unfinished)) as connection:
        connection.execute("UPDATE blocks SET counts = ?", (counts,))
        key = connection.execute("SELECT run FROM blocks").fetchone()[0]
        connection.commit()
    page = Ledger(unfinished, key).page(1)
    with pytest.raises(LedgerError, match="it cannot be resumed: remove the file"):
        page.recall("certify")
    page.close()


def test_what_is_whole_goes_on(unfinished):
    result = overclaim("run", "plan.toml", "--out", "out", "--resume", "--jobs", 1)
    assert result.exit_code in (0, 1), result.output
    assert sorted(os.listdir("out")) == ["record.json", "report.html"]
