"""Ene, Nguyen & Vladu 2021: the catalogue's entry of the tree-based aggregation that they quote."""

from __future__ import annotations

import math
from typing import Any

from ...mechanisms.noise import Laplace
from ..leaders.ftrl import Ftrl
from ..problems.domains import Cube
from . import statements as said
from .ene_nguyen_vladu import REPAIRED
from .entries import Case, Entry, Setting


def tree_aggregation(setting: Setting) -> Ftrl:
    """Return the counter of Theorem 4 for vectors in the L1 ball, Y_1 = 1: noise log2 T / epsilon.

    It is the one of Agarwal & Singh, so it is read off their leader over the cube, which publishes it. Corrected, the
    diameter 2 Y_1 times the floor(log2 T) + 1 nodes that a vector reaches, over epsilon.
    """
    levels = math.log2(setting.rounds) if setting.published else 2.0 * setting.rounds.bit_length()
    noise = Laplace(0.0 if math.isinf(setting.epsilon) else levels / setting.epsilon)
    return Ftrl(domain=Cube(setting.arms), rounds=setting.rounds, eta=1.0, noise=noise)


WHOLE: dict[str, Any] = {"standing": "theorem", "statement": said.ENE_THEOREM_4, "surface": "publication"}

ENTRIES = (
    Entry(
        name="ene-nguyen-vladu/tree-aggregation",
        summary="tree-based aggregation of vectors, Laplace noise",
        source=said.ENE_THEOREM_4.source,
        build=tree_aggregation,
        rounds=2,
        arms=1,
        losses="l1-ball",
        cases=(
            Case(expected="falsified", **WHOLE, runs=50_000),
            Case(expected="falsified", **WHOLE, neighbours="zero-out", runs=50_000),
            Case(expected="survived", **REPAIRED, surface="publication", runs=50_000),
        ),
    ),
)
