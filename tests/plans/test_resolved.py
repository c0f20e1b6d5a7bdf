"""What is not said of a game: it is resolved field by field, and replayed as it was."""

import re
import shlex
from pathlib import Path

import pytest

from overclaim.audit.plans.plan import literature, read_plan
from overclaim.audit.plans.tasks import Task
from overclaim.learners.catalogue.entries import entries
from overclaim.reports.command_line.cli import main
from overclaim.reports.command_line.task_options import task_of

DATA = Path(__file__).parents[1] / "data"
#: What of a command is of the machine, not of the audit.
ELSEWHERE = ("jobs", "workers", "scheduler", "shrink", "trace", "as_json", "plot", "verbose", "quiet")
FIELDS = ("epsilon", "delta", "rounds", "arms", "losses", "neighbours", "surface")
#: The marks of the claims of a record of 0.1.0.
MARKS = (
    *("0c7c4533e11df58d", "d5e926e76de5f2e4", "d65e25295f8bdc26"),
    *("0d42c1d3848c4588", "31c682c6c01c257f", "0c7c4533e11df58d"),
)


def game(task):
    """Return all that an audit depends on, and the case whose claim it is."""
    prepared = task.prepare()
    learner = re.sub(" at 0x[0-9a-f]+", "", repr(prepared.target))
    pairs = None if task.pair is None else task.pair.to_json()
    case = None if prepared.case is None else id(prepared.case)
    return learner, prepared.claim, prepared.rounds, prepared.setting, pairs, case


def replayed(task):
    """Return the task that the command line makes of a replay."""
    context = main.commands["check"].make_context("check", shlex.split(task.command())[2:])
    return task_of(**{name: value for name, value in context.params.items() if name not in ELSEWHERE})


@pytest.mark.few(8)
@pytest.mark.parametrize("name", entries())
def test_a_name_is_itself_with_any_one_of_its_own_values_said(name):
    """Told their own `--rounds`, 13 of 42 names were another game than bare."""
    entry, bare = entries()[name], Task(target=name).resolved()
    asked = game(bare)
    assert game(Task(target=name)) == asked
    said = [{field: getattr(bare, field)} for field in FIELDS]
    own = {"calibration": "as_published", **entry.defaults, **bare.parameters}
    said += [{"parameters": {key: value}} for key, value in own.items()]
    said += [{"parameters": {key: str(value)}} for key, value in own.items()]
    said += [{"parameters": {"losses": bare.losses}}, {"parameters": {"epsilon": 1.0}}]
    for one in said:
        assert game(Task(target=name, **one)) == asked, one


@pytest.mark.few(30)
@pytest.mark.parametrize("name", entries())
@pytest.mark.parametrize("said", [{}, {"rounds": 16}, {"surface": "release", "epsilon": 2.0}], ids=str)
def test_a_replay_is_the_same_game(name, said):
    task = Task(target=name, **said).resolved()
    again = replayed(task)
    assert game(again) == game(task)
    assert again.command() == task.command() == Task(target=name, **said).command()
    assert again.resolved() == again


def test_a_replay_of_the_literature_is_the_same_case():
    """A case that leaves out a parameter of its entry's example has the default, and the replay says so."""
    lacking = 0
    for task in literature().tasks:
        again = replayed(task)
        assert game(again) == game(task), task.command()
        assert again.named_parameters().keys() == task.named_parameters().keys(), task.command()
        lacking += len(task.named_parameters()) < len(task.parameters)
    assert lacking > 20


@pytest.mark.parametrize(
    ("name", "said", "due"),
    [
        (
            "batched-exp3",
            {"rounds": 9},
            {"rounds": 9, "arms": 2, "parameters": {"eta": 2.0, "gamma": 0.02, "batch": 1}},
        ),
        ("batched-htinf", {"neighbours": "replace"}, {"surface": "release", "parameters": {"batch": 2}}),
        ("batched-htinf", {"surface": "actions"}, {"surface": "actions", "parameters": {"batch": 2}}),
        ("batched-htinf", {"parameters": {"batch": "3"}}, {"surface": "release", "parameters": {"batch": "3"}}),
        ("batched-htinf", {}, {"parameters": {"calibration": "as_published", "batch": 2}}),
        ("batched-htinf", {"parameters": {"epsilon": 2.0}}, {"epsilon": None}),
        ("exp3", {"rounds": 9}, {"rounds": 9, "arms": 2, "losses": "unit", "surface": "actions", "parameters": {}}),
    ],
    ids=str,
)
def test_what_is_said_comes_before_the_example_and_that_before_the_entry(name, said, due):
    task = Task(target=f"asi-raman-talwar/{name}", **said).resolved()
    assert {field: getattr(task, field) for field in due} == due


@pytest.mark.parametrize("name", ["mine.py:Mine", "mechanisms/laplace", "libraries/opendp/make_laplace", "unknown"])
def test_other_targets_are_left_as_they_are(name):
    task = Task(target=name)
    assert task.resolved() is task
    assert (task.neighbours, task.surface) == (None, None)


def test_a_plan_says_what_a_command_says(tmp_path):
    (tmp_path / "plan.toml").write_text('[[claims]]\ntarget = "asi-raman-talwar/batched-exp3"\nrounds = 4\n')
    (task,) = read_plan(tmp_path / "plan.toml").tasks
    assert game(task) == game(Task(target=task.target))
