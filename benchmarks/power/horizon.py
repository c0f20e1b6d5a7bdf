"""Learners at long horizons: what is certified, of the best lower bound on epsilon that is known, and what it costs.

    python benchmarks/power/horizon.py [--only TABLE [--rows N ...]] [--runs N] [--to FILE] [--as before]
    python benchmarks/power/horizon.py --merge FILE ...

The claim of batched EXP3 is epsilon = 1 at delta = 0, those of the catalogue's learners are their own. The worlds
differ in the first round where a row does not say another. Times are CPU times of one process; set OMP_NUM_THREADS=1.
Each row that is measured is put into benchmarks/results/horizon.json beside the others; rows named `before` are of
older code, run with `--as before`. Processes that measure rows side by side write files of their own, to be merged.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from overclaim.audit.attacks import learner_attacks as attacks
from overclaim.audit.laws.exact import epsilon_from_laws, exact_epsilon
from overclaim.audit.laws.sequences import sequence_laws
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.search.exact_search import expected_bound
from overclaim.audit.search.pair_search import candidates
from overclaim.benchmarks import tables
from overclaim.benchmarks.power.horizon_laws import best_window, constant_sequence, first_three, first_two_of_ftpl
from overclaim.benchmarks.speed.speed import one_differs
from overclaim.benchmarks.tables import RESULTS
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.view import RELEASE

ARMS, ROUNDS = (2, 8, 64), (64, 1024)
ETA, GAMMA = 0.5, 0.1
#: Runs of a row that are not too dear.
MOST = 1_000_000
#: Runs of the rows that are compared with older code: a filter of all rounds is dear.
EQUAL = {64: 20_000, 1024: 4000}
#: Runs of the rows with more arms; of other learners, on their actions; and of those of which no law is known, of
#: which the page's rows have from half to a hundred times as many: what some minutes pay for.
MORE_ARMS, OTHERS, UNKNOWN = 20_000, {64: 200_000, 1024: 10_000}, {64: 10_000, 1024: 2000}
#: Rounds whose sequences of two arms are all enumerated.
ENUMERATED = 12
SEED = 0
FRESH = (2000, 2001)  # of late rounds

Floats = NDArray[np.float64]
#: The rows of a table, to be measured one by one.
Jobs = Iterator[Callable[[], dict[str, Any]]]


def exp3(arms: int) -> BatchedLaplace:
    """Return batched EXP3 with tau = 1 and rates under which actions tell much: eta 0.5, gamma 0.1."""
    return BatchedLaplace(inner=Exp3(arms=arms, eta=ETA, gamma=GAMMA), epsilon=1.0, batch=1)


def of_release(learner: Any, pair: Pair) -> tuple[Floats, Floats, float]:
    """Return the laws of the privacy loss of what is released, and its supremum."""
    loss = learner.law(pair.left, pair.right, pair.t0, RELEASE)
    return loss.left, loss.right, loss.epsilon(0.0)


def moved(rounds: int, arms: int, t0: int, low: float = 0.0) -> Pair:
    """Return losses of 1 that become `low` in one round."""
    left = np.ones((rounds, arms))
    right = left.copy()
    right[t0] = low
    return Pair(left, right)


def certified(learner: Any, claim: Claim, pair: Pair, runs: int, seed: int = SEED) -> dict[str, Any]:
    """Return what an audit certifies, with which attack, and its CPU seconds."""
    began = time.process_time()
    result = falsify(learner, claim, pair=pair, runs=runs, seed=seed)
    cost = time.process_time() - began
    return {"runs": runs, "attack": result.attack, "certified": result.epsilon_lower, "CPU s": cost}


def with_audit(what: dict[str, Any], *audited: Any) -> dict[str, Any]:
    """Return a row: what it is of, and what an audit certifies."""
    return {**what, **certified(*audited)}


def bandits(rounds: int, arms: int) -> tuple[tuple[str, Any], ...]:
    """Return the two bandits whose differing round comes late, with their names."""
    entry = lookup("asi-raman-talwar/exp4-local")
    return (
        ("batched EXP3", exp3(arms)),
        ("EXP4", entry.build(entry.setting(rounds=rounds, arms=arms), eta=ETA, gamma=GAMMA)),
    )


def of_many(runs: int | None) -> Jobs:
    """More than two arms, late rounds, seed 2000; no law is known.

    Batched EXP3, 8 arms, round 1020: on 8192 runs of seed 7 the filter tells .0019 nats a run (sd of the mean .0007),
    as much as its odds say. With 4096 paths before that round, for 1024, it is .0032 in five times the time.
    """
    for rounds in ROUNDS:
        for arms in ARMS[1:]:
            for name, learner in bandits(rounds, arms)[: 2 if arms == ARMS[1] else 1]:
                for t0 in (rounds // 2, rounds - 5):
                    what = {"learner": name, "arms": arms, "rounds": rounds, "differs": t0 + 1}
                    audited = learner, Claim(epsilon=1.0), moved(rounds, arms, t0), runs or MORE_ARMS, FRESH[0]
                    yield partial(with_audit, what, *audited)


def of_late(runs: int | None) -> Jobs:
    """Two arms, the differing round in the middle or near the end: certified against windows of twelve arms.

    That another attack must tell more than the window by two standard errors was chosen after a look at seed 0, at
    1024 rounds; nothing was chosen by the others. The mean share of seeds 2000 and 2001 is 1.07, from .95 to 1.30.
    """
    for rounds in ROUNDS:
        for name, learner in bandits(rounds, 2):
            for t0 in (0, rounds // 2, rounds - 5):
                what = {"learner": name, "rounds": rounds, "differs": t0 + 1}
                for seed in (SEED, *FRESH) if rounds == ROUNDS[-1] and t0 else (SEED,):
                    yield partial(of_window, what, learner, moved(rounds, 2, t0), runs or MOST, seed)


def of_window(what: dict[str, Any], learner: Any, pair: Pair, runs: int, seed: int) -> dict[str, Any]:
    """Return a row of `of_late`."""
    known, expected = best_window(learner, pair, runs)
    found = certified(learner, Claim(epsilon=1.0), pair, runs, seed)
    share = found["certified"] / expected if expected else math.nan
    return {**what, "known": known, "expected": expected, "seed": seed, **found, "share": share}


#: Learner, arms, surface, its parameters, the lowest loss, what is known of it, and whether it differs late as well.
LEARNERS: tuple[tuple[str, int | None, str, dict[str, Any], float, Any, bool], ...] = (
    ("asi-raman-talwar/exp4-local", 8, "actions", {"eta": ETA, "gamma": GAMMA}, 0.0, first_three, False),
    ("asi-raman-talwar/batched-htinf", 8, "actions", {"batch": 1}, 0.0, first_three, False),
    ("asi-raman-talwar/batched-ftpl", 8, "actions", {"batch": 1}, 0.0, first_two_of_ftpl, False),
    ("agarwal-singh/reduction-exp2", 8, "actions", {"eta": ETA, "gamma": GAMMA}, -1.0, first_three, False),
    ("agarwal-singh/reduction-threshold", 2, "actions", {}, -1.0, None, True),
    ("agarwal-singh/ftrl-experts", 8, "release", {}, -1.0, of_release, True),
    ("ene-nguyen-vladu/tree-aggregation", None, "release", {}, -1.0, of_release, True),
    ("smith-thakurta/pftal", None, "release", {}, -1.0, of_release, True),
)


def of_learners(runs: int | None) -> Jobs:
    """Other learners, on the actions or on what is released: certified against the law of a part, or a closed form.

    FTRL's release, round 33 of 64: by its law its event can expect .750 (sd .045), the best .749. Seed 2000 has .794.
    """
    for name, arms, surface, parameters, low, law, late in LEARNERS:
        for rounds in ROUNDS:
            entry = lookup(name)
            many = runs or (MOST if law is of_release and rounds == ROUNDS[0] else OTHERS[rounds])
            setting = entry.setting(rounds=rounds, **({"arms": arms} if arms else {}))
            learner, claim = entry.build(setting, **parameters), entry.claim(setting, surface=surface)
            for t0 in (0, rounds // 2) if late else (0,):
                what = {"learner": name, "surface": surface, "rounds": rounds, "differs": t0 + 1}
                yield partial(of_law, what, learner, claim, law, low, many)


def of_law(what: dict[str, Any], learner: Any, claim: Claim, law: Any, low: float, runs: int) -> dict[str, Any]:
    """Return a row of `of_learners`."""
    rounds, t0 = what["rounds"], what["differs"] - 1
    if law is of_release:
        pair = shifted(candidates(learner, claim, rounds=rounds, runs=runs)[0], t0)
    else:
        pair = moved(rounds, learner.arms, t0, low)
    # The probe's next arm tells all that is told of a round, whichever it is.
    laws = law(learner, pair) if law else sequence_laws(learner, moved(2, 2, 0, low))
    known = laws[2] if len(laws) == 3 else epsilon_from_laws(*laws)
    expected = expected_bound(*laws[:2], 0.0, runs)
    found = certified(learner, claim, pair, runs)
    share = found["certified"] / expected if expected else math.nan
    return {**what, "known": known, "expected": expected, **found, "share": share}


#: Learner, arms, surface, of which no law of a part is known at these horizons.
OTHER: tuple[tuple[str, int | None, str], ...] = (
    ("agarwal-singh/ftrl-experts", 2, "actions"),
    ("agarwal-singh/ftrl-experts", 8, "actions"),
    ("agarwal-singh/ftrl-ball", None, "release"),
    ("agarwal-singh/ftrl-ball", None, "actions"),
    ("agarwal-singh/ftrl-cube", None, "actions"),
    ("ene-nguyen-vladu/private-bandit-laplace", None, "release"),
    ("ene-nguyen-vladu/private-bandit-laplace", None, "actions"),
    ("agarwal-singh/reduction-scrible", None, "actions"),
    ("smith-thakurta/pftal", None, "actions"),
)


def of_others(runs: int | None) -> Jobs:
    """Learners without a law, beside what the whole release promises, of which actions show part.

    Linear losses are 0 but in the differing round, where one world has minus the other's, of signs in turn by arm.
    PFTAL's actions over 1024 rounds are left out, as too slow. Rows were measured beside other work, which makes times
    longer. That of PFTAL's round 1 is older; those of 8 experts' and the ball's actions, round 33 of 64, were measured
    before whitened sums were log odds, and these won there.
    """
    for name, arms, surface in OTHER:
        for rounds in ROUNDS:
            entry = lookup(name)
            setting = entry.setting(rounds=rounds, **({"arms": arms} if arms else {}))
            learner, claim = entry.build(setting), entry.claim(setting, surface=surface)
            for t0 in (0, rounds // 2):
                what = {"learner": name, "arms": arms, "surface": surface, "rounds": rounds, "differs": t0 + 1}
                yield partial(of_part, what, learner, claim, runs or UNKNOWN[rounds])


def of_part(what: dict[str, Any], learner: Any, claim: Claim, runs: int) -> dict[str, Any]:
    """Return a row of `of_others`."""
    pair = candidates(learner, claim, rounds=what["rounds"], runs=runs)[0]
    pair = (opposed if isinstance(pair.left, np.ndarray) else shifted)(pair, what["differs"] - 1)
    try:
        left, right, epsilon = of_release(learner, pair)
        known = {"release": epsilon, "its expected": expected_bound(left, right, 0.0, runs)}
    except ValueError:
        known = {"release": math.nan, "its expected": math.nan}
    return {**what, **known, **certified(learner, claim, pair, runs)}


def opposed(pair: Pair, t0: int) -> Pair:
    """Return losses of 0 but in round t0: the pair's where it differs, their signs in turn, and minus these.

    A softmax hides what is common to all arms, and other losses drive points to an edge that hides more.
    """
    left = np.zeros_like(pair.left)
    left[t0] = np.abs(pair.left[pair.t0]) * np.where(np.arange(pair.arms) % 2, -1.0, 1.0)
    return Pair(left, -left)


def shifted(pair: Pair, t0: int) -> Pair:
    """Return the pair with its differing round at t0 and its last round everywhere else."""
    left = [pair.left[-1]] * pair.rounds
    right = list(left)
    left[t0], right[t0] = pair.left[pair.t0], pair.right[pair.t0]
    arrays = isinstance(pair.left, np.ndarray)
    return Pair(np.array(left), np.array(right)) if arrays else Pair(left, right)


def audit(arms: int, rounds: int, runs: int) -> dict[str, Any]:
    """Return what the particle attack certifies, and its CPU seconds."""
    every, attacks.ATTACKS = attacks.ATTACKS, (attacks.WindowRatio, attacks.ParticleRatio)
    pair, learner, claim = one_differs(rounds, arms), exp3(arms), Claim(epsilon=1.0)
    began = time.process_time()
    result = falsify(learner, claim, pair=pair, runs=runs, seed=SEED)
    cost = time.process_time() - began
    attacks.ATTACKS = every
    lag = getattr(result.scorer, "lag", "a window" if isinstance(result.scorer, attacks.WindowRatio) else "all")
    return {"runs": runs, "lag": lag, "certified": result.epsilon_lower, "CPU s": cost}


def of_arms(runs: int | None) -> Jobs:
    """Batched EXP3, its arms alone: certified against the exact law of a constant sequence."""
    for arms in ARMS:
        for rounds in ROUNDS:
            yield partial(of_constant, arms, rounds, runs or MOST)


def of_constant(arms: int, rounds: int, runs: int) -> dict[str, Any]:
    """Return a row of `of_arms`."""
    bound, n = constant_sequence(arms, ETA, GAMMA)
    known: dict[str, Any] = {"arms": arms, "rounds": rounds, "known": bound, "from": f"the first arm {n} times"}
    if arms == 2:
        pair = one_differs(ENUMERATED, 2)
        bound = known["known"] = exact_epsilon(exp3(2), pair, deltas=(0.0,))[0.0]
        known["from"] = f"all sequences of {ENUMERATED} rounds"
        known["expected"] = expected_bound(*sequence_laws(exp3(2), pair), 0.0, runs)
    found = audit(arms, rounds, runs)
    return {**known, **found, "share": found["certified"] / bound}


def equal(runs: int | None) -> Jobs:
    """The same audits with few runs, which older code can pay for."""
    for rounds in ROUNDS:
        for arms in ARMS:
            yield partial(of_few, arms, rounds, runs or EQUAL[rounds])


def of_few(arms: int, rounds: int, runs: int) -> dict[str, Any]:
    """Return a row of `equal`."""
    return {"arms": arms, "rounds": rounds, **audit(arms, rounds, runs)}


def of_releases(runs: int | None) -> Jobs:
    """What is released beside the arms: certified against the closed form, K = 8."""
    for name, parameters in (
        ("asi-raman-talwar/batched-htinf", {"batch": 1}),
        ("asi-raman-talwar/exp4-local", {"eta": ETA, "gamma": GAMMA}),
    ):
        for rounds in ROUNDS:
            yield partial(of_closed_form, name, parameters, rounds, runs or MOST // (5 if rounds == ROUNDS[0] else 50))


def of_closed_form(name: str, parameters: dict[str, Any], rounds: int, runs: int) -> dict[str, Any]:
    """Return a row of `of_releases`."""
    entry = lookup(name)
    setting = entry.setting(rounds=rounds, arms=8)
    learner, pair = entry.build(setting, **parameters), one_differs(rounds, 8)
    known = exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0]
    found = certified(learner, entry.claim(setting, surface="release"), pair, runs)
    return {"learner": name, "rounds": rounds, "known": known, **found, "share": found["certified"] / known}


TABLES = {
    "arms": of_arms,
    "late": of_late,
    "many": of_many,
    "learners": of_learners,
    "others": of_others,
    "releases": of_releases,
    "equal": equal,
}


def page(measured: dict[str, Any]) -> str:
    """Return the page of all tables."""
    parts = ["# Learners at long horizons\n", f"{measured['dated']} Seed {SEED}, one process, compiled.\n"]
    parts.append(
        "`known` is a lower bound on the pair's epsilon from an exact law, `expected` about what a perfect attack on "
        "that law alone certifies from as many runs (one that sees more may certify more), `lag` the actions after "
        "the differing one that the filter looks at, or the window of twelve that is tried for two arms. `differs` is "
        "the round, `share` that of `expected` in the tables Late and Learners, else of `known`.\n"
    )
    for name, rows in measured.items():
        if isinstance(rows, dict):
            kind, _, before = name.partition(" ")
            remark = " ".join((TABLES[kind].__doc__ or "").split())
            parts.append(f"## {name.capitalize()}\n\n{remark}{' Before: the code of 7ada82d.' if before else ''}\n")
            parts.append(tables.table([rows[i] for i in sorted(rows, key=int)]) + "\n")
    return "\n".join(parts)


def main() -> None:
    """Measure or merge, and write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, help="by default those of each row")
    parser.add_argument("--only", choices=TABLES, action="append")
    parser.add_argument("--rows", type=int, nargs="+", help="of the table, from 0; all by default")
    parser.add_argument("--merge", type=Path, nargs="+", help="take the rows from these files, and measure nothing")
    parser.add_argument("--as", dest="when", choices=["before", "now"], default="now")
    parser.add_argument("--to", type=Path, default=RESULTS / "horizon.json")
    chosen = parser.parse_args()
    measured = read(chosen.to) if chosen.to.exists() else {}
    for part in map(read, chosen.merge or ()):
        write(chosen.to, measured := merged(measured, part))
    for name in () if chosen.merge else chosen.only or TABLES:
        for i, measure in enumerate(TABLES[name](chosen.runs)):
            if chosen.rows is None or i in chosen.rows:
                key, row = name if chosen.when == "now" else f"{name} before", measure()
                tables.show([row])
                write(chosen.to, measured := merged(measured, {"dated": tables.dated(), key: {str(i): row}}))


def read(path: Path) -> dict[str, Any]:
    """Return what was measured: by table, its rows by their places."""
    measured: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return measured


def merged(old: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    """Return the rows of both, the new ones where both have one."""
    rows = {key: {**old.get(key, {}), **of} for key, of in new.items() if isinstance(of, dict)}
    return {**old, **new, **rows}


def write(path: Path, measured: dict[str, Any]) -> None:
    """Write the file and its page."""
    path.write_text(json.dumps(measured, indent=1) + "\n", encoding="utf-8")
    tables.write_page(path.stem, page(measured), path.parent)


if __name__ == "__main__":
    main()
