"""SCRiBLe: barriers, Newton's method, the Dikin ellipsoid, and the paper's pseudocode as a slow twin."""

from functools import cached_property

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from overclaim.learners.bandits.scrible import Scrible, ScribleState, _axes
from overclaim.learners.problems.barriers import BallBarrier, BoxBarrier, SimplexBarrier, _root, oriented
from overclaim.learners.problems.newton import minimise
from overclaim.learners.protocol import LearnerError
from overclaim.mechanisms.draws import Draws, Stage

# Irregular, so that its Hessians have one eigenbasis and its orientation is no accident of rounding.
ROWS = np.array([[1.0, 0.3], [0.2, 2.0], [-1.0, -1.4]])


class Triangle:
    """A user's barrier, without closed forms: -sum ln(1 - rows x)."""

    offset, basis, nu = np.zeros(2), np.eye(2), 3.0

    def derivatives(self, z):
        scaled = ROWS / (1 - ROWS @ z).T[:, :, None]
        return scaled.sum(axis=1), np.swapaxes(scaled, 1, 2) @ scaled

    @cached_property
    def centre(self):
        return minimise(self, np.zeros((2, 1)), np.zeros((2, 1)))[:, 0]

    def minimise(self, linear):
        corners = np.array([np.linalg.solve(ROWS[[i, j]], np.ones(2)) for i, j in ((0, 1), (1, 2), (0, 2))])
        return corners[(corners @ linear).argmin(axis=0)].T


TRIANGLE = Triangle()
BARRIERS = {
    "ball": BallBarrier(3),
    "box": BoxBarrier(2),
    "interval": BoxBarrier(1),
    "simplex": SimplexBarrier(3),
    "triangle": TRIANGLE,
}


def slack(name, x):
    """How far points (N, runs) are inside the body: negative outside."""
    if name == "ball":
        return 1 - (x * x).sum(axis=0)
    if name == "simplex":
        return np.minimum(x.min(axis=0), 1e-9 - np.abs(x.sum(axis=0) - 1))
    if name == "triangle":
        return (1 - ROWS @ x).min(axis=0)
    return 1 - np.abs(x).max(axis=0)


def value(name, x):
    """The barrier at one point, from its definition."""
    with np.errstate(divide="ignore", invalid="ignore"):
        if name == "ball":
            return -np.log(1 - (x * x).sum())
        if name == "simplex":
            return -np.log(x).sum()
        if name == "triangle":
            return -np.log(1 - ROWS @ x).sum()
        return -np.log(1 - x).sum() - np.log(1 + x).sum()


names = st.sampled_from(sorted(BARRIERS))


def moved(name, seed, size):
    """Minimisers for random linear functions of a given size, (dim, 6), and those functions."""
    barrier = BARRIERS[name]
    dim = barrier.centre.size
    linear = size * np.random.default_rng(seed).normal(size=(dim, 6))
    return barrier, linear, minimise(barrier, linear, np.repeat(barrier.centre[:, None], 6, axis=1))


@given(name=names, seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 0.1, 1.0, 30.0, 1e4]))
def test_newton_finds_a_stationary_interior_point(name, seed, size):
    barrier, linear, z = moved(name, seed, size)
    gradient, hessian = barrier.derivatives(z)
    left = gradient + linear.T
    decrement = np.einsum("ri,rij,rj->r", left, np.linalg.inv(hessian), left)
    assert (np.sqrt(np.abs(decrement)) < 1e-5).all()
    assert (slack(name, barrier.offset[:, None] + barrier.basis @ z) > 0).all()


@given(name=names, seed=st.integers(0, 10**6), size=st.sampled_from([0.1, 1.0, 10.0]))
@settings(max_examples=25)
def test_derivatives_are_those_of_the_definition(name, seed, size):
    barrier, _, z = moved(name, seed, size)
    gradient, hessian = barrier.derivatives(z)
    h = 1e-4 * slack(name, barrier.offset[:, None] + barrier.basis @ z)[0]
    if name == "simplex":
        h = 1e-4 * (barrier.offset[:, None] + barrier.basis @ z).min(axis=0)[0]
    steps = np.eye(len(z)) * h

    def at(step):
        return value(name, barrier.offset + barrier.basis @ (z[:, 0] + step))

    numeric = np.array([(at(s) - at(-s)) / (2 * h) for s in steps])
    np.testing.assert_allclose(gradient[0], numeric, rtol=1e-4, atol=1e-4 * np.abs(gradient[0]).max() + 1e-6)
    curved = np.array([(at(s) - 2 * at(0 * s) + at(-s)) / h**2 for s in steps])
    np.testing.assert_allclose(np.diag(hessian[0]), curved, rtol=1e-2)


@given(name=names, seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 1.0, 100.0]))
def test_nu_bounds_the_squared_decrement_of_the_barrier(name, seed, size):
    barrier, _, z = moved(name, seed, size)
    gradient, hessian = barrier.derivatives(z)
    decrement = np.einsum("ri,rij,rj->r", gradient, np.linalg.inv(hessian), gradient)
    assert (decrement <= barrier.nu * (1 + 1e-6) + 1e-9).all()


@given(name=names, seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 1.0, 100.0]))
def test_the_ends_of_the_dikin_ellipsoid_stay_inside(name, seed, size):
    barrier, _, z = moved(name, seed, size)
    learner = Scrible(barrier=barrier, eta=0.1)
    for k in range(8):
        x = learner.act(ScribleState(z, np.zeros_like(z)), Draws(seed, block=k))
        assert (slack(name, x) >= -1e-9).all()


@given(name=names, seed=st.integers(0, 10**6), size=st.sampled_from([0.0, 1.0, 20.0]))
def test_estimates_are_unbiased(name, seed, size):
    """The mean over the 2 dim ends of the axes is the loss, along the body's affine hull."""
    barrier, _, z = moved(name, seed, size)
    learner = Scrible(barrier=barrier, eta=0.1)
    loss = np.random.default_rng(seed).normal(size=learner.arms)
    values, vectors = np.linalg.eigh(barrier.derivatives(z[:, :1])[1][0])
    ends = np.concatenate([vectors / np.sqrt(values), -vectors / np.sqrt(values)], axis=1)
    state = ScribleState(np.repeat(z[:, :1], ends.shape[1], axis=1), np.zeros_like(ends))
    x = barrier.offset[:, None] + barrier.basis @ (state.centre + ends)
    mean = learner.estimate(state, x, loss @ x).mean(axis=1)
    np.testing.assert_allclose(mean, barrier.basis.T @ loss, atol=1e-6 * (1 + size) ** 2)


@pytest.mark.parametrize(
    "barrier", [BallBarrier(1), BallBarrier(4), BoxBarrier(3), SimplexBarrier(2), SimplexBarrier(5)]
)
@pytest.mark.parametrize("size", [0.0, 0.1, 1.0, 30.0])
def test_closed_forms_are_what_newton_and_an_eigendecomposition_find(barrier, size):
    dim = barrier.centre.size
    linear = size * np.random.default_rng(4).normal(size=(dim, 20))
    z = barrier.minimum(linear)
    np.testing.assert_allclose(z, minimise(barrier, linear, np.zeros((dim, 20))), atol=1e-7)
    hessian = barrier.derivatives(z)[1]
    move = np.random.default_rng(5).normal(size=z.shape)
    np.testing.assert_allclose(barrier.curved(z, move), np.einsum("rij,jr->ir", hessian, move), rtol=1e-9)
    values, axes = zip(*(barrier.axis(z, np.full(20, i)) for i in range(dim)), strict=True)
    vectors, values = np.stack(axes, axis=1), np.stack(values)  # (dim, axes, runs), (axes, runs)
    gram = np.einsum("iar,ibr->rab", vectors, vectors)
    np.testing.assert_allclose(gram, np.tile(np.eye(dim), (20, 1, 1)), atol=1e-6)
    largest = values.max(axis=0)  # equal eigenvalues of a simplex are told apart by some 2^-24
    turned = np.einsum("rij,jar->iar", hessian, vectors)
    np.testing.assert_allclose(turned / largest, vectors * values / largest, atol=1e-6)
    known = np.linalg.eigvalsh(hessian).T
    np.testing.assert_allclose(np.sort(values, axis=0) / largest, known / largest, atol=1e-6)


@pytest.mark.parametrize("spread", [0.0, 0.1, 1.0, 5.0])
@pytest.mark.parametrize("dim", [2, 3, 8])
def test_an_eigenvalue_of_a_simplex_is_right_to_the_last_digits(dim, spread):
    """Near corners of the simplex, and in its middle, where all but a 2^-24 of the curvatures are equal."""
    rng = np.random.default_rng(5409)
    x = np.exp(spread * rng.normal(size=(dim, 500)))
    d = np.square(x.sum(axis=0) / x)
    d += np.arange(dim)[:, None] * (d.max(axis=0) * 2.0**-24)
    for chosen in range(dim - 1):
        least, above = np.sort(d, axis=0)[chosen : chosen + 2]
        root = _root(d - least, above - least)
        assert ((root > 0) & (root < above - least)).all()
        inverse = 1 / (d - least - root)
        left = np.abs(inverse.sum(axis=0) / np.square(inverse).sum(axis=0))  # to the root, by one more Newton step
        assert (left <= 1e-14 * (above - least)).all()


def test_a_barrier_that_overrides_a_part_has_no_closed_forms():
    class Other(BallBarrier):
        def derivatives(self, z):
            gradient, hessian = super().derivatives(z)
            return 2 * gradient, 2 * hessian

    assert Scrible(barrier=BallBarrier(2), eta=0.1)._closed is not None
    assert Scrible(barrier=Other(2), eta=0.1)._closed is None
    assert Scrible(barrier=TRIANGLE, eta=0.1)._closed is None


def test_every_end_is_as_likely():
    """Chi-square on 12,000 draws, seed 5, false-alarm probability 1e-6."""
    learner = Scrible(barrier=BallBarrier(3), eta=0.1)
    draws = Draws(5)
    x = learner.act(learner.start(12_000, draws), draws)
    ends, counts = np.unique(np.round(x, 6), axis=1, return_counts=True)
    assert ends.shape[1] == 6
    statistic = ((counts - 2000) ** 2 / 2000).sum()
    assert statistic < stats.chi2.isf(1e-6, 5)


def slow_scrible(name, rounds, eta, losses, noise, draws):
    """Algorithm SCRiBLe of Abernethy, Hazan & Rakhlin 2012, for one run, in the hull's coordinates."""
    barrier = BARRIERS[name]
    offset, basis = barrier.offset, barrier.basis
    dim = basis.shape[1]
    total = np.zeros(dim)
    played = []
    for t in range(rounds):

        def objective(z, total=total):
            x = offset + basis @ z
            return eta * total @ z + value(name, x) if slack(name, x[:, None])[0] > 0 else np.inf

        z = optimize.minimize(
            objective, barrier.centre, method="Nelder-Mead", options={"xatol": 1e-10, "fatol": 1e-14, "maxiter": 4000}
        ).x
        h = 1e-3
        units = np.eye(dim) * h
        exact = barrier.derivatives(z[:, None])[1][0]
        for i in range(dim):  # the Hessian by its definition agrees
            second = (objective(z + units[i]) - 2 * objective(z) + objective(z - units[i])) / h**2
            assert second == pytest.approx(exact[i, i], rel=0.05)
        eigenvalues, eigenvectors = np.linalg.eigh(exact)
        for axis in eigenvectors.T:  # the first of the largest components is positive
            axis *= np.sign(axis[np.argmax(np.round(np.abs(axis), 6))])
        end = int(draws.uniform(1)[0] * 2 * dim)
        sign = 1 if end % 2 == 0 else -1
        i = end // 2
        x = offset + basis @ (z + sign * eigenvectors[:, i] / np.sqrt(eigenvalues[i]))
        y = losses[t] @ x + noise[t]
        total = total + dim * y * sign * np.sqrt(eigenvalues[i]) * eigenvectors[:, i]
        played.append(x)
    return np.array(played)


@pytest.mark.parametrize("name", ["interval", "triangle", "ball"])
def test_the_slow_twin_plays_the_same(name):
    learner = Scrible(barrier=BARRIERS[name], eta=0.15)
    rng = np.random.default_rng(8)
    rounds = 4
    losses, noise = rng.uniform(-1, 1, (rounds, learner.arms)), rng.laplace(size=rounds)
    draws = Draws(9)
    state, played = learner.start(1, draws), []
    for t in range(rounds):
        x = learner.act(state, draws)
        learner.update(state, x, losses[t] @ x + noise[t], draws)
        played.append(x[:, 0])
    twin = slow_scrible(name, rounds, 0.15, losses, noise, Draws(9))
    # The ball's Hessians have a double eigenvalue, so no one eigenbasis, after the first round.
    agreed = 1 if name == "ball" else rounds
    np.testing.assert_allclose(np.array(played)[:agreed], twin[:agreed], atol=1e-4)


def test_it_learns_the_better_end():
    learner = Scrible(barrier=BoxBarrier(1), eta=0.1)
    draws = Draws(2)
    state = learner.start(50, draws)
    for _ in range(200):
        x = learner.act(state, draws)
        learner.update(state, x, np.array([1.0]) @ x, draws)
    assert state.centre.mean() < -0.8


@given(name=names, seed=st.integers(0, 10**6))
@settings(max_examples=20)
def test_the_comparator_is_the_best_point(name, seed):
    barrier = BARRIERS[name]
    rng = np.random.default_rng(seed)
    linear = rng.normal(size=(len(barrier.offset), 1))
    best = barrier.minimise(np.repeat(linear, 2, axis=1))
    assert (slack(name, best) > -1e-7).all()
    _, _, others = moved(name, seed, 100.0)
    points = barrier.offset[:, None] + barrier.basis @ others
    assert (linear[:, 0] @ best <= (linear[:, 0] @ points).min() + 1e-9).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["ball", "box", "simplex", "triangle"])
def test_a_rate_whose_centres_reach_the_boundary_is_named(name):
    """An end was no finite point, after warnings of NumPy's: as if the learner were at fault."""
    barrier = {"ball": BallBarrier(4), "box": BoxBarrier(4), "simplex": SimplexBarrier(4), "triangle": TRIANGLE}[name]
    learner, draws = Scrible(barrier=barrier, eta=10.0), Draws(1, Stage.TRAIN)
    state = learner.start(64, draws)

    def play():
        for _ in range(100):
            points = learner.act(state, draws)
            learner.update(state, points, points.sum(axis=0), draws)

    with pytest.raises(LearnerError, match="too near the boundary for floating point: is eta too large"):
        play()


def test_bad_rates_are_named():
    with pytest.raises(ValueError, match="eta must be positive"):
        Scrible(barrier=BallBarrier(1), eta=0.0)


@pytest.mark.parametrize("name", ["triangle", "ball"])
def test_the_axes_do_not_hang_on_the_last_bits_of_a_hessian(name):
    """At the centre all eigenvalues are equal, and a sum's last bits would choose the axes, and so what is played."""
    barrier, rng = BARRIERS[name], np.random.default_rng(10)
    exact = np.repeat(barrier.derivatives(barrier.centre[:, None])[1], 50, axis=0)
    moved = exact + np.abs(exact).max() * rng.integers(-2, 3, exact.shape) * 2.0**-52
    moved = (moved + np.swapaxes(moved, 1, 2)) / 2
    values, vectors = _axes(moved)
    np.testing.assert_allclose(vectors, np.broadcast_to(vectors[:1], vectors.shape), atol=1e-12)
    np.testing.assert_allclose(vectors @ (values[:, :, None] * np.swapaxes(vectors, 1, 2)), exact, rtol=0, atol=1e-5)


@pytest.mark.parametrize("dim", [1, 2, 7, 300])
def test_an_axis_is_turned_by_the_first_of_its_largest_components(dim):
    """Also where some are as large, but for bits that count as none."""
    rng = np.random.default_rng(dim)
    ties = rng.choice([-1.0, 1.0], (dim, 500)) * (1 + rng.choice([0.0, 1e-9, -1e-9], (dim, 500)))
    some = ties * (rng.random((dim, 500)) < 0.5) + 2 * np.eye(dim)[:, :1]
    for directions in (rng.normal(size=(dim, 500)), ties, some):
        directions = directions / np.sqrt(np.square(directions).sum(axis=0))
        lead = np.argmax(np.rint(np.abs(directions) * 2.0**20), axis=0)
        turned = oriented(directions)
        assert (turned[lead, np.arange(500)] > 0).all()
        np.testing.assert_array_equal(np.abs(turned), np.abs(directions))
