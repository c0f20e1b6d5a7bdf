"""Odds: what scores say of the world, and how sure that is."""
