"""What a comparison with a baseline found, in every format: of which claim, how grave, and told from its siblings."""

import json
from xml.etree import ElementTree

import pytest

from overclaim.reports.baseline import compare
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import MAX_ROWS
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.run_lines import run_lines, setting
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.reading import FAILING

KINDS = FAILING


def question(epsilon, **more):
    asked = {name: more[name] for name in ("surface", "measure", "pair") if name in more}
    return {"epsilon": epsilon, "runs": more.get("budget", 100), **asked}


def lines(one):
    return [f"{f['kind']}: {f.get('label') or f['name']}: {f['message']}" for f in one["baseline"]["findings"]]


def claim(epsilon=1.0, **more):
    return {
        "name": "mine.py:count", "claimed": {"epsilon": epsilon, "delta": 0.0}, "verdict": "SURVIVED",
        "losses": "unit", "surface": "actions", "neighbours": "replace", "rounds": 2, "arms": 2, "epsilon_lower": 0.5,
        "runs": 100, "budget": 100, "confidence": 0.99, "detectable_epsilon": epsilon + 0.1, "method": "guess",
        "seconds": 1.0, "replay": f"overclaim check mine.py:count --epsilon {epsilon}",
        "where": {"file": "mine.py", "line": 3}, "question": question(epsilon, **more), **more,
    }  # fmt: skip


def record(claims=(), findings=(), errors=()):
    return {
        "schema": 1, "claims": list(claims), "errors": list(errors), "baseline": {"findings": list(findings)},
        "created": "2026-01-01T00:00:00+00:00", "overclaim": "0.2.0", "seed": 0, "alpha": 0.01, "command": "overclaim",
    }  # fmt: skip


def found(*kinds, name="mine.py:count", message="what there is to say"):
    return [{"kind": kind, "name": name, "message": message} for kind in kinds]


def results(one):
    return json.loads(sarif(one))["runs"][0]["results"]


def prints(one):
    return [result["partialFingerprints"]["claim/v1"] for result in results(one)]


def compared(new, old):
    """A record against a baseline, whose events are not counted again."""
    told = compare(new, {"claims": old})
    for one in new:
        one.pop("baseline", None)
    return record(new, told["findings"])


def test_in_sarif_only_what_fails_the_run_is_an_error():
    levels = {r["message"]["text"].split(":")[0]: r["level"] for r in results(record([claim()], found(*KINDS)))}
    assert levels == dict.fromkeys(KINDS, "error")


def test_the_summary_of_a_pull_request_says_what_failed_against_the_baseline():
    text = markdown(record([claim()], found(*KINDS, message="<b>*x*</b> | @all")))
    for kind in KINDS:
        assert f"- **{kind}**: mine.py:count: &lt;b&gt;\\*x\\*&lt;/b&gt; \\| @<!-- -->all" in text
    many = markdown(record([claim()], [*found("new") * 2 * MAX_ROWS, *found("missing")]))
    assert many.count("- **new**") == MAX_ROWS
    assert f"- and {MAX_ROWS + 1} more" in many


def test_two_claims_on_one_target_have_two_fingerprints_and_two_names():
    one = compared([], [claim(1.0), claim(2.0)])
    assert len(set(prints(one))) == 2
    for text in (run_lines(one), render(one), markdown(one), junit(one), sarif(one)):
        assert "mine.py:count epsilon 1" in text.replace("\\", "")
        assert "mine.py:count epsilon 2" in text.replace("\\", "")
    lone = compared([], [claim(1.0)])
    assert lines(lone) == ["missing: mine.py:count: in the baseline, but not in this record"]
    assert prints(lone)[0] == prints(one)[0]


def test_worlds_that_were_given_tell_claims_apart():
    both = [claim(pair_given=True, mechanism=True, pair={"left": left, "right": 0}) for left in (1, 2)]
    left = [line.partition(": in the")[0] for line in lines(compared([], both))]
    assert left == [f"missing: mine.py:count epsilon 1 left={number}" for number in (1, 2)]


def test_claims_that_differ_in_their_audit_alone_are_told_apart_too():
    both = [claim(budget=many, replay=f"overclaim check mine.py:count --runs {many}") for many in (100, 200)]
    one = compared([], both)
    assert [line.split(":")[2] for line in lines(one)] == [
        f"count epsilon 1 (unit, actions, replace) runs={many}" for many in (100, 200)
    ]
    assert len(set(prints(one))) == 2


def test_a_fingerprint_does_not_change_with_the_budget_of_the_audit():
    more = {"runs": 200, "budget": 200, "seed": 5, "replay": "overclaim check mine.py:count --runs 200"}
    first, second = (compared([one], [claim(2.0, surface="release")]) for one in (claim(), claim(**more)))
    assert len(prints(first)) == 1
    assert prints(first) == prints(second)


@pytest.mark.parametrize("more", [{}, {"claim": "same"}])
def test_no_two_results_share_a_fingerprint(more):
    """Also of records that say no claim, two findings of one kind on one claim, errors and bounds on regret."""
    findings = [one | more for one in found("changed", "changed", "worse")]
    errors = [{"name": "mine.py:count", "kind": "crashed", "message": "x", "replay": ""}] * 2
    one = record([claim()], findings, errors)
    one["regret"] = [{"name": "mine.py:count", "verdict": "VIOLATED", "mean_regret": 4.0, "bound": 2.0}] * 2
    assert len(set(prints(one))) == len(results(one)) == 7


def test_what_was_not_audited_is_placed_in_its_file_whatever_its_name():
    name = "a\u202eb\x01.py:count"
    errors = [{"name": name, "kind": "crashed", "message": "x", "replay": ""}]
    (result,) = results(record(errors=errors))
    place = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert place["uri"] == "a%E2%80%AEb%01.py"


def test_numbers_that_differ_are_shown_to_differ():
    worse, before = 1.0000001, 1.0
    assert lines(compared([claim(worse)], [claim(before)]))[-1].endswith("epsilon - 1.0 + 1.0000001")
    told = [{"measure": {"kind": "rdp", "order": order, "epsilon": 1.0}} for order in (1.0000001, 1234567.0)]
    for one, order in zip(told, ("1.0000001", "1234567.0"), strict=True):
        text = setting(claim(**one, mechanism=True))
        assert text == f"2 inputs, Rényi order {order}"
        assert f"of order {order} |" in markdown(record([claim(**one, mechanism=True)]))


def test_every_result_has_a_place_or_github_refuses_them_all():
    """A class without methods has no line, a claim that is missing no record, a module no file."""
    names = ("gone.py:count", "package.module:Count", "mine.py:count")
    findings = [one for name in names for one in found("missing", name=name)]
    errors = [{"name": "package.other:Count", "kind": "crashed", "message": "x", "replay": ""}]
    one = record([claim(where=None, verdict="FALSIFIED")], findings, errors)
    one["regret"] = [{"name": "a/b", "verdict": "VIOLATED", "mean_regret": 4.0, "bound": 2.0}]
    for command, plan in (
        ("overclaim run -- 'my plan.toml'", "my%20plan.toml"),
        ("overclaim run 'x", "overclaim.toml"),
        (None, "overclaim.toml"),
    ):
        places = [r["locations"][0]["physicalLocation"] for r in results(one | {"command": command})]
        assert [place["artifactLocation"]["uri"] for place in places] == [
            "mine.py", plan, "gone.py", plan, "mine.py", plan,
        ]  # fmt: skip
        assert {place["region"]["startLine"] for place in places} == {1}


def test_a_bound_in_another_measure_is_no_baseline_and_the_digits_of_one_go_down():
    told = {"measure": {"kind": "gdp", "mu": 1.0}, "lower": 0.98765}
    one, old = claim(1.0, epsilon_lower=0.4), claim(1.0, epsilon_lower=2.0, **told)
    compare([one], {"claims": [old]})
    assert "0.9876" not in markdown(record([one]))
    page = render(record([one]))
    assert "since the baseline" not in page
    assert "baseline 0.98" not in page
    other = claim(1.0, epsilon_lower=0.4)
    compare([other], {"claims": [claim(1.0, epsilon_lower=0.87655)]})
    assert "| 0.8765 |" in markdown(record([one, other]))
    page = render(record([one, other]))
    assert page.count("<small>-0.477 since the baseline</small>") == 1
    assert "baseline 0.8765" in page


def test_junit_names_the_claim_of_a_finding():
    one = compared([claim(2.0)], [claim(1.0), claim(2.0)])
    names = [case.get("name") for case in ElementTree.fromstring(junit(one)).iter("testcase")]
    assert "mine.py:count epsilon 1 (unit, actions, replace) since the baseline" in names


@pytest.mark.parametrize("verdict", ["UNDECIDED", "VACUOUS"])
def test_a_bound_on_regret_that_tested_nothing_is_in_every_output(verdict):
    """A plan whose bound could not be decided, or not be exceeded, was green everywhere."""
    row = {"name": "mine.py:Parrot", "verdict": verdict, "mean_regret": 41.3, "bound": 90.0, "rounds": 64}
    row |= {"sequence": "gap", "bound_verdict": verdict, "source": "your bound"}
    one = record()
    one["regret"] = [row]
    says = f"regret of mine.py:Parrot: {verdict}: mean 41.3, bound 90, T = 64, gap losses"
    (result,) = json.loads(sarif(one))["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("regret-undecided", "warning")
    assert says in result["message"]["text"]
    error, gate = ElementTree.fromstring(junit(one)).findall("testsuite/testcase/error")
    assert gate.get("type") == "UNDECIDED"
    assert (error.get("type"), error.text) == (verdict, says)
    assert '1 bound on <a href="#regret">regret</a> was not decided, or nothing could exceed it' in render(one)
    assert f"- {says}" in markdown(one)
    one["regret"] = [row | {"source": "Theorem 1"}]  # which is held to no plan
    assert "<error" not in junit(one)
    assert "was not decided" not in render(one)
