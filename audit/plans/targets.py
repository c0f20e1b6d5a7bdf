"""Targets: what a name on the command line or in a plan stands for."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType, UnionType
from typing import TYPE_CHECKING, Any, get_args

from ...errors import about, did_you_mean, exclude, hinted, must_be, unknown, unknown_target
from ...learners.blame import raised, raised_by_target
from ...learners.float_errors import beside_target, loaded_none, loading
from ...learners.protocol import LearnerError
from ..execution.import_path import put_first
from ..execution.provenance import named_from_here
from ..record_types import PlaceJson
from .catalogues import LIBRARIES, MECHANISMS, catalogue, libraries, mechanisms
from .paths import exists, named

if TYPE_CHECKING:
    from ...learners.entry import Entry
    from ...mechanisms.library_entry import LibraryEntry
    from ...mechanisms.specimen import Specimen

#: The values of `Setting` that `--set` may change; the others have options of their own.
SETTING_NAMES = ("epsilon", "delta", "losses", "calibration")
TARGETS = "a target must be a catalogue name, FILE.py:NAME or PACKAGE.MODULE:NAME"
#: Floats that Python has no literal for.
_FLOATS = ("nan", "inf", "-inf")
_SETTING_TYPES: dict[str, object] = {"epsilon": float, "delta": float, "losses": str, "calibration": str}


def resolve(target: str) -> object:
    """Return the catalogue entry, the mechanism, or the user's object that a target names.

    Parameters
    ----------
    target : str
        A catalogue name, the name of a mechanism of the zoo (`mechanisms/...`), `file.py:Name`, or
        `package.module:Name`.

    Raises
    ------
    ValueError
        If there is no such entry, file, module or name, with the near matches.
    LearnerError
        If the file raises when it is loaded.
    """
    if ":" in target:
        return _users(target)
    loaded_none()
    return _ours(target)


def _ours(target: str) -> Entry | Specimen | LibraryEntry:
    if not target or target.endswith(".py"):
        raise hinted(ValueError(f"{TARGETS}, got {target!r}"), _named_in(Path(target)))
    if target.startswith(LIBRARIES):
        if target not in libraries():
            raise unknown("there is no entry", target, libraries(), "overclaim list libraries shows all")
        return libraries()[target]
    if target.startswith(MECHANISMS):
        if target not in mechanisms():
            raise unknown("there is no mechanism", target, mechanisms(), "overclaim list mechanisms shows all")
        return mechanisms()[target]
    entries = catalogue().entries()
    if target not in entries:
        raise unknown_target(target, [*entries, *mechanisms(), *libraries()])
    return entries[target]


def _users(target: str) -> object:
    return _module_and_object(target)[1]


def _named_in(file: Path) -> str:
    """Return a hint with the classes and functions of a file, or nothing where it is none."""
    try:
        statements = ast.parse(file.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return ""
    code = (ast.ClassDef, ast.FunctionDef)
    names = [
        f"{file}:{statement.name}"
        for statement in statements
        if isinstance(statement, code) and not statement.name.startswith("_")
    ]
    return f"name one of its classes and functions: {', '.join(names)}" if names else ""


def _module_and_object(target: str) -> tuple[ModuleType, object]:
    """Return the module that a user's target names, and the object in it."""
    place, _, name = target.rpartition(":")
    if not name or not (place.endswith(".py") or all(word.isidentifier() for word in place.split("."))):
        raise ValueError(f"{TARGETS}, got {target!r}")
    module = _load_file(Path(place)) if place.endswith(".py") else _load_module(place)
    if not hasattr(module, name):
        names = [n for n, value in vars(module).items() if not n.startswith("_") and callable(value)]
        defined = [n for n in names if getattr(vars(module)[n], "__module__", "") == module.__name__] or names
        raise hinted(
            ValueError(f"{place} has no class or function {name!r}"), did_you_mean(name, defined, f"{place}:")
        )
    return module, getattr(module, name)


class MechanismError(ValueError):
    """A target is a mechanism where a learner is asked for, or one without its inputs."""


def learners_only(subject: str, target: str) -> MechanismError:
    """Return the error that something is for learners, such as "regret measures", and what audits the mechanism."""
    inputs = " --epsilon 1 --left JSON --right JSON" if ":" in target else ""
    error = MechanismError(f"{subject} learners only, and {target} is a mechanism")
    return hinted(error, f"overclaim check {target}{inputs}")


def relation_functions(text: str) -> tuple[Callable[..., Any], Callable[..., Any] | None]:
    """Return the function `functions` that FILE.py:NAME names, and the file's `is_near`, where it has one."""
    with beside_target():
        module, functions = _module_and_object(text)
    if not callable(functions):
        raise ValueError(
            f"neighbours must name a function near(data, rng), {text} is {type(functions).__name__} {functions!r:.80}"
        )
    return functions, getattr(module, "is_near", None)


def score_function(text: str) -> Callable[..., float]:
    """Return the function `score(output, left, right)` that FILE.py:NAME names."""
    if ".py:" not in text:
        raise must_be("score", "FILE.py:NAME", text)
    with beside_target():
        _, score = _module_and_object(text)
    if not callable(score) or isinstance(score, type):
        raise ValueError(f"score must name a function score(output, left, right), {text} is {type(score).__name__}")
    return score


def _load_file(path: Path) -> ModuleType:
    if not exists(path, "cannot read the target's file"):
        where = "" if path.is_absolute() else " in the folder that you run overclaim in"
        raise ValueError(f"there is no file {str(path)!r}{where}")
    if not path.is_file():
        raise ValueError(f"the target's file {str(path)!r} is no regular file")
    with named("cannot read the target's file", path), path.open("rb") as file:
        file.read(1)
    put_first(str(path.resolve().parent))
    loader = _FromSource(f"overclaim_target_{path.stem}", str(path))
    spec = importlib.util.spec_from_file_location(loader.name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    # While it is loaded it is in sys.modules, where dataclasses look up their annotations. It does not stay there, so
    # that its classes travel to worker processes by value.
    sys.modules[loader.name] = module
    try:
        with loading(str(path.resolve())):
            loader.exec_module(module)
    except BaseException as error:
        raise _loading(f"loading {path}", error) from error
    finally:
        sys.modules.pop(loader.name, None)
    return module


class _FromSource(SourceFileLoader):
    """Compiles a file as it is: bytecode that was kept of the same second and size may be from before an edit."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


def _load_module(name: str) -> ModuleType:
    put_first(None)
    try:
        with loading(name):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        where = "on Python's path: install it, or name its folder in PYTHONPATH"
        raise ValueError(f"there is no module {error.name!r} {where}") from None
    except BaseException as error:
        raise _loading(f"importing {name}", error) from error


def _loading(subject: str, error: BaseException) -> LearnerError:
    """Return the error of a module that raised one as it was loaded; raise Ctrl-C, which is none of its own."""
    if isinstance(error, KeyboardInterrupt) and not raised_by_target(error):
        raise error
    package = str(error.name).partition(".")[0] if isinstance(error, ModuleNotFoundError) and error.name else ""
    return hinted(
        raised(subject, error),
        f"install {package}, or name the folder that holds it in PYTHONPATH" * bool(package),
        f"`stub={package}` lets it be missing, where the noise does not need it" * bool(package),
    )


@dataclass(frozen=True)
class Parameters:
    """Parsed `--set` values: those of the setting, and those of the algorithm."""

    setting: Mapping[str, Any]
    arguments: Mapping[str, Any]


def losses_given_once(losses: str | None, setting: Mapping[str, object]) -> str | None:
    """Return the loss set, which has an option of its own; raise ValueError where `--set` gives another one."""
    if losses is not None and setting.get("losses", losses) != losses:
        raise exclude(f"`losses={losses}`", f"`set=losses={setting['losses']}`")
    return losses


def parse_parameters(target: object, values: Mapping[str, object]) -> Parameters:
    """Check and convert parameters for a target.

    Parameters
    ----------
    target : Entry, Specimen or a user's object
    values : mapping
        Names to values, as text or already typed.

    Raises
    ------
    ValueError
        For an unknown name, with the near matches, or a value that does not convert.
    """
    from ...learners.entry import Entry
    from ...mechanisms.specimen import Specimen

    if isinstance(target, Entry | Specimen):
        names = list(target.parameters)
        names = [*SETTING_NAMES, *names] if isinstance(target, Entry) else names
        for name in values:
            if name not in names:
                otherwise = f"it has {', '.join(names)}" if names else "it has none"
                raise unknown(f"{target.name} has no parameter", name, names, otherwise)
    if not isinstance(target, Entry):
        return Parameters({}, {name: literal(value) for name, value in values.items()})
    setting, rest = {}, {}
    for name, value in values.items():
        if name in _SETTING_TYPES:
            setting[name] = convert(name, value, _SETTING_TYPES[name])
        else:
            rest[name] = convert(name, value, target.parameters[name])
    return Parameters(setting, rest)


def convert(name: str, value: object, kind: object) -> object:
    """Return `value` as the type `kind` (or one of a union's), or raise ValueError naming both."""
    kinds = [k for k in get_args(kind) if k is not type(None)] if isinstance(kind, UnionType) else [kind]
    if value is None or (isinstance(value, str) and value.lower() == "none"):
        if len(kinds) < len(get_args(kind)):
            return None
        raise must_be(name, _named(kinds), value)
    for k in kinds:
        if inspect.isclass(k) and isinstance(value, k) and not (k is int and isinstance(value, bool)):
            return value
        if k is float and isinstance(value, int) and not isinstance(value, bool):
            try:
                return float(value)
            except OverflowError:
                raise about(name, ValueError(f"{name} must be finite, got a number beyond all floats")) from None
        if isinstance(value, str):
            if k is bool and value.lower() in ("true", "false"):
                return value.lower() == "true"
            if k in (int, float):
                try:
                    return k(value)
                except ValueError:
                    continue
    if not all(inspect.isclass(k) and k in (int, float, bool, str) for k in kinds):
        return literal(value)
    raise must_be(name, _named(kinds), value)


def _named(kinds: list[object]) -> str:
    type_names: dict[object, str] = {int: "an integer", float: "a number", str: "text", bool: "true or false"}
    return " or ".join(type_names.get(k, str(k)) for k in kinds)


def literal(value: object) -> object:
    """Return text as the Python literal it spells, or the float that has no literal, or unchanged."""
    if not isinstance(value, str):
        return value
    if value in _FLOATS:
        return float(value)
    try:
        return ast.literal_eval(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):  # a list as a key; nested too deeply
        return value


def source_place(learner: object) -> PlaceJson | None:
    """Return the file and line where a learner or mechanism is written; None where Python cannot tell.

    The path is relative to the current folder where the file lies in it, or in the same work tree of git.
    """
    if isinstance(where := getattr(learner, "place", None), Mapping) and "file" in where:  # of another Python
        return {"file": named_from_here(Path(where["file"])), "line": where["line"]}
    source = getattr(learner, "user_class", learner)
    source = source.func if isinstance(source, partial) else source
    source = source if inspect.isclass(source) or inspect.isroutine(source) else type(source)
    # A user's file is not in sys.modules, where inspect looks for classes: the code of the methods tells the file.
    members = list(vars(source).values()) if inspect.isclass(source) else [source]
    codes = [code for member in members if (code := getattr(inspect.unwrap(member), "__code__", None)) is not None]
    codes = [code for code in codes if Path(code.co_filename).is_file()]  # a dataclass has methods from no file
    if not codes:
        return None
    line = min(code.co_firstlineno for code in codes)
    path = Path(codes[0].co_filename)
    if inspect.isclass(source):
        with suppress(OSError, SyntaxError, ValueError):  # it may have changed since it was loaded
            tree = ast.parse(path.read_bytes())  # bytes: the file says in which encoding
            classes = [n for n in ast.walk(tree) if isinstance(n, ast.ClassDef) and n.name == source.__name__]
            line = max((n.lineno for n in classes if n.lineno <= line), default=line)
    return {"file": named_from_here(path), "line": line}
