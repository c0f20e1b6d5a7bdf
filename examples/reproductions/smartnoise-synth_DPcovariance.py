"""Covariances are in the order of a lower triangle, their sensitivities in that of an upper one."""

import pandas as pd
from snsynth.models.dp_covariance import DPcovariance


def variances(largest):
    rows = pd.DataFrame({"a": [0.0, 0.0], "b": [0.0, largest], "c": [0.0, 0.0]})
    ranges = pd.DataFrame({0: (0.0, 1.0), 1: (0.0, 100.0), 2: (0.0, 1.0)})
    return [DPcovariance(2, ["a", "b", "c"], ranges, 1.0).release(rows)[2] for _ in range(1000)]


full, half = variances(100.0), variances(50.0)
print(f"variance of b, 1000 times: at least {min(full):.0f} of (0, 100), at most {max(half):.0f} of (0, 50)")
assert min(full) > max(half)
