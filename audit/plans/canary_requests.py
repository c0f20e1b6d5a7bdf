"""Requests for scores of canaries: the files that hold them, or the training that gives them."""

from __future__ import annotations

import inspect
from dataclasses import fields
from pathlib import Path
from typing import cast

from ...errors import hinted, takes_no
from ..canaries.score_audit import check_design, of_coins, of_samples
from ..execution.execution import BUDGET
from ..record_types import Design
from ..statistics.canary_scores import CanaryScores
from ..statistics.canary_words import ONE_RUN
from .paths import check_distinct
from .request import Request
from .score_files import read_canaries, read_sample

#: What the scores of canaries are given by.
ONE_OF_BOTH = "give one FILE of scores, or both `inserted` and `held_out`"
#: What every request says.
_ALWAYS_TAKEN = ("target", "epsilon", "delta", "measure", "budget", "untested", "expected", "note", "power")


def given_scores(request: Request) -> CanaryScores:
    """Return the scores of a request's files.

    Raises
    ------
    ValueError
        Without a design, for files that cannot be read or do not fit, and for options that would not be heeded.
    """
    check_design(request.design)
    _refuse_all_but(request, "scores of canaries", "scores", "inserted", "held_out", "design")
    design, seed = cast(Design, request.design), request.budget.seed
    samples = {name: file for name in ("inserted", "held_out") if (file := getattr(request, name)) is not None}
    if (request.scores is None) != (len(samples) == 2) or (request.scores is not None and samples):
        raise hinted(ValueError("the scores are not one sample of each kind"), ONE_OF_BOTH)
    if request.scores is not None:
        return of_coins(design, *read_canaries(Path(request.scores)), seed=seed)
    if design == ONE_RUN:
        of_samples(design, None, None)  # raises
    files = {name: Path(file) for name, file in samples.items()}
    check_distinct(files)
    return of_samples(design, *map(read_sample, files.values()), seed=seed)


def given_training(request: Request, target: object) -> object:
    """Return a target that is a training; raise ValueError for another, and for options that it would not heed."""
    from ...learners.entry import Entry
    from ...mechanisms.library_entry import LibraryEntry
    from ...mechanisms.specimen import Specimen

    if isinstance(target, Entry | Specimen | LibraryEntry) or inspect.isclass(target) or not callable(target):
        raise ValueError(f"`canaries` is for a training, a function of (included, rng): {request.target} is none")
    _refuse_all_but(request, "a training", "canaries", "trainings", "global_random", "reseed")
    return target


def _refuse_all_but(request: Request, subject: str, *allowed: str) -> None:
    """Raise ValueError for an option that is neither allowed nor about every claim."""
    default = Request(target="")
    names = [field.name for field in fields(Request) if field.name not in (*_ALWAYS_TAKEN, *allowed)]
    refused = [name for name in names if getattr(request, name) != getattr(default, name)]
    refused += [name for name in ("runs", "stop") if getattr(request.budget, name) != getattr(BUDGET, name)]
    if refused:
        raise takes_no(f"{request.target} is {subject}", refused)
