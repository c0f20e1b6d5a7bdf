"""Machine-readable outputs: JUnit XML, SARIF, the GitHub action and the pre-commit hook, each against its schema.

The public schemas of SARIF and of JUnit XML are no Python packages: the part that we write is restated in
data/sarif-2.1.0-subset.json and in `check_junit`. The action and the hook are checked by the tools that define them,
where they are installed (check-jsonschema, pre-commit).
"""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator, FormatChecker

from overclaim.audit.targets import source_place
from overclaim.learners import Threshold
from overclaim.learners.scalar import Scalar
from overclaim.reports.cli import main
from overclaim.reports.junit import junit
from overclaim.reports.sarif import sarif

ROOT = Path(__file__).resolve().parents[1]
SARIF = Draft202012Validator(
    json.loads((ROOT / "tests" / "data" / "sarif-2.1.0-subset.json").read_text(encoding="utf-8")),
    format_checker=FormatChecker(),
)
PLAN = """
alpha = 0.05
[[claims]]
target = "agarwal-singh/reduction-threshold"
epsilon = 1
rounds = 2
runs = 4000
expect = "falsified"
[[claims]]
target = "mine.py:Parrot"
epsilon = 1
rounds = 2
runs = 4000
[[claims]]
target = "mine.py:Parrot"
epsilon = 40
rounds = 2
runs = 4000
[[claims]]
target = "mine.py:Silent"
epsilon = 1
rounds = 2
runs = 4000
expect = "falsified"
[[claims]]
target = "mine.py:Broken"
epsilon = 1
"""
MINE = '''"""Learners."""


class Silent:
    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.rng, self.arm = rng, 0

    def act(self):
        return int(self.rng.integers(2))

    def update(self, feedback):
        self.arm = int(feedback[0] > 0.5)


class Parrot(Silent):
    def act(self):
        return self.arm if self.rng.random() < 0.95 else 1 - self.arm


class Broken(Silent):
    def act(self):
        return 1 / 0
'''


def overclaim(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs")
    (path / "plan.toml").write_text(PLAN)
    (path / "mine.py").write_text(MINE)
    words = [sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", "1"]
    done = subprocess.run(words, cwd=path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    return path


@pytest.fixture
def record(folder):
    return json.loads((folder / "out" / "record.json").read_text(encoding="utf-8"))


def check_junit(text):
    """The rules of Ant's JUnit schema: order, attributes, tokens, numbers, one outcome a case."""
    root = ElementTree.fromstring(text)
    assert root.tag == "testsuites"
    for suite in root:
        assert set(suite.attrib) == {
            "name", "package", "id", "timestamp", "hostname", "tests", "failures", "errors", "skipped", "time",
        }  # fmt: skip
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp"))
        tags = [child.tag for child in suite]
        cases = suite.findall("testcase")
        assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
        assert all(set(p.attrib) == {"name", "value"} for p in suite.find("properties"))
        for case in cases:
            assert set(case.attrib) == {"name", "classname", "time"}
            assert case.get("name") == " ".join(case.get("name").split())
            assert float(case.get("time")) >= 0
            assert len(case) <= 1
            for outcome in case:
                assert outcome.tag in ("failure", "error", "skipped")
                assert outcome.tag == "skipped" or {"type"} <= set(outcome.attrib) <= {"type", "message"}
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name)) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests")) == len(cases)
    return root


def test_junit(record):
    root = check_junit(junit(record))
    outcomes = [case[0].tag if len(case) else "" for case in root.iter("testcase")]
    assert outcomes == ["", "failure", "skipped", "failure", "error"]
    assert "overclaim check mine.py:Parrot" in next(root.iter("failure")).text


def test_sarif_points_to_the_learner(record):
    log = json.loads(sarif(record))
    SARIF.validate(log)
    results = log["runs"][0]["results"]
    assert [(r["ruleId"], r["level"]) for r in results] == [
        ("falsified", "note"),
        ("falsified", "error"),
        ("underpowered", "warning"),
        ("unexpected", "error"),
        ("not-audited", "error"),
    ]
    places = [r["locations"][0]["physicalLocation"] for r in results]
    assert places[1]["artifactLocation"] == {"uri": "mine.py", "uriBaseId": "%SRCROOT%"}
    assert places[1]["region"]["startLine"] == MINE.splitlines().index("class Parrot(Silent):") + 1
    assert places[0]["artifactLocation"]["uri"].endswith("learners/reduction.py")
    assert len({r["partialFingerprints"]["claim/v1"] for r in results}) == 5


def test_findings_against_a_baseline_are_in_every_output(record):
    finding = {"kind": "regression", "name": "mine.py:Parrot", "message": "worse"}
    record["baseline"] = {"findings": [finding, {**finding, "kind": "new"}]}
    assert len(check_junit(junit(record)).findall("testsuite/testcase/failure")) == 3
    log = json.loads(sarif(record))
    SARIF.validate(log)
    levels = [r["level"] for r in log["runs"][0]["results"] if r["ruleId"] == "baseline"]
    assert levels == ["error", "note"]


@given(st.text(max_size=40))
def test_any_text_is_escaped(text):
    claim = {
        "name": text, "calibration": None, "losses": "unit", "surface": "actions", "neighbours": "replace",
        "claimed": {"epsilon": 1.0, "delta": 0.0}, "verdict": "FALSIFIED", "expected": None, "epsilon_lower": 2.0,
        "seconds": 0.1, "replay": text, "confidence": 0.99, "runs": 100,
        "where": {"file": f"a b/{text}.py", "line": 3},
    }  # fmt: skip
    record = {
        "claims": [claim], "errors": [{"kind": "crashed", "name": text, "message": text, "replay": text}],
        "created": "2026-01-01T00:00:00+00:00", "overclaim": "0.1.0", "seed": 0, "alpha": 0.01, "command": text,
    }  # fmt: skip
    check_junit(junit(record).encode("utf-8", "replace").decode())
    SARIF.validate(json.loads(sarif(record)))


def test_report_writes_every_format(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["--html", "r.html", "--markdown", "r.md", "--junit", "r.xml", "--sarif", "r.sarif"]
    result = overclaim("report", "out/record.json", *words)
    assert result.exit_code == 0, result.output
    assert [line.split()[-1] for line in result.output.splitlines()] == ["r.html", "r.md", "r.xml", "r.sarif"]
    assert "falsified" in Path("r.md").read_text()
    nothing = overclaim("report", "out/record.json")
    assert nothing.exit_code == 2
    assert "name a file to write" in nothing.stderr


def test_where_things_are_written():
    here = source_place(Threshold(arms=2, threshold=1.0))
    assert here["file"].endswith("learners/threshold.py")
    assert (ROOT / "learners" / "threshold.py").read_text().splitlines()[here["line"] - 1] == "class Threshold:"
    assert source_place(len) is None
    assert source_place(test_where_things_are_written)["file"].endswith("test_outputs.py")
    assert source_place(Scalar(_Plain, 2, 2))["file"].endswith("test_outputs.py")


class _Plain:
    feedback = "full"

    def __init__(self, arms, rounds, rng):
        pass

    def act(self):
        return 0

    def update(self, feedback):
        pass


def tool(name):
    path = Path(sys.executable).with_name(name)
    found = str(path) if path.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def test_the_action_keeps_its_schema():
    words = [tool("check-jsonschema"), "--builtin-schema", "vendor.github-actions", str(ROOT / "action.yml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_hook_keeps_its_schema():
    words = [tool("pre-commit"), "validate-manifest", str(ROOT / ".pre-commit-hooks.yaml")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_action_runs(folder, tmp_path, monkeypatch):
    """The script of its audit step, as the runner would call it."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = re.search(r"      run: \|\n(        words=.*)", text, re.DOTALL).group(1)
    names = {"PLAN": "plan.toml", "BASELINE": "", "OUT": "again", "ARGUMENTS": "--jobs 1"}
    names |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}
    names["PATH"] = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    done = subprocess.run(
        ["bash", "-e", "-c", script], cwd=folder, env=names, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4, done.stderr
    assert "overclaim:" in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "record=again/record.json\nsarif=again/overclaim.sarif\n"
    assert (folder / "again" / "junit.xml").exists()
