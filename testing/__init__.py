"""What private code and its tests need, lazily: inputs, global randomness, and noise that traces watch."""

from typing import TYPE_CHECKING

from overclaim.lazy import lazily

if TYPE_CHECKING:
    from overclaim.audit.spaces.neighbours import neighbours
    from overclaim.mechanisms.global_random import global_random
    from overclaim.mechanisms.primitives import (
        discrete_gaussian,
        discrete_laplace,
        exponential_mechanism,
        gaussian,
        laplace,
        randomised_response,
    )
    from overclaim.mechanisms.watching import watching

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "exponential_mechanism",
    "gaussian",
    "global_random",
    "laplace",
    "neighbours",
    "randomised_response",
    "watching",
]

_HOMES = {
    "discrete_gaussian": "overclaim.mechanisms.primitives",
    "discrete_laplace": "overclaim.mechanisms.primitives",
    "exponential_mechanism": "overclaim.mechanisms.primitives",
    "gaussian": "overclaim.mechanisms.primitives",
    "global_random": "overclaim.mechanisms.global_random",
    "laplace": "overclaim.mechanisms.primitives",
    "neighbours": "overclaim.audit.spaces.neighbours",
    "randomised_response": "overclaim.mechanisms.primitives",
    "watching": "overclaim.mechanisms.watching",
}

__getattr__, __dir__ = lazily(globals(), _HOMES)
