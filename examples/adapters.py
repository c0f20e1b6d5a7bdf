"""Adapters: mechanisms of OpenDP and diffprivlib as `mechanism(data, rng) -> output`, which overclaim audits."""

import importlib
import importlib.util
import sys


class Recorded:
    """A mechanism with randomness of its own, which cannot be seeded: its outputs are kept by the key of the draw.

    The same draw gives the same output again within one process, as an audit demands; another process draws afresh,
    so that a verdict is as valid as any, but its counts are not replayable.
    """

    def __init__(self, mechanism):
        self.mechanism, self.tape = mechanism, {}

    def __call__(self, data, rng):
        key = (repr(data), int(rng.integers(2**63)))
        if key not in self.tape:
            self.tape[key] = self.mechanism(data)
        return self.tape[key]


def opendp(measurement):
    """Adapt an OpenDP measurement. Its noise comes from the system's entropy, so it is recorded."""
    return Recorded(measurement)


def diffprivlib(make):
    """Adapt a diffprivlib mechanism, made by `make(mechanisms, random_state)`, seeded by the audit."""
    mechanisms = diffprivlib_mechanisms()

    def mechanism(data, rng):
        return make(mechanisms, int(rng.integers(2**31))).randomise(data)

    return mechanism


def diffprivlib_mechanisms():
    """Import `diffprivlib.mechanisms`, also beside a scikit-learn that the models of diffprivlib cannot import."""
    try:
        return importlib.import_module("diffprivlib.mechanisms")
    except ImportError:
        spec = importlib.util.find_spec("diffprivlib")
        if spec is None:
            raise
    for name in [name for name in sys.modules if name.partition(".")[0] == "diffprivlib"]:
        del sys.modules[name]
    # The package without its __init__, which imports the models.
    sys.modules["diffprivlib"] = importlib.util.module_from_spec(spec)
    return importlib.import_module("diffprivlib.mechanisms")
