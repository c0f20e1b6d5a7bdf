"""Games of other people's learners: loss sets of their own, arms that vary by round, losses that the code draws."""

import itertools
import json
import math
import re

import numpy as np
import pytest
from click.testing import CliRunner

from overclaim import Claim, Pair, Verdict, falsify
from overclaim.learners.problems.losses import LOSS_SETS, loss_set
from overclaim.reports.command_line.cli import main

CODE = """
import math
import numpy as np

class Sum:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng, scale=2.0):
        self.rng, self.scale, self.total = rng, scale, 0.0
    def act(self):
        return int(self.total > 0)
    def update(self, loss):
        self.total = (0.0 if math.isnan(loss) else loss) + self.rng.laplace(scale=self.scale)

class Missing(Sum):
    def update(self, loss):
        self.total = 1.0 if math.isnan(loss) else self.rng.laplace(scale=self.scale)

class Offered(Sum):
    def offer(self, arms):
        self.arms = arms
    def act(self):
        return self.arms[int(self.total > 0)]

class Ignores(Offered):
    def act(self):
        return 1

class Draws(Sum):
    def draw(self):
        return float(self.rng.random())

class Full(Draws):
    feedback = "full"
    def draw(self):
        return [self.rng.random()] * 3
    def update(self, losses):
        super().update(losses[0])

class Nothing(Draws):
    def draw(self):
        return None
"""
LEFT, RIGHT = [{"arms": [0, 2], "losses": [3, 0]}, [0, 0, 0]], [{"arms": [0, 2], "losses": [-3, 0]}, [0, 0, 0]]
BOX = ["--losses", "box:-3:3"]
DRAWN = {"loss": "drawn"}
OFFERS = {
    "type": "array",
    "minItems": 2,
    "maxItems": 2,
    "items": {
        "type": "object",
        "properties": {"arms": {"enum": [[0, 1], [1, 2]]}, "losses": {"enum": [[0, 0], [3, 0], [-3, 0]]}},
        "required": ["arms", "losses"],
        "additionalProperties": False,
    },
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "games.py").write_text(CODE)
    monkeypatch.chdir(tmp_path)


def check(target, *words, left=None, right=None):
    sides = [] if left is None else ["--left", json.dumps(left), "--right", json.dumps(right)]
    words = ["check", f"games.py:{target}", "--epsilon", 1, "--runs", 4000, "--jobs", 1, *sides, *words]
    return CliRunner().invoke(main, [str(word) for word in words])


@pytest.mark.parametrize(
    ("words", "sides", "code"),
    [
        (["Sum", "--rounds", 2], {}, 0),
        (["Sum", "--rounds", 2, *BOX], {}, 1),
        (["Sum", "--rounds", 2, *BOX, "--set", "scale=6"], {}, 0),
        (["Sum", "--losses", "finite"], {"left": [[90, 0], [0, 0]], "right": [[-90, 0], [0, 0]]}, 1),
        (["Missing", "--losses", "any"], {"left": [[math.nan, 0], [0, 0]], "right": [[0, 0], [0, 0]]}, 1),
        (["Offered", "--arms", 3, *BOX], {"left": LEFT, "right": RIGHT}, 1),
        (["Offered", "--arms", 3, *BOX, "--set", "scale=6"], {"left": LEFT, "right": RIGHT}, 0),
        (["Offered", "--arms", 3, *BOX, "--inputs", json.dumps(OFFERS), "--neighbours", "replace-losses"], {}, 1),
        (["Draws", *BOX], {"left": [[3, 0], DRAWN, [0, 0]], "right": [[-3, 0], DRAWN, [0, 0]]}, 1),
        (
            ["Full", "--arms", 3, *BOX],
            {"left": [[3, 0, 0], DRAWN, [0, 0, 0]], "right": [[-3, 0, 0], DRAWN, [0, 0, 0]]},
            1,
        ),
    ],
)
def test_the_verdict_is_right(folder, words, sides, code):
    """Rewards outside [0, 1], arms by round and rewards of the code's own each took a patch of it."""
    done = check(*words, "--json", **sides)
    assert done.exit_code == code, done.output
    losses = [word for before, word in itertools.pairwise(words) if before == "--losses"]
    assert json.loads(done.stdout)["losses"] == (losses or ["unit"])[0]


@pytest.mark.parametrize(
    ("words", "sides", "message", "code"),
    [
        (["Sum", "--losses", "box:3:-3"], {}, "with two finite numbers, the lower one first, got 'box:3:-3'", 2),
        (["Sum", "--losses", "box:0"], {}, "with two finite numbers, the lower one first, got 'box:0'", 2),
        (["Sum", "--losses", "sphere"], {}, "lipschitz, box:LOW:HIGH, finite, any; got 'sphere'", 2),
        (
            ["Sum", "--losses", "finite"],
            {},
            "losses finite have no extremes to search",
            2,
        ),
        (["Sum", *BOX], {"left": [[4, 0]], "right": [[0, 0]]}, "must lie in [-3, 3] (box:-3:3), got 4", 2),
        (["Sum", "--losses", "finite"], {"left": [[math.nan, 0]], "right": [[0, 0]]}, "must be finite, got [nan", 2),
        (
            ["Sum", "--arms", 3],
            {"left": LEFT, "right": RIGHT},
            "round 1 offers arms, and the learner has no",
            2,
        ),
        (
            ["Offered", "--arms", 2],
            {"left": LEFT, "right": RIGHT},
            "round 1 must offer some of the arms 0 to 1, got [0, 2]",
            2,
        ),
        (
            ["Offered", "--arms", 3],
            {"left": [{"arms": [0], "losses": [1, 0]}], "right": RIGHT[:1]},
            "the loss of round 1 has 2 numbers, for 1 arms that it offers of 3",
            2,
        ),
        (["Ignores", "--arms", 3, *BOX], {"left": LEFT, "right": RIGHT}, "one of the arms [0, 2] that are offered", 4),
        (["Sum"], {"left": [[1, 0], DRAWN], "right": [[0, 0], DRAWN]}, "which has no method draw", 2),
        (["Draws"], {"left": [DRAWN, [0, 0]], "right": [[1, 0], [0, 0]]}, "must be given, and not drawn", 2),
        (["Nothing"], {"left": [[1, 0], DRAWN], "right": [[0, 0], DRAWN]}, "draw must return a finite number, got", 4),
        (["Draws", "--inputs", '{"const": [{"loss": "drawn"}]}'], {}, "a search takes no losses that the learner", 2),
    ],
)
def test_bad_input_is_one_line(folder, words, sides, message, code):
    done = check(*words, **sides)
    assert (done.exit_code, "Traceback" in done.stderr) == (code, False), done.output
    assert re.search(re.escape(message), done.stderr), done.stderr


def test_the_extremes_of_a_box_are_searched():
    class Sum:
        feedback = "bandit"

        def __init__(self, arms, rounds, rng):
            self.rng, self.total = rng, 0.0

        def act(self):
            return int(self.total > 0)

        def update(self, loss):
            self.total = loss + self.rng.laplace(scale=2.0)

    claim = Claim(epsilon=1.0, losses="box:-3:2")
    result = falsify(Sum, claim, rounds=2, arms=2, runs=1_000)
    assert result.verdict is Verdict.FALSIFIED
    assert {result.pair.left.min(), result.pair.left.max()} == {-3.0, 2.0}
    given = falsify(
        Sum, Claim(epsilon=20.0, losses="finite"), pair=Pair([[9, 9], [0, 0]], [[-9, 0], [0, 0]]), runs=400
    )
    assert given.verdict is Verdict.UNDERPOWERED


def test_named_sets_are_what_they_were():
    assert {name: (loss_set(name), loss_set(name).box) for name in LOSS_SETS} == {
        name: (one, name in ("unit", "symmetric")) for name, one in LOSS_SETS.items()
    }
    assert (loss_set("finite").bounded, loss_set("box:0:5").box, loss_set("box:0:5").high) == (False, True, 5.0)
    loss_set("any").check(np.array([math.nan, math.inf]), "the loss")


class AtEdge:
    """Its second action tells the sign of the first loss: its level is that of the noise."""

    feedback = "bandit"

    def __init__(self, arms, rounds, rng):
        self.rng, self.total, self.arms = rng, 0.0, list(range(arms))

    def offer(self, arms):
        self.arms = arms

    def draw(self):
        return float(self.rng.random())

    def act(self):
        return self.arms[int(self.total > 0)]

    def update(self, loss):
        self.total = float(self.rng.laplace(loc=loss, scale=6.0))


SIDES = {
    "box": ([[3, 3], [0, 0]], [[-3, -3], [0, 0]]),
    "offered": ([{"arms": [0, 1], "losses": [3, 3]}, [0, 0]], [{"arms": [0, 1], "losses": [-3, -3]}, [0, 0]]),
    "drawn": ([DRAWN, [3, 3], [0, 0]], [DRAWN, [-3, -3], [0, 0]]),
}


@pytest.mark.nightly(reason="1,000 audits of each game")
@pytest.mark.parametrize("game", SIDES)
def test_audits_of_a_sound_learner_at_its_edge_are_within_alpha(game):
    """Alpha is 1%, and 3 sigma of 1,000 audits are 9.4. The seeds are fixed; others would exceed 19 once in 500."""
    left, right = SIDES[game]
    above = 1 - math.exp(-0.5) / 2
    claim = Claim(epsilon=math.log(above / (1 - above)), losses="box:-3:3")
    audits = (falsify(AtEdge, claim, left=left, right=right, runs=200, seed=seed) for seed in range(1_000))
    assert sum(audit.verdict is Verdict.FALSIFIED for audit in audits) <= 19
