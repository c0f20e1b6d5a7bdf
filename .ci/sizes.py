"""Report rooms of more than 12 modules and long files: a hint where to look, never a failure."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

MODULES, LINES, TEST_LINES = 12, 400, 500


def main() -> None:
    """Print what exceeds a limit."""
    files = subprocess.run(["git", "ls-files", "*.py"], check=True, capture_output=True, text=True).stdout.splitlines()
    rooms = Counter(Path(file).parent for file in files if Path(file).name not in ("__init__.py", "conftest.py"))
    for room, modules in sorted(rooms.items()):
        if modules > MODULES:
            print(f"sizes: {room}/ has {modules} modules, more than {MODULES}")
    for file in files:
        lines = len(Path(file).read_text(encoding="utf-8").splitlines()) if Path(file).is_file() else 0
        if lines > (TEST_LINES if file.startswith("tests/") else LINES):
            print(f"sizes: {file} has {lines} lines")


if __name__ == "__main__":
    main()
