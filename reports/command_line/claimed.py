"""The claim that the options of a command make."""

from __future__ import annotations

from collections.abc import MutableMapping
from pathlib import Path
from typing import TYPE_CHECKING

from ...audit.plans.paths import read_json
from ...mechanisms.measures.kinds import KINDS

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import Measure


def claimed_measure(choices: MutableMapping[str, object]) -> Measure | None:
    """Return the measure that options name, taken out of them; None where they name an epsilon, or nothing.

    Of a configuration they get a `note`: who computed the claim, for which relation and sampler.

    Raises
    ------
    ValueError
        For more than one, a value outside its range, or a profile that cannot be read.
    """
    from ...audit.plans.configured import with_configured
    from ...mechanisms.measures.stated import stated_measure

    configured = with_configured(choices)
    values = {name: choices.pop(name, None) for name in KINDS}
    values |= {name: _points(name, path) for name, path in values.items() if isinstance(path, Path)}
    return configured or stated_measure({**values, "epsilon": choices.get("epsilon"), "delta": choices.get("delta")})


def _points(name: str, path: Path) -> object:
    data = read_json(path, name, ("[", "{"))
    return data.get("points", data) if isinstance(data, dict) else data
