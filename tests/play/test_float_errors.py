"""A target that asks NumPy or SciPy to raise: it plays so, and our arithmetic does not."""

import numpy as np
import pytest
from scipy import special

from overclaim import GDP, Claim, falsify_mechanism
from overclaim.tests.support.command_line import overclaim

ASKS = """
import numpy as np
from scipy import special

{}

def vector(data, rng):
    assert {}, "another handling of errors"
    return (np.asarray(data) + rng.normal(scale=2.0, size=len(data))).tolist()
"""
NUMPY = ('np.seterr(all="raise")', 'np.geterr()["under"] == "raise"')
SCIPY = ('special.seterr(all="raise")', 'special.geterr()["underflow"] == "raise"')


@pytest.mark.parametrize("asked", [NUMPY, SCIPY], ids=["numpy", "scipy"])
@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_a_target_that_asks_for_errors_is_not_blamed_for_ours(tmp_path, asked, jobs):
    """Our arithmetic raised, and a sound target had "crashed"; in worker processes it was played otherwise."""
    (tmp_path / "asks.py").write_text(ASKS.format(*asked))
    before = np.geterr(), special.geterr()
    words = ("--gdp", 1, "--left", "[1, 0]", "--right", "[0, 0]", "--runs", 2000, "--trace", "--jobs", jobs)
    done = overclaim("check", f"{tmp_path / 'asks.py'}:vector", *words)
    assert done.exit_code == 0, done.stderr
    assert (np.geterr(), special.geterr()) == before


def test_a_caller_that_asks_for_errors_has_its_mechanism_played_so():
    def vector(data, rng):
        assert np.geterr()["under"] == "raise"
        return (np.asarray(data) + rng.normal(scale=2.0, size=len(data))).tolist()

    with np.errstate(all="raise"):
        result = falsify_mechanism(vector, Claim(measure=GDP(1.0)), left=[1, 0], right=[0, 0], runs=2000)
        assert np.geterr()["under"] == "raise"
    assert result.verdict.value == "SURVIVED"
