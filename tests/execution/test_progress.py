"""The time left of a bar over tasks of which the long ones begin first, by a clock of our own."""

import heapq
import io
import sys
import threading
from functools import partial

import pytest

from overclaim.audit.execution import progress, workers
from overclaim.audit.execution.progress import TimeLeft
from overclaim.audit.execution.workers import as_completed
from overclaim.learners.blame import call_place


def finished(seconds, jobs):
    """Yield when each task is finished and which it is, where they begin in order on so many processes."""
    waiting, running = list(enumerate(seconds))[::-1], []
    for _ in range(min(jobs, len(seconds))):
        place, long = waiting.pop()
        heapq.heappush(running, (long, place))
    while running:
        now, place = heapq.heappop(running)
        yield now, place
        if waiting:
            after, long = waiting.pop()
            heapq.heappush(running, (now + long, after))


#: A short one, then the others, the longest first.
EXPECTED = [0.3, *(10.0 / (1 + i) for i in range(150))]


@pytest.mark.parametrize("jobs", [1, 2, 4])
@pytest.mark.parametrize("factor", [1.0, 0.3, 4.0])
def test_the_time_left_is_right_from_the_tenth_on_where_all_tasks_are_off_by_a_factor(jobs, factor):
    """The rate of tasks, which is what tqdm goes by, said three times too much after ten of 151."""
    seconds = [factor * (1 + 0.3 * (-1) ** i) * cost for i, cost in enumerate(EXPECTED)]
    left = TimeLeft(dict(enumerate(EXPECTED)), jobs, 100.0)
    times = list(finished(seconds, jobs))
    end = times[-1][0]
    for done, (now, place) in enumerate(times, start=1):
        said = left.after(place, 100.0 + now)
        if done >= 10:
            assert said == pytest.approx(end - now, rel=0.35, abs=0.05 * end)
        if done == 10:
            assert now / done * (len(times) - done) > 2 * (end - now)
    assert said == 0


def test_at_first_it_is_what_is_expected():
    left = TimeLeft({7: 1.0, 3: 50.0, 5: 49.0}, 2, 0.0)
    assert left.after(7, 1.0) == pytest.approx((49.0 + 49.0) / 2)


def test_one_long_task_is_waited_for_by_all_processes():
    left = TimeLeft({0: 1.0, 1: 100.0, 2: 1.0}, 2, 0.0)
    assert left.after(0, 1.0) == pytest.approx(99.0)
    assert left.after(2, 2.0) == pytest.approx(98.0)


def test_tasks_that_cost_nothing_leave_nothing():
    left = TimeLeft({0: 0.0, 1: 0.0}, 1, 0.0)
    assert left.after(0, 1.0) == 0


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def test_the_line_names_what_is_under_way_and_says_the_time_left(monkeypatch):
    """Three tasks: two of a second, begun first and last, and one of a hundred, all as long as expected."""
    clock = [0.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    progress.begin()

    def work(seconds):
        clock[0] += seconds
        return seconds

    tasks = as_completed(work, [1.0, 100.0, 1.0], [1.0, 100.0, 1.0], jobs=1, names=["a", "b", "c"], line=str)
    said = [screen.getvalue().rpartition(progress._ERASE)[2] for _ in tasks]
    assert [line.partition("  ")[0] for line in said] == ["[1/3] b", "[2/3] a", "[3/3]"]
    assert [line.rpartition("%  ")[2] for line in said] == ["01:41 left", "00:01 left", "00:00 left"]
    assert [line.count("=") for line in said] == [0, 11, 12]
    assert screen.getvalue().endswith(progress._ERASE)  # nothing is left of it


def test_stages_stand_beside_each_other_and_the_inner_one_has_the_bar(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    progress.begin()
    with progress.stage("[2/5] my.py:MyLearner"):
        assert list(progress.steps("abcd", "counting 13,017 runs")) == [*"abcd"]
    lines = screen.getvalue().split(progress._ERASE)
    assert lines[1:3] == ["[2/5] my.py:MyLearner", "[2/5] my.py:MyLearner, counting 13,017 runs"]
    assert any(f"{lines[2]}  {3 * '='}{9 * '-'}  25%  00:00 left" == line for line in lines)
    assert lines[-1] == ""


@pytest.mark.parametrize("on", [True, False])
def test_a_process_that_a_command_starts_draws_nothing(monkeypatch, on):
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    progress.begin()
    monkeypatch.setattr(progress.LINE, "on", on)
    with progress.stage("a stage"):
        assert ("a stage" in screen.getvalue()) is on


def test_what_is_left_of_a_command_does_not_touch_the_next_ones_line(monkeypatch):
    """A generator of an interrupted command ends when it is collected: it took a stage that was not its own."""
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    progress.begin()
    left = progress.steps("ab", "an old stage")
    next(left)
    progress.begin()
    with progress.stage("a new stage"):
        left.close()
        assert progress.LINE.stages == ["a new stage"]
    left = progress.steps("ab", "an old stage")
    next(left)
    progress.begin()
    left.close()
    assert progress.LINE.stages == []
    assert "a new stage" in screen.getvalue()


def test_a_line_that_is_printed_stands_above_the_one_that_is_redrawn(monkeypatch):
    monkeypatch.setattr(sys, "stderr", screen := _Terminal())
    progress.begin()
    with progress.stage("a stage"):
        progress.LINE.say("a claim is finished")
    assert screen.getvalue() == f"{progress._ERASE}a stage{progress._ERASE}a claim is finished\n"


def test_an_old_terminal_gets_plain_characters(monkeypatch):
    screen = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr(sys, "stderr", screen)
    assert progress._text("counting", 0.5, 3661) == "counting  ======------  50%  1:01:01 left"


class _Notebook(io.StringIO):
    """What ipykernel puts in the place of stderr."""


_Notebook.__module__ = "ipykernel.iostream"


@pytest.mark.parametrize("stream", [_Terminal, _Notebook, io.StringIO])
def test_python_shows_its_line_after_two_seconds_and_leaves_none(monkeypatch, stream):
    monkeypatch.setattr(progress, "LINE", line := progress.Line())
    monkeypatch.setattr(sys, "stderr", shown := stream())
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    progress.begin(progress.DELAY)
    with progress.stage("training the attack"):
        assert shown.getvalue() == ""
        now[0] += progress.DELAY
        line.draw(0.5)
        assert ("training the attack" in shown.getvalue()) == (stream is not io.StringIO)
    left = shown.getvalue().replace("\x1b[K", "").rpartition("\r")[2]
    assert left.strip() == ""


def quiet_call(seconds, now):
    now[0] += seconds
    progress.LINE.name_call()
    return seconds


@pytest.mark.parametrize("stream", [_Terminal, io.StringIO])
@pytest.mark.parametrize(("seconds", "is_named"), [(12, True), (9, False)])
def test_a_call_that_takes_long_is_named_on_a_terminal_alone(monkeypatch, stream, seconds, is_named):
    """A fit of minutes showed one stage and no word of what ran."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    monkeypatch.setattr(sys, "stderr", screen := stream())
    progress.begin()
    with progress.stage("counting"):
        assert list(workers.in_parallel(partial(quiet_call, now=now), [seconds])) == [seconds]
    line = f"counting, no result for {seconds} s: tests/execution/test_progress.py:"
    assert (line in screen.getvalue()) == (is_named and stream is _Terminal)


def test_the_line_that_asks_is_no_call():
    assert call_place(sys._getframe()) == ""  # nothing of ours called it


def test_the_thread_that_names_calls_is_started_once(monkeypatch):
    monkeypatch.setattr(sys, "stderr", _Terminal())
    for _ in range(2):
        progress.begin()
    assert [thread.name for thread in threading.enumerate()].count(progress._WATCH) == 1
