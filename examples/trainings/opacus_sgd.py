"""Logistic regression by DP-SGD with Opacus, sound and with each record four times in its loader.

overclaim check opacus_sgd.py:sound --canaries 250 --trainings 8 --gdp 0.5
"""

import torch
from opacus import PrivacyEngine
from torch.utils.data import DataLoader, TensorDataset

STEPS, NOISE, CLIP, RATE = 9, 6.0, 1.0, 1e-2


def train(included, rng, copies=1):
    """Train, and return the weight of the feature that each canary has for itself."""
    torch.manual_seed(int(rng.integers(2**31)))
    features = 50 * torch.eye(included.size)[torch.as_tensor(included)].repeat(copies, 1)
    records = TensorDataset(features, torch.ones(len(features), 1))
    model = torch.nn.Linear(included.size, 1, bias=False)
    torch.nn.init.zeros_(model.weight)
    optimizer = torch.optim.SGD(model.parameters(), lr=RATE)
    model, optimizer, loader = PrivacyEngine().make_private(
        module=model,
        optimizer=optimizer,
        data_loader=DataLoader(records, batch_size=len(records)),
        noise_multiplier=NOISE,
        max_grad_norm=CLIP,
        poisson_sampling=False,
    )
    for _ in range(STEPS):
        for batch, labels in loader:
            optimizer.zero_grad()
            torch.nn.functional.binary_cross_entropy_with_logits(model(batch), labels).backward()
            optimizer.step()
    return model._module.weight.detach().numpy()[0]


def sound(included, rng):
    return train(included, rng)


def oversampled(included, rng):
    return train(included, rng, copies=4)
