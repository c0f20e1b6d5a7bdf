"""Binomial tails and quantiles: those of SciPy's distribution, and the definition where SciPy leaves it."""

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.statistics.bounds import binomial
from overclaim.audit.statistics.bounds.binomial import survival, upper_quantile

COUNTS = [0, 1, 2, 5, 100, 10_000, 10**6, 2**30]
CHANCES = [1e-6, 0.01, 0.3, 0.5, 0.9, 0.999, 1 - 1e-12, 1.0]


@pytest.mark.parametrize("n", COUNTS)
@pytest.mark.parametrize("p", CHANCES)
def test_they_are_scipys(n, p):
    counts, tails = np.arange(-1, min(n, 50) + 2), np.array([0.999, 0.7, 0.5, 0.1, 0.01, 1e-5, 1e-9])
    assert survival(counts, n, p) == pytest.approx(stats.binom.sf(counts, n, p), rel=1e-12, abs=1e-300)
    quantiles = upper_quantile(tails, n, p)
    assert (survival(quantiles, n, p) <= tails).all()
    assert ((quantiles == 0) | (survival(quantiles - 1, n, p) > tails)).all()
    assert np.abs(quantiles - stats.binom.isf(tails, n, p)).max() <= (n > 10**6)


def test_certain_and_impossible_counts():
    assert upper_quantile(0.1, [3, 3, 0], [0.0, 1.0, 0.5]).tolist() == [0, 3, 0]


@pytest.mark.parametrize("off", [-1000, -1, 1, 1000])
@pytest.mark.parametrize("n", [1000, 10_000])  # a small variance and a large one
def test_a_bad_first_guess_does_not_matter(n, off, monkeypatch):
    """Older libraries have eight digits of it, and an expansion ends somewhere."""
    tails = np.array([0.99, 0.5, 0.01, 1e-18, 1e-300])
    wanted = upper_quantile(tails, n, 0.3)
    exact, expanded, guesses = binomial.special.bdtrik, binomial._expanded, []

    class Rough:
        """SciPy's functions, one of them inexact."""

        def __getattr__(self, name):
            return getattr(real, name)

        @staticmethod
        def bdtrik(*given):
            guesses.append(given[0].size)
            return exact(*given) + off

    real = binomial.special
    monkeypatch.setattr(binomial, "special", Rough())
    monkeypatch.setattr(binomial, "_expanded", lambda *given: expanded(*given) + off)
    assert upper_quantile(tails, n, 0.3).tolist() == wanted.tolist()
    assert (survival(wanted, n, 0.3) <= tails).all()
    assert sum(guesses) == (tails.size if n == 1000 else 0)
