"""Errors, exit codes and streams of the command line: one clear line, nothing half-printed."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stdout
from functools import wraps
from typing import Any

import click

OK, FALSIFIED, BAD_INPUT, UNDERPOWERED, CRASHED, INTERRUPTED = 0, 1, 2, 3, 4, 130


class Failure(click.ClickException):
    """One clear line on stderr, and an exit code."""

    def __init__(self, message: str, code: int) -> None:
        line = " ".join(message.split())
        super().__init__(line if len(line) <= 1200 else f"{line[:800]} ... {line[-300:]}")
        self.exit_code = code  # type: ignore[misc]

    def show(self, file: Any = None) -> None:
        """Print the line."""
        click.echo(f"overclaim: {self.message}", err=True)


@contextmanager
def clear_errors() -> Iterator[None]:
    """Turn bad input and a misbehaving learner into one line and the right exit code."""
    from ...audit.plans.ledger import LedgerError
    from ...audit.play.cluster import ClusterError, ClusterLostError
    from ...learners.protocol import LearnerError

    try:
        yield
    except LearnerError as error:
        raise Failure(str(error), CRASHED) from None
    except ClusterLostError as error:
        raise Failure(str(error), INTERRUPTED) from None
    except (LedgerError, ClusterError, ValueError) as error:
        raise Failure(str(error), BAD_INPUT) from None
    except OverflowError as error:
        raise Failure(f"a number is too large to compute with: {error}", BAD_INPUT) from None
    except RecursionError:
        raise Failure("the input is nested too deeply", BAD_INPUT) from None
    except MemoryError as error:
        raise Failure(str(error) or "out of memory: fewer rounds, arms or --jobs", BAD_INPUT) from None


@contextmanager
def clear_imports() -> Iterator[None]:
    """Turn a package that is missing or broken into one line; what audited code imports is its own fault."""
    try:
        yield
    except ImportError as error:
        if (error.name or "overclaim").partition(".")[0] == "overclaim":
            raise
        raise Failure(
            f"cannot import {error.name}: {error}; pip install overclaim brings what it needs", BAD_INPUT
        ) from None


@contextmanager
def clear_interrupt() -> Iterator[None]:
    """Turn Ctrl-C into one line and its exit code, also where an interrupted import made another error of it."""
    pressed = []

    def press(number: int, frame: Any) -> None:
        pressed.append(number)
        raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    ours = callable(before) and threading.current_thread() is threading.main_thread()
    if ours:
        signal.signal(signal.SIGINT, press)
    try:
        yield
    except KeyboardInterrupt:
        raise Failure("interrupted", INTERRUPTED) from None
    except Exception:
        if pressed:
            raise Failure("interrupted", INTERRUPTED) from None
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, before)


@contextmanager
def own_stdout() -> Iterator[None]:
    """Keep stdout for our own output: what audited code prints, here or in a worker process, goes to stderr."""
    with redirect_stdout(sys.stderr):
        try:
            sys.__stdout__.flush()  # type: ignore[union-attr]
            kept = os.dup(1)
        except (OSError, AttributeError, ValueError):  # there is no stdout
            yield
            return
        try:
            os.dup2(2, 1)
            yield
        finally:
            os.dup2(kept, 1)
            os.close(kept)


def command(function: Callable[..., Any]) -> Callable[..., Any]:
    """Run a command under `clear_errors`, `clear_imports` and `clear_interrupt`."""

    @wraps(function)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        with clear_interrupt(), clear_imports(), clear_errors():
            return function(*args, **kwargs)

    return wrapped


class Commands(click.Group):
    """A group whose usage errors are one line, like every other error."""

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        """Parse the group's own options."""
        with one_line():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        """Parse and run a command."""
        with one_line():
            return super().invoke(ctx)


@contextmanager
def one_line() -> Iterator[None]:
    """Turn a usage error into one line that names the help."""
    try:
        yield
    except click.UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # no error: the help itself
            raise
        path = error.ctx.command_path if error.ctx is not None else "overclaim"
        told = error.format_message().rstrip(".")
        told += "" if told.endswith(("?", "?)")) else ";"
        raise Failure(f"{told} see {path} --help", BAD_INPUT) from None
