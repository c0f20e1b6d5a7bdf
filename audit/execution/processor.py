"""The processor as the arithmetic here uses it: what the last bits of a float depend on."""

from __future__ import annotations

import platform
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

#: How many modules were loaded when threads were last limited, in this thread; 0 where they are not.
_LIMITED: ContextVar[int] = ContextVar("limited", default=0)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let BLAS and OpenMP compute on one thread: more would fight for the cores, and sum in another order.

    To find their libraries takes milliseconds: within another such block it is done again only if a module was loaded
    since, which may have brought one.
    """
    from threadpoolctl import threadpool_limits

    loaded = len(sys.modules)
    if _LIMITED.get() == loaded:
        yield
        return
    before = _LIMITED.set(loaded)
    try:
        with threadpool_limits(1):
            yield
    finally:
        _LIMITED.reset(before)


def processor() -> dict[str, object]:
    """Return what the last bits of a float depend on: the processor as NumPy and BLAS use it, and the C library.

    Returns
    -------
    dict
        `machine`; `numpy`: the instruction sets that its loops were compiled for and this processor has; `blas`: the
        libraries loaded, with the kernels that they chose; `libc`, empty where it is not known.
    """
    from threadpoolctl import threadpool_info

    config: Any = np.show_config(mode="dicts")
    simd = config.get("SIMD Extensions", {})
    blas = {
        " ".join(str(pool[name]) for name in ("internal_api", "version", "architecture") if pool.get(name))
        for pool in threadpool_info()
        if pool["user_api"] == "blas"
    }
    return {
        "machine": platform.machine(),
        "numpy": [*simd.get("baseline", []), *simd.get("found", [])],
        "blas": sorted(blas),
        "libc": " ".join(platform.libc_ver()).strip(),
    }
