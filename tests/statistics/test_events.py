"""Events: what they name, how they are chosen, counted and certified."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from overclaim.audit.statistics import event_rule
from overclaim.audit.statistics.bounds import intervals, joint_bound
from overclaim.audit.statistics.bounds.joint_cover import COARSE
from overclaim.audit.statistics.bounds.variational import SPREAD, StepFunction
from overclaim.audit.statistics.event_rule import choose_by_labels
from overclaim.audit.statistics.events import UNUSED, Counts, Event, bound_of, bounds_of, certify, count
from overclaim.audit.statistics.graded_bets import Stakes
from overclaim.tests.support.refusals import refusals

LAW = settings(derandomize=True, deadline=None, database=None, max_examples=60)
numbers = st.integers(0, 10**6)
many_counts = st.builds(Counts, numbers, numbers, numbers, numbers, numbers, numbers)


def laplace(rng, runs, epsilon=1.0):
    left = rng.random(runs) < 0.5
    return rng.laplace(size=runs) / epsilon + left, left


def test_what_an_event_names():
    scores = np.array([-math.inf, 0.0, 1.0, 2.0, math.inf, math.nan])
    left = np.array([True, False, True, False, True, True])
    both = count(Event(0.0, 2.0, "guess"), scores, left)
    assert Event(0.0, 2.0, "guess").sides(scores).tolist() == [-1, -1, 0, 1, 1, 0]
    assert Event(0.0, 2.0, "guess").sides(scores).dtype == np.int8
    assert both == Counts(6, 4, left_upper=1, right_upper=1, left_lower=1, right_lower=1)
    assert (both.right, both.guesses, both.runs_right) == (2, 4, 2)
    # An infinite threshold is a threshold; an unused side is nan and names nothing, not even an infinite
    # score.
    assert count(Event(UNUSED, math.inf, "joint"), scores, left).guesses == 1
    assert count(Event(-math.inf, UNUSED, "guess"), scores, left) == Counts(6, 4, left_lower=1)
    assert count(Event(UNUSED, UNUSED, "guess"), scores, left).guesses == 0


def test_equal_events_are_equal_also_with_an_unused_side():
    assert Event(UNUSED, 1.0, "joint") == Event(float("nan"), 1.0, "joint")
    assert hash(Event(UNUSED, 1.0, "joint")) == hash(Event(float("nan"), 1.0, "joint"))
    assert Event(UNUSED, 1.0, "joint") != Event(UNUSED, 1.0, "guess")
    directions = [Event(*sides, "guess").direction for sides in ((0, 1), (UNUSED, 1), (0, UNUSED), (UNUSED,) * 2)]
    assert directions == ["both", "left", "right", "none"]


@given(many_counts, many_counts, many_counts)
@LAW
def test_counts_sum_in_any_order(a, b, c):
    assert a + b == b + a
    assert (a + b) + c == a + (b + c)
    assert a + Counts() == a
    assert (a + b).right == a.right + b.right
    assert (a + b).guesses == a.guesses + b.guesses


def test_tallies_add_up_step_by_step_and_one_alone_stays():
    one, other = Counts(5, 2, tally=(1, 2, 3, 4)), Counts(7, 3, 1, tally=(10, 20, 30, 40))
    assert one + other == Counts(12, 5, 1, tally=(11, 22, 33, 44))
    assert one + Counts(runs=1) == Counts(6, 2, tally=(1, 2, 3, 4)) == Counts(runs=1) + one
    assert (one + other).tallies == ((11, 22), (33, 44))
    with pytest.raises(ValueError, match="shorter"):
        one + Counts(tally=(1, 2))


def test_a_function_counts_its_steps_too():
    steps = StepFunction((0.0, 1.0), (0.0, 1.0, 2.0))
    scores, left = np.array([-1.0, 0.5, 0.5, 2.0, 2.0]), np.array([True, True, False, False, False])
    assert count(Event(UNUSED, 1.0, "variational", function=steps), scores, left) == Counts(
        5, 2, right_upper=2, tally=(1, 1, 0, 0, 1, 2)
    )


@pytest.mark.parametrize("tally", [(), (3, 4)])
def test_counts_and_events_are_those_that_were_written(tally):
    counts = Counts(300, 160, 90, 20, 15, 75, tally)
    written = counts.to_json()
    assert Counts.of_json(json.loads(json.dumps(written))) == counts
    assert Counts.of_numbers(counts.numbers) == counts
    assert (written["right"], written["guesses"]) == (165, 200)
    assert ("tally" in written) == bool(tally)
    steps = StepFunction((0.5,), (1.0, 2.0), 2.0, "left", SPREAD, 100)
    stakes = Stakes((0.5, 1.0), (-1, 0, 2))
    for event in (Event(0.0, 1.0, "guess", stakes=stakes), Event(UNUSED, 1.0, "variational", 0.25, steps)):
        again = json.loads(json.dumps(event.to_json()))
        assert Event.of_json(again) == event
        del again["stakes"]  # as ledgers of older versions have it
        assert Event.of_json(again) == replace(event, stakes=None)


def test_counts_of_blocks_sum_to_the_counts_of_all_and_are_plain_integers():
    scores, left = laplace(np.random.default_rng(0), 1000)
    event = Event(-0.1, 1.1, "guess")
    blocks = [count(event, scores[i : i + 128], left[i : i + 128]) for i in range(0, 1000, 128)]
    assert sum(blocks, Counts()) == count(event, scores, left)
    assert all(type(value) is int for value in blocks[0].numbers)
    with pytest.raises(TypeError):
        blocks[0] + 1


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        (Event(0.0, 1.0, "guess"), lambda d: intervals.epsilon_guess(90 + 75, 90 + 20 + 15 + 75, 300, delta=d)),
        # A side in use adds delta/2: the named world is played in half of the runs.
        (Event(UNUSED, 1.0, "guess"), lambda d: intervals.epsilon_guess(90, 110, 300, delta=d / 2)),
        (Event(0.0, UNUSED, "guess"), lambda d: intervals.epsilon_guess(75, 90, 300, delta=d / 2)),
        (Event(UNUSED, 1.0, "joint"), lambda d: joint_bound.epsilon_joint(90, 160, 20, 140, delta=d)),
        (Event(0.0, UNUSED, "joint"), lambda d: joint_bound.epsilon_joint(75, 140, 15, 160, delta=d)),
    ],
)
@pytest.mark.parametrize("delta", [0.0, 0.05])
def test_certificates_are_the_intervals_of_the_counts(event, expected, delta):
    upper, lower = not math.isnan(event.upper), not math.isnan(event.lower)
    counts = Counts(300, 160, 90 * upper, 20 * upper, 15 * lower, 75 * lower)
    certificate = certify(event, counts, delta=delta, alpha=0.05)
    assert certificate.epsilon_lower == expected(delta)
    assert (certificate.method, certificate.delta, certificate.alpha) == (event.method, delta, 0.05)
    assert certificate.counts is counts
    error = 0.05 / (upper + lower)
    sides = [(90, 160, 20, 140)] * upper + [(75, 140, 15, 160)] * lower
    rules = intervals.epsilon_two_interval, intervals.epsilon_two_interval_complement
    best = max(rule(*side, delta=delta, alpha=error) for side in sides for rule in rules)
    assert certificate.two_interval_bound == best > 0
    assert type(certificate.epsilon_lower) is float


def test_a_world_that_was_never_played_certifies_nothing_one_directional():
    counts = Counts(5, 5, left_upper=5)
    certificate = certify(Event(UNUSED, 1.0, "joint"), counts, delta=0.0, alpha=0.05)
    assert (certificate.epsilon_lower, certificate.two_interval_bound) == (0.0, 0.0)


def test_the_pilot_rule_is_the_published_one_on_few_values():
    """The slow twin: every pair of thresholds, the rule written out with loops, guess game only."""
    # A pilot in exact proportions: no side is favoured by luck.
    tallies = {True: (400, 600, 1000, 2000), False: (2000, 1000, 600, 400)}
    scores = np.concatenate([np.repeat(np.arange(4.0), tallies[world]) for world in (True, False)])
    left = np.arange(8000) < 4000
    runs, n = 20_000, scores.size
    worth = {}
    for upper in (0, 1, 2, 3, UNUSED):
        for lower in (0, 1, 2, 3, UNUSED):
            if lower >= upper or (math.isnan(lower) and math.isnan(upper)):
                continue
            counts = count(Event(lower, upper, "guess"), scores, left)
            a, b = counts.right / n, (counts.guesses - counts.right + 1) / (n + 1)
            spread = math.sqrt(1 / a + 1 / b)
            doubt = 1.6448536269514722 / math.sqrt(runs) + 1.5 / math.sqrt(n)
            worth[lower, upper] = math.log(a / b) - spread * doubt
    assert max(worth, key=worth.get) == (0, 3)
    assert choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=runs) == Event(0.0, 3.0, "guess")


@pytest.mark.parametrize(("epsilon", "runs"), [(0.5, 20_000), (1.0, 5000), (1.0, 10**6), (3.0, 10**5)])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_choice_is_nearly_as_good_as_the_best_event(epsilon, runs, delta):
    """The certificate at the expected counts, against that of the thresholds 0 and 1, which are optimal."""
    scores, left = laplace(np.random.default_rng(11), runs // 5, epsilon)
    event = choose_by_labels(scores, left, delta=delta, alpha=0.05, runs=runs)
    chosen, best = (_expected(one, epsilon, runs, delta) for one in (event, Event(0.0, 1.0, "guess")))
    # Twelve seeds measured: the worst lost .05 on 10^6 runs, the mean .01.
    assert chosen > best - 0.06 - 3.0 * math.exp(epsilon / 2) / math.sqrt(runs)


def _expected(event, epsilon, runs, delta):
    grid = (np.arange(runs // 2) + 0.5) / (runs // 2)
    quantiles = np.where(grid < 0.5, np.log(2 * grid), -np.log(2 * (1 - grid))) / epsilon
    scores = np.concatenate([quantiles, quantiles + 1])
    counts = count(event, scores, np.arange(scores.size) >= quantiles.size)
    return certify(event, counts, delta=delta, alpha=0.05).epsilon_lower


def test_a_one_directional_leak_is_certified_jointly():
    rng = np.random.default_rng(1)
    left = rng.random(4000) < 0.5
    scores = (rng.random(4000) < np.where(left, 0.9, 0.3)).astype(float)
    # Here one value is likely in both worlds: only the rare one tells, and it tells one way.
    event = choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=40_000)
    assert event.method == "joint"
    assert event.direction == "right"
    flipped = choose_by_labels(-scores, ~left, delta=0.0, alpha=0.05, runs=40_000)
    assert (flipped.method, flipped.direction) == ("joint", "left")


def test_an_impossible_score_is_the_best_event():
    rng = np.random.default_rng(2)
    left = rng.random(100_000) < 0.5
    scores = np.where(left & (rng.random(left.size) < 2e-3), math.inf, rng.normal(size=left.size))
    event = choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=400_000)
    assert event.upper == math.inf
    assert event.direction == "left"


def test_perfect_separation_names_every_run():
    left = np.arange(400) % 2 == 0
    scores = np.where(left, math.inf, -math.inf)
    event = choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=1000)
    assert event == Event(-math.inf, math.inf, "guess")


def test_nan_scores_are_never_guessed():
    scores, left = laplace(np.random.default_rng(4), 5000)
    hidden = np.arange(5000) % 3 == 0
    event = choose_by_labels(np.where(hidden, math.nan, scores), left, delta=0.0, alpha=0.05, runs=5000)
    assert math.isfinite(event.lower)
    assert math.isfinite(event.upper)
    nothing = choose_by_labels(np.full(10, math.nan), left[:10], delta=0.0, alpha=0.05, runs=100)
    assert nothing.direction == "none"
    assert certify(nothing, count(nothing, scores, left), delta=0.0, alpha=0.05).epsilon_lower == 0.0


@pytest.mark.parametrize("left", [np.ones(20, dtype=bool), np.arange(20) < 1, np.arange(20) % 2 == 0])
@pytest.mark.parametrize("delta", [0.0, 0.3])
def test_poor_pilots_still_give_an_event(left, delta):
    for scores in (np.zeros(20), np.arange(20.0), np.full(20, -math.inf)):
        event = choose_by_labels(scores, left, delta=delta, alpha=0.05, runs=1)
        assert certify(event, count(event, scores, left), delta=delta, alpha=0.05).epsilon_lower >= 0


def test_the_choice_depends_on_the_pilot_as_a_set_only():
    scores, left = laplace(np.random.default_rng(6), 3000)
    order = np.random.default_rng(7).permutation(3000)
    first = choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=10_000)
    assert choose_by_labels(scores[order], left[order], delta=0.0, alpha=0.05, runs=10_000) == first


@pytest.mark.parametrize("ties", [False, True])
def test_a_large_pilot_has_few_candidates(ties):
    """So that choosing is quick: bounds are computed for pairs of them."""
    scores, left = laplace(np.random.default_rng(8), 300_000)
    scores = np.where(np.abs(scores) < 1, 0.25, scores) if ties else scores
    assert 100 < event_rule._candidates(np.sort(scores)).size < 256
    assert choose_by_labels(scores, left, delta=1e-5, alpha=0.05, runs=10**6).method in ("guess", "joint")


test_bad_input_is_named = refusals(
    (lambda: Event(0.0, 1.0, "best"), "method must be 'guess', 'joint' or 'variational', got 'best'"),
    (lambda: Event(0.0, 1.0, "joint"), "exactly one of lower and upper"),
    (lambda: Event(UNUSED, UNUSED, "joint"), "exactly one of lower and upper"),
    (
        lambda: Event(UNUSED, 1.0, "variational"),
        "a variational event, and no other, has a function, got 'variational'",
    ),
    (
        lambda: Event(UNUSED, 1.0, "joint", function=StepFunction((), (1.0,))),
        "a variational event, and no other, has a function, got 'joint'",
    ),
    *(
        (
            lambda method=method, share=share: Event(UNUSED, 1.0, method, share),
            rf"share must be 1/2 in the guess game and in \(0, 1\) otherwise, got {share}",
        )
        for method, share in (("guess", 0.25), ("joint", 0.0), ("joint", 1.0), ("joint", math.nan))
    ),
    (lambda: Event(1.0, 1.0, "guess"), "lower must be below upper, got lower=1.0 and upper=1.0"),
    (lambda: count(Event(0.0, 1.0, "guess"), [1.0], [True, False]), r"equally long.*\(1,\) and \(2,\)"),
    (lambda: count(Event(0.0, 1.0, "guess"), [1.0], [1]), "array of bool, got dtype int64"),
    (lambda: choose_by_labels([], np.zeros(0, bool), delta=0.0, alpha=0.05, runs=1), "at least one pilot run"),
    (lambda: choose_by_labels([1.0], [True], delta=0.0, alpha=0.05, runs=0), "runs must be at least 1"),
    (lambda: choose_by_labels([1.0], [True], delta=1.0, alpha=0.05, runs=1), "delta must be in"),
    (lambda: choose_by_labels([1.0], [True], delta=0.0, alpha=1.0, runs=1), "alpha must be in"),
    (lambda: certify(Event(0.0, 1.0, "guess"), Counts(), delta=0.0, alpha=0.05), "runs must be at least 1"),
)


@pytest.mark.parametrize(
    "event", [Event(-1.0, 1.0, "guess"), Event(UNUSED, 1.0, "joint"), Event(0.0, UNUSED, "joint")]
)
def test_bounds_of_several_counts_are_those_of_each(event):
    parts = [
        Counts(runs=300, runs_left=160, left_upper=90 + i, right_upper=20, left_lower=15, right_lower=75)
        for i in (0, 7, 30)
    ]
    parts += [Counts(), Counts(runs=5, runs_left=5, left_upper=5)] if event.method == "joint" else []
    bounds = bounds_of(event, parts, delta=0.01, alpha=0.05, margins=COARSE)
    assert bounds.tolist() == [bound_of(event, one, delta=0.01, alpha=0.05, margins=COARSE) for one in parts]
    assert bounds[:3].min() > 0
