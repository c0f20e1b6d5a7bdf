"""Attacks on learners: a score for each transcript, larger where the left world explains it better.

An attack sees what is released and no more. It may use the learner's law and the pair, or training transcripts; a poor
score costs power, never validity.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import ClassVar, cast

import numpy as np
from numpy.typing import NDArray

from ...learners.abilities import (
    batch_of,
    decisions,
    declares,
    has_grid_law,
    has_noiseless_law,
    inward,
    knows_releases,
)
from ...learners.laws import HasScore, NotEnumerableError, Score
from ...learners.protocol import Actions, HasRelease, Learner
from ...mechanisms.draws import Floats
from ...mechanisms.numerics import rounded
from ...mechanisms.view import View
from ..encoding.features import Columns, Features, LabelledColumns
from ..laws.exact import epsilon_from_laws
from ..laws.sequences import COARSE, check_enumerable, index_of, log_likelihood, sequence_laws, window_laws
from ..play.pairs import Pair
from ..play.transcripts import Transcripts
from .counts import NextArms, PointCounts, few_sequences
from .outputs.interactions import Interacting, interactions
from .outputs.learned import Boosting, nothing
from .outputs.regressions import LinearOdds
from .particle import ParticleRatio
from .protocol import FittedAttack, LawAttack, LearnerAttack, Scorer, log_ratio

#: Arms of a window at most, those before the differing round, and the delta at which windows are compared.
WINDOW, BEFORE, TELLING = 12, (0, 1, 2, 4, 6, 8), 1e-3
#: Training runs below which trees are not grown: while pairs are searched, a regression must do.
FEWEST_BOOSTED = 2000
#: Training runs below which no pair of actions is looked for: what few runs show of one among many is chance.
FEWEST_PAIRED = 100


def _log_ratio(p: Floats, q: Floats) -> Floats:
    with np.errstate(divide="ignore", invalid="ignore"):
        return rounded(np.log(p) - np.log(q))


class SequenceRatio(LawAttack):
    """Exact log-likelihood ratio of the sequence of arms, from its enumerated law with the noise integrated out."""

    name = "sequence likelihood ratio"
    wording = "the whole sequence of arms, with the noise integrated out"

    def __init__(self, learner: Learner, pair: Pair) -> None:
        super().__init__(learner, pair)
        p, q = sequence_laws(learner, pair, cells=COARSE)
        self.table = _log_ratio(p, q)
        #: The score of every sequence with its probability in both worlds: events are chosen from these.
        self.laws = (self.table, p, q)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For sequences few enough to enumerate, of a learner whose law is known."""
        if view.channel:
            return False
        try:
            check_enumerable(learner, pair)
        except NotEnumerableError:
            return False
        return True

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the sequences up."""
        scores: Floats = self.table[index_of(transcripts.actions, self.learner.arms, batch_of(self.learner))]
        return scores


class WindowRatio(LawAttack):
    """Exact log-likelihood ratio of some arms about the differing round, the others integrated out.

    The window that tells most holds no more arms than can be enumerated. A filter looks at all arms, but its noise may
    hide more than the arms beyond the window tell.
    """

    name = "likelihood ratio of a window"
    exact, calibrated = False, True

    def __init__(self, learner: Learner, pair: Pair) -> None:
        super().__init__(learner, pair)
        self.batch = batch_of(learner)
        length, differs = decisions(pair.rounds, self.batch), pair.t0 // self.batch
        best = -1.0
        for before in reversed([before for before in BEFORE if before <= differs]):
            end = min(length, differs - before + WINDOW)
            p, q = window_laws(learner, pair, differs - before, end, cells=COARSE)
            epsilon = float(rounded(epsilon_from_laws(p, q, TELLING), 6))
            if epsilon > best:
                best, self.begin, self.end = epsilon, differs - before, end
                self.table = _log_ratio(p, q)
                self.laws = (self.table, p, q)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For two-armed learners with a grid whose differing round comes before the last decision."""
        batch = batch_of(learner)
        differs_before_last = not view.channel and pair.t0 // batch < decisions(pair.rounds, batch) - 1
        return differs_before_last and has_grid_law(learner) and isinstance(pair.left, np.ndarray)

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the arms of the window up."""
        arms_played = transcripts.actions[:: self.batch][self.begin : self.end]
        scores: Floats = self.table[index_of(arms_played, 2, 1)]
        return scores


class NoiselessRatio(LawAttack):
    """Exact log-likelihood ratio of a learner without noise: replay it on the seen arms in both worlds."""

    name = "replayed likelihood ratio"
    wording = "the arms that were played, replayed in both worlds"

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For learners with `probabilities` and no noise of their own."""
        return not view.channel and has_noiseless_law(learner)

    def score(self, transcripts: Transcripts) -> Floats:
        """Replay; impossible in both worlds is an error of the learner and scores nan, which is never guessed."""
        doubled_actions = np.concatenate([transcripts.actions] * 2, axis=-1)
        worlds = np.repeat([True, False], transcripts.runs)
        left, right = np.split(log_likelihood(self.learner, self.pair, doubled_actions, worlds), 2)
        with np.errstate(invalid="ignore"):
            return rounded(left - right)


class ReleaseRatio(LawAttack):
    """Exact log-likelihood ratio of the noisy quantities: each is a known mean plus noise."""

    name = "release likelihood ratio"
    wording = "the noisy quantities that were released"

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For views of releases, of learners that have one."""
        return bool(view.channel) and knows_releases(learner) and pair.rounds > 1

    def score(self, transcripts: Transcripts) -> Floats:
        """Sum the log density ratios of the noise over the releases."""
        learner = cast(HasRelease, self.learner)  # as `applies` has asked: to ask again takes long
        if transcripts.releases is None:
            return np.zeros(transcripts.runs)
        actions = transcripts.actions
        if actions.ndim == 2:
            actions = actions.astype(np.intp)  # as the learner played them: transcripts hold arms in few bits
        ratio = np.zeros(transcripts.runs)
        updates = max(self.pair.rounds - 1, len(transcripts.releases) * batch_of(learner))
        for world, sign in ((True, 1.0), (False, -1.0)):
            feedback = [
                self.pair.feedback(t, actions[t], learner.feedback, world, actions[:t]) for t in range(updates)
            ]
            means = learner.release_means(actions, transcripts.releases, feedback)
            noise = transcripts.releases - means
            if hasattr(learner, "release_log_density"):
                ratio += sign * learner.release_log_density(noise, actions)
            else:
                ratio += sign * sum(learner.noise.log_density(part) for part in noise)
        return rounded(ratio)


class SequenceTable:
    """Log ratio of smoothed training counts of each sequence of arms."""

    name = "sequence counts"
    exact, trained, calibrated, wording = False, True, False, ""

    def __init__(self, learner: Learner, train: Transcripts) -> None:
        self.arms, self.batch = learner.arms, batch_of(learner)
        index = self._index(train)
        size = self.arms ** decisions(len(train.actions), self.batch)
        self.table = log_ratio(index, train.left, size, 0.5, 0.5)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """For few sequences of arms, or of the points of a finite set."""
        of_finite_set = any(getattr(part, "plays", "") == "finite points" for part in inward(learner))
        return not view.channel and (few_sequences(learner, pair) or of_finite_set)

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Count the training sequences."""
        assert train is not None
        if train.actions.ndim == 2:
            return cls(learner, train)
        try:
            return PointCounts(train)
        except ValueError:  # they are too many
            return Trained.fit(learner, pair, train)

    def _index(self, transcripts: Transcripts) -> NDArray[np.intp]:
        return index_of(transcripts.actions, self.arms, self.batch)

    def score(self, transcripts: Transcripts) -> Floats:
        """Look the sequences up."""
        scores: Floats = self.table[self._index(transcripts)]
        return scores


class Trained:
    """Log odds of a logistic regression on features of the actions (scikit-learn): all, or the few that tell most."""

    name = "logistic regression"
    exact, trained, calibrated, wording = False, True, False, ""

    def __init__(self, arms: int, train: Transcripts) -> None:
        self.arms = arms
        features = self._features(train)
        # A tiny pilot may hold one world only, and a learner with one arm has nothing to tell.
        self.constant = len(set(train.left.tolist())) < 2 or not len(features)
        if not self.constant:
            self.odds = LinearOdds.telling(features.T, train.left)

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """Tell that it always can."""
        return True

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Fit the regression."""
        assert train is not None
        return cls(learner.arms, train)

    def _features(self, transcripts: Transcripts) -> Floats:
        """Return (features, runs): each round's action, neighbouring products, and the releases if seen."""
        actions = transcripts.played(self.arms)
        rows = [actions.reshape(-1, transcripts.runs), (actions[1:] * actions[:-1]).reshape(-1, transcripts.runs)]
        rows.append(actions.sum(axis=0) ** 2)
        if transcripts.releases is not None:
            rows.append(transcripts.releases.reshape(-1, transcripts.runs))
        features: Floats = np.concatenate(rows)
        return features

    def score(self, transcripts: Transcripts) -> Floats:
        """Return the log odds."""
        if self.constant:
            return np.zeros(transcripts.runs)
        return self.odds(transcripts.runs, self._features(transcripts).__getitem__)


class Boosted:
    """Log odds of gradient-boosted trees on the features of black-box outputs (scikit-learn)."""

    name = "gradient boosting"
    exact, trained, calibrated, wording = False, True, False, ""

    def __init__(self, train: Transcripts) -> None:
        columns = self._columns(train)
        #: Of each column's largest number: what is far smaller is no signal but rounding, which trees would split.
        self.exponents = np.frexp(np.abs(columns).max(axis=1, keepdims=True))[1]
        columns = self._cut(columns)
        self.features = Features(columns)
        self.scores = self._learn(self.features.view(columns).labelled(train.left))

    @staticmethod
    def applies(learner: Learner, pair: Pair, view: View) -> bool:
        """Where sequences are too many to count."""
        return not (not view.channel and few_sequences(learner, pair))

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Grow the trees; a regression stands in where the training runs are too few, or all rounds constant."""
        assert train is not None
        if train.runs < FEWEST_BOOSTED or not Features(cls._columns(train)).rows:
            return Trained.fit(learner, pair, train)
        return cls(train)

    def _learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        return Boosting().learn(train)

    @staticmethod
    def _columns(transcripts: Transcripts) -> Floats:
        parts = [transcripts.actions, *([] if transcripts.releases is None else [transcripts.releases])]
        return np.concatenate([np.asarray(part, dtype=float).reshape(-1, transcripts.runs) for part in parts])

    def score(self, transcripts: Transcripts) -> Floats:
        """Return the log odds."""
        return self.scores(self.features.view(self._cut(self._columns(transcripts))))

    def _cut(self, columns: Floats) -> Floats:
        signal: Floats = np.ldexp(rounded(np.ldexp(columns, -self.exponents)), self.exponents)
        return signal


class Paired(Boosted):
    """Log odds of a logistic regression on what two actions say together, or a whole row's remainder; 0 if nothing."""

    name = Interacting.name

    @classmethod
    def fit(cls, learner: Learner, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Look for such pairs, and fit the regression."""
        assert train is not None
        return cls(train) if train.runs >= FEWEST_PAIRED else Scorer(cls.name, lambda seen: np.zeros(seen.runs))

    def _learn(self, train: LabelledColumns) -> Callable[[Columns], Floats]:
        codes = interactions(train)
        return Interacting(codes, stepwise=True).learn(train) if codes else nothing


class DeclaredScore(Score):
    """A score that a learner declares, as an attack on it."""

    trained: ClassVar[bool] = False

    def applies(self, learner: Learner, pair: Pair, view: View) -> bool:
        """Tell that it can: it was declared for this pair."""
        return True

    def fit(self, learner: Learner, pair: Pair, train: Transcripts | None) -> FittedAttack[Transcripts]:
        """Return the score; it needs no training."""
        score = self.prepare()
        return Scorer(self.name, partial(_score_of_actions, score), exact=self.exact, wording=self.wording)


def _score_of_actions(score: Callable[[Actions], Floats], transcripts: Transcripts) -> Floats:
    return score(transcripts.actions)


def declared_scores(learner: Learner, pair: Pair, view: View) -> list[LearnerAttack]:
    """Return the scores that a learner declares of its actions on a pair."""
    if view.channel or not declares(learner, "score"):
        return []
    scores = cast(HasScore, learner).score(pair.left, pair.right, pair.t0)
    return [DeclaredScore(**vars(score)) for score in scores]


#: In order of preference; what a learner declares comes before those that are trained.
ATTACKS: tuple[LearnerAttack, ...] = (
    SequenceRatio,
    NoiselessRatio,
    ReleaseRatio,
    WindowRatio,
    ParticleRatio,
    SequenceTable,
    NextArms,
    Trained,
    Boosted,
    Paired,
)


def attack_of(name: str, learner: Learner, pair: Pair, view: View) -> LearnerAttack | None:
    """Return the attack of a name that applies; None where there is none."""
    candidates: list[LearnerAttack] = [*ATTACKS, *declared_scores(learner, pair, view)]
    return next((attack for attack in candidates if attack.name == name and attack.applies(learner, pair, view)), None)


def applicable(learner: Learner, pair: Pair, view: View) -> list[LearnerAttack]:
    """Return the attacks to try: one exact likelihood ratio, or all that apply, among which the pilot decides."""
    able = [attack for attack in ATTACKS if attack.applies(learner, pair, view)]
    of_law = [attack for attack in able if not attack.trained] + declared_scores(learner, pair, view)
    exact = [attack for attack in of_law if attack.exact]
    return exact[:1] or of_law + [attack for attack in able if attack.trained]
