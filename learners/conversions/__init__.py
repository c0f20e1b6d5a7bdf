"""Conversions: a private learner from any learner inside."""
