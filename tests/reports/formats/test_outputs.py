"""Machine-readable outputs: JUnit XML, SARIF, the GitHub action and the pre-commit hook, each against its schema.

The public schemas of SARIF and of JUnit XML lie in data/schemas, with their origin. The action, the workflow and the
hook are checked by the tools that define them, where they are installed (check-jsonschema, pre-commit).
"""

import contextlib
import html
import json
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft7Validator, FormatChecker

from overclaim.audit.plans.plan import Plan
from overclaim.audit.plans.targets import source_place
from overclaim.audit.verdicts.blind_spot import HIDDEN, LOW_POWER
from overclaim.learners import Threshold
from overclaim.learners.scalar import Scalar
from overclaim.reports.command_line.running import decide_together
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.run_lines import run_lines, sum_line
from overclaim.reports.formats.sarif import render as sarif
from overclaim.tests.support.command_line import overclaim, refused

try:
    from lxml import etree
except ImportError:
    etree = None

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT / "tests" / "data" / "schemas"
FORMATS = FormatChecker()
SARIF = Draft7Validator(
    json.loads((SCHEMAS / "sarif-schema-2.1.0.json").read_text(encoding="utf-8")), format_checker=FORMATS
)
JUNIT = None if etree is None else etree.XMLSchema(etree.parse(SCHEMAS / "junit-10.xsd"))


@FORMATS.checks("uri-reference")
def is_uri_reference(value):
    """The characters of RFC 3986, percent signs only before two digits: jsonschema itself checks no addresses."""
    return re.fullmatch(r"(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})*", value) is not None


@FORMATS.checks("uri")
def is_uri(value):
    return is_uri_reference(value) and re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", value) is not None


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
        return int(self.rng.random() < 0.5 + self.arm / 3.5)

    def update(self, feedback):
        self.arm = int(feedback[0] > 0.5)


class Parrot(Silent):
    def act(self):
        return self.arm if self.rng.random() < 0.95 else 1 - self.arm


class Broken(Silent):
    def act(self):
        return 1 / 0
'''


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("outputs")
    (path / "plan.toml").write_text(PLAN)
    (path / "mine.py").write_text(MINE)
    with contextlib.chdir(path):
        done = overclaim("run", "plan.toml", "--jobs", 1)
    assert done.exit_code == 4, done.stderr
    return path


@pytest.fixture
def record(folder):
    return json.loads((folder / "out" / "record.json").read_text(encoding="utf-8"))


def check_sarif(text):
    log = json.loads(text)
    SARIF.validate(log)
    return log


def check_junit(text):
    """Jenkins' schema, and what Ant's asks beyond it: order, tokens, numbers, one outcome a case, true counts."""
    if etree is not None:
        JUNIT.assertValid(etree.fromstring(text.encode()))
    root = ElementTree.fromstring(text)
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
                assert outcome.tag in ("failure", "error")
                assert {"type"} <= set(outcome.attrib) <= {"type", "message"}
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(suite.get(name)) == len(suite.findall(f"testcase/{tag}"))
        assert int(suite.get("tests")) == len(cases)
    return root


def test_junit(record):
    root = check_junit(junit(record))
    outcomes = [case[0].tag if len(case) else "" for case in root.iter("testcase")]
    assert outcomes == ["", "failure", "error", "failure", "error", "error"]
    assert "overclaim check mine.py:Parrot" in next(root.iter("failure")).text


def test_sarif_points_to_the_learner(record):
    log = check_sarif(sarif(record))
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
    assert places[0]["artifactLocation"]["uri"].endswith("learners/conversions/reduction.py")
    assert len({r["partialFingerprints"]["claim/v1"] for r in results}) == 5


@pytest.mark.parametrize(
    ("spot", "why"),
    [
        ({"factor": None, "tried": 3.0, "missed": 3.0, "bounds": []}, "would not have caught three times too little"),
        (
            {"factor": None, "tried": 30.0, "true_to": 2.5, "false_at": 2.6, "bounds": []},
            "true up to 2.5 times too little noise on the standard pairs, and 30 times was not caught; no attack",
        ),
        (
            {"factor": 100.0, "missed": 30.0, "tried": 100.0, "true_to": 2.5, "bounds": []},
            "true up to 2.5 times too little noise on the standard pairs, as far as exact laws tell, and 30 times was",
        ),
        ({"factor": None, "tried": 30.0, "true_to": 30.0, "bounds": []}, "nothing can be seen on the standard pairs"),
        (None, "on this pair epsilon is exactly 0"),
    ],
)
@pytest.mark.parametrize("allowed", [False, True])
def test_an_untested_claim_is_said_by_every_format(record, spot, why, allowed):
    claim = next(c for c in record["claims"] if c["verdict"] == "SURVIVED")
    hidden = spot is None or spot.get("true_to") == spot["tried"]
    claim |= {"verdict": "UNDERPOWERED", "reason": HIDDEN if hidden else LOW_POWER}
    claim |= {"expected": None, "untested": True, "untested_allowed": allowed, "blind_spot": spot}
    record["claims"], record["errors"] = [claim], []
    results = check_sarif(sarif(record))["runs"][0]["results"]
    case = check_junit(junit(record)).find("testsuite/testcase")
    assert len(results) == len(case) == (0 if allowed else 1)
    if not allowed:
        assert (results[0]["ruleId"], results[0]["level"]) == ("underpowered", "warning")
        assert case[0].get("type") == "UNDERPOWERED"
        assert why in results[0]["message"]["text"]
        assert why in case[0].text


def test_a_violated_bound_on_regret_is_in_every_output(record):
    """A run that failed for it alone showed nothing but survivors to a dashboard and a pull request."""
    row = {"name": "mine.py:Parrot", "verdict": "VIOLATED", "mean_regret": 41.3, "bound": 20.0, "rounds": 64}
    record |= {"claims": [], "errors": [], "regret": [{**row, "sequence": "gap", "replay": "overclaim regret x"}]}
    violated = "regret of mine.py:Parrot: VIOLATED: mean 41.3, bound 20, T = 64, gap losses"
    (result,) = check_sarif(sarif(record))["runs"][0]["results"]
    assert (result["ruleId"], result["level"]) == ("regret", "error")
    assert violated in result["message"]["text"]
    failure, gate = check_junit(junit(record)).findall("testsuite/testcase/failure")
    assert gate.get("type") == "REGRET"
    assert violated in failure.text
    assert "replay: overclaim regret x" in failure.text
    assert '1 bound on <a href="#regret">regret</a> is violated' in render(record)
    assert "- regret of" in markdown(record)
    del record["regret"][0]["replay"]  # as of a plan's own bound
    assert sarif(record).count(f'{violated}."') == 1
    record["regret"][0] |= {"growth_verdict": "VIOLATED", "growth_lower": 0.87654, "exponent": 0.5}
    for text in (junit(record), sarif(record), markdown(record)):
        assert "VIOLATED: growth exponent at least 0.8765, claimed 0.5" in text
    record["regret"][0] |= {"bound_slope": 0.71}
    assert "growth exponent at least 0.8765, claimed 0.71 (bound's own slope)" in markdown(record)
    record["regret"][0] |= {"bound": 60.0, "bound_verdict": "HOLDS"}  # the bound was called violated with its growth
    holds = "regret of mine.py:Parrot: HOLDS on the sequences played: mean 41.3, bound 60, T = 64, gap losses"
    assert f"{holds}; VIOLATED: growth exponent at least 0.8765" in sarif(record)
    assert 'bound on <a href="#regret">regret</a>, or on its growth, is violated' in render(record)


def test_the_error_of_each_bound_is_that_of_its_claim_not_of_the_report(record):
    alphas = {round(1 - claim["confidence"], 9) for claim in record["claims"]}
    assert max(alphas) < record["alpha"]
    assert f"Each certified bound is wrong with probability at most {max(alphas):g}. " in markdown(record)


def test_an_input_is_shown_as_it_is(tmp_path):
    """A NUL was shown with two backslashes, which is JSON for a backslash and five letters."""
    (tmp_path / "own.py").write_text("def size(data, rng): return len(data)\n")
    inputs = 'left = ["\\u0000", "\\u202e\\n"]\nright = []\n'
    (tmp_path / "plan.toml").write_text(f'[[claims]]\ntarget = "own.py:size"\nepsilon = 1\nruns = 300\n{inputs}')
    with contextlib.chdir(tmp_path):
        assert overclaim("run", "plan.toml", "--jobs", 1).exit_code == 1
        claim = json.loads(Path("out/record.json").read_text(encoding="utf-8"))["claims"][0]
        page = html.unescape(Path("out/report.html").read_text(encoding="utf-8"))
    assert claim["pair"]["left"] == ["\0", "\u202e\n"]
    assert r'Inputs      left ["\u0000", "\u202e\n"], right []' in claim_lines(claim)
    assert r'["\u0000", "\u202e\n"]' in page
    assert r"\\u" not in page


def test_junit_gives_no_two_cases_one_name(record):
    """By their names dashboards follow them."""
    first = record["claims"][0]
    others = [{"runs": 50, "budget": 50}, {"rounds": 17}, {"parameters": {"eta": 2.0}}, {}]
    record["claims"] += [{**first, **other} for other in others]
    record["errors"] *= 2
    names = [case.get("name") for case in check_junit(junit(record)).iter("testcase")]
    assert len(set(names)) == len(names)
    assert any(name.endswith("runs=50") for name in names)
    assert any("T=17" in name for name in names)


def test_what_fails_a_run_without_being_expected_is_said_to_be_a_surprise(record):
    """JUnit failed it as "expected SURVIVED", and beside it every verdict was as expected."""
    false = next(claim for claim in record["claims"] if claim["verdict"] == "FALSIFIED")
    record["claims"] = [false | {"expected": None}, false | {"expected": "falsified"}]
    assert "**1 not as expected:**" in markdown(record)
    assert re.findall("<summary>(.*)</summary>", markdown(record)) == ["falsified, as expected: 1", "all claims: 2"]
    assert "falsified, expected survived" in render(record)
    assert "FALSIFIED\x1b[0m, and the plan does not expect it" in run_lines(record)
    assert sum_line(record) == "3 claims: 2 falsified, 1 crashed; 1 verdict was not expected"
    both = record | {"claims": [false | {"expected": word} for word in (None, "survived")]}
    assert "; 2 verdicts were not expected" in sum_line(both)
    assert "FALSIFIED\x1b[0m, but the plan expects SURVIVED" in run_lines(both)
    record["claims"][0]["verdict"] = "SURVIVED"
    record["errors"] = []
    outputs = ("✅ overclaim: ", markdown(record)), ("✓</span> ", render(record))
    assert all(f"{mark}2 claims, all as expected" in text for mark, text in outputs)


def test_findings_against_a_baseline_are_in_every_output(record):
    finding = {"kind": "worse", "name": "mine.py:Parrot", "message": "worse"}
    before = len(check_junit(junit(record)).findall("testsuite/testcase/failure"))
    kinds = ("worse", "new", "regression", "more certified")  # the last two are of older records
    record["baseline"] = {"findings": [{**finding, "kind": kind} for kind in kinds]}
    assert len(check_junit(junit(record)).findall("testsuite/testcase/failure")) == before + 3
    log = check_sarif(sarif(record))
    levels = [r["level"] for r in log["runs"][0]["results"] if r["ruleId"] == "baseline"]
    assert levels == ["error", "error", "error", "note"]


def foreign(text):
    """A record that somebody else wrote: every text in it is `text`."""
    claim = {
        "name": text, "calibration": None, "losses": "unit", "surface": "actions", "neighbours": "replace",
        "claimed": {"epsilon": 1.0, "delta": 0.0}, "verdict": "FALSIFIED", "expected": None, "epsilon_lower": 2.0,
        "seconds": 1234.5, "replay": text, "confidence": 0.99, "runs": 100,
        "where": {"file": f"a b/{text}.py", "line": 3},
    }  # fmt: skip
    return {
        "schema": 1, "claims": [claim, {**claim, "where": {"file": f"/{text}", "line": 1}}],
        "errors": [{"kind": "crashed", "name": f"{text}.py:X", "message": text, "replay": text}],
        "baseline": {"findings": [{"kind": "worse", "name": text, "message": text}]},
        "created": "2026-01-01T00:00:00+00:00", "overclaim": "0.2.0", "seed": 0, "alpha": 0.01, "command": text,
    }  # fmt: skip


#: Quotes, markup, what no XML can hold, half a surrogate pair, text that reorders, characters beyond the plane.
NASTY = [
    "",
    " ",
    "\x00\x1b[31m\x7f",
    "]]>&<a href='x'>",
    "\ud800",
    "\u202eabc",
    "a\r\nb\u2028c",
    "\U0001f512\uffff",
    "%zz",
]


@pytest.mark.slow(reason="a hundred drawn texts")
@given(st.text(max_size=40) | st.sampled_from(NASTY))
def test_any_text_keeps_the_schemas(text):
    record = foreign(text)
    check_junit(junit(record))
    for result in check_sarif(sarif(record))["runs"][0]["results"]:
        assert result["message"]["text"]


def test_no_claims_keep_the_schemas():
    record = {**foreign("x"), "claims": [], "errors": [], "baseline": None}
    assert check_junit(junit(record)).find("testsuite").get("tests") == "1"
    assert check_sarif(sarif(record))["runs"][0]["results"] == []
    assert check_junit(junit(record)).find("testsuite/testcase/error").get("type") == "NOT AUDITED"


@pytest.mark.parametrize("text", NASTY)
def test_foreign_records_are_written(text, tmp_path):
    (tmp_path / "record.json").write_text(json.dumps(foreign(text)))
    words = [w for n in ("html", "markdown", "junit", "sarif") for w in (f"--{n}", str(tmp_path / n))]
    result = overclaim("report", tmp_path / "record.json", *words)
    assert result.exit_code == 0, result.output
    check_junit((tmp_path / "junit").read_text(encoding="utf-8"))
    check_sarif((tmp_path / "sarif").read_text(encoding="utf-8"))


def test_a_record_with_the_least_that_a_record_has_is_written(tmp_path):
    claim = {"name": "x", "claimed": {"epsilon": 1}}
    claims = [{**claim, "verdict": v} for v in ("FALSIFIED", "SURVIVED", "UNDERPOWERED")]
    (tmp_path / "record.json").write_text(json.dumps({"schema": 1, "claims": claims, "errors": None}))
    words = [w for n in ("html", "markdown", "junit", "sarif") for w in (f"--{n}", str(tmp_path / n))]
    result = overclaim("report", tmp_path / "record.json", *words)
    assert result.exit_code == 0, result.output
    assert len(check_sarif((tmp_path / "sarif").read_text(encoding="utf-8"))["runs"][0]["results"]) == 2
    assert 'tests="4"' in (tmp_path / "junit").read_text(encoding="utf-8")


def test_a_claim_that_only_holm_falsifies_says_so_everywhere(tmp_path):
    """Its own bound, at alpha / m, is below the claim: seen alone it would make the verdict look like a fault."""
    first, second = ({**foreign("x")["claims"][0], "name": name, "expected": "survived"} for name in ("a", "b"))
    first |= {"p_value": 1e-9}
    second |= {"p_value": 0.007, "epsilon_lower": 0.95, "verdict": "SURVIVED"}
    plan = Plan((None, None), confidence=0.995, report_alpha=0.01)
    decide_together([first, second], plan)
    assert "holm" not in first
    assert (second["verdict"], second["holm"]) == ("FALSIFIED", {"p_value": 0.007, "level": 0.01})
    record = {**foreign("x"), "claims": [first, second], "errors": [], "baseline": None}
    (tmp_path / "record.json").write_text(json.dumps(record))
    words = "epsilon is above 1 by Holm's procedure over the report, p-value 0.007 at level 0.01; alone at least 0.95"
    assert words in next(c for c in check_junit(junit(record)).iter("testcase") if c.get("name")[0] == "b")[0].text
    assert words in check_sarif(sarif(record))["runs"][0]["results"][1]["message"]["text"]
    assert f"  b: {words}" in run_lines(record)
    assert "**0.95**, above 1 by Holm" in markdown(record)
    page = html.unescape(render(record))
    assert words in page
    assert "above 1 by Holm's procedure" in page
    assert page.count("by Holm's procedure over the report (alone ε ≥ 0.95)") == 1
    second["claimed"] = {"epsilon": 1.23456, "delta": 0.0}
    second["measure"] = {"kind": "approximate", "epsilon": 1.23456, "delta": 0.0}
    assert "above 1.234 by Holm" in markdown(record)  # above 1.235 is not what was shown


def change(log, *path, to):
    """The log with one value replaced."""
    log = json.loads(log)
    inner = log
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = to
    return log


@pytest.mark.parametrize(
    ("path", "to"),
    [
        (("version",), "2.0.0"),
        (("runs", 0, "results", 0, "level"), "fatal"),
        (("runs", 0, "results", 0, "severity"), "high"),
        (("runs", 0, "results", 0, "message"), "plain text"),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "region", "startLine"), 0),
        (("runs", 0, "results", 0, "locations", 0, "physicalLocation", "artifactLocation", "uri"), "a b.py"),
        (("runs", 0, "tool", "driver", "informationUri"), "overclaim"),
    ],
)
def test_the_sarif_schema_refuses_faults(path, to):
    assert not SARIF.is_valid(change(sarif(foreign("x")), *path, to=to))


@pytest.mark.skipif(etree is None, reason="lxml is not installed")
@pytest.mark.parametrize(
    ("old", "new"),
    [(' tests="5"', ""), ("failure type", "failure cause"), ('time="2469.000"', 'time="2.4e3"'), (' value="x"', "")],
)
def test_the_junit_schema_refuses_faults(old, new):
    text = junit(foreign("x"))
    assert old in text
    assert not JUNIT.validate(etree.fromstring(text.replace(old, new).encode()))


def test_report_writes_every_format(folder, monkeypatch):
    monkeypatch.chdir(folder)
    words = ["--html", "r.html", "--markdown", "r.md", "--junit", "r.xml", "--sarif", "r.sarif"]
    result = overclaim("report", "out/record.json", *words)
    assert result.exit_code == 0, result.output
    assert [line.split()[-1] for line in result.output.splitlines()] == ["r.html", "r.md", "r.xml", "r.sarif"]
    assert "falsified" in Path("r.md").read_text()
    refused(overclaim("report", "out/record.json"), "no file to write is named")


def test_where_things_are_written():
    here = source_place(Threshold(arms=2, threshold=1.0))
    assert here["file"].endswith("learners/probes/threshold.py")
    lines = (ROOT / "learners" / "probes" / "threshold.py").read_text().splitlines()
    assert lines[here["line"] - 1] == "class Threshold:"
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


@pytest.mark.slow(reason="several whole commands")
def test_the_action_runs(folder, tmp_path):
    """The script of its audit step, as the runner would call it: names with spaces, quoted arguments, a baseline."""
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    script = re.search(r"      run: \|\n(        refuse\(\).*)", text, re.DOTALL).group(1)
    (folder / "a plan.toml").write_text(PLAN[: PLAN.index('[[claims]]\ntarget = "mine.py:Parrot"')])
    (folder / "more.toml").write_text(PLAN[: PLAN.index('[[claims]]\ntarget = "mine.py:Silent"')])
    with contextlib.chdir(folder):
        overclaim("run", "more.toml", "--jobs", 1, "--out", "accepted")
        accepted = overclaim("accept", "accepted/record.json", "--baseline", "a base.json")
    assert accepted.exit_code == 0, accepted.stderr
    names = {"PLAN": "a plan.toml", "BASELINE": "a base.json", "OUT": "out again"}
    names |= {"ARGUMENTS": "--jobs '1'\n--json", "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"}
    names |= {"GITHUB_STEP_SUMMARY": str(tmp_path / "summary"), "GITHUB_OUTPUT": str(tmp_path / "output")}

    def run(**more):
        return subprocess.run(["bash", "-ec", script], cwd=folder, env=names | more, capture_output=True, text=True)

    done = run()
    assert done.returncode == 1, done.stderr  # claims of the baseline are missing
    assert '"file": "a base.json"' in done.stdout
    assert "overclaim:" in (tmp_path / "summary").read_text()
    assert (tmp_path / "output").read_text() == "record=out again/record.json\nsarif=out again/overclaim.sarif\n"
    assert (folder / "out again" / "junit.xml").exists()
    (tmp_path / "summary").unlink()
    assert run(PLAN="nowhere.toml").returncode == 2
    assert not (tmp_path / "summary").exists()  # the record of the run before is not this run's
    refused = run(ARGUMENTS="'--jobs")
    assert (refused.returncode, "::error::overclaim: the input arguments" in refused.stdout) == (2, True)
