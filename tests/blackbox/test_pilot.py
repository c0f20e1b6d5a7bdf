"""The pilot of a black-box audit: the same draws in every world, and what they are worth."""

import itertools

import numpy as np
import pytest

from overclaim.audit.assumptions.mechanism_runs import DataPair
from overclaim.audit.attacks.count_tables import ColumnRatios
from overclaim.audit.attacks.features import Features
from overclaim.audit.blackbox import weak_claims
from overclaim.audit.blackbox.pilot import Pilot
from overclaim.audit.blackbox.stages import MechanismAudit
from overclaim.audit.play.execution import Budget
from overclaim.audit.statistics.coupling import CoupledTails
from overclaim.audit.statistics.event_choice import promised
from overclaim.audit.statistics.events import Event
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.one_shot.zoo import zoo


def audit_of(name, epsilon, runs, seed=0):
    mechanism = zoo()[f"mechanisms/{name}"].build(epsilon)
    return MechanismAudit(mechanism=mechanism, claim=Claim(epsilon=epsilon), budget=Budget(runs, seed, 0.9))


def test_inputs_are_played_once_and_with_the_same_draws():
    pairs = [DataPair([0], [1]), DataPair([0], [2]), DataPair([3], [1])]
    audit = audit_of("laplace", 1.0, 1000)
    pilot = Pilot(audit, audit.mechanism, pairs)
    pilot.extend([0, 1, 2], 403)
    assert (pilot.draws, pilot.spent) == (100, 400)
    first, last = (pilot.sample(i, [0, 1, 2]) for i in (0, 2))
    np.testing.assert_array_equal(first.left, np.repeat([True, False], 100))
    np.testing.assert_allclose(first.outputs[100:] - first.outputs[:100], 1.0)
    np.testing.assert_array_equal(first.outputs[100:], last.outputs[100:])
    pilot.forget([1])
    pilot.extend([1], 200)
    more = pilot.sample(1, [1])
    assert (pilot.draws, pilot.spent, more.left.size) == (200, 600, 400)
    np.testing.assert_array_equal(more.outputs[:100], first.outputs[:100])
    assert len(np.unique(more.outputs)) == 400
    pilot.extend([1], 1)
    assert pilot.spent == 600


def test_the_pilot_shares_no_draw_with_certification():
    audit = audit_of("laplace", 0.1, 1_000_000)
    pair = DataPair([0], [1])
    pilot = Pilot(audit, audit.mechanism, [pair])
    pilot.extend([0], 16_000)
    seen = pilot.sample(0, [0]).outputs
    choice, spent = audit.choose([pair])
    shown = []

    def keep(data, draws, runs):
        shown.append(audit.mechanism(data, draws, runs) - data[0])
        return shown[-1] + data[0]

    keep.batched = True
    other = MechanismAudit(mechanism=keep, claim=audit.claim, budget=audit.budget)
    other.counter(choice)((0, 8192))
    assert spent == 200_000
    assert weak_claims.is_weak(audit)
    assert not set(np.round(seen[:8000], 9)) & set(np.round(np.concatenate(shown), 9))


def test_the_variance_of_coupled_rates_is_that_of_repeated_pilots():
    """2000 pilots of 400 draws; the variance of ln(right / wrong) to 15 %, five standard errors of its estimate."""
    rng = np.random.default_rng(1)
    grid = np.array([-0.5, 0.7])
    for shared in (0.0, 0.9):
        ratios, predicted = [], []
        for _ in range(2000):
            common = rng.normal(size=400)
            left, right = (
                np.sqrt(shared) * common + np.sqrt(1 - shared) * rng.normal(size=400) + shift for shift in (0.3, -0.3)
            )
            tails = CoupledTails.of(grid, left, right)
            guesses = tails.above[0][1] + tails.below[1][0], tails.above[1][1] + tails.below[0][0]
            ratios.append(np.log(guesses[0] / guesses[1]))
            right_guesses, wrong_guesses = (np.full((3, 3), one) for one in guesses)
            predicted.append(sum(one[1, 0] for one in tails.variances(right_guesses, wrong_guesses)))
        assert np.mean(predicted) == pytest.approx(np.var(ratios), rel=0.15)


def test_coupled_tails_count_what_a_loop_counts():
    rng = np.random.default_rng(0)
    left, right = (np.append(rng.integers(0, 5, 60).astype(float), [np.nan, 2.0, np.inf]) for _ in range(2))
    grid = np.array([1.0, 3.0, np.inf])
    tails = CoupledTails.of(grid, left, right)
    for i, j in itertools.product(range(3), repeat=2):
        up_left, up_right, low_left, low_right = left >= grid[i], right >= grid[i], left <= grid[j], right <= grid[j]
        assert (tails.above[0][i], tails.above[1][i]) == (up_left.sum(), up_right.sum())
        assert (tails.below[0][j], tails.below[1][j]) == (low_left.sum(), low_right.sum())
        assert tails.both_above[i] == (up_left & up_right).sum()
        assert tails.both_below[j] == (low_left & low_right).sum()
        assert tails.right_twice[i, j] == (up_left & low_right).sum()
        assert tails.wrong_twice[i, j] == (up_right & low_left).sum()
    assert not tails.right_twice[3].any()
    assert not tails.right_twice[:, 3].any()


def test_coupled_runs_promise_more_of_the_same_event():
    """At a claim of 0.1 the two worlds' rates differ by less than the noise of independent runs."""
    rng = np.random.default_rng(0)
    noise, other = rng.laplace(scale=10.0, size=(2, 20_000))
    event = Event(-1.0, 0.0, "guess")
    setting = {"delta": 0.0, "alpha": 0.1, "runs": 10**7}

    def taken_off(right):
        scores = np.concatenate([noise, right - 1.0])
        return promised(event, scores, doubt=0.0, **setting) - promised(event, scores, doubt=2.5, **setting)

    assert 0 < 4 * taken_off(noise) < taken_off(other)
    assert promised(Event(np.nan, np.nan, "guess"), np.concatenate([noise, other]), doubt=1.0, **setting) == -np.inf


def test_folds_keep_coupled_runs_together():
    columns = np.arange(12.0)[None] % 6
    view = Features(np.random.default_rng(0).normal(size=(1, 50))).view(columns)
    coupled = view.labelled(np.repeat([True, False], 6), coupled=True)
    assert coupled.every(2, 1).columns.tolist() == [[1, 3, 5, 1, 3, 5]]
    assert coupled.every(2, 1).left.tolist() == [True] * 3 + [False] * 3
    assert coupled.columns[:, coupled.fold(1)].tolist() == [[1, 3, 5, 1, 3, 5]]
    assert coupled.thinned(4).columns.tolist() == [[0, 3, 0, 3]]
    plain = view.labelled(np.repeat([True, False], 6))
    assert plain.every(5).columns.tolist() == [[0, 5, 4]]
    assert plain.fold(0).tolist() == [True, False] * 6


def test_weak_evidence_of_many_columns_is_summed():
    """20 Laplace numbers of scale 20: the score is near the true log ratio, and leaves out a column without any."""
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=20.0, size=(21, 40_000))
    shift = np.append(np.ones(20), 0.0)[:, None]
    columns = np.concatenate([noise, noise + shift], axis=1)
    features = Features(columns)
    train = features.view(columns).labelled(np.repeat([True, False], 40_000), coupled=True)
    score = ColumnRatios().learn(train)
    fresh = rng.laplace(scale=20.0, size=(21, 20_000))
    true = (np.abs(fresh[:20] - 1) - np.abs(fresh[:20])).sum(axis=0) / 20.0
    assert np.corrcoef(score(features.view(fresh)), true)[0, 1] > 0.85
    moved = fresh.copy()
    moved[20] += 100.0
    np.testing.assert_array_equal(score(features.view(moved)), score(features.view(fresh)))


def test_patterns_of_special_values_are_counted_together():
    """Which of two columns is nan says nothing alone; that both or none are says all."""
    rng = np.random.default_rng(0)
    first = rng.random(20_000) < 0.5
    left = np.repeat([True, False], 10_000)
    columns = rng.normal(size=(2, 20_000))
    columns[0, first] = np.nan
    columns[1, first == left] = np.nan
    features = Features(columns)
    view = features.view(columns)
    score = ColumnRatios().learn(view.labelled(left))(view)
    assert score[left].min() > 5
    assert score[~left].max() < -5


def test_outcomes_that_training_has_not_seen_say_nothing():
    rng = np.random.default_rng(0)
    left = np.repeat([True, False], 2000)
    columns = np.stack([rng.integers(0, 3, 4000) + left, rng.integers(0, 2, 4000)]).astype(float)
    features = Features(columns)
    score = ColumnRatios().learn(features.view(columns).labelled(left))
    shown = score(features.view(np.array([[0.0, 7.0, np.nan], [0.0, 7.0, np.inf]])))
    assert shown[0] != 0
    np.testing.assert_array_equal(shown[1:], 0.0)
