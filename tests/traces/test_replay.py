"""Replays: leaks around the noise, found in two runs, and none where there is none."""

import gc
import re

import numpy as np
import pytest

from overclaim import Pair
from overclaim.audit.plans.selftest import PAIR
from overclaim.audit.play.data import DataPair
from overclaim.audit.traces.causes import cause
from overclaim.audit.traces.replay import traces
from overclaim.audit.traces.tape import Tape, UntraceableError
from overclaim.audit.traces.upper import tracing
from overclaim.learners import Exp3
from overclaim.learners.conversions.batched import MiniBatch
from overclaim.learners.planted import planted_learners
from overclaim.learners.planted.plants import SUBJECTS, planted
from overclaim.learners.scalar import as_learner
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Laplace

#: Bugs that no trace sees: a call of the right law and input is made, and composition allows five times what is true.
NOT_SEEN = {("report noisy max of five", "value released too")}
BUGS = [(s, bug) for s in SUBJECTS for bug in s.bugs]


@pytest.mark.parametrize(("subject", "bug"), BUGS, ids=lambda x: x if isinstance(x, str) else x.name)
def test_planted_bugs_are_found_in_two_runs_with_their_cause(subject, bug):
    claim = Claim(epsilon=1.0, delta=subject.delta)
    traced = tracing(planted(subject, bug), DataPair(subject.left, subject.right), claim)
    why = cause(traced, claim)
    if traced.leak is None:
        assert traced.pair_upper.epsilon > 1 + 1e-9
        assert why.kind == "calls"
        assert why.place.file.startswith(("learners/planted/planted_", "mechanisms/tree.py", "learners/conversions/"))
        assert why.calibrated_for < why.differs
    else:
        assert why.kind == "leak"
        assert why.text.startswith(("BYPASS: ", "NOT BOUNDED: the trace has lost track at "))


@pytest.mark.parametrize("subject", SUBJECTS, ids=lambda s: s.name)
def test_sound_originals_leak_nothing(subject):
    claim = Claim(epsilon=1.0, delta=subject.delta)
    traced = tracing(planted(subject, ""), DataPair(subject.left, subject.right), claim)
    assert traced.leak is None
    if "noisy max" not in subject.name:  # composition allows more than the place of the largest tells
        assert 0.5 < traced.pair_upper.epsilon <= 1 + 1e-9


@pytest.mark.parametrize(
    "learner", [Exp3(arms=2, eta=1.0, gamma=0.1), MiniBatch(Exp3(arms=2, eta=1.0, gamma=0.1), batch=2)]
)
def test_learners_without_noise_leak_at_the_first_action_that_differs(learner):
    pair = Pair([[1.0, 0.0], [1.0, 0.0], *[[0.0, 0.0]] * 6], [[0.0, 1.0], [1.0, 0.0], *[[0.0, 0.0]] * 6])
    leak = traces(learner, pair)[0].leak
    batch = getattr(learner, "batch", 1)
    assert leak.what == f"action of round {batch + 1}"
    assert 0 < leak.runs <= leak.tried == 256


def test_plain_classes():
    replays = traces(as_learner(planted_learners.SOUND_CLASS, arms=2, rounds=4), PAIR)
    assert not any(one.leak for one in replays)
    assert len(replays[0].calls) == 4
    claim = Claim(epsilon=1.0)
    little = tracing(as_learner(planted_learners.LittleNoise, arms=2, rounds=4), PAIR, claim)
    assert little.leak is None
    assert little.pair_upper.epsilon == pytest.approx(3 * 2 / 0.25)
    once = tracing(as_learner(planted_learners.NoiseOnce, arms=2, rounds=4), PAIR, claim)
    assert once.leak.finding == "a number depends on the inputs beside its noise"
    assert once.leak.lost.file == "learners/planted/planted_learners.py"
    with pytest.raises(UntraceableError, match="draws from elsewhere"):
        traces(as_learner(planted_learners.GlobalGenerator, arms=2, rounds=4), PAIR)


def noise_is_not_watched(data, rng):
    return data + np.log(rng.random()) - np.log(rng.random())


def noise_of_many_forms(data, rng):
    x = rng.laplace(loc=data[0], scale=1.0)
    y = data[1] + 2 * rng.laplace(0, 0.5)
    z = np.array(data, dtype=float) - rng.normal(0, 3.0, 2)
    w = np.float64(data[0]) + rng.standard_normal() * 3.0
    return [x, y, list(z), float(w)]


def test_the_watched_generator_knows_what_noise_is_for():
    replays = traces(noise_of_many_forms, DataPair([0, 0], [1, 0]))
    assert not any(one.leak for one in replays)
    laws = [str(left.law) for left, _ in replays[0].calls]
    assert laws == ["Laplace(scale=1.0)", "Laplace(scale=1.0)", "Gaussian(sigma=3.0)", "Gaussian(sigma=3.0)"]
    moved = [np.abs(left.value - right.value).sum() for left, right in replays[0].calls]
    assert moved == pytest.approx([1, 0, 1, 1])


def test_noise_that_is_not_watched_is_no_leak():
    with pytest.raises(UntraceableError, match=r"draws no noise in a way that is watched.*testing\.laplace"):
        traces(noise_is_not_watched, DataPair(0.0, 1.0))


def test_a_batched_target_without_watched_noise_is_told_what_it_has():
    """It has draws and no generator of one run."""

    def batched(data, draws, runs):
        return data + draws.uniform(runs)

    batched.batched = True
    with pytest.raises(UntraceableError, match=r"watched in these runs.*draws\.noise\(law, shape, value\)"):
        traces(batched, DataPair(0.0, 1.0))


@pytest.mark.parametrize(
    "use", [lambda n: abs(n), lambda n: max(-1.0, n), lambda n: n * n, lambda n: float(np.clip(n, -1, 1))]
)
def test_noise_that_is_changed_before_it_is_added_leaks(use):
    replays = traces(lambda data, rng: data + use(rng.laplace(0, 1)), DataPair(0.0, 1.0))
    assert any(one.leak for one in replays)


def test_scales_and_calls_that_depend_on_the_data_leak():
    def scaled(data, rng):
        return data + rng.laplace(0, 1 + data)

    def skipped(data, rng):
        return data + rng.laplace(0, 1) if data else rng.laplace(0, 1) + rng.laplace(0, 1)

    for mechanism in (scaled, skipped):
        leak = traces(mechanism, DataPair(0.0, 1.0))[0].leak
        assert leak.what.startswith("noisy call ")


def test_nothing_is_recorded_and_nothing_changes_when_nobody_watches():
    law, shape = Laplace(2.0), (3, 100)
    plain = law.sample(shape, Draws(5))
    asked = Draws(5).noise(law, shape, lambda: 1 / 0)  # the value is not even computed
    assert np.array_equal(plain, asked)


def test_batched_targets_that_draw_from_the_generator_are_watched():
    def sums(data, draws, runs):
        return np.array(data, dtype=float)[:, None] + draws.generator.laplace(scale=2.0, size=(len(data), runs))

    def winner(data, draws, runs):
        noise = draws.generator.normal(0.0, 1.0, size=(len(data), runs))
        return (np.array(data)[:, None] + noise).argmax(axis=0)

    sums.batched = winner.batched = True
    traced = tracing(sums, DataPair([1.0, 0.0], [0.0, 0.0]), Claim(epsilon=1.0))
    assert traced.leak is None
    assert traced.pair_upper.epsilon == pytest.approx(0.5)
    assert traces(winner, DataPair([1.0, 0.0], [0.0, 0.0]))[0].leak is None

    def once(data, draws, runs):
        return np.array(data, dtype=float)[:, None] + draws.generator.laplace(scale=2.0) * np.ones(runs)

    once.batched = True
    with pytest.raises(UntraceableError, match=r"must have the shape \(..., runs\)"):
        traces(once, DataPair([1.0, 0.0], [0.0, 0.0]))


def test_what_hangs_on_rounding_is_said_to_perhaps_do_so():
    def cancels(data, draws, runs):
        first = data + draws.noise(Laplace(1e12), (1, runs), data)
        return np.concatenate([(first + i) % 1.0 for i in range(3)])

    cancels.batched = True
    with pytest.raises(UntraceableError, match="hangs on the rounding"):
        traces(cancels, DataPair(0.0, 1.0))


def test_small_numbers_are_no_rounding():
    small = tracing(lambda data, rng: data + rng.laplace(0, 1e-13), DataPair(0.0, 1e-13), Claim(epsilon=1.0))
    assert small.pair_upper.epsilon == pytest.approx(1.0)
    large = tracing(lambda data, rng: data + rng.laplace(0, 1e-6), DataPair(1e6, 1e6 + 1e-6), Claim(epsilon=1.0))
    assert large.pair_upper.epsilon == pytest.approx(1.0, rel=1e-3)


def test_children_of_a_watched_generator_are_watched():
    replays = traces(lambda data, rng: data + rng.spawn(1)[0].laplace(0, 1.0), DataPair(0.0, 1.0))
    assert len(replays[0].calls) == 1
    assert not replays[0].leak


def _late(data, rng):
    output = np.zeros(9) + rng.laplace(size=9)
    output[7] = data
    return output


@pytest.mark.parametrize(
    ("mechanism", "left", "right"),
    [
        (_late, r"\[\.\.\., (\S+), (\S+), \S+, (\S+)\]", r"\[\.\.\., (\S+), (\S+), \S+, (\S+)\]"),
        (lambda data, rng: [rng.laplace(), *[1] * data], "a list of 2 parts", "a list of 1 part"),
        (lambda data, rng: [noise] if (noise := rng.laplace()) and data else None, "a list of 1 part", "None"),
        (lambda data, rng: [rng.laplace(), data], r"\[(\S+), 1\]", r"\[(\S+), 0\]"),
    ],
    ids=["a late number", "lists of two lengths", "no list", "a short list"],
)
def test_what_is_shown_of_outputs_has_what_differs(mechanism, left, right):
    """The first four values were shown, even where a later one differs, and "Size(kind='list', parts=9)" with them."""
    leak = tracing(mechanism, DataPair(1, 0), Claim(epsilon=1.0)).leak
    same = [re.fullmatch(words, shown) for words, shown in ((left, leak.left), (right, leak.right))]
    assert all(same), (leak.left, leak.right)
    assert same[0].groups() == same[1].groups()
    assert leak.left != leak.right


def one_number_for_all(data, rng):
    return list(np.array(data, dtype=float) + rng.laplace(0, 1))


def one_row_for_all(data, rng):
    return (np.array([data, [0, 0]], dtype=float).T + rng.laplace(0, 1, size=2)).tolist()


def added_in_place(data, rng):
    values = np.array(data, dtype=float)
    values += rng.laplace(0, 1)
    return list(values)


def a_multiple_of_it(data, rng):
    noise = rng.laplace(0, 1)
    twice = 2 * noise
    return [data[0] + twice, data[1] + noise]


@pytest.mark.parametrize("mechanism", [one_number_for_all, one_row_for_all, added_in_place, a_multiple_of_it])
def test_noise_that_is_added_to_several_values_hides_one_of_them(mechanism):
    """What the values differ by is released as it is: it was traced as noise of its own for each, at a cost of 1."""
    outcome = tracing(mechanism, DataPair([0, 0], [1, 0]), Claim(epsilon=1.0))
    assert outcome.leak.what == "output"
    assert outcome.leak.runs == outcome.leak.tried == 24


def test_one_number_for_values_that_move_alike_costs_as_much_as_for_one():
    outcome = tracing(one_number_for_all, DataPair([0, 0], [1, 1]), Claim(epsilon=1.0))
    assert outcome.leak is None
    assert outcome.pair_upper.epsilon == 1
    assert "the 1 noisy call is all there is" in outcome.pair_upper.rests_on[1]


def test_noise_that_is_added_in_place_is_noise_for_what_it_is_added_to():
    def own_noise(data, rng):
        values = np.array(data, dtype=float)
        values += rng.laplace(0, 1, size=2)
        values -= rng.normal(0, 2, size=2)
        return list(values)

    outcome = tracing(own_noise, DataPair([0, 0], [1, 1]), Claim(epsilon=1.0))
    assert outcome.leak is None
    assert [call.value.ravel().tolist() for call, _ in outcome.traces[0].calls[:1]] == [[0, 0]]
    assert [call.value.ravel().tolist() for _, call in outcome.traces[0].calls[:1]] == [[1, 1]]


def test_runs_with_more_and_fewer_noisy_calls_are_all_counted():
    """Rejection draws until the number is in the domain: the first run's calls are not those of every run."""

    def rejecting(data, rng):
        while True:
            noisy = data + rng.laplace(scale=1.0)
            if 0 <= noisy <= 1:
                return float(noisy)

    outcome = tracing(rejecting, DataPair(1.0, 0.0), Claim(epsilon=1.0))
    most = max(len(one.calls) for one in outcome.traces)
    assert most > 1
    assert f"the 1 to {most} noisy calls are all there are" in outcome.pair_upper.rests_on[1]
    assert outcome.pair_upper.epsilon == pytest.approx(most)


def test_nothing_of_a_trace_is_kept():
    """Each trace left its tapes, held by arrays of forms: an audit that searched inputs kept half a megabyte."""
    pair, kept = DataPair([1.0, 0.0], [0.0, 0.0]), []
    for _ in range(2):
        assert traces(lambda data, rng: [np.array(data) + rng.laplace(0, 1, 2), rng.normal()], pair, first_alone=True)
        gc.collect()
        kept.append(sum(type(one) is Tape for one in gc.get_objects()))
    assert kept[0] == kept[1]
