"""`make golden`: compare what `overclaim run` does not cover with its committed record.

    python benchmarks/golden/golden.py [--write] [--jobs N] [--but FIELD]

Audits plan.toml, runs commands.txt, and compares both with record.json, floats to 1e-9 (`same_record.py`). Exits 1 if
something differs. `make golden-write` writes record.json anew: read the differences before you commit it. Minutes of
processor time, spread over processes that do not wait for each other.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from overclaim.audit.execution.workers import cores
from overclaim.benchmarks.same_record import TIME, UNSHARED, Rules, differences

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PLAN, COMMANDS, RECORD = (FOLDER / name for name in ("plan.toml", "commands.txt", "record.json"))
#: Floats of another processor are as near as this.
RELATIVE = 1e-9
#: The committed record has longer lists of numbers as sums, which notice a change of any of them.
LONGEST = 6


def overclaim(arguments: Iterable[str]) -> subprocess.CompletedProcess[str]:
    """Run a command of this clone, at its root."""
    command = [sys.executable, "-m", "overclaim", *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def audited(jobs: int) -> dict[str, Any]:
    """Return the record of the plan."""
    with tempfile.TemporaryDirectory() as folder:
        process = overclaim(["run", str(PLAN.relative_to(ROOT)), "--jobs", str(jobs), "--out", folder])
        record = Path(folder) / "record.json"
        if not record.is_file():
            raise SystemExit(process.stderr)
        content: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return content


def asked(command: str) -> dict[str, Any]:
    """Return what a command of the list prints, and its exit code."""
    process = overclaim([*shlex.split(command)[1:], "--json"])
    output = json.loads(process.stdout) if process.stdout else process.stderr
    return {"name": command, "exit_code": process.returncode, "output": output}


def slim(value: Any) -> Any:
    """Return JSON without times, its long lists of numbers as their count, sum, and sum weighted by place."""
    if isinstance(value, dict):
        return {name: slim(item) for name, item in value.items() if name != TIME}
    if not isinstance(value, list):
        return value
    if len(value) <= LONGEST or not all(item is None or isinstance(item, int | float) for item in value):
        return [slim(item) for item in value]
    numbers = [0 if item is None else item for item in value]
    weighted = sum(place * item for place, item in enumerate(numbers, start=1))
    return {"numbers": len(value), "missing": value.count(None), "sum": sum(numbers), "weighted": weighted}


def golden(jobs: int) -> dict[str, Any]:
    """Return the record of the plan, with the outcome of every command."""
    commands = [line for line in COMMANDS.read_text(encoding="utf-8").splitlines() if line.startswith("overclaim ")]
    record = audited(jobs)
    with ThreadPoolExecutor(jobs) as pool:
        outcomes = list(pool.map(asked, commands))
    fields = {name: value for name, value in record.items() if name not in UNSHARED or name == "processor"}
    return {name: slim(value) for name, value in {**fields, "commands": outcomes}.items()}


def text_of(record: dict[str, Any]) -> str:
    """Return a record as JSON with one line for each field, and for each claim and command."""
    parts = []
    for name, value in record.items():
        rows = value if name in ("claims", "commands") else None
        body = json.dumps(value) if rows is None else "[\n{}\n]".format(",\n".join(map(json.dumps, rows)))
        parts.append(f"{json.dumps(name)}: {body}")
    return "{{\n{}\n}}\n".format(",\n".join(parts))


def main() -> int:
    """Compare, or write anew."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="write record.json anew")
    parser.add_argument("--jobs", type=int, default=cores(), help="processes")
    parser.add_argument("--but", action="append", default=[], metavar="FIELD", help="not compared; repeatable")
    options = parser.parse_args()
    record = golden(options.jobs)
    if RECORD.is_file():
        old = json.loads(RECORD.read_text(encoding="utf-8"))
        lines = differences(old, record, Rules(RELATIVE, frozenset(options.but)))
        print("\n".join([*lines, f"{len(lines)} differences in {len(record['claims'])} claims"]))
    else:
        lines = []
    if options.write:
        RECORD.write_text(text_of(record), encoding="utf-8")
        print(f"wrote {RECORD.relative_to(ROOT)}")
        return 0
    return bool(lines)


if __name__ == "__main__":
    sys.exit(main())
