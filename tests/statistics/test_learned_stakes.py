"""Stakes learned from few runs: the odds of noise against a slow twin, and how much of the attainable they win."""

import math

import numpy as np
import pytest
from scipy import special, stats

from overclaim import Claim, Pair
from overclaim.audit.attacks.learner_attacks import SequenceTable
from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.learner_stages import AnytimeLearner, LearnerAudit
from overclaim.audit.play.transcripts import concatenate
from overclaim.audit.statistics import event_choice, sequential
from overclaim.audit.statistics.graded_bets import GRADES, SIZES, GradedBets, Stakes
from overclaim.audit.statistics.odds import models
from overclaim.audit.statistics.odds.models import NOISES, noise_odds
from overclaim.audit.statistics.sequential import choose_stakes
from overclaim.learners.scalar import as_learner

LAPLACE = stats.laplace(1, 1), stats.laplace(0, 1)
SCALED = stats.norm(0, 2), stats.norm(0, 1)


def drawn(laws, runs, rng):
    left = rng.random(runs) < 0.5
    return np.where(left, *(law.rvs(runs, random_state=rng) for law in laws)), left


def slow_twin(worlds, at, locations, scales, density, shared):
    """The odds of a new run by the definition: a sum over both worlds' parameters, each for the way around it."""
    likelihood = {}
    for i, world in enumerate(worlds):
        for j, location in enumerate(locations):
            for k, scale in enumerate(scales):
                likelihood[i, j, k] = float(np.sum(density((world - location) / scale) - math.log(scale)))
    of_location, of_log_scale = np.gradient(locations), np.gradient(np.log(scales))
    laws = np.zeros(2)
    for j in range(len(locations)):
        for k in range(len(scales)):
            for m in range(len(locations)) if shared != "location" else [j]:
                for n in range(len(scales)) if shared != "scale" else [k]:
                    weight = math.exp(likelihood[0, j, k] + likelihood[1, m, n])
                    weight *= of_location[j] * of_log_scale[k]
                    weight *= (of_location[m] if shared != "location" else 1) * (
                        of_log_scale[n] if shared != "scale" else 1
                    )
                    for world, (location, scale) in enumerate(((locations[j], scales[k]), (locations[m], scales[n]))):
                        laws[world] += weight * math.exp(density((at - location) / scale)) / scale
    return math.log(laws[0] / laws[1])


@pytest.mark.parametrize("shared", ["scale", "location", None])
@pytest.mark.parametrize("normal", [False, True])
def test_the_odds_of_noise_are_their_definition(normal, shared):
    rng = np.random.default_rng(2)
    worlds = [np.sort(rng.normal(0.5, 1, 5)), np.sort(rng.normal(0, 2, 6))]
    grids = [np.array([-1.0, -0.3, 0.0, 0.8]), np.log([0.5, 0.9, 2.5])]
    at = np.array([-4.0, 0.1, 3.0])
    odds = models._of_noise(worlds, at, grids, normal=normal)[["scale", "location", None].index(shared)]
    scales = np.exp(grids[1]) * (math.sqrt(math.pi / 2) if normal else 1.0)
    density = (lambda z: -(z**2) / 2) if normal else (lambda z: -np.abs(z))
    expected = [slow_twin(worlds, x, grids[0], scales, density, shared) for x in at]
    assert odds == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(("laws", "model"), [(LAPLACE, 0), (SCALED, 4)])
def test_the_odds_of_noise_are_the_laws_after_many_runs(laws, model):
    """At this seed, within 0.06 nats; the models are Laplace's and normal noise: location, scale, both differ."""
    x, left = drawn(laws, 20_000, np.random.default_rng(0))
    at = np.linspace(-2, 3, 21)
    odds = noise_odds(x, left, at)
    assert odds.shape == (NOISES, 21)
    truth = laws[0].logpdf(at) - laws[1].logpdf(at)
    assert np.abs(odds[model] - truth).max() < 0.06
    assert np.abs(odds[5 - model] - truth).max() > 0.2  # the other family, and the other difference


def test_the_odds_of_noise_know_no_unit_and_no_side():
    x, left = drawn(SCALED, 40, np.random.default_rng(5))
    at = np.linspace(-3, 3, 13)
    odds = noise_odds(x, left, at)
    assert noise_odds(1e-9 * x + 3, left, 1e-9 * at + 3) == pytest.approx(odds, abs=1e-4)
    assert noise_odds(1e12 * x, left, 1e12 * at) == pytest.approx(odds, abs=2e-6)
    assert noise_odds(-x, left, -at) == pytest.approx(odds, abs=2e-6)
    assert noise_odds(x, ~left, at) == pytest.approx(-odds, abs=2e-6)


@pytest.mark.parametrize(
    "scores",
    [np.zeros(8), np.append(np.arange(7.0), math.inf), np.append(np.arange(7.0), -1e200), 1e-200 * np.arange(8)],
)
def test_scores_that_are_no_noise_have_even_odds(scores):
    left = np.arange(8) % 2 == 0
    assert not noise_odds(scores, left, np.zeros(3)).any()
    assert not noise_odds(np.arange(8.0), np.ones(8, dtype=bool), np.zeros(3)).any()


def growth(stakes, laws, epsilon):
    """The mean log wealth that these stakes win in a run, by equally likely outcomes of either world."""
    places = (np.arange(2000) + 0.5) / 2000
    mean = 0.0
    for law, left in zip(laws, (True, False), strict=True):
        named = stakes.of(law.ppf(places)).astype(int)
        size = np.where(named == 0, 0.0, SIZES[np.abs(named) - 1])
        right = (named > 0) == left
        mean += np.mean(np.log1p(0.96 * size * np.where(right, math.exp(-epsilon), -1.0))) / 2
    return float(mean)


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("laws", "epsilon", "runs", "share"),
    [(SCALED, 0.1, 60, 0.72), (LAPLACE, 0.5, 200, 0.5), (LAPLACE, 0.8, 1500, 0.7)],
)
def test_stakes_from_few_runs_win_much_of_what_is_attainable(laws, epsilon, runs, share):
    """Means of 24 samples: 0.79, 0.66, 0.88 of it at these seeds; by polynomials and cells alone 0.65, 0.38, 0.38."""
    of_law = Stakes.of_log_odds(epsilon)

    class ByLaw:
        def of(self, x):
            return of_law.of(laws[0].logpdf(x) - laws[1].logpdf(x))

    rng, wins = np.random.default_rng(11), []
    for _ in range(24):
        x, left = drawn(laws, runs, rng)
        wins.append(growth(choose_stakes(x, left, epsilon=epsilon, delta=0.0, log_odds=False)[0], laws, epsilon))
    assert np.mean(wins) >= share * growth(ByLaw(), laws, epsilon)


class Repeats:
    """Plays what the first round's loss told it, mostly."""

    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.rng, self.arm = rng, 0

    def act(self):
        return self.arm if self.rng.random() < 0.9 else 1 - self.arm

    def update(self, losses):
        self.arm = int(losses[0] > 0.5)


def test_all_runs_so_far_teach_a_learners_attack_and_its_stakes(monkeypatch):
    """Each is scored by an attack that was fitted on the other half of them, and the winner is fitted on all."""

    pair = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    game = AnytimeLearner(
        LearnerAudit(learner=as_learner(Repeats, arms=2, rounds=2), claim=Claim(epsilon=1.0), budget=Budget(runs=500))
    )
    monkeypatch.setattr(LearnerAudit, "attacks", lambda audit, pair: [SequenceTable])
    past = list(game.play(pair, 0, [(0, 12), (1, 29)]))
    together, staked, fitted = concatenate(past), [], []

    def choosing(scores, left, **claim):
        staked.append((scores, left))
        return choose_stakes(scores, left, **claim)

    def fitting(audit, kind, pair, train):
        fitted.append(train.runs)
        return kind.fit(audit.learner, pair, train)

    monkeypatch.setattr(sequential, "choose_stakes", choosing)
    monkeypatch.setattr(LearnerAudit, "fit", fitting)
    choice = game.choose(pair, 0, past)
    ((scores, left),) = staked
    first, second = together[:20], together[20:]
    expected = [
        SequenceTable(game.audit.learner, one).score(other) for one, other in ((second, first), (first, second))
    ]
    assert np.array_equal(scores, np.concatenate(expected))
    assert np.array_equal(left, together.left)
    assert sorted(fitted) == [20, 21, 41]
    assert np.array_equal(choice.attack.table, SequenceTable(game.audit.learner, together).table)


WHOLE = np.array([0.0, 0.0, 1.0, 3.0, 3.0, 3.0, 4.0, 7.0, 7.0, 10.0])
LABELS = np.array([True, False, True, True, False, True, False, False, True, False])


def odds_of(at, scores, left, *, several=False, log_odds=False):
    edges, odds = sequential._model_odds(scores, left, several=several, log_odds=log_odds)
    assert odds.shape == (1 + NOISES + several, edges.size + 1)
    return odds[:, np.searchsorted(edges, at, side="right")]


def test_a_polynomial_says_of_each_cell_what_it_says_of_its_runs():
    """A cell reaches from a score up to the next; beyond the scores it is the first one, and the last."""
    values = np.unique(WHOLE)
    counts = [[int(np.sum((value == WHOLE) & here)) for value in values] for here in (LABELS, ~LABELS)]
    expected = models.polynomial_odds(*np.array(counts))
    for at, cells in ((values, slice(None)), ([0.9, 3.9, 9.9], [0, 2, 4]), ([-99.0, -0.6, 10.4, 99.0], [0, 0, 5, 5])):
        assert np.array_equal(odds_of(at, WHOLE, LABELS)[0], expected[cells])
    assert np.ptp(expected) > 0.1


@pytest.mark.parametrize("unit", [1.0, 2.0**-9])
def test_noise_says_of_each_cell_what_it_says_of_its_middle(unit):
    """Cells end at the scores, and beyond them at these shares of their range; the outermost are as at their ends."""
    shares = np.array([0.05, 0.1, 0.2, 0.4, 0.8, 1.6])
    ends = np.concatenate([-10 * shares[::-1], [1.0, 3.0, 4.0, 7.0, 10.0], 10 + 10 * shares])
    middles = np.concatenate([ends[:1], (ends[1:] + ends[:-1]) / 2, ends[-1:]])
    odds = odds_of(unit * np.array([ends[0] - 1, *middles[1:-1], ends[-1] + 1]), unit * WHOLE, LABELS)[1:]
    assert odds == pytest.approx(noise_odds(WHOLE, LABELS, middles), abs=1e-4)  # 20 bits of the range are kept
    assert np.array_equal(odds_of(unit * (ends + 0.01), unit * WHOLE, LABELS)[1:], odds[:, 1:])
    assert np.array_equal(odds_of(unit * (ends - 0.01), unit * WHOLE, LABELS)[1:], odds[:, :-1])
    assert (np.ptp(odds, axis=1) > 0.1).all()


@pytest.mark.parametrize("log_odds", [False, True])
@pytest.mark.parametrize("left", [LABELS, WHOLE == 4, WHOLE != 4, np.ones(10, dtype=bool), np.zeros(10, dtype=bool)])
def test_from_many_runs_on_cells_are_a_model_too(left, log_odds):
    """The logarithms of their smoothed rates in either world; what is certain, or never happens, is as it is said."""
    _, *cells = event_choice.cells_of(WHOLE, left, log_odds=log_odds)
    expected = []
    for in_left, in_right in np.transpose(cells)[1:]:
        rates = in_left / max(1, left.sum()), in_right / max(1, (~left).sum())
        known = math.log(rates[0] / rates[1]) if all(rates) else 20.0 if rates[0] else -20.0 if rates[1] else 0.0
        expected.append(known)
    odds = odds_of(np.unique(WHOLE), WHOLE, left, several=True, log_odds=log_odds)
    assert odds[-1] == pytest.approx(expected, rel=1e-12)
    assert np.array_equal(odds[:-1], odds_of(np.unique(WHOLE), WHOLE, left, log_odds=log_odds))


def test_models_of_scores_that_are_none_equal_or_too_far_apart():
    """Nothing is said beyond such scores, and no noise makes them."""
    nothing = odds_of([-1.0, 0.0, 1.0], np.zeros(0), np.zeros(0, dtype=bool), several=True)
    assert not nothing.any()
    infinite = np.where(WHOLE > 5, math.inf, WHOLE), np.where(WHOLE < 2, -math.inf, WHOLE), np.full(10, math.inf)
    for scores in (np.zeros(10), *infinite, np.where(WHOLE > 5, 1.7e308, -1.7e308)):
        edges, odds = sequential._model_odds(scores, LABELS, several=True, log_odds=False)
        assert np.array_equal(edges, np.unique(scores)[1:])
        assert not odds[1:-1].any()
        assert np.isfinite(odds).all()
    assert np.isfinite(odds_of([1.6e308], np.repeat([1.5e308, 1.7e308], 5), LABELS)).all()


@pytest.mark.parametrize(("runs", "delta", "log_odds"), [(99, 0.0, False), (100, 0.01, True), (23, 0.2, False)])
def test_stakes_are_a_mixture_of_models_by_what_they_made_of_other_runs(runs, delta, log_odds):
    """Its slow twin: each of five folds' labels are told by models of the others; from 100 runs on cells are one."""
    rng, epsilon = np.random.default_rng(0), 0.1
    scores = rng.integers(-2, 3, runs).astype(float)
    # Cells know this better, and are not trusted alone; scores that say log odds are in the right order, too.
    left = rng.random(runs) < special.expit(np.where(scores % 2 == 0, 1.0, -1.0) + scores * log_odds)
    scores[rng.random(runs) < 0.15] = math.nan
    known = ~np.isnan(scores)
    taught = []
    for fold in [*range(5), None]:
        here = np.array([bool(known[i]) and i % 5 != fold for i in range(runs)])
        taught.append(sequential._model_odds(scores[here], left[here], several=runs >= 100, log_odds=log_odds))
    trust = np.zeros(len(taught[0][1]))
    for i in np.flatnonzero(known):
        edges, odds = taught[i % 5]
        told = odds[:, sum(edge <= scores[i] for edge in edges)]
        trust -= np.log1p(np.exp(-told if left[i] else told))
    weights = np.exp(trust - trust.max()) / np.exp(trust - trust.max()).sum()
    assert weights.max() < 0.9
    assert weights[-1] > 0.05
    staked = []
    for edges, odds in taught:
        of_left = [sum(w / (1 + math.exp(-one)) for w, one in zip(weights, cell, strict=True)) for cell in odds.T]
        staked.append(Stakes.of_cells(edges, [math.log(p / (1 - p)) for p in of_left], epsilon))
    tally = np.zeros((2, GRADES), dtype=int)
    for i in np.flatnonzero(known):
        named = int(staked[i % 5].of(scores[i]))
        if named:
            tally[int((named > 0) != left[i]), abs(named) - 1] += 1
    stakes, gain = choose_stakes(scores, left, epsilon=epsilon, delta=delta, log_odds=log_odds)
    assert stakes == staked[-1]
    assert gain == pytest.approx(float(GradedBets(epsilon, delta).log_wealth(*tally, runs, epsilon)), abs=1e-6)
    assert tally.sum() > 5


def test_no_odds_hang_on_the_last_bits_of_a_sum(monkeypatch):
    """Sums that differ by some 1e-14 of themselves, as those of processors do, say the same odds to the last bit."""
    rng, by_weights, distances = np.random.default_rng(21), models._by_weights, models._distances

    def shaken(numbers):
        return numbers * (1 + 1e-14 * rng.normal(size=np.shape(numbers)))

    samples = [drawn(LAPLACE, runs, rng) for runs in (12, 30, 75, 130, 300)]
    told = [sequential._model_odds(x, left, several=True, log_odds=False)[1] for x, left in samples]
    trust = rng.normal(-50, 3, len(told[0]))
    mixed = [sequential._mixed(odds, trust) for odds in told]
    monkeypatch.setattr(models, "_by_weights", lambda *args: tuple(shaken(each) for each in by_weights(*args)))
    monkeypatch.setattr(models, "_distances", lambda *args, **how: shaken(distances(*args, **how)))
    for (x, left), before, together in zip(samples, told, mixed, strict=True):
        after = sequential._model_odds(x, left, several=True, log_odds=False)[1]
        assert np.array_equal(after, before)
        assert np.array_equal(sequential._mixed(shaken(after), shaken(trust)), together)
        assert np.array_equal(together, np.round(together, 6))
