"""What is printed of an error: what is wrong, where, and what to do, in the words of the command that was typed."""

import pickle

import pytest

from overclaim.audit.plans.plan import read_plan
from overclaim.errors import WHERE, did_you_mean, hinted, must_be_one_of, notes_of, placed, reworded, subject_of
from overclaim.tests.support.command_line import overclaim

OWN = """import numpy as np

class Tally:
    feedback = "full"

    def __init__(self, arms, rounds, rng):
        self.rng, self.sums = rng, np.zeros(arms)

    def act(self):
        return int(np.argmin(self.sums + self.rng.laplace(size=len(self.sums))))

    def update(self, losses):
        self.sums += losses

class Crash(Tally):
    def update(self, losses):
        raise ValueError("weights do not sum to 1")

def count(data, rng):
    return len(data) + rng.laplace()

def shared(data):
    return len(data) + np.random.laplace()
"""
#: Each with its exit code, its first line, and the lines below that.
SAID = {
    "my.py:Tally --epsilon 1 --fast": (
        2,
        "--fast: kernels were removed in 0.3.0: every audit plays on NumPy",
        "hint:  leave out --fast",
    ),
    "my.py:Tally --epsilom 1": (2, "no such option: --epsilom", "hint:  did you mean --epsilon?"),
    "my.py:Tall --epsilon 1": (2, "my.py has no class or function 'Tall'", "hint:  did you mean my.py:Tally?"),
    "my.py:Tally --epsilon 1 --runs 200": (
        2,
        "--runs 200 is too small: choosing among 18 pairs of inputs takes 360 runs",
        "hint:  use --runs 361 or more, or give the inputs with --pair, or --left and --right",
    ),
    "my.py:Tally --epsilon 1 --losses units": (
        2,
        "--losses must be one of unit, symmetric, l1-ball, l2-ball, lipschitz, box:LOW:HIGH, finite, any; got 'units'",
        "hint:  did you mean unit?",
    ),
    "my.py:Tally --epsilon 1 --neighbours zero-in": (
        2,
        "--neighbours must be one of replace, zero-out, add-remove, substitute-feature, user, replace-user, "
        "zero-out-user, replace-losses, user-losses, l1:D, l2:D, linf:D; got 'zero-in'",
        "hint:  did you mean zero-out?",
    ),
    "my.py:Tally --epsilon 1 --surface action": (
        2,
        "--surface must be one of actions, release, publication, joint, reports, model; got 'action'",
        "hint:  did you mean actions?",
    ),
    "my.py:Crash --epsilon 1 --runs 2000": (
        4,
        "my.py:Crash raised ValueError: weights do not sum to 1",
        "where: my.py:17 in update(); round 1, run 0",
        "hint:  --raising outcome takes an exception as an outcome like any other",
    ),
    "my.py:count --epsilon 1 --left [1]": (2, "my.py:count needs two inputs, --left and --right: --right is missing"),
    "my.py:count --epsilon 1 --left [1] --right [2] --rounds 3": (
        2,
        "my.py:count is a mechanism: it takes no --rounds",
    ),
    "my.py:Tally --epsilon 1 --bits": (2, "my.py:Tally is a learner: it takes no --bits"),
    "agarwal-singh/ftrl-experts --set eta=-1": (
        2,
        "--set eta must be positive and finite, got -1.0",
    ),
    "agarwal-singh/ftrl-experts --epsilon -1": (
        2,
        "--epsilon must be positive: the noise is calibrated to it, got -1.0",
    ),
}


@pytest.fixture
def own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my.py").write_text(OWN)
    return tmp_path


@pytest.mark.parametrize("words", SAID)
def test_an_error_says_what_where_and_what_to_do(own, words):
    code, first, *below = SAID[words]
    result = overclaim("check", *words.split(), "--jobs", 1)
    lines = [f"overclaim: error: {first}", *(f"  {line}" for line in below)]
    assert (result.exit_code, result.stdout, result.stderr.splitlines()) == (code, "", lines)


def test_a_hint_names_options_of_the_command_alone(own):
    """`regret` has no `--raising`; `check` has, and `--global-random` too."""
    crash = overclaim("regret", "my.py:Crash", "--rounds", 20)
    last = "  hint:  OVERCLAIM_TRACEBACK=1 prints the traceback. No verdict was reached."
    assert (crash.exit_code, crash.stderr.splitlines()[-1]) == (4, last)
    called = overclaim("check", "my.py:shared", "--epsilon", 1, "--left", "[1]", "--right", "[2]", "--runs", 200)
    assert called.exit_code == 2
    assert called.stderr.splitlines()[-1].startswith("  hint:  overclaim check my.py:shared")
    assert called.stderr.splitlines()[-1].endswith(" --global-random")


def test_a_mechanism_is_told_which_command_audits_it(own):
    regret = overclaim("regret", "my.py:count")
    assert regret.stderr.splitlines() == [
        "overclaim: error: regret measures learners only, and my.py:count is a mechanism",
        "  hint:  overclaim check my.py:count --epsilon 1 --left JSON --right JSON",
    ]


def test_the_arms_are_those_of_the_losses_that_are_given(own):
    """It took 2, and complained of 3."""
    rounds = ("--left", "[[1, 0, 0], [0, 1, 0]]", "--right", "[[0, 0, 0], [0, 1, 0]]")
    assert overclaim("check", "my.py:Tally", "--epsilon", 8, *rounds, "--runs", 400, "--jobs", 1).exit_code in (0, 3)
    other = overclaim("check", "my.py:Tally", "--epsilon", 1, *rounds, "--arms", 2, "--runs", 400)
    assert other.stderr.endswith("the pair has 3 arms, but the learner has 2 arms\n  hint:  give --arms 3\n")


@pytest.mark.parametrize(
    ("line", "said", "hint"),
    [
        ('losses = "units"', "5: losses must be one of unit, symmetric", "did you mean unit?"),
        ('loses = "unit"', "5: unknown key 'loses'", "did you mean losses?"),
        ('neighbours = "replce"', "5: neighbours must be one of replace", "did you mean replace?"),
        (
            'expect = "survive"',
            "5: expect must be one of falsified, survived; got 'survive'",
            "did you mean survived?",
        ),
        ("set = { eta = -1 }", "5: eta must be positive and finite, got -1.0", ""),
        ("set = { etta = 1 }", "5: agarwal-singh/ftrl-experts has no parameter 'etta'", "did you mean eta?"),
    ],
)
def test_a_plan_names_the_line_and_what_was_meant(tmp_path, line, said, hint):
    plan = tmp_path / "plan.toml"
    plan.write_text(f'\n\n[[claims]]\ntarget = "agarwal-singh/ftrl-experts"\n{line}\n')
    with pytest.raises(ValueError, match="plan") as caught:
        read_plan(plan)
    assert str(caught.value).startswith(f"{plan}:{said}")
    assert [one for one in notes_of(caught.value) if "did you" in one] == [hint] * bool(hint)


def test_hints_and_places_survive_processes_and_other_words():
    error = placed(hinted(must_be_one_of("losses", ["unit"], "units"), "see there"), "a.py:3")
    for one in (pickle.loads(pickle.dumps(error)), reworded(error, "other", ValueError)):
        assert notes_of(one) == ["did you mean unit?", "see there"]
        assert notes_of(one, WHERE) == ["a.py:3"]
    assert subject_of(pickle.loads(pickle.dumps(error))) == "losses"


@pytest.mark.parametrize(
    ("name", "known", "said"),
    [
        ("gaussian", ["mechanisms/gaussian", "mechanisms/analytic-gaussian"], "did you mean mechanisms/gaussian?"),
        ("Unit", ["unit", "symmetric"], "did you mean unit?"),
        ("moon", ["cube", "ball"], ""),
        ("", ["cube"], ""),
        ("replace-us", ["replace", "replace-user", "user"], "did you mean replace-user or replace?"),
    ],
)
def test_what_was_meant(name, known, said):
    assert did_you_mean(name, known) == said
