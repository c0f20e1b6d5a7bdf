"""The zoo: every one-shot mechanism with its claim, its fault if it has one, and the inputs it is audited on."""

from __future__ import annotations

from functools import cache, partial

from ..discrete import DiscreteLaplace
from ..specimen import Inputs, Specimen
from .classic import (
    LaplaceHalfScale,
    LaplaceMechanism,
    LaplaceParallel,
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
    specimen_of_name = {f"mechanisms/{s.name}": s for s in specimens}
    return {name: Specimen(**{**vars(s), "name": name}) for name, s in specimen_of_name.items()}
