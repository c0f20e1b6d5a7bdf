"""A cluster that answers wrongly or not at all; what needs two workers as well is tested beside them."""

import re
import signal
import socket
import threading
from contextlib import suppress

import pytest
from click.testing import CliRunner

from overclaim.audit.execution import cluster as module
from overclaim.audit.plans.ledger import Page
from overclaim.reports.command_line.cli import main
from overclaim.tests.support.command_line import error_lines, refused
from overclaim.tests.support.machines import PLAN, run


@pytest.mark.nightly(reason="machines of its own, that wait for each other")
@pytest.mark.parametrize("stays", [True, False])
def test_a_scheduler_that_freezes(machines, folder, monkeypatch, stays):
    """SIGSTOP: its connections stay open, and nobody answers."""
    machines.start(1)
    (folder / "plan.toml").write_text(PLAN.replace("100_000", "3_000_000"))  # it is not all done by then
    hasty = {"CONNECT": 1.0, "ANSWER": 1.0, "POLL_SECONDS": 0.2, "PATIENCE": 3.0} if stays else {}
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
        assert (result.exit_code, error_lines(result.stderr)) == (130, 1), result.stderr
        assert re.search("the scheduler at .* (did not answer for|went away, for more than) 3 s", result.stderr)
        assert (
            "what was finished is kept in out/ledger.sqlite: the same command with --resume goes on" in result.stderr
        )
        refused(run("--out", "other", "--engine", "dask", "--scheduler", machines.address), "there is no scheduler at")
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
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.stderr
    assert f"there is no scheduler at {address}" in result.stderr
