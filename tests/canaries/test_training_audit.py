"""A training as target: its coins are ours, and what it returns is checked."""

import os
from functools import cache

import numpy as np
import pytest

from overclaim import Claim, falsify
from overclaim.audit.canaries.training_audit import is_training
from overclaim.audit.plans.ledger import Ledger
from overclaim.audit.plans.plan import Plan
from overclaim.learners.protocol import LearnerError

CLAIM = Claim(epsilon=1.0)


def noisy(included, rng):
    return included + rng.normal(size=included.size)


def test_trainings_have_coins_of_their_own_from_the_seed():
    seen = []

    class Training:  # what it keeps is not followed: a generator has no digest of its past
        def __call__(self, included, rng):
            seen.append((tuple(included), rng.normal()))
            assert included.dtype == bool
            included[:] = True  # a copy of ours
            return np.arange(included.size)

    results = [falsify(Training(), CLAIM, canaries=40, trainings=2, seed=seed) for seed in (3, 3, 4)]
    first, again, other = seen[:4], seen[4:8], seen[8:]
    assert first == again  # two trainings, and the same two again
    assert first[:2] == first[:1:-1]
    assert len(set(first) | set(other)) == 4
    assert results[0].lower == results[1].lower
    assert results[0].canaries.canaries.inserted == sum(map(sum, [first[0][0], first[1][0]]))


def test_the_result_does_not_depend_on_the_processes():
    one, two = (falsify(noisy, CLAIM, canaries=50, trainings=3, jobs=jobs) for jobs in (1, 2))
    assert one.canaries.to_json() == two.canaries.to_json()


def test_a_killed_audit_goes_on_with_the_trainings_that_are_missing(tmp_path):
    calls, memory = tmp_path / "calls", Ledger.begin(tmp_path, Plan(()), resume=False).page(0)
    calls.touch()

    class Training:
        def __call__(self, included, rng):
            calls.write_bytes(calls.read_bytes() + b".")
            if calls.stat().st_size == 3:
                raise KeyboardInterrupt
            return included + rng.normal(size=included.size)

    with pytest.raises(LearnerError, match="raised KeyboardInterrupt"):
        falsify(Training(), CLAIM, canaries=30, trainings=4, memory=memory)
    resumed = falsify(Training(), CLAIM, canaries=30, trainings=4, memory=memory)
    # Three before; then the first one is looked at in this process, two are missing, and two are compared.
    assert calls.stat().st_size == 3 + 1 + 2 + 2
    falsify(Training(), CLAIM, canaries=30, trainings=4, memory=memory)
    assert calls.stat().st_size == 8
    memory.close()
    whole = falsify(noisy, CLAIM, canaries=30, trainings=4)
    assert resumed.canaries.to_json() == whole.canaries.to_json()


KEPT = {}


def in_a_module(included, rng):
    """Broken: the noise of the first training serves all."""
    return included + KEPT.setdefault("noise", rng.laplace(size=included.size))


def in_a_default(included, rng, kept=[]):  # noqa: B006
    """Broken: as before, in a default argument."""
    if not kept:
        kept.append(rng.laplace(size=included.size))
    return included + kept[0]


@cache
def pool(canaries, rng_of=[]):  # noqa: B006
    return rng_of[-1].laplace(size=canaries)


def in_a_cache(included, rng):
    """Broken: as before, in a cache that nobody can read."""
    pool.__wrapped__.__defaults__[0].append(rng)
    return included + pool(included.size)


class FromTheSecondOn:
    """Broken: the noise of the second training serves all later ones."""

    def __init__(self):
        self.count, self.noise = 0, None

    def __call__(self, included, rng):
        self.count += 1
        if self.noise is None:
            noise = rng.laplace(size=included.size)
            self.noise = noise if self.count == 2 else None
            return included + noise
        return included + self.noise


class Carried:
    """Broken: a training begins where the one before ended."""

    def __init__(self):
        self.weights = 0.0

    def __call__(self, included, rng):
        self.weights = self.weights / 2 + included + rng.laplace(size=included.size)
        return self.weights


class OnDisk:
    """Broken: noise lies in a file."""

    def __init__(self, path):
        self.path = str(path)

    def __call__(self, included, rng):
        if not os.path.exists(self.path):
            np.save(self.path, rng.laplace(size=included.size))
        return included + np.load(self.path)


def from_elsewhere(included, rng):
    return included + np.random.laplace(size=included.size)


def from_the_system(included, rng):
    return included + np.random.default_rng().laplace(size=included.size)


STATEFUL = "draws once for all runs|a training must draw from its generator alone and keep no state"


@pytest.mark.parametrize("jobs", [1, 2])
@pytest.mark.parametrize("trainings", [2, 5])
@pytest.mark.parametrize(
    "make",
    [
        lambda path: in_a_module,
        lambda path: in_a_default,
        lambda path: in_a_cache,
        lambda path: FromTheSecondOn(),
        lambda path: Carried(),
        lambda path: OnDisk(path / "noise.npy"),
        lambda path: from_elsewhere,
        lambda path: from_the_system,
    ],
    ids=["module", "default", "cache", "second", "carried", "disk", "elsewhere", "system"],
)
def test_trainings_that_share_state_or_draw_from_elsewhere_are_refused(make, trainings, jobs, tmp_path):
    KEPT.clear()
    in_a_default.__defaults__[0].clear()
    with pytest.raises(LearnerError, match=STATEFUL):
        falsify(make(tmp_path), CLAIM, canaries=30, trainings=trainings, jobs=jobs)


TABLE = {}


def with_a_table(included, rng):
    """Sound: what is filled in once is no draw."""
    if "records" not in TABLE:
        TABLE["records"] = np.random.default_rng(0).normal(size=included.size)
    return included + rng.laplace(size=included.size) + 0 * TABLE["records"]


@cache
def records(count):
    return np.arange(count)


def with_a_cache(included, rng):
    return included + rng.laplace(size=included.size) + 0 * records(included.size)


@pytest.mark.parametrize("sound", [noisy, with_a_table, with_a_cache])
def test_sound_trainings_are_not_refused(sound):
    for seed in range(5):
        TABLE.clear()
        records.cache_clear()
        falsify(sound, CLAIM, canaries=30, trainings=3, seed=seed)


def test_scores_of_one_canary_each_are_independent():
    result = falsify(noisy, CLAIM, canaries=1, trainings=60)
    assert result.canaries.design == "independent"
    assert str(result.canaries.canaries.many) == "60"
    assert str(result).count("60 canaries from independent trainings") == 1


def test_global_generators_are_those_of_the_training():
    def training(included):
        return included + np.random.normal(size=included.size)

    one, two = (falsify(training, CLAIM, canaries=30, global_random=True) for _ in range(2))
    assert one.canaries.to_json() == two.canaries.to_json()


def raises(included, rng):
    raise ZeroDivisionError("no loss")


def takes_nothing():
    return []


@pytest.mark.parametrize(
    ("training", "line"),
    [
        (raises, "raises raised ZeroDivisionError: no loss in training 1 of 2"),
        (takes_nothing, r"takes_nothing cannot be called as training\(included, rng\)"),
        (lambda included, rng: included[:3], r"must return 20 scores, one for each canary, got \(3,\)"),
        (lambda included, rng: included[:, None], r"got \(20, 1\)"),
        (lambda included, rng: None, "must return 20 scores|must return a number for each canary"),
        (lambda included, rng: ["a"] * 20, "must return a number for each canary, got"),
        (lambda included, rng: [0.0] * 19 + [np.nan], "score 20 is nan in training 1 of 2"),
    ],
)
def test_a_training_that_does_not_score_is_an_error_of_its_own(training, line):
    with pytest.raises(LearnerError, match=line):
        falsify(training, CLAIM, canaries=20, trainings=2)


@pytest.mark.parametrize(
    ("options", "line"),
    [
        ({"canaries": 0}, "canaries must be an integer of at least 1, got 0"),
        ({"canaries": 5, "trainings": 0}, "trainings must be an integer of at least 1, got 0"),
        ({"canaries": 5, "rounds": 3}, "noisy is a training: it takes no `rounds`"),
        ({"canaries": 5, "left": [1], "right": [0]}, "it takes no `left`, `right`"),
        ({"canaries": 5, "stop": "early"}, "stop must be budget"),
        ({"canaries": 5, "claim": Claim(epsilon=1.0, losses="symmetric")}, "takes no `losses=.symmetric.`"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, line):
    with pytest.raises(ValueError, match=line):
        falsify(noisy, **{"claim": CLAIM, **options})


def test_a_training_is_told_by_its_first_parameter():
    assert is_training(noisy)
    assert not any(map(is_training, (lambda data, rng: 0, np.mean, Claim, takes_nothing)))
