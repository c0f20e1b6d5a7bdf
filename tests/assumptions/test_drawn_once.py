"""What is drawn once and kept for all runs is refused for sure, however few its outcomes; what is sound is let be."""

import random
import threading
import tracemalloc
from functools import cache, lru_cache, partial

import numpy as np
import pytest

from overclaim import Claim, falsify
from overclaim.audit.assumptions import drawn_once
from overclaim.audit.assumptions.conformance import check_fresh
from overclaim.audit.assumptions.independence import check_replay
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import BLOCK
from overclaim.errors import notes_of
from overclaim.learners import LearnerError
from overclaim.learners.scalar import as_learner

PAIR = Pair(np.ones((4, 2)), np.vstack([np.zeros((1, 2)), np.ones((3, 2))]))
#: A draw of two outcomes that was compared with one other was missed with half of them: with all, in 2^-8 of cases.
SEEDS = range(8)
BIT, MEMORY, TABLE = None, {}, {}
DATA = np.arange(2**22, dtype=float)  # 32 MiB
BLANK = np.zeros(2**22)


class Coin:
    """Every arm is fair, and the runs share a bit."""

    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.rng = rng

    def act(self):
        return int(self.rng.integers(2)) ^ int(self.bit())

    def update(self, losses):
        pass


class Holder:
    pass


def of_class():
    class OfClass(Coin):
        kept = None

        def bit(self):
            OfClass.kept = int(self.rng.integers(2)) if OfClass.kept is None else OfClass.kept
            return OfClass.kept

    return OfClass


def of_class_that_begins_with_an_outcome():
    class OfClass(Coin):
        kept, drawn = 0, False

        def bit(self):
            if not OfClass.drawn:
                OfClass.kept, OfClass.drawn = int(self.rng.integers(2)), True
            return OfClass.kept

    return OfClass


def of_object():
    class OfObject(Coin):
        holder = Holder()

        def bit(self):
            if not hasattr(self.holder, "kept"):
                self.holder.kept = int(self.rng.integers(2))
            return self.holder.kept

    return OfObject


def of_module():
    global BIT
    BIT = None

    class OfModule(Coin):
        def bit(self):
            global BIT
            BIT = int(self.rng.integers(2)) if BIT is None else BIT
            return BIT

    return OfModule


def of_closure():
    cell = None

    class OfClosure(Coin):
        def bit(self):
            nonlocal cell
            cell = int(self.rng.integers(2)) if cell is None else cell
            return cell

    return OfClosure


def of_default():
    class OfDefault(Coin):
        def bit(self, kept=[]):  # noqa: B006 - that is the fault
            kept += [] if kept else [int(self.rng.integers(2))]
            return kept[0]

    return OfDefault


def of_keyword():
    class OfKeyword(Coin):
        def bit(self, *, kept={}):  # noqa: B006 - that is the fault
            return kept.setdefault(0, int(self.rng.integers(2)) if not kept else 0)

    return OfKeyword


def of_function():
    class OfFunction(Coin):
        def bit(self):
            if not hasattr(OfFunction.bit, "kept"):
                OfFunction.bit.kept = int(self.rng.integers(2))
            return OfFunction.bit.kept

    return OfFunction


class First:
    """As a key of a cache equal to all others of its kind."""

    def __init__(self, rng):
        self.rng = rng

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def of_cache():
    @lru_cache
    def draw(first):
        return int(first.rng.integers(2))

    class OfCache(Coin):
        def bit(self):
            return draw(First(self.rng))

    return OfCache


def of_cached_method():
    class OfCachedMethod(Coin):
        @staticmethod
        @cache
        def draw(first):
            return int(first.rng.integers(2))

        def bit(self):
            return self.draw(First(self.rng))

    return OfCachedMethod


def of_cache_from_elsewhere():
    """Answers are drawn from no run's generator: they are the same only while the process lives."""

    @cache
    def draw(arm):
        return random.randrange(2)

    class OfCache(Coin):
        def bit(self):
            return draw(0)

    return OfCache


KEEPERS = [
    *(of_class, of_class_that_begins_with_an_outcome, of_object, of_module),
    *(of_closure, of_default, of_keyword, of_function),
    *(of_cache, of_cached_method, of_cache_from_elsewhere),
]


@pytest.mark.few(1)
@pytest.mark.parametrize("make", KEEPERS)
def test_a_bit_that_is_drawn_once_is_refused_with_every_seed(make):
    for seed in SEEDS:
        with pytest.raises(LearnerError, match="draws once for all runs"):
            check_fresh(as_learner(make(), arms=2, rounds=4), PAIR, seed)


def mechanism_of_global():
    MEMORY.clear()

    def noisy(data, rng):
        bit = MEMORY.setdefault("bit", int(rng.integers(2)) if not MEMORY else 0)
        return int(rng.integers(2)) ^ bit

    return noisy


def mechanism_of_helper():
    """The copy that a mechanism's answers are compared with has the memory of its own functions alone."""

    def draw(rng, kept=[]):  # noqa: B006 - that is the fault
        kept += [] if kept else [int(rng.integers(2))]
        return kept[0]

    return lambda data, rng: int(rng.integers(2)) ^ draw(rng)


def mechanism_of_cache():
    @cache
    def draw(first):
        return int(first.rng.integers(2))

    return lambda data, rng: int(rng.integers(2)) ^ draw(First(rng))


@pytest.mark.parametrize("make", [mechanism_of_global, mechanism_of_helper, mechanism_of_cache])
def test_and_so_it_is_of_a_mechanism(make):
    for seed in SEEDS:
        with pytest.raises(LearnerError, match="draws once for all runs"):
            check_replay(make(), DataPair([0], [1]), seed)


class Connection:
    """What has no state that could be looked into."""

    def getstate(self):
        raise OSError("it is closed")


@pytest.mark.parametrize("held", [Connection(), random.SystemRandom()], ids=["connection", "random"])
def test_a_mechanism_may_hold_what_cannot_be_looked_into(held):
    def noisy(data, rng):
        return data[0] + rng.normal(), held is None

    check_replay(noisy, DataPair([0], [1]), 0)


class Tape:
    """What was drawn by the key of the draw, as the adapters of our examples keep it, beside what cannot be copied."""

    def __init__(self, held):
        self.held, self.tape = held, {}

    def __call__(self, data, rng):
        key = int(rng.integers(2**63))
        return self.tape.setdefault(key, data[0] + np.random.default_rng(key).normal())


@pytest.mark.few("fixed")
@pytest.mark.parametrize("held", [None, threading.Lock()], ids=["copied", "fixed"])
def test_a_mechanism_may_keep_a_tape(held):
    """Of what could not be emptied the tape grew, and was accused to be a draw that is kept."""
    tape = Tape(held)

    def noisy(data, rng):
        return tape(data, rng)

    for seed in SEEDS:
        check_replay(noisy, DataPair([0], [1]), seed)


def largest(data, rng):
    noise = rng.normal()
    MEMORY["largest"] = max(MEMORY.get("largest", 0.0), noise)
    MEMORY["clipped"] = MEMORY.get("clipped", False) or noise > 0
    return data[0] + noise


def test_a_mechanism_may_keep_statistics_that_do_not_show():
    """A largest noise, or that some was positive, stays too: with 20 draws 9 to 12 of 20 seeds were accused."""
    for seed in SEEDS:
        MEMORY.clear()
        check_replay(largest, DataPair([0], [1]), seed)


def rare_mark():
    """What some runs fill in, whatever it is, is none that the first of them drew."""

    class Rare(Coin):
        seen = None

        def bit(self):
            if self.rng.random() < 0.02:
                Rare.seen = "rare"
            return 0

    return Rare


def lazy_table():
    class Lazy(Coin):
        table = None

        def bit(self):
            if Lazy.table is None and self.rng.random() < 0.9:
                Lazy.table = [0, 0]
            return 0

    return Lazy


def one_table_of_two_names():
    """It is filled in by one name and read by the other: apart from each other nothing would be found there."""
    TABLE.clear()

    class Named(Coin):
        table = TABLE

        def bit(self):
            TABLE.setdefault("zero", 0)
            return self.table["zero"]

    return Named


def cache_of_a_pure_function():
    """Also one of seeds that its runs draw, and one that forgets."""

    @lru_cache(maxsize=2)
    def bit_of(seed):
        return np.random.default_rng(seed).integers(2)

    class Cached(Coin):
        def bit(self):
            return bit_of(int(self.rng.integers(5)))

    return Cached


def cache_by_run():
    class ByRun(Coin):
        @cache  # noqa: B019 - runs are kept in memory, and that is all
        def bit(self):
            return self.rng.integers(2)

    return ByRun


SOUND = [rare_mark, lazy_table, one_table_of_two_names, cache_of_a_pure_function, cache_by_run]


@pytest.mark.few("lazy_table", "cache_by_run")
@pytest.mark.parametrize("make", SOUND)
def test_what_is_sound_is_let_be_with_every_seed(make):
    for seed in SEEDS:
        learner = as_learner(make(), arms=2, rounds=4)
        check_fresh(learner, PAIR, seed)


def forgets(size):
    """A bit for every run, in a cache that holds so many of them: alone a run keeps it."""

    class Forgets(Coin):
        @lru_cache(maxsize=size)  # noqa: B019
        def bit(self):
            return self.rng.integers(2)

        def act(self):
            return int(self.bit())

    return Forgets


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1, 8, 128])
def test_a_cache_from_which_runs_side_by_side_push_each_others_draws_is_refused(size):
    """Alone a run plays one arm; side by side with others it drew one anew in every round, and survived."""
    for seed in SEEDS:
        with pytest.raises(LearnerError, match=f"the cache of bit holds {size} "):
            check_fresh(as_learner(forgets(size), arms=2, rounds=4), PAIR, seed)


def test_a_cache_that_holds_what_a_block_asks_of_it_is_let_be():
    for seed in SEEDS:
        check_fresh(as_learner(forgets(BLOCK), arms=2, rounds=4), PAIR, seed)


@pytest.mark.slow(reason="an array of many megabytes")
def test_data_of_a_users_module_are_not_copied():
    """Half a gigabyte of globals was held twice."""

    class Reads(Coin):
        def bit(self):
            return int(DATA[0])

    def mechanism(data, rng):
        return float(rng.random() + DATA[0])

    checks = (
        partial(check_fresh, as_learner(Reads, arms=2, rounds=4), PAIR, 0),
        partial(check_replay, mechanism, DataPair([0], [1]), 0),
    )
    for check in checks:
        tracemalloc.start()
        check()
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert most < DATA.nbytes / 2


@pytest.mark.slow(reason="an array of many megabytes")
def test_a_large_array_that_is_to_be_filled_is_looked_into():
    class Fills(Coin):
        def bit(self):
            if not BLANK[0]:
                BLANK[:] = self.rng.random()
            return BLANK[0] > 0.5

    assert BLANK.nbytes > drawn_once._COPIED
    with pytest.raises(LearnerError, match="the global BLANK was filled in by the first of them from random numbers"):
        check_fresh(as_learner(Fills, arms=2, rounds=4), PAIR, 0)


def test_an_encoder_that_the_first_call_fits_to_its_data_is_refused_with_the_place_to_build_it():
    encoders = {}

    def counts(data, rng):
        bins = encoders.setdefault("bins", sorted(set(data)))
        return [data.count(value) + rng.laplace() for value in bins]

    with pytest.raises(LearnerError, match="from random numbers or its input, and stays") as caught:
        falsify(counts, Claim(epsilon=1.0), left=["a", "b"], right=["b", "c"], runs=400)
    assert notes_of(caught.value) == [drawn_once.ONCE_CURE]
