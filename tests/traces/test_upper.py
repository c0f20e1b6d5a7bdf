"""Upper bounds along traces: what papers and exact laws say they are, and that they never lie below an exact value."""

import math
from dataclasses import replace

import numpy as np
import pytest

from overclaim.audit.laws.exact import NotExactError, exact_epsilon
from overclaim.audit.laws.exact_levels import gaussian_mu_of
from overclaim.audit.plans.plan import literature
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.pairs import Pair
from overclaim.audit.spaces.families import first_round
from overclaim.audit.spaces.loss_choices import alphabet_of
from overclaim.audit.traces.branches import branches
from overclaim.audit.traces.causes import cause
from overclaim.audit.traces.costs import Cost
from overclaim.audit.traces.summary import fields_of
from overclaim.audit.traces.upper import tracing
from overclaim.learners import BanditReduction, BatchedLaplace, Exp3, Htinf, Threshold
from overclaim.learners.abilities import batch_of
from overclaim.learners.bandits.exp2 import Exp2
from overclaim.learners.catalogue.entries import lookup
from overclaim.learners.conversions.expert_advice import ExpertAdvice
from overclaim.learners.conversions.reduction import GaussianReduction
from overclaim.learners.planted.planted_learners import _FirstArmBare, _FirstRoundBare, _LateNoise
from overclaim.learners.problems.advice import Advice
from overclaim.learners.problems.losses import Linear
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.measures.approximate import ApproxDP
from overclaim.mechanisms.measures.gaussian_dp import gaussian_epsilon
from overclaim.mechanisms.measures.renyi import ZCDP
from overclaim.mechanisms.noise import Gaussian, Laplace
from overclaim.mechanisms.one_shot.zoo import zoo
from overclaim.mechanisms.view import RELEASE
from overclaim.reports.upper_words import binding, kept_traces, trace_lines
from overclaim.testing import laplace


def upper_of(name, *, pair=None, rounds=None, losses=None, neighbours="replace", surface="actions", seed=0, **own):
    entry = lookup(name)
    changes = {"rounds": rounds, "losses": losses, **own}
    setting = entry.setting(**{key: value for key, value in changes.items() if value is not None})
    claim = entry.claim(setting, neighbours=neighbours, surface=surface)
    learner = entry.build(setting)
    pairs = first_round(alphabet_of(learner, claim), setting.rounds, batch_of(learner))
    return tracing(learner, pair or pairs[0], claim, seed=seed)


@pytest.mark.parametrize(
    ("losses", "neighbours", "rounds", "expected"),
    [
        ("symmetric", "replace", 4, 2.0),
        ("unit", "replace", 4, 1.0),
        ("symmetric", "zero-out", 4, 1.0),
        ("unit", "replace", 3, 2 / math.log2(3)),
    ],
)
def test_ftrl_release(losses, neighbours, rounds, expected):
    traced = upper_of(
        "agarwal-singh/ftrl-experts", losses=losses, neighbours=neighbours, rounds=rounds, surface="release"
    )
    for upper in (traced.pair_upper, traced.claim_upper):
        assert upper.epsilon == pytest.approx(expected, abs=1e-9)
        assert upper.how == "maximised"
    assert traced.upper.scope == "claim"


@pytest.mark.parametrize(("losses", "expected"), [("unit", 2.0), ("symmetric", 4.0)])
def test_the_whole_sequence_of_lemma_3_3(losses, expected):
    traced = upper_of("agarwal-singh/ftrl-experts", losses=losses, rounds=2, arms=1, surface="publication")
    assert traced.claim_upper.epsilon == pytest.approx(expected, abs=1e-9)


@pytest.mark.few(3)
@pytest.mark.parametrize("name", ["reduction-threshold", "reduction-exp2", "reduction-exp2-actions"])
@pytest.mark.parametrize(("losses", "expected"), [("symmetric", 2.0), ("unit", 1.0)])
def test_the_reduction_around_any_learner(name, losses, expected):
    traced = upper_of(f"agarwal-singh/{name}", losses=losses, rounds=4)
    assert traced.claim_upper.epsilon == pytest.approx(expected, abs=1e-9)


@pytest.mark.few(3)
@pytest.mark.parametrize("inner", [Exp3(arms=2, eta=0.3, gamma=0.1), Threshold(arms=2, threshold=0.5), Htinf(arms=2)])
@pytest.mark.parametrize("batch", [1, 2, 3])
def test_the_batched_conversion_around_any_learner(inner, batch):
    learner = BatchedLaplace(inner, epsilon=1.0, batch=batch)
    pair = Pair([[1.0, 1.0], *[[0.0, 0.0]] * 5], [[0.0, 0.0]] * 6)
    traced = tracing(learner, pair, Claim(epsilon=1.0))
    assert traced.pair_upper.epsilon == pytest.approx(1.0, abs=1e-9)
    assert traced.claim_upper.epsilon == pytest.approx(1.0, abs=1e-9)
    assert traced.leak is None


@pytest.mark.parametrize(("rounds", "expected"), [(4, 4 / 3), (8, 1.5), (16, 1.6)])
def test_pftal_release(rounds, expected):
    traced = upper_of("smith-thakurta/pftal", rounds=rounds, arms=1, surface="release")
    assert traced.claim_upper.epsilon == pytest.approx(expected, abs=1e-9)
    assert traced.claim_upper.how == "bounded"
    assert traced.pair_upper.epsilon <= expected


def test_ftpl_is_composed_as_gaussian_dp():
    entry = lookup("agarwal-singh/ftpl-simplex")
    setting = entry.setting(rounds=4, losses="symmetric", delta=0.01)
    learner = entry.build(setting)
    pair = Pair([[1.0, 1.0], *[[0.0, 0.0]] * 3], [[-1.0, -1.0], *[[0.0, 0.0]] * 3])
    mu = math.sqrt(2) * math.sqrt(8) / learner.noise.sigma  # a round reaches two nodes, and moves them by sqrt(8)
    claim = entry.claim(setting, surface="release")
    assert tracing(learner, pair, claim).pair_upper.epsilon == pytest.approx(gaussian_epsilon(mu, 0.01), abs=1e-9)
    at_0 = tracing(learner, pair, Claim(epsilon=1.0, losses="symmetric", surface="release"))
    assert math.isinf(at_0.pair_upper.epsilon)
    assert not at_0.pair_upper.binds


def test_exact_values_of_releases_are_met():
    """The catalogue's rows whose release has an exact law: two computations that share no line agree to 1e-9."""
    compared = 0
    for task in literature(0).tasks:
        prepared = task.prepare()
        claim = prepared.claim
        if prepared.is_mechanism or claim.surface == "actions":
            continue
        learner = prepared.target
        pairs = prepared.pairs or first_round(alphabet_of(learner, claim), prepared.rounds, batch_of(learner))
        try:
            exact = exact_epsilon(learner, pairs[0], view=claim.view, deltas=(claim.delta,))[claim.delta]
        except NotExactError:
            continue
        if task.target.endswith("private-bandit-gaussian"):  # a path has the worse of two directions
            worst = gaussian_epsilon(gaussian_mu_of(learner, pairs[0], claim.view), claim.delta)
            assert exact <= worst
            exact = worst
        upper = tracing(learner, pairs[0], claim, every_pair=False).pair_upper
        # Where losses are composed on a grid its error is added.
        gap = 1e-3 if claim.delta and task.target.endswith("exp4-batched") else 1e-9
        assert exact - 1e-9 <= upper.epsilon <= exact + gap, task.command()
        compared += 1
    assert compared >= 45


def test_mechanisms_of_the_zoo():
    bounds = {}
    for name, specimen in zoo().items():
        traced = [tracing(specimen.build(), DataPair(*pair), Claim(epsilon=1.0)) for pair in specimen.pairs]
        if name == "mechanisms/svt5":  # its queries have no noise
            assert any(one.leak for one in traced)
            continue
        assert not any(one.leak for one in traced), name
        bounds[name.partition("/")[2]] = max(one.pair_upper.epsilon for one in traced)
    for name in ("laplace", "discrete-laplace", "tree-sums", "tree-sums-discrete", "laplace-parallel", "prefix-sum"):
        assert bounds[name] == pytest.approx(1.0, abs=1e-9)
    assert bounds["laplace-half-scale"] == pytest.approx(2.0, abs=1e-9)
    assert bounds["truncated-geometric"] == pytest.approx(math.log(1.5), abs=1e-9)
    assert bounds["rappor"] <= zoo()["mechanisms/rappor"].claimed() + 1e-9
    assert math.isinf(bounds["noisy-max-2"])  # noise on one side bounds no ratio


def test_sampled_paths_bound_nothing():
    class Own(BatchedLaplace):
        """A subclass: what is known of ours is not known of it."""

        def update(self, state, actions, feedback, draws):
            super().update(state, actions, feedback, draws)

    learner = Own(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    traced = tracing(learner, Pair([[1.0, 0.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]]), Claim(epsilon=1.0))
    assert traced.pair_upper.how == "sampled"
    assert not traced.pair_upper.binds
    assert traced.claim_upper is None
    assert any("another may cost more" in line for line in traced.pair_upper.rests_on)


def test_the_last_round_costs_nothing_where_it_is_not_learned_from():
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    traced = tracing(learner, Pair(np.zeros((2, 2)), [[0.0, 0.0], [1.0, 1.0]]), Claim(epsilon=1.0))
    assert traced.pair_upper.epsilon == 0
    assert traced.claim_upper.epsilon == pytest.approx(1.0, abs=1e-9)


def test_a_bound_for_every_pair_is_one_for_this_pair_whose_paths_were_sampled():
    entry = lookup("smith-thakurta/pftal")
    setting = entry.setting(rounds=4, arms=1)
    learner, claim = entry.build(setting), entry.claim(setting, neighbours="zero-out", surface="release")
    pair = first_round(alphabet_of(learner, claim), 4, 1)[0]
    traced = tracing(learner, pair, claim)
    assert (traced.pair_upper.how, traced.claim_upper.how) == ("sampled", "bounded")
    fields = fields_of(traced, claim)
    assert fields["epsilon_upper_pair"] == fields["epsilon_upper"] == traced.claim_upper.epsilon
    concentrated = Claim(measure=ZCDP(1.0), neighbours="zero-out", surface="release")
    assert fields_of(traced, concentrated)["upper"] is None  # the largest of some paths bounds nothing


def test_every_pair_of_gradients_under_noise_of_single_coordinates():
    """Of the gradients that are 1 long in L2, the diagonal one is the longest in L1."""
    entry = lookup("smith-thakurta/pftal")
    setting = entry.setting(rounds=2, arms=4)
    learner = replace(entry.build(setting), noise=Laplace(1.0))
    slopes = [tuple(sign * x for x in (0.5,) * 4) for sign in (1.0, -1.0)]
    claim = entry.claim(setting, neighbours="replace", surface="release")
    nothing = Linear(slope=(0.0,) * 4)
    traced = tracing(learner, Pair(*([Linear(slope=slope), nothing] for slope in slopes)), claim)
    assert traced.pair_upper.how == "maximised"
    assert traced.pair_upper.epsilon >= 4.0
    assert traced.claim_upper.epsilon >= traced.pair_upper.epsilon


def test_every_pair_of_points_with_signs_of_their_own():
    points = np.array([[1.0, 1.0, 0.0, 1.0], [-1.0, 0.0, 1.0, -1.0], [-1.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0, 0.0]])
    learner = BanditReduction(Exp2(actions=points, eta=0.1, gamma=0.5), epsilon=1.0, sensitivity=1.0)
    pair = Pair([np.ones(4), np.zeros(4)], [-np.ones(4), np.zeros(4)])
    traced = tracing(learner, pair, Claim(epsilon=1.0, losses="symmetric"))
    # The point (1, -1, -1, 1) moves by 2 in every coordinate, for losses with its signs: 8 over the largest entry.
    assert traced.claim_upper.epsilon == pytest.approx(8.0)
    assert traced.pair_upper.epsilon == pytest.approx(2.0)


def test_a_difference_without_noise_bounds_nothing_though_no_replay_shows_it():
    """The first answer alone passes where the threshold lies within 1e-4: infinite, and not in 256 runs."""
    traced = tracing(zoo()["mechanisms/svt5"].build(), DataPair([0.0, 0.0], [1e-4, 0.0]), Claim(epsilon=1.0))
    assert traced.leak is None
    assert not traced.pair_upper.binds
    assert any("has noise of scale 0" in line for line in traced.pair_upper.rests_on)


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_a_bound_for_every_pair_of_a_ball_holds_between_its_axes_and_its_diagonal(delta):
    """At a delta the exact composition is largest for two of three coordinates: .697 was said for .741."""
    half = math.sqrt(0.5)
    pair = Pair([[half, half, 0.0], [0.0] * 3], [[-half, -half, 0.0], [0.0] * 3])
    traced = upper_of(
        "agarwal-singh/ftrl-ball", pair=pair, rounds=2, arms=3, epsilon=0.7, delta=delta, surface="release"
    )
    assert traced.claim_upper.epsilon >= traced.pair_upper.epsilon
    assert traced.pair_upper.epsilon >= exact_of(traced, pair, delta) - 1e-3


def exact_of(traced, pair, delta):
    entry = lookup("agarwal-singh/ftrl-ball")
    learner = entry.build(entry.setting(rounds=2, arms=3, epsilon=0.7, delta=delta))
    return exact_epsilon(learner, pair, view=RELEASE, deltas=(delta,))[delta]


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        (BanditReduction(Threshold(arms=2, threshold=1.0), epsilon=1.0, sensitivity=1.0), 2.0),
        (BatchedLaplace(Threshold(arms=2, threshold=1.0), epsilon=1.0, batch=1), 2.0),
        (BanditReduction(Exp3(arms=2, eta=1.0, gamma=0.1), epsilon=1.0, sensitivity=1.0), 2.0),
    ],
)
def test_every_arm_of_advised_learners_is_forced(inner, expected):
    """The experts were taken for the arms: the third arm, which alone differs, was never played."""
    learner = ExpertAdvice(inner, advice=Advice([[0.5, 0.0, 0.5], [0.0, 0.5, 0.5]]))
    pair = Pair([[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]], [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
    upper = tracing(learner, pair, Claim(epsilon=3.0, losses="symmetric")).pair_upper
    assert (upper.epsilon, upper.how) == (pytest.approx(expected), "maximised")


def test_what_is_certified_beyond_a_bound_on_every_pair_contradicts_it():
    record = {"epsilon_lower": 0.73, "epsilon_upper": 0.69, "upper_scope": "claim", "epsilon_upper_pair": 0.75}
    record |= {"upper_how": "maximised", "upper_rests_on": ["real arithmetic"], "verdict": "FALSIFIED"}
    record |= {
        "measure": {"kind": "approximate", "epsilon": 0.7, "delta": 0.1},
        "claimed": {"epsilon": 0.7, "delta": 0.1},
    }
    assert "traced: at most 0.6900, below what is certified" in "\n".join(trace_lines(record))
    assert binding(record) is None  # and no bracket is drawn for it
    assert binding({**record, "epsilon_lower": 0.6}) == 0.69


@pytest.mark.parametrize("how", ["maximised", "sampled"])
def test_a_record_keeps_no_bound_below_what_was_certified(how):
    promise = {"epsilon_lower": 0.73, "claimed": {"epsilon": 0.7, "delta": 0.0}}
    traces = {"epsilon_upper": 0.69, "epsilon_upper_pair": 0.69, "upper": None, "upper_scope": "pair"}
    traces |= {
        "upper_how": how,
        "upper_rests_on": ["real arithmetic"],
        "trace_result": "BOUNDED",
        "within_claim": True,
    }
    kept = kept_traces(promise, traces)
    assert {kept[name] for name in ("epsilon_upper", "epsilon_upper_pair", "upper", "upper_how")} == {None}
    assert (kept["trace_result"], kept["within_claim"]) == ("NOT BOUNDED", False)
    (why, rests) = trace_lines({**promise, **kept})
    assert why.startswith("traced: at most 0.6900")
    assert "below what is certified" in why
    assert "real arithmetic" in rests
    assert kept_traces({**promise, "epsilon_lower": 0.6}, traces) is traces


@pytest.mark.parametrize("seed", [0, 19])
def test_a_closed_bound_counts_though_no_sampled_run_moves(seed):
    """Of 200 points that SCRiBLe may play two see the first coordinate: "at most 0" was said for 2."""
    pair = Pair(*([sign * np.eye(100)[0], np.zeros(100)] for sign in (1.0, -1.0)))
    traced = upper_of("agarwal-singh/reduction-scrible", pair=pair, rounds=2, arms=100, surface="release", seed=seed)
    assert (traced.pair_upper.epsilon, traced.pair_upper.how) == (pytest.approx(2.0), "bounded")
    if seed == 19:  # no replayed path costs anything
        assert "not seen" in cause(traced, Claim(epsilon=1.0, losses="symmetric", surface="release")).text


def test_only_the_last_round_is_said_to_reach_no_call():
    """Of the last round nothing is learned: there 0 is proved, by no sample."""
    pair = Pair(*([np.zeros(100), sign * np.eye(100)[0]] for sign in (1.0, -1.0)))
    game = {"pair": pair, "rounds": 2, "arms": 100}
    assert upper_of("agarwal-singh/reduction-scrible", **game).pair_upper.epsilon == 0
    longer = Pair(*([np.zeros(100), sign * np.eye(100)[0], np.zeros(100)] for sign in (1.0, -1.0)))
    game = {"pair": longer, "rounds": 3, "arms": 100}
    assert upper_of("agarwal-singh/reduction-scrible", **game).pair_upper.epsilon == pytest.approx(2.0)


def test_a_path_that_is_forced_and_leaks_bounds_nothing():
    """The second arm's loss has no noise and is released; it is played with probability e^-30 / 2."""
    inner = BatchedLaplace(Threshold(arms=2, threshold=30.0), epsilon=1.0, batch=1)
    learner = BanditReduction(inner, epsilon=math.inf)
    pair = Pair([[0.0, 0.0], [0.0, 1.0], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])
    traced = tracing(learner, pair, Claim(epsilon=1.0, surface="release"))
    assert traced.leak is None
    assert not traced.pair_upper.binds
    assert traced.claim_upper is None


def test_the_level_of_another_measure_is_that_of_its_worst_path():
    """Both arms cost epsilon 0 at delta .3, so that the level of the first was said: .08 for .27."""
    learner = GaussianReduction(Exp3(arms=2, eta=0.5, gamma=0.5), noise=Gaussian(1.0))
    claim = Claim(measure=ApproxDP(0.0, 0.3))
    pair = Pair([[0.2, 0.7], [0.0, 0.0]], [[0.0, 0.0], [0.0, 0.0]])
    level = fields_of(tracing(learner, pair, claim), claim)["upper"]
    assert level == pytest.approx(math.erf(0.7 / math.sqrt(8)))


@pytest.mark.parametrize("size", [1e-12, 1.0, 1e12])
def test_small_costs_are_no_rounding(size):
    """Normal noise of 1e8 times what it hides is at delta 0 no more private than any: the cost was rounded to 0."""
    none = np.zeros(1)
    assert Cost(none, np.full(1, size), none).epsilon(0.0)[0] == math.inf
    assert Cost(np.full(1, size), none, none).epsilon(0.0)[0] == pytest.approx(size, rel=1e-13)
    together = Cost(np.array([0.1 + 0.2, 0.3]) * size, *np.zeros((2, 2)))
    assert np.unique(together.epsilon(0.0)).size == 1


def test_what_is_certified_beyond_sampled_paths_is_said():
    record = {"epsilon_lower": 3.8, "epsilon_upper": 0.0, "upper_scope": "pair", "epsilon_upper_pair": 0.0}
    record |= {"upper_how": "sampled", "upper_rests_on": ["real arithmetic"], "verdict": "FALSIFIED"}
    record |= {"claimed": {"epsilon": 1.0, "delta": 0.0}}
    assert "at most 0.0000 on the sampled paths, below what is certified: another path" in trace_lines(record)[0]
    assert "other runs may cost more" in trace_lines({**record, "epsilon_lower": 0.0})[0]
    other = {**record, "measure": {"kind": "zcdp", "rho": 0.1}, "lower": 0.2}
    assert "below what is certified" in trace_lines(other)[0]


def test_calls_that_cost_just_the_claim_are_not_its_cause():
    """Three calls of .1 cost .30000000000000004, which is no more than .3."""

    def thrice(data, rng):
        return [laplace(data[0], 10.0, rng) for _ in range(3)]

    claim = Claim(epsilon=0.3)
    why = cause(tracing(thrice, DataPair([1.0], [0.0]), claim), claim)
    assert why.kind == "law"


@pytest.mark.parametrize("kind", [_LateNoise, _FirstArmBare, _FirstRoundBare])
def test_a_subclass_with_an_update_of_its_own_is_only_sampled(kind):
    """Ours are planted with bugs, and were taken for what they inherit from."""
    pair = Pair([[1.0, 1.0], [0.0, 0.0]], [[-1.0, -1.0], [0.0, 0.0]])
    learners = [make(Threshold(arms=2, threshold=0.0), epsilon=1.0) for make in (kind, BanditReduction)]
    assert [branches(learner, pair).how for learner in learners] == ["sampled", "maximised"]
    advised = ExpertAdvice(learners[0], advice=Advice([[0.5, 0.5], [0.0, 1.0]]))
    assert branches(advised, pair).how == "sampled"
