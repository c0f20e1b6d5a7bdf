"""Traces on the command line, in records and in reports."""

import json
import re
from dataclasses import replace

import pytest
from click.testing import CliRunner

from overclaim.audit.plans.tasks import Task
from overclaim.audit.plans.tracing import _pairs
from overclaim.reports.command_line.cli import main
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.record_schema import fault
from overclaim.reports.upper_words import bounded_words, trace_lines


def run(*words, code=0):
    run = CliRunner().invoke(main, list(words))
    assert run.exit_code == code, run.output
    return run.output


def test_the_table_of_calls():
    name = "agarwal-singh/ftrl-experts"
    words = ["trace", name, "--losses", "symmetric", "--rounds", "4", "--surface", "release"]
    text = run(*words, code=3)  # a bound above the claim
    assert "node [1,2]" in text
    assert text.startswith(f"BOUNDED  {name}: epsilon is at most 2.00 for every pair of inputs; claimed 1\n")
    printed = json.loads(run(*words, "--json", code=3))
    assert (printed["trace_result"], printed["within_claim"]) == ("BOUNDED", False)
    assert [call["loss"]["epsilon"] for call in printed["calls"]] == pytest.approx([1, 2, 2])
    assert printed["calls"][0]["place"]["file"] == "mechanisms/tree.py"
    assert printed["cause"]["differs"] == 4
    assert printed["cause"]["calibrated_for"] == pytest.approx(2)


def test_a_bound_of_at_most_the_claim_exits_0():
    name = "agarwal-singh/ftrl-experts"
    printed = json.loads(run("trace", name, "--losses", "unit", "--json"))
    assert (printed["trace_result"], printed["within_claim"]) == ("BOUNDED", True)
    assert run("trace", name, "--losses", "unit").startswith(
        f"BOUNDED  {name}: epsilon is at most 1.00 for every pair"
    )


def test_a_learner_that_samples_its_actions_makes_a_trace_lose_track():
    text = run("trace", "asi-raman-talwar/exp3", code=3)
    first = "NOT BOUNDED  asi-raman-talwar/exp3: the action of round 2 does not come from noisy values alone\n"
    assert text.startswith(first)
    seen = "Seen with the same random numbers it is 0 for left and 1 for right, in 9 of 256 paired runs "
    assert seen in " ".join(text.split())
    assert re.search(r"\nLost track  at learners/bandits/exp3\.py:\d+\n", text)


RESULTS = """
import numpy as np
from overclaim.testing import laplace


def bypass(data, rng):
    return [sum(data) + rng.laplace(0, 1.0), sum(data)]


def bypass_of_testing(data, rng):
    return {"exact": sum(data), "noisy": laplace(sum(data), 1.0, rng)}


def no_scale(data, rng):
    return sum(data) + rng.laplace(0, 0.0)


def coin(data, rng):
    return sum(data) + rng.laplace(0, 1.0) if rng.random() < 0.5 else sum(data)


def shuffled(data, rng):
    rng.shuffle([1, 2, 3])
    return [laplace(sum(data), 1.0, rng), sum(data)]


def raw_bits(data, rng):
    rng.bit_generator.random_raw()
    return [laplace(sum(data), 1.0, rng), sum(data)]


def sum_of_noise(data, rng):
    return sum([rng.laplace(0, 1.0), rng.laplace(0, 1.0)]) + sum(data)


def sum_from_zero(data, rng):
    total = laplace(0.0, 1.0, rng)
    return total + sum(data)


def stored_noise(data, rng):
    noise = rng.laplace(0, 1.0, size=2)
    return [float(sum(data) + noise[i]) for i in range(2)]


def noise_of_another(data, rng):
    noise = rng.laplace(0, 1.0)
    hidden = 7.0 + noise
    return sum(data) + noise


def one_for_several(data, rng):
    return (np.array([0.0, sum(data)]) + rng.laplace(0, 1.0)).tolist()[1]


def changed_noise(data, rng):
    return sum(data) + abs(rng.laplace(0, 1.0))


def scale_of_data(data, rng):
    return rng.laplace(sum(data), 1.0 + sum(data))


def halved(data, rng):
    return sum(data) + rng.laplace(0, 2.0)


def costly(data, rng):
    return sum(data) + rng.laplace(0, 0.5)


def by_half(data, rng):
    noisy = float(sum(data) + rng.laplace(0, 2.0))
    return noisy / 2


def unwatched(data, rng):
    return sum(data) + rng.exponential() - rng.exponential()
"""


@pytest.mark.parametrize(
    ("name", "result", "code", "words"),
    [
        ("bypass", "BYPASS", 1, "output 2 depends on the inputs without noise (own.py:7)"),
        ("bypass_of_testing", "BYPASS", 1, "output depends on the inputs without noise (own.py:11)"),
        ("no_scale", "BYPASS", 1, "output 1 depends on the inputs without noise (own.py:14)"),
        ("coin", "NOT BOUNDED", 3, "Lost track at own.py:19"),
        ("shuffled", "NOT BOUNDED", 3, "Lost track at own.py:23"),
        ("raw_bits", "NOT BOUNDED", 3, "Lost track at own.py:28"),
        ("sum_of_noise", "BOUNDED", 0, "epsilon is at most 1.00 for these inputs; claimed 1"),
        ("sum_from_zero", "BOUNDED", 0, "epsilon is at most 1.00 for these inputs; claimed 1"),
        ("stored_noise", "BOUNDED", 3, "epsilon is at most 2.00 for these inputs; claimed 1"),
        ("by_half", "NOT BOUNDED", 3, "Lost track at own.py:73: what follows may depend on noise"),
        ("noise_of_another", "BOUNDED", 0, "epsilon is at most 1.00 for these inputs; claimed 1"),
        ("one_for_several", "BOUNDED", 0, "epsilon is at most 1.00 for these inputs; claimed 1"),
        ("changed_noise", "NOT BOUNDED", 3, "Lost track at own.py:57"),
        ("scale_of_data", "NOT BOUNDED", 3, "the noise at own.py:61 depends on the data: Laplace"),
        ("halved", "BOUNDED", 0, "epsilon is at most 0.50 for these inputs; claimed 1"),
        ("costly", "BOUNDED", 3, "epsilon is at most 2.00 for these inputs; claimed 1"),
        ("unwatched", "NOT TRACED", 3, "unwatched draws no noise in a way that is watched"),
    ],
)
def test_what_a_trace_of_a_mechanism_comes_to(name, result, code, words, tmp_path, monkeypatch):
    """Sums of noise and stored noise were reported as leaks, or not bounded."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(RESULTS, encoding="utf-8")
    target = ["trace", f"own.py:{name}", "--epsilon", "1", "--left", "[1]", "--right", "[0]"]
    text = run(*target, code=code)
    assert text.startswith(f"{result}  own.py:{name}: ")
    assert words in " ".join(text.split())
    printed = json.loads(run(*target, "--json", code=code))
    assert printed["trace_result"] == result
    assert bool(printed["leak"] and printed["leak"]["bypass"]) == (result == "BYPASS")


LEARNERS = """
class Stored:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        self.noise, self.t, self.arm = rng.laplace(0, 1.0, size=rounds), 0, 0
    def act(self):
        return self.arm
    def update(self, loss):
        self.arm, self.t = int(loss + self.noise[self.t] > 0.5), self.t + 1


class Raw:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng, self.noisy, self.worse = rng, 0.0, 0
    def act(self):
        return 1 - self.worse
    def update(self, losses):
        self.noisy += losses[0] + self.rng.laplace(0, 1.0)
        self.worse = int(losses[1] > losses[0])
"""


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("Stored", 3, "NOT BOUNDED own.py:Stored: the largest cost in 24 runs is epsilon 1.00"),
        ("Raw", 1, "BYPASS own.py:Raw: action of round 2 depends on the inputs without noise (own.py:"),
    ],
)
def test_what_a_trace_of_a_learner_comes_to(name, code, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(LEARNERS, encoding="utf-8")
    assert words in " ".join(run("trace", f"own.py:{name}", "--epsilon", "1", "--rounds", "3", code=code).split())


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
    assert "count draws no noise in a way that is watched" in run("trace", *words, code=3)
    text = run("check", *words, "--runs", "2000", "--trace")
    assert "NOT TRACED: count draws no noise in a way that is watched" in " ".join(text.split())
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
    nothing = "overclaim: error: Own has no method release, whose value is seen after each update\n"
    nothing += "  hint:  use --surface actions, or define the method\n"
    words = [f"{file}:Own", "--epsilon", "1", "--surface", surface]
    assert run("trace", *words, code=2) == nothing
    assert run("check", *words, code=2) == nothing
    unknown = "overclaim: error: the law of Own's output has no closed form here\n"
    assert run("exact", *words, "--rounds", "2", code=2) == unknown


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
    assert claim["upper_how"] == "maximised"
    record = {"claims": [claim], "schema": 1, "overclaim": "0", "alpha": 0.01, "seed": 0, "command": "", "errors": []}
    assert fault(record) is None
    (result,) = json.loads(sarif({**record, "created": "", "findings": []}))["runs"][0]["results"]
    assert result["locations"][0]["physicalLocation"]["region"]["startLine"] == 3
    assert "too little noise in call 1" in result["message"]["text"]
    told = run("check", *words, code=1)  # the answer names line and need, unasked
    assert f"Cause       {claim['cause']['text']}" in " ".join(told.split("\n")).replace("            ", "")
    assert "Next" not in told


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
    assert ("other runs may cost more" in text) == (changes.get("upper_how") == "sampled")
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
    assert trace_lines({**none, "untraced": None}) == ["NOT BOUNDED: no finite bound is known"]
    assert trace_lines({**none, "untraced": "it draws no noise"}) == ["NOT TRACED: it draws no noise"]


def test_a_mechanism_without_standard_inputs_asks_for_them():
    prepared = replace(Task(target="mechanisms/laplace").prepare(), pairs=())
    with pytest.raises(ValueError, match="hint: give them with `left` and `right`"):
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
    elsewhere = "its replays differ: it draws from elsewhere, or hangs on the rounding of the noisy outputs"
    words = [*own_words("little"), "--os-random"]
    assert elsewhere in " ".join(run("trace", *words, code=3).split())
    text = " ".join(run("check", *words, "--runs", "2000", "--trace", code=1).split())
    assert f"NOT TRACED: {elsewhere}" in text
    assert "epsilon is at most 0.25" in run("trace", *own_words("little"))


def test_a_trace_is_of_the_attributes_that_are_audited(own_words):
    words = [*own_words("fitted"), "--attributes", "fitted"]
    assert "epsilon is at most 1.00 for these inputs" in run("trace", *words)
    checked = " ".join(run("check", *words, "--runs", "2000", "--trace").split())
    assert "the trace bounds epsilon by 1.00 on this pair" in checked
    assert "--attributes (attributes=) says" in run("trace", *own_words("fitted"), code=4)


def test_a_mechanism_of_the_data_alone_is_told_how_it_is_traced(own_words):
    assert "--global-random" in run("trace", *own_words("alone"), code=2)
    assert "alone draws no noise in a way that is watched" in run("trace", *own_words("alone"), "--os-random", code=3)


DEAREST = """
import numpy as np


def total(data, rng):
    return sum(min(x, 3.0) for x in data) + rng.laplace(0, 2.0)


class Late:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.t, self.noise, self.total = 0, rng.laplace(0, 1.0, rounds), np.zeros(1)
    def act(self):
        return 0
    def update(self, losses):
        self.total = (2 if self.t == 2 else 1) * losses[0] + self.noise[self.t]
        self.t += 1
    def release(self):
        return self.total
"""


def test_a_trace_of_a_schema_says_the_dearest_pair(tmp_path, monkeypatch):
    """A trace took two inputs alone."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(DEAREST, encoding="utf-8")
    schema = '{"type": "array", "items": {"type": "number", "minimum": 0, "maximum": 5}, "minItems": 1, "maxItems": 3}'
    words = ["trace", "own.py:total", "--epsilon", "1", "--inputs", schema, "--neighbours", "replace"]
    printed = json.loads(run(*words, "--json", code=3))
    assert (printed["trace_result"], printed["epsilon_upper"], printed["tried"]) == ("BOUNDED", 1.5, 48)
    assert "the costliest of 48 pairs: left [" in " ".join(run(*words, code=3).split())


def test_a_trace_of_a_learner_tries_every_round(tmp_path, monkeypatch):
    """The round in which inputs differ was the first."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(DEAREST, encoding="utf-8")
    words = ["trace", "own.py:Late", "--epsilon", "1", "--rounds", "4", "--arms", "1", "--surface", "release"]
    printed = json.loads(run(*words, "--json", code=3))
    assert (printed["epsilon_upper"], printed["pair"]["round"]) == (2.0, 3)


@pytest.mark.parametrize(
    ("options", "unit", "level"),
    [
        (["--gdp", "1"], "mu is at most 0.50", 0.5),
        (["--zcdp", "1"], "rho is at most 0.13", 0.125),
        (["--rdp", "2:1"], "epsilon is at most 0.25", 0.25),
        (["--epsilon", "2", "--delta", "1e-5"], "epsilon is at most 2.00", None),
    ],
)
def test_a_trace_takes_a_claim_in_any_measure(options, unit, level, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "def f(data, rng):\n    return sum(data) + rng.normal(0, 2.0)\n", encoding="utf-8"
    )
    words = ["trace", "own.py:f", *options, "--left", "[1]", "--right", "[0]"]
    assert unit in run(*words)
    assert json.loads(run(*words, "--json"))["upper"] == (None if level is None else pytest.approx(level, rel=1e-9))
