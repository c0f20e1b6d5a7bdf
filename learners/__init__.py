"""Losses, domains, every algorithm, the probes, and the catalogue."""

from .bandits.exp2 import Exp2
from .bandits.exp3 import Exp3
from .bandits.exp4 import BatchedExp4
from .bandits.ftpl_bandit import FtplBandit
from .bandits.htinf import Htinf
from .bandits.scrible import Scrible
from .conversions.batched import BatchedLaplace, MiniBatch
from .conversions.expert_advice import ExpertAdvice
from .conversions.reduction import BanditReduction, GaussianReduction
from .leaders.doubling import Doubling
from .leaders.ftpl import Ftpl
from .leaders.ftrl import Ftrl
from .leaders.pftal import BanditPftal, Pftal
from .leaders.private_bandit import NoisyOco, PrivateBandit
from .probes.ladder import Ladder
from .probes.threshold import Threshold
from .problems.domains import Ball, Cube, EntropySimplex, Simplex
from .problems.losses import Absolute, Linear, Quadratic
from .protocol import Learner, LearnerError

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
    "GaussianReduction",
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
