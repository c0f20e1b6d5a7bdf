"""Where tasks are computed: in this process, in processes of this machine, or by other machines.

Every engine yields the results in the order of the items, so a record does not depend on who computed it.
"""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Protocol, TypeVar

from ...learners.protocol import LearnerError

Item = TypeVar("Item")
Result = TypeVar("Result")


class Machines(Protocol):
    """Other machines that compute tasks: a `cluster.Cluster`."""

    def in_parallel(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield `task(item)` in the order of `items`."""


#: What a task may end with for a reason that the user is told.
TOLD = (LearnerError, ValueError, OverflowError, MemoryError)


@dataclass(frozen=True)
class Failed:
    """Why a task failed, in words: an exception of audited code may not survive the way to another process."""

    kind: type[Exception]
    message: str


def attempt(task: Callable[[Item], Result], item: Item) -> Result | Failed:
    """Return `task(item)`, or why it failed."""
    try:
        return task(item)
    except TOLD as error:
        return Failed(next(kind for kind in TOLD if isinstance(error, kind)), str(error))


def unwrapped(result: Result | Failed) -> Result:
    """Return a result, or raise why there is none."""
    if isinstance(result, Failed):
        raise result.kind(result.message)
    return result


#: Seconds that worker processes take to start.
START = 1.0


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    jobs: int = 1,
    alike: bool = False,
    progress: str | None = None,
    cluster: Machines | None = None,
) -> Iterator[Result]:
    """Yield `task(item)` in the order of `items`, on `jobs` processes, with a progress bar on stderr.

    Parameters
    ----------
    jobs : int
        Processes of this machine; 1 stays in this one.
    alike : bool
        The items take about the same time each: the first is computed here, and tells whether the others are worth
        the start of processes.
    progress : str or None
        The bar's label; None for no bar.
    cluster : Machines, optional
        Computes them instead.
    """
    results: Iterable[Result]
    if cluster is not None:
        results = cluster.in_parallel(task, items)
    elif jobs == 1 or len(items) < 2:
        results = map(task, items)
    else:
        results = (_tried if alike else _on_processes)(task, items, jobs)
    if progress is not None and sys.stderr.isatty():
        from tqdm import tqdm  # even a hidden bar makes a lock, which an interrupted worker leaves behind

        results = tqdm(results, total=len(items), desc=progress, leave=False, file=sys.stderr)
    yield from results


def _tried(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterable[Result]:
    began = time.perf_counter()
    first = task(items[0])
    each = time.perf_counter() - began
    if each * (len(items) - 1) <= START:
        return chain([first], map(task, items[1:]))
    mine = 1 + int(START / each)  # computed here while the processes start
    others = _on_processes(task, items[mine:], jobs)
    return chain([first], map(task, items[1:mine]), others)


def _on_processes(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterable[Result]:
    from joblib import Parallel, delayed

    # A user can do nothing about either, and nothing is lost: a worker whose memory has grown is replaced, and who
    # asked may have seen enough before the last result.
    for harmless in ("A worker stopped while some jobs were given to the executor", r"\d+ tasks "):
        warnings.filterwarnings("ignore", harmless, UserWarning)
    here = os.getcwd()
    results: Iterable[Result | Failed] = Parallel(n_jobs=jobs, return_as="generator")(
        delayed(_in_folder)(here, task, item) for item in items
    )
    return map(unwrapped, results)


def _in_folder(folder: str, task: Callable[[Item], Result], item: Item) -> Result | Failed:
    """Run a task in the folder of the process that asked: workers outlive calls, and targets may be relative paths."""
    os.chdir(folder)  # without a look at the current one, which may be gone
    return attempt(task, item)
