"""Traces on the command line, in records and in reports."""

import json
from dataclasses import replace

import pytest
from click.testing import CliRunner

from overclaim.audit.plans.tasks import Task
from overclaim.audit.plans.tracing import _pairs
from overclaim.reports.command_line.cli import main
from overclaim.reports.formats.sarif import sarif
from overclaim.reports.record_schema import fault
from overclaim.reports.upper_words import bounded_words, trace_lines


def run(*words, code=0):
    run = CliRunner().invoke(main, list(words))
    assert run.exit_code == code, run.output
    return run.output


def test_the_table_of_calls():
    name = "agarwal-singh/ftrl-experts"
    words = ["trace", name, "--losses", "symmetric", "--rounds", "4", "--surface", "release"]
    text = run(*words)
    assert "node [1,2]" in text
    assert "at most 2.0000 on every pair" in text
    printed = json.loads(run(*words, "--json"))
    assert [call["loss"]["epsilon"] for call in printed["calls"]] == pytest.approx([1, 2, 2])
    assert printed["calls"][0]["place"]["file"] == "mechanisms/tree.py"
    assert printed["cause"]["differs"] == 4
    assert printed["cause"]["calibrated_for"] == pytest.approx(2)


def test_a_leak_exits_1_and_says_what_it_is():
    text = run("trace", "asi-raman-talwar/exp3", code=1)
    assert "leak: action of round 2 differs although everything noisy is the same" in text
    assert "the claim may still hold" in text


def test_a_noisy_call_that_differs_itself_is_not_said_to_be_none(tmp_path):
    (tmp_path / "own.py").write_text("def noisy(data, rng):\n    return rng.laplace(data, 1 + data)\n")
    text = run("trace", f"{tmp_path / 'own.py'}:noisy", "--epsilon", "1", "--left", "0", "--right", "1", code=1)
    assert "\nno noisy call before the leak\nleak: noisy call 1 differs" in text


@pytest.mark.parametrize(
    ("name", "surface", "why"),
    [
        ("asi-raman-talwar/exp3", "release", "Exp3 releases nothing noisy"),
        ("agarwal-singh/reduction-exp2", "publication", "BanditReduction publishes nothing"),
    ],
)
def test_what_a_learner_does_not_show_is_not_traced(name, surface, why):
    assert why in run("trace", name, "--surface", surface, code=2)


def test_what_is_not_watched_is_said_in_one_line(tmp_path):
    file = tmp_path / "own.py"
    file.write_text(
        "import math\n\n\ndef count(data, rng):\n    return data + math.log(rng.random() / rng.random())\n",
        encoding="utf-8",
    )
    words = [f"{file}:count", "--epsilon", "1", "--left", "0", "--right", "1"]
    assert "count draws no noise in a way that is watched" in run("trace", *words, code=2)
    text = run("check", *words, "--runs", "2000", "--trace")
    assert "not traced: count draws no noise in a way that is watched" in " ".join(text.split())
    assert text.startswith("SURVIVED")


@pytest.mark.parametrize("surface", ["release", "publication"])
def test_what_releases_nothing_is_named(tmp_path, surface):
    """It was an AttributeError of an object that no user knows, blamed on the learner."""
    methods = "    def act(self): return 0\n    def update(self, loss): pass\n"
    file = tmp_path / "own.py"
    file.write_text(
        f"class Own:\n    feedback = 'bandit'\n    def __init__(self, arms, rounds, rng): pass\n{methods}",
        encoding="utf-8",
    )
    nothing = "overclaim: Own releases nothing noisy: audit the surface 'actions'\n"
    words = [f"{file}:Own", "--epsilon", "1", "--surface", surface]
    assert run("trace", *words, code=2) == nothing
    assert run("check", *words, code=2) == nothing
    assert (
        run("exact", *words, "--rounds", "2", code=2) == "overclaim: the law of Own's output has no closed form here\n"
    )


def test_a_falsified_claim_has_its_cause_and_sarif_its_line(tmp_path, monkeypatch):
    file = tmp_path / "own.py"
    lines = ["def count(data, rng):", "    exact = 2 * data", "    return exact + rng.laplace(0, 1)", ""]
    file.write_text("\n".join(lines), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = ["own.py:count", "--epsilon", "1", "--left", "0", "--right", "1", "--runs", "4000"]
    claim = json.loads(run("check", *words, "--trace", "--json", code=1))
    assert claim["cause"]["place"] == {"file": "own.py", "line": 3}
    assert claim["cause"]["differs"] == 2
    assert claim["cause"]["calibrated_for"] == pytest.approx(1)
    assert claim["upper_how"] == "sampled"
    record = {"claims": [claim], "schema": 1, "overclaim": "0", "alpha": 0.01, "seed": 0, "command": "", "errors": []}
    assert fault(record) is None
    (result,) = json.loads(sarif({**record, "created": "", "findings": []}))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert "noisy call 1 of 1" in result["message"]["text"]
    assert "cause" not in json.loads(run("check", *words, "--json", code=1))


BOUNDED = {
    "verdict": "SURVIVED",
    "claimed": {"epsilon": 1.0, "delta": 0.0},
    "epsilon_lower": 0.9,
    "epsilon_upper": 1.0,
    "epsilon_upper_pair": 1.0,
    "upper_scope": "claim",
    "upper_how": "maximised",
    "upper_rests_on": ["real arithmetic"],
}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, ", bounded: at most 1 on every pair"),
        ({"upper_scope": "pair"}, ", bounded: at most 1 on this pair"),
        ({"epsilon_upper": 1.0001}, ""),
        ({"upper_how": "sampled"}, ""),
        ({"epsilon_upper": None}, ""),
        ({"verdict": "UNDERPOWERED"}, ""),
        ({"epsilon_upper_pair": 0.5}, ""),  # more was certified: something that the bound rests on does not hold
    ],
)
def test_what_is_called_bounded(changes, words):
    claim = {**BOUNDED, **changes}
    assert bounded_words(claim) == words
    text = " ".join(trace_lines(claim))
    assert ("bounds nothing" in text) == (changes.get("upper_how") == "sampled")
    assert ("below what is certified" in text) == ("epsilon_upper_pair" in changes)


@pytest.mark.parametrize(
    ("lower", "words"), [(0.4, "rho at most 0.5000 on this pair"), (0.6, "below what is certified")]
)
def test_a_bound_in_another_measure_says_what_it_rests_on(lower, words):
    claim = {**BOUNDED, "measure": {"kind": "zcdp", "rho": 1.0}, "upper": 0.5, "lower": lower}
    bound, rests = trace_lines(claim)
    assert words in bound
    assert rests == "the upper bound rests on: real arithmetic"
    assert bounded_words(claim) == ""


def test_that_no_bound_is_known_is_said_of_what_was_traced():
    """As of Gaussian noise at delta 0: the trace that was asked for said nothing."""
    none = {**BOUNDED, "epsilon_upper": None, "upper_how": None}
    assert trace_lines(none) == []
    assert trace_lines({**none, "untraced": None}) == ["traced: no finite bound is known"]
    assert trace_lines({**none, "untraced": "it draws no noise"}) == ["not traced: it draws no noise"]


def test_a_mechanism_without_standard_inputs_asks_for_them():
    prepared = replace(Task(target="mechanisms/laplace").prepare(), pairs=())
    with pytest.raises(ValueError, match="give left and right"):
        _pairs(prepared)


CALLED_OTHERWISE = """
import numpy as np
from overclaim.testing import laplace


class Model:
    def __init__(self, total):
        self.total_ = total


def little(data, rng=None):
    return data + rng.laplace(0, 4.0) if rng else data + np.random.default_rng().laplace(0, 0.4)


def fitted(data, rng):
    return Model(laplace(data, 1.0, rng))


def alone(data):
    return data
"""


@pytest.fixture
def own_words(tmp_path):
    (tmp_path / "own.py").write_text(CALLED_OTHERWISE, encoding="utf-8")
    return lambda name: [f"{tmp_path / 'own.py'}:{name}", "--epsilon", "1", "--left", "1.0", "--right", "0.0"]


def test_a_trace_is_of_what_is_audited_without_its_generator(own_words):
    """It was of `little(data, rng)`: at most .25, beside 2 that were certified of `little(data)`."""
    elsewhere = "with the same outputs and the same generator it does not do the same again: it draws from elsewhere"
    words = [*own_words("little"), "--os-random"]
    assert elsewhere in run("trace", *words, code=2)
    text = " ".join(run("check", *words, "--runs", "2000", "--trace", code=1).split())
    assert f"not traced: {elsewhere}" in text
    assert "at most 0.25" in run("trace", *own_words("little"))


def test_a_trace_is_of_the_attributes_that_are_audited(own_words):
    words = [*own_words("fitted"), "--attributes", "fitted"]
    assert "at most 1.0000 on the sampled paths" in run("trace", *words)
    assert "traced: at most 1.0000 on the sampled paths" in run("check", *words, "--runs", "2000", "--trace")
    assert "--attributes (attributes=) says" in run("trace", *own_words("fitted"), code=4)


def test_a_mechanism_of_the_data_alone_is_told_how_it_is_traced(own_words):
    assert "--os-random" in run("trace", *own_words("alone"), code=4)
    assert "alone draws no noise in a way that is watched" in run("trace", *own_words("alone"), "--os-random", code=2)
