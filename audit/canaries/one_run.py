"""Audit with one run: every round is a canary, its loss one of two by a fair coin. A smoke test, not an audit.

References
----------
.. [1] T. Steinke, M. Nasr, M. Jagielski. Privacy auditing with one (1) training run. NeurIPS 2023,
   arXiv:2305.08846, Theorem 5.2 and Algorithm of Appendix D.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import must_be
from ...learners.abilities import batch_of
from ...learners.blame import blaming
from ...learners.problems.losses import feedback
from ...learners.protocol import Actions, Learner
from ...mechanisms.claim import Claim
from ...mechanisms.draws import Draws, Floats, Stage
from ...mechanisms.view import ACTIONS
from ..execution.execution import check_confidence
from ..execution.progress import meter
from ..play.pairs import differing_losses
from ..play.transcripts import play_rounds
from ..statistics.bounds import intervals
from ..statistics.bounds.one_run import epsilon_one_run, one_run_p_value
from ..verdicts.blind_spot import NOT_SEEN, TOO_FEW, Reason
from ..verdicts.verdict import Verdict, decide, too_few

_FEWEST = 50  # guesses that are worth making


@dataclass(frozen=True)
class OneRun:
    """The outcome of a one-run audit.

    Attributes
    ----------
    verdict : Verdict
    epsilon_lower : float
        The certified lower bound on epsilon, in nats.
    p_value : float
        Of the claim.
    right, guesses, canaries : int
        Right guesses, guesses made, coins thrown.
    rounds, seed : int
    confidence : float
        1 - alpha.
    reason : str or None
        Why the verdict is UNDERPOWERED.
    """

    verdict: Verdict
    epsilon_lower: float
    p_value: float
    right: int
    guesses: int
    canaries: int
    rounds: int
    seed: int
    confidence: float
    reason: Reason | None = None

    def to_json(self) -> dict[str, object]:
        """Return what `overclaim smoke --json` prints."""
        return {**asdict(self), "verdict": self.verdict.value}


@blaming
def smoke_test(learner: Learner, claim: Claim, *, rounds: int, seed: int = 0, confidence: float = 0.99) -> OneRun:
    """Test a privacy claim with a single run of many rounds.

    Every round's loss is one of two extreme neighbours, by a fair coin of its own. Each coin is guessed from the arms
    played in its round and next; how, and for which neighbours, is learned in practice runs of the same length. Points
    are guessed by the side of the next one: the learner moves away from what cost it. The number of guesses is fixed
    before the run, and those with the best odds are made.

    **Validity**: as `one_run_p_value` says; it holds for actions, linear losses that do not adapt, and either
    neighbour relation. **Power**: it sees a learner whose next action depends on few losses, as in small batches. A
    cumulative learner hides every coin among the others, and survives whatever its epsilon.

    Parameters
    ----------
    learner : Learner
    claim : Claim
    rounds : int
        The horizon.
    seed : int
        Non-negative.
    confidence : float
        In (0, 1).

    Raises
    ------
    ValueError
        If the conditions do not hold, a parameter is outside its range, or no later action depends on any round.
    LearnerError
        If the learner misbehaves.
    """
    check_confidence(confidence)
    if not claim.measure.is_epsilon:
        raise ValueError(f"one run tests claims of an epsilon, got {claim.measure!r}")
    if claim.view != ACTIONS:
        raise ValueError(f"one run is guessed from actions, got the surface {claim.surface!r}")
    if claim.losses == "lipschitz":
        raise ValueError("one run is for linear losses, got convex ones (lipschitz): audit the claim by check")
    if learner.arms < 2:
        raise ValueError(f"one run needs at least 2 arms to guess from, got {learner.arms!r}")
    batch = batch_of(learner)
    canaries = (rounds - 1) // batch * batch
    if canaries < 1:
        raise must_be("rounds", f"more than {batch}, for a later action to guess from", rounds)
    practised = [
        _practise(learner, sides, _run(learner, sides, rounds, canaries, Draws(seed, Stage.TRAIN, i)))
        for i, sides in enumerate(differing_losses(claim, learner.arms))
    ]
    rule = max(practised, key=lambda rule: rule.worth)
    left, codes = _run(learner, rule.sides, rounds, canaries, Draws(seed, Stage.CERTIFY))
    scores = rule.odds(codes)
    guesses = max(1, int(rule.share * canaries))
    guessed = np.argsort(-np.abs(scores), kind="stable")[:guesses]
    right = int(np.count_nonzero((scores[guessed] > 0) == left[guessed]))
    game, alpha = {"delta": claim.delta}, 1 - confidence
    bound = epsilon_one_run(right, guesses, canaries, alpha=alpha, **game)
    ceiling = epsilon_one_run(canaries, canaries, canaries, alpha=alpha, **game)  # a perfect attack guesses all
    reason: Reason | None = TOO_FEW if too_few(claim, guesses, alpha, ceiling=ceiling) else None
    if reason is None:  # the paired run: every coin is the other one
        paired = _run(learner, rule.sides[::-1], rounds, canaries, Draws(seed, Stage.CERTIFY))[1]
        reason = NOT_SEEN if np.array_equal(paired, codes) else None
    verdict = decide(claim, bound, guesses, alpha, ceiling=ceiling, reason=reason)
    return OneRun(
        verdict=verdict,
        reason=reason if verdict is Verdict.UNDERPOWERED else None,
        epsilon_lower=bound,
        p_value=one_run_p_value(right, guesses, canaries, claim.epsilon, claim.delta),
        right=right,
        guesses=guesses,
        canaries=canaries,
        rounds=rounds,
        seed=seed,
        confidence=confidence,
    )


@dataclass(frozen=True)
class _Rule:
    """How coins are guessed: fixed by practice."""

    sides: tuple[Floats, Floats]
    table: Floats | None  # the log odds of the left loss for each pair of arms; None for points
    share: float
    worth: float

    def odds(self, played: Actions) -> Floats:
        """Return the evidence for the left loss, (canaries,)."""
        if self.table is not None:
            known: Floats = self.table[played[0], played[1]]
            return known
        away = self.sides[1] - self.sides[0]
        leans: Floats = played[1] @ (away - (away.max() + away.min()) / 2)
        return leans


def _practise(learner: Learner, sides: tuple[Floats, Floats], run: tuple[NDArray[np.bool_], Actions]) -> _Rule:
    """Return the rule for these neighbours, with the bound that it promises."""
    left, played = run
    table = None
    if played.ndim == 2:
        counts = np.full((2, learner.arms, learner.arms), 0.5)
        np.add.at(counts, (left.astype(int), *played), 1)
        table = np.log(counts[1] / counts[0])
    scores = _Rule(sides, table, 1.0, 0.0).odds(played)
    order = np.argsort(-np.abs(scores), kind="stable")
    rights = np.cumsum(((scores > 0) == left)[order])
    tried = np.unique(np.geomspace(min(_FEWEST, left.size), left.size, 16).astype(int))
    # One standard error is taken off: the rights of the run that the odds were learned from flatter.
    hoped = np.maximum(0, rights[tried - 1] - np.sqrt(tried) / 2).astype(int)
    worth = np.asarray(intervals.epsilon_guess(hoped, tried, tried, alpha=0.5)) - 1 / np.sqrt(tried)
    best = int(np.argmax(worth))
    return _Rule(sides, table, float(tried[best] / left.size), float(worth[best]))


def _run(
    learner: Learner, sides: tuple[Floats, Floats], rounds: int, canaries: int, draws: Draws
) -> tuple[NDArray[np.bool_], Actions]:
    """Return the coins of one run, and the actions of each canary's round and of the next decision: (2, canaries)."""
    coins = draws.labels(rounds)
    losses, actions = np.where(coins[:, None], *sides), []

    played_so_far = meter(rounds)

    def see(t: int, played: Actions) -> None:
        actions.append(played[..., 0])
        played_so_far(t + 1)

    def feed(t: int, played: Actions) -> Floats:
        return feedback(losses[t], played, learner.feedback)

    play_rounds(learner, draws, 1, rounds, see=see, feed=feed, updates=rounds)
    batch, now = batch_of(learner), np.arange(canaries)
    listed = np.stack(actions)
    return coins[:canaries], np.stack([listed[now], listed[now // batch * batch + batch]])
