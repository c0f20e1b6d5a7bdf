"""Records: written whole or not at all, and refused in one line where they are none."""

import importlib.util
import json
import os
import threading
from pathlib import Path

import pytest

from overclaim import __version__
from overclaim.audit.execution.provenance import packages, versions
from overclaim.reports.record import read_record, run_record, to_text, write_atomically
from overclaim.tests.support.command_line import PLAN, error_lines, overclaim, refused


def test_a_device_is_never_replaced():

    with pytest.raises(ValueError, match="no regular file"):
        write_atomically(Path("/dev/null"), "")


def test_a_link_is_written_through(tmp_path):

    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_what_a_killed_writer_leaves_is_replaced(tmp_path, monkeypatch):
    """A kill before the renaming leaves one file, which the next writer takes over; links are not followed."""

    class KilledError(BaseException):
        pass

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(KilledError))
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KilledError):
            write_atomically(tmp_path / "record.json", "torn")
    assert len(list(tmp_path.iterdir())) == 2  # it, and its lock
    write_atomically(tmp_path / "record.json", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert (tmp_path / "record.json").read_text() == "whole"

    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / ".record.json.new").symlink_to(tmp_path / "theirs")
    with pytest.raises(ValueError, match="cannot write"):
        write_atomically(tmp_path / "record.json", "text")
    assert (tmp_path / "theirs").read_text() == "theirs"


def test_two_writers_of_one_file_take_turns(tmp_path, monkeypatch):
    """The second wrote into the unfinished file of the first: that could stand there torn, and one of them failed."""
    path, replace = tmp_path / "report.html", os.replace
    second = threading.Thread(target=write_atomically, args=(path, "second"))

    def slowly(*names):
        if second.ident is None:
            second.start()
            second.join(0.3)
        replace(*names)

    monkeypatch.setattr("os.replace", slowly)
    write_atomically(path, "first")
    second.join()
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("content", ["{}", "[]", '{"schema": 9, "claims": []}', "no json", None])
def test_records_that_are_none(tmp_path, content):
    path = tmp_path / "record.json"
    if content is not None:
        path.write_text(content)
    result = overclaim("report", path, "--html", tmp_path / "x.html")
    assert result.exit_code == 2
    assert error_lines(result.stderr) == 1
    assert not (tmp_path / "x.html").exists()


TALLY = ("runs", "runs_left", "left_upper", "left_lower", "right_upper", "right_lower")


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ({}, "claims[0]"),
        ({"name": ["a"]}, "claims[0].name"),
        ({"claimed": None}, "claims[0].claimed"),
        ({"verdict": "GOOD"}, "claims[0].verdict"),
        ({"epsilon_lower": "x"}, "claims[0].epsilon_lower"),
        ({"pair": 3}, "claims[0].pair"),
        ({"confidence": 1.0}, "claims[0].confidence"),
        ({"counts": {"left_upper": 1}}, "claims[0].counts"),
        ({"counts": {"right": None, "guesses": 1}}, "claims[0].counts.right"),
        ({"counts": {"right": 3, "guesses": 2}}, "claims[0].counts"),
        ({"frozen": {"kind": "sequences", "counts": {"right": 3, "guesses": 2}}}, "claims[0].frozen.counts"),
        ({"counts": dict.fromkeys(TALLY, 1) | {"runs": 9}}, "claims[0].counts"),  # two of one run of the left world
        ({"counts": dict.fromkeys(TALLY, 0) | {"runs_left": 1}}, "claims[0].counts"),
        ({"evidence": {"growth": {"runs": [10]}}}, "claims[0].evidence.growth"),
        ({"evidence": {"growth": {"runs": [10, 20], "bound": [1]}}}, "claims[0].evidence.growth"),
        ({"evidence": {"tradeoff": {}}}, "claims[0].evidence.tradeoff"),
        ({"shrunk": {"pair": {"left": 1}}}, "claims[0].shrunk.pair.left"),
    ],
)
def test_a_malformed_record_is_one_line(tmp_path, claim, place):
    sound = {"name": "a", "claimed": {"epsilon": 1.0}, "verdict": "SURVIVED"}
    file = tmp_path / "record.json"
    file.write_text(json.dumps({"schema": 1, "claims": [{**sound, **claim} if claim else {}]}))
    for words in (["report", str(file), "--html", str(tmp_path / "r.html")], ["accept", str(file)]):
        refused(overclaim(*words), f"is no record: {place}:")
    assert not (tmp_path / "r.html").exists()


def test_a_record_with_too_little_is_no_baseline(tmp_path):
    """It can be rendered, but not compared."""
    (tmp_path / "least.json").write_text(
        '{"schema": 1, "claims": [{"name": "a", "claimed": {"epsilon": 1}, "verdict": "SURVIVED"}]}'
    )
    (tmp_path / "plan.toml").write_text(PLAN)
    missing = "epsilon_lower, method, counts, runs, replay, question, claimed.delta, counts.right, counts.runs"
    for words in (("accept",), ("run", tmp_path / "plan.toml", "--baseline")):
        refused(overclaim(*words, tmp_path / "least.json"), f"claims[0] has no {missing}")


def test_a_fault_of_ours_is_no_bad_input(tmp_path, monkeypatch):
    """What the schema lets pass must render: where it does not, the fault is ours, and is to be seen."""
    (tmp_path / "record.json").write_text('{"schema": 1, "claims": []}')
    monkeypatch.setattr("overclaim.reports.formats.markdown.render", lambda record: {}["planted"])
    refused(
        overclaim("report", tmp_path / "record.json", "--markdown", tmp_path / "x.md"),
        "internal error, a fault of overclaim: KeyError: 'planted'",
        code=70,
    )
    assert not (tmp_path / "x.md").exists()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "1e999"])
def test_a_number_that_is_none(tmp_path, number):
    claim = f'{{"name": "a", "claimed": {{"epsilon": 1}}, "verdict": "SURVIVED", "epsilon_lower": {number}}}'
    (tmp_path / "record.json").write_text(f'{{"schema": 1, "claims": [{claim}]}}')
    result = overclaim("report", tmp_path / "record.json", "--html", tmp_path / "x.html")
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1)


def test_record_and_ledger_name_the_same_packages():
    """One list was without scikit-learn, which fits half of the attacks."""
    claim = {"name": "x", "engine": "numpy", "verdict": "SURVIVED"}
    named = run_record([claim], seed=0, alpha=0.01, command="")["versions"]
    assert named == versions()
    assert packages() == ", ".join(f"{n} {v}" for n, v in {"overclaim": __version__, **named}.items())
    assert {"python", "numpy", "scipy", "scikit-learn", "optuna"} <= named.keys()


def test_parameters_of_the_command_line_are_values():
    """They were texts, which a plan's are not."""
    words = ["check", "asi-raman-talwar/batched-threshold", "--runs", 400, "--jobs", 1, "--json", "--set"]
    assert json.loads(overclaim(*words, "batch=1").stdout)["parameters"] == {"batch": 1}
    assert json.loads(overclaim(*words, "calibration=corrected").stdout)["parameters"] == {"calibration": "corrected"}


@pytest.mark.skipif(importlib.util.find_spec("opendp") is None, reason="OpenDP is not installed")
def test_a_case_of_a_library_has_no_note_of_the_catalogue():
    """It was asked for one: an internal error of every check of a library."""
    done = overclaim("check", "libraries/opendp/make_laplace-int", "--runs", 400, "--jobs", 1, "--json")
    assert json.loads(done.stdout)["note"] == ""


@pytest.mark.parametrize("before", ['"claims": [], ', '"versions": {"numpy": "1", "numpy": "2"}, '])
def test_two_values_under_one_name_are_refused(record, tmp_path, before):
    """Readers take the first or the last: a record showed one verdict here and another one there."""
    path = tmp_path / "record.json"
    path.write_text("{" + before + to_text(record).lstrip("{"))
    with pytest.raises(ValueError, match=r"is no JSON: an object has two of '(claims|numpy)'"):
        read_record(path)
