"""The processor as the arithmetic here uses it: what the last bits of a float depend on."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np


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
