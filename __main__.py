"""Run the command line: ``overclaim``, or ``python -m overclaim``."""

import os
import signal
import sys


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
    try:
        main()
    finally:
        os._exit = _refused  # type: ignore[assignment]  # what audited code has registered may not end it otherwise


if __name__ == "__main__":
    run()
