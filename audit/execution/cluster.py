"""The workers of a dask cluster: tasks and results, refusals of other versions, returns after losses."""

from __future__ import annotations

import logging
import math
import pickle
import pickletools
import re
import shlex
import socket
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import count
from typing import Any

from ...errors import hinted, must_be
from .provenance import digest, own_code, packages
from .window import Window
from .workers import Failed, Item, Result, attempt, unwrapped

#: Seconds to wait for a scheduler and its first worker at the beginning, and for both to come back midway.
CONNECT, PATIENCE = 5.0, 30.0
#: Seconds from one question to the scheduler to the next.
POLL_SECONDS = 2.0
#: Seconds within which a scheduler hands out results that it says are there; else they are computed again.
ANSWER = 10.0
#: Modules whose text need not be compared: their versions are.
_COMPARED = {*sys.stdlib_module_names, "overclaim", "numpy", "scipy", "sklearn"}


class ClusterError(Exception):
    """The cluster cannot be used: unreachable, without workers, or of other versions."""

    deliberate = ends_run = True


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

    Examples
    --------
    >>> Cluster("tcp://10.0.0.7:8786").scheduler
    'tcp://10.0.0.7:8786'
    """

    scheduler: str
    seconds: float = 1.0

    def __post_init__(self) -> None:
        address = re.fullmatch(r"(tcp|tls)://[^\s/]+:(\d{1,5})", str(self.scheduler))
        if not address or int(address[2]) > 65535:
            raise must_be("a scheduler's address", "tcp://HOST:PORT", self.scheduler)

    def check(self) -> None:
        """Ask every worker what its results depend on, before anything is computed.

        Raises
        ------
        ClusterError
            If the scheduler cannot be reached, has no worker, or a worker's versions or code are others than ours.
        """
        with self._client() as client:
            workers, ends = _Workers(self.scheduler, client), time.monotonic() + CONNECT
            while not workers.count(interval=0.0):
                if time.monotonic() > ends:
                    start = f"dask worker {shlex.quote(self.scheduler)} --nthreads 1"
                    problem = "does not answer" if workers.silent_since else f"has no worker: start some by {start}"
                    raise ClusterError(f"the scheduler at {self.scheduler} {problem}")
                time.sleep(0.1)
            try:
                answers = client.run(environment, on_error="return", callback_timeout=PATIENCE)
            except (OSError, TimeoutError):
                silent = f"a worker of the scheduler at {self.scheduler} did not answer for {PATIENCE:g} s"
                raise ClusterError(silent) from None
            for worker, answer in answers.items():
                compare(worker, answer, environment())

    def in_parallel(self, task: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """Yield `task(item)` in the order of `items`, computed by the workers.

        Raises
        ------
        ClusterError
            If a worker, of now or later, has other versions or code, or lacks a module that the task needs.
        ClusterLostError
            If the scheduler or all its workers stay away, or one task kills worker after worker.
        """
        import cloudpickle

        payload = cloudpickle.dumps(task)
        texts = _texts(payload)
        requirements = {"expected": environment(), "modules": modules_of(texts)}
        window: Window[Item, Result | Failed] = Window(items, self.seconds)
        silent_since: float | None = None
        while window.left:
            with self._client(silent_since) as client:
                workers = _Workers(self.scheduler, client)
                yield from self._drain(workers, window, payload, requirements)
            silent_since = workers.silent_since or time.monotonic()  # the scheduler went away

    def _drain(
        self, workers: _Workers, window: Window[Item, Result | Failed], payload: bytes, requirements: Mapping[str, Any]
    ) -> Iterator[Result]:
        """Yield results until all have come or the scheduler is lost; what was in flight is then open again."""
        from distributed import as_completed

        client = workers.client
        # A task of its own: sent once, handed from worker to worker, and made again where its worker died.
        shared = client.submit(bytes, payload, key=f"overclaim-task-{uuid.uuid4().hex}")
        group, numbers = f"overclaim-{uuid.uuid4().hex}", count()
        running: dict[Any, range] = {}
        completions = as_completed(loop=client.loop)
        while window.left:
            spans = window.take(len(running), workers.count())
            if spans:
                payloads = [pickle.dumps([window.items[i] for i in span]) for span in spans]
                keys = [(group, next(numbers)) for _ in spans]
                futures = client.map(compute, payloads, key=keys, task=shared, **requirements)
                running.update(zip(futures, spans, strict=True))
                completions.update(futures)
            while not completions.has_ready() and client.status == "running":
                time.sleep(0.005)
                workers.require()
            finished = [future for future in completions.next_batch(block=False) if not future.cancelled()]
            query_time = time.monotonic()
            results = _gathered(client, finished)
            if len(results) < len(finished):
                workers.silent_since = workers.silent_since or query_time
            for future, result in zip(finished, results, strict=False):
                window.put(running.pop(future), *result)
            for result in window.ready():
                yield unwrapped(result)
            if client.status != "running" or len(results) < len(finished):
                window.give_back(running.values())
                return

    def _connected(self, seconds: float) -> Any:
        """Return a client of the scheduler.

        Whoever listens there may be no scheduler, or fall silent at any word, and dask's client would wait for ever.

        Raises
        ------
        Exception
            Whatever came of it: OSError if nobody answers in time, others for answers that no scheduler gives.
        """
        import asyncio

        from distributed import Client

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of other versions: we compare them ourselves
            _within(seconds, lambda: asyncio.run(asyncio.wait_for(self._identity(), seconds)))
            return _within(seconds, lambda: Client(self.scheduler, timeout=seconds, set_as_default=False))

    async def _identity(self) -> None:
        from distributed.core import rpc
        from distributed.security import Security

        async with rpc(self.scheduler, connection_args=Security().get_connection_args("client")) as connection:
            kind = (await connection.identity())["type"]
        if kind != "Scheduler":
            raise ValueError(f"a dask {kind.lower()} answers there")

    @contextmanager
    def _client(self, silent_since: float | None = None) -> Iterator[Any]:
        """Yield a connection, within PATIENCE of when the scheduler fell silent; dask's own words stay unsaid."""
        try:
            import distributed  # noqa: F401
        except ImportError:
            raise hinted(
                ClusterError("--engine dask needs dask.distributed"), "pip install 'overclaim[cluster]'"
            ) from None
        client, ends = None, PATIENCE + (silent_since or 0.0)
        loggers = [logging.getLogger(name) for name in ("distributed", "asyncio")]
        levels = [logger.level for logger in loggers]
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        try:
            while client is None:
                left = CONNECT if silent_since is None else ends - time.monotonic()
                try:
                    client = self._connected(max(0.1, min(CONNECT, left)))
                except Exception as error:
                    if silent_since is None:
                        reason = "" if isinstance(error, OSError) else f": {error or type(error).__name__}"
                        raise ClusterError(f"there is no scheduler at {self.scheduler}{reason}") from None
                    if time.monotonic() > ends:
                        message = f"the scheduler at {self.scheduler} went away, for more than {PATIENCE:g} s"
                        raise ClusterLostError(message) from None
                    time.sleep(0.2)
            yield client
        finally:
            if client is not None:
                with suppress(OSError, TimeoutError):  # it may have fallen silent
                    client.close(timeout=2)
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def _within(seconds: float, call: Callable[[], Result]) -> Result:
    """Return what a call returns, or raise TimeoutError and leave it behind, in a thread of its own."""
    outcome: Future[Result] = Future()

    def work() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:
            outcome.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    return outcome.result(timeout=seconds + 0.5)  # what has a limit of its own ends by that


def _gathered(client: Any, futures: Sequence[object]) -> list[Any]:
    """Return the results of finished tasks; none if they do not come: a scheduler may ask a dead worker for ever."""
    from distributed import CancelledError

    if not futures:
        return []
    fetch = partial(client.gather, futures, asynchronous=True)
    try:
        gathered: list[object] = client.sync(fetch, callback_timeout=ANSWER)
    except (OSError, TimeoutError, CancelledError):
        return []
    except Exception as error:
        raise explained(error) from None
    return gathered


class _Workers:
    """How many workers there are that compute: what the scheduler answers, if it does."""

    def __init__(self, scheduler: str, client: Any) -> None:
        self.scheduler, self.client = scheduler, client
        self._count, self._paused = 0, 0  # the paused take no tasks until they have memory again
        self._asked, self._seen = -math.inf, time.monotonic()
        self.silent_since: float | None = None  # the last time that the scheduler was heard, if it is silent now

    def count(self, *, interval: float = POLL_SECONDS) -> int:
        """Return the number of workers that compute, asked for every other second; 0 before the first answer.

        Raises
        ------
        ClusterLostError
            If the scheduler has not answered for PATIENCE.
        """
        time_now = time.monotonic()
        if self.silent_since or time_now - self._asked > interval:
            left = PATIENCE - (time_now - (self.silent_since or time_now))
            if left <= 0:
                raise ClusterLostError(f"the scheduler at {self.scheduler} did not answer for {PATIENCE:g} s")
            try:
                ask = self.client.scheduler.identity
                workers = self.client.sync(ask, callback_timeout=min(ANSWER, left))["workers"].values()
                self._paused = sum(worker["status"] == "paused" for worker in workers)
                self._count = len(workers) - self._paused
                self.silent_since = None
            except (OSError, TimeoutError):
                self.silent_since = self.silent_since or max(self._asked, time_now - interval)
            self._asked = time.monotonic()
        return self._count

    def require(self) -> None:
        """Raise ClusterLostError if the scheduler is silent, or there was no worker, for PATIENCE."""
        if self.count():
            self._seen = time.monotonic()
        if time.monotonic() - self._seen > PATIENCE:
            paused = f"; {self._paused} are paused for want of memory" if self._paused else ""
            raise ClusterLostError(f"the scheduler at {self.scheduler} had no worker for {PATIENCE:g} s{paused}")


@cache
def environment() -> str:
    """Return what the results of a block depend on besides its key: versions of packages, and our own code."""
    return f"{packages()}, code {own_code()}"


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
    items: bytes, *, task: bytes, expected: str, modules: tuple[tuple[str, str], ...]
) -> tuple[list[object], float]:
    """On a worker: return the results of some items, or why they failed, and the seconds that they took; or refuse.

    Users' code knows nothing of threads, so a worker computes one task at a time.
    """
    from distributed import get_worker

    with _LOCK:
        compare(get_worker().address, environment(), expected)
        call = _unpacked(task, modules)
        start = time.perf_counter()
        results = [attempt(call, item) for item in pickle.loads(items)]
        return results, time.perf_counter() - start


_LOCK = threading.Lock()


@lru_cache(maxsize=2)
def _unpacked(task: bytes, modules: tuple[tuple[str, str], ...]) -> Callable[[object], object]:
    for name, expected_digest in modules:
        own_digest = digest(name)
        if own_digest != expected_digest:
            difference = "another text of" if own_digest else "no"
            raise ClusterError(
                f"a worker on {socket.gethostname()} has {difference} module {name}: it must be as it is here"
            )
    try:
        call: Callable[[object], object] = pickle.loads(task)
    except (ImportError, AttributeError) as error:
        raise ClusterError(f"a worker on {socket.gethostname()} cannot load the target: {error}") from None
    return call


def compare(worker: str, answer: str | Exception, expected: str) -> None:
    """Raise ClusterError if what a worker's results depend on is not what ours depend on."""
    if isinstance(answer, Exception):
        text = f"{type(answer).__name__}: {answer}"
        raise ClusterError(f"the worker at {worker} cannot load this overclaim: {text}")
    if answer != expected:
        raise ClusterError(f"the worker at {worker} is of {answer}, this is {expected}: its blocks would not fit")


def explained(error: BaseException) -> BaseException:
    """Return what to tell the user about the exception of a task; what audited code raised is told as it is."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        return ClusterLostError("a block of runs killed worker after worker: do they have the memory for it?")
    if isinstance(error, ImportError) or "deserializ" in str(error):
        return ClusterError(f"a worker or the scheduler cannot load this overclaim or the target: {error}")
    return error
