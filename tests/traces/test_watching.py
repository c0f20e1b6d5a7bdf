"""Libraries whose noise a trace watches without an edit: inside a trace, and nowhere else."""

import random
import sys
from types import ModuleType

import numpy as np
import pytest

from overclaim import Claim
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.unseeded import Unseeded
from overclaim.audit.traces.upper import tracing
from overclaim.mechanisms.noise import Laplace
from overclaim.testing import watching

SYSTEM = random.SystemRandom()


def blurred(value, scale):
    """As a library adds noise, from where no seed reaches."""
    return np.asarray(value) + scale * np.log(1 - SYSTEM.random()) * SYSTEM.choice([-1, 1])


@pytest.fixture
def library(monkeypatch):
    made = ModuleType("other_code")
    made.blurred, made.alias, made.number = blurred, blurred, 3
    monkeypatch.setitem(sys.modules, "other_code", made)
    return made


def law(value, scale):
    return Laplace(scale)


def traced(mechanism, left=(1, 1), right=(1, 0)):
    return tracing(Unseeded(mechanism), DataPair(list(left), list(right)), Claim(epsilon=1.0))


def total(library):
    return lambda data, rng: float(library.alias(sum(data), 2.0))


@pytest.mark.parametrize("how", ["module", "function"])
def test_a_trace_knows_the_noise_of_a_watched_library(library, how):
    """A trace of foreign code took an adapter; unwatched it draws from elsewhere."""
    named = watching(library, noise={"blurred": law}) if how == "module" else watching(library.blurred, noise=law)
    with named:
        found = traced(total(library))
    assert found.leak is None
    assert found.pair_upper.epsilon == pytest.approx(0.5)
    assert library.blurred is library.alias is blurred


def test_a_decorator_watches_arrays(library):
    @watching(library, noise={"blurred": law})
    def mechanism(data, rng):
        return library.blurred(np.array(data, dtype=float), 2.0).tolist()

    assert traced(mechanism).pair_upper.epsilon == pytest.approx(0.5)


def test_what_goes_around_the_noise_is_found(library):
    with watching(library.blurred, noise=law):
        found = traced(lambda data, rng: [float(library.blurred(sum(data), 2.0)), sum(data)])
    assert found.leak is not None


def test_outside_a_trace_it_is_called_as_ever(library):
    before = [library.blurred]
    with watching(library.blurred, noise=law):
        assert library.blurred not in before
        assert blurred is library.blurred  # whatever module holds it
        assert library.blurred(1.0, 0.0) == 1.0
    assert [library.blurred] == [blurred] == before


@pytest.mark.parametrize(
    ("what", "noise", "message"),
    [
        ("module", {"missing": law}, "other_code has no function 'missing'"),
        ("module", {"number": law}, "other_code has no function 'number'"),
        ("module", law, "takes a function and the law of its noise, or a module and laws by name"),
        ("function", {"blurred": law}, "takes a function and the law of its noise, or a module and laws by name"),
    ],
)
def test_what_cannot_be_watched_is_one_line(library, what, noise, message):
    with pytest.raises(ValueError, match=message):
        watching(library if what == "module" else library.blurred, noise=noise)
