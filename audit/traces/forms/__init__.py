"""Noise as linear forms: numbers and arrays of them, what leaves sight, and the least noise that explains releases."""
