"""Noise laws, the tree counter, privacy claims, and the one source of randomness. A name is imported on first use."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
    from .claim import Claim
    from .draws import Draws, Stage
    from .noise import Gaussian, L2Laplace, Laplace, Noise
    from .tree import Tree

__all__ = ["Claim", "Draws", "Gaussian", "L2Laplace", "Laplace", "Noise", "Stage", "Tree"]

_HOMES = {
    "Claim": f"{__name__}.claim",
    "Draws": f"{__name__}.draws",
    "Gaussian": f"{__name__}.noise",
    "L2Laplace": f"{__name__}.noise",
    "Laplace": f"{__name__}.noise",
    "Noise": f"{__name__}.noise",
    "Stage": f"{__name__}.draws",
    "Tree": f"{__name__}.tree",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
