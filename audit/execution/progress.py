"""The line on a terminal that says how far a command is: its stage, a bar, and the time left.

Nothing is drawn where stderr is no terminal: there a command prints only what is finished, such as a claim.
"""

from __future__ import annotations

import math
import shutil
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

#: The share of all expected seconds that counts as if it had been seen to be right.
PRIOR = 0.05
#: Seconds between two drawings, and before the first of what Python asked for.
PAUSE, DELAY = 0.1, 2.0
#: Seconds without a result until the line says which call runs, and between two looks.
QUIET, LOOK = 10.0, 1.0
#: The thread that names them.
_WATCH = "overclaim: names long calls"
#: Erases the line from the cursor on.
_ERASE = "\r\x1b[K"


def is_shown() -> bool:
    """Return whether stderr is a terminal, or a notebook's: somebody watches."""
    try:
        return sys.stderr is not None and (sys.stderr.isatty() or type(sys.stderr).__module__.startswith("ipykernel"))
    except ValueError:  # it is closed
        return False


@dataclass
class Line:
    """The line that is redrawn: the stages that are under way, the outer ones first, and a bar of the last one.

    The line is `on` in the process of a command and off in its workers, which would draw over each other.
    """

    stages: list[str] = field(default_factory=list)
    on: bool = False
    is_drawn: bool = False
    text: str = ""
    last: float = -math.inf
    start: float = -math.inf
    advanced: float = math.inf  # when the last result came

    def draw(self, share: float | None = None, left: float | None = None) -> None:
        """Draw the stages, with a bar and the time left where these are known."""
        self.advanced = time.monotonic()
        self._show(share, left)

    def name_call(self) -> None:
        """Show the call that runs in this process, where no result has come for long."""
        quiet = time.monotonic() - self.advanced
        if not self.stages or quiet <= QUIET:
            return
        from ...learners.blame import call_place  # it loads NumPy, which a command that is soon done may not need

        if place := call_place(sys._current_frames().get(threading.main_thread().ident or 0)):
            self._show(call=f"no result for {quiet:.0f} s: {place} runs")

    def _show(self, share: float | None = None, left: float | None = None, call: str = "") -> None:
        if not self.on or time.monotonic() < self.start or not is_shown():
            return
        text = _text(", ".join(stage for stage in (*self.stages, call) if stage), share, left)
        if text == self.text:
            return
        columns = shutil.get_terminal_size().columns
        self._write(_ERASE + text.ljust(len(self.text) * (not sys.stderr.isatty()))[: columns - 1])
        self.text = text
        self.is_drawn = True

    def erase(self) -> None:
        """Leave the terminal's line empty, for what is printed next."""
        if self.is_drawn and is_shown():
            blanks = "" if sys.stderr.isatty() else "\r" + " " * len(self.text)  # a notebook knows no escape codes
            self._write(blanks + _ERASE)
        self.is_drawn, self.text = False, ""

    def say(self, text: str) -> None:
        """Print a line above the one that is redrawn."""
        self.erase()
        self._write(text + "\n")

    @staticmethod
    def _write(text: str) -> None:
        if sys.stderr is None:
            return
        try:
            encoding = getattr(sys.stderr, "encoding", None) or "ascii"
            sys.stderr.write(text.encode(encoding, "replace").decode(encoding))
            sys.stderr.flush()
        except (OSError, ValueError):  # of stderr there is nobody to tell
            pass


LINE = Line()


def begin(delay: float = 0.0) -> None:
    """Show the line from now on, or after some seconds: a command begins, or an audit from Python."""
    LINE.on, LINE.last, LINE.stages, LINE.start = True, -math.inf, [], time.monotonic() + delay
    _watch()


def inside(stages: Sequence[str], task: Callable[[Item], Result], item: Item) -> Result:
    """Return `task(item)`, computed by a process that alone draws the line, behind these stages."""
    LINE.on, LINE.stages = True, list(stages)
    _watch()
    return task(item)


def _watch() -> None:
    """Name long calls from a thread beside them, where somebody watches."""
    if is_shown() and _WATCH not in {thread.name for thread in threading.enumerate()}:
        threading.Thread(target=_name_calls, name=_WATCH, daemon=True).start()


def _name_calls() -> None:
    while True:
        time.sleep(LOOK)
        LINE.name_call()


def _text(stages: str, share: float | None, left: float | None) -> str:
    """Return the stages with a bar and the time left, in plain characters where the terminal has no others."""
    if share is None:
        return stages
    from tqdm import tqdm

    form = "{desc}  {bar:12} {percentage:3.0f}%" + ("" if left is None else "  {remaining} left")
    rate = (1 - share) / left if left and share < 1 else 1e9  # so that the meter says the time left that is known
    return str(tqdm.format_meter(share, 1, 1, rate=rate, prefix=stages, ascii=_bar(), bar_format=form))


def _bar() -> str:
    try:
        "─━".encode(getattr(sys.stderr, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return "-="
    return "─━"


@contextmanager
def stage(label: str | None) -> Iterator[None]:
    """Show a stage while it lasts, beside those around it; nothing where the label is None."""
    if label is None:
        yield
        return
    stages = LINE.stages  # a generator of an interrupted command ends late: it must not change the next command's list
    depth = len(stages)
    stages.append(label)
    LINE.draw()
    try:
        yield
    finally:
        del stages[depth:]
        if stages is LINE.stages:
            (LINE.draw if stages else LINE.erase)()


def steps(items: Sequence[Item], label: str | None) -> Iterator[Item]:
    """Yield items, each to be worked on before the next is asked for; show how many are done, and the time left."""
    with stage(label):
        done_so_far = meter(len(items)) if label is not None else None
        for n_done, item in enumerate(items):
            if n_done and done_so_far is not None:
                done_so_far(n_done)
            yield item


def meter(total: int) -> Callable[[int], None]:
    """Return what draws the bar of the stage under way, given how many of so many equal steps are done."""
    start = time.monotonic()

    def done_so_far(n_done: int) -> None:
        time_now = time.monotonic()
        if time_now - LINE.last >= PAUSE or n_done == total:
            LINE.last = time_now
            LINE.draw(n_done / total, (time_now - start) / n_done * (total - n_done))

    return done_so_far


def with_bar(
    results: Iterable[Result],
    total: int,
    label: str | Callable[[int], str] | None,
    line: Callable[[Result], str] | None = None,
    left: Callable[[Result], tuple[float, float]] | None = None,
) -> Iterator[Result]:
    """Yield results; on a terminal show how many are there and how long the others will take.

    Parameters
    ----------
    label : str, callable or None
        The stage, or what tells it from the number of results; None shows nothing.
    line : callable, optional
        What to print of a result, also where stderr is no terminal.
    left : callable, optional
        From the newest result to the share that is done and the seconds that are left; by default all results take
        equally long.
    """
    if label is None:
        yield from results
        return
    with stage(label(0) if callable(label) else label):
        done_so_far = meter(total)
        for n_done, result in enumerate(results, start=1):
            estimate = None if left is None else left(result)
            if line is not None:
                LINE.say(line(result))
            if callable(label):
                LINE.stages[-1] = label(n_done)
            if estimate is None:
                done_so_far(n_done)
            else:
                LINE.draw(*estimate)
            yield result


class TimeLeft:
    """How long the unfinished tasks will take: their expected seconds, times what the finished ones took of theirs.

    Parameters
    ----------
    costs : dict
        The expected seconds of each task, in the order in which they begin.
    jobs : int
        Processes: a task begins when one before it is finished.
    start : float
        Seconds of a clock, when the first begin.
    """

    def __init__(self, costs: dict[int, float], jobs: int, start: float) -> None:
        self.costs, self.jobs = costs, jobs
        self.waiting = list(costs)[::-1]
        self.begun: dict[int, float] = {}
        self.took = self.expected = PRIOR * math.fsum(costs.values()) or 1.0
        self._begin(jobs, start)

    def _begin(self, count: int, time_now: float) -> None:
        for _ in range(min(count, len(self.waiting))):
            self.begun[self.waiting.pop()] = time_now

    def after(self, place: int, time_now: float | None = None) -> float:
        """Return the seconds that are left after a task is finished, now."""
        time_now = time.monotonic() if time_now is None else time_now
        self.took += time_now - self.begun.pop(place, time_now)
        self.expected += self.costs[place]
        self._begin(1, time_now)
        pace = self.took / self.expected
        remaining = [pace * self.costs[i] for i in self.waiting]
        remaining += [max(0.0, pace * self.costs[i] - (time_now - start)) for i, start in self.begun.items()]
        return max(math.fsum(remaining) / self.jobs, max(remaining, default=0.0))

    @property
    def share(self) -> float:
        """The share of the expected seconds that is done."""
        all_of_them = math.fsum(self.costs.values())
        left = math.fsum(self.costs[i] for i in (*self.waiting, *self.begun))
        return 1 - left / all_of_them if all_of_them else 1.0
