"""Scores of canaries: verdicts on sound and broken trainings, what is refused, and error on tight nulls."""

import itertools
import time

import numpy as np
import pytest

from overclaim import GDP, ZCDP, ApproxDP, Claim, Profile, Verdict, audit_scores, falsify
from overclaim.audit.canaries.score_audit import check_fair, p_values
from overclaim.audit.statistics.bounds.score_bounds import fair_coins
from overclaim.audit.statistics.canary_scores import CanaryScores, bound, coins_of, needed, refuted
from overclaim.errors import notes_of

RNG = np.random.default_rng(0)
COINS = RNG.random(2000) < 0.5
GAUSSIAN = 2.0 * COINS + RNG.normal(size=2000)  # 2-GDP
ONE_RUN = {"included": COINS, "design": "one-run"}
SAMPLES = {"inserted": GAUSSIAN[:800][COINS[:800]], "held_out": GAUSSIAN[:800][~COINS[:800]], "design": "independent"}


def test_one_run_falsifies_what_its_scores_refute_and_no_more():
    false = audit_scores(GAUSSIAN, claim=Claim(epsilon=2.0), **ONE_RUN)
    assert false.verdict is Verdict.FALSIFIED
    assert false.lower == false.epsilon_lower > 2.0
    assert false.canaries.p_value < 0.01
    assert false.canaries.assumes[0] == "an independent fair coin for each canary (no fixed number in, no pairs)"
    true = audit_scores(GAUSSIAN, claim=Claim(epsilon=false.lower + 0.01), **ONE_RUN)
    assert true.verdict is Verdict.SURVIVED
    assert true.canaries.p_value > 0.01
    assert str(true).endswith("(99% confidence, 2,000 canaries in one training)")


def test_roc_has_the_rates_of_canaries_above_each_threshold():
    scores, coins = np.array([3.0, 2.0, 2.0, 1.0, 0.0]), np.array([1, 1, 0, 0, 1])
    roc = audit_scores(scores, included=coins, design="independent", claim=Claim(epsilon=1.0)).roc
    assert roc.thresholds.tolist() == [3.0, 2.0, 1.0, 0.0]
    assert roc.true_positive.tolist() == pytest.approx([0, 1 / 3, 2 / 3, 2 / 3, 1])
    assert roc.false_positive.tolist() == pytest.approx([0, 0, 0.5, 1, 1])
    many = audit_scores(GAUSSIAN, claim=Claim(epsilon=1.0), **ONE_RUN).roc
    at = many.thresholds[100]
    assert many.true_positive[101] == np.mean(GAUSSIAN[COINS] >= at)
    assert many.false_positive[101] == np.mean(GAUSSIAN[~COINS] >= at)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("measure", "verdict"),
    [
        (GDP(1.2), Verdict.FALSIFIED),
        (GDP(2.0), Verdict.SURVIVED),
        (Profile([(1.0, 0.1), (2.0, 0.01)]), Verdict.FALSIFIED),
        (ZCDP(0.5), Verdict.FALSIFIED),
        (ApproxDP(1.0, 1e-3), Verdict.FALSIFIED),
        (ApproxDP(1.0, 0.0), Verdict.FALSIFIED),
        (ApproxDP(4.0, 0.0), Verdict.SURVIVED),
    ],
)
def test_independent_scores_certify_any_measure(measure, verdict):
    assert audit_scores(claim=Claim(measure=measure), **SAMPLES).verdict is verdict


def test_one_run_certifies_a_part_of_mu():
    result = audit_scores(GAUSSIAN, claim=Claim(measure=GDP(0.8)), **ONE_RUN)
    assert result.verdict is Verdict.FALSIFIED
    assert result.lower > 0.8
    assert result.epsilon_lower > 2.0


def test_two_forms_of_independent_scores_are_one():
    one = audit_scores(GAUSSIAN[:800], included=COINS[:800], design="independent", claim=Claim(epsilon=1.0))
    assert one.lower == audit_scores(claim=Claim(epsilon=1.0), **SAMPLES).lower


def test_several_trainings_add_up():
    rows = GAUSSIAN.reshape(4, 500), COINS.reshape(4, 500)
    together = audit_scores(rows[0], included=rows[1], design="one-run", claim=Claim(epsilon=1.0))
    assert together.canaries.canaries.trainings == 4
    assert together.lower == audit_scores(GAUSSIAN, claim=Claim(epsilon=1.0), **ONE_RUN).lower
    uneven = audit_scores(
        [GAUSSIAN[:3], GAUSSIAN[3:]], included=[COINS[:3], COINS[3:]], design="one-run", claim=Claim(epsilon=1.0)
    )
    assert uneven.lower == together.lower
    assert str(uneven).endswith("in 2 trainings)")


def test_the_lower_side_that_tells_more_is_said():
    turned = audit_scores(-GAUSSIAN, claim=Claim(epsilon=1.0), **ONE_RUN)
    assert turned.canaries.turned
    assert turned.verdict is Verdict.SURVIVED
    assert not audit_scores(GAUSSIAN, claim=Claim(epsilon=1.0), **ONE_RUN).canaries.turned


def test_exactly_half_is_noticed_in_each_training():
    half = np.arange(100) < 50
    halves = [
        audit_scores(np.arange(100.0), included=c, design="one-run", claim=Claim(epsilon=1.0)).canaries.canaries.halves
        for c in (half, half.reshape(2, 50).ravel(), np.arange(100) < 49)
    ]
    assert halves == [True, True, False]


def test_too_few_canaries_are_underpowered_and_as_many_as_said_are_not():
    few = audit_scores(GAUSSIAN[:100], included=COINS[:100], design="one-run", claim=Claim(epsilon=4.0))
    assert (few.verdict, few.reason) == (Verdict.UNDERPOWERED, "too few runs")
    many = few.canaries.min_canaries
    assert few.why_underpowered == f"too few runs: a perfect attack needs {many:,} canaries"
    perfect = np.arange(many) < many // 2
    enough = audit_scores(perfect, included=perfect, design="one-run", claim=Claim(epsilon=4.0))
    assert enough.verdict is Verdict.FALSIFIED


def test_the_number_that_is_needed_is_found_without_bounds():
    start = time.process_time()
    numbers = [needed("one-run", ApproxDP(8.0, delta), alpha=0.01, excluded_size=30) for delta in (0.0, 1e-5)]
    assert numbers == [21_000, 22_000]
    assert needed("one-run", ApproxDP(20.0, 0.0), alpha=0.01) is None
    assert time.process_time() - start < 0.5  # 4.6 s by a bound for each number


@pytest.mark.parametrize("design", ["one-run", "independent"])
@pytest.mark.parametrize("measure", [ApproxDP(1.0, 0.0), ApproxDP(1.0, 1e-3), GDP(1.0)])
def test_a_claim_is_refuted_where_its_bound_is_above_it(design, measure):
    canaries = CanaryScores.of(design, GAUSSIAN[:400], COINS[:400])
    lower = bound(canaries, measure, alpha=0.01)
    levels = lower * np.array([0.5, 0.99, 1.01, 2.0])
    assert [refuted(canaries, measure.at(level), alpha=0.01) for level in levels] == [True, True, False, False]


@pytest.mark.slow(reason="perfect attacks of up to a million canaries")
def test_one_run_that_certifies_a_part_says_so():
    part = audit_scores(GAUSSIAN[:50], included=COINS[:50], design="one-run", claim=Claim(measure=GDP(6.0)))
    assert part.why_underpowered.startswith("too few runs: one run certifies a part of the level")


@pytest.mark.slow(reason="perfect attacks of up to a million canaries")
def test_more_canaries_may_not_help_where_there_is_a_delta():
    assert needed("one-run", ApproxDP(8.0, 1e-2), alpha=0.01) is None


def test_equal_scores_show_nothing():
    same = audit_scores(np.zeros(2000), claim=Claim(epsilon=1.0), **ONE_RUN)
    assert (same.verdict, same.reason) == (Verdict.UNDERPOWERED, "no difference seen")


def test_scores_with_infinities_and_ties_are_audited():
    scores = np.where(COINS, np.inf, -np.inf)
    result = audit_scores(scores, claim=Claim(epsilon=4.0), **ONE_RUN)
    assert result.verdict is Verdict.FALSIFIED
    assert np.isinf([result.event.lower, result.event.upper]).any()


def test_coins_read_back_from_a_record():
    canaries = CanaryScores.of("one-run", GAUSSIAN[:13], COINS[:13])
    assert coins_of(canaries.to_json()).tolist() == canaries.coins.tolist()


def test_equal_scores_are_ordered_by_a_stream_of_their_own(monkeypatch):
    streams = []

    def recorded(seed):
        streams.append(repr(seed))
        return np.random.Generator(np.random.PCG64(seed))

    monkeypatch.setattr(np.random, "default_rng", recorded)
    CanaryScores.of("independent", np.zeros(100), COINS[:100])
    fair_coins(np.zeros(50), np.zeros(50))
    assert len(streams) == len(set(streams)) == 2


def pairs(count, rng):
    first = rng.random(count) < 0.5
    return np.stack([first, ~first], axis=1)


#: Coins of designs that are none of fair coins, by training, and what names them.
DESIGNS = {
    "pairs": (lambda rng: pairs(1000, rng), "1,000 trainings included half of their canaries"),
    "pairs, one dropped": (
        lambda rng: [*pairs(999, rng), np.array([True])],
        "999 (trainings included half of their canaries|of 999 pairs)",
    ),
    "halves": (
        lambda rng: [rng.permutation(np.arange(40) < 20) for _ in range(12)],
        "12 trainings included half",
    ),
    "nearly halves": (
        lambda rng: [rng.permutation(np.arange(41) < 20) for _ in range(12)],
        "12 trainings included half",
    ),
    "pairs in one training": (lambda rng: [pairs(1000, rng).ravel()], "1,000 of 1,000 pairs of canaries"),
    "pairs in one training, one dropped": (
        lambda rng: [np.delete(pairs(1000, rng).ravel(), 777)],
        "pairs of canaries, in the order given, had one included",
    ),
    "one coin a training": (
        lambda rng: np.repeat(rng.random((60, 1)) < 0.5, 20, axis=1),
        "60 trainings included all or none of their canaries",
    ),
    "unfair": (lambda rng: [rng.random(1000) < 0.7], "canaries were included"),
}


@pytest.mark.parametrize("name", DESIGNS)
def test_coins_that_are_not_fair_coins_each_are_refused(name):
    make, line = DESIGNS[name]
    for seed in range(5):
        with pytest.raises(ValueError, match="these coins were not fair: [^\n]*" + line):
            check_fair([*map(np.asarray, make(np.random.default_rng(seed)))])


def test_fair_coins_are_not_refused_in_any_order_of_the_canaries():
    rng = np.random.default_rng(0)
    for _ in range(200):
        coins = [rng.random(int(size)) < 0.5 for size in rng.integers(1, 60, size=rng.integers(1, 40))]
        check_fair(coins)
        check_fair([np.sort(row) for row in coins])
    check_fair([np.sort(rng.random(100_000) < 0.5)])


@pytest.mark.parametrize("sizes", [(2, 2, 2, 2), (1, 2, 3, 2), (4, 4)])
def test_p_values_of_trainings_hold_by_enumeration(sizes):
    """No p-value is below the probability of what is at least as extreme, over all coins."""
    ends = np.cumsum(sizes)[:-1]
    rows = [np.split(np.array(coins), ends) for coins in itertools.product((False, True), repeat=sum(sizes))]
    for test in range(5):
        p = np.array([p_values(row)[test][1] for row in rows])
        for level in np.unique(p[p < 1]):
            assert np.mean(p <= level) <= level * (1 + 1e-9)


#: What is refused, and its line.
REFUSED = {
    "no design": ({"scores": [1.0, 2.0], "included": [0, 1]}, "design must be said, 'independent' or 'one-run'"),
    "another design": ({"scores": [1.0, 2.0], "included": [0, 1], "design": "x"}, "design must be one of indep"),
    "lengths": ({"scores": [1.0, 2.0], "included": [0], "design": "one-run"}, "for each of 2 scores"),
    "nan": ({"scores": [1.0, np.nan], "included": [0, 1], "design": "one-run"}, "number 2 is nan"),
    "text": ({"scores": ["a", "b"], "included": [0, 1], "design": "one-run"}, "scores must be numbers"),
    "coins": ({"scores": [1.0, 2.0], "included": [0, 2], "design": "one-run"}, "included must be 0 or 1"),
    "no coins": ({"scores": [1.0, 2.0], "design": "one-run"}, "included is missing"),
    "no held-out": ({"scores": [1.0, 2.0], "included": [1, 1], "design": "one-run"}, "there is no held-out one"),
    "no inserted": ({"inserted": [], "held_out": [1.0], "design": "independent"}, "there is no inserted one"),
    "no canary": ({"scores": [], "included": [], "design": "one-run"}, "at least one number"),
    "one sample": ({"inserted": [1.0], "design": "independent"}, "both `inserted` and `held_out`"),
    "both forms": (
        {"scores": [1.0], "held_out": [1.0], "design": "independent"},
        "`included` cannot go with `inserted`",
    ),
    "samples of one run": ({"inserted": [1.0], "held_out": [1.0], "design": "one-run"}, "a coin of its own"),
    "unfair": ({"scores": range(100), "included": [1] * 90 + [0] * 10, "design": "one-run"}, "these coins were not"),
    "trainings": ({"scores": [[1.0]] * 2, "included": [[1]] * 3, "design": "one-run"}, "as many trainings as scores"),
    "ragged": ({"scores": [[1.0], 2.0], "included": [1, 0], "design": "one-run"}, "scores, 2, got 1"),
    "confidence": ({"scores": [1.0, 2.0], "included": [0, 1], "design": "one-run", "confidence": 1.0}, "confidence"),
    "seed": ({"scores": [1.0, 2.0], "included": [0, 1], "design": "one-run", "seed": -1}, "seed must be at least 0"),
    "view": (
        {
            "scores": [1.0, 2.0],
            "included": [0, 1],
            "design": "one-run",
            "claim": Claim(epsilon=1.0, surface="release"),
        },
        'it takes no `surface="release"`',
    ),
    "claim": ({"scores": [1.0, 2.0], "included": [0, 1], "design": "one-run", "claim": 1.0}, "claim must be a Claim"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_bad_input_is_refused_in_one_line(name):
    given, line = REFUSED[name]
    with pytest.raises(ValueError, match=r"^[^\n]*(\nhint: [^\n]*)?$") as error:
        audit_scores(**{"claim": Claim(epsilon=1.0), **given})
    assert line in "; ".join([str(error.value), *notes_of(error.value)])


def sound(included, rng):
    """Release a noisy sum of one-hot gradients: 1-GDP, hence (4.38, 1e-5)-DP."""
    return included + rng.normal(size=included.size)


def broken(included, rng):
    """Broken: the noise has a fifth of its scale."""
    return included + 0.2 * rng.normal(size=included.size)


def test_a_broken_training_is_falsified_and_a_sound_one_is_not():
    claim = Claim(epsilon=4.4, delta=1e-5)
    results = [falsify(one, claim, canaries=600, trainings=2, power=5.0) for one in (sound, broken)]
    assert [result.verdict for result in results] == [Verdict.SURVIVED, Verdict.FALSIFIED]
    assert results[0].canaries.canaries.trainings == 2
