"""Fuzzing at length: how many cases the tests drew, and how often what is private by construction was falsified.

    python benchmarks/robustness/fuzz.py [TIMES]

draws TIMES as many cases as the suite does (20: more than 10,000), at random; written to benchmarks/results/ if every
test passed.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from overclaim.benchmarks import tables

ROOT = Path(__file__).resolve().parents[2]
TESTS = ["tests/test_fuzz.py", "tests/test_fuzz_code.py"]
STATISTICS = re.compile(r"::(test_\w+):\n(.*?)- Stopped because", re.DOTALL)
ALARMS = re.compile(r"(honest \w+): (\d+) of (\d+) falsified at alpha = ([\d.]+), at most (\d+)")


def measured(output: str) -> dict[str, Any]:
    """Return the tables of what pytest printed."""
    cases = [
        {
            "what": name.removeprefix("test_").replace("_", " "),
            "cases": sum(map(int, re.findall(r"(\d+) passing", text))),
        }
        for name, text in STATISTICS.findall(output)
    ]
    names = ("what", "falsified", "audits", "alpha", "at most")
    alarms = [
        dict(zip(names, (what, int(hits), int(audits), float(alpha), int(most)), strict=True))
        for what, hits, audits, alpha, most in ALARMS.findall(output)
    ]
    return {"cases": cases, "alarms": alarms}


def main() -> int:
    times = sys.argv[1] if sys.argv[1:] else "20"
    command = [sys.executable, "-m", "pytest", "-s", "--hypothesis-show-statistics", "-p", "no:cacheprovider", *TESTS]
    lines = []
    environment = {**os.environ, "OVERCLAIM_FUZZ": times}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        for line in tests.stdout:
            print(line, end="", flush=True)
            lines.append(line)
    if tests.returncode:
        return tests.returncode
    write(measured("".join(lines)), times)
    return 0


def write(outcome: dict[str, Any], times: str) -> None:
    """Write the tables."""
    drawn = sum(row["cases"] for row in outcome["cases"]) + sum(row["audits"] for row in outcome["alarms"])
    note = f"`make fuzz FUZZ={times}`: {drawn:,} cases at random, no traceback and no hang. {tables.dated()}"
    (tables.RESULTS / "fuzz.json").write_text(json.dumps({"note": note, **outcome}, indent=1) + "\n", encoding="utf-8")
    text = f"""# Fuzzing

{note}

## Whatever is written or handed over

Every case ended with a verdict, or with one line and exit code 2 (bad input) or 4 (the user's code failed).

{tables.table(outcome["cases"])}

## What is private by construction, on the very boundary of its claim

Falsified at most so often, except with probability 1e-6, by the binomial law at alpha.

{tables.table(outcome["alarms"])}
"""
    tables.write_page("fuzz", text)


if __name__ == "__main__":
    sys.exit(main())
