"""Is any row of the literature blind? `make audit` asks, of the record that it wrote.

No claim that survives is kept where noise ten times too small would not have been caught, unless its row allows it;
and every entry has a row that is falsified, or that catches noise 1.5 times too small. Prints the others, and ends
with 1.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path

#: The largest factor of a row's blind spot, and of the least one of an entry's rows.
LARGEST, SHARPEST = 10.0, 1.5
#: What stands for the factor of a row that catches none.
NONE = float("inf")


def blind(claims: list[dict]) -> list[str]:
    """Return what is wrong, a line each."""
    lines, factors = [], defaultdict(list)
    for claim in claims:
        factor = 1.0  # what is falsified was seen
        if claim["expected"] == "survived":
            factor = (claim["blind_spot"] or {}).get("factor") or NONE
            if not claim["untested_allowed"] and (claim["untested"] or factor > LARGEST):
                untested = f", and is UNDERPOWERED ({claim['reason']})" if claim["untested"] else ""
                lines.append(f"{claim['name']} with {claim['parameters']}: noise {factor:g} times too small{untested}")
        factors[claim["name"]].append(factor)
    dull = [name for name, found in factors.items() if min(found) > SHARPEST]
    return lines + [f"{name}: no row catches noise {SHARPEST:g} times too small" for name in dull]


if __name__ == "__main__":
    found = blind(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["claims"])
    sys.exit("\n".join(["blind spots:", *found]) if found else 0)
