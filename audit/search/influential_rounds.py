"""Where the worlds should differ: the rounds whose losses later actions tell, all looked at in the same runs."""

from __future__ import annotations

import numpy as np
from scipy.special import ndtri

from ...learners.abilities import batch_of
from ...learners.blame import blaming
from ...learners.problems.losses import Loss, feedback
from ...learners.protocol import Actions, Learner
from ...mechanisms.draws import Draws, Floats
from ..play.pairs import Pair
from ..play.transcripts import play_rounds
from ..statistics.bounds.rounding import rounded
from .loss_choices import Alphabet

#: Runs that are looked at, at most and at least, and numbers to hold: rounds x arms x runs.
MOST_RUNS, FEWEST_RUNS, MOST_NUMBERS = 1000, 25, 4_000_000
#: Up to so many rounds this is not needed: only the first one's loss can be told by a later action.
SHORT = 2
#: The probability that some round of a learner whose actions depend on no loss seems influential.
LUCK = 1e-3
#: Extreme losses that are tried, and pairs that are made.
EXTREMES, PAIRS = 2, 3


def influential_pairs(
    learner: Learner, alphabet: Alphabet, rounds: int, draws: Draws, budget: int
) -> tuple[list[Pair], int]:
    """Return pairs that differ in the rounds that later actions tell most of, and the runs spent.

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
    """
    alone = alphabet.alone if learner.feedback == "full" else ()
    extremes, batch = (*alphabet.differing[:EXTREMES], *alone), batch_of(learner)
    most = min(budget, MOST_RUNS, MOST_NUMBERS // (rounds * learner.arms))
    if most < FEWEST_RUNS * len(extremes):
        extremes = extremes[:EXTREMES]
    runs = most // len(extremes)
    if runs < FEWEST_RUNS or rounds <= SHORT or not isinstance(extremes[0][0], np.ndarray):
        return [], 0
    influential = []
    for losses in extremes:
        coins, seen = _play(learner, losses, rounds, draws, runs)
        dependence = _dependence(coins, seen)
        least = -ndtri(LUCK / (2 * len(coins) * seen.shape[0] * seen.shape[1]))
        order = np.argsort(dependence, kind="stable").tolist()
        strengths = {batch * (t // batch): float(dependence[t]) for t in order if dependence[t] > least}
        influential += [(strength, t0, losses) for t0, strength in strengths.items()]
    influential.sort(key=lambda one: -one[0])
    same = alphabet.patterns[0]
    places = [*((t0, both) for _, t0, both in influential[:PAIRS]), *((0, both) for both in alone)]
    pairs = [alphabet.pair(rounds, t0, batch, both, alphabet.others_in_batch[0], same, same) for t0, both in places]
    return pairs, runs * len(extremes)


@blaming
def _play(learner: Learner, losses: tuple[Loss, Loss], rounds: int, draws: Draws, runs: int) -> tuple[Floats, Floats]:
    """Return the coins (rounds - 1, runs) in -1 and 1, and what is seen of the actions (rounds, features, runs)."""
    coins = np.where(draws.uniform((rounds - 1, runs)) < 0.5, -1.0, 1.0)
    features: list[Floats] = []

    def see(t: int, played: Actions) -> None:
        shown = np.arange(learner.arms)[:, None] == played if played.ndim == 1 else played
        features.append(shown.astype(np.float64))

    def feed(t: int, played: Actions) -> Floats:
        return np.where(coins[t] > 0, *(feedback(loss, played, learner.feedback) for loss in losses))

    play_rounds(learner, draws, runs, rounds, see=see, feed=feed)
    return coins, np.stack(features)


def _dependence(coins: Floats, seen: Floats) -> Floats:
    """Return by how many standard errors some later feature depends on each coin, at most, (coins,)."""
    runs = coins.shape[1]
    centred = seen - seen.mean(axis=2, keepdims=True)
    spread = centred.std(axis=2)
    scaled = centred / np.where(spread > 0, spread, 1.0)[..., None]
    later = np.arange(seen.shape[0]) > np.arange(len(coins))[:, None]
    strongest = np.zeros(len(coins))
    for feature in range(seen.shape[1]):  # one at a time: all of them are as large as rounds times rounds
        score = np.einsum("cr,tr->ct", coins, scaled[:, feature])
        np.abs(score, out=score)
        strongest = np.maximum(strongest, score.max(axis=1, initial=0.0, where=later))
    return rounded(strongest / np.sqrt(runs))
