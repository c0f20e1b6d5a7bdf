"""Mean and variance of the shares of a month that customers use, by diffprivlib: epsilon = 1 for each customer."""

import numpy as np
from diffprivlib.models import StandardScaler


def fit(usage, rng):
    """Fit on shares of the month, one for each customer."""
    random_state = np.random.RandomState(rng.bit_generator)
    scaler = StandardScaler(epsilon=1.0, bounds=(0, 1), random_state=random_state)
    return scaler.fit(np.array(usage, dtype=float).reshape(-1, 1))
