"""Write the table of docs/libraries.md from the records of `make libraries`: target, verdict, blind spot.

    python docs/libraries.py RECORD.json...

Of a claim that several records have, the last one counts.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

PAGE = Path(__file__).with_name("libraries.md")
BEGIN, END = "<!-- table: docs/libraries.py -->\n", "<!-- end of table -->\n"
HEAD = "| target | neighbours | claim | standing | verdict | at least | blind spot |"
RULE = "| --- | --- | --- | --- | --- | ---: | --- |"


def rows(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return the lines of the table."""
    claim_of = {(claim["name"], claim["neighbours"]): claim for claim in claims}
    return [_row(claim) for _, claim in sorted(claim_of.items())]


def _row(claim: Mapping[str, Any]) -> str:
    target = claim["name"].removeprefix("libraries/")
    measure = claim["measure"]
    stated = (
        f"rho {measure['rho']:g}"
        if measure.get("kind") == "zcdp"
        else f"{claim['claimed']['epsilon']:.4g}{_delta(claim['claimed']['delta'])}"
    )
    standing = "ours" if claim["standing"] == "control" else claim["standing"]
    cells = (target, claim["neighbours"], stated, standing, claim["verdict"].lower(), _down(claim["lower"]))
    return f"| {' | '.join((*cells, _blind(claim)))} |"


def _delta(delta: float) -> str:
    return f", {delta:g}" if delta else ""


def _down(bound: float) -> str:
    """Return a lower bound with three digits behind the point, none above it."""
    return f"{math.floor(1000 * bound) / 1000:.3f}"


def _blind(claim: Mapping[str, Any]) -> str:
    """Return the factor at which the audit would have caught too little noise."""
    spot = claim.get("blind_spot")
    if not spot:
        return "-"
    sign = "epsilon×" if spot["parameter"] == "epsilon" else "noise/"
    return f"{sign}{spot['factor']:g}" if spot["factor"] else f"not at {sign}{spot['tried']:g}"


def main(paths: list[str]) -> None:
    """Rewrite the page."""
    claims = [claim for path in paths for claim in json.loads(Path(path).read_text(encoding="utf-8"))["claims"]]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [HEAD, RULE, *rows(claims)]
    PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
