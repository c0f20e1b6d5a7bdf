"""Regret instances: their shapes, their best arms, and Lemma 11."""

from overclaim.learners.problems.instances import (
    alternating_losses,
    early_switch,
    held_losses,
    leader_loses,
    lemma_11_losses,
    switching_losses,
)
from overclaim.tests.support.refusals import refusals


def test_lemma_11_drops_where_it_says():
    losses = lemma_11_losses(10, drop=7)
    assert losses[:, 0].tolist() == [0.5] * 10
    assert losses[:, 1].tolist() == [1.0] * 7 + [0.0] * 3
    assert lemma_11_losses(10, drop=10)[:, 1].min() == 1.0
    assert lemma_11_losses(10).sum(axis=0).tolist() == [5.0, 5.0]


def test_others_are_what_they_are_called():
    assert alternating_losses(5, 2).tolist() == [[0, 1], [1, 0], [0, 1], [1, 0], [0, 1]]
    assert leader_loses(4, 3).tolist() == [[0.5, 0, 1], [0, 1, 1], [1, 0, 1], [0, 1, 1]]
    assert leader_loses(4, 1).ravel().tolist() == [0.25, 1, 0, 1]
    switching = switching_losses(100, 3)
    assert switching.sum(axis=0).argmin() == 2
    assert switching[:50].sum(axis=0).argmin() == 0
    assert early_switch(8, 3).sum(axis=0).tolist() == [6, 8, 2]
    assert early_switch(8, 1).ravel().tolist() == [0, 0, 1, 1, 1, 1, 1, 1]
    assert held_losses(9, 3)[:, 0].tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert (held_losses(9, 3).sum(axis=1) == 2).all()


test_bad_input_is_named = refusals(
    (lambda: lemma_11_losses(4, drop=5), r"drop must be in 0..4, got 5"),
    (lambda: alternating_losses(0, 2), "rounds must be an integer of at least 1, got 0"),
)
