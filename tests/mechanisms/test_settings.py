"""Values of a function's keywords, as `--set` gives them; and relations in words in the records of mechanisms."""

import inspect
import json
import re
import shlex

import pytest
from click.testing import CliRunner

from overclaim.audit.plans.tasks import Task
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.weakening import with_settings
from overclaim.reports.command_line.cli import main

CODE = """
import numpy as np

def count(data, rng, scale, note=""):
    assert note in ("", "kept")
    return len(data) + rng.laplace(scale=scale)

def drawn(data, T, epsilon=1.0):
    return len(data) * T + np.random.laplace(scale=T / epsilon)

class Called:
    def __call__(self, data, rng):
        return data
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "noisy.py").write_text(CODE + "\ncalled = Called()\n")
    monkeypatch.chdir(tmp_path)


def check(target, *words, left="[1, 1]", right="[1]"):
    sides = ["--left", left, "--right", right]
    words = ["check", f"noisy.py:{target}", "--epsilon", 1, "--runs", 2000, "--jobs", 1, "--json", *sides, *words]
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["count", "--set", "scale=0.25"], 1),
        (["count", "--set", "scale=1", "--set", "note=kept"], 0),
        (["drawn", "--global-random", "--set", "T=8", "--set", "epsilon=4"], 1),
        (["drawn", "--global-random", "--set", "T=8", "--weaken", "epsilon"], 0),
    ],
)
def test_keywords_of_a_function_are_set(folder, words, code):
    """A function took no set."""
    done = check(*words)
    assert done.exit_code == code, done.output
    record = json.loads(done.stdout)
    assert record["parameters"].keys() == {word.partition("=")[0] for word in words if "=" in word}
    assert record["where"]["file"] == "noisy.py"
    assert all(word in record["replay"] for word in words[1:])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["count", "--set", "size=1"], "count takes no parameter 'size'"),
        (["count", "--set", "data=1"], "count takes no parameter 'data'\n  hint:  it takes scale, note"),
        (["count", "--set", "rng=1"], "count takes no parameter 'rng'"),
        (["called", "--set", "scale=1"], "set is for the keywords of a function, and Called is none"),
        (
            ["count", "--set", "scale=1", "--neighbours", "l2"],
            "--neighbours must be l2:D with a distance, as in l2:0.5, got 'l2'",
        ),
    ],
)
def test_bad_input_is_one_line(folder, words, message):
    done = check(*words)
    assert (done.exit_code, "Traceback" in done.stderr) == (2, False), done.output
    assert re.search(re.escape(message), done.stderr), done.stderr


def test_what_is_set_is_no_parameter_of_the_signature_any_more():
    def count(data, n, rng):
        return n

    made = with_settings(count, {"n": 3})
    assert made([], rng=None) == 3
    assert made.__name__ == "count"
    assert not hasattr(made, "__wrapped__")
    assert inspect.signature(made).parameters["n"].default == 3


@pytest.mark.parametrize(
    ("relation", "left", "right", "words"),
    [
        ("add-remove", "[1, 1]", "[1]", "add-remove: one record is added or removed"),
        ("replace-user", '[["a", 2]]', '[["a", 3]]', "replace-user: all records of one user are replaced"),
        ("l1:1", "[2]", "[3]", "l1: the numbers move by at most 1 in L1 distance"),
        (None, "[1, 1]", "[1]", None),
    ],
)
def test_the_relation_is_told_in_words(folder, relation, left, right, words):
    """It was null for every mechanism."""
    asked = [] if relation is None else ["--neighbours", relation]
    done = check("count", "--set", "scale=2", *asked, left=left, right=right)
    assert done.exit_code in (0, 3), done.output
    record = json.loads(done.stdout)
    assert (record["neighbours"], record["relation"]) == (relation or "replace", words)


CALLS = """
import numpy as np

def seedless(data):
    return len(data) + np.random.laplace()

def ordered(data, epsilon, rng):
    return len(data) + rng.laplace(scale=1 / epsilon)

def named(data, generator):
    return len(data) + generator.laplace()
"""


@pytest.mark.parametrize("command", ["check", "trace"])
@pytest.mark.parametrize(
    ("target", "lacks", "added"),
    [("seedless", "takes no rng", "--global-random"), ("ordered", "needs a value for epsilon", "--set epsilon=2")],
)
def test_what_a_function_lacks_is_told_with_the_whole_command(tmp_path, monkeypatch, command, target, lacks, added):
    """The command that is printed is one that works; that of a trace was a check."""
    (tmp_path / "calls.py").write_text(CALLS)
    monkeypatch.chdir(tmp_path)
    words = [command, f"calls.py:{target}", "--epsilon", "2", "--left", "[1]", "--right", "[]"]
    alone = {"check": ["--runs", "400"], "trace": []}[command]
    refused = CliRunner().invoke(main, [*words, *alone])
    assert refused.exit_code == 2
    assert f"{target} {lacks}" in refused.stderr
    hint = refused.stderr.partition("hint:")[2].strip()
    assert hint.startswith(f"overclaim {command} ")
    assert added in hint
    alone = {"check": ["--power", "off", "--jobs", "1"], "trace": []}[command]
    again = CliRunner().invoke(main, [*shlex.split(hint)[1:], *alone])
    assert "calls.py" in again.stdout
    assert again.exit_code in (0, 3)


def test_a_generator_of_another_name_is_one():
    space = {}
    exec(CALLS, space)
    Task(target="calls.py:named", epsilon=1.0)._check_call(space["named"], ApproxDP(1.0), {})
