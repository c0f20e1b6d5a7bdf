"""diffprivlib audited: Laplace, Geometric and analytic Gaussian, and a mean whose range was guessed too small.

python examples/diffprivlib_mechanisms.py
"""

from adapters import diffprivlib

from overclaim import Claim, falsify_mechanism

laplace = diffprivlib(lambda m, seed: m.Laplace(epsilon=1.0, sensitivity=1.0, random_state=seed))
geometric = diffprivlib(lambda m, seed: m.Geometric(epsilon=1.0, sensitivity=1, random_state=seed))
gaussian = diffprivlib(lambda m, seed: m.GaussianAnalytic(epsilon=1.0, delta=0.01, sensitivity=1.0, random_state=seed))


def guessed_range(data, rng):
    """The bug: values reach 2, but the sensitivity was set for 1."""
    return laplace(2 * data, rng)


AUDITS = [
    ("Laplace", laplace, Claim(epsilon=1.0), (1.0, 0.0)),
    ("Geometric", geometric, Claim(epsilon=1.0), (1, 0)),
    ("GaussianAnalytic", gaussian, Claim(epsilon=1.0, delta=0.01), (1.0, 0.0)),
    ("a mean with a guessed range", guessed_range, Claim(epsilon=1.0), (1.0, 0.0)),
]


def main(runs=20_000):
    """Audit all; return the results by name."""
    return {name: falsify_mechanism(f, claim, left=a, right=b, runs=runs) for name, f, claim, (a, b) in AUDITS}


if __name__ == "__main__":
    for name, result in main().items():
        print(f"{name}: {result}")
