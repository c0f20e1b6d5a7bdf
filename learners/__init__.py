"""Losses, domains, every algorithm, the probes, and the catalogue."""

from .batched import BatchedLaplace, MiniBatch
from .exp3 import Exp3
from .ftrl import Ftrl
from .protocol import Learner, LearnerError
from .reduction import BanditReduction
from .threshold import Threshold

__all__ = [
    "BanditReduction",
    "BatchedLaplace",
    "Exp3",
    "Ftrl",
    "Learner",
    "LearnerError",
    "MiniBatch",
    "Threshold",
]
