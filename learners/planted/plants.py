"""Planted bugs: sound learners and mechanisms, each beside versions of it with one known fault.

Everything here is a batched mechanism `f(data, draws, runs) -> outputs`, so that the same black-box audit judges all:
what a learner releases on the losses `data`, or a mechanism's answer to `data`. `bug` names the fault, "" is none.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ...errors import must_be_one_of
from ...mechanisms.draws import Draws
from .planted_learners import bandit, experts, reduction
from .planted_mechanisms import ball, batches, choosing, counting, gaussian, noisy_max, prefix_sums, response

Play = Callable[..., object]


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A sound thing with its claim and its worst known pair, and the bugs that can be planted in it.

    Attributes
    ----------
    name : str
    play : callable
        `play(data, draws, runs, bug=...)`.
    left, right : JSON
        Neighbouring inputs.
    delta : float
        Of the claim; its epsilon is 1.
    bugs : mapping
        From the bug's name to what it does.
    """

    name: str
    play: Play
    left: object
    right: object
    bugs: dict[str, str]
    delta: float = 0.0


@dataclass(frozen=True)
class Planted:
    """A subject with one bug, as the black-box audit calls it."""

    play: Play
    bug: str = ""
    batched: bool = True

    def __call__(self, data: object, draws: Draws, runs: int) -> object:
        """Return the outputs of a block of runs."""
        return self.play(data, draws, runs, bug=self.bug)


SUBJECTS = (
    Subject(
        name="Laplace count",
        play=counting,
        left=[1],
        right=[0],
        bugs={
            "noise halved": "half the scale",
            "noise variance for scale": "variance 1 taken for scale 1",
            "sign lost": "only positive noise",
            "noise clipped": "noise cut at two scales",
            "noise rounded": "noise rounded, the sum not",
            "uniform noise": "uniform noise of the same variance",
            "noise dropped at times": "no noise in one run of twenty",
        },
    ),
    Subject(
        name="Gaussian vector",
        play=gaussian,
        left=[1 / 3] * 9,
        right=[0.0] * 9,
        delta=0.01,
        bugs={
            "constant forgotten": "sigma without sqrt(2 ln(1.25 / delta))",
            "noise over root dim": "noise divided by sqrt(dim)",
        },
    ),
    Subject(
        name="L2 ball",
        play=ball,
        left=[1.0, 0.0, 0.0],
        right=[-1.0, 0.0, 0.0],
        bugs={
            "norm for difference": "the largest norm instead of the largest difference",
            "radius without dimension": "the radius drawn as if in one dimension",
            "coordinates alone": "Laplace noise of too small a scale on each coordinate",
        },
    ),
    Subject(
        name="tree of prefix sums",
        play=prefix_sums,
        left=[1, 0, 0, 0, 0, 0, 0, 0],
        right=[0, 0, 0, 0, 0, 0, 0, 0],
        bugs={
            "off by one level": "noise for one level less",
            "natural logarithm": "ln T instead of log2 T",
            "not composed": "noise as if a value were in one node",
            "leaves without noise": "no noise at the first leaf",
            "node reused": "one draw of noise for all nodes",
            "fresh noise on a prefix": "each prefix sum treated as one count",
            "padding returned": "the previous exact sum comes out a round later",
        },
    ),
    Subject(
        name="tree of two values",
        play=prefix_sums,
        left=[1, 0],
        right=[0, 0],
        bugs={"root released too": "the last prefix sum is released, which is one more node"},
    ),
    Subject(
        name="batch means",
        play=batches,
        left=[3.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        right=[0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        bugs={
            "noise halved": "half the scale",
            "divided twice": "the noise divided by the batch twice",
            "sum for mean": "the batch's sum with the noise of its mean",
            "noise reused": "the same draw in every batch",
            "missing in one batch": "no noise in the first batch",
            "seed shared by the rounds": "a generator of the same seed in every batch",
            "only where positive": "no noise on a mean of 0",
            "antithetic": "every second draw is the first one, negated",
            "loss not clipped": "a loss of 3 where 1 is the largest",
        },
    ),
    Subject(
        name="bandit reduction",
        play=reduction,
        left=[[1, 1], [0, 0]],
        right=[[-1, -1], [0, 0]],
        bugs={
            "norm for difference": "noise for the largest loss, not for the largest difference",
            "noise divided by three": "a third of the noise",
            "noise after learning": "the inner learner sees the exact loss",
            "first arm without noise": "<Z, x> leaves the first arm out",
            "first round without noise": "the noise starts in round 2",
        },
    ),
    Subject(
        name="batched EXP3",
        play=bandit,
        left=[[1, 1], [0, 0], [0, 0], [0, 0]],
        right=[[0, 0], [0, 0], [0, 0], [0, 0]],
        bugs={
            "noise of a longer batch": "scaled as if an arm were held twice as long",
            "inner learner alone": "EXP3 is taken to be private by itself",
        },
    ),
    Subject(
        name="FTRL over experts",
        play=experts,
        left=[[1, 0], [0, 0]],
        right=[[0, 1], [0, 0]],
        bugs={
            "one coordinate's sensitivity": "sensitivity 1 for two coordinates",
            "off by one level": "noise for one level less",
        },
    ),
    Subject(
        name="randomised response",
        play=response,
        left=0,
        right=1,
        bugs={
            "two categories assumed": "the probability for two categories, with four",
            "keep or any": "the probability for epsilon 2",
        },
    ),
    Subject(
        name="exponential mechanism",
        play=choosing,
        left=[1, 0, 0, 0],
        right=[0, 1, 1, 1],
        bugs={"factor 2 forgotten": "exp(u) instead of exp(u / 2)", "base 10": "10^(u / 2) instead of exp(u / 2)"},
    ),
    Subject(
        name="report noisy max",
        play=noisy_max,
        left=[0, 0, 2],
        right=[1, 1, 1],
        bugs={"noise shared": "one draw of noise for all candidates"},
    ),
    Subject(
        name="report noisy max of five",
        play=noisy_max,
        left=[2, 2, 2, 2, 2],
        right=[1, 1, 1, 1, 1],
        bugs={"value released too": "the noisy value comes out with its place"},
    ),
)


def planted(subject: Subject, bug: str) -> Planted:
    """Return a subject with one bug, or sound where `bug` is empty."""
    if bug and bug not in subject.bugs:
        raise must_be_one_of("bug", subject.bugs, bug)
    return Planted(subject.play, bug)
