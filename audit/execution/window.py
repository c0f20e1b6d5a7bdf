"""What of many items is on its way to the workers of a cluster, so that only so much is in flight or waits."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Generic

from .workers import Item, Result

#: Tasks in flight for each worker, and how many times as many may be ahead of the oldest that is not finished.
IN_FLIGHT, MAX_LEAD = 4, 16
#: Tasks become smaller towards the end, so that workers end together, down to this share of what they should take.
MIN_SHARE = 0.05


class Window(Generic[Item, Result]):
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
        max_tasks = IN_FLIGHT * max(1, workers)
        spans: list[range] = []
        if running > max_tasks // 2:
            return spans
        while len(spans) + running < max_tasks:
            if self._again:
                spans.append(self._again.popleft())
            elif self._fresh < len(self.items) and len(spans) + running + len(self._early) < MAX_LEAD * max_tasks:
                end = self._fresh + self._size(len(self.items) - self._fresh, max_tasks)
                spans.append(range(self._fresh, end))
                self._fresh = end
            else:
                break
        return spans

    def _size(self, n_left: int, max_tasks: int) -> int:
        """Return how many items the next task has: as its seconds allow, and fewer towards the end."""
        if not self._cost:
            return 1
        n_affordable = self.seconds / self._cost
        return min(n_left, max(1, int(min(n_affordable, max(n_left / max_tasks, MIN_SHARE * n_affordable)))))

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
