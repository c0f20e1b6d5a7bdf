"""Whose an error is: of the code under audit, of the input, or our own; and which errors may not cost a verdict."""

from __future__ import annotations

import dis
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, wraps
from pathlib import Path
from types import FrameType
from typing import TypeVar, cast

from ..errors import about, placed
from .float_errors import ours, theirs
from .protocol import LearnerError, LossError

Play = TypeVar("Play", bound=Callable[..., object])
Extra = TypeVar("Extra")

#: Our own package and its folder: its `raise` statements say what is wrong with the input.
_PACKAGE, _HOME = __name__.partition(".")[0], Path(__file__).resolve().parents[1]
#: What our own code calls: an error in there is that of whoever called it.
_LIBRARIES = frozenset(sys.stdlib_module_names) | {
    *("click", "cloudpickle", "dask", "distributed", "jinja2", "joblib", "jsonschema", "llvmlite", "matplotlib"),
    *("numpy", "optuna", "pandas", "scipy", "sklearn", "statsmodels", "threadpoolctl", "tqdm"),
    *("PIL", "attr", "contourpy", "cycler", "dateutil", "fontTools", "kiwisolver", "markupsafe", "msgpack"),
    *("mpl_toolkits", "packaging", "patsy", "pyparsing", "referencing", "rpds", "sqlalchemy", "tornado", "yaml"),
}
#: What the globals of a template's frames hold, which bear no module's name: templates are the reports' own.
_OF_TEMPLATES = ("__jinja_template__", "__jinja_exception__")
_MOST_LETTERS = 400


def said(error: BaseException) -> str:
    """Return an exception on one line, its type and its message, even where its own text raises."""
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message raises)"
    message = message if len(message) <= _MOST_LETTERS else f"{message[:_MOST_LETTERS]}..."
    return f"{type(error).__name__}: {message}".removesuffix(": ")


def raised(what: str, error: BaseException, more: str = "") -> LearnerError:
    """Return the LearnerError that says in one line what raised an error of the code under audit, and where."""
    return placed(about(what, LearnerError(f"{what} raised {said(error)}{more}")), crash_place(error))


def frames(error: BaseException) -> Iterator[tuple[FrameType, int]]:
    """Yield the frames that an error passed through, outermost first, each with its last instruction."""
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame, trace.tb_lasti
        trace = trace.tb_next


def audited_code(error: BaseException) -> str | None:
    """Return where in the code under audit an error was raised: the outermost function that is not ours; or None."""
    in_package = False
    for frame, _ in frames(error):
        in_package = in_package or of_package(_module(frame))
        if in_package and _of_others(frame):
            return frame.f_code.co_qualname.replace("<locals>.", "")
    return None


def crash_place(error: BaseException) -> str:
    """Return the last line of the target's own file that an error passed through, as `FILE:LINE in NAME()`."""
    in_package, place, trace = False, None, error.__traceback__
    while trace is not None:
        code, frame = trace.tb_frame.f_code, trace.tb_frame
        in_package = in_package or of_package(_module(frame))
        if in_package and _of_others(frame) and (place is None or place[0] == code.co_filename):
            place = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    return "" if place is None else _place_text(*place)


def call_place(frame: FrameType | None) -> str:
    """Return the innermost line of code under audit, as in `crash_place`, that a thread is in; empty in ours alone."""
    place = ""
    while frame is not None and not (place and of_package(_module(frame))):
        if not place and _of_others(frame):
            place = _place_text(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return place if frame is not None else ""  # ours called it


def _place_text(file: str, line: int, name: str) -> str:
    path, folder = Path(file), Path.cwd()
    place_name = path.relative_to(folder) if path.is_relative_to(folder) else path.name if path.is_absolute() else path
    return f"{place_name}:{line}" + (f" in {name}()" if name.isidentifier() else "")


def deliberate(error: BaseException) -> bool:
    """Tell whether a `raise` statement of our own raised an error, and no accident did."""
    if getattr(error, "accident", False):  # as a worker process has found: the frames stay there
        return False
    if getattr(type(error), "deliberate", False):  # raised on another machine: so do these
        return True
    *_, last = [(None, 0), *frames(error)]
    return last[0] is not None and of_package(_module(last[0])) and _raises(*last)


def raised_by_target(error: BaseException) -> bool:
    """Tell whether a `raise` statement of the code under audit, or of what it calls, raised an error: no Ctrl-C does.

    It must not be ours: while a target runs, a handler of ours raises for a signal.
    """
    *_, last = [(None, 0), *frames(error)]
    in_target = last[0] is not None and not of_package(_module(last[0]))
    return in_target and audited_code(error) is not None and _raises(*last)


def interruption(error: BaseException) -> LearnerError:
    """Return the error of a target that raised KeyboardInterrupt itself: nobody pressed Ctrl-C."""
    return raised(audited_code(error) or "the target", error)


def raised_unpressed(error: KeyboardInterrupt, *, heard: bool) -> LearnerError | None:
    """Return the error of the target whose KeyboardInterrupt this is; None where a signal came, or none plays."""
    return None if heard or audited_code(error) is None else interruption(error)


def _raises(frame: FrameType, instruction: int) -> bool:
    return dis.opname[frame.f_code.co_code[instruction]] == "RAISE_VARARGS"


def blamed(error: BaseException, target: object = None) -> BaseException:
    """Return a LearnerError for an error of the code under audit, and any other error as it is.

    It is the target's if its code was running, or if our own stumbled, without meaning to, over a target that is not
    ours: over what its methods returned. An import of ours that fails is not: the installation lacks a package.

    Parameters
    ----------
    target : Learner, or a mechanism, optional
        What was played.
    """
    pressed = isinstance(error, KeyboardInterrupt) and not raised_by_target(error)
    if pressed or isinstance(error, LearnerError | LossError):
        return error
    place = audited_code(error)
    if place is not None:
        blame = raised(place if target is None else name_of(target), error)
    elif target is None or isinstance(error, MemoryError | ImportError) or deliberate(error) or all_ours(target):
        return error
    else:
        blame = LearnerError(f"the audit of {name_of(target)} cannot go on with what it is or returns: {said(error)}")
    blame.__cause__ = error
    return blame


def blaming(play: Play) -> Play:
    """Turn what a learner or a mechanism, the first argument, raises in `play` into LearnerError, even SystemExit.

    What `play` computes itself handles floating-point errors as NumPy begins. Bad input that we refuse, full memory
    and Ctrl-C are passed on as they are.
    """

    @wraps(play)
    def wrapped(learner: object, *args: object, **kwargs: object) -> object:
        try:
            with ours():
                return play(learner, *args, **kwargs)
        except BaseException as error:
            blame = blamed(error, learner)
            if blame is error:
                raise
            raise blame from error

    return cast(Play, wrapped)


@dataclass(frozen=True)
class MissingExtra:
    """What a verdict goes without, as a trace or a figure, and why."""

    what: str
    reason: str

    def __str__(self) -> str:
        return f"missing: {self.what}: {self.reason}"


def extra_or_reason(what: str, make: Callable[[], Extra]) -> tuple[Extra | None, tuple[MissingExtra, ...]]:
    """Return an extra of a verdict and nothing, or None and why it is missing: its faults do not cost the verdict.

    Ctrl-C, a request to exit and full memory are passed on, also where they became another error, and so is what
    ends a whole run: an error whose class says `ends_run`. What the target raises itself is a fault like any other.

    Examples
    --------
    >>> extra_or_reason("ratio", lambda: 1 / 0)
    (None, (MissingExtra(what='ratio', reason='ZeroDivisionError: division by zero'),))
    """
    try:
        return make(), ()
    except BaseException as error:
        if any(map(_ending, _behind(error))):
            raise
        blame = blamed(error)
        deliberate_error = isinstance(blame, LearnerError | LossError) or deliberate(blame)
        reason = said(blame).partition(": ")[2] if deliberate_error else ""
        return None, (MissingExtra(what, reason or said(blame)),)


def _ending(error: BaseException) -> bool:
    """Tell whether no extra survives an error: a request to end, unless the target raised it, or full memory."""
    if isinstance(error, KeyboardInterrupt):
        return not raised_by_target(error)
    if not isinstance(error, Exception):
        return audited_code(error) is None
    return isinstance(error, MemoryError) or getattr(type(error), "ends_run", False)


def _behind(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that it was raised for or while handling."""
    seen: set[int] = set()
    cause: BaseException | None = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        yield cause
        cause = cause.__cause__ or cause.__context__


def name_of(target: object) -> str:
    """Return what to call a target: the name of the user's class, of the function, or of the object's class."""
    source = getattr(target, "user_class", target)
    return str(getattr(source, "__name__", type(source).__name__))


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__"))


def _of_others(frame: FrameType) -> bool:
    """Tell whether a frame is of code that is neither ours nor of what we call."""
    if any(name in frame.f_globals for name in _OF_TEMPLATES):
        return False
    return not of_package(_module(frame)) and _module(frame).partition(".")[0] not in _LIBRARIES


@cache
def of_package(module: str) -> bool:
    """Tell whether a module lies in our package; tests, examples and benchmarks lie beside it."""
    package, _, rest = module.partition(".")
    part = _HOME / rest.partition(".")[0]
    return package == _PACKAGE and any(file.is_file() for file in (part / "__init__.py", part.with_suffix(".py")))


def at_play(target: object) -> Callable[[], AbstractContextManager[None]]:
    """Return what makes the contexts a target is played in: with its own floating-point errors, unless it is ours."""
    return nullcontext if all_ours(target) else theirs


def all_ours(target: object, depth: int = 4) -> bool:
    """Tell whether a target, and all that is played inside it, is of our own rooms."""
    kind = target if isinstance(target, type) or not hasattr(target, "__dict__") else type(target)
    if not of_package(str(getattr(kind, "__module__", ""))):
        return False
    if "mechanism" in (fields := vars(target) if kind is not target and depth else {}):  # played for us
        return all_ours(fields["mechanism"], depth - 1)
    played = (part for part in fields.values() if isinstance(part, type) or hasattr(type(part), "update"))
    return all(all_ours(part, depth - 1) for part in played if not isinstance(part, dict))
