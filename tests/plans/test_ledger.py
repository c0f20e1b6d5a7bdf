"""The ledger: kill -9 at random moments, other plans, other versions, full disks."""

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing, nullcontext
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.plans.ledger import NAME, Ledger
from overclaim.audit.plans.lock import LedgerError
from overclaim.audit.plans.plan import Plan, read_plan
from overclaim.audit.plans.regret_tasks import RegretTask
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.transcripts import BLOCK
from overclaim.audit.statistics.events import Counts
from overclaim.reports.command_line.running import run_plan
from overclaim.reports.record import to_text
from overclaim.tests.support.command_line import error_lines, overclaim, refused
from overclaim.tests.support.own_code import COIN

PLAN = """
[[claims]]
target = "agarwal-singh/reduction-threshold"
rounds = 2
runs = 100_000

[[claims]]
target = "asi-raman-talwar/batched-threshold"
rounds = 2
runs = 150_000
set = { batch = 1 }

[[claims]]
target = "mine.py:Coin"
epsilon = 1
rounds = 2
runs = 2_000
"""
EARLY = """
[[claims]]
target = "agarwal-singh/reduction-threshold"
rounds = 2
runs = 60_000
set = { calibration = "corrected" }
stop = "early"

[[claims]]
target = "mine.py:Coin"
epsilon = 0.5
rounds = 2
runs = 3_000
stop = "early"

[[claims]]
target = "mechanisms/laplace"
runs = 3_000
stop = "early"
"""
# A plan with a measurement of regret, as the audit of the literature has them; without its self-test.
REGRET = """
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path
import overclaim.reports.command_line.cli as cli
from overclaim.audit.attacks import learner_attacks
from overclaim.audit.pipeline import audited
from overclaim.audit.plans import plan as plans, selftest
measured = plans.RegretTask("agarwal-singh/ftrl-experts", rounds=32, budget=plans.Budget(runs=40))
plans.literature = lambda seed=0: replace(plans.read_plan(Path("plan.toml")), regret=(measured,))
selftest.selftest = lambda *_, **__: []
"""
# Imports once, then forks: each child runs the plan and is killed at a random moment until one gets through.
KILLER = (
    REGRET
    + """
import json, os, random, shutil, signal, time
from overclaim.reports import record
from overclaim.reports.formats import html
kills, out = int(sys.argv[1]), sys.argv[2]
dice, done, records = random.Random(0), 0, []
words = ["run", "--jobs", "1", "--resume", "--out", out]
while done < kills:
    shutil.rmtree(out, ignore_errors=True)
    while True:
        child = os.fork()
        if child == 0:
            sys.argv[1:], devnull = words, os.open(os.devnull, os.O_WRONLY)
            os.dup2(devnull, 1)
            cli.main(words)
        moment = dice.uniform(0, 0.4) if done < kills else 60
        ends = time.monotonic() + moment
        while time.monotonic() < ends:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                break
            time.sleep(0.002)
        else:
            os.kill(child, signal.SIGKILL)
            pid, status = os.waitpid(child, 0)
            done += os.WIFSIGNALED(status)
        if os.WIFEXITED(status):
            code = os.WEXITSTATUS(status)
            assert code in (0, 1), code
            break
    records.append(open(os.path.join(out, "record.json"), encoding="utf-8").read())
    assert set(os.listdir(out)) - {".gitignore"} == {"record.json", "report.html"}, os.listdir(out)
print(json.dumps({"kills": done, "records": records}))
"""
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "plan.toml").write_text(PLAN)
    (tmp_path / "mine.py").write_text(COIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def timeless(text):
    record = json.loads(text)
    for claim in record["claims"]:
        claim["seconds"] = 0
    return to_text({**record, "created": ""})


@pytest.mark.nightly(reason="a minute of kills; kills at one block are slow")
def test_killed_fifty_times(folder):
    Path("plan.toml").write_text(PLAN + EARLY)
    words = [sys.executable, "-c", KILLER, "50", "out"]
    # Files of its own: a process that outlives its killed parent would keep a pipe open.
    with open("printed", "w+") as stdout, open("errors", "w+") as stderr:
        # Most of a minute; the limit only ends what hangs.
        done = subprocess.run(words, stdout=stdout, stderr=stderr, timeout=3600, check=False)
    assert done.returncode == 0, Path("errors").read_text()
    printed = json.loads(Path("printed").read_text())
    assert printed["kills"] >= 50
    whole = subprocess.run(
        [sys.executable, "-c", REGRET + "cli.main(sys.argv[1:])", "run", "--jobs", "1", "--out", "out"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert whole.returncode == 1, whole.stderr
    expected = timeless(Path("out/record.json").read_text(encoding="utf-8"))
    assert {timeless(text) for text in printed["records"]} == {expected}
    assert json.loads(expected)["regret"][0]["name"] == "agarwal-singh/ftrl-experts"


def interrupted(plan, folder, monkeypatch, after):
    """Run a plan and stop it after so many kept blocks; return its ledger, and the claims of the blocks kept."""
    from overclaim.audit.plans import ledger as module

    kept, real = [], module.Page.keep_totals

    def keep(self, stage, block, counts):
        if len(kept) == after:
            (_ for _ in ()).throw(KeyboardInterrupt)  # as Ctrl-C does, no `raise` statement
        kept.append(self.claim)
        real(self, stage, block, counts)

    with monkeypatch.context() as patch:
        patch.setattr(module.Page, "keep_totals", keep)
        ledger = Ledger.begin(folder, plan, resume=True)
        with pytest.raises(KeyboardInterrupt) if after is not None else nullcontext():
            run_plan(plan, Execution(1), command="", ledger=ledger)
    return ledger, kept


@pytest.mark.parametrize(("after", "jobs"), [(1, 1), pytest.param(20, 2, marks=pytest.mark.slow)])
def test_resumed_at_any_block(folder, monkeypatch, after, jobs):
    plan = read_plan(Path("plan.toml"))
    whole = run_plan(plan, Execution(1), command="")
    ledger, _ = interrupted(plan, folder / "out", monkeypatch, after)
    again = run_plan(plan, Execution(jobs), command="", ledger=Ledger.begin(folder / "out", plan, resume=True))
    assert timeless(to_text(again)) == timeless(to_text(whole))
    assert len(ledger.outcomes()) == 3


@pytest.fixture(scope="module")
def early(tmp_path_factory):
    """A plan of early audits and a measurement of regret, its record, and the claim of each block that was kept."""
    folder = tmp_path_factory.mktemp("early")
    (folder / "plan.toml").write_text(EARLY)
    (folder / "mine.py").write_text(COIN)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.setattr("overclaim.audit.plans.selftest.selftest", lambda *_, **__: [])
        measured = RegretTask("agarwal-singh/ftrl-experts", rounds=32, budget=Budget(runs=40))
        plan = replace(read_plan(Path("plan.toml")), regret=(measured,))
        finished, blocks = interrupted(plan, folder / "all", patch, None)
        whole = run_plan(plan, Execution(1), command="", ledger=finished)  # every outcome is kept
        finished.remove()
    return plan, whole, blocks


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="whole runs, each twice")
@pytest.mark.parametrize("claim", [0, 1, 2, 3])
def test_early_audits_and_regret_go_on_at_any_block(early, folder, monkeypatch, claim):
    """In the middle of an exact attack, of two that are learned, whose past is played again, and of regret."""
    monkeypatch.setattr("overclaim.audit.plans.selftest.selftest", lambda *_, **__: [])
    plan, whole, blocks = early
    assert [claim["method"] for claim in whole["claims"]] == ["anytime"] * 3
    assert blocks.count(claim) > 4
    after = blocks.index(claim) + blocks.count(claim) // 2
    ledger, _ = interrupted(plan, folder / "out", monkeypatch, after)
    with closing(sqlite3.connect(ledger.path)) as connection:
        assert connection.execute("SELECT claim, count(*) FROM blocks GROUP BY claim").fetchall() == [
            (claim, blocks.count(claim) // 2)
        ]
    resumed = Ledger.begin(folder / "out", plan, resume=True)
    again, kept = run_plan(plan, Execution(1), command="", ledger=resumed), ledger.outcomes()
    assert timeless(to_text(again)) == timeless(to_text(whole))
    assert len(kept) == 4
    ledger.remove()


def test_a_ledger_of_another_measurement_is_refused(folder):
    plan = Plan((), regret=(RegretTask("agarwal-singh/ftrl-experts", budget=Budget(runs=40)),))
    Ledger.begin(folder, plan, resume=False).page(0).keep_totals("regret", 0, [0.1])
    other = Plan((), regret=(RegretTask("agarwal-singh/ftrl-experts", budget=Budget(runs=41)),))
    with pytest.raises(LedgerError, match="of another plan"):
        Ledger.begin(folder, other, resume=True)


def test_while_a_ledger_is_held_no_page_writes_the_file_back(tmp_path):
    """That takes 45 ms of waiting for a disk; the rows are there for all in the meantime."""
    plan = Plan((Task(target="agarwal-singh/reduction-threshold"),))
    ledger, sizes = Ledger.begin(tmp_path, plan, resume=False), []
    log = tmp_path / f"{NAME}-wal"
    with ledger.held():
        for claim in range(3):
            page = ledger.page(claim)
            page.keep_stage("stage", "x" * 10_000)
            page.close()
            sizes.append(log.stat().st_size)
        page = ledger.page(1)
        assert page.recall_stage("stage") == "x" * 10_000
        page.close()
    assert 0 < sizes[0] < sizes[1] < sizes[2]
    assert not log.exists()
    (tmp_path / NAME).write_bytes(b"no database")
    with pytest.raises(LedgerError, match="file is not a database"):
        ledger.held()


def test_totals_are_kept_to_the_last_digit(tmp_path):
    page = Ledger.begin(tmp_path, Plan(()), resume=False).page(0)
    totals = [0.1 + 0.2, 1e-300, -7.0, 2.0**60 + 2**8]
    page.keep_totals("regret", 3, totals)
    assert page.recall_totals("regret") == {3: totals}
    page.close()


MECHANISM = """
[[claims]]
target = "mechanisms/svt4"
runs = 200_000
"""


@pytest.mark.slow(reason="a whole audit, twice; of learners it is quick")
@pytest.mark.parametrize("after", [pytest.param(1, marks=pytest.mark.slow), 9])
def test_a_mechanism_killed_at_any_block_is_resumed_from_it(folder, monkeypatch, after):
    """kill -9 inside the audit: the finished blocks are not played again, and the record is the same."""
    from overclaim.audit.plans import ledger as module

    (folder / "plan.toml").write_text(MECHANISM)
    plan = read_plan(Path("plan.toml"))
    whole = run_plan(plan, Execution(1), command="")
    ledger = Ledger.begin(folder / "out", plan, resume=True)
    kept, real = [], module.Page.keep

    def keep(self, stage, block, counts):
        if os.getpid() != parent and len(kept) == after:
            os.kill(os.getpid(), signal.SIGKILL)
        kept.append(block)
        real(self, stage, block, counts)

    monkeypatch.setattr(module.Page, "keep", keep)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        run_plan(plan, Execution(1), command="", ledger=ledger)
        os._exit(1)
    assert os.WTERMSIG(os.waitpid(child, 0)[1]) == signal.SIGKILL
    again = run_plan(plan, Execution(1), command="", ledger=Ledger.begin(folder / "out", plan, resume=True))
    blocks = -(-again["claims"][0]["counts"]["runs"] // BLOCK)
    assert kept == list(range(after, blocks))
    assert timeless(to_text(again)) == timeless(to_text(whole))


def test_an_unfinished_run_is_not_overwritten(folder, monkeypatch):
    interrupted(read_plan(Path("plan.toml")), folder / "out", monkeypatch, 3)
    result = overclaim("run", "plan.toml", "--out", "out", "--jobs", 1)
    assert result.exit_code == 2
    assert re.search(
        r"holds \d finished claims and \d finished blocks of an unfinished run\n  hint:  add --re", result.stderr
    )
    assert error_lines(result.stderr) == 1
    resumed = overclaim("run", "plan.toml", "--out", "out", "--jobs", 1, "--resume")
    assert resumed.exit_code == 1
    kept = re.search(r"kept (\d) finished claims?$", resumed.stderr, re.MULTILINE)
    assert kept[1] == result.stderr.split("holds ")[1][0]
    assert sorted(os.listdir("out")) == ["record.json", "report.html"]
    assert "kept" not in overclaim("run", "plan.toml", "--out", "out", "--jobs", 1, "--resume").stderr


@pytest.mark.parametrize("how", ["--resume", "--restart"])
def test_a_data_file_that_changed_is_seen(tmp_path, monkeypatch, how):
    """With `--resume` the claim survived still by the file that it had read before."""
    monkeypatch.chdir(tmp_path)
    Path("noise.txt").write_text("2")
    Path("mine.py").write_text(
        "def count(data, rng):\n    return sum(data) + rng.laplace(scale=float(open('noise.txt').read()))\n"
    )
    claim = '[[claims]]\ntarget = "mine.py:count"\nepsilon = 1\nleft = [0]\nright = [1]\nruns = 2000\n'
    Path("plan.toml").write_text(claim)
    words = ["run", "plan.toml", "--jobs", 1, "--no-blind-spots"]
    ledger = Path("out", NAME)
    with monkeypatch.context() as patched:
        patched.setattr("overclaim.reports.formats.html.render", Mock(side_effect=KeyboardInterrupt))
        assert overclaim(*words).exit_code == 130
    Path("noise.txt").write_text("0.01")
    again = overclaim(*words, how)
    assert again.exit_code == 1, again.output
    assert {
        "--resume": "kept 0 finished claims\naudited again: mine.py:count: noise.txt has changed",
        "--restart": f"removed {ledger}, with 1 finished claims and 0 finished blocks of an interrupted",
    }[how] in again.stderr
    assert json.loads(Path("out/record.json").read_text())["audited"]["files"].keys() == {"mine.py", "noise.txt"}
    ledger.write_text("no ledger at all, but long enough to be looked at\n" * 50)
    restarted = overclaim(*words, "--restart")
    assert restarted.exit_code == 1
    assert restarted.stderr.startswith(f"removed {ledger}, with an interrupted run that cannot be read\n")
    (finished,) = overclaim(*words, "--restart").stderr.splitlines()
    assert finished.startswith("FALSIFIED     mine.py:count  epsilon >= ")


def test_an_interrupted_run_is_resumed_or_removed():
    refused(
        overclaim("run", "plan.toml", "--resume", "--restart"),
        "--resume cannot go with --restart: one goes on with an interrupted run, the other removes it",
    )


@pytest.mark.few(1)
@pytest.mark.parametrize(("old", "new"), [("runs = 2_000", "runs = 2_001"), ("epsilon = 1", "epsilon = 2")])
def test_a_ledger_of_another_plan_is_refused(folder, monkeypatch, old, new):
    interrupted(read_plan(Path("plan.toml")), folder / "out", monkeypatch, 3)
    Path("plan.toml").write_text(Path("plan.toml").read_text().replace(old, new))
    refused(overclaim("run", "plan.toml", "--out", "out", "--resume"), "is of another plan")


def test_a_ledger_of_another_version_is_refused(folder, monkeypatch):
    ledger, _ = interrupted(read_plan(Path("plan.toml")), folder / "out", monkeypatch, 3)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("UPDATE about SET value = 'overclaim 0.0.9' WHERE key = 'versions'")
    connection.close()
    refused(overclaim("run", "plan.toml", "--out", "out", "--resume"), "is of overclaim 0.0.9, this is overclaim")


def test_a_file_that_is_no_ledger(folder):
    (folder / "out").mkdir()
    (folder / "out" / NAME).write_text("something else that is long enough to be looked at\n" * 50)
    refused(overclaim("run", "plan.toml", "--out", "out", "--resume"), "file is not a database")


@pytest.mark.slow(reason="several whole commands")
def test_a_full_disk_loses_nothing_that_was_finished(folder):
    """A file size limit stands for the full disk: sqlite meets the same failing write."""
    code = """
import resource, sys
from overclaim.audit.plans.ledger import Page
from overclaim.reports.command_line.cli import main

blocks, keep = int(sys.argv.pop(1)), Page.keep_totals


def keep_until_full(page, *block):
    global blocks
    keep(page, *block)
    blocks -= 1
    if not blocks:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1, 1))


Page.keep_totals = keep_until_full
main(sys.argv[1:])
"""
    Path("plan.toml").write_text(PLAN.split("\n\n")[0])
    words = ["run", "plan.toml", "--out", "out", "--jobs", "1"]

    def limited(blocks, *more):
        done = [sys.executable, "-c", code, str(blocks), *words, *more]
        return subprocess.run(done, capture_output=True, text=True, check=False)

    full = limited(2)
    assert full.returncode == 2, full.stderr
    assert "nothing that was finished is lost, --resume goes on" in full.stderr
    assert error_lines(full.stderr) == 1
    with sqlite3.connect(f"file:out/{NAME}?mode=ro", uri=True) as connection:
        assert connection.execute("SELECT count(*) FROM blocks").fetchone() == (2,)
    connection.close()
    assert limited(10**9, "--resume").returncode == 1
    resumed = Path("out/record.json").read_text()
    again = overclaim(*words)
    assert again.exit_code == 1, again.output
    assert [c["counts"] for c in json.loads(resumed)["claims"]] == [
        c["counts"] for c in json.loads(Path("out/record.json").read_text())["claims"]
    ]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(folder):
    (folder / "out").mkdir(mode=0o555)
    refused(overclaim("run", "plan.toml", "--out", "out"), "cannot write")


def test_a_page_keeps_counts(tmp_path):
    plan = Plan((Task(target="agarwal-singh/reduction-threshold"),))
    page = Ledger.begin(tmp_path, plan, resume=False).page(0)
    counts = Counts(10, 5, 4, 3, 2, 1)
    page.keep("certify", 7, counts)
    page.keep("certify", 7, counts)
    assert page.recall("certify") == {7: counts}
    assert page.recall("other") == {}
    page.close()


def test_a_worker_does_not_bring_a_removed_ledger_back(tmp_path):
    ledger = Ledger.begin(tmp_path, Plan(()), resume=False)
    ledger.remove()
    with pytest.raises(LedgerError, match="unable to open"):
        ledger.keep_outcome(0, [None, None])
    assert not os.listdir(tmp_path)
