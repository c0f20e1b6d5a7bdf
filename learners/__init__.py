"""Losses, domains, every algorithm, the probes, and the catalogue."""

from .batched import BatchedLaplace, MiniBatch
from .domains import Ball, Cube, EntropySimplex, Simplex
from .exp2 import Exp2
from .exp3 import Exp3
from .exp4 import BatchedExp4
from .expert_advice import ExpertAdvice
from .ftpl import Ftpl
from .ftpl_bandit import FtplBandit
from .ftrl import Ftrl
from .htinf import Htinf
from .ladder import Ladder
from .losses import Absolute, Linear, Quadratic
from .pftal import BanditPftal, Pftal
from .private_bandit import Doubling, NoisyOco, PrivateBandit
from .protocol import Learner, LearnerError
from .reduction import BanditReduction
from .scrible import Scrible
from .threshold import Threshold

__all__ = [
    "Absolute",
    "Ball",
    "BanditPftal",
    "BanditReduction",
    "BatchedExp4",
    "BatchedLaplace",
    "Cube",
    "Doubling",
    "EntropySimplex",
    "Exp2",
    "Exp3",
    "ExpertAdvice",
    "Ftpl",
    "FtplBandit",
    "Ftrl",
    "Htinf",
    "Ladder",
    "Learner",
    "LearnerError",
    "Linear",
    "MiniBatch",
    "NoisyOco",
    "Pftal",
    "PrivateBandit",
    "Quadratic",
    "Scrible",
    "Simplex",
    "Threshold",
]
