"""Planted faults: sound learners and mechanisms, each beside versions with one known bug."""
