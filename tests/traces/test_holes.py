"""Programs that release raw data are not bounded, whatever they ask of NumPy; sound ones keep their bounds."""

import math
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from overclaim.audit.play.data import DataPair
from overclaim.audit.traces.coupling import _forked
from overclaim.audit.traces.forms.trusted import _SILENT, _WARNING
from overclaim.audit.traces.upper import tracing
from overclaim.mechanisms.claim import Claim

ROOT = Path(__file__).resolve().parents[2]


def look(*words):
    done = subprocess.run(
        [sys.executable, ROOT / "benchmarks/robustness/trace_holes.py", *words], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow(reason="28 programs, of many runs each where they are not bounded")
def test_programs_written_to_break_it_are_not_bounded_and_sound_ones_are():
    """Of 28 all were bounded wrongly."""
    look("--only", "red-team")


@pytest.mark.slow(reason="a hundredth of 40,000 programs, and 40 random ones")
def test_a_part_of_all_calls_has_no_holes():
    look("--only", "functions,generators,factors,fuzz", "--part", "7/100", "--programs", "40")


@pytest.mark.nightly(reason="40,000 programs, and 2,000 random ones")
def test_no_call_has_a_hole():
    look("--programs", "2000")


ODD = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e308, -1e308, 5e-324, 1.0, 1.0, -1.0, 0.5, 2.5]
TWO = (np.maximum, np.minimum, np.fmax, np.fmin, np.heaviside, np.divide, np.multiply)


def arguments(function, values):
    if function in TWO:
        return values, values[::-1]
    if function is np.clip:
        return values, -1.0, 1.0
    return (values, 3) if function is np.power else (values,)


@pytest.mark.parametrize(
    "function", sorted(_SILENT | _WARNING, key=lambda one: one.__name__), ids=lambda x: x.__name__
)
def test_trusted_functions_never_raise_and_give_floats_of_a_shape(function):
    """No value decides their shape or kind: 10,000 arrays with ties, signed zeros, infinite and huge numbers."""
    rng = np.random.default_rng(0)
    draws = np.where(rng.random((10_000, 4)) < 0.6, rng.choice(ODD, (10_000, 4)), rng.normal(0.0, 100.0, (10_000, 4)))
    with np.errstate(all="ignore"):
        expected = function(*arguments(function, np.ones(4)))
        for values in draws if function in (np.sort, np.max, np.min, np.std, np.var, np.linalg.norm) else [draws[0]]:
            made = function(*arguments(function, values))
            assert (np.shape(made), made.dtype) == (np.shape(expected), np.float64)
        if function not in (np.max, np.min, np.amax, np.amin, np.std, np.var, np.linalg.norm):
            made = function(*arguments(function, draws))
            assert (made.shape, made.dtype) == (draws.shape, np.float64)


def test_compiled_code_keeps_numpy_as_it_is():
    """A target that draws an array from its own generator ended Python: its compiled code got arrays of objects."""

    def drawing(data, rng):
        own = np.random.default_rng(0).normal(size=(5, 2))
        legacy = np.random.RandomState(0).normal(size=3)
        return float(own[0, 0]) + float(legacy[0]) + sum(data) + rng.laplace(0.0, 1.0)

    code = (
        "import numpy as np\n"
        "from overclaim.audit.play.data import DataPair\n"
        "from overclaim.audit.traces.upper import tracing\n"
        "from overclaim.mechanisms.claim import Claim\n"
        "def drawing(data, rng):\n"
        "    own = np.random.default_rng(0).normal(size=(5, 2))\n"
        "    return own[0] + np.random.RandomState(0).normal(size=2) + rng.laplace(sum(data), 1.0)\n"
        "print(tracing(drawing, DataPair([1], [0]), Claim(epsilon=1.0)).pair_upper.epsilon)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == pytest.approx(1.0)
    assert tracing(drawing, DataPair([1], [0]), Claim(epsilon=1.0)).pair_upper.how == "maximised"


def test_arrays_that_a_target_makes_hold_forms_and_no_one_elses_do():
    """The proxy is in the target's modules alone, and is taken out again."""
    seen = []

    def making(data, rng):
        seen.append(type(np.zeros(2)).__name__)
        report = np.zeros(2)
        report[0] = sum(data) + rng.laplace(0.0, 1.0)
        return report

    before = np.zeros
    assert tracing(making, DataPair([1], [0]), Claim(epsilon=1.0)).pair_upper.how == "maximised"
    assert "FormArray" in seen
    assert np.zeros is before
    assert type(np.zeros(2)) is np.ndarray


def test_a_play_that_hangs_is_ended():
    """The process that plays waited for it, and so did every later trace."""
    process = _forked(lambda connection: time.sleep(600))
    assert process.answer(0.05) == "it takes too long"
    process.end()
    with pytest.raises(OSError, match="handle is closed"):
        process.connection.recv()


def test_a_process_that_ends_plays_nothing():
    process = _forked(lambda connection: None)
    assert process.answer(60.0) == "its process ended"
    process.end()
