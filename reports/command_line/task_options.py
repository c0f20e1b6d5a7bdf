"""The task that the options of a command describe."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...audit.plans.paths import read_json
from .claimed import claimed_measure

if TYPE_CHECKING:
    from ...audit.plans.tasks import Task
    from ...audit.play.pairs import Pair

#: Options whose usual value may be said too: what is said of a game is not replaced by an example's.
_USUAL = ("surface", "neighbours")


def task_of(*, parameters: tuple[tuple[str, str], ...], pair_file: Path | None, **choices: Any) -> Task:
    """Return the task that the options of a command describe."""
    from ...audit.plans.tasks import Task
    from ...audit.play.execution import Budget

    said = [name for name in _USUAL if choices.get(name) is not None]
    choices = {name: value for name, value in choices.items() if name in said or name not in _USUAL}
    spent = {name: choices.pop(name) for name in ("runs", "seed", "confidence", "stop") if name in choices}
    choices["measure"] = claimed_measure(choices)
    pair = _read_pair(pair_file)
    return Task(**choices, parameters=dict(parameters), pair=pair, budget=Budget(**spent)).in_example(said)


def _read_pair(path: Path | None) -> Pair | None:
    from ...audit.play.pairs import Pair

    if path is None:
        return None
    data = read_json(path, "pair", ("{",))
    return Pair.from_json(data.get("pair", data) if isinstance(data, dict) else data)
