"""Figures of learners that were audited on sequences of rounds: what each prefix of the rounds shows."""

import math

import numpy as np
import pytest

from overclaim.audit.evidence.by_round import evidence_of_rounds
from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.learner_mechanism import Block
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.view import VIEWS
from overclaim.reports.formats.figures import of_claim
from overclaim.reports.record import claim_record

SOURCE = """
class Flips:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng, self.bits = rng, [0]

    def act(self):
        return self.bits[-1]

    def update(self, loss):
        self.bits.append(round(loss) if self.rng.random() < 0.9 else 1 - round(loss))

    def report(self):
        return {"bit": self.bits[-1]}

    def model(self):
        return [sum(self.bits), "x"]

    release = model
"""
#: They differ in round 3 of 5.
LEFT, RIGHT = ([[0.0, 0.0]] * 2 + [[at, at]] + [[0.0, 0.0]] * 2 for at in (1.0, 0.0))


def flips(folder):
    exec(SOURCE, names := {})
    (folder / "flips.py").write_text(SOURCE)
    return as_learner(names["Flips"], arms=2, rounds=5)


@pytest.mark.parametrize("view", VIEWS)
def test_a_prefix_of_what_is_seen_is_what_a_shorter_game_shows(view, tmp_path):
    learner, left = flips(tmp_path), np.arange(6) % 2 == 0

    def played(rounds):
        block = Block(learner, VIEWS[view], (LEFT[:rounds], RIGHT[:rounds]), left)
        block.play(Draws(0))
        return block

    whole = played(5)
    for rounds in (3, 4, 5):
        ours, own = whole.outputs(rounds), played(rounds).outputs()
        assert np.array_equal(ours, own) if isinstance(own, np.ndarray) else ours == own


def audited(view, folder, runs):
    flips(folder)
    given = {"rounds": 5, "left": LEFT, "right": RIGHT, "budget": Budget(runs=runs, confidence=1 - 2e-7)}
    prepared = Task(target=str(folder / "flips.py:Flips"), epsilon=1.0, surface=view, **given).prepare()
    return prepared, prepared.audit()


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("view", "before"), [("joint", 3), ("reports", 2), ("model", 2), ("release", 3), ("publication", 2)]
)
def test_leakage_by_round_begins_with_the_round_that_differs(view, before, tmp_path):
    # Exactly log 9 from the first prefix that shows the flip: five bounds at 2e-7 each. Of 600 runs 400 are counted:
    # of the 360 right guesses that are expected fewer than 320, a bound below 1/2, come with a chance below 1e-9.
    prepared, result = audited(view, tmp_path, 6000)
    leak = evidence_of_rounds(prepared.played, result, result.pair)["by_round"]
    assert leak["rounds"] == [2, 3, 4, 5]
    for rounds, epsilon in zip(leak["rounds"], leak["epsilon"], strict=True):
        assert (epsilon == 0) if rounds <= before else (0.5 < epsilon <= math.log(9))


@pytest.mark.slow(reason="a record with its frozen event")
def test_a_record_of_rounds_has_all_figures(tmp_path):
    claim = claim_record(*audited("model", tmp_path, 6000), with_evidence=True)
    titles = [one.title for one in of_claim(claim, "a")]
    assert {"Trade-off curve", "Privacy profile", "Scores by input", "Leakage by round"} <= set(titles)
