"""The noisy counts of the classes add up to the number of records."""

import numpy as np
from diffprivlib.models import GaussianNB


def released_size(data, labels):
    model = GaussianNB(epsilon=1, bounds=(0, 1)).fit(np.array(data)[:, None], np.array(labels))
    return round(model.class_count_.sum())


four = {released_size([0.2, 0.4, 0.6, 0.8], [0, 1, 0, 1]) for _ in range(200)}
three = {released_size([0.2, 0.4, 0.6], [0, 1, 0]) for _ in range(200)}
print(f"sums of the counts: {four} of four records, {three} of three")
assert not four & three
