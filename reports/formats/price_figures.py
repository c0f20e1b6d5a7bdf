"""The price of privacy, one figure for each paper: regret against epsilon, drawn from the record alone."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from .drawing import COLOURS, available, draw
from .figures import Figure, count_text, figure

if TYPE_CHECKING:
    from ...audit.record_types import RegretJson
    from .drawing import Axes

#: What papers state of lower bounds. None has a constant in the texts that we have, so no line can be drawn.
LOWER_BOUNDS = {
    "smith-thakurta": (
        "Smith & Thakurta 2013 name non-private lower bounds of order log T for strongly convex losses, and of order "
        "sqrt(T) for Lipschitz ones and with bandit feedback (Table 2), without constants: no line is drawn for them."
    ),
    "asi-raman-talwar": (
        "Asi, Raman & Talwar 2025 bound the regret of private learners that soon leave a bad arm from below (Lemma "
        "11), without a constant in the text that we have: no line is drawn for it."
    ),
}
#: Lines are told apart by colour, and from where there are more of them by marker.
_MARKERS = "os^vDP*Xp<"


def of_papers(rows: Sequence[RegretJson]) -> list[Figure]:
    """Return a figure for every paper, by the part of the names before the stroke, of which prices are known."""
    papers: dict[str, list[RegretJson]] = {}
    for row in rows if available() else ():
        if _is_priced(row):
            papers.setdefault(str(row.get("name") or "").partition("/")[0], []).append(row)
    return [
        figure(f"The price of privacy: {paper}", f"p{i}", partial(_of_paper, paper, priced))
        for i, (paper, priced) in enumerate(papers.items())
    ]


def _is_priced(row: RegretJson) -> bool:
    """Tell whether a row has a price and an interval for every one of several epsilons that can be drawn."""
    epsilons, price, intervals = row.get("epsilons") or (), row.get("price") or (), row.get("price_intervals") or ()
    drawable = all(1e-12 < epsilon < 1e12 for epsilon in epsilons) and None not in price
    numbers = [*(x for x in price if x is not None), *(end for interval in intervals for end in interval)]
    return len(epsilons) == len(price) == len(intervals) > 1 and drawable and all(abs(x) < 1e15 for x in numbers)


def _of_paper(paper: str, rows: Sequence[RegretJson]) -> tuple[str, str, str]:
    colours = list(COLOURS.values())[3:]

    def paint(axes: Axes) -> None:
        axes.set_xscale("log")
        axes.set_yscale("symlog", linthresh=10)
        for i, row in enumerate(rows):
            xs, means = row["epsilons"], row["price"]
            ends = list(zip(*row["price_intervals"], strict=True))
            low = [max(0.0, mean - end) for mean, end in zip(means, ends[0], strict=True)]
            high = [max(0.0, end - mean) for mean, end in zip(means, ends[1], strict=True)]
            colour, marker = colours[i % len(colours)], _MARKERS[i % len(_MARKERS)]
            axes.errorbar(
                *(xs, means, [low, high]),
                label=_short(row),
                color=colour,
                marker=marker,
                linewidth=0.9,
                elinewidth=0.7,
                markersize=3,
            )
            if free := row.get("unnoticed"):
                axes.plot(xs[-2:], [free["mean_regret"]] * 2, color=colour, linewidth=0.9, linestyle=(0, (2, 2)))
        axes.xaxis.set_major_formatter(count_text)
        axes.yaxis.set_major_formatter(count_text)
        axes.legend(fontsize=4.5, frameon=False, ncols=2, loc="best")

    rows_in_words = [_words(row) for row in rows]
    alternative = f"mean regret against epsilon. {'; '.join(rows_in_words)}"
    caption = (
        "Mean regret on the worst sequence at a quarter of the horizon, for each epsilon that the noise is calibrated "
        "to, with intervals; dashed: at epsilon 1,000,000, where the noise is next to nothing."
    )
    caption += f" {LOWER_BOUNDS[paper]}" if paper in LOWER_BOUNDS else ""
    return draw(paint, "epsilon", "mean regret"), alternative, caption


def _short(row: RegretJson) -> str:
    return str(row.get("name", "")).rpartition("/")[2].replace("$", r"\$")


def _words(row: RegretJson) -> str:
    price, free = row["price"], row.get("unnoticed")
    last = f", {free['mean_regret']:.3g} with next to no noise" if free else ""
    return f"{_short(row)}: {price[0]:.3g} at {row['epsilons'][0]:g}, {price[-1]:.3g} at {row['epsilons'][-1]:g}{last}"
