"""OpenDP audited: a Laplace and a Gaussian measurement, and a count of sensitivity 2 that was called 1.

python examples/opendp_counts.py
"""

import opendp.prelude as dp
from adapters import opendp

from overclaim import Claim, falsify_mechanism

dp.enable_features("contrib")
SPACE = dp.atom_domain(T=float, nan=False), dp.absolute_distance(T=float)
LAPLACE = dp.m.make_laplace(*SPACE, scale=1.0)
GAUSSIAN = dp.m.make_gaussian(*SPACE, scale=3.11)  # sqrt(2 ln(1.25 / 0.01)): (1, 0.01)-DP for sensitivity 1

laplace, gaussian = opendp(LAPLACE), opendp(GAUSSIAN)


def both_ends(data, rng):
    """The bug: each record moves the count by 2, and the noise is for 1."""
    return laplace(2.0 * data, rng)


AUDITS = [
    ("make_laplace(scale=1)", laplace, Claim(epsilon=LAPLACE.map(d_in=1.0))),
    ("make_gaussian(scale=3.11)", gaussian, Claim(epsilon=1.0, delta=0.01)),
    ("a count of sensitivity 2", both_ends, Claim(epsilon=1.0)),
]


def main(runs=20_000):
    """Audit all; return the results by name."""
    return {name: falsify_mechanism(f, claim, left=1.0, right=0.0, runs=runs) for name, f, claim in AUDITS}


if __name__ == "__main__":
    for name, result in main().items():
        print(f"{name}: {result}")
