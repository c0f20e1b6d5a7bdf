"""Auditing mechanisms as black boxes: every form of output, false alarms, power, errors, determinism."""

import json
import math

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.assumptions.independence import check_independence
from overclaim.audit.encoding.features import Features
from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism
from overclaim.audit.pipeline.mechanism_stages import _of_same_left
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.mechanism_runs import run_block
from overclaim.audit.statistics.event_candidates import _doubt
from overclaim.audit.statistics.event_choice import Certification, Odds, PilotScores, choose
from overclaim.audit.statistics.events import bound_of, count
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.errors import notes_of
from overclaim.learners.probes.threshold import Threshold
from overclaim.learners.protocol import LearnerError
from overclaim.learners.scalar import RAISING_CURE
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.one_shot.zoo import zoo

CLAIM = Claim(epsilon=1.0)


def audit(mechanism, *, claim=CLAIM, left=(0,), right=(1,), **options):
    options = {"runs": 4000, "confidence": 0.95} | options
    return falsify_mechanism(mechanism, claim, left=list(left), right=list(right), **options)


def audit_zoo(name, epsilon=1.0, **options):
    specimen = zoo()[f"mechanisms/{name}"]
    mechanism = specimen.build(epsilon)
    return falsify_mechanism(
        mechanism,
        Claim(measure=getattr(mechanism, "measure", None) or ApproxDP(specimen.claimed(epsilon))),
        pairs=specimen.pairs,
        **{"runs": 20_000, "confidence": 0.95} | options,
    )


# Leaks of every form of output: each tells the worlds apart with a log ratio well above 1.


def leaks_none(data, rng):
    return None if data[0] and rng.random() < 0.3 else "answer"


def leaks_category(data, rng):
    return ("red", "green", "blue")[int(rng.integers(0, 3 if data[0] else 2))]


def leaks_in_tuple(data, rng):
    return ("ok", None, (rng.normal(), "b" if rng.random() < 0.1 + 0.8 * data[0] else "a"))


def leaks_length(data, rng):
    return [0.5] * (1 + (rng.random() < 0.05 + 0.9 * data[0]))


def leaks_nan(data, rng):
    return math.nan if data[0] and rng.random() < 0.05 else rng.normal()


def leaks_exact_value(data, rng):
    return 0.25 if not data[0] and rng.random() < 0.05 else rng.normal()


def leaks_order(data, rng):
    x = rng.normal(size=4)
    return np.sort(x) if data[0] and rng.random() < 0.8 else x


def leaks_dictionary(data, rng):
    return {"count": 3, "flag": bool(rng.random() < 0.05 + 0.9 * data[0])}


@pytest.mark.parametrize(
    "mechanism",
    [
        leaks_none,
        leaks_category,
        leaks_in_tuple,
        leaks_length,
        leaks_nan,
        leaks_exact_value,
        leaks_order,
        leaks_dictionary,
    ],
)
def test_leaks_in_every_form_of_output_are_found(mechanism):
    result = audit(mechanism, runs=8000)
    assert result.verdict is Verdict.FALSIFIED, str(result)


def test_constant_outputs_are_no_test():
    result = audit(lambda data, rng: ("always", None, 3), runs=200)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, "no difference seen")
    assert result.epsilon_lower == 0
    assert result.untested


BROKEN = [name.removeprefix("mechanisms/") for name, s in zoo().items() if s.fault and not s.bits]
#: And how often each is audited. With every certificate at an error of .5 those that attain their claim are falsified
#: in 20 of 60 audits or more; `noisy-max-1` in one of 20, and few audits say as much of gross faults as many.
SOUND = {"laplace": 60, "discrete-laplace": 60, "truncated-geometric": 60}
SOUND |= {"noisy-max-1": 20, "noisy-max-2": 20, "noisy-histogram-1": 20}


#: Their leak takes 100,000 runs.
HARD = ("svt3", "svt34-parallel")
#: Those that claim another measure have quick tests in `mechanisms/test_concentrated.py`.
LATER = (
    *HARD,
    "prefix-sum-all",
    *(name for name in BROKEN if hasattr(zoo()[f"mechanisms/{name}"].build(), "measure")),
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if name in LATER else ()) for name in BROKEN]
)
def test_every_broken_twin_is_falsified(name):
    epsilon = zoo()[f"mechanisms/{name}"].epsilon
    result = audit_zoo(name, epsilon, runs=100_000 if name in HARD else 20_000)
    assert result.verdict is Verdict.FALSIFIED, str(result)


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="many audits")
@pytest.mark.parametrize("name", SOUND)
def test_false_alarms(name):
    """Audits of 1000 runs at 95 %; false-alarm probability of each test at most 1e-6."""
    audits = SOUND[name]
    alarms = sum(audit_zoo(name, seed=seed, runs=1000).verdict is Verdict.FALSIFIED for seed in range(audits))
    assert alarms <= stats.binom.isf(1e-6, audits, 0.05)


def test_planted_certification_on_the_pilot_would_be_caught():
    """The bench sees an invalid audit: certifying on the runs that chose the event raises the error far above 5 %."""
    rng, alarms = np.random.default_rng(0), 0
    from overclaim.audit.statistics.events import UNUSED, Event, certify, count

    for _ in range(100):
        left = rng.random(1000) < 0.5
        scores = rng.normal(size=1000)
        events = [Event(UNUSED, upper, "guess") for upper in np.quantile(scores, np.linspace(0.1, 0.99, 30))]
        bounds = [certify(e, count(e, scores, left), delta=0.0, alpha=0.05).epsilon_lower for e in events]
        alarms += max(bounds) > 0
    assert alarms > stats.binom.isf(1e-6, 100, 0.05)


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "least"),
    [("laplace", 0.93), ("laplace-half-scale", 1.85), ("noisy-max-1", 0.85), ("noisy-max-3", 2.0), ("svt6", 2.2)],
)
def test_power_with_the_pair_found_by_search(name, least):
    """One seed, 200,000 runs: a bound 4 or more sd below its usual value, and never above the exact one by chance."""
    assert audit_zoo(name, runs=200_000).epsilon_lower >= least


@pytest.mark.slow(reason="two audits of 40,000 runs")
def test_result_does_not_depend_on_jobs():
    options = {"runs": 40_000, "seed": 3}
    one, two = (audit_zoo("svt6", jobs=jobs, **options) for jobs in (1, 2))
    assert one.certificate == two.certificate
    assert one.event == two.event
    assert one.pair.to_json() == two.pair.to_json()


def test_result_speaks_json():
    result = audit_zoo("laplace", runs=2000)
    assert json.loads(json.dumps(result.pair.to_json()))["left"] in ([1], [0])
    assert "claimed epsilon 1" in str(result)


def test_a_mechanism_that_raises_is_an_error_of_its_own():
    def broken(data, rng):
        raise RuntimeError("no luck")

    with pytest.raises(LearnerError, match="broken raised RuntimeError on \\[0\\]: no luck"):
        audit(broken)


def test_randomness_of_its_own_is_refused():
    with pytest.raises(LearnerError, match="draw from its generator alone"):
        audit(lambda data, rng: np.random.default_rng().normal())


def test_the_mechanism_cannot_change_the_data():
    data = [0, 5]
    falsify_mechanism(lambda d, rng: d.append(1) or len(d), CLAIM, left=data, right=[1, 5], runs=100)
    assert data == [0, 5]


class OfAnotherLibrary:
    """What NumPy cannot read: PyTorch's and CuPy's arrays raise a TypeError on a GPU, those with a gradient this."""

    def __init__(self, values, error):
        self.values, self.error = values, error

    def __array__(self, dtype=None, copy=None):
        raise self.error("not readable")

    def tolist(self):
        return self.values.tolist()


@pytest.mark.few(2)
@pytest.mark.parametrize("error", [TypeError, RuntimeError])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_arrays_that_numpy_cannot_read_are_read_by_their_values(shape, error):
    def plain(data, draws, runs):
        return data + draws.generator.laplace(0, 0.5, (*shape, runs))

    def elsewhere(data, draws, runs):
        return OfAnotherLibrary(plain(data, draws, runs), error)

    plain.batched = elsewhere.batched = True
    numbers = [
        falsify_mechanism(one, Claim(epsilon=1), left=1.0, right=0.0, runs=2000, seed=1).epsilon_lower
        for one in (plain, elsewhere)
    ]
    assert numbers[0] == numbers[1] > 1


def test_batched_output_of_a_wrong_shape_is_refused():
    def wrong(data, draws, runs):
        return np.zeros(runs + 1)

    wrong.batched = True
    with pytest.raises(LearnerError, match=r"must return \(\d+,\)"):
        audit(wrong)


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"left": [object()], "right": [1]}, "the left input cannot be taken: a record cannot hold"),
        ({"left": [math.nan], "right": [math.nan]}, "the two inputs must differ, both are \\[nan\\]"),
        ({"left": [1], "right": [1]}, "the two inputs must differ"),
        ({}, "the two neighbouring inputs are missing"),
        ({"pairs": []}, "no pair of inputs"),
        ({"left": [1], "right": [2], "pairs": [([1], [2])]}, "`left` and `right` cannot go with `pairs`"),
        ({"left": [1], "right": [2], "runs": 5}, "runs must be at least 20"),
        ({"left": [1], "right": [2], "runs": 4000.5}, r"runs must be a whole number, got 4000\.5"),
        ({"left": [1], "right": [2], "runs": "4000"}, "runs must be a whole number, got '4000'"),
        ({"pairs": [(0, 1, 2)]}, r"a pair must be two inputs, \(left, right\), got \(0, 1, 2\)"),
        ({"pairs": [7]}, "a pair must be two inputs"),
        ({"pairs": ["ab"]}, "a pair must be two inputs"),
        ({"pairs": [{0: 1, 2: 3}]}, "a pair must be two inputs"),
        ({"left": [1], "right": [2], "confidence": 1.0}, "confidence must be"),
        ({"left": [1], "right": [2], "seed": -1}, "seed must be"),
        ({"left": [1], "right": [2], "seed": 2**53}, "seed must be below"),
        ({"left": [1], "right": [2], "seed": "1"}, "seed must be a whole number"),
    ],
)
def test_bad_input_is_a_value_error(inputs, message):
    with pytest.raises(ValueError, match=message):
        falsify_mechanism(lambda data, rng: 0, CLAIM, **inputs)


def test_null_is_an_input():
    result = falsify_mechanism(lambda data, rng: (data is None) + rng.laplace(), CLAIM, left=None, right=[1], runs=200)
    assert result.pair.to_json() == {"round": 1, "left": None, "right": [1]}


def test_pair_is_plain():
    pair = DataPair([0], [1])
    assert (pair.difference, pair.to_json()) == ("one round", {"round": 1, "left": [0], "right": [1]})


def test_features_are_finite_whatever_the_outputs():
    columns = np.array([[0.0, np.nan, np.inf, 1.5] * 10, np.arange(40.0), [-np.inf] * 40])
    features = Features(columns)
    assert np.isfinite(features.matrix(features.view(columns))).all()


@pytest.mark.parametrize("categories", [False, True])
def test_runs_that_share_randomness_are_refused(categories):
    """One draw for a whole block beside each run's own: per run (1, 0)-private, but the runs are not independent."""

    class Shared:
        batched = True

        def __call__(self, data, draws, runs):
            rng = draws.generator
            noisy = data[0] + rng.laplace(0, 0.5) + rng.laplace(0, 1, runs)
            return np.where(noisy > 0, "high", "low") if categories else noisy

    with pytest.raises(LearnerError, match="share randomness"):
        falsify_mechanism(Shared(), Claim(epsilon=1.0), left=[0], right=[1], runs=2000)


@pytest.mark.few(8)
@pytest.mark.parametrize("name", list(zoo()))
def test_the_zoo_draws_for_every_run(name):
    """A sound mechanism is refused with probability 1e-9."""
    specimen = zoo()[name]
    left, right = specimen.pairs[0]
    check_independence(specimen.build(), DataPair(left, right), 0)


def test_a_budget_that_choosing_alone_would_spend():
    many = [([0], [i]) for i in range(1, 9)]
    with pytest.raises(
        ValueError,
        match="runs = 60 is too small: choosing among 8 pairs of inputs takes 140 runs\nhint: use `runs=141`",
    ):
        falsify_mechanism(lambda data, rng: data[0] + rng.laplace(), Claim(epsilon=1.0), pairs=many, runs=60)


def test_worlds_of_unequal_length_are_weighed_by_their_rates():
    """By raw counts world P, with nine times the runs, would seem to leak ln 9 at every threshold."""
    left = np.arange(100_000) % 10 > 0
    scores = np.where(np.arange(100_000) % 4 < 2, 1.0, 0.0)  # the same law in both worlds
    event, worth = choose(PilotScores(scores, left, doubt=0.0), Certification(0.0, 0.05, 10**6))
    assert worth < 1e-5, event  # the half run of a prior of jumps
    shifted = scores - np.where(left, 0, np.arange(100_000) // 20 % 2)  # world Q alone shows -1
    event, worth = choose(PilotScores(shifted, left, doubt=0.0), Certification(0.0, 0.05, 10**6))
    assert (event.direction, event.lower) == ("right", -1)
    assert worth > 1


@pytest.mark.parametrize("sides", ["one", "both"])
def test_the_worth_of_an_event_is_what_it_would_certify(sides):
    """Against the log ratio of the rates of the laws, at a pilot without end: 1 / 10^4 is four standard errors."""
    n = 10**6
    rates = {"one": ((0.2, 0.8), (0.1, 0.9)), "both": ((0.2, 0.7, 0.1), (0.1, 0.7, 0.2))}[sides]
    worlds = [np.repeat(np.arange(len(law))[::-1], (np.array(law) * n).round().astype(int)) for law in rates]
    scores, left = np.concatenate(worlds).astype(float), np.arange(2 * n) < n
    event, worth = choose(PilotScores(scores, left, doubt=0.0), Certification(0.0, 0.5, 10**9))
    assert worth == pytest.approx(math.log(2), abs=1e-4)
    assert event.upper == len(rates[0]) - 1


@pytest.mark.parametrize("count", [4, 30, 400])
@pytest.mark.parametrize("errors", [1.2, 2.5])
def test_doubts_are_those_of_counts(count, errors):
    """Against Garwood's exact limits of a Poisson mean, by gamma quantiles, to a tenth of the distance."""
    nothing, variance = np.array(1e-12), np.array(1 / count)
    least = math.log(count / stats.gamma.ppf(stats.norm.sf(errors), count))
    most = math.log(stats.gamma.isf(stats.norm.sf(errors), count) / count)
    assert _doubt(errors, variance, nothing) == pytest.approx(least, rel=0.1)
    assert _doubt(errors, nothing, variance) == pytest.approx(most, rel=0.1)
    assert _doubt(errors, variance, variance) == pytest.approx(math.hypot(least, most), rel=0.1)
    unseen = math.log(stats.gamma.isf(stats.norm.sf(errors), 1))  # of one wrong guess that is added to none
    assert _doubt(errors, nothing, np.array(1.0)) == pytest.approx(unseen, rel=0.1)


def test_where_nothing_promises_anything_a_rare_outcome_is_worth_a_try():
    """4 of 2000 left runs and no right one: too few to promise, and all that there is to hope for."""
    left = np.arange(4000) % 2 == 0
    scores = np.where(np.arange(4000) < 8, np.where(left, 2.0, 0.0), np.arange(4000) // 2 % 2 * 0.01)
    event, worth = choose(PilotScores(scores, left, Odds.ESTIMATED, 1.2), Certification(0.0, 0.05, 16_000))
    assert (event.direction, event.upper) == ("left", 2.0)
    assert worth < 0


def test_runs_of_the_left_world_serve_every_pair_with_the_same_left_input():
    pairs = [DataPair([0], [1]), DataPair([0], [2]), DataPair([3], [4])]
    mechanism = zoo()["mechanisms/laplace"].build()
    samples = {i: [run_block(mechanism, pair, Draws(0, 0, i), 50)] for i, pair in enumerate(pairs)}
    (shared,) = _of_same_left(0, pairs, samples)
    other = samples[1][0]
    assert shared.left.all()
    np.testing.assert_array_equal(shared.outputs, other.outputs[other.left])
    assert _of_same_left(2, pairs, samples) == []


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="other seeds are slow too; it is about power")
@pytest.mark.parametrize("seed", [402, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (404, 406))])
def test_a_large_table_does_not_win_by_the_luck_of_its_outcomes(seed):
    """1024 outcomes, 40 runs of each, and two counts say all: the table promised 3 and certified 2.6 to 2.77.

    A handful of wrong guesses decides a bound, so what counts is the mean of 20 of the event that was chosen.
    """
    result = audit_zoo("svt6", runs=200_000, seed=seed)
    assert result.attack != "table of outcomes"
    mechanism, bounds = zoo()["mechanisms/svt6"].build(1.0), []
    for i in range(20):
        fresh = run_block(
            mechanism, result.pair, Draws(seed + 1, 0, i), result.runs - result.pilot, result.event.share
        )
        counts = count(result.event, result.scorer.score(fresh.outputs), fresh.left)
        bounds.append(bound_of(result.event, counts, delta=0.0, alpha=0.05))
    assert np.mean(bounds) > 2.9


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"losses": "symmetric"}, "no `losses=.symmetric.`"),
        ({"neighbours": "zero-out"}, "no `neighbours=.zero-out.`"),
        ({"neighbours": "user:3"}, "no `neighbours=.user:3.`"),
        ({"surface": "release"}, "no `surface=.release.`"),
    ],
)
@pytest.mark.parametrize("inputs", [{"left": [1], "right": [0]}, {"inputs": {"type": "array"}}])
def test_a_mechanisms_claim_says_nothing_of_a_game(said, words, inputs):
    """It was not heeded: the verdict was on the inputs given, whatever the claim called neighbours."""
    with pytest.raises(ValueError, match=f"the claim is about a mechanism: it takes {words}"):
        falsify_mechanism(lambda data, rng: rng.laplace(), Claim(epsilon=1.0, **said), **inputs)


def with_epsilon(data, epsilon=1.0, rng=None):
    return sum(data) + rng.laplace(scale=1 / epsilon)


def with_state(data, random_state=None):
    return sum(data) + np.random.RandomState(random_state).laplace()


def with_scale(data, scale):
    return sum(data) + np.random.default_rng(0).laplace(scale=scale)


def with_generator(data, generator):
    raise ValueError(f"no mean of {len(data)} numbers")


def broken_by_itself(data, rng=None):
    return sum(data) + rng.laplace("wide")


@pytest.mark.parametrize(
    ("mechanism", "setting", "cure"),
    [
        (with_epsilon, "epsilon", "; give `set=epsilon=VALUE`"),
        (with_scale, "scale", "; give `set=scale=VALUE`"),
        (with_state, "random_state", ""),
        (with_generator, None, ""),
        (broken_by_itself, None, ""),
    ],
)
def test_who_takes_the_generator_for_a_setting_is_told(mechanism, setting, cure):
    """It was told of operands of a division alone, and of a parameter without a default `--raising outcome` was."""
    with pytest.raises(LearnerError, match="raised") as caught:
        audit(mechanism)
    called = f"it is called as mechanism(data, rng), so that its {setting} was the generator{cure}"
    assert notes_of(caught.value) == [called if setting else RAISING_CURE]


def test_a_claim_that_is_none_is_not_the_targets_fault():
    message = r"claim must be a Claim, such as Claim\(epsilon=1.0\), got 1.0"
    with pytest.raises(ValueError, match=message):
        falsify_mechanism(lambda data, rng: 0, 1.0, left=[1], right=[2])
    with pytest.raises(ValueError, match=message):
        falsify(Threshold(arms=2, threshold=0.5), 1.0, rounds=2)
    with pytest.raises(ValueError, match=r"such as Claim\(measure=GDP\(mu=1.0\)\), got GDP"):
        falsify_mechanism(lambda data, rng: 0, GDP(1.0), left=[1], right=[2])
    with pytest.raises(ValueError, match="weaken must be true, false, a parameter's name or a function"):
        falsify(Threshold(arms=2, threshold=0.5), CLAIM, rounds=2, weaken=2.0)


def leaks_by_a_rare_key(data, rng):
    answer = {f"k{i}": float(10 + rng.laplace()) for i in range(6)}
    return answer | ({"z": float(rng.laplace())} if data[0] and rng.random() < 0.05 else {})


def test_a_pilot_that_promises_little_is_doubled():
    # Seeds are fixed: no chance of a false alarm. With a fifth of the runs alone some of these survive.
    found = [audit(leaks_by_a_rare_key, claim=Claim(epsilon=0.5), runs=2000, seed=16100 + i) for i in range(6)]
    assert all(one.verdict is Verdict.FALSIFIED for one in found)
    assert any(one.pilot > 400 for one in found)
    assert all(one.pilot <= 1000 for one in found)


@pytest.mark.slow(reason="its twin on little evidence is quick")
def test_a_pilot_that_promises_enough_is_not_doubled():
    assert audit(lambda data, rng: float(rng.laplace() + data[0]), runs=20_000).pilot == 4000
    assert audit(lambda data, rng: None, runs=300_000).pilot == 60_000, "nor one of many runs"
    assert audit(lambda data, rng: None, runs=400).pilot == 80, "nor where few would be left"
