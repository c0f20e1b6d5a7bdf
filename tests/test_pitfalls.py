"""The table of pitfalls: each command finds its fault in examples/pitfalls.py, and finds nothing where it is fixed."""

import inspect
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.reports.command_line.cli import main

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "foreign.md").read_text(encoding="utf-8")
COMMANDS = [shlex.split(row)[1:] for row in re.findall(r"^\| .* \| `(overclaim .*)` \|$", PAGE, re.MULTILINE)]
#: As few runs as find all of them; their power is not asked for.
QUICK = ["--runs", "4000", "--jobs", "1", "--power", "off"]


@pytest.mark.slow(reason="an audit of each")
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[1].rpartition(":")[2])
def test_a_command_of_the_table_finds_its_pitfall_and_not_the_fixed_one(words, monkeypatch):
    monkeypatch.chdir(ROOT / "examples")
    if words[0] == "account":
        pytest.importorskip("dp_accounting")
        assert CliRunner().invoke(main, words).exit_code == 1
        return
    quick = QUICK if words[0] == "check" else []
    assert CliRunner().invoke(main, [*words, *quick]).exit_code == 1
    fixed = CliRunner().invoke(main, [*words, *quick, "--set", "fixed=true"])
    assert fixed.exit_code in (0, 3), fixed.output


def test_every_planted_pitfall_is_in_the_table():
    space = {}
    exec((ROOT / "examples" / "pitfalls.py").read_text(encoding="utf-8"), space)
    planted = {name for name, value in space.items() if inspect.isfunction(value)}
    assert planted == {words[1].partition(":")[2] for words in COMMANDS if words[0] != "account"}
