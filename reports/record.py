"""The record: the versioned JSON of a run. Everything a report shows comes from it alone."""

from __future__ import annotations

import json
import math
import os
import platform
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from .. import __version__
from ..audit.exact import NotExactError, exact_epsilon
from ..audit.plans import Prepared
from ..audit.play import BLOCK
from ..audit.verdict import Result

SCHEMA = 1


def claim_record(prepared: Prepared, result: Result) -> dict[str, Any]:
    """Return the record of one audited claim."""
    task, claim, certificate = prepared.task, result.claim, result.certificate
    return {
        "name": task.target,
        "calibration": prepared.setting.calibration if prepared.setting else None,
        "surface": claim.surface,
        "neighbours": claim.neighbours,
        "losses": claim.losses,
        "rounds": prepared.rounds,
        "arms": prepared.learner.arms,
        "parameters": dict(task.parameters),
        "claimed": {"epsilon": claim.epsilon, "delta": claim.delta},
        "epsilon_lower": result.epsilon_lower,
        "exact_epsilon": exact_or_none(prepared, result),
        "verdict": result.verdict.value,
        "expected": task.expected,
        "method": certificate.method,
        "attack": result.attack,
        "confidence": round(result.confidence, 12),
        "runs": result.runs,
        "pilot_runs": result.pilot,
        "detectable_epsilon": finite(result.detectable_epsilon),
        "counts": {
            **asdict(certificate.counts),
            "right": certificate.counts.right,
            "guesses": certificate.counts.guesses,
        },
        "event": {"lower": finite(result.event.lower), "upper": finite(result.event.upper)},
        "pair": result.pair.to_json(),
        "two_interval_bound": certificate.two_interval_bound,
        "seconds": round(result.seconds, 3),
        "source": prepared.source,
        "note": task.note,
        "seed": result.seed,
        "replay": task.command(),
    }


def exact_or_none(prepared: Prepared, result: Result) -> float | None:
    """Return the exact epsilon on the audited pair at the claimed delta, where a method covers it."""
    delta = result.claim.delta
    try:
        exact = exact_epsilon(prepared.learner, result.pair, surface=result.claim.surface, deltas=(delta,))
    except NotExactError:
        return None
    return finite(exact[delta])


def finite(value: float) -> float | None:
    """Return the value, or None where JSON has no number for it."""
    return value if math.isfinite(value) else None


def run_record(
    claims: Sequence[dict[str, Any]], *, seed: int, alpha: float, command: str, errors: Sequence[dict[str, str]] = ()
) -> dict[str, Any]:
    """Return the record of a run."""
    return {
        "schema": SCHEMA,
        "overclaim": __version__,
        "seed": seed,
        "alpha": round(alpha, 12),
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": command,
        "block": BLOCK,
        "versions": {name: version(name) for name in ("numpy", "scipy")} | {"python": platform.python_version()},
        "claims": list(claims),
        "errors": list(errors),
    }


def read_record(path: Path) -> dict[str, Any]:
    """Read a record.

    Raises
    ------
    ValueError
        If the file cannot be read, is no JSON, or is no record of a schema that this version knows.
    """
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ValueError(f"cannot read the record {str(path)!r}: {error.strerror}") from None
    except (UnicodeDecodeError, json.JSONDecodeError) as error:
        raise ValueError(f"{str(path)!r} is no JSON: {error}") from None
    if not isinstance(data, dict) or not isinstance(data.get("claims"), list):
        raise ValueError(f'{str(path)!r} is no record: it must be an object with a list of "claims"')
    if data.get("schema") != SCHEMA:
        raise ValueError(f"{str(path)!r} has schema {data.get('schema')!r}, this version reads {SCHEMA}")
    return data


def write_atomically(path: Path, text: str) -> None:
    """Write a text file whole or not at all.

    Raises
    ------
    ValueError
        If the file cannot be written there.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            os.chmod(temporary, 0o666 & ~_umask())
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise
    except OSError as error:
        raise ValueError(f"cannot write {str(path)!r}: {error.strerror}") from None


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def to_text(record: dict[str, Any]) -> str:
    """Return the record as JSON text."""
    return json.dumps(record, indent=1, allow_nan=False, ensure_ascii=False) + "\n"
