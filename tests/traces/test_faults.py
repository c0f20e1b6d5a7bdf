"""The six kinds of fault that recording found in libraries (arXiv 2602.17454), as minimal mechanisms of epsilon 1.

Each is found in two runs with its place, and certified from below. False alarms of the certificates: 0.01 each, with
the seed fixed.
"""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.play.data import DataPair
from overclaim.audit.traces.causes import cause
from overclaim.audit.traces.libraries import Mapped
from overclaim.audit.traces.parting import _same_law
from overclaim.audit.traces.upper import tracing
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP, gaussian_epsilon
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.one_shot.classic import Exponential
from overclaim.testing import (
    discrete_gaussian,
    discrete_laplace,
    exponential_mechanism,
    gaussian,
    laplace,
    randomised_response,
)

CLAIM = Claim(epsilon=1.0)


def unclipped(data, rng):
    """The sensitivity is that of clipped values, the sum is not."""
    clipped = [min(max(x, 0.0), 1.0) for x in data]
    sensitivity = max(1.0, *clipped)
    return laplace(sum(data), sensitivity, rng)


def public_size(data, rng):
    """The number of records is taken for public."""
    return laplace(sum(data), 1.0, rng) / len(data)


def no_sensitivity(data, rng):
    """With as many components as features the sensitivity becomes 0, and so does the noise."""
    components = features = 2
    sensitivity = float(features - components)
    return [laplace(x, sensitivity, rng) for x in data]


def no_number(data, rng):
    """A value that is no number passes through clip."""
    return laplace(np.clip(np.array(data, dtype=float), 0.0, 1.0).sum(), 1.0, rng)


def spent_twice(data, rng):
    """Two parts of an answer each spend the whole budget."""
    return [laplace(sum(data), 1.0, rng), laplace(sum(data), 1.0, rng)]


def classes_of_the_data(data, rng):
    """The classes to count are those that occur."""
    classes, counts = np.unique(data, return_counts=True)
    return {str(name): float(laplace(count, 1.0, rng)) for name, count in zip(classes, counts, strict=True)}


FAULTS = [
    (unclipped, [3.0, 0.0], [0.0, 0.0], "calls", 3.0),
    (public_size, [0.0] * 2, [0.0], "leak", None),
    (no_sensitivity, [1.0, 0.0], [0.0, 0.0], "leak", None),
    (no_number, ["nan", 0.0], [0.0, 0.0], "calls", np.inf),
    (spent_twice, [1.0], [0.0], "calls", 1.0),
    (classes_of_the_data, ["a", "b"], ["a", "a"], "leak", None),
]


@pytest.mark.parametrize(
    ("mechanism", "left", "right", "kind", "differs"), FAULTS, ids=lambda x: getattr(x, "__name__", "")
)
def test_each_kind_is_found_in_two_runs_and_certified(mechanism, left, right, kind, differs):
    traced = tracing(mechanism, DataPair(left, right), CLAIM)
    why = cause(traced, CLAIM)
    assert why.kind == kind
    if kind == "calls":
        assert traced.pair_upper.epsilon > 1
        assert why.place.file == "tests/traces/test_faults.py"
        assert why.differs == differs
    if mechanism is no_sensitivity:
        assert "laplace at tests/traces/test_faults.py:" in why.text
        assert "has noise of scale 0" in why.text
    result = falsify_mechanism(
        mechanism, CLAIM, left=left, right=right, runs=20_000 if mechanism is public_size else 4000
    )
    assert result.verdict is Verdict.FALSIFIED


def same_in_branches(data, rng):
    if sum(data) > 0.5:
        return sum(data) + rng.laplace(0.0, 1.0)
    return rng.laplace(sum(data), 1.0)


def same_vector_in_branches(data, rng):
    noise = rng.laplace(scale=1.0, size=2) if sum(data) > 0.5 else rng.laplace(0.0, 1.0, size=2)
    return np.full(2, float(sum(data))) + noise


def other_scale(data, rng):
    if sum(data) > 0.5:
        return sum(data) + rng.laplace(0.0, 1.0)
    return sum(data) + rng.laplace(0.0, 2.0)


def other_sign(data, rng):
    if sum(data) > 0.5:
        return sum(data) + rng.laplace(0.0, 1.0)
    return -(sum(data) + rng.laplace(0.0, 1.0))


def other_meaning(data, rng):
    if sum(data) > 0.5:
        return randomised_response(0, 2, 1.0, rng)
    return 5 + randomised_response(1, 2, 1.0, rng)


@pytest.mark.parametrize(("mechanism", "epsilon"), [(same_in_branches, 1.0), (same_vector_in_branches, 2.0)])
def test_branches_that_draw_the_same_law_on_lines_of_their_own_are_no_leak(mechanism, epsilon):
    traced = tracing(mechanism, DataPair([1.0], [0.0]), CLAIM)
    assert traced.leak is None
    assert traced.pair_upper.epsilon == epsilon


@pytest.mark.parametrize("mechanism", [other_scale, other_sign, other_meaning])
def test_branches_that_draw_another_law_or_show_it_otherwise_are_a_leak(mechanism):
    assert tracing(mechanism, DataPair([1.0], [0.0]), CLAIM).leak is not None


def sum_alone(data, rng):
    return laplace(sum(data), 1.0, rng)


def two_sums(data, rng):
    return [sum(data) + rng.laplace(scale=1.0), rng.laplace(sum(data), 1.0)]


def sums_of_runs(data, draws, runs):
    value = np.full((2, runs), float(sum(data)))
    return value + draws.noise(Laplace(1.0), (2, runs), value)


sums_of_runs.batched = True


def normal_sum(data, rng):
    return gaussian(sum(data), 1.0, rng)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("mechanism", [sum_alone, two_sums, sums_of_runs, normal_sum])
@pytest.mark.parametrize(
    ("left", "right"),
    [(0.0, 1e12), (1e12, 0.0), (0.0, 1e17), (0.0, 1e300), (0.0, np.inf), (np.inf, 0.0), (np.inf, -1e9)],
)
def test_what_rounding_takes_from_a_replay_is_no_leak(mechanism, left, right):
    """A replay adds the frozen output less the value to the value: of 1e12 nothing is left of an output near 0."""
    traced = tracing(mechanism, DataPair([left], [right]), CLAIM)
    assert traced.leak is None
    assert cause(traced, CLAIM).kind == "calls"
    if mechanism is sums_of_runs:  # the others' noise is followed, and nothing is added again
        assert not traced.pair_upper.binds
        lost = abs(right) > abs(left)
        assert ("whether anything else differs the replays do not tell" in traced.pair_upper.rests_on[1]) == lost
    elif mechanism is not normal_sum:
        assert traced.pair_upper.epsilon == pytest.approx(abs(right - left) * (1 + (mechanism is two_sums)))


def in_one_line(data, rng):
    return [sum(data) + rng.laplace(scale=1.0), rng.laplace(sum(data), 1.0)]


def test_noise_for_a_value_and_bare_noise_may_stand_in_one_line():
    """By its line the bare noise was taken for noise for 0, and what it was added to for a leak."""
    traced = tracing(in_one_line, DataPair([1.0], [0.0]), CLAIM)
    assert traced.leak is None
    assert traced.pair_upper.epsilon == pytest.approx(2.0)


def test_where_noise_was_used_before_it_met_its_value_the_trace_has_lost_track():
    """The value is as private as it can be; what `float` returns nobody follows."""
    traced = tracing(lambda data, rng: data + float(rng.laplace(scale=1.0)), DataPair(1.0, 0.0), CLAIM)
    assert str(traced.leak.lost).startswith("tests/traces/test_faults.py:")
    other = tracing(lambda data, rng: [data, rng.laplace(data, 1.0)], DataPair(1.0, 0.0), CLAIM)
    assert other.leak.bypass


@pytest.mark.parametrize("left", [0.0, 1.0])
def test_bare_noise_may_name_its_location(left):
    """`loc=0` by its name was noise for 0, and the value beside it a leak; `loc=value` is noise for 0 too."""

    def added(data, rng):
        return data + rng.laplace(loc=0, scale=1.0)

    def located(data, rng):
        return rng.laplace(loc=data, scale=1.0)

    for mechanism in (added, located):
        traced = tracing(mechanism, DataPair(left, 1.0 - left), CLAIM)
        assert traced.leak is None
        assert traced.pair_upper.epsilon == pytest.approx(1.0)


SOUND = [
    (lambda data, rng: laplace(data, 1.0, rng), 1.0),
    (lambda data, rng: laplace([data, 0.0], 2.0, rng), 0.5),
    (lambda data, rng: discrete_laplace(data, Fraction(2), rng), 0.5),
    (lambda data, rng: randomised_response(data, 3, 1.0, rng), 1.0),
    (lambda data, rng: exponential_mechanism([data, 1 - data], 1.0, rng), 0.5),
    (lambda data, rng: gaussian(data, 2.0, rng), gaussian_epsilon(0.5, 0.01)),
]


@pytest.mark.parametrize("index", range(len(SOUND)))
def test_primitives_cost_what_they_claim(index):
    mechanism, expected = SOUND[index]
    claim = Claim(epsilon=1.0, delta=0.01 if index == 5 else 0.0)
    traced = tracing(mechanism, DataPair(0, 1), claim)
    assert traced.leak is None
    assert traced.pair_upper.epsilon == pytest.approx(expected, abs=1e-9)
    assert all(not one.leak for one in traced.traces)


def test_discrete_gaussian_noise():
    """10,000 draws: mean and variance are within 5 standard errors (false alarm below 1e-6 each)."""
    rng = np.random.default_rng(3)
    drawn = discrete_gaussian(np.zeros(10_000, dtype=int), 3, rng)
    assert drawn.dtype.kind == "i"
    assert abs(drawn.mean()) < 5 * 3 / 100
    assert abs(drawn.var() / 9 - 1) < 5 * np.sqrt(2 / 10_000)
    traced = tracing(lambda data, rng: discrete_gaussian(data, 3, rng), DataPair(0, 1), Claim(epsilon=1.0, delta=0.01))
    assert traced.pair_upper.epsilon > 0
    assert isinstance(discrete_gaussian(4, 3, rng), int)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda rng: laplace(1.0, -1.0, rng), "scale must be finite and at least 0, got -1.0"),
        (lambda rng: gaussian(1.0, float("nan"), rng), "sigma must be finite and at least 0, got nan"),
        (lambda rng: discrete_laplace(0.5, 1, rng), "discrete noise needs integers, got 0.5"),
        (lambda rng: randomised_response(3, 3, 1.0, rng), "category must be in 0..categories - 1"),
        (lambda rng: randomised_response(1.5, 3, 1.0, rng), "category must be in 0..categories - 1, .* got 1.5"),
        (lambda rng: randomised_response(1, 3, -1.0, rng), "epsilon must be at least 0, got -1.0"),
        (lambda rng: randomised_response(1, 3, float("inf"), rng), "epsilon must be a finite number, got inf"),
        (lambda rng: exponential_mechanism([1, 2], -1.0, rng), "epsilon must be positive and finite, got -1.0"),
        (lambda rng: exponential_mechanism([1], 1.0, rng, sensitivity=0), "sensitivity must be positive .* got 0"),
        (lambda rng: exponential_mechanism([], 1.0, rng), r"utilities must be a finite number .* got \[\]"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call(np.random.default_rng(0))


def test_a_huge_epsilon_tells_the_truth():
    rng = np.random.default_rng(0)
    assert {randomised_response(1, 3, 1e6, rng) for _ in range(20)} == {1}  # e^1e6 is no number
    assert exponential_mechanism([1.0, 2.0, 3.0], 1e100, rng) == 2


@pytest.mark.parametrize(
    ("measure", "allowed", "words"),
    [
        (GDP(1.0), 0.5, "it costs mu 2"),
        (ZCDP(1.0), 0.5**0.5, "it costs rho 2"),
        (RDP(4.0, 2.0), 0.5, "it costs epsilon 8 at R\u00e9nyi order 4"),
        # The epsilon that rho implies at 1e-5 is more than that of the noise: in it nothing would be wrong.
        (ZCDP(1.9), 0.95**0.5, "it costs rho 2"),
        (ApproxDP(0.0, 0.5), None, "it costs delta 0.6827 at epsilon 0"),
        # At its first point, the largest epsilon, nothing is wrong.
        (Profile(((1.0, 0.6), (0.0, 0.5))), None, "it costs delta 0.6827 at epsilon 0"),
        (Profile(((0.1, 0.1), (1.0, 1e-2))), None, "it costs epsilon 3.808 at delta 0.1"),
    ],
    ids=str,
)
def test_a_cause_is_told_in_the_claims_own_measure(measure, allowed, words):
    """Normal noise of half the sensitivity has mu = 2 and rho = 2."""

    def halved(data, rng):
        return sum(data) + rng.normal(scale=0.5)

    claim = Claim(measure=measure)
    why = cause(tracing(halved, DataPair([1.0], [0.0]), claim), claim)
    assert why.kind == "calls"
    assert words in why.text
    if allowed is not None:
        assert why.calibrated_for == pytest.approx(allowed)
        assert "implies" not in why.text
    enough = Claim(measure=measure.at(3 * measure.level)) if isinstance(measure, GDP | ZCDP) else None
    if enough is not None:
        traced = tracing(halved, DataPair([1.0], [0.0]), enough)
        bounded = replace(traced, pair_upper=replace(traced.pair_upper, how="maximised"))
        sampled = replace(traced, pair_upper=replace(traced.pair_upper, how="sampled"))
        assert cause(bounded, enough).text.startswith("not the noisy calls: ")
        assert "another path" not in cause(bounded, enough).text
        assert cause(sampled, enough).text.startswith("not the noisy calls of the sampled paths: ")
        assert "so another path costs more, the noise has another law" in cause(sampled, enough).text


@pytest.mark.parametrize(
    ("measure", "words"),
    [
        (GDP(0.5), "it costs at most mu 1.233"),  # as randomised response of the same epsilon
        (
            ApproxDP(0.0, 0.2),
            "is enough for 0.4055, and delta 0.2 needs scale 2.466; it costs at most delta 0.4622 at epsilon 0",
        ),
        (Profile(((2.0, 0.1), (0.0, 0.2))), "it costs at most delta 0.4622 at epsilon 0"),
        # At delta 0 it costs 1, and there alone.
        (ApproxDP(0.5, 0.1), "it costs epsilon 0.789"),
        (Profile(((0.5, 0.1),)), "it costs epsilon 0.789"),
    ],
    ids=str,
)
def test_laplace_noise_is_blamed_for_claims_that_it_breaks_in_another_measure(measure, words):
    claim = Claim(measure=measure)
    why = cause(tracing(lambda data, rng: data + rng.laplace(), DataPair(1, 0), claim), claim)
    assert why.kind == "calls"
    assert words in why.text


@pytest.mark.parametrize("measure", [ApproxDP(0.9, 0.1), Profile(((0.9, 0.1),))], ids=str)
def test_noise_that_keeps_a_claim_at_its_delta_is_not_blamed(measure):
    """It was, since the epsilon that it costs at delta 0 is more than the claim's."""
    claim = Claim(measure=measure)
    why = cause(tracing(lambda data, rng: data + rng.laplace(), DataPair(1, 0), claim), claim)
    assert why.kind == "law"
    assert "they cost at most epsilon 0.789" in why.text


class Uniform:
    """Noise of which no cost is known: its delta is half the shift, and no ratio is bounded below that."""

    def sample(self, shape, draws):
        return 2 * draws.uniform(shape)

    def __str__(self):
        return "Uniform"


@pytest.mark.parametrize(
    ("law", "measure", "words"),
    [
        (Uniform(), ApproxDP(1.0), "what Uniform noise costs is not known; it costs no finite epsilon that is known"),
        (Uniform(), ApproxDP(1.0, 0.6), "what Uniform noise costs is not known"),  # private: delta is 0.5
        (Uniform(), ApproxDP(0.0, 0.1), "what Uniform noise costs is not known; it costs at most delta 1"),
        (Uniform(), GDP(1.0), "what Uniform noise costs is not known"),
        (Exponential(2.0), ApproxDP(1.0), "Exponential(scale 2) noise bounds no ratio at delta 0"),
        (Exponential(2.0), ApproxDP(1.0, 0.5), "what Exponential(scale 2) noise costs is not known"),  # delta 0.3935
        (Gaussian(2.0), ApproxDP(1.0), "Gaussian(sigma 2) noise bounds no ratio at delta 0"),
    ],
    ids=str,
)
def test_that_noise_bounds_nothing_is_said_only_where_it_is_known(law, measure, words):
    """Of every law that is not ours, and may be private, it was said that it bounds no ratio."""

    class Noisy:
        batched = True

        def __call__(self, data, draws, runs):
            return data[0] + draws.noise(law, (runs,), np.full(runs, data[0]))

    claim = Claim(measure=measure)
    why = cause(tracing(Noisy(), DataPair([1.0], [0.0]), claim), claim)
    assert words in why.text
    assert (why.calibrated_for is None) == (not isinstance(law, Gaussian))


def test_where_a_measure_has_no_sum_of_two_noises_nothing_else_is_blamed():
    def two(data, rng):
        return data + rng.laplace(scale=2), data + rng.normal(scale=2)

    claim = Claim(measure=RDP(4.0, 0.3))
    why = cause(tracing(two, DataPair(1, 0), claim), claim)
    assert why.kind == "law"
    assert why.text.startswith("not known: with the laws that they name the noisy calls cost at most")
    assert why.text.endswith("what they cost in epsilon at R\u00e9nyi order 4 is not known")


@pytest.mark.parametrize("size", [1e-12, 1e-7, 1.0, 1e7])
def test_a_scale_and_an_output_that_hang_on_the_data_leak_whatever_their_size(size):
    """Below 1e-6 they counted as the same: "at most 0.0000" beside 3.80 that were certified."""

    def scaled(data, rng):
        return data[0] * size + rng.laplace(0.0, (1 + data[1]) * size)

    def beside(data, rng):
        return [rng.laplace(data[0] * size, size), 3 * data[1] * size]

    def sound(data, rng):
        return (data[0] * size + rng.laplace(0.0, size)) / 3 + rng.laplace(0.0, size)

    for mechanism in (scaled, beside):
        assert tracing(mechanism, DataPair([0.0, 1.0], [0.0, 0.0]), CLAIM).leak is not None
    traced = tracing(sound, DataPair([1.0, 1.0], [0.0, 0.0]), CLAIM)
    assert traced.leak is None
    assert traced.pair_upper.epsilon == pytest.approx(1 / 3)  # by the second noise


@pytest.mark.parametrize(
    ("left", "right"),
    [
        (np.inf, 1.0),
        (np.nan, 1.0),
        (1e-9, 2e-9),
        ("a", "b"),
        ({"a": 1, "b": 0}, {"b": 0, "a": 1}),
        ([0.5], [0.5, 0.5]),
        ([], {}),
        ([1, [2]], [1, 2]),
    ],
    ids=str,
)
def test_outputs_that_differ_beside_the_noise_leak(left, right):
    """An infinite one passed for any number; keys in another order were an internal error."""

    def beside(data, rng):
        return [rng.laplace(0.0, 1.0), left if data else right]

    def alone(data, rng):
        return rng.laplace(0.0, 1.0) * 0 or (left if data else right)

    for mechanism in (beside, alone):
        leak = tracing(mechanism, DataPair([1], []), CLAIM).leak
        assert leak.what == "output"
        assert leak.left != leak.right


def test_texts_of_a_batched_mechanism_are_compared():
    def named(data, draws, runs):
        noisy = draws.noise(Laplace(1.0), (runs,), 0.0) + 0.0
        return np.where(noisy > 0, "high", data[0])

    named.batched = True
    assert tracing(named, DataPair(["low"], ["least"]), CLAIM).leak.what == "output"
    assert tracing(named, DataPair(["low"], ["low "]), CLAIM).leak.what == "output"


def test_a_value_without_noise_in_one_world_alone_is_named():
    def sometimes(data, draws, runs):
        for x in data:
            draws.noise(Laplace(0.0), (runs,), x, "bare")
        return draws.noise(Laplace(1.0), (runs,), float(len(data)), "count") + float(len(data))

    sometimes.batched = True
    (traced,) = tracing(sometimes, DataPair([1.0], []), CLAIM).traces
    assert "bare at tests/traces/test_faults.py" in traced.bare


def test_measurements_of_another_map_are_of_another_law():
    """OpenDP's scale shows in its map alone: whatever hung on the data passed for the same noise."""

    def mapped(scale):
        return Mapped("AbsoluteDistance(f64)", "MaxDivergence", lambda distance: distance / scale)

    assert _same_law(mapped(1e-7), mapped(1e-7 * (1 + 1e-12)))
    assert not _same_law(mapped(1e-7), mapped(2e-7))


def rescaled(data, rng):
    return sum(data) + len(data) * rng.laplace(0.0, 3.0 / len(data))


def cut(data, rng):
    noisy = sum(data) + rng.laplace(0.0, 3.0 / len(data))
    return noisy if abs(noisy) < 5.0 else 5.0


def of_size(data, rng):
    return sum(data) + rng.laplace(0.0, 3.0 / len(data))


@pytest.mark.parametrize(("mechanism", "infinite"), [(rescaled, False), (cut, False), (of_size, True)])
def test_a_scale_of_the_data_is_said_as_that_and_infinite_only_where_it_is(mechanism, infinite):
    """What is shown of `rescaled` is 3-Laplace for both inputs, and `cut` shows no tail."""
    outcome = tracing(mechanism, DataPair([1, 1], [1]), CLAIM)
    text = cause(outcome, CLAIM).text
    line = mechanism.__code__.co_firstlineno + 1
    said = f"the noise at tests/traces/test_faults.py:{line} depends on the data: Laplace(scale 1.5) for left, "
    assert text == f"{said}Laplace(scale 3) for right" + ("; pure epsilon is infinite" if infinite else "")


def test_what_the_claim_needs_is_said():
    """A cause named what the noise is enough for, not what would do."""
    text = cause(tracing(lambda data, rng: laplace(sum(data), 0.5, rng), DataPair([1], [0]), CLAIM), CLAIM).text
    assert "Laplace(scale 0.5) is enough for 0.5, and epsilon 1 needs scale 1; it costs epsilon 2" in text
