"""The bar on a terminal: how many tasks are done, and how long the others will take."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

Result = TypeVar("Result")

#: The share of all expected seconds that counts as if it had been seen to be right.
PRIOR = 0.05
#: Seconds between two lines where there is no terminal.
SILENT = 5.0
#: A bar, in tqdm's words, up to its time left.
COUNTED = "{l_bar}{bar}| {n_fmt}/{total_fmt} [{elapsed}"


def with_bar(
    results: Iterable[Result],
    total: int,
    label: str | None,
    line: Callable[[Result], str] | None = None,
    left: Callable[[Result], float] | None = None,
) -> Iterator[Result]:
    """Yield results, on a terminal with a bar on stderr that counts them and says how long the others will take.

    `left` tells the seconds from the newest result; without it the others are taken to be like those before. Without a
    terminal, a line on stderr counts them every `SILENT` seconds.
    """
    if label is None or sys.stderr is None:
        yield from results
        return
    if not sys.stderr.isatty():
        yield from _with_lines(results, total, label)
        return
    from tqdm import tqdm  # even a hidden bar makes a lock, which an interrupted worker leaves behind

    with tqdm(total=total, desc=label, leave=False, file=sys.stderr) as bar:
        for one in results:
            if left is not None:
                bar.bar_format = f"{COUNTED}<{tqdm.format_interval(left(one))}]"
            bar.update()
            if line is not None:  # then the bar is drawn again, however soon after the last time: its count is true
                bar.write(line(one), file=sys.stderr)
            yield one


class _Lines:
    """When the last line was printed: a command has several stages, each of them shorter than `SILENT`."""

    last = time.monotonic()


def begin() -> None:
    """Start the clock of the lines: a command begins."""
    _Lines.last = time.monotonic()


def _with_lines(results: Iterable[Result], total: int, label: str) -> Iterator[Result]:
    """Yield results, and count them in lines: a file, or another program, shows no bar."""
    for done, one in enumerate(results, start=1):
        if (now := time.monotonic()) - _Lines.last >= SILENT:
            print(f"overclaim: {label}: {done} of {total} done", file=sys.stderr, flush=True)
            _Lines.last = now
        yield one


class TimeLeft:
    """How long the unfinished tasks will take: their expected seconds, times what the finished ones took of theirs.

    Parameters
    ----------
    costs : dict
        The expected seconds of each task, in the order in which they begin.
    jobs : int
        Processes: a task begins when one before it is finished.
    now : float
        Seconds of a clock.
    """

    def __init__(self, costs: dict[int, float], jobs: int, now: float) -> None:
        self.costs, self.jobs = costs, jobs
        self.waiting = list(costs)[::-1]
        self.begun: dict[int, float] = {}
        self.took = self.expected = PRIOR * math.fsum(costs.values()) or 1.0
        self._begin(jobs, now)

    def _begin(self, many: int, now: float) -> None:
        for _ in range(min(many, len(self.waiting))):
            self.begun[self.waiting.pop()] = now

    def after(self, place: int, now: float | None = None) -> float:
        """Return the seconds that are left after a task is finished, now."""
        now = time.monotonic() if now is None else now
        self.took += now - self.begun.pop(place, now)
        self.expected += self.costs[place]
        self._begin(1, now)
        pace = self.took / self.expected
        each = [pace * self.costs[i] for i in self.waiting]
        each += [max(0.0, pace * self.costs[i] - (now - begun)) for i, begun in self.begun.items()]
        return max(math.fsum(each) / self.jobs, max(each, default=0.0))
