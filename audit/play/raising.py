"""Exceptions as outcomes: what somebody who is told that a call failed has seen."""

from __future__ import annotations

import inspect
from collections.abc import Callable

from ...errors import about
from ...learners.blame import deliberate, name_of
from ...learners.protocol import LearnerError

#: What an outcome that is an exception begins with.
RAISED = "raised "


def outcome_of(error: BaseException | None) -> str | None:
    """Return the outcome that an exception is: its type without its message; None where it is no outcome.

    KeyboardInterrupt and SystemExit end a run, full memory is the machine's, and an error of ours is the audit's.
    """
    if not isinstance(error, Exception) or isinstance(error, MemoryError | LearnerError) or deliberate(error):
        return None
    return f"{RAISED}{type(error).__name__}"


class Outcomes:
    """A mechanism whose exceptions are outcomes like any other.

    Parameters
    ----------
    mechanism : callable
        Called run by run: an exception ends one run, and of a batched mechanism all of them.
    """

    batched = False

    def __init__(self, mechanism: Callable[..., object]) -> None:
        if getattr(mechanism, "batched", False):
            batched = f"raising is for what is called run by run, and {name_of(mechanism)} is batched"
            raise about("raising", ValueError(batched))
        self.mechanism = mechanism
        self.__wrapped__ = mechanism  # what a signature is read from
        self.__name__ = name_of(mechanism)

    def __call__(self, *arguments: object) -> object:
        """Answer once."""
        try:
            return self.mechanism(*arguments)
        except Exception as error:
            outcome = outcome_of(error)
            if outcome is None or (isinstance(error, TypeError) and not takes(self.mechanism, *arguments)):
                raise
            return outcome


def takes(mechanism: Callable[..., object], *arguments: object) -> bool:
    """Return whether a callable can be called with these arguments; True where its signature is not told."""
    try:
        inspect.signature(mechanism).bind(*arguments)
    except TypeError:
        return False
    except ValueError:  # of a C extension
        return True
    return True
