"""The score of a pair of columns is divided by their entropies, and its noise is for the undivided score."""

import pandas as pd
from dpmm.models import base, priv_bayes


def share_apart(first):
    table = pd.DataFrame({"a": first, "b": first, "c": [0, 1] * 500})
    data = base.mbi.Dataset(table, base.mbi.Domain(("a", "b", "c"), (2, 2, 2)))
    chooser = priv_bayes.PrivBayes(epsilon=1, delta=0.01, n_jobs=1)
    return sum(all({"a", "b"} != set(pair) for pair in chooser.select(data)) for _ in range(300)) / 300


none, single = share_apart([0] * 1000), share_apart([0] * 999 + [1])
assert none > 3 * single + 0.1, f"epsilon 1 and delta 0.01 allow 2.72 times and 0.01; got {none:.3f} and {single:.3f}"
