"""Mechanisms that answer once: those of the literature, sound and broken, with their claims."""
