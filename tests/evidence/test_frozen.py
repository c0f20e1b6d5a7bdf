"""Frozen events: written as data, read back, counted again on draws of their own, and comparable by their law."""

import json
import warnings

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.attacks.rules import Intervals, LinearRule, NotFrozenError, Outcomes, Sequences, rule_of, texts_of
from overclaim.audit.evidence.frozen import MIN_RUNS, Frozen, freeze
from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import Transcripts, play
from overclaim.audit.statistics.events import count
from overclaim.learners import BatchedLaplace, Exp3, Threshold
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.view import VIEWS

PAIR = Pair([[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]])
LEARNER = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)


def laplace(data, draws, runs):
    uniform = draws.uniform(runs) - 0.5
    return data - np.sign(uniform) * np.log1p(-2 * np.abs(uniform))


def vectors(data, draws, runs):
    return np.stack([laplace(x, draws, runs) for x in data])


def words(data, rng):
    return {"said": "yes" if rng.random() < (0.7 if data else 0.4) else "no", "more": [1, None]}


laplace.batched = vectors.batched = True


def again(frozen, target, pair, *, runs=20_000, key="x", surface="actions"):
    return frozen.again(target, pair, VIEWS[surface], key=key, runs=runs)


def same_law(one, other):
    """Tell whether the shares of right guesses fit together: wrong with probability 1e-7."""
    table = [[c.right, c.guesses - c.right] for c in (one, other)]
    return stats.fisher_exact(table).pvalue > 1e-7


def frozen_learner(learner=LEARNER, pair=PAIR, **more):
    result = falsify(learner, Claim(epsilon=2.0, **more), pair=pair, runs=8000)
    return freeze(learner, result, budget=8000), result


def frozen_mechanism(mechanism, left, right, **more):
    result = falsify_mechanism(mechanism, Claim(epsilon=3.0), left=left, right=right, runs=8000, **more)
    return freeze(mechanism, result, budget=8000), DataPair(left, right)


def test_few_sequences_are_written_one_by_one_with_the_audits_own_counts():
    frozen, result = frozen_learner()
    assert isinstance(frozen.rule, Sequences)
    assert frozen.counts == result.certificate.counts
    seen = play(LEARNER, PAIR, Draws(5), 4000)
    expected = count(result.event, result.scorer.score(seen), seen.left)
    written = rule_of(json.loads(json.dumps(frozen.rule.to_json()))).sides(seen)
    assert count(result.event, np.where(written == 0, np.nan, written * np.inf), seen.left) == expected
    assert same_law(again(frozen, LEARNER, PAIR), frozen.counts)


def test_many_sequences_releases_and_points_have_a_regression_for_them():
    long = Pair([[1.0, 0.0], *[[0.5, 0.5]] * 14], [[0.0, 1.0], *[[0.5, 0.5]] * 14])
    frozen, _ = frozen_learner(pair=long)
    assert isinstance(frozen.rule, LinearRule)
    released, _ = frozen_learner(surface="release")
    assert isinstance(released.rule, LinearRule)
    for event, pair, surface in ((frozen, long, "actions"), (released, PAIR, "release")):
        assert event.counts.right / event.counts.guesses > 0.53  # it tells the worlds apart
        assert same_law(again(event, LEARNER, pair, surface=surface), event.counts)


def test_an_audit_that_stopped_early_is_counted_afresh():
    """Its own guesses were made by several events, until one time or another."""
    result = falsify(LEARNER, Claim(epsilon=2.0), pair=PAIR, runs=8000, stop="early")
    frozen = freeze(LEARNER, result, budget=8000)
    assert frozen.counts.runs == 8000
    assert same_law(again(frozen, LEARNER, PAIR), frozen.counts)


@pytest.mark.few("0-1-5.0-0")
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("left", "right", "epsilon"), [(1, 0, 1.0), (0, 1, 1.0), (0, 1, 5.0)])
def test_less_noise_shows_in_the_event_of_an_audit_that_stopped_early(left, right, epsilon, seed):
    """The last bettor's event was a far tail, which is hit the less the less noise there is: no regression.

    Nor is its score always larger in the left world. The unchanged mechanism fails with probability 1e-6.
    """

    def noisy(scale):
        def count(data, draws, runs):
            return laplace(0, draws, runs) * scale + data

        count.batched = True
        return count

    inputs = {"left": left, "right": right}
    result = falsify_mechanism(noisy(2.0), Claim(epsilon=epsilon), **inputs, runs=6000, stop="early", seed=seed)
    assert result.certificate.method == "anytime"
    frozen = freeze(noisy(2.0), result, budget=6000)
    tallies = [frozen.counts, *(again(frozen, noisy(s), DataPair(left, right), runs=6000) for s in (2.0, 1.05))]
    then, same, worse = ([c.right, c.guesses - c.right] for c in tallies)
    assert stats.fisher_exact([same, then], alternative="greater").pvalue > 1e-6
    assert stats.fisher_exact([worse, then], alternative="greater").pvalue < 1e-6


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("mechanism", "left", "right", "kind"),
    [(laplace, 0, 1, Intervals), (vectors, [0, 0], [1, 1], LinearRule), (words, 0, 1, Outcomes)],
)
def test_mechanisms(mechanism, left, right, kind):
    frozen, pair = frozen_mechanism(mechanism, left, right)
    assert isinstance(frozen.rule, kind)
    assert frozen.counts.guesses > 100
    read = Frozen.from_json(json.loads(json.dumps(frozen.to_json(), allow_nan=False)))
    counts = again(read, mechanism, pair)
    assert counts == again(frozen, mechanism, pair)
    assert same_law(counts, frozen.counts)


def test_what_a_baseline_calls_an_outcome_is_called_so_still():
    """By another text a frozen event of dictionaries would never be counted again."""
    outputs = [{"b": 2, "a": 1}, {"k": [1.5, "x"], (3, 4): None}]
    size, order = "Size(kind='dict', parts=4)", "Size(kind='list', parts=2), 1, 0"
    assert texts_of(outputs) == [
        f"""[{size}, "'a'", 1, "'b'", 2, {order}]""",
        f"""[{size}, "'k'", Size(kind='list', parts=2), 1.5, 'x', '(3, 4)', None]""",
    ]


def test_the_draws_are_no_others_whatever_the_seed():
    """On the baseline's own draws a learner that did not change has its counts again: Fisher's test needs others."""
    frozen, _ = frozen_learner()
    counts = again(frozen, LEARNER, PAIR, runs=frozen.counts.runs)
    assert counts != frozen.counts
    assert counts == again(frozen, LEARNER, PAIR, runs=frozen.counts.runs)
    assert counts != again(frozen, LEARNER, PAIR, runs=frozen.counts.runs, key="y")
    # The streams themselves, over the seeds that a record may have.
    labels = {seed: Draws(seed, Stage.CERTIFY).labels(64).tobytes() for seed in range(200)}
    assert Draws(7, Stage.COMPARISON).labels(64).tobytes() not in labels.values()
    assert len({int(stage) for stage in Stage.__members__.values()}) == len(Stage.__members__)  # no alias


def test_independent_of_the_baseline_where_the_same_seed_was_not():
    """400 baselines of an unchanged mechanism: correlation of the shares within 4.9 / sqrt(400), wrong 1e-6 of times.

    Planted: counted with the baseline's own draws the correlation is 1.
    """
    rule = Intervals(np.array([0.5]), np.array([1, -1], dtype=np.int8))
    then, now = [], []
    for seed in range(400):
        uniform = laplace(0, Draws(seed), 400)
        baseline = count_of(rule, uniform)
        frozen = Frozen(rule, 0.5, baseline)
        then.append(baseline.right / baseline.guesses)
        counts = again(frozen, laplace, DataPair(0, 1), runs=400)
        now.append(counts.right / counts.guesses)
    assert abs(np.corrcoef(then, now)[0, 1]) < 4.9 / 20
    assert np.corrcoef(then, then)[0, 1] > 0.999


def count_of(rule, outputs):
    from overclaim.audit.evidence.frozen import BY_SIDE

    left = np.arange(outputs.size) % 2 == 0
    return count(BY_SIDE, rule.sides(np.where(left, outputs, outputs + 1)), left)


def test_a_leak_that_grew_shows_in_the_frozen_event():
    frozen, _ = frozen_learner()
    leaky = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=2.0, batch=1)
    counts = again(frozen, leaky, PAIR)
    assert counts.right / counts.guesses > frozen.counts.right / frozen.counts.guesses + 0.05


def test_another_attack_has_the_same_event_counted():
    """An exact law takes the place of counts where `probabilities` are offered; the baseline's event stays."""
    frozen, _ = frozen_learner(Exp3(arms=2, eta=1.0))
    assert same_law(again(frozen, Exp3(arms=2, eta=1.0), PAIR), frozen.counts)


def test_what_cannot_be_written_is_said():
    frozen, _ = frozen_mechanism(laplace, 0, 1)
    with pytest.raises(NotFrozenError, match="another form than the baseline's"):
        again(frozen, vectors, DataPair([0, 0], [1, 1]))
    table, _ = frozen_learner()
    with pytest.raises(NotFrozenError, match="sequences of arms are others"):
        table.rule.sides(Transcripts(np.zeros((3, 5), dtype=np.int8), np.zeros(5, dtype=np.bool_)))


@pytest.mark.parametrize(
    "broken",
    [
        None,
        {},
        {"kind": "none", "reason": "too many columns"},
        {"kind": "wave"},
        {"kind": "sequences", "arms": 2, "batch": 1, "says": "lx"},
        {"kind": "intervals", "cuts": [1.0], "says": "l"},
        {"kind": "intervals", "cuts": [[1.0]], "says": "lr"},
        {"kind": "outcomes", "says": {"a": "q"}},
        {"kind": "linear", "arms": 2, "centre": [0], "spread": [1, 2], "weights": [1, 2], "lower": 0, "upper": 1},
    ],
)
def test_a_broken_rule_is_one_error(broken):
    with pytest.raises(NotFrozenError):
        rule_of(broken)


@pytest.mark.parametrize("change", [{"share": 1.0}, {"share": None}, {"counts": {"runs": 1}}])
def test_broken_counts_are_one_error(change):
    data = {**Frozen(Intervals(np.array([0.5]), np.array([1, 0], dtype=np.int8)), 0.5, frozen_counts()).to_json()}
    assert Frozen.from_json(data).counts == frozen_counts()
    with pytest.raises(NotFrozenError):
        Frozen.from_json({**data, **change})


def frozen_counts():
    from overclaim.audit.statistics.events import Counts

    return Counts(10, 5, 3, 1, 0, 0)


def test_bits_of_a_number_are_too_many_turns():
    def lowest_bit(data, draws, runs):
        bits = draws.generator.integers(2**20, size=runs) * 2 + (draws.uniform(runs) < (0.9 if data else 0.1))
        return bits.astype(float)

    lowest_bit.batched = True
    result = falsify_mechanism(lowest_bit, Claim(epsilon=1.0), left=0, right=1, runs=8000, bits=True)
    with pytest.raises(NotFrozenError, match="reads single bits"):
        freeze(lowest_bit, result, budget=8000)


def huge(data, rng):
    sign = rng.choice([-1.0, 1.0])
    return [1.7e308 * sign * (1 - 1e-3 * rng.random()), 1.5e308 * rng.random(), data + rng.laplace()]


@pytest.mark.slow(reason="an audit of 28,000 calls")
def test_numbers_whose_sums_overflow_are_written_too():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        frozen, pair = frozen_mechanism(huge, 0, 3)
        assert isinstance(frozen.rule, LinearRule)
        assert np.isfinite(frozen.rule.centre).all()
        assert (frozen.rule.spread[:2] > 1e307).all()
        written = json.loads(json.dumps(frozen.to_json(), allow_nan=False))
        counts = again(Frozen.from_json(written), huge, pair)
    named = counts.right_lower / counts.runs_right, counts.left_lower / counts.runs_left
    assert named[0] > 8 * named[1] > 0  # the worlds are 3 scales apart: e^3 = 20 is expected of 1,100 runs


@pytest.mark.parametrize("kind", ["intervals", "outcomes", "sequences"])
def test_an_event_of_other_runs_is_refused(kind):
    """A target may have become a mechanism, or a learner."""
    transcripts = play(LEARNER, PAIR, Draws(0), 4)
    says = np.zeros(4, dtype=np.int8)
    rule, seen = {
        "intervals": (Intervals(np.array([0.0]), says[:2]), transcripts),
        "outcomes": (Outcomes({"a": 1}), transcripts),
        "sequences": (Sequences(2, 1, says), np.zeros(4)),
    }[kind]
    with pytest.raises(NotFrozenError):
        rule.sides(seen)


def test_a_small_budget_counts_few_runs():
    result = falsify(LEARNER, Claim(epsilon=2.0), pair=PAIR, runs=60, stop="early")
    assert freeze(LEARNER, result, budget=60).counts.runs == MIN_RUNS


def test_the_most_telling_event_of_any_scores():
    from overclaim.audit.evidence.frozen import _most_telling

    left = np.arange(2000) % 2 == 0
    for scores in (np.where(left, np.inf, -np.inf), np.where(left, 1.0, np.nan), left * 2.0):
        told = count(_most_telling(scores, left)[0], scores, left)
        assert told.guesses == told.right >= 1000
    rng = np.random.default_rng(0)
    rare = np.where(left & (rng.random(2000) < 0.02), 9.0, 0.0)
    event, _ = _most_telling(rare, left)
    assert (count(event, rare, left).right, count(event, rare, left).guesses) == ((rare == 9).sum(),) * 2
    constant = count(_most_telling(np.zeros(2000), left)[0], np.zeros(2000), left)
    assert constant.guesses == 2000  # some guess is made: without one nothing could be compared
    assert count(_most_telling(np.full(9, np.nan), left[:9])[0], np.full(9, np.nan), left[:9]).guesses == 0
