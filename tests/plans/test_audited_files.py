"""What a record says of what was audited: its reader finds the same files again, and no folder of a machine."""

import hashlib
import json
import subprocess

import pytest

from overclaim.audit.execution.provenance import named_from_here, target_from_here
from overclaim.audit.plans.audited_files import audited_files
from overclaim.audit.plans.plan import read_plan
from overclaim.tests.support.command_line import overclaim

OWN = "def count(data, rng):\n    return len(data) + rng.laplace()\n"
PLAN = """protects = "one visitor"

[[claims]]
target = "own.py:count"
epsilon = 1
left = [1, 2]
right = [1]
runs = 400
untested = "allowed"

[[claims]]
target = "own.py:missing"
epsilon = 1
left = [1, 2]
right = [1]
"""


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """Return a work tree of git whose folder is the current one."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "plan.toml").write_text(PLAN)
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "first")
    return tmp_path


def git(*words):
    who = ["-c", "user.name=a", "-c", "user.email=a@b"]
    subprocess.run(["git", *who, *words], check=True, capture_output=True)


def test_the_commit_counts_as_clean_with_every_audited_file_in_it(tree):
    plan = read_plan(tree / "plan.toml")
    found = audited_files(plan)
    assert found["files"] == {"own.py": hashlib.sha256(OWN.encode()).hexdigest()}
    assert (len(found["commit"]), found["clean"]) == (40, True)
    (tree / "beside.txt").touch()  # an untracked file that no claim names
    assert audited_files(plan)["clean"] is True
    git("rm", "--quiet", "--cached", "own.py")
    git("commit", "--quiet", "--message", "second")
    assert audited_files(plan)["clean"] is False
    (tree / "plan.toml").write_text(f"{PLAN}\n")
    git("add", "own.py")
    assert audited_files(plan)["clean"] is False


def test_without_git_there_is_no_commit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", "")
    (tmp_path / "own.py").write_text(OWN)
    (tmp_path / "plan.toml").write_text(PLAN)
    found = audited_files(read_plan(tmp_path / "plan.toml"))
    assert (found["commit"], found["clean"], list(found["files"])) == (None, None, ["own.py"])


def test_a_record_and_its_report_name_no_folder_of_the_machine(tree):
    """Paths that begin at the root are named from the current folder, or by their last part."""
    done = overclaim("run", tree / "plan.toml", "--out", tree / "out", "--jobs", 1)
    assert done.exit_code == 2, done.output  # the second claim has no target
    text = (tree / "out" / "record.json").read_text()
    record = json.loads(text)
    assert str(tree) not in text + (tree / "out" / "report.html").read_text()
    assert record["protects"] == "one visitor"
    assert record["claims"][0]["claimed_in"] == "plan.toml:3"
    assert record["audited"]["versions"].keys() >= {"overclaim", "python", "numpy"}
    assert {"tradeoff", "profile", "scores", "growth"} <= record["claims"][0]["evidence"].keys()


def test_names_from_here(tree):
    assert named_from_here(tree / "own.py") == "own.py"
    assert named_from_here(tree.parent / "else.py") == "else.py"
    assert target_from_here(f"{tree}/own.py:count") == "own.py:count"
    assert target_from_here(f"{tree.parent}/else.py:count") == f"{tree.parent}/else.py:count"
    assert target_from_here("own.py:count") == "own.py:count"
