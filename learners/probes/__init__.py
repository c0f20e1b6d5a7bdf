"""Probes: inner learners whose actions spell out what noise was to hide."""
