"""Plain tables for a terminal: widths fit, colours only where one is watching (click strips them elsewhere)."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Iterable, Sequence
from typing import Any

import click

from ..learners.catalogue import Entry

COLOURS = {"FALSIFIED": "red", "SURVIVED": "green", "UNDERPOWERED": "yellow"}


def width() -> int:
    """Return the columns to fill."""
    return min(shutil.get_terminal_size((100, 24)).columns, 140)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return left-aligned columns, each as wide as its longest cell; the last one is cut to the terminal."""
    cells = [list(head), *[list(row) for row in rows]]
    widths = [max(len(click.unstyle(row[i])) for row in cells) for i in range(len(head))]
    lines = []
    for row in cells:
        padded = [cell + " " * (w - len(click.unstyle(cell))) for cell, w in zip(row, widths, strict=True)]
        lines.append("  ".join(padded).rstrip())
    lines.insert(1, "-" * min(width(), sum(widths) + 2 * len(widths) - 2))
    return "\n".join(lines)


def catalogue_table(entries: Iterable[Entry]) -> str:
    """Return name, claim and source of every entry."""
    rows = []
    for entry in entries:
        delta = f", {entry.delta:g}" if entry.delta else ""
        epsilon = "f(T)" if entry.claim_epsilon else "epsilon"
        rows.append((entry.name, f"({epsilon}{delta})-DP on {entry.losses}", entry.summary, entry.source))
    return table(("name", "claim", "algorithm", "source"), rows)


def verdict_word(verdict: str) -> str:
    """Return the verdict in its colour."""
    return click.style(verdict, fg=COLOURS[verdict], bold=True)


def number(value: float | None) -> str:
    """Return four significant digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def claims_table(record: dict[str, Any]) -> str:
    """Return the table of a run, with its surprises and errors below."""
    rows = []
    for claim in record["claims"]:
        setting = " ".join(
            str(claim[key])
            for key in ("calibration", "losses", "surface")
            if claim.get(key) and claim[key] != "actions"
        )
        if claim["neighbours"] != "replace":
            setting += f" {claim['neighbours']}"
        rows.append(
            (
                verdict_word(claim["verdict"]),
                claim["name"],
                setting,
                number(claim["claimed"]["epsilon"]),
                number(claim["epsilon_lower"]),
                number(claim["exact_epsilon"]),
                number(claim["detectable_epsilon"]),
            )
        )
    lines = [table(("verdict", "target", "setting", "claimed", "certified", "exact", "detectable"), rows)]
    for claim in record["claims"]:
        if claim["expected"] and claim["verdict"] != claim["expected"].upper():
            lines.append(
                f"unexpected: {claim['name']} is {claim['verdict']}, expected {claim['expected']}: {claim['replay']}"
            )
    lines += [f"{error['kind']}: {error['name']}: {error['message']}" for error in record["errors"]]
    return "\n".join(lines)


def claim_lines(claim: dict[str, Any]) -> str:
    """Return one claim's outcome in a few lines."""
    claimed = claim["claimed"]
    at = f" at delta {claimed['delta']:g}" if claimed["delta"] else ""
    exact = f", exactly {claim['exact_epsilon']:.4f} on this pair" if claim["exact_epsilon"] is not None else ""
    pair, counts = claim["pair"], claim["counts"]
    t0 = pair["round"] - 1
    lines = [
        f"{verdict_word(claim['verdict'])}  {claim['name']}: claimed epsilon {claimed['epsilon']:g}{at}",
        f"certified: epsilon >= {claim['epsilon_lower']:.4f} with {claim['confidence']:.4g} confidence{exact}",
        f"two Clopper-Pearson intervals: >= {claim['two_interval_bound']:.4f}",
        f"would have caught: {number(claim['detectable_epsilon'])}",
        f"attack: {claim['attack']}, {claim['method']}, {counts['right']:,} right of {counts['guesses']:,} guesses "
        f"in {counts['runs']:,} certification runs",
        f"pair: round {pair['round']} of {len(pair['left'])}, left {pair['left'][t0]}, right {pair['right'][t0]}",
        f"replay: {claim['replay']}",
    ]
    if claim["verdict"] == "SURVIVED":
        lines.append("surviving is not a proof: no attack tried here separates the worlds beyond the claim")
    if claim["verdict"] == "UNDERPOWERED":
        lines.append("undecided: even a perfect attack could not falsify so large a claim with so few runs")
    return "\n".join(
        textwrap.fill(line, width(), subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for line in lines
    )
