"""What all entries of diffprivlib share: the package, its tracker, its randomness."""

from __future__ import annotations

from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

from ...claim import Claim
from ...faults import FaultyGenerator, FaultyState
from ...library_entry import Library, LibraryEntry, Mechanism, quietly

LIBRARY = Library(
    name="diffprivlib",
    distribution="diffprivlib",
    version="0.6.6",
    module="diffprivlib",
    needs="scikit-learn<1.6",
)
TRACKER = "https://github.com/IBM/differential-privacy-library/issues"
UNIT_CLAIM = Claim(epsilon=1.0)
library_entry = partial(LibraryEntry, package=LIBRARY, claim=UNIT_CLAIM, weakened_by=None)
NONE_FOUND = "nothing was found in their tracker."


def random_state(rng: np.random.Generator) -> object:
    """Return the random state that diffprivlib takes, on the audit's own generator."""
    return FaultyState(rng) if isinstance(rng, FaultyGenerator) else np.random.RandomState(rng.bit_generator)


def accounted_alone(mechanism: Mechanism) -> Mechanism:
    """Return a tool or model, quietly, each run of which begins with no budget spent.

    The library keeps what every call of a process has spent in one list, and models copy it: the hundred thousandth
    fit takes a hundred times as long as the first one. Nothing that is released depends on it.
    """
    accountant = LIBRARY.load("diffprivlib.accountant").BudgetAccountant

    def alone(data: object, rng: object) -> Any:
        accountant.pop_default()
        return mechanism(data, rng)

    return quietly(alone)


def hundredths(st: ModuleType) -> object:
    """Return the strategy of hundredths from 0 to 1."""
    return st.integers(0, 100).map(lambda percent: percent / 100)
