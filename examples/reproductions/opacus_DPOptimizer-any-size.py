"""Clipping multiplies an infinite gradient by 0: with such a record the weight is NaN, whatever the noise."""

from opacus import GradSampleModule, optimizers
from torch import nn, optim, tensor


def is_nan(x):
    (weight,) = (model := GradSampleModule(nn.Linear(1, 1, bias=False))).parameters()
    sizes = {"noise_multiplier": 1.0, "max_grad_norm": 1.0, "expected_batch_size": 1}
    (model(tensor([[x]])) - 1).square().mean().backward()
    optimizers.DPOptimizer(optim.SGD([weight], lr=1.0), **sizes).step()
    return bool(weight.isnan())


assert (any(is_nan(1.0) for _ in range(50)), all(is_nan(1e30) for _ in range(50))) == (False, True)
