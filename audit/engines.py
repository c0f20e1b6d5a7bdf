"""Where tasks are computed: in this process, in processes of this machine, or by other machines.

Every engine yields the results in the order of the items, so a record does not depend on who computed it.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from .cluster import Cluster

Item = TypeVar("Item")
Result = TypeVar("Result")


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    jobs: int = 1,
    progress: str | None = None,
    cluster: Cluster | None = None,
) -> Iterator[Result]:
    """Yield `task(item)` in the order of `items`, on `jobs` processes, with a progress bar on stderr.

    Parameters
    ----------
    jobs : int
        Processes of this machine; 1 stays in this one.
    progress : str or None
        The bar's label; None for no bar.
    cluster : Cluster, optional
        Computes them instead.
    """
    if cluster is not None:
        results = cluster.in_parallel(task, items)
    elif jobs == 1 or len(items) < 2:
        results = map(task, items)
    else:
        from joblib import Parallel, delayed

        # It replaces a worker whose memory has grown, and loses nothing: a user can do nothing about it.
        warnings.filterwarnings("ignore", "A worker stopped while some jobs were given to the executor", UserWarning)
        here = os.getcwd()
        results = Parallel(n_jobs=jobs, return_as="generator")(delayed(_in_folder)(here, task, item) for item in items)
    from tqdm import tqdm

    hidden = progress is None or not sys.stderr.isatty()
    yield from tqdm(results, total=len(items), desc=progress, disable=hidden, leave=False, file=sys.stderr)


def _in_folder(folder: str, task: Callable[[Item], Result], item: Item) -> Result:
    """Run a task in the folder of the process that asked: workers outlive calls, and targets may be relative paths."""
    os.chdir(folder)  # without a look at the current one, which may be gone
    return task(item)
