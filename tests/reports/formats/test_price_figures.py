"""The price of privacy in the report: one figure for each paper, from the record alone."""

from overclaim.reports.formats.html import render
from overclaim.reports.formats.price_figures import of_papers
from overclaim.reports.record import run_record
from overclaim.reports.record_schema import fault


def row(name, **changes):
    return {
        "name": name,
        "epsilons": [0.5, 1.0, 2.0],
        "price": [30.0, 12.0, -1.0],
        "price_intervals": [[25.0, 36.0], [8.0, 15.0], [-3.0, 2.0]],
        "unnoticed": {"epsilon": 1e6, "mean_regret": -2.0, "interval": [-4.0, 0.0]},
        **changes,
    }


ROWS = [row("one/a"), row("two/b"), row("one/<b>$x"), row("two/no", price_intervals=None), row("two/odd", price=[1.0])]


def test_a_figure_for_each_paper():
    drawn = of_papers(ROWS)
    assert [figure.title.rpartition(" ")[2] for figure in drawn] == ["one", "two"]
    assert "a: 30 at 0.5, -1 at 2, -2 with next to no noise" in drawn[0].alternative
    assert "no:" not in drawn[1].alternative
    assert "odd:" not in drawn[1].alternative
    assert of_papers([row("x/y", epsilons=[-1.0, 1.0, 2.0]), row("x/z", price=[None, 1.0, 2.0])]) == []


def test_the_report_shows_them():
    record = run_record([], seed=0, alpha=0.01, command="", regret=[{**r, "mean_regret": 1.0} for r in ROWS])
    assert fault(record) is None
    page = render(record)
    assert "The price of privacy: one" in page
    assert "<b>$x" not in page
