"""False alarms of audits of learners that stop early, whose claims are true: rows of `sequential.md`.

    python benchmarks/validity/sequential.py --learners

Each claim holds for its pair: the exact epsilon of what is seen, or that of what is released, which bounds what the
actions tell, or for the FTPL conversion and batched EXP3 over eight arms a proof. An audit is an error with a
probability of at most alpha, whatever it does.
"""

from __future__ import annotations

import math
from typing import Any

from scipy.special import expit

from overclaim import Claim, Verdict
from overclaim.audit.laws.exact import exact_epsilon
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.search.pair_search import candidates
from overclaim.benchmarks.power.horizon import exp3
from overclaim.benchmarks.speed.speed import one_differs
from overclaim.benchmarks.tables import Rows
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.view import VIEWS

#: Of the learner that repeats: how likely it does.
REPEATED = float(expit(0.5))
#: Learners of the catalogue: their name, rounds and arms, what is seen, and where the claim comes from: the exact
#: epsilon of that, of what is released, or the proof's 1.
CATALOGUE = (
    ("agarwal-singh/ftrl-experts", 4, 2, "actions", "actions"),
    ("agarwal-singh/ftrl-experts", 4, 3, "actions", "release"),
    ("agarwal-singh/ftrl-ball", 4, None, "actions", "release"),
    ("agarwal-singh/reduction-threshold", 4, 2, "actions", "actions"),
    ("agarwal-singh/reduction-exp2", 8, 3, "actions", "release"),
    ("ene-nguyen-vladu/tree-aggregation", 4, None, "release", "release"),
    ("smith-thakurta/pftal", 4, None, "actions", "release"),
    ("asi-raman-talwar/batched-htinf", 8, 3, "release", "release"),
    ("asi-raman-talwar/exp4-local", 8, 3, "release", "release"),
    ("asi-raman-talwar/batched-ftpl", 3, 2, "actions", "proof"),
    ("asi-raman-talwar/exp3", 3, 2, "actions", "actions"),
)


class Repeats:
    """A user's learner of two arms: after each loss, likely the arm that this loss names, whatever came before."""

    feedback = "full"

    def __init__(self, arms: int, rounds: int, rng: Any) -> None:
        self.rng, self.last = rng, 0.5

    def act(self) -> int:
        """Play the arm that the last loss vector names, or by chance the other."""
        named = self.last if self.rng.random() < REPEATED else 1 - self.last
        return int(self.rng.random() < named)

    def update(self, feedback: Any) -> None:
        """Remember the first arm's loss."""
        self.last = float(feedback[0])


def above(epsilon: float) -> float:
    """Return an exact epsilon and 1e-4, rounded up to three digits: that of a grid may be below the truth by less."""
    return math.ceil(1000 * epsilon + 0.1) / 1000


def true_claims() -> list[tuple[str, Any, Pair, Claim]]:
    """Return a name, a learner, a pair and a claim that holds for it, of each row."""
    few, many = one_differs(3, 2), one_differs(16, 8)
    bound = exact_epsilon(exp3(2), few, deltas=(0.0,))[0.0]
    found: list[tuple[str, Any, Pair, Claim]] = [
        ("a user's, T = 3", Repeats, Pair([[1.0, 0.0]] * 3, [[0.0, 0.0], *[[1.0, 0.0]] * 2]), Claim(epsilon=0.5)),
        ("batched EXP3, T = 3, K = 2", exp3(2), few, Claim(epsilon=above(bound))),
        ("batched EXP3, T = 16, K = 8", exp3(8), many, Claim(epsilon=1.0)),
    ]
    for name, rounds, arms, surface, source in CATALOGUE:
        entry = lookup(name)
        setting = entry.setting(rounds=rounds, **({"arms": arms} if arms else {}))
        learner, claim = entry.build(setting), entry.claim(setting, surface=surface)
        pair = candidates(learner, claim, rounds=rounds, runs=1000)[0]
        true = 1.0
        if source != "proof":
            true = above(exact_epsilon(learner, pair, view=VIEWS[source], deltas=(0.0,))[0.0])
        held = Claim(epsilon=true, losses=claim.losses, surface=surface)
        size = f"T = {rounds}, K = {arms}" if arms else f"T = {rounds}"
        found.append((f"{name}, {size}, {surface}", learner, pair, held))
    return found


def learner_alarms(audits: int, runs: int, alpha: float) -> Rows:
    """Return how many audits of each true claim falsified it."""
    rows: Rows = []
    asked = {"runs": runs, "confidence": 1 - alpha, "stop": "early"}
    for name, learner, pair, claim in true_claims():
        results = [falsify(learner, claim, pair=pair, seed=seed, **asked) for seed in range(audits)]
        falsified = sum(result.verdict is Verdict.FALSIFIED for result in results)
        row = {"learner": name, "claim": claim.epsilon, "attack": results[-1].attack}
        rows.append({**row, "audits": audits, "falsified": falsified})
    return rows
