"""diffprivlib 0.6.6: its tools, models and mechanisms; docs/libraries.md says which are missing. Its documentation states no neighbour relation of tools and models."""
