"""Bandits of mabwiser on rewards with local noise: nobody's claim but ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..claim import Claim
from .entry import Library, LibraryEntry, Mechanism, quietly
from .river import noisy_rewards, rewards

LIBRARY = Library(name="mabwiser", distribution="mabwiser", version="2.7.4", module="mabwiser")
_OURS = (
    "Each reward in [0, 1] gets Laplace noise of scale 1 before the bandit sees it: what it learns is (1, 0)-private."
)


def _policy(name: str, **options: Any) -> Callable[[], Mechanism]:
    def build() -> Mechanism:
        mab = LIBRARY.load("mabwiser.mab")

        def mechanism(data: Any, rng: Any) -> Any:
            policy = getattr(mab.LearningPolicy, name)(**options)
            bandit = mab.MAB(arms=[0, 1], learning_policy=policy, seed=int(rng.integers(2**31)))
            bandit.fit([i % 2 for i in range(len(data))], noisy_rewards(data, rng))
            return [float(value) for _, value in sorted(bandit.predict_expectations().items())]

        return quietly(mechanism)

    return build


ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        library=LIBRARY,
        what=f"{name}-local-noise",
        claim=Claim(epsilon=1.0),
        quotation=_OURS,
        where="overclaim.mechanisms.libraries.mabwiser",
        strategy=rewards,
        build=_policy(name, **options),
        relations=("replace",),
        ours=True,
    )
    for name, options in (("EpsilonGreedy", {"epsilon": 0.1}), ("UCB1", {"alpha": 1.0}))
)
