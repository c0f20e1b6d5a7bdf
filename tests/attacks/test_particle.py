"""The particle likelihood ratio against the enumerated law, its bound, and its calibration."""

import numpy as np
import pytest

from overclaim.audit.attacks.learner_attacks import Trained
from overclaim.audit.attacks.particle import ParticleRatio, select
from overclaim.audit.laws.sequences import all_sequences, sequence_laws
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import Transcripts, play
from overclaim.audit.statistics.event_rule import choose_event
from overclaim.audit.statistics.events import certify, count
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.bandits.exp3 import WeightsState
from overclaim.learners.bandits.htinf import Htinf
from overclaim.mechanisms.draws import Draws


def learner(arms, eta=2.0, gamma=0.02, batch=1):
    return BatchedLaplace(inner=Exp3(arms=arms, eta=eta, gamma=gamma), epsilon=1.0, batch=batch)


def pair(rounds, arms, t0=0):
    left = np.ones((rounds, arms))
    right = left.copy()
    right[t0] = 0
    return Pair(left, right)


@pytest.mark.parametrize(("rounds", "batch", "t0", "within"), [(3, 1, 0, 0.03), (6, 2, 1, 0.05), (5, 1, 2, 0.05)])
def test_against_the_enumerated_law(rounds, batch, t0, within):
    bandit, worlds = learner(2, batch=batch), pair(rounds, 2, t0)
    p, q = sequence_laws(bandit, worlds)
    chosen = all_sequences(2, -(-rounds // batch))
    actions = np.repeat(chosen, batch, axis=0)[:rounds]
    scores = ParticleRatio(bandit, worlds, particles=2048).score(Transcripts(actions, np.ones(len(p), dtype=bool)))
    assert float(p @ np.abs(scores - np.log(p / q))) < within


@pytest.mark.parametrize("inner", [Exp3(arms=5, eta=1.0, gamma=0.05), Htinf(arms=5)])
def test_bounded_by_the_true_privacy_loss_and_calibrated(inner):
    """2,000 runs in each world: E[exp(-L)] = 1 in the left one within 0.2, far beyond five standard errors."""
    bandit, worlds = BatchedLaplace(inner=inner, epsilon=1.0, batch=1), pair(10, 5)
    transcripts = play(bandit, worlds, Draws(3), 4000)
    attack = ParticleRatio(bandit, worlds, particles=64)
    scores = attack.score(transcripts)
    assert np.abs(scores).max() <= 1 + 1e-6
    assert np.exp(-scores[transcripts.left]).mean() == pytest.approx(1, abs=0.2)
    runs = np.array([5, 17, 999])
    assert np.array_equal(attack.score(transcripts[runs]), scores[runs])  # the score is the transcript's alone


@pytest.mark.slow
def test_it_beats_a_classifier_on_many_arms():
    """Equal runs, T = 16, K = 4, seed fixed: certified at 99 %."""
    bandit, worlds = learner(4, eta=0.5, gamma=0.05), pair(16, 4)
    pilot, fresh = (play(bandit, worlds, Draws(11, stage), 6000) for stage in (2, 3))
    bounds = {}
    for attack in (ParticleRatio(bandit, worlds, particles=128), Trained(4, play(bandit, worlds, Draws(11, 1), 6000))):
        event = choose_event(attack.score(pilot), pilot.left, delta=0.0, alpha=0.01, runs=6000)
        counts = count(event, attack.score(fresh), fresh.left)
        bounds[attack.name] = certify(event, counts, delta=0.0, alpha=0.01).epsilon_lower
    assert bounds[ParticleRatio.name] > bounds[Trained.name] + 0.05


def test_selected_states_stay_writable_in_place():
    """A gather along the last axis may be laid out by columns, and writes through reshape(-1) would be lost."""
    state = WeightsState.fresh(3, 4)
    chosen = select(state, np.array([3, 3, 0]))
    chosen.shift_at(chosen.places(np.array([0, 1, 2])), np.array([1.0, 2.0, 3.0]))
    assert chosen.log_weights.tolist() == [[1, 0, 0], [0, 2, 0], [0, 0, 3]]
    assert not state.log_weights.any()
