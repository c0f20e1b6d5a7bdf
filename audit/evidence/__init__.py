"""Evidence: an audit's event as data, in words, and counted again."""
