"""An audit that could not have falsified its claim is UNDERPOWERED for a reason, and ends with 3 unless allowed."""

import json

import pytest

from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans.plan import literature, read_plan
from overclaim.audit.plans.tasks import Task
from overclaim.audit.play.pairs import Pair
from overclaim.learners.catalogue.entries import entries
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.reports.reading import reason_words
from overclaim.reports.record import claim_record
from overclaim.tests.support.command_line import overclaim

PLAN = """
[[claims]]
target = "asi-raman-talwar/batched-threshold"
runs = 4000
expect = "survived"

[[claims]]
target = "asi-raman-talwar/batched-threshold"
rounds = 2
runs = 4000
expect = "survived"
set = { batch = 2 }  # as long as the game: nothing can be seen
"""


@pytest.fixture(autouse=True, scope="module")
def power_tests():
    """Measure power, as commands do."""


def run(folder, plan, *words):
    (folder / "plan.toml").write_text(plan)
    result = overclaim("run", "plan.toml", "--out", "out", "--jobs", 1, *words)
    path = folder / "out" / "record.json"
    return result, json.loads(path.read_text()) if path.exists() else None


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_an_untested_claim_ends_with_3_and_has_no_tick(here):
    result, record = run(here, PLAN)
    assert result.exit_code == 3
    first, second = record["claims"]
    assert (first["untested"], second["untested"]) == (False, True)
    assert first["blind_spot"]["factor"] <= 1.5
    assert second["blind_spot"]["factor"] is None
    assert second["blind_spot"]["tried"] == 100
    assert [claim["verdict"] for claim in record["claims"]] == ["SURVIVED", "UNDERPOWERED"]
    assert [claim["reason"] for claim in record["claims"]] == [None, "hidden by the exact law"]
    assert "2 claims: 1 survived, 1 underpowered" in result.stdout
    assert "; 1 verdict was not expected" in result.stdout
    assert ": UNDERPOWERED (hidden by the exact law), but the plan expects SURVIVED\n    overclaim c" in result.stdout
    assert "as expected" not in result.stdout
    html = (here / "out" / "report.html").read_text()
    assert '<span class="verdict UNDERPOWERED">UNDERPOWERED</span>' in html
    assert "<small>hidden by the exact law</small>" in html
    assert "hidden by the exact law: nothing can be seen on the standard pairs" in html


def test_what_is_allowed_ends_with_0(here):
    result, record = run(here, PLAN + 'untested = "allowed"\n')
    assert result.exit_code == 0
    assert record["claims"][1]["verdict"] == "UNDERPOWERED"
    assert ", all as expected" in result.stdout
    assert record["claims"][1]["untested"]
    assert record["claims"][1]["untested_allowed"]


def test_blind_spots_can_be_switched_off(here):
    result, record = run(here, PLAN, "--no-blind-spots")
    assert result.exit_code == 3  # an exact law says that the second shows nothing
    assert [claim["blind_spot"] for claim in record["claims"]] == [None, None]
    assert [claim["untested"] for claim in record["claims"]] == [False, True]
    result, record = run(here, PLAN + "weaken = false\n")
    assert record["claims"][0]["blind_spot"]
    assert record["claims"][1]["blind_spot"] is None


def test_a_parameter_that_is_none_is_refused_where_power_is_not_measured_too(here):
    (here / "noisy.py").write_text("def count(data, rng):\n    return len(data) + rng.laplace()\n")
    claim = '[[claims]]\ntarget = "noisy.py:count"\nepsilon = 1.0\nleft = [1, 2]\nright = [1]\nruns = 500\n'
    for words in ([], ["--no-blind-spots"]):
        result, _ = run(here, claim + 'weaken = "nope"\n', *words)
        assert result.exit_code == 2
        assert "weaken: count has no parameter 'nope'" in result.stdout
    assert run(here, claim, "--no-blind-spots")[0].exit_code == 0


def test_what_an_exact_law_shows_is_told_in_the_measure_of_the_claim(here):
    words = ["check", "asi-raman-talwar/batched-threshold", "--runs", 2000, "--set", "epsilon=1"]
    profile = ["--profile", "[[3, 0.01], [4, 0.6]]"]  # at delta 0.6 epsilon is 0, at 0.01 it is not
    assert overclaim(*words, "--rounds", 2, *profile, "--power", 5).exit_code == 0
    for claim, nothing in (
        (profile, "the multiple of the profile is exactly 0"),
        (["--gdp", 1], "mu is exactly 0"),
        (["--epsilon", 0, "--delta", 0.9], "delta is exactly 0 at epsilon 0"),
    ):
        alike = overclaim(*words, "--rounds", 1, *claim)
        assert alike.exit_code == 3
        said = " ".join(alike.stdout.split())
        assert f"on this pair {nothing}" in said
        assert f"; {nothing} for these inputs" in said


def test_check_measures_on_request_and_ends_with_3(here):
    words = ["asi-raman-talwar/batched-threshold", "--rounds", 2, "--runs", 4000, "--set", "batch=2"]
    alike = overclaim("check", *words, "--power", "off")
    assert alike.exit_code == 3
    said = "UNDERPOWERED asi-raman-talwar/batched-threshold: claimed epsilon 1; epsilon is exactly 0 for these inputs"
    assert said in " ".join(alike.stdout.split())
    assert "on this pair epsilon is exactly 0\n" in alike.stdout
    assert "not a proof" not in alike.stdout
    rates = [word for name in ("eta=none", "gamma=none", "batch=1") for word in ("--set", name)]  # the entry's own
    rounded = overclaim("check", "asi-raman-talwar/batched-exp3", "--runs", 2000, *rates)  # epsilon 4e-16
    assert rounded.stdout.startswith("UNDERPOWERED  asi-raman-talwar/batched-exp3: claimed epsilon")
    assert "3 underpowered" in overclaim("--help").stdout
    assert overclaim("check", *words[:5]).exit_code == 0
    run = overclaim("check", *words, "--weaken")
    assert run.exit_code == 3
    assert "nothing can be seen on the standard pairs\n" in run.stdout
    assert "Reproduce   " in run.stdout
    caught = overclaim("check", *words[:5], "--weaken", "epsilon", "--json")
    assert caught.exit_code == 0
    assert json.loads(caught.stdout)["blind_spot"]["parameter"] == "epsilon"


def test_what_a_learner_of_ones_own_is_told_last_tests_nothing(here):
    """Every learner survived this, whatever it does: the green tick was of the game."""
    (here / "mine.py").write_text(
        "class Mine:\n    feedback = 'full'\n"
        "    def __init__(self, arms, rounds, rng): self.losses = [0.0, 0.0]\n"
        "    def act(self): return int(self.losses[0] > self.losses[1])\n"
        "    def update(self, losses): self.losses = losses\n"
    )
    words = ["check", "mine.py:Mine", "--epsilon", 1, "--runs", 400]
    pair = {"left": [[0, 1], [0, 1]], "right": [[0, 1], [1, 0]]}
    sides = [word for side in pair for word in (f"--{side}", json.dumps(pair[side]))]
    for game in (["--rounds", 1], ["--pair", json.dumps(pair)], sides):
        alike = overclaim(*words, *game)
        assert alike.exit_code == 3
        assert alike.stdout.startswith("UNDERPOWERED  mine.py:Mine: claimed epsilon 1; epsilon is exactly 0")
        why = "on this pair epsilon is exactly 0: the inputs differ in"
        assert why in " ".join(alike.stdout.split())
    assert overclaim(*words[:2], "--gdp", 1, *words[4:], *sides).exit_code == 3
    assert overclaim(*words, "--rounds", 2).exit_code == 1


@pytest.mark.few("budget", "learner", "rounds")
@pytest.mark.parametrize(
    "words",
    [
        ["mine.py:forgets", "--left", "[1]", "--right", "[0]", "--runs", 400],
        ["mine.py:forgets", "--left", "[1]", "--right", "[0]", "--runs", 400, "--stop", "early"],
        ["mine.py:forgets", "--left", "[1]", "--right", "[0]", "--runs", 400, "--gdp", 1],
        ["mine.py:forgets", "--left", "[1]", "--right", "[0]", "--runs", 400, "--weaken", "1/scale"],
        ["mine.py:Stuck", "--rounds", 4, "--runs", 800],
        ["mine.py:Stuck", "--rounds", 4, "--runs", 800, "--stop", "early"],
        ["mine.py:Stuck", "--left", "[[1, 0], [0, 0]]", "--right", "[[0, 0], [0, 0]]", "--runs", 400],
    ],
    ids=["budget", "early", "mu", "weakened", "learner", "learner early", "rounds"],
)
def test_what_shows_the_same_in_every_run_is_underpowered(here, words):
    """A mechanism that forgets to return its answer had a green tick."""
    (here / "mine.py").write_text(
        "def forgets(data, rng, scale=0.01): sum(data) + rng.laplace(scale=scale)\n"
        "class Stuck:\n    feedback = 'full'\n"
        "    def __init__(self, arms, rounds, rng): pass\n"
        "    def act(self): return 1\n"
        "    def update(self, losses): pass\n"
    )
    claim = [] if "--gdp" in words else ["--epsilon", 1]
    result = overclaim("check", *words, *claim)
    assert result.exit_code == 3
    assert result.stdout.startswith("UNDERPOWERED  mine.py:")
    said = " ".join(result.stdout.split())
    assert "; no difference was seen (nothing certified)" in said
    assert "all runs that were looked at show the same, as far as it is read" in said


@pytest.mark.parametrize(
    "asked",
    [
        {"rounds": 1, "parameters": {"batch": "1"}, "power": "off"},
        {"rounds": 1, "measure": GDP(1.0)},
        {"weaken": True, "parameters": {"batch": "2"}},
        {"left": [[0, 1], [0, 1]], "right": [[0, 1], [1, 0]]},
    ],
    ids=["last", "mu", "weakened", "sides"],
)
def test_a_result_and_its_record_give_one_reason(asked):
    """A result did not say what an exact law shows there, nor why a blind spot is too large."""
    task = Task(target="asi-raman-talwar/batched-threshold", budget=Budget(runs=1000), **{"rounds": 2, **asked})
    prepared = task.prepare()
    result = prepared.audit()
    record = claim_record(prepared, result)
    words = reason_words(record)
    assert result.untested
    assert record["reason"] == result.reason
    assert result.why_underpowered == words
    assert f"; {words}" in str(result)
    assert ("last losses" in words) == ("weaken" not in asked)


def test_a_publication_shows_what_is_told_last():
    words = ["ene-nguyen-vladu/tree-aggregation", "--runs", 2000, "--left", "[[1], [0]]", "--right", "[[1], [1]]"]
    assert overclaim("check", *words, "--surface", "publication").exit_code == 0
    assert overclaim("check", *words, "--surface", "release").exit_code == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('weaken = "sigma"', "weaken: 'sigma' has no value in asi-raman-talwar/batched-threshold"),
        ('weaken = "2/epsilon"', "weaken must be NAME, to be multiplied by the factor, or 1/NAME, got '2/epsilon'"),
        ("weaken = 3", "weaken must be true, false, or the parameter that sets the noise, got 3"),
        ('untested = "yes"', "untested must be one of allowed; got 'yes'"),
    ],
)
def test_bad_values_are_one_line(here, text, told):
    result, _ = run(here, f'[[claims]]\ntarget = "asi-raman-talwar/batched-threshold"\nruns = 200\n{text}\n')
    assert result.exit_code == 2
    assert told in " ".join((result.stdout + result.stderr).split())


def test_plans_and_commands_measure_power_unless_it_is_off():
    plan = literature()
    assert all(task.power is None for task in plan.tasks)
    assert all(task.required_power is None for task in plan.without_blind_spots().tasks)
    assert Task(target="mechanisms/laplace", power=5.0).required_power == 5.0
    assert Task(target="mechanisms/laplace", weaken=False).required_power is None
    with pytest.raises(ValueError, match=r"power must be a factor of at least 1.1, or off, got 1"):
        Task(target="mechanisms/laplace", power=1.0)


def test_a_plan_names_the_parameter_of_a_learner_of_ones_own(here):
    (here / "mine.py").write_text(
        "class Mine:\n    feedback = 'bandit'\n"
        "    def __init__(self, arms, rounds, rng, scale=1.0): self.rng, self.scale, self.arm = rng, scale, 0\n"
        "    def act(self): return self.arm\n"
        "    def update(self, loss): self.arm = int(loss + self.rng.laplace(0, self.scale) > 1)\n"
    )
    (here / "plan.toml").write_text(
        '[[claims]]\ntarget = "mine.py:Mine"\nepsilon = 1.0\nrounds = 2\nweaken = "1/scale"\nset = { scale = 2.0 }\n'
    )
    task = read_plan(here / "plan.toml").tasks[0]
    assert task.prepare().weakening.weaken(4.0).parameters == {"scale": 0.5}
    assert task.command().endswith("--weaken 1/scale")


@pytest.mark.few(3)
@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("agarwal-singh/reduction-exp2-actions", 1.0),
        ("agarwal-singh/reduction-exp2-hypercube", 0.5),
        ("agarwal-singh/ftpl-ball", 0.3),
        ("agarwal-singh/ftpl-cube", 0.3),
        ("agarwal-singh/gaussian-exp2", 0.2),
        ("agarwal-singh/ftpl-simplex", 0.3),
        ("agarwal-singh/reduction-exp2", 1.0),
        ("agarwal-singh/gaussian-threshold", 0.3),
        ("asi-raman-talwar/batched-ftpl", 0.7),
        ("ene-nguyen-vladu/private-bandit-laplace", 0.4),
        ("asi-raman-talwar/exp4-batched", 0.4),
        ("smith-thakurta/pftal-experts", 0.2),
        ("ene-nguyen-vladu/oco-spanning-trees", 1.0),
        ("ene-nguyen-vladu/oco-rankings", 1.0),
    ],
)
def test_a_bare_command_audits_a_game_in_which_something_is_seen(name, least):
    """With the defaults the first two explore only, and of the others too little is seen: 0 was certified, of four by
    one seed in two to ten."""
    record = json.loads(overclaim("check", name, "--runs", 20_000, "--json").stdout)
    assert record["epsilon_lower"] > least


#: Their noise cannot be weakened: they have none.
NO_NOISE = {"asi-raman-talwar/exp3", "asi-raman-talwar/agreed-advice", "tossou-dimitrakakis/exp3-minibatch"}


@pytest.mark.nightly(reason="half a minute of processor time")
@pytest.mark.parametrize("name", entries())
def test_no_bare_command_certifies_next_to_nothing(name):
    """What certifies a few hundredths by one seed certifies 0 by another."""
    runs = 5000 if name == "tossou-dimitrakakis/exp3-minibatch" else 20_000  # it has thousands of rounds
    assert json.loads(overclaim("check", name, "--runs", runs, "--json").stdout)["epsilon_lower"] > 0.1


@pytest.mark.nightly(reason="a minute of processor time")
@pytest.mark.parametrize("name", sorted(entries().keys() - NO_NOISE))
def test_no_bare_command_misses_three_times_too_little_noise(name):
    """Of five names no factor up to 3 was caught, and `--weaken` called the audit no test after all its runs."""
    record = json.loads(overclaim("check", name, "--runs", 40_000, "--weaken", "--json").stdout)
    assert record["verdict"] == "FALSIFIED" or record["blind_spot"]["factor"] <= 3


def test_a_bare_command_audits_the_example_and_says_which():
    """The defaults of this entry explore only; its example has rates with which its noise shows."""
    bare = overclaim("check", "asi-raman-talwar/batched-exp3", "--runs", 4000, "--json")
    assert bare.exit_code == 0
    record = json.loads(bare.stdout)
    assert record["exact_epsilon"] > 0.9
    assert record["epsilon_lower"] > 0.5
    assert "--set eta=2 --set gamma=0.02 --set batch=1" in record["replay"]
    task = Task(target="asi-raman-talwar/batched-exp3")
    assert task.resolved().parameters["eta"] == 2.0
    assert task.resolved().epsilon == 1.0
    assert Task(target=task.target, epsilon=2.0).resolved().epsilon == 2.0


@pytest.mark.few(1)
@pytest.mark.parametrize("name", ["asi-raman-talwar/batched-exp3", "agarwal-singh/gaussian-exp2"])
def test_a_pair_of_the_example_is_audited_in_the_example(name, tmp_path):
    """`exact` said .977 on its pair, and `check --pair` of that pair that epsilon is exactly 0 there."""
    found = json.loads(overclaim("exact", name, "--json").stdout)
    (tmp_path / "pair.json").write_text(json.dumps(found))
    record = json.loads(overclaim("check", name, "--pair", tmp_path / "pair.json", "--runs", 2000, "--json").stdout)
    assert record["exact_epsilon"] == found["epsilon"][f"{record['claimed']['delta']:g}"]
    bare = json.loads(overclaim("check", name, "--runs", 2000, "--json").stdout)
    assert record["parameters"] == bare["parameters"]


def test_worlds_say_the_horizon_and_the_arms_of_the_example():
    """Longer sequences were refused, since the horizon is 4; shorter ones were audited with that horizon."""
    target = "asi-raman-talwar/batched-exp3"
    ones = [[1.0, 1.0]] * 5
    for rounds in (2, 4, 5):
        left, right = ones[:rounds], [[0.0, 1.0], *ones[1:rounds]]
        given = Task(target=target, left=left, right=right), Task(target=target, pair=Pair(left, right))
        assert [task.prepare().rounds for task in given] == [rounds, rounds]
        assert [task.resolved().parameters["eta"] for task in given] == [2.0, 2.0]
    empty = Task(target=target, left=[], right=[])
    assert empty.prepare().rounds == 4  # and it is the audit that says that they are empty
    one_arm = Task(target="agarwal-singh/reduction-exp2-actions").resolved()
    two_arms = Pair([[0.5, 0.5]] * one_arm.rounds, [[0.0, 0.5], *[[0.5, 0.5]] * (one_arm.rounds - 1)])
    assert one_arm.arms == 1
    assert Task(target=one_arm.target, pair=two_arms).prepare().setting.arms == 2


@pytest.mark.few(1)
@pytest.mark.parametrize("said", [("surface", "actions"), ("neighbours", "replace")], ids=" ".join)
def test_what_is_said_as_usual_is_said(said, tmp_path):
    """`--surface actions` of a name whose example shows what is released was audited on what is released."""
    target = "asi-raman-talwar/batched-htinf"
    assert json.loads(overclaim("trace", target, "--json").stdout)["surface"] == "release"
    traced = overclaim("trace", target, f"--{said[0]}", said[1], "--json")
    shown = "actions" if said[0] == "surface" else "release"
    assert json.loads(traced.stdout)["surface"] == shown
    (tmp_path / "plan.toml").write_text(f'[[claims]]\ntarget = "{target}"\n{said[0]} = "{said[1]}"\n')
    (task,) = read_plan(tmp_path / "plan.toml").tasks
    assert task.surface == shown
    assert f"--surface {shown} " in task.command()
