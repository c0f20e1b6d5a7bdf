"""Claims from a configuration of DP-SGD: what is refused, and what dp_accounting says, where it is installed."""

import importlib.metadata
import json

import pytest
from click.testing import CliRunner

from overclaim import DPSGD
from overclaim.audit.plans.plan import read_plan
from overclaim.mechanisms.dp_sgd import EXAMPLE, read_configuration
from overclaim.mechanisms.measures.gaussian_dp import gaussian_epsilon
from overclaim.reports.command_line.cli import main

TARGET = """
def noisy(data, rng):
    return data + rng.normal(0, 2.0)
"""


def installed() -> bool:
    try:
        importlib.metadata.version("dp_accounting")
    except importlib.metadata.PackageNotFoundError:
        return False
    return True


with_accountant = pytest.mark.skipif(not installed(), reason="dp_accounting is not installed")


def check(configuration, *words, folder):
    (folder / "target.py").write_text(TARGET)
    command = [
        "check",
        str(folder / "target.py:noisy"),
        "--left",
        "1",
        "--right",
        "0",
        "--runs",
        "2000",
        "--jobs",
        "1",
    ]
    return CliRunner().invoke(main, [*command, "--dp-sgd", configuration, *words])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("noise_multiplier", "dp_sgd must be NAME=VALUE.*got 'noise_multiplier'"),
        ("steps=1,steps=2", "steps is given twice"),
        ("steps=1", "needs noise_multiplier"),
        (EXAMPLE.replace("steps", "epochs"), "takes noise_multiplier.*got 'epochs'"),
        (EXAMPLE.replace("1.1", "0"), "noise_multiplier must be positive and finite, got 0"),
        (EXAMPLE.replace("=1.1", "=inf"), "noise_multiplier must be positive and finite, got inf"),
        (EXAMPLE.replace("1000", "1.5"), "steps must be a whole number of at least 1, got 1.5"),
        (EXAMPLE.replace("1e-5", "0"), r"delta must be in \(0, 1\), got 0"),
        (EXAMPLE.replace("poisson:0.01", "poisson:2"), r"sampling must be poisson:RATE.*got 'poisson:2'"),
        (EXAMPLE.replace("poisson:0.01", "uniform"), "sampling must be poisson:RATE.*got 'uniform'"),
        (EXAMPLE.replace("poisson:0.01", "shuffle"), "no valid accountant.*far larger epsilon.*--gdp"),
        (f"{EXAMPLE},relation=user", "relation must be one of add-remove, replace, zero-out; got 'user'"),
    ],
)
def test_what_is_no_configuration_is_refused_in_one_line(text, message):
    with pytest.raises(ValueError, match=message) as error:
        DPSGD.of(read_configuration(text))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("configuration", "words", "message"),
    [
        (EXAMPLE.replace("poisson:0.01", "shuffle"), (), "sampling=shuffle has no valid accountant"),
        (EXAMPLE, ("--epsilon", "1"), "--dp-sgd cannot go with --epsilon: a claim is made in one measure"),
        ("steps", (), "must be NAME=VALUE"),
    ],
)
def test_the_command_refuses_with_exit_code_2(configuration, words, message, tmp_path):
    done = check(configuration, *words, folder=tmp_path)
    assert done.exit_code == 2
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.skipif(installed(), reason="dp_accounting is installed")
def test_without_the_accountant_the_line_says_what_to_install(tmp_path):
    done = check(EXAMPLE, folder=tmp_path)
    assert done.exit_code == 2
    assert "pip install 'overclaim[accounting]'" in done.output


@with_accountant
def test_all_examples_in_every_batch_are_the_gaussian_mechanism():
    """Ten sums of noise 5 have mu sqrt(10) / 5, and replaced examples twice that."""
    for relation, factor in (("add-remove", 1), ("zero-out", 1), ("replace", 2)):
        measure = DPSGD(5.0, "full", 10, 1e-5, relation).measure()
        exact = gaussian_epsilon(factor * 10**0.5 / 5, 1e-5)
        assert exact <= measure.epsilon <= 1.001 * exact


@with_accountant
def test_eight_poisson_steps_have_the_epsilon_of_a_numerical_composition():
    measure = DPSGD(0.8, "poisson:0.125", 8, 0.01).measure()
    assert measure.epsilon == pytest.approx(1.705, abs=0.01)
    assert DPSGD(0.8, "poisson:0.125", 8, 0.01, "replace").measure().epsilon > 1.2 * measure.epsilon


@with_accountant
def test_the_claim_says_accountant_relation_and_sampler_in_command_plan_and_python(tmp_path):
    done = check(EXAMPLE, "--json", folder=tmp_path)
    record = json.loads(done.stdout)
    said = DPSGD(1.1, "poisson:0.01", 1000, 1e-5)
    assert record["note"] == said.source
    assert "PLD accountant" in record["note"]
    assert "Poisson sampling at rate 0.01" in record["note"]
    assert "relation add-remove" in record["note"]
    assert record["claimed"]["epsilon"] == said.measure().epsilon == pytest.approx(1.515, abs=2e-3)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        "[[claims]]\ntarget = 'target.py:noisy'\nleft = 1\nright = 0\nnote = 'mine'\n"
        "dp_sgd = { noise_multiplier = 1.1, sampling = 'poisson:0.01', steps = 1000, delta = 1e-5 }\n"
    )
    (task,) = read_plan(plan).tasks
    assert task.measure == said.measure()
    assert task.note == f"{said.source}; mine"
    assert said.claim().source == said.source
    assert said.claim().neighbours == "add-remove"


def compare(claimed, *words, configuration=EXAMPLE):
    return CliRunner().invoke(main, ["account", "--dp-sgd", configuration, "--claimed", claimed, *words])


@with_accountant
@pytest.mark.parametrize(("claimed", "code", "relation"), [("1.68", 0, "covers"), ("1.5", 1, "is below")])
def test_account_compares_a_claim_with_the_accountant(claimed, code, relation):
    done = compare(claimed)
    assert done.exit_code == code
    assert done.output.startswith(
        f"The claimed epsilon {claimed} {relation} dp_accounting's figure, 1.51538 at delta 1e-05"
    )
    record = json.loads(compare(claimed, "--json").stdout)
    assert record["covered"] == (code == 0)
    assert record["accountant"]["epsilon"] == DPSGD(1.1, "poisson:0.01", 1000, 1e-5).measure().epsilon


def test_account_refuses_what_is_no_claim_or_no_configuration():
    for done in (compare("-1"), compare("nan"), compare("1", configuration="steps=1")):
        assert done.exit_code == 2
        assert "Traceback" not in done.output
    done = CliRunner().invoke(main, ["account", "--claimed", "1"])
    assert done.exit_code == 2
    assert f"--dp-sgd {EXAMPLE}" in done.output
