"""Spaces: which pairs of neighbouring inputs there are, how they change and how they get simpler."""
