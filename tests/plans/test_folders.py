"""A target that goes to another folder, as it is loaded or while it plays: relative paths stay the command's."""

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.targets import resolve
from overclaim.reports.command_line.cli import main

MOVES = """
import os
from pathlib import Path

ELSEWHERE = Path(__file__).parent / "elsewhere"
os.chdir(ELSEWHERE)

def shift():
    return float(Path("shift.txt").read_text())

def reads(data, rng):
    return shift() + data[0] + rng.laplace(scale=0.2)

def goes(data, rng):
    os.chdir(ELSEWHERE)
    return data[0] + rng.laplace(scale=0.2)

class Reads:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.sums, self.rng = [shift()] * arms, rng
    def act(self):
        return min(range(len(self.sums)), key=lambda arm: self.sums[arm] + shift() * self.rng.laplace())
    def update(self, losses):
        self.sums = [one + float(loss) for one, loss in zip(self.sums, losses)]

class Built:
    feedback, arms = "full", 2
    def __init__(self):
        self.shift = shift()
    def start(self, runs, draws):
        return {"sums": draws.generator.laplace(size=(2, runs)) * self.shift}
    def act(self, state, draws):
        return state["sums"].argmin(axis=0)
    def update(self, state, actions, losses, draws):
        state["sums"] = state["sums"] + losses + draws.generator.laplace(size=state["sums"].shape)

def builds(arms, rounds):
    return Built()
"""
PLAN = """
[[claims]]
target = "moves.py:goes"
epsilon = 1.0
left = {"$file" = "left.json"}
right = [1]
runs = 2000
expect = "falsified"
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "shift.txt").write_text("1")
    (tmp_path / "moves.py").write_text(MOVES)
    (tmp_path / "left.json").write_text("[0]")
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow(reason="whole runs; what they rest on is tested below")
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_a_run_writes_into_the_folder_that_was_named(folder, jobs):
    """The ledger could not be opened any more, and the run was lost."""
    done = CliRunner().invoke(main, ["run", "plan.toml", "--out", "out", "--jobs", jobs, "--no-blind-spots"])
    assert done.exit_code == 0, done.output
    assert "Report: out/report.html   Record: out/record.json" in done.output
    assert {path.name for path in Path(folder / "out").iterdir()} == {".gitignore", "record.json", "report.html"}
    assert [path.name for path in Path(folder / "elsewhere").iterdir()] == ["shift.txt"]
    assert os.getcwd() == str(folder)


@pytest.mark.parametrize("target", ["reads", "Reads", "builds"])
def test_a_target_finds_its_own_files_while_it_is_built_and_plays(folder, target):
    words = ["--left", "left.json", "--right", "[1]"] if target == "reads" else ["--rounds", "1"]
    done = CliRunner().invoke(
        main, ["check", f"moves.py:{target}", *words, "--epsilon", "1", "--runs", "500", "--jobs", "1", "--json"]
    )
    assert done.exit_code in (0, 1, 3), done.output
    assert not json.loads(done.stdout).get("missing")
    assert os.getcwd() == str(folder)


def test_a_target_is_loaded_again_from_the_same_folder(folder):
    for _ in range(2):
        resolve("moves.py:reads")
        assert os.getcwd() == str(folder)
    (folder / "raises.py").write_text(MOVES + "\nraise ValueError\n")
    with pytest.raises(Exception, match=r"loading raises\.py raised ValueError"):
        resolve("raises.py:reads")
    assert os.getcwd() == str(folder)


def test_a_ledger_stays_where_it_was_begun(folder, monkeypatch):
    ledger = Ledger(Path("out") / "ledger.sqlite")
    monkeypatch.chdir(folder / "elsewhere")
    assert ledger.file == folder / "out" / "ledger.sqlite"
    assert str(ledger.path) == "out/ledger.sqlite"
