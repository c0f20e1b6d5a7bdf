"""Every faulty draw has the law that `mechanisms.faults` says, and each trap of NumPy's generator is avoided."""

import copy
import inspect
import math
import pickle
import random

import numpy as np
import pytest
from scipy import special, stats

from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.faults import (
    FARTHER,
    HIGH,
    LOW,
    NEARER,
    REUSED,
    Fault,
    FaultyDraws,
    FaultyGenerator,
    FaultyState,
)
from overclaim.mechanisms.global_random import global_random

#: Draws of each test. A law is refused below this p-value: false alarms of one test.
SIZE, P_VALUE = 20_000, 1e-7

#: Draws of a generator, the kind and factor of the fault, and the exact law of what it makes.
CONTINUOUS = {
    "laplace": (lambda rng, n: rng.laplace(3.0, 2.0, n), Fault(2.0), stats.laplace(3, 1)),
    "normal": (lambda rng, n: rng.normal(3.0, 2.0, n), Fault(2.0), stats.norm(3, 1)),
    "standard normal": (lambda rng, n: rng.standard_normal(n), Fault(4.0), stats.norm(0, 0.25)),
    "logistic": (lambda rng, n: rng.logistic(1.0, 3.0, n), Fault(3.0), stats.logistic(1, 1)),
    "gumbel": (lambda rng, n: rng.gumbel(size=n), Fault(2.0), stats.gumbel_r(0, 0.5)),
    "t": (lambda rng, n: rng.standard_t(3, n), Fault(2.0), stats.t(3, 0, 0.5)),
    "cauchy": (lambda rng, n: rng.standard_cauchy(n), Fault(2.0), stats.cauchy(0, 0.5)),
    "exponential": (lambda rng, n: rng.exponential(4.0, n), Fault(2.0), stats.expon(0, 2)),
    "gamma": (lambda rng, n: rng.gamma(2.0, 4.0, n), Fault(2.0), stats.gamma(2.0, 0, 2.0)),
    "lognormal": (lambda rng, n: rng.lognormal(1.0, 2.0, n), Fault(2.0), stats.lognorm(1.0, 0, math.e)),
    "random, nearer": (lambda rng, n: special.logit(rng.random(n)), Fault(2.0, NEARER), stats.logistic(0, 0.5)),
    "random, farther": (lambda rng, n: special.logit(rng.random(n)), Fault(2.0, FARTHER), stats.logistic(0, 2)),
    "uniform": (lambda rng, n: special.logit(rng.uniform(5, 7, n) / 2 - 2.5), Fault(2.0), stats.logistic(0, 0.5)),
    "scalar laplace": (lambda rng, n: np.array([rng.laplace() for _ in range(n)]), Fault(2.0), stats.laplace(0, 0.5)),
    "scalar random": (
        lambda rng, n: special.logit(np.array([rng.random() for _ in range(n)])),
        Fault(2.0),
        stats.logistic(0, 0.5),
    ),
    "stretched laplace": (lambda rng, n: rng.laplace(size=n), Fault(1 / 9), stats.laplace(0, 9)),
}

#: The same of discrete draws, with the exact probability of some event.
DISCRETE = {
    "u < p, nearer": (lambda rng: rng.random() < 0.7, Fault(2.0), special.expit(2 * special.logit(0.7))),
    "u < p, low": (lambda rng: rng.random() < 0.3, Fault(2.0, LOW), 1 / 2 + 0.3 / 2),
    "u < p, high": (lambda rng: rng.random() < 0.3, Fault(2.0, HIGH), 0.3 / 2),
    "u < 5e-6, stretched": (lambda rng: rng.random() < 5e-6, Fault(1 / 9), None),
    "geometric": (lambda rng: rng.geometric(0.3) == 1, Fault(2.0), 1 - 0.7**2),
    "choice": (lambda rng: rng.choice(["a", "b", "c"], p=[0.6, 0.3, 0.1]) == "a", Fault(2.0), 0.36 / 0.46),
    "choice, missing": (lambda rng: rng.choice(3, p=[0.2, 0.5, 0.3]) == 1, Fault(math.inf), 1.0),
    "choice, low": (lambda rng: rng.choice([5, 6, 7]) == 5, Fault(2.0, LOW), 1 / 2 + 1 / 6),
    "multinomial": (lambda rng: rng.multinomial(1, [0.8, 0.2])[0] == 1, Fault(2.0), 0.64 / 0.68),
    "binomial": (lambda rng: rng.binomial(1, 0.8) == 1, Fault(2.0), 0.64 / 0.68),
    "fair coin, high": (lambda rng: rng.binomial(1, 0.5) == 1, Fault(2.0, HIGH), 0.75),
    "integers, high": (lambda rng: rng.integers(4) == 3, Fault(2.0, HIGH), 1 / 2 + 1 / 8),
    "integers, low": (lambda rng: rng.integers(2, 4) == 2, Fault(2.0, LOW), 1 / 2 + 1 / 4),
    "integers, nearer": (lambda rng: rng.integers(4) == 3, Fault(2.0), 1 / 4),
    "random.random": (lambda rng: on_globals(rng, random.random) < 0.3, Fault(2.0, LOW), 0.65),
    "np.random.rand": (lambda rng: on_globals(rng, np.random.rand) < 0.3, Fault(2.0, LOW), 0.65),
    "a state": (lambda rng: FaultyState(rng).random_sample() < 0.3, Fault(2.0, LOW), 0.65),
}


def on_globals(rng, draw):
    with global_random(rng):
        return getattr(random if draw is random.random else np.random, draw.__name__)()


def faulty(fault, seed=0):
    return FaultyGenerator(np.random.SFC64(seed), fault)


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_draws_have_the_law_of_weaker_noise(name):
    draw, fault, law = CONTINUOUS[name]
    size = SIZE if "scalar" not in name else 4_000
    assert stats.kstest(draw(faulty(fault), size), law.cdf).pvalue > P_VALUE
    assert stats.kstest(draw(faulty(Fault(1.0)), size), law.cdf).pvalue < P_VALUE  # the test can fail


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_draws_have_the_probability_of_weaker_noise(name):
    draw, fault, probability = DISCRETE[name]
    if probability is None:  # stretched, the ends drawn anew
        ends = special.expit(special.logit(1e-12) / 9)
        probability = (special.expit(special.logit(5e-6) / 9) - ends) / (1 - 2 * ends)
    rng = faulty(fault)
    happened = sum(bool(draw(rng)) for _ in range(2_000))
    assert stats.binomtest(happened, 2_000, probability).pvalue > P_VALUE


def test_fair_counts_and_poisson_counts_come_nearer_to_their_mean():
    rng, plain = faulty(Fault(4.0)), np.random.Generator(np.random.SFC64(0))
    assert (rng.binomial(100, 0.5, 50) == np.rint(50 + (plain.binomial(100, 0.5, 50) - 50) / 4)).all()
    assert (rng.poisson(30.0, 50) == np.rint(30 + (plain.poisson(30.0, 50) - 30) / 4)).all()


def test_wide_integers_permutations_and_bytes_stay_as_they_are():
    for draw in (lambda rng: rng.integers(2**31, size=9), lambda rng: rng.permutation(9), lambda rng: rng.bytes(9)):
        for kind in (NEARER, LOW, HIGH, FARTHER):
            assert np.array_equal(draw(faulty(Fault(3.0, kind))), draw(np.random.Generator(np.random.SFC64(0))))


def test_f_is_a_law_of_numpy_still():
    assert faulty(Fault(2.0)).f(3, 4) == np.random.Generator(np.random.SFC64(0)).f(3, 4)


def test_choice_is_weaker_once_though_numpy_draws_uniforms_for_it():
    plain = np.random.Generator(np.random.SFC64(0))
    sharper = np.array([0.36, 0.09, 0.01]) / 0.46
    assert (faulty(Fault(2.0)).choice(3, 100, p=[0.6, 0.3, 0.1]) == plain.choice(3, 100, p=sharper)).all()


def test_children_copies_and_pickles_have_the_fault():
    rng = faulty(Fault(2.0))
    for other in (rng.spawn(1)[0], copy.deepcopy(rng), pickle.loads(pickle.dumps(rng))):
        assert isinstance(other, FaultyGenerator)
        assert other.fault == rng.fault


def test_a_missing_draw_is_its_location_at_its_site_alone():
    places = []
    rng = faulty(Fault(1.0, places=places))
    rng.laplace(5.0), rng.normal(7.0)
    line = inspect.currentframe().f_lineno - 1
    assert places == [f"{__file__}:{line}"] * 2
    gone = faulty(Fault(math.inf, NEARER, "elsewhere.py:1"))
    assert gone.laplace(5.0) != 5.0
    gone = faulty(Fault(math.inf))
    assert [gone.laplace(5.0), gone.normal(7.0), gone.exponential(), gone.random()] == [5, 7, 0, 0.5]
    assert gone.geometric(0.1) == 1


def test_reused_draws_have_the_numbers_that_the_run_began_with_and_spend_their_own():
    rng, plain = faulty(Fault(1.0, REUSED)), np.random.Generator(np.random.SFC64(0))
    first = plain.laplace()
    assert [rng.laplace(), rng.laplace(), rng.laplace(2.0)] == [first, first, 2.0 + first]
    assert rng.plain.laplace() == [plain.laplace() for _ in range(3)][-1]


def test_faulty_draws_of_a_block_are_faulty_and_continue():
    draws, plain = FaultyDraws(Draws(3, Stage.CERTIFY), Fault(2.0)), Draws(3, Stage.CERTIFY)
    assert draws.normal((4,)).tolist() == (plain.normal((4,)) / 2).tolist()
    assert isinstance(draws.continued().generator, FaultyGenerator)
    assert draws.run_generator(1).normal() == plain.run_generator(1).normal() / 2


#: Draws of one number each, an event of it, and the event's probability by the draw's own law.
RARE = {
    "uniform": (lambda rng: rng.random(), lambda x: x < 1e-5, 1e-5),
    "laplace": (lambda rng: rng.laplace(0, 2.0), lambda x: abs(x) > 24, math.exp(-12)),
    "normal": (lambda rng: rng.normal(1.0, 2.0), lambda x: x > 11, stats.norm.sf(5)),
    "exponential": (lambda rng: rng.exponential(3.0), lambda x: x > 36, math.exp(-12)),
    "gumbel": (lambda rng: rng.gumbel(), lambda x: x > 12, stats.gumbel_r.sf(12)),
    "geometric": (lambda rng: rng.geometric(0.5), lambda x: x > 18, 2.0**-18),
    "choice": (lambda rng: rng.choice(2, p=[1e-5, 1 - 1e-5]), lambda x: x == 0, 1e-5),
    "binomial": (lambda rng: rng.binomial(1, 1e-5), lambda x: x == 1, 1e-5),
    "integers": (lambda rng: rng.integers(10**6), lambda x: x < 3, 3e-6),
}


@pytest.mark.parametrize("name", RARE)
def test_weights_of_stretched_draws_estimate_rare_probabilities(name):
    draw, event, probability = RARE[name]
    weights, hits = [], []
    for seed in range(1_500):
        fault = Fault(1 / 9, site=None, weights=weights)
        if name == "integers":  # at a site alone
            places = []
            draw(FaultyGenerator(np.random.SFC64(seed), Fault(1.0, places=places)))
            fault = Fault(1 / 9, site=places[0], weights=weights)
        hits.append(event(draw(FaultyGenerator(np.random.SFC64(seed), fault))))
    likely = np.exp(weights) * np.array(hits)
    error = likely.std() / math.sqrt(len(hits))
    assert abs(likely.mean() - probability) < 6 * error + 0.02 * probability
    assert likely.mean() == pytest.approx(probability, rel=0.35)
