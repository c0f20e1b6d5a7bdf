"""The examples in docstrings are run, and the public face has one each."""

import doctest
from importlib import import_module
from pathlib import Path

import pytest

import overclaim

ROOT = Path(__file__).resolve().parents[1]
ROOMS = ("mechanisms", "learners", "audit", "reports")
MODULES = [
    ".".join(("overclaim", *file.relative_to(ROOT).with_suffix("").parts))
    for room in ROOMS
    for file in sorted((ROOT / room).rglob("*.py"))
    if ">>> " in file.read_text(encoding="utf-8")
]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    outcome = doctest.testmod(import_module(name))
    assert outcome.attempted > 0
    assert outcome.failed == 0


def test_a_wrong_example_fails(capsys):
    test = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner().run(test).failed == 1
    assert "Expected:\n    3\nGot:\n    2" in capsys.readouterr().out


@pytest.mark.parametrize("name", [name for name in overclaim.__all__ if name != "__version__"])
def test_the_public_face_has_examples(name):
    assert ">>> " in getattr(overclaim, name).__doc__
