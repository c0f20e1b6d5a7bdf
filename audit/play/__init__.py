"""Play: pairs of inputs, targets, and the runs of both inputs, block by block."""
