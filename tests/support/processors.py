"""What other processors would compute: settings that switch features of this one off, for processes of their own."""

import os
import platform
import subprocess
import sys

import numpy as np

#: The plainest kernels of OpenBLAS, and the parts of glibc's libm that use what not every processor has.
_BASE_KERNELS = {"x86_64": "Prescott", "AMD64": "Prescott", "aarch64": "ARMV8", "arm64": "ARMV8"}
_LIBM = "glibc.cpu.hwcaps=" + ",".join(f"-{name}{end}" for name in ("AVX2", "FMA", "FMA4") for end in ("", "_Usable"))


def plain():
    """Return the environment in which NumPy, OpenBLAS and libm use no feature beyond their baseline.

    One where nothing can be switched off is empty.
    """
    features = np.show_config(mode="dicts").get("SIMD Extensions", {}).get("found", [])
    machine = platform.machine()
    environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(features)} if features else {}
    if machine in _BASE_KERNELS:
        environment["OPENBLAS_CORETYPE"] = _BASE_KERNELS[machine]
    if machine == "x86_64" and platform.libc_ver()[0] == "glibc":
        environment["GLIBC_TUNABLES"] = _LIBM
    return environment


def python(code, *arguments, environment):
    """Run Python code in a process of its own and return what it prints."""
    base = {k: v for k, v in os.environ.items() if k not in plain()}
    process = subprocess.run(
        [sys.executable, "-c", code, *arguments], env=base | environment, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    return process.stdout
