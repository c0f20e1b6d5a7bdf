"""The self-test in words: what was planted, what was caught, at what cost."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from ...audit.plans.selftest import Finding

COLOURS = {"CAUGHT": "green", "QUIET": "green", "MISSED": "red", "FALSE ALARM": "red"}

#: How traces begin that found nothing.
NOT_TRACED = ("nothing: ", "not traced: ")


def summary(found: Sequence[Finding]) -> dict[str, Any]:
    """Return the tally."""
    bugs, sound = [f for f in found if f.bug], [f for f in found if not f.bug]
    return {
        "planted": len(bugs),
        "caught": sum(f.good for f in bugs),
        "sound": len(sound),
        "false_alarms": sum(not f.good for f in sound),
        "traced": sum(bool(f.traced) and not f.traced.startswith(NOT_TRACED) for f in bugs),
        "seconds": round(sum(f.seconds for f in found), 3),
    }


def table_of(found: Sequence[Finding]) -> str:
    """Return one line for each planted bug and each sound original, and the tally."""
    names = {f.subject for f in found}
    width, wide = max(map(len, names)), max(len(f.bug) for f in found)
    lines = []
    for f in found:
        word = click.style(f"{f.outcome:<11}", fg=COLOURS[f.outcome])
        bug = f.bug or "(sound)"
        lines.append(f"{word}  {f.subject:<{width}}  {bug:<{wide}}  {f.runs:>6,} runs  {f.how}")
        lines += [f"{'':<11}  in two runs: {f.traced}"] if f.traced else []
    told = summary(found)
    lines.append(
        f"{told['caught']} of {told['planted']} planted bugs caught, {told['false_alarms']} false alarms on "
        f"{told['sound']} sound originals, {told['seconds']:.0f} s of work; {told['traced']} bugs found by traces"
    )
    return "\n".join(lines)
