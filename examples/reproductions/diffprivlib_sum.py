"""The sum of records in [0, 1] is released between 0 and their number: one record more shows."""

import numpy as np
from diffprivlib.tools import sum as private_sum


def share_above_one(data):
    return np.mean([private_sum(np.array(data), epsilon=1, bounds=(0, 1)) > 1 for _ in range(2000)])


two, one = share_above_one([1.0, 1.0]), share_above_one([1.0])
print(f"above 1: {two:.3f} of two records, {one:.3f} of one; epsilon 1 allows a ratio of 2.72")
assert two > 0.3
assert one == 0
