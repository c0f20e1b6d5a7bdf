"""Audits of mechanisms that stop early: false alarms at tight claims, the labels' order, power, what is fixed."""

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.attacks.protocol import NoEvidence
from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.anytime import until_falsified
from overclaim.audit.pipeline.frame import Choice
from overclaim.audit.pipeline.mechanism_stages import AnytimeMechanism, MechanismAudit
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.mechanism_runs import Sample
from overclaim.audit.statistics.bounds.power import detectable_epsilon
from overclaim.audit.statistics.events import Event
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.testing import neighbours
from overclaim.tests.support.command_line import overclaim, refused
from overclaim.tests.support.spied_bets import spy

PAIR = {"left": [1], "right": [0]}
HALVED = "mechanisms/laplace-half-scale"


def tight(data, rng):
    """Exactly 1-DP for data that differ by 1."""
    return data[0] + rng.laplace()


def halved(data, rng):
    """As `tight`, with half the noise: 2-DP."""
    return data[0] + rng.laplace(scale=0.5)


def batched(data, draws, runs):
    """Exactly 1-DP randomised response, called for many runs at once."""
    return np.where(draws.uniform(runs) < 1 / (1 + np.e), 1 - data[0], data[0])


batched.batched = True


def says_its_world(data, draws, runs):
    return np.full(runs, float(data[0]))


says_its_world.batched = True


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="60 audits")
@pytest.mark.parametrize("mechanism", [batched, tight])
def test_tight_claims_are_rarely_falsified(mechanism):
    """60 audits of 600 runs at alpha = 0.1, of claims that are just true: more with probability below 1e-6."""
    audits, most = 60, 19
    assert stats.binom.sf(most, audits, 0.1) < 1e-6
    alarms = [
        falsify_mechanism(mechanism, Claim(epsilon=1.0), **PAIR, runs=600, seed=seed, confidence=0.9, stop="early")
        for seed in range(audits)
    ]
    assert sum(result.verdict is Verdict.FALSIFIED for result in alarms) <= most
    assert max(result.epsilon_lower for result in alarms) > 0.5  # they look, and see


def test_labels_of_a_batched_mechanism_are_coins_in_the_order_of_the_bets():
    """It is called for the left world first: a guess on that would be right without any leak."""
    pair = DataPair(**PAIR)
    audit = MechanismAudit(mechanism=says_its_world, claim=Claim(epsilon=1.0), budget=Budget(seed=3))

    class Reads(NoEvidence):
        def score(self, outputs):
            return np.asarray(outputs)

    scored = AnytimeMechanism(audit).scorer(Choice(pair, Reads(), Event(0.0, 1.0, "guess"), 0))((5, 400))
    assert isinstance(scored.played, Sample)
    assert not np.any(np.diff(scored.played.left.astype(int)) > 0)  # as it was called
    assert np.array_equal(scored.left, Draws(3, Stage.CERTIFY, 0, 0, 5).labels(400))
    assert np.array_equal(scored.scores, scored.left.astype(float))  # every score stays with its world


@pytest.mark.slow(reason="three early audits; broken twins are quick")
def test_half_the_noise_is_falsified_in_few_of_the_runs():
    """At these seeds; the certificate is by betting, on fair coins, and what it counts was not learned from before."""
    for seed in range(3):
        result = falsify_mechanism(halved, Claim(epsilon=1.0), **PAIR, runs=50_000, seed=seed, stop="early")
        assert result.verdict is Verdict.FALSIFIED
        assert result.runs < 2000
        assert result.runs == result.pilot + result.certificate.counts.runs
        assert result.certificate.method == "anytime"
        assert result.event.share == 0.5
        assert 1 < result.epsilon_lower < 2


def test_every_event_is_fixed_before_the_runs_that_judge_it(monkeypatch):
    """No block is scored by an attack that was learned from it."""
    learned, scored = spy(monkeypatch, AnytimeMechanism, lambda sample: tuple(sample.outputs))
    audit = MechanismAudit(mechanism=tight, claim=Claim(epsilon=1.0), budget=Budget(runs=2000))
    until_falsified(AnytimeMechanism(audit), [DataPair(**PAIR)])
    assert len(learned) > 3
    assert scored
    assert not any(outputs in past for past, outputs in scored)


@pytest.mark.slow(reason="one search more")
def test_searched_inputs_are_found_on_runs_of_their_own():
    """What the search spends counts as pilot, and none of it in the certificate."""

    def total(data, rng):
        return sum(data) + rng.laplace(scale=0.2)

    inputs = neighbours(st.lists(st.integers(0, 1), min_size=1, max_size=3))
    result = falsify_mechanism(total, Claim(epsilon=1.0), inputs=inputs, runs=8000, stop="early", shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.searched.runs < result.pilot
    assert result.runs == result.pilot + result.certificate.counts.runs < 5000
    assert result.searched.pair == result.pair


@pytest.mark.slow(reason="it is about power")
def test_one_of_many_pairs_is_found():
    pairs = [([0.01], [0]), ([1], [0]), ([0.02], [0])]
    result = falsify_mechanism(halved, Claim(epsilon=1.0), pairs=pairs, runs=30_000, stop="early")
    assert result.verdict is Verdict.FALSIFIED
    assert result.pair.left == [1]
    assert result.runs < 5000


@pytest.mark.slow(reason="long early audits")
def test_what_a_perfect_attack_catches_is_said_of_all_runs_that_an_early_audit_could_play():
    """After 62 runs it said "at best, from this many runs: 1.246", which is what 3,000 catch."""
    result = falsify_mechanism(halved, Claim(epsilon=1.0), **PAIR, runs=8000, stop="early")
    assert result.runs < 1000
    here = f"at best, from the whole budget: {detectable_epsilon(1.0, 8000, delta=0.0, alpha=0.01):.2g}"
    assert here in str(result)
    words = ("--runs", 20_000, "--stop", "early", "--jobs", 1)
    assert "at best, 20,000 runs detect epsilon " in overclaim("check", HALVED, *words, "-v").output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--zcdp", 1], "stop must be budget for a claim in another measure than epsilon, got early: ZCDP(rho=1.0)"),
        (["--epsilon", 1, "--os-random"], "--stop early cannot go with --os-random: it learns from runs that"),
    ],
)
def test_what_cannot_end_early_is_refused_in_one_line(tmp_path, words, message):
    path = tmp_path / "mine.py"
    path.write_text("def count(data, rng):\n    return len(data) + rng.laplace()\n")
    refused(overclaim("check", f"{path}:count", "--left", "[0]", "--right", "[]", "--stop", "early", *words), message)
