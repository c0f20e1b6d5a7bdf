"""No output prints a bound as more than was certified, or as less than is allowed."""

import copy
import re

import click
import pytest

from overclaim.audit.verdicts.blind_spot import words
from overclaim.reports.formats import ruler
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.regret_lines import regret_lines
from overclaim.reports.formats.run_lines import run_lines
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.reading import exact_words, reason_words


@pytest.fixture
def between(record) -> dict:
    """Return the record with certified bounds that the nearest digits would raise, and upper ones they would lower."""
    changed = copy.deepcopy(record)
    for claim in changed["claims"]:
        claim["epsilon_lower"] = claim["two_interval_bound"] = 1.47699996
        if claim.get("shrunk"):
            claim["shrunk"]["epsilon_lower"] = 1.47699996
        claim["epsilon_upper"] = claim["epsilon_upper_pair"] = 2.50300004
        claim["expected"] = "SURVIVED" if claim["verdict"] == "FALSIFIED" else "FALSIFIED"
    changed["regret"][0]["interval"] = [40.17699996, 42.50300004]
    return changed


def lines(record) -> str:
    return "\n".join(claim_lines(claim) for claim in record["claims"])


@pytest.mark.parametrize("written", [lines, render, junit, markdown, sarif, run_lines])
def test_bounds_are_rounded_towards_what_is_known(between, written):
    text = written(between)
    assert "1.47" in text
    assert not re.search(r"(?<!\d)(1\.477|1\.48|1\.4770|2\.5030|2\.503)(?!\d)", text)


@pytest.mark.parametrize("written", [lines, render, junit, markdown, sarif, run_lines])
def test_a_claim_that_is_narrowly_false_has_a_bound_that_shows_it(record, written):
    claim = copy.deepcopy(next(c for c in record["claims"] if c["verdict"] == "FALSIFIED"))
    claim |= {
        "claimed": {"epsilon": 1.0, "delta": 0.0},
        "measure": None,
        "epsilon_lower": 1.00006614,
        "expected": None,
    }
    assert "1.00006" in written({**record, "claims": [claim]})


def test_an_interval_of_regret_is_rounded_outwards(between):
    least = {"rounds": 8, "sequence": "random signs", "confidence": 0.99999, "interval_method": "betting", "runs": 9}
    audit = {**between["regret"][0], "slope_lower": 0.4999996, "growth_lower": None, "growth_upper": None, **least}
    text = regret_lines("mine.py:learner", audit)
    assert "(99.999% interval 40.1 to 42.6)" in text
    assert "(0.49 to 0.53)" in text


@pytest.mark.parametrize(
    ("verdicts", "word", "ends"),
    [
        ({"verdict": "UNDECIDED", "bound_verdict": "HOLDS", "growth_verdict": "UNDECIDED"}, "HOLDS", "; bound 9"),
        ({"verdict": "VIOLATED", "bound_verdict": "VIOLATED", "growth_verdict": "HOLDS"}, "VIOLATED", "; bound 9"),
        (
            {"verdict": "VIOLATED", "bound_verdict": "HOLDS", "growth_verdict": "VIOLATED", "growth_lower": 0.876},
            "VIOLATED",
            "; bound 9; growth exponent at least 0.87, exponent 0.5",
        ),
        ({"verdict": None, "bound_verdict": None, "growth_verdict": None, "bound": None}, "MEASURED", "to 42.6)"),
    ],
)
def test_line_1_of_regret_is_the_verdict_on_its_bound_or_growth(between, verdicts, word, ends):
    least = {"rounds": 8, "sequence": "zeros", "confidence": 0.99, "interval_method": "betting", "runs": 9}
    audit = {**between["regret"][0], "bound": 9.0, "exponent": 0.5, "bound_slope": None, **least, **verdicts}
    head, *rows = click.unstyle(regret_lines("mine.py:learner", audit)).split("\n")
    assert head.startswith(f"{word}  mine.py:learner: mean regret ")
    assert head.endswith(ends)
    assert len(rows) < 8
    assert click.unstyle(regret_lines("mine.py:learner", audit, quiet=True)) == head
    assert "\nDetails\n" in regret_lines("mine.py:learner", audit, verbose=True)


def test_no_growth_exponent_is_no_row_of_dashes(between):
    least = {"rounds": 8, "sequence": "zeros", "confidence": 0.99, "interval_method": "betting", "runs": 9}
    audit = {**between["regret"][0], "slope": None, "slope_lower": None, "slope_upper": None, **least}
    assert "no exponent: fewer than three of the horizons show any regret, T = [32," in regret_lines("a", audit)


def test_a_bound_that_never_binds_is_said_to_say_nothing_where_that_was_looked_at(between):
    """At T = 1 its logarithms may be 0, and it says something."""
    least = {"rounds": 8, "sequence": "zeros", "confidence": 0.99, "interval_method": "betting", "runs": 9}
    own = {"bound": 9.0, "bound_verdict": "VACUOUS", "growth_verdict": "VACUOUS", "source": "mine", "binds_from": None}
    audit = {**between["regret"][0], "slope": None, "largest": 8.0, **own, **least}
    assert "mine; informative never: not at any T up to 2^60" in " ".join(regret_lines("a", audit).split())


def test_what_is_at_most_or_at_least_is_rounded_that_way_in_every_sentence(between):
    """An error of a third of a hundredth is not at most 0.333 %, and a claim of 1.0000001 is not one of 1."""
    claim = {**between["claims"][0], "upper_how": "maximised", "confidence": 1 - 0.01 / 3, "alpha": 0.01 / 3}
    assert "at most 2.504" in ruler.row(claim).alternative
    record = {**between, "claims": [claim]}
    page = render(record)
    assert "falsifies any true privacy claim is at most 0.34%." in page
    assert "(99.666% confidence)" in page
    assert "with probability at most 0.003334." in markdown(record)
    spot = {"factor": None, "missed": 3.0, "tried": 30.0, "true_to": 5.846, "bounds": [], "runs": 4000}
    assert "up to 5.84 it is true" in words(spot)
    assert [exact_words({**claim, "exact_epsilon": value}) for value in (4.4e-16, 1e-8)] == ["0", "1e-08"]
    low = {"verdict": "UNDERPOWERED", "reason": "low power", "exact_epsilon": None, "blind_spot": spot}
    assert "true up to 5.84 times" in reason_words({**claim, **low})
