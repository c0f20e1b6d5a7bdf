"""Canaries: audits of the scores that a training gives them, and of one run of many rounds."""
