"""The pilot's runs: every input is played with the same draws, and all pairs share them.

What two inputs do with the same draws differs far less than what they do with draws of their own: mostly only the runs
differ that the inputs make different. So few runs show which pair and which event is best. Certification knows nothing
of it: each of its runs has draws of its own. A mechanism whose randomness cannot be seeded, or that takes more draws
on one input than on the other, gives runs that have less in common, or nothing: then they tell as much as others do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from ...mechanisms.draws import Draws, Stage
from ..encoding.features import Outputs
from ..execution.workers import in_parallel
from ..play.data import DataPair
from ..play.mechanism_runs import Sample, from_bytes, join, outputs_of, to_bytes
from ..play.transcripts import blocks
from .frame import Audit

#: A block of runs: the index of its input, its number, its runs.
_Block = tuple[int, int, int]


@dataclass
class Pilot:
    """Runs of the inputs of some pairs, block by block; those of an input are played when they are first asked for.

    Parameters
    ----------
    audit : MechanismAudit
    pairs : sequence of DataPair
    index : int
        A part of the key of the draws.
    """

    audit: Audit
    mechanism: object
    pairs: Sequence[DataPair]
    index: int = 0
    spent: int = 0  # runs
    planned: list[tuple[int, int]] = field(default_factory=list)
    played: dict[str, list[Outputs]] = field(default_factory=dict)

    @property
    def draws(self) -> int:
        """The runs that every input has by the plan."""
        return sum(size for _, size in self.planned)

    def extend(self, alive: Sequence[int], runs: int) -> None:
        """Plan so many runs more of these pairs, which must have been in all plans before: as many of every input."""
        inputs = self._inputs(alive)
        runs_per_input = runs // len(inputs)
        if not runs_per_input:
            return
        self.planned += [(len(self.planned) + number, size) for number, size in blocks(runs_per_input)]
        self.spent += runs_per_input * len(inputs)

    def sample(self, pair: int, alive: Sequence[int]) -> Sample:
        """Return the planned runs of a pair, the left world's first; all inputs of pairs alive are played at once."""
        inputs = self._inputs(range(len(self.pairs)))
        places = [(place, key) for place, key in enumerate(inputs) if key in self._inputs(alive)]
        missing = [
            (place, key, block) for place, key in places for block in self.planned[len(self.played.get(key, ())) :]
        ]
        outputs = self._play([(place, *block) for place, _, block in missing], list(inputs.values()))
        for (_, key, _), sample in zip(missing, outputs, strict=True):
            self.played.setdefault(key, []).append(sample.outputs)
        left, right = (self.played[key] for key in self.pairs[pair].keys)
        return Sample(join([*left, *right]), np.repeat([True, False], self.draws))

    def forget(self, alive: Sequence[int]) -> None:
        """Keep the runs of these pairs alone."""
        inputs = self._inputs(alive)
        self.played = {key: outputs for key, outputs in self.played.items() if key in inputs}

    def many_inputs(self, alive: Sequence[int]) -> int:
        """Return how many different inputs pairs have."""
        return len(self._inputs(alive))

    def _inputs(self, alive: Sequence[int]) -> dict[str, object]:
        """Return the different inputs of pairs by their texts."""
        return {
            key: data
            for pair in (self.pairs[i] for i in alive)
            for key, data in zip(pair.keys, (pair.left, pair.right), strict=True)
        }

    def _play(self, blocks: Sequence[_Block], inputs: Sequence[object]) -> list[Sample]:
        """Return runs of inputs, block by block."""
        task = partial(_play_input, self.mechanism, self.audit.budget.seed, self.index, inputs)
        play = partial(in_parallel, task, jobs=self.audit.execution.jobs)
        return self.audit.kept_blocks(f"pilot/{self.index}", blocks, play, from_bytes, to_bytes)


def _play_input(mechanism: object, seed: int, index: int, inputs: Sequence[object], block: _Block) -> Sample:
    place, number, runs = block
    outputs = outputs_of(mechanism, inputs[place], Draws(seed, Stage.TRAIN, index, 0, number), runs)
    return Sample(outputs, np.ones(runs, dtype=np.bool_))
