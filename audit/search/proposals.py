"""Pairs proposed by an optimiser: a tree-structured Parzen estimator over a space of pairs (optuna)."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...mechanisms.draws import Draws, Purpose, Stage
from ..play.pairs import Pair
from ..spaces.pair_space import ORDERED, PairSpace

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import Trial

#: Points that the estimator draws for each proposal; the most promising one is taken.
CANDIDATES = 100
#: Successive points without a new pair after which the space counts as exhausted.
PATIENCE = 20
#: What tells the known pairs apart on coordinates with an order: see `Proposals`.
TIE_BREAK = 1e-6


class Proposals:
    """One proposal after the other, each after what the pairs before it have promised.

    The estimator models which points belong to the best tenth, and proposes where that is likeliest: Bergstra,
    Bardenet, Bengio & Kegl 2011, Algorithms for Hyper-Parameter Optimization. The same seed and the same answers give
    the same proposals, on every processor: coordinates with an order are real numbers, rounded to a place, since the
    estimator sorts them, and NumPy's order of equal numbers is another where the processor has AVX-512.
    """

    def __init__(self, space: PairSpace, seed: int) -> None:
        with quiet():
            import optuna

            key = int(Draws(seed, Stage.SEARCH).stream(Purpose.ADVERSARY).integers(2**31))
            sampler = optuna.samplers.TPESampler(seed=key, n_startup_trials=0, n_ei_candidates=CANDIDATES)
            self.study = optuna.create_study(direction="maximize", sampler=sampler)
        self.space = space
        self.values: dict[str, float] = {}  # of known pairs
        self.asked: tuple[Trial, str] | None = None
        distributions = optuna.distributions
        self.coordinates: dict[str, BaseDistribution] = {
            name: distributions.FloatDistribution(-0.5, size - 0.5)
            if name in ORDERED
            else distributions.CategoricalDistribution(tuple(range(size)))
            for name, size in space.sizes.items()
        }

    def know(self, pair: Pair, promise: float) -> None:
        """Take notice of a pair that was tried without having been proposed, once."""
        from optuna.trial import create_trial

        if pair.key in self.values:
            return
        point = self.space.point(pair)
        self.values[pair.key] = promise
        if point is not None:
            offset = TIE_BREAK * len(self.values)
            params = {name: x + offset if name in ORDERED else x for name, x in point.items()}
            self.study.add_trial(create_trial(params=params, distributions=self.coordinates, value=promise))

    def next(self) -> Pair | None:
        """Return a pair that is not known yet; None where the estimator has no other idea."""
        for _ in range(PATIENCE):
            trial = self.study.ask(self.coordinates)
            pair = self.space.pair(self._point(trial.params))
            key = "" if pair is None else pair.key
            if pair is not None and key not in self.values:
                self.asked = trial, key
                return pair
            # Every point of a known pair has that pair's worth; a point whose worlds do not differ has -1.
            self.study.tell(trial, self.values.get(key, -1.0))
        return None

    def _point(self, params: dict[str, float]) -> dict[str, int]:
        """Return the point whose place a trial's numbers lie in; the upper end of the range is the last one's."""
        sizes = self.space.sizes
        return {name: min(math.floor(x + 0.5), sizes[name] - 1) for name, x in params.items()}

    def tell(self, promise: float) -> None:
        """Say what the last proposal promises."""
        assert self.asked is not None
        trial, key = self.asked
        self.values[key] = promise
        self.study.tell(trial, promise)


@contextmanager
def quiet() -> Iterator[None]:
    """Keep optuna from announcing its study on stderr, and leave its logging as it was."""
    from optuna import logging

    before = logging.get_verbosity()
    logging.set_verbosity(logging.ERROR)
    try:
        yield
    finally:
        logging.set_verbosity(before)
