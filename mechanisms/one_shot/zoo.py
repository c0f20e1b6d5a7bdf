"""The zoo: every one-shot mechanism with its claim, its fault if it has one, and the inputs it is audited on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache, partial
from typing import Any

from ..discrete import DiscreteLaplace
from ..measures.approximate import ApproxDP
from ..measures.measure import Measure
from .classic import (
    LaplaceHalfScale,
    LaplaceMechanism,
    LaplaceParallel,
    Mechanism,
    NoisyHistogram1,
    NoisyHistogram2WrongScale,
    NoisyMax1,
    NoisyMax2,
    NoisyMax3ReleasesValue,
    NoisyMax4ReleasesValue,
    PrefixSum,
    TruncatedGeometric,
)
from .concentrated import (
    AnalyticGaussian,
    AnalyticGaussianSigmaForVariance,
    DiscreteGaussianMechanism,
    DiscreteGaussianSigmaForVariance,
    GaussianForTwiceRho,
    GaussianMechanism,
    SquareRootSums,
    SquareRootSumsForAddRemove,
    TreeSumsForAddRemove,
    TreeSumsGaussian,
)
from .randomised_response import OneTimeRappor, Rappor
from .sparse_vector import (
    NumericalSparseVector,
    SparseVector1,
    SparseVector2,
    SparseVector3ReleasesValue,
    SparseVector4UnscaledNoise,
    SparseVector5NoQueryNoise,
    SparseVector6NoLimit,
    SparseVector34Parallel,
)
from .tree_sums import TreeSumsDiscrete, TreeSumsNaive

Inputs = tuple[Sequence[float], Sequence[float]]


def patterns(dimension: int, *, differ: str) -> tuple[Inputs, ...]:
    """Return the standard neighbouring inputs of Ding et al. 2018, which DP-Sniper uses too.

    Parameters
    ----------
    dimension : int
        The number of query answers.
    differ : str
        "one" answer differs by at most 1, or "all" may.
    """
    n, half = dimension, dimension // 2
    rest = n - half
    ones = [1] * n
    pairs = [(ones, [0] + [1] * (n - 1)), (ones, [2] + [1] * (n - 1))]
    if differ == "all" and n > 1:
        pairs += [
            (ones, [2] + [0] * (n - 1)),
            (ones, [0] + [2] * (n - 1)),
            (ones, [2] * half + [0] * rest),
            (ones, [2] * n),
            (ones, [0] * n),
            ([1] * half + [0] * rest, [0] * half + [1] * rest),
        ]
    return tuple(pairs)


@dataclass(frozen=True, kw_only=True)
class Specimen:
    """A mechanism of the zoo.

    Attributes
    ----------
    name : str
        Its target on the command line, `mechanisms/...`.
    make : type
        Its class, a dataclass; its fields are its parameters.
    epsilon : float
        The default of its parameter epsilon, if it has one.
    fault : str
        What is broken; empty if nothing is.
    bits : bool
        Whether only the low-order bits of its outputs show the fault: in real arithmetic the claim is true.
    dimension : int
        The number of query answers in its inputs.
    differ : str
        "one" or "all": which answers of neighbouring inputs differ.
    source : str
    inputs : tuple of (left, right)
        The neighbouring inputs, where they are none of the standard ones.
    """

    name: str
    make: type[Any]
    epsilon: float = 1.0
    fault: str = ""
    bits: bool = False
    dimension: int = 1
    differ: str = "one"
    source: str = ""
    inputs: tuple[Inputs, ...] = ()

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of its parameters."""
        return tuple(field.name for field in fields(self.make))

    def build(self, epsilon: float | None = None, **parameters: object) -> Mechanism:
        """Return the mechanism; one that has no parameter epsilon, as RAPPOR with its rates, takes no notice of it."""
        if "epsilon" in self.parameters:
            parameters["epsilon"] = self.epsilon if epsilon is None else epsilon
        mechanism: Mechanism = self.make(**parameters)
        return mechanism

    def claimed(self, epsilon: float | None = None, **parameters: object) -> float:
        """Return the claimed epsilon."""
        return claim_of(self.build(epsilon, **parameters)).stated[0]

    @property
    def pairs(self) -> tuple[Inputs, ...]:
        """The neighbouring inputs to search."""
        return self.inputs or patterns(self.dimension, differ=self.differ)

    @property
    def expected(self) -> str:
        """The expected verdict of an audit of the claim, with its bits where only they show the fault."""
        return "falsified" if self.fault else "survived"


def claim_of(mechanism: Any) -> Measure:
    """Return what a mechanism of the zoo claims: its own statement where it has one, else its parameter epsilon."""
    own: Measure | None = getattr(mechanism, "measure", None)
    claimed = getattr(mechanism, "claimed", None)
    return own or ApproxDP(mechanism.epsilon if claimed is None else claimed)


#: Neighbouring inputs of prefix sums over [-1, 1]: the first, the fifth or the last of eight values is replaced.
_REPLACED: tuple[Inputs, ...] = tuple(
    ([0.0] * t + [1.0] + [0.0] * (7 - t), [0.0] * t + [-1.0] + [0.0] * (7 - t)) for t in (0, 4, 7)
)
_BUN, _ROOT = "Bun & Steinke 2016, Proposition 1.6", "Fichtenberger, Henzinger & Upadhyay 2023"
_DING, _LYU = "Ding et al. 2018, Algorithm {}", "Lyu, Su & Li 2017, Algorithm {}"
_SNIPER, _SHADOW = "Bichsel et al. 2021", "Wang et al. 2019"
_VALUE = "releases the noisy maximum, not its index"


_histogram = partial(Specimen, dimension=5)
_maximum = partial(Specimen, dimension=5, differ="all")
_vector = partial(Specimen, dimension=10, differ="all")


def _concentrated() -> list[Specimen]:
    """Return those whose claims are not an epsilon, or not of one alone."""
    return [
        Specimen(name="gaussian", make=GaussianMechanism, source=_BUN),
        Specimen(name="gaussian-twice-rho", make=GaussianForTwiceRho, fault="the noise of 2 rho"),
        Specimen(
            name="discrete-gaussian",
            make=DiscreteGaussianMechanism,
            source="Canonne, Kamath & Steinke 2020, Theorem 4",
        ),
        Specimen(
            name="discrete-gaussian-sigma-for-variance",
            make=DiscreteGaussianSigmaForVariance,
            fault="the variance for the standard deviation",
        ),
        Specimen(name="analytic-gaussian", make=AnalyticGaussian, source="Balle & Wang 2018, Theorem 8"),
        Specimen(
            name="analytic-gaussian-sigma-for-variance",
            make=AnalyticGaussianSigmaForVariance,
            fault="the standard deviation for the variance",
        ),
        Specimen(name="tree-sums-gaussian", make=TreeSumsGaussian, inputs=_REPLACED, source="Chan, Shi & Song 2011"),
        Specimen(
            name="tree-sums-add-remove",
            make=TreeSumsForAddRemove,
            inputs=_REPLACED,
            fault="noise for a value that is added or removed, not replaced",
        ),
        Specimen(name="square-root-sums", make=SquareRootSums, inputs=_REPLACED, source=_ROOT),
        Specimen(
            name="square-root-sums-add-remove",
            make=SquareRootSumsForAddRemove,
            inputs=_REPLACED,
            fault="noise for a value that is added or removed, not replaced",
        ),
    ]


def _sparse_vectors() -> list[Specimen]:
    """Return the sparse vector techniques."""
    return [
        _vector(name="svt1", make=SparseVector1, source=_LYU.format(1)),
        _vector(name="svt2", make=SparseVector2, source=_LYU.format(2)),
        _vector(
            name="svt3", make=SparseVector3ReleasesValue, fault="releases the compared noise", source=_LYU.format(3)
        ),
        _vector(name="svt4", make=SparseVector4UnscaledNoise, fault="query noise too small", source=_LYU.format(4)),
        _vector(name="svt5", make=SparseVector5NoQueryNoise, fault="no query noise, no limit", source=_LYU.format(5)),
        _vector(name="svt6", make=SparseVector6NoLimit, fault="no limit on answers above", source=_LYU.format(6)),
        _vector(name="numerical-svt", make=NumericalSparseVector, source=_SHADOW),
        _vector(
            name="svt34-parallel", make=SparseVector34Parallel, fault="two broken variants at once", source=_SNIPER
        ),
    ]


@cache
def zoo() -> dict[str, Specimen]:
    """Return the specimens by name."""
    specimens = [
        Specimen(name="laplace", make=LaplaceMechanism, source="Dwork et al. 2006"),
        Specimen(name="laplace-half-scale", make=LaplaceHalfScale, fault="half the noise"),
        Specimen(name="discrete-laplace", make=DiscreteLaplace, source="Canonne, Kamath & Steinke 2020, Algorithm 2"),
        Specimen(
            name="tree-sums",
            make=TreeSumsNaive,
            fault="double-precision noise, seen with --bits",
            bits=True,
            dimension=8,
            source="Agarwal & Singh 2017, Algorithms 1 and 2; Mironov 2012",
        ),
        Specimen(
            name="tree-sums-discrete", make=TreeSumsDiscrete, dimension=8, source="Canonne, Kamath & Steinke 2020"
        ),
        Specimen(name="laplace-parallel", make=LaplaceParallel, source=_SNIPER),
        Specimen(name="truncated-geometric", make=TruncatedGeometric, source="Balcer & Vadhan 2018, Algorithm 4.8"),
        _histogram(name="noisy-histogram-1", make=NoisyHistogram1, source=_DING.format(9)),
        _histogram(
            name="noisy-histogram-2",
            make=NoisyHistogram2WrongScale,
            epsilon=0.5,  # at 1 the wrong scale is the right one
            fault="scale epsilon, not 1 / epsilon",
            source=_DING.format(10),
        ),
        _maximum(name="noisy-max-1", make=NoisyMax1, source=_DING.format(5)),
        _maximum(name="noisy-max-2", make=NoisyMax2, source=_DING.format(6)),
        _maximum(name="noisy-max-3", make=NoisyMax3ReleasesValue, fault=_VALUE, source=_DING.format(7)),
        _maximum(name="noisy-max-4", make=NoisyMax4ReleasesValue, fault=_VALUE, source=_DING.format(8)),
        *_concentrated(),
        *_sparse_vectors(),
        Specimen(name="rappor", make=Rappor, source="Erlingsson et al. 2014, Theorem 2"),
        Specimen(name="one-time-rappor", make=OneTimeRappor, source="Erlingsson et al. 2014"),
        Specimen(name="prefix-sum", make=PrefixSum, dimension=10, source=_SHADOW),
        _vector(
            name="prefix-sum-all", make=PrefixSum, fault="noise for one changed answer, all change", source=_SHADOW
        ),
    ]
    named = {f"mechanisms/{s.name}": s for s in specimens}
    return {name: Specimen(**{**vars(s), "name": name}) for name, s in named.items()}
