"""Mutation testing of the code that every verdict rests on: plants small bugs, counts those that a test catches.

    python benchmarks/mutation.py [--work DIR] [--retest] [MODULE ...]

needs mutmut 3.8 beside the development dependencies. The mutants live in a copy of the tree (in DIR, kept, or in a
temporary folder), one module at a time. A second call with the same DIR tests what has changed; --retest also tests
earlier survivors again. Results go to benchmarks/results/mutation.{md,json}; benchmarks/mutation.toml says why a
survivor may live.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
TESTS = {
    "audit/intervals.py": "test_intervals test_interval_twins",
    "audit/events.py": "test_events test_event_rule",
    "audit/sequential.py": "test_sequential test_sequential_twins test_baseline",
    "audit/power.py": "test_power",
    "mechanisms/tree.py": "test_tree",
    "mechanisms/noise.py": "test_noise",
}
# Whole audits by the hundred: they take minutes and the quick tests catch the same.
SLOW = "workers or keeps_alpha or mean_runs or users_learner or command_line"
CONFIG = """
[tool.mutmut]
source_paths = ["overclaim"]
only_mutate = ["overclaim/{module}"]
also_copy = ["overclaim"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "--hypothesis-seed=0", "-k", "not ({slow})"]
pytest_add_cli_args_test_selection = [{tests}]
timeout_multiplier = 4.0
use_git_change_detection = false
"""
CAUGHT = ("killed", "timeout")


def prepare(module: str, folder: Path) -> None:
    """Copy the tree under its package's name, so that the mutants are `overclaim.*`, with our own test settings."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in listed.stdout.decode().split("\0"):
        source, target = ROOT / name, folder / "overclaim" / name
        if name and source.is_file() and not (target.exists() and target.read_bytes() == source.read_bytes()):
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    tests = ", ".join(f'"overclaim/tests/{name}.py"' for name in TESTS[module].split())
    own = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(own + CONFIG.format(module=module, slow=SLOW, tests=tests))


def outcomes(module: str, folder: Path) -> list[tuple[str, str, list[str]]]:
    """Return (mutant, outcome, changed lines) of every mutant; the lines only of those that were not caught."""
    os.chdir(folder)
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    path, found = Path("overclaim") / module, []
    data = SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        outcome, changed = status_by_exit_code[code], []
        if outcome not in CAUGHT:
            lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
            changed = [line[0] + " " + line[1:].strip() for line in lines if line[0] in "+-"]
        found.append((name.rpartition(".")[2], outcome, changed))
    return found


def run(module: str, folder: Path, retest: bool) -> dict[str, object]:
    """Mutate one module, run its tests, and sum up."""
    prepare(module, folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1"]
    again = []
    if retest:
        package = "overclaim." + module.removesuffix(".py").replace("/", ".")
        again = [f"{package}.{name}" for name, outcome, _ in outcomes(module, folder) if outcome not in CAUGHT]
    for extra in ([], again) if again else ([],):
        subprocess.run([*command, *extra], cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    found = outcomes(module, folder)
    reasons = tomllib.loads((HERE / "mutation.toml").read_text())["reason"]
    survivors = []
    for name, outcome, changed in found:
        if outcome not in CAUGHT:
            after = " ".join(line[2:] for line in changed if line.startswith("+"))
            why = [r["why"] for r in reasons if r["module"] == module and any(text in after for text in r["lines"])]
            survivors.append(
                {"mutant": name, "outcome": outcome, "change": changed, "reason": why[0] if why else None}
            )
    counted = Counter(outcome for _, outcome, _ in found)
    return {
        "module": module,
        "tests": TESTS[module].split(),
        "mutants": len(found),
        "killed": counted["killed"],
        "timeout": counted["timeout"],
        "survivors": survivors,
    }


def report(results: list[dict[str, object]]) -> str:
    """Return the results as Markdown."""
    lines = [
        "# Mutation testing",
        "",
        f"`make mutation`, mutmut {importlib.metadata.version('mutmut')}. A mutant that no test ends within its time"
        " runs for ever (the changed loop no longer stops) and counts as caught.",
        "Not mutated by the tool: constants of a module, properties, calls of `len`.",
        "",
        "| module | mutants | failed a test | ran for ever | survived or not run | caught |",
        "|---|---|---|---|---|---|",
    ]
    for row in results:
        total, caught = row["mutants"], row["killed"] + row["timeout"]
        counts = f"{total} | {row['killed']} | {row['timeout']} | {total - caught} | {100 * caught / total:.1f} %"
        lines.append(f"| `{row['module']}` | {counts} |")
    for row in results:
        lines += ["", f"## Survivors of `{row['module']}`"]
        reasons = dict.fromkeys(s["reason"] or "not explained" for s in row["survivors"])
        for reason in reasons:
            lines += ["", reason + ":", "", "```diff"]
            lines += [t for s in row["survivors"] if (s["reason"] or "not explained") == reason for t in s["change"]]
            lines += ["```"]
    return "\n".join(lines) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path)
    parser.add_argument("--retest", action="store_true")
    parser.add_argument("module", nargs="*", help=f"of {', '.join(TESTS)}; all by default")
    wanted = parser.parse_args()
    try:
        importlib.metadata.version("mutmut")
    except importlib.metadata.PackageNotFoundError:
        print("mutation: needs mutmut beside the development dependencies: pip install mutmut==3.8.1", file=sys.stderr)
        return 2
    target = HERE / "results" / "mutation.json"
    known = {row["module"]: row for row in json.loads(target.read_text())} if target.exists() else {}
    with tempfile.TemporaryDirectory() as temporary:
        for module in wanted.module or TESTS:
            folder = (wanted.work or Path(temporary)).resolve() / Path(module).stem
            folder.mkdir(parents=True, exist_ok=True)
            row = known[module] = run(module, folder, wanted.retest)
            print(f"{module}: {row['killed'] + row['timeout']} of {row['mutants']} caught")
        os.chdir(ROOT)
    results = [known[module] for module in TESTS if module in known]
    target.write_text(json.dumps(results, indent=1) + "\n")
    target.with_suffix(".md").write_text(report(results))
    poor = [r["module"] for r in results if r["killed"] + r["timeout"] < 0.95 * r["mutants"]]
    poor += [r["module"] for r in results for s in r["survivors"] if s["reason"] is None]
    if poor:
        print(f"mutation: below 95 %, or with survivors not explained: {', '.join(sorted(set(poor)))}")
    return 1 if poor else 0


if __name__ == "__main__":
    sys.exit(main())
