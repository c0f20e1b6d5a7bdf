"""What an audit remarks beside its verdict: what differs between the outputs of two inputs, and noise that is fixed.

Each remark is a fact of fresh runs, told with their number. None bounds anything.
"""

from __future__ import annotations

import inspect
import math
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
from .event_statements import NOTHING, Part, columns_of, kind_of_part
from .frame import Choice
from .mechanism_stages import MechanismAudit

if TYPE_CHECKING:
    from .learner_stages import LearnerAudit

#: Runs on each input that a remark is a fact of, and the share of an audit's runs that these are at most.
RUNS, SHARE = 2_000, 1 / 20
#: Runs that show whether any number is drawn.
FEW = 8
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
        made = super().stream(purpose)
        return made if purpose is Purpose.LABEL else self._handing_out(made)

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
        for file, line, number in log.constant_seeds(FEW)
    ]
    return seeds or ([] if draws.used else [FIXED_NOISE])


def with_remarks(audit: LearnerAudit | MechanismAudit, result: Result, choice: Choice) -> Result:
    """Return the result with what runs show of its fault: noise that is fixed, and of a mechanism what differs."""
    target = audit.mechanism if isinstance(audit, MechanismAudit) else audit.learner
    seed, missing, found = audit.budget.seed, tuple[MissingExtra, ...](), _other_epsilon(target, audit.claim)
    if not isinstance(audit, MechanismAudit):
        found += noise_remarks(target, lambda draws: play(audit.learner, choice.losses, draws, FEW), seed)
        return replace(result, remarks=tuple(found))
    mechanism, pair = audit.mechanism, choice.inputs
    if not audit.unseeded:
        left, right = (
            noise_remarks(mechanism, partial(_few_outputs, mechanism, data), seed) for data in (pair.left, pair.right)
        )
        found += [remark for remark in left if remark in right]
    if audit.claim.raising == "outcome":
        found += _always_raises(mechanism, pair, seed)
    if result.verdict is Verdict.FALSIFIED and not getattr(mechanism, "in_step", False):
        look = partial(_differences, audit, result, pair)
        more, missing = extra_or_reason("what differs", look)
        found += more or []
    return replace(result, remarks=tuple(found[:MOST_REMARKS]), missing=(*result.missing, *missing))


def _few_outputs(mechanism: object, data: object, draws: Draws) -> Outputs:
    return outputs_of(mechanism, data, draws, FEW)


def _other_epsilon(target: Any, claim: Claim) -> list[str]:
    """Return that code which is not ours has another epsilon of its own than the claim, which does not set it."""
    while hasattr(target, "mechanism"):  # played, read or caught for us
        target = target.mechanism
    if all_ours(target) and not isinstance(target, Scalar):
        return []
    made, values = (target.user_class, target.parameters) if isinstance(target, Scalar) else (target, {})
    known = {} if isinstance(made, type) else dict(getattr(made, "__dict__", {}))
    with suppress(Exception):  # what has no signature is named in the error by its repr, which may raise too
        known |= {name: one.default for name, one in inspect.signature(made).parameters.items()}
    known |= values
    own = {name: known[name] for name in ("epsilon", "eps") if isinstance(known.get(name), int | float)}
    return [
        f"its own {name} is {value:g}, and the claim's epsilon {claim.epsilon:g} does not change it: "
        f"--set {name}={claim.epsilon:g} does"
        for name, value in own.items()
        if claim.measure.is_epsilon and not math.isclose(value, claim.epsilon)
    ]


def _always_raises(mechanism: Callable[..., object], pair: DataPair, seed: int) -> list[str]:
    """Return what a few runs on both inputs raise, where all raise the same: then likely the call itself is wrong."""
    sides = [
        outputs_of(mechanism, data, Draws(seed, Stage.EVIDENCE, 1, _PART + side), FEW)
        for side, data in enumerate((pair.left, pair.right))
    ]
    seen = {output if isinstance(output, str) else "" for outputs in sides for output in outputs}
    (first, *others) = seen
    return [f"it {first} in all {FEW} runs of each input"] if first.startswith(RAISED) and not others else []


def _differences(audit: MechanismAudit, result: Result, pair: DataPair) -> list[str]:
    runs = max(20, min(RUNS, int(SHARE * audit.budget.runs)))
    sides = [
        outputs_of(audit.mechanism, data, Draws(audit.budget.seed, Stage.EVIDENCE, 0, _PART + side), runs)
        for side, data in enumerate((pair.left, pair.right))
    ]
    worded = bool(result.event_in_words) and result.event_in_words != NOTHING
    return list(differences(sides[0], sides[1], alone=not worded))


def differences(left: Outputs, right: Outputs, *, alone: bool = False) -> Iterator[str]:
    """Yield in words what differs between outputs on two inputs, as many of each.

    Parameters
    ----------
    alone : bool
        Whether the clearest column is told too, where there are several.
    """
    runs = len(left) if isinstance(left, list) else left.shape[-1]
    parts = columns_of(join([left, right]))
    columns = {
        name: part.astype(np.float64)
        for name, part in parts.items()
        if isinstance(part, np.ndarray) and part.dtype.kind in "if" and np.isfinite(part).all()
    }
    for name, part in parts.items():
        if isinstance(part, list):
            yield from _kinds_differ(name, part, runs)
    noisy: dict[str, tuple[Floats, Floats]] = {}
    for name, column in columns.items():
        one, other = column[:runs], column[runs:]
        if _constant(one) and _constant(other):
            if abs(one[0] - other[0]) > ROUNDING * max(1.0, abs(one[0])):
                yield f"{name} has no noise: {_sides(one[0], other[0], runs)}"
        else:
            noisy[name] = one, other
    combined = list(_without_noise(noisy, runs))
    yield from combined
    for name, (one, other) in noisy.items():
        if _spreads_differ(one, other):
            yield (
                f"the spread of {name} differs: {_spread(one):.3g} on the left, {_spread(other):.3g} on the right "
                f"(mean absolute deviation of {runs:,} runs of each)"
            )
    if alone and len(noisy) > 1 and not combined:
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
    left_over, _, _ = np.linalg.svd(np.array(rows) / scales[:, None], full_matrices=True)
    sizes = np.linalg.norm(left_over.T @ (np.array(rows) / scales[:, None]), axis=1) / math.sqrt(2 * runs)
    for weights in _reduced(left_over.T[sizes < ROUNDING * 10] / scales):
        used = [(name, weight) for name, weight in zip(names, weights, strict=True) if weight]
        values = [sum(weight * noisy[name][side] for name, weight in used) for side in (0, 1)]
        size = max(float(np.abs(weight * noisy[name][side]).max()) for name, weight in used for side in (0, 1))
        mine, other = (float(np.mean(value)) for value in values)
        if len(used) > 1 and abs(mine - other) > 1e-6 * size:
            terms = " ".join(_term(name, weight, first=not i) for i, (name, weight) in enumerate(used))
            mine, other = (0.0 if abs(value) < ROUNDING * size else value for value in (mine, other))
            yield f"{terms} has no noise: {_sides(mine, other, runs)}"


def _reduced(basis: Floats) -> Iterator[Floats]:
    """Yield directions that span the same, each with few weights, the first of them 1."""
    rows = basis.copy()
    done = 0
    for column in range(rows.shape[1] if rows.size else 0):
        place = done + int(np.abs(rows[done:, column]).argmax())
        if abs(rows[place, column]) < 1e-9 * np.abs(rows).max():
            continue
        rows[[done, place]] = rows[[place, done]]
        rows[done] /= rows[done, column]
        for other in range(len(rows)):
            if other != done:
                rows[other] -= rows[other, column] * rows[done]
        done += 1
        if done == len(rows):
            break
    for row in rows[:done]:
        yield np.where(np.abs(row) < 1e-7 * np.abs(row).max(), 0.0, row)


def _term(name: str, weight: float, *, first: bool) -> str:
    size = "" if math.isclose(abs(weight), 1.0, rel_tol=1e-6) else f"{abs(weight):.4g} x "
    sign = ("-" if weight < 0 else "") if first else ("- " if weight < 0 else "+ ")
    return f"{sign}{size}{name}"


def _spread(column: Floats) -> float:
    return float(np.abs(column - np.median(column)).mean())


def _spreads_differ(one: Floats, other: Floats) -> bool:
    spreads, errors = [], []
    for column in (one, other):
        if 2 * np.unique(column).size < column.size:  # of numbers that repeat the rates say more
            return False
        away = np.abs(column - np.median(column))
        spreads.append(float(away.mean()))
        errors.append(float(away.std() / away.mean() / math.sqrt(away.size)))
    apart = abs(math.log(spreads[0] / spreads[1]))
    return apart > math.log(RATIO) and apart > ERRORS * math.hypot(*errors)


def _alone(noisy: dict[str, tuple[Floats, Floats]], runs: int) -> Iterator[str]:
    """Yield the column that shows the input best by itself: its threshold is of other runs than those counted."""
    half, found = runs // 2, []
    for name, (one, other) in noisy.items():
        cut = float(np.median(np.concatenate([one[:half], other[:half]])))
        above = [int((side[half:] > cut).sum()) for side in (one, other)]
        found.append((abs(above[0] - above[1]), name, cut, above))
    apart, name, cut, above = max(found)
    rest = runs - half
    if apart > ERRORS * math.sqrt(rest / 2):
        yield (
            f"{name} alone is above {cut:.4g} in {above[0]:,} of {rest:,} runs on the left and in {above[1]:,} of "
            f"{rest:,} on the right"
        )
