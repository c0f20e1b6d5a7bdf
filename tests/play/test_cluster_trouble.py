"""A cluster that answers wrongly or not at all, and audited code whose exceptions do not travel."""

import json
import os
import re
import signal
import socket
import threading
from contextlib import suppress
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.audit.plans.ledger import Page
from overclaim.audit.play import cluster as module
from overclaim.audit.play.cluster import Cluster, ClusterError
from overclaim.reports.command_line.cli import main
from overclaim.tests.support.machines import PLAN, run
from overclaim.tests.support.own_code import COIN

UNPICKLABLE = """
import os, threading
class Odd(ERROR):
    def __init__(self, one, other):
        super().__init__(f"there {one}")
        self.lock = threading.Lock()
"""


@pytest.mark.parametrize(
    "kind",
    [
        "Exception",
        pytest.param("ValueError", marks=pytest.mark.slow),
        pytest.param("ImportError", marks=pytest.mark.slow),
        "BaseException",
    ],
)
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
    assert learner == "Coin.update raised Odd: there 1 (round 1, run 0)"
    assert re.fullmatch("odd raised Odd on [01]: there 1", mechanism)


@pytest.mark.slow
@pytest.mark.parametrize("stays", [True, False])
def test_a_scheduler_that_freezes(machines, folder, monkeypatch, stays):
    """SIGSTOP: its connections stay open, and nobody answers."""
    machines.start(1)
    (folder / "plan.toml").write_text(PLAN.replace("100_000", "3_000_000"))  # it is not all done by then
    hasty = {"CONNECT": 1.0, "ANSWER": 1.0, "EVERY": 0.2, "PATIENCE": 3.0} if stays else {}
    keep, kept = Page.keep, []

    def keep_and_freeze(*block):
        keep(*block)
        kept.append(block)
        if len(kept) == 3:
            for name, seconds in hasty.items():  # workers that load may take their time
                monkeypatch.setattr(module, name, seconds)
            machines.scheduler.send_signal(signal.SIGSTOP)
            if not stays:
                threading.Timer(1.0, machines.scheduler.send_signal, [signal.SIGCONT]).start()

    monkeypatch.setattr(Page, "keep", keep_and_freeze)
    result = run("--out", "out", "--engine", "dask", "--scheduler", machines.address)
    if stays:
        assert (result.exit_code, result.stderr.count("\n")) == (130, 1), result.stderr
        assert re.search("the scheduler at .* (did not answer for|went away, for more than) 3 s", result.stderr)
        assert (
            "what was finished is kept in out/ledger.sqlite: the same command with --resume goes on" in result.stderr
        )
        asked = run("--out", "other", "--engine", "dask", "--scheduler", machines.address)
        assert (asked.exit_code, asked.stderr.count("\n")) == (2, 1)
        assert "there is no scheduler at" in asked.stderr
        machines.kill_all()
    else:
        assert result.exit_code == 1, result.stderr


HTTP = b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"


@pytest.mark.parametrize(
    ("first", "then"),
    [
        (b"", b""),
        (b"x", b""),
        (b"", b"\0"),
        (HTTP, b""),
        (b"\xff" * 8, b"\xff"),
        ((2**40).to_bytes(8, "little"), b"\0"),
    ],
    ids=["silent", "one byte", "zeros", "http", "an endless message", "a terabyte"],
)
def test_something_else_listens_there(monkeypatch, first, then):
    """Whatever it says, and if it goes on for ever."""
    monkeypatch.setattr(module, "CONNECT", 0.5)
    over = threading.Event()

    def answer(server):
        with suppress(OSError), server.accept()[0] as connection:
            connection.sendall(first)
            while not over.wait(0.02):
                connection.sendall(then)

    with socket.create_server(("127.0.0.1", 0)) as server:
        threading.Thread(target=answer, args=[server], daemon=True).start()
        address = f"tcp://127.0.0.1:{server.getsockname()[1]}"
        words = ["check", "agarwal-singh/reduction-threshold", "--engine", "dask", "--scheduler", address]
        result = CliRunner().invoke(main, words)
        over.set()
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1), result.stderr
    assert f"there is no scheduler at {address}" in result.stderr


def test_a_worker_is_no_scheduler(machines):
    from distributed import Client

    machines.keep()
    with Client(machines.address, timeout=30, set_as_default=False) as client:
        worker = next(iter(client.scheduler_info()["workers"]))
    with pytest.raises(ClusterError, match=f"there is no scheduler at {worker}: a dask worker answers there"):
        Cluster(worker).check()
