"""Mechanisms audited on inputs that are searched, and those whose randomness cannot be seeded."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import strategies as st

from overclaim import Claim, Verdict, falsify_mechanism
from overclaim.audit.execution.execution import Budget
from overclaim.audit.pipeline.input_search import _promise
from overclaim.audit.verdicts.shrinking import to_certify
from overclaim.learners.protocol import LearnerError
from overclaim.testing import neighbours

UNIT = st.floats(0, 1)
LISTS = st.lists(UNIT, min_size=1, max_size=5)
SYSTEM = random.SystemRandom()


def audit(mechanism, inputs=None, **options):
    return falsify_mechanism(mechanism, Claim(epsilon=1.0), inputs=inputs, **{"runs": 6000} | options)


def mean(data, rng):
    return sum(data) / len(data) + rng.laplace(scale=1 / len(data))


def sum_of_missing(data, rng):
    """The bug: the noise is for numbers in [0, 1], and one that is missing counts for 5."""
    return sum(5.0 if x is None else x for x in data) + rng.laplace()


def wants_two(data, rng):
    if len(data) < 2:
        raise ValueError("two at least")
    return sum(data) + rng.laplace(scale=0.4)


def test_the_bug_that_few_inputs_show_is_found_and_shrunk():
    inputs = neighbours(st.lists(UNIT | st.none(), min_size=1, max_size=5))
    result = audit(sum_of_missing, inputs, runs=10_000)
    assert result.verdict is Verdict.FALSIFIED
    assert result.epsilon_lower > 2
    assert (result.pair.left + result.pair.right).count(None) % 2 == 1
    small = result.shrunk
    assert sorted([small.pair.left, small.pair.right], key=str) == [[0.0], [None]]
    assert small.epsilon_lower > 1
    # Smaller ones are certified on runs that nothing before has seen; here the search may find the smallest itself.
    assert (small.seed >= 1_000_000, small.confidence) == (
        small.fresh,
        pytest.approx(1 - 0.01 / 3 if small.fresh else 0.99),
    )
    assert result.searched.tried >= 60
    assert result.searched.refused == 0


@pytest.mark.few(1)
@pytest.mark.parametrize("relation", ["replace", "substitute-feature"])
def test_a_sound_mechanism_survives_the_search(relation):
    """False with probability 1e-6 each."""
    result = audit(mean, neighbours(LISTS, relation), runs=4000, confidence=1 - 1e-6)
    assert result.verdict is Verdict.SURVIVED
    assert result.shrunk is None
    assert result.epsilon_lower > 0.4  # it is nearly tight on its worst pairs, which are found


@pytest.mark.slow(reason="one search, twice")
def test_the_same_seed_finds_the_same():
    inputs = neighbours(LISTS, "add-remove")
    one, other = (audit(mean, inputs, runs=1500, shrink=False) for _ in range(2))
    assert one.pair == other.pair
    assert one.certificate == other.certificate


def test_inputs_on_which_it_raises_are_left_out_and_counted():
    result = audit(wants_two, neighbours(LISTS), runs=4000, shrink=False)
    assert result.verdict is Verdict.FALSIFIED
    assert result.searched.refused > 0
    assert "two at least" in result.searched.reason
    assert len(result.pair.left) >= 2


USERS = st.lists(st.tuples(st.sampled_from("ab"), st.floats(0, 1)), max_size=4)


def total_of_users(data, rng):
    """Noise for one record: a user of several moves the sum by more."""
    return sum(value for _, value in data) + rng.laplace()


@pytest.mark.slow(reason="that they are left out is quick")
def test_others_take_the_place_of_those_on_which_it_raises():
    """As a model that needs both classes raises on half of the pairs."""

    def wants_even(data, rng):
        if len(data) % 2:
            raise ValueError("even")
        return sum(data) + rng.laplace()

    searched = audit(wants_even, neighbours(LISTS), runs=6000).searched
    assert searched.refused > 20
    assert searched.tried - searched.refused >= 33  # 23 without
    assert searched.runs <= 0.36 * 6000


@pytest.mark.slow(reason="one relation more")
def test_one_user_has_several_records():
    """By seed; the claim is true of one record more or less."""
    assert audit(total_of_users, neighbours(USERS, "add-remove"), runs=4000).verdict is Verdict.SURVIVED
    result = audit(total_of_users, neighbours(USERS, "user"), runs=4000)
    assert result.verdict is Verdict.FALSIFIED
    sides = sorted([result.pair.left, result.pair.right], key=len)
    assert len(sides[1]) - len(sides[0]) >= 2
    assert len({user for user, _ in sides[1]} - {user for user, _ in sides[0]}) == 1
    smaller = sorted([result.shrunk.pair.left, result.shrunk.pair.right], key=len)
    assert (len(smaller[0]), len({user for user, _ in smaller[1]})) == (0, 1)
    assert 2 <= len(smaller[1]) <= len(sides[1])


def test_records_without_users_are_one_line():
    with pytest.raises(ValueError, match=r"needs records .* or with the key 'user', got 0.0"):
        neighbours(LISTS, "user")


def test_one_that_always_raises_has_crashed():
    def broken(data, rng):
        raise KeyError("no")

    with pytest.raises(LearnerError, match="raised on every pair"):
        audit(broken, neighbours(LISTS))


def test_pairs_of_a_strategy_of_ones_own():
    pairs = st.tuples(st.just([1.0]), st.sampled_from([[0.9], [-3.0]]))
    result = audit(lambda data, rng: data[0] + rng.laplace(), pairs)
    assert result.pair.right == [-3.0]
    assert result.verdict is Verdict.FALSIFIED


class Kept:
    """A memory that is only a dictionary; it counts what is computed."""

    def __init__(self):
        self.stages, self.blocks, self.computed = {}, {}, 0

    def once(self, stage, compute):
        if stage not in self.stages:
            self.computed += 1
            self.stages[stage] = compute()
        return self.stages[stage]

    def recall(self, stage):
        return dict(self.blocks.get(stage, {}))

    def keep(self, stage, block, counts):
        self.blocks.setdefault(stage, {})[block] = counts

    def recall_stage(self, stage):
        return self.stages.get(stage)

    def keep_stage(self, stage, value):
        self.stages[stage] = value


@pytest.mark.slow(reason="a saving, not a verdict")
def test_a_search_that_was_kept_is_not_made_again():
    memory, inputs = Kept(), neighbours(st.lists(UNIT | st.none(), min_size=1, max_size=3))
    first = audit(sum_of_missing, inputs, memory=memory)
    computed = memory.computed
    again = audit(sum_of_missing, inputs, memory=memory)
    assert memory.computed == computed
    assert (again.certificate, again.pair, again.shrunk) == (first.certificate, first.pair, first.shrunk)


@pytest.mark.parametrize(
    ("inputs", "options", "message"),
    [
        (st.tuples(st.just(1), st.just(1)), {}, "equal worlds: left and right must differ, both are 1"),
        (st.integers(), {}, "must be pairs"),
        ([1, 2], {}, "must be a Hypothesis strategy"),
        (neighbours(st.just([1])), {}, "replace makes no two inputs that differ.*such as \\[1\\]"),
        (neighbours(LISTS, where=lambda data: False), {}, "`where` allows no data"),
        (neighbours(LISTS), {"left": [1], "right": [2]}, "`inputs` cannot go with"),
        (st.tuples(st.builds(object), st.just(1)), {}, "cannot hold an input of the type object"),
    ],
)
def test_bad_inputs_are_refused_in_one_line(inputs, options, message):
    with pytest.raises(ValueError, match=message) as error:
        audit(mean, inputs, **options)
    assert "\n" not in str(error.value)


def test_the_last_that_was_accepted_is_certified_first():
    assert to_certify([]) == []
    assert to_certify(list("abcdefgh")) == ["h", "d", "b"]


def unseeded(data):
    return data[0] + SYSTEM.expovariate(1) - SYSTEM.expovariate(1)


def unseeded_with_generator(data, rng):
    return unseeded(data)


def unseeded_with_default(data, release=unseeded):
    return release(data)


@pytest.mark.parametrize("mechanism", [unseeded, unseeded_with_generator, unseeded_with_default])
def test_randomness_of_the_system_is_audited_where_that_is_said(mechanism):
    """Each verdict is wrong with probability 0.01; three audits in a row 1e-6."""
    for attempt in range(3):
        sound = audit(mechanism, left=[1], right=[0], os_random=True, seed=attempt)
        broken = audit(mechanism, left=[3], right=[0], os_random=True, seed=attempt)
        if (sound.verdict, broken.verdict) == (Verdict.SURVIVED, Verdict.FALSIFIED):
            break
    else:
        pytest.fail("three times wrong")
    assert len(sound.outputs_digest) == 64
    assert sound.outputs_digest != broken.outputs_digest


def test_without_the_word_it_is_refused_and_told_of_it():
    with pytest.raises(LearnerError, match="hint: `os_random=True` plays code whose randomness"):
        audit(unseeded_with_generator, left=[1], right=[0])


def test_a_seeded_audit_has_no_digest():
    assert audit(mean, left=[1], right=[0], runs=1000).outputs_digest is None


class Clusters:
    """The bug: one draw of the system's for several calls."""

    def __init__(self):
        self.calls, self.noise = 0, 0.0

    def __call__(self, data):
        if self.calls % 4 == 0:
            self.noise = SYSTEM.expovariate(1) - SYSTEM.expovariate(1)
        self.calls += 1
        return data[0] + self.noise


def test_runs_that_depend_on_each_other_are_refused_there_too():
    with pytest.raises(LearnerError, match="share randomness"):
        audit(Clusters(), left=[1], right=[0], os_random=True)


@pytest.mark.parametrize("memory", [None, SimpleNamespace(recall=None)], ids=["processes", "resumed"])
def test_a_generator_that_a_mechanism_holds_never_begins_anew(monkeypatch, memory):
    """Else every process, and a resumed audit, counts the same draws again: of a true claim 2 of 12 were FALSIFIED."""
    monkeypatch.setattr("overclaim.audit.execution.workers.START", 0.0)
    generator, calls = np.random.default_rng(), []

    def mechanism(data):
        calls.append(1)
        return data[0] + generator.laplace()

    result = audit(mechanism, left=[1], right=[0], runs=30_000, os_random=True, jobs=2, memory=memory)
    assert len(calls) >= result.runs


def test_a_batched_mechanism_has_no_randomness_of_its_own():
    def batched(data, draws, runs):
        return draws.uniform(runs)

    batched.batched = True
    with pytest.raises(ValueError, match="os_random is for mechanisms that are called run by run"):
        audit(batched, left=[1], right=[0], os_random=True)


def test_what_only_other_keys_show_is_taken_never_to_show_without_them():
    """OpenDP's threshold: a key shows in 3.6 % of the runs, where delta allows 1.3 %, and in none without it."""

    def promise(alone, seen, *, unlike, epsilon=1.0):
        audit = SimpleNamespace(claim=Claim(epsilon=epsilon, delta=0.013391), budget=Budget(20_000, 0, 0.99))
        return _promise(alone, seen, audit, unlike=unlike)

    # 12 of 354 runs: a pair that keeps the claim promises as much in as few runs, so it was a draw which is certified.
    assert promise(12, 354, unlike=False) == pytest.approx(1.33, abs=0.01)
    assert promise(12, 354, unlike=True) > 2
    assert promise(12, 354, unlike=True, epsilon=3.0) < 1.4  # so large an epsilon explains that none was seen
    assert promise(2, 31, unlike=True) < 1
    assert promise(0, 31, unlike=True) < -1e300
