"""Which labels occur is released as it is."""

import numpy as np
from diffprivlib.models import GaussianNB


def released_classes(labels):
    data = np.array([[0.2], [0.4], [0.6]])
    return list(GaussianNB(epsilon=1, bounds=(0, 1)).fit(data, np.array(labels)).classes_)


alike, different = released_classes([0, 0, 0]), released_classes([0, 0, 1])
print(f"classes: {alike} and {different}, after one label was replaced")
assert alike != different
