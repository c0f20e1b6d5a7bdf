"""What got past the gate, one test each: a claim edited a little, scores that tell more, a plan that is not named."""

import copy
import json
from pathlib import Path
from unittest.mock import Mock

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.paths import check_folder
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.plans.tasks import Task
from overclaim.reports.baseline import compare
from overclaim.reports.command_line.comparing import Gate
from overclaim.reports.record import claim_record, run_record
from overclaim.reports.status import status_of
from overclaim.tests.support.command_line import overclaim, refused

NOISY = "def count(data, rng):\n    return len(data) + rng.laplace(scale=1.0)\n"


def audited(runs=2000, left=("a", "b"), **claimed):
    """Return the record of one audit, without the event that a run keeps."""
    task = Task(target="noisy.py:count", left=list(left), right=["a"], budget=Budget(runs=runs), **claimed)
    prepared = task.prepare()
    return claim_record(prepared, prepared.audit())


@pytest.fixture(scope="module")
def accepted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("accepted")
    (folder / "noisy.py").write_text(NOISY)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        yield audited(epsilon=1.0, delta=1e-5)


@pytest.mark.slow(reason="an audit for each")
@pytest.mark.parametrize(
    ("edited", "field"),
    [
        ({"epsilon": 0.999, "delta": 1e-5, "runs": 200}, "runs"),
        ({"gdp": 3.0}, "measure"),
        ({"epsilon": 1.0, "delta": 1e-5, "left": ("a", "b", "c")}, "given"),
        ({"epsilon": 1.0, "delta": 1e-5, "neighbours": "add-remove"}, "neighbours"),
        ({"epsilon": 1.0, "delta": 1e-5, "expected": "falsified"}, "expected"),
        ({"epsilon": 1.0, "delta": 1e-5, "untested": "allowed"}, "untested"),
    ],
)
def test_a_claim_that_was_edited_a_little_is_red_and_says_what_changed(accepted, edited, field):
    from overclaim.mechanisms.measures.gaussian_dp import GDP

    if "gdp" in edited:
        edited = {"measure": GDP(edited["gdp"])}
    record = run_record([audited(**edited)], seed=0, alpha=0.01, command="")
    record["baseline"] = compare(record["claims"], {"claims": [accepted]})
    assert status_of(record).name in ("CHANGED", "FALSE")
    (finding,) = record["baseline"]["findings"]
    assert (finding["kind"], field in finding["message"]) == ("changed", True)


def test_a_smaller_delta_and_more_runs_are_the_same_claim(accepted):
    """Delta 9.999e-6 was "Not compared", and passed."""
    stricter = copy.deepcopy(accepted)
    stricter["question"]["measure"]["delta"] = 9.999e-6
    stricter["question"]["runs"] *= 10
    assert compare([stricter], {"claims": [accepted]})["findings"] == []


def test_a_claim_that_was_added_is_red_and_changes_no_other(accepted):
    added = copy.deepcopy(accepted)
    added["question"]["target"] = added["name"] = "noisy.py:other"
    found = compare([copy.deepcopy(accepted), added], {"claims": [accepted]})
    assert [(f["kind"], f["name"]) for f in found["findings"]] == [("new", "noisy.py:other")]


def of_scores(shift, seed, path):
    rng = np.random.default_rng(seed)
    included = rng.random(5000) < 0.5
    rows = zip(rng.normal(shift * included), included.astype(int), strict=True)
    path.write_text("score,included\n" + "".join(f"{score},{coin}\n" for score, coin in rows))
    prepared = Task(target=path.name, scores=str(path), design="one-run", epsilon=8.0).prepare()
    return claim_record(prepared, prepared.audit())


def test_scores_that_tell_more_are_worse_and_others_of_the_same_law_are_not(tmp_path):
    """A shift of 2.5 for one of 1.0, of 5,000 canaries: scores were never compared."""
    old = of_scores(1.0, 0, tmp_path / "scores.csv")
    for shift, kinds in ((2.5, ["worse"]), (1.0, []), (0.5, [])):
        new = of_scores(shift, 1, tmp_path / "scores.csv")
        found = compare([new], {"claims": [old]})["findings"]
        assert [finding["kind"] for finding in found] == kinds
    few = of_scores(1.0, 1, tmp_path / "scores.csv")
    few["question"]["canaries"] = 4000
    assert [f["kind"] for f in compare([few], {"claims": [old]})["findings"]] == ["changed"]


def test_without_a_plan_nothing_is_audited_and_the_hints_say_what_to_do(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = overclaim("run")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "no plan is named, and there is no overclaim.toml here" in done.stderr
    assert "overclaim init" in done.stderr
    assert "--catalogue" in done.stderr
    refused(overclaim("run", "--seed", 1), "--seed is for --catalogue and --libraries")
    refused(overclaim("run", "--catalogue", "--libraries"), "--catalogue")
    Path("overclaim.toml").write_text("claims = 3\n")
    assert "this audits overclaim.toml, which lies here" in overclaim("run").stderr
    refused(overclaim("run", "overclaim.toml", "--catalogue"), "a plan has its own seed and claims")


PLAN = '[[claims]]\ntarget = "noisy.py:count"\nepsilon = 1\nleft = [1]\nright = [0]\n'


def gate(folder, *files):
    """Return what a plan is drawn by beside a baseline whose claims read some files."""
    base = {"schema": 1, "alpha": 0.01, "claims": [], "audited": {"files": dict.fromkeys(files, "")}}
    (folder / "base.json").write_text(json.dumps(base))
    return base


@pytest.mark.parametrize("edited", ["noisy.py", "helper.py", "data.json", None])
def test_draws_are_new_for_each_change_of_what_a_claim_read(tmp_path, monkeypatch, edited):
    """The same code draws the same: no re-run adds or clears evidence."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.py").write_text("import helper\n" + NOISY)
    (tmp_path / "helper.py").write_text("A = 1\n")
    (tmp_path / "data.json").write_text("{}")
    (tmp_path / "overclaim.toml").write_text(PLAN * 2)
    base = gate(tmp_path, "helper.py", "data.json")
    plan = read_plan(Path("overclaim.toml"))

    def seeds():
        return [task.budget.seed for task in Gate.of(Path("base.json"), base, plan).fresh(plan).tasks]

    first = seeds()
    assert len(set(first)) == 2
    if edited is not None:
        with open(edited, "a") as file:
            file.write("\n")
    assert (seeds() == first) == (edited is None)


NEAR = """
import helper
def near(data, rng):
    return data[:-1]
def is_near(left, right):
    return left[:-1] == right or right[:-1] == left
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A claim with a relation, a schema and a helper in files of their own, beside one that reads none of them."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.py").write_text("import helper\n" + NOISY)
    (tmp_path / "plain.py").write_text(NOISY)
    (tmp_path / "helper.py").write_text("A = 1\n")
    (tmp_path / "near.py").write_text(NEAR)
    (tmp_path / "s.json").write_text('{"type": "array", "items": {"const": 1}, "minItems": 1, "maxItems": 3}')
    claim = '[[claims]]\ntarget = "{}.py:count"\nepsilon = 1\nruns = 2000\n'
    searched = 'neighbours = "near.py:near"\ninputs = "s.json"\n'
    given = "left = [1]\nright = []\n"
    (tmp_path / "overclaim.toml").write_text(claim.format("noisy") + searched + claim.format("plain") + given)
    return tmp_path


@pytest.mark.slow(reason="a run and a resumed one")
@pytest.mark.parametrize("edited", ["near.py", "s.json", "helper.py", "plain.py", None])
def test_a_resumed_run_audits_again_what_read_an_edited_file(project, monkeypatch, edited):
    words = ["run", "--jobs", 2, "--no-blind-spots"]
    with monkeypatch.context() as patched:
        patched.setattr("overclaim.reports.formats.html.render", Mock(side_effect=KeyboardInterrupt))
        assert overclaim(*words).exit_code == 130
    if edited:
        with open(edited, "a") as file:
            file.write("\n")
    done = overclaim(*words, "--resume")
    again = [line for line in done.stderr.splitlines() if line.startswith("audited again")]
    target = "plain.py" if edited == "plain.py" else "noisy.py"
    assert again == ([f"audited again: {target}:count: {edited} has changed"] if edited else [])
    assert f"kept {1 if edited else 2} finished claim" in done.stderr
    files = json.loads(Path("out/record.json").read_text())["audited"]["files"]
    assert files.keys() == {"noisy.py", "plain.py", "helper.py", "near.py", "s.json"}


@pytest.mark.slow(reason="an audit")
def test_a_file_that_is_edited_while_it_is_audited_is_an_error(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scale.txt").write_text("1")
    Path("noisy.py").write_text(
        "import os\ndef count(data, rng):\n    scale = float(open('scale.txt').read())\n"
        "    os.system('echo 1 >> scale.txt') if os.path.getsize('scale.txt') == 1 else None\n"
        "    return len(data) + rng.laplace(scale=scale)\n"
    )
    Path("overclaim.toml").write_text(PLAN + "runs = 500\n")
    done = overclaim("run", "--jobs", 1, "--no-blind-spots")
    assert done.exit_code in (2, 4), done.output
    assert "'scale.txt' changed while it was audited" in done.output


@pytest.mark.parametrize("made", [True, False])
def test_git_does_not_see_a_folder_that_a_run_made(tmp_path, made):
    out = tmp_path / "out"
    if not made:
        out.mkdir()
    check_folder(out, "record.json", read={}, ignored=True)
    check_folder(out, "record.json", read={}, ignored=True)
    assert [path.read_text() for path in out.iterdir()] == (["*\n"] if made else [])


@pytest.mark.parametrize("value", [3, "x", [3], {"a": 1}])
def test_a_record_whose_tests_are_none_is_bad_input(tmp_path, accepted, value):
    """They ended with an internal error."""
    record = run_record([copy.deepcopy(accepted)], seed=0, alpha=0.01, command="")
    record["ledger_of_tests"] = {"method": "Holm", "planned": 1, "family_wise_error": 0.01, "tests": value}
    (tmp_path / "r.json").write_text(json.dumps(record))
    refused(overclaim("report", tmp_path / "r.json", "--html", tmp_path / "r.html"), "ledger_of_tests.tests")
