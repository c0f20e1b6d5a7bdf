"""Baselines: what continues an accepted claim, what evidence decides, and the history that it is kept in."""

import contextlib
import copy
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.execution import progress
from overclaim.audit.statistics.change_evidence import Evidence, Guesses, Limits, Line
from overclaim.reports.baseline import Recount, compare, decide, digest, is_silent
from overclaim.reports.history import Change, Count, History
from overclaim.reports.identity import differences, mark
from overclaim.tests.support.command_line import overclaim, refused

PLAN = """
alpha = 0.01
[[claims]]
target = "mine.py:noisy"
epsilon = 2
left = [1]
right = [0]
runs = 4000
untested = "allowed"
"""
NOISY = """
def noisy(data, rng):
    return data[0] if rng.random() < KEEP else 1 - data[0]
"""


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with an accepted baseline: audited once, copied for every test."""
    folder = tmp_path_factory.mktemp("accepted")
    with contextlib.chdir(folder):
        Path("overclaim.toml").write_text(PLAN)
        Path("mine.py").write_text(NOISY.replace("KEEP", "0.65"))
        assert run().exit_code == 0
        done = overclaim("accept", "out/record.json")
        assert (done.exit_code, "counted 40,000 runs" in done.stderr) == (0, True), done.stderr
    return folder


@pytest.fixture
def accepted(original, tmp_path, monkeypatch):
    monkeypatch.chdir(shutil.copytree(original, tmp_path / "work"))
    return Path.cwd()


def run(*words):
    return overclaim("run", "--no-blind-spots", "--jobs", 1, *words)


def rerun(*words):
    result = run("--baseline", "overclaim-baseline.json", *words)
    record = json.loads(Path("out/record.json").read_text()) if result.exit_code in (0, 1, 3) else None
    return result, record


@pytest.mark.slow(reason="whole runs")
def test_the_same_code_draws_the_same_and_counts_once(accepted):
    first, before = rerun()
    assert (first.exit_code, before["status"]) == (0, "AS EXPECTED"), first.output
    history = Path("overclaim-baseline.history").read_text()
    assert len(history.splitlines()) == 1
    _, after = rerun()
    assert Path("overclaim-baseline.history").read_text() == history
    assert [one["claims"][0]["counts"] for one in (before, after)] == [before["claims"][0]["counts"]] * 2
    assert before["claims"][0]["seed"] not in (0, None)
    assert before["baseline"]["changes"] == after["baseline"]["changes"] == 1
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.65") + "# a comment\n")
    _, other = rerun()
    assert other["claims"][0]["seed"] != before["claims"][0]["seed"]
    assert len(Path("overclaim-baseline.history").read_text().splitlines()) == 2


@pytest.mark.slow(reason="whole runs")
def test_a_leak_that_grew_fails_though_the_claim_still_holds_until_it_is_accepted(accepted):
    (accepted / "mine.py").write_text(NOISY.replace("KEEP", "0.75"))
    result, record = rerun()
    assert (result.exit_code, record["status"], record["claims"][0]["verdict"]) == (1, "WORSE", "SURVIVED")
    assert "Worse than the baseline (1)\n  mine.py:noisy: epsilon is at least" in result.output
    assert rerun()[1]["status"] == "WORSE"  # no re-run clears it
    done = overclaim("accept", "out/record.json")
    assert "dropped the evidence of 1 audits of claims that changed" in done.output
    assert rerun()[1]["status"] == "AS EXPECTED"


def base_claim(**more):
    question = {"target": "x", "measure": {"kind": "approximate", "epsilon": 1.0, "delta": 0.0}, "runs": 2000}
    question |= {"canaries": None, "trainings": 1, "alpha": 0.01, "expected": None} | more
    counts = {"right": 900, "guesses": 1200, "runs": 2000, "runs_left": 1000, "left_upper": 450, "right_upper": 150}
    counts |= {"left_lower": 150, "right_lower": 450}
    accepted = {"frozen": {"kind": "outcomes"}, "pair": {}, "method": "guess", "counts": counts}
    record = {"name": "x", "claimed": {"epsilon": 1.0, "delta": 0.0}, "epsilon_lower": 0.5, "verdict": "SURVIVED"}
    return record | {"replay": "overclaim check x", "question": question, "accepted": accepted, "confidence": 0.99}


APPROXIMATE = {"kind": "approximate", "epsilon": 1.0, "delta": 1e-5}
PROFILE = {"kind": "profile", "points": [[0.5, 0.1], [1.0, 0.01]]}


@pytest.mark.parametrize(
    ("field", "then", "now", "differs"),
    [
        ("runs", 2000, 2001, False),
        ("runs", 2000, 1999, True),
        ("canaries", 100, 200, False),
        ("canaries", 100, None, True),
        ("trainings", 3, 2, True),
        ("alpha", 0.01, 0.02, True),
        ("expected", None, "falsified", True),
        ("a field to come", None, True, True),
        ("measure", APPROXIMATE, APPROXIMATE | {"epsilon": 0.999}, False),
        ("measure", APPROXIMATE, APPROXIMATE | {"delta": 9.999e-6}, False),
        ("measure", APPROXIMATE, APPROXIMATE | {"epsilon": 0.5, "delta": 1.1e-5}, True),
        ("measure", APPROXIMATE, {"kind": "gdp", "mu": 0.1}, True),
        (
            "measure",
            {"kind": "rdp", "order": 8.0, "epsilon": 1.0},
            {"kind": "rdp", "order": 8.0, "epsilon": 0.5},
            False,
        ),
        (
            "measure",
            {"kind": "rdp", "order": 8.0, "epsilon": 1.0},
            {"kind": "rdp", "order": 4.0, "epsilon": 0.5},
            True,
        ),
        ("measure", PROFILE, PROFILE | {"points": [[0.5, 0.1], [0.9, 0.01]]}, False),
        ("measure", PROFILE, PROFILE | {"points": [[0.4, 0.01]]}, False),
        ("measure", PROFILE, PROFILE | {"points": [[0.5, 0.1]]}, True),
    ],
)
def test_a_claim_continues_one_that_asks_no_more(field, then, now, differs):
    found = differences(base_claim(**{field: now}), base_claim(**{field: then}))
    assert [difference.field for difference in found] == [field] * differs


def test_order_means_nothing_and_what_changed_is_paired_with_what_is_nearest():
    old = [base_claim(alpha=alpha) for alpha in (0.01, 0.02)]
    found = compare([*map(copy.deepcopy, old[::-1])], {"claims": old})
    assert found["findings"] == []
    new = [base_claim(alpha=0.02), base_claim(alpha=0.03), base_claim(alpha=0.02, expected="falsified")]
    kinds = [(f["kind"], f["message"]) for f in compare(new, {"claims": old})["findings"]]
    assert kinds == [("changed", "alpha - 0.01 + 0.03"), ("new", "not in the baseline")]
    kinds = [f["kind"] for f in compare([copy.deepcopy(old[0])], {"claims": old})["findings"]]
    assert kinds == ["missing"]


def change(guesses, *, own=True, line=None, batches=0, claim="c", name="1"):
    counts = Count(Line(1.0), Guesses(*guesses))
    accepted = Count(line or Line(1.0), Guesses(*guesses))
    return Change("2026", claim, name, counts if own else None, accepted, batches)


BAD, GOOD, EDGE = (8500, 1500, 10000), (6000, 4000, 10000), (7390, 2610, 10000)


def of_evidence(mean, rows=(0, 1)):
    log_r = np.full((2, 8), -np.inf)
    log_r[list(rows)] = np.log(mean) + np.log(2 / len(rows))
    return Evidence(log_r)


@pytest.mark.parametrize(
    ("mean", "batches", "exceeded", "decision"),
    [
        (20_001, 0, False, "false"),
        (19_999, 40, False, "in doubt"),
        (19_999, 0, False, "in doubt"),
        (99, 0, False, "passed"),
        (101, 0, False, "in doubt"),  # nothing could be counted on
        (5, 0, True, "in doubt"),
        (0.9, 3, True, "passed"),
        (1.1, 40, True, "in doubt"),
    ],
)
def test_what_evidence_decides(mean, batches, exceeded, decision):
    assert decide(of_evidence(mean), Limits(1), change(EDGE, batches=batches), exceeded=exceeded) == decision


def test_a_leak_that_grew_within_the_claim_is_worse_and_not_false():
    """The accepted bound is another hypothesis than the claim: it needs twice the evidence, and falsifies nothing."""
    grown = change(EDGE, line=Line(0.3))
    limits = grown.limits(1)
    assert limits.log_red == pytest.approx(np.log(40_000))
    assert decide(of_evidence(50_000, rows=(1,)), limits, grown, exceeded=False) == "worse"
    assert decide(of_evidence(50_000, rows=(0,)), limits, grown, exceeded=False) == "false"


def compared(count, **more):
    new, old = base_claim(**more), base_claim()
    found = compare([new], {"claims": [old]}, count=lambda pairs: [count for _ in pairs])
    return new, found


@pytest.mark.parametrize(("guesses", "decision"), [(BAD, "false"), (GOOD, "passed")])
def test_the_decision_stands_beside_the_claim(guesses, decision):
    new, found = compared(Recount(change(guesses)))
    assert (new["baseline"]["decision"], found["findings"], found["errors"]) == (decision, [], [])
    assert new["baseline"]["red_from"] == pytest.approx(np.log10(20_000), abs=1e-3)


def test_what_cannot_be_counted_is_red_and_a_crash_an_error():
    _, found = compared(Recount(None, "it has gone"))
    assert [(f["kind"], f["message"]) for f in found["findings"]] == [("changed", "it cannot be counted: it has gone")]
    _, found = compared(Recount(None, "it raised", crashed=True))
    assert ([e["kind"] for e in found["errors"]], found["findings"]) == (["crashed"], [])


def test_an_event_that_names_nothing_any_more_is_red():
    silent = change((0, 0, 2000))
    assert is_silent(base_claim(), silent)
    assert not is_silent(base_claim(), change((1, 0, 2000)))
    rare = base_claim()
    rare["accepted"]["counts"] |= dict.fromkeys(("left_upper", "right_upper", "left_lower", "right_lower"), 1)
    assert not is_silent(rare, silent)  # as chance may have it
    _, found = compared(Recount(silent))
    assert found["findings"][0]["message"] == "its accepted event names no input any more"


def test_a_history_is_read_added_to_and_merged(tmp_path):
    history = History.beside(tmp_path / "base.json")
    assert (history.path.name, history.changes, history.torn) == ("base.history", [], False)
    one, two = change(GOOD, name="1"), change(BAD, name="2")
    history.add([one, one])
    history.add([two])
    assert History.beside(history.path).changes == history.changes == [one, two]
    theirs = change(EDGE, name="3")
    text = history.path.read_text()
    history.path.write_text(text + theirs.to_text() + "\n" + text)  # what git's union of two branches may give
    merged = History.beside(history.path)
    assert merged.changes == [one, two, theirs]
    assert merged.until(two) == [one, two]
    assert merged.until(change(GOOD, name="4"))[:-1] == [one, two, theirs]


def test_lines_count_in_the_order_of_their_times_whatever_their_order_in_the_file(tmp_path):
    history = History.beside(tmp_path / "base.json")
    early = replace(change(GOOD, name="1"), time="2026-01-02")
    late = replace(change(GOOD, name="2"), time="2026-01-03")
    again = replace(late, time="2026-01-04")
    history.path.write_text("".join(f"{one.to_text()}\n" for one in (again, late, early)))
    assert History.beside(history.path).changes == [early, late]
    history.add([replace(change(GOOD, name="3"), time="2025-01-01")])  # by another clock
    assert [(one.change, one.time) for one in history.changes][2:] == [("3", "2026-01-03")]
    assert History.beside(history.path).changes == history.changes


def test_a_torn_last_line_is_dropped_and_another_bad_one_is_an_error(tmp_path):
    history = History.beside(tmp_path / "base.json")
    history.add([change(GOOD, name="1"), change(GOOD, name="2")])
    lines = history.path.read_text().splitlines()
    history.path.write_text(f"{lines[0]}\n{lines[1][:40]}")
    torn = History.beside(history.path)
    assert (torn.torn, [one.change for one in torn.changes]) == (True, ["1"])
    torn.add([change(GOOD, name="3")])
    assert [one.change for one in History.beside(history.path).changes] == ["1", "3"]
    for bad in ("{}", "[]", lines[0].replace("10000", "5"), "nan", "x" * 10):
        history.path.write_text(f"{bad}\n{lines[0]}\n")
        with pytest.raises(ValueError, match=r"base.history:1 is no line of a history"):
            History.beside(history.path)


@pytest.mark.slow(reason="whole runs")
def test_baselines_that_are_none_are_refused_in_one_line(accepted):
    refused(run("--baseline", "nowhere.json"), "there is no baseline 'nowhere.json'")
    (accepted / "broken.json").write_text("{}")
    assert run("--baseline", "broken.json").exit_code == 2
    assert run().exit_code == 0
    refused(
        run("--baseline", "out/record.json", "--out", "other"),
        "'out/record.json' is no baseline, or one of an older version",
    )
    Path("overclaim-baseline.history").write_text("x\ny\n")
    torn = run("overclaim.toml", "--baseline", "overclaim-baseline.json")
    refused(torn, "overclaim-baseline.history:1 is no line of a history")


def test_a_digest_is_that_of_what_is_kept():
    record = {"claims": [base_claim()], "baseline": {"findings": []}}
    assert digest(record) == digest({"claims": [base_claim() | {"evidence": {}, "baseline": None}]})
    assert digest(record) != digest({"claims": [base_claim(alpha=0.5)]})
    assert mark(base_claim()) == mark(base_claim(runs=10**6)) != mark(base_claim(alpha=0.5))


@pytest.mark.parametrize(
    ("words", "stage"),
    [(("report", "--markdown", "record.md"), "checking the record"), (("accept",), "counting the accepted events")],
)
@pytest.mark.usefixtures("accepted")
def test_a_command_that_reads_a_record_shows_its_steps(words, stage, monkeypatch):
    shown = []
    monkeypatch.setattr(progress, "LINE", line := progress.Line())
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    monkeypatch.setattr(line, "draw", lambda *_: shown.extend(line.stages if line.on else ()))
    assert overclaim(words[0], "out/record.json", *words[1:]).exit_code == 0
    assert stage in shown
