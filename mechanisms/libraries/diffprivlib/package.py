"""What all entries of diffprivlib share: the package, its tracker, its randomness."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import numpy as np

from ...claim import Claim
from ..entry import Library

LIBRARY = Library(
    name="diffprivlib",
    distribution="diffprivlib",
    version="0.6.6",
    module="diffprivlib",
    needs="scikit-learn below 1.6",
)
TRACKER = "https://github.com/IBM/differential-privacy-library/issues"
ONE = Claim(epsilon=1.0)
NONE_FOUND = "nothing was found in their tracker."


def random_state(rng: Any) -> Any:
    """Return the random state that diffprivlib takes, on the audit's own generator."""
    return np.random.RandomState(rng.bit_generator)


def hundredths(st: ModuleType) -> object:
    """Return the strategy of hundredths from 0 to 1."""
    return st.integers(0, 100).map(lambda percent: percent / 100)
