"""A limit of the processor time of one call: inputs on which a mechanism is slow are left out of a search.

Only the search and the shrinking have it, which choose inputs. A certificate is of all calls, however long they take:
leaving out single runs by their time would count what the time says.
"""

from __future__ import annotations

import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from ...errors import must_be
from ...learners.blame import name_of

#: The least seconds between two attempts to interrupt a call.
MIN_INTERVAL = 0.05
#: The most seconds that a timer is set to, which every system can count.
MAX_TIMER = 1e6


class SlowCallError(BaseException):
    """A call took longer than it may. A BaseException, so that a library's `except Exception` does not catch it."""

    def __init__(self, seconds: float) -> None:
        super().__init__(seconds)
        self.seconds = seconds


def check_limit(seconds: object) -> None:
    """Raise ValueError unless a limit is a positive and finite number, or there is none."""
    if seconds is None:
        return
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
        raise must_be("call_limit", "above 0 and finite, in seconds of processor time", seconds)


class Limited:
    """A mechanism that raises SlowCallError where one call takes more seconds of processor time.

    Parameters
    ----------
    mechanism : callable
    seconds : float
        Where the system has no timer of processor time, or outside the main thread, a call is not interrupted, but
        judged when it ends.
    """

    def __init__(self, mechanism: Callable[..., object], seconds: float) -> None:
        self.mechanism, self.seconds = mechanism, seconds
        self.batched = getattr(mechanism, "batched", False)
        self.__name__ = name_of(mechanism)

    def __call__(self, *arguments: object) -> object:
        """Answer."""
        start = time.process_time()
        with _timer(self.seconds):
            output = self.mechanism(*arguments)
        if time.process_time() - start > self.seconds:
            raise SlowCallError(self.seconds)
        return output


@contextmanager
def _timer(seconds: float) -> Iterator[None]:
    """Raise SlowCallError after so much processor time."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return

    def interrupt(*_: object) -> None:
        raise SlowCallError(seconds)

    handler = signal.signal(signal.SIGPROF, interrupt)
    # The timer repeats, because an exception that is raised inside a callback (as of the garbage collector) is lost.
    first = min(seconds, MAX_TIMER)
    left, interval = signal.setitimer(signal.ITIMER_PROF, first, max(first, MIN_INTERVAL))
    try:
        yield
    finally:
        try:
            signal.setitimer(signal.ITIMER_PROF, left, interval)
        finally:  # an interrupt may arrive while the timer is being reset
            signal.signal(signal.SIGPROF, handler)
