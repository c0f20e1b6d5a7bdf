"""The source distribution: all of the repository, so that `make test` passes in it. The wheel: the package alone."""

import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
#: What setuptools adds.
ADDED = {"PKG-INFO", "setup.cfg"}
BUILD = "from setuptools import build_meta as b; b.build_sdist('dist'); b.build_wheel('dist')"
ROOMS = ("audit/", "learners/", "mechanisms/", "reports/", "testing/")


def tracked():
    """The repository's files; none where there is no repository, as in a source distribution."""
    if not (ROOT / ".git").exists() or shutil.which("git") is None:
        return []
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True)
    return [name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


@pytest.mark.lint
@pytest.mark.skipif(not tracked(), reason="no repository to compare with")
def test_it_holds_every_file_of_the_repository_and_nothing_else(tmp_path):
    for name in tracked():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for left in (
        "tests/__pycache__/a.cpython-311.pyc",
        "docs/.hypothesis/b",
        ".venv/c",
        "out/record.json",
        "build/d.py",
    ):
        (tmp_path / left).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / left).write_text("")
    subprocess.run([sys.executable, "-c", BUILD], cwd=tmp_path, check=True, capture_output=True)
    (archive,) = (tmp_path / "dist").glob("*.tar.gz")
    with tarfile.open(archive) as opened:
        members = {m.name.partition("/")[2]: m for m in opened.getmembers() if m.isfile()}
    held = {name for name in members if ".egg-info/" not in name}
    assert held - ADDED == set(tracked())
    assert members[".ci/run"].mode & 0o100
    (archive,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(archive) as opened:
        packed = {name.removeprefix("overclaim/") for name in opened.namelist() if name.startswith("overclaim/")}
    assert packed == {name for name in tracked() if name.startswith(ROOMS)} | {
        "__init__.py",
        "__main__.py",
        "addresses.py",
        "bounds.py",
        "errors.py",
        "lazy.py",
        "py.typed",
    }
