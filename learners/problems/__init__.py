"""Problems: losses, domains and their oracles, expert advice, and hard instances."""
