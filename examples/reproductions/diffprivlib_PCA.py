"""The noisy eigenvalue is divided by the number of records less one, so its scale shows how many there are."""

import numpy as np
from diffprivlib.models import PCA


def share_above_six(rows):
    model = PCA(n_components=1, epsilon=1, data_norm=1, centered=True)
    return np.mean([model.fit(np.zeros((rows, 1))).explained_variance_[0] > 6 for _ in range(5000)])


two, three = share_above_six(2), share_above_six(3)
print(f"variance above 6: {two:.4f} of two records, {three:.4f} of three; epsilon 1 allows a ratio of 2.72")
assert two > 3 * three
