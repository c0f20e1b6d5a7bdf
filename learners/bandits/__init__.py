"""Bandit learners: they see the loss of what they played."""
