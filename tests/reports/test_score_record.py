"""The record of scores: what its coins decide is computed again; every format shows it; the plugin reports it."""

import copy
import json

import numpy as np
import pytest

from overclaim import GDP
from overclaim.audit.plans.tasks import Task
from overclaim.reports.consistency import check_consistent
from overclaim.reports.formats import roc as roc_module
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.formats.sentences import evidence, shares
from overclaim.reports.record import claim_record, read_record, run_record, to_text
from overclaim.tests.support.command_line import short_lines

pytest_plugins = ["pytester"]


@pytest.fixture(autouse=True, scope="module")
def pictures():
    """Draw figures."""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    folder = tmp_path_factory.mktemp("scores")
    rng = np.random.default_rng(1)
    coins = rng.random(200) < 0.5
    scores = 2.5 * coins + rng.normal(size=200)
    for name, kept in (("in", scores[coins]), ("out", scores[~coins]), ("c", np.column_stack([scores, coins]))):
        np.save(folder / f"{name}.npy", kept)
    one_run = {"target": "c.npy", "scores": str(folder / "c.npy"), "design": "one-run"}
    samples = {"inserted": str(folder / "in.npy"), "held_out": str(folder / "out.npy"), "design": "independent"}
    tasks = [
        Task(epsilon=1.0, **one_run),
        Task(epsilon=4.0, delta=1e-5, **one_run),
        Task(epsilon=2.9, target="in and out", **samples),
        Task(measure=GDP(1.0), target="in and out", **samples),
    ]
    prepared = [task.prepare() for task in tasks]
    claims = [claim_record(one, one.audit(), with_evidence=True) for one in prepared]
    return run_record(claims, seed=0, alpha=0.01, command="overclaim run")


def refused(record):
    try:
        check_consistent(json.loads(to_text(record)), "record.json")
    except ValueError as error:
        return str(error)
    return ""


def test_what_was_audited_is_consistent_and_reads_back(record, tmp_path):
    assert [claim["verdict"] for claim in record["claims"]] == ["FALSIFIED", "UNDERPOWERED", "SURVIVED", "FALSIFIED"]
    assert refused(record) == ""
    (tmp_path / "record.json").write_text(to_text(record))
    assert read_record(tmp_path / "record.json")["claims"][0]["scores"]["canaries"] == 200


@pytest.mark.few(4)
@pytest.mark.parametrize(
    ("place", "value", "field"),
    [
        (("epsilon_lower",), lambda old: old * 1.01, "epsilon_lower"),
        (("p_value",), lambda old: old / 2, "p_value"),
        (("runs",), lambda old: old + 1, "runs"),
        (("verdict",), lambda _: "SURVIVED", "verdict"),
        (("scores", "inserted"), lambda old: old + 1, "counts.runs_left"),
        (("scores", "canaries"), lambda old: old + 1, "runs"),
        (("scores", "coins"), lambda old: "0f" + old[2:], "scores."),
        (("scores", "coins"), lambda old: old[:-2], "cannot be checked"),
        (("scores", "roc", "inserted"), lambda old: [*old[:-1], old[-1] + 1], "scores.roc.inserted"),
        (("scores", "roc", "held_out"), lambda old: old[:-1], "scores.roc"),
        (("scores", "roc", "held_out"), lambda old: [*old[:-1], old[-1] + 5, old[-1]], "scores.roc"),
        (("design",), lambda _: "independent", "epsilon_lower"),
        (("seed",), lambda _: 1, "seed"),
    ],
)
def test_an_edit_of_what_the_scores_decide_is_refused(record, place, value, field):
    dirty = {"claims": [copy.deepcopy(record["claims"][0])]}
    *path, last = place
    holder = dirty["claims"][0]
    for name in path:
        holder = holder[name]
    holder[last] = value(holder[last])
    if place == ("epsilon_lower",):
        dirty["claims"][0]["lower"] = holder[last]
    assert field in refused(dirty)


def test_scores_that_are_too_few_are_computed_again(record):
    dirty = {"claims": [{**copy.deepcopy(record["claims"][1]), "verdict": "SURVIVED", "reason": None}]}
    assert ".verdict of c.npy is SURVIVED, and UNDERPOWERED follows from the rest" in refused(dirty)


def test_a_record_without_coins_is_held_to_a_perfect_attack(record):
    claim = copy.deepcopy(record["claims"][0])
    claim["scores"]["coins"] = None
    assert refused({"claims": [claim]}) == ""
    claim["epsilon_lower"] = claim["lower"] = 9.0
    assert ".lower of c.npy is 9, and a perfect attack has 3.3" in refused({"claims": [claim]})


def test_every_format_shows_scores(record):
    page, text = render(record), markdown(record)
    assert page.count("<b>ROC curve of the scores</b>") == 4
    assert "200 canaries" in page
    assert "an independent fair coin for each canary" in page
    assert "Bounds from the scores of canaries hold if what their row assumes holds." in page
    assert "c.npy" in text
    assert 'name="c.npy epsilon 1 (canaries of one training)"' in junit(record)
    places = [result["locations"][0]["physicalLocation"] for result in json.loads(sarif(record))["runs"][0]["results"]]
    assert all(place["artifactLocation"]["uri"].endswith(".npy") for place in places)


def test_the_dot_of_a_curve_stands_at_the_rates_that_are_printed(record, monkeypatch):
    """It stood in a corner, with another threshold's rates beside it, where held-out canaries were found."""
    drawn = []
    real = roc_module.draw
    monkeypatch.setattr(
        roc_module, "draw", lambda paint, *axes: real(lambda axes: drawn.append(axes) or paint(axes), *axes)
    )
    held_out = record["claims"][0]  # by its own counts
    counts = {"left_upper": 60, "right_upper": 3, "left_lower": 0, "right_lower": 0}
    included = {**held_out, "counts": {**held_out["counts"], **counts}}
    for claim, name in ((held_out, "held-out"), (included, "included")):
        _, alternative, _ = roc_module.roc(claim)
        (dot,) = (line for line in drawn[-1].lines if line.get_marker() == "o")
        false, true = (float(line[0]) for line in dot.get_data())
        shown = [shares(rate)[0] for rate in (true, 0.0 if false <= 0.005 else false)]
        assert f'"{name}" with true-positive rate {shown[0]} at false-positive rate {shown[1]}' in alternative
        assert evidence(claim) == alternative
    curve = drawn[0].lines[-2].get_data()
    assert min(np.hypot(*(axis - at[0] for axis, at in zip(curve, drawn[0].lines[-1].get_data(), strict=True)))) < 1e-9


def test_no_claim_has_more_than_eight_lines(record):
    for claim in copy.deepcopy(record["claims"]):
        claim["note"] = "computed by an accountant " * 20
        claim["scores"] |= {"halves": True, "reversed": True}
        lines = claim_lines(claim).splitlines()
        assert len(short_lines("\n".join(lines))) <= 8
        labels = {line.split()[0] for line in lines}
        assert {"Evidence", "Canaries", "Assumes", "Reproduce"} <= labels
        assert claim["verdict"] == "FALSIFIED" or "Meaning" in labels
        assert max(map(len, lines[1:-1])) <= 120
        assert claim_lines(claim, quiet=True) == lines[0]


def test_the_plugin_audits_scores(pytester):
    pytester.makepyfile("""
        import numpy as np
        from overclaim import Claim
        RNG = np.random.default_rng(0)
        COINS = RNG.random(400) < 0.5
        SCORES = 3 * COINS + RNG.normal(size=400)

        def test_true(audit_scores):
            audit_scores(SCORES, included=COINS, design="one-run", claim=Claim(epsilon=4.0)).require_survived()

        def test_false(audit_scores):
            audit_scores(SCORES, included=COINS, design="one-run", claim=Claim(epsilon=1.0)).require_survived()

        def test_training(falsify):
            falsify(lambda included, rng: included, Claim(epsilon=1.0), canaries=100).require_falsified()
    """)
    result = pytester.runpytest_inprocess("-p", "no:cacheprovider", "--overclaim-seed", "3")
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines(
        [
            "FALSIFIED  scores: claimed epsilon 1; epsilon is at least * (99% confidence)",
            'Evidence    the attack finds "included" with true-positive rate *% at false-positive rate *',
            "Canaries    400 canaries in one training, * of them included",
            "Assumes     an independent fair coin for each canary (no fixed number in, no pairs); *",
        ]
    )
