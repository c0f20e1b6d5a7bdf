"""Nothing that hides, reorders or steers text reaches a terminal, a record or a report."""

import json
import unicodedata

import pytest

from overclaim.reports.reading import relation_words
from overclaim.reports.sanitise import json_text, visible, visible_line
from overclaim.tests.support.command_line import check, error_lines, overclaim

#: A colour, a window's title, a C1 control, a right-to-left override, an isolate, a tag, a line separator, half a
#: character, a null, a bell, a zero-width joiner.
HIDDEN = "\x1b[31m\x1b]0;title\x07\x9b31m\u202e\u2066\U000e0041\u2028\udcff\ud800\x00\x7f\u200d\r"
OWN = f"""
class Learner:
    feedback = "full"
    def __init__(self, arms, rounds, rng): pass
    def act(self): raise RuntimeError({HIDDEN!r} + "end")
    def update(self, feedback): pass

def mechanism(data, rng): raise RuntimeError({HIDDEN!r} + "end")
"""


def clean(text):
    assert not [c for c in text if c != "\n" and unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")], repr(text)
    text.encode()


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("words", [("Learner",), ("mechanism", "--left", 0, "--right", 1)])
def test_an_exceptions_words_are_clean_on_the_terminal(own, words):
    result = check(f"own.py:{words[0]}", *words[1:], "--runs", 100)
    assert (result.exit_code, error_lines(result.stderr)) == (4, 1)
    assert "\\u001b[31m" in result.stderr
    assert "end" in result.stderr
    clean(result.stderr)


def test_a_record_with_such_words_is_written_and_rendered(own):
    (own / "plan.toml").write_text(
        '[[claims]]\ntarget = "own.py:Learner"\nepsilon = 1\nnote = "\\u202e"\nruns = 100\n'
        '[[claims]]\ntarget = "mechanisms/laplace"\nnote = "\\u001b[31m \\u202e"\nruns = 300\n'
    )
    result = overclaim("run", "plan.toml", "--jobs", 1)
    assert result.exit_code == 4, result.output
    clean(result.stdout + result.stderr)
    text = (own / "out" / "record.json").read_text(encoding="utf-8")
    clean(text)
    record = json.loads(text)
    assert record["errors"][0]["kind"] == "crashed"
    assert record["claims"][0]["note"] == "\x1b[31m \u202e"  # escaped in the file, and whole
    clean((own / "out" / "report.html").read_text(encoding="utf-8"))
    for form in ("markdown", "junit", "sarif"):
        assert overclaim("report", "out/record.json", f"--{form}", form).exit_code == 0
        clean((own / form).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "words",
    [
        ("--left", '"1\\ud800"', "--right", "0"),
        ("--left", "0", "--right", '{"\\udcff": 1}'),
        ("--left", '"\\ud83d\\ud83d"', "--right", "0"),
        ("--left", "[", "--right", "0"),
        ("--set", "epsilon=\udcff"),
    ],
)
def test_half_a_character_is_refused_at_once(words):
    result = check("mechanisms/laplace", *words)
    assert (result.exit_code, result.stdout, error_lines(result.stderr)) == (2, "", 1), result.output
    clean(result.stderr)


def test_a_whole_character_is_not(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text("def mechanism(data, rng): return rng.random() * len(data)")
    monkeypatch.chdir(tmp_path)
    result = check("own.py:mechanism", "--left", '"\\ud83d\\ude00"', "--right", '""', "--runs", 300)
    assert result.exit_code == 1, result.output
    assert "😀" in result.stdout


@pytest.mark.parametrize(
    "words", [("check", HIDDEN[:1] + "x", "--epsilon", "1"), ("report", "\x1b[31m"), ("\x9b31m",)]
)
def test_names_are_clean_in_messages(words):
    result = overclaim(*words)
    assert (result.exit_code, error_lines(result.stderr)) == (2, 1)
    clean(result.output)


def test_text_that_is_plain_stays():
    plain = "naïve ε ≥ 1, 日本 😀 'x' \\ \""
    assert visible(plain) == visible_line(plain) == plain
    assert json.loads(json_text({plain: [HIDDEN, 1.5, None]})) == {plain: [HIDDEN, 1.5, None]}
    clean(json_text(HIDDEN))
    clean(visible(HIDDEN))
    assert visible({"a\x1b": ["\u202e", ("\t",)]}) == {"a\\u001b": ["\\u202e", [" "]]}


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"arms": 2, "neighbours": "replace", "relation": "one round replaced"}, ""),
        ({"arms": 2, "neighbours": "zero-out"}, "zero-out neighbours"),  # of an older record
        ({"arms": 2, "neighbours": "user:3", "relation": "user: up to 3 rounds"}, "user: up to 3 rounds"),
        ({"mechanism": True, "neighbours": "replace", "inputs": None}, ""),  # two inputs were given
        ({"mechanism": True, "neighbours": "replace", "inputs": {"schema": {}}}, "replace neighbours"),
        ({"mechanism": True, "neighbours": "add-remove", "standing": "documented"}, "add-remove neighbours"),
        ({"mechanism": True, "neighbours": "replace", "standing": "reading"}, "replace neighbours"),
    ],
)
def test_a_relation_is_named_where_it_was_asked_for_and_is_not_the_usual_one(fields, words):
    assert relation_words(fields) == words
