"""Code as people have it, each with its fault or without one: the verdict is right, and no bound is above the truth.

`cases.json` has a command for each target of `code/`: what a user types, on a pair of inputs or with a search. The
header of each file says what is wrong in it, and derives the truth: the exact level of the pair, where it is finite.
"""

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main

HERE = Path(__file__).parent
CASES = json.loads((HERE / "cases.json").read_text(encoding="utf-8"))
SLOW = pytest.mark.slow(reason="a search, many rounds or many runs; others of its kind are quick")


def named(case):
    how = "pair" if "left" in case else "search"
    return f"{case['target'].replace('.py:', '-')}-{how}"


def marked(case):
    return pytest.param(case, id=named(case), marks=() if case.get("quick") else SLOW)


@pytest.fixture
def code(monkeypatch):
    monkeypatch.chdir(HERE / "code")
    monkeypatch.syspath_prepend(HERE / "code")


def checked(case):
    sides = [word for side in ("left", "right") if side in case for word in (f"--{side}", json.dumps(case[side]))]
    words = [case["target"], *case["words"], *sides, "--runs", str(case["runs"]), "--jobs", "1", "--json"]
    return CliRunner().invoke(main, ["check", *words])


@pytest.mark.parametrize("case", [marked(case) for case in CASES if case["expect"] != "refused"])
def test_the_verdict_is_right(code, case):
    """A sound target at 0 may be UNDERPOWERED. Alpha is 1 %, the seed fixed: a bound above the truth is an alarm."""
    done = checked(case)
    assert done.stdout, done.output
    record = json.loads(done.stdout)
    assert (record["verdict"] == "FALSIFIED") == (case["expect"] == "falsified")
    assert record["lower"] <= case.get("truth", float("inf"))


@pytest.mark.parametrize("case", [case for case in CASES if case["expect"] == "refused"])
def test_inputs_that_are_no_neighbours_are_refused(code, case):
    done = checked(case)
    assert done.exit_code == 2
    assert "are no neighbours by" in done.stderr


def test_every_file_has_a_sound_twin_and_a_broken_one():
    known = {}
    for case in CASES:
        known.setdefault(re.split(r"_|\W", case["target"].removeprefix("adapters.py:"))[0], set()).add(case["expect"])
    files = {file.name.partition("_")[0] for file in (HERE / "code").glob("??_*.py")}
    assert known == {name: {"falsified", "survived"} for name in files - {"j1"}} | {"j1": {"refused"}}
