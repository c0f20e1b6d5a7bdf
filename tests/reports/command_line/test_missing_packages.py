"""A package that is missing ends with one line, and a report without matplotlib has no figures and says so."""

import json
import subprocess
import sys

import pytest

from overclaim.reports.record import run_record, to_text
from overclaim.tests.support.command_line import check, error_lines, overclaim

WITHOUT = "import sys; sys.modules[sys.argv.pop(1)] = None; from overclaim.__main__ import run; run()"


def without(package, *words):
    words = [sys.executable, "-c", WITHOUT, package, *map(str, words)]
    return subprocess.run(words, capture_output=True, text=True, check=False)


@pytest.fixture(autouse=True, scope="module")
def pictures():
    """Draw figures, unlike other tests."""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    run = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 3000, "--json")
    claim = json.loads(run.stdout)
    claim["evidence"] = {"growth": {"runs": [10, 20], "bound": [0.5, 1.0]}}
    path = tmp_path_factory.mktemp("record") / "record.json"
    path.write_text(to_text(run_record([claim], seed=0, alpha=0.01, command="")))
    return path


@pytest.mark.slow(reason="a process that imports everything anew")
def test_a_report_without_matplotlib(tmp_path, record):
    page = tmp_path / "page.html"
    assert overclaim("report", record, "--html", page).exit_code == 0
    whole = page.read_text()
    done = without("matplotlib", "report", record, "--html", page)
    assert (done.returncode, done.stderr) == (0, "")
    bare = page.read_text()
    assert "This page has no figures: matplotlib is not installed" in bare
    assert "This page has no figures" not in whole
    assert whole.count("<figure>") == 1
    assert bare.count("<figure>") == 0


@pytest.mark.slow(reason="a process that imports everything anew")
def test_a_plot_without_matplotlib(tmp_path):
    """The figures are an extra: one line says what to install."""
    scores = tmp_path / "scores.csv"
    scores.write_text("score,included\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(40)))
    words = ["scores", scores, "--design", "one-run", "--epsilon", 1, "--plot", tmp_path / "roc.svg"]
    done = without("matplotlib", *words)
    assert done.returncode == 2
    assert "needs matplotlib\n  hint:  pip install 'overclaim[figures]'" in done.stderr
    assert error_lines(done.stderr) == 1
    assert not (tmp_path / "roc.svg").exists()


NOWHERE = """
import sys
from overclaim.__main__ import run

class Nowhere:
    def find_spec(self, name, path=None, target=None):
        if name == "matplotlib":
            raise OSError("Matplotlib requires access to a writable cache directory")

sys.meta_path.insert(0, Nowhere())
run()
"""


@pytest.mark.slow(reason="a process that imports everything anew")
def test_a_report_where_matplotlib_may_write_nowhere(tmp_path, record):
    """As in a container that is read-only but for the folder of results: a run ended with 2 after all its work."""
    page = tmp_path / "page.html"
    words = [sys.executable, "-c", NOWHERE, "report", record, "--html", page]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "This page has no figures: matplotlib is not installed" in page.read_text()


@pytest.mark.few("numpy-words2")
@pytest.mark.parametrize(
    ("package", "words"),
    [
        ("jinja2", ["report", "RECORD", "--html", "PAGE"]),
        pytest.param("jsonschema", ["check", "mechanisms/laplace", "--inputs", "{}"], marks=pytest.mark.slow),
        ("numpy", ["list"]),
        ("statsmodels", ["report", "RECORD", "--html", "PAGE"]),
    ],
)
def test_any_other_package_is_named_in_one_line(tmp_path, record, package, words):
    places = {"RECORD": record, "PAGE": tmp_path / "page.html"}
    done = without(package, *[places.get(word, word) for word in words])
    assert (done.returncode, error_lines(done.stderr)) == (2, 1), done.stderr
    assert f"overclaim: error: cannot import {package}" in done.stderr
