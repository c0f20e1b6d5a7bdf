"""Opacus 1.6: one step of its optimisers, from fresh weights, with every record in the batch."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from ..claim import Claim
from ..library_entry import Finding, Library, LibraryEntry, Mechanism, Strategy, quietly

LIBRARY = Library(name="opacus", distribution="opacus", version="1.6.0", module="opacus", needs="torch")
#: Of noise multiplier 1: what the accountant that `PrivacyEngine` takes by default, `PRVAccountant`, says after one step
#: with sample rate 1 at this delta, rounded up. The Gaussian mechanism's own is 2.3178.
_CLAIM = Claim(epsilon=2.3282, delta=0.01)
#: The same of noise multiplier 2.
_SMALLER_CLAIM = Claim(epsilon=0.9297, delta=0.01)
_QUOTATION = "A model trained with (epsilon, delta)-differential privacy (DP) protects privacy of any one training example, no matter how strange, ill-fitting, or perfect this example is."
_WHERE = "Opacus' FAQ, What does epsilon=1.1 really mean?; epsilon and delta by PRVAccountant"
_NONE_FOUND = "nothing was found in their tracker."
_ADAPTIVE: dict[str, Any] = {
    "target_unclipped_quantile": 0.5,
    "clipbound_learning_rate": 0.2,
    "max_clipbound": 10.0,
    "min_clipbound": 0.1,
    "unclipped_num_std": 2.0,
}


def _step(
    name: str,
    reduction: str = "mean",
    norm: object = 1.0,
    noise: float = 1.0,
    with_bound: bool = False,
    **options: object,
) -> Callable[[float], Mechanism]:
    """Return what fits y to w x by one step from w = 0 with rate 1, and releases w, on request with the clipping bound."""

    def build(factor: float) -> Mechanism:
        kind, wrapped = getattr(LIBRARY.load("opacus.optimizers"), name), LIBRARY.load().GradSampleModule
        torch = LIBRARY.load("torch")

        def mechanism(data: object, rng: np.random.Generator) -> object:
            model = wrapped(torch.nn.Linear(1, 1, bias=False), loss_reduction=reduction)
            (weight,) = model.parameters()
            with torch.no_grad():
                weight.zero_()
            optimizer = kind(
                torch.optim.SGD([weight], lr=1.0),
                noise_multiplier=noise / factor,
                max_grad_norm=norm,
                expected_batch_size=1,
                loss_reduction=reduction,
                generator=torch.Generator().manual_seed(int(rng.integers(2**63))),
                **options,
            )
            x, y = torch.tensor(data, dtype=torch.float32).reshape(-1, 2, 1).unbind(1)  # also where there is none
            losses = (model(x) - y) ** 2
            (losses.mean() if reduction == "mean" else losses.sum()).backward()
            optimizer.step()
            return [weight.item(), float(optimizer.max_grad_norm)] if with_bound else weight.item()

        return quietly(mechanism)

    return build


def _rows(min_rows: int) -> Strategy:
    """Return the strategy of records (x, y)."""

    def strategy(st: ModuleType) -> object:
        halves = st.integers(-4, 4).map(lambda half: half / 2)
        return st.lists(st.tuples(halves, halves), min_size=min_rows, max_size=3)

    return strategy


def _any_size(st: ModuleType) -> object:
    """Return the strategy of records of finite numbers of any size."""
    numbers = st.sampled_from([0.0, 1.0, -1.0, 1e10, 1e20, 1e30])
    return st.lists(st.tuples(numbers, numbers), min_size=1, max_size=3)


_INFINITE = Finding(
    false="where the gradient of one record is too large for a float, or no number, its norm is infinite, the factor that "
    "clips it 0, and their product no number: so are the weights, whatever the noise (`clip_and_accumulate` in "
    "`opacus/optimizers/optimizer.py`)",
    answer="Data of such a size would be scaled before, and a training whose loss is infinite thrown away.",
    repair="replace what is infinite or no number in grad_sample by 0 before it is clipped, as jax_privacy does",
    upstream=_NONE_FOUND,
)
_BATCH = Finding(
    false="the clipping bound of the next step is computed from the noisy count of unclipped gradients divided by the exact "
    "size of the batch, which a record more or less changes: the scale of the noise shows it (`update_max_grad_norm` in "
    "`opacus/optimizers/adaclipoptimizer.py`)",
    answer="It was certified for batches of a few records, and the bound is released to the next step, not with the model. "
    'Of the other adaptive clipping of the library a comment says: "We currently ignore the privacy leak due to the the '
    'private batch size for Poisson subsampling of batches".',
    repair="divide by the expected batch size",
    upstream=f"that comment of the source; {_NONE_FOUND}",
    reading=True,  # that the bound is released
)
#: Name of the entry, what it releases, its data, the finding, under which relations, the relations.
_STEPS: tuple[tuple[str, Callable[[float], Mechanism], Strategy, Finding | None, tuple[str, ...], tuple[str, ...]], ...] = (
    ("DPOptimizer", _step("DPOptimizer"), _rows(0), None, (), ("add-remove",)),
    ("DPOptimizer-sum-secure", _step("DPOptimizer", "sum", secure_mode=True), _rows(0), None, (), ("add-remove",)),
    ("DPOptimizer-any-size", _step("DPOptimizer"), _any_size, _INFINITE, ("replace",), ("replace",)),
    ("DPPerLayerOptimizer", _step("DPPerLayerOptimizer", norm=[1.0]), _rows(0), None, (), ("add-remove",)),
    (
        "AdaClipDPOptimizer", _step("AdaClipDPOptimizer", noise=2.0, with_bound=True, **_ADAPTIVE), _rows(1), _BATCH,
        ("add-remove",), ("add-remove",),
    ),
)  # fmt: skip

ENTRIES: tuple[LibraryEntry, ...] = tuple(
    LibraryEntry(
        package=LIBRARY,
        what=what,
        claim=_SMALLER_CLAIM if what == "AdaClipDPOptimizer" else _CLAIM,
        quotation=_QUOTATION,
        where=_WHERE,
        strategy=data,
        build=build,
        relations=relations,
        runs=10_000,
        finding=finding,
        false_under=under,
    )
    for what, build, data, finding, under, relations in _STEPS
)
