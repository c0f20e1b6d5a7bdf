"""What a release uploads, built and tried: `python .ci/release.py` leaves sdist and wheel in dist/.

The wheel is built from the sdist, checked by twine, and installed in an environment of its own. There the commands of
README.md must print what it shows; nothing of this folder is imported.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
#: It checks what the index will show; the release workflow alone needs it, so that it is not locked.
TWINE = "twine==7.0.0"
#: What the README shows the output of.
PAGE = "README.md"


def run(*command: object, folder: Path = ROOT) -> str:
    """Run a command and return what it prints; end with its output where it fails."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"release: {' '.join(map(str, command))} ended with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(uv: Path, folder: Path) -> Path:
    """Build the sdist from the committed files, the wheel from the sdist; return the wheel."""
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    shutil.rmtree(DIST, ignore_errors=True)
    names = run("git", "ls-files", "-z").split("\0")
    for name in filter(None, names):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, folder / name)
    run(uv, "build", "--quiet", "--no-create-gitignore", "--out-dir", DIST, folder)
    built = sorted(file.name for file in DIST.iterdir())
    expected = [f"overclaim-{version}-py3-none-any.whl", f"overclaim-{version}.tar.gz"]
    if built != expected:
        sys.exit(f"release: dist/ must hold {expected}, got {built}")
    return DIST / expected[0]


def try_readme(python: Path, folder: Path) -> None:
    """Run the README's commands on the installed wheel; end where one prints something else."""
    (folder / "docs").mkdir(parents=True)
    shutil.copy(ROOT / PAGE, folder / PAGE)
    shutil.copy(ROOT / "docs" / "commands.py", folder / "docs")
    place = run(python, "-c", "import overclaim; print(overclaim.__file__)", folder=folder).strip()
    if not Path(place).is_relative_to(python.parents[1]):
        sys.exit(f"release: {place} was imported in place of the wheel")
    run(python, "docs/commands.py", PAGE, folder=folder)
    shown, printed = ((place / PAGE).read_text(encoding="utf-8") for place in (ROOT, folder))
    if shown != printed:
        sys.exit(f"release: the commands of {PAGE} print something else from the wheel: make docs")


def main() -> None:
    """Build and check."""
    uv = Path(sys.executable).with_name("uv")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        wheel = build(uv, folder / "source")
        print(
            run(uv, "tool", "run", "--quiet", "--from", TWINE, "twine", "check", "--strict", *DIST.iterdir()), end=""
        )
        run(uv, "venv", "--quiet", "--python", sys.executable, folder / "venv")
        python = folder / "venv" / "bin" / "python"
        run(uv, "pip", "install", "--quiet", "--python", python, f"{wheel}[figures]")
        try_readme(python, folder / "tried")
    print(f"release: {wheel.name} and its sdist lie in dist/")


if __name__ == "__main__":
    main()
