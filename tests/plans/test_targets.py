"""Targets, the parameters that they are given, and the tasks that are built of them: refusals, and what is claimed."""

import math
import os

import pytest

from overclaim import Claim, falsify
from overclaim.audit.plans.regret_tasks import regret_setting
from overclaim.audit.plans.targets import convert, parse_parameters, resolve
from overclaim.audit.plans.tasks import Task
from overclaim.learners import Exp3
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import ZCDP
from overclaim.reports.record import standing_of
from overclaim.tests.support.command_line import overclaim


@pytest.mark.parametrize(
    ("value", "kind", "expected"),
    [
        (None, int | None, None),
        ("None", float | None, None),
        (3, float, 3.0),
        ("true", bool, True),
        ("1e3", float, 1000.0),
        ("7", int | str, 7),
        ("seven", int | str, "seven"),
        ("[1, 2]", list, [1, 2]),
        ("{[]: 1}", dict, "{[]: 1}"),
    ],
)
def test_text_becomes_what_a_parameter_is(value, kind, expected):
    converted = convert("x", value, kind)
    assert converted == expected
    assert type(converted) is type(expected)


@pytest.mark.parametrize(
    ("value", "kind", "message"),
    [
        (None, int, "x must be an integer, got None"),
        (True, int, "x must be an integer, got True"),
        ("maybe", bool, "x must be true or false, got 'maybe'"),
        ("1.5", int | float | None, None),
        ("a", int | float, "x must be an integer or a number, got 'a'"),
    ],
)
def test_text_that_is_no_such_parameter_is_named(value, kind, message):
    if message is None:
        assert convert("x", value, kind) == 1.5
        return
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        convert("x", value, kind)
    assert str(error.value) == message


def test_a_users_parameters_are_literals_or_text():
    parsed = parse_parameters(object, {"a": "[1, 2.5]", "b": "text", "c": "(" * 10_000, "d": 3})
    assert parsed.arguments == {"a": [1, 2.5], "b": "text", "c": "(" * 10_000, "d": 3}


@pytest.mark.few(6)
@pytest.mark.parametrize("name", list(entries()))
def test_no_number_ends_a_catalogue_learner_without_a_message(name):
    """Parameters are divided by before the learner's own checks see them."""
    refused = 0
    for parameter in [*entries()[name].parameters, "epsilon", "delta", "rounds", "arms"]:
        for value in ("0", "-0.0", "-1", "1", "1e-320", "1e308", "inf", "nan", "1" + "0" * 400):
            for setting in ({}, {"epsilon": 1e-320}, {"epsilon": math.inf}, {"rounds": 1}):
                try:
                    Task(target=name, parameters={parameter: value}, **setting).prepare()
                except (ValueError, OverflowError) as error:
                    refused += len(str(error)) > 0
    assert refused > 50


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Task(target="x", expected="private"), "expect must be one of falsified, survived; got 'private'"),
        (
            lambda: Task(target="math:floor").prepare(),
            "the claimed epsilon of math:floor is missing\nhint: give .*",
        ),
        (
            lambda: Task(target="mechanisms/gaussian", delta=0.0).prepare(),
            "mechanisms/gaussian claims no epsilon at delta 0\nhint: give `epsilon`, or a larger `delta`",
        ),
        (lambda: Task(target="mechanisms/gaussian", delta=-1.0).prepare(), r"delta must be in \[0, 1\), got -1.0"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        call()


@pytest.mark.parametrize(
    ("target", "asked", "claimed"),
    [
        ("mechanisms/analytic-gaussian", {"epsilon": 1.0, "parameters": {"epsilon": "2"}}, ApproxDP(1.0, 0.01)),
        ("mechanisms/analytic-gaussian", {"parameters": {"epsilon": "2"}}, ApproxDP(2.0, 0.01)),
        ("mechanisms/analytic-gaussian", {"delta": 0.001}, ApproxDP(1.0, 0.001)),
        ("mechanisms/laplace", {"epsilon": 2.0, "delta": 0.1}, ApproxDP(2.0, 0.1)),
        ("mechanisms/truncated-geometric", {}, ApproxDP(math.log(1.5))),
        ("mechanisms/rappor", {"epsilon": 1.0}, ApproxDP(1.0)),
        ("mechanisms/gaussian", {}, ZCDP(0.5)),
        ("mechanisms/gaussian", {"epsilon": 3.0}, ApproxDP(3.0)),
        ("mechanisms/gaussian", {"measure": GDP(2.0)}, GDP(2.0)),
        ("mechanisms/gaussian", {"delta": 0.01}, ApproxDP(ZCDP(0.5).approximate(0.01), 0.01)),
        ("agarwal-singh/ftpl-simplex", {"delta": 0.001, "parameters": {"delta": "0.1"}}, ApproxDP(1.0, 0.001)),
        ("agarwal-singh/ftpl-simplex", {"epsilon": 2.0, "parameters": {"epsilon": "1"}}, ApproxDP(2.0, 0.01)),
        ("libraries/opendp/make_gaussian-int", {"epsilon": 3.0}, ApproxDP(3.0)),
        ("libraries/opendp/make_gaussian-int", {"delta": 1e-6}, ApproxDP(ZCDP(0.5).approximate(1e-6), 1e-6)),
    ],
    ids=str,
)
def test_a_mechanism_is_held_to_what_is_claimed_of_it(target, asked, claimed):
    """An epsilon was not heeded beside --set epsilon; at another delta it was the one that rho implies at 1e-5."""
    assert Task(target=target, **asked).prepare().claim.measure == claimed


@pytest.mark.few(12)
@pytest.mark.parametrize("name", entries())
def test_empty_worlds_set_no_horizon(name):
    """With a horizon of 0 half of the entries divided by it: an internal error, or "math domain error"."""
    assert Task(target=name, left=[], right=[]).prepare().rounds == Task(target=name).prepare().rounds


@pytest.mark.parametrize(
    "target", ["mechanisms/laplace", "agarwal-singh/ftpl-simplex", "asi-raman-talwar/batched-exp3"]
)
def test_a_claim_of_total_variation_sets_no_noise(target):
    """As those in other measures do not: it was refused, since no noise is calibrated to an epsilon of 0."""
    task = Task(target=target, epsilon=0.0, delta=0.25)
    assert task.prepare().claim.measure == ApproxDP(0.0, 0.25)
    other = Task(target=target, epsilon=1.0, delta=0.25)
    assert repr(task.prepare().target) == repr(other.prepare().target)
    with pytest.raises(ValueError, match="epsilon must be positive"):
        Task(target=target, epsilon=0.0, delta=0.0).prepare()


@pytest.mark.parametrize(
    ("target", "own", "other"),
    [
        ("libraries/opendp/make_laplace-int", {"epsilon": 1.0}, {"epsilon": 0.1}),
        ("libraries/opendp/make_gaussian-int", {"measure": ZCDP(0.5)}, {"measure": GDP(0.1)}),
        ("mechanisms/laplace", {"epsilon": 2.0}, {"epsilon": 0.1, "parameters": {"epsilon": "1"}}),
        ("mechanisms/gaussian", {}, {"delta": 0.01}),
    ],
)
def test_what_a_source_does_not_say_is_not_said_to_be_its_claim(target, own, other):
    """A claim of one's own about a library was counted among its documented ones that are false."""
    said, asked = (Task(target=target, **claim).prepare() for claim in (own, other))
    assert said.claim.source
    assert asked.claim.source == ""
    if target.startswith("libraries/"):
        assert standing_of(said)["standing"] == "documented"
        assert standing_of(asked)["standing"] is standing_of(asked)["quotation"] is None
        assert said.relation == asked.relation == "replace"


def test_a_learner_that_is_built_has_its_own_arms(tmp_path):
    """Others that were asked for went unheeded, and `overclaim regret` wanted two."""
    file = tmp_path / "mine.py"
    file.write_text("from overclaim.learners import Exp3\nthree = Exp3(arms=3, eta=0.1)\ndef make(): return three\n")
    target, refused = f"{file}:three", "arms must be those of the learner, 3, got 2"
    assert Task(target=target, epsilon=1.0).prepare().target.arms == 3
    assert regret_setting(target, 8, None, None, {})[1].arms == 3
    asked = (
        lambda: Task(target=target, epsilon=1.0, arms=2).prepare(),
        lambda: Task(target=f"{file}:make", epsilon=1.0, arms=2).prepare(),
        lambda: regret_setting(target, 8, 2, None, {}),
        lambda: falsify(Exp3(arms=3, eta=0.1), Claim(epsilon=1.0), rounds=2, arms=2, runs=100),
    )
    for call in asked:
        with pytest.raises(ValueError, match=refused):
            call()


def test_a_target_that_was_edited_in_the_same_second_is_audited_as_it_is(tmp_path):
    """Python takes kept bytecode for that of a file of the same second and size: the audit was of the old class."""
    file = tmp_path / "mine.py"
    for value in (65, 75):
        file.write_text(f"class Noisy:\n    keep = {value}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert resolve(f"{file}:Noisy").keep == value


def test_a_relation_that_is_said_is_not_another_one():
    """Only where none is said is a library's mechanism audited by the one relation that it has."""
    target = "libraries/opendp/make_private_quantile"
    assert Task(target=target).prepare().relation == "add-remove"
    with pytest.raises(ValueError, match=f"neighbours of {target} must be one of add-remove; got 'replace'"):
        Task(target=target, neighbours="replace").prepare()


@pytest.mark.parametrize(
    ("target", "said", "sets"),
    [
        ("mechanisms/laplace", {"epsilon": 2.0}, ["epsilon"]),
        ("mechanisms/laplace", {"epsilon": 1.0}, []),
        ("mechanisms/laplace", {"epsilon": 2.0, "parameters": {"epsilon": 1.0}}, []),
        ("mechanisms/laplace", {}, []),
        ("mechanisms/rappor", {"epsilon": 2.0}, []),
        ("agarwal-singh/ftpl-ball", {"epsilon": 2.0, "delta": 0.1}, ["epsilon", "delta"]),
        ("agarwal-singh/ftpl-ball", {"epsilon": 0.0, "delta": 0.1}, ["delta"]),
        ("agarwal-singh/ftpl-ball", {"delta": 0.1, "rounds": 2, "parameters": {"noise_delta": 0.5}}, []),
        ("agarwal-singh/ftrl-ball", {"delta": 0.1}, []),
        ("ene-nguyen-vladu/tree-aggregation", {"delta": 0.1, "parameters": {"noise": "gaussian"}}, ["delta"]),
        ("agarwal-singh/ftrl-ball", {"measure": GDP(2.0)}, []),
    ],
)
def test_a_number_that_sets_claim_and_noise_is_known_as_such(target, said, sets):
    assert Task(target=target, **said).prepare().noise_set_by == sets


def test_the_line_of_the_claim_says_what_sets_the_noise_too():
    """Who asked how a claim of 2 fared saw SURVIVED: of twice less noise."""
    shown = " ".join(overclaim("check", "mechanisms/laplace", "--epsilon", 2, "--runs", 400).stdout.split())
    assert "this is not a proof of privacy; --epsilon set the noise too (--set epsilon: the noise alone)" in shown


def test_a_file_of_neighbours_leaves_the_target_its_own_handling(tmp_path, monkeypatch):
    """It was taken for the target's module: what that had asked of NumPy was forgotten."""
    from overclaim.audit.plans.targets import relation_functions, resolve
    from overclaim.learners.float_errors import handling_of_target

    monkeypatch.chdir(tmp_path)
    (tmp_path / "loud.py").write_text("import numpy\nnumpy.seterr(all='raise')\ndef f(data, rng): return 0\n")
    (tmp_path / "near.py").write_text("def near(data, rng): return data\ndef is_near(left, right): return True\n")
    resolve("loud.py:f")
    asked = handling_of_target()
    near, check = relation_functions("near.py:near")
    assert handling_of_target() == asked
    assert asked.numpy["divide"] == "raise"
    assert near([1], None) == [1]
    assert check([1], [2])
    resolve("agarwal-singh/ftrl-experts")
