"""The workers of a dask cluster as an engine: windows of tasks, refusals of other versions, returns after losses."""

from __future__ import annotations

import hashlib
import logging
import math
import pickle
import pickletools
import re
import socket
import sys
import threading
import time
import uuid
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import count
from pathlib import Path
from typing import Any, Generic

from .engines import Item, Result
from .provenance import digest, packages

#: Seconds to wait for a scheduler and its first worker at the beginning, and for both to come back midway.
CONNECT, PATIENCE = 5.0, 30.0
#: Seconds within which a scheduler hands out results that it says are there; else they are computed again.
ANSWER = 10.0
#: Tasks in flight for each worker, and how many times as many may be ahead of the oldest that is not finished.
IN_FLIGHT, AHEAD = 4, 16
#: Tasks become smaller towards the end, so that workers end together, down to this share of what they should take.
LEAST = 0.05
#: The rooms whose code a block runs.
_ROOMS = ("mechanisms", "learners", "audit")
#: Modules whose text need not be compared: their versions are.
_COMPARED = {*sys.stdlib_module_names, "overclaim", "numpy", "scipy", "sklearn", "numba"}


class ClusterError(Exception):
    """The cluster cannot be used: unreachable, without workers, or of other versions."""


class ClusterLostError(ClusterError):
    """The cluster went away midway."""


@dataclass(frozen=True)
class Cluster:
    """The workers of a dask scheduler, by its address: a cluster travels to other processes.

    What a dead worker had in hand, the others compute. A scheduler that is restarted is waited for, and what it had
    not finished is submitted again. Only so much is in flight, so memory does not grow with the number of items.

    Parameters
    ----------
    scheduler : str
        Its address, `tcp://HOST:PORT`, or `tls://HOST:PORT` with dask's own configuration of certificates.
    seconds : float
        What a task should take: shorter items are sent several at a time.

    Raises
    ------
    ValueError
        If the address is none.
    """

    scheduler: str
    seconds: float = 1.0

    def __post_init__(self) -> None:
        found = re.fullmatch(r"(tcp|tls)://[^\s/]+:(\d{1,5})", self.scheduler)
        if not found or int(found[2]) > 65535:
            raise ValueError(f"a scheduler's address must be tcp://HOST:PORT, got {self.scheduler!r}")

    def check(self) -> None:
        """Ask every worker what its results depend on, before anything is computed.

        Raises
        ------
        ClusterError
            If the scheduler cannot be reached, has no worker, or a worker's versions or code are others than ours.
        """
        with self._client() as client:
            try:
                client.wait_for_workers(1, timeout=CONNECT)
            except TimeoutError:
                start = f"dask worker {self.scheduler} --nthreads 1"
                raise ClusterError(f"the scheduler at {self.scheduler} has no worker: start some by {start}") from None
            for worker, found in client.run(environment, on_error="return").items():
                compare(worker, found, environment())

    def in_parallel(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield `task(item)` in the order of `items`, computed by the workers.

        Raises
        ------
        ClusterError
            If a worker, of now or later, has other versions or code, or lacks a module that the task needs.
        ClusterLostError
            If the scheduler or all its workers stay away, or one task kills worker after worker.
        """
        import cloudpickle  # type: ignore[import-untyped,unused-ignore]

        payload = cloudpickle.dumps(task)
        texts = _texts(payload)
        fast = "numba" in texts  # the engine's name
        needed = {"fast": fast, "needed": environment(fast=fast), "modules": modules_of(texts)}
        window: _Window[Item, Result] = _Window(items, self.seconds)
        midway = False
        while window.left:
            with self._client(midway=midway) as client:
                yield from self._drain(client, window, payload, needed)
            midway = True  # the scheduler went away

    def _drain(
        self, client: Any, window: _Window[Item, Result], payload: bytes, needed: Mapping[str, Any]
    ) -> Iterator[Result]:
        """Yield results until all have come or the scheduler is lost; what was in flight is then open again."""
        from distributed import as_completed

        # A task of its own: sent once, handed from worker to worker, and made again where its worker died.
        shared = client.submit(bytes, payload, key=f"overclaim-task-{uuid.uuid4().hex}")
        group, numbers, workers = f"overclaim-{uuid.uuid4().hex}", count(), _Workers(client)
        running: dict[Any, range] = {}
        done = as_completed(loop=client.loop)
        while window.left:
            spans = window.take(len(running), workers.count())
            if spans:
                some = [pickle.dumps([window.items[i] for i in span]) for span in spans]
                keys = [(group, next(numbers)) for _ in spans]
                futures = client.map(compute, some, key=keys, task=shared, **needed)
                running.update(zip(futures, spans, strict=True))
                done.update(futures)
            while not done.has_ready() and client.status == "running":
                time.sleep(0.005)
                if workers.missing() > PATIENCE:
                    paused = f"; {workers.paused} are paused for want of memory" if workers.paused else ""
                    raise ClusterLostError(
                        f"the scheduler at {self.scheduler} had no worker for {PATIENCE:g} s{paused}"
                    )
            finished = [future for future in done.next_batch(block=False) if not future.cancelled()]
            results = _gathered(client, finished)
            for future, result in zip(finished, results, strict=False):
                window.put(running.pop(future), *result)
            yield from window.ready()
            if client.status != "running" or len(results) < len(finished):
                window.give_back(running.values())
                return

    def _greet(self) -> None:
        """Raise OSError unless someone greets there, as schedulers do: dask's client would wait for a silent one."""
        protocol, _, place = self.scheduler.partition("://")
        host, _, port = place.rpartition(":")
        with socket.create_connection((host.strip("[]"), int(port)), timeout=CONNECT) as connection:
            if protocol == "tcp" and not connection.recv(1):
                raise OSError("closed at once")

    @contextmanager
    def _client(self, *, midway: bool = False) -> Iterator[Any]:
        """Yield a connection; dask's own words about trouble stay unsaid."""
        try:
            from distributed import Client
        except ImportError:
            raise ClusterError("--engine dask needs dask.distributed: pip install 'overclaim[cluster]'") from None
        client, ends = None, time.monotonic() + PATIENCE
        loggers = [logging.getLogger(name) for name in ("distributed", "asyncio")]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            while client is None:
                try:
                    self._greet()
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")  # of other versions: we compare them ourselves
                        client = Client(self.scheduler, timeout=CONNECT, set_as_default=False)
                except OSError:
                    if not midway:
                        raise ClusterError(f"there is no scheduler at {self.scheduler}") from None
                    if time.monotonic() > ends:
                        gone = f"the scheduler at {self.scheduler} went away, for more than {PATIENCE:g} s"
                        raise ClusterLostError(gone) from None
                    time.sleep(0.2)
            yield client
        finally:
            if client is not None:
                client.close(timeout=2)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _gathered(client: Any, futures: Sequence[Any]) -> list[Any]:
    """Return the results of finished tasks; none if they do not come: a scheduler may ask a dead worker for ever."""
    from distributed import CancelledError

    if not futures:
        return []
    fetch = partial(client.gather, futures, asynchronous=True)
    try:
        gathered: list[Any] = client.sync(fetch, callback_timeout=ANSWER)
    except (OSError, TimeoutError, CancelledError):
        return []
    except Exception as error:
        raise explained(error) from None
    return gathered


class _Window(Generic[Item, Result]):
    """Items on their way to results in order: what is to be sent, what was sent in vain, what came back early."""

    def __init__(self, items: Sequence[Item], seconds: float) -> None:
        self.items, self.seconds = items, seconds
        self._cost: float | None = None  # seconds an item, lately
        self._next = 0  # the next result to hand out
        self._fresh = 0  # the first item that was never sent
        self._again: deque[range] = deque()
        self._early: dict[int, list[Result]] = {}

    @property
    def left(self) -> int:
        """The number of results that were not handed out."""
        return len(self.items) - self._next

    def take(self, running: int, workers: int) -> list[range]:
        """Return what to send now, as ranges of items: nothing while enough is running or too much came early."""
        most = IN_FLIGHT * max(1, workers)
        spans: list[range] = []
        if running > most // 2:
            return spans
        while len(spans) + running < most:
            if self._again:
                spans.append(self._again.popleft())
            elif self._fresh < len(self.items) and len(spans) + running + len(self._early) < AHEAD * most:
                end = self._fresh + self._size(len(self.items) - self._fresh, most)
                spans.append(range(self._fresh, end))
                self._fresh = end
            else:
                break
        return spans

    def _size(self, fresh: int, most: int) -> int:
        """Return how many items the next task has: as its seconds allow, and fewer towards the end."""
        if not self._cost:
            return 1
        fit = self.seconds / self._cost
        return min(fresh, max(1, int(min(fit, max(fresh / most, LEAST * fit)))))

    def put(self, span: range, results: list[Result], seconds: float) -> None:
        """Take the results of a task in, and how long it took."""
        self._early[span.start] = results
        cost = max(seconds, 1e-6) / len(span)
        self._cost = cost if self._cost is None else 0.8 * self._cost + 0.2 * cost

    def give_back(self, spans: Iterable[range]) -> None:
        """Have these sent again: they were lost."""
        self._again.extend(sorted(spans, key=lambda span: span.start))

    def ready(self) -> Iterator[Result]:
        """Yield the results whose turn has come."""
        while self._next in self._early:
            for result in self._early.pop(self._next):
                self._next += 1
                yield result


class _Workers:
    """How many workers there are that compute, asked for every other second."""

    def __init__(self, client: Any) -> None:
        self._client, self._count = client, 0
        self.paused = 0  # they take no tasks until they have memory again
        self._asked, self._seen = -math.inf, time.monotonic()

    def count(self) -> int:
        """Return the number of workers that compute; 0 before the scheduler has answered."""
        now = time.monotonic()
        if now - self._asked > 2:
            with suppress(OSError, TimeoutError):
                known = self._client.sync(self._client.scheduler.identity)["workers"].values()
                self.paused = sum(worker["status"] == "paused" for worker in known)
                self._count = len(known) - self.paused
            self._asked = time.monotonic()
        return self._count

    def missing(self) -> float:
        """Return the seconds since there was a worker."""
        if self.count():
            self._seen = time.monotonic()
        return time.monotonic() - self._seen


@cache
def environment(*, fast: bool = False) -> str:
    """Return what the results of a block depend on besides its key: versions of packages, and our own code."""
    root = Path(__file__).parents[2]
    files = sorted(path for room in _ROOMS for path in (root / room).glob("**/*.py"))
    text = hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()
    return f"{packages(fast=fast)}, code {text[:12]}"


def _texts(payload: bytes) -> set[str]:
    """Return every text in a pickle, the names of modules among them."""
    return {argument for _, argument, _ in pickletools.genops(payload) if isinstance(argument, str)}


def modules_of(texts: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """Return the modules that a pickle's texts name, with the hashes of their files, but for those of known versions.

    A user's file given by its path is in the pickle itself. Its own imports are not, nor is a target given by the
    name of its module: there the worker uses its own copy, which must be the same.
    """
    names = sorted(text for text in texts if text in sys.modules and text.partition(".")[0] not in _COMPARED)
    return tuple((name, digest(name)) for name in names)


def compute(
    items: bytes, *, task: bytes, fast: bool, needed: str, modules: tuple[tuple[str, str], ...]
) -> tuple[list[Any], float]:
    """On a worker: return the results of some items and the seconds that they took, or refuse.

    Users' code knows nothing of threads, so a worker computes one task at a time.
    """
    from distributed import get_worker

    with _ALONE:
        compare(get_worker().address, environment(fast=fast), needed)
        call = _unpacked(task, modules)
        began = time.perf_counter()
        results = [call(item) for item in pickle.loads(items)]
        return results, time.perf_counter() - began


_ALONE = threading.Lock()


@lru_cache(maxsize=2)
def _unpacked(task: bytes, modules: tuple[tuple[str, str], ...]) -> Callable[[Any], Any]:
    for name, wanted in modules:
        found = digest(name)
        if found != wanted:
            what = "another text of" if found else "no"
            raise ClusterError(
                f"a worker on {socket.gethostname()} has {what} module {name}: it must be as it is here"
            )
    try:
        call: Callable[[Any], Any] = pickle.loads(task)
    except (ImportError, AttributeError) as error:
        raise ClusterError(f"a worker on {socket.gethostname()} cannot load the target: {error}") from None
    return call


def compare(worker: str, found: str | Exception, wanted: str) -> None:
    """Raise ClusterError if what a worker's results depend on is not what ours depend on."""
    if isinstance(found, Exception):
        told = f"{type(found).__name__}: {found}"
        raise ClusterError(f"the worker at {worker} cannot load this overclaim: {told}")
    if found != wanted:
        raise ClusterError(f"the worker at {worker} is of {found}, this is {wanted}: its blocks would not fit")


def explained(error: BaseException) -> BaseException:
    """Return what to tell the user about the exception of a task; what audited code raised is told as it is."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterLostError("a block of runs killed worker after worker: do they have the memory for it?")
    if isinstance(error, ImportError) or "deserializ" in str(error):
        return ClusterError(f"a worker or the scheduler cannot load this overclaim or the target: {error}")
    return error
