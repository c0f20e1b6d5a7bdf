"""Logistic regression by DP-SGD with jax_privacy, sound and with clipping per tensor: `dp_sgd.py` in another library.

    overclaim check jax_sgd.py:sound --canaries 250 --trainings 8 --gdp 0.5

Weights are eight tensors; an example that is not included has a loss of 0, and so a gradient of 0.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax_privacy.clipping import clipped_grad
from jax_privacy.noise_addition import gaussian_privatizer

STEPS, NOISE, CLIP, TENSORS, RATE = 9, 6.0, 1.0, 8, 1e-4
WEIGHTS, BATCH = tuple(range(TENSORS)), tuple(range(TENSORS, TENSORS + 3))


def loss(*weights_and_example):
    """The logistic loss of one example: its features, (tensors, places), label, and whether it is included."""
    *weights, x, y, included = weights_and_example
    margin = sum(jnp.vdot(tensor, part) for tensor, part in zip(weights, x, strict=True))
    return included * (jnp.logaddexp(0.0, margin) - y * margin)


def clipped(tensors):
    """The sum of gradients by some tensors, clipped together."""
    return clipped_grad(loss, argnums=tensors, batch_argnums=BATCH, l2_clip_norm=CLIP, keep_batch_dim=False)


def train(included, rng, per_tensor=False):
    """Train, and return how far the weights went where each canary pulls them."""
    many = included.size
    features = np.zeros((many, TENSORS, many))
    features[np.arange(many), :, np.arange(many)] = 50.0 * (-1.0) ** np.arange(TENSORS)
    parts = [clipped((one,)) for one in WEIGHTS] if per_tensor else [clipped(WEIGHTS)]
    gradients = jax.jit(lambda *given: sum((part(*given) for part in parts), start=()))
    weights = tuple(jnp.zeros(many) for _ in WEIGHTS)
    privatizer = gaussian_privatizer(stddev=NOISE * CLIP, prng_key=int(rng.integers(2**31)))
    state = privatizer.init(weights)
    for _ in range(STEPS):
        summed = gradients(*weights, features, np.ones(many), included.astype(float))
        noisy, state = privatizer.update(summed, state)
        weights = tuple(tensor - RATE * one for tensor, one in zip(weights, noisy, strict=True))
    return np.einsum("ikd,kd->i", features, np.stack(weights))


def sound(included, rng):
    return train(included, rng)


def clipped_per_tensor(included, rng):
    return train(included, rng, per_tensor=True)
