"""The text of every figure stands inside of it, and over no other text."""

from pathlib import Path

import pytest

from overclaim.reports.formats import figures
from overclaim.reports.formats.drawing import draw
from overclaim.reports.reading import legible
from overclaim.reports.record import read_record
from overclaim.tests.support.picture_text import misplaced, text_boxes


@pytest.mark.slow(reason="draws the figures of a whole record")
def test_the_text_of_every_figure_fits():
    record = legible(read_record(Path(__file__).parents[2] / "data" / "record.json"))
    drawn = [item for number, claim in enumerate(record["claims"]) for item in figures.of_claim(claim, f"c{number}")]
    drawn += [item for number, entry in enumerate(record["regret"]) for item in figures.of_regret(entry, f"r{number}")]
    assert {"Trade-off curve", "Privacy profile", "Scores by input", figures.ROC} <= {item.title for item in drawn}
    for item in drawn:
        assert len(text_boxes(item.svg)) > 4, item.title
        assert misplaced(item.svg) == [], item.title


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([(0.1, "left"), (0.9, "right")], []),
        ([(0.1, "left"), (0.15, "over it")], [("left", "over it")]),
        ([(0.8, "a legend that is cut at the edge")], ["a legend that is cut at the edge"]),
    ],
)
def test_text_that_is_cut_or_covered_is_seen(texts, expected):
    def paint(axes):
        for x, text in texts:
            axes.text(x, 0.5, text)

    assert misplaced(draw(paint, "x", "y")) == expected
