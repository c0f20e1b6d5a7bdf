"""Regret: measured on adversarial losses, held against the bounds that are printed."""
