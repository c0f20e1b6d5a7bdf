"""Files that are none, that never end or that are too large, columns of one meaning, and texts that name files."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.play import json_text
from overclaim.tests.support.command_line import overclaim, refused

COMMANDS = {
    "plan": ["run", "{}"],
    "baseline": ["run", "overclaim.toml", "--baseline", "{}"],
    "record": ["report", "{}", "--html", "r.html"],
    "accepted": ["accept", "{}"],
    "scores": ["scores", "{}.csv", "--epsilon", 1, "--design", "one-run"],
    "left": ["check", "m.py:f", "--epsilon", 1, "--left", "{}.json", "--right", "[1]"],
    "profile": ["check", "m.py:f", "--profile", "{}", "--left", "[1]", "--right", "[0]"],
}
PLAN = '[[claims]]\ntarget = "m.py:f"\nepsilon = 1\nright = [1]\nruns = 1000\n'


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("m.py").write_text("def f(data, rng):\n    return rng.laplace()\n")
    Path("overclaim.toml").write_text(PLAN + "left = [0]\n")
    return tmp_path


@pytest.mark.few(2)
@pytest.mark.parametrize("kind", ["pipe", "zero", "folder"])
@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_no_regular_file_is_refused_before_it_is_read(folder, name, kind):
    words = [word if isinstance(word, int) else word.format("here") for word in COMMANDS[name]]
    path = Path(next(word for word in words if str(word).startswith("here")))
    {"pipe": os.mkfifo, "zero": lambda p: p.symlink_to("/dev/zero"), "folder": Path.mkdir}[kind](path)
    refused(overclaim(*words), "it is no regular file")


@pytest.mark.parametrize("name", ["plan", "record", "scores"])
def test_a_file_that_is_too_large_is_refused_before_it_is_read(folder, name, monkeypatch):
    words = [word if isinstance(word, int) else word.format("here") for word in COMMANDS[name]]
    with open(next(word for word in words if str(word).startswith("here")), "wb") as file:
        file.truncate((json_text.MAX_DATA if name == "scores" else json_text.MAX_TEXT) + 1)
    refused(overclaim(*words), "bytes, and at most")


def written(kind, columns):
    """Write a file of scores with these columns; return its name."""
    rows = np.arange(6.0) % 2
    if kind == "csv":
        Path("s.csv").write_text("\n".join([",".join(columns), *[",".join(["1"] * len(columns))] * 3]))
    elif kind == "npz":
        np.savez("s.npz", **dict.fromkeys(columns, rows))
    elif kind == "npy":
        np.save("s.npy", np.zeros(3, [(name, float) for name in columns]))
    else:
        data = {name: [0, 1, 1] for name in columns}
        Path("s.json").write_text(json.dumps(data if kind == "json" else [dict.fromkeys(columns, 1)]))
    return f"s.{kind.removesuffix('-rows')}"


@pytest.mark.parametrize("kind", ["csv", "npz", "npy", "json", "json-rows"])
@pytest.mark.parametrize(("first", "second"), [("score", "scores"), ("included", "Included")])
def test_two_columns_of_one_meaning_are_both_named(folder, kind, first, second):
    file = written(kind, ["score", "included", second])
    done = overclaim("scores", file, "--epsilon", 1, "--design", "one-run")
    refused(done, f"its columns {first!r} and {second!r} mean the same")


def planned(left):
    from overclaim.audit.plans.plan import read_plan

    Path("plan.toml").write_text(f"{PLAN}left = {left}\n")
    return read_plan(Path("plan.toml")).tasks[0]


def test_a_text_of_a_plan_is_the_file_that_it_names_as_on_the_command_line(folder):
    assert planned('"left.json"').inputs()["left"] == "left.json"  # there is none
    Path("left.json").write_text("[7]")
    assert planned('"left.json"').inputs()["left"] == [7]
    assert planned("""'"left.json"'""").inputs()["left"] == "left.json"
    assert planned('"ann"').inputs()["left"] == "ann"
    assert planned("""'"ann"'""").inputs()["left"] == '"ann"'
    assert planned('{"$file" = "left.json"}').inputs()["left"] == [7]


def test_a_table_that_names_a_file_holds_nothing_else(folder):
    Path("left.json").write_text("[7]")
    Path("plan.toml").write_text(PLAN + 'left = {"$file" = "left.json", x = 1}\n')
    refused(overclaim("run", "plan.toml"), "plan.toml:6: '$file' names a file and stands alone, got 'x' beside it")
    words = ["--left", '{"$file": "left.json", "x": 1}', "--right", "[1]"]
    refused(overclaim("check", "m.py:f", "--epsilon", 1, *words), "stands alone, got 'x' beside it")
