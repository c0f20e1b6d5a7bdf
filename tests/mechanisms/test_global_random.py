"""Global generators drawn from one that is handed over: what draws so, what is restored, and threads."""

import random
import threading
from random import Random, gauss

import numpy as np
import pytest
from numpy.random import default_rng, laplace

from overclaim.mechanisms.constant_seeds import watched_seeds
from overclaim.mechanisms.global_random import ThreadsError, drawn_from, global_random, restored
from overclaim.testing import global_random as public


def drawn():
    """One number from everything that is drawn globally, also by names that were imported before."""
    return (
        np.random.laplace(),
        laplace(),
        np.random.default_rng().random(),
        default_rng().random(),
        np.random.RandomState().rand(),
        random.random(),
        gauss(0, 1),
        random.choice(range(10**9)),
        np.random.permutation(20).tolist(),
    )


def test_the_same_generator_gives_the_same_numbers_and_another_gives_others():
    with global_random(np.random.default_rng(1)):
        first = drawn()
    with global_random(np.random.default_rng(1)):
        assert drawn() == first
    with global_random(np.random.default_rng(2)):
        assert not any(a == b for a, b in zip(drawn(), first, strict=True))
    assert drawn_from(np.random.default_rng(1), drawn) == first
    assert public is global_random


def test_all_is_as_it_was_afterwards_whatever_happened_inside():
    np.random.seed(5)
    random.seed(5)
    expected = np.random.rand(), random.random()
    np.random.seed(5)
    random.seed(5)

    def seeds_and_fails():
        np.random.seed(0)
        random.seed(0)
        raise KeyError("no")

    with pytest.raises(KeyError), global_random(np.random.default_rng(0)):
        seeds_and_fails()
    with restored():
        drawn_from(np.random.default_rng(0), drawn)
    assert (np.random.rand(), random.random()) == expected
    assert np.random.default_rng().random() != np.random.default_rng().random()


def test_code_that_seeds_itself_has_fixed_noise():
    @global_random(np.random.default_rng(0))
    def fixed():
        np.random.seed(3)
        return np.random.laplace()

    assert fixed() == fixed()


def test_it_nests_in_one_thread_and_is_refused_in_two():
    with global_random(np.random.default_rng(0)):
        with global_random(np.random.default_rng(1)):
            inner = np.random.rand()
        assert np.random.rand() != inner
        errors = []

        def enter():
            try:
                with global_random(np.random.default_rng(2)):
                    pass
            except ThreadsError as error:
                errors.append(str(error))

        thread = threading.Thread(target=enter)
        thread.start()
        thread.join()
        assert "another thread uses them" in errors[0]


def test_a_seed_is_no_draw_and_a_draw_is_told_with_its_place():
    """Whatever was watched inside was not bounded, as the seeds of the generators were drawn from the same numbers."""

    class Recorder:
        strays = 0
        seeds = np.random.default_rng(1)

        def stray(self):
            self.strays += 1

    class Drawn(np.random.Generator):
        recorder = Recorder()
        laplace = normal = standard_normal = np.random.Generator.laplace

    rng = Drawn(np.random.PCG64(0))
    with global_random(rng):
        np.random.laplace()
        random.gauss()
        assert rng.recorder.strays == 0
        np.random.rand(2)
        random.shuffle([1, 2])
        np.random.seed(3)
        assert rng.recorder.strays == 2
    rng.recorder.strays = 0
    with global_random(rng):
        gauss()  # imported by its name before
    assert rng.recorder.strays == 1


def test_generators_of_random_that_are_made_without_a_seed_are_seeded_too():
    def made():
        random.seed()
        again = Random()
        again.seed()
        return Random().random(), again.random(), random.random()

    before = Random.seed, random.seed
    first, same, other = (drawn_from(np.random.default_rng(seed), made) for seed in (1, 1, 2))
    assert first == same
    assert not set(first) & set(other)
    assert len(set(first)) == 3
    assert (Random.seed, random.seed) == before
    assert Random().random() != Random().random()
    with global_random(np.random.default_rng(0)), global_random(np.random.default_rng(0)):
        assert Random(5).random() == random.Random(5).random()


def test_seeds_that_are_watched_are_restored_with_the_generators():
    """What watches seeds stands for `random.Random`: whoever then seeded it left the global generators replaced."""
    before = np.random.get_bit_generator(), Random.seed
    with watched_seeds():
        drawn_from(np.random.default_rng(1), lambda: Random().random())
    assert (np.random.get_bit_generator(), Random.seed) == before


def test_what_was_installed_is_restored_where_the_installation_fails(monkeypatch):
    before = np.random.get_bit_generator()
    monkeypatch.setattr("overclaim.mechanisms.global_random.seed_frameworks", lambda seed: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        global_random(np.random.default_rng(1)).__enter__()
    monkeypatch.undo()
    assert np.random.get_bit_generator() is before
    with global_random(np.random.default_rng(1)):
        pass
