"""What all tests share. No test fails because a machine is slow: hypothesis times its examples by default."""

import pytest
from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")


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
