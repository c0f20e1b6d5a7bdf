"""Outputs of more columns than an audit can read: one line at once, in place of no end."""

import numpy as np
import pytest

from overclaim import Claim, falsify_mechanism
from overclaim.audit.encoding.encoder import Encoder
from overclaim.audit.encoding.places import MOST_COLUMNS
from overclaim.learners.protocol import LearnerError

WIDE = MOST_COLUMNS + 1


def batched(data, draws, runs):
    return data[0] + draws.generator.laplace(size=(WIDE, runs))


batched.batched = True


@pytest.mark.few(2)
@pytest.mark.parametrize(
    "mechanism",
    [
        lambda data, rng: data[0] + rng.laplace(size=WIDE),
        lambda data, rng: (data[0] + rng.laplace(size=WIDE)).tolist(),
        lambda data, rng: {"sum": 1, "rest": data[0] + rng.laplace(size=(WIDE // 128 + 1, 128))},
        lambda data, rng: {i: str(noise) for i, noise in enumerate(data[0] + rng.laplace(size=WIDE))},
        lambda data, rng: set((data[0] + rng.laplace(size=WIDE)).tolist()),
        batched,
    ],
    ids=["array", "list", "nested", "dictionary", "set", "batched"],
)
def test_an_output_that_is_too_wide_is_refused_at_once(mechanism):
    """A million columns: no end, and no word."""
    with pytest.raises(LearnerError, match=r"an output of 16,[0-9]{3} columns, more than the 16,384 .*: return fewer"):
        falsify_mechanism(mechanism, Claim(epsilon=1.0), left=[1], right=[0], runs=400)


def test_as_many_columns_as_are_read_are_let_be():
    assert len(Encoder.fit(np.zeros((MOST_COLUMNS, 2))).places) == MOST_COLUMNS
    Encoder.fit(["a" * (2 * WIDE), "b"])
