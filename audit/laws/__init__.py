"""Exact laws: of released sequences, where they can be computed, and the epsilon that follows from them."""
