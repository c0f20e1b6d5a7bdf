"""Claims in other measures from the command line, in plans and in every report: one unit, said everywhere."""

import json
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner

import overclaim
from overclaim.audit.execution.execution import IN_PROCESS
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.plans.plan_schema import CLAIM
from overclaim.audit.statistics.measure_words import SYMBOLS, lower_words
from overclaim.mechanisms.measures.approximate import ApproxDP, Profile
from overclaim.mechanisms.measures.gaussian_dp import GDP
from overclaim.mechanisms.measures.kinds import KINDS
from overclaim.mechanisms.measures.renyi import RDP, ZCDP
from overclaim.mechanisms.measures.stated import stated_measure
from overclaim.reports.command_line.cli import main
from overclaim.reports.command_line.running import run_plan
from overclaim.reports.formats import figures, terminal
from overclaim.reports.formats.drawing import matplotlib_library
from overclaim.reports.formats.html import render
from overclaim.reports.formats.junit import render as junit
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.formats.run_lines import run_lines
from overclaim.reports.formats.sarif import render as sarif
from overclaim.reports.record_schema import fault
from overclaim.reports.upper_words import trace_lines
from overclaim.tests.support.command_line import refused

PLAN = """
confidence = 0.99
[[claims]]
target = "mechanisms/gaussian"
gdp = 0.7
runs = 6_000
expect = "falsified"
[[claims]]
target = "mechanisms/gaussian"
zcdp = 0.25
runs = 20_000
[[claims]]
target = "mechanisms/gaussian"
rdp = [2, 3.0]
runs = 2_000
[[claims]]
target = "mechanisms/gaussian"
profile = [[0.0, 0.2], [1.0, 0.1]]
runs = 6_000
[[claims]]
target = "asi-raman-talwar/batched-threshold"
epsilon = 0
delta = 0.2
runs = 6_000
rounds = 2
set = { epsilon = 1.0 }
"""


@pytest.fixture(scope="module")
def record(tmp_path_factory):
    file = tmp_path_factory.mktemp("plan") / "plan.toml"
    file.write_text(PLAN)
    return run_plan(read_plan(file).without_blind_spots(), IN_PROCESS, command="overclaim run plan.toml")


def test_every_claim_has_its_measure_its_bound_and_a_command_that_makes_it(record):
    assert fault(record) is None
    assert record["errors"] == []
    verdicts = [(c["measure"]["kind"], c["verdict"]) for c in record["claims"]]
    assert [kind for kind, _ in verdicts] == ["gdp", "zcdp", "rdp", "profile", "approximate"]
    assert verdicts[0][1] == verdicts[1][1] == verdicts[3][1] == "FALSIFIED"
    assert (verdicts[2][1], record["claims"][2]["reason"]) == ("UNDERPOWERED", "power not measured")
    for claim, option in zip(record["claims"], ("--gdp 0.7", "--zcdp 0.25", "--rdp 2:3", "--profile"), strict=False):
        assert option in claim["replay"]
        assert claim["source"] in ("", "Bun & Steinke 2016, Proposition 1.6")
        assert claim["detectable_epsilon"] is None
    learner = record["claims"][4]
    assert learner["lower"] <= learner["exact_level"] + 0.02
    assert learner["measure"] == {"kind": "approximate", "epsilon": 0.0, "delta": 0.2}


def test_every_report_speaks_the_unit_of_the_claim(record, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    text = run_lines(record)
    assert "mu 0.7" in text
    assert "delta 0.2" in text
    assert "profile, 2 points" in text
    page = render(record)
    assert "μ ≥ " in page
    assert "Gaussian DP, mu 0.7" in page
    assert "multiples" not in page.split("</head>")[0]
    assert "mu is at least" in sarif(record)
    assert "claims rho 0.25" in sarif(record)
    names = [case.get("name") for case in ElementTree.fromstring(junit(record)).iter("testcase")]
    assert any("mu 0.7" in name for name in names)
    assert any("a profile of 2 points" in name for name in names)
    assert "0.25" in markdown(record)


def test_an_upper_bound_from_traces_is_in_the_unit_of_the_claim(record, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(terminal, "_unicode", lambda: True)
    bound = {"epsilon_upper": 9.0, "upper_how": "maximised", "upper_scope": "pair"}
    gdp, _, renyi, *_ = record["claims"]
    line = "traced: epsilon at most 3.0000 at Rényi order 2 on this pair"
    assert trace_lines({**renyi, **bound, "upper": 3.0})[0] == line
    assert trace_lines({**gdp, **bound, "upper": 1.0})[0] == "traced: mu at most 1.0000 on this pair"
    assert trace_lines({**gdp, **bound, "upper": None})[0] == "NOT BOUNDED: no bound is known in this measure"
    sampled = {**gdp, **bound, "upper_how": "sampled", "upper_rests_on": ["real arithmetic"], "cause": None}
    said = ["NOT BOUNDED: the paths were sampled; other runs may cost more", "it rests on: real arithmetic"]
    assert trace_lines(sampled) == said
    assert "┫" in run_lines({**record, "claims": [{**renyi, **bound, "upper": 3.0}]}, verbose=True)  # at the claim


def test_a_measure_is_known_wherever_it_is_claimed_or_said():
    options = {option.name for option in main.commands["check"].params}
    assert set(KINDS) == options & set(KINDS) == set(CLAIM["properties"]) & set(KINDS)
    for measure in (GDP(1.0), ZCDP(1.0), RDP(2.0, 1.0), Profile(((1.0, 0.0),))):
        assert KINDS[measure.kind].unit == measure.unit
        assert measure.unit in SYMBOLS
        assert type(measure).__name__ in overclaim.__all__


def test_of_a_profile_one_point_is_beyond_its_claim_and_the_others_may_not_be(record):
    """Normal noise of mu 1 has delta 0.38 at epsilon 0 and 0.13 at 1: beyond 0.2, and within 0.6."""
    words = "the true profile is at least {} times the claimed profile at one of its points"
    assert words.format("1.5") in lower_words({"kind": "profile", "points": [[0, 0.2], [1, 0.6]]}, 1.5)
    assert "times the claimed profile at one of its points" in sarif(record)


def test_the_figure_of_a_profile_shows_all_points_and_names_what_is_implied_so(record, monkeypatch):
    seen = []
    monkeypatch.setattr(figures, "draw", lambda paint, *words: seen.append(painted_limits(paint)) or "")
    claim, learner = record["claims"][3], record["claims"][4]
    _, alternative, _ = figures._profile({**claim, "measure": PROFILE, "claimed": CLAIMED}, learner["evidence"])
    assert "near epsilon 1, where the claim allows at most 0.1;" in alternative
    assert seen[0][1] > 0.9


PROFILE = {"kind": "profile", "points": [[0.0, 0.9], [1.0, 0.1]]}
CLAIMED = {"epsilon": 1.0, "delta": 0.1}


def painted_limits(paint):
    axes = matplotlib_library().figure.Figure().subplots()
    paint(axes)
    return axes.get_ylim()


def test_a_foreign_measure_that_is_none_is_bad_input(record):
    wrong = json.loads(json.dumps(record))
    wrong["claims"][0]["measure"] = {"kind": "gdp", "mu": 0}
    assert "claims[0].measure: mu must be positive" in fault(wrong)


@pytest.mark.parametrize("measure", [GDP(0.1), ZCDP(1e-7), RDP(8.0, 1.5), Profile(((0.0, 0.25), (1.5, 1e-9)))])
def test_options_and_keys_read_back(measure):
    name, text = (word.removeprefix("--") for word in measure.as_options())
    value = {"gdp": float, "zcdp": float, "rdp": lambda t: [float(x) for x in t.split(":")], "profile": json.loads}
    assert stated_measure({name: value[name](text)}) == measure
    assert ApproxDP(0.0, 0.1).as_options() == ["--epsilon", "0", "--delta", "0.1"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--gdp", "0"], "mu must be positive and finite, got 0.0"),
        (["--gdp", "1", "--zcdp", "1"], "a claim is made in one measure, got gdp and zcdp"),
        (["--epsilon", "1", "--gdp", "1"], "a claim is made in one measure, got epsilon and gdp"),
        (["--gdp", "1", "--delta", "0.1"], "delta goes with epsilon"),
        (["--rdp", "8"], "--rdp must be ORDER:EPSILON, as in 8:1.5, got '8'"),
        (["--rdp", "0.5:1"], "order must be above 1 and finite, got 0.5"),
        (["--profile", "[[1]]"], "a point of a profile must be [epsilon, delta], got [1]"),
        (["--profile", "{}"], "profile must be a list of [epsilon, delta], got {}"),
        (["--profile", "[1"], "is no JSON"),
        (["--epsilon", "0"], "epsilon must be positive and finite, got 0.0"),
        (["--gdp", "1", "--shrink"], "--shrink simplifies searched inputs"),
    ],
)
def test_what_is_no_claim_ends_with_one_line_and_exit_code_2(words, message):
    refused(CliRunner().invoke(main, ["check", "mechanisms/gaussian", "--runs", "100", *words]), message)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("gdp = 0", "gdp must be above 0, got 0"),
        ('rdp = "2:1"', "rdp must be a list, got '2:1'"),
        ("rdp = [2]", "rdp must be [order, epsilon], got [2]"),
        ("profile = []", "at least one point"),
        ("gdp = 1.0\nepsilon = 1.0", "a claim is made in one measure, got epsilon and gdp"),
    ],
)
def test_a_plan_names_what_is_no_claim(tmp_path, line, message):
    file = tmp_path / "plan.toml"
    file.write_text(f'[[claims]]\ntarget = "mechanisms/gaussian"\n{line}\n')
    with pytest.raises(ValueError, match=r"plan.toml:\d+: ") as caught:
        read_plan(file)
    assert message in str(caught.value)


def test_an_audit_that_stops_early_has_no_intervals_of_one_event():
    """Its attack changes and it stops when it likes: Clopper-Pearson intervals of its counts hold for neither."""
    words = ["check", "agarwal-singh/reduction-threshold", "--rounds", "2", "--runs", "4000", "--stop", "early", "-v"]
    run = CliRunner().invoke(main, words)
    assert run.exit_code in (0, 1), run.output
    assert "bets, each of which was placed before its run was played" in " ".join(run.output.split())
    assert "in other measures" not in run.output


@pytest.mark.parametrize("command", ["trace", "power"])
def test_a_claim_has_all_its_digits_whatever_the_command(command):
    target = ["--runs", "1000"] if command == "power" else ["agarwal-singh/reduction-threshold", "--rounds", "4"]
    claimed = ["--epsilon", "1.23456789", "--delta", "0.0123456789"]
    result = CliRunner().invoke(main, [command, *target, *claimed])
    assert "1.23456789 at delta 0.0123456789" in " ".join(result.stdout.split())


def test_exact_values_at_two_deltas_stay_two():
    asked = ["exact", "agarwal-singh/reduction-threshold", "--rounds", "2", "--delta", "0.0010000001"]
    exact = json.loads(CliRunner().invoke(main, [*asked, "--json"]).stdout)["epsilon"]
    assert list(exact) == ["0", "0.001", "0.0010000001", "0.01"]
    assert "\n0.0010000001  1.9980\n" in CliRunner().invoke(main, asked).stdout
