"""Where the worlds should differ: the rounds whose losses later actions tell, all looked at in the same runs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from ...learners.abilities import batch_of
from ...learners.blame import blaming
from ...learners.problems.losses import Loss, feedback
from ...learners.protocol import Actions, Learner
from ...mechanisms.draws import Draws, Floats
from ...mechanisms.numerics import rounded
from ..play.pairs import Pair
from ..play.transcripts import play_rounds
from ..spaces.loss_choices import Alphabet

#: Runs that are looked at, at most and at least, and numbers to hold: rounds x arms x runs.
MAX_RUNS, MIN_RUNS, MAX_NUMBERS = 1000, 25, 4_000_000
#: Up to so many rounds this is not needed: only the first one's loss can be told by a later action.
SHORT = 2
#: The probability that some round of a learner whose actions depend on no loss seems influential.
LUCK = 1e-3
#: Extreme losses that are tried, and pairs that are made.
EXTREMES, PAIRS = 2, 3
#: Rounds up to which every two actions are looked at together.
FEW_ROUNDS = 128


def influential_pairs(
    learner: Learner, alphabet: Alphabet, rounds: int, draws: Draws, budget: int, *, with_hidden: bool = False
) -> tuple[list[Pair], Pair | None, int]:
    """Return pairs that differ in rounds that later actions tell of, one that none tells of alone, and the runs spent.

    Who is told all losses may show what opposite ones have alike: a pair that differs in one entry of the first round
    is always among them.

    In every round of every run a coin decides between the losses of two extreme neighbours, so that the same runs say
    of each round how the actions after it depend on it. A leak of one round is found without a try of every round.

    Parameters
    ----------
    draws : Draws
        Of these runs alone.
    budget : int
        Runs at most. Where it is small, for few rounds, or for convex losses none is played.
    with_hidden : bool
        Whether to look for a round that arms tell together, two or all, and none tells alone. The few runs that a pair
        has at first do not show that.
    """
    single_entries = alphabet.single_entries if learner.feedback == "full" else ()
    extremes, batch = (*alphabet.differing[:EXTREMES], *single_entries), batch_of(learner)
    max_runs = min(budget, MAX_RUNS, MAX_NUMBERS // (rounds * learner.arms))
    if max_runs < MIN_RUNS * len(extremes):
        extremes = extremes[:EXTREMES]
    runs = max_runs // len(extremes)
    if runs < MIN_RUNS or rounds <= SHORT or not isinstance(extremes[0][0], np.ndarray):
        return [], None, 0
    influential, hidden = [], []
    for losses in extremes:
        coins, seen = _play(learner, losses, rounds, draws, runs)
        dependence = _dependence(coins, seen)
        threshold = -ndtri(LUCK / (2 * len(coins) * seen.shape[0] * seen.shape[1]))
        order = np.argsort(dependence, kind="stable").tolist()
        strengths = {batch * (t // batch): float(dependence[t]) for t in order if dependence[t] > threshold}
        influential += [(strength, t0, losses) for t0, strength in strengths.items()]
        if with_hidden and seen.dtype == np.bool_ and rounds <= FEW_ROUNDS:
            dependence = _joint_dependence(coins, seen, batch)
            threshold = -ndtri(LUCK / (2 * len(coins) * rounds**2))
            t0 = int(dependence.argmax())
            if dependence[t0] > threshold and batch * (t0 // batch) not in strengths:
                hidden.append((float(dependence[t0]), batch * (t0 // batch), losses))
    influential.sort(key=lambda strength_and_losses: -strength_and_losses[0])
    pattern = alphabet.patterns[0]

    def pair(t0: int, sides: tuple[Loss, Loss]) -> Pair:
        return alphabet.pair(rounds, t0, batch, sides, alphabet.others_in_batch[0], pattern, pattern)

    pairs = [*(pair(t0, sides) for _, t0, sides in influential[:PAIRS]), *(pair(0, sides) for sides in single_entries)]
    strongest = max(hidden, key=lambda strength_and_losses: strength_and_losses[0], default=None)
    return pairs, None if strongest is None else pair(*strongest[1:]), runs * len(extremes)


@blaming
def _play(
    learner: Learner, losses: tuple[Loss, Loss], rounds: int, draws: Draws, runs: int
) -> tuple[Floats, NDArray[Any]]:
    """Return the coins (rounds - 1, runs) in -1 and 1, and what is seen of the actions (rounds, features, runs).

    Of arms it is which one was played.
    """
    coins = np.where(draws.uniform((rounds - 1, runs)) < 0.5, -1.0, 1.0)
    features: list[NDArray[Any]] = []

    def see(t: int, played: Actions) -> None:
        feature = np.arange(learner.arms)[:, None] == played if played.ndim == 1 else played
        features.append(feature)

    def feed(t: int, played: Actions) -> Floats:
        return np.where(coins[t] > 0, *(feedback(loss, played, learner.feedback) for loss in losses))

    play_rounds(learner, draws, runs, rounds, see=see, feed=feed)
    return coins, np.stack(features)


def _standard(seen: NDArray[Any]) -> Floats:
    """Return what was seen around its mean over the runs, in standard deviations."""
    centred = seen - seen.mean(axis=-1, keepdims=True)
    spread = centred.std(axis=-1, keepdims=True)
    scaled: Floats = centred / np.where(spread > 0, spread, 1.0)
    return scaled


def _dependence(coins: Floats, seen: NDArray[Any]) -> Floats:
    """Return by how many standard errors some later feature depends on each coin, at most, (coins,)."""
    runs = coins.shape[1]
    scaled = _standard(seen)
    is_later = np.arange(seen.shape[0]) > np.arange(len(coins))[:, None]
    strongest = np.zeros(len(coins))
    for feature in range(seen.shape[1]):  # one at a time: all of them are as large as rounds times rounds
        score = coins @ scaled[:, feature].T
        np.abs(score, out=score)
        strongest = np.maximum(strongest, score.max(axis=1, initial=0.0, where=is_later))
    return rounded(strongest / np.sqrt(runs))


def _joint_dependence(coins: Floats, seen: NDArray[np.bool_], batch: int) -> Floats:
    """Return by how many standard errors two arms together, or the sum of all, depend on each coin, at most, (coins,).

    Of two arms it is looked at whether they are the same, and whether both are of the first half of the arms. The
    later one comes after the coin; the other one is of another batch, for an arm and its own loss are no leak. Of the
    sum it is looked at whether the number of arms divides it.
    """
    rounds, arms, runs = seen.shape
    played, half = seen.argmax(axis=1), seen[:, : arms // 2].sum(axis=1) * 2.0 - 1.0
    half -= half.mean(axis=1, keepdims=True)
    batches = np.arange(rounds) // batch
    divided = _standard((played.sum(axis=0) % arms == 0).astype(np.float64))
    strongest = np.abs(coins @ divided)
    for t in range(1, rounds):
        for pairs in (half[:t] * half[t], (played[:t] == played[t]).astype(np.float64))[: min(arms - 1, 2)]:
            score = np.abs(coins[:t] @ _standard(pairs).T)
            score[batches[:t, None] == batches[:t]] = 0.0
            strongest[:t] = np.maximum(strongest[:t], score.max(axis=1))
    return rounded(strongest / np.sqrt(runs))
