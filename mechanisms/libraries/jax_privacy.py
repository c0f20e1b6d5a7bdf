"""jax_privacy 2.0: the noise of one step, on the sum of clipped gradients, under both relations that it documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..claim import Claim
from ..library_entry import Library, LibraryEntry, Mechanism
from ..measures.gaussian_dp import GDP

LIBRARY = Library(name="jax_privacy", distribution="jax_privacy", version="2.0.0", module="jax_privacy", needs="jax")


def _noisy_sum(relation: str) -> Callable[[float], Mechanism]:
    """Return what adds noise to the clipped gradients of (w x - y)^2 at w = 0, as much as their sensitivity."""

    def build(factor: float) -> Mechanism:
        clipping, noise = LIBRARY.load("jax_privacy.clipping"), LIBRARY.load("jax_privacy.noise_addition")
        jax, neighbours = LIBRARY.load("jax"), LIBRARY.load("dp_accounting").NeighboringRelation
        gradient = clipping.clipped_grad(_loss, l2_clip_norm=1.0)
        stddev = gradient.sensitivity(neighbours[relation]) / factor

        def step(x: object, y: object, key: object) -> Any:
            privatizer = noise.gaussian_privatizer(stddev=stddev, prng_key=key)
            clipped = gradient(0.0, (x, y))
            return privatizer.update(clipped, privatizer.init(clipped))[0]

        compiled = jax.jit(step)

        def mechanism(data: object, rng: np.random.Generator) -> object:
            x, y = jax.numpy.array(data, dtype="float32").T
            return float(compiled(x, y, jax.random.key(int(rng.integers(2**31)))))

        return mechanism

    return build


def _loss(weight: object, batch: Any) -> object:
    x, y = batch
    return ((weight * x - y) ** 2).mean()


def _rows(st: ModuleType) -> object:
    """Return the strategy of records (x, y) of any numbers, or none."""
    numbers = st.sampled_from([0.0, 1.0, -1.0, 1e10, -1e20, 1e30, math.nan])
    return st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3)


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        package=LIBRARY,
        what=f"gaussian_privatizer-{relation}",
        claim=Claim(measure=GDP(1.0)),
        quotation=said,
        where="documentation of jax_privacy.clipping.clipped_grad; the noise is the sensitivity that it says",
        strategy=_rows,
        build=_noisy_sum(theirs),
        relations=(relation,),
        stated=True,
        runs=10_000,
    )
    for relation, theirs, said in (
        (
            "add-remove",
            "ADD_OR_REMOVE_ONE",
            "The L2 sensitivity of the returned function [...] under add/remove or zero-out differential privacy definitions is [...] `l2_clip_norm`.",
        ),
        (
            "replace",
            "REPLACE_ONE",
            "Under replace-one DP, the sensitivity is doubled (2.0 or 2 * `l2_clip_norm`).",
        ),
    )
)
