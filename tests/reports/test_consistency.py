"""A record that contradicts itself is refused by what renders and by what accepts it; a real one never is."""

import copy
import json
from pathlib import Path

import pytest

from overclaim import GDP, RDP, ZCDP
from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.tasks import Task
from overclaim.reports.command_line.running import decide_together
from overclaim.reports.consistency import check_consistent
from overclaim.reports.record import claim_record, run_record, to_text
from overclaim.tests.support.command_line import error_lines, overclaim

DATA = Path(__file__).parents[1] / "data"
#: A survivor, a false claim at a delta, two that stopped early, one of each other kind of bound, an undecided one, and
#: one that Holm's procedure alone falsifies.
TASKS = {
    "survived": {},
    "falsified": {"target": "mechanisms/laplace-half-scale", "delta": 0.01, "epsilon": 1.0},
    "one side": {"target": "agarwal-singh/reduction-threshold", "losses": "symmetric"},
    "early, falsified": {"target": "mechanisms/laplace-half-scale", "stop": "early"},
    "early": {"stop": "early"},
    "gdp": {"measure": GDP(0.9)},
    "zcdp": {"measure": ZCDP(0.5)},
    "rdp": {"measure": RDP(8.0, 0.4)},
    "undecided": {"epsilon": 20.0, "runs": 300},
}
#: What the counts, or another number, decide of every claim that has it.
DECIDED = [
    "epsilon_lower",
    "lower",
    "p_value",
    "two_interval_bound",
    "confidence",
    "detectable_epsilon",
    "runs",
    "pilot_runs",
    "budget",
    "seed",
    "claimed",
    "measure",
    "counts",
    "translation",
]


def task_of(target="mechanisms/laplace", stop="budget", runs=3000, **options):
    return Task(target=target, budget=Budget(runs=runs, stop=stop, confidence=0.995), **options)


@pytest.fixture(scope="module")
def audited():
    tasks = [task_of(**options) for options in TASKS.values()]
    prepared = [task.prepare() for task in tasks]
    claims = [claim_record(one, one.audit()) for one in prepared]
    claims.append(copy.deepcopy(claims[1]))
    record = run_record(claims, seed=0, alpha=0.05, command="overclaim run")
    plan = Plan((*tasks, tasks[1]), report_alpha=0.05)
    return record | {"ledger_of_tests": decide_together(claims, plan)}


@pytest.fixture
def record(audited):
    return copy.deepcopy(audited)


def leaves(value, place=()):
    """Yield the places of numbers in a value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield place
    for key, inner in items:
        yield from leaves(inner, (*place, key))


def edited(record, i, place, change):
    """Return a copy of a record with one value of one claim changed."""
    dirty = copy.deepcopy(record)
    *way, last = place
    inner = dirty["claims"][i]
    for key in way:
        inner = inner[key]
    inner[last] = change(inner[last])
    return dirty


def refused(record):
    try:
        check_consistent(record, "record.json")
    except ValueError as error:
        return str(error)
    return ""


def test_what_was_audited_is_consistent(record):
    assert refused(record) == ""
    assert {claim["method"] for claim in record["claims"]} == {"guess", "joint", "variational", "anytime"}
    assert {claim["verdict"] for claim in record["claims"]} == {"SURVIVED", "FALSIFIED", "UNDERPOWERED"}
    assert refused(json.loads(to_text(record))) == ""


def larger(value):
    return value + 1 if isinstance(value, int) else 1.001 * value + 1e-4


def smaller(value):
    return abs(value - 1) if isinstance(value, int) else 0.999 * value - 1e-4


@pytest.mark.few(4)
@pytest.mark.parametrize("change", [larger, smaller])
@pytest.mark.parametrize("number", range(len(TASKS)), ids=TASKS)
def test_an_edit_of_what_the_counts_decide_is_refused(record, number, change):
    """Of each number of each claim: with nothing else changed it does not follow any more."""
    claim = record["claims"][number]
    places = [place for name in DECIDED for place in leaves(claim.get(name), (name,))]
    places = [place for place in places if place[1:2] != ("tally",) or place[2] < 3]
    assert len(places) > 20
    kept = [place for place in places if not refused(edited({"claims": [claim]}, 0, place, change))]
    # What early stopping certified on its way is between what the counts give and what correct guesses would.
    free = {("counts", "runs_left"), *((("counts", "tally", i)) for i in range(3))}
    assert set(kept) <= (free if claim["method"] == "anytime" else set())


@pytest.mark.few(9)
@pytest.mark.parametrize("verdict", ["SURVIVED", "FALSIFIED", "UNDERPOWERED"])
@pytest.mark.parametrize("number", range(len(TASKS)), ids=TASKS)
def test_another_verdict_is_refused(record, number, verdict):
    name = record["claims"][number]["name"]
    (dirty,) = edited({"claims": [record["claims"][number]]}, 0, ("verdict",), lambda _: verdict)["claims"]
    message = refused({"claims": [dirty]})
    if record["claims"][number]["verdict"] == verdict:
        assert message == ""
    else:
        assert message.startswith(f"'record.json' contradicts itself: claims[0].verdict of {name} is {verdict}")


@pytest.mark.parametrize("number", [3, 4])
def test_early_stopping_cannot_have_certified_more_than_correct_guesses_do(record, number):
    """Neither may the lower bound and the verdict be raised together: an early end is just above the claim."""
    claim = record["claims"][number]
    for bound in (50.0, 7.9):
        claim |= {"epsilon_lower": bound, "lower": bound, "verdict": "FALSIFIED", "p_value": 1e-9}
        assert f"claims[0].epsilon_lower of {claim['name']} is {bound:g}, and" in refused({"claims": [claim]})


def test_holm_falsifies_only_what_is_below_its_level(record):
    for claim in record["claims"][:3]:
        assert ".holm" in refused({"claims": [claim | {"holm": {"p_value": claim["p_value"], "level": 0.005}}]})
    holm = {"p_value": record["claims"][0]["p_value"], "level": 0.9}
    record["claims"][0] |= {"verdict": "FALSIFIED", "holm": holm}
    record["headline"]["claims"] += 1
    assert "ledger_of_tests.tests[0].rejected" in refused(record)


def emptied(record):
    record["claims"] = []


def one_less(record):
    del record["claims"][0]


def tests_emptied(record):
    record["ledger_of_tests"]["tests"] = []


def better(record):
    record["headline"]["claims"] = 0


def rejected(record):
    record["ledger_of_tests"]["tests"][0]["rejected"] = True


def easier(record):
    record["ledger_of_tests"]["tests"][1]["level"] = 0.5


@pytest.mark.few(3)
@pytest.mark.parametrize("edit", [emptied, one_less, tests_emptied, better, rejected, easier])
def test_what_is_said_of_all_claims_follows_from_them(record, edit):
    edit(record)
    assert "contradicts itself: " in refused(record)


def test_report_and_accept_refuse_in_one_line(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    commands = [("report", "record.json", f"--{form}", f"x.{form}") for form in ("html", "markdown", "junit", "sarif")]
    commands.append(("accept", "record.json"))
    commands.append(("run", "--baseline", "record.json"))
    Path("record.json").write_text(to_text(edited(record, 1, ("epsilon_lower",), lambda bound: bound + 1)))
    for words in commands:
        done = overclaim(*words)
        assert (done.exit_code, done.stdout, error_lines(done.stderr)) == (2, "", 1)
        assert "claims[1].epsilon_lower of mechanisms/laplace-half-scale is" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    Path("record.json").write_text(to_text(record))
    for words in commands[1:5]:
        done = overclaim(*words)
        assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize("words", [("report", "old.json", "--html", "x.html"), ("accept", "old.json")])
def test_a_record_of_version_0_1_0_is_refused(record, tmp_path, monkeypatch, words):
    """Its joint bounds were not proved, and its early audits bet on guesses alone."""
    monkeypatch.chdir(tmp_path)
    Path("old.json").write_text(to_text(record | {"overclaim": "0.1.0"}))
    done = overclaim(*words)
    assert (done.exit_code, error_lines(done.stderr)) == (2, 1)
    assert "is of version 0.1.0, and this version reads records of 0.2.0 and later" in done.stderr
    assert "audit it again" in done.stderr


def test_there_is_no_baseline_of_no_claims(record, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    empty = run_record([], seed=0, alpha=0.05, command="overclaim run")
    Path("record.json").write_text(to_text(empty))
    for words in (("accept", "record.json"), ("run", "--baseline", "record.json")):
        done = overclaim(*words)
        assert (done.exit_code, error_lines(done.stderr)) == (2, 1)
        assert "'record.json' cannot be compared: it has no claim" in done.stderr
    assert overclaim("report", "record.json", "--markdown", "x.md").exit_code == 0


@pytest.mark.few(12)
@pytest.mark.parametrize(
    "event",
    [
        None,
        {},
        {"lower": 1.0, "upper": 0.0},
        {"function": {}},
        {"function": {"edges": 3}},
        {"lower": 2.0, "share": 0.9},
    ],
)
@pytest.mark.parametrize("number", range(len(TASKS)), ids=TASKS)
def test_no_event_is_too_broken_to_be_read(record, number, event):
    claim = record["claims"][number]
    message = refused(edited({"claims": [claim]}, 0, ("event",), lambda _: event))
    assert (message == "") or f"of {claim['name']}" in message
