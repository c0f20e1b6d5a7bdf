"""Follow the leader, regularised, perturbed, approximate and projection-free: on noisy prefix sums from a tree."""
