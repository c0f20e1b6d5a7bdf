"""The self-test in words: what was planted, what was caught, at what cost."""

from __future__ import annotations

from collections.abc import Sequence

import click

from ...audit.plans.selftest import SelfTestResult
from ..formats.terminal import colour

#: The verdict whose colour an outcome has, where it needs attention.
LIKE = {"MISSED": "FALSIFIED", "FALSE ALARM": "FALSIFIED"}

#: How traces begin that found nothing.
NOT_TRACED = ("nothing: ", "not traced: ")


def summary(results: Sequence[SelfTestResult]) -> dict[str, float]:
    """Return the tally."""
    bugs, sound = [f for f in results if f.bug], [f for f in results if not f.bug]
    return {
        "planted": len(bugs),
        "caught": sum(f.good for f in bugs),
        "sound": len(sound),
        "false_alarms": sum(not f.good for f in sound),
        "traced": sum(bool(f.traced) and not f.traced.startswith(NOT_TRACED) for f in bugs),
        "seconds": round(sum(f.seconds for f in results), 3),
    }


def table_of(results: Sequence[SelfTestResult]) -> str:
    """Return one line for each planted bug and each sound original, and the tally."""
    names = {f.subject for f in results}
    width, wide = max(map(len, names)), max(len(f.bug) for f in results)
    lines = []
    for f in results:
        word = click.style(f"{f.outcome:<11}", fg=colour(LIKE.get(f.outcome, "")))
        bug = f.bug or "(sound)"
        lines.append(f"{word}  {f.subject:<{width}}  {bug:<{wide}}  {f.runs:>6,} runs  {f.how}")
        lines += [f"{'':<11}  in two runs: {f.traced}"] if f.traced else []
    sums = summary(results)
    lines.append(
        f"{sums['caught']} of {sums['planted']} planted bugs caught, {sums['false_alarms']} false alarms on "
        f"{sums['sound']} sound originals, {sums['seconds']:.0f} s of work; {sums['traced']} bugs found by traces"
    )
    return "\n".join(lines)
