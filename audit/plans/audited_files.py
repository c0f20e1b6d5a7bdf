"""What a run audits, so that a reader of its report can find it: the commit, the files, their hashes, versions."""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from importlib.metadata import packages_distributions, version
from importlib.util import find_spec
from pathlib import Path

from ... import __version__
from ..execution.provenance import named_from_here, versions
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
    places = sorted({path for task in plan.tasks for path in _files_of(task)})
    hashes = {named_from_here(path): digest for path in places if (digest := _hash(path))}
    commit = _git("rev-parse", "HEAD")
    changed = None if commit is None else _git("status", "--porcelain", "--untracked-files=no")
    tracked = not hashes or _git("ls-files", "--error-unmatch", "--", *map(str, places)) is not None
    return {
        "commit": commit,
        "clean": None if changed is None else changed == "" and tracked,
        "files": hashes,
        "versions": {"overclaim": __version__, **versions(), **_versions_of(plan)},
    }


def _files_of(task: Task) -> Iterator[Path]:
    """Yield the files that a task names: its target, its relation's, its inputs, and scores of canaries."""
    names = [task.target.rpartition(":")[0]] if not task.of_scores else []
    names += [task.relation.rpartition(":")[0]] if task.near_by_function else []
    yield from (Path(name) for name in names if name.endswith(".py"))
    for name in names:
        if name and not name.endswith(".py") and (origin := _origin(name)) is not None:
            yield origin
    yield from (Path(file) for file in (task.scores, task.inserted, task.held_out) if file is not None)
    yield from (one.path for one in (task.left, task.right, task.input_schema) if isinstance(one, InputFile))


def _origin(module: str) -> Path | None:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return Path(spec.origin) if spec is not None and spec.has_location and spec.origin else None


def _versions_of(plan: Plan) -> dict[str, str]:
    """Return the versions of the installed distributions that targets are modules of."""
    modules = {task.target.partition(":")[0].partition(".")[0] for task in plan.tasks if ":" in task.target}
    known = packages_distributions() if any(not name.endswith("py") for name in modules) else {}
    return {name: version(name) for module in sorted(modules) for name in known.get(module, ())}


def _hash(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return ""


def _git(*words: str) -> str | None:
    """Return what git prints; None where it is not there, fails, or takes too long."""
    command = ["git", "-c", "core.fsmonitor=false", "--no-optional-locks", *words]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE, check=False)
    except (OSError, ValueError, subprocess.SubprocessError):
        return None
    return done.stdout.strip() if done.returncode == 0 else None
