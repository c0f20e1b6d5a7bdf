"""The second derivative of a record's loss grows with the square of its norm, and the noise with the norm."""

import numpy as np
from diffprivlib.models import LogisticRegression


def share_near_zero(data, labels):
    data = np.array(data, dtype=float)[:, None]
    models = (LogisticRegression(data_norm=100, random_state=seed).fit(data, labels) for seed in range(3000))
    return np.mean([abs(model.coef_[0, 0]) < 0.1 for model in models])


four, three = share_near_zero([0, 0, 0, 100], [1, 0, 1, 0]), share_near_zero([0, 0, 0], [1, 0, 1])
print(f"coefficient below 0.1: {four:.4f} with the record 100, {three:.4f} without; epsilon 1 allows a ratio of 2.72")
assert four > 3 * three
