"""Compiled play: one loop for every learner that has a kernel, over blocks of some hundred runs.

Fed the same draws it plays the same actions as `transcripts.play`. Numba is imported, and a game compiled, on first
use; the machine code is kept beside this file where that folder can be written (or in NUMBA_CACHE_DIR), under a name
that hashes the source of every function in it: Numba itself would notice a change of this file alone.
"""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from tempfile import TemporaryFile
from types import CellType, FunctionType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ...learners.abilities import kernel_of
from ...learners.protocol import Actions, Arrays, Kernel, Learner, Numbers
from ...learners.sampling import smallest_type
from ...mechanisms.draws import Floats
from ...mechanisms.philox import LANES, CounterDraws, lanes
from ...mechanisms.view import ACTIONS, View
from .pairs import Pair
from .transcripts import Transcripts

#: The runs of a block where the state has few rows: the loops' own cost is shared by more runs, in the same cache.
WIDE, FEW = 256, 32
#: Divisions as NumPy has them, and multiplications fused with additions; nothing else may change the arithmetic.
_OPTIONS: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract"}}
#: Loops become vector instructions only where what they call is inlined; and only compiled functions call these.
_INNER = {**_OPTIONS, "forceinline": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}


def require_numba() -> None:
    """Raise ValueError if kernels cannot be compiled here."""
    if importlib.util.find_spec("numba") is None:
        raise hinted(ValueError("fast needs Numba, which is not installed"), "pip install 'overclaim[fast]'")


def engine_of(learner: Learner, pairs: Iterable[Pair], *, fast: bool) -> str:
    """Return what an audit of these pairs plays on: "numba" if it is to be fast and there is a kernel, else "numpy".

    Raises
    ------
    ValueError
        If it is to be fast and Numba is missing.
    """
    if not fast:
        return "numpy"
    require_numba()
    kernel = kernel_of(learner)
    if kernel is None:
        return "numpy"
    linear = all(isinstance(pair.left, np.ndarray) and isinstance(pair.right, np.ndarray) for pair in pairs)
    short = kernel.horizon is None or all(pair.rounds <= kernel.horizon for pair in pairs)
    return "numba" if linear and short else "numpy"


def play(
    learner: Learner,
    pair: Pair,
    draws: CounterDraws,
    runs: int,
    *,
    view: View = ACTIONS,
    share: float = 0.5,
    width: int | None = None,
) -> Transcripts:
    """Play one block, as `transcripts.play` does, with the learner's kernel.

    Parameters
    ----------
    width : int, optional
        Runs that advance together, by default as many as keep the state in the nearest cache. It changes the speed,
        never the actions.

    Raises
    ------
    ValueError
        If the learner has no kernel, or a loss is no vector, or the pair is longer than the learner can play.
    """
    kernel = kernel_of(learner)
    if kernel is None or not (isinstance(pair.left, np.ndarray) and isinstance(pair.right, np.ndarray)):
        raise ValueError(f"{type(learner).__name__} has no kernel for these losses")
    if kernel.horizon is not None and pair.rounds > kernel.horizon:
        raise ValueError(f"{type(learner).__name__} plays at most {kernel.horizon} rounds, got {pair.rounds}")
    if width is None:
        width = WIDE if sum(map(len, kernel.arrays)) <= FEW else LANES
    kernel = kernel_of(learner, width) or kernel
    left = draws.labels(runs, share)
    points = kernel.dim is not None
    padded = -(-runs // width) * width  # whole blocks: loops of a fixed length are the fast ones
    actions = np.empty((pair.rounds, kernel.dim or 1, padded), dtype=np.float64 if points else np.intp)
    updates = view.updates(pair.rounds)
    rows = 0 if not view.channel or kernel.released is None else len(kernel.arrays[kernel.released])
    releases = np.empty((updates // kernel.batch if rows else 0, rows, padded))
    rows_fed = learner.arms if learner.feedback == "full" else 1
    game = compiled(_game, width, act=kernel.act, update=kernel.update, tell=teller(learner, kernel))
    game(
        kernel.numbers,
        kernel.arrays,
        tuple(lanes(len(array), 0.0, width) for array in kernel.arrays),
        (np.append(draws.words, np.uint64(0)), np.zeros(1, np.int64), *lanes(2, 0.0, width)),
        np.append(left, np.zeros(padded - runs, dtype=bool)),
        np.stack([pair.left, pair.right]),
        pair.t0,
        lanes(rows_fed, 0.0, width),
        lanes(rows_fed, 0.0, width),
        lanes(kernel.dim or 1, 0.0, width).view(actions.dtype),
        actions,
        releases,
        kernel.released or 0,
        kernel.batch,
        updates,
    )
    actions, releases = actions[..., :runs], releases[..., :runs]
    shown = (releases[:, 0] if kernel.scalar else releases) if len(releases) else None
    return Transcripts(actions if points else actions[:, 0].astype(smallest_type(learner.arms)), left, shown)


def teller(learner: Learner, kernel: Kernel) -> Callable[[Floats, Actions, Floats], None]:
    """Return the block that tells a learner its feedback."""
    return tell_all if learner.feedback == "full" else tell_point if kernel.dim is not None else tell_arm


def tell_arm(losses: Floats, played: Actions, fed: Floats) -> None:
    """Block: the loss of the played arm."""
    for i in range(LANES):
        fed[0, i] = losses[np.uint64(played[0, i])]


def tell_point(losses: Floats, played: Actions, fed: Floats) -> None:
    """Block: the loss of the played point."""
    for i in range(LANES):
        fed[0, i] = losses[0] * played[0, i]
    for k in range(1, len(losses)):
        for i in range(LANES):
            fed[0, i] += losses[k] * played[k, i]


def tell_all(losses: Floats, played: Actions, fed: Floats) -> None:
    """Block: the loss of every arm."""
    for k in range(len(losses)):
        for i in range(LANES):
            fed[k, i] = losses[k]


def restart(first: int, fresh: Arrays, arrays: Arrays, stream: Any) -> None:
    """Block: the runs from `first` on, each with a fresh state and its own draws."""
    stream[0][4] = np.uint64(first)
    stream[1][0] = 0
    for k in range(len(arrays)):
        for row in range(len(arrays[k])):
            for i in range(LANES):
                arrays[k][row, i] = fresh[k][row, i]


def part(*args: object) -> None:
    """Stand where `compiled` puts a kernel's own function."""


act = update = tell = part


def _game(
    numbers: Numbers,
    fresh: Arrays,
    arrays: Arrays,
    stream: object,
    left: NDArray[np.bool_],
    worlds: Floats,
    t0: int,
    fed: Floats,
    other: Floats,
    played: Actions,
    actions: Actions,
    releases: Floats,
    released: int,
    batch: int,
    updates: int,
) -> None:
    """Play every run of a block, `LANES` at a time."""
    rounds, dim, runs = actions.shape
    for first in range(0, runs, LANES):
        restart(first, fresh, arrays, stream)
        for t in range(rounds):
            act(t, numbers, arrays, stream, played)
            for d in range(dim):
                for i in range(LANES):
                    actions[t, d, np.uint64(first + i)] = played[d, i]
            if t == updates:
                break
            tell(worlds[0, t], played, fed)
            if t == t0:
                tell(worlds[1, t], played, other)
                for d in range(len(fed)):
                    for i in range(LANES):
                        fed[d, i] = fed[d, i] if left[np.uint64(first + i)] else other[d, i]
            update(t, numbers, arrays, stream, played, fed)
            if len(releases) and (t + 1) % batch == 0:
                for d in range(releases.shape[1]):
                    for i in range(LANES):
                        releases[t // batch, d, np.uint64(first + i)] = arrays[released][d, i]


@cache
def compiled(function: Callable[..., None], width: int = LANES, **parts: Callable[..., None]) -> Any:
    """Return a function compiled, with `parts` for the functions of these names, and `width` runs in a block."""
    from numba import njit

    linked, text = _link(function, width, parts)
    linked.__qualname__ = f"{function.__name__}_{hashlib.sha256(text.encode()).hexdigest()[:16]}"
    return njit(linked, cache=_can_cache(), **_OPTIONS)


@cache
def _block(function: Callable[..., None], width: int) -> tuple[object, str]:
    """Return a function of blocks compiled, and the source of all that is in it."""
    from numba import njit

    linked, text = _link(function, width, {})
    return njit(linked, **_INNER), text


def _link(function: Any, width: int, parts: Mapping[str, Callable[..., None]]) -> tuple[FunctionType, str]:
    """Return a copy of a function that names compiled functions in place of plain ones, and the source of all."""
    texts = [inspect.getsource(function)]

    def link(value: object) -> object:
        if isinstance(value, FunctionType):
            value, text = _block(value, width)
            texts.append(text)
        elif isinstance(value, int | float | np.generic):
            texts.append(repr(value))
        return value

    names = {**function.__globals__, **parts, "LANES": width}
    names |= {name: link(names[name]) for name in function.__code__.co_names if name in names}
    cells = tuple(CellType(link(cell.cell_contents)) for cell in function.__closure__ or ())
    return FunctionType(function.__code__, names, function.__name__, function.__defaults__, cells), "".join(texts)


def _can_cache() -> bool:
    """Tell whether machine code can be kept where Numba looks first: never in a user's home without being asked.

    Where it can be kept nowhere Numba raises. It passes over a folder that is named and cannot be written.
    """
    if named := os.environ.get("NUMBA_CACHE_DIR"):
        with suppress(OSError), TemporaryFile(dir=_made(named)):
            return True
    folder = Path(__file__).parent
    cached = folder / "__pycache__"
    return os.access(cached if cached.is_dir() else folder, os.W_OK)


def _made(folder: str) -> str:
    os.makedirs(folder, exist_ok=True)
    return folder
