"""Formats of a report, each rendered from the record alone."""
