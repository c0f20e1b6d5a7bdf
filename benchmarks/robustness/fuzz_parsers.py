"""Coverage-guided fuzzing of what reads a user's text: plans, records, pairs and `--set` values.

    python benchmarks/robustness/fuzz_parsers.py FOLDER [libFuzzer's options, such as -max_total_time=600 -timeout=60]

needs atheris beside the dependencies: pip install atheris==3.0.0. FOLDER keeps the inputs that reached new code, and
begins with a valid one of each kind; the first byte of an input says which kind it is. It ends at the first input
whose answer is neither success nor one line and an exit code, and writes it beside the call.
"""

from __future__ import annotations

import contextlib
import json
import sys
import tempfile
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["overclaim", "tomllib", "json"]):
    import json.decoder
    import tomllib  # noqa: F401

    from overclaim.audit.plans.plan import read_plan
    from overclaim.audit.plans.plan_schema import example
    from overclaim.audit.plans.tasks import Task
    from overclaim.learners.catalogue.entries import entries
    from overclaim.mechanisms.one_shot.zoo import zoo
    from overclaim.reports.command_line import cli, task_options
    from overclaim.reports.command_line.console import Failure, clear_errors
    from overclaim.reports.formats import evidence, junit, markdown, sarif
    from overclaim.reports.record import read_record, to_text

LEARNERS = list(entries())
TARGETS = [*LEARNERS, *zoo()]
PAIR = {"left": [[1.0, 0.0], [0.0, 1.0]], "right": [[0.0, 1.0], [0.0, 1.0]]}
SWITCH = {"loss": "switch", "below": {"loss": "linear", "slope": [0.5, -1.0]}, "above": [0.5, 1.0], "threshold": 0.5}


def plan(path: Path) -> None:
    """Read a plan; build what it names, but import nobody's code."""
    for task in read_plan(path).tasks:
        task.command()
        if task.target in TARGETS:
            task.prepare()


def record(path: Path) -> None:
    """Read a record and render it as `overclaim report` does."""
    read = read_record(path)
    for reader in (evidence, junit, markdown, sarif):
        try:
            reader.render(read)
        except (ArithmeticError, AttributeError, LookupError, TypeError) as error:
            raise ValueError(f"cannot render: {error}") from None


def pair(path: Path) -> None:
    """Read a pair for the learner that the first byte names."""
    text = path.read_bytes()
    path.write_bytes(text[1:])
    Task(target=LEARNERS[text[0] % len(LEARNERS)] if text else "", pair=task_options._read_pair(path)).prepare()


def parameter(path: Path) -> None:
    """Set a parameter, NAME=VALUE, of the target that the first byte names."""
    text = path.read_bytes()
    name, _, value = text[1:].decode("utf-8", "replace").partition("=")
    Task(target=TARGETS[text[0] % len(TARGETS)] if text else "", parameters={name: value}).prepare()


KINDS = {b"P": plan, b"R": record, b"L": pair, b"S": parameter}


def seeds(folder: Path, scratch: Path) -> None:
    """Write a valid input of each kind."""
    (scratch / "plan.toml").write_text(
        'confidence = 0.99\n[[claims]]\ntarget = "asi-raman-talwar/batched-threshold"\nepsilon = 1.0\nrounds = 2\n'
        'runs = 400\n[[claims]]\ntarget = "mechanisms/noisy-max-1"\nruns = 400\n'
    )
    words = ["run", str(scratch / "plan.toml"), "--out", str(scratch / "out"), "--jobs", "1"]
    with contextlib.suppress(SystemExit):
        cli.main(words)
    small = json.loads((scratch / "out" / "record.json").read_text())
    for claim in small["claims"]:
        claim.pop("evidence", None)  # thousands of numbers
    switched = {"left": [[0.0, 0.0], SWITCH], "right": [[1.0, 0.0], SWITCH]}
    inputs = [
        b"P" + example("plan.toml").encode(),
        b"P" + (scratch / "plan.toml").read_bytes(),
        b"R" + to_text(small).encode(),
    ]
    inputs += [b"L" + bytes([i]) + json.dumps(found).encode() for i, found in enumerate((PAIR, switched))]
    inputs += [
        b"S" + bytes([i]) + f"{name}=0.5".encode()
        for i, target in enumerate(LEARNERS)
        for name in entries()[target].parameters
    ]
    for i, text in enumerate(inputs):
        (folder / f"seed-{i}").write_bytes(text)


def main() -> None:
    """Fuzz until the options of libFuzzer say so."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        seeds(folder, scratch)
        path = scratch / "input"

        def one(data: bytes) -> None:
            parse = KINDS.get(data[:1])
            if parse is None:
                return
            path.write_bytes(data[1:])
            try:
                with clear_errors():
                    parse(path)
            except Failure as failure:
                if failure.exit_code not in (2, 4) or not failure.message or "\n" in failure.message:
                    raise

        atheris.Setup(sys.argv, one)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
