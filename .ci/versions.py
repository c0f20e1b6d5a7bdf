"""Overclaim used on the lowest or the newest versions that pyproject.toml allows: `python .ci/versions.py lowest`.

On every interpreter of PYTHONS that this machine has, in an environment of its own each: what is installed is what
`pip install 'overclaim[cluster,figures]'` may install, and pytest for the plugin. Prints what was skipped.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[1]
PYTHONS = ("3.11", "3.13")
#: The extras that users install; those of `adapters` are only what the examples audit.
EXTRAS = ("cluster", "figures")
#: Seconds that one command may take, where a quiet machine needs ten.
PATIENCE = 300
REDUCTION = "agarwal-singh/reduction-threshold"
PLAN = f"""
[[claims]]
target = "{REDUCTION}"
rounds = 2
runs = 20_000
expect = "falsified"

[[claims]]
target = "mine.py:noisy"
epsilon = 2
left = 1
right = 0
runs = 8_000
"""
MINE = """
def noisy(data, rng):
    return data + rng.laplace(scale=1.0)
"""
TEST = """
from mine import noisy
from overclaim import Claim
from overclaim.learners import BatchedLaplace, Threshold

def test_promise(falsify):
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    falsify(learner, Claim(epsilon=1.0), rounds=2, runs=4000).require_survived()
"""
#: What is done, and its exit code.
USES = (
    (0, "overclaim list"),
    (1, f"overclaim check {REDUCTION} --epsilon 1 --rounds 2 --runs 20000 --jobs 2"),
    (0, f"overclaim exact {REDUCTION} --rounds 2"),
    (0, "overclaim run plan.toml --jobs 2"),
    (0, f"overclaim regret {REDUCTION} --rounds 32 --runs 200 --jobs 2"),
    (0, "overclaim report out/record.json --html a.html --markdown a.md --junit a.xml --sarif a.sarif"),
    (0, "python -m pytest -q -p no:cacheprovider test_mine.py"),
    (0, "python -c 'import distributed, overclaim.audit.execution.cluster'"),
)


def requirements(project: dict, python: str) -> list[Requirement]:
    """Return what a user installs on this Python, and pytest; one package may stand there several times."""
    extras = project["optional-dependencies"]
    texts = [*project["dependencies"], *(need for extra in EXTRAS for need in extras[extra])]
    texts += [need for need in extras["dev"] if Requirement(need).name == "pytest"]
    needed = map(Requirement, texts)
    here = {"python_version": python, "python_full_version": f"{python}.0"}
    return [need for need in needed if need.marker is None or need.marker.evaluate(here)]


def lowest(needs: list[Requirement]) -> dict[str, str]:
    """Return the lowest version of each package that all of its requirements allow."""
    bounds: dict[str, list[Version]] = {}
    for need in needs:
        (bound,) = [Version(s.version) for s in need.specifier if s.operator == ">="]
        bounds.setdefault(need.name, []).append(bound)
    return {name: str(max(found)) for name, found in bounds.items()}


def pins(project: dict, python: str, kind: str) -> list[str]:
    """Return what to install: the lowest versions themselves, or the names with their bounds."""
    needs = requirements(project, python)
    if kind == "lowest":
        return [f"{name}=={version}" for name, version in lowest(needs).items()]
    return [f"{need.name}{need.specifier}" for need in needs]


def interpreters() -> Iterator[tuple[str, str | None]]:
    """Yield the versions of PYTHONS, each with an interpreter of this machine, or None."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    for version in PYTHONS:
        places = [sys.executable, shutil.which(f"python{version}")]
        places += sorted(map(str, root.glob(f"versions/{version}.*/bin/python")))
        ask = "import sys; print('{}.{}'.format(*sys.version_info))"
        for place in filter(None, places):
            answer = subprocess.run([place, "-c", ask], capture_output=True, text=True, check=False)
            if answer.stdout.strip() == version:
                yield version, place
                break
        else:
            yield version, None


def wheel(folder: Path) -> Path:
    """Return our wheel, built from a copy: what an earlier build left behind is not in it."""
    left = shutil.ignore_patterns(".*", "out", "build", "dist", "*.egg-info", "__pycache__")
    copy = shutil.copytree(ROOT, folder / "source", ignore=left)
    build = f"from setuptools.build_meta import build_wheel; build_wheel({str(folder)!r})"
    built = subprocess.run([sys.executable, "-c", build], cwd=copy, capture_output=True, text=True, check=False)
    if built.returncode:
        sys.exit(built.stderr)
    (wheel_file,) = folder.glob("*.whl")
    return wheel_file


def use(python: Path, folder: Path) -> None:
    """Do what users do, in a folder; end with what went wrong."""
    for name, text in {"plan.toml": PLAN, "mine.py": MINE, "test_mine.py": TEST}.items():
        (folder / name).write_text(text)
    environment = {**os.environ, "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}"}
    # None of nine commands shall compile anew what another one has.
    for name in ("PYTHONPATH", "PYTHONDONTWRITEBYTECODE"):
        environment.pop(name, None)
    for code, command in USES:
        done = subprocess.run(
            command, shell=True, cwd=folder, env=environment, capture_output=True, text=True, timeout=PATIENCE
        )
        if done.returncode != code:
            sys.exit(f"{command}: exit code {done.returncode}, expected {code}\n{done.stdout}{done.stderr}")


def main(kind: str) -> None:
    """Install and use overclaim on each interpreter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as folder:
        ours = wheel(Path(folder))
        for version, interpreter in interpreters():
            if interpreter is None:
                print(f"{kind}: Python {version} skipped: this machine has none")
                continue
            began, place = time.monotonic(), Path(folder) / version
            subprocess.run([uv, "venv", "--quiet", "--python", interpreter, place / "venv"], check=True)
            python = place / "venv" / "bin" / "python"
            install = [uv, "pip", "install", "--quiet", "--python", python, "--only-binary", ":all:"]
            subprocess.run([*install, str(ours), *pins(project, version, kind)], check=True)
            use(python, place)
            listed = subprocess.run(
                [uv, "pip", "freeze", "--python", python], capture_output=True, text=True, check=True
            )
            names = {need.name for need in requirements(project, version)}
            shown = [line for line in listed.stdout.split() if re.split("==", line)[0] in names]
            print(f"{kind}: Python {version} took {time.monotonic() - began:.0f} s with {', '.join(shown)}")


if __name__ == "__main__":
    if sys.argv[1:] not in (["lowest"], ["newest"]):
        sys.exit(__doc__)
    main(sys.argv[1])
