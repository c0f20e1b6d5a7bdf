"""Losses, domains, every algorithm, the probes, and the catalogue. A name is imported from its module on first use."""

from typing import TYPE_CHECKING

from ..lazy import lazily

if TYPE_CHECKING:
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

_HOMES = {
    "Absolute": f"{__name__}.problems.losses",
    "Ball": f"{__name__}.problems.domains",
    "BanditPftal": f"{__name__}.leaders.pftal",
    "BanditReduction": f"{__name__}.conversions.reduction",
    "BatchedExp4": f"{__name__}.bandits.exp4",
    "BatchedLaplace": f"{__name__}.conversions.batched",
    "Cube": f"{__name__}.problems.domains",
    "Doubling": f"{__name__}.leaders.doubling",
    "EntropySimplex": f"{__name__}.problems.domains",
    "Exp2": f"{__name__}.bandits.exp2",
    "Exp3": f"{__name__}.bandits.exp3",
    "ExpertAdvice": f"{__name__}.conversions.expert_advice",
    "Ftpl": f"{__name__}.leaders.ftpl",
    "FtplBandit": f"{__name__}.bandits.ftpl_bandit",
    "Ftrl": f"{__name__}.leaders.ftrl",
    "GaussianReduction": f"{__name__}.conversions.reduction",
    "Htinf": f"{__name__}.bandits.htinf",
    "Ladder": f"{__name__}.probes.ladder",
    "Learner": f"{__name__}.protocol",
    "LearnerError": f"{__name__}.protocol",
    "Linear": f"{__name__}.problems.losses",
    "MiniBatch": f"{__name__}.conversions.batched",
    "NoisyOco": f"{__name__}.leaders.private_bandit",
    "Pftal": f"{__name__}.leaders.pftal",
    "PrivateBandit": f"{__name__}.leaders.private_bandit",
    "Quadratic": f"{__name__}.problems.losses",
    "Scrible": f"{__name__}.bandits.scrible",
    "Simplex": f"{__name__}.problems.domains",
    "Threshold": f"{__name__}.probes.threshold",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
