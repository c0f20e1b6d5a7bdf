"""The task that the options of a command describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audit.plans.paths import read_json
from .claimed import claimed_measure
from .console import say
from .scores import check_plot

if TYPE_CHECKING:
    from ...audit.plans.tasks import Prepared, Task
    from ...audit.play.pairs import Pair


def task_of(*, parameters: tuple[tuple[str, str], ...], pair_file: Path | None, **choices: Any) -> Task:
    """Return the task that the options of a command describe."""
    from ...audit.execution.execution import Budget
    from ...audit.plans.tasks import Task

    spent = {name: choices.pop(name) for name in ("runs", "seed", "confidence", "stop") if name in choices}
    choices["measure"] = claimed_measure(choices)
    pair = _read_pair(pair_file)
    return Task(**choices, parameters=dict(parameters), pair=pair, budget=Budget(**spent)).resolved()


def check_canaries(task: Task, *, trace: bool, plot: Path | None) -> None:
    """Raise ValueError for a trace of trainings, a picture of anything else, and one that cannot be written."""
    if plot is not None and task.canaries is None:
        raise ValueError("--plot draws scores of canaries: give --canaries with a training, or use overclaim scores")
    if trace and task.canaries is not None:
        raise ValueError("--trace replays runs, and a training is not replayed")
    check_plot(plot, {})


def warn_of_few(prepared: Prepared) -> None:
    """Say before hours of training that the canaries are too few, where not even a perfect attack would do."""
    from ...audit.canaries.training_audit import too_few_words

    task = prepared.task
    if task.canaries is not None:
        words = too_few_words(prepared.claim, task.budget, task.canaries, task.trainings)
        if words:
            say(f"overclaim: warning: {words}", err=True)


def check_shrink(prepared: Prepared) -> None:
    """Raise ValueError where `--shrink` would go unheeded."""
    if prepared.searched_inputs is None and (prepared.is_mechanism or prepared.of_sequences):
        raise ValueError(
            "--shrink is for inputs that are searched, or a learner's losses: inputs that are given, or a "
            "mechanism's own, stay as they are"
        )


def _read_pair(path: Path | None) -> Pair | None:
    from ...audit.play.pairs import Pair

    if path is None:
        return None
    data = read_json(path, "pair", ("{",))
    return Pair.from_json(data.get("pair", data) if isinstance(data, dict) else data)
