"""Edges that no other test reaches: refusals, empty cases, and parts that run only in worker processes elsewhere."""

import math
import os
from dataclasses import dataclass

import numpy as np
import pytest

from overclaim import Claim, Pair, Verdict, falsify
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.laws.privacy_loss import PrivacyLoss
from overclaim.audit.laws.sequences import sequence_laws
from overclaim.audit.plans.regret_tasks import RegretTask, regret_setting
from overclaim.audit.plans.targets import convert, parse_parameters, resolve
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.execution import Budget
from overclaim.audit.regret import regret_audit
from overclaim.audit.regret.block_sequences import BlockSequence
from overclaim.learners import BatchedLaplace, Exp3, Threshold
from overclaim.learners.abilities import NotEnumerableError, select
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.renyi import ZCDP
from overclaim.reports.record import standing_of


def test_a_bound_on_regret_is_replayed_on_the_sequence_that_is_named(monkeypatch):
    """What a search found was played again beside the mean on another, listed sequence."""
    for worst in ([1.0, -1.0], [0.0, 0.0]):
        found = BlockSequence((8,), (np.array(worst),))
        monkeypatch.setattr(regret_audit, "find_adversary", lambda *_, found=found: found)
        measured = RegretTask("agarwal-singh/ftrl-experts", rounds=32, budget=Budget(runs=20)).measure()
        assert (measured["sequence"] == "found by search") == ("--sequence" in measured["replay"])
        assert measured["found"]
    assert measured["sequence"] != "found by search"


def test_a_regret_task_measures_the_price_of_privacy():
    measured = RegretTask("asi-raman-talwar/batched-exp3", rounds=32, budget=Budget(runs=40)).measure()
    assert measured["name"] == "asi-raman-talwar/batched-exp3"
    assert measured["epsilons"] == sorted(measured["epsilons"])
    assert len(measured["price"]) == len(measured["epsilons"])
    # Regret at a horizon of 8 lies between none and every round's.
    assert all(0 <= price <= 8 for price in measured["price"])


@dataclass
class Inner:
    sums: np.ndarray


@dataclass
class Outer:
    inner: Inner
    table: np.ndarray
    t: int


def test_states_are_selected_at_every_depth():
    state = Outer(Inner(np.arange(4.0)), np.arange(8.0).reshape(2, 4), 3)
    chosen = select(state, np.array([3, 3, 0]))
    np.testing.assert_array_equal(chosen.inner.sums, [3, 3, 0])
    np.testing.assert_array_equal(chosen.table, [[3, 3, 0], [7, 7, 4]])
    assert chosen.t == 3
    chosen.inner.sums += 1
    np.testing.assert_array_equal(state.inner.sums, np.arange(4.0))


def test_the_release_of_a_changed_learner_has_no_exact_law():
    @dataclass(frozen=True)
    class Other(BatchedLaplace):
        pass

    learner = BatchedLaplace(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=1)
    pair = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    assert exact_epsilon(learner, pair, surface="release", deltas=(0.0,))[0.0] == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(NotExactError, match="Other's output has no closed form"):
        exact_epsilon(Other(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=1), pair, surface="release")


def test_losses_on_different_grids_do_not_compose():
    one = PrivacyLoss.of_laplace([1.0])
    other = PrivacyLoss(one.step * 2, one.start, one.left, one.right)
    with pytest.raises(ValueError, match="steps must agree"):
        one.compose(other)


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
    assert parsed.own == {"a": [1, 2.5], "b": "text", "c": "(" * 10_000, "d": 3}


@pytest.mark.parametrize("second", [np.zeros(2), Linear(slope=(0.0, 0.0))])
def test_a_learner_of_arms_may_be_told_linear_functions(second):
    """Its sequence law on a grid is for arrays; without it, other attacks have the say."""
    pair = Pair([Linear(slope=(1.0, 0.0)), second], [Linear(slope=(0.0, 1.0)), second])
    learner = BatchedLaplace(inner=Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=1)
    with pytest.raises(NotEnumerableError, match="BatchedLaplace's actions has no closed form here"):
        sequence_laws(learner, pair)
    assert falsify(learner, Claim(epsilon=0.1), pair=pair, runs=4000).verdict is Verdict.FALSIFIED


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
        (lambda: Task(target="x", expected="private"), "expect must be one of falsified, survived, got 'private'"),
        (lambda: Task(target="math:floor").prepare(), "epsilon must be given: math:floor carries no claim of its own"),
        (
            lambda: Task(target="mechanisms/gaussian", delta=0.0).prepare(),
            "mechanisms/gaussian claims no epsilon at delta 0: give an epsilon, or a larger delta",
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


def test_too_few_runs_to_choose_are_named(uniform_class):
    message = (
        r"^runs must be more than \d+, got 30: choosing among \d+ pairs takes \d+; a pair of your own takes fewer$"
    )
    with pytest.raises(ValueError, match=message):
        falsify(uniform_class, Claim(epsilon=1.0), rounds=3, runs=30)


def test_a_target_that_was_edited_in_the_same_second_is_audited_as_it_is(tmp_path):
    """Python takes kept bytecode for that of a file of the same second and size: the audit was of the old class."""
    file = tmp_path / "mine.py"
    for value in (65, 75):
        file.write_text(f"class Noisy:\n    keep = {value}\n")
        os.utime(file, (1_700_000_000, 1_700_000_000))
        assert resolve(f"{file}:Noisy").keep == value
