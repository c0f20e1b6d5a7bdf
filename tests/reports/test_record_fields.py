"""The fields of a record: declared once, checked by msgspec, described by a JSON Schema."""

import copy
import json
import random
from pathlib import Path
from typing import get_args

import msgspec
import pytest
from jsonschema import Draft202012Validator

from overclaim.audit.record_types import ClaimRecord, RunRecord, Standing, defaults_of
from overclaim.learners.entry import STANDINGS
from overclaim.reports.record_schema import fault, json_schema
from overclaim.tests.support.command_line import error_lines, overclaim

DATA = Path(__file__).parents[1] / "data"
#: What stands wrongly in a record: other types, other ranges, nothing.
WRONG = (None, True, False, 0, 1, -1, 2, 0.5, 1.5, 1e308, 10**30, "", "x", [], {})
SOUND = {"name": "x", "claimed": {"epsilon": 1.0}, "verdict": "SURVIVED"}


def places(value, place=()):
    """Yield the place of every value in a value, of a list those of its first elements."""
    items = value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*place, key)
        yield from places(inner, (*place, key))


def with_value(record, place, value):
    """Return a copy with another value at a place."""
    changed = inner = copy.deepcopy(record)
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return changed


def test_every_default_fits_its_field():
    defaults = defaults_of(ClaimRecord)
    assert defaults
    msgspec.convert(SOUND | defaults, ClaimRecord)
    assert not defaults.keys() & SOUND.keys()  # what no record lacks


def test_standings_are_the_catalogues_and_that_of_libraries():
    assert get_args(Standing) == (*STANDINGS, "documented")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"p_value": 2}, "claims[1].p_value: expected at most 1, got 2"),
        ({"confidence": 0}, "claims[1].confidence: expected above 0, got 0"),
        ({"verdict": "GOOD"}, "claims[1].verdict: expected one of FALSIFIED, SURVIVED, UNDERPOWERED, got 'GOOD'"),
        ({"design": "two-run"}, "claims[1].design: expected one of independent, one-run, got 'two-run'"),
        ({"rounds": "x"}, "claims[1].rounds: expected a whole number or null, got 'x'"),
        ({"name": None}, "claims[1].name: expected text, got null"),
        (
            {"blind_spot": {"factor": 2, "bounds": [[1]]}},
            "claims[1].blind_spot.bounds[0]: expected of length at least 2",
        ),
        ({"counts": {"right": 1}}, "claims[1].counts: expected a field guesses"),
        ({"scores": {"canaries": 1}}, "claims[1].scores: expected a field inserted"),
        ({"pair": 3}, "claims[1].pair: expected a table or null, got 3"),
    ],
)
def test_an_error_names_the_place_what_was_expected_and_what_is_there(change, message):
    assert fault({"claims": [SOUND, SOUND | change]}) == message


def test_the_schema_accepts_and_refuses_what_is_read():
    validator = Draft202012Validator(json_schema())
    record = json.loads((DATA / "record-0.1.0.json").read_text())
    for place in list(places(record))[::25]:
        for value in WRONG:
            if value == 1e308:  # to a JSON Schema a whole number
                continue
            changed = with_value(record, place, value)
            try:
                msgspec.convert(changed, RunRecord)
            except msgspec.ValidationError:
                assert not validator.is_valid(changed), (place, value)
            else:
                assert validator.is_valid(changed), (place, value)


@pytest.fixture(scope="module")
def record():
    """A record of a mechanism, of a learner with regret, and of a claim in another measure."""
    return json.loads((DATA / "record.json").read_text())


@pytest.mark.few(12, rest="nightly")
@pytest.mark.parametrize("case", range(1500))
def test_a_wrong_value_anywhere_is_shown_or_refused(tmp_path, record, case):
    """Drawn by a fixed seed: of the places of one claim, or of the rest. Never a traceback, never exit code 70."""
    draw = random.Random(case)
    claims = record["claims"]
    rest = {name: value for name, value in record.items() if name not in ("claims", "headline", "ledger_of_tests")}
    one = rest | {"claims": [draw.choice(claims)]} if draw.random() < 0.8 else rest | {"claims": []}
    place, value = draw.choice(list(places(one))), draw.choice(WRONG)
    file = tmp_path / "record.json"
    file.write_text(json.dumps(with_value(one, place, value)))
    said = overclaim("report", file, "--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    assert said.exit_code in (0, 2), (place, value, said.output)
    assert error_lines(said.stderr) == (said.exit_code == 2), (place, value, said.stderr)
