"""Adversaries that are found: block-constant sequences, adaptive ones; and planted faults that bounds catch."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

from overclaim.audit.execution.execution import IN_PROCESS, Budget
from overclaim.audit.plans.regret_tasks import not_measured
from overclaim.audit.regret.adaptive import play_adaptive
from overclaim.audit.regret.adversaries import adversaries, regret_losses
from overclaim.audit.regret.adversary_search import find_adversary, rows_of_arms
from overclaim.audit.regret.block_sequences import BlockSequence, equal_blocks
from overclaim.audit.regret.regret_audit import SEARCH_RESULT, RegretRequest, audit_regret
from overclaim.audit.regret.verdicts import HOLDS, VIOLATED
from overclaim.learners import Exp3, Threshold
from overclaim.learners.catalogue.entries import entries, lookup
from overclaim.learners.entry import RegretClaim, Setting
from overclaim.learners.leaders.ftrl import Ftrl
from overclaim.learners.planted.planted_regret import FlippedSign, ForgetsAfterHalf, Wrapped
from overclaim.learners.problems.domains import EntropySimplex
from overclaim.learners.problems.losses import LOSS_SETS
from overclaim.mechanisms.noise import Laplace
from overclaim.reports.command_line.cli import main
from overclaim.tests.support.command_line import refused
from overclaim.tests.support.own_code import COIN
from overclaim.tests.support.regret import play_runs

FEW = Budget(runs=20)


class NeverTheSecond(Wrapped):
    """The second arm's weight goes to the first: of four arms no listed sequence has the second best for long."""

    def act(self, state, draws):
        points = np.array(super().act(state, draws))
        points[0] += points[1]
        points[1] = 0.0
        return points


def never_the_second(rounds):
    sound = Ftrl(domain=EntropySimplex(4), rounds=rounds, eta=0.2, noise=Laplace(0.0))
    return NeverTheSecond(sound, rounds)


def faulty(build):
    """Return FTRL over experts of the catalogue with a fault; its bound says something from T = 15 on."""
    entry = lookup("agarwal-singh/ftrl-experts")
    bound = entry.regret.bound
    sound = RegretClaim(
        bound=lambda setting, learner: bound(setting, entry.build(setting)), exponent=0.5, source="Theorem 3.1, mended"
    )
    return replace(entry, build=lambda setting: build(entry.build(setting), setting.rounds), regret=sound)


@pytest.mark.few(2)
@pytest.mark.parametrize(
    ("fault", "verdict"),
    [
        (lambda learner, rounds: learner, HOLDS),
        (lambda learner, rounds: replace(learner, eta=1e-9), VIOLATED),
        (FlippedSign, VIOLATED),
        (ForgetsAfterHalf, VIOLATED),
    ],
    ids=["no fault", "learning rate 0", "sign flipped", "forgets after T/2"],
)
def test_planted_faults_violate_a_published_bound(fault, verdict):
    """T = 1024, 1000 runs, seeded; a verdict is wrong with probability 1e-6."""
    gap = {"gap": BlockSequence((1024,), (np.array([1.0, -1.0]),))}
    audit = audit_regret(
        RegretRequest(
            faulty(fault),
            Setting(rounds=1024, losses="symmetric"),
            horizons=(1, 2, 4, 8, 16, 1024),
            sequences=lambda rounds: {name: s.at(rounds) for name, s in gap.items()},
        ),
        Budget(runs=1000, confidence=1 - 1e-6),
    )
    assert audit.bound_verdict == verdict


def test_exploration_without_end_violates_the_textbook_bound():
    """2.63 sqrt(K T ln K) of Auer et al. 2002 for EXP3, T = 512."""
    bound = RegretClaim(bound=lambda s, _: 2.63 * np.sqrt(2 * s.rounds * np.log(2)), exponent=0.5, source="textbook")
    audit = audit_regret(
        RegretRequest(Exp3(arms=2, eta=0.05, gamma=1.0), Setting(rounds=512), claim=bound), Budget(runs=50)
    )
    assert audit.bound_verdict == VIOLATED


class StopsLearning(Wrapped):
    """It learns in the first eighth of the rounds."""

    def update(self, state, actions, feedback, draws):
        state.rounds += 1
        if state.rounds <= self.rounds // 8:
            self.inner.update(state.inner, actions, feedback, draws)


def test_a_learner_of_convex_losses_that_stops_learning_regrets_an_early_switch():
    """Of half the rounds each no point is better than 0, which costs nobody."""
    entry = lookup("smith-thakurta/pftal-lipschitz")
    setting = entry.setting(rounds=256, epsilon=1e6)
    sound = entry.build(setting)
    chosen = regret_losses(entry, setting, sound, 0)

    def regret(learner, name):
        return play_runs(learner, chosen[name], FEW).mean

    faulty = StopsLearning(sound, 256)
    assert max(regret(faulty, "switching"), regret(sound, "early switch")) < 0.05 * 256
    assert regret(faulty, "early switch") > 0.9 * 256


def test_a_search_finds_what_the_list_has_not():
    learner, rounds = never_the_second(64), 64
    adversary = find_adversary(learner, rows_of_arms("unit", 4), rounds, FEW, IN_PROCESS)
    of_list = max(
        play_runs(learner, losses, FEW).mean for losses in adversaries("unit", rounds=rounds, arms=4).values()
    )
    assert play_runs(learner, adversary.at(rounds), FEW).mean >= 2 * of_list > 0
    assert len(adversary.lengths) <= 4
    again = find_adversary(learner, rows_of_arms("unit", 4), rounds, FEW, IN_PROCESS)
    assert adversary.to_json() == again.to_json()


def test_what_is_found_counts_for_the_verdict_and_is_measured_on_other_draws():
    """The planted fault of a search: it certifies with the runs that it chose by."""
    learner = never_the_second(64)
    bound = RegretClaim(bound=lambda setting, _: 0.4 * setting.rounds, exponent=1.0, source="ours")
    game = Setting(rounds=64, arms=4)
    many, horizons = Budget(runs=150), (1, 2, 4, 8, 16, 64)
    assert audit_regret(RegretRequest(learner, game, claim=bound, horizons=horizons), many).bound_verdict == HOLDS
    audit = audit_regret(RegretRequest(learner, game, claim=bound, horizons=horizons, search=True), many)
    assert (audit.bound_verdict, audit.sequence) == (VIOLATED, SEARCH_RESULT)
    assert audit.means[SEARCH_RESULT] == pytest.approx(audit.regret.mean)
    learner = Exp3(arms=2, eta=0.3, gamma=0.1)
    one, two = (play_runs(learner, np.tile([1.0, 0.0], (64, 1)), FEW, label=label) for label in (0, 1_000_001))
    assert not np.array_equal(one.totals, two.totals)


@pytest.mark.parametrize("losses", sorted(LOSS_SETS))
@pytest.mark.parametrize("arms", [1, 2, 4])
def test_rows_lie_in_the_loss_set_and_the_first_two_are_opposites(losses, arms):
    rows = rows_of_arms(losses, arms)
    for row in rows:
        LOSS_SETS[losses].check(row, "row")
    assert arms == 1 or not np.array_equal(rows[0], rows[1])


def test_a_block_sequence_keeps_its_shares_and_survives_json():
    rows = np.eye(2)
    sequence = equal_blocks(16, [rows[0], rows[0], rows[1], rows[0]])
    assert sequence.lengths == (8, 4, 4)
    assert [len(sequence.at(rounds)) for rounds in (1, 3, 16, 1000)] == [1, 3, 16, 1000]
    assert sequence.at(1000)[499:501].tolist() == [[1, 0], [0, 1]]
    again = BlockSequence.from_json(json.loads(json.dumps(sequence.to_json())))
    np.testing.assert_array_equal(again.at(16), sequence.at(16))


FLAT = {"loss": "linear", "slope": [0.0]}


@pytest.mark.parametrize(
    "data",
    [
        *([], {}, [[1, 2, 3]], [[0, [1.0]]], [[True, [1.0]]], [[1, [1.0]], [1, [1.0, 2.0]]], [[1, ["a"]]], [[1, 5]]),
        [[1, {"loss": "switch", "below": FLAT, "above": FLAT}]],
    ],
)
def test_what_is_no_sequence_is_refused(data):
    with pytest.raises(ValueError, match=r"sequence|loss"):
        BlockSequence.from_json(data)


def test_adaptive_adversaries_make_a_learner_that_is_stuck_pay_nearly_all():
    """It plays arm 0 for ever: the other costs nothing, and the first round is free where the last arm is punished."""
    played = play_adaptive(Threshold(arms=2, threshold=1e9), "unit", 10, FEW, IN_PROCESS)
    assert {name: set(one.totals) for name, one in played.items()} == {
        "punishes the last arm": {9.0},
        "chases the leader": {10.0},
    }
    assert (
        play_adaptive(lookup("agarwal-singh/ftrl-experts").build(Setting(rounds=8)), "unit", 8, FEW, IN_PROCESS)
        is None
    )


def test_uniform_play_is_hardly_hurt_by_what_answers_its_past():
    """1000 runs: the mean regret against what punishes the last arm is that of a fair walk's maximum, about 2.6."""
    uniform = Exp3(arms=2, eta=1e-9, gamma=1.0)
    regret = play_adaptive(uniform, "unit", 40, Budget(runs=1000), IN_PROCESS)["punishes the last arm"]
    assert 1.5 < regret.mean < 4


def test_the_command_shows_a_witness_that_plays_again():
    arguments = ["regret", "agarwal-singh/ftrl-experts", "--rounds", "16", "--runs", "20", "--jobs", "1"]
    first = CliRunner().invoke(main, [*arguments, "--search", "--json"])
    printed = json.loads(first.output)
    assert set(printed["by_sequence"]) > {SEARCH_RESULT, "constant gap"}
    again = CliRunner().invoke(main, [*arguments, "--sequence", json.dumps(printed["found"]), "--json"])
    assert list(json.loads(again.output)["by_sequence"]) == ["given"]
    assert json.dumps(printed["found"]) in printed["replay"]
    shown = CliRunner().invoke(main, [*arguments, "--search", "-v"]).output
    assert f"\n  Reproduce   {printed['replay']}\n" in shown  # its mean is another one
    assert json.loads(again.output)["by_sequence"]["given"] != printed["by_sequence"][SEARCH_RESULT]
    refused(
        CliRunner().invoke(main, [*arguments, "--search", "--sequence", "[[4, [1, 0]]]"]),
        "--search cannot go with --sequence",
    )
    assert CliRunner().invoke(main, [*arguments, "--sequence", "[[4, [3, 0]]]"]).exit_code == 2


@pytest.mark.slow(reason="a search")
def test_a_witness_is_replayed_as_it_was_asked_for():
    arguments = ["regret", "agarwal-singh/ftrl-experts", "--rounds", "16", "--runs", "20", "--jobs", "1"]
    asked = ["--stop", "early", "--confidence", "0.9"]
    replay = json.loads(CliRunner().invoke(main, [*arguments, "--search", *asked, "--json"]).stdout)["replay"]
    assert all(word in replay.split() for word in asked)


@pytest.mark.parametrize("loss", ["[1, 0, 1]", "[1]", '{"loss": "linear", "slope": [1, 0, 0]}'])
def test_losses_of_another_length_than_the_learners_are_bad_input(loss, tmp_path):
    """They were blamed on the learner, or told of in the words of a matrix product."""
    (tmp_path / "own.py").write_text(COIN)
    for target in (f"{tmp_path}/own.py:Coin", "agarwal-singh/ftrl-ball"):
        arguments = ["regret", target, "--runs", "20", "--jobs", "1", "--sequence", f"[[3, {loss}]]"]
        refused(
            CliRunner().invoke(main, arguments),
            "the loss of round 1 of 'given' has length",
            "but the learner has 2 arms",
        )


def test_a_run_searches_where_the_bound_says_something():
    """At a quarter of the horizon: the entry's bound binds at T = 64, that of HTINF at 10,803."""
    budget, horizons = Budget(runs=20), (2, 4, 8, 16, 32, 64)
    for name, binds in (("agarwal-singh/ftrl-experts", True), ("asi-raman-talwar/batched-htinf", False)):
        entry = lookup(name)
        audit = audit_regret(
            RegretRequest(entry, entry.setting(rounds=64), horizons=horizons, search_where_binding=True), budget
        )
        assert (audit.adversary is not None) == binds == (SEARCH_RESULT in audit.means)
        assert not audit.adaptive
        if binds:
            assert audit.adversary.rounds == 16


def test_what_is_not_measured_is_listed_with_its_reason():
    listed = {row["name"] for row in not_measured()}
    assert listed == {name for name, entry in entries().items() if entry.regret and not entry.regret.measured}
    assert all(row["reason"] and row["source"] for row in not_measured())
