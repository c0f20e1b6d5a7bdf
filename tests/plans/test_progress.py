"""Attempts that are killed again and again make progress: every stage that is finished is kept."""

import json

import pytest

from overclaim.audit.execution.execution import Execution
from overclaim.audit.plans import ledger as module
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.play import mechanism_runs, transcripts
from overclaim.reports.command_line.running import run_plan
from overclaim.reports.record import to_text

#: Attacks that are learned, pairs that are searched, mechanisms of every kind, a witness that is shrunk.
CLAIMS = {
    "a user's class": 'target = "own.py:Learner"\nepsilon = 1\nrounds = 3\nruns = 3000\n',
    "a user's class, early": 'target = "own.py:Learner"\nepsilon = 1\nrounds = 3\nruns = 3000\nstop = "early"\n',
    "points": 'target = "agarwal-singh/ftrl-ball"\nepsilon = 0.05\nrounds = 4\nruns = 3000\nset = { epsilon = 1 }\n',
    "a mechanism": 'target = "own.py:count"\nepsilon = 1\nleft = [1, 2]\nright = [1]\nruns = 3000\n',
    "a mechanism of the zoo": 'target = "mechanisms/svt3"\nruns = 1000\n',
    "a mechanism of texts": 'target = "own.py:word"\nepsilon = 1\nleft = 1\nright = 0\nruns = 3000\n',
}
OWN = """
class Learner:
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng, self.last = rng, 0.5
    def act(self):
        return int(self.rng.random() < 0.1 + 0.8 * self.last)
    def update(self, feedback):
        self.last = float(feedback[0])

def count(data, rng):
    return len(data) + rng.laplace(scale=0.5)

def word(data, rng):
    return ["yes", "no"][int(rng.random() < 0.3 + 0.4 * data)]
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def timeless(record):
    for claim in record["claims"]:
        claim["seconds"] = 0
    return to_text({**record, "created": ""})


#: The others take as many attempts for other kinds.
QUICK = ("a mechanism", "a mechanism of texts")


@pytest.mark.few("a mechanism of texts", rest="nightly")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in CLAIMS]
)
def test_attempts_that_keep_only_a_few_things_finish_with_the_same_record(own, monkeypatch, name):
    """Each attempt is stopped right after it has kept so many new things, far fewer than there are."""
    (own / "plan.toml").write_text(f"[[claims]]\n{CLAIMS[name]}")
    plan = read_plan(own / "plan.toml")
    whole = timeless(run_plan(plan, Execution(1), command=""))
    kept, attempts, most = [], 0, 1

    def stop_after(real):
        def keep(self, stage, *rest):
            real(self, stage, *rest)
            kept.append(stage)
            if len(kept) == most:
                (_ for _ in ()).throw(KeyboardInterrupt)

        return keep

    for method in ("keep_totals", "keep_stage"):
        monkeypatch.setattr(module.Page, method, stop_after(getattr(module.Page, method)))
    stages = []
    while True:
        attempts += 1
        assert attempts < 200, stages[-20:]
        kept.clear()
        ledger = Ledger.begin(own / "out", plan, resume=True)
        try:
            record = run_plan(plan, Execution(1), command="", ledger=ledger)
            break
        except KeyboardInterrupt:
            stages += kept
            most = 1 + attempts % 7  # one at a time, and several
    assert timeless(record) == whole
    once = [stage for stage in stages if not stage.startswith(("certify", "graded"))]  # totals of these grow
    assert len(once) == len(set(once))  # nothing is computed twice
    assert attempts > 2


@pytest.mark.parametrize("outputs", [[1.5, -0.0, float("inf")], [1, 10**30, True], ["a", None, [1, ["b"]]]])
def test_plain_outputs_come_back_as_they_were(outputs):
    import numpy as np

    left = np.array([True, False, True])
    again = mechanism_runs.from_bytes(mechanism_runs.to_bytes(mechanism_runs.Sample(outputs, left)))
    assert json.dumps(again.outputs) == json.dumps(outputs)
    assert list(map(type, again.outputs)) == list(map(type, outputs))
    np.testing.assert_array_equal(again.left, left)


def test_other_outputs_are_not_kept_and_damaged_bytes_are_played_again():
    import numpy as np

    left = np.array([True])
    for odd in ((1, 2), {1: 2}, np.float32(1), b"x", 1j):
        assert mechanism_runs.to_bytes(mechanism_runs.Sample([odd], left)) is None
    numbers = mechanism_runs.from_bytes(mechanism_runs.to_bytes(mechanism_runs.Sample([np.float64(0.1)], left)))
    assert type(numbers.outputs[0]) is np.float64
    whole = transcripts.to_bytes(transcripts.Transcripts(np.zeros((2, 1), dtype=np.int8), left, np.ones((1, 1))))
    assert transcripts.from_bytes(whole).releases.tolist() == [[1.0]]
    for damaged in (b"", b"x", whole[:40], whole[:-30], whole.replace(b"actions", b"actionz")):
        assert transcripts.from_bytes(damaged) is None
        assert mechanism_runs.from_bytes(damaged) is None
