"""What is printed of an error: one line that is complete, then where it happened and what to do, if that is known."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import click

from ...audit.plans.options import REMOVED
from ...errors import HINT, KEYWORD, WHERE, as_keys, did_you_mean, notes_of, subject_of
from ..sanitise import visible_line

#: What click says of a value that is not of a parameter's type.
_UNFIT = re.compile(r"(.*) is not (?:a valid \w+|one of|in the range)\b", re.DOTALL)
#: Commands of earlier versions, and what does their job.
REMOVED_COMMANDS = {"smoke": "overclaim check TARGET, or overclaim scores FILE --design one-run"}
#: Letters of a line: of a longer one the beginning and the end are shown.
_MAX_LETTERS, _HEAD, _TAIL = 1200, 800, 300


class Failure(click.ClickException):
    """One clear line on stderr, a place and a hint below it, and an exit code."""

    kind = "error: "

    def __init__(self, message: str, code: int, *, where: Sequence[str] = (), hints: Sequence[str] = ()) -> None:
        super().__init__(_shortened(message))
        self.exit_code = code  # type: ignore[misc]
        self.where, self.hint = "; ".join(where), "; ".join(dict.fromkeys(hints))

    @classmethod
    def of(cls, error: BaseException, code: int, *hints: str, ctx: click.Context | None) -> Failure:
        """Return the failure that an error is, with its place and its hints, or else others.

        Parameters
        ----------
        ctx : click.Context or None
            Of the command whose options its keywords are; None names them as a plan does.
        """
        message, subject = str(error), subject_of(error)
        target = str(ctx.params.get("target", "")) if ctx is not None else ""
        if message.startswith(f"{subject} raised ") and target.rpartition(":")[2] == subject.partition(".")[0]:
            message = target + message.removeprefix(subject)  # its place says whose method it was
        elif subject and message.startswith(subject):
            rest = message.removeprefix(subject)
            message = typed(subject, ctx) + (f" {rest.removeprefix(' = ')}" if rest.startswith(" = ") else rest)
        where, typable = notes_of(error, WHERE), [hint for hint in notes_of(error, HINT) if _can_be_typed(hint, ctx)]
        return cls(as_typed(message, ctx), code, where=where, hints=[as_typed(hint, ctx) for hint in typable or hints])

    def lines(self) -> list[str]:
        """Return what is printed."""
        notes = (("where", self.where), ("hint", self.hint))
        texts = [f"  {f'{name}:':<6} {_shortened(text)}" for name, text in notes if text]
        return [f"overclaim: {self.kind}{self.message}", *texts]


class End(Failure):
    """The line of a command that was ended from outside: no error."""

    kind = ""


def _shortened(message: str) -> str:
    line = visible_line(message)
    return line if len(line) <= _MAX_LETTERS else f"{line[:_HEAD]} ... {line[-_TAIL:]}"


def typed(name: str, ctx: click.Context | None) -> str:
    """Return a keyword as a command has it: `--left`, `--set eta`, or the name where it has no option."""
    if ctx is None:
        return name
    is_typed = ctx.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
    if not is_typed and name in dict(ctx.params.get("parameters") or ()):
        return f"--set {name}"
    flag = f"--{name.replace('_', '-')}"
    flags = [word for param in ctx.command.params for word in (*param.opts, *param.secondary_opts)]
    return flag if flag in flags else name


def _can_be_typed(hint: str, ctx: click.Context | None) -> bool:
    """Tell whether a command has an option for each keyword of a hint."""
    return ctx is None or all(typed(match[1], ctx) != match[1] for match in KEYWORD.finditer(hint))


def as_typed(text: str, ctx: click.Context | None) -> str:
    """Return a text with its keywords as options where the command has them, and without backquotes."""
    if ctx is None:
        return as_keys(text)

    def option(match: re.Match[str]) -> str:
        name, value = match[1], match[2]
        word = typed(name, ctx)
        if value is None or word == name:
            return word if value is None else f"{name} = {value}"
        if value in ("True", "False"):
            return word if value == "True" else f"--no-{word.removeprefix('--')}"
        return f"{word} {value.strip(chr(34))}"

    return KEYWORD.sub(option, text)


def usage_failure(error: click.UsageError, code: int) -> Failure:
    """Return the failure that a usage error of click's is, in our words whatever click's version says."""
    ctx = error.ctx
    path = ctx.command_path if ctx is not None else "overclaim"
    message, guess = _usage(error, ctx)
    unknown = isinstance(error, click.NoSuchOption | click.MissingParameter) or message.startswith("no such")
    hint = f"{path} --help shows the options" if unknown and not guess else guess
    return Failure(message, code, hints=[hint] * bool(hint))


def _usage(error: click.UsageError, ctx: click.Context | None) -> tuple[str, str]:
    """Return what is wrong, and what may have been meant."""
    if isinstance(error, click.NoSuchOption):
        if removed := REMOVED.get(error.option_name.lstrip("-")):
            return f"{error.option_name}: {removed}", f"leave out {error.option_name}"
        return f"no such option: {error.option_name}", _near(error.option_name, ctx)
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return f"{_called(error.param, ctx)} is missing", ""
    if isinstance(error, click.BadParameter) and error.param is not None:
        return _unfit(error, error.param, ctx)
    message = error.format_message().rstrip(".")
    if (word := re.search(r"[Nn]o such command '?([^']*)", message)) and isinstance(ctx and ctx.command, click.Group):
        if word[1] in REMOVED_COMMANDS:
            return f"{word[1]} was removed in 0.3.0", REMOVED_COMMANDS[word[1]]
        commands = ctx.command.list_commands(ctx) if ctx and isinstance(ctx.command, click.Group) else []
        return f"no such command: {word[1]}", did_you_mean(word[1], commands, "overclaim ")
    message = re.sub(r"'(--[\w-]+)'", r"\1", message)
    return message[:1].lower() + message[1:], ""


def _near(name: str, ctx: click.Context | None) -> str:
    """Return the options that a name may stand for: of the command that was called."""
    params = [param for param in (ctx.command.params if ctx else ()) if not getattr(param, "hidden", False)]
    flags = [word for param in params for word in (*param.opts, *param.secondary_opts)]
    return did_you_mean(name.lstrip("-"), [word.removeprefix("--") for word in flags if word[:2] == "--"], "--")


def _called(param: click.Parameter, ctx: click.Context | None) -> str:
    return max(param.opts, key=len) if isinstance(param, click.Option) else param.make_metavar(*([ctx] if ctx else []))


def _unfit(error: click.BadParameter, param: click.Parameter, ctx: click.Context | None) -> tuple[str, str]:
    """Return what is wrong with a value, and which word it may stand for."""
    name, message, kind = _called(param, ctx), error.message.rstrip("."), param.type
    match = _UNFIT.match(message)
    if match and isinstance(kind, click.Choice):
        names = [str(choice) for choice in kind.choices]
        return f"{name} must be one of {', '.join(names)}; got {match[1]}", did_you_mean(match[1].strip("'\""), names)
    if match:
        return f"{name} must be {_expected(kind)}, got {match[1]}", ""
    if message.startswith(f"{param.name} "):  # one of our own, about its keyword
        message = message.removeprefix(f"{param.name} ")
    hints = notes_of(error.__context__, HINT) if error.__context__ is not None else []
    begins = message.startswith(("must be ", "gives "))
    return f"{name}{' ' if begins else ': '}{message}", "; ".join(hints)


def _expected(kind: Any) -> str:
    """Return what a number of click's must be."""
    integral = isinstance(kind, click.types.IntParamType)
    text = "an integer" if integral else "a number"
    with suppress(AttributeError):
        low, high = kind.min, kind.max
        relation = " above " if getattr(kind, "min_open", False) else " of at least "
        text += f"{relation}{low:g}" if low is not None else ""
        text += f"{' and at most ' if low is not None else ' of at most '}{high:g}" if high is not None else ""
    return text
