"""Verdicts: what an audit comes to, and how its counterexample becomes simpler."""
