"""Where the code under audit may import from: its own folder, but for the names of Python's own modules."""

from __future__ import annotations

import sys
import sysconfig
from collections.abc import Sequence
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType


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


def add_folder(folder: str) -> None:
    """Let modules be imported from the folder of a target, in this process and in workers that start later.

    It comes first, as the folder of a script does, so that a target finds its neighbours, and not what has their name
    in the working directory or on PYTHONPATH.
    """
    keep_own_names()
    if folder in sys.path:
        sys.path.remove(folder)
    sys.path.insert(0, folder)
