"""The noise laws: their samples against published laws and slow twins, their densities, and their privacy."""

import math

import numpy as np
import pytest
from scipy import stats

from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.noise import (
    LARGEST,
    Gaussian,
    L2Laplace,
    Laplace,
    Projected,
    deviation_of,
    laplace_sum_density,
    scale_of,
)
from overclaim.mechanisms.weakening import NoNoiseError


class Fixed(Draws):
    """Uniforms from a list."""

    def __init__(self, values):
        super().__init__(0)
        self.values = values

    def uniform(self, shape):
        assert shape == np.shape(self.values)
        return np.array(self.values)


def test_laplace_is_a_signed_exponential_of_one_uniform():
    uniforms = np.array([[0.0, 0.125, 0.5, 0.75, 1 - 2.0**-53]])
    drawn = Laplace(3.0).sample((1, 5), Fixed(uniforms))
    # Half a step of the generator is added, so that u and 1 - u give opposite draws and none is infinite.
    assert drawn[0, 0] == -drawn[0, 4] < 0
    assert drawn[0, 2] == pytest.approx(3.0 * 53 * math.log(2), rel=1e-14)
    np.testing.assert_allclose(drawn[0, [1, 3]], [-stats.expon(scale=3).isf(0.75), stats.expon(scale=3).isf(0.5)])


@pytest.mark.parametrize("count", [1, 2, 16, 17, 40])
def test_sums_of_laplace_draws_are_the_sums_of_those_draws(count):
    """Also of the largest draws of either sign, whose product alone is no number."""
    one, many = Draws(3), Draws(3)
    np.testing.assert_allclose(
        Laplace(3.0).sample_sums(count, (2, 500), one),
        sum(Laplace(3.0).sample((2, 500), many) for _ in range(count)),
        atol=1e-12,
    )
    far = Fixed([0.0, 0.5 - 2.0**-53, 0.5, 1 - 2.0**-53])
    np.testing.assert_allclose(
        Laplace(3.0).sample_sums(count, (4,), far), count * Laplace(3.0).sample((4,), far), rtol=1e-13, atol=1e-12
    )
    assert (Laplace(0.0).sample_sums(count, (4,), far) == 0).all()


@pytest.mark.parametrize(
    ("noise", "law"),
    [
        (Laplace(0.5), stats.laplace(scale=0.5)),
        (Laplace(1.0), stats.laplace),
        (Gaussian(0.5), stats.norm(scale=0.5)),
        (Gaussian(1.0), stats.norm),
        (L2Laplace(0.5, 1), stats.laplace(scale=0.5)),
        (L2Laplace(1.0, 1), stats.laplace),
    ],
)
def test_samples_follow_their_law(noise, law):
    """Kolmogorov-Smirnov, seed 1, 20,000 draws; false-alarm probability 1e-7 each."""
    drawn = noise.sample((1, 20_000), Draws(1))
    assert drawn.shape == (1, 20_000)
    assert stats.kstest(drawn[0], law.cdf).pvalue > 1e-7


def test_in_one_dimension_l2_laplace_is_laplace_to_the_draw():
    one = L2Laplace(0.5, 1).sample((1, 9), Draws(5))
    np.testing.assert_array_equal(one, Laplace(0.5).sample((1, 9), Draws(5)))


@pytest.mark.parametrize("shape", [(3, 4), (3, 5, 4), (2, 6)])
def test_l2_laplace_is_a_gamma_radius_in_a_uniform_direction(shape):
    """The slow twin, from the same stream."""
    drawn, stream = L2Laplace(2.0, shape[0]).sample(shape, Draws(4)), Draws(4).generator
    direction, radius = stream.standard_normal(shape), stream.standard_gamma(shape[0], shape[1:])
    for place in np.ndindex(shape[1:]):
        column = direction[:, *place]
        np.testing.assert_allclose(drawn[:, *place], 2.0 * radius[place] * column / math.hypot(*column))


def test_scale_zero_is_no_noise():
    for noise in (Laplace(0.0), Gaussian(0.0), L2Laplace(0.0, 2)):
        np.testing.assert_array_equal(noise.sample((2, 3), Draws(0)), np.zeros((2, 3)))


@pytest.mark.parametrize(
    ("noise", "law"), [(Laplace(0.3), stats.laplace(scale=0.3)), (Gaussian(0.3), stats.norm(scale=0.3))]
)
def test_densities_add_up_over_coordinates(noise, law):
    x = np.array([-1.5, 0.0, 0.2, 4.0])
    np.testing.assert_allclose(noise.log_density(x), law.logpdf(x), rtol=1e-12)
    table = Draws(2).normal((2, 3, 4))
    np.testing.assert_allclose(noise.log_density(table), law.logpdf(table).sum(axis=(0, 1)), rtol=1e-12)
    np.testing.assert_allclose(noise.log_density(table[0]), law.logpdf(table[0]).sum(axis=0), rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_the_density_of_l2_laplace_is_that_of_its_radius_over_the_sphere(dim):
    x = Draws(3).normal((dim, 6))
    radius, scale = np.linalg.norm(x, axis=0), 0.7
    sphere = 2 * math.pi ** (dim / 2) / math.gamma(dim / 2) * radius ** (dim - 1)
    expected = stats.gamma(dim, scale=scale).logpdf(radius) - np.log(sphere)
    np.testing.assert_allclose(L2Laplace(scale, dim).log_density(x), expected, rtol=1e-10)


def test_privacy_is_the_sensitivity_over_the_scale():
    assert Laplace(4.0).epsilon(2.0) == 0.5
    assert L2Laplace(4.0, 3).epsilon(2.0) == 0.5
    assert Gaussian(4.0).mu(2.0) == 0.5


@pytest.mark.parametrize(
    ("noise", "law"), [(Laplace(0.3), stats.laplace(scale=0.3)), (Gaussian(0.3), stats.norm(scale=0.3))]
)
def test_a_tail_is_that_of_one_draw(noise, law):
    x = np.array([[0.0, 0.2], [1.0, 5.0]])
    np.testing.assert_allclose(noise.tail(x), law.sf(x), rtol=1e-12)


@pytest.mark.parametrize("law", [Laplace(0.5), Gaussian(0.5)])
def test_projected_noise_is_each_points_product_with_the_same_draws(law):
    points = np.array([[1.0, 0.0, -2.0], [3.0, 0.5, 1.0]])
    entries = law.sample((2, 3), Draws(4))
    expected = [entries[0, run] * points[0, run] + entries[1, run] * points[1, run] for run in range(3)]
    np.testing.assert_allclose(Projected(law, points).sample((3,), Draws(4)), expected, rtol=1e-14)


def test_noise_says_its_one_number_by_its_kind():
    assert (scale_of(Laplace(0.5)), scale_of(L2Laplace(0.25, 2)), scale_of(Gaussian(0.5))) == (0.5, 0.25, 0.0)
    assert (deviation_of(Laplace(0.5)), deviation_of(Gaussian(0.5))) == (0.0, 0.5)


@pytest.mark.parametrize("noise", [Laplace(0.0), Gaussian(0.0), L2Laplace(0.0, 2)])
def test_no_noise_cannot_be_divided(noise):
    with pytest.raises(NoNoiseError, match=r"^there is no noise to divide$"):
        noise.weakened(2.0)


@pytest.mark.parametrize("scale", [0.0, 1 / LARGEST, LARGEST])
def test_scales_up_to_the_ends_are_allowed(scale):
    assert (Laplace(scale).scale, Gaussian(scale).sigma, L2Laplace(scale, 1).scale) == (scale, scale, scale)


@pytest.mark.parametrize("transposed", [False, True])
def test_the_density_of_a_sum_of_laplace_draws(transposed):
    """Its polynomials as published for one to three draws, of so many numbers that they are computed in parts."""
    x = np.linspace(-6, 9, 2 * 16_500).reshape(2, -1)
    given = x.T if transposed else x
    size = np.abs(given)
    for draws, polynomial in ((1, 1 / 2), (2, (1 + size) / 4), (3, (3 + 3 * size + size**2) / 16)):
        np.testing.assert_allclose(laplace_sum_density(given, draws), polynomial * np.exp(-size), rtol=1e-14)
    assert laplace_sum_density(np.array([[0, -1]]), 2) == pytest.approx(np.array([[1 / 4, 1 / (2 * math.e)]]))
    assert laplace_sum_density(np.array(3), 1).shape == ()
    assert laplace_sum_density(np.array([800.0, 1e140, np.inf]), 5).tolist() == [0, 0, 0]


def test_the_sum_of_normal_draws_is_normal():
    assert Gaussian(1.5).total(4) == Gaussian(3.0)
    assert Gaussian(1.5).total(0) == Gaussian(0.0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Laplace(-1.0), "scale must be finite and at least 0, got -1.0"),
        (lambda: Laplace(math.inf), "scale must be finite and at least 0, got inf"),
        (lambda: Gaussian(math.nan), "sigma must be finite and at least 0, got nan"),
        (lambda: L2Laplace(-0.5, 1), "scale must be finite and at least 0, got -0.5"),
        (lambda: Laplace(9e-151), "scale must be 0, or from 1e-150 to 1e+150, got 9e-151"),
        (lambda: Gaussian(1.1e150), "sigma must be 0, or from 1e-150 to 1e+150, got 1.1e+150"),
        (lambda: L2Laplace(1.0, 0), "dim must be at least 1, got 0"),
        (lambda: L2Laplace(1.0, 2).sample((3, 4), Draws(0)), "shape must start with dim = 2, got (3, 4)"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError) as error:  # noqa: PT011 - the whole message is compared
        call()
    assert str(error.value) == message
