"""What a learner says of itself, held against what it plays: its probabilities, its batches, its noise.

Exact attacks and exact epsilons trust these. A learner that plays otherwise could leak anything and be called private.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy  # its parts load when first used
from numpy.typing import NDArray

from ...learners.abilities import (
    NoDraws,
    WithoutProbabilities,
    batch_of,
    decisions,
    draws_to_learn,
    has_probabilities,
    is_ours,
    knows_releases,
)
from ...learners.blame import blaming
from ...learners.laws import NotEnumerableError
from ...learners.protocol import Actions, HasProbabilities, HasRelease, Learner, LearnerError
from ...learners.scalar import Scalar
from ...mechanisms.draws import Floats
from ...mechanisms.noise import Gaussian, L2Laplace, Laplace
from ...mechanisms.view import ACTIONS, RELEASE, View
from ..laws.sequences import SUMS, check_enumerable, declared_law_of_arms, index_of
from ..play.pairs import Pair
from ..play.transcripts import play
from .blocks import LearnerBlock, draws_of

#: The probability that a learner which plays what it says is accused, all tests of one check together; whether noise
#: is drawn anew is a check beside that of its law.
FALSE_ALARM = 1e-9
#: Steps (rounds times runs times arms) of the play, and the fewest and most runs.
_STEPS, _FEWEST_RUNS, _MOST_RUNS = 2**16, 8, 4096
#: Arms are compared overall, and by what was played and told so many rounds before.
_LAGS = 3
#: Releases whose noise is compared with each other's at most, exact zeros of it that are too many to be chance, and
#: the step of rounding, as a share of the noise, from which they may be.
_MOST_DRAWS, _FEW_ZEROS, _COARSE = 256, 3, 1e-9
#: The exponents of the supermartingales: small ones see small deviations of many runs, large ones rare events.
_EXPONENTS = 2.0 ** np.arange(-8, 7)


def as_watched(learner: Learner, pair: Pair, seed: int, *, rows: object = None, view: View = ACTIONS) -> Any:
    """Return the learner with the abilities that hold in an audit: `check_stated` decides, and says what it raises.

    Inherited abilities that speak of other methods than it has are not its own: no audit uses them.

    One that offers `probabilities` and was seen to draw while it learned, in whatever round, loses them: the noise is
    no function of the arms and losses, and its audit is that of any other learner.
    """
    return WithoutProbabilities(learner) if _held(learner, pair, seed, rows, view, is_own=True).draws else learner


def check_stated(learner: Learner, pair: Pair, seed: int, *, rows: object = None, view: View = ACTIONS) -> bool:
    """Raise LearnerError if a learner plays otherwise than its abilities say.

    Its next arm must follow `probabilities`, in every round, for every arm, and whatever was played and told before;
    where it learns without draws, the probabilities must be functions of the arms and feedback that `update` was
    given, as exact attacks replay them; an arm must be held for `batch` rounds; and in views of releases what
    it releases must be `release_means` plus `noise`.

    Parameters
    ----------
    pair : Pair
        Half of the runs play its worlds.
    rows : array (choices, arms), optional
        Extreme loss vectors: in the other half of the runs every round's is one of these or of the pair's, at random.
    view : View
        What the attacks see.

    Returns
    -------
    bool
        Whether there was anything to hold it to.

    Notes
    -----
    Given the past, the arms of a round are independent Bernoulli trials with the stated probabilities, so for every
    x > 0 the exponential of x times the excess of plays less (e^x - 1 - x) times their variance is a supermartingale
    (Freedman 1975), whatever the losses: the test is exact. Noise is compared by the inequality of Dvoretzky, Kiefer
    and Wolfowitz with Massart's constant. Each check accuses a true learner with probability at most 1e-9.
    """
    return _held(learner, pair, seed, rows, view, is_own=False).anything


@dataclass(frozen=True)
class _Held:
    """Whether there was anything to hold a learner to, and whether it drew to learn where it seemed not to."""

    anything: bool
    draws: bool = False


@blaming
def _held(learner: Learner, pair: Pair, seed: int, rows: object, view: View, *, is_own: bool) -> _Held:
    """Hold a learner to what it says, as `check_stated`."""
    if isinstance(learner, Scalar):  # a plain class says nothing of itself
        return _Held(False)
    name = type(learner).__name__
    has_law, batch, has_means = _offered(learner, is_own)
    releases = bool(view.channel) and has_means and not hasattr(learner, "release_log_density")
    if releases:
        _check_noise(learner, pair, seed, name)
    law = not view.channel and _check_law(learner, pair, seed, name)
    if not has_law and batch == 1:
        return _Held(releases or law)
    seen = _watch(learner, pair, rows, seed, has_law, batch)
    if seen is not None:
        _check_batches(seen.actions, batch, name)
        if has_law:
            _check_arms(seen, name)
    return _Held(releases or law or seen is not None, seen is not None and seen.draws)


def _check_law(learner: Learner, pair: Pair, seed: int, name: str) -> bool:
    """Hold a learner's arms to the law of their sequences that it declares; return whether it declares one.

    Ours are held to their laws by tests.
    """
    try:
        check_enumerable(learner, pair)
        law = None if is_ours(learner) else declared_law_of_arms(learner, pair)
        laws = None if law is None else law.laws()
    except NotEnumerableError:
        return False
    if laws is None:
        return False
    batch = batch_of(learner)
    size = learner.arms ** decisions(pair.rounds, batch)
    runs = max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // pair.rounds))
    played = play(learner, pair, draws_of(seed, LearnerBlock.LAW), runs)
    sequences = index_of(played.actions, learner.arms, batch)
    threshold = np.log(4 * size * len(_EXPONENTS) / FALSE_ALARM)
    for side, law_of_side in zip((True, False), laws, strict=True):
        if law_of_side.shape != (size,) or not abs(float(law_of_side.sum()) - 1) < SUMS:
            raise LearnerError(
                f"{name}.law must give {size} probabilities that sum to 1: one of each sequence of arms"
            )
        seen = np.bincount(sequences[played.left == side], minlength=size)
        expected = seen.sum() * law_of_side
        evidence = _log_supermartingale(seen - expected, expected * (1 - law_of_side))
        if evidence.max() > threshold:
            i = int(evidence.argmax())
            raise LearnerError(
                f"{name} plays otherwise than its law says: sequence {i} of arms has probability {law_of_side[i]:.4g} "
                f"by what it says, but a share of {seen[i] / seen.sum():.4g} of {seen.sum():,} plays"
            )
    return True


def _offered(learner: Learner, is_own: bool) -> tuple[bool, int, bool]:
    """Return whether it says its probabilities, its batch, and whether it says the means of its releases."""
    if is_own:
        return has_probabilities(learner), batch_of(learner), knows_releases(learner)
    inner = getattr(learner, "inner", None)
    has_law = isinstance(learner, HasProbabilities) and (inner is None or isinstance(inner, HasProbabilities))
    return has_law, int(getattr(learner, "batch", 1)), isinstance(learner, HasRelease)


@dataclass
class _Seen:
    actions: NDArray[np.intp]  # (rounds, runs)
    shown_losses: Floats  # (rounds, runs): the loss of the arm that was played
    probabilities: Floats  # (rounds, arms, runs)
    draws: bool = False  # to learn, where it is replayed without


def _watch(learner: Any, pair: Pair, rows: object, seed: int, has_law: bool, batch: int) -> _Seen | None:
    """Play, and note what is said before each round; None for points."""
    rounds, arms = pair.rounds, learner.arms
    runs = max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // (rounds * arms)))
    feed = _adversary(learner, pair, rows, seed, runs)
    draws = draws_of(seed, LearnerBlock.DECLARED)
    state = learner.start(runs, draws)
    replayed = learner.start(runs, NoDraws(0)) if has_law and not draws_to_learn(learner) else None
    seen = _Seen(np.empty((rounds, runs), np.intp), np.zeros((rounds, runs)), np.zeros((rounds, arms, runs)))
    for t in range(rounds):
        if has_law:
            seen.probabilities[t] = _probabilities(learner, state, (arms, runs), t)
        if replayed is not None and t % batch == 0:
            replayed_law = learner.probabilities(replayed)
            if not np.allclose(replayed_law, seen.probabilities[t], rtol=0, atol=1e-9):
                raise LearnerError(
                    f"{type(learner).__name__}.probabilities(state) depends on more than the arms and feedback that "
                    f"update was given (round {t + 1}): act must not change what it says, nor update learn from else"
                )
        played = learner.act(state, draws)
        if played.ndim == 2:
            return None
        seen.actions[t] = played
        if t == rounds - 1:
            break
        fed = feed(t, played)
        seen.shown_losses[t] = fed if fed.ndim == 1 else np.broadcast_to(fed, (arms, runs))[played, np.arange(runs)]
        learner.update(state, played, fed.copy(), draws)
        if replayed is not None:
            try:
                learner.update(replayed, seen.actions[t].copy(), fed.copy(), NoDraws(0))
            except NotEnumerableError:
                replayed, seen.draws = None, True
    return seen


def _adversary(learner: Learner, pair: Pair, rows: object, seed: int, runs: int) -> Callable[[int, Actions], Floats]:
    """Return what tells the learner: half of the runs the pair's losses, half extreme ones at random."""
    draws = draws_of(seed, LearnerBlock.ADVERSARY)
    left = draws.labels(runs, 0.5)
    past: list[Actions] = []
    choices = None
    if isinstance(pair.left, np.ndarray) and isinstance(pair.right, np.ndarray):
        sets = [pair.left, pair.right, *([] if rows is None else [np.asarray(rows, dtype=float)])]
        choices = np.unique(np.concatenate(sets), axis=0)

    def feed(t: int, played: Actions) -> Floats:
        losses = pair.feedback(t, played, learner.feedback, left, past)
        if choices is None:
            past.append(played.copy())  # for adaptive losses
            return losses
        vectors = choices[draws.generator.integers(len(choices), size=runs)]
        varied = vectors.T if learner.feedback == "full" else vectors[np.arange(runs), played]
        return np.where(np.arange(runs) % 2 == 0, losses, varied)

    return feed


def _probabilities(learner: Any, state: object, shape: tuple[int, int], t: int) -> Floats:
    values = np.asarray(learner.probabilities(state), dtype=float)
    subject = f"{type(learner).__name__}.probabilities(state) must"
    if values.shape != shape:
        raise LearnerError(f"{subject} have shape (arms, runs) = {shape}, got {values.shape} in round {t + 1}")
    if not (np.isfinite(values).all() and (values >= 0).all()):
        raise LearnerError(f"{subject} be at least 0, got {values[~(values >= 0)][0]:g} in round {t + 1}")
    sums = values.sum(axis=0)
    if (np.abs(sums - 1) > 1e-6).any():
        raise LearnerError(
            f"{subject} sum to 1 over the arms, got {sums[np.abs(sums - 1).argmax()]:g} in round {t + 1}"
        )
    return values


def _check_batches(actions: NDArray[np.intp], batch: int, name: str) -> None:
    for t in range(1, len(actions)):
        changes = int((actions[t] != actions[t - 1]).sum())
        if t % batch and changes:
            raise LearnerError(
                f"{name} has batch = {batch}, which says that an arm is held for so many rounds, but in round {t + 1} "
                f"{changes} of {actions.shape[1]} runs played another arm than in round {t}"
            )


@dataclass
class _Stratum:
    """Plays with one kind of past, in each of some rounds: sums (rounds, arms) over the runs."""

    kind: str
    rounds: list[str]
    runs: Floats
    played: Floats
    probabilities: Floats
    variance: Floats

    def pooled(self) -> _Stratum:
        """Return the same for all its rounds together."""
        all_rounds = [f"{self.rounds[0]} to {self.rounds[-1].removeprefix('round ')}"]
        sums = (self.runs, self.played, self.probabilities, self.variance)
        return _Stratum(self.kind, all_rounds, *(values.sum(axis=0, keepdims=True) for values in sums))


def _check_arms(seen: _Seen, name: str) -> None:
    strata = list(_strata(seen))
    tests = sum(s.runs.size + s.runs.shape[1] for s in strata)
    threshold = np.log(2 * tests * len(_EXPONENTS) / FALSE_ALARM)
    for stratum in (*strata, *(s.pooled() for s in strata)):  # a round says more than all together
        evidence = _log_supermartingale(stratum.played - stratum.probabilities, stratum.variance)
        t, arm = np.unravel_index(evidence.argmax(), evidence.shape)
        if evidence[t, arm] > threshold:
            runs = stratum.runs[t, arm]
            raise LearnerError(
                f"{name} plays otherwise than its probabilities(state) say: in {stratum.rounds[t]} arm {arm} has "
                f"probability {stratum.probabilities[t, arm] / runs:.4g} by what it says, but a share of "
                f"{stratum.played[t, arm] / runs:.4g} of {int(runs):,} plays{stratum.kind}"
            )


def _log_supermartingale(excess: Floats, variance: Floats) -> Floats:
    """Return the log of the largest supermartingale, for each entry."""
    with np.errstate(invalid="ignore", over="ignore"):
        x = _EXPONENTS.reshape(-1, *[1] * excess.ndim)
        values: Floats = (x * np.abs(excess) - (np.exp(x) - 1 - x) * variance).max(axis=0)
    return values


def _strata(seen: _Seen) -> Iterator[_Stratum]:
    """Yield sums over all runs; over those where an arm is called likely, or not; and over those of one kind of past.

    The kinds: the arm, or another, was played so many rounds before, at a high loss, or a low one.
    """
    rounds, arms, _ = seen.probabilities.shape
    hits = (seen.actions[:, None] == np.arange(arms)[:, None]).astype(float)
    values = hits, seen.probabilities, seen.probabilities * (1 - seen.probabilities)
    names = [f"round {t + 1}" for t in range(rounds)]
    losses = seen.shown_losses[: max(1, rounds - 1)]
    high = seen.shown_losses > (losses.min() + losses.max()) / 2
    yield _Stratum("", names, *_sums(np.ones_like(hits), *values))
    for likely, word in ((True, "likely"), (False, "unlikely")):
        mask = ((seen.probabilities > 1 / arms) == likely).astype(float)
        yield _Stratum(f" where it was called {word}", names, *_sums(mask, *values))
    for lag in range(1, min(_LAGS, rounds - 1) + 1):
        before, level = hits[:-lag], high[:-lag, None]
        ago = "the round before" if lag == 1 else f"{lag} rounds before"
        for is_same, is_high in product((True, False), repeat=2):
            mask = ((before == is_same) & (level == is_high)).astype(float)
            kind = (
                f" where {'it' if is_same else 'another'} was played {ago}, at a {'high' if is_high else 'low'} loss"
            )
            yield _Stratum(kind, names[lag:], *_sums(mask, *(value[lag:] for value in values)))


def _sums(mask: Floats, *values: Floats) -> list[Floats]:
    """Return how many runs a mask (rounds, arms, runs) holds, and the sums of values over them."""
    return [mask.sum(axis=-1), *(np.einsum("tkn,tkn->tk", mask, value) for value in values)]


def _check_noise(learner: Any, pair: Pair, seed: int, name: str) -> None:
    """Compare what is released, less its mean, with the law of the noise."""
    runs = max(_FEWEST_RUNS, min(_MOST_RUNS, _STEPS // (pair.rounds * learner.arms)))
    transcripts = play(learner, pair, draws_of(seed, LearnerBlock.NOISE), runs, view=RELEASE)
    if transcripts.releases is None:
        return
    actions = transcripts.actions.astype(np.intp) if transcripts.actions.ndim == 2 else transcripts.actions
    losses = [
        pair.feedback(t, actions[t], learner.feedback, transcripts.left, actions[:t]) for t in range(pair.rounds - 1)
    ]
    noise = transcripts.releases - learner.release_means(actions, transcripts.releases, losses)
    bare = ~noise.any(axis=-1)  # what is released beside the noisy quantities, as it is
    if not isinstance(learner.noise, L2Laplace) and not bare.all():
        noise = noise[~bare]
    values = _distribution(learner.noise, noise)
    if values is None:
        return
    # Where a release is far larger than its noise, rounding may leave none.
    if np.spacing(np.abs(transcripts.releases).max()) < _COARSE * np.median(np.abs(noise)):
        _check_missing(noise, name)
    _check_anew(values, learner.noise, name)
    values = np.sort(values.ravel())
    ranks = np.arange(values.size + 1) / values.size
    gap = max(np.abs(values - ranks[1:]).max(), np.abs(values - ranks[:-1]).max())
    if gap > np.sqrt(np.log(2 / FALSE_ALARM) / (2 * values.size)):
        raise LearnerError(
            f"{name} does not release its release_means plus its noise: among {values.size:,} releases the share of "
            f"values below some level is {gap:.3g} off that of {learner.noise}"
        )


def _check_missing(noise: Floats, name: str) -> None:
    """Refuse noise that is missing now and then: too seldom to change the share of values below a level."""
    if (missing := int(np.count_nonzero(noise == 0))) >= _FEW_ZEROS:
        raise LearnerError(f"{name} releases {missing} of {noise.size:,} of its release_means without noise")


def _check_anew(values: Floats, law: object, name: str) -> None:
    """Refuse noise of two coordinates or rounds that goes together, and that of one which has another law.

    Parameters
    ----------
    values : array (..., runs)
        The law's distribution function of what was drawn: uniform, and independent, if it is drawn as is stated.
    """
    shares = 2 * values.reshape(-1, values.shape[-1])[:_MOST_DRAWS] - 1
    # In [-1, 1] of mean 0, as products of two that are independent are: Hoeffding's inequality. Alike in size is too.
    for signal in (shares, 2 * np.abs(shares) - 1):
        means, products = np.abs(signal.mean(axis=1)), np.abs(np.triu(signal @ signal.T / signal.shape[1], 1))
        max_mean = np.sqrt(2 / signal.shape[1] * np.log(4 * products.size / FALSE_ALARM))
        if means.max() > max_mean:  # so may be products of what does not go together
            raise LearnerError(
                f"{name} does not release its release_means plus its noise: among {len(signal)} released numbers in "
                f"their order the noise of number {means.argmax() + 1} has another law than {law}"
            )
        if products.max() > max_mean:
            first, second = np.unravel_index(int(products.argmax()), products.shape)
            raise LearnerError(
                f"{name} does not draw its noise anew: that of {first + 1} and of {second + 1}, of {len(signal)} "
                f"released numbers in their order, goes together"
            )


def _distribution(noise: object, x: Floats) -> Floats | None:
    """Return the noise law's distribution function at its values, or at the norms of vectors; None if it has none."""
    if isinstance(noise, L2Laplace) and noise.dim > 1 and noise.scale > 0:
        return np.asarray(scipy.special.gammainc(noise.dim, np.sqrt(np.square(x).sum(axis=1)) / noise.scale))
    if isinstance(noise, Gaussian) and noise.sigma > 0:
        return np.asarray(scipy.special.ndtr(x / noise.sigma))
    if isinstance(noise, Laplace | L2Laplace) and noise.scale > 0:
        tail = 0.5 * np.exp(-np.abs(x) / noise.scale)
        return np.where(x < 0, tail, 1 - tail)
    return None
