"""When bets that claims are false become rich enough to say so: the exact law, against which they are tested."""

import numpy as np


def crossing_law(bets, pi, looks, alpha, grade):
    """Return the exact probability that the claim is rejected at each guess, each right with probability `pi`.

    Parameters
    ----------
    looks : int
        Guesses.
    grade : int
        That of their stakes; 0 for none.

    Returns
    -------
    array (looks,)
    """
    steps = np.arange(1, looks + 1)
    min_right = bets.boundary(steps, steps, alpha, grade)
    crossed = np.zeros(looks)
    alive, first = np.ones(1), 0  # the law of the right guesses, from `first` up, of paths that have not crossed
    for t in range(looks):
        next_law = np.zeros(alive.size + 1)
        next_law[:-1] = alive * (1 - pi)
        next_law[1:] += alive * pi
        boundary = min(next_law.size, int(min_right[t]) - first)  # at least 1: `needed` never falls
        crossed[t] = next_law[boundary:].sum()
        alive = next_law[:boundary]
        support = np.flatnonzero(alive > 1e-18)
        if support.size == 0:
            break
        first += int(support[0])
        alive = alive[support[0] : support[-1] + 1]
    return crossed
