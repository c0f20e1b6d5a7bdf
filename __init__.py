"""Falsify the differential-privacy claims of online learners, from their action sequences.

The face is lazy: a name is imported from its room on first use, so ``import overclaim`` costs nearly nothing.
"""

from typing import TYPE_CHECKING

from overclaim.lazy import lazily

if TYPE_CHECKING:
    from overclaim.audit.assumptions.conformance import check_learner
    from overclaim.audit.canaries.score_audit import audit_scores
    from overclaim.audit.execution.cluster import Cluster
    from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism
    from overclaim.audit.play.pairs import Pair
    from overclaim.audit.regret.check_regret import check_regret
    from overclaim.audit.verdicts.verdict import Result, Verdict
    from overclaim.mechanisms.claim import Claim
    from overclaim.mechanisms.dp_sgd import DPSGD
    from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
    from overclaim.mechanisms.measures.gaussian_dp import GDP
    from overclaim.mechanisms.measures.renyi import RDP, ZCDP
    from overclaim.reports.notebook import Kind as Kind
    from overclaim.reports.notebook import Plot as Plot
    from overclaim.reports.notebook import result_card as result_card
    from overclaim.reports.notebook import result_plot as result_plot

__version__ = "0.2.0"

__all__ = [
    "DPSGD",
    "GDP",
    "RDP",
    "ZCDP",
    "ApproxDP",
    "Claim",
    "Cluster",
    "Pair",
    "Profile",
    "Result",
    "Verdict",
    "__version__",
    "audit_scores",
    "check_learner",
    "check_regret",
    "falsify",
    "falsify_mechanism",
]

_HOMES = {
    "ApproxDP": "overclaim.mechanisms.measures.approximate",
    "GDP": "overclaim.mechanisms.measures.gaussian_dp",
    "RDP": "overclaim.mechanisms.measures.renyi",
    "ZCDP": "overclaim.mechanisms.measures.renyi",
    "Profile": "overclaim.mechanisms.measures.approximate",
    "Claim": "overclaim.mechanisms.claim",
    "DPSGD": "overclaim.mechanisms.dp_sgd",
    "Cluster": "overclaim.audit.execution.cluster",
    "Pair": "overclaim.audit.play.pairs",
    "audit_scores": "overclaim.audit.canaries.score_audit",
    "Result": "overclaim.audit.verdicts.verdict",
    "Verdict": "overclaim.audit.verdicts.verdict",
    "check_learner": "overclaim.audit.assumptions.conformance",
    "check_regret": "overclaim.audit.regret.check_regret",
    "falsify": "overclaim.audit.pipeline.falsify",
    "falsify_mechanism": "overclaim.audit.pipeline.falsify",
    # Not public: how a `Result`, which lies below the reports, shows itself in a notebook.
    "result_card": "overclaim.reports.notebook",
    "result_plot": "overclaim.reports.notebook",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
