"""What the adversary sees: the actions of others alone, reports, models, and what a plain class releases."""

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner

from overclaim import Claim, Pair, Verdict, falsify
from overclaim.audit.play.learner_mechanism import RoundsPair
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.learners.problems.losses import Linear, Switch
from overclaim.mechanisms.view import JOINT, VIEWS
from overclaim.reports.command_line.cli import main

CONTEXTS = [{"context": c, "losses": [0, 0]} for c in (0, 1)]
LEFT, RIGHT = [CONTEXTS[0], *[CONTEXTS[0]] * 3], [CONTEXTS[1], *[CONTEXTS[0]] * 3]
TELLING = [[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [0.0, 0.0]]


class Counting:
    """Two contexts, two arms: the rarer arm of a context is played first, and all counts get noise of one scale."""

    feedback = "bandit"
    noise = 4.0

    def __init__(self, arms, rounds, rng):
        self.rng, self.counts = rng, np.array([[0.0, 1.0], [1.0, 0.0]])

    def observe(self, context):
        self.context = context

    def act(self):
        self.arm = int(self.counts[self.context].argmin())
        return self.arm

    def update(self, loss):
        self.counts[self.context, self.arm] += 1
        if self.noise:
            self.counts += self.rng.laplace(0, self.noise, self.counts.shape)


class Exact(Counting):
    noise = 0.0


class Running:
    """Publishes a running sum: each loss costs 1 / scale in each round that shows it."""

    feedback = "full"
    scale = 2.0

    def __init__(self, arms, rounds, rng):
        self.rng, self.sum = rng, 0.0

    def act(self):
        return 0

    def update(self, losses):
        self.sum += losses[0]
        self.shown = {"sum": self.sum + self.rng.laplace(0, self.scale), "rounds": [1]}

    def model(self):
        return self.shown

    def release(self):
        return self.shown["sum"]


class Leaking(Running):
    scale = 0.5


class Telling:
    """Sends the loss of its user by randomised response."""

    feedback = "bandit"
    true = math.e / (1 + math.e)

    def __init__(self, arms, rounds, rng):
        self.rng = rng

    def act(self):
        return int(self.rng.integers(2))

    def update(self, loss):
        self.bit = round(loss) if self.rng.random() < self.true else 1 - round(loss)

    def report(self):
        return self.bit


class Indiscreet(Telling):
    true = 0.95


# The chance of a false alarm is at most 1e-6 per row (confidence); the broken ones are missed with less than 1e-9.
@pytest.mark.few("Counting-joint---", "Running-release---", "Leaking-release---", "Indiscreet-reports---")
@pytest.mark.parametrize(
    ("target", "surface", "epsilon", "worlds", "falsified"),
    [
        (Counting, "joint", 1.0, (LEFT, RIGHT), False),
        (Exact, "joint", 1.0, (LEFT, RIGHT), True),
        (Running, "model", 1.0, TELLING, False),
        (Leaking, "model", 1.0, TELLING, True),
        (Running, "release", 0.5, TELLING, False),
        (Leaking, "release", 0.5, TELLING, True),
        (Telling, "reports", 1.0, TELLING, False),
        (Indiscreet, "reports", 1.0, TELLING, True),
    ],
    ids=lambda value: getattr(value, "__name__", None) or (value if isinstance(value, str) else ""),
)
def test_each_view_shows_what_it_says(target, surface, epsilon, worlds, falsified):
    claim = Claim(epsilon=epsilon, surface=surface)
    left, right = worlds
    result = falsify(target, claim, left=left, right=right, runs=3000, confidence=1 - 1e-6)
    assert (result.verdict is Verdict.FALSIFIED) == falsified


def test_the_own_action_is_named_and_hidden():
    """An action that shows its own context is no violation of joint privacy, and the words say so."""
    words = {"left": LEFT, "right": RIGHT, "runs": 1000}
    seen = falsify(Counting, Claim(epsilon=1.0), **words)
    assert seen.verdict is Verdict.FALSIFIED
    assert "the action of round 1 = 0" in seen.event_in_words
    assert seen.event_in_words.endswith("which joint privacy hides: --surface joint")
    late = falsify(Exact, Claim(epsilon=1.0, surface="joint"), **words)
    assert late.verdict is Verdict.FALSIFIED
    assert "joint privacy" not in late.event_in_words
    assert "round 1 " not in late.event_in_words


def test_whoever_differs_has_all_her_rounds():
    """Those of the other world too, also where they agree; without users the rounds that differ."""
    mine, hers = ({"user": user, "losses": [0.0, 0.0]} for user in "ab")
    worlds = [mine, hers, mine, hers], [{**mine, "losses": [1.0, 1.0]}, hers, mine, hers]
    assert RoundsPair(*worlds).own == {0, 2}
    assert RoundsPair([mine, hers], [hers, hers]).own == {0, 1}
    assert RoundsPair([[0.0], [0.0]], [[1.0], [0.0]]).own == {0}
    assert RoundsPair([mine, mine], [{**mine, "losses": [1.0, 1.0]}, mine]).shows_nothing(JOINT)


@pytest.mark.few("joint")
@pytest.mark.parametrize("surface", [name for name, view in VIEWS.items() if not view.plays_losses])
def test_without_inputs_the_standard_pairs_are_searched(surface):
    kinds = {"joint": BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=20.0, batch=1)}
    target = kinds.get(surface, {"reports": Indiscreet, "model": Leaking}.get(surface))
    result = falsify(target, Claim(epsilon=0.5, surface=surface), rounds=2, runs=4000)
    assert result.verdict is Verdict.FALSIFIED


def test_others_may_not_read_hidden_actions():
    """A loss that depends on earlier actions would tell others what is hidden from them."""
    zero, one = Linear(slope=(0.0, 0.0)), Linear(slope=(0.5, 0.5))
    switch = Switch(coordinate=0, below=zero, above=one)
    learner = BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)
    pair = Pair([zero, switch], [one, switch])
    with pytest.raises(ValueError, match="no loss may depend on earlier actions on the surface joint: it would show"):
        falsify(learner, Claim(epsilon=1.0, surface="joint", losses="lipschitz"), pair=pair, runs=100)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--surface", "reports"], "Running has no method report, whose value is seen after each update"),
        (
            ["--surface", "joints"],
            "publication, joint, reports, model; got 'joints'",
        ),
        (["--surface", "joint", "--neighbours", "user"], "zero-out; got 'user'"),
    ],
)
def test_bad_words(tmp_path, words, why):
    (tmp_path / "own.py").write_text(
        "class Running:\n    feedback = 'full'\n"
        "    def __init__(self, arms, rounds, rng): self.rng = rng\n"
        "    def act(self): return 0\n    def update(self, losses): self.sum = losses[0] + self.rng.laplace(0, 1.0)\n"
        "    def model(self): return self.sum\n"
    )
    done = CliRunner().invoke(main, ["check", f"{tmp_path}/own.py:Running", "--epsilon", "1", "--rounds", "2", *words])
    assert done.exit_code == 2
    assert why in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow(reason="whole commands; each view alone is quick")
def test_plans_and_traces_know_views(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.py").write_text(
        "class Running:\n    feedback = 'full'\n"
        "    def __init__(self, arms, rounds, rng): self.rng = rng\n"
        "    def act(self): return 0\n    def update(self, losses): self.sum = losses[0] + self.rng.laplace(0, 2.0)\n"
        "    def model(self): return self.sum\n"
    )
    (tmp_path / "plan.toml").write_text(
        '[[claims]]\ntarget = "own.py:Running"\nepsilon = 1\nrounds = 2\nsurface = "model"\nruns = 1000\n'
        'untested = "allowed"\n'
    )
    done = CliRunner().invoke(main, ["run", "plan.toml", "--out", "out", "--no-blind-spots"])
    assert done.exit_code == 0, done.output
    (claim,) = json.loads((tmp_path / "out" / "record.json").read_text())["claims"]
    assert (claim["surface"], claim["verdict"]) == ("model", "UNDERPOWERED")
    traced = CliRunner().invoke(
        main, ["trace", "own.py:Running", "--epsilon", "1", "--rounds", "2", "--surface", "model", "--json"]
    )
    assert json.loads(traced.stdout)["calls"][0]["left"] != json.loads(traced.stdout)["calls"][0]["right"]
