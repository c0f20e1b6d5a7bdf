"""Shrinking: the one loop by which every counterexample becomes simpler, and the certificates of what it ends with.

As in property-based testing, a counterexample is worth more the simpler it is. Every step is judged by an exact
epsilon, or by a trial audit that must falsify with little doubt: among many trials some are lucky. The last one is
then certified on runs that nothing before has seen; if it fails, less simple ones of those that were accepted. At most
`CERTIFICATES` are certified, each on fresh runs of its own and at alpha / `CERTIFICATES`, so that the one which is
shown is wrong with probability at most alpha, however many failed before it. Where all fail, the audit's own
counterexample is shown with the audit's own certificate, which was there before and needs no further share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from ..execution.execution import Budget, seed_beyond
from .verdict import Result, Verdict

#: The seed of the first certificate is the audit's own plus this; trials and other certificates use later ones. No
#: stream is drawn twice.
SEED_SHIFT = 1_000_000
#: The most pairs that are certified.
CERTIFICATES = 3
#: The doubt of a trial: it must falsify with this alpha, so that a pair which passes by luck is still a good one.
TRIAL_ALPHA = 1e-6
#: A trial has this part of the runs.
PART = 4
#: The most runs of a trial and of a certificate.
TRIAL_RUNS, CERTIFIED_RUNS = 20_000, 200_000

Candidate = TypeVar("Candidate")
Judged = TypeVar("Judged", contravariant=True)


class Judge(Protocol[Judged]):
    """Tells whether the claim is still falsified on something simpler."""

    @property
    def spent(self) -> bool:
        """Whether nothing more may be tried."""

    def __call__(self, simpler: Judged, /) -> bool:
        """Judge it."""


def simplified(
    current: Candidate, simpler: Callable[[Candidate], Iterable[Candidate]], judge: Judge[Candidate]
) -> Candidate:
    """Return what is left when nothing simpler falsifies: the first that does takes the place of what it came from.

    Parameters
    ----------
    thing
        On which the claim is falsified.
    simpler : callable
        From it to what is simpler, the boldest first.
    judge : Judge
    """
    while True:
        for candidate in simpler(current):
            if judge.spent:
                return current
            if judge(candidate):
                current = candidate
                break
        else:
            return current


def to_certify(accepted: Sequence[Candidate]) -> list[Candidate]:
    """Return what to certify in turn: the last that was accepted, and a half and a quarter of the way to it."""
    places = dict.fromkeys(len(accepted) * share // 4 for share in (4, 2, 1))
    return [accepted[place - 1] for place in places if place > 0][:CERTIFICATES]


def certified_in_turn(
    accepted: Sequence[Candidate],
    audited: Callable[[Candidate, Budget, str], Result | None],
    budget: Budget,
    most_trials: int,
) -> tuple[Candidate, Budget, Result] | None:
    """Return the first of those `to_certify` that falsifies on fresh runs, the budget and the audit; None if none.

    They share the error of `budget`, whose seed is that of the audit that found the witness. `audited` is told the
    name of a stage too.
    """
    for i, smaller in enumerate(to_certify(accepted)):
        seed = seed_beyond(budget.seed, SEED_SHIFT + (i and most_trials + i))  # beyond those of the trials
        share = Budget(budget.runs, seed, 1 - budget.alpha / CERTIFICATES)
        result = audited(smaller, share, f"shrunk {i}")
        if result is not None and result.verdict is Verdict.FALSIFIED:
            return smaller, share, result
    return None


def certified_of(result: Result) -> dict[str, Any]:
    """Return what a shrunk witness says of a certificate: the bound and the claim, in their own measure too."""
    measure = result.claim.measure
    stated: dict[str, Any] = {} if measure.is_epsilon else {"lower": result.lower, "measure": measure.to_json()}
    return {"epsilon_lower": result.epsilon_lower, "claimed": result.claim.epsilon, **stated}
