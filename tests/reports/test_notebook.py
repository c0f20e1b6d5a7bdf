"""What a notebook shows of a result: by calls, and in a real run of the tutorial where nbclient is installed."""

import importlib.util
import itertools
import json
import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from overclaim import Claim, audit_scores, falsify
from overclaim.learners import BatchedLaplace, Threshold

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"
EVIL = '<script>alert("1")</script>\u202e'


def count(data, rng):
    return len(data) + rng.laplace(scale=0.5)


@pytest.fixture(scope="module")
def results():
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    rng = np.random.default_rng(0)
    coins = rng.random(400) < 0.5
    scores = 3 * coins + rng.normal(size=400)
    return {
        "learner": falsify(learner, Claim(epsilon=1.0), rounds=2, runs=4000),
        "mechanism": falsify(count, Claim(epsilon=1.0), left=[EVIL, "bob"], right=["ann"], runs=2000),
        "training": audit_scores(scores, included=coins, design="one-run", claim=Claim(epsilon=1.0)),
    }


@pytest.mark.parametrize("kind", ["learner", "mechanism", "training"])
def test_a_result_shows_its_card(results, kind):
    result = results[kind]
    card = result._repr_html_()
    assert result.verdict.value in card
    assert f"a {kind}" in card
    assert not re.search(r"https?:|<script|<link|<img|url\(", card)
    assert "\u202e" not in card


def test_a_card_escapes_inputs(results):
    assert "&lt;script&gt;" in results["mechanism"]._repr_html_()


def test_a_card_restyles_nothing_else(results):
    style = re.search(r"<style>(.*?)</style>", results["learner"]._repr_html_(), re.DOTALL)[1].strip()
    assert style.startswith(".overclaim {")
    assert style.endswith("}")
    assert style.count("{") == style.count("}")
    assert ":root" not in style


@pytest.mark.parametrize(
    ("kind", "plot"),
    [
        ("learner", None),
        ("learner", "tradeoff"),
        ("mechanism", "ruler"),
        ("mechanism", "tradeoff"),
        ("training", None),
        ("training", "ruler"),
        ("training", "tradeoff"),
    ],
)
def test_a_plot_is_a_picture(results, kind, plot):
    drawn = results[kind].plot(plot)
    assert ElementTree.fromstring(drawn._repr_svg_()).tag.endswith("svg")
    assert ("true-positive rate" in str(drawn)) == (kind == "training" and plot is None)
    assert ("smallest sum of errors" in str(drawn)) == (plot == "tradeoff")


@pytest.mark.parametrize(("plot", "message"), [("roc", "only scores of canaries"), ("bar", "must be one of ruler")])
def test_a_plot_that_there_is_not_is_refused(results, plot, message):
    with pytest.raises(ValueError, match=message):
        results["learner"].plot(plot)


@pytest.mark.parametrize(("kind", "plot"), [("learner", "tradeoff"), ("training", "roc")])
def test_a_plot_without_matplotlib_names_what_to_install(results, monkeypatch, kind, plot):
    monkeypatch.setattr("overclaim.reports.notebook.available", lambda: False)
    with pytest.raises(ValueError, match=r"needs matplotlib\nhint: pip install 'overclaim\[figures\]'$"):
        results[kind].plot(plot)
    assert results[kind].plot("ruler").svg  # it needs no package


def test_errors_of_a_tradeoff_lie_in_their_intervals(results):
    from overclaim.reports.notebook import tradeoff_of

    curve = tradeoff_of(results["mechanism"])
    counts = results["mechanism"].certificate.counts
    assert (counts.right_upper / (counts.runs - counts.runs_left)) in curve["false_positive"]
    for error in ("false_positive", "false_negative"):
        for low, share, high in zip(*(curve[f"{error}{end}"] for end in ("_low", "", "_high")), strict=True):
            assert low <= share <= high


def test_a_tradeoff_falls_from_left_to_right(results):
    """At one rate of false positives the larger miss comes first: else the curve had a diagonal that is none."""
    from overclaim.reports.notebook import tradeoff_of

    for name in ("learner", "mechanism"):
        curve = tradeoff_of(results[name])
        points = list(zip(curve["false_positive"], curve["false_negative"], strict=True))
        assert points[0] == (0, 1)
        assert points[-1] == (1, 0)
        assert all(later[1] <= earlier[1] for earlier, later in itertools.pairwise(points))


@pytest.mark.slow(reason="starts a kernel")
def test_the_tutorial_shows_what_it_prints():
    """`make docs` writes it. Pictures and cards have the numbers of the texts beside them."""
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    spec = importlib.util.spec_from_file_location("docs_notebook", EXAMPLE.parents[1] / "docs" / "notebook.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)

    def texts(notebook):
        outputs = [one for cell in notebook.cells for one in cell.get("outputs", ())]
        return [
            (one.get("text"), one.get("data", {}).get("text/plain"), sorted(one.get("data", {}))) for one in outputs
        ]

    saved = texts(nbformat.read(EXAMPLE, as_version=4))
    assert sorted({kind for *_, kinds in saved for kind in kinds} - {"text/plain"}) == ["image/svg+xml", "text/html"]
    assert texts(script.executed()) == saved


@pytest.mark.slow(reason="three audits")
def test_the_tutorial_is_small_and_runs_as_code():
    """What its code cells say holds without a kernel too."""
    notebook = json.loads(EXAMPLE.read_text(encoding="utf-8"))
    assert len(EXAMPLE.read_bytes()) < 60_000
    assert notebook["nbformat"] == 4
    names: dict[str, object] = {"__name__": "notebook"}
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            exec("".join(cell["source"]), names)
