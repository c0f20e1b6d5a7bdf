"""diffprivlib and OpenDP, watched: what they are given is held against what they were told to calibrate for."""

import importlib
import importlib.util
import sys
from pathlib import Path

import pytest

from overclaim import Claim
from overclaim.audit.play.data import DataPair
from overclaim.audit.traces.causes import cause
from overclaim.audit.traces.libraries import Mapped
from overclaim.audit.traces.upper import tracing
from overclaim.audit.traces.watched import UnreadNoiseError

EXAMPLES = str(Path(__file__).resolve().parents[2] / "examples")


@pytest.fixture
def diffprivlib(monkeypatch):
    if importlib.util.find_spec("diffprivlib") is None:
        pytest.skip("diffprivlib is not installed")
    monkeypatch.syspath_prepend(EXAMPLES)
    yield importlib.import_module("adapters").diffprivlib_mechanisms()
    sys.modules.pop("adapters", None)


@pytest.fixture
def dp():
    opendp = pytest.importorskip("opendp.prelude")
    opendp.enable_features("contrib")
    return opendp


def test_diffprivlib(diffprivlib):
    def made(kind, **how):
        return lambda data, rng: getattr(diffprivlib, kind)(random_state=1, **how).randomise(data)

    def bound(mechanism, left, right, **claim):
        return tracing(mechanism, DataPair(left, right), Claim(epsilon=1.0, **claim)).pair_upper.epsilon

    assert bound(made("Laplace", epsilon=1.0, sensitivity=1.0), 0.0, 1.0) == pytest.approx(1, abs=1e-9)
    assert bound(made("LaplaceTruncated", epsilon=1.0, sensitivity=1.0, lower=0, upper=1), 0.0, 1.0) == pytest.approx(
        1
    )
    assert bound(made("Geometric", epsilon=1.0, sensitivity=1), 0, 2) == pytest.approx(2)
    gaussian = made("GaussianAnalytic", epsilon=1.0, delta=0.01, sensitivity=1.0)
    assert bound(gaussian, 0.0, 1.0, delta=0.01) == pytest.approx(1, abs=1e-6)

    guessed = tracing(made("Laplace", epsilon=1.0, sensitivity=1.0), DataPair(0.0, 2.0), Claim(epsilon=1.0))
    why = cause(guessed, Claim(epsilon=1.0))
    assert (why.place.file, why.differs, why.calibrated_for) == ("tests/traces/test_libraries.py", 2.0, 1.0)
    nothing = tracing(made("Laplace", epsilon=1.0, sensitivity=0.0), DataPair(0.0, 1.0), Claim(epsilon=1.0))
    assert "diffprivlib Laplace at tests/traces/test_libraries.py:" in str(nothing.leak)
    one = 2**60  # as floats 2^60 and 2^60 + 1 are the same number
    assert bound(made("Geometric", epsilon=1.0, sensitivity=1), one, one + 1) == pytest.approx(1)
    with pytest.raises(ValueError, match=r"^diffprivlib Snapping is not watched in a trace$"):
        bound(made("Snapping", epsilon=1.0, sensitivity=1.0, lower=0.0, upper=1.0), 0.0, 1.0)

    def chosen(data, rng):
        return diffprivlib.PermuteAndFlip(epsilon=1.0, sensitivity=1.0, utility=data, random_state=1).randomise()

    with pytest.raises(ValueError, match=r"^diffprivlib PermuteAndFlip is not watched in a trace$"):
        bound(chosen, [1.0, 2.0], [2.0, 2.0])
    assert diffprivlib.Laplace.randomise.__name__ == "randomise"
    assert "recorder" not in diffprivlib.Laplace.randomise.__code__.co_freevars  # it was put back


def test_opendp(dp):
    scalar = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
    laplace = dp.m.make_laplace(*scalar, scale=1.0)
    traced = tracing(lambda data, rng: laplace(2.0 * data), DataPair(0.0, 1.0), Claim(epsilon=1.0))
    assert traced.leak is None
    assert traced.pair_upper.epsilon == pytest.approx(2.0, abs=1e-6)
    why = cause(traced, Claim(epsilon=1.0))
    assert why.differs == 2
    assert why.calibrated_for == pytest.approx(1, abs=1e-6)

    vector = dp.vector_domain(dp.atom_domain(T=float, nan=False)), dp.l2_distance(T=float)
    gaussian = dp.m.make_gaussian(*vector, scale=3.0)
    claim = Claim(epsilon=1.0, delta=0.01)
    traced = tracing(lambda data, rng: gaussian(data), DataPair([0.0, 0.0], [1.0, 1.0]), claim)
    assert 0 < traced.pair_upper.epsilon < 3


def test_a_metric_that_is_not_read_is_refused_before_its_data_is():
    """Of counts by key, which are no numbers: a queryable's noise failed on them as a fault of our own."""
    counts = Mapped("L01InfDistance(AbsoluteDistance(i32))", "MaxDivergence", float)
    with pytest.raises(UnreadNoiseError, match="L01InfDistance"):
        counts.distance({"a": 1}, {})
    with pytest.raises(UnreadNoiseError, match="L01InfDistance"):
        counts.distance({"a": 1}, {"a": 2})
