"""What `check` prints: the answer on line 1, labels in one order, at most eight lines, and honest sentences."""

import copy
import json
from pathlib import Path

import click
import pytest

from overclaim.audit.play.pair_text import cut_beside
from overclaim.reports.formats import sentences
from overclaim.reports.formats.claim_lines import claim_lines
from overclaim.reports.formats.input_words import inputs_words
from overclaim.reports.formats.layout import COMMAND, MAX_LINES, WIDTH, labelled

GOLDEN = Path(__file__).resolve().parents[3] / "benchmarks" / "golden" / "record.json"
LABELS = "Claimed by, Evidence, Canaries, Assumes, Inputs, Simplest, Cause, Fix, Power, Meaning, Next, Reproduce"
PLAIN = {
    "name": "my.py:count",
    "claimed": {"epsilon": 1.0, "delta": 0.0},
    "measure": {"kind": "approximate", "epsilon": 1.0, "delta": 0.0},
    "verdict": "FALSIFIED",
    "epsilon_lower": 1.9678,
    "confidence": 0.99,
    "method": "guess",
    "counts": {"runs": 1000, "runs_left": 500, "right": 432, "guesses": 500},
    "mechanism": True,
    "pair": {"round": 1, "left": [1], "right": [0]},
    "runs": 2000,
    "replay": "overclaim check my.py:count",
}
ONE_SIDED = {"runs": 1000, "runs_left": 400, "left_upper": 200, "right_upper": 30, "left_lower": 0, "right_lower": 0}
SURVIVED = {"verdict": "SURVIVED", "epsilon_lower": 0.5}


def claim(**changes) -> dict:
    return {**copy.deepcopy(PLAIN), **changes}


@pytest.fixture(scope="module")
def golden() -> list[dict]:
    """Return the golden claims, but for those whose inputs the file has as sums."""
    claims = json.loads(GOLDEN.read_text(encoding="utf-8"))["claims"]
    return [one for one in claims if not any(isinstance(one["pair"][side], dict) for side in ("left", "right"))]


def test_every_kind_of_claim_fits_eight_lines_with_its_labels_in_order(golden):
    order = LABELS.split(", ")
    assert len({(one["method"], one["verdict"]) for one in golden}) > 8
    for one in golden:
        head, *lines = click.unstyle(claim_lines(one)).split("\n")
        assert head.startswith(f"{one['verdict']}  {one['name']}: claimed ")
        assert len(lines) < MAX_LINES
        assert all(len(line) <= WIDTH for line in lines if not line.startswith(COMMAND))
        labels = [line[:11].strip() for line in lines if line[:11].strip()]
        assert labels == sorted(labels, key=order.index)
        assert lines[-1] == f"Reproduce   {one['replay']}"
        whole = click.unstyle(claim_lines(one, verbose=True)).split("\n")
        assert whole[: len(lines) + 2] == [head, *lines, "Details"]
        assert click.unstyle(claim_lines(one, quiet=True)) == head


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "epsilon is at least 1.96 (99% confidence)"),
        ({"epsilon_lower": 1.00006614}, "epsilon is at least 1.00006 (99% confidence)"),
        (SURVIVED | {"epsilon_lower": 0.0012}, "epsilon is at least 0.0012 (99% confidence)"),
        ({"confidence": 1 - 0.01 / 3}, "epsilon is at least 1.96 (99.666% confidence)"),
        (SURVIVED | {"epsilon_lower": 0.0}, "no difference was seen (nothing certified)"),
        ({"verdict": "UNDERPOWERED", "reason": "too few runs"}, "2,000 runs are too few to test it"),
        ({"verdict": "UNDERPOWERED", "reason": "low power"}, "this audit cannot detect a violation"),
    ],
)
def test_line_1_is_the_whole_answer(changes, answer):
    assert sentences.answer(claim(**changes)) == f"my.py:count: claimed epsilon 1; {answer}"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "86.4% of the attack's guesses are right; epsilon 1 allows 73.1%"),
        (SURVIVED, "86.4% of the attack's guesses are right; epsilon 1 allows 73.1% (within sampling error)"),
        ({"claimed": {"epsilon": 8.0, "delta": 0.0}, "measure": None}, "epsilon 8 allows 99.97%"),
        ({"claimed": {"epsilon": 1.0, "delta": 0.01}, "measure": None}, "; the claim allows 73.6%"),
        ({"counts": {"runs": 9, "runs_left": 5, "right": 0, "guesses": 0}}, "the attack made no guess: "),
        (
            {"method": "joint", "counts": ONE_SIDED},
            '"left" with true-positive rate 50.0% at false-positive rate 5.0%; epsilon 1 allows 13.6%',
        ),
        (
            SURVIVED | {"epsilon_lower": 0.0, "method": "joint", "counts": ONE_SIDED | {"right_upper": 300}},
            "true-positive rate 50.0% at false-positive rate 50.0%: no better than chance",
        ),
        (
            {"method": "joint", "counts": ONE_SIDED | {"right_upper": 0}},
            "true-positive rate 50.0% at false-positive rate 0% (0 of 600); epsilon 1 allows 0%",
        ),
        ({"method": "variational", "counts": ONE_SIDED}, "rate 5.0%; the bound uses all of its scores"),
    ],
)
def test_the_evidence_is_a_rate_beside_what_the_claim_allows(changes, words):
    assert words in sentences.evidence(claim(**changes))


def test_a_rate_has_as_many_digits_as_tell_it_from_what_is_allowed():
    assert sentences.shares(0.73149, 0.73106) == ("73.15%", "73.11%")
    assert sentences.shares(0.99999, 0.731) == ("99.999%", "73.1%")
    assert sentences.shares(0.07992, 1e-5) == ("8.0%", "0.001%")
    assert sentences.shares(1.0, 0.731) == ("100%", "73.1%")
    assert sentences.shares(0.0) == ("0%", "0%")


FEW = {"verdict": "UNDERPOWERED", "reason": "too few runs", "pilot_runs": 409, "runs": 500}


@pytest.mark.parametrize(
    ("changes", "needed", "enough"),
    [
        ({"claimed": {"epsilon": 8.0, "delta": 0.0}}, 13_731, 40_000),
        ({"claimed": {"epsilon": 3.0, "delta": 0.0}}, 95, 1000),
        ({"claimed": {"epsilon": 8.0, "delta": 0.0}, "method": "anytime", "budget": 500}, 13_731, 40_000),
        ({"claimed": {"epsilon": 60.0, "delta": 0.0}}, None, None),
    ],
)
def test_too_few_runs_are_told_how_many_are_needed(changes, needed, enough):
    one = claim(**FEW, **changes, measure=None)
    found = sentences.needed_runs(one)
    if one["method"] == "anytime":  # a sequential test needs more than one at a fixed number
        assert found > needed
    else:
        assert (found, sentences.enough_runs(one)) == (needed, enough)


def test_the_counted_runs_are_said_beside_those_that_a_perfect_attack_needs():
    one = claim(**FEW, claimed={"epsilon": 8.0, "delta": 0.0}, measure=None)
    one["counts"] = {"runs": 91, "runs_left": 40, "right": 6, "guesses": 11}
    says = "a perfect attack needs 13,731 counted runs; this audit had 91, as choosing the inputs took 409"
    assert sentences.meaning(one) == says
    assert sentences.next_step(one) == "--runs 40000; or give the inputs with --left and --right"


SPOT = {"factor": 1.5, "missed": 1.25, "tried": 1.5, "parameter": "1/scale", "bounds": [], "true_to": None}


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "not measured (at best, 2,000 runs detect epsilon 1.3)"),
        (
            {"name": "mechanisms/laplace"},
            "not measured (at best, 2,000 ",
        ),
        ({"required_power": 3.0}, "not measured: no fault of ours changes its outputs (at best, 2,000 "),
        ({"required_power": 3.0, "question": {"power": "off"}}, "not measured (at best, 2,000 "),
        ({"detectable_epsilon": None}, "(at best, 2,000 runs detect no violation by Laplace noise nine times in ten)"),
        ({"blind_spot": SPOT}, "detected when the noise is divided by 1.5; missed at 1.25"),
        ({"blind_spot": SPOT | {"parameter": "rate"}}, "detected when rate is multiplied by 1.5; missed at 1.25"),
        (
            {"blind_spot": SPOT | {"factor": None, "tried": 100.0, "true_to": 10.0}},
            "missed even when the noise is divided by 100; the claim is true up to 10 (exact laws)",
        ),
    ],
)
def test_the_power_is_measured_or_said_not_to_be(changes, words):
    assert words in sentences.power(claim(**SURVIVED, **({"detectable_epsilon": 1.3} | changes)))


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (SURVIVED, "no violation was found; this is not a proof of privacy"),
        (SURVIVED | {"remarks": ["its noise is fixed"]}, "not a proof of privacy; its noise is fixed"),
        (SURVIVED | {"noise_set_by": ["epsilon"]}, "; --epsilon set the noise too (--set epsilon: the noise alone)"),
        (SURVIVED | {"unread_bits": True}, "; low-order bits were not tested (--bits)"),
        (
            SURVIVED | {"epsilon_lower": 0.0},
            "this audit tested little: the target ignores",
        ),
        (
            SURVIVED | {"untraced": "it draws no noise", "trace_result": "NOT TRACED"},
            "; NOT TRACED: it draws no noise",
        ),
        (
            {"verdict": "UNDERPOWERED", "reason": "low power"},
            "the claim has slack, or the attack is weak",
        ),
        ({}, ""),
    ],
)
def test_the_meaning_is_what_a_verdict_says_and_no_more(changes, words):
    assert sentences.meaning(claim(**changes)).endswith(words) or words in sentences.meaning(claim(**changes))
    assert bool(sentences.meaning(claim(**changes))) is bool(words)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"standing": "theorem", "source": "A 2017, Lemma 1"}, "A 2017, Lemma 1"),
        ({"standing": "variant", "source": "A 2017, Lemma 1"}, "nobody: a variant of A 2017, Lemma 1"),
        ({"standing": "control", "source": "none: shown to leak"}, "nobody: a control (none: shown to leak)"),
        ({"source": "A 2017"}, ""),
    ],
)
def test_a_claim_has_an_owner_only_where_it_is_printed(changes, words):
    assert sentences.claimed_by(claim(**changes)) == words


def test_losses_have_four_digits_unless_they_would_look_alike():
    quadratic = {"loss": "quadratic", "curvature": 1e-05, "centre": [-99999.99999999999]}
    pair = {"round": 2, "left": [[0.0], quadratic], "right": [[0.0], [1 / 3]]}
    one = claim(mechanism=False, pair=pair, neighbours="replace")
    text = "the losses of round 2 of 2: left quadratic(curvature 1e-05, centre [-1e+05]), right [0.3333]"
    assert inputs_words(one) == text
    one["pair"] = {"round": 1, "left": [[1.0]], "right": [[1.0 + 1e-9]]}
    assert "right [1.000000001]" in inputs_words(one)


def test_long_inputs_are_shown_where_they_begin_to_differ():
    left, right = ["x" * 500 + one + "x" * 500 for one in "ab"]
    for text, mark in zip(cut_beside(left, right), "ab", strict=True):
        assert len(text) <= 84
        assert text.startswith("...x")
        assert text.endswith("x...")
        assert mark in text


def test_what_is_assumed_is_never_cut():
    assumed = "; ".join(f"assumption {i} of those that a bound rests on" for i in range(9))
    lines = labelled("head", [(label, "word " * 60) for label in ("Cause", "Fix", "Meaning")] + [("Assumes", assumed)])
    assert assumed in " ".join(lines.split())


def test_labels_are_shortened_before_they_are_left_out_and_a_command_never():
    rows = [(label, "word " * 60) for label in LABELS.split(", ") if label not in ("Canaries", "Assumes", "Meaning")]
    lines = labelled("head", rows).split("\n")
    assert len(lines) == MAX_LINES
    assert lines[-1] == f"Reproduce   {'word ' * 60}".rstrip()
    assert lines[1].startswith("Evidence")  # "Claimed by" went first
    assert all(line.endswith(" ...") for line in lines[1:-1])


def test_survived_is_never_green():
    for verdict in ("SURVIVED", "FALSIFIED"):
        text = claim_lines(claim(verdict=verdict, epsilon_lower=0.5))
        assert "\x1b[32m" not in text
        assert ("\x1b[31m" in text) is (verdict == "FALSIFIED")
