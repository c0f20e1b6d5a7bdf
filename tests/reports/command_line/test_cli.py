"""The command line: contracts, exit codes, one clear line for bad input."""

import importlib.util
import json
import math
import re
import shlex
from pathlib import Path

import pytest

from overclaim.reports.command_line.cli import main
from overclaim.tests.support.command_line import FIELDS, check, error_lines, overclaim, refused

ROOT = Path(__file__).resolve().parents[3]


def test_list():
    result = overclaim("list")
    assert result.exit_code == 0
    assert "agarwal-singh/ftrl-experts" in result.output
    assert "Lemma 4.2" in result.output
    rows = {row["name"]: row["parameters"] for row in json.loads(overclaim("list", "--json").output)}
    assert "asi-raman-talwar/batched-exp3" in rows
    assert rows["mechanisms/svt1"] == ["epsilon", "limit", "threshold"]
    assert rows["mechanisms/rappor"] == ["hashes", "size", "f", "p", "q"]


def test_what_nobody_calls_private_is_listed_without_a_claim():
    """Plain EXP3 stood there as epsilon-DP, in the column of what papers claim."""
    rows = json.loads(overclaim("list", "papers", "--json").output)
    assert [row["name"] for row in rows if row["claim"] is None] == ["asi-raman-talwar/exp3"]
    lines = {line.split()[0]: line for line in overclaim("list", "papers").output.splitlines()[1:]}
    assert all((row["claim"] or " none ") in lines[row["name"]] for row in rows)


def test_the_list_as_json_says_what_the_catalogue_page_says():
    """The page calls it the same; it had neither the claims, nor the arms of a game, nor the notes of cases."""
    spec = importlib.util.spec_from_file_location("docs_catalogue", ROOT / "docs" / "catalogue.py")
    page = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(page)
    sections = re.split(r"^### ", page.page(), flags=re.MULTILINE)
    for row in json.loads(overclaim("list", "papers", "--json").output):
        entry = next(section for section in sections if section.startswith(f"{row['name']}\n"))
        game = f"T = {row['rounds']}, {row['arms']} arms or coordinates"
        for said in (row["claim"] or "none", row["summary"], row["source"], game, *row["parameters"]):
            assert said in entry
        for case in row["cases"]:
            told = [case["standing"], case["calibration"].replace("_", "&nbsp;"), case["losses"], case["neighbours"]]
            told += [case["surface"], str(case["rounds"]), case["expected"], case["note"].replace("|", "\\|")]
            epsilon, delta = case["claimed"]["epsilon"], case["claimed"]["delta"]
            arms = [f"K = {case['arms']}"] if case["arms"] != row["arms"] else []
            own = arms + [f"`{name}={value}`" for name, value in case["parameters"].items()]
            told.insert(6, ", ".join([f"ε = {epsilon:.4g}", *([f"δ = {delta:g}"] if delta else []), *own]))
            assert any([*cells[:1], *cells[2:]] == told for cells in _cells(entry)), (row["name"], case)
            assert not case["quotation"] or f"> “{case['quotation']['text']}”" in entry


def test_what_a_false_statement_claims_is_listed():
    """Theorem A.1 was listed as false at T = 2 and true at T = 4, without the epsilon and delta that make it so."""
    rows = {row["name"]: row for row in json.loads(overclaim("list", "papers", "--json").output)}
    cases = [case for case in rows["agarwal-singh/ftpl-simplex"]["cases"] if case["source"].endswith("Theorem A.1")]
    stated = {(case["expected"], *case["claimed"].values()) for case in cases if case["standing"] == "theorem"}
    assert stated == {("survived", 1.0, 0.01), ("falsified", 3.0, 0.1)}


def _cells(section):
    """Return the cells of a section's table, row by row."""
    rows = [line for line in section.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]


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
    result = check(
        "agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 20_000, "--neighbours", "zero-out", "-v"
    )
    assert result.exit_code == 0
    assert "SURVIVED" in result.output
    assert "this is not a proof of privacy" in result.output
    assert "exact value for these inputs: 1.0000" in result.output
    assert "beyond the claim" not in result.output  # the exact value is the claim


def test_a_claim_that_survives_an_exact_value_beyond_it_is_not_said_to_be_kept():
    """It said that no attack separates the worlds beyond the claim, below the exact value that is beyond it; and 0."""
    words = ("--epsilon", 1.98, "--set", "epsilon=1", "--rounds", 2, "--runs", 3000, "--seed", 2)
    result = overclaim("check", "agarwal-singh/reduction-threshold", *words)
    assert (result.exit_code, result.output.split()[0]) == (3, "UNDERPOWERED")
    weakened = overclaim("check", "agarwal-singh/reduction-threshold", *words, "--weaken")
    assert (weakened.exit_code, weakened.output.split()[0]) == (3, "UNDERPOWERED")  # though the audit sees much
    assert (
        "exact value for these inputs: 2.0000"
        in overclaim("check", "agarwal-singh/reduction-threshold", *words, "-v").output
    )
    said = " ".join(result.output.split())
    assert "the exact value on this pair is beyond the claim: these runs did not certify it" in said
    assert "no attack" not in result.output
    assert "Reproduce   overclaim check agarwal-singh/reduction-threshold" in result.output


def test_the_claimed_delta_is_the_claim_whatever_sets_the_noise():
    """`--set delta` took the place of the claim, where `--set epsilon` is for the noise alone."""
    words = ["agarwal-singh/ftpl-simplex", "--rounds", 2, "--surface", "actions", "--runs", 4000, "--set", "delta=0.5"]
    words += ["--set", "theorem=3.5"]
    pure = json.loads(overclaim("check", *words, "--delta", 0, "--json").output)
    assert (pure["claimed"], pure["verdict"]) == ({"epsilon": 1.0, "delta": 0.0}, "FALSIFIED")
    assert pure["exact_epsilon"] == pytest.approx(1.385, abs=1e-3)
    assert (pure["published"], pure["standing"]) == (False, None)  # no case has this claim with this noise
    assert json.loads(overclaim("check", *words, "--json").output)["claimed"]["delta"] == 0.5


def test_without_noise_a_finite_claim_is_audited_and_regret_is_measured():
    """`--set epsilon=inf` was refused as a claim, beside a claimed epsilon of 1; regret has no claim at all."""
    words = ["smith-thakurta/pftal", "--epsilon", 1, "--set", "epsilon=inf", "--runs", 2000, "--json"]
    claim = json.loads(overclaim("check", *words).output)
    assert (claim["claimed"]["epsilon"], claim["verdict"]) == (1.0, "FALSIFIED")
    refused = overclaim("check", "smith-thakurta/pftal", "--set", "epsilon=inf")
    assert (refused.exit_code, refused.stdout) == (2, "")
    assert refused.stderr.strip() == "overclaim: error: --set epsilon must be positive and finite, got inf"
    words = ["smith-thakurta/pftal-lipschitz", "--set", "epsilon=inf", "--rounds", 8, "--runs", 20, "--json"]
    assert json.loads(overclaim("regret", *words).output)["bound_verdict"] in {"HOLDS", "VACUOUS", "UNDECIDED"}


@pytest.mark.parametrize("command", ["check", "exact", "trace", "regret"])
def test_losses_that_are_given_twice_are_refused(command):
    """Those of `--set` were played, whatever `--losses` said."""
    words = ["agarwal-singh/reduction-threshold", "--losses", "unit", "--set", "losses=symmetric"]
    result = overclaim(command, *words)
    assert (result.exit_code, result.stdout) == (2, "")
    said = "overclaim: error: --losses unit cannot go with --set losses=symmetric"
    assert result.stderr.splitlines() == [said, "  hint:  give one of them"]


def test_losses_may_be_given_twice_alike():
    words = ["agarwal-singh/reduction-threshold", "--losses", "unit", "--set", "losses=unit"]
    assert "\n0       1.0000\n" in overclaim("exact", *words).output


def test_a_replay_is_one_line_however_long():
    words = ["--rounds", 2, "--runs", 400, "--losses", "symmetric", "--set", "calibration=corrected"]
    lines = check("agarwal-singh/reduction-threshold", *words).output.splitlines()
    replay = next(line for line in lines if line.startswith("Reproduce   "))
    assert len(replay) > 100
    assert replay.endswith(" --set calibration=corrected")


def test_underpowered():
    result = overclaim("check", "agarwal-singh/reduction-threshold", "--epsilon", 30, "--runs", 100)
    assert result.exit_code == 3
    assert "UNDERPOWERED" in result.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--epsilon", "0"], "epsilon must be positive: the noise is calibrated to it, got 0.0"),
        (["--epsilon", "nan"], "got nan"),
        (["--delta", "1"], "delta must be in [0, 1), got 1.0"),
        (["--delta", "-0.5"], "delta must be in [0, 1), got -0.5"),
        (["--rounds", "0"], "rounds must be an integer of at least 1, got 0"),
        (["--arms", "-2"], "arms must be an integer of at least 1, got -2"),
        (["--losses", "big"], "losses must be one of unit, symmetric"),
        (["--set", "etta=2"], "no parameter 'etta'\n  hint:  did you mean eta"),
        (["--set", "eta=fast"], "eta must be a number, got 'fast'"),
        (["--set", "eta=-1"], "eta must be positive and finite, got -1.0"),
        (["--set", "eta=1e308"], "eta must be at most 1e+140, got 1e+308"),
        (["--epsilon", "1e308"], "epsilon must be at most 1e+140, got 1e+308"),
        (["--epsilon", "1e-320"], "epsilon must be at least 1e-140, got 1e-320"),
        (["--set", "calibration=wrong"], "calibration must be one of as_published, corrected"),
        (["--weaken", ""], "weaken must be NAME, to be multiplied by the factor, or 1/NAME, got ''"),
        (["--set", "eta"], "--set must be NAME=VALUE, got 'eta'"),
        (["--confidence", "2"], "confidence must be in (0, 1), got 2.0"),
        (["--pair", "no-such.json"], "cannot read the pair 'no-such.json': No such file"),
        (["--runs", "1"], "--runs must be an integer of at least 20, got 1"),
        (["--sead", "1"], "no such option: --sead\n  hint:  did you mean --seed?"),
    ],
)
def test_bad_options(words, message):
    few = () if "--runs" in words else ("--runs", 100)
    refused(overclaim("check", "agarwal-singh/reduction-exp2", *few, *words), message)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["check"], "TARGET is missing\n  hint:  main check --help shows the options"),
        (
            ["smoke", "x", "--epsilon", "1"],
            "smoke was removed in 0.3.0\n  hint:  overclaim check TARGET, or overclaim scores FILE --design one-run",
        ),
        (["chekc"], "no such command: chekc\n  hint:  did you mean overclaim check?"),
        (["--sead"], "no such option: --sead"),
        (["power", "--epsilon", "one"], "--epsilon must be a number, got 'one'"),
        (["check", "x", "--stop", "late"], "--stop must be one of budget, early; got 'late'"),
    ],
)
def test_usage_errors_are_one_line(words, message):
    result = overclaim(*words)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stderr.startswith("overclaim: error: ")
    assert error_lines(result.stderr) == 1


@pytest.mark.parametrize("all_of_them", [False, True])
@pytest.mark.parametrize("name", sorted(main.commands))
def test_the_help_has_one_line_an_option_in_groups(name, all_of_them, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")  # the page is the same everywhere
    shown = overclaim(name, "--help-all" if all_of_them else "--help")
    assert shown.exit_code == 0
    lines = shown.output.splitlines()
    assert lines[0].startswith("Usage: ")
    assert max(map(len, lines)) <= 120
    params = [one for one in main.commands[name].params if one.param_type_name == "option"]
    wanted = [one for one in params if all_of_them or not getattr(one, "rare", False)]
    rows = [line for line in lines if line.startswith(("  -", "  --"))]
    for option in params:
        names = {max(option.opts[:2], key=len), *option.secondary_opts}
        named = [row for row in rows if names & set(re.split(r"[ ,/]+", row[:24]))]
        assert len(named) == (option in wanted), option.name
    assert ("  --help-all            Show all options" in lines) is (not all_of_them and len(wanted) < len(params))


def test_the_programs_help_has_every_command_by_what_it_is_for():
    shown = overclaim("--help").output
    listed = [line.split()[0] for line in shown.splitlines() if re.match(r"  \w", line)]
    assert sorted(listed) == sorted(main.commands)
    assert "Exit codes: 0 survived, 1 falsified, 2 usage error, 3 underpowered, 4 target crashed." in shown


def test_no_command_shows_the_help():
    assert "Test a claim\n  check " in overclaim().output


def test_neighbours_have_an_american_name_that_no_page_shows():
    words = ["check", "agarwal-singh/reduction-threshold", "--runs", 400, "--rounds", 2, "--json"]
    claim = json.loads(overclaim(*words, "--neighbors", "zero-out").stdout)
    assert claim["neighbours"] == "zero-out"
    assert "--neighbours zero-out" in claim["replay"]
    assert "--neighbors" not in overclaim("check", "--help-all").output


@pytest.mark.parametrize(
    ("target", "message"),
    [
        ("agarwal-singh/ftrl-expert", "did you mean agarwal-singh/ftrl-experts"),
        ("nowhere.py:Name", "there is no file 'nowhere.py' in the folder that you run overclaim in"),
        ("no_such_module:Name", "there is no module 'no_such_module' on Python's path: install it, or name"),
        ("math:pi", "math:pi is neither a learner nor a mechanism, it is of type float"),
        ("math:sinus", "math has no class or function 'sinus'\n  hint:  did you mean math:sin"),
        ("", "a target must be a catalogue name"),
        ("my.py", "FILE.py:NAME or PACKAGE.MODULE:NAME, got 'my.py'"),
        ("my.py:", "got 'my.py:'"),
        (":Name", "got ':Name'"),
        ("../there:Name", "got '../there:Name'"),
    ],
)
def test_unknown_targets(target, message):
    refused(check(target, "--runs", 100), message)


def test_a_file_without_a_name_lists_what_may_be_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text("class Mine: pass\ndef count(data, rng): pass\ndef _own(): pass\nraise SystemExit\n")
    refused(check("mine.py", "--runs", 100), "name one of its classes and functions: mine.py:Mine, mine.py:count\n")


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
    refused(check("agarwal-singh/reduction-threshold", *options), message)


def test_the_replay_names_the_pair_that_was_given():
    pair = '{"left":[[1.0,0.0]],"right":[[0.0,1.0]]}'
    first = json.loads(check("agarwal-singh/reduction-threshold", "--runs", 2000, "--pair", pair, "--json").stdout)
    assert first["rounds"] == 1
    words = shlex.split(first["replay"])
    assert words[-2:] == ["--pair", pair]
    again = json.loads(overclaim(*words[1:], "--json").stdout)
    assert again["counts"] == first["counts"]


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        ({"left": [[0, 0]], "right": [[0, 0]]}, "differ in: none"),
        ({"left": [[1, 1], [1, 1]], "right": [[0, 0], [0, 0]]}, "differ in: 1, 2"),
        ({"left": [[3, 0]], "right": [[0, 0]]}, "left loss of round 1 must lie in [-1, 1] (symmetric), got 3"),
        ({"left": [[1, 0, 0]], "right": [[0, 0, 0]]}, "3 arms, but the learner has 2"),
        ([1, 2], "must be an object"),
        ("no json", "is no JSON"),
        ("[" * 100_000, "is no JSON"),
    ],
)
def test_bad_pairs(tmp_path, pair, message):
    path = tmp_path / "pair.json"
    path.write_text(pair if isinstance(pair, str) else json.dumps(pair))
    words = ["--rounds", 1] if "arms" in message or "lie in" in message else []
    refused(check("agarwal-singh/reduction-exp2", "--runs", 100, "--pair", path, *words), message)


def test_a_pair_that_is_written_out_is_read_as_json():
    """It said that there was no such file."""
    refused(check("agarwal-singh/reduction-exp2", "--runs", 100, "--pair", "[[0],[1]]"), "must be an object with")


def test_a_pair_from_a_file_is_used(tmp_path):
    path = tmp_path / "pair.json"
    path.write_text(json.dumps({"left": [[0.5, 0], [1, 1]], "right": [[0, 0], [1, 1]]}))
    result = check("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 2000, "--pair", path, "--json")
    assert json.loads(result.stdout)["pair"]["left"][0] == [0.5, 0]


def test_exact():
    words = ["--rounds", 8, "--set", "batch=2", "--set", "eta=.5", "--set", "gamma=.1"]
    result = overclaim("exact", "asi-raman-talwar/batched-exp3", *words, "--json")
    assert result.exit_code == 0
    printed = json.loads(result.stdout)
    assert printed["epsilon"]["0"] == pytest.approx(0.7225, abs=1e-4)
    assert printed["epsilon"]["0.01"] == pytest.approx(0.5711, abs=1e-4)
    assert printed["pair"]["round"] == 1
    refused(
        overclaim("exact", "asi-raman-talwar/batched-exp3", "--rounds", 40, "--set", "batch=1"), "use fewer --rounds"
    )
    on_a_ball = overclaim("exact", "agarwal-singh/ftrl-ball", "--rounds", 3).stderr
    assert "FTRL is exact with entropy over two arms" in on_a_ball  # it was said to be entropy FTRL


@pytest.mark.slow(reason="several bounds of power; their numbers are tested in tests/statistics")
def test_power():
    printed = json.loads(overclaim("power", "--epsilon", 1, "--runs", 10_000, "--json").stdout)
    assert 1.05 < printed["detectable_epsilon"] < 1.15
    assert "90% power" in overclaim("power", "--epsilon", 1, "--runs", 10_000).stdout
    assert (
        "1 run cannot falsify epsilon 1 at delta 0.1: "
        in overclaim("power", "--epsilon", 1, "--delta", 0.1, "--runs", 1).stdout
    )
    assert (
        "behind a claim of 1 at delta 0.1 ("
        in overclaim("power", "--epsilon", 1, "--delta", 0.1, "--runs", 10_000).stdout
    )
    assert overclaim("power", "--epsilon", 9, "--runs", 100).stdout == (
        "100 runs cannot falsify epsilon 9: a perfect attack certifies 3.054\n"
    )
    limit = "20 runs detect no violation by Laplace noise nine times in ten behind a claim of 1"
    assert overclaim("power", "--epsilon", 1, "--runs", 20).stdout == f"{limit}; a perfect attack may certify 1.351\n"
    assert "a true epsilon of 1.0000002 or more behind" in overclaim("power", "--epsilon", 1, "--runs", 2**50).stdout
    hopeless = overclaim("power", "--epsilon", 9, "--runs", 100, "--json")
    assert json.loads(hopeless.stdout)["detectable_epsilon"] is None
    assert overclaim("power", "--epsilon", -1, "--runs", 100).exit_code == 2


def test_power_counts_the_runs_that_check_counts(tmp_path):
    """Whatever a pilot takes of them, the limit is that of all the runs."""
    (tmp_path / "coin.py").write_text(
        "class Coin:\n    feedback = 'bandit'\n"
        "    def __init__(self, arms, rounds, rng): self.rng = rng\n"
        "    def act(self): return int(self.rng.integers(2))\n"
        "    def update(self, feedback): pass\n"
    )
    words = ["--epsilon", 1, "--runs", 2000, "--json"]
    checked = json.loads(overclaim("check", f"{tmp_path / 'coin.py'}:Coin", "--rounds", 2, *words).stdout)
    assert checked["pilot_runs"] > 0
    assert checked["detectable_epsilon"] == json.loads(overclaim("power", *words).stdout)["detectable_epsilon"]


def test_an_infinite_exact_epsilon_is_said(tmp_path):
    probe = "from overclaim.learners import Threshold\n\nlearner = Threshold(arms=2, threshold=0.5)\n"  # no noise
    (tmp_path / "probe.py").write_text(probe)
    words = [f"{tmp_path / 'probe.py'}:learner", "--epsilon", 1, "--rounds", 2]
    printed = json.loads(overclaim("exact", *words, "--json").stdout, parse_constant=pytest.fail)
    assert printed["epsilon"]["0"] is None
    assert "0" in printed["infinite"]
    checked = overclaim("check", *words, "--runs", 1000, "--jobs", 1, "-v")
    assert "exact value for these inputs by the law that it states: infinite" in " ".join(checked.output.split())
    claim = json.loads(overclaim("check", *words, "--runs", 1000, "--jobs", 1, "--json").stdout)
    assert (claim["exact_epsilon"], claim["exact_infinite"]) == (None, True)
    (tmp_path / "record.json").write_text(json.dumps({"schema": 1, "claims": [claim]}))
    overclaim("report", tmp_path / "record.json", "--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    assert ", exactly ∞ for these inputs" in (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "| ∞ |" in (tmp_path / "r.md").read_text(encoding="utf-8")


def test_regret():
    words = ["--rounds", 64, "--runs", 100, "--jobs", 1]
    result = overclaim("regret", "agarwal-singh/ftrl-experts", *words, "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed.keys() >= {
        "mean_regret",
        "interval",
        "bound",
        "exponent",
        "slope",
        "slope_upper",
        "horizons",
        "regrets",
    }
    assert printed["interval"][0] <= printed["mean_regret"] <= printed["interval"][1]
    assert printed["interval"][0] <= printed["bound"]
    assert "\nGrowth      " in overclaim("regret", "agarwal-singh/ftrl-experts", *words).output
    for wrong, message in (
        (["--rounds", 0], "at least 1, got 0"),
        (["--set", "etta=1"], "no parameter 'etta'\n  hint:  did you mean eta"),
    ):
        refused(overclaim("regret", "agarwal-singh/ftrl-experts", *wrong), message)


@pytest.mark.slow(reason="shrinking itself is tested in tests/plans")
def test_shrink_prints_two_short_lists_and_a_replay_that_gives_the_same_bound():
    words = ("agarwal-singh/reduction-threshold", "--rounds", 4, "--runs", 20_000)
    lines = check(*words, "--shrink", "-v").output.splitlines()
    (small,) = [line for line in lines if line.startswith("Simplest  ")]
    assert small.startswith("Simplest    round 1 of 2: left [1, 0], right [-1, 0]; epsilon is at least 1.")
    *_, replay = [line for line in lines if line.startswith("  Reproduce   ")]
    again = json.loads(overclaim(*shlex.split(replay)[2:], "--json").stdout)
    assert f"at least {math.floor(100 * again['epsilon_lower']) / 100:.2f} here too" in small
    assert "Simplest" not in check(*words).output
    assert json.loads(check(*words, "--shrink", "--json").stdout)["shrunk"]["seed"] == again["seed"]
    survived = check("asi-raman-talwar/batched-threshold", "--rounds", 2, "--runs", 2000, "--shrink", "--json")
    assert json.loads(survived.stdout)["shrunk"] is None


def test_regret_of_a_users_mechanism_is_refused_for_what_it_is(tmp_path):
    """It "needs a value for data, rng"."""
    (tmp_path / "own.py").write_text("def total(data, rng): return sum(data)\n")
    for target in (f"{tmp_path}/own.py:total", "libraries/diffprivlib/mean"):
        refused(
            overclaim("regret", target, "--rounds", 16, "--runs", 20),
            f"regret measures learners only, and {target} is a mechanism",
        )


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("words", "note"),
    [
        (["--losses", "symmetric", "--set", "gamma=0.02"], "losses in [-1, 1]; the paper's are in [0, 1]"),
        (["--losses", "symmetric", "--set", "gamma=0.03"], "the catalogue has no case of this game: we have not read"),
        (["--set", "gamma=0.02"], ""),
    ],
)
def test_whose_claim_is_false_is_said_of_every_game(words, note):
    """A reading had its note in plans alone, and a game that no case has had no word of whose claim it is."""
    rates = ["--set", "batch=1", "--set", "eta=2"]
    claim = json.loads(check("asi-raman-talwar/batched-exp3", *rates, *words, "--runs", 20_000, "--json").stdout)
    assert claim["verdict"] == ("FALSIFIED" if note else "SURVIVED")
    assert claim["note"].startswith(note)
    assert bool(claim["note"]) == bool(note)


def test_what_nobody_claims_is_said_to_be_nobodys_claim():
    """The note had "we have not read whether none: ... show that it leaks claims it"."""
    claim = json.loads(check("asi-raman-talwar/exp3", "--set", "gamma=0.2", "--runs", 2_000, "--json").stdout)
    assert claim["verdict"] == "FALSIFIED"
    assert claim["note"] == "nobody's claim: Asi, Raman & Talwar 2025, Appendix G.1, show that it leaks"


@pytest.mark.parametrize("name", sorted(main.commands))
def test_an_option_has_one_value(name):
    """Of `--epsilon 1 --epsilon 2` the last was taken, without a word."""
    for option in main.commands[name].params:
        if option.param_type_name != "option" or option.multiple or (option.is_flag and not option.secondary_opts):
            continue
        word = option.opts[0]
        values = (word, *option.secondary_opts) if option.is_flag else (word, "1", f"{word}=2")
        told = f"and {values[1]} are both given" if option.is_flag else "is given more than once: 1, 2"
        done = overclaim(name, *values)
        assert (done.exit_code, done.output) == (2, f"overclaim: error: {word} {told}\n")


def test_what_has_a_meaning_may_be_repeated():
    sets = ("--set", "calibration=corrected", "--set", "epsilon=1")
    done = overclaim("exact", "agarwal-singh/reduction-threshold", "--rounds", 2, *sets, "--json", "--json")
    assert done.exit_code == 0, done.output
    done = overclaim("check", "x", "--weaken", "--weaken=epsilon", "--no-shrink", "--no-shrink")
    assert "--weaken is given more than once: no value, epsilon\n" in done.output


@pytest.mark.parametrize("name", ["check", "regret", "run", "scores", "trace"])
def test_more_and_less_than_the_usual_lines_exclude_each_other(name):
    target = [] if name == "run" else ["agarwal-singh/reduction-threshold"]
    refused(overclaim(name, *target, "-v", "-q"), "-v cannot go with -q: one adds lines")
