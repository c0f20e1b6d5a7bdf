"""Runs of a mechanism: two inputs, a block of calls in either world, and their outputs."""

from __future__ import annotations

import copy
import inspect
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from ...errors import about, hinted, placed, reworded
from ...learners.blame import at_play, crash_place, name_of, said
from ...learners.protocol import LearnerError
from ...learners.scalar import OS_CURE, global_cure
from ...mechanisms.draws import Draws, begin_call
from ..encoding.encoder import vectors
from ..encoding.features import Outputs
from ..encoding.objects import plain
from ..encoding.places import MOST_NUMBERS, as_text, check_width, scalars
from .attributes import AttributesError
from .call_limit import SlowCallError
from .data import DataPair, shortened
from .raising import takes

#: What an error calls a generator of ours that was taken for something else.
_GENERATORS = ("Generator", "Watched")


class RefusedInputError(LearnerError):
    """A mechanism raised on an input."""


class SlowInputError(RefusedInputError):
    """A mechanism took longer on an input than a call may take."""


@dataclass(frozen=True)
class Sample:
    """Outputs of a block of runs with their world labels, in the order of the calls."""

    outputs: Outputs
    left: NDArray[np.bool_]

    def of_left(self) -> Sample:
        """Return the runs of the left world."""
        return Sample(some(self.outputs, self.left), self.left[self.left])


#: Outputs of these very types come back from bytes as they were.
_PLAIN_TYPES = (bool, int, float, str, type(None))


def to_bytes(sample: Sample) -> bytes | None:
    """Return runs as bytes, small ones: None where outputs are more than plain numbers, texts and lists of them."""
    outputs = sample.outputs
    if not isinstance(outputs, np.ndarray):
        if all(type(output) is np.float64 for output in outputs):
            kind, array = "numbers", np.array(outputs, dtype=np.float64)
        elif all(map(_is_plain, outputs)):
            kind, array = "json", np.frombuffer(json.dumps(outputs).encode(), dtype=np.uint8)
        else:
            return None
    else:
        kind, array = "array", outputs
    file = io.BytesIO()
    np.savez_compressed(file, kind=np.array(kind), outputs=array, left=sample.left)
    return file.getvalue()


def _is_plain(output: object) -> bool:
    return type(output) in _PLAIN_TYPES or (type(output) is list and all(map(_is_plain, output)))


def from_bytes(data: bytes) -> Sample | None:
    """Return the runs that `to_bytes` wrote; None where the bytes are damaged."""
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as arrays:
            kind, array, left = str(arrays["kind"]), arrays["outputs"], arrays["left"]
        if kind == "json":
            return Sample(json.loads(array.tobytes()), left)
        return Sample(array if kind == "array" else list(array), left)
    except (ValueError, OSError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
        return None


def some(outputs: Outputs, runs: NDArray[np.bool_]) -> Outputs:
    """Return the outputs of some of the runs."""
    if isinstance(outputs, np.ndarray):
        return outputs[..., runs]
    return [output for output, in_runs in zip(outputs, runs.tolist(), strict=True) if in_runs]


def run_block(mechanism: object, pair: DataPair, draws: Draws, runs: int, share: float = 0.5) -> Sample:
    """Run a block: each run in the world of its own label, the left one with a probability of `share`.

    A mechanism that is called run by run is called in the order of the labels, so that what drifts over the calls
    cannot pass for a difference of the worlds. A batched one is called once for each world, the left one first; one
    that is played `in_step` once for both, with the labels.

    Raises
    ------
    LearnerError
        If the mechanism raises, or a batched one returns something that has not one output for each run.
    """
    left = draws.labels(runs, share)
    if hasattr(mechanism, "play_block"):
        return Sample(mechanism.play_block((pair.left, pair.right), draws, left), left)
    if not getattr(mechanism, "batched", False):
        with at_play(mechanism)():
            outputs = [
                called(mechanism, pair.left if in_left_world else pair.right, draws.generator)
                for in_left_world in left
            ]
        return Sample(outputs, left)
    if getattr(mechanism, "in_step", False):
        return Sample(outputs_of(mechanism, (pair.left, pair.right), draws, runs, left), left)
    left = np.sort(left)[::-1]
    in_left = int(left.sum())
    # A stream that the mechanism makes by name, or of the key, must not begin anew for the other world's runs.
    calls = (pair.left, draws, in_left), (pair.right, draws.continued(), runs - in_left)
    halves = [outputs_of(mechanism, data, call_draws, size) for data, call_draws, size in calls if size]
    return Sample(join(halves), left)


def outputs_of(mechanism: object, data: object, draws: Draws, runs: int, *labels: object) -> Outputs:
    """Return the outputs of some runs on one input; on both, where more says in which world each run is."""
    if hasattr(mechanism, "play_block"):
        return cast(Outputs, mechanism.play_block((data, data), draws, np.ones(runs, dtype=np.bool_)))
    if not getattr(mechanism, "batched", False):
        with at_play(mechanism)():
            return [called(mechanism, data, draws.generator) for _ in range(runs)]
    with at_play(mechanism)():
        outputs = called(mechanism, data, draws, runs, *labels)
    if labels and isinstance(outputs, list):  # of a plain class, one output of any form for each run
        return outputs
    try:
        outputs = _array_of(outputs)
    except ValueError:
        raise LearnerError(f"a batched mechanism must return {_expected(runs)} outputs, got ragged lists") from None
    if not outputs.ndim and outputs.dtype == object:
        list(scalars(outputs.item()))  # raises for coroutines and the like, and names them
    if outputs.ndim not in (1, 2) or outputs.shape[-1] != runs:
        raise LearnerError(f"a batched mechanism must return {_expected(runs)} outputs, got {outputs.shape}")
    return outputs if outputs.dtype.kind in "biuf" else [tuple(column) for column in np.atleast_2d(outputs).T.tolist()]


def _array_of(outputs: Any) -> NDArray[Any]:
    try:
        return np.asarray(outputs)
    except (TypeError, RuntimeError):  # an array of another library: on a GPU, with a gradient, of 16 bits
        return np.asarray(plain(outputs))


def _expected(runs: int) -> str:
    return f"({runs},) or (dim, {runs})"


def comparable(outputs: Outputs) -> object:
    """Return outputs as what is equal where they are, nan included."""
    shape, numbers = vectors(outputs)
    if numbers is None:
        return as_text(list(outputs))
    check_width(len(numbers), MOST_NUMBERS)
    return shape, numbers.dtype.str, numbers.shape, numbers.tobytes()


def paired_outputs_differ(mechanism: object, pair: DataPair, key: tuple[int, int, int], block: int, runs: int) -> bool:
    """Return whether any of so many runs gives another output for the other input, with the same random numbers.

    Parameters
    ----------
    key : seed, stage and pair
        Of the draws. What is called run by run has draws of its own for each run.
    """
    if getattr(mechanism, "in_step", False):
        inputs, sides = (pair.left, pair.right), (np.ones(runs, dtype=bool), np.zeros(runs, dtype=bool))
        left, right = (comparable(outputs_of(mechanism, inputs, Draws(*key, 0, block), runs, side)) for side in sides)
        return left != right
    sizes = [runs] if getattr(mechanism, "batched", False) else [1] * runs
    for part, size in enumerate(sizes):
        left, right = (
            comparable(outputs_of(mechanism, data, Draws(*key, part, block), size)) for data in (pair.left, pair.right)
        )
        if left != right:
            return True
    return False


def called(mechanism: Any, data: object, *arguments: object) -> object:
    """Return what a mechanism answers on a copy of its input.

    Raises
    ------
    LearnerError
        If it raises, which names the input, or cannot be called so.
    """
    for argument in arguments:
        begin_call(argument)
    try:
        return mechanism(copy.deepcopy(data), *arguments)
    except KeyboardInterrupt:
        raise
    except AttributesError as error:
        raise RefusedInputError(str(error)) from None
    except SlowCallError as error:
        message = f"took more than {error.seconds:g} s of processor time on {shortened(data)}"
        raise SlowInputError(f"{name_of(mechanism)} {message}") from None
    except BaseException as error:
        if isinstance(error, TypeError) and not takes(mechanism, data, *arguments):
            uncalled = LearnerError(f"{name_of(mechanism)} cannot be called as mechanism(data, rng): {error}")
            advice = "takes the data alone"
            cures = f"{global_cure()}, and {advice}", f"{OS_CURE}, and {advice}"
            raise hinted(uncalled, *cures) from None
        if isinstance(error, LearnerError):  # which says whose method raised what
            raise reworded(error, f"on {shortened(data)}: {error}", RefusedInputError) from error
        kind, colon, message = said(error).partition(": ")
        name, hint = name_of(mechanism), generator_as(mechanism, error)
        refusal = about(name, RefusedInputError(f"{name} raised {kind} on {shortened(data)}{colon}{message}"))
        raise placed(hinted(refusal, hint), crash_place(error)) from error


def generator_as(mechanism: Callable[..., object], error: BaseException | None) -> str:
    """Say that the generator took the place of a setting, as in `def count(data, epsilon)`, where that raised."""
    if getattr(mechanism, "batched", False):
        return ""
    try:
        second = list(inspect.signature(mechanism).parameters.values())[1]
    except (TypeError, ValueError, IndexError):  # of a C extension it is not told
        return ""
    names_generator = isinstance(error, TypeError) and any(kind in str(error) for kind in _GENERATORS)
    if second.name == "rng" or (second.default is second.empty and not names_generator):
        return ""
    cure = "" if second.default is None else f"; give `set={second.name}=VALUE`"
    return f"it is called as mechanism(data, rng), so that its {second.name} was the generator{cure}"


def join(parts: Sequence[Outputs]) -> Outputs:
    """Return the outputs of several blocks as those of one."""
    arrays = [part for part in parts if isinstance(part, np.ndarray)]
    if len(arrays) == len(parts):
        if len({part.shape[:-1] for part in arrays}) == 1:
            return np.concatenate(arrays, axis=-1)
        # Where the number of columns differs between blocks, lists hold both: the number itself may be a leak.
        parts = [list(np.atleast_2d(part).T) for part in arrays]
    return [output for part in parts for output in part]
