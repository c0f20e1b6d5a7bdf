"""Things that we did not write: OpenDP, diffprivlib and a river bandit, through the examples.

Every audit has error 0.01; with the seeds fixed (OpenDP draws from the system: 2 true claims there) the verdicts are
those of the examples' texts.
"""

import importlib
import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

from overclaim import Claim, Pair, Verdict, falsify

EXAMPLES = str(Path(__file__).resolve().parents[1] / "examples")


@pytest.fixture
def example(monkeypatch):
    monkeypatch.syspath_prepend(EXAMPLES)
    yield importlib.import_module
    for name in ("adapters", "opendp_counts", "diffprivlib_mechanisms", "river_bandit"):
        sys.modules.pop(name, None)


@pytest.mark.slow(reason="it loads a library")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_opendp(example):
    pytest.importorskip("opendp")
    # Each is false with probability at most 0.01; both together 0.02, and in four audits one after the other 1.6e-7.
    for runs in range(8000, 8004):
        results = example("opendp_counts").main(runs=runs)
        verdicts = {name: result.verdict for name, result in results.items()}
        assert verdicts.pop("a count of sensitivity 2") is Verdict.FALSIFIED
        if Verdict.FALSIFIED not in verdicts.values():
            break
    assert Verdict.FALSIFIED not in verdicts.values()  # without a power test some are UNDERPOWERED
    assert results["make_laplace(scale=1)"].epsilon_lower > 0.7


@pytest.mark.slow(reason="it loads a library")
def test_diffprivlib(example):
    if importlib.util.find_spec("diffprivlib") is None:
        pytest.skip("diffprivlib is not installed")
    results = example("diffprivlib_mechanisms").main(runs=4000)
    verdicts = {name: result.verdict for name, result in results.items()}
    assert verdicts.pop("a mean with a guessed range") is Verdict.FALSIFIED
    assert set(verdicts.values()) == {Verdict.SURVIVED}
    assert results["Laplace"].epsilon_lower > 0.7


@pytest.mark.slow(reason="it loads a library")
@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("Bare", "FALSIFIED"),
        pytest.param("Private", "SURVIVED", marks=pytest.mark.slow),
        pytest.param("HalfNoise", "FALSIFIED", marks=pytest.mark.slow),
    ],
)
def test_river(example, name, verdict):
    pytest.importorskip("river")
    learner = getattr(example("river_bandit"), name)
    rest = [[0.5, 0.5]] * 4
    pair = Pair([[1.0, 1.0], [0.0, 0.0], *rest], [[0.0, 0.0], [0.0, 0.0], *rest])
    result = falsify(learner, Claim(epsilon=1.0), pair=pair, runs=6000)
    assert result.verdict.value == verdict, result


def test_recorded_outputs_are_replayed(example):
    recorded = example("adapters").Recorded(lambda data: object())
    draws = [recorded([1], np.random.default_rng(seed)) for seed in (0, 0, 1)]
    assert draws[0] is draws[1]
    assert draws[0] is not draws[2]
