"""Measures: how a claim counts privacy, and the divergences that this needs."""
