"""The table of options against what is written out beside it: signatures, and the names that other rooms know."""

import dataclasses
import inspect
import subprocess
import sys

import pytest

from overclaim import falsify, falsify_mechanism
from overclaim.audit.execution import execution
from overclaim.audit.execution.execution import Budget
from overclaim.audit.plans import options
from overclaim.audit.plans.options import AT_TOP, IN_CLAIM, OPTIONS, fits
from overclaim.audit.plans.tasks import Task
from overclaim.mechanisms import claim
from overclaim.mechanisms.measures.kinds import KINDS
from overclaim.mechanisms.relations.relation import relation_names
from overclaim.mechanisms.view import VIEWS
from overclaim.reports.command_line.cli import main

#: What Python alone takes: pairs of inputs as objects, how an audit is carried out, and the words of a `Claim`.
IN_PYTHON = {"pairs", "progress", "memory", "cluster"}


@pytest.mark.parametrize("function", [falsify, falsify_mechanism])
def test_keywords_of_falsify_are_options_with_the_same_defaults(function):
    keywords = {
        name: one.default
        for name, one in inspect.signature(function).parameters.items()
        if one.kind is inspect.Parameter.KEYWORD_ONLY
    }
    assert keywords.keys() - OPTIONS.keys() == IN_PYTHON & keywords.keys()
    said = {name: OPTIONS[name].default for name in keywords if name in OPTIONS}
    assert {name: keywords[name] for name, value in said.items() if value is not None} == {
        name: value for name, value in said.items() if value is not None
    }
    both = inspect.signature(falsify).parameters.keys() | inspect.signature(falsify_mechanism).parameters.keys()
    unsaid = {"jobs": 1, "shrink": True, "bits": False, "os_random": False, "global_random": False, "reseed": False}
    assert {name: keywords[name] for name in said if said[name] is None} == {
        name: unsaid.get(name) for name in said if said[name] is None
    }
    assert {name for name, option in OPTIONS.items() if option.marker} <= both


def test_what_a_plan_says_of_a_claim_is_a_field_of_its_task():
    fields = {field.name for field in dataclasses.fields(Task)} | {field.name for field in dataclasses.fields(Budget)}
    asked = {option.key for option in OPTIONS.values() if option.plan == IN_CLAIM}
    assert asked - fields == {*KINDS, "dp_sgd", "regret"}
    budget = {field.name: field.default for field in dataclasses.fields(Budget)}
    assert {name: budget[name] for name in ("runs", "seed", "confidence", "stop")} == {
        name: OPTIONS[name].default for name in ("runs", "seed", "confidence", "stop")
    }
    at_top = ["seed", "protects", "alpha", "confidence"]
    assert [name for name, option in OPTIONS.items() if option.plan == AT_TOP] == at_top


def test_copies_of_names_are_those_of_the_rooms():
    assert options.LARGEST == execution.LARGEST
    assert options.STOPS == execution.STOPS
    assert options.LOSSES == claim.LOSS_SET_NAMES
    assert tuple(VIEWS) == options.SURFACES
    assert options.RAISING == claim.RAISING
    assert options.EXPECTATIONS == claim.EXPECTATIONS
    assert list(options.RELATIONS) == relation_names()


def test_every_option_of_the_table_that_a_command_reads_is_one_of_check_or_scores():
    known = {param.name for command in ("check", "scores") for param in main.commands[command].params}
    assert {option.key for option in OPTIONS.values() if option.kind} - known == set()


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("runs", [20, 10**6], [19, True, 20.0, "20"]),
        ("seed", [0], [-1, False]),
        ("confidence", [0.5], [0.0, 1.0, float("nan"), True, "0.5"]),
        ("stop", ["early"], ["late", None]),
        ("weaken", [True, "epsilon"], [1, None]),
    ],
)
def test_values_fit_as_the_table_says(name, good, bad):
    assert all(fits(value, OPTIONS[name].schema) for value in good)
    assert not any(fits(value, OPTIONS[name].schema) for value in bad)


def test_the_table_imports_the_standard_library_alone():
    code = "import sys; import overclaim.audit.plans.options; print('numpy' in sys.modules or 'click' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"
