"""A mechanism in a Python of its own: its process plays blocks of runs, and may crash or hang without harm to ours."""

from __future__ import annotations

import atexit
import copy
import itertools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import about, hinted, placed
from ...learners.protocol import LearnerError
from ...mechanisms import worker
from ...mechanisms.draws import Draws
from ...mechanisms.faults import Fault
from ..execution.file_reads import note_opened
from .data import shortened

#: The folder of our package, whose modules the other Python is sent.
_HOME = Path(__file__).resolve().parents[2]
#: Letters of what a process printed last that an error shows.
_MAX_PRINTED = 200
_COPIES = itertools.count(1)


@dataclass
class _Process:
    """A process that plays a target, with the files that it shares with ours."""

    process: subprocess.Popen[bytes]
    folder: Path
    place: dict[str, Any] = field(default_factory=dict)

    @property
    def log(self) -> str:
        """What it printed."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    @property
    def run(self) -> int:
        """The run that was begun last."""
        return int.from_bytes((self.folder / "progress").read_bytes()[:8], "little")

    def ask(self, message: object) -> Any:
        """Send a message and return the answer; raise EOFError where the process has ended."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            worker.send(self.process.stdin, message)  # type: ignore[arg-type]
            answer = worker.receive(self.process.stdout)  # type: ignore[arg-type]
        except OSError:
            raise EOFError from None
        for path, flags in answer.pop("files"):
            note_opened(path, flags)
        return answer

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()
        shutil.rmtree(self.folder, ignore_errors=True)


#: The processes of this one, by the target that they play.
_PROCESSES: dict[InOtherPython, _Process] = {}


@dataclass(frozen=True)
class InOtherPython:
    """A mechanism that another Python plays: see `mechanisms.worker`.

    Parameters
    ----------
    python : str
        The interpreter.
    target : str
        FILE.py:NAME or PACKAGE.MODULE:NAME.
    settings : str
        Keyword arguments of every call, as JSON.
    seeding : bool or "fresh seeds"
        Whether it draws from global generators, and its own seeds are fresh.
    outcomes : bool
        Whether its exceptions are outcomes.
    call_limit : float, optional
        Seconds that a call may take.
    stubs : tuple of str
        Modules that may be missing there.
    copy_index : int
        Of a copy, which has a process of its own.
    """

    python: str
    target: str
    settings: str = "{}"
    seeding: bool | str = False
    outcomes: bool = False
    call_limit: float | None = None
    stubs: tuple[str, ...] = ()
    copy_index: int = 0
    batched = False

    def __post_init__(self) -> None:
        if self.copy_index == 0:
            self._process()

    @property
    def __name__(self) -> str:
        return self.target.rpartition(":")[2]

    @property
    def place(self) -> Mapping[str, Any]:
        """Where it is written (`file`, `line`), and what plays it (`python`, `numpy`)."""
        return self._process().place

    def __deepcopy__(self, memo: object) -> InOtherPython:
        """Return the same mechanism in a process of its own."""
        copied = replace(self, copy_index=next(_COPIES))
        weakref.finalize(copied, _end, copy.copy(copied))
        return copied

    def __call__(self, data: object, rng: np.random.Generator) -> object:
        """Answer once."""
        return self._played((data, data), np.ones(1, dtype=np.bool_), rng, "")[0]

    def play_block(
        self, inputs: tuple[object, object], draws: Draws, left: NDArray[np.bool_], fault: Fault | None = None
    ) -> list[object]:
        """Return the outputs of a block of runs, each on the input of its label."""
        return self._played(inputs, left, draws.generator, f" (seed {draws.key[0]})", fault)

    def _played(
        self,
        inputs: tuple[object, object],
        left: NDArray[np.bool_],
        rng: np.random.Generator,
        seed: str,
        fault: Fault | None = None,
    ) -> list[object]:
        planted = None
        if fault is not None:
            collects = (fault.places is not None, fault.weights is not None)
            planted = [fault.factor, fault.kind, fault.site, *collects]
        try:
            sides = [worker.encode(data) for data in inputs]
        except TypeError as error:
            raise ValueError(f"an input cannot go to {self.python}: {error}") from None
        block = {"left": sides[0], "right": sides[1], "labels": left.astype(int).tolist()}
        process = self._process()
        try:
            answer = process.ask({**block, "rng": worker.state_of(rng), "fault": planted})
        except EOFError:
            raise self._ended(process, f"{_input_of(inputs, left, process.run)}{seed}") from None
        if "raised" in answer:
            raise self._error(answer["raised"], f" on {_input_of(inputs, left, answer['run'])}")
        rng.bit_generator.state = worker.decode(answer["rng"])
        if fault is not None:
            for collected, values in zip((fault.places, fault.weights), answer["fault"], strict=True):
                if collected is not None:
                    collected.extend(values)
        return [worker.decode(output) for output in answer["outputs"]]

    def _process(self) -> _Process:
        """Return the process that plays the mechanism; begin one where there is none."""
        running = _PROCESSES.get(self)
        if running is None or running.process.poll() is not None:
            running = _PROCESSES[self] = self._begun()
        return running

    def _begun(self) -> _Process:
        place, _, name = self.target.rpartition(":")
        is_file = place.endswith(".py")
        folder = Path(tempfile.mkdtemp(prefix="overclaim-"))
        files = {name: str(folder / name) for name in ("log", "progress")}
        Path(files["log"]).touch()
        Path(files["progress"]).write_bytes(bytes(8))
        command = [self.python, "-c", Path(worker.__file__).read_text(encoding="utf-8")]
        pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
        try:
            process = subprocess.Popen(command, **pipes, start_new_session=True)
        except OSError as error:
            message = f"cannot start {self.python!r}: {error.strerror}"
            raise about("python", ValueError(message)) from None
        running = _Process(process, folder)
        paths = {module: _HOME / f"{module.replace('.', '/')}.py" for module in worker.MODULES}
        hello = {
            "modules": [(module, path.read_text("utf-8")) for module, path in paths.items()],
            "folder": str(Path(place).resolve().parent) if is_file else str(Path.cwd()),
            "place": str(Path(place).resolve()) if is_file else place,
            "name": name,
            "settings": json.loads(self.settings),
            **{option: getattr(self, option) for option in ("seeding", "outcomes", "call_limit", "stubs")},
            **files,
        }
        try:
            answer = running.ask(hello)
        except EOFError:
            assert process.stderr is not None
            printed = process.stderr.read().decode("utf-8", "replace") + running.log
            running.end()
            reason = _last_line(printed) or "it ended at once"
            raise about("python", ValueError(f"{self.python!r} cannot play a target: {reason}")) from None
        if "raised" in answer:
            running.end()
            raise self._error(answer["raised"], f" as it was loaded by {self.python}")
        running.place = answer
        return running

    def _error(self, raised: Mapping[str, Any], where: str) -> LearnerError:
        """Return the error of an exception there."""
        from .mechanism_runs import RefusedInputError

        colon = ": " if raised["message"] else ""
        message = f"{self.__name__} raised {raised['kind']}{where}{colon}{raised['message']}"
        error = hinted(RefusedInputError(message), _cure(raised["lacking"]))
        place = "" if raised["where"] is None else "{}:{} in {}()".format(*raised["where"])
        return placed(error, place.removeprefix(f"{Path.cwd()}{os.sep}").replace(" in <module>()", ""))

    def _ended(self, process: _Process, data: str) -> LearnerError:
        """Return the error of a process that ended in a call."""
        from .mechanism_runs import RefusedInputError, SlowInputError

        status, printed = process.process.wait(), process.log
        _PROCESSES.pop(self, None)
        process.end()
        if self.call_limit is not None and "Timeout (" in printed:
            message = f"{self.__name__} took more than {self.call_limit:g} s on {data}"
            lines = [line.strip() for line in printed.splitlines() if line.strip().startswith("File ")]
            return placed(SlowInputError(message), lines[0] if lines else "")
        kind = signal.Signals(-status).name if status < 0 else f"exit code {status}"
        last = _last_line(printed)
        return placed(RefusedInputError(f"{self.__name__} ended its process ({kind}) on {data}"), last)


def mechanism_of(target: str, python: str, settings: Mapping[str, object], **options: Any) -> InOtherPython:
    """Return the mechanism that a target names, on another Python.

    Raises
    ------
    ValueError
        If the interpreter cannot be started, or lacks NumPy, or a setting cannot travel.
    LearnerError
        If the target cannot be loaded there.
    """
    try:
        arguments = json.dumps({name: worker.encode(value) for name, value in settings.items()})
    except TypeError as error:
        raise about("set", ValueError(f"a setting cannot go there: {error}")) from None
    return InOtherPython(python, target, arguments, **options)


@atexit.register
def _end_all() -> None:
    """End all processes of this one."""
    for running in list(_PROCESSES.values()):
        running.end()


def _end(mechanism: InOtherPython) -> None:
    """End the process of a copy."""
    running = _PROCESSES.pop(mechanism, None)
    if running is not None:
        running.end()


def _input_of(inputs: Sequence[object], left: NDArray[np.bool_], run: int) -> str:
    return shortened(inputs[0] if left[run] else inputs[1])


def _last_line(printed: str) -> str:
    lines = printed.strip().splitlines()
    return lines[-1].strip()[:_MAX_PRINTED] if lines else ""


def _cure(lacking: str | None) -> str:
    """Return what to do about a module that is not installed there."""
    if not lacking:
        return ""
    package = lacking.partition(".")[0]
    return f"install {package} there; where the noise does not need it, `stub={package}` stands for it"
