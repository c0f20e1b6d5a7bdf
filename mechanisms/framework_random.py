"""Generators of frameworks that are loaded: torch's, and numba's in compiled code. `global_random` seeds them too.

They are never imported here: a framework that nobody has loaded draws nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

#: Frameworks with a generator of their own that a seed sets.
FRAMEWORKS = ("torch", "numba")
#: torch takes signed seeds of 64 bits, numba's generators those of 32.
_TORCH_SEEDS, _NUMBA_SEEDS = 2**63, 2**32


def loaded_frameworks() -> list[str]:
    """Return which of `FRAMEWORKS` this process has loaded."""
    return [name for name in FRAMEWORKS if name in sys.modules]


def seed_frameworks(seed: int) -> list[Callable[[], object]]:
    """Seed the generators of what is loaded; return what restores them, where that can be.

    numba's state cannot be read: it stays where the last run left it.

    Parameters
    ----------
    seed : int
        Non-negative.
    """
    restore: list[Callable[[], object]] = []
    if (torch := sys.modules.get("torch")) is not None and hasattr(torch, "get_rng_state"):
        state = torch.get_rng_state()
        restore.append(lambda: torch.set_rng_state(state))
        torch.manual_seed(seed % _TORCH_SEEDS)
    if "numba" in sys.modules:
        _numba_seeder()(seed % _NUMBA_SEEDS)
    return restore


def framework_states() -> tuple[bytes, ...]:
    """Return the states of the generators that can be read: torch's, on the processor."""
    torch = sys.modules.get("torch")
    return (bytes(torch.get_rng_state().numpy()),) if torch is not None and hasattr(torch, "get_rng_state") else ()


@lru_cache(maxsize=None)  # noqa: UP033 - Python 3.8 has no `cache`
def _numba_seeder() -> Callable[[int], object]:
    """Return a compiled function: only that reaches the generators of compiled code."""
    import random

    numba: Any = sys.modules["numba"]

    def seed_compiled(seed: int) -> None:
        np.random.seed(seed)  # noqa: NPY002 - compiled code has no other
        random.seed(seed)

    seeder: Callable[[int], object] = numba.njit(seed_compiled)
    return seeder
