"""An event in words: the statement about one part of the outputs that it amounts to."""

import numpy as np
import pytest

from overclaim import Claim, falsify_mechanism
from overclaim.audit.pipeline.event_statements import NOTHING, event_in_words
from overclaim.audit.statistics.events import Event
from overclaim.tests.support.command_line import overclaim

RNG = np.random.default_rng(0)
UPPER = Event(float("nan"), 0.5, "joint")


def words(outputs, says):
    return event_in_words(UPPER, np.asarray(says, dtype=float), outputs)


@pytest.mark.parametrize(
    ("outputs", "says", "expected"),
    [
        ([{"a": 1}, {"a": 1, "b": 2}] * 9, [0, 1] * 9, 'key "b" is present'),
        ([{"a": 1}, {}] * 9, [0, 1] * 9, 'key "a" is not present'),
        ([{"theta": [0.0, 1.0]}, {"theta": [2.0, 1.0]}] * 9, [0, 1] * 9, "theta[0] > 1"),
        ([{"fit": {"count": 6}}, {"fit": {"count": 7}}, {"fit": {"count": 8}}] * 9, [0, 1, 1] * 9, "fit.count >= 7"),
        ([3, 4, 5, 9] * 9, [0, 1, 1, 0] * 9, "the output >= 4 and the output <= 5"),
        ([3, 4, 5, 9] * 9, [0, 1, 0, 0] * 9, "the output = 4"),
        ([-3.0, 0.1, 0.2, 3.0] * 9, [1, 0, 0, 1] * 9, "the output < -1 or the output > 2"),
        ([1234567, 1234568] * 9, [1, 0] * 9, "the output = 1234567"),
        ([1234567, 1234568, 7, 8] * 9, [1, 1, 0, 0] * 9, "the output >= 1234567"),
        ([float("-inf"), 1.0, 2.5] * 9, [0, 1, 1] * 9, "the output >= 1"),
        ([1.0, 2.5, float("inf")] * 9, [1, 1, 0] * 9, "the output <= 2.5"),
        ([1.0, 2.5, float("inf")] * 9, [0, 0, 1] * 9, "the output = inf"),
        ([float("-inf"), float("inf")] * 9, [0, 1] * 9, "the output = inf"),
        ([1.0, 1.0 + 2**-52] * 9, [0, 1] * 9, "the output >= 1.0000000000000002"),
        ([1.0, 1.0 + 2**-52] * 9, [1, 0] * 9, "the output <= 1"),
        ([10**400, 3] * 9, [1, 0] * 9, "the output > 9e+307"),
        ([2**53, 2**53 + 1] * 9, [0, 1] * 9, "the output = 9007199254740993"),
        (np.array([-(2**53) - 1, -(2**53)] * 9), [1, 0] * 9, "the output = -9007199254740993"),
        (
            np.array([2**64 - 1, 2**64 - 3, 7] * 9, dtype=np.uint64),
            [1, 1, 0] * 9,
            "the output >= 18446744073709551613",
        ),
        ([2**53 + 1, 0.5, 2**53] * 9, [1, 0, 0] * 9, "the output >= 9007199254740993"),
        ([{"n": 10**400}, {"n": 10**19 + 3}, {"n": 10**19 + 2}] * 9, [1, 1, 0] * 9, "n >= 10000000000000000003"),
        ([10**25, 10**25 + 1] * 9, [0, 1] * 9, "the output = 10000000000000000000000001"),
        (["yes", "no"] * 9, [1, 0] * 9, 'the output is "yes"'),
        ([float("nan"), 1.0] * 9, [1, 0] * 9, "the output is nan"),
        ([None, 1.0] * 9, [1, 0] * 9, "the output is None"),
        ([True, False] * 9, [1, 0] * 9, "the output is True"),
        ([True, 0.5, 7.0] * 9, [1, 0, 0] * 9, "the output is True"),
        ([None, [1.0]] * 9, [1, 0] * 9, "the output is None"),
        ([None, [1.0]] * 9, [0, 1] * 9, "the output is of type list"),
        ([{"fit": 3}, {"fit": {"error": 1}}] * 9, [0, 1] * 9, "fit is of type dict"),
        ([(0.5, {1}), (0.5, "none")] * 9, [0, 1] * 9, 'output[1] is "none"'),
        ([{"x"}, {"x", "y"}] * 9, [0, 1] * 9, '"y" of the output is present'),
        ([[1], [1, 1]] * 9, [0, 1] * 9, "the size of the output = 2"),
        (np.array([[1.0, 2.0] * 9, [5.0, 5.0] * 9]), [0, 1] * 9, "output[0] > 1.5"),
        (np.array([1.0, 2.0] * 9), [0, 1] * 9, "the output > 1.5"),
        ([np.array([[0.0, 1.0]]), np.array([[0.0, 3.0]])] * 9, [0, 1] * 9, "output[0, 1] > 2"),
    ],
)
def test_the_statement_is_the_one_that_agrees(outputs, says, expected):
    statement = words(outputs, says)
    assert statement == f"“left” where {expected} (as the event in {len(says)} of {len(says)} pilot runs)"


def test_no_statement_is_longer_than_a_few_lines():
    assert words(["x" * 1000, "y" * 1000] * 9, [1, 0] * 9) == ""
    assert words([10**5000, 10**5000 + 1] * 9, [1, 0] * 9) == ""
    assert words([{"k" * 1000: 1, "n": 2}, {"n": 3}] * 9, [1, 0] * 9).startswith("“left” where n = 2")


def test_what_is_no_number_is_not_a_number_either():
    assert words([3, 4, 5, None] * 9, [1, 0, 1, 0] * 9) == ""
    assert "the output is not 4 (as the event in 36 of 36" in words([3, 4, 5, None] * 9, [1, 0, 1, 1] * 9)


def test_an_event_that_says_the_same_of_all_has_found_nothing():
    assert words([1, 2] * 9, [1] * 18) == NOTHING
    assert words([1, 2] * 9, [0] * 18) == NOTHING


def test_what_no_single_part_decides_has_no_words():
    outputs = [(int(a), int(b)) for a, b in RNG.integers(0, 2, size=(400, 2))]
    assert words(outputs, [a ^ b for a, b in outputs]) == ""


def test_the_runs_in_which_a_statement_errs_are_counted():
    outputs = list(range(40))
    statement = words(outputs, [run > 20 for run in outputs[:-1]] + [False])
    assert statement.endswith("where the output >= 21 and the output <= 38 (as the event in 40 of 40 pilot runs)")
    says = np.array([run > 20 for run in outputs])
    says[30] = False
    assert words(outputs, says).endswith("(as the event in 39 of 40 pilot runs)")


def twin(data, rng):
    return {"a": 1, **({"b": 2} if data and rng.random() < 0.5 else {})}


def test_an_audit_says_it():
    result = falsify_mechanism(twin, Claim(epsilon=1.0), left=1, right=0, runs=400)
    assert result.event_in_words.startswith('“left” where key "b" is present (as the event in 80 of 80 pilot runs)')


BITS = "low-order bits were not tested (--bits)"


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("output", "options", "said"),
    [
        ("data + rng.laplace()", (), True),
        ("[7, 'x', {1: data + rng.laplace()}]", (), True),
        ("data + rng.laplace()", ("--stop", "early"), True),
        ("data + rng.laplace()", ("--bits",), False),
        ("data + round(rng.laplace())", (), False),
        ("round(1000 * (data + rng.laplace()))", (), False),
        ("f'{data + rng.laplace()} in all'", (), False),
        ("round(4 * (data + rng.laplace())) / 4", (), False),
    ],
)
def test_what_survives_without_its_bits_says_so(tmp_path, monkeypatch, output, options, said):
    """Nothing reminded of them."""
    (tmp_path / "own.py").write_text(f"def own(data, rng): return {output}\n")
    monkeypatch.chdir(tmp_path)
    epsilon = 3 if "--bits" in options else 1.5  # the bits tell more
    words = ["--epsilon", epsilon, "--left", 1, "--right", 0, "--runs", 1000]
    result = overclaim("check", "own.py:own", *words, *options)
    assert result.stdout.startswith("SURVIVED")
    assert (BITS in " ".join(result.stdout.split())) is said
