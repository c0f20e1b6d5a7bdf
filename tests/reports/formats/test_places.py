"""Where SARIF says that code is written: from the root of the repository, wherever the run was started."""

import json
import subprocess

import pytest

from overclaim.reports.formats.sarif import _plain
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.record import run_record
from overclaim.tests.support.command_line import overclaim

OWN = """
def count(data, rng):
    return data + rng.laplace(0, 0.1)
"""
PLAN = """
[[claims]]
target = "own.py:count"
epsilon = 1
left = 0
right = 1
runs = 400

[[claims]]
target = "../lib/theirs.py:count"
epsilon = 1
left = 0
right = 1
runs = 400

[[claims]]
target = "lost.py:count"
epsilon = 1
left = 0
right = 1
"""


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("git", "root"), [(".git/HEAD", "."), (".git", "."), ("work/.git", "work"), ("other/.git", None)]
)
def test_sarif_names_files_from_the_root_of_the_work_tree(tmp_path, monkeypatch, git, root):
    """GitHub looks for them there: from the folder of the run it annotated another file of the same name, or none."""
    for name, text in (("sub/own.py", OWN), ("lib/theirs.py", OWN), ("sub/lost.py", "1 / 0"), ("sub/plan.toml", PLAN)):
        (tmp_path / "work" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "work" / name).write_text(text, encoding="utf-8")
    (tmp_path / git).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / git).write_text("gitdir: elsewhere\n", encoding="utf-8")  # as in a work tree that was added
    monkeypatch.chdir(tmp_path / "work" / "sub")
    assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 4
    monkeypatch.chdir(tmp_path)  # a record says where it was made
    assert overclaim("report", "work/sub/out/record.json", "--sarif", "here.sarif").exit_code == 0
    results = json.loads((tmp_path / "here.sarif").read_text(encoding="utf-8"))["runs"][0]["results"]
    found = [r["locations"][0]["physicalLocation"]["artifactLocation"] for r in results]
    here = {".": "work/sub", "work": "sub", None: ""}[root]
    named = [f"{here}/own.py".lstrip("/"), {".": "work/lib/theirs.py", "work": "lib/theirs.py"}.get(root)]
    assert [one["uri"] for one in found[:2] if root or one is found[0]] == [name for name in named if name]
    assert found[2]["uri"] == f"{here}/lost.py".lstrip("/")
    assert all(one["uriBaseId"] == "%SRCROOT%" for one in found if root)


def test_git_agrees_on_the_root(tmp_path, monkeypatch):
    """In a repository and in a work tree that was added to it."""
    git = ["git", "-c", "user.name=x", "-c", "user.email=x@example.com"]
    subprocess.run([*git, "init", "--quiet", "one"], cwd=tmp_path, check=True)
    subprocess.run([*git, "commit", "--quiet", "--allow-empty", "-m", "x"], cwd=tmp_path / "one", check=True)
    subprocess.run([*git, "worktree", "add", "--quiet", "../two"], cwd=tmp_path / "one", check=True)
    for tree in ("one", "two"):
        folder = tmp_path / tree / "a" / "b"
        folder.mkdir(parents=True)
        monkeypatch.chdir(folder)
        said = subprocess.run(["git", "rev-parse", "--show-prefix"], capture_output=True, text=True, check=True).stdout
        assert run_record([], seed=0, alpha=0.01, command="")["folder"] == said.strip().rstrip("/") == "a/b"


@pytest.mark.parametrize(
    ("folder", "file", "uri"),
    [("", "./a b.py", "a%20b.py"), ("sub", "../x/a.py", "x/a.py"), ("sub", "/usr/a.py", "file:///usr/a.py")],
)
def test_a_place_is_joined_to_the_folder_of_its_run(folder, file, uri):
    error = {"kind": "crashed", "name": f"{file}:count", "message": "x", "replay": "overclaim check"}
    record = {**run_record([], seed=0, alpha=0.01, command="", errors=[error]), "folder": folder}
    (result,) = json.loads(sarif(record))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


def test_a_message_embeds_no_link():
    """`[a](javascript:1)` in a claim's name was a link in every viewer of SARIF."""
    assert _plain(r"[a](javascript:1) \[b](c)") == r"\[a\](javascript:1) \\\[b\](c)"
    error = {"name": "[a](javascript:1)", "kind": "crashed", "message": "[b](c)", "replay": ""}
    record = run_record([], seed=0, alpha=0.01, command="overclaim run", errors=[error])
    (result,) = json.loads(sarif(record))["runs"][0]["results"]
    assert result["message"]["text"] == r"\[a\](javascript:1) crashed: \[b\](c)"
