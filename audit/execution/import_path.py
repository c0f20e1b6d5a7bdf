"""Where the code under audit may import from: its own folder, but for the names of Python's own modules."""

from __future__ import annotations

import os
import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType

from ...errors import must_be
from .provenance import is_users

#: Folders that were put on the path for a target.
_of_targets: list[str] = []
#: The variable that names modules which may be missing, for the processes that are started.
_STUBS = "OVERCLAIM_STUBS"


def let_be_missing(modules: Sequence[str]) -> None:
    """Let imports of missing modules succeed, in this process and in those that it starts.

    Raises
    ------
    ValueError
        If one is no name of a module.
    """
    if not modules:
        return
    if invalid := [name for name in modules if not name.isidentifier()]:
        raise must_be("stub", "names of modules, without dots", invalid[0])
    from ...mechanisms.worker import install_stubs

    os.environ[_STUBS] = ",".join(modules)
    install_stubs(list(modules))


def let_be_missing_too() -> None:
    """Let those modules be missing that may be in the process that started this one."""
    let_be_missing([name for name in os.environ.get(_STUBS, "").split(",") if name])


class _OwnNames:
    """Python's names are looked for where Python and packages are installed, and nowhere else.

    Libraries try modules that only other platforms have (`winreg`), and would find a user's file of that name.
    """

    @staticmethod
    def find_spec(name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """Return where a module of Python's is; None for any other, which the next finder looks for."""
        if path is not None or name not in sys.stdlib_module_names:
            return None
        spec = PathFinder.find_spec(name, [place for place in sys.path if _is_installed(place)], target)
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
        return spec


@cache
def _is_installed(place: str) -> bool:
    paths = sysconfig.get_paths()
    roots = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    return Path(place).suffix == ".zip" or any(Path(place).is_relative_to(root) for root in roots)


def keep_own_names() -> None:
    """Let no file of a user's stand in for a module of Python's, in this process."""
    if _OwnNames not in sys.meta_path:
        # Built-in and frozen modules are found first, and what a user's tools put before them stays before.
        places = (i for i, finder in enumerate(sys.meta_path) if finder is PathFinder)
        sys.meta_path.insert(next(places, len(sys.meta_path)), _OwnNames)


def put_first(folder: str | None) -> None:
    """Let a target import from its own folder, if it is given by its file, in this process and in workers that start.

    It comes first, as the folder of a script does, so that a target finds its neighbours, and not what has their name
    in the working directory or on PYTHONPATH. The folders of earlier targets come last, and modules that a new process
    would now find elsewhere are forgotten.
    """
    keep_own_names()
    if folder is not None and folder not in sys.path:
        _of_targets.append(folder)
    rest = [place for place in sys.path if place not in _of_targets and place != folder]
    last = [place for place in sys.path if place in _of_targets and place != folder]
    sys.path[:] = [*([] if folder is None else [folder]), *rest, *last]
    for name, module in list(sys.modules.items()):
        origin = vars(module).get("__file__") if isinstance(module, ModuleType) else None
        if isinstance(origin, str) and is_users(origin) and _origin(name) not in (None, os.path.realpath(origin)):
            package = name.partition(".")[0]
            for loaded in [other for other in sys.modules if other.partition(".")[0] == package]:
                del sys.modules[loaded]


def _origin(name: str) -> str | None:
    """Return the file that a module is imported from now; packages are not loaded to tell."""
    folders: Sequence[str] | None = sys.path
    spec = None
    for part in name.split("."):
        spec = None if folders is None else PathFinder.find_spec(part, folders)
        if spec is None:
            return None
        folders = spec.submodule_search_locations
    return os.path.realpath(spec.origin) if spec is not None and spec.has_location and spec.origin else None
