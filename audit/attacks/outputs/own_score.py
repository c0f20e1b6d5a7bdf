"""A user's attack: a function of an output and both inputs, larger where the left one explains it better."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ....learners.blame import at_play, name_of, raised
from ....learners.protocol import LearnerError
from ....mechanisms.draws import Floats
from ...encoding.features import Outputs

#: `score(output, left, right)`, a number; nan where it does not guess.
ScoreFunction = Callable[[Any, Any, Any], float]
#: Outputs of a block that are scored twice: the second time must give the same.
ASKED_AGAIN = 16


@dataclass(frozen=True)
class OwnScore:
    """A fitted attack by a user's score, which is never fitted.

    Attributes
    ----------
    function : callable
    left, right
        The inputs.

    Raises
    ------
    LearnerError
        Where the function raises, returns no number, or another one when it is asked again.
    """

    function: ScoreFunction
    left: object
    right: object
    exact: bool = False
    wording: str = ""

    @property
    def name(self) -> str:
        """The attack's name in the record."""
        return f"score {name_of(self.function)}"

    def score(self, outputs: Outputs) -> Floats:
        """Return the score of every run, (runs,)."""
        array = isinstance(outputs, np.ndarray)
        runs: list[Any] = list(np.moveaxis(outputs, -1, 0)) if isinstance(outputs, np.ndarray) else list(outputs)
        scores = np.array([self._asked(run) for run in runs], dtype=float)
        for run, before in zip(runs[:ASKED_AGAIN], scores.tolist(), strict=False):
            repeated = self._asked(run if array else copy.deepcopy(run))
            if repeated != before and not (math.isnan(repeated) and math.isnan(before)):
                raise LearnerError(f"{self.name} must be a function of its output: {before!r} became {repeated!r}")
        return scores

    def _asked(self, output: object) -> float:
        name = name_of(self.function)
        try:
            with at_play(self.function)():
                score = self.function(output, self.left, self.right)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            raise raised(name, error, " when asked for a score") from error
        if isinstance(score, bool | int | float | np.integer | np.floating | np.bool_):
            return float(score)
        raise LearnerError(f"{name} must return a number, got {type(score).__name__} {score!r:.80}")
