"""Code that seeds itself, played with fresh seeds: of every kind of generator, wherever it is made."""

import pickle
import random

import numpy as np
import pytest
from numpy.random import default_rng

from overclaim import Claim, Verdict, falsify
from overclaim.audit.plans.tasks import Task
from overclaim.mechanisms.constant_seeds import drawn_reseeded, held_generators, seed_held
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.faults import Fault
from overclaim.mechanisms.weakening import with_settings

HELD = np.random.default_rng(42)


class Noise:
    def __init__(self, seed=7):
        self.rng = np.random.RandomState(seed)


NOISE = Noise()


def of_default(data, random_state=0):
    return data + default_rng(random_state).laplace()


def of_legacy(data):
    np.random.seed(17)
    return data + np.random.laplace()


def of_state(data):
    return data + np.random.RandomState(seed=7).laplace()


def of_python(data):
    return data + random.Random(5).gauss(0, 1)


def of_global_python(data):
    random.seed("fixed")
    return data + random.gauss(0, 1)


def of_bits(data):
    return data + np.random.Generator(np.random.PCG64(3)).laplace()


def of_init(data):
    return data + Noise(11).rng.laplace()


def of_module(data):
    return data + HELD.laplace()


def of_object(data):
    return data + NOISE.rng.laplace()


def of_argument(data, rng=np.random.default_rng(3)):  # noqa: B008
    return data + rng.laplace()


def of_closure():
    rng = random.Random(9)

    def closed(data):
        return data + rng.gauss(0, 1)

    return closed


SEEDED = (of_default, of_legacy, of_state, of_python, of_global_python, of_bits, of_init)
MADE_BEFORE = (of_module, of_object, of_argument, of_closure())


def reseeded(target, run, data=0.0):
    return drawn_reseeded(target, Draws(0).run_generator(run), target, data)


def states(target):
    """Return the states of the generators that code holds."""
    return [pickle.dumps(generator) for generator in held_generators(target).values()]


@pytest.mark.parametrize("target", [*SEEDED, *MADE_BEFORE])
def test_a_seed_is_another_in_every_run_and_the_same_in_the_same_run(target):
    outputs = [reseeded(target, run) for run in range(40)]
    assert len({*outputs}) == 40
    assert reseeded(target, 3) == outputs[3]
    assert np.random.default_rng is default_rng


def test_a_generator_that_is_held_is_found_behind_settings():
    """`_written` did not see behind a setting that stands before `rng`."""

    generator = default_rng(3)

    def of_default_before(data, scale, rng, held=generator):
        return data + held.laplace(scale=scale)

    assert held_generators(with_settings(of_default_before, {"scale": 2.0}))["held"] is generator


@pytest.mark.parametrize("target", SEEDED)
def test_equal_seeds_of_a_run_stay_equal(target):
    """Noise that is drawn twice from one seed cancels: that is a fault of the calibration, and stays one."""
    first, second = drawn_reseeded(target, Draws(0).run_generator(0), lambda: (target(0.0), target(0.0)))
    assert first == second


@pytest.mark.parametrize("target", MADE_BEFORE)
def test_what_was_made_before_is_as_it_was_afterwards(target):
    before = states(target)
    reseeded(target, 0)
    assert states(target) == before


def test_what_was_made_before_is_named_with_its_seed():
    named = {name: seed_held(generator) for name, generator in held_generators(of_argument).items()}
    assert named["HELD"] == 42
    assert named["rng"] == 3
    assert "NOISE.rng" in named
    assert seed_held(np.random.default_rng()) is None


def test_faults_reach_what_is_reseeded():
    def weaker(factor):
        rng = Fault(factor).generator(Draws(0).run_generator(1))
        return drawn_reseeded(of_default, rng, of_default, 0.0)

    assert weaker(4.0) == pytest.approx(weaker(1.0) / 4)


def twice(data):
    return [value + np.random.default_rng(5).laplace() for value in data]


def test_the_code_as_it_is_is_false_and_its_calibration_may_be_true():
    claim, given = Claim(epsilon=1.0), {"left": 1.0, "right": 0.0, "runs": 600, "power": "off"}
    plain = falsify(of_default, claim, global_random=True, **given)
    assert plain.verdict is Verdict.FALSIFIED
    assert plain.remarks[0].startswith("it seeds itself with 0 (test_constant_seeds.py:")
    fresh = falsify(of_default, claim, reseed=True, **given)
    assert fresh.verdict is not Verdict.FALSIFIED
    assert not any("seeds itself" in remark for remark in fresh.remarks)
    assert 0 < fresh.epsilon_lower <= 1


def test_one_seed_for_two_numbers_is_a_fault_of_the_calibration():
    given = {"left": [1.0, 0.0], "right": [0.0, 0.0], "runs": 600}
    assert falsify(twice, Claim(epsilon=1.0), reseed=True, **given).verdict is Verdict.FALSIFIED


def test_what_holds_a_generator_is_told_of_it():
    with pytest.raises(Exception, match="keep no state") as refused:
        falsify(of_module, Claim(epsilon=1.0), left=1.0, right=0.0, runs=400, global_random=True)
    (hint, *_) = refused.value.__notes__
    assert "HELD (seed 42)" in hint
    assert "reseed=True" in hint
    assert "global_random" not in " ".join(refused.value.__notes__)


def test_the_command_that_asks_again_says_it():
    assert "--reseed" in Task(target="a.py:f", epsilon=1.0, left=1, right=0, reseed=True).command()
