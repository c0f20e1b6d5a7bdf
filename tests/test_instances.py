"""Regret instances: their shapes, their best arms, and the pair of Lemma 11."""

import numpy as np
import pytest

from overclaim.audit.pairs import Pair
from overclaim.learners.instances import (
    alternating_losses,
    lemma_11_losses,
    lemma_11_worlds,
    stochastic_losses,
    switching_losses,
)
from overclaim.mechanisms.draws import Draws


def test_lemma_11_drops_where_it_says():
    losses = lemma_11_losses(10, drop=7)
    assert losses[:, 0].tolist() == [0.5] * 10
    assert losses[:, 1].tolist() == [1.0] * 7 + [0.0] * 3
    assert lemma_11_losses(10, drop=10)[:, 1].min() == 1.0
    assert lemma_11_losses(10).sum(axis=0).tolist() == [5.0, 5.0]


@pytest.mark.parametrize("rounds", [1, 2, 9])
def test_lemma_11_worlds_are_neighbours(rounds):
    for drop in range(1, rounds + 1):
        pair = Pair(*lemma_11_worlds(rounds, drop=drop))
        assert pair.t0 == drop - 1
        assert pair.left[drop - 1].tolist() == [0.5, 0.0]
        assert pair.right[drop - 1].tolist() == [0.5, 1.0]
    assert Pair(*lemma_11_worlds(rounds)).t0 == (rounds + 1) // 2 - 1


def test_others_are_what_they_are_called():
    losses = stochastic_losses(20_000, 3, Draws(0), gap=0.2)
    # Seed 0; six standard errors of each mean.
    np.testing.assert_allclose(losses.mean(axis=0), [0.5, 0.5, 0.3], atol=6 * 0.5 / 20_000**0.5)
    assert set(np.unique(losses)) == {0.0, 1.0}
    assert alternating_losses(5, 2).tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]]
    switching = switching_losses(100, 3)
    assert switching.sum(axis=0).argmin() == 2
    assert switching[:50].sum(axis=0).argmin() == 0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: lemma_11_losses(4, drop=5), r"drop must be in 0..4, got 5"),
        (lambda: lemma_11_worlds(4, drop=0), r"drop must be in 1..4, got 0"),
        (lambda: alternating_losses(0, 2), "rounds must be an integer of at least 1, got 0"),
        (lambda: stochastic_losses(5, 2, Draws(0), gap=2.0), r"gap must be in \[0, 1\], got 2.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
