"""What all tests share. No test fails because a machine is slow: hypothesis times its examples by default."""

import gc
import os
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]

#: Examples are the same every time; `pytest --hypothesis-profile=explore` draws new ones.
settings.register_profile("explore", settings(), deadline=None)
settings.register_profile("same", settings(), deadline=None, derandomize=True)
settings.load_profile("same")
#: Lines are broken alike whatever terminal the tests are started in.
os.environ["COLUMNS"] = "80"


class PlainRoot:
    """Pytest imports a package that it collects, and the root is one: under the name of the clone's folder.

    In a clone that is called as a dependency is, `dask` say, that name would hide the dependency from the tests.
    """

    def pytest_collect_directory(self, path, parent):
        return pytest.Dir.from_parent(parent, path=path) if path == ROOT else None


def pytest_configure(config):
    config.pluginmanager.register(PlainRoot())


def pytest_collection_finish(session):
    """Let no collection of garbage walk through what all tests keep: statsmodels asks for one at each of Holm's."""
    gc.freeze()


def pytest_unconfigure(config):
    gc.unfreeze()


@pytest.fixture
def uniform_class():
    """A user's class that plays every arm alike, whatever it is told: it has nothing to leak."""

    class Uniform:
        feedback = "bandit"

        def __init__(self, arms, rounds, rng):
            self.arms, self.rng = arms, rng

        def act(self):
            return int(self.rng.integers(self.arms))

        def update(self, feedback):
            pass

    return Uniform
