"""Attacks: scores of what was released, larger where the left world explains it better."""
