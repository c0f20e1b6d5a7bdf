"""What guides to differential privacy warn of, each in a function that has the fault; with `fixed` it has none.

docs/foreign.md has the command that finds each.
"""

import math

import numpy as np


def own_seed(data, rng, fixed=False):
    """Count with a seed that stands in the code."""
    noise = rng if fixed else np.random.default_rng(42)
    return len(data) + noise.laplace()


def one_draw(data, rng, fixed=False):
    """Publish two counts, with one draw of noise for both."""
    noise = rng.laplace(size=2) if fixed else np.repeat(rng.laplace(), 2)
    return [sum(data) + 2 * noise[0], len(data) + 2 * noise[1]]


def restarted(data, rng, fixed=False):
    """Publish running sums; after the checkpoint the generator begins anew."""
    first = rng.laplace()
    second = rng.laplace() if fixed else first
    return [sum(data[:1]) + first, sum(data[1:]) + second]


def microbatches(data, rng, fixed=False):
    """Sum gradients, of which each is clipped; or only the mean of each two."""
    clipped = data if fixed else [np.mean(data[i : i + 2]) for i in range(0, len(data), 2)]
    return float(np.clip(clipped, -1, 1).sum() + rng.normal()) if len(data) else rng.normal()


def per_tensor(data, rng, fixed=False):
    """Sum gradients of two tensors, clipped together; or each by itself."""
    total = np.zeros(2)
    for gradient in np.array(data, dtype=float).reshape(-1, 2):
        norms = np.linalg.norm(gradient) if fixed else np.abs(gradient)
        total += gradient / np.maximum(1, norms)
    return total + rng.normal(size=2)


def accumulated(data, rng, fixed=False):
    """Add up four parts of a batch, with a quarter of the noise."""
    total = sum(np.clip(np.array(part, dtype=float), -1, 1).sum() for part in np.array_split(data, 4))
    return total + rng.normal(scale=1.0 if fixed else 0.25)


def shuffled(data, rng, fixed=False):
    """Take each gradient into a step with probability 1/8; or one after the other from a shuffle."""
    gradients = np.array(data, dtype=float)
    if not fixed:
        return rng.permutation(gradients) + rng.normal(0, 0.8, len(gradients))
    return [gradients[rng.random(len(gradients)) < 1 / 8].sum() + rng.normal(0, 0.8) for _ in range(8)]


def own_size(data, rng, fixed=False):
    """Publish a sum over the expected size; or over the true one, with noise for that."""
    size = 4 if fixed else max(1, len(data))
    return (sum(data) + rng.laplace()) / size


def own_bounds(data, rng, fixed=False):
    """Scale numbers from 0 to 10 by their bounds; or by the largest of the data."""
    largest = 10.0 if fixed else max(1, max(data))
    return sum(data) / largest + rng.laplace()


def swapped(data, rng, fixed=False):
    """Hand over epsilon, 2, as the scale."""
    return len(data) + rng.laplace(scale=0.5 if fixed else 2.0**-2)


def two_groups(data, rng, fixed=False):
    """Count two attributes of a person, each with all of epsilon."""
    scale = 2.0 if fixed else 1.0
    return [sum(row[i] for row in data) + rng.laplace(scale=scale) for i in (0, 1)]


def rounding(data, rng, fixed=False):
    """Draw Laplace noise by a logarithm; or by whole numbers."""
    if fixed:
        return len(data) + int(rng.geometric(1 - math.exp(-1)) - rng.geometric(1 - math.exp(-1)))
    sign = 1 if rng.random() < 0.5 else -1
    return len(data) + sign * math.log(1 - rng.random())


def failing(data, rng, fixed=False):
    """Fail on a value that is no number."""
    if fixed:
        data = [value for value in data if value is not None]
    return sum(data) + rng.laplace()
