"""Files of scores: columns `score`, `included` and `training`, of tables, NumPy or JSON. Nothing is unpickled."""

from __future__ import annotations

import csv
import warnings
import zipfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import hinted
from ..play.json_text import MAX_DATA, check_readable, parse_json
from .paths import named, read_text

#: What a file may be, by its suffix.
SUFFIXES = (".csv", ".tsv", ".npy", ".npz", ".json")
#: The columns of a table, each with what else it may be called; the last one is optional.
SCORE, INCLUDED, TRAINING = "score", "included", "training"
_NAMES = {"score": SCORE, "scores": SCORE, "included": INCLUDED, "training": TRAINING}
#: What the needed columns are for.
_MEANINGS = {SCORE: "has the attack's scores", INCLUDED: "says whether a canary was in the training data (0 or 1)"}

Columns = Mapping[str, NDArray[Any]]


def read_canaries(path: Path) -> tuple[list[NDArray[Any]], list[NDArray[Any]]]:
    """Return scores and coins of a file, an array for each training.

    Raises
    ------
    ValueError
        If the file cannot be read, or lacks a column.
    """
    columns = _columns(path)
    for name in (SCORE, INCLUDED):
        if name not in columns:
            column_names = ", ".join(columns) or "none"
            message = f"{str(path)!r} must have the columns score and included, it has {column_names}"
            raise hinted(ValueError(message), f"rename the column that {_MEANINGS[name]} to {name}")
    scores, coins = columns[SCORE], columns[INCLUDED]
    if TRAINING not in columns:
        return [scores], [coins]
    groups = [np.flatnonzero(columns[TRAINING] == training) for training in np.unique(columns[TRAINING])]
    if sum(map(len, groups)) != len(scores):  # such as nan, which equals nothing
        raise ValueError(f"{str(path)!r} must name the training of each canary in its column training")
    if len(coins) != len(scores):
        raise ValueError(f"{str(path)!r} must have one value of included for each of {len(scores)} scores")
    return [scores[group] for group in groups], [coins[group] for group in groups]


def read_sample(path: Path) -> NDArray[Any]:
    """Return the scores of a file of one sample: its column `score`, or its only one; raise ValueError otherwise."""
    columns = _columns(path)
    if INCLUDED in columns:
        raise hinted(
            ValueError(f"{str(path)!r} has a column included"), "give it as the FILE of scores, not as a sample"
        )
    if SCORE not in columns:
        raise ValueError(f"{str(path)!r} must have the column score, it has {', '.join(columns) or 'none'}")
    return columns[SCORE]


def _names(names: Iterable[str]) -> dict[str, str]:
    """Return what the columns are called that have a meaning, by it; ValueError where two have the same."""
    columns: dict[str, str] = {}
    for name in names:
        meaning = _NAMES.get(name.strip().lower())
        if meaning in columns:
            raise ValueError(f"its columns {columns[meaning]!r} and {name!r} mean the same: leave one out")
        if meaning is not None:
            columns[meaning] = name
    return columns


def _columns(path: Path) -> Columns:
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise ValueError(f"a file of scores must end with {', '.join(SUFFIXES)}, got {str(path)!r}")
    with named("cannot read the scores", path):
        check_readable(path, MAX_DATA)
        try:
            return reader(path)
        except (ValueError, TypeError, EOFError, RecursionError, zipfile.BadZipFile, csv.Error) as error:
            raise ValueError(" ".join(str(error).split())[:300]) from None


def _table(path: Path) -> Columns:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    with path.open(newline="", encoding="utf-8-sig") as file:
        head = next(csv.reader(file, delimiter=delimiter), [])
    places = {meaning: head.index(name) for meaning, name in _names(head).items()}
    if not places:
        raise ValueError(f"its first line must name the columns score and included, got {head!r:.100}")
    options: dict[str, Any] = {"delimiter": delimiter, "quotechar": '"', "comments": None, "encoding": "utf-8-sig"}
    columns = [*places.values()]
    converters: dict[str, Any] = {"converters": {places[INCLUDED]: _coin}} if INCLUDED in places else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a file without rows
        try:
            rows: NDArray[np.float64] = np.loadtxt(path, skiprows=1, usecols=columns, ndmin=2, **options)
        except ValueError:  # of coins that are words, which take much longer
            rows = np.loadtxt(path, skiprows=1, usecols=columns, ndmin=2, **options, **converters)
    if not rows.size:
        raise ValueError("it has no rows")
    return dict(zip(places, rows.T, strict=True))


def _coin(text: str) -> float:
    """Return a coin of a table: pandas writes True and False."""
    coin = {"true": 1.0, "false": 0.0}.get(text.strip().lower())
    return float(text) if coin is None else coin


def _npy(path: Path) -> Columns:
    array = np.load(path, allow_pickle=False)
    if array.dtype.names:
        return {meaning: array[name] for meaning, name in _names(array.dtype.names).items()}
    if array.ndim == 2 and array.shape[1] in (2, 3):
        return dict(zip((SCORE, INCLUDED, TRAINING), array.T, strict=False))
    if array.ndim != 1:
        raise ValueError(f"it must hold scores, (m,), or rows of a score and a coin, (m, 2), got {array.shape}")
    return {SCORE: array}


def _npz(path: Path) -> Columns:
    with np.load(path, allow_pickle=False) as arrays:
        return {meaning: arrays[name] for meaning, name in _names(arrays.files).items()}


def _json(path: Path) -> Columns:
    data = parse_json(read_text(path, "scores"))
    if isinstance(data, list) and data and all(isinstance(row, dict) for row in data):
        names = [*_names(data[0]).values()]
        if lacking := next((i for i, row in enumerate(data, 1) if not row.keys() >= set(names)), None):
            raise ValueError(f"row {lacking} lacks one of {', '.join(names)}")
        data = {name: [row[name] for row in data] for name in names}
    if isinstance(data, list):
        data = {SCORE: data}
    if not isinstance(data, dict):
        raise ValueError("it must be an object with lists score and included, or a list of such rows")
    return {meaning: np.asarray(data[name]) for meaning, name in _names(data).items()}


_READERS: dict[str, Callable[[Path], Columns]] = {
    ".csv": _table,
    ".tsv": _table,
    ".npy": _npy,
    ".npz": _npz,
    ".json": _json,
}
