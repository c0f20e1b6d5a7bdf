"""The noisy count of unclipped gradients is divided by the exact batch size: the next clipping bound shows it."""

from opacus import GradSampleModule, optimizers
from torch import nn, optim, zeros


def has_large_bound(size):
    bound = {"target_unclipped_quantile": 1, "clipbound_learning_rate": 1, "max_clipbound": 99, "min_clipbound": 0.01}
    noise = {"noise_multiplier": 2, "unclipped_num_std": 2, "max_grad_norm": 1, "expected_batch_size": 1}
    sgd = optim.SGD((model := GradSampleModule(nn.Linear(1, 1))).parameters())
    model(zeros(size, 1)).mean().backward()
    return ((optimizer := optimizers.AdaClipDPOptimizer(sgd, **noise, **bound)).step() or optimizer.max_grad_norm) > 40


assert sum(has_large_bound(1) for _ in range(1000)) > 20 + 3 * sum(has_large_bound(2) for _ in range(1000))
