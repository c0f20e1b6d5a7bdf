"""What a run audits, so that a reader of its report can find it: the commit, the files, their hashes, versions."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator, Mapping
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from itertools import chain
from pathlib import Path

from ... import __version__
from ..execution.provenance import hash_of, is_users, named_from_here, versions
from ..record_types import AuditedJson
from ..spaces.files import InputFile
from .plan import Plan
from .tasks import Task

#: Seconds that git may take: the status of a large work tree is not worth more.
_PATIENCE = 20


def audited_files(plan: Plan) -> AuditedJson:
    """Return the commit of the current folder, whether it holds all that is audited, and the hash of each file.

    It does if no tracked file was changed, and every file that the plan names is tracked.
    """
    commit = _git("rev-parse", "HEAD")
    uncommitted = None if commit is None else _git("status", "--porcelain", "--untracked-files=no")
    identity: AuditedJson = {
        "commit": commit,
        "clean": None if uncommitted is None else uncommitted == "",
        "files": {},
        "versions": {"overclaim": __version__, **versions(), **_versions_of(plan)},
    }
    return with_files(identity, {str(path): hash_of(str(path)) for task in plan.tasks for path in files_of(task)})


def with_files(identity: AuditedJson, hashes: Mapping[str, str]) -> AuditedJson:
    """Return what was audited with more files, by their paths: the user's, by their names from the current folder."""
    users = {path: digest for path, digest in sorted(hashes.items()) if digest and is_users(path)}
    files = identity["files"] | {named_from_here(Path(path)): digest for path, digest in users.items()}
    tracked = not users or not identity["clean"] or _git("ls-files", "--error-unmatch", "--", *users) is not None
    return identity | {"files": files, "clean": identity["clean"] and tracked}


def files_of(task: Task) -> Iterator[Path]:
    """Yield the files that a task names: its target, its relation's, its score's, its inputs, and canaries' scores."""
    names = [] if task.of_scores else [task.target]
    names += [name for name in (task.relation if task.near_by_function else None, task.score) if name is not None]
    yield from chain(*map(file_of, names))
    files: list[str | Path] = [file for file in (task.scores, task.inserted, task.held_out) if file is not None]
    files += [value.path for value in (task.left, task.right, task.input_schema) if isinstance(value, InputFile)]
    yield from (Path(os.path.abspath(file)) for file in files)


def file_of(target: str) -> Iterator[Path]:
    """Yield the file of a user's target, where it names one that there may be."""
    place = target.rpartition(":")[0]
    path = Path(place) if place.endswith(".py") else _origin(place) if place else None
    if path is not None:
        yield Path(os.path.abspath(path))


def _origin(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _versions_of(plan: Plan) -> dict[str, str]:
    """Return the versions of the installed distributions that targets are modules of."""
    modules = {task.target.partition(":")[0].partition(".")[0] for task in plan.tasks if ":" in task.target}
    distributions = packages_distributions() if any(not name.endswith("py") for name in modules) else {}
    return {name: version(name) for module in sorted(modules) for name in distributions.get(module, ())}


def _git(*arguments: str) -> str | None:
    """Return what git prints; None where it is not there, fails, or takes too long."""
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *arguments]
    try:
        process = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() if process.returncode == 0 else None
