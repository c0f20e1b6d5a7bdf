"""The first screen of a report: six questions, answered in whole sentences for whoever reads no further."""

import copy
import html
import re

import pytest

from overclaim.reports.formats.first_screen import _error_rate, relation_text
from overclaim.reports.formats.html import render, view
from overclaim.reports.formats.run_lines import _ending

HASH = "8c1e" * 16
SITE = {"kind": "missing", "place": "noisy.py:2", "caught": True}
CAUSE = {"kind": "calls", "text": "too little noise", "calls": 1, "call": 1, "differs": 1.0, "calibrated_for": 0.5}
BOUNDED = {
    "blind_spot": {"factor": 1.5, "tried": 3.0, "bounds": [[1.5, 1.2]], "sites": [SITE], "kind": "nearer"},
    **{"epsilon_upper": 1.0, "epsilon_upper_pair": 1.0, "upper_scope": "pair", "upper_how": "maximised"},
    **{"upper_rests_on": ["real arithmetic"], "untraced": None, "attack": "the output", "method": "guess"},
    "pair": {"left": ["ann", "bob"], "right": ["ann"]},
}


def claim(name, verdict, lower, **more):
    usual = {"name": name, "verdict": verdict, "claimed": {"epsilon": 1.0, "delta": 0.0}, "epsilon_lower": lower}
    reason = {"reason": "too few runs"} if verdict == "UNDERPOWERED" else {}
    facts = {"mechanism": True, "confidence": 0.998, "runs": 20_000, "replay": f"overclaim check {name}"}
    return {**usual, **reason, **facts, **more}


RECORD = {
    "alpha": 0.01,
    "command": "overclaim run plan.toml",
    "overclaim": "0.2.0",
    "protects": "one visitor",
    "audited": {
        "commit": "3f1c2ab" * 5,
        "clean": True,
        "files": {"noisy.py": HASH},
        "versions": {"overclaim": "0.2.0"},
    },
    "ledger_of_tests": {"method": "Holm", "planned": 5, "family_wise_error": 0.01},
    "claims": [
        claim("noisy.py:count", "FALSIFIED", 1.83, claimed_in="plan.toml:2", cause=CAUSE),
        claim("noisy.py:good", "SURVIVED", 0.92, **BOUNDED),
        claim("my.py:MyLearner", "SURVIVED", 0.0),
        claim("my.py:Tally", "UNDERPOWERED", 0.1),
    ],
    "errors": [
        {"name": "my.py:Crash", "kind": "crashed", "message": "my.py:Crash raised ValueError: no", "where": "my.py:16"}
    ],
}


def screen(**more):
    return view({**copy.deepcopy(RECORD), **more})["first"]


def test_the_summary_counts_and_names_the_false_claim_and_the_chance_of_an_error():
    assert screen()["sentences"] == [
        "5 claims: 1 falsified, 2 survived, 1 underpowered, 1 crashed; 1 verdict was not expected.",
        "The falsified claim: count in noisy.py claims epsilon 1; epsilon is at least 1.83 (99.8% confidence). "
        "2 times the noise is needed.",
        "Survived is not proved: with these inputs and attacks, no violation was certified.",
        "The chance that this report falsifies any true claim is at most 1%.",
    ]


@pytest.mark.parametrize(
    ("ledger", "said"),
    [
        ({"method": "each for itself"}, "falsifies any true claim is at most 0.8%."),
        (None, "falsifies any true claim is at most 0.8%."),
        ({"method": "Holm", "family_wise_error": 0.05}, "falsifies any true claim is at most 5%."),
    ],
)
def test_the_chance_is_that_of_all_claims_together(ledger, said):
    assert screen(ledger_of_tests=ledger)["sentences"][-1].endswith(said)


def test_the_chance_is_of_privacy_claims_where_regret_is_audited_too():
    holm = {"method": "Holm", "family_wise_error": 0.01}
    row = {"verdict": "HOLDS HERE", "learner": "a", "source": "b"}
    said = "falsifies any true privacy claim is at most 1%."
    assert _error_rate({**RECORD, "regret": [row], "ledger_of_tests": holm}, 5).endswith(said)
    assert "falsifies any true claim" in _error_rate({**RECORD, "regret": [], "ledger_of_tests": holm}, 5)
    assert "at most 1% that this run falsifies any true privacy claim" in "".join(
        _ending({**RECORD, "regret": [row], "ledger_of_tests": holm}, "")
    )


@pytest.mark.parametrize(("confidence", "differs"), [(0.99, True), (0.999, False)])
def test_a_page_with_two_error_rates_says_why_they_differ(confidence, differs):
    claims = [{**row, "confidence": confidence} for row in RECORD["claims"]]
    page = render({**copy.deepcopy(RECORD), "claims": claims})
    why = "every bound counts here, and in the 1% above falsifications alone"
    assert page.count(why) == (2 if differs else 0)


@pytest.mark.parametrize(
    ("name", "right", "text"),
    [
        ("mechanisms/laplace", [0], "one number changes by at most 1"),
        ("mechanisms/laplace", [7], "the two inputs that are given"),
        ("noisy.py:count", [0], "the two inputs that are given"),
    ],
)
def test_a_relation_is_in_words_where_the_pair_is_ours(name, right, text):
    claim = {"name": name, "scores": None, "mechanism": True, "pair": {"left": [1], "right": right}}
    assert relation_text(claim) == text


def test_each_question_has_its_answer():
    first = screen()
    assert first["audited"]["commit"] == "commit 3f1c2ab3f1c2, no local changes"
    assert first["audited"]["files"] == [("noisy.py", HASH[:12], HASH)]
    assert first["protects"] == "one visitor: the two inputs that are given"
    assert first["since"] == ["no earlier audit was given (--baseline)"]
    sure = "(99.8% confidence)"
    assert [(row["name"], row["claimed"], row["verdict"], row["finding"], row["power"]) for row in first["rows"]] == [
        ("count in noisy.py", "epsilon 1", "FALSIFIED", f"epsilon is at least 1.83 {sure}", "-"),
        ("good in noisy.py", "epsilon 1", "SURVIVED", f"epsilon is at least 0.92 {sure}", "noise / 1.5"),
        ("MyLearner in my.py", "epsilon 1", "SURVIVED", "no difference was seen (nothing certified)", "not measured"),
        ("Tally in my.py", "epsilon 1", "UNDERPOWERED", "20,000 runs are too few to test it", "-"),
        ("Crash in my.py", "-", "crashed", "my.py:Crash raised ValueError: no (my.py:16)", "-"),
    ]
    assert all(row["relation"] == "the two inputs that are given" for row in first["rows"][:4])
    assert all(row["assumes"] for row in first["rows"][:4])
    assert "real arithmetic" in first["rows"][1]["assumes"]  # it is bounded from above, on assumptions of its own
    assert first["rows"][0]["source"] == "plan.toml:2"
    assert first["limits"][:2] == ["1 claim: too few runs", "the power of 1 audit"]
    assert len(first["limits"]) <= 5


def test_what_changed_since_the_last_audit_is_told():
    finding = {"kind": "worse", "name": "noisy.py:count", "message": "epsilon is at least 1.83, was 1.2"}
    worse = screen(baseline={"findings": [finding]})
    assert worse["since"] == ["worse: noisy.py:count: epsilon is at least 1.83, was 1.2"]
    assert screen(baseline={"findings": []})["since"] == ["nothing became worse, and no claim was changed or dropped"]


def test_of_many_claims_the_false_ones_are_shown_and_all_others_are_a_link_away():
    many = [claim(f"own.py:f{i}", "SURVIVED", 0.5) for i in range(40)]
    first = screen(claims=[*many, RECORD["claims"][0]])
    assert [row["name"] for row in first["rows"]] == ["count in noisy.py", "Crash in my.py"]
    assert len(first["folded"]) == 40
    page = render({**copy.deepcopy(RECORD), "claims": [*many, RECORD["claims"][0]]})
    assert "<summary>40 more claims</summary>" in page
    assert all(f'id="c{i}"' in page for i in range(1, 42))  # anchors of claims that are folded stay


def test_an_old_record_has_a_first_screen_too():
    old = {"alpha": 0.05, "claims": [claim("a/b", "SURVIVED", 0.3)]}
    first = view(old)["first"]
    assert first["sentences"][0] == "1 claim: survived."
    assert (first["audited"]["commit"], first["audited"]["files"]) == ("no commit is known", [])


def test_the_card_of_a_survivor_shows_inputs_attack_trace_and_what_was_planted_and_caught():
    survivor = claim("noisy.py:good", "SURVIVED", 0.92, **BOUNDED)
    page = render({**copy.deepcopy(RECORD), "claims": [survivor], "errors": []})
    card = html.unescape(re.sub("<[^>]+>", "", page.partition('<article id="c1">')[2].partition("</article>")[0]))
    for text in (
        '["ann", "bob"]',
        "Attack. the output; guesses, by thresholds that were fixed before",
        "Trace. interval: epsilon in [0.9200, 1.0000] on this pair.",
        "Power. caught on these inputs: all noise / 1.5, a missing draw at noisy.py:2.",
    ):
        assert text in card
