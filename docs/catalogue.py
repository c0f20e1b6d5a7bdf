"""The catalogue page and the ruler's picture, made from the code: a hook of mkdocs, and a script.

python docs/catalogue.py          print the catalogue page
python docs/catalogue.py RECORD   write docs/ruler.svg from a record of `overclaim run`
"""

from __future__ import annotations

import re
import sys
from itertools import groupby
from pathlib import Path
from typing import Any

from overclaim.learners.catalogue.entries import entries
from overclaim.learners.entry import Entry
from overclaim.mechanisms.measures.measure import number_text
from overclaim.reports.formats.ruler import picture
from overclaim.reports.record import read_record

MARKER = "<!-- catalogue -->"
#: A link that leaves docs/.
OUTSIDE = re.compile(r"\[([^\]]+)\]\(\.\./([^)]+)\)")
HERE = Path(__file__).resolve().parent
#: What the picture shows: a false claim beside its mended twins, and two others.
SHOWN = (
    ("agarwal-singh/ftrl-experts", "as_published", "replace", "release"),
    ("agarwal-singh/ftrl-experts", "as_published", "zero-out", "release"),
    ("agarwal-singh/reduction-threshold", "as_published", "replace", "actions"),
    ("agarwal-singh/reduction-threshold", "corrected", "replace", "actions"),
    ("agarwal-singh/reduction-exp2", "as_published", "replace", "actions"),
    ("asi-raman-talwar/batched-threshold", "as_published", "replace", "actions"),
)


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Put the catalogue in the place of the marker: called by mkdocs for every page.

    Files outside of docs/ are no pages: a link to one becomes its path.
    """
    return OUTSIDE.sub(r"\1 (`\2`)", markdown).replace(MARKER, page())


def page() -> str:
    """Return the catalogue in Markdown."""
    parts = []
    for paper, members in groupby(entries().values(), key=lambda e: e.name.partition("/")[0]):
        parts.append(f"## {paper}\n")
        parts.extend(_entry(entry) for entry in members)
    return "\n".join(parts)


def _example(entry: Entry) -> str:
    """Return what `overclaim check` audits where it is told nothing of a game."""
    case = entry.example
    if case is None:
        return ""
    words = [f"T = {case.rounds or entry.rounds}", case.surface, case.calibration.replace("_", " ")]
    words += [f"`{name}={number_text(value)}`" for name, value in case.parameters.items()]
    return f"; `overclaim check` and nothing else audits {', '.join(words)}"


def _game(case: dict[str, Any], entry: Entry) -> str:
    """Return what a case claims, and the parameters without which its verdict may be another."""
    claimed = case["claimed"]
    words = [f"ε = {claimed['epsilon']:.4g}", *([f"δ = {claimed['delta']:g}"] if claimed["delta"] else [])]
    words += [f"K = {case['arms']}"] if case["arms"] != entry.arms else []
    return ", ".join([*words, *(f"`{name}={value}`" for name, value in case["parameters"].items())])


def _entry(entry: Entry) -> str:
    claim = entry.promise or "none: nobody calls it private"
    own = ", ".join(f"`{name}`" for name in entry.parameters) or "none"
    lines = [
        f"### {entry.name}\n",
        f"{entry.summary}\n",
        f"- **Claim**: {claim}",
        f"- **Source**: {entry.source}",
        f"- **Its own parameters** (`--set`): {own}",
        f"- **Audited by default** at T = {entry.rounds}, {entry.arms} arms or coordinates{_example(entry)}",
        "",
        "| standing | statement | calibration | losses | neighbours | surface | T | claimed | expected | note |",
        "|---|---|---|---|---|---|---:|---|---|---|",
    ]
    for case in entry.cases:
        stated = case.statement.source.partition(", ")[2] if case.statement else ""
        cells = (case.standing, stated, case.calibration.replace("_", "&nbsp;"), case.losses or entry.losses)
        more = (
            case.neighbours,
            case.surface,
            str(case.rounds or entry.rounds),
            _game(case.to_json(entry), entry),
            case.expected,
        )
        lines.append("| " + " | ".join((*cells, *more, case.note.replace("|", "\\|"))) + " |")
    said = dict.fromkeys(case.statement for case in entry.cases if case.statement)
    lines += ["", *[f"> “{s.text}”  \n> {s.source}: {s.where}\n" for s in said]]
    return "\n".join([*lines, "", f"```\noverclaim check {entry.name} --epsilon 1\n```", ""])


def draw(record: Path) -> None:
    """Write the ruler's picture from a record."""
    claims = read_record(record)["claims"]
    own = {key: next((c for c in claims if _key(c) == key and c["losses"] != "l1-ball"), None) for key in SHOWN}
    title = "Six privacy claims on one ruler: three pass the mark, so they are false; three stay below it"
    (HERE / "ruler.svg").write_text(picture([c for c in own.values() if c], title=title), encoding="utf-8")


def _key(claim: dict[str, Any]) -> tuple[str, ...]:
    return tuple(claim[key] for key in ("name", "calibration", "neighbours", "surface"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        draw(Path(sys.argv[1]))
    else:
        print(page())
