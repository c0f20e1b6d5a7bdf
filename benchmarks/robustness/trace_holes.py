"""Holes of traces: programs that one bounds although an audit from outside proves the bound false.

    python benchmarks/robustness/trace_holes.py [--only KINDS] [--match NAME] [--part I/N] [--programs COUNT]

prints each hole and how many calls were tried, and exits 1 if there are any.

A program draws x = data + Laplace(1) noise, calls a function of NumPy or Python on it, and looks at a feature of what
comes out: its text, shape, exception or warning. It returns [x, 0.5] for one half of the features and [x, data] for
the other. Where they vary in plain plays, data are released as they are, with a probability that is not 0: epsilon is
infinite, and a trace that says BOUNDED is wrong, whatever it followed. A hole of kind FACTOR: r is computed from x,
and (r - c) * data is returned with c = r in the traced run. Of random programs none may have a certified bound above
that of its trace. Nothing of the tracer is used but `tracing` and, to be quick, `traces`.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import random
import signal
import sys
import types
import warnings
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from overclaim import Claim
from overclaim.audit.traces.replay import traces
from overclaim.audit.traces.upper import tracing

PAIR = types.SimpleNamespace(left=[1], right=[0])
CLAIM = Claim(epsilon=1.0)
PLAYS = 24  # plain plays that look for features which vary
NO_PART = "no part"
SKIPPED = {
    # they stop, wait, write files, print, or return what differs from call to call without randomness
    *(
        "exit",
        "quit",
        "input",
        "breakpoint",
        "help",
        "open",
        "print",
        "exec",
        "eval",
        "compile",
        "__import__",
        "copyright",
        "credits",
        "license",
    ),
    *(
        "save",
        "savez",
        "savez_compressed",
        "savetxt",
        "load",
        "loadtxt",
        "genfromtxt",
        "fromfile",
        "memmap",
        "fromregex",
        "tofile",
        "dump",
    ),
    *(
        "test",
        "show_config",
        "show_runtime",
        "info",
        "get_include",
        "seterr",
        "seterrcall",
        "setbufsize",
        "set_printoptions",
        "source",
        "lookfor",
    ),
    *(
        "empty",
        "empty_like",
        "broadcast",
        "nditer",
        "nested_iters",
        "ndindex",
    ),  # addresses, and memory that nobody wrote
    *(
        "id",
        "object",
        "super",
        "iter",
        "memoryview",
        "globals",
        "locals",
        "vars",
        "dir",
        "setattr",
        "delattr",
        "getattr",
        "hasattr",
        "classmethod",
    ),
    *(
        "staticmethod",
        "property",
        "enumerate",
        "zip",
        "map",
        "filter",
        "reversed",
        "aiter",
        "anext",
        "isinstance",
        "issubclass",
        "callable",
        "type",
    ),
    *(
        "__init_subclass__",
        "__new__",
        "__init__",
        "__subclasshook__",
        "__reduce__",
        "__reduce_ex__",
        "__dir__",
        "__class__",
        "__del__",
        "__sizeof__",
        "__setattr__",
        "__delattr__",
        "__getattribute__",
        "__doc__",
    ),
}


class TooSlowError(Exception):
    """A call took more than a second."""


def _stop(*_: object) -> None:
    raise TooSlowError


def bounded(program: Callable[..., Any], seed: int) -> bool:
    """Tell whether a trace bounds a program on the pair."""
    signal.setitimer(signal.ITIMER_REAL, 5.0)
    try:
        if not _promising(program, seed):
            return False
        upper = tracing(program, PAIR, CLAIM, seed=seed, every_pair=False).upper
        return upper is not None and upper.binds
    except TooSlowError:
        return False
    except Exception:  # NOT TRACED, or it raises: no bound
        return False
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def _promising(program: Callable[..., Any], seed: int) -> bool:
    """Tell whether the first trace bounds a program: that saves time for most, and decides nothing."""
    return any(one.exact and one.leak is None for one in traces(program, PAIR, seed=seed, first_alone=True))


ARGUMENTS: dict[str, Callable[[Any, Any, Any], tuple[Any, ...]]] = {
    "x": lambda x, v, m: (x,),
    "v": lambda x, v, m: (v,),
    "m": lambda x, v, m: (m,),
    "[x, 1]": lambda x, v, m: ([x, 1.0],),
    "x, 1": lambda x, v, m: (x, 1.0),
    "1, x": lambda x, v, m: (1.0, x),
    "v, 1": lambda x, v, m: (v, 1),
    "1, v": lambda x, v, m: (1, v),
    "v, p": lambda x, v, m: (v, np.array([0.5, 1.5, 2.5])),
    "p, v": lambda x, v, m: (np.array([0.5, 1.5, 2.5]), v),
    "p > 1, v": lambda x, v, m: (np.array([False, True, True]), v),
    "v, v": lambda x, v, m: (v, v),
    "m, q": lambda x, v, m: (m, np.array([1.0, 2.0])),
    "Q, m": lambda x, v, m: (np.array([[1.0, 2.0], [3.0, 5.0]]), m),
    "v, 0, 2": lambda x, v, m: (v, 0.0, 2.0),
    "p, p, v": lambda x, v, m: (np.array([0.5, 1.5, 2.5]), np.array([1.0, 2.0, 3.0]), v),
    "v, p, p": lambda x, v, m: (v, np.array([0.5, 1.5, 2.5]), np.array([1.0, 2.0, 3.0])),
    "round(v)": lambda x, v, m: (np.round(v),),
    "max(v, 0)": lambda x, v, m: (np.maximum(v, 0.0),),
    "round(m / 3)": lambda x, v, m: (np.round(m / 3),),
    "round(v), p": lambda x, v, m: (np.round(v), np.array([0.0, 1.0, 2.0])),
    "f, 0, v": lambda x, v, m: (_branching, 0, v),
    "f, v": lambda x, v, m: (_branching, v),
    "p, x": lambda x, v, m: (np.array([0.5, 1.5, 2.5]), x),
    "int": lambda x, v, m: (v, int),
    "float32": lambda x, v, m: (v, np.float32),
}
METHOD_ARGUMENTS = {
    "": lambda x, v, m: (),
    "0": lambda x, v, m: (0,),
    "1": lambda x, v, m: (1,),
    "int": lambda x, v, m: (int,),
    "bool": lambda x, v, m: (bool,),
    "float32": lambda x, v, m: (np.float32,),
    "p": lambda x, v, m: (np.array([0.5, 1.5, 2.5]),),
    "x": lambda x, v, m: (x,),
    "mask": lambda x, v, m: (np.array([True, False, True]),),
    "0, 2": lambda x, v, m: (0.0, 2.0),
    "-1, 1": lambda x, v, m: (-1, 1.0),
}


def _branching(part: Any) -> float:
    """A function of the user's that decides by noise."""
    return 1.0 if np.ravel(part)[0] > 1.5 else 0.0


Call = Callable[[Any, Any, Any, Any], tuple[Any, ...]]


def functions() -> Iterator[tuple[str, Call]]:
    """Yield the name of a call, and the call: (rng, x, v, m) -> what it returns and what it may have changed."""
    for module in ("numpy", "numpy.linalg", "numpy.fft", "builtins", "math", "statistics", "operator"):
        loaded = importlib.import_module(module)
        for name in sorted(getattr(loaded, "__all__", None) or dir(loaded)):
            function = getattr(loaded, name, None)
            if (
                name in SKIPPED
                or name.startswith("_")
                or not callable(function)
                or (isinstance(function, type) and issubclass(function, BaseException))
            ):
                continue
            for written, arguments in ARGUMENTS.items():
                yield f"{module}.{name}({written})", _calling(function, arguments)
            if isinstance(function, np.ufunc):
                for method, written in (("reduce", "v"), ("accumulate", "v"), ("outer", "v, p")):
                    yield (
                        f"{module}.{name}.{method}({written})",
                        _calling(getattr(function, method), ARGUMENTS[written]),
                    )
    for owner, which in (("v", 1), ("m", 2), ("x", 0)):
        kind = float if owner == "x" else np.ndarray
        for name in sorted(dir(kind)):
            if name not in SKIPPED:
                for written, arguments in METHOD_ARGUMENTS.items():
                    yield f"{owner}.{name}({written})", _method(which, name, arguments)


def _calling(function: Any, arguments: Any) -> Call:
    def call(rng: Any, x: Any, v: Any, m: Any) -> tuple[Any, ...]:
        given = arguments(x, v, m)
        return (function(*given), *given)

    return call


def _method(which: int, name: str, arguments: Any) -> Call:
    def call(rng: Any, x: Any, v: Any, m: Any) -> tuple[Any, ...]:
        owner = (x, v, m)[which]
        found = getattr(owner, name)
        return (found(*arguments(x, v, m)) if callable(found) else found, owner)

    return call


def generators() -> Iterator[tuple[str, Call]]:
    """Yield draws that are no noise call: of the generator, bound and unbound, of NumPy, of Python, of the system."""
    import secrets
    import time
    import uuid

    given: tuple[tuple[Any, ...], ...] = ((), (3,), (0.5,), (2, 0.5), ([1.0, 2.0, 3.0],), (1, 3), (3, 3, 2))
    for name in sorted(set(dir(np.random.Generator)) - {"laplace", "normal", "standard_normal"}):
        if not name.startswith("_"):
            for args in given:
                yield (
                    f"rng.{name}{args}",
                    lambda rng, x, v, m, n=name, a=args: (
                        f(*a) if callable(f := getattr(rng, n)) else f.random_raw(),
                    ),
                )
    for name in sorted(dir(np.random.Generator)):
        if not name.startswith("_") and callable(getattr(np.random.Generator, name)):
            for args in given:
                yield (
                    f"Generator.{name}(rng, {args})",
                    lambda rng, x, v, m, n=name, a=args: (getattr(np.random.Generator, n)(rng, *a),),
                )
    for module, label in ((np.random, "numpy.random"), (random, "random"), (secrets, "secrets")):
        for name in sorted(dir(module)):
            if (
                not name.startswith("_")
                and callable(getattr(module, name))
                and not isinstance(getattr(module, name), type)
                and name not in {"seed", "set_state", "setstate", "get_state", "getstate", "test", "main"}
            ):
                for args in given:
                    yield f"{label}.{name}{args}", lambda rng, x, v, m, o=module, n=name, a=args: (getattr(o, n)(*a),)
    for label, function in {
        "uuid.uuid4()": uuid.uuid4,
        "os.urandom(1)": lambda: os.urandom(1),
        "default_rng().random()": lambda: np.random.default_rng().random(),
        "random.SystemRandom().random()": lambda: random.SystemRandom().random(),
        "time.perf_counter_ns()": time.perf_counter_ns,
        "rng.bit_generator.random_raw()": None,
    }.items():
        if function is None:
            yield label, lambda rng, x, v, m: (rng.bit_generator.random_raw(),)
        else:
            yield label, lambda rng, x, v, m, f=function: (f(),)


def _part(made: tuple[Any, ...], place: tuple[int, ...]) -> Any:
    for index in place:
        if not isinstance(made, tuple | list) or index >= len(made):
            return NO_PART
        made = made[index]
    return made


def _shape(part: Any) -> str:
    if isinstance(part, np.ndarray):
        return f"{np.ndarray.shape.__get__(part)} {part.dtype}"
    return f"{len(part)}" if isinstance(part, str | list | tuple | dict | set) else ""


def _text(part: Any) -> str:
    if callable(part) or isinstance(part, types.GeneratorType | np.random.Generator | np.nditer | np.flatiter):
        return ""
    text = repr(part.tolist() if isinstance(part, np.ndarray) else part)
    return "" if " at 0x" in text else text


PLACES = [(0,), (1,), (2,), (3,), (0, 0), (0, 1), (0, 2), (0, 3)]
FEATURES: dict[str, Callable[[Call, Any, Any, Any, Any], str]] = {}
READ: dict[str, tuple[tuple[int, ...], Callable[[Any], str]]] = {}


def _reading(place: tuple[int, ...], read: Callable[[Any], str]) -> Callable[..., str]:
    def feature(call: Call, rng: Any, x: Any, v: Any, m: Any) -> str:
        try:
            made = call(rng, x, v, m)
        except TooSlowError:
            raise
        except Exception:
            return "raised"
        return read(_part(made, place))

    return feature


def _raises(call: Call, rng: Any, x: Any, v: Any, m: Any) -> str:
    try:
        call(rng, x, v, m)
    except TooSlowError:
        raise
    except Exception as error:
        return type(error).__name__
    return "none"


def _warns(call: Call, rng: Any, x: Any, v: Any, m: Any) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        return _raises(call, rng, x, v, m)


def _errstate(call: Call, rng: Any, x: Any, v: Any, m: Any) -> str:
    with np.errstate(all="raise"):
        return _raises(call, rng, x, v, m)


for _place in PLACES:
    READ[f"value {_place}"], READ[f"shape {_place}"] = (_place, _text), (_place, _shape)
FEATURES |= {label: _reading(*how) for label, how in READ.items()}
FEATURES |= {"exception": _raises, "warning": _warns, "errstate": _errstate}


def _noisy(data: Any, rng: Any) -> tuple[Any, Any, Any]:
    x = data[0] + rng.laplace(0, 1.0)
    v = np.array([float(data[0]), 1.0, 2.0]) + rng.laplace(0, 1.0, 3)
    m = np.array([[1.0, 0.0], [0.0, 1.0]]) + rng.laplace(0, 1.0, (2, 2))
    return x, v, m


def program_of(call: Call, feature: Callable[..., str], odd: int) -> Callable[..., Any]:
    """Return a program that releases raw data for one half of the features."""

    def program(data: Any, rng: Any) -> Any:
        x, v, m = _noisy(data, rng)
        seen = _half(feature(call, rng, x, v, m))
        return [x, float(data[0]) if seen == odd else 0.5]

    return program


def _plain(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def varying(call: Call) -> list[str]:
    """Return the features that are of both halves in plain plays."""
    halves: dict[str, set[int]] = {label: set() for label in FEATURES}
    kinds, changed = set(), False
    for seed in range(PLAYS):
        rng = _plain(seed)
        signal.setitimer(signal.ITIMER_REAL, 1.0)
        try:
            given = _noisy([1], rng)
            before = [_bytes(one) for one in given]
            try:
                made = call(rng, *given)
                raised = "none"
            except TooSlowError:
                raise
            except Exception as error:
                made, raised = None, type(error).__name__
            kinds.add(raised)
            changed = changed or [_bytes(one) for one in given] != before
            if seed > 2 and kinds <= {"TypeError", "AttributeError"}:
                return []
            for label, (place, read) in READ.items():
                if len(halves[label]) == 2 or (place[0] > 0 and not changed):
                    continue
                halves[label].add(_half("raised" if made is None else read(_part(made, place))))
            halves["exception"].add(_half(raised))
            for label in ("warning", "errstate") if seed % 3 == 0 else ():
                halves[label].add(_half(FEATURES[label](call, rng, *given)))
        except BaseException:
            return []
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0.0)
    if "none" not in kinds and len(kinds) == 1:
        return []
    return [label for label, both in halves.items() if len(both) == 2]


def _bytes(one: Any) -> object:
    return one.tobytes() if isinstance(one, np.ndarray) else one


def _half(text: str) -> int:
    return zlib.crc32(text.encode()) % 2


Hole = dict[str, str]


TRACED: Counter[tuple[str, str]] = Counter()
FOUND: set[tuple[str, str]] = set()
VARIED: Counter[str] = Counter()


def holes_of(name: str, call: Call, each: int) -> Iterator[Hole]:
    """Yield the holes that a call shows, one for each kind of feature; of a function some calls are traced."""
    known: set[str] = set()
    function = name.partition("(")[0]
    labels, mine = varying(call), set()
    VARIED["calls"] += bool(labels)
    for label in labels:
        kind, feature = label.split()[0], FEATURES[label]
        if (function, kind) in FOUND or (kind not in mine and TRACED[function, kind] >= each):
            continue
        TRACED[function, kind] += kind not in mine
        mine.add(kind)
        if kind in known or (known and kind in {"warning", "errstate"} and "exception" in known):
            continue
        if any(bounded(program_of(call, feature, odd), seed) for seed in (0,) for odd in (0, 1)):
            known.add(kind)
            FOUND.add((function, kind))
            yield {"program": name, "kind": kind.upper(), "feature": label}


def factor_hole(name: str, call: Call, each: int) -> Iterator[Hole]:
    """Yield the hole of a computed number that is a factor of raw data, and 0 in the traced run."""
    function = name.partition("(")[0]
    if (function, "FACTOR") in FOUND or TRACED[function, "FACTOR"] >= each:
        return
    taken: list[float] = []

    def taking(data: Any, rng: Any) -> Any:
        x, v, m = _noisy(data, rng)
        taken.append(float(np.ravel(call(rng, x, v, m)[0])[0]))
        return [x]

    def factor(data: Any, rng: Any) -> Any:
        x, v, m = _noisy(data, rng)
        made = call(rng, x, v, m)[0]
        return [x, (made if np.ndim(made) == 0 else np.ravel(made)[0]) * data[0] - constant * data[0]]

    plain = []
    try:
        for seed in range(8):
            rng = _plain(seed)
            plain.append(float(np.ravel(call(rng, *_noisy([1], rng))[0])[0]))
    except BaseException:
        return
    if len({round(one, 9) for one in plain}) == 1 or not all(map(math.isfinite, plain)):
        return
    TRACED[function, "FACTOR"] += 1
    bounded(taking, 0)
    for constant in dict.fromkeys(taken):
        if math.isfinite(constant) and bounded(factor, 0):
            FOUND.add((function, "FACTOR"))
            yield {"program": f"({name} - {constant:.4g}) * data", "kind": "FACTOR", "feature": "0 in the traced run"}
            return


def guarded(look: Callable[..., Iterator[Hole]], calls: list[tuple[str, Call]], each: int) -> Iterator[Hole]:
    """Yield the holes of calls that are played in a process of their own: a trace may crash Python."""
    size = 32
    for start in range(0, len(calls), size):
        yield from _apart(look, calls[start : start + size], each)


def _apart(look: Callable[..., Iterator[Hole]], calls: list[tuple[str, Call]], each: int) -> Iterator[Hole]:
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            with os.fdopen(writing, "w") as out:
                holes = [hole for name, call in calls for hole in look(name, call, each)]
                json.dump({"holes": holes, "varied": VARIED["calls"], "traced": list(TRACED.items())}, out)
            code = 0
        finally:
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading) as file:
        text = file.read()
    _, status = os.waitpid(child, 0)
    if status == 0:
        told = json.loads(text)
        VARIED["calls"] = told["varied"]
        TRACED.update({tuple(key): count - TRACED[tuple(key)] for key, count in told["traced"]})
        FOUND.update((hole["program"].strip("(").partition("(")[0], hole["kind"]) for hole in told["holes"])
        yield from told["holes"]
    elif len(calls) == 1:
        yield {"program": calls[0][0], "kind": "CRASH", "feature": f"status {status}"}
    else:
        half = len(calls) // 2
        yield from _apart(look, calls[:half], each)
        yield from _apart(look, calls[half:], each)


RED_TEAM = """
def max_list(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    return max([x, data[0] - 4.0])

def as_int(data, rng):
    x = np.array([float(data[0])]) + rng.laplace(0, 1.0, 1)
    return [0.0, float(data[0])] if x.astype(int)[0] > 4 else [0.0, 0.5]

def gate(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    return (np.sign(x - 4.0) + 1.0) * data[0]

def relu(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    return np.maximum(x - 3.0, 0.0) * (1.0 + data[0])

def cholesky(data, rng):
    noisy = np.array([[4.0 + data[0]]]) + rng.laplace(0, 1.0, (1, 1))
    try:
        np.linalg.cholesky(noisy)
    except np.linalg.LinAlgError:
        return [float(data[0])]
    return [0.5]

def shapes(data, rng):
    x = np.array([float(data[0])]) + rng.laplace(0, 1.0, 1)
    return [float(data[0])] if len(np.trim_zeros(np.maximum(x - 4.0, 0.0))) else [0.5]

def uniq(data, rng):
    x = np.array([float(data[0]), 0.0]) + rng.laplace(0, 1.0, 2)
    return [float(data[0])] if len(np.unique(np.round(x))) == 1 else [0.5]

def stamp(data, rng):
    noise = rng.laplace(0, 1.0)
    return [1.7e9 + noise, data[0] + noise]

def stamp6(data, rng):
    n = rng.laplace(0, 1e-3)
    return [1.0e6 + n, 1e-3 * data[0] * 0.9 + n]

def huge(data, rng):
    a, b = rng.laplace(0, 1.0), rng.laplace(0, 1.0)
    return [1.0e17 + a, data[0] + a + b]

def small(data, rng):
    return [20000.0, 1e-7 * data[0], rng.laplace(0, 1.0) + data[0]]

_seen = {}

def cached(data, rng):
    return _seen.setdefault("total", float(sum(data))) + rng.laplace(0, 1.0)

def errstate(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    with np.errstate(invalid="raise"):
        try:
            np.sqrt(x + 4.0)
        except FloatingPointError:
            return [float(data[0])]
    return [0.5]

def unbound(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    return float(data[0]) if np.random.Generator.random(rng) < 0.05 else x

def partition(data, rng):
    counts = np.array([float(data[0]) + 3.0, 9.0])
    noisy = counts + rng.laplace(0, 1.0, 2)
    return np.where(noisy.astype(int) >= 7, counts, 0.0)

def partition_rare(data, rng):
    counts = np.array([float(data[0]) + 2.0, 30.0])
    noisy = counts + rng.laplace(0, 1.0, 2)
    return np.where(noisy.astype(int) >= 13, counts, 0.0)

def clipmul(data, rng):
    return np.clip(data[0] + rng.laplace(0, 1.0) - 4, 0, 1) * data[0]

def roundmul(data, rng):
    return round((data[0] + rng.laplace(0, 1.0)) / 10, 0) * data[0]

def heavi(data, rng):
    return np.heaviside(data[0] + rng.laplace(0, 1.0) - 4, 0.0) * data[0]

def matmul(data, rng):
    x = np.array([float(data[0]), 0.0]) + rng.laplace(0, 1.0, 2)
    return np.array([float(data[0]), 1.0]) @ np.maximum(x - 4, 0.0)

def inv(data, rng):
    x = np.round((np.array([[4.0 + data[0]]]) + rng.laplace(0, 1.0, (1, 1))) / 10)
    try:
        np.linalg.inv(x)
    except np.linalg.LinAlgError:
        return [0.5]
    return [float(data[0])]

def warn(data, rng):
    x = data[0] + rng.laplace(0, 1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            np.log(x + 4.0)
        except RuntimeWarning:
            return [float(data[0])]
    return [0.5]

def inter(data, rng):
    x = np.round(np.array([float(data[0])]) + rng.laplace(0, 1.0, 1))
    return [float(data[0])] if np.intersect1d(x, [5.0, 6.0, 7.0]).size else [0.5]

def _row(v):
    return _row.d if v[0] > 4 else 0.5

def along(data, rng):
    x = np.array([float(data[0])]) + rng.laplace(0, 1.0, 1)
    _row.d = float(data[0])
    return np.apply_along_axis(_row, 0, x)

def minlist(data, rng):
    return min([data[0] + rng.laplace(0, 1.0), data[0] + 4.0])

def maxstar(data, rng):
    xs = [data[0] + rng.laplace(0, 1.0), data[0] - 4.0]
    return float(max(*xs))

def inplace_cov(data, rng):
    cov = np.array([[2.0 + data[0], 1.0], [1.0, 2.0]])
    noisy = cov + rng.laplace(0, 1.0, (2, 2))
    noisy = (noisy + noisy.T) / 2
    try:
        np.linalg.cholesky(noisy + 4 * np.eye(2))
    except np.linalg.LinAlgError:
        noisy = cov
    return noisy

def batched_int(data, draws, runs):
    x = data[0] + draws.generator.laplace(0, 1.0, runs)
    return np.where(x.astype(int) > 4, float(data[0]), 0.5)
batched_int.batched = True
"""

#: The truth of those that are not infinite.
FINITE = {"huge": 1.0, "cached": 1.0}
#: Sound programs and the bound that a trace must keep.
SOUND = """
def one(data, rng):
    return data[0] + rng.laplace(0, 1.0)

def clipped(data, rng):
    return np.clip(data[0] + rng.laplace(0, 1.0), 0, 5)

def floats(data, rng):
    return [float(data[0] + rng.laplace(0, 2.0)) for _ in range(2)]

def adaptive(data, rng):
    first = np.clip(data[0] + rng.laplace(0, 2.0), 0, 5)
    return [first, data[0] + 3 * first + rng.laplace(0, 2.0)]

def squares(data, rng):
    noisy = np.array([data[0], 2.0]) + rng.laplace(0, 1.0, 2)
    return np.sqrt(np.maximum(noisy, 0.0)).sum() * 3.0

def running(data, rng):
    return np.cumsum(np.array([float(data[0]), 1.0, 1.0]) + rng.laplace(0, 1.0, 3))
"""


BOUNDS = {"running": "1"}


def programs_of(source: str) -> dict[str, Callable[..., Any]]:
    space: dict[str, Any] = {"np": np, "warnings": warnings, "__name__": "programs"}
    import linecache
    import tempfile

    with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as file:  # traces read source
        file.write("import warnings\nimport numpy as np\n" + source)
    linecache.checkcache(file.name)
    exec(compile(Path(file.name).read_text(), file.name, "exec"), space)
    return {
        name: one for name, one in space.items() if isinstance(one, types.FunctionType) and not name.startswith("_")
    }


def red_team() -> Iterator[Hole]:
    for name, program in programs_of(RED_TEAM).items():
        try:
            upper = tracing(program, PAIR, CLAIM, every_pair=False).upper
        except Exception:
            continue
        if upper is not None and upper.binds and upper.epsilon < FINITE.get(name, math.inf) * (1 - 1e-9):
            yield {"program": name, "kind": "RED TEAM", "feature": f"bounded by {upper.epsilon:.4g}"}


def unsure() -> Iterator[Hole]:
    """Yield the sound programs whose exact bound, 1, a trace does not say: one that bounds nothing has no holes."""
    for name, program in programs_of(SOUND).items():
        upper = tracing(program, PAIR, CLAIM, every_pair=False).upper
        said = "none" if upper is None else f"{upper.epsilon:.6g}" if upper.binds else "NOT BOUNDED"
        if said != BOUNDS.get(name, "1"):
            yield {
                "program": name,
                "kind": "SOUND",
                "feature": f"exactly {BOUNDS.get(name, '1')}, the trace says {said}",
            }


RUNS = 4000
ALPHA = 1e-5


class Fuzzed:
    """A small NumPy program: a few numbers, drawn steps, and two or three of the numbers are returned."""

    LINEAR = (
        "{a} + {b}",
        "{a} - {b}",
        "{a} * {c}",
        "{a} + {d}",
        "{d} * {c} + {a}",
        "{a} / {c}",
        "np.array([{a}, {b}]).sum()",
        "{a} + {big}",
        "{a} * {d}",
    )
    COMPUTED = (
        "np.clip({a}, 0, 2)",
        "np.maximum({a}, {c})",
        "np.sign({a})",
        "np.round({a})",
        "np.floor({a} / 2)",
        "abs({a})",
        "{a} * {b}",
        "np.heaviside({a} - 2, 0.0)",
        "np.exp(-abs({a}))",
        "np.sqrt(np.maximum({a} - 1, 0))",
    )
    RAW = (
        "float(len(np.unique(np.round([{a}, {b}]))))",
        "float(np.array([{a}, {b}]).astype(int)[0])",
        "max([{a}, {d}])",
        "float(np.argmax([{a}, {b}]))",
        "np.where(np.array({a}) > 2, {d}, {c})[()]",
        "float(np.trim_zeros(np.maximum([{a}], 0.0)).size)",
        "float(np.sort([{a}, {b}])[0])",
    )

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        lines, names = [], []
        for i in range(draw.randint(1, 3)):
            noise = draw.choice(("rng.laplace(0, 1.0)", "rng.normal(0, 1.0)", "rng.laplace(0, 2.0)"))
            lines.append(f"n{i} = {draw.choice(('d + ', 'd / 2 + ', '', '3.0 + '))}{noise}")
            names.append(f"n{i}")
        for i in range(draw.randint(1, 5)):
            kind = draw.choices((self.LINEAR, self.COMPUTED, self.RAW), (5, 4, 1))[0]
            step = draw.choice(kind).format(
                a=draw.choice(names),
                b=draw.choice(names),
                c=draw.choice(("0.5", "2.0", "-1.5", "3.0")),
                d="d",
                big=draw.choice(("1e6", "1e9", "1e12")),
            )
            lines.append(f"y{i} = {step}")
            names.append(f"y{i}")
        shown = draw.sample(names, min(len(names), draw.randint(1, 3)))
        lines.append(f"return [{', '.join(shown)}]")
        self.source = "def program(data, rng):\n    d = float(data[0])\n" + "".join(f"    {line}\n" for line in lines)
        self.program = programs_of(self.source)["program"]


def lower_bound(program: Callable[..., Any], seed: int) -> float:
    """Return a certified lower bound on epsilon on the pair: events of one output or of a difference of two."""
    from scipy.stats import beta

    worlds = []
    for world in (PAIR.left, PAIR.right):
        rng = np.random.default_rng([seed, world[0]])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            worlds.append(np.array([[float(one) for one in program(world, rng)] for _ in range(RUNS)]))
    columns = []
    for side in worlds:
        pairs = [side[:, i] - side[:, j] for i in range(side.shape[1]) for j in range(i)]
        columns.append(np.round(np.nan_to_num(np.column_stack([side, *pairs])), 4))
    best, half = 0.0, RUNS // 2
    for a, b in ((columns[0], columns[1]), (columns[1], columns[0])):
        events = []
        for k in range(a.shape[1]):
            values, counts = np.unique(a[:half, k], return_counts=True)
            for value in values[np.argsort(-counts)[:3]]:
                events += [(k, lambda z, v=value: z == v)]
            for value in np.quantile(a[:half, k], (0.02, 0.1, 0.5, 0.9, 0.98)):
                events += [(k, lambda z, v=value: z > v), (k, lambda z, v=value: z < v)]
        rated = [(np.log((e(a[:half, k]).sum() + 1) / (e(b[:half, k]).sum() + 1)), k, e) for k, e in events]
        _, k, event = max(rated, key=lambda one: one[0])
        hits, other = int(event(a[half:, k]).sum()), int(event(b[half:, k]).sum())
        low = beta.ppf(ALPHA, hits, half - hits + 1) if hits else 0.0
        high = beta.ppf(1 - ALPHA, other + 1, half - other) if other < half else 1.0
        best = max(best, math.log(low / high) if low > 0 else 0.0)
    return best


def fuzz(count: int, start: int = 0) -> Iterator[Hole]:
    seen = Counter()
    for seed in range(start, start + count):
        one = Fuzzed(seed)
        try:
            upper = tracing(one.program, PAIR, CLAIM, every_pair=False).upper
        except Exception:
            seen["not traced"] += 1
            continue
        if upper is None or not upper.binds:
            seen["not bounded"] += 1
            continue
        seen["bounded"] += 1
        try:
            low = lower_bound(one.program, seed)
        except Exception:
            continue
        if low > upper.epsilon + 1e-9:
            yield {
                "program": one.source,
                "kind": "FUZZ",
                "feature": f"bound {upper.epsilon:.4g}, certified {low:.4g}, seed {seed}",
            }
    print(f"fuzz: {dict(seen)}", file=sys.stderr)


def options() -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="red-team,functions,factors,generators,fuzz")
    parser.add_argument("--match", default="", help="functions whose name has this in it")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th call, from the i-th")
    parser.add_argument("--each", type=int, default=6, help="calls of a function that are traced for each feature")
    parser.add_argument("--programs", type=int, default=300, help="random programs")
    return parser.parse_args()


def holes(given: argparse.Namespace) -> Iterator[tuple[str, Hole]]:
    """Yield the holes of all kinds, each with the section that found it."""
    kinds, (first, step) = given.only.split(","), map(int, given.part.split("/"))
    if "red-team" in kinds:
        yield from (("red-team", hole) for hole in (*red_team(), *unsure()))
    calls = list(functions())
    sections = (("functions", calls, holes_of), ("generators", list(generators()), holes_of))
    for section, listed, look in (*sections, ("factors", calls, factor_hole)):
        if section in kinds:
            chosen = [call for call in listed[first::step] if given.match in call[0]]
            print(f"{section}: {len(chosen)} calls", flush=True)
            yield from ((section, hole) for hole in guarded(look, chosen, given.each))
    if "fuzz" in kinds:
        yield from (("fuzz", hole) for hole in fuzz(given.programs))


def main() -> int:
    """Print the holes, and how many calls were tried."""
    given = options()
    signal.signal(signal.SIGALRM, _stop)
    warnings.simplefilter("ignore")
    count = 0
    for section, hole in holes(given):
        count += 1
        print(f"HOLE {section} {hole['kind']} {hole['program'].strip()}   [{hole['feature']}]", flush=True)
    print(f"{VARIED['calls']} calls vary with the noise, {sum(TRACED.values())} features traced; holes: {count}")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
