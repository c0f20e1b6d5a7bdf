"""The claim that a configuration makes, in place of a measure that is said."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from ...errors import exclude
from ...mechanisms.measures.kinds import KINDS

if TYPE_CHECKING:
    from ...mechanisms.measures.measure import Measure


def with_configured(values: MutableMapping[str, object]) -> Measure | None:
    """Return the measure of the configuration `dp_sgd`, taken out of what is said of a claim; None where it has none.

    Its source becomes the claim's `note`, in front of one that is said.

    Raises
    ------
    ValueError
        For a configuration that is none, beside another claim, or without dp_accounting.
    """
    settings = values.pop("dp_sgd", None)
    if settings is None:
        return None
    if doubled := [name for name in ("epsilon", "delta", *KINDS) if values.get(name) is not None]:
        raise exclude("`dp_sgd`", f"`{doubled[0]}`", "a claim is made in one measure")
    from ...mechanisms.dp_sgd import DPSGD

    configuration = DPSGD.of(settings)  # type: ignore[arg-type]
    measure, note = configuration.measure(), values.get("note")
    values["note"] = configuration.source + (f"; {note}" if note else "")
    return measure
