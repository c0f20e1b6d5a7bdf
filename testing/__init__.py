"""What tests of private code need, lazily: `neighbours`, a strategy of neighbouring inputs."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from overclaim.audit.inputs.neighbours import neighbours

__all__ = ["neighbours"]

_HOMES = {
    "neighbours": "overclaim.audit.inputs.neighbours",
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
