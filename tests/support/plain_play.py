"""Play as the protocol says, on one sequence of losses: what learners are compared with their slow twins on."""

import numpy as np


def played(learner, losses, draws, runs=1):
    """The actions on a loss sequence, (rounds, [dim,] runs)."""
    state, actions = learner.start(runs, draws), []
    for loss in losses:
        x = learner.act(state, draws)
        actions.append(np.array(x))
        fed = loss[:, None] if learner.feedback == "full" else (loss[x] if x.ndim == 1 else loss @ x)
        learner.update(state, x, fed, draws)
    return np.array(actions)
