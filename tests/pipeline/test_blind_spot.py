"""Blind spots: what an audit that survives catches on weaker targets, and how often it is wrong about them."""

import contextlib
import math
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace

import pytest
from scipy import stats

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.laws.sequences import COARSE
from overclaim.audit.pipeline import blind_spot_search
from overclaim.audit.pipeline.blind_spot_search import FACTORS, TESTS, blind_spot, true_to
from overclaim.audit.pipeline.falsify import falsify, falsify_mechanism
from overclaim.audit.pipeline.frame import Audit, Choice
from overclaim.audit.pipeline.learner_stages import LearnerAudit
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import Plan
from overclaim.audit.play.pairs import Pair
from overclaim.audit.statistics.events import Counts, Event
from overclaim.audit.verdicts.blind_spot import BlindSpot, words
from overclaim.audit.verdicts.verdict import UnderpoweredError, Verdict
from overclaim.learners.bandits.exp3 import Exp3
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.conversions.batched import BatchedLaplace
from overclaim.learners.probes.threshold import Threshold
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Stage
from overclaim.mechanisms.view import RELEASE
from overclaim.mechanisms.weakening import weakened

PAIR = Pair([[1.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])


def tight(epsilon=1.0):
    """The probe attains epsilon."""
    return BatchedLaplace(Threshold(arms=2, threshold=1.0), epsilon=epsilon, batch=1)


def audit_of(learner, *, runs=20_000, seed=0, alpha=0.01):
    return LearnerAudit(
        learner=learner, claim=Claim(epsilon=1.0), budget=Budget(runs=runs, seed=seed, confidence=1 - alpha)
    )


def found(learner, pair=PAIR, **budget):
    return blind_spot(audit_of(learner, **budget), pair, lambda factor: weakened(learner, factor))


def test_an_attack_that_attains_epsilon_catches_little():
    spot = found(tight(), runs=100_000)
    assert spot.factor == FACTORS[0]
    assert spot.missed is None
    assert not spot.untested
    assert dict(spot.bounds)[1.1] > 1.0
    assert all(bound <= factor for factor, bound in spot.bounds)  # epsilon is exactly the factor; alpha 0.0025 each


@pytest.mark.slow(reason="a saving, not a verdict")
@pytest.mark.parametrize("finished", [1, *(pytest.param(n, marks=pytest.mark.slow) for n in (3, 7))])
def test_what_is_known_of_weaker_targets_is_not_computed_again(finished, monkeypatch, tmp_path):
    """Bounds and exact laws: runs that were killed after a few of them computed all again, and never ended."""
    page = Ledger.begin(tmp_path, Plan(()), resume=False).page(0)
    learner = BatchedLaplace(Exp3(arms=2, eta=0.01, gamma=0.9), epsilon=1.0, batch=1)  # hardly learns
    whole, computed = found(learner), []

    def stopping(real):
        def compute(*about):
            if len(computed) == finished:
                raise KeyboardInterrupt
            computed.append(real.__name__)
            return real(*about)

        return compute

    for name in ("_bound", "_exactly"):
        monkeypatch.setattr(blind_spot_search, name, stopping(getattr(blind_spot_search, name)))
    audit = replace(audit_of(learner), execution=Execution(memory=page))
    again, attempts = None, 0
    while again is None and attempts < 300:
        computed.clear()
        attempts += 1
        with contextlib.suppress(KeyboardInterrupt):
            again = blind_spot(audit, PAIR, lambda factor: weakened(learner, factor))
    page.close()
    assert attempts > 1
    assert again == whole


def test_few_runs_catch_less_and_what_was_missed_is_said():
    spot = found(tight(), runs=4_000)
    assert spot.factor is not None
    assert FACTORS[0] < spot.factor <= 2
    assert spot.missed == FACTORS[FACTORS.index(spot.factor) - 1]
    assert f"with noise divided by {spot.factor:g} the claim is falsified, with {spot.missed:g} not" in str(spot)
    assert len(spot.bounds) <= TESTS


def test_a_pair_on_which_nothing_shows_is_untested_though_the_claim_survives():
    """Round 2 of 2 reaches no action: whatever the noise, nothing can be seen."""
    blind = Pair([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    spot = found(tight(), pair=blind)
    assert (spot.factor, spot.untested) == (None, True)
    # The standard pairs are looked at too: there the claim is false as soon as the noise is weaker.
    assert spot.true_to == pytest.approx(1.0, abs=0.01)
    result = falsify(tight(), Claim(epsilon=1.0), pair=blind, runs=4_000, weaken=True)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, "hidden by the exact law")
    with pytest.raises(UnderpoweredError, match="not even with noise divided by 100 is the claim falsified"):
        result.require_survived()


def test_a_claim_that_exact_laws_refute_on_a_standard_pair_is_said_to_be_false():
    """Half the noise that the claim needs, audited on a pair that shows nothing: it survives, and is false."""
    blind = Pair([[0.0, 0.0], [1.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]])
    spot = found(tight(2.0), pair=blind)
    assert (spot.factor, spot.true_to, spot.false_at) == (None, None, 1.0)
    assert str(spot).endswith("by exact laws it is false as it is, on this pair or a standard one")


def test_slack_is_no_blindness():
    """Ten times the noise that the claim needs: what counts is where the claim becomes false."""
    spot = found(tight(0.1), runs=40_000)
    assert spot.factor == 30.0
    assert spot.true_to == pytest.approx(10.0, rel=0.03)
    assert spot.true_to <= 10.0
    assert not spot.untested
    assert replace(spot, true_to=None).untested
    assert replace(spot, factor=100.0).untested


def test_where_exact_laws_see_nothing_that_is_said():
    """A batch as long as the game: no action depends on any loss."""
    learner = BatchedLaplace(Exp3(arms=2, eta=1.0, gamma=0.1), epsilon=1.0, batch=2)
    spot = found(learner)
    assert (spot.factor, spot.true_to, spot.untested) == (None, 100.0, True)
    assert str(spot).endswith("by exact laws it is true there on the standard pairs: there is nothing to see")


@dataclass(frozen=True, kw_only=True)
class Response(Audit):
    """Randomised response at the claimed epsilon, guessed perfectly: the claim is true of it, and tight."""

    def of(self, target):
        return self

    def anytime(self):
        return self

    def choose(self, options):
        return Choice(options[0], SimpleNamespace(name="perfect"), Event(-1.0, 1.0, "guess"), 0), 0

    def counter(self, choice):
        draws = Draws(self.budget.seed, Stage.CERTIFY)

        def count(block):
            right = int(draws.generator.binomial(block[1], math.e / (1 + math.e)))
            return Counts(runs=block[1], runs_left=block[1], left_upper=right, left_lower=block[1] - right)

        return count


def test_true_targets_are_called_caught_no_more_often_than_alpha():
    """Every catch is false.

    400 seeds at alpha 0.2: more than 127 catches have probability 1e-6 at that rate; with alpha for each of the four
    tests there would be near 400 (1 - 0.8^4) = 236.
    """
    seeds, alpha = 400, 0.2
    wrong = 0
    for seed in range(seeds):
        audit = Response(claim=Claim(epsilon=1.0), budget=Budget(runs=2_000, seed=seed, confidence=1 - alpha))
        wrong += blind_spot(audit, None, lambda factor: None).factor is not None
    assert stats.binom.sf(wrong - 1, seeds, alpha) > 1e-6
    assert wrong > 40  # the test could have seen more


def test_tests_have_a_share_of_alpha_and_runs_of_their_own(monkeypatch):
    seen = []

    def spy(audit, options):
        seen.append(audit)
        return original(audit, options)

    original = blind_spot_search.all_runs
    monkeypatch.setattr(blind_spot_search, "all_runs", spy)
    audit = audit_of(tight(), seed=5)
    spot = blind_spot(audit, PAIR, lambda factor: weakened(tight(), factor))
    assert [one.budget.alpha for one in seen] == [audit.budget.alpha / TESTS] * len(seen)
    assert len({one.budget.seed for one in seen} | {audit.budget.seed}) == len(seen) + 1
    assert seen[0].learner.epsilon == 3.0
    assert {one.budget.runs for one in seen} == {spot.runs} == {10_000}


class Memory:
    def __init__(self):
        self.kept, self.stages = {}, {}

    def once(self, stage, compute):
        if stage not in self.stages:
            self.stages[stage] = compute()
        return self.stages[stage]

    def recall(self, stage):
        return {block: counts for (name, block), counts in self.kept.items() if name == stage}

    def keep(self, stage, block, counts):
        assert (stage, block) not in self.kept
        self.kept[stage, block] = counts


def test_blocks_of_weaker_targets_are_kept_apart():
    memory = Memory()
    options = {"pair": PAIR, "runs": 20_000, "memory": memory, "weaken": True}
    first = falsify(tight(), Claim(epsilon=1.0), **options)
    kept = dict(memory.kept)
    assert {name.partition("/")[0] for name, _ in kept} >= {"certify", "weaker 3"}
    assert falsify(tight(), Claim(epsilon=1.0), **options).blind_spot == first.blind_spot
    assert memory.kept == kept
    plain = falsify(tight(), Claim(epsilon=1.0), pair=PAIR, runs=20_000)
    assert plain.blind_spot is None
    assert plain.certificate == first.certificate


class Mine:
    feedback = "bandit"

    def __init__(self, arms, rounds, rng, epsilon=1.0, scale=1.0):
        self.rng, self.noise, self.arm = rng, scale / epsilon, 0

    def act(self):
        return self.arm

    def update(self, feedback):
        self.arm = int(feedback + self.rng.laplace(0, self.noise) > 1)


@pytest.mark.few("1/scale")
@pytest.mark.parametrize("name", ["epsilon", "1/scale"])
def test_a_plain_class_is_built_anew_with_less_noise(name):
    result = falsify(Mine, Claim(epsilon=1.0), pair=PAIR, runs=2_000, weaken=name)
    assert result.verdict is Verdict.SURVIVED
    spot = result.blind_spot
    assert spot.parameter == name
    assert not spot.untested
    assert f"with {name} times {spot.factor:g} the claim is falsified" in str(result)


@pytest.mark.parametrize(("name", "other"), [("scale", "1/scale"), ("1/epsilon", "epsilon")])
def test_the_wrong_direction_catches_nothing_and_is_not_said_to_be_less_noise(name, other):
    """Of a scale that is multiplied it was said that three times too little noise would not have been caught."""
    result = falsify(Mine, Claim(epsilon=1.0), pair=PAIR, runs=1_000, weaken=name)
    assert result.blind_spot.untested
    assert f"the claim was not falsified with {name} times 3" in str(result)
    assert f"or more of it is more noise: then name {other}" in str(result)
    assert "too little noise" not in str(result)


@dataclass(frozen=True)
class Noisy:
    scale: float = 1.0

    def __call__(self, data, rng):
        return data + rng.laplace(scale=self.scale)


def noisy(data, rng, epsilon=1.0):
    return data + rng.laplace(scale=1 / epsilon)


@pytest.mark.parametrize(("mechanism", "name"), [(Noisy(), "1/scale"), (noisy, "epsilon")])
def test_a_mechanism_has_a_blind_spot(mechanism, name):
    options = {"left": 0, "right": 1, "runs": 8_000, "weaken": name}
    spot = falsify_mechanism(mechanism, Claim(epsilon=1.0), **options).blind_spot
    assert spot.factor <= 2
    assert spot.true_to is None


def test_what_cannot_be_weakened_is_refused_before_the_audit():
    claim = Claim(epsilon=1.0)
    with pytest.raises(ValueError, match="Mine has no parameter 'sigma'"):
        falsify(Mine, claim, rounds=2, weaken="sigma")
    for given in ("arms", "rounds", "rng"):  # it was asked for a value, and --set said that there is no such parameter
        with pytest.raises(ValueError, match=f"Mine has no parameter '{given}'\nhint: it has epsilon, scale"):
            falsify(Mine, claim, rounds=2, weaken=given)
    with pytest.raises(ValueError, match="noisy has no parameter 'sigma'"):
        falsify_mechanism(noisy, claim, left=0, right=1, weaken="sigma")
    with pytest.raises(ValueError, match=r"weaken must be NAME, .*got ''"):
        falsify(Mine, claim, rounds=2, weaken="")
    with pytest.raises(ValueError, match=r"weaken must be NAME, .*got ''"):
        falsify_mechanism(noisy, claim, left=0, right=1, weaken="")


def test_what_is_falsified_has_no_blind_spot():
    assert falsify(tight(2.0), Claim(epsilon=1.0), pair=PAIR, runs=20_000, weaken=True).blind_spot is None


def test_actions_without_an_exact_law_are_at_least_as_private_as_the_release():
    """The grid knows no three arms. The release's epsilon is 1 with a quarter of the noise; 3 is the factor before."""
    learner = BatchedLaplace(Threshold(arms=3, threshold=1.0), epsilon=0.25, batch=1)
    pair = Pair([[1.0] * 3] * 2, [[0.0] * 3, [1.0] * 3])
    with pytest.raises(NotExactError):
        exact_epsilon(learner, pair, deltas=(0.0,))
    assert exact_epsilon(learner, pair, view=RELEASE, deltas=(0.0,))[0.0] == pytest.approx(0.25)
    # Beyond it the release may show more than 1, and says nothing of the actions.
    assert true_to(Claim(epsilon=1.0), pair, partial(weakened, learner)) == (3.0, None)
    on_release = Claim(epsilon=1.0, surface="release")
    true, false = true_to(on_release, pair, partial(weakened, learner))
    assert true <= 4.0 * 1.001 < false * 1.001
    assert false - true < 0.1


@pytest.mark.slow(reason="exact laws on several grids")
def test_a_law_whose_grid_is_too_coarse_says_nothing():
    """Without noise this learner's epsilon is 0.72, but on a grid its law does not converge at a hundredth."""
    entry = lookup("agarwal-singh/reduction-exp2")
    learner = entry.build(entry.setting(rounds=8))
    pair = Pair([[1.0, 1.0]] * 8, [[-1.0, -1.0], *[[1.0, 1.0]] * 7])
    assert exact_epsilon(weakened(learner, 100.0), pair, deltas=(0.0,), cells=COARSE)[0.0] < 1.0
    with pytest.raises(NotExactError, match="the grid is too coarse"):
        exact_epsilon(weakened(learner, 100.0), pair, deltas=(0.0,))
    assert true_to(Claim(epsilon=1.0), pair, partial(weakened, learner)) == (10.0, None)


def test_words_of_a_short_record():
    assert words({"factor": 1.5}) == "with noise divided by 1.5 the claim is falsified"
    assert words({"factor": None, "tried": 100}) == "not even with noise divided by 100 is the claim falsified"
    spot = BlindSpot(2.0, ((1.5, 0.9), (2.0, 1.2)), 500, 0.0025, "epsilon")
    assert words(spot.to_json()) == "with epsilon times 2 the claim is falsified, with 1.5 not, in 500 runs each"
    assert spot.to_json()["tried"] == 2.0
    assert math.isclose(spot.to_json()["alpha"], 0.0025)


def test_a_claim_that_an_exact_law_refutes_on_the_audited_pair_is_untested():
    """The runs certify less than the exact value, 1, and than the claim: it is known to be false, and passed."""
    result = falsify(tight(), Claim(epsilon=0.99), rounds=2, runs=4_000, seed=8703)
    assert (result.verdict, result.reason) == (Verdict.UNDERPOWERED, "low power")
    with pytest.raises(UnderpoweredError, match="the exact value on this pair is beyond the claim"):
        result.require_survived()
    assert not falsify(tight(), Claim(epsilon=1.0), rounds=2, runs=4_000, seed=8703).untested
    spotted = falsify(tight(), Claim(epsilon=0.99), rounds=2, runs=4_000, seed=8703, weaken=True)
    assert not spotted.blind_spot.untested  # the audit sees much, and not that
    with pytest.raises(UnderpoweredError, match="the exact value on this pair is beyond the claim"):
        spotted.require_survived()
