"""SmartNoise: its SQL queries, and its synthesisers with what prepares data for them. They need an environment of their own."""
