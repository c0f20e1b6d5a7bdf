"""Which world has more of the runs: the shares that make a bound sharpest, and that audits and records keep them."""

import json
import math
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from overclaim.audit.attacks.rules import Sequences
from overclaim.audit.evidence.frozen import Frozen
from overclaim.audit.pipeline.falsify import falsify
from overclaim.audit.play.pairs import Pair
from overclaim.audit.statistics.event_rule import allotment, choose_by_labels, choose_from_laws
from overclaim.audit.statistics.events import UNUSED, Counts, Event
from overclaim.learners import Exp3
from overclaim.mechanisms.claim import Claim
from overclaim.mechanisms.draws import Draws
from overclaim.mechanisms.view import ACTIONS
from overclaim.tests.support.command_line import overclaim

#: The arm of the largest loss is played least: one sequence is 1000 times as likely in one world.
PAIR = Pair([[0.0, 1.0], *[[1.0, 0.0]] * 7], [[1.0, 0.0], *[[1.0, 0.0]] * 7])


def kept(share, counts):
    """Tell whether the left world had its share: wrong with probability 1e-9."""
    return stats.binomtest(counts.runs_left, counts.runs, share).pvalue > 1e-9


@pytest.mark.parametrize("of_left", [0.2, 1.0, 3.0, 40.0])
@pytest.mark.parametrize("of_right", [0.3, 1.0, 11.0])
def test_no_other_share_has_a_smaller_variance(of_left, of_right):
    shares = np.round(np.arange(0.1, 0.901, 0.01), 2)
    variances = of_left / shares + of_right / (1 - shares)
    allotted = allotment(np.array(of_left), np.array(of_right))
    assert variances[shares == allotted] <= variances.min() * (1 + 1e-4)


def test_neither_world_is_left_without_runs():
    left = np.array([0.0, 1.0, 1e-9, 1e9, math.inf, math.nan, 1.0, 0.0])
    right = np.array([1.0, 0.0, 1.0, 1.0, 1.0, 1.0, math.inf, 0.0])
    np.testing.assert_array_equal(allotment(left, right), [0.1, 0.9, 0.1, 0.9, 0.5, 0.5, 0.5, 0.5])


@pytest.mark.parametrize(
    ("method", "sides", "share"),
    [("guess", (0.0, 1.0), 0.4), ("joint", (UNUSED, 1.0), 0.0), ("joint", (UNUSED, 1.0), 1.0), ("guess", (0, 1), 2)],
)
def test_a_share_that_no_certificate_allows(method, sides, share):
    with pytest.raises(ValueError, match=f"share must be 1/2 in the guess game and .* got {share}"):
        Event(*sides, method, share)


def test_labels_keep_their_share():
    """400,000 labels: within their 1e-7 binomial bounds."""
    labels = Draws(3).labels(400_000, 0.1)
    low, high = stats.binom.ppf([0.5e-7, 1 - 0.5e-7], labels.size, 0.1)
    assert low <= np.count_nonzero(labels) <= high
    np.testing.assert_array_equal(Draws(3).labels(100), Draws(3).labels(100, 0.5))


def test_an_event_of_one_world_gives_the_other_more_runs():
    """One pilot run in ten against one in two hundred: the rarer rate is the rougher."""
    left = np.arange(40_000) % 2 == 0
    scores = np.where(left, np.arange(40_000) // 2 % 10 == 0, np.arange(40_000) // 2 % 200 == 0).astype(float)
    towards_left = choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=40_000)
    # The standard deviations of both logarithms are as sqrt(9) to sqrt(199).
    assert (towards_left.direction, towards_left.share) == ("left", pytest.approx(3 / (3 + math.sqrt(199)), abs=0.01))
    towards_right = choose_by_labels(-scores, ~left, delta=0.0, alpha=0.05, runs=40_000)
    assert (towards_right.direction, towards_right.share) == ("right", pytest.approx(1 - towards_left.share))
    assert choose_by_labels(scores, left, delta=0.0, alpha=0.05, runs=40_000, fair=True).share == 0.5


def test_a_law_that_sums_to_more_than_one_by_rounding():
    """Its negative variance made every joint event worth nan, so that none was ever chosen."""
    p, q = np.array([0.9, 0.1 + 3e-16]), np.array([0.9999, 0.0001 + 3e-16])
    event = choose_from_laws([0.0, 1.0], p, q, delta=0.0, alpha=0.05, runs=10**6)
    assert (event.method, event.upper, event.share) == ("joint", 1.0, 0.1)


def test_an_audit_of_a_learner_keeps_the_share():
    result = falsify(Exp3(arms=2, eta=1.0), Claim(epsilon=1.0), pair=PAIR, runs=40_000)
    assert result.event.method == "joint"
    assert result.event.share != 0.5
    assert kept(result.event.share, result.certificate.counts)
    assert not kept(1 - result.event.share, result.certificate.counts)


def test_early_audits_toss_a_fair_coin():
    """Their bets are on guesses of a fair label. Those of a plan with `stop = "early"` are played by the same code."""
    from overclaim.audit.execution.execution import Budget
    from overclaim.audit.pipeline.anytime import until_falsified
    from overclaim.audit.pipeline.learner_stages import AnytimeLearner, LearnerAudit

    budget = Budget(runs=40_000, seed=0, confidence=0.99)
    audit = LearnerAudit(learner=Exp3(arms=2, eta=1.0), claim=Claim(epsilon=20.0), budget=budget)
    outcome = until_falsified(AnytimeLearner(audit), [PAIR])
    assert outcome.choice.event.share == 0.5
    assert kept(0.5, outcome.certificate.counts)


@pytest.mark.slow(reason="a run and a check")
def test_the_record_and_the_report_say_the_share(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("plan.toml").write_text('[[claims]]\ntarget = "mechanisms/noisy-max-3"\nepsilon = 1\nruns = 20000\n')
    ran = overclaim("run", "plan.toml", "--jobs", 1)
    assert ran.exit_code == 1, ran.output
    shown = overclaim("check", "mechanisms/noisy-max-3", "--epsilon", 1, "--runs", 20_000, "-v").output
    (claim,) = json.loads(Path("out/record.json").read_text())["claims"]
    share, counts = claim["event"]["share"], claim["counts"]
    assert share != 0.5
    assert stats.binomtest(counts["runs_left"], counts["runs"], share).pvalue > 1e-9
    runs = {"left": counts["runs_left"], "right": counts["runs"] - counts["runs_left"]}
    name, other, side = ("left", "right", "upper") if counts["left_upper"] else ("right", "left", "lower")
    hits, misses = counts[f"{name}_{side}"], counts[f"{other}_{side}"]
    words = f'"{name}" in {hits:,} of {runs[name]:,} {name} runs and in {misses:,} of {runs[other]:,} {other} runs'
    assert words in " ".join(shown.split())
    report = Path("out/report.html").read_text(encoding="utf-8")
    assert f"a coin that chooses “left” with probability {share:g}" in report


@pytest.mark.parametrize("of_left", [0.2, 0.8])
def test_an_event_is_counted_again_with_its_share(of_left):
    """With another coin the odds of a right guess would be others of the same learner."""
    rule = Sequences(2, 1, np.array([1, -1] * 128, dtype=np.int8))
    learner = Exp3(arms=2, eta=1.0)
    counts = Frozen(rule, of_left, Counts()).again(learner, PAIR, ACTIONS, key="x", runs=40_000)
    assert counts.runs == 40_000
    assert kept(of_left, counts)
