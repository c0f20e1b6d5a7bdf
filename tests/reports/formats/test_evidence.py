"""Evidence for registers: what was claimed, tested and not, by a schema, and under the registry's own names."""

import json
import sys

import pytest
import yaml
from check_jsonschema import main as check_jsonschema
from click.testing import CliRunner
from jsonschema import Draft202012Validator

from overclaim.docs.schemas import schemas
from overclaim.reports.command_line.cli import main
from overclaim.reports.formats.evidence import UNTESTABLE, evidence, json_schema, render
from overclaim.reports.record import to_text

#: `deployment.dp_variant.variant_name` of the registry's schema.
VARIANTS = ("Pure DP", "Approximate DP", "Zero-concentrated DP", "Renyi DP", "Custom")


@pytest.fixture
def written(record, tmp_path):
    file = tmp_path / "record.json"
    file.write_text(to_text(record), encoding="utf-8")
    done = CliRunner().invoke(main, ["report", str(file), "--evidence", str(tmp_path / "evidence.yaml")])
    assert done.exit_code == 0, done.output
    return tmp_path / "evidence.yaml"


@pytest.mark.slow(reason="starts the checker's command")
def test_check_jsonschema_accepts_what_is_written_and_refuses_what_lacks_a_claim(written, tmp_path):
    published = {schema["title"]: schema for schema in schemas()}
    schema = tmp_path / "evidence.json"
    schema.write_text(json.dumps(published["overclaim evidence"]), encoding="utf-8")
    arguments = ["--schemafile", str(schema), str(written)]
    assert CliRunner().invoke(check_jsonschema, arguments).exit_code == 0
    content = yaml.safe_load(written.read_text(encoding="utf-8"))
    del content["claims"][0]["claimed"]
    written.write_text(yaml.safe_dump(content), encoding="utf-8")
    assert CliRunner().invoke(check_jsonschema, arguments).exit_code == 1


def test_each_claim_says_what_was_claimed_found_and_not_tested(record, written):
    content = yaml.safe_load(written.read_text(encoding="utf-8"))
    assert [claim["target"] for claim in content["claims"]] == [claim["name"] for claim in record["claims"]]
    for claim, audited in zip(content["claims"], record["claims"], strict=True):
        assert claim["tested"]["verdict"] == audited["verdict"]
        assert claim["command"] == audited["replay"]
        answer = claim["registry"]["implementation"]["justification"]
        assert ("the claim is false" in answer) == (audited["verdict"] == "FALSIFIED")
        assert "private" not in answer
        assert claim["registry"]["dp_variant"]["variant_name"] in VARIANTS
        assert claim["registry"]["privacy_loss"]["privacy_parameters"]
    assert content["not_tested"]
    assert content["cannot_be_tested"] == list(UNTESTABLE)


@pytest.mark.parametrize(
    ("measure", "variant"),
    [
        ({"kind": "approximate", "epsilon": 1.0, "delta": 0.0}, "Pure DP"),
        ({"kind": "approximate", "epsilon": 1.0, "delta": 1e-5}, "Approximate DP"),
        ({"kind": "zcdp", "rho": 0.5}, "Zero-concentrated DP"),
        ({"kind": "rdp", "order": 8.0, "epsilon": 2.0}, "Renyi DP"),
        ({"kind": "gdp", "mu": 1.0}, "Custom"),
    ],
)
def test_the_registry_has_a_name_for_each_measure(record, measure, variant):
    claimed = {"epsilon": 1.0, "delta": measure.get("delta", 1e-5)}
    record["claims"] = [{**record["claims"][0], "measure": measure, "claimed": claimed}]
    (claim,) = evidence(record)["claims"]
    assert claim["registry"]["dp_variant"]["variant_name"] == variant


def test_hostile_texts_stay_texts_of_the_schema(hostile):
    content = yaml.safe_load(render(hostile))
    Draft202012Validator(json_schema()).validate(content)
    assert len(content["claims"]) == len(hostile["claims"])


def test_every_schema_has_an_address_of_its_own_and_is_valid():
    addresses = [schema["$id"] for schema in schemas()]
    assert len(set(addresses)) == 3
    for schema in schemas():
        Draft202012Validator.check_schema(schema)


def test_without_pyyaml_it_says_what_to_install(record, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    file = tmp_path / "record.json"
    file.write_text(to_text(record), encoding="utf-8")
    done = CliRunner().invoke(main, ["report", str(file), "--evidence", str(tmp_path / "evidence.yaml")])
    assert done.exit_code == 2
    assert "--evidence needs PyYAML" in done.output
    assert "pip install 'overclaim[evidence]'" in done.output
