"""Run the command line: ``overclaim``, or ``python -m overclaim``."""

import os
import signal


def _end(*_: object) -> None:
    os.write(2, b"overclaim: interrupted\n")
    os._exit(130)


def run() -> None:
    """Run the command line; Ctrl-C while it loads ends it at once, as there is nothing yet to tidy up."""
    # A process that was started to ignore it, as by nohup, goes on ignoring it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _end)
    from overclaim.reports.command_line.cli import main

    main()


if __name__ == "__main__":
    run()
