"""Certification: choose on a pilot, certify on fresh runs, decide."""
