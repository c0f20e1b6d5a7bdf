"""Graded bets: the mean of one more run by enumeration, exact false alarms, learned stakes at the edge of a claim."""

import json
import math
from itertools import product

import msgspec
import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.events import Counts
from overclaim.audit.statistics.graded_bets import _SHARES, _WEIGHTS, GRADES, SIZES, GradedBets, Stakes, by_grade
from overclaim.audit.statistics.sequential import AnytimeBets, choose_stakes


def extreme_pair(rng, size, epsilon, delta):
    """Two laws that are just (epsilon, delta)-close: ratios at both ends, and mass that each has alone."""
    q = rng.dirichlet(np.ones(size))
    above = np.cumsum(q) < 1 / (1 + math.exp(epsilon)) + rng.normal(0, 0.05)
    p = np.where(above, q * math.exp(epsilon), q)
    short = q[~above].sum()
    p[~above] *= (1 - p[above].sum()) / short
    p, q = np.append(np.append((1 - delta) * p, delta), 0.0), np.append(np.append((1 - delta) * q, 0.0), delta)
    return p, q


def hockey_stick(p, q, epsilon):
    return max(np.maximum(p - math.exp(epsilon) * q, 0).sum(), np.maximum(q - math.exp(epsilon) * p, 0).sum())


def mean_after_one_run(bets, p, q, grades, before, epsilon):
    """The mean of the wealth after one more run, over both labels and all outcomes."""
    right, wrong, runs = before
    mean = 0.0
    for law, left in ((p, True), (q, False)):
        for chance, grade in zip(law, grades, strict=True):
            c, w = (one[0] for one in by_grade(np.array([grade], dtype=np.int8), np.array([left])))
            mean += chance / 2 * math.exp(float(bets.log_wealth(right + c, wrong + w, runs + 1, epsilon)))
    return mean


@pytest.mark.few(3)
@pytest.mark.parametrize("delta", [0.0, 1e-3, 0.1])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_wealth_is_a_supermartingale_whatever_the_grades(epsilon, delta):
    """Enumerated: random grades of all outcomes, laws at the edge of the claim, any runs before."""
    rng, bets, most = np.random.default_rng(0), GradedBets(epsilon, delta), 0.0
    for trial in range(60):
        p, q = extreme_pair(rng, 6, epsilon, delta)
        if hockey_stick(p, q, epsilon) > delta + 1e-12:
            continue
        ratio = np.log((p + 1e-300) / (q + 1e-300))
        # Grades that suit the laws, the greatest risk, in half of the trials; else any.
        grades = np.where(np.abs(ratio) > epsilon / 2, np.sign(ratio), 0) if trial % 2 else rng.integers(-12, 13, 8)
        before = rng.integers(0, 30, GRADES), rng.integers(0, 3, GRADES), 500
        wealth = math.exp(float(bets.log_wealth(*before, epsilon)))
        ratio = mean_after_one_run(bets, p, q, grades, before, epsilon) / wealth
        assert ratio <= 1 + 1e-9
        most = max(most, ratio)
    assert most > 0.9  # the laws are at the edge: less delta and they would be beyond it


def test_who_leaves_delta_out_is_found():
    """The planted bug: bets that do not pay for delta, on what reveals its world with this probability."""
    rng, delta = np.random.default_rng(1), 0.1
    p, q = extreme_pair(rng, 6, 1.0, delta)
    grades = np.where(p > q * 2.7, 1, np.where(q > p * 2.7, -1, 0))
    assert mean_after_one_run(GradedBets(1.0, delta), p, q, grades, (*np.zeros((2, GRADES)), 0), 1.0) <= 1 + 1e-9
    assert mean_after_one_run(GradedBets(1.0, 0.0), p, q, grades, (*np.zeros((2, GRADES)), 0), 1.0) > 1.01


def test_false_alarms_of_two_grades_by_enumeration():
    """Every path of 14 runs, each with stakes of one of two grades or none, at the edge of the claim."""
    epsilon, alpha, bets = 0.3, 0.4, AnytimeBets(0.3, 0.0)
    pi = 1 / (1 + math.exp(-epsilon))
    steps = [(0, 0.45 * pi), (1, 0.45 * (1 - pi)), (2, 0.45 * pi), (3, 0.45 * (1 - pi)), (None, 0.1)]
    alive, alarms = {(0, 0, 0, 0): 1.0}, 0.0
    for run in range(1, 15):
        moved: dict[tuple[int, ...], float] = {}
        for state, mass in alive.items():
            for place, chance in steps:
                after = tuple(n + (i == place) for i, n in enumerate(state))
                moved[after] = moved.get(after, 0.0) + mass * chance
        states = np.array(list(moved))
        graded = np.zeros((2, len(states), GRADES), dtype=int)
        graded[:, :, 0], graded[:, :, 4] = states[:, :2].T, states[:, 2:].T
        guessed = graded.sum(axis=2)
        rich = bets.log_wealth(graded, guessed, np.full(len(states), run), epsilon) >= -math.log(alpha)
        alarms += sum(mass for mass, caught in zip(moved.values(), rich, strict=True) if caught)
        alive = {state: mass for (state, mass), caught in zip(moved.items(), rich, strict=True) if not caught}
    assert 0.05 < alarms <= alpha


#: Stakes that are learned from the very runs they bet on are falsified in 25 % of the audits of a small claim, and in
#: 8 % or fewer of larger ones, which no number of audits would show.
LATER = [(0.2, 0.0, 200), (1.0, 0.0, 60)]


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="many audits; that wealth is a supermartingale is quick")
@pytest.mark.parametrize(
    ("epsilon", "delta", "audits"), [(1.0, 0.01, 60), *(pytest.param(*case, marks=pytest.mark.slow) for case in LATER)]
)
def test_learned_stakes_keep_alpha_on_the_edge(epsilon, delta, audits):
    """Audits of just true claims, alpha = 0.1, stakes learned on the way: too many with probability below 1e-6."""
    rng, alpha = np.random.default_rng(7), 0.1
    most, alarms, staked = int(stats.binom.isf(1e-6, audits, alpha)), 0, 0
    for _ in range(audits):
        bets, stakes = GradedBets(epsilon, delta), Stakes((), (0,))
        graded, x, left = np.zeros((2, GRADES), dtype=int), np.zeros(0), np.zeros(0, dtype=bool)
        for size in (12, 12, 24, 48):
            world = rng.random(size) < 0.5
            fresh = rng.laplace(world.astype(float), 1 / epsilon)
            if delta:
                fresh = np.where(rng.random(size) < delta, np.where(world, 50.0, -50.0), fresh)
            named = stakes.of(fresh)
            by_run = [np.cumsum(side, axis=0) for side in by_grade(named, world)]
            wealth = bets.log_wealth(
                graded[0] + by_run[0], graded[1] + by_run[1], x.size + 1 + np.arange(size), epsilon
            )
            staked += np.count_nonzero(named)
            if wealth.max() >= -math.log(alpha):
                alarms += 1
                break
            graded = graded + np.stack([side[-1] for side in by_run])
            x, left = np.append(x, fresh), np.append(left, world)
            stakes, _ = choose_stakes(x, left, epsilon=epsilon, delta=delta, log_odds=False)
    assert staked > audits  # they bet
    assert alarms <= most


def test_the_stakes_are_kellys():
    """Each grade is the nearest to the stake that makes a gambler rich fastest, found by a scan."""
    epsilon = 0.7
    largest, scan = math.exp(-epsilon), np.linspace(0, 1, 20_001)[:-1]
    stakes = Stakes.of_log_odds(epsilon)
    for odds in (0.75, 0.9, 1.3, 2.0, 4.0):
        r = 1 / (1 + math.exp(-odds))
        growth = r * np.log1p(scan * largest) + (1 - r) * np.log1p(-scan)
        best = scan[np.argmax(growth)]
        grade = int(stakes.of(odds))
        assert abs(math.log2(SIZES[grade - 1] / best)) <= 0.26
        assert int(stakes.of(-odds)) == -grade
        assert Stakes.of_cells([0.0], [-odds, odds], epsilon).grades == (-grade, grade)
    assert [int(stakes.of(odds)) for odds in (0.0, 0.7, -0.6, math.nan)] == [0, 0, 0, 0]
    assert int(stakes.of(math.inf)) == 1


def test_cells_that_bet_alike_are_one_step():
    """Where an edge is too small for the last grade, or none, nothing is staked."""
    epsilon, odds = 0.5, 3.0
    grade = int(Stakes.of_log_odds(epsilon).of(odds))
    assert Stakes.of_cells([0.0, 1.0], [-odds, 0.1, odds], epsilon) == Stakes((0.0, 1.0), (-grade, 0, grade))
    cells = Stakes.of_cells([0.0, 1.0, 2.0, 3.0], [0.0, odds, odds, 0.4, -odds], epsilon)
    assert cells == Stakes((0.0, 2.0, 3.0), (0, grade, 0, -grade))
    # Edges of half a grade around the last one, a little to either side.
    least = [2.0 ** (-x / 2) for x in (GRADES - 1.51, GRADES - 1.49, GRADES - 0.51, GRADES - 0.49)]
    edges = [math.log((edge + math.exp(epsilon)) / (1 - edge)) for edge in least]
    assert [Stakes.of_cells([], [at], epsilon).grades[0] for at in edges] == [GRADES - 1, GRADES, GRADES, 0]


def test_a_score_at_an_edge_is_beyond_it():
    grades = Stakes((-1.0, 2.0), (-3, 0, 5)).of([-1.5, -1.0, 1.9, 2.0, 3.0, math.nan])
    assert grades.dtype == np.int8
    assert grades.tolist() == [-3, 0, 0, 5, 5, 0]


@pytest.mark.parametrize("against", [0.1, 0.6, 1.0, 2.0, 40.0])
def test_the_wealth_is_its_definition(against):
    """Its slow twin: every gambler stakes a share of the largest grade's allowed loss, and pays for delta each run."""
    claimed, delta = 0.6, 0.05
    rng = np.random.default_rng(8)
    right, wrong = rng.integers(0, 4, (2, 3, GRADES)), rng.integers(0, 2, (2, 3, GRADES))
    runs = right.sum(axis=-1) + wrong.sum(axis=-1) + rng.integers(0, 30, (2, 3))
    wealth = GradedBets(claimed, delta).log_wealth(right, wrong, runs, against)
    assert wealth.shape == (2, 3)
    for place in np.ndindex(2, 3):
        total, idle = 0.0, runs[place] - right[place].sum() - wrong[place].sum()
        for share, weight in zip(_SHARES, _WEIGHTS, strict=True):
            stake = share / (math.exp(claimed) + delta)
            if stake * (math.exp(against) + delta) >= 1:
                continue  # more than it has could be lost
            one = (1 - stake * delta) ** idle
            for size, hits, misses in zip(SIZES, right[place], wrong[place], strict=True):
                one *= (1 + stake * (size - delta)) ** hits
                one *= (1 - stake * (size * math.exp(against) + delta)) ** misses
            total += weight * one
        expected = math.log(total) if total else -math.inf
        assert float(wealth[place]) == pytest.approx(expected, rel=1e-12)


def test_stakes_on_scores_of_which_there_are_none():
    stakes, some, none = Stakes((-1.0, 2.0), (-3, 0, 5)), np.array([-2.0, 0.0, 3.0]), np.full(3, math.nan)
    assert stakes.transferred(some, none) == stakes.transferred(none, some) == stakes
    assert Stakes((3.5,), (1, 2)).transferred(some, some).edges == (math.inf,)


def test_stakes_as_json_and_on_other_scores():
    stakes = Stakes((-1.0, 2.0), (-3, 0, 5))
    assert msgspec.convert(json.loads(json.dumps(msgspec.to_builtins(stakes))), Stakes) == stakes
    scores = np.linspace(-4, 4, 81)
    assert np.array_equal(stakes.transferred(scores, 10 * scores + 3).of(10 * scores + 3), stakes.of(scores))
    with pytest.raises(ValueError, match="grades must be 3 numbers"):
        Stakes((0.0, 1.0), (1, 2))


@pytest.mark.parametrize("way", ["side", "scale"])
def test_stakes_are_learned_from_few_runs(way):
    """A shift, and a scale: which both ends of the output show."""
    rng = np.random.default_rng(3)
    left = rng.random(150) < 0.5
    x = np.where(left, *rng.normal(0, 1, (2, 150))) * (np.where(left, 3, 1) if way == "scale" else 1)
    x = x + (2 * left if way == "side" else 0)
    stakes, gain = choose_stakes(x, left, epsilon=0.2, delta=0.0, log_odds=False)
    assert gain > 3
    low, middle, high = (int(stakes.of(at)) for at in (-3.0, 0.0, 4.0))
    assert high > 0
    assert (low > 0 and middle < 0) if way == "scale" else low < 0


def test_an_audit_that_knows_grades_needs_fewer_runs():
    """Odds that differ from outcome to outcome: beside bets on guesses alone, the wealth grows faster."""
    bets, rng = AnytimeBets(0.2, 0.0), np.random.default_rng(4)
    left = rng.random(200) < 0.5
    score = np.where(left, 1, -1) * rng.normal(0.5, 1, 200)
    named = Stakes.of_log_odds(0.2).of(score)
    graded = [side.sum(axis=0) for side in by_grade(named, left)]
    guessed = [int(side.sum()) for side in graded]
    nothing = np.zeros((2, GRADES), dtype=int)
    with_grades, without = (bets.log_wealth(one, guessed, 200, 0.2) for one in (graded, nothing))
    assert with_grades > without + 1


def test_all_steps_are_counted():
    named, left = (np.array(list(side)) for side in zip(*product((-2, 0, 1), (True, False)), strict=True))
    right, wrong = by_grade(named.astype(np.int8), left)
    assert right.sum(axis=0)[:3].tolist() == [1, 1, 0]
    assert wrong.sum(axis=0)[:3].tolist() == [1, 1, 0]
    assert (Counts(tally=(1, 2)) + Counts(tally=(3, 4))).tallies == ((4,), (6,))
