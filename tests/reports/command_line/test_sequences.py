"""Learners on sequences of rounds, searched or given: the command line, plans, reports and the gate."""

import json
import shlex

import pytest

from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.identity import mark, matched
from overclaim.reports.record import read_record
from overclaim.tests.support.command_line import check, error_lines, overclaim, refused

LEARNERS = """
class Clicks:
    feedback = "full"
    def __init__(self, arms, rounds, rng, scale=1.0):
        self.rng, self.scale, self.ahead = rng, scale, 0.0
    def act(self):
        return int(self.ahead > 0)
    def update(self, losses):
        self.ahead = float(losses[0]) - 0.5 + self.rng.laplace(scale=self.scale)

class Sees(Clicks):
    def observe(self, context):
        self.ahead += context

def made(arms, rounds):
    from overclaim.learners import BatchedLaplace, Threshold
    return BatchedLaplace(Threshold(arms=arms, threshold=0.5), epsilon=1.0, batch=1)
"""
LOSSES = {"type": "array", "minItems": 2, "maxItems": 2, "items": {"type": "number", "minimum": 0, "maximum": 1}}
ROUNDS = {"type": "array", "minItems": 2, "maxItems": 4, "items": LOSSES}
VISIT = {"type": "object", "required": ["user", "losses"], "additionalProperties": False}
VISITS = {**ROUNDS, "items": {**VISIT, "properties": {"user": {"enum": ["ann", "bob"]}, "losses": LOSSES}}}
CONTEXT = {"type": "object", "required": ["context", "losses"], "additionalProperties": False}
WITH_CONTEXT = {**ROUNDS, "items": {**CONTEXT, "properties": {"context": {"type": "integer"}, "losses": LOSSES}}}
TWO = ["--left", "[[1, 0], [1, 0], [0, 0]]", "--right", "[[0, 0], [0, 0], [0, 0]]"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "my.py").write_text(LEARNERS)
    for name, schema in (("rounds", ROUNDS), ("visits", VISITS), ("context", WITH_CONTEXT)):
        (tmp_path / f"{name}.json").write_text(json.dumps(schema))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.slow(reason="of inputs it is quick")
def test_a_schema_of_rounds_is_searched_and_what_it_found_is_replayed(folder):
    words = ["--inputs", "rounds.json", "--neighbours", "user:3", "--runs", 6000, "--seed", 1]
    record = json.loads(check("my.py:made", *words, "--json").stdout)
    assert record["verdict"] == "FALSIFIED"
    assert record["neighbours"] == "user:3"
    assert record["relation"] == "user: up to 3 rounds of one user replaced"
    assert record["inputs"] == {"schema": ROUNDS, "relation": "user:3"}
    assert (record["mechanism"], record["rounds"], record["arms"]) == (False, 8, 2)
    assert len(record["pair"]["rounds"]) > 1
    small = record["smallest_inputs"]
    again = overclaim(*shlex.split(small["replay"])[1:], "--jobs", 1, "--json")
    assert json.loads(again.stdout)["epsilon_lower"] == pytest.approx(small["epsilon_lower"], abs=1e-9)
    assert json.loads(again.stdout)["neighbours"] == "user:3"


def test_two_sequences_are_given(folder):
    done = check("my.py:Clicks", *TWO, "--neighbours", "user:2", "--runs", 2000)
    assert "the losses of rounds 1 and 2 of 3: left [1, 0], right [0, 0] in each" in done.stdout
    assert "in each; up to 2 rounds of one user replaced" in " ".join(done.stdout.split())
    assert "--neighbours user:2" in done.stdout


PLAN = """
[[claims]]
target = "my.py:made"
epsilon = 1
inputs = "visits.json"
neighbours = "user"
runs = 6000
expect = "falsified"

[[claims]]
target = "my.py:made"
epsilon = 1
inputs = "visits.json"
runs = 6000
expect = "survived"

[[claims]]
target = "asi-raman-talwar/batched-threshold"
epsilon = 2
rounds = 4
inputs = "rounds.json"
neighbours = "user:2"
runs = 2000
set = { batch = 1, epsilon = 1 }
expect = "survived"
untested = "allowed"
"""


@pytest.mark.slow(reason="a whole run")
def test_a_plan_its_reports_and_its_gate_tell_users_from_events(folder):
    (folder / "plan.toml").write_text(PLAN)
    done = overclaim("run", "plan.toml", "--jobs", 1)
    assert done.exit_code == 0, done.output
    record = read_record(folder / "out" / "record.json")
    user, event, entry = record["claims"]
    assert [claim["neighbours"] for claim in record["claims"]] == ["user", "replace", "user:2"]
    assert "user" in done.output
    assert mark(user) != mark(event)
    assert "neighbours" in [found.field for found in matched([user], [event]).pairs[0][2]]
    assert "user: all rounds of one user replaced" in render(record)
    assert all("user" in text for text in (markdown(record), junit(record), sarif(record)))
    assert f"differ in round{'s' * (len(user['pair']['rounds']) > 1)} " in render(record)
    assert entry["rounds"] == 4
    assert overclaim("accept", "out/record.json").exit_code == 0
    again = overclaim("run", "plan.toml", "--jobs", 1, "--baseline", "overclaim-baseline.json", "--out", "second")
    assert again.exit_code == 0, again.output


@pytest.fixture
def few(monkeypatch):
    """As many sequences as a refusal needs."""
    monkeypatch.setattr("overclaim.audit.spaces.sequences.SEQUENCES", 60)


@pytest.mark.usefixtures("few")
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--inputs", "rounds.json", "--neighbours", "user"], "user needs rounds that say whose they are"),
        (["--inputs", "rounds.json", "--neighbours", "add-remove"], "add-remove cannot apply to a learner"),
        (["--inputs", "rounds.json", "--neighbours", "substitute-feature"], "must be one of replace, zero-out"),
        (
            ["--inputs", "rounds.json", "--neighbours", "user:0"],
            "user:K with a whole number from 1 to 1000000",
        ),
        (["--inputs", "rounds.json", "--rounds", "3"], "but the horizon is 3\n  hint:  give --rounds 4"),
        (
            ["--inputs", "rounds.json", "--arms", "3"],
            "but the learner has 3 arms\n  hint:  give --arms 2",
        ),
        (["--inputs", "context.json"], "has a context, and the learner has no method observe"),
        (["--inputs", '{"const": [[0, 0], [1, 1]]}'], "makes no two inputs that differ"),
        (
            ["--inputs", '{"type": "array", "items": {"const": 2}, "minItems": 1, "maxItems": 2}', "--arms", "1"],
            "must lie in [0, 1]",
        ),
        (["--inputs", "rounds.json", "--bits"], "my.py:Clicks is a learner: it takes no --bits"),
        (
            ["--inputs", "rounds.json", "--pair", '{"left": [[1, 1]], "right": [[0, 0]]}'],
            "--pair cannot go with",
        ),
        (
            ["--neighbours", "user:3"],
            "got 'user:3'\n  hint:  other relations are for rounds",
        ),
        ([*TWO], "the two worlds are no neighbours by replace: they differ in rounds 1, 2"),
        ([*TWO[:3], "[[0, 0]]"], "both inputs must have as many rounds, got 3 and 1"),
        ([*TWO[:2]], "needs two inputs, --left and --right: --right is missing"),
        ([*TWO[:3], "[[0, 2], [1, 0], [0, 0]]"], "loss of round 1 must lie in [0, 1] (unit), got 2"),
    ],
)
def test_bad_rounds_are_one_line(folder, words, message):
    refused(check("my.py:Clicks", *words, "--runs", 1000), message)


@pytest.mark.parametrize("command", ["trace", "exact"])
def test_other_commands_take_no_rounds(folder, command):
    more = [] if command == "exact" else ["--epsilon", 1]
    done = overclaim(command, "my.py:Clicks", *more, "--inputs", "rounds.json")
    assert done.exit_code == 2
    assert error_lines(done.output) == 1
