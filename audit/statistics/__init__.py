"""Statistics: what turns scores into events, and counts into bounds. Nothing here knows of learners."""
