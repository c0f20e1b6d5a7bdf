"""Errors, exit codes and streams of the command line: one clear line, nothing half-printed.

Only a verdict exits 1: commands return their exit code, and everything else that ends one is a `Failure` with another.
"""

from __future__ import annotations

import errno
import os
import re
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from functools import partial, wraps
from typing import Any, TextIO

import click

from ...errors import WHERE, notes_of
from ..sanitise import visible
from ..status import BAD_INPUT, CRASHED, FALSIFIED, INTERNAL, OK
from .failures import End, Failure, usage_failure
from .help_pages import help_all_option, main_page, page

#: The exit code of a command that was interrupted.
INTERRUPTED = 130
#: What ends a command from outside, and the word for it; the exit code is a shell's, 128 more than the number.
_ENDS: dict[int, str] = {signal.SIGINT: "interrupted", signal.SIGTERM: "terminated"}
if hasattr(signal, "SIGHUP"):
    _ENDS[signal.SIGHUP] = "hung up"
#: Set to anything, it shows where an internal error comes from.
TRACEBACK = "OVERCLAIM_TRACEBACK"
#: Below the line of a target that crashed.
UNDECIDED = f"{TRACEBACK}=1 prints the traceback. No verdict was reached."
#: The signals of timers, each with its timer, where the system has them.
_TIMERS = {
    getattr(signal, f"SIG{name}"): getattr(signal, f"ITIMER_{timer}")
    for name, timer in (("ALRM", "REAL"), ("VTALRM", "VIRTUAL"), ("PROF", "PROF"))
    if hasattr(signal, "setitimer")
}
#: Where modules are imported from as long as no audited code has changed it.
_PLACES = tuple(sys.path)
#: Calls that may be open at once: audited code may have lowered it, and an error could then not be told.
DEPTH = sys.getrecursionlimit()
#: A colour, as click writes it.
_COLOUR = re.compile("(\x1b\\[[0-9;]*m)")


def say(text: str, *, err: bool = False, styled: bool = False, nl: bool = True) -> None:
    """Print on stdout or stderr, with nothing that steers a terminal but the line breaks, and our colours if `styled`.

    Raises
    ------
    Failure
        If stdout cannot be written to. Of stderr there is nobody to tell.
    """
    from ...audit.execution.progress import LINE  # not before something is printed: `--help` is instant

    LINE.erase()
    stream = sys.stderr if err else sys.stdout
    parts = _COLOUR.split(text) if styled else [text]
    parts[::2] = ["\n".join(visible(line) for line in part.split("\n")) for part in parts[::2]]
    encoding = getattr(stream, "encoding", None) or "utf-8"
    text = "".join(parts).encode(encoding, "backslashreplace").decode(encoding)
    try:
        if stream is None:
            raise OSError(errno.EBADF, "it is closed")
        click.echo(text, nl=nl, err=err)
    except (OSError, ValueError) as error:
        _silence(stream)
        if not err:
            raise _unwritten(error) from None


def show(failure: click.ClickException) -> None:
    """Print a failure on stderr: its line, its place and its hint."""
    lines = failure.lines() if isinstance(failure, Failure) else [f"overclaim: error: {failure.format_message()}"]
    say("\n".join(lines), err=True)


def _unwritten(error: Exception) -> Failure:
    return Failure(f"cannot write to stdout: {getattr(error, 'strerror', None) or error}", BAD_INPUT)


def _silence(stream: TextIO | None) -> None:
    """Send what a broken stream still holds to nowhere, or the interpreter would fail on it at its end."""
    with suppress(Exception):  # as where there is no stream
        place = stream.fileno()  # type: ignore[union-attr]
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, place)
        os.close(null)


def _not_imported(error: ImportError) -> Failure:
    if missing := [place for place in _PLACES if place not in sys.path]:
        return Failure(f"cannot import {error.name}: the target has taken {missing[0]!r} out of sys.path", CRASHED)
    cure = "pip install overclaim brings what it needs"
    return Failure(f"cannot import {error.name}: {error}", BAD_INPUT, hints=[cure])


def failure_of(error: BaseException, *, plays: bool = True, of_plan: bool = False) -> click.ClickException:
    """Return the line and the exit code of whatever ends a command, or a claim of a plan: no verdict's.

    Parameters
    ----------
    plays : bool
        Whether the command plays a target.
    """
    if isinstance(error, click.ClickException):
        return error if error.exit_code != FALSIFIED else Failure(error.format_message(), BAD_INPUT)
    if isinstance(error, KeyboardInterrupt | click.Abort):
        return End("interrupted", INTERRUPTED)
    try:
        from ...audit.execution.cluster import ClusterError, ClusterLostError
        from ...audit.plans.lock import LedgerError
        from ...learners.blame import blamed, said
        from ...learners.protocol import LearnerError
    except ImportError as missing:  # what they need themselves
        return _not_imported(missing)

    if os.environ.get(TRACEBACK):
        traceback.print_exception(error, file=sys.stderr)
    error = blamed(error) if plays else error
    codes: dict[type[BaseException], int] = {LearnerError: CRASHED, ClusterLostError: INTERRUPTED}
    codes |= dict.fromkeys((LedgerError, ClusterError, ValueError), BAD_INPUT)
    if (code := next((code for kind, code in codes.items() if isinstance(error, kind)), None)) is not None:
        otherwise = [UNDECIDED] if code == CRASHED and notes_of(error, WHERE) else []
        return Failure.of(error, code, *otherwise, ctx=None if of_plan else click.get_current_context(silent=True))
    cures = {
        OverflowError: (f"a number is too large to compute with: {error}", ""),
        RecursionError: ("the input is nested too deeply", ""),
        MemoryError: (f"out of memory{f': {error}' if str(error) else ''}", "use fewer rounds, arms or --jobs"),
    }
    for kind, (message, cure) in cures.items():
        if isinstance(error, kind):
            return Failure(message, BAD_INPUT, hints=[cure] * bool(cure))
    if isinstance(error, ImportError) and (error.name or "overclaim").partition(".")[0] != "overclaim":
        return _not_imported(error)
    if isinstance(error, OSError):
        place = f": {error.filename!r}" if error.filename else ""
        return Failure(f"{error.strerror or said(error)}{place}", BAD_INPUT)
    shows = f"{TRACEBACK}=1 prints the traceback, for a report of this fault"
    return Failure(f"internal error, a fault of overclaim: {said(error)}", INTERNAL, hints=[shows])


def exit_code_of(call: Callable[[], object]) -> int:
    """Run the command line and return its exit code: what the command returns, or that of its failure."""
    try:
        code = call()
        if sys.stdout is not None:
            sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except BaseException as error:
        sys.setrecursionlimit(max(DEPTH, sys.getrecursionlimit()))
        exec("")  # where the last text executed, as by data classes, was interrupted, `-m` would end by SIGINT
        if isinstance(error, SystemExit | OSError):  # click's own, where the reader of a help has gone
            _silence(sys.stdout)
            error = _unwritten(error if isinstance(error, OSError) else OSError(errno.EPIPE, os.strerror(errno.EPIPE)))
        failure = failure_of(error)
        with suppress(OSError, ValueError):
            show(failure)
        return failure.exit_code


@contextmanager
def clear_errors(*, plays: bool = True) -> Iterator[None]:
    """Turn whatever goes wrong into one line and an exit code."""
    try:
        yield
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        sys.setrecursionlimit(max(DEPTH, sys.getrecursionlimit()))
        raise failure_of(error, plays=plays) from None


@contextmanager
def clear_interrupt() -> Iterator[None]:
    """Turn Ctrl-C into one line and its exit code, also where an interrupted import made another error of it.

    Likewise a request to end, and a terminal that is closed: worker processes are ended, and what is finished is kept.
    Python drops what is raised in a callback or a `__del__`: where that was the request, it is made again.
    """
    pressed: list[int] = []
    dropped: list[threading.Timer] = []
    owner, unraisable = os.getpid(), sys.unraisablehook

    def press(number: int, frame: object) -> None:
        if os.getpid() != owner:  # a child of the audited code
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        pressed.append(number)
        raise KeyboardInterrupt

    def repeat(drop: Any) -> None:
        if not pressed or os.getpid() != owner or not issubclass(drop.exc_type, KeyboardInterrupt):
            unraisable(drop)
            return
        timer = threading.Timer(0.05, os.kill, (owner, pressed[-1]))
        timer.daemon = True
        dropped.append(timer)
        if len(dropped) == len(pressed):  # no other request is being heeded
            timer.start()

    before = {number: signal.getsignal(number) for number in _ENDS}
    main = threading.current_thread() is threading.main_thread()
    # A process that was started to ignore one, as by nohup, goes on ignoring it.
    caught = {n for n, old in before.items() if main and (callable(old) or old is signal.SIG_DFL)}
    for number in caught:
        signal.signal(number, press)
    sys.unraisablehook = repeat
    try:
        yield
    except KeyboardInterrupt as error:
        from ...learners.blame import raised_unpressed

        crash = raised_unpressed(error, heard=bool(pressed) or any(signal.getsignal(n) is not press for n in caught))
        raise (Failure(str(crash), CRASHED) if crash else _ended_by(pressed)) from None
    except Exception:
        if pressed:
            raise _ended_by(pressed) from None
        raise
    finally:
        for timer in dropped:
            timer.cancel()
        sys.unraisablehook = unraisable
        for number in caught:
            signal.signal(number, before[number])


def _ended_by(pressed: list[int]) -> Failure:
    return End(_ENDS[number := pressed[-1] if pressed else signal.SIGINT], 128 + number)


@contextmanager
def own_process() -> Iterator[None]:
    """Keep stdout and the end of the process for ourselves while audited code runs.

    What it prints, here or in a worker process, goes to stderr, and in the end each of its warnings once; `os._exit`
    raises; a stdout that it closes is opened again. A timer that audited code sets and has no handler for raises when
    it runs out, and ends with the audit.
    """
    from ...audit.execution.progress import begin

    begin()
    ends, owner, stdout = os._exit, os.getpid(), sys.stdout

    def refuse(code: int) -> None:
        if os.getpid() != owner:  # a child of the audited code
            ends(code)
        raise SystemExit(f"os._exit({code})")

    os._exit = refuse  # type: ignore[assignment]
    try:
        with (
            _each_warning_once(),
            _timers_kept(),
            _stdout_kept(),
            _stderr_there() as stderr,
            redirect_stdout(_Open(stderr)),
        ):
            yield
    finally:
        os._exit = ends
        sys.stdout = stdout
        if getattr(stdout, "closed", False):
            sys.stdout = open(1, "w", encoding=stdout.encoding, closefd=False)  # noqa: SIM115


@contextmanager
def _each_warning_once() -> Iterator[None]:
    """Show warnings in the end, each place that warned once, with a count."""
    from ...audit.execution.warned import collected, lines
    from ...audit.execution.workers import ignore_harmless_warnings

    ignore_harmless_warnings()  # beyond the end: what is still computed then is cancelled
    with collected() as warned:
        try:
            yield
        finally:
            for line in lines(warned):
                say(f"overclaim: {line}", err=True)


@contextmanager
def _stderr_there() -> Iterator[TextIO]:
    """Have a `sys.stderr`, to nowhere where it is closed: what starts a process flushes it, and hands it on."""
    if sys.stderr is not None:
        yield sys.stderr
        return
    with suppress(OSError):
        os.set_inheritable(2, True)
    with open(os.devnull, "w") as nowhere, redirect_stderr(nowhere):
        yield nowhere


class _Open:
    """A stream that others write to and cannot close."""

    def __init__(self, stream: object) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def close(self) -> None:
        """Stay open."""


@contextmanager
def _timers_kept() -> Iterator[None]:
    """Have the signal of a timer, which would end this process, raise LearnerError; stop timers that were set here."""
    from ...learners.protocol import LearnerError

    def refuse(number: int, frame: object) -> None:
        raise LearnerError(
            f"{signal.Signals(number).name} arrived: a timer of the target's ran out, without a handler"
        )

    main = threading.current_thread() is threading.main_thread()
    timers = {n: timer for n, timer in _TIMERS.items() if main and signal.getsignal(n) is signal.SIG_DFL}
    before = {timer: signal.getitimer(timer) for timer in timers.values()}
    for number in timers:
        signal.signal(number, refuse)
    try:
        yield
    finally:
        for number, timer in timers.items():
            signal.setitimer(timer, *before[timer])
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def _stdout_kept() -> Iterator[None]:
    """Have the descriptor 1 mean stderr for a while."""
    try:
        sys.__stdout__.flush()  # type: ignore[union-attr]
        copy = os.dup(1)
    except (OSError, AttributeError, ValueError):  # there is no stdout
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(copy, 1)
        os.close(copy)


def command(function: Callable[..., object], *, plays: bool = False) -> Callable[..., object]:
    """Run a command, which plays a target or does not, under `clear_errors` and `clear_interrupt`."""

    @wraps(function)
    def wrapped(*args: object, **kwargs: object) -> object:
        with clear_interrupt(), clear_errors(plays=plays):
            return function(*args, **kwargs)

    return wrapped


playing_command = partial(command, plays=True)


class Once(click.Command):
    """A command that refuses two values of one option, of which click takes the last, and a flag with its opposite."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the words of the command line."""
        for option in () if ctx.resilient_parsing else self._repeated(ctx, args):
            values = self._values(ctx, args, option)
            name, opposite = option.opts[0], option.secondary_opts[:1]
            if not option.is_flag:
                texts = [value if isinstance(value, str) else "no value" for value in values]
                raise click.UsageError(f"{name} is given more than once: {', '.join(texts)}", ctx)
            if opposite and len(set(values)) > 1:
                raise click.UsageError(f"{name} and {opposite[0]} are both given", ctx)
        return super().parse_args(ctx, args)

    def get_params(self, ctx: click.Context) -> list[click.Parameter]:
        """Return the parameters, with `--help-all`."""
        return [*super().get_params(ctx), help_all_option()]

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the command's page."""
        formatter.write(page(self, ctx, with_rare=False))

    def _repeated(self, ctx: click.Context, args: list[str]) -> list[click.Option]:
        _, _, order = self.make_parser(ctx).parse_args(list(args))
        options = [param for param in dict.fromkeys(order) if isinstance(param, click.Option) and not param.multiple]
        return [option for option in options if order.count(option) > 1]

    def _values(self, ctx: click.Context, args: list[str], option: click.Option) -> list[object]:
        """Return all values of an option, in their order; click's parser tells the last alone, of whatever words."""
        values: dict[int, object] = {}
        for end in range(1, len(args) + 1):
            with suppress(click.UsageError):  # a name without its value
                last, _, order = self.make_parser(ctx).parse_args(args[:end])
                values[order.count(option)] = last.get(str(option.name))
        return [value for count, value in values.items() if count]


class Commands(click.Group):
    """A group: usage errors are one line, its list cuts no sentence off, and commands return the exit code."""

    command_class = Once

    def main(self, *args: object, standalone_mode: bool = True, **extra: object) -> Any:
        """Run a command and exit."""
        call = partial(super().main, *args, standalone_mode=False, **extra)
        if not standalone_mode:
            return call()
        sys.exit(exit_code_of(call))

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the program's page."""
        formatter.write(main_page(ctx.command_path))

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the group's own options."""
        with one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> object:
        """Parse and run a command."""
        with one_line():
            return super().invoke(ctx)


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a usage error into one line, and a hint."""
    try:
        yield
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no error: the help itself
            raise
        raise usage_failure(error, BAD_INPUT) from None
