"""The mean regret of a learner on one loss sequence, with its interval."""

from overclaim.audit.play.execution import HERE
from overclaim.audit.regret.measurement import BUDGET, play_runs


def measure(learner, losses, budget=BUDGET, execution=HERE, **more):
    return play_runs(learner, losses, budget, execution, **more).regret(budget.confidence)
