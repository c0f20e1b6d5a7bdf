"""The conformance suite on every learner, and on learners with one bug each, which it must name."""

import random
from collections import deque
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from overclaim import Claim, falsify
from overclaim.audit.assumptions.conformance import Conformance, check_fresh, check_learner
from overclaim.audit.play.pairs import Pair
from overclaim.learners import BanditReduction, BatchedLaplace, Exp3, Ftrl, LearnerError, MiniBatch, Threshold
from overclaim.learners.catalogue.entries import entries
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.scalar import Scalar, as_learner
from overclaim.mechanisms.noise import Laplace

EXP3 = Exp3(arms=3, eta=0.5, gamma=0.1)
SOUND = [
    EXP3,
    Threshold(arms=2, threshold=0.5),
    BatchedLaplace(inner=EXP3, epsilon=1.0, batch=3),
    BatchedLaplace(inner=EXP3, epsilon=1.0, batch=6),
    MiniBatch(inner=EXP3, batch=2),
    BanditReduction(inner=EXP3, epsilon=1.0),
    Ftrl(domain=EntropySimplex(3), rounds=64, eta=0.5, noise=Laplace(2.0)),
]
PAIR = Pair([[0.2, 0.7]] * 8, [[0.9, 0.1]] + [[0.2, 0.7]] * 7)
STATE = "keeps state between runs, or draws from elsewhere"
SEED = "draws from a generator with a fixed seed"
INTERACT = "interact"
GROWS = "grows with the rounds"


class Plain:
    """Follow the leader with a random tie-break and a random step: sound."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng = rng
        self.losses = [0.0] * arms

    def act(self):
        self.arm = int(np.argmin([loss + 0.3 * self.rng.random() for loss in self.losses]))
        return self.arm

    def update(self, loss):
        self.losses[self.arm] += loss


def bug(**methods):
    """Return `Plain` with some methods or attributes replaced."""
    return type("Buggy", (Plain,), methods)


@pytest.mark.parametrize("learner", SOUND, ids=lambda learner: type(learner).__name__)
def test_sound_learners_conform(learner):
    result = check_learner(learner, rounds=64)
    assert isinstance(result, Conformance)
    assert "fresh state" in result.checked
    assert str(result).startswith(f"{type(learner).__name__}: no breach found in arms and points, fresh state")


def test_every_entry_of_the_catalogue_is_fresh():
    for entry in entries().values():
        if entry.losses != "lipschitz":  # those play convex losses
            setting = entry.setting(rounds=8)
            learner = entry.build(setting)
            left = np.full((8, learner.arms), 0.5) * (entry.losses in ("unit", "symmetric"))
            right = left.copy()
            right[0, 0] = 1.0
            check_fresh(learner, Pair(left, right), 0)


def test_a_sound_plain_class_conforms():
    result = check_learner(Plain)
    assert result.checked == ("arms and points", "fresh state", "no interaction", "bounded state")
    assert result.skipped == ("no noise at epsilon = inf", "abilities", "twin")
    assert "does not apply: no noise" in str(result)


def leaky_update(self, loss):
    type(self).total += loss
    self.losses[self.arm] += loss + type(self).total % 0.3


def counting_start(self, arms, rounds, rng):
    type(self).made += 1
    Plain.__init__(self, arms, rounds, rng)
    self.losses[0] += type(self).made % 7 / 10


def default_list_start(self, arms, rounds, rng, losses=[0.0, 0.0]):  # noqa: B006  the planted bug
    self.rng, self.losses = rng, losses


def resetting_start(self, arms, rounds, rng):
    Plain.__init__(self, arms, rounds, rng)
    type(self).pool = [0.0, 0.0]


def pooling_update(self, loss):
    self.pool[self.arm] += loss
    self.losses = self.pool


def global_numpy(self):
    self.arm = int(np.random.random() < 0.5)
    return self.arm


def global_random(self):
    self.arm = random.randrange(2)
    return self.arm


class OneNoise:
    """Bug: one draw of noise serves all runs of a block, so that a block says as much as one run."""

    feedback, arms, points = "full", 2, False

    def start(self, runs, draws):
        return np.zeros(runs)

    def act(self, state, draws):
        noise = Laplace(1.0).sample((1,), draws)
        return state + noise[None] if self.points else (state + noise > 0.5).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state += np.broadcast_to(feedback, (2, state.size))[0]


class OneNoiseAndMore(OneNoise):
    """Bug: beside noise of every run's own there is a draw that all share."""

    def act(self, state, draws):
        return (state + Laplace(1.0).sample((1,), draws) + Laplace(1.0).sample(state.shape, draws) > 0.5).astype(
            np.intp
        )


class OnePoint(OneNoise):
    points = True


class NoiseOfTwo(OneNoise):
    """Bug: every draw serves two runs, next to each other, half a block apart or as far from its ends; or, negated."""

    def __init__(self, spread, sign=1, step=1):
        self.spread, self.sign, self.step = spread, sign, step

    def act(self, state, draws):
        half = Laplace(1.0).sample(((state.size + 1) // 2,), draws)
        both = np.stack([half, self.sign * half[:: self.step]], axis=self.spread).ravel()[: state.size]
        return (state + both > 0.5).astype(np.intp)


class Pool(OneNoise):
    """Bug: a pool of noise serves a block of runs, again and again where it is larger."""

    def __init__(self, draws):
        self.draws = draws

    def act(self, state, draws):
        pool = Laplace(1.0).sample((min(self.draws, state.size),), draws)
        return (state + np.resize(pool, state.size) > 0.5).astype(np.intp)


@pytest.mark.parametrize("draws", [100, 512, 2000])
def test_a_pool_of_noise_is_caught_in_a_block_as_large_as_those_of_the_audit(draws):
    """Of 512, it falsified a true claim in 7 audits of 30, of 40,000 runs, at an alpha of one in a hundred."""
    pair = Pair(np.array([[1.0, 0.0], [0.0, 0.0]]), np.zeros((2, 2)))
    with pytest.raises(LearnerError, match="share randomness"):
        falsify(Pool(draws), Claim(epsilon=1.0), pair=pair, runs=40_000)


@pytest.mark.parametrize("rounds", [2, 200])
@pytest.mark.parametrize(
    "cls", [NoiseOfTwo(1), NoiseOfTwo(0), NoiseOfTwo(1, -1), NoiseOfTwo(0, 1, -1), NoiseOfTwo(0, -1, -1)]
)
def test_runs_that_share_noise_by_twos_are_caught(cls, rounds):
    """Of fours, they falsified a true claim in one audit of ten, at an alpha of one in a hundred."""
    left = np.zeros((rounds, 2))
    left[0] = 1, 0
    with pytest.raises(LearnerError, match="those near each other are more, or less, alike than others"):
        check_fresh(cls, Pair(left, np.zeros((rounds, 2))), 0)


@pytest.mark.parametrize("cls", [OneNoise, OneNoiseAndMore, OnePoint])
def test_runs_that_share_noise_are_caught(cls):
    """Unnoticed, they falsified a true claim in one audit of five: the runs of a block are one."""
    pair = Pair([[1, 0], [0, 0]], [[0, 0], [0, 0]])
    for seed in range(5):
        with pytest.raises(LearnerError, match="share randomness"):
            check_fresh(cls(), pair, seed)


FRESH_BUGS = [
    (bug(total=0.0, update=leaky_update), STATE),
    (bug(made=0, __init__=counting_start), STATE),
    (bug(__init__=default_list_start), STATE),
    (bug(act=global_numpy), STATE),
    (bug(act=global_random), STATE),
    (bug(__init__=resetting_start, update=pooling_update), INTERACT),
]
FRESH_IDS = ["class attribute", "class counter", "default list", "np.random", "random", "pooled losses"]


@pytest.mark.few(2)
@pytest.mark.parametrize(("cls", "told"), FRESH_BUGS, ids=FRESH_IDS)
def test_state_that_is_not_the_runs_own_is_caught(cls, told):
    for check in (check_learner, lambda one: check_fresh(as_learner(one, arms=2, rounds=8), PAIR, 0)):
        with pytest.raises(LearnerError, match=told):
            check(cls)


def test_the_quick_check_accepts_what_is_sound():
    for learner in [as_learner(Plain, arms=2, rounds=8), replace(SOUND[2], inner=replace(EXP3, arms=2))]:
        assert check_fresh(learner, PAIR, 5) is None


@pytest.mark.parametrize("arm", [-1, 2, 0.5])
def test_what_is_no_arm_is_caught(arm):
    with pytest.raises(LearnerError, match="act must return an"):
        check_learner(bug(act=lambda self: arm))


@dataclass(frozen=True)
class Batched:
    """Play arm 1 with a probability that grows with the losses; the base of the batched bugs."""

    arms: int = 2
    feedback: str = "bandit"

    def start(self, runs, draws):
        return {"total": np.zeros(runs)}

    def act(self, state, draws):
        return (draws.uniform(state["total"].shape) * (1 + state["total"]) > 0.7).astype(np.intp)

    def update(self, state, actions, feedback, draws):
        state["total"] = state["total"] + feedback


def batched_bug(**methods):
    return dataclass(frozen=True)(type("Buggy", (Batched,), methods))


def pooled(self, state, actions, feedback, draws):
    state["total"] = state["total"] + feedback.mean()


def fixed_seed(self, runs, draws):
    return {"total": np.zeros(runs), "rng": np.random.default_rng(7)}


def own_draws(self, state, draws):
    return (state["rng"].random(state["total"].shape) > 0.5).astype(np.intp)


class Counter:
    def __init__(self):
        self.count = 0


LEAK = Counter()


def counted(self, state, draws):
    LEAK.count += 1
    return np.full(state["total"].shape, LEAK.count % 3 % 2, dtype=np.intp)


BATCHED_BUGS = [
    (batched_bug(update=pooled), INTERACT),
    (batched_bug(start=fixed_seed, act=own_draws), SEED),
    (batched_bug(act=counted), STATE),
    (batched_bug(act=lambda self, state, draws: -np.ones(state["total"].shape, int)), r"in 0\.\.1, got -1"),
    (batched_bug(act=lambda self, state, draws: state["total"][:3].astype(int)), r"\(256,\) arms"),
    (batched_bug(act=lambda self, state, draws: 1 // 0), "Buggy raised ZeroDivisionError"),
]


@pytest.mark.parametrize(
    ("cls", "told"), BATCHED_BUGS, ids=["pooled", "fixed seed", "module state", "arm", "shape", "raise"]
)
def test_batched_bugs_are_caught(cls, told):
    check_learner(Batched)
    with pytest.raises(LearnerError, match=told):
        check_learner(cls)


def rejecting(self, state, draws):
    """Draw until every run has accepted: how much is drawn depends on all the losses, no run's law does."""
    arms = np.full(state["total"].shape, -1)
    while (open_ := np.flatnonzero(arms < 0)).size:
        u = draws.uniform((2, open_.size))
        accepted = u[0] < 1 / (1 + state["total"][open_])
        arms[open_[accepted]] = (u[1, accepted] > 0.5).astype(int)
    return arms


def rejecting_pooled(self, state, draws):
    """The same, but what is played leans on the mean over the runs: the law of a run depends on the others."""
    arms = rejecting(self, state, draws)
    lean = state["total"].mean() * 10 % 1
    return np.where(draws.uniform(arms.shape) < lean, 1, arms)


def test_rejection_sampling_is_judged_by_its_law():
    """False alarm 1e-6 at seed 0, 2048 runs; the leaning twin is caught."""
    check_learner(batched_bug(act=rejecting), runs=2048)
    with pytest.raises(LearnerError, match="the actions of the other half in law"):
        check_learner(batched_bug(act=rejecting_pooled), runs=2048)


def remembering(self, loss):
    Plain.update(self, loss)
    self.history.append(loss)


@pytest.mark.parametrize("history", [list, deque])
def test_a_growing_state_is_caught_unless_declared(history):
    def start(self, arms, rounds, rng):
        Plain.__init__(self, arms, rounds, rng)
        self.history = history()

    cls = bug(__init__=start, update=remembering)
    with pytest.raises(LearnerError, match=GROWS):
        check_learner(cls)
    assert "bounded state" in check_learner(cls, grows=True).skipped


@pytest.mark.slow(reason="other kinds of state")
def test_growth_of_arrays_of_the_class_and_of_the_learner_is_caught():
    def stacking(self, state, actions, feedback, draws):
        state["history"] = np.vstack([state.get("history", np.zeros((0, feedback.size))), feedback])

    @dataclass(frozen=True)
    class Hoarder(Batched):
        log: list = field(default_factory=list)

        def update(self, state, actions, feedback, draws):
            self.log.append(float(feedback[0]))

    for cls in [batched_bug(update=stacking), Hoarder, bug(history=[], update=remembering)]:
        with pytest.raises(LearnerError, match=f"{GROWS}|keeps state between runs"):
            check_learner(cls)


@dataclass(frozen=True, kw_only=True)
class StillNoisy(BatchedLaplace):
    """Forgets that epsilon = inf means no noise."""

    @property
    def noise(self):
        return Laplace(max(0.01, 1 / (self.batch * self.epsilon)))


@dataclass(frozen=True, kw_only=True)
class Biased(BatchedLaplace):
    """Feeds the sum of the batch instead of its mean."""

    def update(self, state, actions, feedback, draws):
        super().update(state, actions, feedback * self.batch, draws)


@dataclass(frozen=True, kw_only=True)
class Finite(BatchedLaplace):
    """Refuses epsilon = inf."""

    def __post_init__(self):
        if self.epsilon > 100:
            raise ValueError(f"epsilon must be at most 100, got {self.epsilon}")


@pytest.mark.parametrize(
    ("cls", "told"),
    [(StillNoisy, "adds noise at epsilon = inf"), (Biased, "off its mean"), (Finite, "must accept epsilon = inf")],
)
def test_noise_that_stays_at_infinite_epsilon_is_caught(cls, told):
    with pytest.raises(LearnerError, match=told):
        check_learner(cls(inner=EXP3, epsilon=1.0, batch=2))


def test_parameters_of_the_suite_are_checked():
    with pytest.raises(ValueError, match="rounds must be at least 8, got 4"):
        check_learner(Plain, rounds=4)
    with pytest.raises(ValueError, match="rounds must be an integer of at least 1, got '8'"):
        check_learner(Plain, rounds="8")
    with pytest.raises(ValueError, match="runs must be at least 2"):
        check_learner(Plain, runs=1)
    with pytest.raises(ValueError, match="Plain takes no parameter 'eta'"):
        check_learner(Plain, parameters={"eta": 1.0})


def test_losses_may_be_given():
    check_learner(Plain, losses=np.full((8, 2), 0.5))
    check_learner(EXP3, losses=np.zeros((8, 3)))


@pytest.mark.parametrize(
    "pool",
    [
        lambda losses: losses - losses.mean(axis=-1, keepdims=True),
        lambda losses: losses.mean(axis=-1, keepdims=True),
        lambda losses: np.roll(losses, 1, axis=-1),
    ],
    ids=["centred", "mean", "shifted"],
)
def test_an_audit_refuses_runs_that_interact(pool):
    """Its first pair has equal losses for all arms, and other runs did not notice them."""

    class Pools:
        feedback, arms = "full", 3

        def start(self, runs, draws):
            return np.zeros((3, runs))

        def act(self, state, draws):
            return state.argmin(axis=0)

        def update(self, state, actions, losses, draws):
            state += pool(losses) + draws.generator.laplace(0, 3, state.shape)

    with pytest.raises(LearnerError, match="the runs of Pools interact"):
        falsify(Pools(), Claim(epsilon=1.0), rounds=6, runs=1000, seed=0)


class SeededOnce:
    """Draws in `update` from a global generator that `__init__` alone seeds: for all runs, which play side by side."""

    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.totals = np.zeros(arms)
        np.random.seed(7)

    def act(self):
        return int(self.totals.argmin())

    def update(self, losses):
        self.totals += losses + np.random.laplace(size=self.totals.size)


class SeededByRun(SeededOnce):
    """Its draws are as many as its losses say: it shifts the draws of other runs."""

    def __init__(self, arms, rounds, rng):
        super().__init__(arms, rounds, rng)
        np.random.seed(int(rng.integers(2**31)))

    def update(self, losses):
        self.totals[0] += np.random.laplace(size=1 if losses[0] < 0.5 else 2).sum()


@pytest.mark.parametrize(("learner", "refusal"), [(SeededOnce, SEED), (SeededByRun, INTERACT)])
def test_a_refusal_names_what_cures_global_randomness(learner, refusal):
    with pytest.raises(LearnerError, match=rf"{refusal}.*\nhint: `global_random=True`"):
        check_fresh(Scalar(learner, 2, 8), PAIR, 0)
    check_fresh(Scalar(learner, 2, 8, global_random=True), PAIR, 0)


def test_a_refusal_that_no_option_cures_names_none():
    with pytest.raises(LearnerError, match=r"two blocks gave the same actions$"):
        check_fresh(batched_bug(start=fixed_seed, act=own_draws)(), PAIR, 0)
