"""A learner on one loss sequence: what it played, and its mean regret with its interval."""

from overclaim.audit.execution.execution import HERE
from overclaim.audit.regret.measurement import BUDGET, play_sequences


def play_runs(learner, losses, budget=BUDGET, execution=HERE, **more):
    return play_sequences(learner, [losses], budget, execution, **more)[0]


def measure(learner, losses, budget=BUDGET, execution=HERE, **more):
    return play_runs(learner, losses, budget, execution, **more).regret(budget.confidence)
