"""The command line: contracts, exit codes, one clear line for bad input, nothing half-written."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from overclaim.audit.engines import cores
from overclaim.reports.cli import main

LEARNERS = '''
import numpy as np

class Private:
    """Follow the perturbed leader with far more noise than epsilon = 1 needs."""
    feedback = "full"
    def __init__(self, arms, rounds, rng):
        self.rng, self.total, self.scale = rng, np.zeros(arms), 40.0 * rounds
    def act(self):
        return int(np.argmin(self.total + self.rng.laplace(0, self.scale, self.total.size)))
    def update(self, feedback):
        self.total += feedback

class Leaky(Private):
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        super().__init__(arms, rounds, rng)
        self.scale = 0.05
    def act(self):
        self.arm = super().act()
        return self.arm
    def update(self, feedback):
        self.total[self.arm] += feedback

class Raises(Private):
    def update(self, feedback):
        raise KeyError("oops")

class NoArm(Private):
    def act(self):
        return 7

class Keeps(Private):
    played = []
    def act(self):
        self.played.append(0)
        return len(self.played) // 3 % 2
'''

FIELDS = {
    "name", "calibration", "surface", "neighbours", "claimed", "epsilon_lower", "exact_epsilon", "verdict", "expected",
    "method", "confidence", "runs", "detectable_epsilon", "counts", "pair", "two_interval_bound", "seconds", "source",
    "replay",
}  # fmt: skip


@pytest.fixture
def learners(tmp_path):
    path = tmp_path / "my.py"
    path.write_text(LEARNERS)
    return path


def overclaim(*words):
    return CliRunner().invoke(main, [str(word) for word in words])


def check(target, *words):
    return overclaim("check", target, "--epsilon", 1, "--jobs", 1, *words)


def test_list():
    result = overclaim("list")
    assert result.exit_code == 0
    assert "agarwal-singh/ftrl-experts" in result.output
    assert "Lemma 4.2" in result.output
    names = [row["name"] for row in json.loads(overclaim("list", "--json").output)]
    assert "asi-raman-talwar/batched-exp3" in names


def test_check_prints_one_claim_of_the_record():
    result = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 20_000, "--json")
    assert result.exit_code == 1
    claim = json.loads(result.stdout)
    assert claim.keys() >= FIELDS
    assert claim["verdict"] == "FALSIFIED"
    assert claim["claimed"] == {"epsilon": 1.0, "delta": 0.0}
    assert claim["counts"].keys() >= {"right", "guesses", "runs"}
    assert claim["pair"].keys() == {"round", "left", "right"}
    assert claim["exact_epsilon"] == pytest.approx(2.0)


def test_check_replays_itself():
    first = json.loads(
        check(
            "asi-raman-talwar/batched-exp3", "--rounds", 4, "--runs", 5000, "--set", "eta=2", "--seed", 5, "--json"
        ).stdout
    )
    words = first["replay"].split()[1:]
    again = json.loads(overclaim(*words, "--json").stdout)
    assert {k: v for k, v in again.items() if k != "seconds"} == {k: v for k, v in first.items() if k != "seconds"}


def test_check_says_what_was_found():
    result = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 20_000, "--neighbours", "zero-out")
    assert result.exit_code == 0
    assert "SURVIVED" in result.output
    assert "surviving is not a proof" in result.output
    assert "replay: overclaim check agarwal-singh/reduction-threshold" in result.output


def test_underpowered():
    result = overclaim("check", "agarwal-singh/reduction-threshold", "--epsilon", 30, "--runs", 100)
    assert result.exit_code == 3
    assert "UNDERPOWERED" in result.output


@pytest.mark.parametrize(("name", "code"), [("Private", 0), ("Leaky", 1)])
def test_a_users_own_file(learners, name, code):
    result = check(f"{learners}:{name}", "--rounds", 8, "--arms", 2, "--runs", 6000)
    assert result.exit_code == code, result.output


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Raises", "Raises.update raised KeyError: 'oops' (round 1, run 0)"),
        ("NoArm", "NoArm.act must return an arm in 0..1, got 7"),
        ("Keeps", "keeps state"),
    ],
)
def test_a_misbehaving_learner(learners, name, message):
    result = check(f"{learners}:{name}", "--runs", 200)
    assert result.exit_code == 4
    assert message in result.stderr
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--epsilon", "nan"], "got nan"),
        (["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        (["--delta", "-0.5"], "delta must be in [0, 1), got -0.5"),
        (["--rounds", "0"], "rounds must be at least 1, got 0"),
        (["--arms", "-2"], "arms must be at least 1, got -2"),
        (["--losses", "big"], "losses must be one of unit, symmetric"),
        (["--set", "etta=2"], "no parameter 'etta'; did you mean eta"),
        (["--set", "eta=fast"], "eta must be a number, got 'fast'"),
        (["--set", "eta=-1"], "eta must be positive and finite, got -1.0"),
        (["--set", "calibration=wrong"], "calibration must be one of as_published, corrected"),
        (["--set", "eta"], "expected NAME=VALUE, got 'eta'"),
        (["--confidence", "2"], "confidence must be in (0, 1), got 2.0"),
        (["--pair", "no-such.json"], "cannot read the pair 'no-such.json': No such file"),
        (["--runs", "1"], "1 is not in the range x>=20"),
        (["--sead", "1"], "No such option"),
    ],
)
def test_bad_options(words, message):
    result = overclaim("check", "agarwal-singh/reduction-exp2", "--runs", 100, *words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "Missing argument 'TARGET'; see "),
        (["chekc"], "No such command 'chekc'"),
        (["--sead"], "No such option"),
        (["power", "--epsilon", "one"], "'one' is not a valid float"),
        (["check", "x", "--stop", "late"], "'late' is not one of 'budget', 'early'"),
    ],
)
def test_usage_errors_are_one_line(words, message):
    result = overclaim(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("overclaim: ")
    assert result.stderr.count("\n") == 1


def test_no_command_shows_the_help():
    assert "Commands:" in overclaim().output
    assert overclaim("--help").exit_code == 0


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("agarwal-singh/ftrl-expert", "did you mean agarwal-singh/ftrl-experts"),
        ("nowhere.py:Name", "there is no file 'nowhere.py'"),
        ("no_such_module:Name", "there is no module 'no_such_module'"),
        ("math:sinus", "math has no 'sinus'; did you mean sin"),
        ("", "a target must be a catalogue name"),
        ("my.py", "FILE.py:NAME or PACKAGE.MODULE:NAME, got 'my.py'"),
        ("my.py:", "got 'my.py:'"),
        (":Name", "got ':Name'"),
        ("../there:Name", "got '../there:Name'"),
    ],
)
def test_unknown_targets(target, message):
    result = check(target, "--runs", 100)
    assert result.exit_code == 2
    assert message in result.stderr


PRINTING = """
def noisy(data, rng):
    print("a word of the user's own")
    return data[0] + rng.laplace()

class Learner:
    pass

number = 3
"""


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("noisy", (), "it needs its two inputs, left and right"),
        ("noisy", ("--left", "[0]"), "needs two inputs, left and right; right is missing"),
        ("noisy", ("--left", "[0]", "--right", "[1]", "--rounds", 3), "is a mechanism: it takes no rounds"),
        ("noisy", ("--left", "[0]", "--right", "[1]", "--set", "a=1"), "is a mechanism: it takes no set"),
        ("Learner", ("--left", "[0]", "--right", "[1]"), "Learner is a class"),
        ("number", ("--left", "[0]", "--right", "[1]"), "number is int 3"),
    ],
)
def test_a_mechanism_asked_for_wrongly(tmp_path, name, options, message):
    file = tmp_path / "mine.py"
    file.write_text(PRINTING)
    result = check(f"{file}:{name}", "--epsilon", 1, *options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


def test_what_audited_code_prints_does_not_reach_stdout(tmp_path):
    (tmp_path / "mine.py").write_text(PRINTING)
    words = ["check", "mine.py:noisy", "--epsilon", "1", "--left", "[0]", "--right", "[1]", "--runs", "2000", "--json"]
    found = subprocess.run(
        [sys.executable, "-m", "overclaim", *words, "--jobs", "2"], cwd=tmp_path, capture_output=True, text=True
    )
    assert json.loads(found.stdout)["verdict"] == "SURVIVED"
    assert "a word of the user's own" in found.stderr


THREADED = """
import sklearn.linear_model  # with its OpenMP
from threadpoolctl import threadpool_info

POOLS = threadpool_info()

class Threaded:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        if any(pool["num_threads"] > 1 for pool in POOLS):
            raise RuntimeError(f"threads: {POOLS}")
    def act(self):
        return 0
    def update(self, feedback):
        pass
"""
TWICE = 2 * '[[claims]]\ntarget = "mine.py:Threaded"\nepsilon = 1\nrounds = 2\nruns = 2000\n'


@pytest.mark.skipif(cores() < 2, reason="one core has one thread")
@pytest.mark.parametrize(("jobs", "given", "code"), [(1, {}, 0), (2, {}, 0), (2, {"OPENBLAS_NUM_THREADS": "2"}, 4)])
def test_processes_have_one_thread_each(tmp_path, jobs, given, code):
    """Unless the user asks for more. Two claims are audited, each in a worker where there are two."""
    (tmp_path / "mine.py").write_text(THREADED)
    (tmp_path / "plan.toml").write_text(TWICE)
    unset = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    words = [sys.executable, "-m", "overclaim", "run", "plan.toml", "--jobs", str(jobs)]
    found = subprocess.run(words, cwd=tmp_path, env={**unset, **given}, capture_output=True, text=True, check=False)
    assert found.returncode == code, found.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rounds", 10**9), "rounds must be at most 10,000,000"),
        (("--arms", 10**9), "arms must be at most 10,000,000"),
        (("--rounds", 10**5, "--arms", 10**5), "rounds times arms must be at most 10,000,000"),
        (("--runs", 10**17), "runs must be below 2^53"),
        (("--rounds", 3, "--pair", '{"left": [[1, 0]], "right": [[0, 1]]}'), "the pair has 1 rounds"),
    ],
)
def test_more_than_a_machine_can_play(options, message):
    result = check("agarwal-singh/reduction-threshold", *options)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert message in result.stderr


def test_the_replay_names_the_pair_that_was_given():
    pair = '{"left":[[1.0,0.0]],"right":[[0.0,1.0]]}'
    first = json.loads(check("agarwal-singh/reduction-threshold", "--runs", 2000, "--pair", pair, "--json").stdout)
    assert first["rounds"] == 1
    words = shlex.split(first["replay"])
    assert words[-2:] == ["--pair", pair]
    again = json.loads(CliRunner().invoke(main, [*words[1:], "--json"]).stdout)
    assert again["counts"] == first["counts"]


def test_a_device_is_never_replaced():
    from overclaim.reports.record import write_atomically

    with pytest.raises(ValueError, match="no regular file"):
        write_atomically(Path("/dev/null"), "")


def test_a_link_is_written_through(tmp_path):
    from overclaim.reports.record import write_atomically

    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_atomically(tmp_path / "link", "text")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_text() == "text"


def test_what_a_killed_writer_leaves_is_replaced(tmp_path, monkeypatch):
    """A kill before the renaming leaves one file, which the next writer takes over; links are not followed."""
    from overclaim.reports.record import write_atomically

    class KilledError(BaseException):
        pass

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", lambda *names: (_ for _ in ()).throw(KilledError))
        patch.setattr(Path, "unlink", lambda *_, **__: None)
        with pytest.raises(KilledError):
            write_atomically(tmp_path / "record.json", "torn")
    assert len(list(tmp_path.iterdir())) == 1
    write_atomically(tmp_path / "record.json", "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["record.json"]
    assert (tmp_path / "record.json").read_text() == "whole"

    (tmp_path / "theirs").write_text("theirs")
    (tmp_path / ".record.json.new").symlink_to(tmp_path / "theirs")
    with pytest.raises(ValueError, match="cannot write"):
        write_atomically(tmp_path / "record.json", "text")
    assert (tmp_path / "theirs").read_text() == "theirs"


@pytest.mark.parametrize(
    ("claim", "place"),
    [
        ({}, "claims[0]"),
        ({"name": ["a"]}, "claims[0].name"),
        ({"claimed": None}, "claims[0].claimed"),
        ({"verdict": "GOOD"}, "claims[0].verdict"),
        ({"epsilon_lower": "x"}, "claims[0].epsilon_lower"),
        ({"pair": 3}, "claims[0].pair"),
    ],
)
def test_a_malformed_record_is_one_line(tmp_path, claim, place):
    sound = {"name": "a", "claimed": {"epsilon": 1.0}, "verdict": "SURVIVED"}
    file = tmp_path / "record.json"
    file.write_text(json.dumps({"schema": 1, "claims": [{**sound, **claim} if claim else {}]}))
    for words in (["report", str(file), "--html", str(tmp_path / "r.html")], ["accept", str(file)]):
        result = CliRunner().invoke(main, words)
        assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
        assert f"is no record: {place}:" in result.stderr
    assert not (tmp_path / "r.html").exists()


def test_a_users_file_that_does_not_load(tmp_path):
    broken = tmp_path / "broken.py"
    broken.write_text("raise RuntimeError('not today')")
    result = check(f"{broken}:Name", "--runs", 100)
    assert result.exit_code == 4
    assert "raised RuntimeError: not today" in result.stderr
    broken.write_text("def (:")
    assert check(f"{broken}:Name", "--runs", 100).exit_code == 4


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ({"left": [[0, 0]], "right": [[0, 0]]}, "differ in: none"),
        ({"left": [[1, 1], [1, 1]], "right": [[0, 0], [0, 0]]}, "differ in: 1, 2"),
        ({"left": [[3, 0]], "right": [[0, 0]]}, "left loss of round 1 must lie in [-1, 1] (symmetric), got 3"),
        ({"left": [[1, 0, 0]], "right": [[0, 0, 0]]}, "3 arms, but the learner has 2"),
        ([1, 2], "must be an object"),
        ("no json", "is no JSON"),
    ],
)
def test_bad_pairs(tmp_path, pair, message):
    path = tmp_path / "pair.json"
    path.write_text(pair if isinstance(pair, str) else json.dumps(pair))
    words = ["--rounds", 1] if "arms" in message or "lie in" in message else []
    result = check("agarwal-singh/reduction-exp2", "--runs", 100, "--pair", path, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_pair_from_a_file_is_used(tmp_path):
    path = tmp_path / "pair.json"
    path.write_text(json.dumps({"left": [[0.5, 0], [1, 1]], "right": [[0, 0], [1, 1]]}))
    result = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 2000, "--pair", path, "--json")
    assert json.loads(result.stdout)["pair"]["left"][0] == [0.5, 0]


def test_exact():
    words = ["--rounds", 8, "--set", "batch=2", "--set", "eta=.5", "--set", "gamma=.1"]
    result = overclaim("exact", "asi-raman-talwar/batched-exp3", *words, "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["epsilon"]["0"] == pytest.approx(0.7225, abs=1e-4)
    assert found["epsilon"]["0.01"] == pytest.approx(0.5711, abs=1e-4)
    assert found["pair"]["round"] == 1
    too_long = overclaim("exact", "asi-raman-talwar/batched-exp3", "--rounds", 40, "--set", "batch=1")
    assert too_long.exit_code == 2
    assert "shorten the horizon" in too_long.stderr


def test_power():
    found = json.loads(overclaim("power", "--epsilon", 1, "--runs", 10_000, "--json").stdout)
    assert 1.05 < found["detectable_epsilon"] < 1.15
    assert "9 times in 10" in overclaim("power", "--epsilon", 1, "--runs", 10_000).stdout
    hopeless = overclaim("power", "--epsilon", 9, "--runs", 100, "--json")
    assert json.loads(hopeless.stdout)["detectable_epsilon"] is None
    assert overclaim("power", "--epsilon", -1, "--runs", 100).exit_code == 2


PLAN = """
seed = 1
confidence = 0.95

[[claims]]
target = "agarwal-singh/reduction-threshold"
epsilon = 1
rounds = 2
runs = 4000
expect = "falsified"

[[claims]]
target = "asi-raman-talwar/batched-threshold"
rounds = 2
runs = 4000
expect = "survived"
set = { batch = 1 }
"""


def run_plan(tmp_path, text, *words):
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    return overclaim("run", plan, "--out", tmp_path / "out", "--jobs", 1, *words)


def test_run_writes_a_record_and_a_report(tmp_path):
    result = run_plan(tmp_path, PLAN)
    assert result.exit_code == 0, result.output
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert record["schema"] == 1
    assert record["seed"] == 1
    assert record["alpha"] == pytest.approx(0.05)
    assert [claim["verdict"] for claim in record["claims"]] == ["FALSIFIED", "SURVIVED"]
    assert all(claim.keys() >= FIELDS for claim in record["claims"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert "agarwal-singh/reduction-threshold" in page
    assert sorted(os.listdir(tmp_path / "out")) == ["record.json", "report.html"]
    again = overclaim("report", tmp_path / "out" / "record.json", "--html", tmp_path / "again.html")
    assert again.exit_code == 0
    assert (tmp_path / "again.html").read_text() == page


def test_the_same_record_for_any_number_of_workers(tmp_path):
    def claims(jobs):
        result = run_plan(tmp_path, PLAN, "--json") if jobs == 1 else None
        if result is None:
            result = overclaim("run", tmp_path / "plan.toml", "--out", tmp_path / "two", "--jobs", jobs, "--json")
        return [{k: v for k, v in claim.items() if k != "seconds"} for claim in json.loads(result.stdout)["claims"]]

    assert claims(1) == claims(2)


def test_a_surprise_fails_the_run(tmp_path):
    result = run_plan(tmp_path, PLAN.replace('"falsified"', '"survived"'))
    assert result.exit_code == 1
    assert "unexpected: agarwal-singh/reduction-threshold" in result.output
    assert "FALSIFIED, expected survived" in result.output


def test_an_undecided_claim_fails_the_run_otherwise(tmp_path):
    result = run_plan(tmp_path, PLAN.replace("epsilon = 1", "epsilon = 40"))
    assert result.exit_code == 3


def test_one_bad_learner_does_not_lose_the_others(tmp_path, learners):
    plan = PLAN + f'\n[[claims]]\ntarget = "{learners}:Raises"\nepsilon = 1\nruns = 100\n'
    result = run_plan(tmp_path, plan)
    assert result.exit_code == 4
    record = json.loads((tmp_path / "out" / "record.json").read_text())
    assert len(record["claims"]) == 2
    assert "KeyError" in record["errors"][0]["message"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("seed = 1", "seed = ", "line 2"),
        ("seed = 1", "seeds = 1", "plan.toml:2: unknown key 'seeds'"),
        ("confidence = 0.95", "confidence = 1.5", "plan.toml:3: confidence must be in (0, 1), got 1.5"),
        (
            'rounds = 2\nruns = 4000\nexpect = "survived"',
            "rounds = 'two'\nruns = 4000",
            "plan.toml:14: rounds must be an integer",
        ),
        ('"falsified"', '"maybe"', "plan.toml:10: expect must be one of falsified, survived, got 'maybe'"),
        ("batch = 1", "bath = 1", "plan.toml:12: asi-raman-talwar/batched-threshold has no parameter 'bath'"),
        ("agarwal-singh/reduction-threshold", "agarwal/reduction", "plan.toml:5: unknown target"),
        ('target = "agarwal-singh/reduction-threshold"', "", "plan.toml:5: a claim needs a target"),
    ],
)
def test_malformed_plans_name_their_line(tmp_path, old, new, message):
    result = run_plan(tmp_path, PLAN.replace(old, new, 1))
    assert result.exit_code == 2
    assert message in result.stderr
    assert not (tmp_path / "out").exists()


def test_plans_that_are_none(tmp_path):
    for name, content, message in (
        ("missing.toml", None, "cannot read the plan"),
        ("binary.toml", b"\xff\xfe\x00", "not UTF-8"),
        ("empty.toml", b"", "needs at least one [[claims]] table"),
    ):
        path = tmp_path / name
        if content is not None:
            path.write_bytes(content)
        result = overclaim("run", path, "--out", tmp_path / "out")
        assert result.exit_code == 2
        assert message in result.stderr


def test_an_unwritable_output_is_found_before_the_work(tmp_path):
    (tmp_path / "file").write_text("")
    result = overclaim("run", "--out", tmp_path / "file" / "out")
    assert result.exit_code == 2
    assert "cannot write" in result.stderr


@pytest.mark.parametrize("content", ["{}", "[]", '{"schema": 9, "claims": []}', "no json", None])
def test_records_that_are_none(tmp_path, content):
    path = tmp_path / "record.json"
    if content is not None:
        path.write_text(content)
    result = overclaim("report", path, "--html", tmp_path / "x.html")
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert not (tmp_path / "x.html").exists()


def hears_ctrl_c():
    """Undo what a shell does to a job in its background, and every child inherits: SIGINT is ignored."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def test_ctrl_c_ends_with_one_line_and_nothing_half_written(tmp_path):
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("runs = 4000", "runs = 400_000_000"))
    words = [sys.executable, "-m", "overclaim", "run", str(plan), "--out", str(tmp_path / "out"), "--jobs", "1"]
    process = subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=hears_ctrl_c
    )
    begun, deadline = tmp_path / "out" / "ledger.sqlite", time.monotonic() + 60
    while not begun.exists() and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err.strip().splitlines()[-1] == "overclaim: interrupted"
    assert "Traceback" not in err
    assert out == ""
    assert {path.name for path in Path(tmp_path / "out").glob("*")} == {"ledger.sqlite"}  # the finished blocks, whole
    assert "--resume goes on" in err


# The command line, with Ctrl-C pressed while a module is imported; C code may make another error of it.
PRESS = """
import os, signal, sys
from overclaim.__main__ import run

class Press:
    def __init__(self, module, swallowed):
        assert module not in sys.modules
        self.module, self.swallowed = module, swallowed

    def find_spec(self, name, path=None, target=None):
        if name != self.module:
            return
        self.module = None
        try:
            os.kill(os.getpid(), signal.SIGINT)
            sum(range(10**5))
        except KeyboardInterrupt:
            if self.swallowed:
                raise ImportError("initialization failed") from None
            raise

sys.meta_path.insert(0, Press(sys.argv.pop(1), sys.argv.pop(1) == "swallowed"))
run()
"""


@pytest.mark.parametrize(
    ("module", "way"),
    [
        ("click", "raised"),
        ("scipy.optimize", "swallowed"),
        ("tqdm", "raised"),
        ("tqdm", "swallowed"),
    ],
)
def test_ctrl_c_while_modules_load_is_one_line_too(module, way):
    words = ["check", "agarwal-singh/reduction-threshold", "--epsilon", "1", "--rounds", "2", "--runs", "1000"]
    words = [sys.executable, "-c", PRESS, module, way, *words, "--jobs", "1"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, preexec_fn=hears_ctrl_c)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "overclaim: interrupted\n")


QUITTERS = """
import sys

class Bare(BaseException):
    pass

class Scalar:
    feedback = "bandit"
    def __init__(self, arms, rounds, rng):
        pass
    def act(self):
        raise Bare("oops")
    def update(self, feedback):
        pass

class Batched:
    feedback = "bandit"
    def __init__(self, arms):
        self.arms, self.calls = arms, 0
    def start(self, runs, draws):
        return draws.arms(self.arms, runs) if hasattr(draws, "arms") else draws.labels(runs).astype(int)
    def act(self, state, draws):
        self.calls += 1
        if self.calls > LATE:
            sys.exit(0)
        return state
    def update(self, state, actions, feedback, draws):
        pass

def mechanism(data, rng):
    raise Bare
"""


@pytest.mark.parametrize(
    ("target", "more", "message"),
    [
        ("Scalar", (), "Scalar.act raised Bare: oops (round 1, run 0)"),
        ("Batched", (), "Batched raised SystemExit: 0"),
        ("mechanism", ("--left", "0", "--right", "1", "--runs", 300), "mechanism raised Bare on"),
    ],
)
@pytest.mark.parametrize("late", [0, 60])
def test_a_target_that_quits_has_crashed(tmp_path, target, more, message, late):
    """Not even sys.exit(0) ends an audit as if its claim had survived; nor once the first checks are passed."""
    (tmp_path / "mine.py").write_text(QUITTERS.replace("LATE", str(late)))
    more = more or ("--rounds", 2, "--runs", 30_000)
    result = overclaim("check", f"{tmp_path / 'mine.py'}:{target}", "--epsilon", 1, "--jobs", 1, *more)
    assert result.exit_code == 4, result.output
    assert message in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_module_that_quits_when_imported_has_crashed(tmp_path, monkeypatch):
    (tmp_path / "quitting.py").write_text("import sys; sys.exit(0)")
    monkeypatch.syspath_prepend(tmp_path)
    result = overclaim("check", "quitting:Learner", "--epsilon", 1)
    assert result.exit_code == 4
    assert "importing quitting raised SystemExit: 0" in result.stderr


def test_an_infinite_exact_epsilon_is_said(tmp_path):
    words = ["asi-raman-talwar/exp3", "--set", "eta=2000", "--set", "gamma=0", "--rounds", 2]
    found = json.loads(overclaim("exact", *words, "--json").stdout, parse_constant=pytest.fail)
    assert found["epsilon"]["0"] is None
    assert "0" in found["infinite"]
    checked = overclaim("check", *words, "--epsilon", 1, "--runs", 1000, "--jobs", 1)
    assert "infinite on this pair" in checked.output
    claim = json.loads(overclaim("check", *words, "--epsilon", 1, "--runs", 1000, "--jobs", 1, "--json").stdout)
    assert (claim["exact_epsilon"], claim["exact_infinite"]) == (None, True)
    (tmp_path / "record.json").write_text(json.dumps({"schema": 1, "claims": [claim]}))
    overclaim("report", tmp_path / "record.json", "--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    assert 'data-label="Exact">∞<' in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "| ∞ |" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_regret():
    words = ["--rounds", 64, "--runs", 100, "--jobs", 1]
    result = overclaim("regret", "agarwal-singh/ftrl-experts", *words, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert found.keys() >= {
        "mean_regret",
        "interval",
        "bound",
        "exponent",
        "slope",
        "slope_upper",
        "horizons",
        "regrets",
    }
    assert found["interval"][0] <= found["mean_regret"] <= found["interval"][1]
    assert found["interval"][0] <= found["bound"]
    assert "growth exponent" in overclaim("regret", "agarwal-singh/ftrl-experts", *words).output
    for wrong, message in (
        (["--rounds", 0], "at least 1, got 0"),
        (["--set", "etta=1"], "no parameter 'etta'; did you mean eta"),
    ):
        refused = overclaim("regret", "agarwal-singh/ftrl-experts", *wrong)
        assert refused.exit_code == 2
        assert message in refused.stderr


def test_the_literature_shares_one_alpha():
    from overclaim.audit.plans import literature
    from overclaim.learners.catalogue import entries

    plan = literature()
    assert {task.target for task in plan.tasks} == set(entries())
    assert plan.report_alpha == 0.01
    assert plan.alpha * len(plan.tasks) == pytest.approx(0.01)
    assert {task.target for task in plan.regret} == {e.name for e in entries().values() if e.regret}


MECHANISMS = """
def halved(data, rng):
    return data[0] + rng.laplace(0, 0.5)

def sound(data, rng):
    return data[0] + rng.laplace(0, 1.0)

def raises(data, rng):
    raise RuntimeError("boom")
"""


@pytest.mark.parametrize(("name", "code"), [("halved", 1), ("sound", 0), ("raises", 4)])
def test_a_users_mechanism(tmp_path, name, code):
    path = tmp_path / "mechanisms.py"
    path.write_text(MECHANISMS)
    inputs = ["--left", "[0]", "--right", "[1]", "--runs", 6000]
    result = check(f"{path}:{name}", *inputs)
    assert result.exit_code == code, result.output
    if code == 4:
        assert "raises raised RuntimeError" in result.stderr
        return
    assert "inputs: left [0], right [1]" in result.output
    claim = json.loads(check(f"{path}:{name}", *inputs, "--json").stdout)
    assert claim.keys() >= FIELDS
    assert "--left '[0]' --right '[1]'" in claim["replay"]


def test_a_mechanism_of_the_zoo():
    broken = check("mechanisms/svt6", "--runs", 20_000)
    assert broken.exit_code == 1, broken.output
    assert check("mechanisms/laplace", "--runs", 4000).exit_code == 0
    assert "mechanisms/svt6" in overclaim("list").output


@pytest.mark.parametrize(
    ("target", "words", "message"),
    [
        ("mechanisms/laplac", [], "did you mean mechanisms/laplace"),
        ("mechanisms/laplace", ["--left", "[0"], "expected JSON"),
        ("mechanisms/laplace", ["--left", "[0]", "--right", "[0]"], "the two inputs must differ"),
        ("mechanisms/laplace", ["--stop", "early"], "mechanisms are audited with stop budget"),
        ("agarwal-singh/reduction-exp2", ["--left", "[0]"], "is a learner, give it a pair"),
    ],
)
def test_bad_mechanism_input(target, words, message):
    result = check(target, "--runs", 200, *words)
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_mechanism_in_a_plan(tmp_path):
    (tmp_path / "mechanisms.py").write_text(MECHANISMS)
    plan = f"""
[[claims]]
target = "{tmp_path}/mechanisms.py:halved"
epsilon = 1
left = [0]
right = [1]
runs = 6000
expect = "falsified"
"""
    result = run_plan(tmp_path, plan)
    assert result.exit_code == 0, result.output
    assert "halved" in (tmp_path / "out" / "report.html").read_text()


@pytest.mark.parametrize(("claims", "jobs", "each"), [(1, 2, 2), (1, 1, 1), (2, 3, 3)])
def test_few_claims_have_every_process_to_themselves(monkeypatch, claims, jobs, each):
    """One long audit must not leave cores idle."""
    from overclaim.audit import plans
    from overclaim.reports.running import run_plan as run

    used, audit = [], plans.Prepared.audit

    def watched(self, *, jobs, **more):
        used.append(jobs)
        return audit(self, jobs=jobs, **more)

    monkeypatch.setattr(plans.Prepared, "audit", watched)
    task = plans.Task(target="agarwal-singh/reduction-threshold", rounds=2, runs=2000)
    run(plans.Plan((task,) * claims), jobs=jobs, command="")
    assert used[:claims] == [each] * claims
