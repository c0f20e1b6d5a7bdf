"""The task that the options of a command describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audit.plans.paths import read_json
from ...errors import hinted
from .claimed import claimed_measure
from .console import say
from .scores import check_plot

if TYPE_CHECKING:
    from ...audit.plans.tasks import Prepared, Task
    from ...audit.play.pairs import Pair


def task_of(*, parameters: tuple[tuple[str, str], ...], pair_file: Path | None, **choices: Any) -> Task:
    """Return the task that the options of a command describe."""
    from ...audit.execution.execution import Budget
    from ...audit.execution.provenance import target_from_here
    from ...audit.plans.tasks import Task

    budget = {name: choices.pop(name) for name in ("runs", "seed", "confidence", "stop") if name in choices}
    choices["measure"] = claimed_measure(choices)
    choices["target"] = target_from_here(choices["target"])
    pair = _read_pair(pair_file)
    return Task(**choices, parameters=dict(parameters), pair=pair, budget=Budget(**budget)).resolved()


def prepared_learner(task: Task, purpose: str) -> Prepared:
    """Return what a task prepares; raise ValueError for a mechanism: `purpose` is for learners."""
    from ...audit.plans.targets import MechanismError, learners_only

    if task.is_mechanism:
        raise learners_only(purpose, task.target)
    try:
        return task.prepare()
    except MechanismError:
        raise learners_only(purpose, task.target) from None


def check_canaries(task: Task, *, trace: bool, plot: Path | None) -> None:
    """Raise ValueError for a trace of trainings, a picture of anything else, and one that cannot be written."""
    if plot is not None and task.canaries is None:
        cure = "give --canaries with a training, or use overclaim scores"
        raise hinted(ValueError("--plot draws scores of canaries, and this audit has none"), cure)
    if trace and task.canaries is not None:
        raise ValueError("--trace repeats runs with the same random numbers, and a training is not repeated")
    check_plot(plot, {})


def warn_of_few(prepared: Prepared) -> None:
    """Say before hours of training that the canaries are too few, where not even a perfect attack would do."""
    task = prepared.task
    if task.canaries is not None:
        from ...audit.canaries.training_audit import too_few_words

        text = too_few_words(prepared.claim, task.budget, task.canaries, task.trainings)
        if text:
            say(f"overclaim: warning: {text}", err=True)


def check_shrink(prepared: Prepared) -> None:
    """Raise ValueError where `--shrink` would go unheeded."""
    if prepared.searched_inputs is None and (prepared.is_mechanism or prepared.of_sequences):
        raise ValueError("--shrink simplifies searched inputs and a learner's losses: given inputs stay as they are")


def _read_pair(path: Path | None) -> Pair | None:
    from ...audit.play.pairs import Pair

    if path is None:
        return None
    data = read_json(path, "pair", ("{", "["))
    return Pair.from_json(data.get("pair", data) if isinstance(data, dict) else data)
