"""Strategies of the search over neighbouring pairs, at equal budgets of runs.

    python benchmarks/power/pairs.py [--seeds N] [--runs N] [--learners NAME ..] [--strategies NAME ..]

Set OMP_NUM_THREADS=1: the times are CPU times of one process. With all strategies the table goes to
benchmarks/results/pairs.{md,json}; names of learners choose rows, and keep the others as they were. cma, which is not
locked, is left out where it is not installed.
"""

import argparse
import json
import time
from dataclasses import dataclass
from importlib.util import find_spec
from unittest import mock

import numpy as np
from scipy.special import expit

from overclaim.audit.attacks.learner_attacks import ATTACKS, SequenceRatio
from overclaim.audit.attacks.particle import ParticleRatio
from overclaim.audit.execution.execution import Budget
from overclaim.audit.laws.sequences import sequence_laws
from overclaim.audit.pipeline.learner_stages import LEAST_TRAINED, SEARCH, LearnerAudit
from overclaim.audit.play.transcripts import blocks, concatenate
from overclaim.audit.search import pair_search as search
from overclaim.audit.search.exact_search import CELLS, expected_bound
from overclaim.audit.search.proposals import Proposals
from overclaim.audit.spaces.families import first_round, later, unlike
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.audit.spaces.pair_space import PairSpace
from overclaim.audit.statistics.event_rule import choose_by_labels
from overclaim.audit.statistics.events import count
from overclaim.benchmarks import tables
from overclaim.benchmarks.power.random_pair_changes import RandomChanges, halve_and_change
from overclaim.learners import BatchedLaplace, Exp3
from overclaim.learners.abilities import NotEnumerableError, batch_of, select
from overclaim.learners.catalogue.entries import lookup
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Stage
from overclaim.tests.support.combination import Combination

SHARP = {"eta": 2.0, "gamma": 0.02}
#: Fresh runs on which a pair's worth is measured, by likelihood ratios; and by a trained attack.
FRESH, FRESH_TRAINED = 10_000, 200_000


@dataclass
class Counted:
    """An inner state, and the updates it has seen."""

    inner: object
    updates: int = 0

    def select(self, columns):
        return Counted(select(self.inner, columns), self.updates)


@dataclass(frozen=True, kw_only=True)
class Restarting:
    """EXP3 that forgets all after 1, 3, 7, 15, .. updates: the doubling trick."""

    inner: Exp3
    feedback: str = "bandit"

    @property
    def arms(self):
        return self.inner.arms

    def start(self, runs, draws):
        return Counted(self.inner.start(runs, draws))

    def act(self, state, draws):
        return self.inner.act(state.inner, draws)

    def probabilities(self, state):
        return self.inner.probabilities(state.inner)

    def update(self, state, actions, feedback, draws):
        self.inner.update(state.inner, actions, feedback, draws)
        state.updates += 1
        if not state.updates & (state.updates + 1):
            state.inner = self.inner.start(feedback.size, draws)


def entry(name, rounds, arms=None, **parameters):
    listed = lookup(name)
    setting = listed.setting(rounds=rounds, **({} if arms is None else {"arms": arms}))
    return listed.build(setting, **parameters), listed.claim(setting), rounds


def restarting():
    return BatchedLaplace(Restarting(inner=Exp3(arms=2, **SHARP)), epsilon=1.0, batch=1), Claim(epsilon=1.0), 24


#: A learner, its claim and its rounds. "Black box": the search has no attack but those that learn from runs.
LEARNERS = {
    "EXP3 conversion, K=2, T=12": lambda: entry("asi-raman-talwar/batched-exp3", 12, eta=0.5, gamma=0.1, batch=1),
    "EXP3 conversion, K=8, T=16": lambda: entry("asi-raman-talwar/batched-exp3", 16, 8, batch=1, **SHARP),
    "EXP3 conversion, K=2, T=32": lambda: entry("asi-raman-talwar/batched-exp3", 32, eta=0.3, gamma=0.1, batch=1),
    "restarting EXP3 conversion, T=24": restarting,
    "HTINF conversion, T=16": lambda: entry("asi-raman-talwar/batched-htinf", 16, batch=1),
    "local EXP4, T=16": lambda: entry("asi-raman-talwar/exp4-local", 16, **SHARP),
    "threshold reduction, T=16": lambda: entry("agarwal-singh/reduction-threshold", 16),
    "EXP3 without noise, K=8, T=32": lambda: entry("asi-raman-talwar/exp3", 32, 8),
    "FTRL, experts, T=16": lambda: entry("agarwal-singh/ftrl-experts", 16),
    "planted combination, T=24": lambda: (Combination(rounds=24), Claim(epsilon=1.0), 24),
    "EXP3 conversion, K=2, T=12, black box": lambda: entry(
        "asi-raman-talwar/batched-exp3", 12, eta=0.5, gamma=0.1, batch=1
    ),
    "restarting EXP3 conversion, T=24, black box": restarting,
    "FTPL conversion, T=16": lambda: entry("asi-raman-talwar/batched-ftpl", 16, batch=1),
}


class Withheld(LearnerAudit):
    """An audit whose search must do without the exact law of the sequences."""

    black_box = False

    def attacks(self, pair):
        able = [kind for kind in ATTACKS if kind is not SequenceRatio]
        able = [kind for kind in able if kind.applies(self.learner, pair, self.claim.view)]
        if self.black_box:
            return [kind for kind in able if kind.trained]
        return [kind for kind in able if kind.exact][:1] or able


class BlackBox(Withheld):
    """A search that is told nothing of the learner's law."""

    black_box = True


class Promising(Withheld):
    """The judge of former versions: the bound that a chosen event's own counts would give."""

    def trial(self):
        return lambda pair, index, runs, before: self._former(pair, index, runs)  # by fresh runs alone

    def _former(self, pair, index, runs):
        kinds = self.attacks(pair)
        learned = any(kind.trained for kind in kinds)
        played = self._play(pair, index, Stage.SEARCH, 2 * runs if learned else runs)
        training, fresh = (played[:runs], played[runs:]) if learned else (None, played)
        worths = []
        for kind in kinds:
            scores = self.fit(kind, pair, training).score(fresh)
            event = choose_by_labels(
                scores, fresh.left, delta=self.claim.delta, alpha=self.budget.alpha, runs=self.budget.runs
            )
            worths.append(self.promise(event, count(event, scores, fresh.left)))
        return max(worths), played.runs


class PromisingBlackBox(Promising):
    """The same, told nothing of the law."""

    black_box = True


class Game:
    """A learner with its families, and the worth of every pair that a strategy has returned."""

    def __init__(self, name, runs):
        self.learner, self.claim, self.rounds = LEARNERS[name]()
        self.runs, self.black_box = runs, "black box" in name
        alphabet, batch = alphabet_of(self.learner, self.claim), batch_of(self.learner)
        self.options = unlike(
            [*first_round(alphabet, self.rounds, batch), *later(self.learner, alphabet, self.rounds)]
        )
        self.space = PairSpace.of(self.learner, self.claim, self.rounds)
        self.known = {}

    def audit(self, seed, former=False):
        kinds = (PromisingBlackBox, Promising) if former else (BlackBox, Withheld)
        return self._audit(kinds[not self.black_box], seed)

    def _audit(self, kind, seed):
        how = {"learner": self.learner, "claim": self.claim}
        return kind(budget=Budget(self.runs, seed), searched=True, **how)

    def each(self, audit):
        return search.MIN_RUNS if audit._likelihood(self.options[0]) else LEAST_TRAINED

    def worth(self, pair):
        """Return what a perfect attack is expected to certify: computed, or measured on runs of no search."""
        key = pair.key
        if key not in self.known:
            self.known[key] = self._worth(pair)
        return self.known[key]

    def _worth(self, pair):
        try:
            return expected_bound(*sequence_laws(self.learner, pair, cells=CELLS), self.claim.delta, self.runs)
        except NotEnumerableError:
            pass
        audit = self._audit(Withheld, 10**6)
        kind = next((kind for kind in audit.attacks(pair) if kind.exact or kind is ParticleRatio), None)
        if kind is not None:
            played = concatenate(list(audit.play_blocks(pair, 0, Stage.EVIDENCE, blocks(FRESH))))
            scores = audit.fit(kind, pair, None).score(played)
            p, q = (2 * expit(sign * scores) / scores.size for sign in (1, -1))
            return expected_bound(p, q, self.claim.delta, self.runs)
        choice, _ = audit._pilot(pair, 0, FRESH_TRAINED // 4, FRESH_TRAINED // 4)
        played = concatenate(list(audit.play_blocks(pair, 0, Stage.EVIDENCE, blocks(FRESH_TRAINED))))
        return max(0.0, audit.promise(choice.event, count(choice.event, choice.attack.score(played), played.left)))


def climbing(kind):
    """Return the search of `climb` with other proposals."""

    def strategy(game, seed):
        audit = game.audit(seed)
        with mock.patch.object(search, "Proposals", kind):
            how = {"space": game.space, "runs_per_pair": game.each(audit), "seed": seed}
            return search.climb(game.options, audit.trial(), budget(game), **how)

    return strategy


def families(game, seed):
    return search.climb(game.options, game.audit(seed).trial(), budget(game))


def families_before(game, seed):
    return search.climb(game.options, game.audit(seed, former=True).trial(), budget(game))


def random_changes_before(game, seed):
    trial = game.audit(seed, former=True).trial()
    return halve_and_change(game.options, trial, budget(game), RandomChanges(game.learner, game.claim, seed))


def random_changes(game, seed):
    return halve_and_change(
        game.options, game.audit(seed).trial(), budget(game), RandomChanges(game.learner, game.claim, seed)
    )


def budget(game):
    return int(SEARCH * game.runs)


class Uniform(Proposals):
    """Random points: the control."""

    def __init__(self, space, seed):
        super().__init__(space, seed)
        self.random = np.random.default_rng(seed)

    def next(self):
        while True:
            pair = self.space.pair({name: int(self.random.integers(s)) for name, s in self.space.sizes.items()})
            if pair is not None:
                return pair

    def tell(self, worth):
        pass


class Local(Uniform):
    """One to three coordinates of the best point so far are changed, in the same space."""

    best = ({}, -np.inf)

    def know(self, pair, worth):
        if worth > self.best[1]:
            self.best = self.space.point(pair), worth

    def next(self):
        names = list(self.space.sizes)
        while True:
            self.point = dict(self.best[0])
            for name in self.random.choice(
                names, size=min(len(names), int(self.random.integers(1, 4))), replace=False
            ):
                self.point[name] = int(self.random.integers(self.space.sizes[name]))
            pair = self.space.pair(self.point)
            if pair is not None and self.point != self.best[0]:
                return pair

    def tell(self, worth):
        if worth > self.best[1]:
            self.best = self.point, worth


class Cma(Local):
    """CMA-ES over the unit cube, whose cells are the points; it starts at the best family."""

    strategy = None

    def next(self):
        import cma

        if self.strategy is None:
            start = [(self.best[0][name] + 0.5) / size for name, size in self.space.sizes.items()]
            how = {"seed": int(self.random.integers(1, 2**31)), "bounds": [0, 1], "verbose": -9, "tolflatfitness": 999}
            self.strategy = cma.CMAEvolutionStrategy(start, 0.2, how)
            self.asked, self.told = [], []
        while True:
            if len(self.asked) == len(self.told):
                if self.asked:
                    self.strategy.tell(self.asked, self.told)
                self.asked, self.told = self.strategy.ask(), []
            x = self.asked[len(self.told)]
            sizes = self.space.sizes.items()
            pair = self.space.pair(
                {name: min(size - 1, int(v * size)) for v, (name, size) in zip(x, sizes, strict=True)}
            )
            if pair is not None:
                return pair
            self.told.append(1.0)

    def tell(self, worth):
        self.told.append(-worth)


STRATEGIES = {
    "families, former judge": families_before,
    "random changes, former judge": random_changes_before,
    "families": families,
    "random changes": random_changes,
    "random points": climbing(Uniform),
    "local changes": climbing(Local),
    "CMA-ES (cma)": climbing(Cma),
    "TPE (optuna), as adopted": climbing(Proposals),
}
NOTE = (
    "Worth: what a perfect attack is expected to certify on the pair with the planned runs, from exact laws where "
    f"sequences can be enumerated, else from the likelihood ratios of {FRESH} runs of no search; FTPL: what a trained "
    f"attack certifies on {FRESH_TRAINED} such runs. Means over seeds with their standard errors. Equal budgets: a "
    "tenth of the planned runs. Former judge: the bound that the counts of an event would give that was chosen on the "
    "same runs; it was used by former versions, whose random changes are in "
    "benchmarks/power/random_pair_changes.py. The others judge by likelihood ratios where there are any, else by "
    "the confidence of right guesses. Random points and local changes (one to three coordinates of the best) are "
    "proposed in the same space and protocol as CMA-ES and TPE. CPU s: of one search, without the measurement of "
    "worth. Rows are not measured again with every change "
    "of the code."
)


def measure(name, strategy, game, seeds):
    worths, spent, seconds = [], [], 0.0
    for seed in range(seeds):
        began = time.process_time()
        pair, _, runs = STRATEGIES[strategy](game, seed)
        seconds += time.process_time() - began
        worths.append(game.worth(pair))
        spent.append(runs)
    error = float(np.std(worths, ddof=1) / np.sqrt(seeds)) if seeds > 1 else float("nan")
    return {"learner": name, "strategy": strategy, "worth": round(float(np.mean(worths)), 4)} | {
        "s.e.": round(error, 4),
        "least": round(min(worths), 4),
        "runs": round(float(np.mean(spent))),
        "CPU s": round(seconds / seeds, 2),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--runs", type=int, default=200_000, help="planned; the search has a tenth")
    parser.add_argument("--learners", nargs="*", choices=LEARNERS, default=[])
    parser.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=[])
    choices = parser.parse_args()
    wanted = choices.strategies or [name for name in STRATEGIES if "cma" not in name or find_spec("cma")]
    for name in choices.learners or LEARNERS:
        game, rows = Game(name, choices.runs), []
        for strategy in wanted:
            rows.append(measure(name, strategy, game, choices.seeds))
            tables.show(rows)
        if not choices.strategies:
            write(rows, choices)


def write(rows, choices):
    """Write the table, with these rows of a learner in place of those that it had."""
    title = f"The search over pairs: strategies at {choices.runs} planned runs, seeds 0 to {choices.seeds - 1}"
    path = tables.RESULTS / "pairs.json"
    known = json.loads(path.read_text()) if path.exists() else {"title": title, "rows": []}
    kept = [row for row in known["rows"] if known["title"] == title and row["learner"] != rows[0]["learner"]]
    rows = sorted(rows + kept, key=lambda row: list(LEARNERS).index(row["learner"]))
    content = {"title": title, "note": NOTE, "rows": rows}
    path.write_text(json.dumps(content, indent=1) + "\n")
    tables.write_page("pairs", f"# {title}\n\n{tables.table(rows)}\n\n{NOTE}\n")


if __name__ == "__main__":
    main()
