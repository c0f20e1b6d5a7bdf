"""No test fails because a machine is slow: hypothesis times its examples by default."""

from hypothesis import settings

settings.register_profile("untimed", settings(), deadline=None)
settings.load_profile("untimed")
