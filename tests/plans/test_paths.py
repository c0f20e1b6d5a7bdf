"""Names of files that cannot be: one line that says which name and why, exit code 2, and nothing lost."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from overclaim.audit.plans.tasks import Task
from overclaim.reports.record import run_record, to_text, write_atomically
from overclaim.tests.support.command_line import error_lines, overclaim

LONG, LOOP, FOLDER, BELOW, NULL = "x" * 300, "loop", "folder", "file/below", "nu\0ll"
#: Each takes the name where NAME stands, for something that is read or written; a folder is no trouble for --out.
READ = ["run NAME", "run --baseline NAME", "accept NAME", "report NAME --html x.html", "check exp3 --pair NAME"]
WRITTEN = ["init NAME", "accept record.json --baseline NAME", "run --catalogue --out NAME"]
WRITTEN += [f"report record.json --{kind} NAME" for kind in ("html", "markdown", "junit", "sarif")]

#: The least that a baseline needs.
COUNTED = {"method": "guess", "counts": {"right": 60, "guesses": 80, "runs": 100}}
AUDITED = {
    "name": "x", "claimed": {"epsilon": 1.0, "delta": 0.0}, "verdict": "SURVIVED", "epsilon_lower": 0.5, "runs": 100,
    "question": {"target": "x", "measure": {"kind": "approximate", "epsilon": 1.0, "delta": 0.0}, "runs": 100},
    "replay": "overclaim check x", "accepted": {"frozen": {"kind": "outcomes"}, "pair": {}, **COUNTED}, **COUNTED,
}  # fmt: skip


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "record.json").write_text(to_text(run_record([AUDITED], seed=0, alpha=0.01, command="")))
    (tmp_path / LOOP).symlink_to(LOOP)
    (tmp_path / FOLDER).mkdir()
    (tmp_path / "file").write_text("a file")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def refused(words, name):
    result = overclaim(*[name if word == "NAME" else word for word in words.split()])
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.output
    assert repr(name)[1:-1] in result.stderr
    assert "Traceback" not in result.output


@pytest.mark.few(24)
@pytest.mark.parametrize(
    "name", [LONG, LOOP, FOLDER, BELOW, NULL, ""], ids=["long", "loop", "folder", "below", "null", "empty"]
)
@pytest.mark.parametrize("words", [*READ, *WRITTEN])
def test_names_that_cannot_be(folder, words, name):
    if (words, name) == ("run --catalogue --out NAME", FOLDER):
        pytest.skip("a folder is what it takes")
    before = sorted(path.name for path in folder.iterdir())
    refused(words, name)
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="a folder where nobody may write, root neither")
@pytest.mark.parametrize("words", WRITTEN)
def test_where_nobody_may_write(folder, words):
    refused(words, "/proc/overclaim")


@pytest.mark.parametrize("name", [f"{LONG}.py", f"{LOOP}.py", f"{FOLDER}.py", f"{BELOW}.py", "nu\0ll.py"])
def test_a_target_in_a_file_that_cannot_be(folder, name):
    (folder / f"{LOOP}.py").symlink_to(f"{LOOP}.py")
    (folder / f"{FOLDER}.py").mkdir()
    check_target(folder, name)


@pytest.mark.skipif(not Path("/proc/self/mem").exists(), reason="a file that nobody may read, root neither")
def test_a_target_in_a_file_that_nobody_may_read(folder):
    """It was a learner that crashed, exit code 4."""
    (folder / "dark.py").symlink_to("/proc/self/mem")
    check_target(folder, "dark.py")


def check_target(folder, name):
    result = overclaim("check", f"{name}:Name", "--epsilon", 1)
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.output
    assert repr(name) in result.stderr
    (folder / "plan.toml").write_text(f'[[claims]]\ntarget = "{name}:Name"\nepsilon = 1\n'.replace("\0", "\\u0000"))
    result = overclaim("run", "plan.toml", "--jobs", 1)
    assert result.exit_code == 2, result.output
    assert Path("out/record.json").exists()


def test_the_longest_name_can_be_written(tmp_path):
    path = tmp_path / ("ä" * 127)  # 254 bytes
    write_atomically(path, "text")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [(path.name, "text")]


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("report record.json --html same --junit same", "--html 'same' and --junit 'same' are the same file"),
        ("report record.json --html same --sarif folder/../same", "--html 'same' and --sarif"),
        ("report record.json --markdown same --sarif link", "--markdown 'same' and --sarif 'link'"),
        ("report record.json --html one --junit hard", "--html 'one' and --junit 'hard'"),
        ("report record.json --html record.json", "the record 'record.json' and --html 'record.json'"),
        ("report record.json --junit hard-record", "the record 'record.json' and --junit 'hard-record'"),
        ("report link-record --sarif record.json", "the record 'link-record' and --sarif 'record.json'"),
        ("accept record.json --baseline ./record.json", "the record 'record.json' and --baseline"),
        ("run report.html --out .", "report.html 'report.html' and the plan 'report.html'"),
        ("run report.html --out out --baseline out/record.json", "record.json 'out/record.json' and --baseline"),
    ],
)
def test_what_would_overwrite_another(folder, words, told):
    """Also through links, to files that are not there yet, and to one file with two names."""
    (folder / "one").write_text("one")
    os.link("one", "hard")
    os.link("record.json", "hard-record")
    (folder / "report.html").write_text("[[claims]]\ntarget = 'mechanisms/laplace'\n")
    (folder / "link").symlink_to("same")
    (folder / "link-record").symlink_to("record.json")
    (folder / "out").mkdir()
    shutil.copy("record.json", "out")
    before = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    result = overclaim(*words.split())
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.output
    assert told in result.stderr
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == before


@pytest.mark.slow(reason="whole runs")
def test_a_file_of_the_users_survives_the_look_whether_a_folder_can_be_written(folder):
    (folder / ".writable").write_text("mine")
    (folder / "plan.toml").write_text('[[claims]]\ntarget = "mechanisms/laplace"\nepsilon = 1\nruns = 500\n')
    overclaim("run", "plan.toml", "--out", ".", "--jobs", 1)
    assert (folder / "record.json").stat().st_size > 1000
    assert (folder / ".writable").read_text() == "mine"


@pytest.mark.parametrize("name", ["a plan.toml", "$(touch pwned).toml", "a'b.toml", "two\nlines.toml", "{name}.toml"])
def test_the_command_that_init_prints_is_one_for_a_shell(folder, name):
    result = overclaim("init", name)
    assert result.exit_code == 0
    assert shlex.split(result.stdout.rpartition("audit it by: ")[2]) == ["overclaim", "run", name]
    text = (folder / name).read_text()
    assert tomllib.loads(text)["claims"]
    if name.isprintable():
        assert shlex.split(text.splitlines()[1].rpartition("audited by: ")[2]) == ["overclaim", "run", name]


@pytest.mark.parametrize("target", ["$(touch pwned).py:Name", "a b.py:Name", "--help.py:Name", "a'\n.py:Name"])
def test_the_replay_of_a_task_is_one_for_a_shell(target):
    task = Task(target=target, epsilon=1.0, parameters={"word": "$(touch pwned)"}, left="`x`", right=["; y"])
    words = shlex.split(task.command())
    assert words[:3] == ["overclaim", "check", f"./{target}" if target.startswith("-") else target]
    assert "word=$(touch pwned)" in words
    assert '"`x`"' in words


CLAIM = '[[claims]]\ntarget = "mine.py:noisy"\nepsilon = 1\nleft = 1\nright = 0\nruns = 4000\nexpect = "falsified"\n'
#: A run in two processes writes a report, too: it imports more.
WORDS = {
    1: ["check", "mine.py:noisy", "--epsilon", "1", "--left", "1", "--right", "0", "--runs", "4000", "--jobs", "1"],
    2: ["run", "plan.toml", "--jobs", "2", "--no-blind-spots"],
}


@pytest.mark.slow(reason="a whole command")
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_neighbour_of_a_target_stands_in_for_no_module_of_pythons(tmp_path, jobs):
    """Not for what is imported after the target was loaded, nor in other processes; other neighbours are its own."""
    for name in sys.stdlib_module_names:
        (tmp_path / f"{name}.py").write_text("raise SystemExit(9)\n")
    (tmp_path / "neighbour.py").write_text("SCALE = 0.5\n")
    (tmp_path / "mine.py").write_text(
        "from neighbour import SCALE\ndef noisy(data, rng):\n"
        "    try:\n        import winreg, msvcrt\n    except ImportError:\n        pass\n"  # as libraries do
        "    return data + rng.laplace(scale=SCALE)\n"
    )
    words = [sys.executable, "-I", "-m", "overclaim", *WORDS[jobs]]
    (tmp_path / "plan.toml").write_text(CLAIM * jobs)
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    claims = [line for line in done.stderr.splitlines() if line.startswith("FALSIFIED     mine.py:noisy")]
    assert (done.returncode, done.stderr.splitlines()) == (int(jobs == 1), claims), done.stdout
    assert ("2 falsified" if jobs == 2 else "FALSIFIED") in done.stdout


@pytest.mark.slow(reason="whole runs")
def test_files_may_begin_with_a_mark_of_their_order_of_bytes(folder):
    """Some editors of Windows write one; a plan with it was an "Invalid statement (at line 1, column 1)"."""
    plan = '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nrounds = 2\nruns = 200\n'
    (folder / "plan.toml").write_text(plan, encoding="utf-8-sig")
    assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 1
    record = (folder / "out" / "record.json").read_text(encoding="utf-8")
    (folder / "marked.json").write_text(record, encoding="utf-8-sig")
    assert overclaim("report", "marked.json", "--markdown", "x.md").exit_code == 0
    (folder / "left.json").write_text("[1]", encoding="utf-8-sig")
    words = ("--epsilon", 1, "--left", "left.json", "--right", "[0]", "--runs", 400, "--jobs", 1)
    assert overclaim("check", "mechanisms/laplace", *words).exit_code == 0


@pytest.mark.parametrize(("code", "head"), [("utf-8-sig", ""), ("latin-1", "# coding: latin-1\n")])
def test_a_target_may_lie_in_a_file_of_any_encoding(folder, code, head):
    """Python took it, and where its class is written was then read as plain UTF-8: an internal error, or exit 2."""
    text = f"{head}# é\nclass One:\n    feedback = 'full'\n    def __init__(self, arms, rounds, rng): pass\n"
    text += "    def act(self): return 0\n    def update(self, losses): pass\n"
    (folder / "coded.py").write_bytes(text.encode(code))
    done = overclaim("check", "coded.py:One", "--epsilon", 1, "--runs", 400, "--rounds", 2, "--jobs", 1, "--json")
    assert done.exit_code == 3, done.stderr  # it plays one arm
    assert json.loads(done.stdout)["where"] == {"file": "coded.py", "line": 3 if head else 2}


@pytest.mark.parametrize(
    "words",
    [
        ["--pair", '{"round": 1, "left": [[0, 1]], "left": [[1, 1]], "right": [[1, 0]]}'],
        ["--pair", "twice.json"],
        ["--left", '{"n": 1, "n": 2}', "--right", "0"],
        ["--left", "twice.json", "--right", "0"],
        ["--inputs", '{"type": "array", "items": {"minimum": 0, "minimum": 1}}'],
        ["--profile", '{"n": 1, "n": 2}'],
    ],
    ids=" ".join,
)
def test_json_with_two_values_under_one_name_is_refused(tmp_path, monkeypatch, words):
    """The last was taken, without a word."""
    monkeypatch.chdir(tmp_path)
    Path("twice.json").write_text('{"n": 1, "n": 2}')
    result = overclaim("check", "mechanisms/laplace", *words, "--runs", 20)
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.output
    assert re.search(r"an object has two of '(n|left|minimum)'", result.stderr)


@pytest.mark.parametrize("name", ["check", "exact", "regret"])
def test_a_parameter_that_is_set_twice_is_refused(name):
    """The last was taken, without a word."""
    result = overclaim(name, "asi-raman-talwar/batched-exp3", "--set", "eta=1", "--set", "eta=2")
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1), result.output
    assert "--set gives eta twice" in result.stderr
