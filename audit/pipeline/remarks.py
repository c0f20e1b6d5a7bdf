"""What an audit remarks beside its verdict: what differs between the outputs of two inputs, and noise that is fixed.

Each remark is a fact of fresh runs, told with their number. None bounds anything.
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ...learners.blame import MissingExtra, all_ours, extra_or_reason
from ...learners.protocol import LearnerError
from ...learners.scalar import Scalar
from ...mechanisms.claim import Claim
from ...mechanisms.constant_seeds import watched_seeds
from ...mechanisms.draws import Draws, Floats, Purpose, Stage
from ..encoding.features import Outputs
from ..play.data import DataPair
from ..play.mechanism_runs import join, outputs_of
from ..play.raising import RAISED
from ..play.transcripts import play
from ..verdicts.verdict import Result, Verdict
from .event_statements import NOTHING, Part, columns_of, kind_of_part, value_of_part
from .frame import Choice
from .mechanism_stages import MechanismAudit

if TYPE_CHECKING:
    from .learner_stages import LearnerAudit

#: Runs on each input that a remark is a fact of, and the share of an audit's runs that these are at most.
RUNS, SHARE = 2_000, 1 / 20
#: Runs that show whether any number is drawn.
MIN_RUNS = 8
#: The most columns that are combined, and the most remarks.
MOST_COLUMNS, MOST_REMARKS = 64, 4
#: What is so small beside a column's own size is rounding.
ROUNDING = 1e-9
#: Two spreads differ where their ratio is at least the first, and at least so many standard errors from 1. Equal
#: spreads pass that with a chance far below 1e-6.
RATIO, ERRORS = 1.1, 6.0
#: Part of the draws of remarks: no other stage's block has it.
_PART = 7_000
FIXED_NOISE = "it took no random number from its generator: its noise is fixed"


class Watched(Draws):
    """Draws that know whether any of their generators was used."""

    def __init__(self, *key: int) -> None:
        super().__init__(*key)
        self.handed: list[tuple[np.random.Generator, str]] = []

    def run_generator(self, run: int) -> np.random.Generator:
        """Return the generator of one run."""
        return self._handing_out(super().run_generator(run))

    def stream(self, purpose: Purpose) -> np.random.Generator:
        """Return a fresh generator; that of the labels is the audit's own."""
        generator = super().stream(purpose)
        return generator if purpose is Purpose.LABEL else self._handing_out(generator)

    def _handing_out(self, generator: np.random.Generator) -> np.random.Generator:
        self.handed.append((generator, repr(generator.bit_generator.state)))
        return generator

    @property
    def used(self) -> bool:
        """Whether a generator has moved since it was handed out."""
        return any(repr(generator.bit_generator.state) != before for generator, before in self.handed)


def noise_remarks(target: object, play: Callable[[Draws], object], seed: int) -> list[str]:
    """Return what a few runs of code that is not ours show of its noise: seeds of its own, or no draw at all."""
    if all_ours(target):
        return []
    draws = Watched(seed, Stage.EVIDENCE, 0, _PART)
    with watched_seeds(target) as log:
        try:
            play(draws)
        except LearnerError:  # the audit itself says what it raises
            return []
    seeds = [
        f"it seeds itself with {number} ({file}:{line}): the noise from that seed is the same in every run"
        for file, line, number in log.constant_seeds(MIN_RUNS)
    ]
    return seeds or ([] if draws.used else [FIXED_NOISE])


def with_remarks(audit: LearnerAudit | MechanismAudit, result: Result, choice: Choice) -> Result:
    """Return the result with what runs show of its fault: noise that is fixed, and of a mechanism what differs."""
    target = audit.mechanism if isinstance(audit, MechanismAudit) else audit.learner
    seed, missing, remarks = audit.budget.seed, tuple[MissingExtra, ...](), _other_epsilon(target, audit.claim)
    if not isinstance(audit, MechanismAudit):
        remarks += noise_remarks(target, lambda draws: play(audit.learner, choice.losses, draws, MIN_RUNS), seed)
        return replace(result, remarks=tuple(remarks))
    mechanism, pair = audit.mechanism, choice.inputs
    if not audit.unseeded:
        left, right = (
            noise_remarks(mechanism, partial(_few_outputs, mechanism, data), seed) for data in (pair.left, pair.right)
        )
        remarks += [remark for remark in left if remark in right]
    if audit.claim.raising == "outcome":
        remarks += _always_raises(mechanism, pair, seed)
    if result.verdict is Verdict.FALSIFIED and not getattr(mechanism, "in_step", False):
        look = partial(_differences, audit, result, pair)
        differing, missing = extra_or_reason("what differs", look)
        remarks += differing or []
    return replace(result, remarks=tuple(remarks[:MOST_REMARKS]), missing=(*result.missing, *missing))


def _few_outputs(mechanism: object, data: object, draws: Draws) -> Outputs:
    return outputs_of(mechanism, data, draws, MIN_RUNS)


def _other_epsilon(target: Any, claim: Claim) -> list[str]:
    """Return that code which is not ours has another epsilon of its own than the claim, which does not set it."""
    while hasattr(target, "mechanism"):  # played, read or caught for us
        target = target.mechanism
    if all_ours(target) and not isinstance(target, Scalar):
        return []
    maker, values = (target.user_class, target.parameters) if isinstance(target, Scalar) else (target, {})
    defaults = {} if isinstance(maker, type) else dict(getattr(maker, "__dict__", {}))
    with suppress(Exception):  # what has no signature is named in the error by its repr, which may raise too
        defaults |= {name: parameter.default for name, parameter in inspect.signature(maker).parameters.items()}
    defaults |= values
    epsilons = {name: defaults[name] for name in ("epsilon", "eps") if isinstance(defaults.get(name), int | float)}
    return [
        f"its own {name} is {value:g}, and the claim's epsilon {claim.epsilon:g} does not change it: "
        f"--set {name}={claim.epsilon:g} does"
        for name, value in epsilons.items()
        if claim.measure.is_epsilon and not math.isclose(value, claim.epsilon)
    ]


def _always_raises(mechanism: Callable[..., object], pair: DataPair, seed: int) -> list[str]:
    """Return what a few runs on both inputs raise, where all raise the same: then likely the call itself is wrong."""
    sides = [
        outputs_of(mechanism, data, Draws(seed, Stage.EVIDENCE, 1, _PART + side), MIN_RUNS)
        for side, data in enumerate((pair.left, pair.right))
    ]
    seen = {output if isinstance(output, str) else "" for outputs in sides for output in outputs}
    (first, *later) = seen
    return [f"it {first} in all {MIN_RUNS} runs of each input"] if first.startswith(RAISED) and not later else []


def _differences(audit: MechanismAudit, result: Result, pair: DataPair) -> list[str]:
    runs = max(20, min(RUNS, int(SHARE * audit.budget.runs)))
    sides = [
        outputs_of(audit.mechanism, data, Draws(audit.budget.seed, Stage.EVIDENCE, 0, _PART + side), runs)
        for side, data in enumerate((pair.left, pair.right))
    ]
    has_statement = bool(result.event_in_words) and result.event_in_words != NOTHING
    return list(differences(sides[0], sides[1], single=not has_statement))


def differences(left: Outputs, right: Outputs, *, single: bool = False) -> Iterator[str]:
    """Yield in words what differs between outputs on two inputs, as many of each.

    Parameters
    ----------
    single : bool
        Whether the clearest column is told too, where there are several.
    """
    runs = len(left) if isinstance(left, list) else left.shape[-1]
    parts = columns_of(join([left, right]))
    columns = {
        name: part.astype(np.float64)
        for name, part in parts.items()
        if isinstance(part, np.ndarray) and part.dtype.kind in "if" and np.isfinite(part).all()
    }
    certain: list[str] = []
    for name, part in parts.items():
        if isinstance(part, list):
            certain += _kinds_differ(name, part, runs)
    noisy: dict[str, tuple[Floats, Floats]] = {}
    for name, column in columns.items():
        left_column, right_column = column[:runs], column[runs:]
        if _constant(left_column) and _constant(right_column):
            if abs(left_column[0] - right_column[0]) > ROUNDING * max(1.0, abs(left_column[0])):
                certain.append(f"{name} has no noise: {_sides(left_column[0], right_column[0], runs)}")
        else:
            noisy[name] = left_column, right_column
    combined = list(_without_noise(noisy, runs))
    yield from [*certain, *combined]
    for name, part in parts.items() if not certain and not combined else ():
        if not isinstance(part, np.ndarray) or part.dtype.kind in "iub":
            yield from _on_one_side(name, part, runs)
    for name, (left_column, right_column) in noisy.items():
        if _spreads_differ(left_column, right_column):
            yield (
                f"the spread of {name} differs: {_spread(left_column):.3g} on the left, "
                f"{_spread(right_column):.3g} on the right (mean absolute deviation of {runs:,} runs of each)"
            )
    if single and len(noisy) > 1 and not combined:
        yield from _alone(noisy, runs)


def _kinds_differ(name: str, part: Part, runs: int) -> Iterator[str]:
    """Yield that a part is of one kind in all runs on the left, and of another on the right.

    A part that is missing is told by the key, or by the size, that says so.
    """
    kinds = [set(map(kind_of_part, side)) for side in (part[:runs], part[runs:])]
    if len(kinds[0]) == len(kinds[1]) == 1 and kinds[0] != kinds[1]:
        (left,), (right,) = kinds
        if "missing" not in (left, right) or "present" in (left, right):
            yield f"{name} is {left} on the left and {right} on the right, in all {runs:,} runs of each"


def _on_one_side(name: str, part: Part, runs: int) -> Iterator[str]:
    """Yield the commonest value of a part that one input alone gives, in some of its runs."""
    left, right = (Counter(map(value_of_part, side)) for side in (part[:runs], part[runs:]))
    categories = [
        (count, value, place)
        for place, side, other in (("left", left, right), ("right", right, left))
        for value, count in side.items()
        if value not in other and ERRORS**2 <= count < runs
    ]
    is_key = "present" in left or "present" in right
    if categories and (is_key or not ("missing" in left or "missing" in right)):  # else the key or the size says it
        count, value, place = max(categories)
        yield f"{name} is {value} in {count:,} of {runs:,} runs on the {place}, in none on the other side"


def _sides(left: float, right: float, runs: int) -> str:
    return f"{left:.6g} on the left, {right:.6g} on the right, in all {runs:,} runs of each"


def _constant(column: Floats) -> bool:
    return bool(np.ptp(column) <= ROUNDING * max(1.0, float(np.abs(column).max())))


def _without_noise(noisy: dict[str, tuple[Floats, Floats]], runs: int) -> Iterator[str]:
    """Yield the combinations of columns that have no noise, and differ."""
    names = list(noisy)[:MOST_COLUMNS]
    if len(names) < 2 or 2 * runs <= len(names):
        return
    rows = [np.concatenate([side - side.mean() for side in noisy[name]]) for name in names]
    scales = np.array([max(float(row.std()), 1e-300) for row in rows])
    vectors, _, _ = np.linalg.svd(np.array(rows) / scales[:, None], full_matrices=True)
    sizes = np.linalg.norm(vectors.T @ (np.array(rows) / scales[:, None]), axis=1) / math.sqrt(2 * runs)
    for weights in _reduced(vectors.T[sizes < ROUNDING * 10] / scales):
        weighted = [(name, weight) for name, weight in zip(names, weights, strict=True) if weight]
        values = [sum(weight * noisy[name][side] for name, weight in weighted) for side in (0, 1)]
        size = max(float(np.abs(weight * noisy[name][side]).max()) for name, weight in weighted for side in (0, 1))
        left_mean, right_mean = (float(np.mean(value)) for value in values)
        if len(weighted) > 1 and abs(left_mean - right_mean) > 1e-6 * size:
            terms = " ".join(_term(name, weight, first=not i) for i, (name, weight) in enumerate(weighted))
            left_mean, right_mean = (
                0.0 if abs(value) < ROUNDING * size else value for value in (left_mean, right_mean)
            )
            yield f"{terms} has no noise: {_sides(left_mean, right_mean, runs)}"


def _reduced(basis: Floats) -> Iterator[Floats]:
    """Yield directions that span the same, each with few weights, the first of them 1."""
    rows = basis.copy()
    rank = 0
    for column in range(rows.shape[1] if rows.size else 0):
        place = rank + int(np.abs(rows[rank:, column]).argmax())
        if abs(rows[place, column]) < 1e-9 * np.abs(rows).max():
            continue
        rows[[rank, place]] = rows[[place, rank]]
        rows[rank] /= rows[rank, column]
        for other in range(len(rows)):
            if other != rank:
                rows[other] -= rows[other, column] * rows[rank]
        rank += 1
        if rank == len(rows):
            break
    for row in rows[:rank]:
        yield np.where(np.abs(row) < 1e-7 * np.abs(row).max(), 0.0, row)


def _term(name: str, weight: float, *, first: bool) -> str:
    size = "" if math.isclose(abs(weight), 1.0, rel_tol=1e-6) else f"{abs(weight):.4g} x "
    sign = ("-" if weight < 0 else "") if first else ("- " if weight < 0 else "+ ")
    return f"{sign}{size}{name}"


def _spread(column: Floats) -> float:
    return float(np.abs(column - np.median(column)).mean())


def _spreads_differ(left_column: Floats, right_column: Floats) -> bool:
    spreads, errors = [], []
    for column in (left_column, right_column):
        if 2 * np.unique(column).size < column.size:  # of numbers that repeat the rates say more
            return False
        distances = np.abs(column - np.median(column))
        spreads.append(float(distances.mean()))
        errors.append(float(distances.std() / distances.mean() / math.sqrt(distances.size)))
    log_ratio = abs(math.log(spreads[0] / spreads[1]))
    return log_ratio > math.log(RATIO) and log_ratio > ERRORS * math.hypot(*errors)


def _alone(noisy: dict[str, tuple[Floats, Floats]], runs: int) -> Iterator[str]:
    """Yield the column that shows the input best by itself: its threshold is of other runs than those counted."""
    half, candidates = runs // 2, []
    for name, (left_column, right_column) in noisy.items():
        threshold = float(np.median(np.concatenate([left_column[:half], right_column[:half]])))
        n_above = [int((side[half:] > threshold).sum()) for side in (left_column, right_column)]
        candidates.append((abs(n_above[0] - n_above[1]), name, threshold, n_above))
    difference, name, threshold, n_above = max(candidates)
    rest = runs - half
    if difference > ERRORS * math.sqrt(rest / 2):
        yield (
            f"{name} alone is above {threshold:.4g} in {n_above[0]:,} of {rest:,} runs on the left "
            f"and in {n_above[1]:,} of {rest:,} on the right"
        )
