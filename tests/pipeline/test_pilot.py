"""The pilot of a black-box audit: the same draws in every world, and what they are worth."""

import itertools
from dataclasses import replace

import numpy as np
import pytest
from scipy import special

from overclaim.audit.attacks.outputs import binned_regressions
from overclaim.audit.attacks.outputs.binned_regressions import BinnedRegression, Coded, CodedRuns
from overclaim.audit.encoding.features import Features
from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.pipeline import weak_claims
from overclaim.audit.pipeline.mechanism_stages import MechanismAudit
from overclaim.audit.pipeline.pilot import Pilot
from overclaim.audit.play.data import DataPair
from overclaim.audit.statistics.coupling import TREND_RUNS, CoupledTails, in_tail
from overclaim.audit.statistics.event_choice import (
    Certification,
    Odds,
    PilotScores,
    choose,
    choose_by_trend,
    predicted_bound,
)
from overclaim.audit.statistics.events import Event
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
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


def test_what_learns_what_chooses_and_what_certifies_share_no_draw():
    audit = audit_of("laplace", 0.1, 1_000_000)
    shown = {}

    def keep(data, draws, runs):
        outputs = audit.mechanism(data, draws, runs)
        _, stage, _, part, _ = draws.key
        known = stage, part % 2**31  # the second world's draws go on where the first's are
        shown.setdefault(known, []).append(outputs - data[0])
        return outputs

    keep.batched = True
    other = MechanismAudit(mechanism=keep, claim=audit.claim, budget=audit.budget)
    choice, spent = other.choose([DataPair([0], [1])])
    other.counter(choice)((0, 8192))
    assert spent == 240_000
    assert weak_claims.is_weak(audit)
    parts = [set(np.round(np.concatenate(noise), 9).tolist()) for noise in shown.values()]
    assert [len(part) for part in parts] == [30_000, 90_000, 8192]  # both worlds have the same draws but in the last
    assert not any(one & another for one, another in itertools.combinations(parts, 2))


@pytest.mark.slow(reason="many runs")
def test_the_last_pairs_are_compared_by_many_runs_which_are_counted_once():
    """The maximum of noisy answers, released: pairs 5 and 6 of 8, all answers moved alike, are worth 1.6 others."""
    specimen = zoo()["mechanisms/noisy-max-3"]
    mechanism, played = specimen.build(0.1), {}

    def keep(data, draws, runs):
        played[draws.key, tuple(data)] = runs
        return mechanism(data, draws, runs)

    keep.batched = True
    audit = MechanismAudit(mechanism=keep, claim=Claim(epsilon=0.1), budget=Budget(1_000_000, 3, 0.9))
    choice, spent = audit.choose([DataPair(*pair) for pair in specimen.pairs])
    assert choice.index in {5, 6}
    assert spent == sum(played.values())
    race = {data for (_, _, _, part, _), data in played if part == 1}
    assert 3 <= len(race) <= 5  # the inputs of four pairs at most, and no fewer than those of two


@pytest.mark.slow(reason="240,000 runs, twice")
def test_the_choice_does_not_depend_on_the_number_of_processes():
    audit = audit_of("numerical-svt", 0.1, 1_000_000)
    pair = DataPair([1] * 10, [2] * 5 + [0] * 5)
    alone, together = (replace(audit, execution=Execution(jobs=jobs)).choose([pair]) for jobs in (1, 2))
    assert alone[0].key == together[0].key
    assert alone[1] == together[1] == 240_000


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="pilots of large audits")
@pytest.mark.parametrize("seed", [20, 29])
def test_pairs_do_not_race_by_the_luck_of_a_tail(seed):
    """A regression's rarest scores promised .61 of a pair where .498 is true: another one is worth .597.

    By the tails alone 2 of 18 seeds went wrong.
    """
    audit = audit_of("one-time-rappor", 0.1, 20_000_000, seed)
    pairs = [DataPair([1], [2]), DataPair([1], [0])]
    choice = weak_claims._Choosing(audit, audit.mechanism)
    assert choice._search(Pilot(audit, audit.mechanism, pairs, 0)) == 1


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="pilots of large audits")
@pytest.mark.parametrize("seed", [3420, 3422, 3428])
def test_pairs_do_not_race_by_what_log_odds_say_of_rare_runs(seed):
    """The pairs 5 and 6 of svt3 are worth .327, others .258 at most.

    With the trend around their log odds, rare runs promised .25 of either, and 15 of 30 seeds took one of the others;
    by smoothed rates 9 do.
    """
    audit = audit_of("svt3", 0.1, 20_000_000, seed)
    pairs = [DataPair(*pair) for pair in zoo()["mechanisms/svt3"].pairs]
    choice = weak_claims._Choosing(audit, audit.mechanism)
    assert choice._search(Pilot(audit, audit.mechanism, pairs, 0)) in {5, 6}


@pytest.mark.slow(reason="repeated pilots")
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
            guesses = (
                tails.upper_counts[0][1] + tails.lower_counts[1][0],
                tails.upper_counts[1][1] + tails.lower_counts[0][0],
            )
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
        assert (tails.upper_counts[0][i], tails.upper_counts[1][i]) == (up_left.sum(), up_right.sum())
        assert (tails.lower_counts[0][j], tails.lower_counts[1][j]) == (low_left.sum(), low_right.sum())
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
    certification = Certification(0.0, 0.1, 10**7)

    def penalty(right):
        scores = np.concatenate([noise, right - 1.0])
        hope, promise = (
            predicted_bound(event, PilotScores(scores, doubt=doubt), certification) for doubt in (0.0, 2.5)
        )
        return hope - promise

    assert 0 < 4 * penalty(noise) < penalty(other)
    none = Event(np.nan, np.nan, "guess")
    scores = np.concatenate([noise, noise - 1.0])
    assert predicted_bound(none, PilotScores(scores), certification) == -np.inf


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


def regression_on(columns, draws, step=0.01, least=False):
    features = Features(columns)
    train = features.view(columns).labelled(np.repeat([True, False], draws), coupled=True)
    score = BinnedRegression(step, least).learn(train)
    return lambda fresh: score(features.view(fresh))


@pytest.mark.slow(reason="many columns")
def test_weak_evidence_of_many_columns_is_summed():
    """20 Laplace numbers of scale 20: the score is near the true log ratio, and hardly heeds a column without any."""
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=20.0, size=(21, 40_000))
    shift = np.append(np.ones(20), 0.0)[:, None]
    score = regression_on(np.concatenate([noise, noise + shift], axis=1), 40_000)
    fresh = rng.laplace(scale=20.0, size=(21, 20_000))
    true = (np.abs(fresh[:20] - 1) - np.abs(fresh[:20])).sum(axis=0) / 20.0
    assert np.corrcoef(score(fresh), true)[0, 1] > 0.93
    moved = fresh.copy()
    moved[20] += 100.0
    assert np.abs(score(moved) - score(fresh)).mean() < 0.02


def test_patterns_of_special_values_are_counted_together():
    """Which of two columns is nan says nothing alone; that both or none are says all."""
    rng = np.random.default_rng(0)
    left = np.repeat([True, False], 10_000)
    first = np.tile(rng.random(10_000) < 0.5, 2)
    columns = rng.normal(size=(2, 20_000))
    columns[0, first] = np.nan
    columns[1, first == left] = np.nan
    scores = regression_on(columns, 10_000, step=1.0)(columns)
    assert scores[left].min() > 5
    assert scores[~left].max() < -5


def test_the_least_number_counts_with_how_many_special_values_there_are():
    """Sparse vectors that release what they compared: a low number after many answers below."""
    mechanism = zoo()["mechanisms/svt3"].build(0.1)
    ones, twos = (mechanism(data, Draws(0), 100_000) for data in ([1] * 10, [2] * 10))
    score = regression_on(np.concatenate([ones, twos], axis=1), 100_000, least=True)
    low = np.full((10, 2), -np.inf)
    low[:9, 0] = np.nan
    low[[9, 0], [0, 1]] = -10.0  # the last answer, or the first
    late, soon = score(low)
    assert late > soon + 0.3  # nine answers below a threshold that is lower still: 9 / 20 less 1 / 20


@pytest.mark.slow(reason="many runs")
def test_a_regression_on_bins_finds_its_weights_where_some_bins_are_rare():
    """Of 320,000 runs some bins have a handful; the likelihood with the prior is as large as can be all the same."""
    mechanism = zoo()["mechanisms/svt3"].build(0.1)
    columns = np.concatenate([mechanism(data, Draws(0), 160_000) for data in ([1] * 10, [2] * 10)], axis=1)
    left = np.repeat([True, False], 160_000)
    train = Features(columns).view(columns).labelled(left, coupled=True)
    shown = [
        Coded(*part.of(train), part.size, part.ordered) for part in binned_regressions._parts(train, of_least=False)
    ]
    tables = CodedRuns(shown, left).tables(0.1)
    wrong = left - special.expit(sum(part.odds(table) for part, table in zip(shown, tables, strict=True)))
    for part, table in zip(shown, tables, strict=True):
        slope = part.total(wrong) - part.prior() @ table / 0.1**2
        assert (np.abs(slope) < 0.2 * np.sqrt(part.total(np.ones(left.size)) + 10)).all()  # of what chance makes it


def test_the_trend_of_log_odds_chooses_no_event_by_its_luck():
    """Log odds of +-.05 by a coin's side: an event promises at most .05, whatever rare ones show by luck."""
    rng = np.random.default_rng(0)
    size = np.abs(rng.standard_normal(400_000))
    sides = [np.where(rng.random(400_000) < special.expit(sign * 0.05), size, -size) for sign in (1, -1)]
    scores = np.concatenate([0.05 * np.sign(s) + 1e-4 * s for s in sides])
    pilot, certification = PilotScores(scores, odds=Odds.ESTIMATED, doubt=0.1), Certification(0.0, 0.1, 10**8)
    assert choose(pilot, certification).bound > 0.08
    assert 0.04 < choose_by_trend(pilot, certification).bound < 0.055


def test_what_training_has_not_seen_is_scored():
    rng = np.random.default_rng(0)
    left = np.repeat([True, False], 2000)
    columns = np.stack([rng.integers(0, 3, 4000) + left, rng.integers(0, 2, 4000)]).astype(float)
    shown = regression_on(columns, 2000, step=0.1)(np.array([[0.0, 7.0, np.nan], [0.0, 7.0, np.inf]]))
    assert np.isfinite(shown).all()
    assert shown[0] != 0


def test_the_trend_of_a_tail_tells_what_rarer_events_will_show():
    """The maximum of five one-sided numbers, 2e6 runs: wrong guesses go to 0 faster than right ones."""
    rng = np.random.default_rng(0)
    largest = -20 * np.log1p(-(rng.random(2_000_000) ** 0.2))
    grid = np.arange(0.5, 20.0, 0.5)
    right, wrong = (np.searchsorted(np.sort(largest), grid - shift).astype(float) for shift in (0.0, 1.0))
    expected = in_tail(right, wrong)
    assert np.array_equal(np.isnan(expected), wrong >= TREND_RUNS)
    rare = np.flatnonzero(~np.isnan(expected) & (right > 0))
    true = 2_000_000 * -(np.expm1(-np.maximum(grid - 1.0, 0) / 20) ** 5)
    # Cautious: never below the truth by more than its own noise, and well below what a constant ratio would say.
    assert (expected[rare] > 0.9 * true[rare]).all()
    start = np.flatnonzero(np.isnan(expected))[0]
    constant = wrong[start] / right[start] * right[rare]
    assert expected[rare[0]] < 0.6 * constant[0]
    assert np.isnan(in_tail(np.array([5.0, 3.0]), np.array([4.0, 2.0]))).all()
    assert np.isnan(in_tail(np.array([0.0, 0.0]), np.array([300.0, 150.0]))).all()


def test_the_best_of_many_rare_events_is_not_taken_for_its_luck():
    """Laplace's ratio of .2 is that of every event: frequent ones certify it. By counts rare ones promise up to .28.

    12 pilots of 90,000 draws, of which a third differ on purpose, as where the worlds share some draws alone.
    """
    certification = Certification(0.0, 0.05, 1_000_000)
    shares, by_counts = [], []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        left, fresh = rng.laplace(scale=5.0, size=(2, 90_000))
        right = np.where(np.arange(90_000) % 3 > 0, left, fresh) - 1.0
        scores = np.concatenate([left, right])
        for rates, (event, _) in (
            (shares, choose_by_trend(PilotScores(scores), certification)),
            (by_counts, choose(PilotScores(scores, doubt=0.5), certification)),
        ):
            rates.append(np.mean((scores >= event.upper) | (scores <= event.lower)))
    assert min(shares) > 0.15
    assert np.sum(np.array(by_counts) < 0.02) >= 6


def test_a_rare_event_is_taken_where_its_tail_says_ever_more():
    """Minus the maximum of five one-sided numbers: of 800,000 draws the best 8 say most, 2.4, and 23 say 2."""
    rng = np.random.default_rng(0)
    largest = -20 * np.log1p(-(rng.random(800_000) ** 0.2))
    scores = -np.concatenate([largest, largest + 1.0])
    event, worth = choose_by_trend(PilotScores(scores), Certification(0.0, 0.1, 20_000_000))
    assert event.direction == "left"
    assert 4 < np.sum(scores >= event.upper) < 15
    assert 1.0 < worth < 2.6


def test_a_step_in_the_middle_of_weak_numbers_is_found_where_neighbours_are_alike():
    """Laplace noise of scale 60 tells the worlds apart by its side alone: a step of 1/30 in one bin of 48."""
    rng = np.random.default_rng(0)
    noise = rng.laplace(scale=60.0, size=(4, 50_000))
    score = regression_on(np.concatenate([noise, noise + 2.0], axis=1), 50_000, step=0.001)
    middle = np.tile([-30.0, 30.0], (4, 1))  # near the step
    low, high = score(middle)
    assert low - high > 0.8 * 4 * 2 * 2 / 60
