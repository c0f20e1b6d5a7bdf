"""What `make golden` compares records with: it notices every change that matters, and nothing of time."""

import json
import tomllib

import pytest

from overclaim.benchmarks.golden.golden import COMMANDS, PLAN, RECORD, slim, text_of
from overclaim.benchmarks.same_record import Rules, differences

NEAR = Rules(relative=1e-9)
CLAIM = {
    "name": "mechanisms/laplace",
    "claimed": {"epsilon": 1.0, "delta": 0.0},
    "verdict": "SURVIVED",
    "epsilon_lower": 0.75,
    "counts": {"runs": 900, "right": 640},
    "outputs_digest": "ab12",
    "platform_dependent": False,
    "replayable": True,
    "event_in_words": "the output > 1.25",
    "evidence": {"profile": {"lower": [0.1, None, 0.3, 0.4, 0.5, 0.6, 0.7]}},
    "seconds": 1.5,
}
OTHER = {**CLAIM, "name": "mechanisms/svt1", "verdict": "FALSIFIED"}
RECORD_OF_TWO = {
    "schema": 1,
    "created": "2026-01-01",
    "command": "overclaim run",
    "versions": {"numpy": "2"},
    "processor": {"machine": "x86_64"},
    "claims": [CLAIM, OTHER],
}


def changed(*place, to):
    """Return the record with another value at a place of its first claim."""
    record = json.loads(json.dumps(RECORD_OF_TWO))
    inner = record["claims"][0]
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = to
    return record


def differing(new, rules=NEAR, old=RECORD_OF_TWO):
    return [line.partition(": ")[0].rpartition(".")[2] for line in differences(old, new, rules)]


@pytest.mark.parametrize(
    ("place", "to"),
    [
        (("counts", "right"), 641),
        (("epsilon_lower",), 0.75 + 1e-6),
        (("verdict",), "FALSIFIED"),
        (("event_in_words",), "the output > 1.250002"),
        (("outputs_digest",), "ab13"),
        (("replayable",), None),
        (("counts", "right"), 640.5),
    ],
)
def test_a_change_is_noticed(place, to):
    assert differing(changed(*place, to=to)) == [place[-1]]
    assert differing(slim(changed(*place, to=to)), old=slim(RECORD_OF_TWO)) == [place[-1]]


def test_a_change_inside_a_long_list_is_noticed_where_its_sum_is_kept():
    swapped = [0.1, None, 0.4, 0.3, 0.5, 0.6, 0.7]
    new, old = (slim(one) for one in (changed("evidence", "profile", "lower", to=swapped), RECORD_OF_TWO))
    assert differing(new, old=old) == ["weighted"]


def test_a_claim_that_is_missing_or_new_is_noticed_and_the_others_are_compared():
    fewer = {**RECORD_OF_TWO, "claims": [{**OTHER, "epsilon_lower": 0.5}]}
    missing, bound = differences(RECORD_OF_TWO, fewer, NEAR)
    assert missing == "claims[0] mechanisms/laplace: missing"
    assert bound == "claims[1] mechanisms/svt1.epsilon_lower: 0.75 -> 0.5"
    assert differences(fewer, RECORD_OF_TWO, NEAR)[0] == "claims[0] mechanisms/laplace: new"


def test_a_field_that_is_missing_or_new_is_noticed():
    assert differing({**RECORD_OF_TWO, "claims": [{k: v for k, v in CLAIM.items() if k != "verdict"}, OTHER]}) == [
        "verdict"
    ]
    assert differing(changed("lower", to=1.0)) == ["lower"]


def test_time_versions_and_rounding_are_not_compared():
    later = changed("seconds", to=9.0) | {"created": "2027", "command": "overclaim run --jobs 2", "versions": {}}
    assert differences(RECORD_OF_TWO, later) == []
    rounded = changed("epsilon_lower", to=0.75 * (1 + 1e-12))
    assert differing(rounded) == []
    assert differing(rounded, Rules()) == ["epsilon_lower"]
    assert differing(changed("verdict", to="FALSIFIED"), Rules(but=frozenset({"verdict"}))) == []


def test_of_what_no_run_repeats_the_verdict_is_compared():
    def unseeded(**values):
        return {**RECORD_OF_TWO, "claims": [{**CLAIM, "replayable": False, **values}, OTHER]}

    assert differing(unseeded(epsilon_lower=0.5, counts={}), old=unseeded()) == []
    assert differing(unseeded(verdict="FALSIFIED"), old=unseeded()) == ["verdict"]


def test_low_order_bits_are_compared_on_one_processor_alone():
    def bits(processor, **values):
        claims = [{**CLAIM, "platform_dependent": True, **values}, {**OTHER, "outputs_digest": processor}]
        return {**RECORD_OF_TWO, "processor": {"machine": processor}, "claims": claims}

    assert differing(bits("x86_64", epsilon_lower=0.5), old=bits("x86_64")) == ["epsilon_lower"]
    assert differing(bits("arm64", epsilon_lower=0.5), old=bits("x86_64")) == []
    assert differing(bits("arm64", verdict="FALSIFIED"), old=bits("x86_64")) == ["verdict"]


def test_the_committed_record_is_of_the_plan_that_is_here():
    record = json.loads(RECORD.read_text(encoding="utf-8"))
    asked = tomllib.loads(PLAN.read_text(encoding="utf-8"))["claims"]
    assert [claim["name"] for claim in record["claims"]] == [claim["target"] for claim in asked]
    commands = [line for line in COMMANDS.read_text(encoding="utf-8").splitlines() if line.startswith("overclaim ")]
    assert [one["name"] for one in record["commands"]] == commands
    assert record["errors"] == []
    assert json.loads(text_of(record)) == record
