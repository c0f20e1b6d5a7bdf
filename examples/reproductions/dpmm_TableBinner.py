"""A column whose values are all equal is kept as it is, also where its domain is given."""

import pandas as pd
from dpmm.processing.table_binner import TableBinner


def kept(values):
    binner = TableBinner("priv-tree", {"epsilon": 1, "n_bins": 4}, domain={"x": {"lower": 0, "upper": 1}})
    binner.fit(pd.DataFrame({"x": values}))
    return dict(binner.static_columns)


equal, different = kept([0.25, 0.25, 0.25]), kept([0.25, 0.25, 0.5])
print(f"columns that are kept: {equal}, and {different} after one record was replaced")
assert equal != different
