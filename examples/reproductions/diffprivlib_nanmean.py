"""A number among nine missing values moves their mean by 1; the noise is that for a tenth of it."""

import numpy as np
from diffprivlib.tools import nanmean


def share_above_half(number):
    data = [number] + [np.nan] * 9
    return np.mean([nanmean(data, epsilon=1, bounds=(0, 1)) > 0.5 for _ in range(2000)])


high, low = share_above_half(1.0), share_above_half(0.0)
print(f"above 0.5: {high:.3f} of 1, {low:.3f} of 0; epsilon 1 allows a ratio of 2.72")
assert high > 5 * low
