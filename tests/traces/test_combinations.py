"""Combinations of noise: correct mechanisms are bounded exactly, and their broken twins are named by line."""

import inspect
import json
import math

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from overclaim.audit.play.data import DataPair
from overclaim.audit.traces.causes import level_of_path
from overclaim.audit.traces.forms.least_noise import Row, explained
from overclaim.audit.traces.summary import fields_of
from overclaim.audit.traces.upper import tracing
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.testing import global_random, laplace

BAND = 0.9


class Tree:
    """Noise of running sums: each node of a binary tree has its own, drawn when it starts."""

    def __init__(self, rounds, rng):
        self.rng, self.scale, self.t, self.active = rng, float(rounds.bit_length()), 0, {}
        self.stored = rng.laplace(0, self.scale, size=rounds.bit_length())

    def fresh(self, low):
        return self.rng.laplace(0, self.scale)

    def __call__(self):
        self.t += 1
        low = (self.t & -self.t).bit_length() - 1
        self.active = {level: noise for level, noise in self.active.items() if level > low}
        self.active[low] = self.fresh(low)
        return sum(self.active.values())


class PerLevel(Tree):
    def fresh(self, low):
        return self.stored[low]


def running_sums(data, rng, kind=Tree):
    noise, running, published = kind(len(data), rng), 0.0, []
    for value in data:
        running += value
        published.append(running + noise())  # LINE one_noise_per_level
    return np.array(published)


def one_noise_per_level(data, rng):
    return running_sums(data, rng, PerLevel)


def node_sums(data, rng):
    levels = len(data).bit_length()
    exact, noisy, published = np.zeros(levels), np.zeros(levels), []
    for t, value in enumerate(data, start=1):
        low = (t & -t).bit_length() - 1
        exact[low] = value + exact[:low].sum()
        noisy[low] = exact[low] + rng.laplace(0.0, levels)
        exact[:low] = noisy[:low] = 0.0
        published.append(sum(noisy[k] for k in range(levels) if t >> k & 1))
    return published


def fresh_sums(data, rng):
    return np.cumsum(data) + rng.laplace(0, len(data).bit_length(), size=len(data))


def statistics(data, rng):
    x, y = np.array(data, dtype=float)[:, :2], np.array(data, dtype=float)[:, 2]
    upper = np.triu(rng.normal(0, math.sqrt(2), (2, 2)))
    return x.T @ x, x.T @ y, upper + upper.T - np.diag(np.diag(upper))


def symmetric(data, rng):
    gram, moment, noise = statistics(data, rng)
    return {"V": gram + noise, "u": moment + rng.normal(0, math.sqrt(2), 2)}


def row_used_again(data, rng):
    gram, moment, noise = statistics(data, rng)
    return {"V": gram + noise, "u": moment + noise[0]}  # LINE row_used_again


def symmetric_by_index(data, rng):
    size = len(data)
    noise, upper = np.zeros((size, size)), np.triu_indices(size)
    noise[upper] = rng.normal(0, 1.0, len(upper[0]))
    return np.outer(data, data) + noise + noise.T - np.diag(noise.diagonal())


def banded(data, rng):
    out, previous = np.zeros(len(data)), 0.0
    for t in range(len(data)):
        previous = rng.normal(0, 2.0) - BAND * previous
        out[t] = data[t]
        out[t] += previous
    return out


def factor(size):
    return np.eye(size) + BAND * np.eye(size, k=-1)


def solved(data, rng):
    return np.array(data, dtype=float) + np.linalg.solve(factor(len(data)), rng.normal(0, 2.0, len(data)))


def inverted(data, rng):
    return np.array(data, dtype=float) + np.linalg.inv(factor(len(data))) @ rng.normal(0, 2.0, len(data))


def items(data, rng):
    report = rng.laplace(0.0, 2.0, size=3)
    report[0] += len(data)
    report[1] += sum(age >= 18 for age in data)
    report[2] += 12
    return report


def overwritten(data, rng):
    report = items(data, rng)
    report[0] = float(len(data))  # LINE overwritten
    return report


def swapped(data, rng):
    report = np.zeros(2)
    report[0] = rng.laplace(1.0, len(data))  # LINE swapped
    report[1] = sum(data) + rng.laplace(0, 1.0)
    return report


def views(data, rng):
    out = np.zeros((2, 3))
    row, column = out[0], out[:, 2]
    row += rng.laplace(0, 1.0, 3)
    column += rng.laplace(0, 2.0, 2)
    out[1, 0] = rng.laplace(0, 4.0)
    out[1, 1] = rng.laplace(0, 8.0)
    row[1] += sum(data)
    return np.concatenate([out.reshape(-1)[:4], out[1, 1:]])


def momentum(data, rng):
    weights, mean, seen = np.zeros(2), np.zeros(2), []
    for value in data:
        mean *= 0.5
        mean += np.array([value, 0.0]) + rng.normal(0, 1.0, 2)
        weights -= mean / 10
        seen.append(weights.copy())
    return np.stack(seen)


def clipped(data, rng):
    return np.clip(np.round(sum(data) + rng.laplace(0, 1.0), 1), 0.0, 10.0)


def returned(data, rng):
    noisy = np.array(data, dtype=float) + rng.laplace(0, 1.0, len(data))
    return {"all": [round(float(one), 2) for one in noisy], "first": max(0, noisy[0]), "size": len(data)}


def in_place(data, rng):
    counts = np.bincount(data, minlength=2).astype(float)
    counts += rng.laplace(0, 2.0, size=2)
    counts /= 3
    return counts


def in_place_of_another(data, rng):
    counts = np.bincount(data, minlength=2).astype(float)
    other = counts
    counts += rng.laplace(0, 2.0, size=2)  # LINE in_place_of_another
    return other


def batch(data, draws, runs):
    sums = np.array(data, dtype=float)[:, None] + draws.generator.normal(0.0, 2.0, (len(data), runs))
    return np.stack([sums[0], sums[0] + sums[1]])


batch.batched = True


def from_globals(data, rng):
    with global_random(rng):
        return sum(data) + np.random.laplace(0, 1.0) + np.random.normal(0, 0.0)


def difference(data, rng):
    shared = rng.laplace(0, 1.0)
    return [sum(data) + shared, sum(data) + shared + rng.laplace(0, 1.0), shared - shared]


def shared_unmoved(data, rng):
    shared = rng.laplace(0, 1.0)  # LINE shared_unmoved
    return [sum(data) + shared, shared]


def adaptive(data, rng):
    first = sum(data) + rng.laplace(0, 2.0)
    step = np.maximum(first, 0.0) * 0.5
    return [first, step + sum(data) + rng.laplace(0, 2.0)]


STEP, NONE = [1, 0, 0, 0, 0, 0, 0, 0], [0] * 8
SOUND = [
    (running_sums, STEP, NONE, Claim(epsilon=1.0), 1.0),
    (node_sums, STEP, NONE, Claim(epsilon=1.0), 1.0),
    (fresh_sums, STEP, NONE, Claim(epsilon=1.0), 2.0),
    (symmetric, [[1, 0, 0]], [[0, 1, 0]], Claim(measure=GDP(1.0)), 1.0),
    (symmetric_by_index, [1, 1], [1, 0], Claim(measure=GDP(1.0)), math.sqrt(2)),
    (banded, [1, 1, 0, 0], [0, 0, 0, 0], Claim(measure=GDP(1.0)), math.sqrt(1 + 1.9**2 + 0.81) / 2),
    (solved, [1, 1, 0, 0], [0, 0, 0, 0], Claim(measure=GDP(1.0)), math.sqrt(1 + 1.9**2 + 0.81) / 2),
    (inverted, [1, 1, 0, 0], [0, 0, 0, 0], Claim(measure=GDP(1.0)), math.sqrt(1 + 1.9**2 + 0.81) / 2),
    (items, [30, 40], [30], Claim(epsilon=1.0), 1.0),
    (views, [1], [0], Claim(epsilon=1.0), 1.0),
    (momentum, [1, 0, 0], [0, 0, 0], Claim(measure=GDP(1.0)), 1.0),
    (clipped, [1], [0], Claim(epsilon=1.0), 1.0),
    (returned, [1, 0], [0, 0], Claim(epsilon=1.0), 1.0),
    (in_place, [1, 1], [1, 0], Claim(epsilon=1.0), 1.0),
    (batch, [1, 1], [0, 1], Claim(measure=GDP(1.0)), 0.5),
    (from_globals, [1], [0], Claim(epsilon=1.0), 1.0),
    (difference, [1], [0], Claim(epsilon=1.0), 1.0),
    (adaptive, [1], [0], Claim(epsilon=1.0), 1.0),
]


@pytest.mark.parametrize(
    ("mechanism", "left", "right", "claim", "exact"), SOUND, ids=lambda x: getattr(x, "__name__", "")
)
def test_correct_mechanisms_are_bounded_exactly(mechanism, left, right, claim, exact):
    """Stored, summed, symmetrised and correlated noise was called a leak, and any other mechanism not bounded."""
    outcome = tracing(mechanism, DataPair(left, right), claim)
    assert outcome.leak is None
    assert outcome.pair_upper.how == "maximised"
    level = outcome.pair_upper.epsilon if claim.measure.is_epsilon else level_of_path(outcome, claim.measure)
    assert level == pytest.approx(exact, rel=1e-9)
    fields = fields_of(outcome, claim)
    assert (fields["trace_result"], fields["within_claim"]) == ("BOUNDED", exact <= 1 + 1e-9)


SWAPPED = (
    "the noise at {} depends on the data: Laplace(scale 2) for left, Laplace(scale 1) for right; "
    "pure epsilon is infinite"
)
BROKEN = [
    (one_noise_per_level, STEP, NONE, "output 3 depends on the inputs without noise"),
    (row_used_again, [[1, 0, 0]], [[0, 1, 0]], "output depends on the inputs without noise"),
    (overwritten, [30, 40], [30], "output 1 depends on the inputs without noise"),
    (shared_unmoved, [1], [0], "output 2 depends on the inputs without noise"),
    (
        swapped,
        [30, 40],
        [30],
        SWAPPED,
    ),
]


@pytest.mark.parametrize(("mechanism", "left", "right", "finding"), BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_broken_twins_are_named_by_line(mechanism, left, right, finding):
    leak = tracing(mechanism, DataPair(left, right), Claim(epsilon=1.0)).leak
    lines = inspect.getsource(inspect.getmodule(mechanism)).splitlines()
    assert leak.finding == finding.format(leak.place)
    assert lines[leak.place.line - 1].endswith(f"# LINE {mechanism.__name__}")
    assert leak.bypass == (mechanism is not swapped)
    assert ("are loc and scale swapped?" in leak.hint) == (mechanism is swapped)


@pytest.mark.parametrize(
    ("mechanism", "left", "right", "words"),
    [
        (
            one_noise_per_level,
            STEP,
            NONE,
            "output 3 - output 1 - output 2 carries none: it is -1 for left and 0 for right",
        ),
        (shared_unmoved, [1], [0], "output 2 - output 1 carries none: it is -1 for left and 0 for right"),
        (
            lambda data, rng: [2 * (z := rng.laplace()), sum(data) - z],
            [1],
            [0],
            "output 2 + 0.5 x output 1 carries none",
        ),
    ],
)
def test_a_bypass_says_which_combination_has_no_noise(mechanism, left, right, words):
    assert words in tracing(mechanism, DataPair(left, right), Claim(epsilon=1.0)).leak.hint


def branching(data, rng):
    noisy = sum(data) + rng.laplace(0, 1.0)
    return 0.0 if noisy < 0 else noisy  # LINE branching


def indexing(data, rng):
    return int(np.argmax(np.array(data) + rng.laplace(0, 2.0, len(data))))  # LINE indexing


def converted(data, rng):
    return math.exp(laplace(sum(data), 1.0, rng))  # LINE converted


def scaled(data, rng):
    return (sum(data) + rng.laplace(0, 1.0)) / (1 + sum(data))  # LINE scaled


def other_use(data, rng):
    noisy = sum(data) + rng.laplace(0, 1.0)
    return [noisy, noisy > 0] if sum(data) else [noisy, True]  # LINE other_use


def hidden(data, rng):
    return np.maximum(sum(data) + rng.laplace(0, 1.0), -50.0 * sum(data) - 50.0)  # LINE hidden


def hidden_by_max(data, rng):
    return max(sum(data) + rng.laplace(0, 1.0), -50.0 * sum(data) - 50.0)  # LINE hidden_by_max


def response(data, rng):
    return sum(data) if rng.laplace() > -3 else 1 - sum(data)  # LINE response


LOST = [
    in_place_of_another,
    branching,
    indexing,
    converted,
    scaled,
    other_use,
    hidden,
    hidden_by_max,
    response,
]


@pytest.mark.parametrize("mechanism", LOST)
def test_where_a_trace_loses_track_it_says_so_and_no_more(mechanism):
    """Nothing of these is a bypass, and a sample of their runs bounds nothing."""
    outcome = tracing(mechanism, DataPair([1], [0]), Claim(epsilon=1.0))
    lost = outcome.leak.lost if outcome.leak is not None else outcome.traces[0].escaped.place
    lines = inspect.getsource(inspect.getmodule(mechanism)).splitlines()
    assert lines[lost.line - 1].endswith(f"# LINE {mechanism.__name__}")
    assert fields_of(outcome, Claim(epsilon=1.0))["trace_result"] == "NOT BOUNDED"


def test_the_least_laplace_noise_is_that_of_a_linear_program():
    """z1 + z2, z2 + z3 and z1 - z3 move by 1, 1 and 0: by z2 alone, where least squares move all three."""
    rows = [Row({0: 1.0, 1: 1.0}, 0.0, 1.0), Row({1: 1.0, 2: 1.0}, 0.0, 1.0), Row({0: 1.0, 2: -1.0}, 0.0, 0.0)]
    moved = explained(rows, [Laplace(1.0)] * 3).moved
    assert moved == pytest.approx({0: 0.0, 1: 1.0, 2: 0.0}, abs=1e-12)
    least = explained(rows, [Gaussian(1.0)] * 3).moved
    assert least == pytest.approx({0: 1 / 3, 1: 2 / 3, 2: 1 / 3})
    wrong = explained([*rows, Row({0: 2.0, 1: 1.0, 2: -1.0}, 0.0, 5.0)], [Laplace(1.0)] * 3)
    assert (wrong.unexplained, wrong.rest) == (3, pytest.approx(4.0))  # the first and the third make 1


def test_noise_of_two_kinds_is_used_by_the_kind_that_explains_all():
    """One number with both kinds costs what Laplace noise costs; two numbers, one of each, cost both."""
    both = explained([Row({0: 1.0, 1: 1.0}, 0.0, 1.0)], [Laplace(2.0), Gaussian(1.0)]).moved
    assert both == pytest.approx({0: 1.0, 1: 0.0})
    rows = [Row({0: 1.0}, 0.0, 1.0), Row({0: 1.0, 1: 1.0}, 0.0, 3.0)]
    assert explained(rows, [Laplace(2.0), Gaussian(1.0)]).moved == pytest.approx({0: 1.0, 1: 2.0})


@pytest.mark.slow(reason="a tree of 256 rounds, and random systems")
def test_random_systems_meet_their_closed_forms():
    """mu of A z + s is that of its covariance; Laplace noise of invertible A moves by the solution."""
    rng = np.random.default_rng(7)
    for size in (2, 5, 9):
        matrix, moved = rng.normal(size=(size, size + 2)), rng.normal(size=size)
        rows = [Row(dict(enumerate(row)), 0.0, d) for row, d in zip(matrix.tolist(), moved.tolist(), strict=True)]
        found = explained(rows, [Gaussian(0.5)] * (size + 2)).moved
        exact = moved @ np.linalg.solve(0.25 * matrix @ matrix.T, moved)
        assert sum(x**2 for x in found.values()) / 0.25 == pytest.approx(exact, rel=1e-9)
        square = [Row(dict(enumerate(row[:size])), 0.0, d) for row, d in zip(matrix.tolist(), moved, strict=True)]
        found = explained(square, [Laplace(3.0)] * size).moved
        assert list(found.values()) == pytest.approx(np.linalg.solve(matrix[:, :size], moved).tolist())
    step = [1.0] + [0.0] * 255
    assert tracing(running_sums, DataPair(step, [0.0] * 256), Claim(epsilon=1.0)).pair_upper.epsilon == pytest.approx(
        1.0
    )


def asks_for_its_type(data, rng):
    noisy = sum(data) + rng.laplace(0, 1.0)
    return noisy if type(noisy) is float else "no float"


def takes_floats_alone(data, rng):
    return solve_triangular(np.eye(2), rng.laplace([sum(data), 0.0], 1.0), lower=True)


def writes_text(data, rng):
    return json.dumps(round(json.loads(json.dumps(sum(data) + rng.laplace(0, 1.0)))))


@pytest.mark.parametrize("mechanism", [asks_for_its_type, takes_floats_alone, writes_text])
def test_code_that_takes_no_forms_gets_numbers(mechanism):
    """It is neither refused nor taken to do what it does with forms: the trace loses track where noise is drawn."""
    outcome = tracing(mechanism, DataPair([1], [0]), Claim(epsilon=1.0))
    if mechanism is takes_floats_alone:  # its noise is drawn around the sum
        assert (outcome.pair_upper.epsilon, outcome.pair_upper.how) == (pytest.approx(1.0), "sampled")
    else:
        assert not outcome.leak.bypass
        assert outcome.leak.lost == outcome.traces[0].left[0].place
