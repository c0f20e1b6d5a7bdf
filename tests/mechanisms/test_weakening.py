"""Weaker twins: the noise divided by a factor and nothing else, for every law, mechanism and entry."""

from dataclasses import dataclass

import numpy as np
import pytest

from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.conversions.batched import BatchedLaplace, MiniBatch
from overclaim.learners.leaders.doubling import Doubling
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import Gaussian, L2Laplace, Laplace
from overclaim.mechanisms.one_shot.zoo import zoo
from overclaim.mechanisms.weakening import NoiseParameter, NoNoiseError, weakened, with_parameter

#: Entries whose algorithm has no noise.
NOISELESS = {"asi-raman-talwar/agreed-advice", "asi-raman-talwar/exp3", "tossou-dimitrakakis/exp3-minibatch"}


@pytest.mark.parametrize("law", [Laplace(3.0), Gaussian(3.0), L2Laplace(3.0, 2)])
def test_a_law_draws_the_same_noise_smaller(law):
    strong, weak = (one.sample((2, 50), Draws(7)) for one in (law, weakened(law, 1.5)))
    np.testing.assert_allclose(weak, strong / 1.5, rtol=1e-12)


@pytest.mark.few(22)
@pytest.mark.parametrize("name", sorted(entries()))
@pytest.mark.parametrize("calibration", ["as_published", "corrected"])
def test_every_entry_has_a_weaker_twin_that_differs_in_noise_alone(name, calibration):
    entry = entries()[name]
    learner = entry.build(entry.setting(calibration=calibration))
    if name in NOISELESS:
        with pytest.raises(NoNoiseError):
            weakened(learner, 2.0)
        return
    weak = weakened(learner, 4.0)
    assert type(weak) is type(learner)
    if isinstance(learner, Doubling):  # it releases over its noise's scale; every run of it is weaker
        assert (weak.first, weak.feedback) == (learner.first, learner.feedback)
        learner, weak = learner.build(4), weak.build(4)
    sizes = [float(getattr(noise, "sigma", getattr(noise, "scale", 0))) for noise in (learner.noise, weak.noise)]
    assert sizes[1] == pytest.approx(sizes[0] / 4.0, rel=1e-12)
    assert weakened(learner, 1.0) == learner
    assert weakened(weak, 1.0) == weak != learner
    # Everything else is as it was: what is not noise compares equal.
    for field in set(vars(learner)) - {"noise", "epsilon", "inner"}:
        assert getattr(weak, field) is getattr(learner, field) or getattr(weak, field) == getattr(learner, field), (
            field
        )
    if hasattr(learner, "epsilon"):
        assert getattr(weak, "inner", None) == getattr(learner, "inner", None)


@pytest.mark.few(10)
@pytest.mark.parametrize("name", sorted(zoo()))
def test_every_mechanism_of_the_zoo_has_a_weaker_twin(name):
    """The weaker twin answers with no more spread."""
    specimen = zoo()[name]
    mechanism = specimen.build()
    if name == "mechanisms/truncated-geometric":  # which has whole steps
        with pytest.raises(NoNoiseError, match="its base is a power of two"):
            weakened(mechanism, 1.0)
        return
    weak = weakened(mechanism, 50.0)
    assert type(weak) is type(mechanism)
    assert weakened(mechanism, 1.0) == mechanism
    left = specimen.pairs[0][0]
    outputs = [np.asarray(m(left, Draws(3), 4000), dtype=float) for m in (mechanism, weak)]
    spread = [np.nan_to_num(output, posinf=0.0, neginf=0.0).std(axis=-1).sum() for output in outputs]
    assert spread[1] <= spread[0]


def test_what_has_no_noise_says_so():
    for target in (MiniBatch(Exp3(arms=2, eta=1.0, gamma=0.1), batch=2), Laplace(0.0), object(), BatchedLaplace):
        with pytest.raises(NoNoiseError):
            weakened(target, 2.0)
    with pytest.raises(NoNoiseError):  # none was asked for
        weakened(BatchedLaplace(Exp3(arms=2, eta=1.0, gamma=0.1), epsilon=float("inf"), batch=1), 2.0)


@pytest.mark.parametrize("factor", [0.5, 0.0, -1.0, float("nan"), float("inf")])
def test_a_factor_below_one_or_infinite_is_refused(factor):
    with pytest.raises(ValueError, match="must be at least 1 and finite, got"):
        weakened(Laplace(1.0), factor)


@dataclass(frozen=True)
class Noisy:
    scale: float = 2.0
    label: str = "x"


def noisy(data, rng, epsilon=2.0, *, name="x"):
    return epsilon


def test_a_parameter_of_ones_own_is_multiplied_or_divided():
    assert with_parameter(Noisy(), NoiseParameter.parse("scale"), 4.0) == Noisy(8.0)
    assert with_parameter(Noisy(), NoiseParameter.parse("1/scale"), 4.0) == Noisy(0.5)
    weak = with_parameter(noisy, NoiseParameter.parse("epsilon"), 3.0)
    assert weak(None, None) == 6.0
    assert weak.__name__ == "noisy"


@pytest.mark.parametrize(
    ("target", "text", "told"),
    [
        (Noisy(), "1/", "weaken must be NAME"),
        (Noisy(), "scale/2", "weaken must be NAME"),
        (Noisy(), "sigma", "has no field 'sigma'"),
        (Noisy(), "label", "label must be a finite number, got 'x'"),
        (noisy, "sigma", "noisy has no parameter 'sigma'\nhint: it has epsilon, name"),
        (noisy, "data", "noisy has no parameter 'data'\nhint: it has epsilon, name"),
        (lambda data, rng, scale: None, "scale", "scale of <lambda> has no default\nhint: give it a value"),
        (noisy, "name", "name must be a finite number, got 'x'"),
        (object(), "epsilon", "object has no field 'epsilon'"),
    ],
)
def test_a_parameter_that_is_none_is_one_clear_line(target, text, told):
    with pytest.raises(ValueError, match=told):
        with_parameter(target, NoiseParameter.parse(text), 2.0)


@pytest.mark.parametrize("factor", [1.0, 1.25, 3.0, 100.0])
@pytest.mark.parametrize("name", sorted(name for name, one in zoo().items() if hasattr(one.build(), "sigma")))
def test_a_deviation_is_divided_by_the_factor(name, factor):
    """Epsilon or rho times the factor, or its square, is not that of every formula: 3 was 2.3, 1.4 or 9."""
    mechanism = zoo()[name].build()
    assert weakened(mechanism, factor).sigma == pytest.approx(mechanism.sigma / factor, rel=1e-6)
