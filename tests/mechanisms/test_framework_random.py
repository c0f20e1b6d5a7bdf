"""Frameworks with generators of their own are seeded where they are loaded, the real ones where they are installed."""

import sys
import types

import numpy as np
import pytest

from overclaim.learners.scalar import global_cure
from overclaim.mechanisms.framework_random import loaded_frameworks
from overclaim.mechanisms.global_random import global_random


class FakeTorch(types.ModuleType):
    """The four functions of torch that are used, on a generator of NumPy's."""

    def __init__(self):
        super().__init__("torch")
        self.generator = np.random.RandomState(5)

    def manual_seed(self, seed):
        self.generator.seed(seed % 2**32)

    def get_rng_state(self):
        return self.generator.get_state(legacy=True)

    def set_rng_state(self, state):
        self.generator.set_state(state)

    def randn(self):
        return self.generator.normal()


@pytest.fixture
def torch(monkeypatch):
    module = FakeTorch()
    monkeypatch.setitem(sys.modules, "torch", module)
    return module


def seeded(draw, seed):
    with global_random(np.random.default_rng(seed)):
        return draw()


def test_a_loaded_framework_is_seeded_by_the_run_and_restored(torch):
    torch.manual_seed(3)
    expected = torch.randn()
    torch.manual_seed(3)
    inside = [seeded(torch.randn, seed) for seed in (0, 0, 1)]
    assert inside[0] == inside[1] != inside[2]
    assert torch.randn() == expected


def test_the_cure_names_what_is_loaded(torch):
    assert "torch" in loaded_frameworks()
    assert "np.random, random" in global_cure()
    assert "torch" in global_cure()


@pytest.mark.slow(reason="imports torch, where it is installed")
def test_torch_itself_is_seeded_and_restored():
    torch = pytest.importorskip("torch")
    before = torch.get_rng_state()
    draws = [seeded(lambda: torch.randn(3).tolist(), seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.slow(reason="compiles by numba, where it is installed")
def test_compiled_code_of_numba_is_seeded():
    numba = pytest.importorskip("numba")
    draw = numba.njit(lambda: (np.random.laplace(0.0, 1.0), np.random.random()))
    draws = [seeded(draw, seed) for seed in (0, 0, 1)]
    assert draws[0] == draws[1] != draws[2]
