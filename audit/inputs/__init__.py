"""Inputs as data: those of mechanisms and rounds of learners, their records, neighbours, and how pairs are drawn."""
