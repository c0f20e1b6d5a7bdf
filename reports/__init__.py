"""Records, reports, and the command line."""
