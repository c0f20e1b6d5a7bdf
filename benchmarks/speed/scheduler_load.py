"""What a scheduler bears: a real one, fed by the window that audits use; written to benchmarks/results/.

Tasks that do nothing measure what a task costs the scheduler, the client and a worker in processor time, and on the
wire; tasks that sleep show that workers stay busy. From these and the committed speed a plan for 1e10 runs follows.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import astuple
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from overclaim.audit.execution.cluster import Cluster
from overclaim.audit.execution.window import IN_FLIGHT
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import Plan
from overclaim.audit.play.transcripts import BLOCK
from overclaim.audit.statistics.events import Counts
from overclaim.benchmarks import tables

#: The plan: runs, rounds of each, seconds of a task.
RUNS, ROUNDS, TASK = 10**10, 64, 1.0


def start(folder: Path, workers: int) -> tuple[str, psutil.Process, list[psutil.Process]]:
    """Start a scheduler and workers, one thread each, on this machine; return the address and the processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    address = f"tcp://127.0.0.1:{port}"
    common = ["--host", "127.0.0.1", "--no-dashboard"]
    commands = [["scheduler", "--port", str(port), *common]]
    commands += [["worker", address, "--nthreads", "1", "--no-nanny", *common]] * workers
    with (folder / "log").open("w") as log:
        processes = [
            psutil.Process(
                subprocess.Popen([sys.executable, "-m", "dask", *c], cwd=folder, stdout=log, stderr=log).pid
            )
            for c in commands
        ]
    from distributed import Client

    with Client(address, timeout=60, set_as_default=False) as client:
        client.wait_for_workers(workers, timeout=120)
    return address, processes[0], processes[1:]


def used(process: psutil.Process) -> float:
    """Return the processor seconds of a process."""
    times = process.cpu_times()
    return float(times.user + times.system)


def feed(address: str, tasks: int, processes: dict[str, psutil.Process], work: Any, item: Any) -> Any:
    """Send one item a task; return what it cost each process, the wire and the memory."""
    before = {name: used(process) for name, process in processes.items()}
    wire, began = psutil.net_io_counters(pernic=True)["lo"].bytes_sent, time.perf_counter()
    most = 0
    for i, _ in enumerate(Cluster(address, seconds=0).in_parallel(work, [item] * tasks)):
        if i % 500 == 0:
            most = max(most, processes["scheduler"].memory_info().rss)
    took = time.perf_counter() - began
    sent = psutil.net_io_counters(pernic=True)["lo"].bytes_sent - wire
    cost = {f"{name} ms/task": 1e3 * (used(p) - before[name]) / tasks for name, p in processes.items()}
    memory = {f"{name} MB": process.memory_info().rss / 1e6 for name, process in processes.items()}
    return {
        "tasks": tasks,
        "tasks/s": tasks / took,
        **cost,
        "bytes/task": sent / tasks,
        **memory,
        "peak MB": most / 1e6,
    }


def ledger_costs(blocks: int) -> dict[str, float]:
    """Return what keeping a finished block costs: processor time, file, and the counts in memory."""
    import tracemalloc

    with tempfile.TemporaryDirectory() as folder:
        page = Ledger.begin(Path(folder), Plan(()), resume=False).page(0)
        began = time.process_time()
        for number in range(blocks):
            page.keep("certify", number, Counts(*([BLOCK] * len(astuple(Counts())))))
        seconds = time.process_time() - began
        page.close()
        size = sum(file.stat().st_size for file in Path(folder).iterdir())
    tracemalloc.start()
    held = {i: Counts(*(BLOCK + i + j for j in range(len(astuple(Counts()))))) for i in range(10_000)}
    memory = tracemalloc.get_traced_memory()[0] / len(held)
    tracemalloc.stop()
    return {"us/block": 1e6 * seconds / blocks, "file bytes/block": size / blocks, "memory bytes/block": memory}


def plan(empty: dict[str, Any], ledger: dict[str, float], rate: float) -> dict[str, float]:
    """Return what 1e10 runs take, from what was measured; `rate` in run-rounds per second of one core."""
    core_seconds = RUNS * ROUNDS / rate
    tasks, blocks = core_seconds / TASK, RUNS / BLOCK
    busiest = max(empty["scheduler ms/task"], empty["client ms/task"]) / 1e3
    return {
        "run-rounds": RUNS * ROUNDS,
        "core-hours": core_seconds / 3600,
        "blocks": round(blocks),
        "tasks": round(tasks),
        "most workers": round(TASK / busiest / 2),  # half of a core, to leave room for bursts
        "hours with them": core_seconds / (TASK / busiest / 2) / 3600,
        "scheduler core-seconds": tasks * empty["scheduler ms/task"] / 1e3,
        "traffic MB": tasks * empty["bytes/task"] / 1e6,
        "ledger seconds": blocks * ledger["us/block"] / 1e6,
        "ledger MB": blocks * ledger["file bytes/block"] / 1e6,
        "client memory MB": blocks * ledger["memory bytes/block"] / 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--sleepers", type=int, default=8, help="workers that sleep, to have more than processors")
    chosen = parser.parse_args()
    speed = json.loads((tables.RESULTS / "bench.json").read_text(encoding="utf-8"))["speed"]
    rate = 1e6 * next(row["median"] for row in speed if "K=2," in row["what"])
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for tasks, workers, seconds in (
            (chosen.tasks // 10, chosen.workers, 0.0),
            (chosen.tasks, chosen.workers, 0.0),
            (40 * chosen.sleepers, chosen.sleepers, 0.5),
        ):
            address, scheduler, others = start(Path(folder), workers)
            processes = {"scheduler": scheduler, "client": psutil.Process(os.getpid()), "worker": others[0]}
            work, item = (time.sleep, seconds) if seconds else (abs, -1)
            row = feed(address, tasks, processes, work, item)
            busy = row["tasks/s"] * seconds / workers
            row["worker ms/task"] *= workers  # the first one's share, of all tasks
            rows.append(
                {"task": f"sleeps {seconds:g} s" if seconds else "nothing", "workers": workers, **row, "busy": busy}
            )
            for process in [*others, scheduler]:
                process.kill()
                process.wait()
    ledger = ledger_costs(chosen.tasks)
    outcome = {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "dated": tables.dated(),
        "window": IN_FLIGHT,
        "rows": rows,
        "ledger": ledger,
        "million run-rounds/s": rate / 1e6,
        "plan": plan(rows[1], ledger, rate),
    }
    (tables.RESULTS / "scheduler_load.json").write_text(json.dumps(outcome, indent=1) + "\n", encoding="utf-8")
    tables.write_page("scheduler_load", markdown(outcome))
    print(markdown(outcome))


def markdown(outcome: dict[str, Any]) -> str:
    """Return the results as tables."""
    planned = f"{RUNS:.0e} runs of {ROUNDS} rounds at {outcome['million run-rounds/s']:.3g} million run-rounds/s"
    parts = [
        f"# A scheduler's load\n\n{outcome['dated']} {outcome['window']} tasks in flight for each worker.",
        tables.table(outcome["rows"]),
    ]
    for title, facts in (("A finished block", outcome["ledger"]), (f"A plan for {planned}", outcome["plan"])):
        rows = [{"what": what, "measured": value} for what, value in facts.items()]
        parts.append(f"## {title}\n\n{tables.table(rows)}")
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    main()
