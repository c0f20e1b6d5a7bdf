"""Hadamard responses: what a row number and a bit say of an input together."""

import math

import numpy as np
import pytest
from scipy.linalg import hadamard

from overclaim.audit.attacks.outputs.parities import MOST_ROWS, Parities, _of_parities
from overclaim.audit.encoding.features import Features
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.mechanisms.claim import Claim


def response(rows, epsilon, shown):
    """Return the mechanism that draws a row, and tells the input's entry there by randomised response."""

    def told(data, rng):
        row = int(rng.integers(rows))
        lies = rng.random() > 1 / (1 + math.exp(-epsilon))
        return shown(row, (row & data).bit_count() % 2 ^ int(lies))

    return told


SHOWN = {
    "list": lambda row, bit: [row, bit],
    "signs": lambda row, bit: {"sign": 1 - 2 * bit, "row": row},
    "text": lambda row, bit: f"row {row}: {2.5 - 5 * bit:+}",
}


@pytest.mark.few(1)
@pytest.mark.parametrize(("rows", "shown"), [(64, "list"), (512, "signs"), (MOST_ROWS, "text")])
def test_a_response_with_twice_its_epsilon_is_falsified(rows, shown):
    """Of an epsilon of 2 among 1,024 rows nothing was certified."""
    mechanism = response(rows, 2.0, SHOWN[shown])
    result = falsify_mechanism(mechanism, Claim(epsilon=1.0), left=3, right=29, runs=4000, seed=26520)
    assert result.attack == "parities of a row number"
    assert result.epsilon_lower > 1.5


def test_one_with_its_epsilon_survives():
    """It is falsified with a chance of 1e-6 at most."""
    mechanism, claim = response(512, 1.0, SHOWN["list"]), Claim(epsilon=1.0)
    result = falsify_mechanism(mechanism, claim, left=3, right=29, runs=4000, confidence=1 - 1e-6, seed=26521)
    assert result.verdict is Verdict.SURVIVED
    assert result.epsilon_lower > 0.4


def test_no_parity_is_found_where_row_and_bit_say_nothing():
    """Of 80 attacks 5 or more are found with a chance of 3e-8: each with one of 1e-3. Seed 26522."""
    rng = np.random.default_rng(26522)
    found = 0
    for _ in range(40):
        columns = np.array([rng.integers(top, size=2000) for top in (300, 2, 6)], dtype=float)
        found += len(Parities.worth(Features(columns).view(columns).labelled(rng.random(2000) < 0.5)))
    assert found < 5


@pytest.mark.slow(reason="one form of output more")
def test_what_a_hash_that_was_drawn_says_of_the_parity_is_found():
    """A Hadamard count mean sketch of twice its epsilon: .54 was certified, and a claim of 1 survived."""

    def sketch(data, rng):
        hashed, row = int(rng.integers(8)), int(rng.integers(64))
        place = (data * 7919 + hashed * 104729 + data * hashed * 31) % 64
        lies = rng.random() > 1 / (1 + math.exp(-2.0))
        return {"hash": hashed, "row": row, "bit": 1 - 2 * ((row & place).bit_count() % 2 ^ int(lies))}

    result = falsify_mechanism(sketch, Claim(epsilon=1.0), left=3, right=29, runs=6000, seed=26515)
    assert result.epsilon_lower > 1.4


def test_what_training_has_not_seen_says_nothing():
    rng = np.random.default_rng(26523)
    rows, left = rng.integers(256, size=4000), rng.random(4000) < 0.5
    bits = np.array([(int(row) & (3 if here else 29)).bit_count() % 2 for row, here in zip(rows, left, strict=True)])
    columns = np.array([rows, bits], dtype=float)
    features = Features(columns)
    (attack,) = Parities.worth(features.view(columns).labelled(left))
    strange = np.array([[math.nan, math.inf, -1.0, 1e300, 0.5, 8.0, 8.0], [0.0, 1.0, 0.0, 1.0, 1.0, 7.0, math.nan]])
    score = attack.learn(features.view(columns).labelled(left))
    assert (score(features.view(strange)) == 0).all()
    told = score(features.view(columns))
    assert np.mean(told[left]) > 0.2 > -0.2 > np.mean(told[~left])


def test_the_transform_is_that_of_hadamards_matrix():
    values = np.arange(16.0) ** 2
    np.testing.assert_array_equal(_of_parities(np.array([values, -values])), np.outer([1, -1], hadamard(16) @ values))
