"""A column without a number is released as NaN, each time; one with a number never is."""

import numpy as np
from diffprivlib.tools import nanvar


def count_of_nan(second):
    rows = np.array([[0.5, second]])
    return sum(np.isnan(nanvar(rows, epsilon=1, bounds=(0, 1), axis=0)[1]) for _ in range(1000))


empty, filled = count_of_nan(np.nan), count_of_nan(0.5)
print(f"NaN: {empty} of 1000 without a number, {filled} of 1000 with one")
assert (empty, filled) == (1000, 0)
