"""A register of audited claims: a static site, made from records alone."""
