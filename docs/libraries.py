"""The page of libraries: its table from records, its site without undisclosed faults, and drafts of disclosures.

    python docs/libraries.py RECORD.json...       write the table of docs/libraries.md
    python docs/libraries.py --draft TARGET       print the draft of an issue for the authors of a library

Of a claim that several records have, the last one counts. As a hook of mkdocs it leaves out of the site the cards and
rows of faults that are not known in public and that nobody told the authors of: their finding has no `disclosed` date.
"""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from overclaim.mechanisms.libraries.catalogue import library_entries
from overclaim.mechanisms.library_entry import LibraryEntry

PAGE = Path(__file__).with_name("libraries.md")
REPRODUCTIONS = PAGE.parents[1] / "examples" / "reproductions"
#: The heading of the cards.
CARDS = "## False claims"
DRAFT = """\
Title: {what}: more privacy is lost than is documented

{source} says: "{quotation}"

The claim is {claimed} for neighbours by {relations}, and it does not hold: {finding.false}.

This shows it (nothing but the library is needed):

```python
{code}
```

A repair: {finding.repair}.

What could be meant instead: {finding.answer} In the tracker: {finding.upstream}

An audit found it: `{command}`. We publish it with your fix, or 90 days from now.
"""
BEGIN, END = "<!-- table: docs/libraries.py -->\n", "<!-- end of table -->\n"
HEAD = "| target | neighbours | claim | standing | verdict | at least | power |"
RULE = "| --- | --- | --- | --- | --- | ---: | --- |"


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Leave undisclosed faults out of the page: called by mkdocs for every page."""
    return published(markdown) if page.file.src_uri == PAGE.name else markdown


def published(markdown: str) -> str:
    """Return the page as the site shows it."""
    table, begin, cards = markdown.partition(f"{CARDS}\n")
    lines = [line for line in table.splitlines(keepends=True) if not _is_hidden(line)]
    sections = re.split(r"(?m)^(?=##)", cards)
    shown = [section for section in sections if not section.startswith("### ") or "\n- **Disclosed**: " in section]
    hidden = len(sections) - len(shown)
    note = f"\n{hidden} cards are left out: their authors are being told.\n" if hidden else ""
    return "".join((*lines, begin, note, *shown))


def _is_hidden(line: str) -> bool:
    """Tell whether a row of the table is of a fault that is not disclosed."""
    target = line.partition(" | ")[0].removeprefix("| ")
    entry = library_entries().get(f"libraries/{target}")
    return bool(" | falsified | " in line and entry and entry.finding and not entry.finding.disclosed)


def draft(target: str) -> str:
    """Return the draft of an issue for the authors of a library: claim, reproduction, cause, repair.

    Raises
    ------
    ValueError
        If no fault of such a target is on record, or it has no reproduction.
    """
    entry = library_entries().get(target)
    if entry is None or entry.finding is None:
        raise ValueError(f"no fault of {target!r} is on record")
    finding, file = entry.finding, reproduction_of(entry)
    return DRAFT.format(
        what=entry.what,
        source=entry.source,
        quotation=entry.quotation,
        claimed=f"epsilon {entry.claim.epsilon:g}{_delta(entry.claim.delta)}",
        relations=" and ".join(entry.false_under),
        finding=finding,
        code=file.read_text(encoding="utf-8").strip(),
        command=f"overclaim check {entry.name} --runs {entry.runs}",
    )


def reproduction_of(entry: LibraryEntry) -> Path:
    """Return the file that reproduces the fault of an entry: faults that are one share a file."""
    finding = entry.finding
    twins = [other.what for other in library_entries().values() if other.finding is finding]
    files = [REPRODUCTIONS / f"{entry.package.name}_{what}.py" for what in (entry.what, *twins)]
    file = next((file for file in files if file.is_file()), None)
    if file is None:
        raise ValueError(f"{entry.name} has no reproduction in {REPRODUCTIONS.name}/")
    return file


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
    """Rewrite the page, or print a draft."""
    if paths[:1] == ["--draft"]:
        print(draft(paths[1]))
        return
    claims = [claim for path in paths for claim in json.loads(Path(path).read_text(encoding="utf-8"))["claims"]]
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    lines = [HEAD, RULE, *rows(claims)]
    PAGE.write_text(f"{before}{BEGIN}\n{chr(10).join(lines)}\n\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
