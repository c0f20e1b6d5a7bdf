"""Compare both ways to name one pair of inputs, on every name of the catalogue with an exact law.

    python benchmarks/catalogue/routes.py [--runs 8000] [--seed 0]

`pair=` meets the exact law, `left=, right=` an attack that learns from the outputs. A Markdown table is printed, with
what either certifies. Exits 1 if a verdict or a bound differs. A few minutes on one core.
"""

import argparse
import sys

from overclaim import falsify
from overclaim.audit.plans.tasks import Task
from overclaim.audit.search.exact_search import worst_exactly
from overclaim.benchmarks import tables
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.view import VIEWS

#: The horizon at most.
LONGEST = 8


def row_of(name, surface, runs, seed):
    """Return the row of a name on the pair that its law finds worst; None where no law covers what is seen."""
    entry = entries()[name]
    rounds = min(entry.rounds, LONGEST)
    asked = {"surface": surface, "rounds": rounds, "epsilon": None if entry.promise else 1.0}
    try:
        prepared = Task(target=name, **asked).prepare()
        learner, claim, deltas = prepared.target, prepared.claim, (prepared.claim.delta,)
        exact, pair, _ = worst_exactly(learner, claim, prepared.rounds, prepared.pairs, deltas)
    except ValueError:  # no law, or nothing but actions to be seen
        return None
    world = pair.to_json()
    by_pair = falsify(learner, claim, pair=pair, runs=runs, seed=seed)
    by_rounds = falsify(learner, claim, left=world["left"], right=world["right"], runs=runs, seed=seed)
    results = {"pair=": by_pair, "left=, right=": by_rounds}
    found = {word: f"{one.verdict.value} {one.epsilon_lower:.4f}" for word, one in results.items()}
    game = {"name": name, "view": surface, "rounds": rounds, "claim": claim.epsilon, "exact": exact[claim.delta]}
    return {**game, **found, "same": "yes" if len(set(found.values())) == 1 else "no"}


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=8000)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    games = [(name, surface) for name in entries() for surface, view in VIEWS.items() if view.plays_losses]
    rows = [row for game in games if (row := row_of(*game, given.runs, given.seed)) is not None]
    print(tables.table(rows))
    same = sum(row["same"] == "yes" for row in rows)
    print(f"\n{same} of {len(rows)} games are the same both ways ({given.runs:,} runs, seed {given.seed}).")
    return int(same < len(rows))


if __name__ == "__main__":
    sys.exit(main())
