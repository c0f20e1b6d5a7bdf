"""Play a target in a Python of its own: this file runs there by itself, on Python 3.8 or newer and NumPy alone.

Our process sends it the sources of `MODULES`, what to load, then blocks of runs; it answers with their outputs. What
travels is JSON, a length before each message: no pickle, which other versions of NumPy could not read.
"""

from __future__ import annotations

import base64
import copy
import faulthandler
import importlib
import importlib.util
import inspect
import json
import mmap
import os
import struct
import sys
import sysconfig
import types
from typing import Any, BinaryIO

import numpy as np

#: Modules of ours that are sent along, in the order in which they need each other.
MODULES = (
    "errors",
    "mechanisms.draws",
    "mechanisms.faults",
    "mechanisms.framework_random",
    "mechanisms.global_random",
    "mechanisms.constant_seeds",
    "mechanisms.weakening",
)
#: What a value of more than JSON's types is written as: a kind, and its parts.
TAG = "\x00"
#: Bytes of a message's length, and of the number of the run that is played.
_LENGTH, _RUN = struct.Struct(">Q"), struct.Struct("<q")
#: Our package's name there, where another one of our own name may be installed.
_PACKAGE = "overclaim_worker"


def encode(value: Any) -> Any:
    """Return a value as JSON can hold it; raise TypeError for what cannot travel."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is list:
        return [encode(part) for part in value]
    if type(value) is dict and all(type(key) is str and key != TAG for key in value):
        return {key: encode(part) for key, part in value.items()}
    kind = type(value).__name__
    if type(value) in (tuple, set, frozenset):
        parts = sorted(value, key=repr) if isinstance(value, (set, frozenset)) else value
        return {TAG: kind, "parts": [encode(part) for part in parts]}
    if type(value) is dict:
        return {TAG: kind, "parts": [[encode(key), encode(part)] for key, part in value.items()]}
    if isinstance(value, bytes):
        return {TAG: "bytes", "parts": base64.b64encode(value).decode("ascii")}
    if isinstance(value, complex):
        return {TAG: "complex", "parts": [value.real, value.imag]}
    if hasattr(value, "detach") and hasattr(value, "numpy"):  # a tensor
        value = value.detach().cpu().numpy()
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)
        if array.dtype.hasobject:
            return {TAG: "objects", "shape": list(array.shape), "parts": [encode(part) for part in array.ravel()]}
        data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
        kind = "array" if isinstance(value, np.ndarray) else "scalar"
        return {TAG: kind, "type": array.dtype.str, "shape": list(array.shape), "parts": data}
    if kind == "DataFrame":
        columns = [[encode(name), encode(value[name].to_numpy())] for name in value.columns]
        return {TAG: kind, "parts": columns, "index": encode(value.index.to_numpy())}
    if kind == "Series":
        return {
            TAG: kind,
            "parts": encode(value.to_numpy()),
            "index": encode(value.index.to_numpy()),
            "name": value.name,
        }
    raise TypeError(f"a value of type {kind} cannot travel between two Pythons")


def decode(value: Any) -> Any:
    """Return the value that `encode` wrote."""
    if isinstance(value, list):
        return [decode(part) for part in value]
    if not isinstance(value, dict):
        return value
    kind = value.get(TAG)
    if kind is None:
        return {key: decode(part) for key, part in value.items()}
    parts = value["parts"]
    if kind in ("array", "scalar"):
        array = np.frombuffer(base64.b64decode(parts), dtype=np.dtype(value["type"])).reshape(value["shape"])
        return array.copy() if kind == "array" else array[()]
    if kind == "objects":
        array = np.empty(len(parts), dtype=object)
        array[:] = [decode(part) for part in parts]
        return array.reshape(value["shape"])
    if kind == "bytes":
        return base64.b64decode(parts)
    if kind == "complex":
        return complex(*parts)
    if kind == "Series":
        pandas = importlib.import_module("pandas")
        return pandas.Series(decode(parts), index=decode(value["index"]), name=value["name"])
    if kind == "DataFrame":
        pandas = importlib.import_module("pandas")
        columns = {decode(name): decode(column) for name, column in parts}
        return pandas.DataFrame(columns, index=decode(value["index"]))
    items = [decode(part) for part in parts]
    return {"tuple": tuple, "set": set, "frozenset": frozenset, "dict": dict}[kind](items)


def send(file: BinaryIO, message: Any) -> None:
    """Write a message."""
    data = json.dumps(message).encode("utf-8")
    file.write(_LENGTH.pack(len(data)) + data)
    file.flush()


def receive(file: BinaryIO) -> Any:
    """Read a message; raise EOFError where the other end is gone."""
    head = file.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        raise EOFError
    length = _LENGTH.unpack(head)[0]
    data = file.read(length)
    if len(data) < length:
        raise EOFError
    return json.loads(data.decode("utf-8"))


def state_of(rng: np.random.Generator) -> dict[str, Any]:
    """Return the state of a generator, as it travels."""
    bits = np.random.Generator.bit_generator.__get__(rng)
    sequence: Any = getattr(bits, "seed_seq", None)
    seed = None
    if isinstance(sequence, np.random.SeedSequence):
        entropy: Any = np.random.SeedSequence.entropy  # ours has another one of its own
        seed = [entropy.__get__(sequence), list(sequence.spawn_key), getattr(sequence, "calls", 0)]
    return {"bits": type(bits).__name__, "state": encode(bits.state), "seed": seed}


def run_of(progress: mmap.mmap) -> int:
    """Return the number of the run that was begun last in a block."""
    return int(_RUN.unpack(progress[: _RUN.size])[0])


class _Stub(types.ModuleType):
    """A module that may be imported, and fails where it is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self.__name__}.{name}")


class _Absent:
    """A name of a module that is not installed: it can be held and be a base class, and not be called."""

    def __init__(self, name: str, *_: Any) -> None:
        self._name = name

    def __mro_entries__(self, bases: Any) -> tuple[type, ...]:
        return ()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _Absent(f"{self._name}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        raise ModuleNotFoundError(f"{self._name} is used, and its module is a stub")


class _StubFinder:
    """Finds stubs, and the modules below them."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return a stub's specification; None of other modules."""
        loader: Any = self
        return importlib.util.spec_from_loader(name, loader) if name.partition(".")[0] in self.names else None

    def create_module(self, spec: Any) -> types.ModuleType:
        """Return a stub."""
        return _Stub(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Do nothing."""


def install_stubs(names: list[str]) -> None:
    """Let modules that are not there be imported."""
    lacking = [name for name in names if name not in sys.modules and importlib.util.find_spec(name) is None]
    if lacking:
        sys.meta_path.insert(0, _StubFinder(lacking))


class FileLog:
    """The files that were opened and the flags of each, but for Python's own and installed ones."""

    def __init__(self) -> None:
        self.opened: dict[tuple[str, int], None] = {}
        paths = sysconfig.get_paths()
        self.installed = tuple(paths[name] + os.sep for name in ("stdlib", "platstdlib", "purelib", "platlib"))
        sys.addaudithook(self.note)

    def note(self, event: str, args: tuple[Any, ...]) -> None:
        """Note an opened file."""
        if event == "open" and isinstance(args[0], str) and isinstance(args[2], int):
            path = os.path.abspath(args[0])
            if not path.startswith(self.installed):
                self.opened[path, args[2]] = None

    def taken(self) -> list[tuple[str, int]]:
        """Return the files of which our process has not heard."""
        opened, self.opened = list(self.opened), {}
        return opened


class Player:
    """A target that is loaded, and plays blocks of runs.

    Parameters
    ----------
    hello : dict
        The first message: `modules`, `folder`, `place` (a file or a module), `name`, `settings`, `seeding`,
        `outcomes`, `call_limit`, `stubs`, `progress` (a file), `log` (a file).
    """

    def __init__(self, hello: dict[str, Any]) -> None:
        self.hello = hello
        with open(hello["progress"], "r+b") as file:
            self.progress = mmap.mmap(file.fileno(), _RUN.size)
        self.log = open(hello["log"], "ab")  # noqa: SIM115 - as long as the process
        self.files = FileLog()  # from here on: these two are ours
        self.modules = {name: _module(name, source) for name, source in hello["modules"]}
        install_stubs(hello["stubs"])
        with_settings = self.modules["mechanisms.weakening"].with_settings
        self.function = with_settings(self.load(), decode(hello["settings"]))
        parameters = inspect.signature(self.function).parameters.values()
        places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        self.alone = hello["seeding"] and all(p.default is not p.empty for p in places[1:])

    def load(self) -> Any:
        """Return the target."""
        place, name = self.hello["place"], self.hello["name"]
        sys.path.insert(0, self.hello["folder"])
        if place.endswith(".py"):
            stem = "overclaim_target_" + os.path.splitext(os.path.basename(place))[0]
            spec = importlib.util.spec_from_file_location(stem, place)
            assert spec is not None
            assert spec.loader is not None
            module = sys.modules[stem] = importlib.util.module_from_spec(spec)
            spec.loader.exec_module(module)
        else:
            module = importlib.import_module(place)
        return getattr(module, name)

    def place(self) -> dict[str, Any]:
        """Return where the target is written, and what plays it."""
        code = getattr(inspect.unwrap(getattr(self.function, "func", self.function)), "__code__", None)
        versions = {"python": sys.version.split()[0], "numpy": np.__version__}
        where = {} if code is None else {"file": code.co_filename, "line": code.co_firstlineno}
        return {**where, **versions}

    def generator(self, state: dict[str, Any]) -> np.random.Generator:
        """Return the generator that was sent."""
        sequence = None
        if state["seed"] is not None:
            entropy, spawn_key, calls = state["seed"]
            sequence = self.modules["mechanisms.draws"]._Sequence(entropy, spawn_key=tuple(spawn_key))
            sequence.calls = calls
        bits = getattr(np.random, state["bits"])(sequence)
        bits.state = decode(state["state"])
        return np.random.Generator(bits)

    def play(self, block: dict[str, Any]) -> dict[str, Any]:
        """Return the outputs of a block of runs, and the state of its generator; or what a run raised."""
        inputs, rng, outputs = (decode(block["right"]), decode(block["left"])), self.generator(block["rng"]), []
        fault = None
        if block["fault"] is not None:
            factor, kind, site, places, weights = block["fault"]
            listed: list[Any] = [[] if collects else None for collects in (places, weights)]
            fault = self.modules["mechanisms.faults"].Fault(factor, kind, site, *listed)
        for run, label in enumerate(block["labels"]):
            self.progress[: _RUN.size] = _RUN.pack(run)
            try:
                outputs.append(encode(self.call(copy.deepcopy(inputs[label]), rng, fault)))
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                if not (
                    self.hello["outcomes"] and isinstance(error, Exception) and not isinstance(error, MemoryError)
                ):
                    return {"raised": _raised(error, self.hello["place"]), "run": run}
                outputs.append("raised " + type(error).__name__)
        played_fault = None if fault is None else [fault.places, fault.weights]
        return {"outputs": outputs, "rng": encode(rng.bit_generator.state), "fault": played_fault}

    def call(self, data: Any, rng: np.random.Generator, fault: Any) -> Any:
        """Answer once."""
        self.modules["mechanisms.draws"].begin_call(rng)
        source = rng if fault is None else fault.generator(rng)
        arguments = (data,) if self.alone else (data, source)
        limit = self.hello["call_limit"]
        if limit is not None:  # also of compiled code, which no exception interrupts
            faulthandler.dump_traceback_later(limit, exit=True, file=self.log)
        try:
            if self.hello["seeding"] == "fresh seeds":
                reseeded = self.modules["mechanisms.constant_seeds"].drawn_reseeded
                return reseeded(self.function, source, self.function, *arguments)
            if self.hello["seeding"]:
                return self.modules["mechanisms.global_random"].drawn_from(source, self.function, *arguments)
            return self.function(*arguments)
        finally:
            if limit is not None:
                faulthandler.cancel_dump_traceback_later()


def _module(name: str, source: str) -> types.ModuleType:
    """Return a module of ours, made from its source."""
    parts = [_PACKAGE, *name.split(".")]
    for depth in range(1, len(parts)):
        package = sys.modules.setdefault(".".join(parts[:depth]), types.ModuleType(".".join(parts[:depth])))
        package.__path__ = []
    module = types.ModuleType(".".join(parts))
    module.__package__ = ".".join(parts[:-1])
    sys.modules[module.__name__] = module
    exec(compile(source, f"<{module.__name__}>", "exec"), vars(module))
    return module


def _raised(error: BaseException, place: str) -> dict[str, Any]:
    """Return what is said of an exception of the target's."""
    trace, where = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename == place or (where is None and not code.co_filename.startswith("<")):
            where = code.co_filename, trace.tb_lineno, code.co_name
        trace = trace.tb_next
    try:
        message = " ".join(str(error).split())
    except Exception:
        message = "(its message raises)"
    lacking = getattr(error, "name", None) if isinstance(error, ModuleNotFoundError) else None
    return {"kind": type(error).__name__, "message": message, "where": where, "lacking": lacking}


def _old_numpy() -> None:
    """Give a NumPy before 1.21 the names of types that our modules mention."""
    try:
        from numpy.typing import NDArray  # noqa: F401
    except ImportError:
        typing = types.ModuleType("numpy.typing")
        typing.NDArray = {np.float64: Any, np.bool_: Any, Any: Any}  # type: ignore[attr-defined]
        sys.modules["numpy.typing"] = typing


def _special() -> None:
    """Give the module of faults the five functions of SciPy that it uses, where SciPy is not installed."""
    try:
        importlib.import_module("scipy.special")
    except ImportError:
        special = types.ModuleType("scipy.special")
        vars(special).update(
            logit=lambda p: np.log(p) - np.log1p(-np.asarray(p)),
            expit=lambda x: np.exp(-np.logaddexp(0.0, -np.asarray(x, dtype=float))),
            log_expit=lambda x: -np.logaddexp(0.0, -np.asarray(x, dtype=float)),
            xlogy=lambda x, y: np.where(np.equal(x, 0), 0.0, x * np.log(np.where(np.equal(x, 0), 1.0, y))),
        )
        scipy = types.ModuleType("scipy")
        scipy.special = special  # type: ignore[attr-defined]
        sys.modules.update({"scipy": scipy, "scipy.special": special})


def main() -> None:
    """Answer messages until the other end is gone. What the target prints goes to the log."""
    source, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    hello = receive(source)
    log = os.open(hello["log"], os.O_WRONLY | os.O_APPEND)
    os.dup2(log, 1)
    os.dup2(log, 2)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    _old_numpy()
    _special()
    try:
        player = Player(hello)
        answer = player.place()
    except BaseException as error:
        send(answers, {"raised": _raised(error, hello["place"]), "files": []})
        return
    while True:
        send(answers, dict(answer, files=player.files.taken()))
        try:
            block = receive(source)
        except EOFError:
            return
        answer = player.play(block)


if __name__ == "__main__":
    main()
