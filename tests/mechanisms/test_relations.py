"""A relation is one class: commands, checks and records find what it is called and what its neighbours are by that."""

import json
import subprocess
import sys

import pytest

#: A relation in one file: the whole data is another, of any kind that it was.
TOY = """
from overclaim.mechanisms.relations import Relation

class Anything(Relation):
    name, for_rounds = "anything", True
    data_text = rounds_text = "anything is replaced"

    def record_fault(self, left, right, places):
        return ""
"""
LOOK = """
import json, sys
import toy
from click.testing import CliRunner
from overclaim.mechanisms.relations import Relation
from overclaim.mechanisms.relations.relation import neighbours_words
from overclaim.reports.command_line.cli import main

def check(right, *words):
    given = ["--left", "[1, 2]", "--right", right, "--epsilon", "1", "--runs", "2000", "--jobs", "1"]
    return CliRunner().invoke(main, ["check", "noisy.py:total", "--neighbours", "anything", *given, *words])

done = check("[5, 6]", "--json")
print(json.dumps({
    "words": neighbours_words("anything"),
    "exit": done.exit_code,
    "record": json.loads(done.stdout or "{}").get("neighbours"),
    "refused": check("[5, 6, 7]").stderr,
}))
"""
NOISY = """
def total(data, rng):
    return sum(data) + rng.laplace(scale=20.0)
"""


@pytest.mark.slow(reason="a process of its own, with audits")
def test_a_relation_in_one_file_is_found_everywhere(tmp_path):
    for name, text in (("toy.py", TOY), ("noisy.py", NOISY), ("look.py", LOOK)):
        (tmp_path / name).write_text(text)
    done = subprocess.run([sys.executable, "look.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["words"] == "anything: anything is replaced"
    assert found["record"] == "anything"
    assert "no neighbours by anything: they have 2 and 3 records" in found["refused"]
