"""Noise laws, the tree counter, privacy claims, and the one source of randomness."""

from .claim import Claim
from .draws import Draws, Stage
from .noise import Gaussian, L2Laplace, Laplace, Noise
from .tree import Tree

__all__ = ["Claim", "Draws", "Gaussian", "L2Laplace", "Laplace", "Noise", "Stage", "Tree"]
