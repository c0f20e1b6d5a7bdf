"""Search: which pair of neighbouring loss sequences to audit on."""
