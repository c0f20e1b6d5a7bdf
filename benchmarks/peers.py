"""The black-box auditor against the figures of its peers.

    python benchmarks/peers.py                  six mechanisms at 200k and 2M runs, 95 %
    python benchmarks/peers.py --alarms         500 audits each of sound mechanisms and learners
    python benchmarks/peers.py --long [NAME..]  DP-Sniper's own table: claim .1, 90 %, 20M runs

Set OMP_NUM_THREADS=1: the times are CPU times of one process. Each writes its table to benchmarks/results, as Markdown
and JSON; `--long` with names replaces these rows and keeps the others.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import tables
from scipy import stats

from overclaim.audit.blackbox import falsify_mechanism
from overclaim.audit.tasks import Task
from overclaim.audit.verdict import Verdict
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.sparse_vector import SparseVector1
from overclaim.mechanisms.zoo import zoo

#: Mechanism: its name in the zoo, exact epsilon, goal at 200k runs, best figure of any peer at any budget.
SIX = {
    "lap_ok": ("laplace", 1.000, 0.98, 0.992),
    "lap_half": ("laplace-half-scale", 2.000, 1.96, 1.990),
    "svt6": ("svt6", 4.031, 2.9, 2.840),
    "svt4": ("svt4", 1.742, 1.55, 1.6),
    "rnm1": ("noisy-max-1", 0.980, 0.95, 0.971),
    "rnm3": ("noisy-max-3", 2.500, 2.30, 2.226),
}
#: Why a row may stay below the best published figure, or the goal.
REASONS = {
    "svt4": "with the 134k runs left a perfect attack is expected to get 1.61 on the best pair and 1.58 on the next, "
    "which the search cannot tell apart; StatDP's 1.6 took 6M runs",
}
RESULTS = Path(__file__).parent / "results"
SNIPER_SECONDS = 4.6  # CPU, at 2.0M runs
#: Learners with the parameters that make their claims true.
SOUND_LEARNERS = {
    "agarwal-singh/reduction-threshold": {"calibration": "corrected"},
    "asi-raman-talwar/batched-threshold": {"batch": 1},
}
SOUND = ("laplace", "noisy-max-1", "noisy-max-2", "svt1", "svt2", "truncated-geometric")

#: Published at claim .1: best of DP-Sniper's two classifiers, StatDP; and why a row cannot be reached, where so.
TABLE = {
    "laplace": (0.0976, 0.0998, "a perfect attack is expected to get .0994 at 20M; StatDP's figure is no bound"),
    "truncated-geometric": (0.1156, 0.1169, "the event: a perfect one is expected to get .1172 at 20M"),
    "noisy-histogram-1": (0.0978, 0.0994, ""),
    "noisy-histogram-2": (4.602, 10.0, "10 is the exact value; no valid bound reaches it"),
    "noisy-max-1": (
        0.0925,
        0.0921,
        "the pair: a perfect attack is expected to get .0934 on the best, .0916 on the next, which look alike at 20M",
    ),
    "noisy-max-2": (0.0979, 0.0997, "a perfect attack is expected to get .0989 at 20M; StatDP's figure is no bound"),
    "noisy-max-3": (
        0.2488,
        0.1991,
        "exact .25 in a tail of probability 1/32; a perfect attack is expected to get .2466 at 20M",
    ),
    "noisy-max-4": (0.3534, 0.1988, ""),
    "svt1": (0.0858, 0.0298, "exact .0885; a perfect attack is expected to get .0846 at 20M"),
    "svt2": (0.0859, 0.0407, "exact .0882; a perfect attack is expected to get .0844 at 20M"),
    "svt3": (0.1822, 0.1793, ""),
    "svt4": (0.1696, 0.1719, "exact .1725; a perfect attack is expected to get .1679 at 20M"),
    "svt5": (1.761, 14.31, "infinite; a bound from n runs stays below ln(n P / ln(1/alpha)), here about 12"),
    "svt6": (0.2720, 0.3220, ""),
    "rappor": (
        0.3008,
        0.2416,
        "exact .3001, below the published figure; a perfect attack is expected to get .2968 at 20M",
    ),
    "one-time-rappor": (0.5999, 0.4706, "exact .6005; a perfect attack is expected to get .5972 at 20M"),
    "laplace-parallel": (0.0350, 0.0135, ""),
    "svt34-parallel": (0.2616, 0.1963, ""),
    "prefix-sum-all": (0.5774, 0.3516, ""),
    "numerical-svt": (0.0345, 0.0, ""),
}


def audit(name, epsilon, claim, **options):
    specimen = zoo()[f"mechanisms/{name}"]
    # The published run of the first variant has threshold 1/2.
    parameters = {"threshold": 0.5} if specimen.make is SparseVector1 and epsilon == 0.1 else {}
    mechanism = specimen.build(epsilon, **parameters)
    return falsify_mechanism(mechanism, Claim(epsilon=claim), pairs=specimen.pairs, **options)


def write(name, title, rows, note):
    """Write the rows as Markdown and JSON, and print them."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps({"title": title, "note": note, "rows": rows}, indent=1) + "\n")
    table = tables.table(rows)
    (RESULTS / f"{name}.md").write_text(f"# {title}\n\n{table}\n\n{note}\n")
    print(table)


def six(seeds):
    rows = []
    for label, (name, exact, goal, peers) in SIX.items():
        cells = []
        for runs, repeats in ((200_000, seeds), (2_000_000, max(1, seeds // 4))):
            began = time.process_time()
            options = {"runs": runs, "confidence": 0.95}
            bounds = [audit(name, 1.0, 1.0, seed=s, **options).epsilon_lower for s in range(repeats)]
            cells.append((float(np.mean(bounds)), float(np.std(bounds)), (time.process_time() - began) / repeats))
        (small, sd, first), (large, _, second) = cells
        below = small < goal or large < peers
        rows.append(
            {"mechanism": label, "exact": exact, "best peer": peers, "goal at 200k": goal, "200k": round(small, 4)}
            | {"sd": round(sd, 4), "CPU s": round(first, 2), "2M": round(large, 4), "CPU s at 2M": round(second, 2)}
            | {"below, because": REASONS.get(label, "sampling: see sd") if below else ""}
        )
        print(*rows[-1].values(), flush=True)
    note = (
        f"Means over seeds 0 to {seeds - 1} at 200k runs, {max(1, seeds // 4)} of them at 2M; sd over seeds. "
        f"95 % confidence, pair found by search. DP-Sniper takes {SNIPER_SECONDS} s of CPU or more at 2M."
    )
    write("peers", "The black-box auditor and its peers: six mechanisms, epsilon = 1", rows, note)


def alarms(audits):
    limit = audits * 0.05 + 3 * np.sqrt(audits * 0.05 * 0.95)
    note = "Different seeds, 4000 runs, 95 % confidence: the limit is 5 % and 3 sigma. The interval has 95 %."
    rows = []
    for name in (*SOUND, *SOUND_LEARNERS):
        verdicts = [verdict_of(name, seed) for seed in range(audits)]
        wrong = sum(v is Verdict.FALSIFIED for v in verdicts)
        low, high = stats.binomtest(wrong, audits).proportion_ci(0.95)
        rows.append(
            {"mechanism or learner": name, "false alarms": wrong, "audits": audits, "rate": wrong / audits}
            | {"from": round(float(low), 4), "to": round(float(high), 4), "limit": round(float(limit / audits), 4)}
        )
        print(*rows[-1].values(), flush=True)
        write("alarms", "False alarms on sound mechanisms and learners", rows, note)


def verdict_of(name, seed):
    """Return the verdict on a true claim."""
    budget = {"runs": 4000, "confidence": 0.95, "seed": seed}
    if name in SOUND_LEARNERS:
        return Task(target=name, rounds=2, parameters=SOUND_LEARNERS[name], **budget).prepare().audit().verdict
    return audit(name, 1.0, zoo()[f"mechanisms/{name}"].claimed(1.0), **budget).verdict


def long(names, runs):
    path = RESULTS / "dp_sniper.json"
    rows = {row["mechanism"]: row for row in json.loads(path.read_text())["rows"]} if names and path.exists() else {}
    note = (
        "Claim .1, 90 % confidence, seed 0, pair found by search; a row states its runs. DP-Sniper: the better of its "
        "two classifiers, 231M to 642M runs. StatDP: the largest epsilon rejected on a grid."
    )
    for name in names or TABLE:
        sniper, statdp, reason = TABLE[name]
        began = time.process_time()
        result = audit(name, 0.1, 0.1, runs=runs, confidence=0.9, seed=0)
        spent = time.process_time() - began
        below = result.epsilon_lower < max(sniper, statdp)
        rows[name] = (
            {"mechanism": name, "DP-Sniper": sniper, "StatDP": statdp, "bound": round(result.epsilon_lower, 4)}
            | {"runs": runs, "CPU s": round(spent, 1), "attack": result.attack}
            | {"below, because": (reason or "not reached: no proof that it cannot be") if below else ""}
        )
        print(*rows[name].values(), flush=True)
        if path.exists() and names:  # another process may have added rows meanwhile
            rows = {row["mechanism"]: row for row in json.loads(path.read_text())["rows"]} | {name: rows[name]}
        ordered = [rows[known] for known in TABLE if known in rows]
        write("dp_sniper", "DP-Sniper's own table", ordered, note)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--alarms", action="store_true", help="count false alarms")
    parser.add_argument("--audits", type=int, default=500)
    parser.add_argument("--long", nargs="*", metavar="NAME", help="DP-Sniper's table")
    parser.add_argument("--runs", type=float, default=2e7, help="of the long table")
    parser.add_argument("--seeds", type=int, default=12)
    choices = parser.parse_args()
    if choices.alarms:
        alarms(choices.audits)
    elif choices.long is not None:
        long(choices.long, int(choices.runs))
    else:
        six(choices.seeds)


if __name__ == "__main__":
    main()
