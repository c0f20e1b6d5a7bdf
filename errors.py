"""The words of errors about input, once: what was expected, what came, and what to do about it.

A hint travels with an error as a note: Python prints it below the message, and so do the command line and the plugin.
In backquotes it names a keyword, which a command line names as its option: `runs`, or `raising="outcome"`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TypeVar, overload

Error = TypeVar("Error", bound=BaseException)

#: What the notes of an error begin with that are its hints, and that which says where the code under audit raised.
HINT, WHERE = "hint: ", "where: "
#: A keyword in an error or a hint, by itself or with its value: `runs`, `runs=361`, `raising="outcome"`.
KEYWORD = re.compile(r"`(\w+)(?:=([^`]*))?`")
#: Letters of a value that an error shows, and suggestions that a hint makes.
_MOST_LETTERS, _MOST_NEAR = 80, 3
#: How alike a suggestion is, of 1, by difflib: its own usual limit.
_MIN_LIKENESS = 0.6
#: By how much less alike than the best another suggestion may be.
_AS_GOOD = 0.1


def hinted(error: Error, *hints: str) -> Error:
    """Return an error with hints, what to do about it; an empty one adds nothing."""
    for hint in filter(None, hints):
        error.add_note(f"{HINT}{hint}")
    return error


def placed(error: Error, where: str) -> Error:
    """Return an error of the code under audit with the place where it was raised."""
    if where:
        error.add_note(f"{WHERE}{where}")
    return error


def notes_of(error: BaseException, kind: str = HINT) -> list[str]:
    """Return the hints of an error, or its places."""
    notes = getattr(error, "__notes__", ())
    return [note.removeprefix(kind) for note in notes if isinstance(note, str) and note.startswith(kind)]


def subject_of(error: BaseException) -> str:
    """Return the parameter that an error begins with and is about; nothing where it is about none."""
    return str(getattr(error, "subject", ""))


def reworded(error: BaseException, message: str, kind: type[Error]) -> Error:
    """Return an error with another message, and the hints and places of an earlier one.

    Examples
    --------
    >>> notes_of(reworded(hinted(ValueError("no file"), "make one"), "plan.toml:3: no file", ValueError))
    ['make one']
    """
    other = kind(message)
    for note in getattr(error, "__notes__", ()):
        other.add_note(note)
    return other


@overload
def must_be(name: str, expected: str, value: object) -> ValueError: ...
@overload
def must_be(name: str, expected: str, value: object, kind: type[Error]) -> Error: ...
def must_be(name: str, expected: str, value: object, kind: type[BaseException] = ValueError) -> BaseException:
    """Return the error that a value is not as expected.

    Examples
    --------
    >>> must_be("runs", "at least 1", 0)
    ValueError('runs must be at least 1, got 0')
    """
    return about(name, kind(f"{name} must be {expected}, got {shown(value)}"))


@overload
def must_be_one_of(name: str, choices: Iterable[str], value: object) -> ValueError: ...
@overload
def must_be_one_of(name: str, choices: Iterable[str], value: object, kind: type[Error]) -> Error: ...
def must_be_one_of(
    name: str, choices: Iterable[str], value: object, kind: type[BaseException] = ValueError
) -> BaseException:
    """Return the error that a value is none of some words, with the one that it may stand for.

    Examples
    --------
    >>> error = must_be_one_of("losses", ("unit", "symmetric"), "units")
    >>> print(error, notes_of(error))
    losses must be one of unit, symmetric; got 'units' ['did you mean unit?']
    """
    choices = list(choices)
    error = kind(f"{name} must be one of {', '.join(choices)}; got {shown(value)}")
    return hinted(about(name, error), did_you_mean(value, choices))


def unknown(message: str, name: object, choices: Iterable[str], otherwise: str = "") -> ValueError:
    """Return the error that there is nothing of a name, with what it may stand for, or else another hint.

    Parameters
    ----------
    message : str
        The whole message but the name, as in "there is no mechanism".

    Examples
    --------
    >>> error = unknown("there is no mechanism", "laplas", ["laplace", "gaussian"])
    >>> print(error, notes_of(error))
    there is no mechanism 'laplas' ['did you mean laplace?']
    """
    return hinted(ValueError(f"{message} {shown(name)}"), did_you_mean(name, choices) or otherwise)


def exclude(first: str, other: str, reason: str = "", hint: str = "give one of them") -> ValueError:
    """Return the error that two things are given that go alone: names or, in backquotes, keywords."""
    return hinted(ValueError(f"{first} cannot go with {other}{f': {reason}' if reason else ''}"), hint)


def takes_no(subject: str, names: Iterable[str], *hints: str) -> ValueError:
    """Return the error that something is given keywords that it does not heed.

    Examples
    --------
    >>> takes_no("noisy.py:count is a mechanism", ["rounds", "arms"])
    ValueError('noisy.py:count is a mechanism: it takes no `rounds`, `arms`')
    """
    return hinted(ValueError(f"{subject}: it takes no {', '.join(f'`{name}`' for name in names)}"), *hints)


def not_given(subject: str, *hints: str) -> ValueError:
    """Return the error that something is not given, such as "my.py:Tally has no claim of its own: epsilon"."""
    return hinted(ValueError(f"{subject} is missing"), *hints)


def about(name: str, error: Error) -> Error:
    """Return an error that begins with a parameter's name: a command names its option, a plan the line of its key."""
    error.subject = name  # type: ignore[attr-defined]
    return error


def as_keys(text: str) -> str:
    """Return a text with its keywords as a plan has them: `runs=361` as runs = 361."""
    return KEYWORD.sub(lambda match: match[1] + (f" = {match[2]}" if match[2] else ""), text)


def did_you_mean(name: object, choices: Iterable[str], before: str = "") -> str:
    """Return "did you mean ...?" with what is near a name, or nothing: those in a folder of that name first.

    Parameters
    ----------
    before : str
        What stands before each of `choices` where it is typed.

    Examples
    --------
    >>> did_you_mean("Tall", ["Tally", "Other"], "my.py:")
    'did you mean my.py:Tally?'
    """
    word, choices = str(name), list(choices)
    likeness = {choice: _likeness(word.lower(), choice.lower()) for choice in choices}
    min_likeness = max(_MIN_LIKENESS, max(likeness.values(), default=0.0) - _AS_GOOD)
    matches = [choice for choice in choices if choice.rpartition("/")[2] == word]
    matches += sorted(
        (choice for choice in choices if likeness[choice] >= min_likeness), key=lambda choice: -likeness[choice]
    )[:_MOST_NEAR]
    if not matches and word:
        matches = [choice for choice in choices if word in choice][:_MOST_NEAR]
    matches = [f"{before}{choice}" for choice in dict.fromkeys(matches)]
    return f"did you mean {' or '.join(matches)}?" if matches else ""


def _likeness(first: str, other: str) -> float:
    from difflib import SequenceMatcher

    return SequenceMatcher(None, first, other).ratio()


def shown(value: object) -> str:
    """Return a value as an error shows it: shortened, and a number of NumPy's as Python's."""
    try:
        python_value = value.item() if type(value).__module__ == "numpy" and not getattr(value, "shape", 1) else value  # type: ignore[attr-defined]
        text = " ".join(repr(python_value).split())
    except Exception:  # of a user's class
        text = f"a {type(value).__name__} whose repr raises"
    return text if len(text) <= _MOST_LETTERS else f"{text[:_MOST_LETTERS]}..."


def unknown_target(name: str, choices: Iterable[str]) -> ValueError:
    """Return the error that there is no target of a name, with the near matches."""
    return unknown("unknown target", name, choices, "overclaim list shows the catalogue")
