"""Compiled kernels: fed the same draws, they play what the batched protocol plays."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from overclaim import Claim, falsify
from overclaim.audit.attacks.particle import ParticleRatio
from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.learner_stages import LearnerAudit
from overclaim.audit.plans.ledger import versions
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.play import kernels
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners import BatchedLaplace, Exp3, MiniBatch
from overclaim.learners.abilities import has_release, kernel_of
from overclaim.learners.bandits.exp2 import Exp2, hypercube, signed_axes
from overclaim.learners.bandits.exp2_hypercube import HypercubeExp2
from overclaim.learners.bandits.exp4 import BatchedExp4, Exp4, SteadyExp4
from overclaim.learners.bandits.htinf import Htinf
from overclaim.learners.conversions.reduction import BanditReduction, GaussianReduction
from overclaim.learners.leaders.ftpl import Ftpl
from overclaim.learners.leaders.ftrl import Ftrl
from overclaim.learners.probes.threshold import Threshold
from overclaim.learners.problems.advice import Advice, graded_advice
from overclaim.learners.problems.domains import Ball, Cube, EntropySimplex, Simplex
from overclaim.mechanisms.elementary import cos_turns, exp, log
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.philox import LANES, CounterDraws, lanes, philox
from overclaim.mechanisms.view import VIEWS
from overclaim.tests.support.command_line import overclaim, refused

#: Runs: several whole blocks of lanes and a part of one.
RUNS = 2 * kernels.WIDE + 7


def pair(rounds, arms, t0=1, seed=0):
    left = np.random.default_rng(seed).random((rounds, arms))
    right = left.copy()
    right[t0] = 1 - left[t0]
    return Pair(left, right)


def assert_same(learner, worlds, *, surface="actions", runs=RUNS, seed=0):
    """Play both ways on the same draws: arms must be equal, points and releases up to rounding.

    An arm differs where a uniform falls between two roundings of a probability: less than 1e-12 for each of some
    1e4 arms here, and the seed is fixed.
    """
    fast = kernels.play(learner, worlds, CounterDraws(seed), runs, view=VIEWS[surface])
    slow = play(learner, worlds, CounterDraws(seed), runs, view=VIEWS[surface])
    np.testing.assert_array_equal(fast.left, slow.left)
    assert fast.actions.dtype == slow.actions.dtype
    if slow.actions.dtype.kind == "i":
        np.testing.assert_array_equal(fast.actions, slow.actions)
    else:
        np.testing.assert_allclose(fast.actions, slow.actions, rtol=0, atol=1e-9)
    assert (fast.releases is None) == (slow.releases is None)
    if slow.releases is not None:
        np.testing.assert_allclose(fast.releases, slow.releases, rtol=1e-9, atol=1e-9)
    return slow


# Random numbers


@pytest.mark.parametrize(
    ("key", "counter", "words"),
    [
        ((0, 0), (0, 0, 0, 0), "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        ((0xFFFFFFFF,) * 2, (0xFFFFFFFF,) * 4, "408f276d 41c83b0e a20bc7c6 6d5451fd"),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_philox_gives_the_published_answers(key, counter, words):
    """Random123's kat_vectors, philox4x32 10."""
    answer = philox(*(np.uint64(x) for x in (*key, *counter)))
    assert " ".join(f"{int(word):08x}" for word in answer) == words


def test_draws_do_not_depend_on_how_they_are_asked_for():
    whole = CounterDraws(3, 1, 2, 3, 4).uniform((6, 10))
    parts = CounterDraws(3, 1, 2, 3, 4)
    rows = [parts.uniform(10), *parts.uniform((2, 10)), *parts.uniform((1, 10)), *parts.uniform((2, 10))]
    np.testing.assert_array_equal(whole, rows)
    np.testing.assert_array_equal(whole[:, :4], CounterDraws(3, 1, 2, 3, 4).uniform((6, 4)))
    others = [CounterDraws(*key).uniform(10) for key in ((4, 1, 2, 3, 4), (3, 0, 2, 3, 4), (3, 1, 2, 3, 5))]
    assert not any(np.isin(other, whole).any() for other in others)


def test_draws_are_uniform_and_normal():
    """Kolmogorov-Smirnov at 1e5 draws each; false alarm 1e-7 each."""
    from scipy.stats import kstest

    draws = CounterDraws(11)
    u = draws.uniform((10, 10_000)).ravel()
    assert u.min() >= 0
    assert u.max() < 1
    assert kstest(u, "uniform").pvalue > 1e-7
    assert kstest(draws.normal((10, 10_000)).ravel(), "norm").pvalue > 1e-7


def _noise(stream, scale, out):
    raise AssertionError("replaced by the compiler")


def _rows(stream, scale, out):
    for row in range(out.shape[0]):
        _noise(stream, scale, out[row])


@pytest.mark.few(1)
@pytest.mark.parametrize("law", [Laplace(0.7), Gaussian(1.3), Laplace(0.0)], ids=repr)
def test_a_kernel_draws_the_same_noise(law):
    draws = CounterDraws(5)
    expected = law.sample((5, LANES), draws)
    noise, scale = law.block

    def stream():
        return np.append(draws.words, np.uint64(0)), np.zeros(1, np.int64), lanes(1)[0], lanes(1)[0]

    fast, plain, again = lanes(5), lanes(5), stream()
    kernels.compiled(_rows, _noise=noise)(stream(), scale, fast)
    for row in plain:  # uncompiled it means the same
        noise(again, scale, row)
    np.testing.assert_allclose(fast, expected, rtol=0, atol=1e-13)
    np.testing.assert_allclose(plain, expected, rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    ("ours", "theirs", "points"),
    [
        (exp, math.exp, [-707.9, -30.0, -1.0, -1e-9, 0.0, 0.3, 1.0, 40.0, 700.0]),
        (log, math.log, [2.0**-1000, 1e-9, 0.3, 0.7071, 0.7072, 0.99999, 1.0, 1.00001, 1.4142, 1.4143, 7.0, 1e300]),
        (cos_turns, lambda x: math.cos(2 * math.pi * x), [0.0, 1e-9, 0.1, 0.24, 0.26, 0.49, 0.5, 0.77, 1.0]),
    ],
)
def test_elementary_functions(ours, theirs, points):
    for x in points:
        assert ours(x) == pytest.approx(theirs(x), rel=4e-16, abs=4e-16), x


def test_exp_far_out():
    assert exp(-800.0) == 0.0
    assert exp(720.0) == math.inf


# The same actions


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="each case compiles a kernel")
@pytest.mark.parametrize("arms", [1, 2, 5])
@pytest.mark.parametrize("gamma", [0.0, 0.1, 1.0])
def test_exp3_plays_the_same(arms, gamma):
    assert_same(Exp3(arms=arms, eta=0.3, gamma=gamma), pair(9, arms))


@pytest.mark.slow(reason="it compiles kernels of its own")
@pytest.mark.parametrize("surface", ["actions", "release"])
@pytest.mark.parametrize("batch", [1, 3])
def test_batched_exp3_plays_the_same(batch, surface):
    learner = BatchedLaplace(Exp3(arms=3, eta=0.2, gamma=0.1), epsilon=1.0, batch=batch)
    played = assert_same(learner, pair(10, 3), surface=surface)
    assert (played.releases is not None) == (surface == "release")


@pytest.mark.slow(reason="it compiles a kernel of its own")
def test_minibatch_plays_the_same():
    assert_same(MiniBatch(Exp3(arms=3, eta=0.5, gamma=0.1), batch=4), pair(10, 3))


@pytest.mark.slow(reason="it compiles a kernel of its own")
def test_weights_that_run_away_are_the_same():
    """Estimates of size 1e4: log-weights beyond what exp can hold."""
    learner = BatchedLaplace(Exp3(arms=3, eta=40.0, gamma=0.01), epsilon=0.2, batch=1)
    played = assert_same(learner, pair(12, 3))
    assert len(np.unique(played.actions)) == 3


LEARNERS = [
    Htinf(arms=3),
    SteadyExp4(advice=graded_advice(5, 3), eta=0.4, gamma=0.1),
    BatchedExp4(advice=graded_advice(4, 3), eta=0.4, gamma=0.2, tau=3, epsilon=9.0, delta=0.1),
    BanditReduction(Exp3(arms=3, eta=0.3, gamma=0.1), epsilon=1.0),
    BanditReduction(Exp2(actions=signed_axes(3), eta=0.1, gamma=0.3), epsilon=1.0),
    BanditReduction(HypercubeExp2(actions=hypercube(3), eta=0.1, gamma=0.3), epsilon=1.0),
    BanditReduction(Threshold(arms=3, threshold=0.6), epsilon=1.0),
    GaussianReduction(Exp3(arms=3, eta=0.3, gamma=0.1), noise=Gaussian(1.5)),
    Ftrl(domain=EntropySimplex(3), rounds=10, eta=0.3, noise=Laplace(1.5)),
    Ftpl(domain=Simplex(3), rounds=10, noise=Gaussian(1.5)),
    Ftpl(domain=Cube(3), rounds=10, noise=Gaussian(1.5)),
]


def _name(learner):
    return type(learner).__name__ + "-" + type(getattr(learner, "inner", learner)).__name__


def _spoiled(numbers):
    """Yield copies of a kernel's numbers in which one of them is 30 % too large."""
    for k, number in enumerate(numbers):
        options = (
            [] if isinstance(number, int) else [number * 1.3] if not isinstance(number, tuple) else _spoiled(number)
        )
        for option in options:
            yield (*numbers[:k], option, *numbers[k + 1 :])


@pytest.mark.few(2, rest="nightly")
@pytest.mark.slow(reason="each case compiles kernels")
@pytest.mark.parametrize("learner", LEARNERS, ids=_name)
def test_every_kernel_plays_the_same(learner, monkeypatch):
    """And the comparison sees it where any number in the kernel is wrong."""
    for surface in ("actions", "release") if has_release(learner) else ("actions",):
        played = assert_same(learner, pair(10, 3, t0=2), surface=surface)
    assert len(np.unique(played.actions)) > 1
    for numbers in _spoiled(learner.kernel().numbers):
        if isinstance(learner, Ftpl) and numbers[1] != 1:
            continue  # a linear minimiser ignores the size of what it minimises

        def wrong(_, width=LANES, numbers=numbers):
            return replace(learner.kernel(width), numbers=numbers)

        monkeypatch.setattr(kernels, "kernel_of", wrong)
        with pytest.raises(AssertionError):
            assert_same(learner, pair(10, 3, t0=2))


def test_every_domain_of_a_leader_has_the_right_block():
    """Uncompiled, on the linear functions that a tree might give, one of them 0."""
    linear = lanes(3)
    linear[:] = np.random.default_rng(0).normal(size=linear.shape) * 2
    linear[:, 0] = 0
    for domain in (EntropySimplex(3), Ball(3), Cube(3)):
        x = lanes(3)
        domain.prox_block(linear, x, lanes(2))
        np.testing.assert_allclose(x, domain.prox(linear), rtol=1e-14)
    arms, points = np.zeros((1, LANES), dtype=np.intp), lanes(3)
    Simplex(3).minimise_block(linear, arms, lanes(2))
    Cube(3).minimise_block(linear, points, lanes(2))
    np.testing.assert_array_equal(arms[0], Simplex(3).minimise(linear))
    np.testing.assert_array_equal(points, Cube(3).minimise(linear))


@pytest.mark.slow(reason="it compiles a kernel")
def test_advice_that_changes_is_followed_to_its_last_round():
    table = np.random.default_rng(1).dirichlet(np.ones(3), size=(6, 4))
    learner = Exp4(advice=Advice(table), eta=0.5, gamma=0.1)
    assert_same(learner, pair(6, 3))
    with pytest.raises(ValueError, match="at most 6 rounds, got 7"):
        kernels.play(learner, pair(7, 3), CounterDraws(0), RUNS)
    assert kernels.engine_of(learner, [pair(6, 3)], fast=True) == "numba"
    assert kernels.engine_of(learner, [pair(7, 3)], fast=True) == "numpy"


@pytest.mark.slow(reason="it compiles kernels")
def test_the_width_of_a_block_changes_nothing():
    learner, worlds = BatchedLaplace(Exp3(arms=2, eta=0.3, gamma=0.1), epsilon=1.0, batch=1), pair(8, 2)
    plays = [kernels.play(learner, worlds, CounterDraws(2), RUNS, width=width) for width in (LANES, None)]
    np.testing.assert_array_equal(plays[0].actions, plays[1].actions)
    many = Exp3(arms=kernels.FEW, eta=0.3)
    assert sum(map(len, many.kernel().arrays)) > kernels.FEW
    assert_same(many, pair(3, kernels.FEW))


@pytest.mark.slow(reason="it compiles a kernel of its own")
def test_another_seed_plays_otherwise():
    learner = Exp3(arms=2, eta=0.3)
    plays = [kernels.play(learner, pair(4, 2), CounterDraws(seed), RUNS) for seed in (0, 1)]
    assert (plays[0].actions != plays[1].actions).any()


# The particle attack


@pytest.mark.few(1, rest="nightly")
@pytest.mark.slow(reason="it compiles a filter")
@pytest.mark.parametrize(
    ("inner", "t0"),
    [(Exp3(arms=3, eta=0.4, gamma=0.05), 0), (Htinf(arms=3), 2), (Threshold(arms=3, threshold=0.6), 0)],
    ids=["Exp3", "Htinf", "Threshold"],
)
@pytest.mark.parametrize(("lag", "begin"), [(16, 0), (3, 0), (3, 2)])
def test_the_particle_attack_scores_the_same(inner, t0, lag, begin):
    """Scores are rounded to six digits: two sums that differ by 1e-12 round apart once in 1e6 sequences."""
    learner, worlds = BatchedLaplace(inner, epsilon=1.0, batch=1), pair(7, 3, t0=t0 + begin)
    transcripts = play(learner, worlds, CounterDraws(1), 100)
    slow, fast = (ParticleRatio(learner, worlds, lag=lag, begin=begin) for _ in range(2))
    fast = fast.faster()
    assert fast.fast
    scores = slow.score(transcripts)
    assert len(np.unique(scores)) > (1 if isinstance(inner, Threshold) else 10)
    np.testing.assert_allclose(fast.score(transcripts), scores, rtol=0, atol=2e-6)


def test_the_particle_attack_of_a_fast_audit_is_fast():
    learner, worlds = BatchedLaplace(Htinf(arms=2), epsilon=1.0, batch=1), pair(4, 2)
    for fast in (True, False):
        audit = LearnerAudit(
            learner=learner,
            claim=Claim(epsilon=1.0),
            engine="numba" if fast else "numpy",
            budget=Budget(runs=1000, seed=0, confidence=0.99),
        )
        assert audit.fit(ParticleRatio, worlds, None).fast is fast
    assert not ParticleRatio(BatchedLaplace(_OwnUpdate(arms=2, eta=0.1), epsilon=1.0, batch=1), worlds).faster().fast


class _OwnUpdate(Exp3):
    """A user's learner: it says its probabilities, and no kernel of ours plays it."""

    def update(self, state, arms, feedback, draws):
        return super().update(state, arms, feedback, draws)


# The engine of an audit


def test_a_fast_audit_names_its_engine_and_replays():
    learner = BatchedLaplace(Exp3(arms=2, eta=2.0, gamma=0.02), epsilon=1.0, batch=1)
    audits = [falsify(learner, Claim(epsilon=0.5), rounds=4, runs=30_000, fast=fast) for fast in (True, True, False)]
    assert [audit.engine for audit in audits] == ["numba", "numba", "numpy"]
    assert audits[0].certificate == audits[1].certificate
    assert audits[0].certificate != audits[2].certificate
    assert audits[0].verdict is audits[2].verdict
    assert audits[0].epsilon_lower == pytest.approx(audits[2].epsilon_lower, abs=0.1)


def test_a_learner_without_a_kernel_plays_on_numpy(uniform_class):
    audits = [falsify(uniform_class, Claim(epsilon=1.0), rounds=2, runs=2000, fast=fast) for fast in (True, False)]
    assert audits[0].engine == "numpy"
    assert audits[0].certificate == audits[1].certificate
    assert kernel_of(BatchedLaplace(_NoKernel(), epsilon=1.0, batch=1)) is None


class _NoKernel:
    feedback, arms = "bandit", 2


def test_without_numba_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setattr(kernels.importlib.util, "find_spec", lambda name: None)
    learner = Exp3(arms=2, eta=0.3)
    with pytest.raises(ValueError, match=r"pip install 'overclaim\[fast\]'"):
        falsify(learner, Claim(epsilon=1.0), rounds=2, runs=100, fast=True)
    refused(overclaim("check", "asi-raman-talwar/batched-exp3", "--fast"), "pip install 'overclaim[fast]'")


def test_the_command_line_is_fast_and_replays():
    words = ["check", "asi-raman-talwar/batched-exp3", "--rounds", "3", "--runs", "5000", "--set", "batch=1", "--json"]
    claims = [json.loads(overclaim(*words, *more).stdout) for more in (["--fast"], [])]
    assert [claim["engine"] for claim in claims] == ["numba", "numpy"]
    assert ["--fast" in claim["replay"] for claim in claims] == [True, False]


def test_a_plan_may_be_fast(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text('[[claims]]\ntarget = "asi-raman-talwar/batched-exp3"\nfast = true\n')
    plan = read_plan(path)
    assert plan.tasks[0].fast
    assert "numba" in versions(plan)
    slow = replace(plan, tasks=(replace(plan.tasks[0], fast=False),))
    assert "numba" not in versions(slow)
    assert slow.faster() == plan


def test_nothing_of_numba_is_imported_before_it_is_used():
    """A fresh process: an audit that is not fast must not pay for the compiler."""
    code = (
        "import sys; from overclaim import Claim, falsify; from overclaim.learners import Exp3; "
        "falsify(Exp3(arms=2, eta=1.0), Claim(epsilon=1.0), rounds=2, runs=100); sys.exit('numba' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_machine_code_is_named_after_the_source_of_every_function_in_it():
    """The planted bug: Numba's own key sees neither a changed block function nor a changed constant."""
    kernel = Exp3(arms=2, eta=1.0).kernel()

    def other_act(t, numbers, arrays, stream, played):
        played[0, 0] = 0

    parts = {"act": kernel.act, "update": kernel.update, "tell": kernels.tell_arm}
    names = {
        kernels.compiled(kernels._game, width, **{**parts, **change}).py_func.__qualname__
        for width, change in ((64, {}), (32, {}), (64, {"act": other_act}), (64, {"tell": kernels.tell_all}))
    }
    assert len(names) == 4


@pytest.mark.parametrize(("named", "beside", "kept"), [
    ("file/folder", False, False), ("file/folder", True, True), ("", False, False), ("new/folder", False, True),
])  # fmt: skip
def test_where_machine_code_can_be_kept_nowhere_it_is_compiled_anew(tmp_path, monkeypatch, named, beside, kept):
    """As a user who may write neither beside the package nor where NUMBA_CACHE_DIR says: Numba raised."""
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / named) if named else "")
    monkeypatch.setattr(os, "access", lambda *_: beside)
    assert kernels._can_cache() is kept
