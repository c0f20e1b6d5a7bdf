"""Every format says the one status of a run, and none is green but for what is as expected."""

import json
import re
from xml.etree import ElementTree

import click
import pytest

from overclaim.reports.formats.html import card, render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.run_lines import run_lines
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.reading import WORSE, verdict_of
from overclaim.reports.status import status_of

LEAK = {"text": "BYPASS: output 2", "finding": "output 2 depends on the inputs without noise", "bypass": True}
LEAK |= {"place": {"file": "mine.py", "line": 17}}
MINE = {"name": "x", "source": "your bound"}


def claim(verdict="SURVIVED", **more):
    of_a_claim = {"name": "mine.py:count", "claimed": {"epsilon": 1.0, "delta": more.pop("delta", 0.0)}}
    return of_a_claim | {"verdict": verdict, "replay": "overclaim check mine.py:count"} | more


def of_claims(*claims, **more):
    return {"alpha": 0.01, "claims": [*claims], **more}


def error(kind):
    return of_claims(claim(), errors=[{"name": "a", "kind": kind, "message": "m", "replay": "r"}])


def against(kind):
    finding = {"name": "mine.py:count", "kind": kind, "message": "m", "replay": "r"}
    return of_claims(claim(), baseline={"findings": [finding]})


RECORDS = {
    "FAULT": (70, error("internal error")),
    "CRASHED": (4, error("crashed")),
    "NOT AUDITED": (2, error("bad input")),
    "nothing": (2, of_claims()),
    "FALSE": (1, of_claims(claim("FALSIFIED"), claim())),
    "FALSE, as it survived": (1, of_claims(claim(expected="falsified"))),
    "LEAK": (1, of_claims(claim(leak=LEAK), claim())),
    "LEAK of an audit without power": (1, of_claims(claim("UNDERPOWERED", reason="low power", leak=LEAK))),
    "LEAK of GDP": (1, of_claims(claim(delta=1e-5, measure={"kind": "gdp", "mu": 1.0}, leak=LEAK))),
    "WORSE": (1, against(WORSE)),
    "CHANGED": (1, against("missing")),
    "REGRET": (1, of_claims(claim(), regret=[{"verdict": "VIOLATED"}])),
    "UNDECIDED": (3, of_claims(claim("UNDERPOWERED", reason="low power"), claim())),
    "UNDECIDED, as delta may allow it": (3, of_claims(claim(delta=1e-5, leak=LEAK))),
    "UNDECIDED regret": (3, of_claims(claim(), regret=[{"verdict": "UNDECIDED"} | MINE])),
    "IN DOUBT": (0, of_claims(claim(baseline={"decision": "in doubt"}))),
    "AS EXPECTED": (0, of_claims(claim(), claim("FALSIFIED", expected="falsified"))),
    "AS EXPECTED, as a leak was": (0, of_claims(claim(leak=LEAK, expected="falsified"))),
}


@pytest.fixture(params=RECORDS, scope="module")
def run(request):
    code, record = RECORDS[request.param]
    return request.param, code, record, status_of(record)


def test_the_status_is_the_gravest_that_holds(run):
    name, code, _, status = run
    assert (status.code, name.startswith(status.name) or name == "nothing") == (code, True)
    assert status.tone == ("good" if status.name == "AS EXPECTED" else "bad" if code in (1, 2, 4, 70) else "unsure")
    graver = {"errors": [{"kind": "crashed"}], "claims": [claim("FALSIFIED"), claim(leak=LEAK)]}
    assert [status_of(graver | {"errors": errors}).name for errors in (graver["errors"], [])] == ["CRASHED", "FALSE"]


def test_every_format_says_it(run):
    """A failed gate looks failed at first sight: nothing green, and the first line says so."""
    _, code, record, status = run
    green = status.tone == "good"
    page = render(record)
    head = page[: page.index("</h1>")]
    assert f"{status.mark} {status.text}</title>" in head
    assert f'<h1 class="{status.tone}">' in head
    assert head.endswith(status.text)
    (box,) = re.findall(rf'<p class="notice {status.tone}"><b>{status.name}</b>.*?</p>', page)
    assert (code and f"exit code {code}" in box) or not code
    assert ('class="notice good"' in page, f"✓</span> {status.text}" in page) == (green, green)

    summary = markdown(record)
    assert summary.startswith(f"### {status.symbol} overclaim: {status.text}\n\n**{status.name}**: ")
    assert ("✅" in summary) == green

    for quiet in (False, True):
        last = run_lines(record, quiet=quiet).splitlines()[-1]
        assert click.unstyle(last) == f"{status.name}  {status.text}{f' (exit code {code})' if code else ''}"
        assert ("\x1b[32m" in last, "\x1b[31m" in last) == (green, status.tone == "bad")

    gate = ElementTree.fromstring(junit(record)).find(".//testcase[@name='gate']")
    assert [child.tag for child in gate] == ([] if not code else ["failure" if code == 1 else "error"])
    assert all(child.get("type") == status.name and child.get("message") == status.text for child in gate)

    (log,) = json.loads(sarif(record))["runs"]
    (invocation,) = log["invocations"]
    assert (invocation["exitCode"], invocation["exitCodeDescription"]) == (code, str(status))
    levels = {result["level"] for result in log["results"]}
    assert {"error": code in (1, 2, 4, 70), "warning": code == 3} == {
        level: level in levels for level in ("error", "warning")
    } or not record["claims"]


def test_a_bypass_is_never_green(run):
    """No format says SURVIVED of it, and each names it with its line."""
    name, code, record, _ = run
    if not any("leak" in one for one in record["claims"]):
        return
    assert (code == 0) == name.startswith("AS EXPECTED")
    (leaking,) = (one for one in record["claims"] if "leak" in one)
    assert verdict_of(leaking) == "BYPASS"
    record = record | {"claims": [leaking]}
    outputs = [render(record), markdown(record), run_lines(record), junit(record), sarif(record)]
    for output in outputs[: 3 if code == 0 else 5]:  # what is as expected is no failure: the last two list these alone
        assert "output 2 depends on the inputs without noise (mine.py:17)" in output.replace("\\_", "_")
    page = outputs[0][outputs[0].index("<body>") : outputs[0].index("<details")]
    for text in (page, *outputs[2:]):
        assert "survived" not in re.sub(r"expect\w*:? survived", "", text.lower()).replace("was not expected", "")
    assert 'class="verdict BYPASS"' in card(leaking)
