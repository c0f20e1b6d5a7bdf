"""No fault of a trace, of shrinking, of a blind spot, of an exact value or of a figure costs a verdict."""

import json
import signal
import sys
from dataclasses import replace
from functools import partial

import pytest
from hypothesis import strategies as st

from overclaim import Claim, Verdict, falsify, falsify_mechanism
from overclaim.audit.assumptions.blocks import LearnerBlock, draws_of
from overclaim.audit.execution.cluster import ClusterError
from overclaim.audit.execution.execution import Execution
from overclaim.audit.plans.lock import LedgerError
from overclaim.audit.plans.plan import read_plan
from overclaim.audit.play.data import DataPair
from overclaim.audit.play.mechanism_runs import run_block
from overclaim.audit.play.pairs import Pair
from overclaim.audit.play.transcripts import play
from overclaim.learners import BatchedLaplace, Threshold
from overclaim.learners.blame import MissingExtra, extra_or_reason
from overclaim.learners.protocol import LearnerError
from overclaim.learners.scalar import Scalar
from overclaim.reports.command_line import running
from overclaim.reports.formats import figures
from overclaim.reports.formats.html import render
from overclaim.reports.formats.markdown import render as markdown
from overclaim.reports.plugin import AuditedResult
from overclaim.reports.record import read_record
from overclaim.reports.status import status_of
from overclaim.testing import neighbours
from tests.support.command_line import check, overclaim, run_plan

OWN = """
def swapped(data, rng):
    noise = rng.laplace()
    return {"a": noise, "b": 0} if data else {"b": 0, "a": noise}
"""
LEARNER = ("agarwal-singh/reduction-threshold", "--rounds", 2, "--runs", 2000)
SURVIVING = """
[[claims]]
target = "asi-raman-talwar/batched-threshold"
rounds = 2
runs = 2000
set = { batch = 1 }
"""
FALSIFIED = '[[claims]]\ntarget = "agarwal-singh/reduction-threshold"\nepsilon = 1\nrounds = 2\nruns = 2000\n'
#: Where each extra is looked up when it is computed, and what it is called where it is missing.
OF_RUNS = {
    "pipeline.blind_spot_search.blind_spot": ("blind spot", SURVIVING),
    "pipeline.learner_stages.claimed_level": ("exact value", SURVIVING),
    "traces.summary.tracing": (None, SURVIVING),
    "traces.summary.cause": (None, FALSIFIED),
    "traces.upper.path_cost": (None, SURVIVING),
    "plans.shrink.shrink": ("shrunk witness", FALSIFIED),
}


#: What is said of a planted fault, which is raised by this file.
REASON = "fails.failing raised Planted: as planted"


class Planted(Exception):  # noqa: N818
    """Of a kind that nothing expects."""


@pytest.fixture(autouse=True, scope="module")
def power_tests():
    """Measure power, as commands do."""


def fails(error=None):
    def failing(*args, **kwargs):
        raise error or Planted("as planted")

    return failing


def record_of(tmp_path):
    return read_record(tmp_path / "out" / "record.json")


@pytest.mark.few(2)
@pytest.mark.parametrize("place", OF_RUNS)
def test_a_run_writes_its_verdict_and_why_an_extra_is_missing(place, tmp_path, monkeypatch):
    what, plan = OF_RUNS[place]
    monkeypatch.setattr(f"overclaim.audit.{place}", fails())
    done = run_plan(tmp_path, f'{plan}expect = "{"falsified" if plan == FALSIFIED else "survived"}"\n')
    assert done.exit_code == 0, done.output
    (claim,) = record_of(tmp_path)["claims"]
    assert claim["verdict"] == ("FALSIFIED" if plan == FALSIFIED else "SURVIVED")
    if what is None:
        assert claim["untraced"] == REASON
        return
    assert {"what": what, "reason": REASON} in claim["missing"]
    assert f": {what}: {REASON}" in done.output
    assert f"{what}: {REASON}" in (tmp_path / "out" / "report.html").read_text()
    assert f"missing: {what}" in markdown(record_of(tmp_path))


@pytest.mark.few(1)
@pytest.mark.parametrize(
    ("place", "what"),
    [
        ("evidence.evidence.evidence", "figures"),
        ("evidence.frozen.freeze", "frozen event"),
        ("laws.exact.exact_epsilon", "exact value"),
        ("laws.exact_levels.gaussian_mu_of", "exact level"),
        ("statistics.certificates.translation", "event in all measures"),
    ],
)
def test_a_run_goes_without_what_its_record_cannot_have(place, what, tmp_path, monkeypatch):
    monkeypatch.setattr(f"overclaim.audit.{place}", fails())
    done = run_plan(tmp_path, f'{FALSIFIED}expect = "falsified"\n')
    assert done.exit_code == 0, done.output
    (claim,) = record_of(tmp_path)["claims"]
    assert claim["verdict"] == "FALSIFIED"
    assert {"what": what, "reason": REASON} in claim["missing"]


def test_figures_that_cannot_be_written_are_missing(tmp_path, monkeypatch):
    """A number that JSON has none for ended the claim: "internal error"."""
    monkeypatch.setattr("overclaim.audit.evidence.evidence.evidence", lambda *_: {"alpha": float("nan"), "growth": {}})
    assert run_plan(tmp_path, f'{FALSIFIED}expect = "falsified"\n').exit_code == 0
    (claim,) = record_of(tmp_path)["claims"]
    assert claim["evidence"] is None
    assert [one["what"] for one in claim["missing"]] == ["figures"]


def test_a_figure_that_cannot_be_drawn_says_why_in_its_place(tmp_path, monkeypatch):
    pytest.importorskip("matplotlib")
    run_plan(tmp_path, f'{FALSIFIED}expect = "falsified"\n')
    monkeypatch.setattr(figures, "drawn", lambda item: figures.of_claim(item[0], item[2]))
    monkeypatch.setattr(figures, "_histogram", fails())
    page = render(record_of(tmp_path))
    assert f"missing: figure: {REASON}" in page
    assert page.count("<svg") > 1


@pytest.mark.parametrize(
    ("place", "words", "said"),
    [
        ("traces.summary.tracing", ["--trace"], f"NOT TRACED: {REASON}"),
        ("pipeline.blind_spot_search.blind_spot", ["--weaken"], f"missing: blind spot: {REASON}"),
        ("pipeline.learner_stages.claimed_level", [], f"missing: exact value: {REASON}"),
    ],
)
def test_check_of_what_survives_exits_0_without_an_extra(place, words, said, monkeypatch):
    monkeypatch.setattr(f"overclaim.audit.{place}", fails())
    done = overclaim("check", "asi-raman-talwar/batched-threshold", "--rounds", 2, "--runs", 2000, "--jobs", 1, *words)
    assert done.exit_code == 0, done.output
    assert said in " ".join(done.output.split())


@pytest.mark.parametrize(
    "error", [Planted("as planted"), StopIteration(), LearnerError("as planted"), OSError(28, "")]
)
def test_check_of_what_is_falsified_exits_1_without_its_shrunk_witness(error, monkeypatch):
    monkeypatch.setattr("overclaim.audit.plans.shrink.shrink", fails(error))
    done = check(*LEARNER, "--shrink")
    assert done.exit_code == 1, done.output
    assert "missing: shrunk witness: " in done.output


def test_a_mechanism_keeps_its_verdict_without_shrunk_inputs_and_words(monkeypatch):
    monkeypatch.setattr("overclaim.audit.pipeline.shrink_inputs.shrink_inputs", fails())
    monkeypatch.setattr("overclaim.audit.pipeline.event_statements.event_in_words", fails())
    inputs = neighbours(st.lists(st.integers(0, 1), max_size=3))

    def count(data, rng):
        return sum(data) + rng.laplace(scale=0.25)

    result = falsify_mechanism(count, Claim(epsilon=1.0), inputs=inputs, runs=3000)
    assert result.verdict is Verdict.FALSIFIED
    assert [one.what for one in result.missing] == ["event in words", "shrunk inputs"]
    assert f"missing: shrunk inputs: {REASON}" in str(result)
    shown = AuditedResult(result, count, "pytest").report()
    assert f"missing: shrunk inputs: {REASON}" in shown


def test_a_weaker_target_that_raises_costs_no_verdict():
    """The noise of the blind spot's targets may be such as the target cannot have: exit 4, and no verdict."""

    def weaken(factor):
        if factor > 1.1:
            raise ValueError("too little noise")
        return BatchedLaplace(Threshold(arms=2, threshold=0.5), epsilon=1.0, batch=1)

    result = falsify(weaken(1.0), Claim(epsilon=1.0), rounds=2, runs=2000, weaken=weaken)
    assert (result.verdict, result.blind_spot) == (Verdict.SURVIVED, None)
    (missing,) = result.missing
    assert missing.what == "blind spot"
    assert "too little noise" in missing.reason


def test_outputs_whose_keys_change_places_are_traced(tmp_path):
    """`StopIteration`, exit 70, and `run` lost the claim."""
    (tmp_path / "own.py").write_text(OWN)
    done = check(
        f"{tmp_path / 'own.py'}:swapped", "--left", "[]", "--right", "[1]", "--runs", 2000, "--trace", "--json"
    )
    assert done.exit_code == 1, done.output
    record = json.loads(done.output)
    assert record["leak"]["what"] == "output"
    assert record["untraced"] is None


def test_a_self_test_that_fails_costs_no_record(tmp_path, monkeypatch):
    """It comes last in a run of the catalogue, whose claims were audited by then: all were lost."""
    monkeypatch.setattr("overclaim.audit.plans.selftest.selftest", fails())
    (tmp_path / "plan.toml").write_text(FALSIFIED)
    plan = replace(read_plan(tmp_path / "plan.toml"), published=True)
    record = running.run_plan(plan, Execution(1), command="")
    assert [claim["verdict"] for claim in record["claims"]] == ["FALSIFIED"]
    (error,) = record["errors"]
    assert (error["name"], error["message"]) == ("self-test", REASON)
    assert status_of(record).code == 70


@pytest.mark.parametrize(
    ("end", "ending"),
    [
        (partial(signal.raise_signal, signal.SIGINT), KeyboardInterrupt),
        (sys.exit, SystemExit),
        *((fails(ending()), ending) for ending in (MemoryError, LedgerError, ClusterError)),
    ],
    ids=["SIGINT", "exit", "memory", "ledger", "cluster"],
)
def test_what_ends_a_run_ends_it_in_an_extra_too(end, ending):
    def hidden():
        try:
            end()
        except BaseException as error:
            raise ValueError("in its place") from error

    inherited = signal.signal(signal.SIGINT, signal.default_int_handler)  # it may be ignored
    try:
        with pytest.raises(ending):
            extra_or_reason("extra", end)
        with pytest.raises(ValueError, match="in its place"):
            extra_or_reason("extra", hidden)
    finally:
        signal.signal(signal.SIGINT, inherited)


@pytest.mark.parametrize("ending", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_a_target_raises_itself_costs_no_verdict(ending):
    """It passed for Ctrl-C or a request to exit, and the claim was lost: by a class, and by a mechanism."""

    def raising(data, rng):
        raise ending

    class Raises:
        feedback = "full"

        def __init__(self, arms, rounds, rng):
            pass

        def act(self):
            raise ending

        def update(self, losses):
            pass

    pair = Pair([[0.0, 1.0]], [[1.0, 0.0]])
    learner = Scalar(Raises, arms=2, rounds=1)
    for make in (
        fails(ending()),
        lambda: play(learner, pair, draws_of(0, LearnerBlock.OTHER), 2),
        lambda: run_block(raising, DataPair([0], [1]), draws_of(0, LearnerBlock.OTHER), 2),
    ):
        found, (missing,) = extra_or_reason("extra", make)
        assert (found, missing.what) == (None, "extra")
        assert ending.__name__ in missing.reason


def test_an_error_whose_text_raises_is_a_reason_too():
    class Mute(Exception):  # noqa: N818
        def __str__(self):
            raise RuntimeError

    assert extra_or_reason("extra", fails(Mute())) == (
        None,
        (MissingExtra("extra", "fails.failing raised Mute: (its message raises)"),),
    )
