"""Inputs that are searched, files of inputs and randomness of the system, from the command line and in plans."""

import json
import re
import shlex

import numpy as np
import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.record import read_record
from overclaim.tests.support.command_line import refused

MECHANISMS = """
import random

import numpy as np

SYSTEM = random.SystemRandom()

def total(data, rng):
    return sum(1 if x is None else x for x in data) + rng.laplace(scale=0.4)

def first(data, rng):
    return float(data["x"][0]) + rng.laplace()

def system(data):
    return data[0] + SYSTEM.expovariate(1) - SYSTEM.expovariate(1)

def weak(data, rng):
    return sum(data) + rng.laplace(scale=0.82)

def histogram(data, rng, scale=1.0):
    return np.bincount(data, minlength=2) + rng.laplace(scale=scale, size=2)

def shape(data, rng):
    return data.sum() + rng.laplace(scale=0.2)

def plain(data, rng):
    return sum(data) + rng.laplace()

def clipping(data, rng):
    return sum(min(max(x, 0), 1) for x in data) + rng.laplace()

def refusing(data, rng):
    if not all(0 <= x <= 1 for x in data):
        raise ValueError("out of range")
    return plain(data, rng)

LARGEST = []

def lazy(data, rng):
    if not LARGEST:
        LARGEST.append(max(data))
    return sum(min(x, LARGEST[0]) for x in data) + rng.laplace(scale=3.0)

def checked(data, rng):
    if max(data) > 0.9:
        raise ValueError("too large")
    return lazy(data, rng)
"""
UNIT = {"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 1}, "minItems": 1, "maxItems": 3}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "noisy.py").write_text(MECHANISMS)
    (tmp_path / "schema.json").write_text(json.dumps(UNIT))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*words):
    return CliRunner().invoke(main, ["check", *words, "--epsilon", "1", "--jobs", "1"])


@pytest.mark.parametrize("target", ["lazy", "checked"])  # the other may raise on the first inputs that are drawn
def test_what_the_first_call_keeps_is_refused_before_later_ones_hide_it(folder, target):
    result = check(f"noisy.py:{target}", "--inputs", "schema.json", "--runs", "400")
    refused(result, "the global LARGEST was filled in by the first", code=4)


def test_a_schema_is_searched_and_what_it_found_is_replayed(folder):
    # (At seed 0 the search finds the smallest pair by itself, and there is nothing to shrink.)
    words = [
        "noisy.py:total",
        "--inputs",
        "schema.json",
        "--neighbours",
        "replace",
        "--runs",
        "4000",
        "--seed",
        "1",
        "--json",
    ]
    first, again = (check(*words) for _ in range(2))
    assert first.exit_code == 1, first.output
    record = json.loads(first.stdout)
    assert {**record, "seconds": 0} == {**json.loads(again.stdout), "seconds": 0}
    assert record["inputs"] == {"schema": UNIT, "relation": "replace"}
    assert record["searched"]["tried"] > 20
    assert record["replayable"] is True
    small = record["smallest_inputs"]
    assert sorted([small["pair"]["left"], small["pair"]["right"]]) == [[0.0], [1.0]]
    done = CliRunner().invoke(main, [*small["replay"].split()[1:3], *_options(small["replay"]), "--json"])
    assert json.loads(done.stdout)["epsilon_lower"] == pytest.approx(small["epsilon_lower"], abs=1e-9)


@pytest.mark.slow(reason="one search more")
def test_that_nothing_smaller_was_certified_is_said(folder):
    """As if it had not been tried, nothing was said of a violation that is too weak for trials."""
    (folder / "bits.json").write_text(json.dumps({**UNIT, "items": {"enum": [0, 1]}}))
    words = ("noisy.py:weak", "--inputs", "bits.json", "--runs", "10000")
    done = check(*words, "--json")
    record = json.loads(done.stdout)
    assert record["verdict"] == "FALSIFIED"
    small = record["smallest_inputs"]
    assert small["fresh"] is False
    assert small["pair"] == {side: record["pair"][side] for side in small["pair"]}
    assert (small["epsilon_lower"], small["replay"]) == (record["epsilon_lower"], record["replay"])
    told = "no simpler inputs were certified; candidate checks have fewer runs, and may miss a weak violation"
    assert told in " ".join(claim_lines(record, verbose=True).split())
    assert "Simplest" not in claim_lines(record)
    assert told not in " ".join(claim_lines({**record, "smallest_inputs": None}, verbose=True).split())


@pytest.mark.slow(reason="two searches more")
@pytest.mark.parametrize(
    ("words", "survives"),
    [
        ([], "add-remove"),
        (["--neighbours", "replace:2", "--set", "scale=2"], "add-remove:2"),
        (["--set", "scale=0.7"], None),  # false under both
        (["--set", "scale=0.2"], None),  # costs more than removing a record and adding one may
        (["--neighbours", "add-remove", "--set", "scale=0.7"], None),
    ],
)
def test_the_relation_under_which_it_survives_is_said(folder, words, survives):
    """Of a histogram for records that are added or removed nothing said that `replace` costs it twice as much."""
    bins = {"type": "array", "minItems": 2, "maxItems": 4, "items": {"enum": [0, 1]}}
    done = check("noisy.py:histogram", "--inputs", json.dumps(bins), "--runs", "8000", *words, "--json")
    record = json.loads(done.stdout)
    assert (record["verdict"], done.exit_code) == ("FALSIFIED", 1)
    found = record.get("survives", {})
    assert found.get("neighbours") == survives
    line = f"under {survives} it survives 8,000 fresh runs (epsilon is at least "
    for page in (claim_lines(record), render({"schema": 1, "claims": [record]})):
        assert (line in " ".join(page.split())) == bool(found)
    assert not found or 0 < found["lower"] < 1


def test_inputs_of_a_single_size_have_no_weaker_relation(folder):
    bins = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"enum": [0, 1]}}
    done = check("noisy.py:histogram", "--inputs", json.dumps(bins), "--runs", "2000", "--json")
    record = json.loads(done.stdout)
    assert (record["verdict"], record.get("survives"), record.get("missing")) == ("FALSIFIED", None, None)


@pytest.mark.parametrize(
    ("target", "limits", "breaks"),
    [
        ("plain", {"minimum": 0, "maximum": 1}, True),
        ("clipping", {"minimum": 0, "maximum": 1}, False),
        ("refusing", {"minimum": 0, "maximum": 1}, False),
        ("plain", {"enum": [0, 1]}, False),  # there is nothing beyond
    ],
)
def test_what_breaks_beyond_the_limits_of_a_schema_is_said_beside_the_verdict(folder, target, limits, breaks):
    schema = {"type": "array", "items": {"type": "number", **limits}, "minItems": 1, "maxItems": 3}
    done = check(f"noisy.py:{target}", "--inputs", json.dumps(schema), "--runs", "2000", "--json")
    record = json.loads(done.stdout)
    assert (record["verdict"] == "FALSIFIED", record.get("missing")) == (False, None)
    beyond = record.get("beyond_limits")
    assert bool(beyond) == breaks
    for page in (claim_lines(record), render({"schema": 1, "claims": [record]})):
        assert ("beyond the limits of its schema epsilon is at least" in " ".join(page.split())) == breaks
    if beyond:
        assert beyond["lower"] > 1
        assert any(not 0 <= x <= 1 for side in ("left", "right") for x in beyond["pair"][side])


def _options(command):
    return [*shlex.split(command)[3:], "--jobs", "1"]


@pytest.mark.slow(reason="one search more")
def test_the_terminal_says_what_was_searched(folder):
    done = check(
        "noisy.py:total", "--inputs", json.dumps(UNIT), "--neighbours", "add-remove", "--runs", "4000", "--seed", "4"
    )
    assert " pairs tried)" in " ".join(done.stdout.split())
    assert "Simplest    left [" in done.stdout
    assert " here too" in done.stdout


def test_arrays_frames_and_nan_come_from_files(folder):
    np.save(folder / "left.npy", np.array([1.0, 1.0]))
    (folder / "right.json").write_text('{"$array": {"dtype": "float64", "data": [1.0, 0.0]}}')
    done = check("noisy.py:shape", "--left", "left.npy", "--right", "right.json", "--runs", "3000", "--json")
    assert done.exit_code == 1, done.output
    record = json.loads(done.stdout)
    assert record["pair"]["left"] == {"$array": {"dtype": "float64", "data": [1.0, 1.0]}}
    assert "--left left.npy" in record["replay"]
    (folder / "left.csv").write_text("x\n3\n")
    (folder / "right.csv").write_text("x\n0\n")
    done = check("noisy.py:first", "--left", "left.csv", "--right", "right.csv", "--runs", "3000")
    assert done.exit_code == 1, done.output
    assert 'Inputs      left frame("x": [3])' in done.stdout
    done = check("noisy.py:total", "--left", "[NaN]", "--right", "[0]", "--runs", "1000")
    assert "Inputs      left [nan]" in done.stdout


@pytest.mark.slow(reason="one search more")
def test_a_plan_says_it_too_and_no_report_promises_a_replay(folder):
    (folder / "plan.toml").write_text(
        '[[claims]]\ntarget = "noisy.py:system"\nepsilon = 1\nleft = [3]\nright = [0]\nos_random = true\nruns = 2000\n'
        'expect = "survived"\n'
        '[[claims]]\ntarget = "noisy.py:total"\nepsilon = 1\ninputs = "schema.json"\nneighbours = "add-remove"\n'
        'runs = 4000\nexpect = "survived"\n'
    )
    done = CliRunner().invoke(main, ["run", "plan.toml", "--jobs", "1"])
    assert done.exit_code == 1, done.output
    record = read_record(folder / "out" / "record.json")
    system, total = record["claims"]
    assert (system["replayable"], total["replayable"]) == (False, True)
    assert len(system["outputs_digest"]) == 64
    assert total["smallest_inputs"]["epsilon_lower"] > 1
    assert total["replay"].endswith("--neighbours add-remove --inputs schema.json")
    assert "is added or removed" in " ".join(claim_lines(total).split())
    for text in (markdown(record), junit(record), sarif(record), render(record)):
        assert "add-remove" in text.replace("--neighbours add-remove", "")
    alone = {**record, "claims": [system]}
    for text in (markdown(alone), junit(alone), sarif(alone)):
        assert "again, not a replay" in text.lower()
    assert "Replay it: the same seed" not in render(alone)
    assert "the same seed gives the same counts" not in render(alone)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["noisy.py:total", "--inputs", "none.json"], "cannot read the input 'none.json'"),
        (["noisy.py:total", "--inputs", "{"], "--inputs must be JSON"),
        (["noisy.py:total", "--left", "[1e400]", "--right", "[0]"], "no float holds 1e400"),
        (["noisy.py:total", "--inputs", '{"enum": [-1e999, 0]}'], "no float holds -1e999"),
        (["noisy.py:total", "--inputs", '{"type": "strange"}'], "the schema of inputs is invalid"),
        (["noisy.py:total", "--inputs", '{"type": "integer", "minimum": 2, "maximum": 1}'], "nothing fits the schema"),
        (
            ["noisy.py:total", "--inputs", '{"type": "integer"}', "--neighbours", "add-remove"],
            "int data is one record",
        ),
        (["noisy.py:total", "--inputs", "schema.json", "--neighbours", "user:3"], "a mechanism has none"),
        (
            ["noisy.py:total", "--inputs", "schema.json", "--left", "1", "--right", "2"],
            "--right cannot go with --inputs",
        ),
        (["noisy.py:total", "--inputs", '{"const": [1]}'], "makes no two inputs that differ"),
        (["noisy.py:total", "--left", "left.npy", "--right", "1"], "cannot read the input 'left.npy'"),
        (
            ["noisy.py:total", "--neighbours", "add-remove", "--left", "[1]", "--right", "[2]"],
            "one side is not the other with records removed",
        ),
        (
            ["noisy.py:total"],
            "its two inputs are missing",
        ),
        (["mechanisms/laplace", "--os-random"], "--os-random is for code of your own"),
        (["agarwal-singh/ftrl-ball", "--os-random"], "--os-random is for code of your own"),
        (["mechanisms/laplace", "--raising", "outcome"], "--raising is for code of your own"),
        (["agarwal-singh/ftrl-ball", "--raising", "outcome"], "--raising is for code of your own"),
        (
            ["noisy.py:total", "--left", "[1]", "--right", "[0]", "--raising", "maybe"],
            "--raising must be one of error",
        ),
    ],
)
def test_bad_input_is_one_line(folder, words, message):
    done = check(*words)
    assert done.exit_code == 2, done.output
    assert re.search(message, done.stderr), done.stderr
    assert "Traceback" not in done.stderr


def test_a_mechanism_without_a_generator_is_told_of_the_way_out(folder):
    (folder / "alone.py").write_text("import random\n\ndef alone(data):\n    return data + random.random()\n")
    pair = ["--left", "1", "--right", "0", "--runs", "200"]
    refused(check("alone.py:alone", *pair), "alone takes no rng", "--global-random", code=2)
    assert check("alone.py:alone", *pair, "--os-random").exit_code in (0, 1, 3)
