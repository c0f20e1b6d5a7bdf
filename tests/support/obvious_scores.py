"""Local reports whose attack is obvious: each with the score that names the reports that an input makes likelier."""

import math

import numpy as np

DOMAIN, EPSILON = 32, 2.0


def _hash(seed, value, cells):
    return (seed * 2654435761 + value * 40503 + (seed ^ value) * 97) % 2**32 // 7 % cells


def olh(data, rng):
    """Optimised local hashing, epsilon 2 in 8 cells."""
    seed, cells = int(rng.integers(2**31)), 8
    cell = _hash(seed, data, cells)
    if rng.random() >= math.exp(EPSILON) / (math.exp(EPSILON) + cells - 1):
        cell = (cell + 1 + int(rng.integers(cells - 1))) % cells
    return seed, cell


def olh_score(report, left, right):
    seed, cell = report
    return float((_hash(seed, left, 8) == cell) - (_hash(seed, right, 8) == cell))


def oue(data, rng):
    """Optimised unary encoding, epsilon 2."""
    ones = rng.random(DOMAIN) < np.where(np.arange(DOMAIN) == data, 0.5, 1 / (1 + math.exp(EPSILON)))
    return ones.astype(int).tolist()


def oue_score(report, left, right):
    return float(report[left] - report[right])


def subset(data, rng):
    """Subset selection of 4 of 32 values, epsilon 2."""
    size, likelier = 4, math.exp(EPSILON)
    inside = rng.random() < size * likelier / (size * likelier + DOMAIN - size)
    others = rng.permutation([value for value in range(DOMAIN) if value != data])
    return sorted([data, *others[: size - 1].tolist()] if inside else others[:size].tolist())


def subset_score(report, left, right):
    return float((left in report) - (right in report))


def hadamard(data, rng):
    """Hadamard response, epsilon 2: a row, and the sign of its entry."""
    row = int(rng.integers(DOMAIN))
    sign = -1 if bin(row & (data + 1)).count("1") % 2 else 1
    return row, sign if rng.random() < math.exp(EPSILON) / (1 + math.exp(EPSILON)) else -sign


def hadamard_score(report, left, right):
    row, sign = report
    signs = [-1 if bin(row & (value + 1)).count("1") % 2 else 1 for value in (left, right)]
    return float(sign * (signs[0] - signs[1]))
