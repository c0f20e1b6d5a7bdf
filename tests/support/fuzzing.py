"""What fuzzing draws from: a few hundred cases with a fixed seed in the suite.

`make fuzz FUZZ=40` draws 40 times as many, at random.
"""

import math
import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

FACTOR = int(os.environ.get("OVERCLAIM_FUZZ", "1"))


def cases(number):
    return settings(
        max_examples=number * FACTOR,
        derandomize=FACTOR == 1,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )


TEXTS = ["", "guess", "unit", "l2-ball", "lipschitz", "replace", "zero-out", "release", "falsified", "early", "None"]
numbers = st.one_of(
    st.integers(-3, 6),
    st.sampled_from([0.5, 1.0, 1e-9, 1e308, -0.0, math.inf, -math.inf, math.nan, 10**18, 2**53, 2**64, 10**400]),
    st.floats(),
)
scalars = st.one_of(numbers, st.sampled_from(TEXTS), st.text(max_size=5), st.booleans(), st.none())
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=8,
)
