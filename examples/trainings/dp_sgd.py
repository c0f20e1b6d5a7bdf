"""Logistic regression by DP-SGD in NumPy, each training sound or with a fault that such code has had.

Every training takes `included`, a bool for each canary, and a generator, and returns a score for each canary, larger
for those that were in the data:

    overclaim check dp_sgd.py:sound --canaries 250 --trainings 8 --gdp 0.5

Model: eight tensors of weights, nine steps on all examples, gradients clipped to norm 1 and summed, noise of standard
deviation 6 added to the sum. So mu is sqrt(9) / 6 = 0.5 for the presence of one example, and `sound` has just that.
Only `shuffled` and `poisson` differ: a step on one example of eight, with an epsilon of 1.71 at delta 0.01.
"""

import numpy as np
from scipy import special

STEPS, NOISE, CLIP, TENSORS, PARTS, RATE = 9, 6.0, 1.0, 8, 4, 1e-4
#: Of the two trainings with small batches.
EXAMPLES, SMALL_NOISE = 8, 0.8


def gradient_canaries(many, rng):
    """Features that differ from 0 at one place of each tensor: their gradients are orthogonal. The signs alternate."""
    features = np.zeros((many, TENSORS, many))
    features[np.arange(many), :, np.arange(many)] = 50.0 * (-1.0) ** np.arange(TENSORS)
    return features, np.ones(many)


def mislabelled_canaries(many, rng):
    """Usual examples with the wrong label."""
    features = rng.normal(0, 3, (many, TENSORS, many))
    truth = np.sign(features[:, 0, :5].sum(axis=1))
    return features, (1 - truth) / 2


def clip_in_total(gradients):
    return gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=(1, 2), keepdims=True) / CLIP)


def clip_each_tensor(gradients):
    return gradients / np.maximum(1.0, np.linalg.norm(gradients, axis=2, keepdims=True) / CLIP)


def noise_of_each(shape, scale, rng):
    return rng.normal(0, scale, shape)


def noise_of_one_key(shape, scale, rng):
    key = rng.integers(2**63)
    return np.stack([np.random.default_rng(key).normal(0, scale, shape[1:]) for _ in range(shape[0])])


def train(
    included,
    rng,
    canaries=gradient_canaries,
    clip=clip_in_total,
    noise=noise_of_each,
    scale=NOISE,
    parts=1,
    replaced=False,
):
    """Train, and return how far the weights went where each canary pulls them."""
    features, labels = canaries(included.size, np.random.default_rng(0))
    others = np.random.default_rng(7).normal(0, 0.1, (30, *features.shape[1:]))
    x, y = np.concatenate([features, others]), np.append(labels, np.arange(30) % 2)
    if replaced:  # where a canary is not included its label is the other one
        y[: included.size] = np.where(included, labels, 1 - labels)
    present = np.append(included | replaced, np.ones(30, dtype=bool))
    weights = np.zeros(features.shape[1:])
    for _ in range(STEPS):
        residual = y - special.expit(np.einsum("ikd,kd->i", x, weights))
        total = np.zeros_like(weights)
        for part in np.array_split(rng.permutation(y.size), parts):  # gradients are accumulated
            gradients = clip(residual[part, None, None] * x[part])
            total += (present[part, None, None] * gradients).sum(axis=0)
        weights += RATE * (total + noise(weights.shape, scale * CLIP, rng))
    pulled = (2 * labels - 1)[:, None, None] * features
    return np.einsum("ikd,kd->i", pulled, weights)


def sound(included, rng):
    return train(included, rng)


def sound_mislabelled(included, rng):
    return train(included, rng, canaries=mislabelled_canaries)


def sound_replaced(included, rng):
    """The claim is about the replacement of an example, and noise is for twice the clipping norm."""
    return train(included, rng, replaced=True, scale=2 * NOISE)


def clipped_per_tensor(included, rng):
    return train(included, rng, clip=clip_each_tensor)


def sensitivity_of_presence(included, rng):
    """The claim is about the replacement of an example, whose gradient may turn round: noise is for its presence."""
    return train(included, rng, replaced=True)


def accumulated(included, rng):
    """Noise is divided by the number of parts, "since each adds a part of it", and added once."""
    return train(included, rng, parts=PARTS, scale=NOISE / PARTS)


def accumulated_mislabelled(included, rng):
    return train(included, rng, canaries=mislabelled_canaries, parts=PARTS, scale=NOISE / PARTS)


def one_key(included, rng):
    return train(included, rng, noise=noise_of_one_key)


def shuffled(included, rng):
    """One epoch of shuffled batches of 1, accounted as if each step drew every example with probability 1 / 8.

    Every canary has a training of its own, in which the gradients of the seven others are -1. A gradient of 0 takes
    its place where it is not included. All noisy gradients are seen; the score is the logarithm of the likelihood
    ratio.
    """
    gradients = np.full((included.size, EXAMPLES), -1.0)
    gradients[:, 0] = included
    noisy = rng.permuted(gradients, axis=1) + rng.normal(0, SMALL_NOISE, gradients.shape)
    ratios = [
        special.logsumexp((value + 1) * (2 * noisy + 1 - value) / 2 / SMALL_NOISE**2, axis=1) for value in (1, 0)
    ]
    return ratios[0] - ratios[1]


def poisson(included, rng):
    """The same with batches that are drawn as they are accounted for."""
    drawn = rng.random((included.size, EXAMPLES, EXAMPLES)) < 1 / EXAMPLES  # (canaries, steps, examples)
    noisy = (
        (drawn[..., 0] & included[:, None]) - drawn[..., 1:].sum(axis=2) + rng.normal(0, SMALL_NOISE, drawn.shape[:2])
    )
    others = np.arange(EXAMPLES)
    chances = special.binom(EXAMPLES - 1, others) * (1 / EXAMPLES) ** others * (1 - 1 / EXAMPLES) ** (7 - others)
    without, with_it = (
        np.exp(-((noisy[..., None] + others - shift) ** 2) / 2 / SMALL_NOISE**2) @ chances for shift in (0, 1)
    )
    return np.log(1 - 1 / EXAMPLES + with_it / without / EXAMPLES).sum(axis=1)
