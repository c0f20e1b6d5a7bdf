"""Warnings of a target: each place that warns is shown once, with a count, on any number of processes."""

import warnings
from functools import partial

import pytest

from overclaim.audit.execution import warned
from overclaim.audit.execution.warned import Place, collected, lines, receive
from overclaim.audit.execution.workers import alone
from overclaim.tests.support.command_line import overclaim, run_plan

WARNS = """
import warnings
import numpy as np

def noisy(data, rng):
    warnings.warn("the noise\\nis small")
    with np.errstate(divide="warn"):  # after this Python forgets what it has shown
        np.log(np.zeros(1))
    warnings.warn("nobody asked", DeprecationWarning)
    return data[0] + rng.laplace(scale=0.2)
"""
PLAN = """
[[claims]]
target = "{}:noisy"
left = [0]
right = [1]
epsilon = 1.0
runs = 500
"""
GIVEN = ("--left", "[0]", "--right", "[1]", "--runs", 500)


@pytest.fixture(autouse=True)
def as_python_begins():
    """The suite's own filters make errors of warnings."""
    with warnings.catch_warnings():
        warnings.resetwarnings()
        warnings.simplefilter("ignore", DeprecationWarning)
        yield


def warns(times):
    for _ in range(times):
        warnings.warn("twice or more", stacklevel=1)
    return times


def shown(text):
    """The lines about warnings, without the numbers of the lines that warn."""
    return [line for line in text.splitlines() if "Warning" in line]


def check_lines(done, path):
    first, second = shown(done.stderr)
    said = "the noise is small", "divide by zero encountered in log"
    kinds, places = ("UserWarning", "RuntimeWarning"), (6, 8)
    times = [
        int(
            line.removeprefix(f"overclaim: warning: {kind}: {text} ({path}:{place}), ")
            .removesuffix(" times")
            .replace(",", "")
        )
        for line, kind, text, place in zip((first, second), kinds, said, places, strict=True)
    ]
    assert times[0] > 500
    assert 0 <= times[0] - times[1] < 10  # in a trace, which plays a few runs, what NumPy computes for us is silent


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow(reason="starts processes"))])
def test_a_check_shows_each_warning_once(tmp_path, jobs):
    (path := tmp_path / "own.py").write_text(WARNS)
    check_lines(overclaim("check", f"{path}:noisy", "--epsilon", 1, "--jobs", jobs, *GIVEN), path)


@pytest.mark.slow(reason="whole runs")
@pytest.mark.parametrize("claims", [1, 2])
def test_and_so_does_a_run(tmp_path, claims):
    (path := tmp_path / "own.py").write_text(WARNS)
    check_lines(run_plan(tmp_path, PLAN.format(path) * claims, "--no-blind-spots"), path)


def test_what_another_process_warned_of_is_added():
    with collected() as here:
        for _ in range(2):
            alone(partial(warnings.warn, "twice"), UserWarning)
    ((place, about),) = here.items()
    assert (place.kind, about) == ("UserWarning", ("UserWarning: twice", 2))


def test_warnings_are_shown_as_before_where_nothing_is_collected(monkeypatch, capsys):
    """Of the Python interface: those of other processes once, those of this one as its filters say."""
    monkeypatch.setattr(warned, "_reported", set())
    for _ in range(2):
        receive({Place("UserWarning", "own.py", 3): ("UserWarning: small", 7)})
    assert capsys.readouterr().err == "overclaim: warning: UserWarning: small (own.py:3), 7 times\n"
    with pytest.warns(UserWarning, match="twice or more"):
        warns(1)


def test_what_a_filter_hides_is_not_collected():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with collected() as here, collected() as inside:
            warns(2)
        assert (here, inside) == ({}, {})
    with collected() as here:
        with collected() as inside:
            pass
        warns(1)
    assert (len(here), inside) == (1, {})
    assert lines(here)[0].endswith("test_warned.py:46)")
