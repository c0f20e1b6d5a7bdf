"""What the page of a benchmark needs: its folder, rows of measurements as Markdown, the day, commit and machine."""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

RESULTS = Path(__file__).resolve().parent / "results"
#: What a page of results has: `dated` for each of its tables, or once.
DATE_AND_COMMIT = re.compile(r"\d{4}-\d\d-\d\d, commit \w")

Rows = list[dict[str, Any]]
T = TypeVar("T")


def row(label: str, values: list[float], **columns: Any) -> dict[str, Any]:
    """Return a row with the median and the extremes of some measurements."""
    return {"what": label, **columns, "median": float(np.median(values)), "low": min(values), "high": max(values)}


def one_of(names: Iterable[str]) -> Callable[[str], str]:
    """Return an argument's type: one of some names. (`choices` of argparse would refuse that none is given.)"""
    allowed = list(names)

    def check(name: str) -> str:
        if name not in allowed:
            raise argparse.ArgumentTypeError(f"must be one of {', '.join(allowed)}, got {name!r}")
        return name

    return check


def spread(measure: Callable[..., T], tasks: Iterable[tuple[Any, ...]], jobs: int) -> Iterator[T]:
    """Yield what is measured of each task, in their order, in so many processes."""
    if jobs == 1:
        yield from (measure(*task) for task in tasks)
        return
    with ProcessPoolExecutor(jobs) as pool:
        yield from pool.map(measure, *zip(*tasks, strict=True))


def line(cells: Any) -> str:
    """Return one line of a Markdown table."""
    texts = (f"{v:.4g}" if isinstance(v, float) else str(v) for v in cells)
    return f"| {' | '.join(texts)} |"


def table(rows: Rows) -> str:
    """Return a Markdown table; a row may lack columns of another."""
    heads = list(dict.fromkeys(name for row in rows for name in row))
    return "\n".join([line(heads), f"|{'---|' * len(heads)}", *(line(r.get(h, "") for h in heads) for r in rows)])


def dated() -> str:
    """Return the sentence that names day, commit and machine: figures are not measured with every change."""
    return f"Measured on {datetime.now(UTC):%Y-%m-%d}, {commit()}, on {machine()}."


def commit() -> str:
    """Return the commit of the code, "-dirty" behind it if files have changed since."""
    command = ["git", "describe", "--always", "--dirty", "--exclude=*"]
    try:
        process = subprocess.run(command, cwd=RESULTS.parent, check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return "commit unknown (no repository)"
    return f"commit {process.stdout.strip()}"


def machine() -> str:
    """Return processor, cores and the versions that decide about speed and last digits."""
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    return f"{processor()}, {os.cpu_count()} cores, {versions}"


def write_page(name: str, text: str, folder: Path = RESULTS) -> None:
    """Write a page of results; a text that names no commit of its own ends with the sentence of `dated`."""
    folder.mkdir(exist_ok=True)
    text = text if DATE_AND_COMMIT.search(text) else f"{text.rstrip()}\n\n{dated()}\n"
    (folder / f"{name}.md").write_text(text, encoding="utf-8")


def show(rows: Rows) -> None:
    """Print the newest row, so that a long table can be watched."""
    print(line(rows[-1].values()), flush=True)


def processor() -> str:
    """Return the processor's name, where the system tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    return next((text.split(":", 1)[1].strip() for text in lines if text.startswith("model name")), platform.machine())
