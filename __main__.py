"""Run the command line: ``overclaim``, or ``python -m overclaim``."""

import atexit
import os
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn


def _end(*_: object) -> None:
    os.write(2, b"overclaim: interrupted\n")
    os._exit(130)


def _refused(code: int) -> None:
    raise SystemExit(f"os._exit({code})")


def run() -> None:
    """Run the command line; Ctrl-C while it loads ends it at once, as there is nothing yet to tidy up."""
    # A process that was started to ignore it, as by nohup, goes on ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    for descriptor in (0, 1, 2):  # a file of ours that took the place of a closed one would be printed into
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)
    try:
        from overclaim.reports.command_line.cli import main
    except Exception as error:
        os.write(2, f"overclaim: cannot be loaded: {type(error).__name__}: {error}\n".encode(errors="replace"))
        sys.exit(70)
    ends, code = os._exit, 70
    # The first that is registered is called last: threads of ours have ended by then, before Python waits for others.
    threading._register_atexit(lambda: _end_alone(ends, code))  # type: ignore[attr-defined]
    try:
        main()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else code
        raise
    finally:
        os._exit = _refused  # type: ignore[assignment]  # what audited code has registered may not end it otherwise


def _end_alone(ends: Callable[[int], NoReturn], code: int) -> None:
    """End without threads that audited code has started, for which Python would wait: one may go on for ever."""
    if all(thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        return
    with suppress(BaseException):
        atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    ends(code)


if __name__ == "__main__":
    run()
