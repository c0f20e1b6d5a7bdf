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
    needed = bets.boundary(steps, steps, alpha, grade)
    crossed = np.zeros(looks)
    alive, first = np.ones(1), 0  # the law of the right guesses, from `first` up, of paths that have not crossed
    for t in range(looks):
        moved = np.zeros(alive.size + 1)
        moved[:-1] = alive * (1 - pi)
        moved[1:] += alive * pi
        cut = min(moved.size, int(needed[t]) - first)  # at least 1: `needed` never falls
        crossed[t] = moved[cut:].sum()
        alive = moved[:cut]
        kept = np.flatnonzero(alive > 1e-18)
        if kept.size == 0:
            break
        first += int(kept[0])
        alive = alive[kept[0] : kept[-1] + 1]
    return crossed
