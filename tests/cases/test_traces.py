"""Code that releases data by a way that a trace once did not follow: it is not bounded, and its sound twins are.

`traces.json` has the commands of each target of `code/traces/`, and the exit codes that are right for them: of a
broken one 0 never is, and of a sound one 0 is where a trace can bound it.
"""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main

HERE = Path(__file__).parent
CASES = json.loads((HERE / "traces.json").read_text(encoding="utf-8"))
SLOW = pytest.mark.slow(reason="20,000 runs")


def marked(case, command):
    marks = SLOW if command["words"][0] == "check" else ()
    search = "-search" if "--inputs" in command["words"] else ""
    name = f"{command['words'][0]}-{case['target'].replace('.py:', '-')}{search}"
    return pytest.param(case, command, id=name, marks=marks)


@pytest.mark.parametrize(("case", "command"), [marked(case, one) for case in CASES for one in case["commands"]])
def test_no_bound_is_below_the_truth(monkeypatch, case, command):
    """Of 39 such targets 32 were bounded, and those that draw arrays of their own ended Python."""
    monkeypatch.chdir(HERE / "code" / "traces")
    monkeypatch.syspath_prepend(HERE / "code" / "traces")
    done = CliRunner().invoke(main, [*command["words"], "--json"])
    assert done.exit_code in command["exits"], done.output
    if command["words"][0] != "trace" or not done.stdout:
        return
    record = json.loads(done.stdout)
    bounded = record["trace_result"] == "BOUNDED"
    truth = float("inf") if case["truth"] == "infinite" else case["truth"]
    assert not bounded or record["epsilon_upper"] >= truth * (1 - 1e-4)
    if 0 in command["exits"] and len(command["exits"]) == 1:
        assert bounded
        assert record["epsilon_upper"] == pytest.approx(truth)
