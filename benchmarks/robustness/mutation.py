"""Mutation testing of the code that every verdict rests on: plants small bugs, counts those that a test catches.

    python benchmarks/robustness/mutation.py [--work DIR] [--report] [MODULE ...]

needs mutmut 3.8 beside the development dependencies. The mutants live in a copy of the tree, one module at a time;
every run begins anew, so that each figure is of one tree, whose commit is written beside it. With --work the copy
stays in DIR, to look at. Results go to benchmarks/results/mutation.{md,json}; mutation.toml, beside this file, says
why a survivor may live, and --report only writes the tables again, after a change there.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections import Counter
from fnmatch import fnmatch
from functools import partial
from pathlib import Path
from typing import Any

from overclaim.benchmarks import tables

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
INTERVALS = "statistics/bounds/test_intervals statistics/bounds/test_interval_twins"
#: They compute with noise and trees.
LAWS = "laws/test_exact laws/test_ftpl_law attacks/test_leader_ratios"
TESTS = {
    "audit/statistics/bounds/binomial_bounds.py": INTERVALS,
    "audit/statistics/bounds/intervals.py": INTERVALS,
    "audit/statistics/bounds/joint_bound.py": f"{INTERVALS} statistics/bounds/test_joint_cover",
    "audit/statistics/events.py": "statistics/test_events statistics/test_event_rule",
    "audit/statistics/graded_bets.py": "statistics/test_graded_bets",
    "audit/statistics/sequential.py": "statistics/test_sequential statistics/test_sequential_twins"
    " statistics/test_learned_stakes statistics/test_graded_bets",
    "audit/statistics/bounds/power.py": "statistics/bounds/test_power",
    "audit/statistics/certificates.py": "statistics/bounds/test_measure_bounds statistics/test_events"
    " reports/test_decisions",
    "audit/verdicts/verdict.py": "reports/test_decisions",
    "reports/reading.py": "reports/test_decisions",
    "reports/command_line/running.py": "reports/test_decisions",
    "mechanisms/tree.py": f"mechanisms/test_tree traces/test_replay {LAWS}",
    "mechanisms/noise.py": f"mechanisms/test_noise mechanisms/test_weakening {LAWS}",
}
#: Of modules that do more: the functions that decide a verdict or an exit code.
DECIDING = {
    "audit/statistics/certificates.py": "certify_claim _level lower_of refutes ceiling",
    "audit/verdicts/verdict.py": "decide too_few",
    "reports/reading.py": "is_untested verdict_of reason_of is_accepted is_unexpected due_verdict is_exceeded"
    " is_violated is_open is_failing may_allow_bypass is_in_doubt",
    "reports/status.py": "status_of _false _worse _undecided",
}
# Whole audits by the hundred, and an exact law of 50000 looks: they take minutes and the quick tests catch the same.
SLOW = "workers or keeps_alpha or keep_alpha or mean_runs or users_learner or command_line or 50000"
CONFIG = """
[tool.mutmut]
source_paths = ["overclaim"]
only_mutate = ["overclaim/{module}"]
also_copy = ["overclaim", "mutation_plugin.py"]
pytest_add_cli_args = ["-p", "no:cacheprovider", "-p", "mutation_plugin", "--hypothesis-seed=0", "-k", "not ({slow})"]
pytest_add_cli_args_test_selection = [{tests}]
timeout_multiplier = 60.0
use_git_change_detection = false
"""
# A plugin of the mutants' tests: the quick ones first, as most mutants fail at once; what hypothesis finds need not be
# made small; and a test that takes ten times the processor time that it takes without a bug runs for ever. mutmut's
# own limit is in seconds of the clock, which a crowded machine passes too.
PLUGIN = """
import os, signal
import pytest
from hypothesis import Phase, settings
from mutmut.state import state

def pytest_configure():
    settings.register_profile("mutants", settings(), phases=(Phase.explicit, Phase.generate))
    settings.load_profile("mutants")
    signal.signal(signal.SIGPROF, lambda *_: os.kill(os.getpid(), signal.SIGXCPU))

def usual(item):
    return state().duration_by_test.get(item.nodeid, 0.0)

def pytest_collection_modifyitems(items):
    items.sort(key=usual)

@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    signal.setitimer(signal.ITIMER_PROF, 2 + 10 * usual(item) if usual(item) else 0)
    try:
        return (yield)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
"""
KILLED, TIMEOUT, SURVIVED = "killed", "timeout", "survived"
UNEXPLAINED = "not explained"


def git(*words: str) -> str:
    """Return what git says about our tree."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def prepare(module: str, folder: Path) -> None:
    """Copy the tree under its package's name, so that the mutants are `overclaim.*`, with our own test settings."""
    for name in git("ls-files", "-z", "--cached", "--others", "--exclude-standard").split("\0"):
        source, target = ROOT / name, folder / "overclaim" / name
        if name and source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    # mutmut passes over functions with decorators, and a cache would answer for the mutants of what it calls.
    mutated = folder / "overclaim" / module
    mutated.write_text(re.sub(r"(?m)^@(lru_)?cache\b.*\n", "", mutated.read_text()))
    (folder / "mutation_plugin.py").write_text(PLUGIN)
    tests = ", ".join(f'"overclaim/tests/{name}.py"' for name in TESTS[module].split())
    own = (ROOT / "pyproject.toml").read_text()
    (folder / "pyproject.toml").write_text(own + CONFIG.format(module=module, slow=SLOW, tests=tests))


def patterns(module: str) -> list[str]:
    """Return the names of the mutants that are made of a module: all of them, or those of what decides."""
    package = ".".join(("overclaim", *Path(module).with_suffix("").parts))
    return [f"{package}.x_{name}__mutmut_*" for name in DECIDING.get(module, "").split()] or [f"{package}.*"]


def outcomes(module: str, folder: Path) -> list[dict[str, Any]]:
    """Return the name and the outcome of every mutant, and the changed lines of those that no test failed on."""
    os.chdir(folder)
    from mutmut.mutation.data import SourceFileMutationData
    from mutmut.mutation.diff_apply import get_diff_for_mutant
    from mutmut.stats import status_by_exit_code

    path, mutants = Path("overclaim") / module, []
    data = SourceFileMutationData(path=path)
    data.load()
    for name, code in data.exit_code_by_key.items():
        if not any(map(partial(fnmatch, name), patterns(module))):
            continue
        outcome, changed = status_by_exit_code[code], []
        if outcome != KILLED:
            lines = get_diff_for_mutant(name, path=path).splitlines()[2:]
            changed = [line[0] + " " + line[1:].strip() for line in lines if line[0] in "+-"]
        mutants.append({"mutant": name.rpartition(".")[2], "outcome": outcome, "change": changed})
    return mutants


def run(module: str, folder: Path) -> dict[str, Any]:
    """Mutate one module, run its tests, and sum up."""
    prepare(module, folder)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": ""}
    command = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *patterns(module)]
    subprocess.run(command, cwd=folder, env=environment, check=True, stdout=subprocess.DEVNULL)
    mutants = outcomes(module, folder)
    counted = Counter(mutant["outcome"] for mutant in mutants)
    return {
        "module": module,
        "dated": tables.dated(),
        "tests": TESTS[module].split(),
        "mutants": len(mutants),
        **{outcome: counted[outcome] for outcome in (KILLED, TIMEOUT, SURVIVED)},
        "not run": len(mutants) - counted[KILLED] - counted[TIMEOUT] - counted[SURVIVED],
        "lived": [mutant for mutant in mutants if mutant["outcome"] != KILLED],
    }


def caught(row: dict[str, Any]) -> float:
    """Return the share of the mutants that a test caught."""
    return float((row[KILLED] + row[TIMEOUT]) / row["mutants"])


def explain(results: list[dict[str, Any]]) -> list[str]:
    """Add to every survivor the reason why it may live; return the modules with one that has none."""
    reasons = tomllib.loads((HERE / "mutation.toml").read_text())["reason"]
    open_modules = []
    for row in results:
        mine = [reason for reason in reasons if reason["module"] == row["module"]]
        for mutant in row["lived"]:
            after = " ".join(line[2:] for line in mutant["change"] if line.startswith("+"))
            why = [reason["why"] for reason in mine if any(text in after for text in reason["lines"])]
            mutant["reason"] = "Ran for ever" if mutant["outcome"] == TIMEOUT else why[0] if why else UNEXPLAINED
            open_modules += [row["module"]] * (mutant["reason"] == UNEXPLAINED)
    return open_modules


def report(results: list[dict[str, Any]]) -> str:
    """Return the results as Markdown."""
    heads = {"failed a test": KILLED, "ran for ever": TIMEOUT, SURVIVED: SURVIVED, "not run": "not run"}
    rows = [
        {
            "module": f"`{row['module']}`",
            "measured": row["dated"].removeprefix("Measured on ").rstrip("."),
            "mutants": row["mutants"],
            **{head: row[key] for head, key in heads.items()},
            "caught": f"{caught(row):.1%}",
        }
        for row in results
    ]
    lines = [
        "# Mutation testing",
        "",
        f"`make mutation`, mutmut {importlib.metadata.version('mutmut')}. Each line is one run of one tree. A mutant"
        " that no test ends within its time runs for ever (the changed loop no longer stops) and counts as caught.",
        "Not mutated by the tool: constants of a module, properties, calls of `len`.",
        "",
        tables.table(rows),
    ]
    for row in results:
        lines += ["", f"## Survivors of `{row['module']}`"]
        groups: dict[str, list[str]] = {}
        for mutant in row["lived"]:
            groups.setdefault(mutant["reason"], []).extend(mutant["change"])
        for title in sorted(groups, key="Ran for ever".__eq__):  # last
            lines += ["", title + ":", "", "```diff", *groups[title], "```"]
    return "\n".join(lines) + "\n"


def write(results: list[dict[str, Any]]) -> int:
    """Write the tables; return 1 if they fall short."""
    poor = explain(results) + [r["module"] for r in results if caught(r) < 0.95 or r["not run"]]
    target = tables.RESULTS / "mutation.json"
    target.write_text(json.dumps(results, indent=1) + "\n")
    tables.write_page("mutation", report(results))
    if poor:
        print(f"mutation: below 95 %, not run, or not explained: {', '.join(sorted(set(poor)))}")
    return 1 if poor else 0


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=Path, help="a new folder, which is kept")
    parser.add_argument("--report", action="store_true", help="only write the tables again")
    parser.add_argument("module", nargs="*", type=tables.one_of(TESTS), help=f"of {', '.join(TESTS)}; all by default")
    wanted = parser.parse_args()
    try:
        importlib.metadata.version("mutmut")
    except importlib.metadata.PackageNotFoundError:
        print("mutation: needs mutmut beside the development dependencies: pip install mutmut==3.8.1", file=sys.stderr)
        return 2
    known = {row["module"]: row for row in json.loads((tables.RESULTS / "mutation.json").read_text())}
    if wanted.report:
        return write(list(known.values()))
    status = 0
    with tempfile.TemporaryDirectory() as temporary:
        for module in wanted.module or TESTS:
            folder = (wanted.work or Path(temporary)).resolve() / Path(module).stem
            folder.mkdir(parents=True)
            row = known[module] = run(module, folder)
            print(f"{module}: {caught(row):.1%} of {row['mutants']} caught, {row['not run']} not run", flush=True)
            status = write([known[name] for name in TESTS if name in known])
        os.chdir(ROOT)
    return status


if __name__ == "__main__":
    sys.exit(main())
