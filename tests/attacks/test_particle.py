"""The particle likelihood ratio against the enumerated law, its bound, and its calibration."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from overclaim.audit.attacks import particle
from overclaim.audit.attacks.learner_attacks import Trained
from overclaim.audit.attacks.particle import ParticleRatio, stratified
from overclaim.audit.attacks.protocol import log_loss
from overclaim.audit.laws.sequences import COARSE, all_sequences, index_of, sequence_laws, window_laws
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import Transcripts, play
from overclaim.audit.statistics.event_rule import choose_by_labels
from overclaim.audit.statistics.events import certify, count
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.abilities import select
from overclaim.learners.bandits.exp3 import WeightsState
from overclaim.learners.bandits.htinf import Htinf
from overclaim.mechanisms.draws import Draws, Stage


def learner(arms, eta=2.0, gamma=0.02, batch=1):
    return BatchedLaplace(inner=Exp3(arms=arms, eta=eta, gamma=gamma), epsilon=1.0, batch=batch)


def pair(rounds, arms, t0=0):
    left = np.ones((rounds, arms))
    right = left.copy()
    right[t0] = 0
    return Pair(left, right)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("rounds", "batch", "t0", "within"),
    [(2, 1, 0, 0.002), (3, 1, 0, 0.003), (4, 1, 0, 0.015), (6, 2, 1, 0.003), (5, 1, 2, 0.015)],
)
def test_against_the_enumerated_law(rounds, batch, t0, within):
    """And a filter of noise that is 15 % smaller is seen to be wrong, and so is one whose rounds share their noise."""
    bandit, worlds = learner(2, batch=batch), pair(rounds, 2, t0)
    p, q = sequence_laws(bandit, worlds)
    chosen = all_sequences(2, -(-rounds // batch))
    sequences = Transcripts(np.repeat(chosen, batch, axis=0)[:rounds], np.ones(len(p), dtype=bool))

    def error(bandit, **changes):
        attack = ParticleRatio(bandit, worlds, particles=256, nodes=32)
        vars(attack).update(changes)
        return float(p @ np.abs(attack.score(sequences) - np.log(p / q)))

    assert error(bandit) < within
    assert error(replace(bandit, epsilon=1.15)) > 2 * within
    if rounds // batch > 3:
        fresh = ParticleRatio(bandit, worlds, particles=256, nodes=32).fresh
        assert error(bandit, fresh=np.broadcast_to(fresh[1], fresh.shape)) > 2 * within


def test_nodes_keep_the_ratio_where_paths_all_descend_from_one():
    """400 runs of 64 rounds, seed fixed: 16 paths against 128; of 128 particles without nodes the error was 0.3."""
    bandit, worlds = learner(8, eta=0.5, gamma=0.1), pair(64, 8)
    transcripts = play(bandit, worlds, Draws(5), 400)
    few, many = (ParticleRatio(bandit, worlds, particles=n).score(transcripts) for n in (16, 128))
    assert np.sqrt(np.square(few - many).mean()) < 0.25


def test_the_lag_grows_while_later_actions_tell_more(monkeypatch):
    """3,000 training runs, seed fixed: two actions after the differing one tell more than the first alone."""
    monkeypatch.setattr(particle, "SHORTEST", 1)
    bandit, worlds = learner(2), pair(12, 2)
    train = play(bandit, worlds, Draws(7), 3000)
    tuned = ParticleRatio(bandit, worlds).tuned(train)
    assert 2 <= tuned.lag < 12
    assert tuned.steps == 1 + tuned.lag
    later = train.actions.copy()
    later[tuned.steps :] = 0
    np.testing.assert_array_equal(tuned.score(Transcripts(later, train.left)), tuned.score(train))
    noise = Transcripts(train.actions, Draws(8).labels(3000))  # labels that nothing tells
    assert ParticleRatio(bandit, worlds).tuned(noise).lag == 1


@pytest.mark.slow(reason="long games")
def test_where_the_round_is_late_it_begins_before_it_with_paths_that_played_freely():
    """1,000 runs, seed fixed: nearly the exact ratio of the same arms, which a filter of all arms is far from."""
    bandit, worlds = learner(2, eta=0.5, gamma=0.1), pair(40, 2, t0=30)
    played = play(bandit, worlds, Draws(3), 1000)
    late = ParticleRatio(bandit, worlds).tuned(played[:500])
    assert (late.begin, late.particles, late.nodes, late.lag) == (10, 256, 4, 8)
    p, q = window_laws(bandit, worlds, 24, 35, cells=COARSE)
    exact = np.log(p / q)[index_of(played.actions[24:35], 2, 1)]
    every = ParticleRatio(bandit, worlds).score(played)
    assert np.corrcoef(late.score(played), exact)[0, 1] > 0.85
    assert np.corrcoef(every, exact)[0, 1] < 0.7
    other = played.actions.copy()
    other[:10], other[39:] = 0, 0
    np.testing.assert_array_equal(late.score(Transcripts(other, played.left)), late.score(played))


def test_a_late_filter_has_a_path_for_each_node_until_the_round_differs():
    bandit, worlds = learner(8, eta=0.5, gamma=0.1), pair(40, 8, t0=30)
    late = ParticleRatio(bandit, worlds, particles=16, nodes=4, begin=20, lag=4)
    assert all(len(np.unique(row)) == 64 for row in (*late.fresh[:10], *late.free[1]))
    assert all(len(np.unique(row)) == 16 for row in late.fresh[10:])
    early = ParticleRatio(bandit, worlds, particles=16, nodes=4)
    assert all(len(np.unique(row)) == 16 for row in early.fresh)


@pytest.mark.nightly(reason="60,000 runs of 517 rounds")
def test_late_filters_of_many_arms_do_not_say_more_than_they_know():
    """60,000 runs, seed fixed. With as many paths as there are after the differing round the two were -4.3 and .0017.

    The first is the labels' mean along the odds, standard normal where the odds are right: -5 or less by chance 3e-7.
    So few paths are seen by the second.
    """
    bandit, worlds = learner(8, eta=0.5, gamma=0.1), pair(517, 8, t0=512)
    played = play(bandit, worlds, Draws(3000, Stage.PILOT), 60_000)
    late = ParticleRatio(bandit, worlds, particles=256, nodes=4, begin=502, lag=4)
    odds = late.score(played)
    law = expit(odds)
    assert ((played.left - law) @ odds) / np.sqrt((law * (1 - law)) @ odds**2) > -5
    assert np.log(2) - log_loss(odds, played.left) > 0.0025


def test_noise_that_hides_nothing_is_scored_without_warnings():
    bandit, worlds = replace(learner(2), epsilon=1e5), pair(3, 2)
    played = play(bandit, worlds, Draws(0), 50)
    assert not np.isnan(ParticleRatio(bandit, worlds, particles=8, nodes=4).score(played)).any()


def test_noise_is_stratified_in_every_row_and_independent_between_rows():
    """Correlations of 45 pairs of rows of 1024 points, sd 1/32 each; one beyond 6 sd: 1e-7 at most."""
    shares = stratified(10, 1024, Draws(0))
    np.testing.assert_array_equal(np.sort(shares, axis=1), np.broadcast_to((np.arange(1024) + 0.5) / 1024, (10, 1024)))
    correlations = np.corrcoef(shares) - np.eye(10)
    assert np.abs(correlations).max() < 6 / 32


@pytest.mark.parametrize("inner", [Exp3(arms=5, eta=1.0, gamma=0.05), Htinf(arms=5)])
def test_bounded_by_the_true_privacy_loss_and_calibrated(inner):
    """2,000 runs in each world: E[exp(-L)] = 1 in the left one within 0.2, far beyond five standard errors."""
    bandit, worlds = BatchedLaplace(inner=inner, epsilon=1.0, batch=1), pair(10, 5)
    transcripts = play(bandit, worlds, Draws(3), 4000)
    attack = ParticleRatio(bandit, worlds, particles=16)
    scores = attack.score(transcripts)
    assert np.abs(scores).max() <= 1 + 1e-6
    assert np.exp(-scores[transcripts.left]).mean() == pytest.approx(1, abs=0.2)
    runs = np.array([5, 17, 999])
    assert np.array_equal(attack.score(transcripts[runs]), scores[runs])  # the score is the transcript's alone


@pytest.mark.slow(reason="it is about power")
def test_it_beats_a_classifier_on_many_arms():
    """Equal runs, T = 16, K = 4, seed fixed: certified at 99 %."""
    bandit, worlds = learner(4, eta=0.5, gamma=0.05), pair(16, 4)
    pilot, fresh = (play(bandit, worlds, Draws(11, stage), 6000) for stage in (2, 3))
    bounds = {}
    for attack in (ParticleRatio(bandit, worlds), Trained(4, play(bandit, worlds, Draws(11, 1), 6000))):
        event = choose_by_labels(attack.score(pilot), pilot.left, delta=0.0, alpha=0.01, runs=6000)
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
