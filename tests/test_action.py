"""The GitHub action: its shell steps, run as GitHub runs them, with hostile inputs and a hostile repository."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
INSTALL, AUDIT = (step for step in ACTION["runs"]["steps"] if "run" in step)
INPUTS = {name: given.get("default", "") for name, given in ACTION["inputs"].items()}
#: Stands for overclaim: notes what it is called with, and writes what is asked for unless it is asked for help.
OVERCLAIM = """
import json, os, pathlib, sys
words = sys.argv[1:]
with open(os.environ["CALLS"], "a") as calls:
    print(json.dumps(words), file=calls)
given = dict(word.split("=", 1) for word in words if word.startswith("--") and "=" in word)
options = words[: words.index("--")] if "--" in words else words
if words[0] == "run" and not {"--help", "-h"} & set(options):
    out = pathlib.Path(given["--out"])
    out.mkdir(parents=True, exist_ok=True)
    (out / "record.json").write_text("{}")
for name in ("--markdown", "--sarif", "--junit"):
    if name in given:
        pathlib.Path(given[name]).write_text(f"{name}\\n")
sys.exit(int(os.environ["CODE"]) if words[0] == "run" else 0)
"""
pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")


def program(path, text):
    path.write_text(f"#!{sys.executable} -I\n{text}")
    path.chmod(0o755)


class Runner:
    """A checked-out repository, and what GitHub gives to a step."""

    def __init__(self, folder):
        self.repository, programs = folder / "repository", folder / "programs"
        for place in (self.repository, programs):
            place.mkdir()
        self.files = {name: folder / name for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY", "CALLS")}
        for path in self.files.values():
            path.touch()
        program(programs / "overclaim", OVERCLAIM)
        (programs / "python").symlink_to(sys.executable)
        self.programs = programs

    def run(self, step, code=0, **inputs):
        values = {**INPUTS, **{name.replace("_", "-"): value for name, value in inputs.items()}}
        shown = {key: values[text.split("inputs.")[1].split()[0]] for key, text in step["env"].items()}
        environment = {
            "PATH": f"{self.programs}:/usr/bin:/bin",
            "GITHUB_ACTION_PATH": str(ROOT),
            "CODE": str(code),
            **{name: str(path) for name, path in self.files.items()},
            **shown,
        }
        script = self.programs / "step.sh"
        script.write_text(step["run"])
        words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)]
        return subprocess.run(
            words, cwd=self.repository, env=environment, capture_output=True, text=True, check=False, timeout=600
        )

    @property
    def calls(self):
        return [json.loads(line) for line in self.files["CALLS"].read_text().splitlines()]

    @property
    def outputs(self):
        return self.files["GITHUB_OUTPUT"].read_text().splitlines()


@pytest.fixture
def runner(tmp_path):
    return Runner(tmp_path)


@pytest.mark.parametrize("code", [0, 1])
@pytest.mark.parametrize("history", ["-kept/the history", "a base.history"])
def test_a_history_is_taken_from_a_cache_and_put_back(runner, history, code):
    kept, beside = runner.repository / history, runner.repository / "a base.history"
    for text in ("first\n", "second\n"):  # what overclaim adds
        program(
            runner.programs / "overclaim",
            f"import sys\nsys.argv[1] == 'run' and open('a base.history', 'a').write({text!r})\n{OVERCLAIM}",
        )
        done = runner.run(AUDIT, code, baseline="a base.json", history=history)
        assert done.returncode == code, done.stderr
        expected = "first\nsecond\n" if text == "second\n" else "first\n"
        assert (kept.read_text(), beside.read_text()) == (expected, expected)
        if kept != beside:
            beside.unlink()  # a new checkout


def test_a_history_without_a_baseline_is_refused(runner):
    done = runner.run(AUDIT, history="kept")
    assert (done.returncode, runner.calls) == (2, [])
    assert "the input history is for a baseline, and none is given" in done.stdout


@pytest.mark.few(2)
@pytest.mark.parametrize("code", [0, 1, 3, 4])
def test_a_run_with_its_outputs(runner, code):
    done = runner.run(AUDIT, code, baseline="a base.json", arguments="--jobs 2 --seed '3'", out="a folder")
    assert done.returncode == code, done.stderr
    run, report = runner.calls
    assert run == [
        "run",
        "--restart",
        "--baseline=a base.json",
        "--jobs",
        "2",
        "--seed",
        "3",
        "--out=a folder",
        "--",
        "overclaim.toml",
    ]
    assert report[0] == "report"
    assert report[-2:] == ["--", "a folder/record.json"]
    assert runner.outputs == ["record=a folder/record.json", "sarif=a folder/overclaim.sarif"]
    assert runner.files["GITHUB_STEP_SUMMARY"].read_text() == "--markdown\n"


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "name",
    [
        "--help",
        "$(touch pwned)",
        "a\nb",
        "*",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("--version", "-h", "--fast", "`touch pwned`")),
    ],
)
@pytest.mark.parametrize("where", ["plan", "baseline", "out"])
def test_inputs_that_look_like_something_else(runner, where, name):
    """They are names of files, whatever they look like."""
    done = runner.run(AUDIT, **{where: name})
    if where == "out" and "\n" in name:
        assert (done.returncode, runner.calls, runner.outputs) == (2, [], [])
        assert "::error::overclaim: the input out must be one line of text" in done.stdout
        return
    assert done.returncode == 0, done.stdout + done.stderr
    run = runner.calls[0]
    assert run[-2:] == ["--", name if where == "plan" else "overclaim.toml"]
    assert f"--out={name if where == 'out' else 'out'}" in run
    assert where != "baseline" or f"--baseline={name}" in run
    assert len(runner.outputs) == 2
    assert not (runner.repository / "pwned").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ("--out other", "--out is an input of its own, not one of arguments"),
        ("--jobs 1 --out=other", "--out is an input of its own"),
        ("--baseline=other", "--baseline is an input of its own"),
        ("'open", "the input arguments must be quoted as in a shell"),
        ("--help", "nothing was audited"),
        ("-h", "nothing was audited"),
    ],
)
def test_arguments_that_would_make_a_green_job_of_nothing(runner, arguments, told):
    (runner.repository / "out").mkdir()
    (runner.repository / "out" / "record.json").write_text("of an earlier run")
    done = runner.run(AUDIT, arguments=arguments)
    assert done.returncode == 2
    assert f"::error::overclaim: {told}" in done.stdout
    assert runner.outputs == []


@pytest.mark.few(2)
@pytest.mark.parametrize("words", [["a b", "c"], ["$(touch pwned)"], ["*"], ["a\nb"], ["it's"], [""]])
def test_arguments_reach_overclaim_as_they_are(runner, words):
    import shlex

    assert runner.run(AUDIT, arguments=shlex.join(["--set", *words])).returncode == 0
    assert runner.calls[0][2:-3] == ["--set", *[word for word in words if word]]
    assert not (runner.repository / "pwned").exists()


@pytest.mark.few(2)
@pytest.mark.parametrize("name", ["shlex", "os", "json", "overclaim", "pip", "sitecustomize", "encodings"])
def test_modules_of_the_audited_repository_stand_in_for_nothing(runner, name):
    (runner.repository / f"{name}.py").write_text("open('pwned', 'w')\nraise SystemExit(9)\n")
    assert runner.run(AUDIT, arguments="--jobs 1").returncode == 0
    assert not (runner.repository / "pwned").exists()


def test_what_is_installed_is_locked(runner):
    (runner.programs / "python").unlink()
    program(runner.programs / "python", OVERCLAIM)
    done = runner.run(INSTALL, requirements="--help")
    assert done.returncode == 0, done.stderr
    pip = ["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    assert runner.calls == [
        [*pip, "--require-hashes", f"--requirement={ROOT}/requirements.lock"],
        [*pip, "--no-deps", "--no-build-isolation", str(ROOT)],
        [*pip, "--requirement=--help"],
    ]
    assert os.path.exists(ROOT / "requirements.lock")


@pytest.mark.slow(reason="a whole command")
def test_a_real_run(runner):
    """Our own command line takes what the action gives it."""
    program(runner.programs / "overclaim", "from overclaim.__main__ import run\nrun()\n")
    for name in ("platform", "statistics", "shlex"):
        (runner.repository / f"{name}.py").write_text("raise SystemExit(9)\n")
    (runner.repository / "mine.py").write_text("def noisy(data, rng):\n    return data + rng.laplace(scale=0.5)\n")
    (runner.repository / "--help").write_text(
        '[[claims]]\ntarget = "mine.py:noisy"\nepsilon = 1\nleft = 1\nright = 0\nruns = 4000\nexpect = "falsified"\n'
    )
    done = runner.run(AUDIT, plan="--help", arguments="--jobs 1", out="-out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert runner.outputs == ["record=-out/record.json", "sarif=-out/overclaim.sarif"]
    assert "mine.py:noisy" in runner.files["GITHUB_STEP_SUMMARY"].read_text()
    assert {path.name for path in (runner.repository / "-out").iterdir()} == {
        ".gitignore", "record.json", "report.html", "summary.md", "overclaim.sarif", "junit.xml",
    }  # fmt: skip
