"""Anytime-valid audits: exact false alarms, mean runs to falsify, and the peer's mechanisms beside ours.

python benchmarks/validity/sequential.py [--quick]

Without --quick the tables go to benchmarks/results, as Markdown and JSON.
"""

import json
import math
import sys

import numpy as np
from scipy import stats
from scipy.special import expit

from overclaim.audit.certification.anytime import FIRST
from overclaim.audit.statistics.events import count
from overclaim.audit.statistics.sequential import Bets, choose_growing_event, first_crossing
from overclaim.benchmarks import tables
from overclaim.tests.support.crossing import crossing_law

ALPHA = 0.05
#: Mean runs of sequential f-DP auditing (arXiv 2602.06518), as measured by us: mechanism, claim, its runs.
PEER = {
    ("Laplace(1) sum 0 vs 1", 0.5): 220,
    ("Laplace(1) sum 0 vs 1", 0.8): 1700,
    ("NonDPGaussian1", 0.01): 61,
    ("NonDPGaussian1", 0.1): 72,
    ("NonDPLaplace1", 0.01): 81,
    ("NonDPLaplace1", 0.1): 115,
}


def false_alarms(looks):
    """The exact probability that a claim that is just true is ever falsified."""
    alarms = {}
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        pi = 1 / (1 + math.exp(-epsilon))
        alarms[f"epsilon {epsilon:g}"] = crossing_law(Bets(epsilon, 0.0), pi, looks, ALPHA).sum()
    for delta in (1e-5, 1e-2):
        pi = (math.e + delta) / (1 + math.e)
        law = crossing_law(Bets(1.0, delta), pi, looks // 10, ALPHA)
        alarms[f"epsilon 1 delta {delta:g}"] = law.sum()
    return alarms


def randomised_response(epsilon):
    """Exact mean runs against claim 1: every run is a guess."""
    law = crossing_law(Bets(1.0, 0.0), 1 / (1 + math.exp(-epsilon)), 20_000, ALPHA)
    return float(law @ np.arange(1, law.size + 1))


def laplace(epsilon):
    """Exact mean runs against claim 1 on Laplace(1/epsilon) of 0 or 1, the event chosen from the laws."""
    edges = np.linspace(0, 1, 65)
    cdf = [stats.laplace(loc, 1 / epsilon).cdf(edges) for loc in (0, 1)]
    p, q = (np.diff(np.concatenate([[0.0], law, [1.0]])) for law in cdf)
    scores = np.round(np.log(p) - np.log(q), 9)
    event = choose_growing_event(scores, p / 2, q / 2, epsilon=1.0, delta=0.0, seen=None)
    upper, lower = scores >= event.upper, scores <= event.lower
    right = (p[upper].sum() + q[lower].sum()) / 2
    wrong = (q[upper].sum() + p[lower].sum()) / 2
    law = crossing_law(Bets(1.0, 0.0), right / (right + wrong), 20_000, ALPHA)
    return float(law @ np.arange(1, law.size + 1)) / (right + wrong)


def mechanisms(claim):
    """The peer's mechanisms: a sampler and the log density of each world."""
    scale, wide = 2 / claim, 1 / claim  # noise of n = 1 and of n = 2 records
    return {
        "Laplace(1) sum 0 vs 1": (stats.laplace(0, 1), stats.laplace(1, 1)),
        "NonDPGaussian1": (stats.norm(0, scale), stats.norm(0.5, wide)),
        "NonDPLaplace1": (stats.laplace(0, scale), stats.laplace(0.5, wide)),
    }


def from_laws(left, right, claim):
    """The likelihood ratio, and its event that makes a gambler rich fastest, over equally likely outcomes."""

    def score(x):
        return np.round(left.logpdf(x) - right.logpdf(x), 9)

    outcomes = np.concatenate([law.ppf((np.arange(4000) + 0.5) / 4000) for law in (left, right)])
    scores = score(outcomes)
    p, q = expit(scores) / outcomes.size, expit(-scores) / outcomes.size
    return score, choose_growing_event(scores, p, q, epsilon=claim, delta=0.0, seen=None)


def runs_to_falsify(left, right, claim, rng, *, known):
    """Total runs until the claim is falsified.

    With `known` laws the score is the likelihood ratio and its event is chosen from the laws, before any run, as an
    audit does; without, the output and its size are tried, and the event is learned again at every doubling.
    """
    bets, past_x, past_left = Bets(claim, 0.0), np.zeros(0), np.zeros(0, dtype=bool)
    c = w = n = 0
    score, event = from_laws(left, right, claim) if known else (None, None)
    while n < 10**6:
        size = max(FIRST, n) if n else FIRST
        labels = rng.random(size) < 0.5
        x = np.where(labels, left.rvs(size, random_state=rng), right.rvs(size, random_state=rng))
        if event is not None:
            s = score(x)
            up, low = s >= event.upper, s <= event.lower
            hits, misses = (
                c + np.cumsum((up & labels) | (low & ~labels)),
                w + np.cumsum((up & ~labels) | (low & labels)),
            )
            end = first_crossing(bets, hits, misses, np.arange(size), ALPHA)
            if end is not None:
                return n + end + 1
            c, w = hits[-1], misses[-1]
        n += size
        if known:
            continue
        past_x, past_left = np.concatenate([past_x, x]), np.concatenate([past_left, labels])
        tries = [lambda v: v, lambda v: -v, np.abs, lambda v: -np.abs(v)]
        best = None
        for one in tries:
            s = one(past_x)
            chosen = choose_growing_event(s, past_left / n, ~past_left / n, epsilon=claim, delta=0.0, seen=n)
            counts = count(chosen, s, past_left)
            gain = counts.right - math.exp(claim) * (counts.guesses - counts.right)
            if best is None or gain > best[0]:
                best = gain, one, chosen
        _, score, event = best
    return n


def main(quick=False):
    looks, repeats = (5000, 20) if quick else (50_000, 200)
    report = {"alpha": ALPHA, "looks": looks, "repeats": repeats, "false_alarms": false_alarms(looks)}
    report["mean_runs_against_claim_1"] = {
        f"epsilon {e:g}": {"randomised response": randomised_response(e), "Laplace": laplace(e)} for e in (4, 2, 1.5)
    }
    report["peer"] = []
    for (name, claim), theirs in PEER.items():
        rng = np.random.default_rng(0)
        left, right = mechanisms(claim)[name]
        row = {"mechanism": name, "claim": claim, "peer": theirs}
        for known in (True, False):
            runs = [runs_to_falsify(left, right, claim, rng, known=known) for _ in range(repeats)]
            row["ours, law known" if known else "ours, black box"] = float(np.mean(runs))
        report["peer"].append(row)
    return report


def write(report):
    """Write the tables to benchmarks/results, as Markdown and JSON."""
    alarms = [{"claim that is just true": name, "probability": p} for name, p in report["false_alarms"].items()]
    means = [{"true": name, **runs} for name, runs in report["mean_runs_against_claim_1"].items()]
    text = f"""# Audits that stop early

{tables.dated()}

Exact probability that a true claim is ever falsified, {report["looks"]:,} looks (a tenth of that with delta),
alpha = {ALPHA}:

{tables.table(alarms)}

Exact mean runs until claim 1 is falsified:

{tables.table(means)}

Beside sequential f-DP auditing (arXiv 2602.06518, measured by us), means of {report["repeats"]} audits; every run of
the mechanism counts. "Law known": the event is chosen from the laws; "black box": it is learned on the way.

{tables.table(report["peer"])}
"""
    (tables.RESULTS / "sequential.json").write_text(json.dumps(report, indent=1) + "\n")
    (tables.RESULTS / "sequential.md").write_text(text)


if __name__ == "__main__":
    results = main("--quick" in sys.argv)
    print(json.dumps(results, indent=1))
    if "--quick" not in sys.argv:
        write(results)
