"""A record with a weight of 5 moves its bin by 5, and the noise is for 1."""

import numpy as np
from diffprivlib.tools import histogram


def share_of_five(values, weights):
    drawn = [histogram(values, epsilon=1, bins=2, range=(0, 1), weights=weights)[0][0] for _ in range(5000)]
    return np.mean(np.array(drawn) >= 5)


inside, outside = share_of_five([0.2, 0.8], [5.0, 1.0]), share_of_five([0.8], [1.0])
print(f"5 or more: {inside:.4f} with the record, {outside:.4f} without; epsilon 1 allows a ratio of 2.72")
assert inside > 10 * outside
