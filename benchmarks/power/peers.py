"""The black-box auditor against the figures of its peers.

    python benchmarks/power/peers.py [NAME..]         six mechanisms at 200k and 2M runs, 95 %, 24 seeds
    python benchmarks/power/peers.py --alarms [NAME..]  500 audits each of sound mechanisms and learners
    python benchmarks/power/peers.py --long [NAME..]  DP-Sniper's own table: claim .1, 90 %, 20M runs
    python benchmarks/power/peers.py --attainable [NAME..]  its attainable bounds again, without an audit

Set OMP_NUM_THREADS=1: the times are CPU times of one process. Each writes its table to benchmarks/results, as Markdown
and JSON; names choose rows, and keep the others as they were.
"""

import argparse
import json
import time

import numpy as np
from scipy import stats

from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.falsify import falsify_mechanism
from overclaim.audit.plans.tasks import Task
from overclaim.audit.statistics.events import Counts, bound_of
from overclaim.audit.verdicts.verdict import Verdict
from overclaim.benchmarks import tables
from overclaim.benchmarks.power.attainable import attainable
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.one_shot.sparse_vector import SparseVector1
from overclaim.mechanisms.one_shot.zoo import zoo

#: Mechanism: its name in the zoo, exact epsilon, goal at 200k runs, best figure of any peer at any budget.
SIX = {
    "lap_ok": ("laplace", 1.000, 0.98, 0.992),
    "lap_half": ("laplace-half-scale", 2.000, 1.96, 1.990),
    "svt6": ("svt6", 4.031, 2.9, 2.840),
    "svt4": ("svt4", 1.742, 1.55, 1.6),
    "rnm1": ("noisy-max-1", 0.980, 0.95, 0.971),
    "rnm3": ("noisy-max-3", 2.500, 2.30, 2.226),
}
#: The first seed of what is reported. The auditor was tuned on seeds 0 to 11, 100 to 123, 400 to 447, 600 to 647 and
#: 700 to 707, and looks at 200 to 223 and 300 to 323 led to more choices (the doubt of raw scores, and of large
#: tables), at 500 to 503 to those of the pilot of shared draws, at 700 to 723 to those of likely curves and of the
#: last two pairs' runs, at 1200 to 1223 to that of what is unseen of two sides. What is reported from such seeds says
#: so.
FRESH = 1500
#: DP-Sniper's table: its first seed, after looks at 800 to 804, 820, 910, 911, 931, 934, 960 to 967 and 3000 to 3429
#: that led to choices; and what its rows were measured with, for none is measured again when the code changes.
FRESH_LONG, CODE = 3500, "races by smoothed rates too"
SNIPER_SECONDS = 4.6  # CPU, at 2.0M runs
#: Learners with the parameters that make their claims true.
SOUND_LEARNERS = {
    "agarwal-singh/reduction-threshold": {"calibration": "corrected"},
    "asi-raman-talwar/batched-threshold": {"batch": 1},
}
SOUND = ("laplace", "noisy-max-1", "noisy-max-2", "svt1", "svt2", "truncated-geometric")

#: Published at claim .1: best of DP-Sniper's two classifiers, StatDP.
TABLE = {
    "laplace": (0.0976, 0.0998),
    "truncated-geometric": (0.1156, 0.1169),
    "noisy-histogram-1": (0.0978, 0.0994),
    "noisy-histogram-2": (4.602, 10.0),
    "noisy-max-1": (0.0925, 0.0921),
    "noisy-max-2": (0.0979, 0.0997),
    "noisy-max-3": (0.2488, 0.1991),
    "noisy-max-4": (0.3534, 0.1988),
    "svt1": (0.0858, 0.0298),
    "svt2": (0.0859, 0.0407),
    "svt3": (0.1822, 0.1793),
    "svt4": (0.1696, 0.1719),
    "svt5": (1.761, 14.31),
    "svt6": (0.2720, 0.3220),
    "rappor": (0.3008, 0.2416),
    "one-time-rappor": (0.5999, 0.4706),
    "laplace-parallel": (0.0350, 0.0135),
    "svt34-parallel": (0.2616, 0.1963),
    "prefix-sum-all": (0.5774, 0.3516),
    "numerical-svt": (0.0345, 0.0),
}
#: What else is to say about a row.
NOTES = {"svt5": "epsilon is infinite; ", "noisy-histogram-2": "epsilon is 10; "}
#: Below DP-Sniper's table.
OF_LONG = (
    "Claim .1, 90 % confidence, pair found by search. Bound: the mean of the bounds, one for each seed from the first "
    "on, which no choice was made on, 24 of them in the five rows that were below .95 with the first eight; sd: their "
    "standard deviation. Chance: the part of it that is the chance of "
    "certification, from blocks of the certified runs drawn again, the mean over seeds; where hardly a guess is wrong "
    "it says too little. Share: of the bound in what is attainable. "
    "DP-Sniper: the better of its two classifiers, 231M to 642M runs. StatDP: the largest epsilon rejected on a grid, "
    "no bound. Attainable: what a perfect attack that knows the best pair and event is expected to certify with all "
    "of the runs, by the same interval, from the mechanism's law (benchmarks/power/laws.py). A bound above it is "
    "chance. The choice of noisy-max-4's event took 4.4M of the 20M runs: with the others a perfect attack is "
    "expected to get 2.455. What is attainable was computed for all rows on 2026-11-24. What svt3 lacks is mostly "
    "the pair: where all answers move one way .33 is attainable, by an event of one run in 17,000, and .26 where half "
    "of them move either way, by one of 2,000; 9 of 18 other seeds (4200 to 4207, 4300 to 4309) take such a pair. "
    "More heats of a race, tried on six of them, chose the same pairs and cost a fifth of the runs."
)


def audit(name, epsilon, claim, **options):
    return falsify_mechanism(build(name, epsilon), Claim(epsilon=claim), pairs=pairs(name), **options)


def build(name, epsilon):
    specimen = zoo()[f"mechanisms/{name}"]
    # The published run of the first variant has threshold 1/2.
    parameters = {"threshold": 0.5} if specimen.make is SparseVector1 and epsilon == 0.1 else {}
    return specimen.build(epsilon, **parameters)


def pairs(name):
    return zoo()[f"mechanisms/{name}"].pairs


def write(name, title, rows, note):
    """Write the rows as Markdown and JSON, and print them."""
    tables.RESULTS.mkdir(exist_ok=True)
    text = json.dumps({"title": title, "note": note, "rows": rows}, indent=1)
    (tables.RESULTS / f"{name}.json").write_text(text + "\n")
    table = tables.table(rows)
    tables.write_page(name, f"# {title}\n\n{table}\n\n{note}\n")


def six(names, seeds, jobs):
    rows = kept("peers", "mechanism") if names else {}
    tasks = [(label, runs, seed) for label in names or SIX for runs in (200_000, 2_000_000) for seed in range(seeds)]
    measured = tables.spread(one_of_six, tasks, jobs)
    for label in names or SIX:
        name, exact, goal, peers = SIX[label]
        cells = []
        for _ in range(2):
            bounds, spent = np.transpose([next(measured) for _ in range(seeds)])
            cells.append((float(np.mean(bounds)), float(np.std(bounds)), float(np.mean(spent))))
        (small, sd, first), (large, sd_at_2m, second) = cells
        best, chance = attainable(build(name, 1.0), pairs(name), runs=200_000, alpha=0.05)
        rows[label] = (
            {"mechanism": label, "exact": exact, "best peer": peers, "goal at 200k": goal}
            | {"attainable at 200k": round(best, 4), "its sd": round(chance, 4), "200k": round(small, 4)}
            | {"share": round(small / best, 3)}
            | {"sd": round(sd, 4), "CPU s": round(first, 2), "2M": round(large, 4), "sd at 2M": round(sd_at_2m, 4)}
            | {"CPU s at 2M": round(second, 2)}
        )
        rows[label]["below, because"] = short(rows[label], sd / np.sqrt(seeds), sd_at_2m / np.sqrt(seeds))
        print(*rows[label].values(), flush=True)
    if names:  # another process may have measured other rows meanwhile
        rows = kept("peers", "mechanism") | {label: rows[label] for label in names}
    note = (
        f"Means over seeds {FRESH} to {FRESH + seeds - 1}, which no choice was made on, with their sd. "
        "95 % confidence, pair found by search. Attainable: what a perfect attack that knows the best "
        "pair and event is expected to certify with all of the runs, from the mechanism's law "
        "(benchmarks/power/attainable.py), and its standard deviation by chance. "
        "Share: of the mean in what is attainable. "
        f"DP-Sniper takes {SNIPER_SECONDS} s of CPU or more at 2M. {tables.dated()}"
    )
    ordered = [rows[known] for known in SIX if known in rows]
    write("peers", "The black-box auditor and its peers: six mechanisms, epsilon = 1", ordered, note)


def one_of_six(label, runs, seed):
    """Return the bound of an audit of one of the six, and its seconds of processor time."""
    began = time.process_time()
    bound = audit(SIX[label][0], 1.0, 1.0, seed=FRESH + seed, runs=runs, confidence=0.95).epsilon_lower
    return bound, time.process_time() - began


def short(row, error, error_at_2m):
    """Return where a row stays below its goals, with the standard errors of the means."""
    pairs = (("200k", "goal at 200k", error), ("2M", "best peer", error_at_2m))
    return "; ".join(
        f"{mean}: the mean has a standard error of {by:.2g}" for mean, goal, by in pairs if row[mean] < row[goal]
    )


def alarms(names, audits, jobs):
    limit = audits * 0.05 + 3 * np.sqrt(audits * 0.05 * 0.95)
    note = (
        "Different seeds, 4000 runs, 95 % confidence: the limit is 5 % and 3 sigma. The interval has 95 %. Rows are "
        "not measured again with every change of the code."
    )
    every = (*SOUND, *SOUND_LEARNERS)
    rows = kept("alarms", "mechanism or learner") if names else {}
    tasks = [(name, seed) for name in names or every for seed in range(audits)]
    measured = tables.spread(verdict_of, tasks, jobs)
    for name in names or every:
        verdicts = [next(measured) for _ in range(audits)]
        wrong = sum(v is Verdict.FALSIFIED for v in verdicts)
        low, high = stats.binomtest(wrong, audits).proportion_ci(0.95)
        rows[name] = {
            "mechanism or learner": name,
            "false alarms": wrong,
            "audits": audits,
            "rate": wrong / audits,
        } | {"from": round(float(low), 4), "to": round(float(high), 4), "limit": round(float(limit / audits), 4)}
        ordered = [rows[known] for known in every if known in rows]
        write("alarms", "False alarms on sound mechanisms and learners", ordered, note)


def kept(table, column):
    """Return the rows of a table as it is, by their names."""
    path = tables.RESULTS / f"{table}.json"
    return {row[column]: row for row in json.loads(path.read_text())["rows"]} if path.exists() else {}


def verdict_of(name, seed):
    """Return the verdict on a true claim."""
    budget = {"runs": 4000, "confidence": 0.95, "seed": seed}
    if name in SOUND_LEARNERS:
        return (
            Task(target=name, rounds=2, parameters=SOUND_LEARNERS[name], budget=Budget(**budget))
            .prepare()
            .audit()
            .verdict
        )
    return audit(name, 1.0, zoo()[f"mechanisms/{name}"].claimed(1.0), **budget).verdict


def long(names, runs, seeds, jobs):
    """Measure each row with one seed after the other, so that a table that is interrupted says less of each row."""
    before = {name: len(bounds_of(row, runs)) for name, row in kept("dp_sniper", "mechanism").items()}
    tasks = [(name, seed, runs) for seed in range(seeds) for name in names or TABLE if seed >= before.get(name, 0)]
    for task, measured in zip(tasks, tables.spread(one_of_long, tasks, jobs), strict=True):
        row = longer(task[0], kept("dp_sniper", "mechanism").get(task[0], {}), runs, *measured)
        print(*row.values(), flush=True)
        rows = kept("dp_sniper", "mechanism") | {task[0]: row}  # another process may have measured other rows
        write("dp_sniper", "DP-Sniper's own table", [rows[known] for known in TABLE if known in rows], OF_LONG)


def one_of_long(name, seed, runs):
    """Return the bound of an audit of the long table, its chance, the attack, and its seconds of processor time."""
    began = time.process_time()
    result = audit(name, 0.1, 0.1, runs=runs, confidence=0.9, seed=FRESH_LONG + seed)
    return result.epsilon_lower, chance(result), result.attack.partition(" (")[0], time.process_time() - began


def bounds_of(row, runs):
    """Return the bounds that a row has of today's code and seeds, one for each seed."""
    today = (row.get("runs"), row.get("first seed"), row.get("code")) == (runs, FRESH_LONG, CODE)
    return [float(bound) for bound in row["bounds"].split()] if today else []


def longer(name, row, runs, bound, by_chance, attack, spent):
    """Return a row of the table with one more seed."""
    bounds = bounds_of(row, runs)
    before = len(bounds)
    # A law takes minutes and does not change. Where the rule does that makes a bound of it: --attainable.
    best = row["attainable"] if row.get("runs") == runs else attainable_of(name, runs)

    def mean(column, value):
        return (row[column] * before + value) / (before + 1) if before else value

    attacks = set(row["attack"].split(" or ")) if before else set()
    bounds = [*bounds, round(bound, 4)]
    return (
        {"mechanism": name, "DP-Sniper": TABLE[name][0], "StatDP": TABLE[name][1]}
        | {"bound": round(float(np.mean(bounds)), 4), "sd": round(float(np.std(bounds, ddof=1)), 4) if before else ""}
        | {"chance": round(mean("chance", by_chance), 5), "attainable": best}
        | {"share": round(float(np.mean(bounds)) / best, 3), "CPU s": round(mean("CPU s", spent), 1)}
        | {
            "bounds": " ".join(f"{bound:.4f}" for bound in bounds),
            "first seed": FRESH_LONG,
            "code": CODE,
            "runs": runs,
        }
        | {"attack": " or ".join(sorted(attacks | {attack}))}
        | {"below, because": why(name, bounds, best)}
    )


def attainable_of(name, runs):
    """Return what is attainable in a row of the long table."""
    return round(attainable(build(name, 0.1), pairs(name), runs=runs, alpha=0.1)[0], 4)


def renew(names, jobs):
    """Compute again what is attainable in the rows of the long table, by the rule as it is now."""
    table = kept("dp_sniper", "mechanism")
    tasks = [(name, table[name]["runs"]) for name in names or TABLE if name in table]
    for (name, _), best in zip(tasks, tables.spread(attainable_of, tasks, jobs), strict=True):
        rows = kept("dp_sniper", "mechanism")  # another process may have written other rows
        row, before = rows[name], rows[name]["attainable"]
        bounds = [float(bound) for bound in row["bounds"].split()]
        row |= {"attainable": best, "share": round(float(np.mean(bounds)) / best, 3)}
        row["below, because"] = why(name, bounds, best)
        print(name, f"{before} before, {best}", flush=True)
        write("dp_sniper", "DP-Sniper's own table", list(rows.values()), OF_LONG)


def chance(result):
    """Return the standard deviation of a bound by the chance of its certification: blocks of runs drawn again."""
    rng, blocks = np.random.default_rng(0), np.array([block.numbers for block in result.blocks])
    counts = rng.multinomial(len(blocks), np.full(len(blocks), 1 / len(blocks)), 100) @ blocks
    bounds = [bound_of(result.event, Counts.of_numbers(some.tolist()), delta=0.0, alpha=0.1) for some in counts]
    return float(np.std(bounds))


def why(name, bounds, attainable):
    """Return why the mean of some bounds is below the best published one; empty if it is not."""
    published = max(TABLE[name])
    if float(np.mean(bounds)) >= published:
        return ""
    if attainable < published:
        return f"{NOTES.get(name, '')}a perfect attack is expected to get {attainable:.4g}"
    return "not the best event or pair, or chance"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    sound, of_table = tables.one_of((*SOUND, *SOUND_LEARNERS)), tables.one_of(TABLE)
    parser.add_argument("names", nargs="*", type=tables.one_of(SIX), metavar="NAME", help="of the six mechanisms")
    parser.add_argument("--alarms", nargs="*", type=sound, metavar="NAME", help="count false alarms")
    parser.add_argument("--audits", type=int, default=500)
    parser.add_argument("--long", nargs="*", type=of_table, metavar="NAME", help="DP-Sniper's table")
    parser.add_argument("--attainable", nargs="*", type=of_table, metavar="NAME", help="in DP-Sniper's table, again")
    parser.add_argument("--runs", type=float, default=2e7, help="of the long table")
    parser.add_argument("--seeds", type=int, default=24, help="of the six mechanisms, of the long table")
    parser.add_argument("--jobs", type=int, default=1, help="processes; they slow each other down")
    choices = parser.parse_args()
    if choices.alarms is not None:
        alarms(choices.alarms, choices.audits, choices.jobs)
    elif choices.attainable is not None:
        renew(choices.attainable, choices.jobs)
    elif choices.long is not None:
        long(choices.long, int(choices.runs), choices.seeds, choices.jobs)
    else:
        six(choices.names, choices.seeds, choices.jobs)


if __name__ == "__main__":
    main()
