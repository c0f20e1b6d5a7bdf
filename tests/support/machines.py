"""A dask cluster of separate processes on this machine, and a plan to run on it."""

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

from click.testing import CliRunner

from overclaim.reports.command_line.cli import main
from overclaim.reports.record import to_text

PLAN = """
[[claims]]
target = "agarwal-singh/reduction-threshold"
rounds = 2
runs = 100_000

[[claims]]
target = "mine.py:Coin"
epsilon = 1
rounds = 2
runs = 2_000

[[claims]]
target = "mechanisms/laplace"
epsilon = 1
runs = 8_000
"""


def timeless(path):
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    for claim in record["claims"]:
        claim["seconds"] = 0
    return to_text({**record, "created": ""})


class Machines:
    """A scheduler and its workers, each a process of its own that can be killed."""

    def __init__(self, folder):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
        self.folder, self.scheduler, self.workers = folder, None, []

    def _start(self, *arguments, **environment):
        arguments = [sys.executable, "-m", "dask", *arguments, "--host", "127.0.0.1", "--no-dashboard"]
        paths = os.pathsep.join([str(self.folder), *sys.path])  # not the folder of the audit
        environment = {"PYTHONPATH": paths, **environment}
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(
                arguments,
                cwd=self.folder,
                env={**os.environ, **environment},
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )

    def start_scheduler(self):
        self.scheduler = self._start("scheduler", "--port", self.address.rpartition(":")[2])

    def start_worker(self, **environment):
        self.workers.append(
            self._start(
                "worker", self.address, "--nthreads", "1", "--no-nanny", "--death-timeout", "60", **environment
            )
        )

    def wait(self, workers):
        from distributed import Client

        with Client(self.address, timeout=30, set_as_default=False) as client:
            if workers:
                client.wait_for_workers(workers, timeout=60)

    def kill(self, process):
        process.send_signal(signal.SIGKILL)
        process.wait()

    def kill_all(self):
        for process in [*self.workers, self.scheduler]:
            if process is not None:
                self.kill(process)
        self.workers = []

    def start(self, workers=1):
        """Have a scheduler and so many workers, none of them of an earlier test."""
        self.kill_all()
        self.start_scheduler()
        for _ in range(workers):
            self.start_worker()
        self.wait(workers)

    def keep(self):
        """Have a scheduler and two workers; those of an earlier test will do if nothing happened to them."""
        alive = [p for p in [self.scheduler, *self.workers] if p is not None and p.poll() is None]
        if len(alive) != 3 or len(self.workers) != 2:
            self.start(2)


def run(*arguments):
    return CliRunner().invoke(main, [str(word) for word in ("run", "plan.toml", "--jobs", 1, *arguments)])
