"""What results depend on besides a plan: the versions of packages, and the text of users' files."""

from __future__ import annotations

import hashlib
import importlib.util
import platform
from importlib.metadata import version
from pathlib import Path

from ... import __version__


def packages(*, fast: bool = False) -> str:
    """Return the versions of what plays a block and of what chooses its pair, with that of numba if it is `fast`."""
    names = ("numpy", "scipy", "scikit-learn", "optuna", *(["numba"] if fast else []))
    found = (f"{name} {version(name)}" for name in names)
    return ", ".join([f"overclaim {__version__}", f"python {platform.python_version()}", *found])


def digest(place: str) -> str:
    """Return the hash of the file that a user's target lies in; what it imports is not followed."""
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
