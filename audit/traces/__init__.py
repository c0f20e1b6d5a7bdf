"""Traces: the noisy calls of a run in both worlds, what leaks around them, and what they bound from above."""
