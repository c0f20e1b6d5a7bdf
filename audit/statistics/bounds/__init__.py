"""Bounds: what turns counts into bounds, and the numerical methods that this needs."""
