"""A training as target: its coins are ours, and what it returns is checked."""

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

    def training(included, rng):
        seen.append((included.copy(), rng.normal()))
        included[:] = True  # a copy of ours
        return np.arange(included.size)

    results = [falsify(training, CLAIM, canaries=40, trainings=2, seed=seed) for seed in (3, 3, 4)]
    coins, draws = zip(*seen, strict=True)
    assert all(one.dtype == bool for one in coins)
    assert [np.array_equal(coins[0], other) for other in coins] == [True, False, True, False, False, False]
    assert len(set(draws)) == 4
    assert results[0].lower == results[1].lower
    assert results[0].canaries.canaries.inserted == coins[0].sum() + coins[1].sum()


def test_the_result_does_not_depend_on_the_processes():
    one, two = (falsify(noisy, CLAIM, canaries=50, trainings=3, jobs=jobs) for jobs in (1, 2))
    assert one.canaries.to_json() == two.canaries.to_json()


def test_a_killed_audit_goes_on_with_the_trainings_that_are_missing(tmp_path):
    calls, memory = [], Ledger.begin(tmp_path, Plan(()), resume=False).page(0)

    def training(included, rng):
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return included + rng.normal(size=included.size)

    with pytest.raises(LearnerError, match="raised KeyboardInterrupt"):
        falsify(training, CLAIM, canaries=30, trainings=4, memory=memory)
    resumed = falsify(training, CLAIM, canaries=30, trainings=4, memory=memory)
    assert len(calls) == 5
    memory.close()
    whole = falsify(noisy, CLAIM, canaries=30, trainings=4)
    assert resumed.canaries.to_json() == whole.canaries.to_json()


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
