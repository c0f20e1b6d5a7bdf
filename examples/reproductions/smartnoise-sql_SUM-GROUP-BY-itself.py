"""A column that a query groups by is not clamped, and its sum has noise for the bounds."""

import pandas as pd
import snsql


def sums(data):
    table = {"row_privacy": True, "x": {"name": "x", "type": "int", "lower": 0, "upper": 4}}
    privacy, frame = snsql.Privacy(epsilon=1.0, delta=0.1), pd.DataFrame({"x": data})
    reader = snsql.from_df(frame, metadata={"": {"s": {"t": table}}}, privacy=privacy)
    return [row[1] for _ in range(20) for row in reader.execute("SELECT x, SUM(x) AS s FROM s.t GROUP BY x")[1:]]


four, five = sums([1000] * 4), sums([1000] * 5)
assert max(four) < min(five), f"sums of x in [0, 4]: {four} of four records, {five} of five"
