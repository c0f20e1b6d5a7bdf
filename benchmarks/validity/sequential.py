"""Anytime-valid audits: exact false alarms, mean runs to falsify, and the peer's mechanisms beside ours.

python benchmarks/validity/sequential.py [--quick | --learners]

Without --quick the tables go to benchmarks/results, as Markdown and JSON; with --learners theirs is measured alone,
and the others stay as they were.
"""

import json
import math
import sys

import numpy as np
from scipy import stats
from scipy.special import expit, rel_entr

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.statistics.graded_bets import GRADES, Stakes, by_grade
from overclaim.audit.statistics.odds.models import noise_odds
from overclaim.audit.statistics.sequential import AnytimeBets, choose_growing_event
from overclaim.benchmarks import tables
from overclaim.benchmarks.validity.early_learners import learner_alarms
from overclaim.tests.support.crossing import crossing_law

ALPHA = 0.05
#: Whole audits of each row.
AUDITS = 64
#: Whole audits of each claim that is just true, their runs, and the claims.
TIGHT_AUDITS, TIGHT_RUNS, TIGHT = 100, 300, (0.2, 0.5, 1.0, 2.0)
#: Whole audits of each true claim about a learner.
LEARNER_AUDITS = 25
#: Grades of the stakes whose false alarms are computed: none, the largest, smaller ones.
STAKED = (0, 1, 5, 9)
#: Mean runs of sequential f-DP auditing (arXiv 2602.06518), as measured by us: mechanism, claim, its runs.
PEER = {
    ("Laplace(1) sum 0 vs 1", 0.5): 220,
    ("Laplace(1) sum 0 vs 1", 0.8): 1700,
    ("NonDPGaussian1", 0.01): 61,
    ("NonDPGaussian1", 0.1): 72,
    ("NonDPLaplace1", 0.01): 81,
    ("NonDPLaplace1", 0.1): 115,
}
#: The models of `noise_odds` that are true.
FAMILIES = {"Laplace(1) sum 0 vs 1": 0, "NonDPGaussian1": 4, "NonDPLaplace1": 1}


def false_alarms(looks):
    """The exact probability that a claim that is just true is ever falsified."""
    alarms = {}
    for epsilon in (0.1, 0.5, 1.0, 2.0, 4.0):
        pi = 1 / (1 + math.exp(-epsilon))
        laws = [crossing_law(AnytimeBets(epsilon, 0.0), pi, looks, ALPHA, grade) for grade in STAKED]
        alarms[f"epsilon {epsilon:g}"] = [float(law.sum()) for law in laws]
    for delta in (1e-5, 1e-2):
        pi = (math.e + delta) / (1 + math.e)
        laws = [crossing_law(AnytimeBets(1.0, delta), pi, looks // 10, ALPHA, grade) for grade in STAKED]
        alarms[f"epsilon 1 delta {delta:g}"] = [float(law.sum()) for law in laws]
    return alarms


def randomised_response(epsilon):
    """Exact mean runs against claim 1: every run is a guess of one grade."""
    grade = abs(int(Stakes.of_log_odds(1.0).of(epsilon)))
    law = crossing_law(AnytimeBets(1.0, 0.0), 1 / (1 + math.exp(-epsilon)), 20_000, ALPHA, grade)
    return float(law @ np.arange(1, law.size + 1))


def laplace(epsilon, repeats):
    """Mean runs against claim 1 on Laplace(1/epsilon) of 0 or 1, the stakes fixed by the laws."""
    rng = np.random.default_rng(1)
    laws = stats.laplace(0, 1 / epsilon), stats.laplace(1, 1 / epsilon)
    return float(np.mean([runs_with_laws(*laws, 1.0, rng, block=64) for _ in range(repeats)]))


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


def runs_with_laws(left, right, claim, rng, most=10**6, block=256):
    """Runs until the claim is falsified by the likelihood ratio, whose stakes and event are fixed before any run."""
    bets, (score, event) = AnytimeBets(claim, 0.0), from_laws(left, right, claim)
    stakes, n = Stakes.of_log_odds(claim), 0
    total = [*np.zeros((2, GRADES), dtype=np.int64), *np.zeros(2, dtype=np.int64)]
    while n < most:
        labels = rng.random(block) < 0.5
        s = score(np.where(labels, left.rvs(block, random_state=rng), right.rvs(block, random_state=rng)))
        up, low = s >= event.upper, s <= event.lower
        runs = [*by_grade(stakes.of(s), labels), (up & labels) | (low & ~labels), (up & ~labels) | (low & labels)]
        sums = [before + np.cumsum(one, axis=0) for before, one in zip(total, runs, strict=True)]
        wealth = bets.log_wealth((sums[0], sums[1]), (sums[2], sums[3]), n + 1 + np.arange(block), claim)
        if (wealth >= -math.log(ALPHA)).any():
            return n + int(np.argmax(wealth >= -math.log(ALPHA))) + 1
        total, n = [one[-1] for one in sums], n + block
    return n


def runs_with_family(left, right, claim, family, rng, most=10**6):
    """Runs until the claim is falsified by who knows the family of the noise, and what of it the worlds differ in.

    Locations and scales are learned from the runs so far, of which none is spent on anything else: what learning costs
    one who knows so much. It is no lower bound, for priors that are not flat may need fewer runs.
    """
    bets, stakes = AnytimeBets(claim, 0.0), Stakes.of_log_odds(claim)
    x, labels, tally = np.zeros(0), np.zeros(0, dtype=bool), np.zeros((2, GRADES), dtype=np.int64)
    while x.size < most:
        size = max(1, x.size // 20)
        world = rng.random(size) < 0.5
        fresh = np.where(world, left.rvs(size, random_state=rng), right.rvs(size, random_state=rng))
        odds = noise_odds(x, labels, fresh)[family] if x.size else np.zeros(size)
        sums = [
            before + np.cumsum(one, axis=0)
            for before, one in zip(tally, by_grade(stakes.of(odds), world), strict=True)
        ]
        wealth = bets.log_wealth(sums, np.zeros((2, size)), x.size + 1 + np.arange(size), claim)
        if (wealth >= -math.log(ALPHA)).any():
            return x.size + int(np.argmax(wealth >= -math.log(ALPHA))) + 1
        tally = np.stack([one[-1] for one in sums])
        x, labels = np.append(x, fresh), np.append(labels, world)
    return x.size


def as_black_box(left, right, claim, seed, runs=10**6):
    """A whole audit with `--stop early`, which knows the outputs alone."""

    def mechanism(data, draws, runs):
        return (left if data[0] else right).ppf(draws.uniform(runs))

    mechanism.batched = True
    asked = {"left": [1], "right": [0], "runs": runs, "seed": seed, "confidence": 1 - ALPHA, "stop": "early"}
    return falsify_mechanism(mechanism, Claim(epsilon=claim), **asked)


def black_box_alarms(audits):
    """Whole audits of claims that are just true, by mechanism and claim, and how many falsified them."""
    alarms = []
    for epsilon in TIGHT:
        tight = {
            "Laplace noise": (stats.laplace(1, 1 / epsilon), stats.laplace(0, 1 / epsilon)),
            "randomised response": (stats.bernoulli(expit(epsilon)), stats.bernoulli(expit(-epsilon))),
        }
        for name, laws in tight.items():
            verdicts = [as_black_box(*laws, epsilon, seed, TIGHT_RUNS).verdict for seed in range(audits)]
            falsified = sum(verdict is Verdict.FALSIFIED for verdict in verdicts)
            alarms.append({"mechanism": name, "claim": epsilon, "audits": audits, "falsified": falsified})
    return alarms


def main(quick=False):
    looks, repeats = (1000, 20) if quick else (5000, 200)
    report = {"dated": tables.dated(), "alpha": ALPHA, "looks": looks, "repeats": repeats}
    report["false_alarms"] = false_alarms(looks)
    report["mean_runs_against_claim_1"] = {
        f"epsilon {e:g}": {"randomised response": randomised_response(e), "Laplace": laplace(e, repeats)}
        for e in (4, 2, 1.5)
    }
    report["peer"] = []
    for (name, claim), theirs in PEER.items():
        rng = np.random.default_rng(0)
        left, right = mechanisms(claim)[name]
        row = {"mechanism": name, "claim": claim, "peer": theirs}
        found = {
            "law known": [runs_with_laws(left, right, claim, rng) for _ in range(repeats)],
            "family known": [runs_with_family(left, right, claim, FAMILIES[name], rng) for _ in range(repeats)],
            "black box": [as_black_box(left, right, claim, seed).runs for seed in range(min(repeats, AUDITS))],
        }
        for how, runs in found.items():
            row |= {how: round(float(np.mean(runs)), 1), f"sd, {how}": round(float(np.std(runs)), 1)}
        report["peer"].append(row | {"median, black box": float(np.median(found["black box"]))})
    report["black_box_alarms"] = black_box_alarms(5 if quick else TIGHT_AUDITS)
    return report | learners(1 if quick else LEARNER_AUDITS)


def learners(audits):
    """The false alarms of audits of learners, and the day."""
    return {"learner_alarms": learner_alarms(audits, TIGHT_RUNS, ALPHA), "learners_dated": tables.dated()}


def cost_of_odds(n):
    """Nats by which whoever learns an odds from n guesses falls behind who knows it: the mean, at some odds, at least.

    The information of n guesses on odds that are drawn at random, here by 200 equally likely ones (Jeffreys's prior):
    no method loses less in the mean over these odds, and so none does at all of them.
    """
    chance = np.sin(np.pi / 2 * (np.arange(200) + 0.5) / 200) ** 2
    law = stats.binom.pmf(np.arange(n + 1), n, chance[:, None])
    return float(np.mean(np.sum(rel_entr(law, law.mean(axis=0)), axis=1)))


def learning(rows):
    """What learning costs in each row, in nats: the runs beyond those with the law known, at these runs' rate."""
    needed, costs = -math.log(ALPHA), []
    for row in rows:
        known = row["law known"]
        cost = {who: needed * (row[who] / known - 1) for who in ("family known", "black box")}
        what = {"mechanism": row["mechanism"], "claim": row["claim"]}
        costs.append({**what, **cost, "one odds": cost_of_odds(round(known))})
    return costs


def falsified_of(rows):
    """How many audits of a table of alarms falsified, of how many."""
    return tuple(sum(row[what] for row in rows) for what in ("falsified", "audits"))


def alarms_of(report):
    """Return a row for each claim that is just true: the exact false alarms, by the grade of the stakes."""
    names = [f"grade {grade}" if grade else "no stakes" for grade in STAKED]
    return [
        {"claim that is just true": claim, **dict(zip(names, row, strict=True))}
        for claim, row in report["false_alarms"].items()
    ]


def write(report):
    """Write the tables to benchmarks/results, as Markdown and JSON."""
    falsified, audits = falsified_of(report["black_box_alarms"])
    of_learners, audits_of_learners = falsified_of(report["learner_alarms"])
    means = [{"true": name, **runs} for name, runs in report["mean_runs_against_claim_1"].items()]
    text = f"""# Audits that stop early

{report["dated"]}

Exact probability that a true claim is ever falsified, {report["looks"]:,} looks (a tenth of that with delta), every
run a guess with stakes of one grade, alpha = {ALPHA}:

{tables.table(alarms_of(report))}

Mean runs until claim 1 is falsified, exact for randomised response, of {report["repeats"]} simulated audits for
Laplace noise:

{tables.table(means)}

Beside sequential f-DP auditing (arXiv 2602.06518, measured by us), means of {report["repeats"]} audits; every run of
the mechanism counts. "Law known": the stakes are fixed by the laws before any run. "Family known": the family of the
noise is known, and whether the worlds differ in its location or in its scale; how much, is learned from the runs, from
flat priors: what learning costs one who knows so much, no lower bound. "Black box": {AUDITS} whole audits, which know
the outputs alone.

{tables.table(report["peer"])}

What learning costs: a claim falls at {-math.log(ALPHA):.2f} nats of evidence, so 1.3 times the runs of who knows the
law would leave {-0.3 * math.log(ALPHA):.2f} nats for it. In this table "family known" and "black box" are the nats
that it cost, at the rate of evidence of who knows the law. "One odds" is what it costs not to know a single odds where
the event is known, over as many guesses as who knows the law needs runs: whatever the method, at some odds it loses at
least so many in the mean. So none is within 1.3 times whatever the law is; priors on simple events, or on odds that
happen to be right, can save nats where they fit.

{tables.table(learning(report["peer"]))}

Claims that are just true, whole black-box audits of at most {TIGHT_RUNS} runs, of which a share of {ALPHA} may be
falsified: {falsified} of {audits} were.

{tables.table(report["black_box_alarms"])}

Claims about learners that are true, audits of as many runs: {of_learners} of {audits_of_learners} were falsified.
{report["learners_dated"]}
Each claim is the exact epsilon of what is seen on its pair, or of what is released, and at most .0011 more; for
batched EXP3 over eight arms and the FTPL conversion the proofs' 1.

{tables.table(report["learner_alarms"])}
"""
    (tables.RESULTS / "sequential.json").write_text(json.dumps(report, indent=1) + "\n")
    tables.write_page("sequential", text)


if __name__ == "__main__":
    if "--learners" in sys.argv:
        results = json.loads((tables.RESULTS / "sequential.json").read_text()) | learners(LEARNER_AUDITS)
    else:
        results = main("--quick" in sys.argv)
    print(json.dumps(results, indent=1))
    if "--quick" not in sys.argv:
        write(results)
