"""Losses that a theorem is not about: refused by name, in regret and in privacy; and who is compared with whom."""

import math

import numpy as np
import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.play.pairs import Pair, check_pair
from overclaim.audit.regret.adversaries import regret_losses
from overclaim.audit.regret.comparator import best_fixed, total_bounds
from overclaim.audit.regret.measurement import play_sequences
from overclaim.audit.regret.regret_audit import RegretRequest, audit_regret
from overclaim.audit.regret.verdicts import TOLERANCE, UNDECIDED, VIOLATED
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.learners import Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.problems.domains import Cube, L1Ball, L2Ball, ProbabilitySimplex
from overclaim.learners.problems.loss_classes import ConvexClass
from overclaim.learners.problems.losses import Absolute, Linear, Quadratic, Switch
from overclaim.tests.support.command_line import check, overclaim, refused

UP, DOWN = Linear(slope=(1.0,)), Linear(slope=(-1.0,))
BOWL = Quadratic(curvature=0.5, centre=(0.0,))


def built(name, rounds=4, arms=1, **parameters):
    entry = lookup(f"smith-thakurta/{name}")
    own = {key: value for key, value in parameters.items() if key in entry.parameters}
    rest = {key: value for key, value in parameters.items() if key not in own}
    setting = entry.setting(rounds=rounds, arms=arms, **rest)
    return entry, setting, entry.build(setting, **own)


@pytest.mark.parametrize(
    ("allowed", "loss", "message"),
    [
        (ConvexClass(L2Ball(1), curvature=0.1), UP, "must be 0.1-strongly convex, got 0"),
        (ConvexClass(L2Ball(1), curvature=0.1), np.array([1.0]), "must be 0.1-strongly convex, got 0"),
        (ConvexClass(L2Ball(1), curvature=0.1), Absolute(slope=(1.0,)), "must be 0.1-strongly convex, got 0"),
        (ConvexClass(L2Ball(1), curvature=0.6), BOWL, "must be 0.6-strongly convex, got 0.5"),
        (ConvexClass(L2Ball(1), curvature=0.5), Switch(below=BOWL, above=UP), "must be 0.5-strongly convex, got 0"),
        (ConvexClass(L2Ball(1), bound=0.9), UP, "must be at most 0.9 in absolute value, got 1"),
        (ConvexClass(L2Ball(1, 4.0), bound=3.9), BOWL, "must be at most 3.9 in absolute value, got 4"),
        (ConvexClass(L1Ball(2), bound=0.9), Linear(slope=(0.5, -1.0)), "must be at most 0.9 in absolute value, got 1"),
        (
            ConvexClass(ProbabilitySimplex(2), bound=1.0),
            Linear(slope=(0.5, 1.5)),
            "at most 1 in absolute value, got 1.5",
        ),
    ],
)
def test_what_is_surely_outside_is_refused(allowed, loss, message):
    with pytest.raises(ValueError, match=f"the loss must be .*{message.removeprefix('must be ')}"):
        allowed.check(loss, "the loss")


@pytest.mark.parametrize(
    ("allowed", "loss"),
    [
        (ConvexClass(L2Ball(1), curvature=0.5), BOWL),
        (ConvexClass(L2Ball(1), bound=1.0), UP),
        (ConvexClass(ProbabilitySimplex(2), bound=1.0), Linear(slope=(1.0, -1.0))),  # not at most 1 on the ball
        (ConvexClass(L2Ball(1), curvature=0.5, bound=0.1), object()),
    ],
)
def test_what_may_be_inside_is_taken(allowed, loss):
    allowed.check(loss, "the loss")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "curvature=0.5", "--sequence", "[[8,[1]],[8,[-1]]]"], "must be 0.5-strongly convex, got 0"),
        (["--sequence", '[[16,{"loss":"quadratic","curvature":9,"centre":[0]}]]'], "must be 1-Lipschitz"),
        (["--losses", "symmetric"], "losses of smith-thakurta/pftal must be lipschitz: its noise is, got 'symmetric'"),
        (["--set", "curvature=2"], "curvature must be at most 1 / radius, 1, for 1-Lipschitz losses, got 2.0"),
    ],
)
def test_regret_is_measured_on_the_theorems_losses_alone(words, message):
    """Steep or linear losses "violated" Theorem 4, which is about strongly convex, Lipschitz ones."""
    refused(overclaim("regret", "smith-thakurta/pftal", "--rounds", 16, "--runs", 20, *words), message)


@pytest.mark.parametrize("name", ["pftal", "pftal-lipschitz", "pftal-experts"])
def test_one_round_violates_no_bound(name):
    """ln 1 = 0 was the bound, though the sum of 1 / t is 1."""
    entry = lookup(f"smith-thakurta/{name}")
    assert (
        audit_regret(RegretRequest(entry, entry.setting(rounds=1), horizons=()), Budget(runs=50)).bound_verdict
        != VIOLATED
    )


@pytest.mark.parametrize("name", ["pftal-bandit", "pftal-bandit-lipschitz", "pftal-bandit-experts"])
def test_losses_of_a_bandit_are_as_small_as_its_noise_takes_them_for(name):
    """With bound = 1/4 the pairs were of losses in [-1, 1]: the mended noise was called false at 3.7."""
    words = ["--set", "bound=0.25", "--set", "calibration=corrected", "--surface", "release", "--runs", 4000]
    result = check(f"smith-thakurta/{name}", *words, "-v")
    assert result.exit_code == 0
    assert "exact value for these inputs: 1.0000" in result.output
    entry, setting, learner = built(name, rounds=5, bound=0.25)
    claim, high = entry.claim(setting), Linear(slope=(0.0,), offset=0.3)
    with pytest.raises(ValueError, match=r"the left loss of round 1 must be (at most 0.25|1e-05-strongly convex)"):
        check_pair(Pair([high] * 5, [DOWN, *[high] * 4]), claim, learner)
    for both in alphabet_of(learner, claim).differing:
        for loss in both:
            learner.loss_class.check(loss, "the loss")
    for losses in regret_losses(entry, setting, learner, 0).values():
        for loss in losses:
            learner.loss_class.check(loss, "the loss")


def test_no_loss_so_strongly_convex_is_so_small():
    with pytest.raises(ValueError, match=r"bound must be at least 2.5, curvature radius\^2 / 4"):
        built("pftal-bandit", radius=1000.0)


def test_what_replaces_a_loss_need_not_be_strongly_convex():
    entry, setting, learner = built("pftal", rounds=2, curvature=0.5)
    pair = Pair([BOWL, BOWL], [Linear(slope=(0.0,)), BOWL])
    check_pair(pair, entry.claim(setting, neighbours="zero-out"), learner)
    with pytest.raises(ValueError, match=r"the right loss of round 1 must be 0.5-strongly convex"):
        check_pair(pair, entry.claim(setting), learner)


def test_noise_that_is_made_for_one_set_is_audited_on_no_other():
    refused(
        check("ene-nguyen-vladu/tree-aggregation", "--losses", "symmetric", "--runs", 2000),
        "must be l1-ball: its noise is, got 'symmetric'",
    )


def test_advice_within_a_conversion_is_what_regret_is_against():
    """The best arm took the best expert's place, and Theorem 9 was called violated: one expert has no regret."""
    entry = lookup("asi-raman-talwar/exp4-local")
    learner = entry.build(entry.setting(rounds=8), experts=1)
    losses, advice = np.tile([1.0, 0.0], (8, 1)), learner.inner.advice
    best, _ = best_fixed(learner, losses)
    assert best == pytest.approx(sum(float((advice.at(t) @ losses[t]).min()) for t in range(8)))
    assert best > 0


def test_a_shrunken_ball_is_compared_with_the_whole_one():
    entry = lookup("ene-nguyen-vladu/private-bandit-scaled")
    learner = entry.build(entry.setting(rounds=16, arms=1))
    assert learner.oracle.factor < 1
    learner.loss_class.check(Linear(slope=(1.0,), offset=1.0), "the loss")  # 2 at an end of the whole ball
    assert best_fixed(learner, [UP] * 4)[0] == pytest.approx(-4.0)
    low, high = total_bounds(learner, [UP] * 4, points=True)
    assert (low, high) == pytest.approx((-4.0, 4.0))


def test_runs_of_doubled_length_leave_the_domain_by_what_the_first_does():
    entry = lookup("ene-nguyen-vladu/private-bandit-doubling")
    learner = entry.build(entry.setting(rounds=60, arms=1))
    assert learner.zeta > learner.build(32).zeta
    low, high = total_bounds(learner, [UP] * 4, points=True)
    assert (low, high) == pytest.approx((-4 * (1 + learner.zeta), 4 * (1 + learner.zeta)))
    with pytest.raises(ValueError, match="must be at most 2 in absolute value, got 3"):
        learner.loss_class.check(Linear(slope=(1.0,), offset=2.0), "the loss")


@pytest.mark.parametrize(
    ("name", "value"), [("domain", Cube(2)), ("oracle", "its own"), ("zeta", "its own"), ("advice", [[0.5, 0.5]])]
)
def test_what_plays_arms_is_compared_with_arms_whatever_it_has_inside(name, value):
    """One with a cube inside was said to regret 144 where 128 is possible, one with an oracle to have no bound."""
    learner = Exp3(arms=2, eta=1e-12, gamma=1.0)
    object.__setattr__(learner, name, value)
    (played,) = play_sequences(learner, [np.tile([1.0, -1.0], (64, 1))], Budget(runs=50))
    assert (played.comparator, played.bounds) == (-64.0, (-64.0, 64.0))


def test_conditional_gradient_stays_in_its_domain():
    """No largest regret was known, so no bound could be called vacuous or violated."""
    entry = lookup("ene-nguyen-vladu/noisy-oco")
    learner = entry.build(entry.setting(rounds=16))
    losses = np.tile([0.5, -0.5], (4, 1))
    assert total_bounds(learner, losses, points=True) == pytest.approx((-4 * math.sqrt(0.5), 4 * math.sqrt(0.5)))


def test_a_bound_without_its_constant_is_not_violated():
    """A learner that learns nothing pays more than 1 times the rate; the constant may be as large."""
    entry = lookup("ene-nguyen-vladu/noisy-oco")
    parameters = {"eta": 1e-6, "precision": 1e-2}
    audit = audit_regret(RegretRequest(entry, entry.setting(rounds=512), parameters=parameters), Budget(runs=50))
    assert audit.regret.interval[0] > audit.bound
    assert audit.bound_verdict == UNDECIDED
    # Nor is its growth: regret is largest, and grows as T, up to where a larger constant first says something.
    assert audit.growth_lower > audit.bound_slope + TOLERANCE
    assert audit.growth_verdict == audit.verdict == UNDECIDED
