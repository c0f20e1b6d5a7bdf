"""Where tasks are computed: in this process, in processes of this machine, or by other machines.

Wherever it is, results come in the order of the items, so a record does not depend on who computed it.
"""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from itertools import chain
from typing import Any, Protocol, TypeVar

from ...learners.blame import blamed, deliberate, interruption, said
from ...learners.float_errors import handling_of_target, with_handling
from ...learners.protocol import LearnerError
from . import file_reads
from .file_reads import FileReads
from .import_path import keep_own_names, let_be_missing_too
from .progress import TimeLeft, with_bar
from .warned import Warned, collected, receive

Item = TypeVar("Item")
Result = TypeVar("Result")


class Machines(Protocol):
    """Other machines that compute tasks: a `cluster.Cluster`."""

    def in_parallel(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield `task(item)` in the order of `items`."""


#: Items under way that a terminal names.
MAX_NAMED = 3
#: The variable by which Python leaves the current folder out, and a value that only we give it.
SAFE, SAFE_MARK = "PYTHONSAFEPATH", "overclaim"
#: Seconds that worker processes take to start; and between their looks whether who started them is there.
START, WATCH = 1.0, 0.3
#: What ends a command from outside, as far as the system has it.
_ENDS = {getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)}
DEAD = "a worker process died: the target ended it, or it was killed, as for want of memory (then fewer --jobs)"

#: The results that joblib's processes come to, as long as somebody holds them.
_SENT: weakref.WeakSet[Any] = weakref.WeakSet()
#: The streams that were told that a target is played in this process.
_NOTIFIED_STREAMS: weakref.WeakSet[object] = weakref.WeakSet()


class DeadWorkerError(LearnerError):
    """A process that played the target died."""


@dataclass(frozen=True)
class Failed:
    """What a task raised in another process, and no more of it than can travel."""

    error: BaseException


def attempt(task: Callable[[Item], Result], item: Item) -> Result | Failed:
    """Return what a task returns or raises; whose an error is, is told here, where its traceback is."""
    try:
        return task(item)
    except BaseException as error:
        blame = interruption(error) if isinstance(error, KeyboardInterrupt) else blamed(error)  # none hears Ctrl-C
        blame.accident = blame is error and not deliberate(error)  # type: ignore[attr-defined]
        try:
            pickle.loads(pickle.dumps(blame))
        except Exception:
            blame = RuntimeError(said(error))
        return Failed(blame)


def unwrapped(result: Result | Failed) -> Result:
    """Return a result, or raise why there is none."""
    if isinstance(result, Failed):
        raise result.error
    return result


def cores() -> int:
    """Return the number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def in_parallel(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    *,
    jobs: int = 1,
    equal_costs: bool = False,
    progress: str | None = None,
    cluster: Machines | None = None,
) -> Iterator[Result]:
    """Yield `task(item)` in the order of `items`, on `jobs` processes, with a progress bar on stderr.

    Parameters
    ----------
    jobs : int
        Processes of this machine; 1 stays in this one.
    equal_costs : bool
        The items take about the same time each: the first is computed here, and tells whether the others are worth
        the start of processes.
    progress : str or None
        The bar's label; None for no bar.
    cluster : Machines, optional
        Computes them instead.
    """
    results: Iterable[Result]
    if cluster is not None:
        results = cluster.in_parallel(partial(with_handling, handling_of_target(), task), items)
    elif jobs == 1 or len(items) < 2:
        results = map(task, items)
    else:
        results = (_tried if equal_costs else _on_processes)(task, items, jobs)
    yield from with_bar(results, len(items), progress)


def as_completed(
    task: Callable[[Item], Result],
    items: Sequence[Item],
    costs: Sequence[float],
    *,
    jobs: int,
    names: Sequence[str] | None = None,
    line: Callable[[Result], str] = str,
) -> Iterator[tuple[int, Result]]:
    """Yield the place of each item and `task(item)` as they are finished, the long ones begun first.

    A long task that begins last would be waited for by all other processes. The shortest ones of all come before: they
    are something to look at while the long ones run.

    Parameters
    ----------
    costs : sequence of float
        About how many seconds each item takes; the bar learns a factor by which all are off.
    jobs : int
        Processes of this machine; 1 stays in this one.
    names : sequence of str, optional
        What each item is called on a terminal while it is computed; without them nothing is shown.
    line : callable
        What to print of a result when it is there, also where there is no terminal.
    """
    order = sorted(range(len(items)), key=lambda place: -costs[place])
    order = [*order[-jobs:][::-1], *order[:-jobs]]
    numbered = [(place, items[place]) for place in order]
    left = TimeLeft({place: costs[place] for place in order}, jobs, time.monotonic())
    results = map(partial(_numbered, task), numbered) if jobs == 1 else _unordered(task, numbered, jobs)

    def under_way(n_done: int) -> str:
        running = [names[place] for place in left.begun] if names else []
        suffix = f" and {len(running) - MAX_NAMED} more" if len(running) > MAX_NAMED else ""
        return f"[{n_done}/{len(items)}] {', '.join(running[:MAX_NAMED])}{suffix}".rstrip()

    def progress(result: tuple[int, Result]) -> tuple[float, float]:
        seconds = left.after(result[0])
        return left.share, seconds

    yield from with_bar(results, len(items), under_way if names else None, lambda result: line(result[1]), progress)


def _numbered(task: Callable[[Item], Result], item: tuple[int, Item]) -> tuple[int, Result]:
    return item[0], task(item[1])


def _tried(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterable[Result]:
    first, cost = _timed(task, items[0])
    results = [first]
    if START / len(items) < cost < START and len(items) > 2:
        # The first of all may have loaded what the others need too.
        second, second_cost = _timed(task, items[1])
        results, cost = [first, second], min(cost, second_cost)
    left = items[len(results) :]
    if cost * len(left) <= START:
        return chain(results, map(task, left))
    n_local = int(START / cost)  # computed here while the processes start
    remote = _on_processes(task, left[n_local:], jobs)
    return chain(results, map(task, left[:n_local]), remote)


def _timed(task: Callable[[Item], Result], item: Item) -> tuple[Result, float]:
    start = time.perf_counter()
    return task(item), time.perf_counter() - start


def _on_processes(task: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """Return the results, computed by other processes; by this one where the task cannot travel to them."""
    if not _travels(task):
        return _here(task, items)
    finished = _sent(task, items, jobs, return_as="generator")

    def results() -> Iterator[Result]:
        n_done = 0
        try:
            for result in finished:
                yield result
                n_done += 1
        except _UnreadableError:
            yield from _here(task, items[n_done:])

    return results()


def _unordered(
    task: Callable[[Item], Result], items: Sequence[tuple[int, Item]], jobs: int
) -> Iterator[tuple[int, Result]]:
    """Yield the results of numbered items as other processes finish them, which begin one at a time."""
    seen: set[int] = set()
    count = partial(_numbered, task)
    if _travels(task):
        try:
            for result in _sent(count, items, jobs, return_as="generator_unordered", batch_size=1):
                seen.add(result[0])
                yield result
            return
        except _UnreadableError:
            pass
    yield from _here(count, [item for item in items if item[0] not in seen])


class _UnreadableError(Exception):
    """A worker process could not read what it was sent."""


def ignore_harmless_warnings() -> None:
    """Ignore warnings of joblib about which a user can do nothing.

    Nothing is lost: a worker whose memory has grown is replaced, and an audit may have seen enough before the last
    result.
    """
    for harmless in ("A worker stopped while some jobs were given to the executor", r"\d+ tasks "):
        warnings.filterwarnings("ignore", harmless, UserWarning)


def _sent(task: Callable[[Item], Result], items: Sequence[Item], jobs: int, **options: object) -> Iterator[Result]:
    """Return the results that joblib's processes come to."""
    from joblib import Parallel, delayed
    from joblib.externals.loky.process_executor import BrokenProcessPool

    ignore_harmless_warnings()
    folder, task = os.getcwd(), partial(with_handling, handling_of_target(), task)
    with _starting():
        parallel = Parallel(n_jobs=jobs, backend=_watching(), **options)
        run = file_reads.run_name()
        finished = parallel(delayed(_in_worker)(folder, task, item, run) for item in items)
        _SENT.add(finished)
        _end_with_python()

    def results() -> Iterator[Result]:
        try:
            for result in finished:
                yield _received(result)
        except BrokenProcessPool as error:
            if "un-serialize" in str(error):
                raise _UnreadableError from None
            raise DeadWorkerError(DEAD) from None

    return results()


@cache
def _end_with_python() -> None:
    """Have what other processes still compute ended when Python ends: an interrupt leaves it, and joblib waits for it.

    What is registered last is called first: this comes before what joblib has registered for its first processes.
    Its thread that feeds them may be about to send what is given up here: it raises, and nobody needs to hear of it.
    """

    def end() -> None:
        hook = threading.excepthook

        def of_others(args: threading.ExceptHookArgs) -> None:
            if args.thread is None or args.thread.name != "ExecutorManagerThread":
                hook(args)

        threading.excepthook = of_others
        for finished in list(_SENT):
            finished.close()

    threading._register_atexit(end)  # type: ignore[attr-defined]


@contextmanager
def _starting() -> Iterator[None]:
    """Start processes that take no module from the current folder, which may have one called as Python's.

    Nor do they hear Ctrl-C, which a terminal sends to all: while they load they would print where. Who started them
    hears it, and a request to end, after this block, and ends them: half started, it could not.
    """
    before = os.environ.get(SAFE)
    os.environ[SAFE] = before or SAFE_MARK
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS) if hasattr(signal, "pthread_sigmask") else None
    try:
        if mask is not None:
            _start_trackers()
        yield
    finally:
        if before is None:
            del os.environ[SAFE]
        if mask is not None:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _start_trackers() -> None:
    """Start what tracks shared memory while `_ENDS` are blocked: of itself it ignores all but a terminal's end."""
    from multiprocessing import resource_tracker

    from joblib.externals.loky.backend import resource_tracker as of_joblib

    sys.warnoptions.append("ignore:resource_tracker")  # on what an end has left they clean up, and say so afterwards
    for tracker in (resource_tracker, of_joblib):
        tracker.ensure_running()
    sys.warnoptions.pop()
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)  # to start them unblocks what they ignore


def _here(task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """Yield the results, computed in this process, and say so once."""
    if sys.stderr is not None and sys.stderr not in _NOTIFIED_STREAMS:
        _NOTIFIED_STREAMS.add(sys.stderr)
        print("overclaim: the target cannot be sent to other processes: it is played in this one", file=sys.stderr)
    return map(task, items)


def _travels(task: Callable[..., object]) -> bool:
    """Tell whether a task can be sent to another process; a target may hold a lock, a generator, an open file."""
    from joblib.externals.loky.backend.reduction import dumps

    try:
        pickle.loads(dumps(task))
    except KeyboardInterrupt:
        raise
    except BaseException:
        return False
    return True


def _in_worker(
    folder: str, task: Callable[[Item], Result], item: Item, run: str
) -> tuple[Result | Failed, Warned, FileReads | None]:
    """Run a task in the folder of the process that asked: workers outlive calls, and targets may be relative paths.

    Return what was read too, where that is collected for a run.
    """
    let_be_missing_too()
    keep_own_names()  # the folders of targets came with the path
    if os.environ.get(SAFE) == SAFE_MARK:  # not for what audited code starts
        del os.environ[SAFE]
    os.chdir(folder)  # without a look at the current one, which may be gone
    with collected() as warned, file_reads.collected(run) if run else nullcontext() as reads:
        return attempt(task, item), warned, reads


def _received(sent: tuple[Result | Failed, Warned, FileReads | None]) -> Result:
    """Return the result of another process, or raise why there is none; note what it warned of, and what it read."""
    result, warned, reads = sent
    receive(warned)
    file_reads.receive(reads)
    return unwrapped(result)


def _watching() -> object:
    """Return joblib's processes, which watch their parent from their start; others where another target comes first.

    Before joblib 1.5 `Parallel` itself takes no initializer.
    """
    from joblib.parallel import LokyBackend

    class Watching(LokyBackend):  # type: ignore[misc]
        def configure(self, *args: object, **kwargs: object) -> object:
            return super().configure(*args, initializer=die_with, initargs=(os.getpid(), sys.path[0]), **kwargs)

    return Watching()


def die_with(parent: int, folder: str = "") -> None:
    """End this worker process soon after its parent has ended, whatever it computes or waits for, and by no Ctrl-C.

    Each does so from its start: a parent that is killed before the first task would leave it waiting. The `folder`
    that comes first on the parent's path tells joblib's processes apart: a process holds one module of a name.
    """
    signal.signal(signal.SIGINT, lambda *_: None)  # a handler, which programs that audited code starts do not have
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDS)
    ends = os._exit

    def leave() -> None:
        if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
            ends(0)  # Python would wait for the threads of audited code, and who started this process for it

    threading._register_atexit(leave)  # type: ignore[attr-defined]  # before it waits for threads

    def watch() -> None:
        while os.getppid() == parent:  # its number may be taken still: it may have died before this process looked
            time.sleep(WATCH)
        os._exit(1)

    if hasattr(os, "fork"):  # elsewhere a process keeps the number of a dead parent
        threading.Thread(target=watch, daemon=True).start()


def alone(task: Callable[[Item], Result], item: Item) -> Result:
    """Return `task(item)`, computed by another process that may die of it.

    Raises
    ------
    DeadWorkerError
        If it died.
    """
    from joblib.externals.loky.process_executor import BrokenProcessPool

    handling = handling_of_target()
    try:
        with _starting():
            future = _one_process().submit(
                *(_in_worker, os.getcwd(), partial(with_handling, handling, task), item),
                file_reads.run_name(),
            )
        result: Result = _received(future.result())
        return result
    except BrokenProcessPool:
        _one_process.cache_clear()
        raise DeadWorkerError(DEAD) from None
    except KeyboardInterrupt:
        _one_process().shutdown(kill_workers=True)
        _one_process.cache_clear()
        raise


@cache
def _one_process() -> Any:
    from joblib.externals.loky import ProcessPoolExecutor

    return ProcessPoolExecutor(max_workers=1, initializer=die_with, initargs=(os.getpid(),))
