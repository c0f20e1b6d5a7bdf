"""Speed, memory and scaling. What runs in this process is measured in CPU time, which a busy machine distorts less."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from overclaim.audit.execution.workers import cores
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import BLOCK, play
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.benchmarks.tables import Rows, row
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.tree import Tree

REPEATS = 7
#: Rounds and arms of the learners' table; arms of those whose steps are dear.
ROUNDS, ARMS = 64, 8
#: Of a learner that takes longer than this for a block there are fewer rounds.
PATIENCE = 2.0


def seconds(
    task: Callable[[int], Any], repeats: int = REPEATS, *, clock: Callable[[], float] = time.process_time
) -> list[float]:
    """Return the seconds of `task(1)`, `task(2)`, ...; `task(0)` comes first, to warm up."""
    times = []
    for i in range(repeats + 1):
        began = clock()
        task(i)
        times.append(clock() - began)
    return times[1:]


def private_exp3(arms: int) -> BatchedLaplace:
    """Return batched EXP3 with tau = 1: fresh noise in every round."""
    return BatchedLaplace(inner=Exp3(arms=arms, eta=0.05, gamma=0.1), epsilon=1.0, batch=1)


def one_differs(rounds: int, arms: int) -> Pair:
    """Return losses of 1 that become 0 in the first round."""
    left = np.ones((rounds, arms))
    right = left.copy()
    right[0] = 0
    return Pair(left, right)


def block_seconds(learner: Any, pair: Pair, runs: int = BLOCK, repeats: int = REPEATS) -> list[float]:
    """Return the seconds of blocks of runs."""
    return seconds(lambda i: play(learner, pair, Draws(0, Stage.PILOT, 0, 0, i), runs), repeats)


def speed() -> Rows:
    """Run-rounds per second of private batched EXP3, tau = 1, T = 64, on one core."""
    rows = []
    for arms in (2, 8, 64):
        rates = [64 * BLOCK / s / 1e6 for s in block_seconds(private_exp3(arms), one_differs(64, arms))]
        rows.append(row(f"batched EXP3, K={arms}, million run-rounds/s", rates, arms=arms))
    return rows


def learners() -> Rows:
    """Run-rounds per second of every learner of the catalogue as it is built there, in batches of 1.

    EXP3 is measured beside each of them: a processor is not as fast in one minute as in the next.
    """
    rows = []
    for name, learner, pair in _catalogue():
        exp3 = float(np.median(block_seconds(private_exp3(ARMS), one_differs(ROUNDS, ARMS)))) / (ROUNDS * BLOCK)
        (first,) = block_seconds(learner, pair, repeats=1)
        times = block_seconds(learner, pair, repeats=REPEATS if first < PATIENCE else 1)
        each = [s / (pair.rounds * BLOCK) for s in times]
        relative = float(np.median(each)) / exp3
        rates = [1e-6 / s for s in each]
        rows.append(row(f"{name}, million run-rounds/s", rates, arms=learner.arms, **{"times EXP3": relative}))
    return rows


def _catalogue() -> Iterator[tuple[str, Any, Pair]]:
    for name, entry in entries().items():
        for arms in (ARMS, entry.arms):  # some have a domain that is too small for eight
            try:
                setting = entry.setting(rounds=ROUNDS, arms=arms)
                learner = entry.build(setting, **({"batch": 1} if "batch" in entry.parameters else {}))
            except ValueError:
                continue
            yield name, learner, first_round(alphabet_of(learner, entry.claim(setting)), ROUNDS, 1)[0]
            break


def tree() -> Rows:
    """The tree counter against the draws alone: T = 64, one coordinate."""
    rows = []
    for noise in (Laplace(1.0), Gaussian(1.0)):
        counter = Tree(noise, 64, padding=False)

        def count(i: int, counter: Tree = counter) -> None:
            state, draws = counter.start(1, BLOCK), Draws(i)
            for _ in range(64):
                counter.add(state, ONE, draws)

        def draw(i: int, counter: Tree = counter) -> None:
            draws = Draws(i)
            for _ in range(64):
                counter.noise.sample((1, BLOCK), draws)

        pairs = zip(seconds(count, 3 * REPEATS), seconds(draw, 3 * REPEATS), strict=True)
        rows.append(row(f"tree counter, {type(noise).__name__} noise, times the draws", [a / b for a, b in pairs]))
    return rows


ONE = np.ones((1, 1))


def scaling() -> Rows:
    """The exponents of time in T, K and runs, by least squares on logarithms."""
    cases: dict[str, tuple[list[int], Callable[[int], list[float]]]] = {
        "T from 16 to 256, K=8": (
            [16, 32, 64, 128, 256],
            lambda t: block_seconds(private_exp3(8), one_differs(t, 8), repeats=3),
        ),
        "K from 2 to 64, T=64": (
            [2, 4, 8, 16, 32, 64],
            lambda k: block_seconds(private_exp3(k), one_differs(64, k), repeats=3),
        ),
        "runs from 1e5 to 1.6e6, an audit with K=2, T=8": (
            [100_000, 200_000, 400_000, 800_000, 1_600_000],
            lambda n: seconds(lambda i: _audit(n, i), 3),
        ),
    }
    rows = []
    for what, (sizes, measure) in cases.items():
        times = [float(np.median(measure(size))) for size in sizes]
        slope, _ = np.polyfit(np.log(sizes), np.log(times), 1)
        rows.append({"what": f"exponent in {what}", "median": float(slope), "first s": times[0], "last s": times[-1]})
    return rows


def _audit(runs: int, seed: int, *, rounds: int = 8, jobs: int = 1) -> Any:
    pair = one_differs(rounds, 2)
    return falsify(private_exp3(2), Claim(epsilon=1.0), pair=pair, runs=runs, seed=seed, jobs=jobs)


def processes() -> Rows:
    """An audit on one core and on all, which have to start first: the speed-up."""
    from joblib.externals.loky import get_reusable_executor

    rows: Rows = []
    for runs in (100_000_000, 300_000_000):
        times = {}
        for jobs in (1, cores()):
            began = time.perf_counter()
            _audit(runs, 0, jobs=jobs)
            times[jobs] = time.perf_counter() - began
        get_reusable_executor().shutdown()
        rows += [{"what": f"{runs:.0e} runs, T=8, K=2, {jobs} processes, s", "median": s} for jobs, s in times.items()]
        rows.append({"what": f"{runs:.0e} runs, speed-up on {cores()} cores", "median": times[1] / times[cores()]})
    return rows


MEMORY = """
import resource, sys
from overclaim.audit.pipeline.falsify import falsify
from overclaim.learners import BanditReduction, Threshold
from overclaim.mechanisms.claim import Claim
learner = BanditReduction(Threshold(arms=2, threshold=1.0), epsilon=1.0, sensitivity=1.0)
claim = Claim(epsilon=1.0, losses="symmetric")
falsify(learner, claim, rounds=2, runs=int(float(sys.argv[1])))
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1024 if sys.platform != "darwin" else 1024**2))
"""


def memory() -> Rows:
    """The peak of a process that audits on one core, for more and more runs."""
    rows = []
    for runs in ("1e5", "1e6", "1e7", "1e8"):
        words = [sys.executable, "-c", MEMORY, runs]
        peak = float(subprocess.run(words, check=True, capture_output=True, text=True).stdout)
        rows.append({"what": f"peak of an audit of {runs} runs, MB", "median": peak})
    return rows


def startup() -> Rows:
    """Whole-process seconds of the imports that everyone pays for, and of a first verdict."""
    check = ["-m", "overclaim", "check", "agarwal-singh/reduction-threshold", "--epsilon", "1", "--rounds", "2"]
    cases = {
        "import overclaim": ["-c", "import overclaim"],
        "overclaim --help": ["-m", "overclaim", "--help"],
        "first verdict, 200,000 runs": [*check, "--runs", "200000"],
        "first verdict, 200,000 runs, one process": [*check, "--runs", "200000", "--jobs", "1"],
    }

    def start(words: list[str]) -> None:
        done = subprocess.run([sys.executable, *words], capture_output=True, check=False)
        if done.returncode not in (0, 1):  # 1: falsified, as it should be
            raise RuntimeError(done.stderr.decode())

    return [
        row(f"{what}, s", seconds(lambda _, w=words: start(w), clock=time.perf_counter))
        for what, words in cases.items()
    ]
