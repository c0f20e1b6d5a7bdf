"""Play: fair labels, keyed streams, blocks, both worlds in one batch."""

import os
import shutil
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import binom, chisquare

from overclaim.audit.execution.execution import Budget, Execution
from overclaim.audit.execution.workers import as_completed, in_parallel
from overclaim.audit.pipeline.frame import Audit, Choice
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import BLOCK, MAX_TOGETHER, blocks, concatenate, play, together
from overclaim.audit.statistics.events import Counts, Event
from overclaim.learners import BatchedLaplace, Exp3, Ftrl, LearnerError
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws, Purpose, Stage
from overclaim.mechanisms.noise import Laplace
from overclaim.mechanisms.view import RELEASE

PAIR = Pair(np.ones((6, 2)), np.vstack([np.zeros((1, 2)), np.ones((5, 2))]))
LEARNER = BatchedLaplace(inner=Exp3(arms=2, eta=1.0, gamma=0.1), epsilon=1.0, batch=2)


def test_streams_are_functions_of_their_key():
    same = [Draws(1, Stage.PILOT, 2, 3, 4).uniform(8) for _ in range(2)]
    assert np.array_equal(*same)
    keys = [(0,), (1,), (1, 1), (1, 0, 1), (1, 0, 0, 1), (1, 0, 0, 0, 1)]
    first = [float(Draws(*key).uniform(1)[0]) for key in keys]
    assert len(set(first)) == len(keys)
    draws = Draws(0)
    purposes = [float(draws.stream(purpose).random()) for purpose in Purpose]
    assert len(set(purposes)) == len(purposes)
    with pytest.raises(ValueError, match="non-negative integer, got -1"):
        Draws(-1)


def test_labels_do_not_shift_the_learners_noise():
    one, two = Draws(3), Draws(3)
    one.labels(1000)
    assert np.array_equal(one.uniform(5), two.uniform(5))


def test_labels_are_fair_and_independent_of_the_first_action():
    """400,000 labels: each count within its 1e-7 binomial bounds."""
    parts = [play(LEARNER, PAIR, Draws(7, block=b), 40_000) for b in range(10)]
    whole = concatenate(parts)
    low, high = binom.ppf([0.5e-7, 1 - 0.5e-7], whole.runs, 0.5)
    assert low <= np.count_nonzero(whole.left) <= high
    table = np.bincount(2 * whole.left + whole.actions[0], minlength=4)
    assert chisquare(table).pvalue > 1e-7  # the first arm is uniform and knows no world


def test_both_worlds_share_everything_but_the_differing_round():
    """Runs of the left world do not change when the right world's loss does."""
    other = Pair(PAIR.left, np.vstack([np.full((1, 2), 0.5), np.ones((5, 2))]))
    one, two = (play(LEARNER, pair, Draws(2), 500) for pair in (PAIR, other))
    assert np.array_equal(one.left, two.left)
    assert np.array_equal(one.actions[:, one.left], two.actions[:, two.left])
    assert not np.array_equal(one.actions[:, ~one.left], two.actions[:, ~two.left])


def test_releases_are_those_that_actions_can_use():
    seen = play(LEARNER, PAIR, Draws(0), 10, view=RELEASE)
    assert seen.releases is not None
    assert seen.releases.shape == (2, 10)  # three batches of two; the last one's release reaches no action
    tree = Ftrl(domain=EntropySimplex(2), rounds=6, eta=1.0, noise=Laplace(1.0))
    released = play(tree, PAIR, Draws(0), 10, view=RELEASE).releases
    assert released is not None
    assert released.shape == (5, 2, 10)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.array([0, 2]), "arm in 0..1, got 2 in round 1"),
        (np.array([0, -1]), "got -1"),
        (np.array([0.0, 1.0]), "integer arms, got dtype float64"),
        (np.array([0]), r"\(2,\) arms"),
        ([0, 1], "got list"),
        (np.array([[0.0, np.nan]]), "finite points"),
    ],
)
def test_what_is_no_action(action, message):
    class Wrong(Exp3):
        def act(self, state, draws):
            return action

    with pytest.raises(LearnerError, match=message):
        play(Wrong(arms=2, eta=1.0), PAIR, Draws(0), 2)


def test_blocks():
    assert blocks(1) == [(0, 1)]
    assert blocks(2 * BLOCK + 5) == [(0, BLOCK), (1, BLOCK), (2, 5)]
    assert sum(runs for _, runs in blocks(1_000_003)) == 1_000_003


def test_workers_follow_to_the_folder_of_the_call(tmp_path, monkeypatch):
    list(in_parallel(abs, [1, 2], jobs=2))  # workers that started here
    monkeypatch.chdir(tmp_path)
    (tmp_path / "here").write_text("")
    assert list(in_parallel(os.path.exists, ["here", "here"], jobs=2)) == [True, True]
    monkeypatch.chdir(tmp_path.parent)
    shutil.rmtree(tmp_path)  # with the workers still in it
    assert list(in_parallel(abs, [1, 2], jobs=2)) == [1, 2]


def test_results_come_in_order_for_any_number_of_workers():
    assert list(in_parallel(abs, [-3, 1, -2], jobs=2)) == [3, 1, 2] == list(in_parallel(abs, [-3, 1, -2], jobs=1))


@pytest.mark.slow(reason="it starts processes")
def test_processes_start_for_what_all_items_take_and_not_for_what_the_first_one_loads():
    """What others need too is loaded with the first block, and the other blocks are soon done."""

    def process_of(pause):
        time.sleep(pause)
        return os.getpid()

    soon, long = [0.2] + [0.001] * 30, [0.2] * 12
    assert set(in_parallel(process_of, soon, jobs=2, equal_costs=True)) == {os.getpid()}
    assert len(set(in_parallel(process_of, long, jobs=2, equal_costs=True))) > 1


@pytest.mark.parametrize("jobs", [1, 2])
def test_the_long_tasks_begin_first_after_a_short_one_for_each_process(jobs):
    items, costs = [-5, 3, -1, 4, 2], [5, 3, 1, 4, 2]
    results = list(as_completed(abs, items, costs, jobs=jobs))
    assert dict(results) == {place: abs(item) for place, item in enumerate(items)}
    if jobs == 1:
        assert [result for _, result in results] == [1, 5, 4, 3, 2]


class Remembered:
    def __init__(self, known, runs):
        self.known, self.runs = known, runs

    def recall(self, key):
        many = together(self.runs)
        return {
            unit: sum(map(_size_of, blocks(self.runs, range(unit * many, (unit + 1) * many))), start=Counts())
            for unit in self.known
        }

    def keep(self, key, unit, counts):
        assert unit not in self.known


def _size_of(block):
    return Counts(runs=block[1], runs_left=block[0])


class Sizes(Audit):
    def choose(self, options):
        raise NotImplementedError

    def counter(self, choice):
        return _size_of

    def of(self, target):
        raise NotImplementedError

    def anytime(self):
        raise NotImplementedError


@pytest.mark.few(4)
@pytest.mark.parametrize("blocks_of", [1, 1024, 1025, 3 * 1024 - 7, 70_000])
@pytest.mark.parametrize("known", [(), (0,), (0, 2, 5)])
def test_certification_sums_neighbouring_blocks(blocks_of, known):
    """However many blocks there are, remembered or fresh, each counts once, and only so many sums are kept."""
    runs = BLOCK * blocks_of - 5
    units = -(-blocks_of // together(runs))
    assert units <= max(1024, blocks_of // MAX_TOGETHER + 1)
    known = tuple(n for n in known if n < units)
    audit = Sizes(
        claim=Claim(epsilon=1.0),
        budget=Budget(runs=runs, seed=0, confidence=0.99),
        execution=Execution(memory=Remembered(known, runs)),
    )
    parts = audit.certification_blocks(Choice(PAIR, SimpleNamespace(name="none"), Event(-1, 1, "guess"), 0), runs)
    assert len(parts) == units
    total = sum(parts, start=Counts())
    assert (total.runs, total.runs_left) == (runs, blocks_of * (blocks_of - 1) // 2)
