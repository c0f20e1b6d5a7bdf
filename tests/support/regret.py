"""A learner on one loss sequence: what it played, and its mean regret with its interval."""

from overclaim.audit.execution.execution import IN_PROCESS
from overclaim.audit.regret.measurement import BUDGET, play_sequences


def play_runs(learner, losses, budget=BUDGET, execution=IN_PROCESS, **options):
    return play_sequences(learner, [losses], budget, execution, **options)[0]


def measure(learner, losses, budget=BUDGET, execution=IN_PROCESS, **options):
    return play_runs(learner, losses, budget, execution, **options).regret(budget.confidence)
