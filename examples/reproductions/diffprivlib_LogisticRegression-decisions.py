"""The intercept is not regularised, and the noise is for regularised coefficients alone."""

import numpy as np
from diffprivlib.models import LogisticRegression


def share_undecided(data):
    data = np.array(data, dtype=float)[:, None]
    models = (LogisticRegression(data_norm=1, random_state=seed).fit(data, [0, 1]) for seed in range(2000))
    return np.mean([abs(model.decision_function([[-1.0]])[0]) < 1 for model in models])


replaced, alike = share_undecided([1, -1]), share_undecided([1, 1])
print(f"decision at -1 within 1: {replaced:.4f} of (1, -1), {alike:.4f} of (1, 1); epsilon 1 allows a ratio of 2.72")
assert replaced > 3 * alike
