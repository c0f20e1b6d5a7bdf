"""The self-test: every planted bug is caught and nothing sound is, with the error it states."""

import json

import numpy as np
import pytest

from overclaim.audit.plans import selftest
from overclaim.learners.planted import planted_learners, planted_regret, plants
from overclaim.mechanisms.draws import Draws
from overclaim.tests.support.command_line import overclaim


@pytest.mark.parametrize(
    "every", [False, pytest.param(True, marks=pytest.mark.nightly(reason="`make audit` plants them too"))]
)
def test_all_are_caught_and_none_is_false(every, monkeypatch):
    """Seed 1. A sound original is called broken with probability at most 1e-4; 14 of them, 0.14 %."""
    monkeypatch.setattr(planted_learners.StateKept, "totals", np.zeros(2))  # as a fresh process has them
    if not every:
        # Whose sound original needs every budget: one is enough; what regret shows is asked below.
        monkeypatch.setattr(plants, "SUBJECTS", plants.SUBJECTS[:1])
        monkeypatch.setattr(planted_learners, "CLASSES", planted_learners.CLASSES[:1])
        monkeypatch.setattr(planted_regret, "SUBJECTS", planted_regret.SUBJECTS[1:])
    result = overclaim("selftest", "--jobs", "1", "--seed", "1", "--json")
    printed = json.loads(result.stdout)
    wrong = [f for f in printed["findings"] if f["outcome"] not in ("CAUGHT", "QUIET")]
    assert wrong == []
    assert result.exit_code == 0
    assert printed["planted"] >= (40 if every else 3)
    assert printed["caught"] == printed["planted"]
    assert printed["false_alarms"] == 0
    assert printed["seconds"] < 300


def test_a_missed_bug_fails(monkeypatch):
    """A bug that leaks nothing is missed, and the command says so."""
    quiet = plants.Subject(
        name="quiet",
        play=lambda data, draws, runs, *, bug: draws.uniform((runs,)),
        left=[0],
        right=[1],
        bugs={"none": "it does nothing"},
    )
    monkeypatch.setattr(plants, "SUBJECTS", (quiet,))
    monkeypatch.setattr(planted_learners, "CLASSES", ())
    monkeypatch.setattr(planted_regret, "SUBJECTS", ())
    monkeypatch.setattr(selftest, "BUDGETS", (1000,))
    result = overclaim("selftest", "--jobs", "1")
    assert result.exit_code == 1
    assert "MISSED       quiet" in result.output
    assert "0 of 1 planted bugs caught, 0 false alarms" in result.output


@pytest.mark.parametrize("subject", plants.SUBJECTS, ids=lambda subject: subject.name)
def test_every_bug_changes_the_law(subject):
    """No bug's name is misspelt: the outputs of the same draws differ from those of the sound original."""
    sound = plants.planted(subject, "")
    for data in (subject.left, subject.right):
        first = sound(data, Draws(0), 200)
        assert np.array_equal(first, sound(data, Draws(0), 200))
    for bug in subject.bugs:
        changed = [plants.planted(subject, bug)(data, Draws(0), 200) for data in (subject.left, subject.right)]
        same = [sound(data, Draws(0), 200) for data in (subject.left, subject.right)]
        assert any(a.shape != b.shape or not np.array_equal(a, b) for a, b in zip(changed, same, strict=True)), bug


def test_a_bug_is_the_only_one():
    """A second one, noise too small, was what traces found of shared totals, and made a wrong radius easy to catch."""
    assert selftest._traced(-1, "StateKept").startswith("nothing: the calls of the sampled paths cost at most")
    ball = next(subject for subject in plants.SUBJECTS if subject.name == "L2 ball")
    released = plants.planted(ball, "radius without dimension")(ball.left, Draws(0), 10_000)
    radius = np.sqrt(np.square(released - np.array(ball.left)[:, None]).sum(axis=0))
    assert radius.mean() == pytest.approx(2.0, abs=0.1)  # 5 standard deviations


def test_a_bug_that_does_not_exist():
    with pytest.raises(ValueError, match="bug must be one of noise halved"):
        plants.planted(plants.SUBJECTS[0], "nothing")


@pytest.mark.parametrize("subject", planted_regret.SUBJECTS, ids=lambda subject: subject.name)
def test_every_fault_of_regret_is_caught_and_the_sound_learner_is_not(subject):
    """Error 1e-4 for each."""
    place = selftest._REGRET + planted_regret.SUBJECTS.index(subject)
    findings = {bug: selftest._look((place, bug), seed=2) for bug in ("", *subject.faults)}
    assert {bug for bug, finding in findings.items() if finding.outcome == "CAUGHT"} == set(subject.faults)
    assert findings[""].outcome == "QUIET"
    assert all("bound" in finding.how for finding in findings.values())
