"""Wide outputs: what is kept of them, and those of more columns than an audit can read."""

import numpy as np
import pytest

from overclaim import Claim, Verdict, falsify
from overclaim.audit.attacks.outputs import narrowing
from overclaim.audit.attacks.outputs.narrowing import WIDE, Narrowed
from overclaim.audit.attacks.outputs.screening import told_by, told_by_each
from overclaim.audit.encoding.columns import Column
from overclaim.audit.encoding.encoder import Encoder
from overclaim.audit.encoding.places import MOST_COLUMNS, MOST_NUMBERS
from overclaim.learners.protocol import LearnerError

LAST = WIDE + 1


def batched(data, draws, runs):
    return data[0] + draws.generator.laplace(size=(MOST_NUMBERS + 1, runs))


batched.batched = True


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("mechanism", "most"),
    [
        (lambda data, rng: data[0] + rng.laplace(size=MOST_NUMBERS + 1), "131,072"),
        (lambda data, rng: (data[0] + rng.laplace(size=MOST_NUMBERS + 1)).tolist(), "131,072"),
        (lambda data, rng: {"sum": 1, "rest": data[0] + rng.laplace(size=(MOST_COLUMNS // 128 + 1, 128))}, "16,384"),
        (lambda data, rng: {i: str(noise) for i, noise in enumerate(rng.laplace(size=MOST_COLUMNS + 1))}, "16,384"),
        (lambda data, rng: set((data[0] + rng.laplace(size=MOST_COLUMNS + 1)).tolist()), "16,384"),
        (batched, "131,072"),
    ],
    ids=["array", "list", "nested", "dictionary", "set", "batched"],
)
def test_an_output_that_is_too_wide_is_refused_at_once(mechanism, most):
    """A million columns: no end, and no word."""
    with pytest.raises(LearnerError, match=rf"an output of [0-9,]+ columns, more than the {most} .*: return fewer"):
        falsify(mechanism, Claim(epsilon=1.0), left=[1], right=[0], runs=400)


def test_as_many_columns_as_are_read_are_let_be():
    assert len(Encoder.fit(np.zeros((MOST_NUMBERS, 2))).places) == MOST_NUMBERS
    Encoder.fit(["a" * (2 * MOST_COLUMNS), "b"])


def noise_of(data, rng):
    return rng.laplace(size=LAST)


def one_shifts(noise, left):
    noise[100] += left


def one_adds_up(noise, left):
    noise[100] += 1.5 * left
    noise.cumsum(axis=0, out=noise)


def all_shift(noise, left):
    """Each by less than a twentieth of its deviation, this way or that."""
    noise += 0.13 * left * np.random.default_rng(2).choice([1, -1], size=(LAST, 1))


def common_noise(noise, left):
    """One column tells nothing, nor do means: two together without what they share."""
    shared = 20 * np.random.default_rng(2).normal(size=noise.shape[1])
    noise += shared * np.where(np.arange(LAST) % 2, 1, -1)[:, None]
    noise[1::2] += 0.2 * left


def two_agree(noise, left):
    noise[:] = noise > 0
    noise[200, left] = noise[100, left]


def nothing_shifts(noise, left):
    pass


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("moved", "kept"),
    [
        (one_shifts, "column 101"),
        (one_adds_up, "step to column 101"),
        (all_shift, "direction"),
        (common_noise, "direction"),
        (two_agree, "columns together 1"),
        (nothing_shifts, "direction"),
    ],
)
def test_what_tells_the_inputs_apart_is_kept(moved, kept):
    """Of 2,000 runs; the steps and columns that are best by luck stay only where nothing says more than by chance."""
    rng = np.random.default_rng(1)
    left, columns = rng.random(2000) < 0.5, rng.laplace(size=(LAST, 2000))
    moved(columns, left)
    narrowed, train = Narrowed.fit(np.asarray, columns, left)
    names = [name for name, _ in narrowed.rows]
    assert kept in names
    assert len(names) <= 8
    told = max(abs(np.corrcoef(row, left)[0, 1]) for row in train.columns)
    assert told < 0.15 if moved is nothing_shifts else told > 0.2


def test_wide_outputs_are_narrowed_some_runs_at_a_time(monkeypatch):
    rng = np.random.default_rng(3)
    left, columns = rng.random(300) < 0.5, rng.laplace(size=(LAST, 300))
    narrowed, _ = Narrowed.fit(np.asarray, columns, left)
    at_once = narrowed(columns)
    monkeypatch.setattr(narrowing, "MAX_NUMBERS", 7 * LAST)
    np.testing.assert_array_equal(narrowed(columns), at_once)


def test_a_column_among_many_is_found():
    def shifted(data, rng):
        noise = rng.laplace(size=LAST)
        noise[200] += 2 * data[0]
        return noise

    result = falsify(shifted, Claim(epsilon=1.0), left=[1], right=[0], runs=3000)
    assert result.verdict is Verdict.FALSIFIED
    assert result.epsilon_lower <= 2
    assert "column 201" in result.attack


def test_columns_are_looked_at_together_as_they_are_alone():
    rng = np.random.default_rng(0)
    noise = rng.laplace(size=(6, 200))
    rows = [*noise, np.rint(noise[0] * 50), noise[1] * 1e60, noise[2] * 1e-9, np.where(noise[3] > 1, np.nan, noise[3])]
    rows += [np.where(noise[4] > 2, np.inf, noise[4]), noise[5] > 0, np.zeros(200), np.maximum(noise[5], 0)]
    for runs in (200, 30, 3, 1):
        columns = np.array(rows, dtype=float)[:, :runs]
        assert list(map(repr, Column.of_each(columns))) == list(map(repr, map(Column.of, columns)))


def test_rows_are_screened_together_as_they_are_alone():
    rng = np.random.default_rng(0)
    left = rng.random(1601) < 0.4
    rows = rng.laplace(size=(4, left.size)) + np.outer([0, 1, 0.1, 0], left)
    rows[3] = np.rint(rows[3])
    one_by_one = np.array([told_by(row, left) for row in rows])
    np.testing.assert_array_equal(told_by_each(rows, left)[3], one_by_one[3])
    np.testing.assert_allclose(told_by_each(rows, left)[:, 1:], one_by_one[:, 1:], atol=0.3)
