"""`make bench`: speed, memory, scaling and tightness, measured here.

    make bench [SECTION="SECTION ..."]

The results go to benchmarks/results/ as Markdown and JSON. With sections named, only these are measured, and the
others are kept as they are committed. Ratios against the committed results are printed, never asserted: machines
differ and are noisy.
"""

from __future__ import annotations

import argparse
import json
import os
from datetime import UTC, datetime
from typing import Any

from overclaim.reports.command_line.cli import ENVIRONMENT

for _name, _value in ENVIRONMENT.items():  # before NumPy is loaded
    os.environ.setdefault(_name, _value)


from overclaim.benchmarks import tables  # noqa: E402
from overclaim.benchmarks.power import tightness  # noqa: E402
from overclaim.benchmarks.speed import others, speed  # noqa: E402

#: Sections and what measures them; its docstring is the section's remark.
SECTIONS = {
    "speed": speed.speed,
    "learners": speed.learners,
    "tree": speed.tree,
    "scaling": speed.scaling,
    "processes": speed.processes,
    "memory": speed.memory,
    "startup": speed.startup,
    "bounds of other packages": others.bounds,
    "noise of other packages": others.draws,
    "tightness": tightness.tightness,
    "tightness by budget": tightness.budgets,
    "particles": tightness.particles,
}
#: What the ratio of two measurements of one row is taken of.
COMPARED = ("median", "certified", "ratio")


def against(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the ratios of this machine's figures to the committed ones."""
    lines = []
    for section in SECTIONS:
        before = {row["what"]: row for row in old.get(section, [])}
        for row in new.get(section, []):
            value = next((name for name in COMPARED if name in row), None)
            committed = before.get(row["what"], {}).get(value)
            if value and committed:
                lines.append(f"{row['what']}: {row[value] / committed:.2f} of committed ({value})")
    return lines


def main() -> None:
    """Measure, compare, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    sections = parser.parse_args().sections or list(SECTIONS)
    if unknown := [name for name in sections if name not in SECTIONS]:
        parser.error(f"no such section: {', '.join(unknown)}; expected some of {', '.join(SECTIONS)}")
    path = tables.RESULTS / "bench.json"
    old = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    time_now = datetime.now(UTC).isoformat(timespec="seconds")
    measured: dict[str, str] = {**old.get("measured", {}), **dict.fromkeys(sections, tables.dated())}
    tables_of: dict[str, Any] = {"machine": tables.machine(), "created": time_now, "measured": measured}
    for section, measure in SECTIONS.items():
        if section in sections:
            print(f"\n{section}", flush=True)
            tables_of[section] = measure()
            print(tables.table(tables_of[section]), flush=True)
        elif section in old:
            tables_of[section] = old[section]
    medians = f"Medians of {speed.REPEATS} where nothing else is said."
    parts = [f"# Benchmarks\n\n{medians}\n"]
    for section in SECTIONS:
        if section in tables_of:
            remark = (SECTIONS[section].__doc__ or "").strip().splitlines()[0]
            parts.append(
                f"## {section.capitalize()}\n\n{remark} {measured[section]}\n\n{tables.table(tables_of[section])}\n"
            )
    tables.write_page("bench", "\n".join(parts))
    path.write_text(json.dumps(tables_of, indent=1) + "\n", encoding="utf-8")
    print("\n" + "\n".join(against({s: old.get(s, []) for s in sections}, {s: tables_of[s] for s in sections})))


if __name__ == "__main__":
    main()
