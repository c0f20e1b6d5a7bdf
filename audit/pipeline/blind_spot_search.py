"""Blind spots are found on weaker targets, whose noise is divided by factors.

The same pair, and the same attacks fitted anew, are tried on the target with its noise divided by a factor. What is
found is a statement about that weaker target: on fresh runs of it the claim was falsified, or was not. The factors
are bisected, so that at most `TESTS` of them are tried; each test has error alpha / `TESTS`, alpha being that of the
audit's own certificate, and its runs are drawn from a seed that nothing else uses. So the chance that any factor of
an audit is called caught although the claim is true of the target so weakened is at most alpha: an error of its own,
beside that of the verdict.

A miss may have two reasons: the attack is blind, or the claim is still true, because the noise is larger than the
claim needs. The second is told by exact laws where there are any.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol

from ...errors import must_be
from ...learners.abilities import has_grid_law
from ...learners.blame import all_ours, extra_or_reason
from ...learners.protocol import Learner
from ...mechanisms.claim import Claim
from ...mechanisms.view import RELEASE, View
from ...mechanisms.weakening import NoiseParameter, NoNoiseError, weakened
from ..execution.execution import Json, seed_beyond
from ..laws.exact import NotExactError, exact_epsilon
from ..laws.sequences import COARSE, FINE
from ..play.data import DataPair
from ..play.pairs import Pair
from ..spaces.families import standard_pairs, unlike
from ..verdicts.blind_spot import LARGEST, BlindSpot
from ..verdicts.verdict import Result
from .frame import Audit, all_runs
from .power_test import FACTORS, PowerTest

#: The tests that a bisection of the factors takes, at most.
TESTS = 4
#: A test's share of the audit's runs, and the runs up to which it has as many as the audit.
SHARE, MIN_RUNS = 0.5, 4_000
#: The seeds of the tests are the audit's own plus this and what follows it.
SEED_SHIFT = 2_000_000
#: Steps of the bisection for the factor at which a claim becomes false, the error of an exact law on a grid, and how
#: near the claim a pair must be on a coarse one for its fine one to decide.
STEPS, TOLERANCE, CLOSE = 6, 1e-3, 0.05

#: From a factor to the target with its noise divided by it.
Weaken = Callable[[float], Any]


@dataclass(frozen=True)
class Weakening:
    """How a target is weakened, and what that changes: "noise", or the parameter that says how much there is."""

    weaken: Weaken
    parameter: str = "noise"

    def through(self, wrap: Callable[[Any], Any]) -> Weakening:
        """Return how something around the target is weakened: as the target is."""
        return replace(self, weaken=lambda factor: wrap(self.weaken(factor)))


#: What `weaken` may be: whether to measure a blind spot, or how the target is weakened.
WeakenChoice = bool | str | Weaken | Weakening | None


def weakening(
    weaken_choice: WeakenChoice, target: object, by_parameter: Callable[[NoiseParameter, float], object]
) -> Weakening | None:
    """Return how to weaken a target; None where faults are planted in its noise, or nothing is measured.

    Parameters
    ----------
    weaken_choice : bool, str, callable, Weakening or None
        The parameter that sets the noise, see `mechanisms.weakening.NoiseParameter`, or what weakens; true or None:
        what is made of this package's parts is weakened by its fields.
    target
        The built target.
    by_parameter : callable
        From a parameter and a factor to the target with it changed.

    Raises
    ------
    ValueError
        If the target cannot be weakened so.
    """
    if weaken_choice is False:
        return None
    if weaken_choice is None or weaken_choice is True:
        return _by_fields(target)
    if isinstance(weaken_choice, Weakening):
        weaken = weaken_choice
    elif callable(weaken_choice):
        weaken = Weakening(weaken_choice)
    elif isinstance(weaken_choice, str):
        weaken = Weakening(partial(by_parameter, NoiseParameter.parse(weaken_choice)), weaken_choice)
    else:
        raise must_be("weaken", "true, false, a parameter's name or a function", weaken_choice)
    weaken.weaken(FACTORS[0])  # what is no parameter is said before the audit, not after
    return weaken


def _by_fields(target: object) -> Weakening | None:
    """Return how a target of our own parts is weakened by its fields: exact laws know it then."""
    if not all_ours(target):
        return None
    try:
        weakened(target, 1.0)
    except NoNoiseError:
        return None
    return Weakening(partial(weakened, target))


def with_blind_spot(
    audit: Audit, target: Any, result: Result, weakening: Weakening | None, power: float | None
) -> Result:
    """Return the result with its blind spot, or why it is missing, where power is asked for and no verdict is final.

    Parameters
    ----------
    target
        What the audit plays.
    power : float or None
        The factor that has to be caught.
    """
    if power is None or result.final or result.rare is not None:
        return replace(result, power=power or LARGEST)
    measured: Callable[[], BlindSpot | None] = PowerTest(audit, target, result.pair, power).measure
    if weakening is not None:
        measured = partial(
            blind_spot, audit, result.pair, weakening.weaken, parameter=weakening.parameter, limit=power
        )
    spot, missing = extra_or_reason("blind spot", measured)
    return replace(result, power=power, blind_spot=spot, missing=(*result.missing, *missing))


def blind_spot(
    audit: Audit, pair: Pair | DataPair, weaken: Weaken, *, parameter: str = "noise", limit: float = LARGEST
) -> BlindSpot:
    """Return what an audit that survived on this pair catches on weaker targets.

    Parameters
    ----------
    audit : Audit
    pair : Pair or DataPair
        The one that the audit certified; its draws are not used again.
    weaken : callable
        From a factor to the target with its noise divided by it.
    parameter : str
        What `weaken` changes, for the record.
    limit : float
        The factor that has to be caught.

    Notes
    -----
    The bisection supposes that a larger factor is caught where a smaller one is. Where that is not so, what is
    returned is still what was tried and seen.
    """
    bounds: dict[float, float] = {}
    low, high = -1, len(FACTORS)  # the audit itself survived; beyond the last factor nothing is known
    tests = _tests(audit)
    while high - low > 1:
        middle = (low + high) // 2
        factor = FACTORS[middle]
        weaker = replace(
            tests.of(weaken(factor)),
            budget=replace(tests.budget, seed=seed_beyond(audit.budget.seed, SEED_SHIFT + middle)),
            execution=tests.execution.inside(f"weaker {factor:g}"),
        )
        bounds[factor] = weaker.once("bound", partial(_bound, weaker, pair))
        low, high = (low, middle) if bounds[factor] > audit.claim.measure.level else (middle, high)
    caught = FACTORS[high] if high < len(FACTORS) else None
    laws: tuple[float | None, float | None] = (None, None)
    if isinstance(pair, Pair) and audit.claim.measure.is_epsilon and (caught is None or caught > limit):
        laws = true_to(audit.claim, pair, weaken, once=audit.once)
    factors = tuple(sorted(bounds.items()))
    return BlindSpot(caught, factors, tests.budget.runs, tests.budget.alpha, parameter, *laws, limit=limit)


def _bound(audit: Audit, pair: object) -> float:
    return all_runs(audit, [pair]).certificate.lower


class Once(Protocol):
    """Returns the JSON that a stage comes to, as it is known or computed now."""

    def __call__(self, stage: str, compute: Callable[[], Json], /) -> Json:
        """Return it."""


def _now(stage: str, compute: Callable[[], Json]) -> Json:
    return compute()


def _tests(audit: Audit) -> Audit:
    """Return the audit with the budget of one test."""
    runs = max(min(audit.budget.runs, MIN_RUNS), int(SHARE * audit.budget.runs))
    return replace(
        audit,
        budget=replace(audit.budget, runs=runs, tests=audit.budget.tests * TESTS),
        execution=replace(audit.execution, progress=False),
    )


def true_to(claim: Claim, pair: Pair, weaken: Weaken, *, once: Once = _now) -> tuple[float | None, float | None]:
    """Return the factors up to which, and from which on, exact laws say that the claim is true, and false.

    Either is None where no exact law says so; the first too where they say that the claim is false as it is. True
    means: on this pair and on the standard ones; at most the largest of `FACTORS`. Each law's epsilon is computed
    `once`, also by runs that are killed in between.
    """
    learner: Learner = weaken(1.0)
    all_pairs = unlike([pair, *standard_pairs(learner, claim, pair.rounds)])

    def at(factor: float, places: Sequence[int]) -> tuple[bool, int] | None:
        """Return whether the claim is true on these pairs, and the worst of them; None where no exact law says."""
        weaker: Learner = weaken(factor)

        def epsilon(view: View, cells: int, i: int) -> float:
            stage = f"true to {factor!r}/{view.name}/{cells}/{i}"
            return once(stage, partial(_exactly, weaker, all_pairs[i], claim, view, cells))

        for view in (claim.view, *([] if claim.view.channel else [RELEASE])):
            rough = COARSE if not view.channel and has_grid_law(weaker) else FINE
            try:
                epsilons = {i: epsilon(view, rough, i) for i in places}
                worst = max(epsilons, key=epsilons.__getitem__)
                # A coarse grid chooses the pairs that may decide: the worst one, and what is near the claim.
                decide = [worst, *(i for i in epsilons if i != worst and epsilons[i] > claim.epsilon - CLOSE)]
                fine = epsilons.__getitem__ if rough == FINE else partial(epsilon, view, FINE)
                true = all(fine(i) <= claim.epsilon * (1 + TOLERANCE) for i in decide)
            except NotExactError:
                continue
            # Actions are computed from a release, so they are as private at least; they may be more so.
            if true or view == claim.view:
                return true, worst
        return None

    true, limit = None, None
    for factor in (1.0, *FACTORS):
        limit = at(factor, range(len(all_pairs)))
        if limit is None or not limit[0]:
            break
        true = factor
    else:
        return true, None
    if limit is None or true is None:
        return true, None if limit is None else factor
    false, places = factor, [limit[1]]
    for _ in range(STEPS):
        middle = math.sqrt(true * false)
        limit = at(middle, places)
        if limit is None:
            break
        true, false = (middle, false) if limit[0] else (true, middle)
    return true, false


def _exactly(learner: Learner, pair: Pair, claim: Claim, view: View, cells: int) -> float:
    return exact_epsilon(learner, pair, view=view, deltas=(claim.delta,), cells=cells)[claim.delta]
