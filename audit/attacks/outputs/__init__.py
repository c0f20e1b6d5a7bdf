"""Attacks on what a mechanism put out: counts, regressions and trees on features, and bits of floats."""
