"""What private code and its tests need, lazily: `neighbours`, a strategy of inputs, and noise that traces watch."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overclaim.audit.inputs.neighbours import neighbours
    from overclaim.mechanisms.primitives import (
        discrete_gaussian,
        discrete_laplace,
        exponential_mechanism,
        gaussian,
        laplace,
        randomised_response,
    )

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "gaussian",
    "laplace",
    "neighbours",
    "randomised_response",
]

_HOMES = {
    "discrete_gaussian": "overclaim.mechanisms.primitives",
    "discrete_laplace": "overclaim.mechanisms.primitives",
    "exponential_mechanism": "overclaim.mechanisms.primitives",
    "gaussian": "overclaim.mechanisms.primitives",
    "laplace": "overclaim.mechanisms.primitives",
    "neighbours": "overclaim.audit.inputs.neighbours",
    "randomised_response": "overclaim.mechanisms.primitives",
}


def __getattr__(name: str) -> object:
    """Import a public name from its room on first use (PEP 562)."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """List the public names too, imported or not."""
    return sorted({*globals(), *__all__})
