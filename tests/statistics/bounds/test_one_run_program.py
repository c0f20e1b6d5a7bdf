"""The recursion of one run against linear programs: the best guesses that a claim allows (docs/one-run.md).

By symmetry of canaries and coins the best mechanism is a law of the number of right guesses: each set of guesses, and
each pattern of as many right ones, is equally likely. An (epsilon, delta) claim is then linear in that law.
"""

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from overclaim import ApproxDP, Profile
from overclaim.audit.statistics.bounds import one_run
from overclaim.audit.statistics.bounds.one_run import least_allowed, refuted_in_one_run

#: Guesses and canaries.
GAMES = [(3, 3), (4, 4), (3, 6), (6, 6), (8, 8), (5, 20), (12, 12)]
#: Claims, as points (epsilon, delta).
CLAIMS = [[(1.0, 0.0)], [(1.0, 0.01)], [(0.3, 0.1)], [(2.0, 1e-4)], [(0.5, 0.2), (1.5, 0.02)], [(0.0, 0.3)]]


def program(guesses, canaries, points):
    """Return the inequalities of a claim, over the law of right guesses and the excess of each pattern, and bounds."""
    laws, rows, limits = guesses + 1, [], []
    size = laws + 2 * guesses * len(points)
    for point, (epsilon, delta) in enumerate(points):
        total = np.zeros(size)
        for step in range(guesses):  # a canary's guess is right beside `step` other right ones, or wrong
            patterns = math.comb(guesses - 1, step)
            for side, (here, other) in enumerate(((step + 1, step), (step, step + 1))):
                excess = laws + 2 * (guesses * point + step) + side
                row = np.zeros(size)
                row[here] = patterns / math.comb(guesses, here)
                row[other] = -math.exp(epsilon) * patterns / math.comb(guesses, other)
                row[excess] = -1.0
                total[excess] = guesses / canaries
                rows.append(row)
                limits.append(0.0)
        rows.append(total)
        limits.append(delta)
    return np.array(rows), np.array(limits)


def largest_tail(correct, guesses, canaries, points):
    """Return the largest probability of at least so many right guesses that a claim allows, and its law."""
    rows, limits = program(guesses, canaries, points)
    worth, whole = np.zeros(rows.shape[1]), np.zeros((1, rows.shape[1]))
    worth[correct : guesses + 1], whole[0, : guesses + 1] = -1.0, 1.0
    best = linprog(worth, A_ub=rows, b_ub=limits, A_eq=whole, b_eq=[1.0], method="highs")
    assert best.status == 0
    return -best.fun, best.x[: guesses + 1]


def claim_of(points):
    return ApproxDP(*points[0]) if len(points) == 1 else Profile(points)


def unsound(refuted):
    """Yield where a test refutes a claim at an alpha that a training which keeps the claim exceeds."""
    for guesses, canaries in GAMES:
        for points in CLAIMS:
            for correct in range(1, guesses + 1):
                tail, _ = largest_tail(correct, guesses, canaries, points)
                alpha = tail * (1 - 1e-6)
                if 1e-9 < alpha < 1 and refuted(claim_of(points), correct, guesses, canaries, alpha=alpha):
                    yield guesses, canaries, points, correct, tail


def test_pure_claims_allow_the_binomial_tail():
    for guesses in (3, 6):
        chance = 1 / (1 + math.exp(-1.0))
        tail, _ = largest_tail(guesses, guesses, guesses, [(1.0, 0.0)])
        assert tail == pytest.approx(chance**guesses)


@pytest.mark.slow(reason="several hundred linear programs")
def test_no_claim_is_refuted_that_a_best_training_keeps():
    assert not list(unsound(refuted_in_one_run))


@pytest.mark.parametrize("points", CLAIMS)
def test_each_step_of_the_proof_holds_for_the_best_training(points):
    """E[right; V >= v] / m <= g(E[wrong; V >= v - 1] / m), at the law that the program finds."""
    guesses, canaries = 5, 8
    for correct in range(1, guesses + 1):
        _, law = largest_tail(correct, guesses, canaries, points)
        count = np.arange(guesses + 1)
        for v in range(1, guesses + 1):
            right = (count * law)[v:].sum() / canaries
            wrong = ((guesses - count) * law)[v - 1 :].sum() / canaries
            assert least_allowed(claim_of(points), np.array([right]))[0] <= wrong + 1e-7


def planted(monkeypatch, fault):
    real = one_run._contradiction

    def wrong(correct, guesses, canaries, alpha, inverse):
        return real(*fault(correct, guesses, canaries, alpha), inverse)

    monkeypatch.setattr(one_run, "_contradiction", wrong)


@pytest.mark.slow(reason="several hundred linear programs")
@pytest.mark.parametrize(
    "fault",
    [
        lambda v, r, m, alpha: (v, r, m, 1.5 * alpha),
        lambda v, r, m, alpha: (v, r, m + 1, alpha),
        lambda v, r, m, alpha: (v, r - (v < r), m, alpha),
    ],
    ids=["alpha", "canaries", "guesses"],
)
def test_a_wrong_recursion_is_caught(monkeypatch, fault):
    planted(monkeypatch, fault)
    assert next(unsound(refuted_in_one_run), None)


def test_the_recursion_is_nearly_sharp_where_all_canaries_are_guessed():
    """How much larger alpha must be than the largest tail before a claim is refuted."""
    ratios = []
    for points in ([(1.0, 0.0)], [(1.0, 0.01)]):
        tail, _ = largest_tail(8, 8, 8, points)
        factors = np.geomspace(1.0001, 4.0, 60)
        refuted = [refuted_in_one_run(claim_of(points), 8, 8, 8, alpha=min(0.999, tail * f)) for f in factors]
        ratios.append(factors[int(np.argmax(refuted))])
        assert any(refuted)
    assert max(ratios) < 3.0
