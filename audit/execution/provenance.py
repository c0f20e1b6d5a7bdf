"""What results depend on besides a plan: versions, our own code, users' files, what they import, and their names."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import platform
import re
import sys
import sysconfig
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import Distribution, distributions, version
from pathlib import Path

from ... import __version__
from ...errors import hinted

#: Our own package's folder, and its only room whose code plays and chooses nothing.
_ROOT, _SHOWS = Path(__file__).resolve().parents[2], "reports"
#: The distribution that a RECORD is of, by the folder that each has of its own.
_OF_DISTRIBUTION = re.compile(r"^([^/\n,]+)-[^-/\n,]+\.dist-info/", re.MULTILINE)
#: Folders of what is installed.
_INSTALLED = {"site-packages", "dist-packages"}
#: Functions that import what their first argument names.
_IMPORTERS = ("import_module", "__import__")


def versions() -> dict[str, str]:
    """Return the versions of what plays a block and of what chooses its pair."""
    names = ("numpy", "scipy", "scikit-learn", "optuna")
    return {"python": platform.python_version()} | {name: version(name) for name in names}


def packages() -> str:
    """Return these versions, and our own, as one text."""
    return ", ".join(f"{name} {version}" for name, version in {"overclaim": __version__, **versions()}.items())


@cache
def own_code() -> str:
    """Return the hash of our own code that plays and chooses."""
    files = sorted(path for room in _rooms() if room.name != _SHOWS for path in room.glob("**/*.py"))
    files += sorted(_ROOT.glob("*.py"))
    return hashlib.sha256(b"\0".join(path.read_bytes() for path in files)).hexdigest()[:12]


def environment() -> dict[str, str]:
    """Return the interpreter, and the hash of every installed distribution's RECORD by its name.

    Of a distribution without one it is the hash of its metadata. Of two with one name, the first on the path is
    imported: both are named, in that order.
    """
    hashes: dict[str, list[str]] = {}
    for distribution in distributions():
        record = _text_of(distribution, "RECORD")
        match = _OF_DISTRIBUTION.search(record)
        text = record or _text_of(distribution, "METADATA") or _text_of(distribution, "PKG-INFO")
        name = match[1] if match else next(iter(re.findall(r"^Name: *(\S+)", text, re.MULTILINE)), "without a name")
        hashes.setdefault(name, []).append(hashlib.sha256(text.encode()).hexdigest())
    installed = {name: " ".join(digests) for name, digests in sorted(hashes.items())}
    return {"the interpreter": f"{sys.implementation.name} {sys.version}", **installed}


def _text_of(distribution: Distribution, name: str) -> str:
    """Return a file of a distribution's metadata; nothing where there is none that can be read."""
    try:
        return distribution.read_text(name) or ""
    except (OSError, ValueError):  # no UTF-8
        return ""


def _rooms() -> list[Path]:
    """Return the folders of our own package: tests, examples and benchmarks, which lie beside them, are none."""
    return sorted(path.parent for path in _ROOT.glob("*/__init__.py"))


def work_tree() -> Path | None:
    """Return the root of the git work tree that the current folder lies in; None where it lies in none.

    In a work tree that was added, and in a submodule, `.git` is a file.
    """
    current = Path.cwd()
    return next((folder for folder in (current, *current.parents) if os.path.exists(folder / ".git")), None)


def folder_in_tree() -> str:
    """Return the current folder as its work tree names it; empty at its root, and where there is none."""
    tree = work_tree()
    current = Path.cwd()
    return "" if tree is None or tree == current else current.relative_to(tree).as_posix()


def named_from_here(path: Path) -> str:
    """Return a file's name from the current folder, where it lies there or in the same work tree; else its last part.

    A record names no folder of a machine: of ours and of what is installed it has the name from the package on.
    """
    current, path = Path.cwd(), path.resolve()
    if path.is_relative_to(current):
        return path.relative_to(current).as_posix()
    tree = work_tree()
    in_tree = tree is not None and path.is_relative_to(tree)
    if in_tree:
        return Path(os.path.relpath(path, current)).as_posix()
    installed = [i for i, part in enumerate(path.parts) if part in _INSTALLED]
    if path.is_relative_to(_ROOT) or not installed:
        return path.relative_to(_ROOT).as_posix() if path.is_relative_to(_ROOT) else path.name
    return Path(*path.parts[installed[-1] + 1 :]).as_posix()


def target_from_here(target: str) -> str:
    """Return a target whose file is named by all of its path, as it is named from here where it lies here."""
    place, colon, name = target.rpartition(":")
    if not colon or not os.path.isabs(place):
        return target
    short_name = named_from_here(Path(place))
    return target if short_name == Path(place).name and Path(place).parent != Path.cwd() else f"{short_name}:{name}"


def digest(place: str) -> str:
    """Return the hash of the file that a user's target lies in; empty where there is none."""
    path: str | None = place
    if not place.endswith(".py"):
        try:
            spec = importlib.util.find_spec(place)
        except (ImportError, ValueError):
            return ""
        path = spec.origin if spec is not None else None
    try:
        return hashlib.sha256(Path(path or "").read_bytes()).hexdigest()
    except (OSError, ValueError):  # a plan may name what no system has a file for
        return ""


def digest_with_imports(place: str) -> str:
    """Return the hash of a user's target and of all of the user's files that it imports, wherever in its code.

    Imports are read, not run: those of a name that is computed are not seen here, but by `loaded_files`.

    Parameters
    ----------
    place : str
        A file's path, ending in .py, or the name of a module.
    """
    return hashlib.sha256(repr(sorted(_Imports.of(place).found.items())).encode()).hexdigest()


def check_namesakes(places: Iterable[str]) -> None:
    """Refuse targets that import different files under one name: a process holds one module of a name.

    The other target would be audited with the first one's module, and which is first is chance.

    Raises
    ------
    ValueError
        If there are such; the message names the module and both targets.
    """
    owners: dict[str, tuple[str, str]] = {}
    for place in dict.fromkeys(places):
        for name, digest in _Imports.of(place).found.items():
            if not name or name.endswith(".py") or name.partition(".")[0] in sys.stdlib_module_names:
                continue  # the target itself, what is loaded by its path, and what no file of a user's stands in for
            other, other_digest = owners.setdefault(name, (place, digest))
            if other_digest != digest:
                raise hinted(
                    ValueError(
                        f"{other} and {place} import different modules called {name}, and a process holds "
                        "one of a name"
                    ),
                    "rename one, or give each target a plan of its own",
                )


def loaded_files() -> dict[str, str]:
    """Return the hashes of what is loaded as modules now, by their paths: the user's files, and installed sources.

    A RECORD does not tell that an installed source was edited, and some have none.
    """
    origins = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    paths = {path for path in origins if isinstance(path, str) and (_is_users(path) or _is_installed_source(path))}
    hashed = {path: (_hash if _is_users(path) else _hash_once)(Path(path)) for path in sorted(paths)}
    return {path: digest for path, digest in hashed.items() if digest}


def hashes_now(names: Iterable[str]) -> dict[str, str]:
    """Return the hash of each file, by its name from the current folder; empty of one that is not there."""
    return {name: _hash(Path(name)) for name in sorted(names)}


def changed(files: dict[str, str]) -> list[str]:
    """Return those of some files, by their paths, whose hashes are others now."""
    return sorted(path for path, old_digest in files.items() if _hash(Path(path)) != old_digest)


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""


@cache  # a thousand files; nobody edits them between two claims of one process
def _hash_once(path: Path) -> str:
    return _hash(path)


@cache
def _of_others() -> tuple[Path, ...]:
    """Return the folders of what is installed, whose versions tell what it is."""
    paths = sysconfig.get_paths()
    return tuple({Path(paths[name]).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")})


def _real(path: Path) -> Path:
    """Return a path without links; as it is where that cannot be told, as of links in circles."""
    try:
        return Path(os.path.realpath(path))
    except (OSError, ValueError):
        return path


@cache  # a worker asks for every module that it has loaded, after every claim
def _is_users(name: str) -> bool:
    """Tell whether a file is the user's own: neither Python's, nor ours, nor installed."""
    path = _real(Path(name))
    if _INSTALLED & set(path.parts) or any(map(path.is_relative_to, _of_others())):
        return False
    return not _is_ours(path)


@cache
def _is_installed_source(name: str) -> bool:
    path = _real(Path(name))
    return path.suffix == ".py" and bool(_INSTALLED & set(path.parts)) and not _is_ours(path)


def _is_ours(path: Path) -> bool:
    return path.parent == _ROOT or any(map(path.is_relative_to, _rooms()))


class _Imports:
    """The user's files that a file imports, directly or not: the hash of each, by the name of its module."""

    def __init__(self, folders: list[str], package: str) -> None:
        self.folders, self.package = folders, package
        self.found: dict[str, str] = {}

    @classmethod
    def of(cls, place: str) -> _Imports:
        """Follow the imports of a target."""
        if not place.endswith(".py"):
            imports = cls(sys.path, place.partition(".")[0])
            imports._follow(place)
            return imports
        path = Path(place)
        imports = cls([str(_real(path).parent), *sys.path], "")
        imports._read("", path, "")
        return imports

    def _follow(self, name: str) -> bool:
        """Take in a module, and the packages that it lies in; tell whether there is such a module."""
        folders: list[str] | None = self.folders
        module = ""
        for part in name.split("."):
            module = f"{module}.{part}".lstrip(".")
            spec = self._spec(module, folders)
            if spec is None:
                return False
            folders = None if spec.submodule_search_locations is None else list(spec.submodule_search_locations)
            if spec.has_location and spec.origin and module not in self.found:
                in_package = module.partition(".")[0] == self.package
                if not in_package and not _is_users(spec.origin):
                    return True
                self._read(module, Path(spec.origin), module if folders is not None else module.rpartition(".")[0])
        return True

    def _spec(self, name: str, folders: list[str] | None) -> ModuleSpec | None:
        if folders is None:  # what it lies in is no package
            return None
        try:
            # By its last part: of a package without a file in another one it would ask for the outer one, imported.
            spec = PathFinder.find_spec(name.rpartition(".")[2], folders)
            # An editable installation is found by a finder of its own.
            return spec if spec is not None or "." in name else importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            return None

    def _read(self, name: str, path: Path, package: str) -> None:
        """Take in a file: its hash, and what it imports."""
        self.found[name] = _hash(path)
        if path.suffix != ".py":
            return
        try:
            tree = ast.parse(path.read_bytes())
        except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
            return
        for imported, members in _imports(tree, package):
            if self._follow(imported):
                for member in members:
                    self._follow(f"{imported}.{member}")
        for text in _named_files(tree):  # loaded by their paths
            for file in (path.parent / text, Path(text)):
                if text not in self.found and file.is_file():
                    self._read(text, file, "")


def _named_files(tree: ast.AST) -> Iterator[str]:
    """Yield the texts in some code that may name files of Python code."""
    texts = (node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return (text for text in texts if text.endswith(".py") and len(text) < 200 and "\0" not in text)


def _imports(tree: ast.AST, package: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules that some code imports, each with the names taken from it, which may be modules too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, []) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            name = ".".join([*parents, *([node.module] if node.module else [])])
            if name:
                yield name, [alias.name for alias in node.names]
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            function = getattr(node.func, "attr", getattr(node.func, "id", ""))
            if function in _IMPORTERS and isinstance(node.args[0].value, str):
                name = node.args[0].value
                yield (f"{package}{name}" if name.startswith(".") else name), []
