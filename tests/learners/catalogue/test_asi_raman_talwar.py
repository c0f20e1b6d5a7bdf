"""Asi, Raman & Talwar 2025 and Tossou & Dimitrakakis 2017: calibrations, exact epsilons, verdicts, regret."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad

from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.laws.sequences import COARSE, log_likelihood
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import linear_alphabet
from overclaim.learners.catalogue import asi_raman_talwar, asi_raman_talwar_advice, tossou_dimitrakakis
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.learners.problems.instances import alternating_losses, lemma_11_losses
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.noise import Laplace

#: All but `agreed-advice`, which has no noise and whose advice is replaced.
ADVISED = tuple(entry for entry in asi_raman_talwar_advice.ENTRIES if "batched" in entry.name)
ENTRIES = asi_raman_talwar.ENTRIES + ADVISED + tossou_dimitrakakis.ENTRIES
CASES = [(entry, case) for entry in ENTRIES for case in entry.cases]
NAMES = [f"{e.name.split('/')[1]}-{c.calibration}-{c.surface}-{c.losses}-{c.rounds}-{c.arms}" for e, c in CASES]


def setting_of(entry, case):
    changes = {"calibration": case.calibration, "epsilon": case.epsilon}
    for name in ("losses", "rounds", "arms", "delta"):
        if getattr(case, name):
            changes[name] = getattr(case, name)
    return entry.setting(**changes)


def noise_of(entry, parameters=None, **changes):
    learner = entry.build(entry.setting(**changes), **(parameters or {}))
    return learner.noise.scale


def density(noise, x):
    return math.exp(noise.log_density(np.array([x]))[0])


# Laplace laws that the utility proofs rest on.


def tidy(low, high):
    """Return numbers that quadrature can tell from a kink: none within 1e-300 of it."""
    return st.floats(low, high).map(lambda x: round(x, 6))


@settings(deadline=None, max_examples=40)
@given(scale=st.floats(0.05, 5), loss=tidy(0, 1), cut=tidy(0, 5))
def test_noisy_losses_are_truncated_non_negative(scale, loss, cut):
    """Lemma 19: E[y 1{|y| > M}] >= 0 for y = l + Laplace noise, l in [0, 1]."""
    noise, far = Laplace(scale), 60 * scale
    upper, _ = quad(lambda y: y * density(noise, y - loss), cut, cut + 1 + far, points=[max(loss, cut)], limit=200)
    lower, _ = quad(lambda y: y * density(noise, y - loss), -cut - far, -cut, limit=200)
    assert upper + lower >= -1e-6


@settings(deadline=None, max_examples=30)
@given(scale=st.floats(0.05, 5), x=tidy(-8, 8), further=tidy(0, 4))
def test_hazard_rate_increases_to_one_over_the_scale(scale, x, further):
    """Lemma 18: f(x) / (1 - F(x)) is non-decreasing and at most 1 / scale."""

    def hazard(at):
        tail, _ = quad(
            lambda y: density(Laplace(scale), y), at, max(at, 0) + 60 * scale, points=[max(at, 0)], limit=200
        )
        return density(Laplace(scale), at) / tail

    first, second = hazard(x * scale), hazard((x + further) * scale)
    assert first <= second + 1e-6 / scale
    assert second <= (1 + 1e-6) / scale


# The catalogue.


def test_names():
    assert {entry.name.split("/")[1] for entry in ENTRIES} == {
        "batched-exp3", "batched-htinf", "batched-ftpl", "batched-threshold", "experts-batched-htinf",
        "experts-batched-threshold", "exp4-local", "exp4-batched", "exp3", "exp3-minibatch",
    }  # fmt: skip


@pytest.mark.parametrize("entry", [e for e in ENTRIES if "exp3" not in e.name.split("/")[1][:4]], ids=lambda e: e.name)
def test_both_calibrations_agree_on_unit_losses_and_differ_by_two_on_symmetric_ones(entry):
    assert noise_of(entry) == noise_of(entry, calibration="corrected") > 0
    ratio = noise_of(entry, calibration="corrected", losses="symmetric") / noise_of(entry, losses="symmetric")
    assert ratio == pytest.approx(2)


def test_noise_scales_are_the_papers():
    assert noise_of(lookup("asi-raman-talwar/batched-htinf"), epsilon=0.3, rounds=100) == pytest.approx(1 / (4 * 0.3))
    assert noise_of(lookup("asi-raman-talwar/batched-exp3"), {"batch": 7}, epsilon=0.3, rounds=99) == pytest.approx(
        1 / 2.1
    )
    assert noise_of(lookup("asi-raman-talwar/exp4-local"), epsilon=0.25) == pytest.approx(4)
    scale = noise_of(
        lookup("asi-raman-talwar/exp4-batched"),
        {"batch": 5, "gamma": 0.2, "experts": 6},
        epsilon=0.5,
        delta=1e-3,
        arms=3,
    )
    assert scale == pytest.approx(3 * 3 * math.sqrt(6 * math.log(1000)) / (0.2 * 5 * 0.5))


@pytest.mark.parametrize(("entry", "case"), CASES, ids=NAMES)
def test_arm_is_held_within_a_batch_and_exact_epsilons_agree_with_the_expectation(entry, case):
    setting = setting_of(entry, case)
    learner = entry.build(setting, **case.parameters)
    claim = entry.claim(setting, neighbours=case.neighbours, surface=case.surface)
    rounds = min(setting.rounds, 60)
    pair = first_round(linear_alphabet(claim, setting.arms), rounds, 1)[0]
    actions = play(learner, pair, Draws(0), 64).actions
    batch = getattr(learner, "batch", 1)
    for start in range(0, rounds, batch):
        assert (actions[start : start + batch] == actions[start]).all()
    if setting.rounds > 8 or case.surface == "release" or not isinstance(learner, BatchedLaplace):
        return
    pair = first_round(linear_alphabet(claim, setting.arms), setting.rounds, 1)[0]
    try:
        worst = exact_epsilon(learner, pair, deltas=(claim.delta,), cells=COARSE)[claim.delta]
    except NotExactError:
        return
    assert worst <= claim.epsilon * setting.range / (1 if setting.published else setting.range) + 1e-4
    if case.expected == "falsified":
        assert worst > 1.5 * claim.epsilon


@pytest.mark.slow(reason="four exact laws")
def test_corrected_holds_on_symmetric_losses():
    for name, parameters in (("batched-threshold", {}), ("exp4-local", asi_raman_talwar.SHARP)):
        entry = lookup(f"asi-raman-talwar/{name}")
        for calibration, most in (("as_published", 2.0), ("corrected", 1.0)):
            setting = entry.setting(losses="symmetric", calibration=calibration)
            pair = Pair(*([[first] * 2] + [[1.0] * 2] * (setting.rounds - 1) for first in (-1.0, 1.0)))
            epsilon = exact_epsilon(entry.build(setting, **parameters), pair, deltas=(0.0,))[0.0]
            assert 0.8 * most < epsilon <= most + 1e-6


@pytest.mark.parametrize("batch", [1, 2])
def test_conversion_keeps_its_claim_on_the_pair_of_lemma_11(batch):
    entry = lookup("asi-raman-talwar/batched-exp3")
    learner = entry.build(entry.setting(rounds=8), eta=2.0, gamma=0.02, batch=batch)
    for drop in (1, 3, 4):
        pair = Pair(lemma_11_losses(8, drop=drop - 1), lemma_11_losses(8, drop=drop))
        epsilon = exact_epsilon(learner, pair, deltas=(0.0,), cells=COARSE)[0.0]
        assert 0.05 < epsilon <= 1 + 1e-4


@pytest.mark.parametrize("name", ["batched-threshold", "exp4-local"])
def test_published_noise_is_falsified_on_symmetric_losses(name):
    """Seed 0, 60,000 runs. The exact epsilons are 2 and 1.69, so failing has probability below 1e-6."""
    entry = lookup(f"asi-raman-talwar/{name}")
    case = next(case for case in entry.cases if case.expected == "falsified")
    setting = setting_of(entry, case)
    result = falsify(entry.build(setting, **case.parameters), entry.claim(setting), rounds=setting.rounds, runs=60_000)
    assert result.certificate.epsilon_lower > 1.5


# Mini-batch EXP3 of Tossou & Dimitrakakis.


def simulated_epsilon(learner, pair, runs, delta):
    seen = play(learner, pair, Draws(0, Stage.SEARCH), runs)
    left, right = (log_likelihood(learner, pair, seen.actions, world) for world in (True, False))
    ratio = (left - right)[seen.left]
    low, high = 0.0, float(ratio.max())
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if np.mean(-np.expm1(np.minimum(0, middle - ratio))) > delta else (low, middle)
    return high


@pytest.mark.parametrize(("rounds", "expected", "within"), [(1000, 1.3, 0.2), (3000, 12.9, 1.5)])
def test_mini_batch_exp3_leaks_far_more_than_it_claims(rounds, expected, within):
    """Exact likelihood ratios of 4,000 simulated runs, seed 0: epsilon at delta = 1e-2, default eta and gamma."""
    entry = lookup("tossou-dimitrakakis/exp3-minibatch")
    setting = entry.setting(rounds=rounds)
    learner = entry.build(setting)
    assert learner.batch == round(rounds ** (1 / 3))
    left = np.ones((rounds, 2))
    right = left.copy()
    right[0] = 0.0
    assert simulated_epsilon(learner, Pair(left, right), 4000, 1e-2) == pytest.approx(expected, abs=within)
    assert entry.claim(setting).epsilon < 3.1


# Regret.


def mean_regret(learner, losses, runs, seed=0):
    draws = Draws(seed, Stage.REGRET)
    state = learner.start(runs, draws)
    total = np.zeros(runs)
    for loss in losses:
        actions = learner.act(state, draws)
        fed = loss[actions]
        total += fed
        learner.update(state, actions, fed, draws)
    regrets = total - losses.sum(axis=0).min()
    return regrets.mean(), regrets.std() / math.sqrt(runs)


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["batched-exp3", "exp4-local"])
def test_regret_is_below_the_derived_bound(name):
    """Seed 0, 100 runs; six standard errors. At epsilon = 20 and T = 4096 the bounds say something."""
    entry, rounds = lookup(f"asi-raman-talwar/{name}"), 4096
    setting = entry.setting(rounds=rounds, epsilon=20.0)
    learner = entry.build(setting)
    bound = entry.regret.bound(setting, learner)
    assert bound < rounds / 4
    for losses in (
        lemma_11_losses(rounds),
        alternating_losses(rounds, 2),
        (np.random.default_rng(1).random((rounds, 2)) < [0.5, 0.25]).astype(float),
    ):
        mean, error = mean_regret(learner, losses, 100)
        assert mean - 6 * error <= bound


def test_htinf_conversion_learns_and_its_bound_is_not_vacuous_where_stated():
    entry = lookup("asi-raman-talwar/batched-htinf")
    setting = entry.setting(rounds=5500 * 2 * 2, epsilon=0.5)
    bound = entry.regret.bound(setting, entry.build(setting))
    assert bound == pytest.approx(2 * 30 * math.sqrt(6) * math.sqrt(2 * (11_000 + 1)) + 2)
    assert bound < setting.rounds
    assert entry.regret.bound(setting, entry.build(setting, sigma=1.0)) == setting.rounds
    setting = entry.setting(rounds=4000)
    mean, error = mean_regret(entry.build(setting), np.tile([1.0, 0.2], (4000, 1)), 100)
    assert mean + 6 * error < 0.25 * 4000 * 0.8 / 2  # a quarter of what playing at random costs


def test_bounds_grow_as_promised():
    """The bounds themselves, over a doubling of T at large T: at most the exponent, up to logarithms."""
    for entry in ENTRIES:
        if entry.regret is None or entry.name.endswith("ftpl"):
            continue
        values = []
        for rounds in (2**40, 2**44):
            setting = entry.setting(rounds=rounds)
            values.append(entry.regret.bound(setting, entry.build(setting)))
        assert math.log2(values[1] / values[0]) / 4 < entry.regret.exponent + 0.06, entry.name


@pytest.mark.parametrize("name", ["batched-exp3", "batched-ftpl", "exp4-local"])
def test_losses_that_answer_the_actions_catch_little_noise(name):
    """The sound learner is falsified with probability 1e-6 at most; a third of the noise is caught."""
    entry = next(entry for entry in asi_raman_talwar.ENTRIES if entry.name == f"asi-raman-talwar/{name}")
    case = next(case for case in entry.cases if case.pair is not None)
    pair, how = Pair(*case.pair), {"runs": 40_000, "confidence": 1 - 1e-6}
    played = play(entry.build(entry.setting(), **case.parameters), pair, Draws(0), 200).actions
    later = [pair.feedback(t, played[t], "bandit", True, list(played[:t])) for t in (1, 2)]
    for t, loss in zip((1, 2), later, strict=True):
        np.testing.assert_array_equal(loss, (played[t] == played[t - 1]).astype(float))
    sound, weak = (entry.build(entry.setting(epsilon=epsilon), **case.parameters) for epsilon in (1.0, 3.0))
    assert falsify(sound, Claim(epsilon=1.0), pair=pair, **how).verdict.value == "SURVIVED"
    assert falsify(weak, Claim(epsilon=1.0), pair=pair, **how).verdict.value == "FALSIFIED"


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("asi-raman-talwar/exp4-batched", {"constant": 0.0}, "constant must be positive and finite, got 0.0"),
        ("asi-raman-talwar/exp4-batched", {"constant": math.nan}, "constant must be positive and finite, got nan"),
        ("tossou-dimitrakakis/exp3-minibatch", {"gamma": -1.0}, r"gamma must be in \[0, 1\], got -1.0"),
        ("tossou-dimitrakakis/exp3-minibatch", {"gamma": 0.0}, "gamma must be positive where no eta is given, got 0"),
    ],
)
def test_what_is_wrong_is_named_as_it_was_given(name, parameters, message):
    """They named the eta or the gamma that is computed from it, or no value at all."""
    entry = lookup(name)
    with pytest.raises(ValueError, match=message):
        entry.build(entry.setting(), **parameters)


def test_without_noise_batched_exp4_is_told_its_exploration():
    entry = lookup("asi-raman-talwar/exp4-batched")
    setting = entry.setting(epsilon=math.inf)
    assert entry.build(setting, gamma=0.1).noise == Laplace(0.0)
    with pytest.raises(ValueError, match="gamma must be given where epsilon is infinite"):
        entry.build(setting)
