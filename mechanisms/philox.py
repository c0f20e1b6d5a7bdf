"""Counter-based random numbers, the same from NumPy and from compiled kernels.

Philox 4x32-10 (Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3"): a number is a
function of a key and a counter, so any run of any block can be drawn by itself, in registers.

The functions of blocks, here and beside their learners, are plain Python over arrays whose last axis holds `LANES`
runs, with the loop over runs innermost. `overclaim.audit.play.kernels` compiles them; uncompiled they mean the same.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .draws import Draws, Floats, Purpose

#: Runs that a kernel advances together.
LANES = 64
#: What a kernel draws from: the key with the first run's number, the next row, the next row's numbers, room for more.
Stream = tuple[NDArray[np.uint64], NDArray[np.int64], Floats, Floats]

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _32, _21, _11 = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(21), np.uint64(11)
_UNIT = 2.0**-53


def philox(key0: Any, key1: Any, c0: Any, c1: object, c2: Any, c3: object) -> Any:
    """Return four words of 32 bits for a key of two and a counter of four; all are uint64, numbers or arrays."""
    for _ in range(10):
        a, b = _M0 * c0, _M1 * c2
        c0, c1, c2, c3 = (b >> _32) ^ c1 ^ key0, b & _LOW, (a >> _32) ^ c3 ^ key1, a & _LOW
        key0, key1 = (key0 + _W0) & _LOW, (key1 + _W1) & _LOW
    return c0, c1, c2, c3


def two_uniforms(key0: object, key1: object, c0: object, c1: object, c2: object, c3: object) -> Any:
    """Return two uniforms on [0, 1), multiples of 2**-53."""
    a, b, c, d = philox(key0, key1, c0, c1, c2, c3)
    # Through int64: a compiler has vector instructions for signed integers only.
    first = np.float64(np.int64((a << _21) ^ (b >> _11))) * _UNIT
    return first, np.float64(np.int64((c << _21) ^ (d >> _11))) * _UNIT


class CounterDraws(Draws):
    """Draws whose learner's numbers come from Philox: what a kernel draws, for the NumPy path.

    Row n of run j is a function of the key, n and j alone; every (runs,) of uniforms takes the next row. Laws that
    need a `generator` have no kernel.
    """

    def __init__(self, seed: int, stage: int = 0, pair: int = 0, part: int = 0, block: int = 0) -> None:
        super().__init__(seed, stage, pair, part, block)
        first, *spawn = self.key
        sequence = np.random.SeedSequence(first, spawn_key=(*spawn, int(Purpose.KERNEL)))
        #: Two words of the key and two of the counter.
        self.words = sequence.generate_state(4, np.uint32).astype(np.uint64)
        self._row = 0

    def uniform(self, shape: int | tuple[int, ...]) -> Floats:
        """Return uniforms on [0, 1), multiples of 2**-53: the next rows."""
        shape = (shape,) if isinstance(shape, int) else shape
        rows = int(np.prod(shape[:-1]))
        first, self._row = self._row, self._row + rows
        pairs = np.arange(first // 2, (self._row + 1) // 2, dtype=np.uint64)[:, None]
        key0, key1, c1, c3 = self.words
        both = np.stack(two_uniforms(key0, key1, pairs, c1, np.arange(shape[-1], dtype=np.uint64), c3), axis=1)
        return both.reshape(-1, shape[-1])[first % 2 : first % 2 + rows].reshape(shape).copy()

    def normal(self, shape: int | tuple[int, ...]) -> Floats:
        """Return standard normal draws, each from two rows (Box & Muller 1958)."""
        shape = (shape,) if isinstance(shape, int) else shape
        u = self.uniform((*shape[:-1], 2, shape[-1]))
        normal: Floats = np.sqrt(-2 * np.log1p(-u[..., 0, :])) * np.cos(2 * np.pi * u[..., 1, :])
        return normal


def draw(stream: Stream, out: Floats) -> None:
    """Block: write the next row of uniforms, (LANES,)."""
    key, position, spare, _ = stream
    row = position[0]
    position[0] = row + 1
    if row & 1:
        for i in range(LANES):
            out[i] = spare[i]
    else:
        key0, key1, c1, c3, first = key[0], key[1], key[2], key[3], key[4]
        for i in range(LANES):
            out[i], spare[i] = two_uniforms(key0, key1, np.uint64(row >> 1), c1, first + np.uint64(i), c3)


def lanes(rows: int, value: float = 0.0, width: int = LANES) -> Floats:
    """Return an array (rows, width) of one value, aligned to what a vector instruction loads."""
    raw = np.empty(8 * rows * width + 64, dtype=np.uint8)
    start = -raw.ctypes.data % 64
    array = raw[start : start + 8 * rows * width].view(np.float64).reshape(rows, width)
    array[:] = value
    return array
