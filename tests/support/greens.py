"""Targets that are not private as claimed, and that audits without a power test called survived."""

import math


def olh(data, rng):
    """Optimised local hashing of epsilon 2: the seed is public, so no single output says much."""
    seed = int(rng.integers(2**31))
    value = hash((seed, data)) % 4
    if rng.random() < math.exp(2) / (math.exp(2) + 3):
        return seed, value
    return seed, (value + 1 + int(rng.integers(3))) % 4


def rare(data, rng):
    """Count with Laplace noise, and with probability 5e-6 the count itself, from 1000 on."""
    if rng.random() < 5e-6:
        return len(data) + 1000
    return len(data) + rng.laplace()


def survey(data, rng):
    """Mean of each department, Laplace(100 / n): n is nobody's secret, and the noise tells it."""
    means = {}
    for department in ("law", "research", "sales"):
        values = [row["salary"] for row in data if row["department"] == department]
        count = max(1, len(values))
        means[department] = sum(values) / count + rng.laplace(scale=100 / count)
    return means
