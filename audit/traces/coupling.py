"""Coupled plays: left with noise + z gives what right gives with noise, where z is what a trace says makes up for it.

A trace plays with forms in one process. Here both worlds play with plain numbers, each in a new process that has
played nothing before: what a form hides shows here, and so does what a module keeps from one play to the next. What
cannot be sent to a new process is forked.
"""

from __future__ import annotations

import atexit
import gc
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from itertools import zip_longest
from multiprocessing.connection import Connection, Pipe
from time import perf_counter, process_time
from typing import Any

from ...learners.protocol import LearnerError
from ...mechanisms.view import View
from .forms.form import Form
from .forms.least_noise import ULPS
from .forms.proxy import is_importable
from .replay import Trace, play_on, playing
from .tape import Drawn, PlainTape, Release, Shown, TapeEvent, UntraceableError

#: By what the noise of plays is multiplied, one play after the other: 1 and 10 eight times, 100 and .01 four times.
STRETCHES = (1.0, 10.0, 100.0, 1.0, 10.0, 0.01) * 4
#: The fewest pairs of plays that say something; how long the plays of a world may take, in seconds of processor time;
#: and how long they are waited for.
_MIN_PLAYS, _SECONDS, _PATIENCE = 8, 5.0, 60.0
#: Floats agree to this share of the noise beside them.
_NOISE_SHARE = 1e-9
_CODE = "import sys; from overclaim.audit.traces.coupling import serve_at; serve_at(int(sys.argv[1]))"


@dataclass(frozen=True)
class Coupled:
    """How many of so many pairs of plays agree, and why that bounds nothing, where it does not."""

    agreed: int = 0
    plays: int = 0
    fault: str = ""


@dataclass(frozen=True)
class Job:
    """What a process plays: a target in one world, with noise of seeds and stretches, moved."""

    target: bytes | None
    world: bytes
    left: bool
    moved: dict[int, float]
    path: list[str]
    folder: str


@dataclass(frozen=True)
class Play:
    """What a play shows, what noise it drew, whether something else was random, and what it raised."""

    shown: list[Any]
    drawn: list[tuple[str, tuple[int, ...]]]
    strayed: str
    raised: str


class Twin:
    """Where both worlds of a target are played apart. Make it before the target is played.

    Parameters
    ----------
    target : learner or mechanism
        What a new process can import is played in one; of all else a fork has what this process has.
    """

    def __init__(self, target: Any) -> None:
        self.payload, self.fork = None, None
        if not hasattr(os, "fork"):
            return
        with suppress(Exception):  # whatever its parts raise as they are pickled: it is forked
            self.payload = pickle.dumps(target) if is_importable(target) else None
        if self.payload is not None:
            _server(os.getpid())
        else:
            self.fork = _forked(partial(serve, target=target))

    def coupled(self, pair: Any, view: View, trace: Trace) -> Coupled:
        """Return how often left with noise + z gives what right gives."""
        if self.payload is None and self.fork is None:
            return Coupled(fault="this system has no forks, in which it would play alone")
        moves = {key: z for key, z in trace.moved.items() if z}
        try:
            world = pickle.dumps((pair, view, trace.runs))
        except Exception as error:
            return Coupled(fault=f"its inputs cannot be sent to a new process ({type(error).__name__}: {error})")
        jobs = [Job(self.payload, world, side, moves if side else {}, sys.path, os.getcwd()) for side in (True, False)]
        process = self.fork or _server(os.getpid())
        with suppress(OSError):  # it has ended
            process.connection.send(jobs)
        answer = process.answer()
        for plays in answer if isinstance(answer, list) else [answer]:
            if isinstance(plays, str):
                return Coupled(fault=f"it does not play in a new process ({plays})")
        left, right = answer
        return _compared(left, right, trace)

    def close(self) -> None:
        """End what was forked."""
        if self.fork is not None:
            self.fork.end()


def _compared(left: list[Play], right: list[Play], trace: Trace) -> Coupled:
    """Compare the plays of both worlds, one by one."""
    plays = min(len(left), len(right))
    if plays < _MIN_PLAYS:
        return Coupled(plays=plays, fault=f"only {plays} pairs of plain plays were done in {2 * _SECONDS:g} s")
    laws = _drawn(trace.left)
    noises = list(map(_noise_of, _shown(trace.left), [_released(trace.left)] * len(trace.left)))
    agreed, fault = 0, ""
    for left_play, right_play, stretch in zip(left, right, STRETCHES, strict=False):
        difference = _fault(left_play, right_play, laws, noises, stretch)
        agreed += not difference
        fault = fault or difference
    return Coupled(agreed, plays, fault and f"{fault}, in {plays - agreed} of {plays} plain plays")


def _fault(left: Play, right: Play, laws: list[Any], noises: list[Any], stretch: float) -> str:
    """Return what two plays do not agree in; nothing where they do."""
    strayed = left.strayed or right.strayed
    if strayed:
        return strayed
    if left.raised or right.raised:
        is_same = left.raised == right.raised
        return "" if is_same else f"left raises {left.raised or 'nothing'} and right {right.raised or 'nothing'}"
    if left.drawn != laws or right.drawn != laws:
        return "other noise is drawn than in the trace"
    for left_values, right_values, noise in zip_longest(left.shown, right.shown, noises):
        if (
            left_values is None
            or right_values is None
            or noise is None
            or not len(left_values) == len(right_values) == len(noise)
        ):
            return "outputs have other lengths than in the trace"
        for number, (a, b, value_noise) in enumerate(zip(left_values, right_values, noise, strict=True), start=1):
            if not _agree(a, b, value_noise, stretch):
                return f"with moved noise value {number} is {_short(a)} for left and {_short(b)} for right"
    return ""


def _agree(a: Any, b: Any, value_noise: tuple[float, bool], stretch: float) -> bool:
    """Tell whether two values agree; floats but for rounding, beside noise of a size that more was computed of."""
    noise, public = value_noise
    if type(a) is not type(b):
        return False
    if not isinstance(a, float):
        return bool(a == b)
    if a == b or (a != a and b != b):
        return True
    size = max(abs(a), abs(b))
    return bool(abs(a - b) <= _NOISE_SHARE * (stretch * noise + (size if public else 0.0)) + ULPS * size)


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]


def _drawn(events: list[TapeEvent]) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(event.law), event.shape) for event in events if isinstance(event, Drawn)]


def _shown(events: list[TapeEvent]) -> list[list[Any]]:
    return [event.value.reshape(-1).tolist() for event in events if isinstance(event, Shown)]


def _noise_of(values: list[Any], released: tuple[float, bool]) -> list[tuple[float, bool]]:
    """Return the size of the noise in shown values, and whether more was computed of them."""
    return [
        (_size_of(value), value.is_public)
        if type(value) is Form
        else released
        if type(value) is float
        else (0.0, False)
        for value in values
    ]


def _released(events: list[TapeEvent]) -> tuple[float, bool]:
    """Return the size of noise of what became plain numbers in what is returned."""
    forms = [event.forms[0] for event in events if isinstance(event, Release) and event.value is not None]
    return max(map(_size_of, forms), default=0.0), any(form.is_public for form in forms)


def _size_of(form: Form) -> float:
    return sum(abs(factor) * form.tape.scales[key] for key, factor in form.noise.items())


def _plays(target: Any, job: Job) -> list[Play]:
    """Play one world, as often as time allows."""
    pair, view, runs = pickle.loads(job.world)
    begun, until = perf_counter(), process_time() + _SECONDS
    world = playing(target, pair, runs, view)
    plays: list[Play] = []
    for block, stretch in enumerate(STRETCHES):
        if perf_counter() < begun + _SECONDS or process_time() < until:  # the latter is slow to ask for
            tape = PlainTape(_SEED, block, runs=runs, stretch=stretch, moves=job.moved)
            raised = ""
            try:
                play_on(tape, world, job.left, target)
            except (LearnerError, UntraceableError) as error:
                cause = error.__cause__ or error
                raised = f"{type(cause).__name__}: {cause}"
            strayed = "" if tape.other_draw is None else str(tape.other_draw)
            plays.append(Play(_shown(tape.events), _drawn(tape.events), strayed, raised))
    return plays


#: Of the noise of plays.
_SEED = 24


class _Process:
    """A process that plays jobs, and how it is ended."""

    def __init__(self, connection: Connection, end: Callable[[], object]) -> None:
        self.connection, self.end = connection, end

    def answer(self, seconds: float | None = None) -> Any:
        """Return the answer of the process, or the reason why none came in time."""
        try:
            return self.connection.recv() if self.connection.poll(seconds) else "it takes too long"
        except (OSError, EOFError):
            return "its process ended"


@cache
def _server(owner: int) -> _Process:
    """Return the process, of the one that asks for it, in which nothing was played."""
    near_end, far_end = Pipe()
    process = subprocess.Popen(
        [sys.executable, "-c", _CODE, str(far_end.fileno())],
        stdin=subprocess.DEVNULL,
        pass_fds=[far_end.fileno()],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    far_end.close()
    server = _Process(near_end, process.kill)
    atexit.register(lambda: os.getpid() == owner and (server.end(), process.wait()))
    return server


def _forked(run: Callable[[Connection], object]) -> _Process:
    """Return a fork of this process, which runs a function and ends."""
    near_end, far_end = Pipe()
    child = os.fork()
    if child == 0:
        try:
            near_end.close()
            run(far_end)
        finally:
            os._exit(0)
    far_end.close()

    def end() -> None:
        near_end.close()
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    return _Process(near_end, end)


def serve_at(handle: int) -> None:
    """Play what is asked for at a file descriptor."""
    serve(Connection(handle))


def serve(connection: Connection, target: Any = None) -> None:
    """Play pairs of jobs until there are no more, each job in a fork."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):  # what a target writes is nobody's
        os.dup2(nothing, number)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    gc.freeze()  # a fork copies what its collector touches
    with suppress(EOFError, OSError):
        while True:
            jobs: list[Job] = connection.recv()
            sys.path[:] = jobs[0].path
            with suppress(OSError):
                os.chdir(jobs[0].folder)
            players = [_forked(partial(_play, target, job)) for job in jobs]
            answers = [player.answer(_PATIENCE) for player in players]
            for player in players:
                player.end()
            connection.send(answers)


def _play(target: Any, job: Job, connection: Connection) -> None:
    """Send the plays of a job, or why there are none."""
    signal.setitimer(signal.ITIMER_VIRTUAL, 3 * _SECONDS)
    try:
        answer: object = _plays(target if job.target is None else pickle.loads(job.target), job)
        connection.send(answer)
    except BaseException as error:  # whatever it is, it is no play
        connection.send(f"{type(error).__name__}: {error}")
