"""A dask cluster of separate processes on this machine: the same record, whoever dies, and other versions refused."""

import json
import os
import random
import re
import signal
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

import overclaim
from overclaim.audit.execution import cluster as module
from overclaim.audit.execution import window as windows
from overclaim.audit.execution.cluster import Cluster, ClusterError, ClusterLostError
from overclaim.audit.execution.window import Window
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.plans.ledger import Ledger, Page
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import BLOCK
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.mechanisms.claim import Claim
from overclaim.reports.command_line.cli import main
from overclaim.reports.command_line.running import command_line
from overclaim.tests.support.command_line import error_lines, refused
from overclaim.tests.support.machines import PLAN, run, timeless
from overclaim.tests.support.own_code import COIN

LEARNER = BatchedLaplace(Exp3(arms=2, eta=1.0, gamma=0.1), epsilon=1.0, batch=1)
PAIR = Pair.from_json({"left": [[1, 1]] * 3, "right": [[0, 0], [1, 1], [1, 1]]})
HERE = Path(overclaim.__file__).parent

UNPICKLABLE = """
import os, threading
class Odd(ERROR):
    def __init__(self, one, other):
        super().__init__(f"there {one}")
        self.lock = threading.Lock()
"""


class Watch:
    """A memory that calls a function when so many blocks were kept."""

    def __init__(self, **calls):
        self.calls, self.kept = {int(name[2:]): call for name, call in calls.items()}, []

    def recall(self, stage):
        return {}

    def keep(self, stage, block, counts):
        self.kept.append(block)
        if call := self.calls.get(len(self.kept)):
            call()


def audit(cluster=None, memory=None, runs=400_000, **options):
    claim = Claim(epsilon=1.0)
    return falsify(LEARNER, claim, pair=PAIR, runs=runs, seed=3, memory=memory, cluster=cluster, **options).blocks


@pytest.mark.slow(reason="runs on a cluster")
def test_the_same_record_as_on_one_machine(machines, folder):
    machines.keep()
    here = run("--out", "here")
    there = run("--out", "there", "--engine", "dask", "--scheduler", machines.address)
    assert here.exit_code == there.exit_code == 1, there.output
    assert timeless("here/record.json") == timeless("there/record.json")
    assert "Registered to" in (machines.folder / "log").read_text()
    assert not (machines.folder / "mine.py").exists()  # a user's file travels


@pytest.mark.slow(reason="runs on a cluster")
def test_sums_of_blocks_are_items_of_large_audits(machines):
    """The number of blocks that are computed together never changes a count, and each sum is kept once."""
    machines.keep()
    runs = BLOCK * 1024 + 5
    watch = Watch()
    there = audit(Cluster(machines.address), watch, runs)
    assert sorted(watch.kept) == list(range(len(there)))
    assert len(there) < runs // BLOCK
    assert there == audit(runs=runs)


@pytest.mark.slow(reason="ten thousand tasks")
def test_ten_thousand_items_in_order(machines):
    machines.keep()
    items = range(-10_000, 0)
    assert list(Cluster(machines.address).in_parallel(abs, items)) == [abs(item) for item in items]
    assert list(Cluster(machines.address, seconds=0).in_parallel(abs, items[:200])) == [abs(i) for i in items[:200]]


@pytest.mark.slow(reason="runs on a cluster")
def test_a_check_and_what_its_record_says(machines):
    machines.keep()
    words = ["check", "agarwal-singh/reduction-threshold", "--rounds", "2", "--runs", "50000", "--jobs", "1", "--json"]
    here = CliRunner().invoke(main, words)
    there = CliRunner().invoke(main, [*words, "--engine", "dask", "--scheduler", machines.address])
    claims = [{**json.loads(result.stdout), "seconds": 0} for result in (here, there)]
    assert claims[0] == claims[1]


@pytest.mark.slow(reason="runs on a cluster")
def test_a_module_that_is_another_on_the_worker(machines, folder, monkeypatch):
    """A target by the name of its module: the worker has its own copy, or none."""
    machines.keep()
    monkeypatch.syspath_prepend(str(folder))
    words = ["check", "named:Coin", "--epsilon", "1", "--rounds", "2", "--runs", "9000", "--jobs", "1"]
    words += ["--engine", "dask", "--scheduler", machines.address]
    (folder / "named.py").write_text(COIN)
    refused(CliRunner().invoke(main, words), "has no module named: it must be as it is here")
    (machines.folder / "named.py").write_text(COIN + "\n# of yesterday")
    refused(CliRunner().invoke(main, words), "has another text of module named")
    (machines.folder / "named.py").write_text(COIN)
    same = CliRunner().invoke(main, words)
    assert same.exit_code == 3, same.output  # it ignores its losses: no difference is seen


@pytest.mark.slow(reason="runs on a cluster")
def test_the_exception_of_audited_code(machines, folder):
    """It raises in certification only, on a worker."""
    machines.keep()
    raising = "import os\n" + COIN.replace("pass", "if os.getpid() != PID: raise KeyError('there')")
    (folder / "mine.py").write_text(raising.replace("PID", str(os.getpid())))
    words = ["check", "mine.py:Coin", "--epsilon", "1", "--rounds", "2", "--runs", "9000", "--jobs", "1"]
    refused(
        CliRunner().invoke(main, [*words, "--engine", "dask", "--scheduler", machines.address]),
        "mine.py:Coin raised KeyError: 'there'",
        "in update(); round 1, run 0",
        code=4,
    )


@pytest.mark.slow(reason="runs on a cluster")
@pytest.mark.parametrize("kind", ["Exception", "ValueError", "ImportError", "BaseException"])
def test_an_exception_that_cannot_be_pickled(machines, folder, kind):
    """Of a learner and of a mechanism: their claims crash, with its words; the plan goes on."""
    machines.keep()
    raising = f"if os.getpid() != {os.getpid()}: raise Odd(1, 2)"
    text = UNPICKLABLE.replace("ERROR", kind) + COIN.replace("pass", raising)
    (folder / "mine.py").write_text(f"{text}\ndef odd(data, rng):\n    {raising}\n    return 0.0\n")
    plan = PLAN.replace('"mechanisms/laplace"', '"mine.py:odd"\nleft = 0\nright = 1')
    (folder / "plan.toml").write_text(plan)
    result = run("--out", "out", "--engine", "dask", "--scheduler", machines.address)
    assert result.exit_code == 4, result.output
    record = json.loads(Path("out/record.json").read_text())
    assert [claim["verdict"] for claim in record["claims"]] == ["FALSIFIED"]
    assert [error["kind"] for error in record["errors"]] == ["crashed"] * 2
    learner, mechanism = [error["message"] for error in record["errors"]]
    assert learner == "Coin.update raised Odd: there 1"
    assert re.fullmatch("odd raised Odd on [01]: there 1(; an exception is no output here.*)?", mechanism)


def test_a_worker_is_no_scheduler(machines):
    from distributed import Client

    machines.keep()
    with Client(machines.address, timeout=30, set_as_default=False) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match=f"there is no scheduler at {worker}: a dask worker answers there"):
        Cluster(worker).check()


@pytest.mark.slow(reason="machines of its own")
def test_workers_killed_midway(machines, monkeypatch):
    """Both that began, one after the other, so that what every task shares is lost too."""
    monkeypatch.setattr(module, "ANSWER", 2.0)
    machines.start(2)
    first, second = machines.workers

    def replace_second():
        machines.start_worker()
        machines.kill(second)

    watch = Watch(at2=lambda: machines.kill(first), at10=replace_second)
    assert audit(Cluster(machines.address, seconds=0), watch) == audit()
    assert len(watch.kept) > 30
    assert first.returncode == second.returncode == -signal.SIGKILL


@pytest.mark.nightly(reason="machines of its own, that wait for each other")
def test_the_scheduler_restarted_midway(machines):
    machines.start(1)

    def restart():
        machines.kill_all()
        machines.start_scheduler()
        machines.start_worker()

    watch = Watch(at3=restart)
    assert audit(Cluster(machines.address, seconds=0), watch) == audit()
    assert watch.kept == list(range(len(watch.kept)))


@pytest.mark.nightly(reason="machines of its own, that wait for each other")
def test_the_scheduler_stays_away_and_a_resume_goes_on(machines, folder, monkeypatch):
    machines.start(1)
    words = ["--out", "out", "--engine", "dask", "--scheduler", machines.address]
    keep, kept = Page.keep, []

    def keep_and_kill(*block):
        keep(*block)
        kept.append(block)
        if len(kept) == 3:
            machines.kill(machines.scheduler)

    with monkeypatch.context() as patch:
        patch.setattr(module, "PATIENCE", 5.0)  # a busy machine answers late
        patch.setattr(module, "CONNECT", 5.0)
        patch.setattr(Page, "keep", keep_and_kill)
        lost = run(*words)
    assert (lost.exit_code, error_lines(lost.stderr)) == (130, 1), lost.stderr
    assert f"the scheduler at {machines.address} went away" in lost.stderr
    assert "what was finished is kept in out/ledger.sqlite: the same command with --resume goes on" in lost.stderr
    plan = read_plan(Path("plan.toml"))
    assert len(Ledger.begin(Path("out"), plan, resume=True).page(0).recall(kept[0][1])) >= 3
    machines.start(1)
    assert run(*words, "--resume").exit_code == 1
    assert run("--out", "whole").exit_code == 1
    assert timeless("out/record.json") == timeless("whole/record.json")


def package(folder, name, **files):
    """Make a package `overclaim` that shares our rooms but for these files; return the folder to find it in."""
    copy = folder / name / "overclaim"
    copy.mkdir(parents=True)
    for room in ("audit", "learners", "mechanisms", "reports"):
        (copy / room).symlink_to(HERE / room)
    (copy / "__init__.py").write_text((HERE / "__init__.py").read_text())
    for file, text in files.items():
        (copy / file).unlink()
        if text:
            (copy / file).write_text(text)
        else:
            (copy / file).mkdir()
    return os.pathsep.join([str(copy.parent), *sys.path])


@pytest.mark.slow(reason="machines of its own")
def test_a_worker_of_another_version_is_refused(machines, tmp_path):
    init = (HERE / "__init__.py").read_text()
    older = package(tmp_path, "older", **{"__init__.py": init.replace(overclaim.__version__, "0.0.9")})
    machines.start(1)
    cluster = Cluster(machines.address, seconds=0)

    def join():
        machines.start_worker(PYTHONPATH=older)
        machines.wait(2)

    watch = Watch(at1=join)
    with pytest.raises(ClusterError, match=r"is of overclaim 0\.0\.9, .* this is overclaim") as late:
        audit(cluster, watch, runs=3_000_000)
    assert not isinstance(late.value, ClusterLostError)
    words = ["check", "agarwal-singh/reduction-threshold", "--engine", "dask", "--scheduler", machines.address]
    refused(CliRunner().invoke(main, words), "is of overclaim 0.0.9")
    machines.kill(machines.workers.pop())
    foreign = package(tmp_path, "foreign", audit="")
    machines.start_worker(PYTHONPATH=foreign)
    machines.wait(2)
    with pytest.raises(ClusterError, match=r"cannot load this overclaim: .*ModuleNotFoundError"):
        cluster.check()
    machines.kill_all()  # none of these is for another test


@pytest.mark.slow(reason="machines of its own")
def test_a_cluster_without_workers(machines, monkeypatch):
    machines.kill_all()
    machines.start_scheduler()
    machines.wait(0)
    monkeypatch.setattr(module, "CONNECT", 1.0)
    monkeypatch.setattr(module, "PATIENCE", 0.5)
    with pytest.raises(ClusterError, match="has no worker: start some by dask worker tcp"):
        Cluster(machines.address).check()
    with pytest.raises(ClusterLostError, match=r"had no worker for 0\.5 s"):
        list(Cluster(machines.address).in_parallel(abs, [1]))


@pytest.mark.nightly(reason="machines of its own, that wait for each other")
def test_workers_paused_for_memory_are_none(machines, monkeypatch):
    from distributed import Client

    machines.kill_all()
    machines.start_scheduler()
    machines.start_worker(DASK_DISTRIBUTED__WORKER__MEMORY__PAUSE="1e-6")
    with Client(machines.address, timeout=60, set_as_default=False) as client:
        while not client.scheduler_info()["workers"]:  # `wait_for_workers` counts no paused ones
            time.sleep(0.1)
    monkeypatch.setattr(module, "PATIENCE", 3.0)
    with pytest.raises(ClusterLostError, match=r"had no worker for 3 s; 1 are paused for want of memory"):
        list(Cluster(machines.address, seconds=0).in_parallel(abs, range(100_000)))
    machines.kill_all()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--engine", "dask"], "--engine dask needs a scheduler\n  hint:  give --scheduler tcp://HOST:PORT"),
        (["--scheduler", "tcp://127.0.0.1:1"], "--scheduler is for --engine dask"),
        (["--engine", "dask", "--scheduler", "127.0.0.1:1"], "must be tcp://HOST:PORT, got '127.0.0.1:1'"),
        (["--engine", "dask", "--scheduler", "tcp://127.0.0.1:1"], "there is no scheduler at tcp://127.0.0.1:1"),
    ],
)
def test_a_cluster_asked_for_wrongly(folder, monkeypatch, words, message):
    monkeypatch.setattr(module, "CONNECT", 0.5)
    for command in (["run", "plan.toml"], ["check", "agarwal-singh/reduction-threshold"]):
        refused(CliRunner().invoke(main, [*command, *words]), message)
    assert not Path("out/ledger.sqlite").exists()


@pytest.mark.parametrize("command", [["run", "plan.toml"], ["check", "agarwal-singh/reduction-threshold"]])
def test_this_machine_can_be_asked_for(folder, command):
    """It was called `processes`."""
    result = CliRunner().invoke(main, [*command, "--engine", "local", "--scheduler", "tcp://127.0.0.1:1"])
    assert "--scheduler is for --engine dask" in result.stderr


def test_without_dask(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ClusterError, match=r"pip install 'overclaim\[cluster\]'"):
        Cluster("tcp://127.0.0.1:1").check()


def test_the_command_of_a_record_names_no_cluster(monkeypatch):
    words = ["overclaim", "run", "a.toml", "--engine", "dask", "--scheduler=tcp://here:1", "--resume", "--jobs", "2"]
    monkeypatch.setattr(sys, "argv", words)
    assert command_line() == "overclaim run a.toml --jobs 2"


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_window_hands_every_result_out_once_and_in_order(seconds):
    """Workers of any speed, and losses of all that is out: simulated, with the bounds on what is out and waiting."""
    dice = random.Random(1)
    for items in (0, 1, 7, 500, 5000):
        window, out, got, sizes = Window(range(items), seconds), [], [], []
        while window.left:
            spans = window.take(len(out), 3)
            sizes += map(len, spans)
            out += spans
            assert out
            assert len(out) <= 3 * windows.IN_FLIGHT
            assert len(window._early) <= windows.MAX_LEAD * 3 * windows.IN_FLIGHT
            if dice.random() < 0.05:
                window.give_back(out)
                out = []
                continue
            # The oldest is slow: it seldom comes first.
            span = out.pop(dice.randrange(1, len(out)) if len(out) > 1 and dice.random() < 0.98 else 0)
            window.put(span, list(span), 0.01 * len(span))
            got += window.ready()
        assert got == list(range(items))
        assert max(sizes, default=1) == 1 or seconds
        assert items < 5000 or not seconds or max(sizes) >= 50  # of the 100 that fit a second
